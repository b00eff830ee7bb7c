"""The README's table of stages, written from the lessons and the line."""

from __future__ import annotations

from pathlib import Path

from workshop.errors import Problem
from workshop.lesson import CHAPTERS, Lesson
from workshop.line import ensure_built
from workshop.repo import open_repo
from workshop.series import write
from workshop.show import added_lines, lesson_path

START = "<!-- stages: written by `python -m workshop pages` -->\n"
END = "<!-- end of stages -->\n"


def table(root: Path) -> str:
    """A row a stage, with its chapter, its lesson and the lines that it adds to `agent/`."""
    repo = open_repo(root)
    line = ensure_built(repo)
    added = added_lines(repo, line)
    rows = ["| stage | what it is about | lines of `agent/` |", "|---|---|---:|"]
    chapter = 0
    for stage in line.stages:
        lesson = Lesson.read(lesson_path(root, stage))
        if lesson.chapter != chapter:
            chapter = lesson.chapter
            rows.append(f"| **{chapter:02d} {CHAPTERS[chapter]}** | | |")
        link = f"[{stage.number:02d} {lesson.title}](stages/{stage.folder}/lesson.md)"
        rows.append(f"| {link} | {lesson.concept} | +{added[stage.slug]} |")
    return "\n".join(rows) + "\n"


def with_table(root: Path) -> str:
    """The README as it should be."""
    text = (root / "README.md").read_text(encoding="utf-8")
    before, found, rest = text.partition(START)
    _, ended, after = rest.partition(END)
    if not found or not ended:
        raise Problem(
            "README.md has lost the marks around its table of stages.", f"Add: {START}{END}"
        )
    return f"{before}{START}\n{table(root)}\n{END}{after}"


def update(root: Path) -> int:
    for path in write(root / "README.md", with_table(root).encode()):
        print(f"wrote {path.name}")
    return 0
