"""The outline: what a text is, and its parts with their places. It changes and drops nothing.

A place is a number of characters (code points) from the beginning of the text.
"""

import csv
import json
import re
from collections import Counter
from dataclasses import dataclass
from html import unescape
from itertools import pairwise
from typing import Any

MOST = 24  # parts of an outline
TITLE = 60  # characters of a part's title
EVEN = 4_000  # characters, at least, of a part where there are no headings
WINDOW = 400  # characters in which a better place for a cut is looked for

HTML = re.compile(
    r"[\s\ufeff]*<(!--|(!doctype html|html|head|body|main|div|p|h[1-6]|table)\b)", re.I
)
TAGGED = re.compile(r"<h([1-6])\b[^>]{0,300}>(.{1,300}?)</h\1", re.I | re.S)
MARKED = re.compile(r"^\ufeff?(#{1,6})[ \t]+(\S.*)", re.M)
MARKS = re.compile(r"^\ufeff?#+|[ \t]#+\s*$")
NUMBERED = re.compile(
    r"^(\d{1,3}(?:\.\d{1,3}){0,4})\.? +([^\W\d_].{0,80})(?<![.,;:!?…\s])\r?$", re.M
)
ALONE = re.compile(r"(?:\A|\n[ \t]*\r?\n)()([^\W\d_].{1,80})(?<![.,;:!?…\s])\r?\n[ \t]*\r?\n")
STAMP = re.compile(
    r"(?:\S{1,80} +){0,4}?\W{0,2}(\d{4}[-/]\d\d[-/]\d\d(?:[T ]?\d[\d:.,]{0,18}\d)?|"
    r"[A-Z]\w\w [ \d]\d [\d:]{8}|\d\d/[A-Z]\w\w/\d{4}[: ][\d:]{8}|\d\d:\d\d:\d\d(?:[.,]\d{1,9})?)"
)
LEVEL = re.compile(r"\b(?:FATAL|CRITICAL|ERROR|WARNING|WARN)\b")
FENCED = re.compile(r"^(```|~~~).*?^\1", re.M | re.S)  # code, where # is no heading
CUTS = [re.compile(cut) for cut in (r"\n[ \t]*\r?\n", r"\n", r"[.!?…]\s|[。！？]", r"\s")]
SPACE, COLON, COMMA = (re.compile(rf"[\s\ufeff]*{mark}\s*") for mark in ("", ":", ",?"))
JSON = json.JSONDecoder()
NONE = (0, 0, 0, None, "")  # no entry

Starts = list[tuple[int, str]]  # where parts begin, and their titles


@dataclass(frozen=True)
class Part:
    """A piece of a text: text[start:end]. Each begins where the one before it ends."""

    title: str
    start: int
    end: int


@dataclass(frozen=True)
class Outline:
    """What a text is, and the parts that it falls into, from end to end."""

    about: str  # in a line
    parts: list[Part]


def outline(text: str, most: int = MOST) -> Outline:
    """The outline of any text, with at most `most` parts; none for an empty one."""
    about, starts = read_json(text) or read_table(text) or read_log(text) or read_prose(text)
    starts = starts if len(starts) > 1 else even(text, most)
    if starts[0][0] > WINDOW:
        starts = [(0, beginning(text, 0)), *starts]
    starts = [(0, starts[0][1]), *starts[1:]]  # a short beginning goes with what follows it
    step = -(-len(starts) // most)
    starts = [(at, f"{title} …" if step > 1 else title) for at, title in starts[::step]]
    spans = pairwise([*(at for at, _ in starts), len(text)])
    titles = [" ".join(title.split())[:TITLE] or "(blank)" for _, title in starts]
    parts = [Part(title, *span) for title, span in zip(titles, spans, strict=True) if text]
    lines = text.count("\n") + (text[-1:] not in "\n")
    return Outline(f"{about}, {len(text)} characters, {lines} lines", parts)


def read_json(text: str) -> tuple[str, Starts] | None:
    """The entries of an object or array; of the one inside that makes up most of it, if any."""
    try:
        at = SPACE.match(text).end()  # type: ignore[union-attr]
        whole, end = JSON.raw_decode(text, at)
        if not isinstance(whole, dict | list) or text[end:].strip():
            return None
        said, starts = f"JSON, {shown(whole)}", entries(text, at, "")
        for _ in range(3):
            longest = max(starts, key=lambda entry: entry[2] - entry[1], default=NONE)
            _, at, end, value, name = longest
            if end - at < len(text) * 0.8 or not isinstance(value, dict | list):
                break
            starts = entries(text, at, name)
    except (ValueError, IndexError, AttributeError, RecursionError):
        return None
    return said, [(place, f"{name}: {shown(value)}") for place, _, _, value, name in starts]


def entries(text: str, at: int, path: str) -> list[tuple[int, int, int, Any, str]]:
    """Of each entry of the JSON object or array at `at`: place, value's span, value, and path."""
    named, found = text[at] == "{", list[tuple[int, int, int, Any, str]]()
    at = SPACE.match(text, at + 1).end()  # type: ignore[union-attr]
    while text[at] not in "]}":
        place, name = at, f"{path}[{len(found)}]"
        if named:
            key, at = JSON.raw_decode(text, at)
            name = f"{path}.{key}" if path else str(key)
            at = COLON.match(text, at).end()  # type: ignore[union-attr]
        value, end = JSON.raw_decode(text, at)
        found.append((place, at, end, value, name))
        at = COMMA.match(text, end).end()  # type: ignore[union-attr]
    return found


def shown(value: Any) -> str:
    """Example: [1, 2] -> list of 2"""
    if isinstance(value, dict | list):
        return f"{'object' if isinstance(value, dict) else 'list'} of {len(value)}"
    return json.dumps(value, ensure_ascii=False)[:TITLE]


def read_table(text: str) -> tuple[str, Starts] | None:
    """Lines that all have the same number of columns."""
    lines = text[:20_000].lstrip("\ufeff").splitlines()[:20]
    if len(lines) < 4 or lines[0][:1] == "{" or STAMP.match(lines[0]):
        return None
    for mark in ",;\t|":
        try:
            rows = list(csv.reader(lines[:-1], delimiter=mark))
        except csv.Error:
            continue
        if len(rows) > 2 and len(rows[0]) > 1 and all(len(row) == len(rows[0]) for row in rows):
            return f"table, columns {', '.join(rows[0])}"[:150], []
    return None


def read_log(text: str) -> tuple[str, Starts] | None:
    """Lines that begin with a time, or each of which is a JSON object."""
    lines = [line for line in text[:20_000].lstrip("\ufeff").splitlines() if line.strip()][:40]
    if len(lines) > 2 and all(line[0] == "{" and line[-1] == "}" for line in lines[:-1]):
        return f"JSON lines, the first {lines[0][:100]}", []
    stamps = [stamp[1] for stamp in map(STAMP.match, lines) if stamp]
    if len(lines) < 3 or len(stamps) < len(lines) * 0.6:
        return None
    ends = [stamp[1] for stamp in map(STAMP.match, text[-20_000:].splitlines()) if stamp]
    levels = [f"{count} {level}" for level, count in Counter(LEVEL.findall(text)).items()]
    return ", ".join([f"log from {stamps[0]} to {(ends or stamps)[-1]}", *levels]), []


def read_prose(text: str) -> tuple[str, Starts]:
    """Everything else: headings of the first kind that there are two of, the upper levels."""
    html = HTML.match(text)
    plain = text if html else FENCED.sub(lambda code: "`" * len(code[0]), text)
    for heading in [TAGGED] if html else [MARKED, NUMBERED, ALONE]:
        found = list(heading.finditer(plain))
        if len(found) > 1:
            break
    depth = [int(h[1]) if html else h[1].count("#") + h[1].count(".") for h in found]
    levels = [sum(d <= level for d in depth) for level in range(max(depth, default=0) + 1)]
    lowest = max((level for level, n in enumerate(levels) if n <= MOST), default=0)
    lowest = max(lowest, next((level for level, n in enumerate(levels) if n > 1), 0))
    starts = []
    for h in (h for h, d in zip(found, depth, strict=True) if d <= lowest):
        title = unescape(re.sub("<[^<>]*>", " ", h[2])) if html else MARKS.sub("", h[0])
        starts.append((h.start(2) if heading is ALONE else h.start(), title))
    return "HTML" if html else "text", starts


def even(text: str, most: int) -> Starts:
    """Parts of about the same size, cut where a paragraph, line, sentence or word ends."""
    count, starts = min(most, len(text) // EVEN), [0]
    for target in (len(text) * i // count for i in range(1, count)):
        cuts = (cut.search(text, target, target + WINDOW) for cut in CUTS)
        starts.append(next((cut.end() for cut in cuts if cut), target))
    return [(at, beginning(text, at)) for at in starts]


def beginning(text: str, at: int) -> str:
    """The first words of the line that stands at a place."""
    line = text[at : at + WINDOW].strip().partition("\n")[0]
    return re.sub("<[^<>]*>", " ", line).strip() or line
