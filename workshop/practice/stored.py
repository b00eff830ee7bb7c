"""Long texts that were stored away: of each a digest stands in the conversation, with a handle.

A handle is told by its form, a digest by the handle in it, and a tool that reads on by a parameter
that is called a handle. Only sentences of the text are quoted: no header, no line of an outline, no
remark on what was left out.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from .conversation import Tool
from .refused import JSON
from .slots import name_tokens
from .spot import HANDLE

PLACE = re.compile(  # [12034] · @12034: · (12034 to 12100) · 12034: · at 12034,
    r"^(?:[-*•]\s+)?(?:\[(?:at )?\d+(?:\s*(?:to|bis|\.\.|[-–:])\s*\d+)?\]|"
    r"\((?:at )?\d+(?:\s*(?:to|bis|\.\.|[-–:])\s*\d+)?\)|"
    r"[@#]\s?\d+(?:[-–]\d+)?\s*[:|.)]?|(?:at|bei)?\s?\d+(?:[-–]\d+)?\s*[:|])\s+(?=\S)"
)
PLACE_AFTER = re.compile(
    r"\s+(?:[\[(](?:at |@ ?|bei )?\d+(?:\s*(?:to|bis|\.\.|[-–:])\s*\d+)?[\])]|@ ?\d+(?:[-–]\d+)?)$"
)
BULLET = re.compile(r"^[-*•]\s+")
NUMBERED = re.compile(r"\d{1,3}(?:\.\d{1,3})*[.)]? [A-ZÄÖÜ][^.!?,;:|@\d]{1,50}\Z")  # a heading
ENTRY = re.compile(r"^\W{0,2}\d{1,3}(?:\.\d{1,3})*[.):]?\s+\S.*[^.!?|}\"'”]$")
OUTLINE = re.compile(
    r"(?i)^\W*(?:(?:the |its )?(?:outline|parts|contents|sections|structure)|gliederung|teile|"
    r"inhalt|abschnitte)\b"
)
LEFT_OUT = re.compile(
    r"(?i)^\W*(?:left out|not shown|not here|omitted|what (?:was|is) left out|nothing (?:was|is) "
    r"(?:lost|thrown)|the rest\b|to read (?:on|more)|ausgelassen|weggelassen|nicht gezeigt)|"
    r"^\[.*\b(?:left out|omitted|not shown|ausgelassen|weggelassen)\b.*\]$"
)


def handles_in(text: str) -> tuple[str, ...]:
    """The handles that a text names, in its order."""
    return tuple(dict.fromkeys(HANDLE.findall(text)))


def handle_parameter(tool: Tool) -> str | None:
    """The parameter that takes a handle; None where the tool has none."""
    properties = tool.parameters.get("properties")
    for name, schema in properties.items() if isinstance(properties, dict) else ():
        told = schema.get("description") if isinstance(schema, dict) else None
        kind = schema.get("type", "string") if isinstance(schema, dict) else ""
        named = "handle" in name_tokens(name) or (
            isinstance(told, str) and re.search(r"(?i)\bhandle\b", told[:200])
        )
        if named and kind == "string":
            return str(name)
    return None


def reads(arguments: JSON) -> str | None:
    """The handle that a call reads on by."""
    for value in arguments.values():
        if isinstance(value, str) and HANDLE.fullmatch(value):
            return value
    return None


def quotable(digest: str) -> list[str]:
    """The lines of a digest that are sentences of the text, without their places."""
    lines = [" ".join(line.split()) for line in digest.splitlines()]
    outlined = any(is_title(line) and OUTLINE.match(line) for line in lines)
    return list(_sentence_lines(lines, "header" if outlined else "text"))


def _sentence_lines(lines: list[str], at: str) -> Iterator[str]:
    """`at` says where in a digest it is: header, outline, text or rest."""
    for line in lines:
        if not line:
            continue
        if is_title(line):
            at = "outline" if OUTLINE.match(line) else "rest" if LEFT_OUT.match(line) else "text"
            continue
        if LEFT_OUT.match(line):
            at = "rest"
        if at != "text" or HANDLE.search(line):
            continue
        bare = BULLET.sub("", PLACE_AFTER.sub("", PLACE.sub("", line)))
        entry = not PLACE.match(line) and ENTRY.match(BULLET.sub("", line))
        if not entry and not NUMBERED.match(bare):
            yield bare


def is_title(line: str) -> bool:
    """Does the line name what follows: `## Outline`, `Sentences that fit:`?"""
    return (line.startswith("#") and not PLACE.match(line)) or (
        len(line) <= 90 and line.endswith(":") and not PLACE.match(line)
    )


def passages(text: str) -> list[str]:
    """The lines of passages that were read by a handle, without what says where they stand.

    A piece of a sentence at a passage's beginning is left out.
    """
    kept: list[str] = []
    first = placed = False  # of a passage the first line, and whether its lines name their places
    for line in text.splitlines():
        bare = line.strip()
        if HANDLE.search(bare) and re.fullmatch(r"[\[(<].{1,600}[\])>]:?", bare):
            first, placed = True, False
            continue
        if first:
            placed = bool(PLACE.match(bare))
        if first and bare[:1].islower() and (cut := re.search(r"[.!?]\s+(?=[A-ZÄÖÜ])", bare)):
            bare = bare[cut.end() :]
        first = first and not bare
        bare = BULLET.sub("", PLACE.sub("", bare)) if placed else bare
        kept.append(f"# {bare}" if NUMBERED.match(bare) else bare)
    return kept
