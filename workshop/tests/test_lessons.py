"""Every command that a lesson or a page shows runs in a fresh clone; outputs are compared."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from workshop.check import chosen_stages
from workshop.git import Git
from workshop.lesson import Lesson, console_commands
from workshop.line import Stage, read_line
from workshop.outputs import differences
from workshop.pages import NOT_RUN, PAGE_TOLERANCE, own_pages, printed
from workshop.practice.shelf import NAME as SHELF
from workshop.readme import with_table
from workshop.show import lesson_path
from workshop.site import measured

ROOT = Path(__file__).resolve().parents[2]
LINE = read_line(ROOT)
PAGES = [
    path.relative_to(ROOT).as_posix()
    for path in own_pages(ROOT)
    if console_commands(path.read_text(encoding="utf-8"))
]


@pytest.fixture(scope="session")
def clone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A clone of what stands here, committed or not, in a path with a space. It shares `.venv`."""
    folder = tmp_path_factory.mktemp("a fresh clone")
    out = Git(ROOT)("ls-files", "-z", "--cached", "--others", "--exclude-standard")
    for name in filter(None, out.decode().split("\0")):
        source = ROOT / name
        if source.is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(source, folder / name)
    git = Git(folder)
    git("init", "--quiet", "-b", "main")
    git("add", "--all")
    git("commit", "--quiet", "-m", "a clone")
    (folder / ".venv").symlink_to(ROOT / ".venv")
    (folder / ".env").write_bytes((folder / ".env.example").read_bytes())
    (folder / "bin").mkdir()
    just = folder / "bin" / "just"
    if not shutil.which(
        "just"
    ):  # `python -m workshop test` needs no just: its recipes are one line
        just.write_text('#!/bin/sh\nexec sh "$TINY_CLONE/workshop/start" "$@"\n')
        just.chmod(0o755)
    return folder


def environment(clone: Path) -> dict[str, str]:
    """A user's, with nothing set that changes an output."""
    kept = {name: os.environ[name] for name in ("HOME", "LANG", "TMPDIR") if name in os.environ}
    path = os.pathsep.join([os.environ["PATH"], str(clone / "bin")])
    one = {"OMP_WAIT_POLICY": "passive", "OPENBLAS_NUM_THREADS": "1"}  # as workshop/check.py says
    # Lessons have the same texts embedded again and again: 700 requests, and all examples.
    shelf = {SHELF: str(clone / ".git" / "practice-shelf")}
    return {**kept, **one, **shelf, "PATH": path, "TINY_CLONE": str(clone)}


def run(clone: Path, here: Path, command: str) -> tuple[str, int]:
    """What a command prints in a folder of the clone, as a terminal shows it; its exit code."""
    said, code = printed(command, here, environment(clone))
    assert "Traceback" not in said, said
    return said, code


def hold(clone: Path, here: Path, command: str, shown: str, tolerance: float) -> int:
    """What a page shows is all that a command prints, or its standard output alone.

    Returns its exit code.
    """
    said, code = run(clone, here, command)
    if not shown.strip() or not (found := differences(shown, said, tolerance)):
        return code
    alone, code = printed(command, here, environment(clone), both=False)
    if differences(shown, alone, tolerance):
        pytest.fail("\n".join([f"$ {command}", *found, "all of it:", said]))
    return code


@pytest.mark.xdist_group("clone")
@pytest.mark.parametrize("stage", [pytest.param(s, id=s.folder) for s in chosen_stages(LINE)])
def test_T50_every_command_of_a_lesson_prints_what_the_lesson_shows(
    stage: Stage, clone: Path
) -> None:
    lesson = Lesson.read(lesson_path(ROOT, stage))
    assert lesson.commands, "the lesson shows no command"
    said, _ = run(clone, clone, f"just stage {stage.number}")
    tree = clone / ".stages" / stage.folder
    assert tree.is_dir(), said
    for command, shown in lesson.commands:
        code = hold(clone, tree, command, shown, lesson.tolerance)
        if command.endswith(lesson.proof):
            assert code == lesson.exit, f"$ {command}: exit code {code}"
    proved = [shown for command, shown in lesson.commands if command.endswith(lesson.proof)]
    assert any(shown.strip() for shown in proved), f"no output is shown for: {lesson.proof}"


def test_the_table_of_stages_says_what_the_line_holds() -> None:
    assert (ROOT / "README.md").read_text(encoding="utf-8") == with_table(ROOT)


@pytest.mark.xdist_group("clone")
@pytest.mark.parametrize("page", PAGES)
def test_T50_every_command_of_a_page_prints_what_the_page_shows(page: str, clone: Path) -> None:
    commands = console_commands((ROOT / page).read_text(encoding="utf-8"))
    for command, shown in commands:
        if command in NOT_RUN:
            continue  # this run; and what the clone was made with
        hold(clone, clone, command, shown, PAGE_TOLERANCE)


@pytest.mark.xdist_group("clone")
@pytest.mark.parametrize("one", measured.there(ROOT), ids=lambda m: m.name)
def test_T50_what_was_measured_is_what_the_command_prints(
    one: measured.Measurement, clone: Path
) -> None:
    found = one.run(clone, environment(clone))
    assert measured.differences(one.read(ROOT), found, one.tolerance) == []
