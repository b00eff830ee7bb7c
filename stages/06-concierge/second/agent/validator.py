"""The validator: every YAML file of a registry gets a verdict; none is skipped."""

import json
from pathlib import Path
from typing import Any, NamedTuple

from agent.schema import check
from agent.yaml_file import YamlError, read_yaml

SUFFIX = ".card.yaml"
FORM = Path(__file__).resolve().parent.parent / "registry" / "card.schema.json"


class Verdict(NamedTuple):
    """What the validator says of one file. Its data may be used when there are no errors."""

    path: Path
    data: Any
    errors: list[tuple[int, str]]  # line; what is wrong and the mend


def judge_registry(folder: Path) -> list[Verdict]:
    """A verdict for every YAML file below `folder`, ordered by path."""
    files = [path for path in folder.rglob("*") if path.suffix.lower() in (".yaml", ".yml")]
    first: dict[str, Path] = {}  # the name of a card: the file that had it first
    return [refuse_namesake(judge_file(path), first) for path in sorted(files)]


def refuse_namesake(verdict: Verdict, first: dict[str, Path]) -> Verdict:
    """The verdict, with an error if it is good and a file before has a card of the same name."""
    if verdict.errors or first.setdefault(verdict.data["name"], verdict.path) == verdict.path:
        return verdict
    line, name = read_yaml(verdict.path.read_bytes())[1]["name",], verdict.data["name"]
    what = f"{name!r} is the name of {first[name]} too: rename one of the two"
    return verdict._replace(errors=[(line, what)])


def shared_examples(verdicts: list[Verdict]) -> list[tuple[str, list[str]]]:
    """Each example that good cards share, whatever its capitals, with the cards' names."""
    shared: dict[str, tuple[str, list[str]]] = {}
    for card in (verdict.data for verdict in verdicts if not verdict.errors):
        for text in card["examples"]:
            _, names = shared.setdefault(" ".join(text.casefold().split()), (text, []))
            if card["name"] not in names:
                names.append(card["name"])
    return [(text, names) for text, names in shared.values() if len(names) > 1]


def judge_file(path: Path) -> Verdict:
    """The verdict for one file. Nothing is raised."""
    name = path.name.removesuffix(SUFFIX)
    if name == path.name:
        return Verdict(path, None, [(1, f"a card's file ends in {SUFFIX}: rename it or move it")])
    try:
        data, lines = read_yaml(path.read_bytes())
    except YamlError as error:
        return Verdict(path, None, [(error.line, error.message)])
    except (OSError, ValueError, OverflowError) as error:
        return Verdict(path, None, [(1, f"cannot be read ({error}): mend or move it")])
    found = list(check(data, json.loads(FORM.read_text(encoding="utf-8"))))
    if not found and data["name"] != name:
        found.append((("name",), f"the name is not the file's: write {name!r}"))
    for key in ("examples", "tools") if not found else ():
        names = [item["name"] if isinstance(item, dict) else item for item in data[key]]
        twice = [i for i, item in enumerate(names) if item in names[:i]]
        found += [((key, i), f"{names[i]!r} stands in {key} twice: keep one") for i in twice]
    return Verdict(path, data, sorted((lines.get(where, 1), what) for where, what in found))
