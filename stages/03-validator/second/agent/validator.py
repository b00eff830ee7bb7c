"""Says of every card in a folder whether it can be used; if not, which line to mend and how."""

import json
import math
import os
import re
from collections.abc import Iterator
from difflib import get_close_matches
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from agent.yaml_file import YamlError, plain_scalar, read_yaml

SUFFIX = ".card.yaml"
SCHEMA_FILE = Path(__file__).resolve().parent.parent / "registry" / "card.schema.json"

Spot = tuple[str | int, ...]  # the keys and positions that lead to a value
Mistake = tuple[Spot, str]

JSON_WORDS = {"true": True, "false": False, "null": None}
JSON_NUMBER = re.compile(r"-?(0|[1-9]\d*)(\.\d+)?", re.ASCII)
COMMENT_BEHIND = re.compile(r"[ \t]+#")
# Control characters without tab and line ends, changes of direction, halves of surrogate pairs.
UNPRINTABLE = re.compile(
    "[\0-\x08\x0b\x0c\x0e-\x1f\x7f-\x84\x86-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]"
)
SPELLINGS = {  # what YAML takes a value for: how to write it so that all read the same
    "bool": "quote it, or write true or false",
    "null": "quote it or write a value",
    "value": "quote it",
    "merge": "quote it",
}
KINDS: dict[str, tuple[Any, str]] = {  # a type of JSON schema: the Python types, the words for it
    "string": (str, "text"),
    "integer": (int, "a whole number in digits"),
    "number": ((int, float), "a number in digits"),
    "array": (list, "a list"),
    "object": (dict, "keys with values"),
}


class Unread:
    """Stands in the data for a scalar that has an error already, so that it gets no second."""


class Verdict(NamedTuple):
    """One file and what is wrong with it."""

    path: Path
    data: Any  # usable when errors is empty
    errors: list[tuple[int, str]]  # line from 1; what is wrong and the mend; sorted


def judge_registry(folder: Path) -> list[Verdict]:
    """A verdict for every YAML file below `folder`, in the order of paths."""
    return [judge_file(path) for path in sorted(yaml_paths(folder, set()))]


def yaml_paths(folder: Path, above: set[str]) -> Iterator[Path]:
    """What is called a YAML file below `folder`, through links too, unless they lead in a ring."""
    real = os.path.realpath(folder)
    if not os.path.isdir(folder) or real in above:
        return
    try:
        paths = list(folder.iterdir())
    except PermissionError:
        yield folder  # it may hold cards, so it gets a verdict
        return
    for path in paths:
        if path.name.lower().endswith((".yaml", ".yml")):
            yield path
        yield from yaml_paths(path, above | {real})


def judge_file(path: Path) -> Verdict:
    """The verdict for one file. Whatever the file is, nothing is raised."""
    if not path.name.endswith(SUFFIX):
        return Verdict(path, None, [(1, f"a card's file ends in {SUFFIX}: rename it or move it")])
    if os.path.exists(path) and not os.path.isfile(path):
        return Verdict(path, None, [(1, "not a file: move it, or write a card in its place")])
    errors: list[tuple[int, str]] = []

    def inspect(node: yaml.ScalarNode) -> Any:
        value, fault = judge_scalar(node)
        if fault:
            errors.append((node.start_mark.line + 1, fault))
        return Unread if fault else value

    try:
        data, lines = read_yaml(path.read_bytes(), inspect)
    except OSError as error:
        return Verdict(path, None, [(1, f"cannot be read: {error.strerror}: mend or remove it")])
    except YamlError as error:
        return Verdict(path, None, [(error.line, error.message)])
    for spot, text in (*form_mistakes(data, schema(), ()), *double_mistakes(data)):
        errors.append((lines[spot], text))
    errors += [(lines[spot], text) for spot, text in key_mistakes(data, ())]
    stem = path.name.removesuffix(SUFFIX)
    if not errors and data["name"] != stem:  # of a card that is otherwise sound
        what = f"name is {short(data['name'])}, and the file {path.name!r}: make both the same"
        errors.append((lines["name",], what))
    return Verdict(path, data, sorted(errors))


@cache
def schema() -> dict[str, Any]:
    return json.loads(SCHEMA_FILE.read_text(encoding="utf-8"))


def judge_scalar(node: yaml.ScalarNode) -> tuple[Any, str]:
    """The value that the author meant, and why nobody can be sure of it; else empty."""
    text, kind = node.value, node.tag.rpartition(":")[2]
    if node.style or kind == "str":
        mark = node.end_mark
        if not node.style and COMMENT_BEHIND.match(mark.buffer, mark.pointer):
            return None, f"{short(text)} is cut by ' #': quote it, or move the comment"
        return text, unprintable(text)
    if text in JSON_WORDS:
        return JSON_WORDS[text], ""
    if not text:
        return None, f"no value, which is {kind} to YAML: {SPELLINGS['null']}"
    if not JSON_NUMBER.fullmatch(text):
        mend = SPELLINGS.get(kind, "quote it or write digits")
        return None, f"{short(text)} is {kind} to YAML: {mend}"
    try:
        number = plain_scalar(node)
        return (number, "") if math.isfinite(number) else (None, too_long(text))
    except (ValueError, OverflowError):
        return None, too_long(text)


def too_long(text: str) -> str:
    return f"{short(text)} is too large for a number: quote it or write fewer digits"


def unprintable(text: str) -> str:
    """What to do about a character that no text should have; else empty."""
    sign = UNPRINTABLE.search(text)
    return f"the character U+{ord(sign[0]):04X} is no text: remove it" if sign else ""


def key_mistakes(value: Any, spot: Spot) -> Iterator[Mistake]:
    """Keys with characters that no text should have."""
    if isinstance(value, dict):
        yield from (((*spot, key), fault) for key in value if (fault := unprintable(key)))
    for step, item in steps(value):
        yield from key_mistakes(item, (*spot, step))


def steps(value: Any) -> list[tuple[str | int, Any]]:
    """The values one level below, each with its key or position."""
    if isinstance(value, dict):
        return list(value.items())
    return list(enumerate(value)) if isinstance(value, list) else []


def form_mistakes(value: Any, form: dict[str, Any], spot: Spot) -> Iterator[Mistake]:
    """Where `value` departs from `form`, a JSON schema."""
    if value is Unread:
        return
    wanted = form.get("type", [])
    wanted = [wanted] if isinstance(wanted, str) else wanted
    if wanted and not any(is_kind(value, kind) for kind in wanted):
        quotes = ", in quotes" if "string" in wanted else ""  # a ': ' makes a mapping of a text
        yield spot, f"{wrong(value, spot)}: write {either(wanted)}{quotes}"
    elif isinstance(value, str):
        if not re.search(form.get("pattern", ""), value):
            yield spot, f"{wrong(value, spot)}: write {form['x-mend']}"
    elif isinstance(value, list):
        least, most = form.get("minItems", 0), form.get("maxItems", math.inf)
        if not least <= len(value) <= most:
            what = f"{label(spot)} has {len(value)} entries: write {least} to {most}"
            yield spot, what
        for number, item in enumerate(value):
            yield from form_mistakes(item, form.get("items", {}), (*spot, number))
    elif isinstance(value, dict):
        yield from mapping_mistakes(value, form, spot)
    elif isinstance(value, int | float) and value < form.get("minimum", -math.inf):
        yield spot, f"{wrong(value, spot)}: write {form['minimum']} or more"


def mapping_mistakes(value: dict[str, Any], form: dict[str, Any], spot: Spot) -> Iterator[Mistake]:
    """The keys that are missing or unknown, and what is wrong below the others."""
    known = form.get("properties", {})
    for key in form.get("required", ()):
        if key not in value:
            yield spot, f"the key {key!r} is missing: add it"
    for key, item in value.items():
        if key in known:
            yield from form_mistakes(item, known[key], (*spot, key))
        elif not form.get("additionalProperties", True) and not key.startswith("x-"):
            near = get_close_matches(key.lower(), known, n=1, cutoff=0)[0]
            yield (*spot, key), f"unknown key {short(key)}: did you mean {near!r}?"


def double_mistakes(card: Any) -> Iterator[Mistake]:
    """What stands in a list twice and must not."""
    if not isinstance(card, dict):
        return
    for key, what in {"examples": "example", "tools": "tool"}.items():
        entries = card.get(key)
        seen: dict[str, int] = {}
        for number, entry in enumerate(entries if isinstance(entries, list) else ()):
            text = entry.get("name") if isinstance(entry, dict) and key == "tools" else entry
            if isinstance(text, str) and seen.setdefault(text, number) != number:
                twice = f"the {what} {short(text)} stands here twice: keep one"
                yield (key, number), twice


def is_kind(value: Any, kind: str) -> bool:
    """Whether a value is of a type of JSON schema, where true is no number."""
    return isinstance(value, KINDS[kind][0]) and not isinstance(value, bool)


def either(kinds: list[str]) -> str:
    return " or ".join(KINDS[kind][1] for kind in kinds)


def wrong(value: Any, spot: Spot) -> str:
    return f"{label(spot)} is {short(value)}"


def label(spot: Spot) -> str:
    """A spot in the words of the file; entries of a list count from 1."""
    parts = [f"[{part + 1}]" if isinstance(part, int) else f".{part}" for part in spot]
    return "".join(parts).removeprefix(".") or "the file"


def short(value: Any) -> str:
    """A value as a message shows it: in one line and not too long."""
    shown = repr(value)
    return shown if len(shown) <= 80 else f"{shown[:76]}..."
