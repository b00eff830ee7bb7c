"""What the pages are made of: the stages with their lessons and changes, and the code host."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from workshop.lesson import Lesson
from workshop.line import Stage, ensure_built
from workshop.rebuild import is_below
from workshop.repo import Repo, open_repo
from workshop.series import patch
from workshop.show import BIG, ORDER, added_lines, lesson_path
from workshop.site.diffs import Change, changes
from workshop.site.host import Host, find_host


@dataclass(frozen=True)
class Entry:
    """One stage: its lesson, the lines that it adds to `agent/`, and the files that it changes.

    `given` are those that a rebuilder is handed: the tests, and data. `data` are other long files
    that are no code.
    """

    stage: Stage
    lesson: Lesson
    added: int
    ours: tuple[Change, ...]
    given: tuple[Change, ...]
    data: tuple[Change, ...]

    @property
    def slug(self) -> str:
        return self.stage.slug

    @property
    def number(self) -> str:
        return f"{self.stage.number:02d}"

    @property
    def page(self) -> str:
        """Named by the slug, so that a link to it survives a renumbering."""
        return f"stages/{self.slug}"


@dataclass(frozen=True)
class Course:
    """All stages in their order; `blob` gives the text of a git object."""

    root: Path
    entries: tuple[Entry, ...]
    blob: Callable[[str], str]
    host: Host | None

    def of(self, slug: str) -> Entry:
        (found,) = (entry for entry in self.entries if entry.slug == slug)
        return found


def read_course(root: Path, host: str | None = None) -> Course:
    repo = open_repo(root)
    line = ensure_built(repo)
    added = added_lines(repo, line)
    entries = []
    before: Stage | None = None
    for stage in line.stages:
        lesson = Lesson.read(lesson_path(root, stage))
        text = patch(repo, before.tree if before else None, stage.tree).decode(errors="replace")
        found = sorted(changes(text), key=lambda change: place(change.name, lesson))
        given = tuple(c for c in found if is_below(c.name, ("tests", *lesson.given)))
        rest = [change for change in found if change not in given]
        data = tuple(c for c in rest if not c.name.endswith(".py") and c.added > BIG)
        ours = tuple(change for change in rest if change not in data)
        entries.append(Entry(stage, lesson, added[stage.slug], ours, given, data))
        before = stage
    return Course(root, tuple(entries), reader(repo), find_host(repo, host))


def place(name: str, lesson: Lesson) -> tuple[int, int, str]:
    """Where a file stands among others: as the lesson lists them, then as `just diff` does."""
    folders = [glob.removesuffix("*") for glob in ORDER]
    ranks = [rank for rank, folder in enumerate(folders) if name.startswith(folder)]
    listed = lesson.touches.index(name) if name in lesson.touches else len(lesson.touches)
    return (listed, min(ranks, default=len(folders)), name)


def reader(repo: Repo) -> Callable[[str], str]:
    @functools.cache
    def blob(name: str) -> str:
        if not name:
            return ""
        return repo.git("cat-file", "blob", name).decode(errors="replace")

    return blob
