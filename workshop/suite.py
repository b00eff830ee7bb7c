"""Runs a tree's own tests on that tree's own `agent`, and says what happened to each."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import IO, Any, Protocol

from workshop.git import Git
from workshop.line import Line, Stage

PLUGIN = Path(__file__).resolve().parent / "plugin"
SECONDS = 120.0


@dataclass(frozen=True)
class Outcome:
    """One test: its id, the point of the lesson that it holds, and how it went."""

    test: str
    point: str
    outcome: str  # passed, failed, skipped
    error: str | None  # the exception's type
    message: str | None
    place: str | None = None  # the line of the tree's own code that it was raised in
    text: str = ""  # that line
    cause: str = ""  # what was raised there
    raised: str = ""  # where, if that is deeper in the tree's own code than `place`
    last: bool = False  # it hung, or took all memory: no test was run after it


@dataclass(frozen=True)
class Cut:
    """A test in which the process ended, its point, and the exit code: None at a limit."""

    test: str
    point: str
    code: int | None


@dataclass(frozen=True)
class Report:
    """What a run gave. `code` is pytest's exit code, None where the time ran out."""

    code: int | None
    outcomes: list[Outcome]
    agent: str | None  # the file of the `agent` that was tested
    output: str
    cuts: list[Cut] = field(default_factory=list)  # one for each process that ended in a test
    seconds: dict[str, float] = field(default_factory=dict)  # that each file of tests took

    @property
    def failed(self) -> list[Outcome]:
        return [one for one in self.outcomes if one.outcome == "failed"]


class Process(Protocol):
    """What a run needs of its process, which is the first of a session of its own."""

    pid: int

    def wait(self, timeout: float | None = None) -> int: ...


class Start(Protocol):
    """Begins a command in a folder, with an environment; what it says goes to a file."""

    def __call__(
        self, command: Sequence[str], folder: Path, env: Mapping[str, str], said: IO[bytes]
    ) -> Process: ...


def start_process(
    command: Sequence[str], folder: Path, env: Mapping[str, str], said: IO[bytes]
) -> Process:
    return subprocess.Popen(
        command, cwd=folder, env=env, stdin=subprocess.DEVNULL, stdout=said,
        stderr=subprocess.STDOUT, start_new_session=True,
    )  # fmt: skip


def point_order(outcome: Outcome) -> int:
    """Where a test's point stands in the lesson: Task 3 is 3, and the contract comes after all."""
    found = re.match(r"Task (\d+)", outcome.point)
    return int(found[1]) if found else 99


def run_tests(
    tree: Path,
    tests: list[str] | None = None,
    *flags: str,
    seconds: float = SECONDS,
    each: float = 0,
    stop: threading.Event | None = None,
    first: bool = False,
    touches: Sequence[str] = (),
    start: Start = start_process,
) -> Report:
    """Run a tree's tests, all or the files named. AssertionError if another `agent` was tested.

    `first` ends the run at the first failure in the order of the lesson's points.

    `each` bounds every test: its seconds, and its files and memory too. After one that took
    longer, no other is run. The environment's TINY_TEST_SCALE multiplies both times. `stop` ends
    the run before its time. A failure is placed in one of the files `touches`, where one led to it.
    """
    scale = float(os.environ.get("TINY_TEST_SCALE") or "1")
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("TINY_", "PYTHON", "PYTEST_"))}
    with tempfile.TemporaryDirectory(prefix="tiny-tests-", ignore_cleanup_errors=True) as scratch:
        report = Path(scratch) / "report.jsonl"
        env = {
            **kept,
            "PYTHONPATH": str(PLUGIN),
            "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
            "TINY_REPORT": str(report),
            "TINY_HOME": str(Path(scratch) / "home"),
            # A core is taken already, and threads of a library would count as memory.
            "OPENBLAS_NUM_THREADS": "1",
        }
        if each:
            env["TINY_TEST_SECONDS"] = str(each * scale)
        if touches:
            env["TINY_TOUCHES"] = json.dumps(list(touches))
        if first:
            env["TINY_IN_ORDER"] = "1"
            flags = (*flags, "--maxfail=1")
        env.pop("VIRTUAL_ENV", None)
        words = ["-q", "-p", "tiny_report", "-p", "no:cacheprovider", "--rootdir", str(tree)]
        words += ["-c", str(tree / "pyproject.toml"), "--basetemp", str(Path(scratch) / "tmp")]
        command = [sys.executable, "-s", "-m", "pytest", *words, *flags, *(tests or ["tests"])]
        said = Path(scratch) / "output"
        limits = Limits(seconds * scale, 3 * each * scale, report, stop or threading.Event())
        code = run_bounded(command, tree, env, said, limits, start)
        output = last_part(said)
        facts = read_facts(report)
    outcomes = [Outcome(**fact) for fact in facts if "test" in fact]
    ended = [fact["agent"] for fact in facts if "agent" in fact]
    agent = ended[-1] if ended else None
    assert agent is None or Path(agent).resolve().is_relative_to(tree.resolve()), (
        f"the tests of {tree} imported {agent}"
    )
    begun = [fact for fact in facts if "start" in fact]
    cuts = []
    if begun:
        last = begun[-1]["start"]
        interrupted = code == 2 and "::" in last and last not in {one.test for one in outcomes}
        if interrupted or not ended:
            cuts.append(Cut(last, begun[-1]["point"], code))
    return Report(code, outcomes, agent, output, cuts, seconds_of(facts))


def seconds_of(facts: list[dict[str, Any]]) -> dict[str, float]:
    """How long each file of tests took, from what began when."""
    seconds: dict[str, float] = {}
    for one, after in pairwise(fact for fact in facts if "at" in fact):
        name = one["start"].split("::")[0] if "start" in one else ""
        seconds[name] = seconds.get(name, 0) + after["at"] - one["at"]
    return {name: spent for name, spent in seconds.items() if name.endswith(".py")}


@dataclass(frozen=True)
class Limits:
    """What ends a run: its time, a report that stays as it is for too long (0: any), a stop."""

    seconds: float
    silence: float
    report: Path
    stop: threading.Event

    def reached(self, begun: float) -> bool:
        if self.stop.is_set() or time.monotonic() - begun > self.seconds:
            return True
        if not self.silence or not self.report.exists():
            return False
        return time.time() - self.report.stat().st_mtime > self.silence


def run_bounded(
    command: list[str],
    folder: Path,
    env: dict[str, str],
    said: Path,
    limits: Limits,
    start: Start,
) -> int | None:
    """Run a command until it ends or a limit is reached. Then None. What it started ends too."""
    with said.open("wb") as file:
        child = start(command, folder, env, file)
        begun = time.monotonic()
        try:
            while not limits.reached(begun):
                with contextlib.suppress(subprocess.TimeoutExpired):
                    return child.wait(timeout=0.3)
            return None
        finally:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(child.pid, signal.SIGKILL)
            child.wait()


def last_part(path: Path, size: int = 64 * 1024) -> str:
    with path.open("rb") as file:
        file.seek(max(0, path.stat().st_size - size))
        return file.read().decode(errors="replace")


def read_facts(report: Path) -> list[dict[str, Any]]:
    """The lines of a report. The last may be cut off in the middle."""
    found = []
    for row in report.read_text(encoding="utf-8").splitlines() if report.exists() else ():
        with contextlib.suppress(ValueError):
            found.append(json.loads(row))
    return found


def own_tests(git: Git, line: Line, stage: Stage) -> list[str]:
    """The test files that a stage adds or changes."""
    before = line.before(stage)
    base = before.commit if before else git("mktree", input=b"").decode().strip()
    out = git("diff", "--name-only", "-z", "--diff-filter=AM", base, stage.commit, "--", "tests")
    names = [name for name in out.decode().split("\0") if name]
    return [name for name in names if name.rpartition("/")[2].startswith("test_")]


def lay_out(git: Git, commit: str, folder: Path, *paths: str) -> None:
    """The files of a commit in a plain folder, without a repository."""
    folder.mkdir(parents=True, exist_ok=True)
    archive = git("archive", "--format=tar", commit, *paths)
    subprocess.run(["tar", "-x", "-C", str(folder)], input=archive, check=True)
