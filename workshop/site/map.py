"""The map: a request's way through the system, drawn from the parts and edges below.

A stage stands on the part that the first file of its lesson belongs to, those of `COMMON` apart:
a new stage needs no line here. `slugs` names the stages that belong elsewhere, and a file that no
part has falls to the part of its chapter.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from fnmatch import fnmatch
from html import escape

from workshop.site.facts import Course, Entry


@dataclass(frozen=True)
class Part:
    """A box of the map. `wide` and `narrow` are its column and row in the two drawings."""

    key: str
    name: str
    about: str
    wide: tuple[int, int]
    narrow: tuple[int, int]
    files: tuple[str, ...] = ()
    slugs: tuple[str, ...] = ()
    chapters: tuple[int, ...] = ()
    outside: bool = False  # not built in any stage
    later: bool = False  # left out as long as no stage builds it


PARTS = (
    Part("request", "A request", "from you", (0, 0), (0, 0), outside=True),
    Part("door", "Front door", "one command for all", (1, 0), (1, 0),
         files=("agent/__main__.py", "agent/door.py", "agent/front*.py"), chapters=(8,)),
    Part("concierge", "Concierge", "who takes it", (2, 0), (0, 1),
         files=("agent/concierge.py",), slugs=("concierge",), chapters=(3,)),
    Part("runner", "Runner", "ask, run, send back", (3, 0), (1, 1),
         files=("agent/runner.py", "agent/calls.py"), chapters=(5,)),
    Part("chat", "Chat", "one POST to a model", (4, 0), (1, 3), files=("agent/chat.py",)),
    Part("client", "Embeddings", "text in, vector out", (0, 1), (0, 4),
         files=("agent/client.py", "agent/settings.py", "agent/cache.py")),
    Part("index", "Index", "the cards' examples", (1, 1), (0, 3),
         files=("agent/index.py", "agent/space.py")),
    Part("nobody", "Saying no", "threshold, gap log", (2, 1), (0, 2),
         files=("agent/calibration.py", "agent/gaps.py"), chapters=(4,)),
    Part("budget", "Budget", "turns, tokens, time", (3, 1), (1, 2),
         files=("agent/budget.py", "agent/deadline.py"), chapters=(6,)),
    Part("tools", "Tools", "one to five a card", (4, 1), (1, 4),
         files=("agent/tool*.py", "agent/worker.py", "registry/tools/*")),
    Part("measure", "Measurements", "what it is worth", (0, 2), (0, 6),
         files=("scripts/*",), slugs=("token-bill",)),
    Part("cards", "Cards", "an agent is a file", (1, 2), (0, 5),
         files=("agent/card*.py", "agent/validator.py", "agent/yaml_file.py"), chapters=(2,)),
    Part("trace", "Trace", "what happened", (3, 2), (1, 6), files=("agent/trace.py",)),
    Part("store", "Artifact store", "a digest in, all kept", (4, 2), (1, 5),
         files=("agent/store.py", "agent/artifacts.py", "agent/outline.py", "agent/sentences.py",
                "agent/digest.py", "agent/expand.py"),
         chapters=(7,)),
    Part("coder", "A coding agent", "files, bash, skills", (3, 3), (1, 7),
         chapters=(9,), later=True),
    Part("beyond", "Past the prototype", "it learns from runs", (2, 3), (0, 7),
         chapters=(10,), later=True),
)  # fmt: skip
COMMON = ("agent/__init__.py", "agent/__main__.py", "agent/errors.py")  # of all parts
EDGES = (
    ("request", "door"),
    ("door", "concierge"),
    ("concierge", "runner"),
    ("concierge", "nobody"),
    ("client", "index"),
    ("cards", "index"),
    ("index", "concierge"),
    ("runner", "chat"),
    ("runner", "tools"),
    ("runner", "budget"),
    ("runner", "trace"),
    ("tools", "store"),
)


@dataclass(frozen=True)
class Drawing:
    """The measures of one drawing, in units of its view box."""

    name: str
    width: int  # of a part
    gap: tuple[int, int]  # between parts
    margin: int
    cell: Callable[[Part], tuple[int, int]]
    heights: tuple[int, ...]  # of the parts in each row

    def corner(self, part: Part) -> tuple[float, float]:
        column, row = self.cell(part)
        above = sum(self.heights[:row]) + row * self.gap[1]
        return self.margin + column * (self.width + self.gap[0]), self.margin + above

    def height(self, part: Part) -> int:
        return self.heights[self.cell(part)[1]]

    def size(self, parts: list[Part]) -> tuple[float, float]:
        corners = [self.corner(part) for part in parts]
        right = max(x for x, _ in corners) + self.width
        low = max(y + self.height(part) for part, (_, y) in zip(parts, corners, strict=True))
        return right + self.margin, low + self.margin


WIDE = Drawing("wide", 140, (20, 24), 2, lambda part: part.wide, ())
NARROW = Drawing("narrow", 146, (24, 20), 12, lambda part: part.narrow, ())
MINI = Drawing("mini", 112, (16, 10), 2, lambda part: part.wide, (26,) * 9)
BADGE = 27  # a badge and the space beside it
A_ROW = 4  # badges side by side


def fitted(drawing: Drawing, stages: dict[str, list[Entry]]) -> Drawing:
    """With each row as high as the badges of its fullest part need."""
    rows = [0] * (1 + max(drawing.cell(part)[1] for part in PARTS))
    for part in PARTS:
        row = drawing.cell(part)[1]
        rows[row] = max(rows[row], 1, math.ceil(len(stages[part.key]) / A_ROW))
    return replace(drawing, heights=tuple(61 + BADGE * count for count in rows))


def part_of(entry: Entry) -> Part | None:
    """The part that a stage builds. None where no part has its chapter either: chapter 01."""
    touches = entry.lesson.touches
    first = next((name for name in touches if name not in COMMON), touches[0])
    tests: tuple[Callable[[Part], bool], ...] = (
        lambda part: entry.slug in part.slugs,
        lambda part: any(fnmatch(first, glob) for glob in part.files),
        lambda part: entry.lesson.chapter in part.chapters,
    )
    # A chapter's own part goes before the files: chapters 09 and 10 touch everything.
    late = any(entry.lesson.chapter in part.chapters for part in PARTS if part.later)
    for test in (tests[0], *(tests[:0:-1] if late else tests[1:])):
        for part in PARTS:
            if test(part):
                return part
    return None


def placed(course: Course) -> dict[str, list[Entry]]:
    """The stages on each part, by its key."""
    found: dict[str, list[Entry]] = {part.key: [] for part in PARTS}
    for entry in course.entries:
        if part := part_of(entry):
            found[part.key].append(entry)
    return found


def drawn(course: Course) -> list[Part]:
    stages = placed(course)
    return [part for part in PARTS if stages[part.key] or not part.later]


def picture(course: Course, drawing: Drawing) -> str:
    """The map as inline SVG: a link for each stage, named for a screen reader."""
    parts, stages = drawn(course), placed(course)
    drawing = fitted(drawing, stages)
    width, height = drawing.size(parts)
    inner = edges(drawing, parts) + "".join(box(drawing, p, stages[p.key]) for p in parts)
    return (
        f'<svg class="map {drawing.name}" viewBox="0 0 {width} {height}" role="group" '
        f'aria-label="The map: the parts of the system, and the stages that build them">'
        f"{inner}</svg>"
    )


def box(drawing: Drawing, part: Part, entries: list[Entry]) -> str:
    x, y = drawing.corner(part)
    w, h = drawing.width, drawing.height(part)
    kind = "outside" if part.outside else "" if entries else "open"
    texts = (
        f'<text class="name" x="{x + 10}" y="{y + 21}">{escape(part.name)}</text>'
        f'<text class="about" x="{x + 10}" y="{y + 39}">{escape(part.about)}</text>'
    )
    if not entries and not part.outside:
        texts += f'<text class="about" x="{x + 10}" y="{y + 70}">to come</text>'
    links = "".join(
        badge(entry, x + 8 + BADGE * (at % A_ROW), y + 54 + BADGE * (at // A_ROW))
        for at, entry in enumerate(entries)
    )
    return (
        f'<g class="part {kind}"><rect class="box" x="{x}" y="{y}" width="{w}" height="{h}" '
        f'rx="8"/>{texts}{links}</g>'
    )


def badge(entry: Entry, x: float, y: float) -> str:
    title = f"Stage {entry.number}: {escape(entry.lesson.title, quote=True)}"
    return (
        f'<a class="badge" href="{entry.page}.html" aria-label="{title}"><title>{title}</title>'
        f'<rect x="{x}" y="{y}" width="25" height="25" rx="5"/>'
        f'<text x="{x + 12.5}" y="{y + 17}">{entry.number}</text></a>'
    )


def edges(drawing: Drawing, parts: list[Part]) -> str:
    known = {part.key: part for part in parts}
    lines = [way(drawing, known[one], known[other]) for one, other in EDGES
             if one in known and other in known]  # fmt: skip
    return f'<g class="edges" aria-hidden="true">{"".join(lines)}</g>'


def way(drawing: Drawing, one: Part, other: Part) -> str:
    """A line from one part to another: straight to a neighbour, else by the lane beside it."""
    (c1, r1), (c2, r2) = drawing.cell(one), drawing.cell(other)
    (x1, y1), (x2, y2) = drawing.corner(one), drawing.corner(other)
    w, h1, h2, gap = drawing.width, drawing.height(one), drawing.height(other), drawing.gap[0]
    lane = min(gap / 2, drawing.margin - 3) if c1 == 0 and c2 == 0 else gap / 2
    down, right = (1 if r2 > r1 else -1), (1 if c2 > c1 else -1)
    if r1 == r2:
        start = (x1 + w if right > 0 else x1, y1 + h1 / 2)
        points = [start, (x2 if right > 0 else x2 + w, start[1])]
    elif c1 == c2 and abs(r1 - r2) == 1:
        start = (x1 + w / 2, y1 + h1 if down > 0 else y1)
        points = [start, (start[0], y2 if down > 0 else y2 + h2)]
    else:
        side = -1 if c1 == c2 else right
        start = (x1 + w if side > 0 else x1, y1 + h1 * (0.75 if down > 0 else 0.25))
        across = start[0] + side * lane
        end = (x2 if side > 0 or c1 == c2 else x2 + w, y2 + h2 * (0.25 if down > 0 else 0.75))
        points = [start, (across, start[1]), (across, end[1]), end]
    path = " ".join(f"{x:g},{y:g}" for x, y in points)
    return f'<polyline points="{path}"/>{arrow(points[-2], points[-1])}'


def arrow(before: tuple[float, float], tip: tuple[float, float]) -> str:
    """A head of a line. No `marker`: its id would stand twice in a page with two drawings."""
    (x0, y0), (x, y) = before, tip
    dx, dy = (x > x0) - (x < x0), (y > y0) - (y < y0)
    left = (x - 7 * dx - 4 * dy, y - 7 * dy - 4 * dx)
    right = (x - 7 * dx + 4 * dy, y - 7 * dy + 4 * dx)
    return f'<polygon points="{x:g},{y:g} {left[0]:g},{left[1]:g} {right[0]:g},{right[1]:g}"/>'


def small(course: Course, here: Entry, up: str) -> str:
    """The map of a stage's page: names alone, and where you are."""
    parts, mine = drawn(course), part_of(here)
    width, height = MINI.size(parts)
    boxes = []
    for part in parts:
        x, y = MINI.corner(part)
        w, h = MINI.width, MINI.height(part)
        kind = "here" if part is mine else "outside" if part.outside else ""
        boxes.append(
            f'<g class="part {kind}"><rect class="box" x="{x}" y="{y}" width="{w}" height="{h}" '
            f'rx="5"/><text class="name" x="{x + w / 2:g}" y="{y + 17}">{escape(part.name)}</text>'
            "</g>"
        )
    name = mine.name if mine else "before the first part"
    return (
        f'<a class="here-map" href="{up}index.html#map">'
        f'<span class="here-name">You are here: <b>{escape(name)}</b></span>'
        f'<svg class="map mini" viewBox="0 0 {width} {height}" aria-hidden="true">'
        f"{''.join(boxes)}</svg></a>"
    )


def listed(course: Course) -> str:
    """The map as a list, for whoever cannot see a picture or has a small screen."""
    rows, stages = [], placed(course)
    for part in drawn(course):
        if part.outside:
            continue
        links = ", ".join(
            f'<a href="{entry.page}.html">{entry.number} {escape(entry.lesson.title)}</a>'
            for entry in stages[part.key]
        )
        rows.append(
            f"<li><b>{escape(part.name)}</b>: {escape(part.about)}. {links or 'To come.'}</li>"
        )
    return f"<ul>{''.join(rows)}</ul>"
