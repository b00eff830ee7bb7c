"""Everything that CI runs: the linter, the type checker, and all tests."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from workshop.errors import DONE, FAILED
from workshop.git import Git
from workshop.line import Line, Stage, read_line
from workshop.series import TREE_PATHS
from workshop.trees import tree_of

LINTERS = {
    "ruff check": ("ruff", "check", "--quiet", "."),
    "ruff format": ("ruff", "format", "--quiet", "--check", "."),
    "mypy": ("mypy", "--no-error-summary"),
}
# Two at a time, on a machine of two cores; tests that share a fresh clone stay on one of them.
PYTEST = ("pytest", "-n", "2", "--dist", "loadgroup", "-p", "no:cacheprovider", "--durations", "5")
TESTS = "workshop/tests"
SITE_TESTS = {f"{TESTS}/test_site.py", f"{TESTS}/test_site_browser.py"}
STAGES = "TINY_TEST_STAGES"  # numbers, with commas: the only stages that the gate looks at


def run_all(root: Path, words: list[str]) -> int:
    """Run all checks. Words go to pytest, and then the linters do not run.

    With --changed, only what differs from HEAD is tested. pytest's closing lines come last.
    Returns its exit code, or 1 where a linter failed.
    """
    if tree_of(root, read_line(root), Path.cwd()).folder != root:
        print("This tests the whole project, not the tree that you stand in.", file=sys.stderr)
        print("  For a stage of your own, in work/: just check", file=sys.stderr)
    extra: dict[str, str] = {}
    linting = not words or words == ["--changed"]
    if "--changed" in words:
        found = what_changed(root)
        words = [word for word in words if word != "--changed"] + found.tests
        if found.stages is not None:
            extra[STAGES] = ",".join(map(str, found.stages))
        print(f"changed: {found}", file=sys.stderr)
    tools = LINTERS.items() if linting else ()
    failed = [name for name, tool in tools if not passes(root, name, tool)]
    named = any(not word.startswith("-") for word in words)
    code = call(root, *PYTEST, *words, *([] if named else [TESTS]), **extra)
    if failed:
        print(f"failed before the tests: {', '.join(failed)}", file=sys.stderr)
    return code or (FAILED if failed else DONE)


@dataclass(frozen=True)
class Changed:
    """What a change asks to be tested: test files (none means all), and stages (None means all)."""

    tests: list[str]
    stages: list[int] | None

    def __str__(self) -> str:
        stages = "all stages" if self.stages is None else f"stages {self.stages}"
        return f"{', '.join(self.tests) or 'all tests'}; {stages}"


def what_changed(root: Path) -> Changed:
    """What differs from HEAD, new files included. A changed patch asks for all later stages too.

    A change of the workshop itself, or of anything that is not known here, asks for everything.
    """
    git = Git(root)
    out = git("diff", "--name-only", "--no-renames", "-z", "HEAD")
    out += git("ls-files", "-z", "--others", "--exclude-standard")
    names = sorted({name.decode(errors="replace") for name in out.split(b"\0") if name})
    tests: set[str] = set()
    stages: set[int] = set()
    last = len(read_line(root).stages)
    for name in names:
        stage = re.match(r"stages/(\d\d)-[^/]+/(.+)", name)
        if stage:
            tests |= {f"{TESTS}/test_stages.py", f"{TESTS}/test_lessons.py"}
            number = int(stage[1])
            tests |= SITE_TESTS
            stages |= set(range(number, last + 1) if stage[2] == "change.patch" else [number])
        elif name.startswith(f"{TESTS}/test_"):
            tests.add(name)
        elif name == "README.md" or re.fullmatch(r"docs/[^/]+\.md", name):
            tests |= {f"{TESTS}/test_lessons.py", f"{TESTS}/test_docs.py", *SITE_TESTS}
        elif name.startswith(("docs/", "workshop/site/")):
            tests |= SITE_TESTS
        elif name.split("/")[0] in TREE_PATHS or name == "stages/line.lock":
            tests |= {f"{TESTS}/test_stages.py", f"{TESTS}/test_registry.py"}
            stages.add(last)
        else:
            return Changed([], None)
    return Changed(sorted(tests), sorted(stages) if names else None)


def passes(root: Path, name: str, tool: tuple[str, ...]) -> bool:
    code = call(root, *tool)
    print(f"{name}: {'failed' if code else 'passed'}", file=sys.stderr, flush=True)
    return code == 0


def call(root: Path, *words: str, **extra: str) -> int:
    """A Python tool of the environment, with nothing of the caller's that could mislead it."""
    dropped = ("PYTHONPATH", "PYTHONHOME", "PYTHONSAFEPATH", "VIRTUAL_ENV", "PYTEST_ADDOPTS")
    env = {k: v for k, v in os.environ.items() if k not in dropped and not k.startswith("TINY_")}
    # The tests take all cores already. NumPy's threads would wait for each other by spinning.
    env |= {"PYTHONDONTWRITEBYTECODE": "1", "OPENBLAS_NUM_THREADS": "1", **extra}
    python = str(root / ".venv" / "bin" / "python")
    return subprocess.run([python, "-s", "-m", *words], cwd=root, env=env, check=False).returncode


def chosen_stages(line: Line) -> list[Stage]:
    """The stages that the gate looks at: all, or those that TINY_TEST_STAGES numbers."""
    numbers = os.environ.get(STAGES)
    if numbers is None:
        return list(line.stages)
    return [stage for stage in line.stages if str(stage.number) in numbers.split(",")]
