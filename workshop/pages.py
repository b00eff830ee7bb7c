"""Maintainers: run the commands that lessons and pages show, and write their outputs anew."""

from __future__ import annotations

import contextlib
import io
import os
import re
import subprocess
from pathlib import Path

from workshop.errors import Problem
from workshop.lesson import Lesson, console_commands
from workshop.line import Line, ensure_built
from workshop.outputs import differences
from workshop.readme import update
from workshop.repo import open_repo
from workshop.series import write
from workshop.show import added_lines, lesson_path
from workshop.site import measured
from workshop.trees import show_stage

PAGE_TOLERANCE = 0.02
NOT_RUN = ("just test", "just setup")  # the run itself, and what comes before it
NOT_RENEWED = ("just edit", "just save")  # here they would act on an edit that is open


def own_pages(root: Path) -> list[Path]:
    """The pages that belong to no stage."""
    return [root / "README.md", *sorted((root / "docs").glob("*.md"))]


def relinked(text: str, line: Line) -> str:
    """The text with each link to a stage at that stage's number, which may have moved."""
    folders = {stage.slug: stage.folder for stage in line.stages}
    return re.sub(r"(?<=stages/)\d\d-([a-z0-9-]+)(?=/)", lambda m: folders.get(m[1], m[0]), text)


def refresh(root: Path, words: list[str]) -> int:
    """Bring the shown outputs of the stages named, or of all and the other pages, up to date."""
    repo = open_repo(root)
    line = ensure_built(repo)
    added = added_lines(repo, line)
    stages = [line.resolve(word) for word in words] or list(line.stages)
    for stage in stages:
        path = lesson_path(root, stage)
        lesson = Lesson.read(path)
        with contextlib.redirect_stdout(io.StringIO()):
            show_stage(root, str(stage.number), reset=False, as_json=True)
        tree = root / ".stages" / stage.folder
        report(root, path, renew(path, lesson.commands, tree, lesson.tolerance))
        text = path.read_text(encoding="utf-8")
        count = f"The change, +{added[stage.slug]} lines in agent/"
        write(path, re.sub(r"The change, \+\d+ lines in agent/", count, text).encode())
    if not words:
        for path in own_pages(root):
            write(path, relinked(path.read_text(encoding="utf-8"), line).encode())
            shown = console_commands(path.read_text(encoding="utf-8"))
            report(root, path, renew(path, shown, root, PAGE_TOLERANCE))
        for one, changed in measured.renew(root):
            print(f"{one.name}: {'measured anew' if changed else 'same'}")
        page = root / measured.PAGE
        write(page, measured.with_tables(root, page.read_text(encoding="utf-8")).encode())
        update(root)
    return 0


def report(root: Path, path: Path, count: int) -> None:
    print(
        f"{path.relative_to(root)}: {count} outputs renewed"
        if count
        else f"{path.parent.name if path.name == 'lesson.md' else path.name}: same"
    )


def printed(
    command: str, tree: Path, env: dict[str, str] | None = None, both: bool = True
) -> tuple[str, int]:
    """What a command prints, as a terminal shows it, and its exit code.

    Without `both`, its standard output alone.
    """
    done = subprocess.run(
        ["sh", "-c", command],
        cwd=tree,
        env={**(os.environ if env is None else env), "PYTHONUNBUFFERED": "1"},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT if both else subprocess.DEVNULL,
        timeout=300,
        check=False,
    )
    return done.stdout.decode(errors="replace"), done.returncode


def renew(path: Path, shown: list[tuple[str, str]], tree: Path, tolerance: float) -> int:
    """Replace each output that has changed. Returns how many that were."""
    text, count = path.read_text(encoding="utf-8"), 0
    for command, output in shown:
        if not output or command in NOT_RUN or "...\n" in output:
            continue
        if command.startswith(NOT_RENEWED):
            continue
        out, _ = printed(command, tree)
        if not out.strip():
            raise Problem(f"{command} printed nothing.", "Nothing was written.")
        if not differences(output, out, tolerance):
            continue
        alone, _ = printed(command, tree, both=False)
        if alone.strip() and not differences(output, alone, tolerance):
            continue
        starts = {line.split()[0] for line in output.splitlines() if line.strip()}
        of_both = {line.split()[0] for line in out.splitlines() if line.strip()}
        of_one = {line.split()[0] for line in alone.splitlines() if line.strip()}
        if alone.strip() and not starts & (of_both - of_one):
            out = alone  # the page shows none of what goes to standard error
        old = f"$ {command}\n{output}"
        text = text.replace(
            old, f"$ {command}\n{out.rstrip()}\n" + ("\n" if output.endswith("\n\n") else "")
        )
        count += 1
    write(path, text.encode())
    return count
