"""`just prove`: the lesson's command on the learner's code, beside what the lesson shows."""

from __future__ import annotations

import contextlib
import os
import shlex
import shutil
import signal
import subprocess
import tempfile
from pathlib import Path

from workshop.child import environment
from workshop.errors import DONE, FAILED, Problem
from workshop.examine import readable
from workshop.lesson import Lesson, console_commands
from workshop.line import ensure_built
from workshop.outputs import differences
from workshop.rebuild import begun, named_stage
from workshop.repo import open_repo
from workshop.show import lesson_path
from workshop.suite import last_part

SECONDS = 120.0
BYTES = 1024 * 1024


def prove(root: Path, word: str | None) -> int:
    """Run a lesson's proof in the work folder. 0 where it prints what the lesson shows."""
    line = ensure_built(open_repo(root))
    stage = named_stage(root, line, word)
    folder = begun(root, stage)
    lesson = Lesson.read(lesson_path(root, stage))
    proofs = [
        pair for pair in lesson.commands if pair[0].endswith(lesson.proof) and pair[1].strip()
    ]
    if not proofs:
        raise Problem(f"the lesson of stage {stage.number} does not show what its proof prints.")
    command, wanted = proofs[-1]
    print(f"$ {command}", flush=True)
    printed, ended = run(root, folder, command, lesson.exit)
    found = differences(wanted, printed, lesson.tolerance)
    missing, extra = marked(found)
    print("\nThe lesson shows:\n")
    print(part(wanted, missing, "-"))
    print("\nYours prints:\n")
    print(part(printed, extra, "+"))
    if found or ended:
        differ = f"{len(found)} {'line differs' if len(found) == 1 else 'lines differ'}"
        print(f"\n{differ}: - where only the lesson has it, + where only yours.")
        if ended:
            print(ended)
        print(other_commands(lesson, command), end="")
        return FAILED
    share = f"{lesson.tolerance:g}, those above 1 within {100 * lesson.tolerance:g} %"
    within = f" Numbers agree within {share}." if lesson.tolerance else ""
    print(f"\nThey agree.{within}")
    print(other_commands(lesson, command), end="")
    return DONE


def other_commands(lesson: Lesson, command: str) -> str:
    """The commands of the lesson's "Prove it" that were not run, or ""."""
    shown = [one for one, _ in console_commands(lesson.sections.get("Prove it", ""))]
    others = [one for one in shown if one != command]
    if not others:
        return ""
    head = f"\n1 of {len(others) + 1} commands; the other{'s' if len(others) > 1 else ''}:"
    return "\n".join([head, *(f"  {one}" for one in others), ""])


def run(root: Path, folder: Path, command: str, wanted: int = 0) -> tuple[str, str]:
    """What a command prints in a folder, and how it ended, where that is not as it should."""
    scale = float(os.environ.get("TINY_TEST_SCALE") or "1")
    with tempfile.TemporaryDirectory(prefix="tiny-prove-") as scratch:
        just = Path(scratch) / "just"  # this project's recipes, with or without just installed
        start = shlex.quote(str(root / "workshop" / "start"))
        just.write_text(f'#!/bin/sh\nexec sh {start} "$@"\n')
        just.chmod(0o755)
        env = environment(root, {})
        env["PATH"] = os.pathsep.join([scratch, env["PATH"]])
        said = Path(scratch) / "output"
        # The shell's limit counts blocks of 512 or 1,024 bytes. What goes over it ends.
        limited = f"ulimit -f {2 * BYTES // 1024}; {command}"
        ended = ""
        with said.open("wb") as file:
            child = subprocess.Popen(
                [shutil.which("sh") or "/bin/sh", "-c", limited], cwd=folder, env=env,
                stdin=subprocess.DEVNULL, stdout=file, stderr=subprocess.STDOUT,
                start_new_session=True,
            )  # fmt: skip
            try:
                code = child.wait(timeout=SECONDS * scale)
                if code != wanted:
                    ended = f"It ended with exit code {code}; the lesson's ends with {wanted}."
            except subprocess.TimeoutExpired:
                ended = f"It was stopped after {SECONDS * scale:g} seconds."
            finally:
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.killpg(child.pid, signal.SIGKILL)
                child.wait()
        if said.stat().st_size >= BYTES:
            ended = "It printed more than 1 MB."
        return last_part(said).replace(f"{folder}/", ""), ended


def marked(found: list[str]) -> tuple[set[str], set[str]]:
    """The rows of the lesson, and those of the learner, that `differences` names."""
    missing, extra = set(), set()
    for one in found:
        kind, _, text = one.partition(": ")
        shown, _, printed = text.partition("\n  printed: ")
        if kind in ("missing", "shown"):
            missing.add(shown)
        if kind == "not shown":
            extra.add(text)
        elif kind == "shown":
            extra.add(printed)
    return missing, extra


def part(text: str, marks: set[str], sign: str) -> str:
    rows = text.strip("\n").splitlines() or ["(nothing)"]
    most = 80
    lines = [
        f"{sign if ' '.join(row.split()) in marks else ' '} {readable(row)[:300]}"
        for row in rows[:most]
    ]
    return "\n".join(
        [*lines, *([f"  … {len(rows) - most} more lines"] if len(rows) > most else [])]
    )
