"""Rebuilding a stage: start, check, prove, hint, solution, and all the ways to be wrong."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from workshop import env
from workshop.errors import Problem
from workshop.examine import Check, failure
from workshop.lesson import Lesson
from workshop.line import Line, Stage, ensure_built, read_line
from workshop.progress import read_progress, set_progress
from workshop.repo import open_repo
from workshop.show import lesson_path
from workshop.suite import lay_out, run_tests
from workshop.tests.course import HERE, Course, add_line, find_just, git

Files = dict[str, str]
SHORT = {"TINY_TEST_SCALE": "0.1"}  # of 20 seconds a test
SETTINGS = """[project]
name = "course"
version = "1"
[tool.pytest.ini_options]
testpaths = ["tests"]
pythonpath = ["."]
"""
NEED = '''"""Tests."""
import importlib
import subprocess
import sys
import pytest


def need(module, name):
    try:
        return getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError):
        pytest.fail(f"Contract: {module} has no {name} yet")

'''
TEST_COUNT = f'''{NEED}
def test_words_are_counted():
    """Task 1: words are what stands between blanks."""
    got = need("agent.count", "count")("a b  c")
    assert got == 3, f"given 'a b  c': expected 3, came back {{got!r}}"


def test_no_words_are_none():
    """Contract: `count` of nothing is 0."""
    got = need("agent.count", "count")("")
    assert got == 0, f"given '': expected 0, came back {{got!r}}"
'''
TEST_SHOUT = f'''{NEED}
def test_a_shout_is_in_capitals():
    """Task 1: `shout` makes capitals."""
    got = need("agent.shout", "shout")("hi")
    assert got == "HI", f"given 'hi': expected 'HI', came back {{got!r}}"


def test_the_command_prints_the_shout():
    """Task 2: `python -m agent TEXT` prints it."""
    done = subprocess.run(
        [sys.executable, "-m", "agent", "hi"], capture_output=True, encoding="utf-8"
    )
    assert done.stdout == "HI\\n", f"expected 'HI', got {{done.stdout!r}}: {{done.stderr}}"


def test_nothing_shouted_is_nothing():
    """Contract: `shout` of nothing is nothing."""
    got = need("agent.shout", "shout")("")
    assert got == "", f"given '': expected '', came back {{got!r}}"
'''
TEST_GREET = f'''{NEED}
def test_a_greeting_names_its_guest():
    """Task 1: `greet` says hello."""
    got = need("agent.greet", "greet")("Ada")
    assert got == "HELLO ADA", f"given 'Ada': expected 'HELLO ADA', came back {{got!r}}"
'''
COUNT = "def count(text: str) -> int:\n    return len(text.split())\n"
SHOUT = "def shout(text: str) -> str:\n    return text.upper()\n"
GREET = (
    "from agent.shout import shout\n\n\n"
    'def greet(name: str) -> str:\n    return shout(f"hello {name}")\n'
)
MAIN = "import sys\n\nfrom agent.shout import shout\n\nprint(shout(sys.argv[1]))\n"
BASE: Files = {
    ".gitattributes": "* text=auto eol=lf\n*.patch -text\n",
    ".gitignore": "__pycache__/\n.env\nnotes/\n",
    ".env.example": "# TINY_BASE_URL=http://127.0.0.1:1/v1\n",
    "pyproject.toml": SETTINGS,
    "agent/__init__.py": "",
    "registry/words.txt": "one two\n",
}
STEPS: dict[str, Files] = {
    "count": {"agent/count.py": COUNT, "tests/test_count.py": TEST_COUNT},
    "shout": {
        "agent/shout.py": SHOUT,
        "agent/__main__.py": MAIN,
        "tests/test_shout.py": TEST_SHOUT,
    },
    "greet": {"agent/greet.py": GREET, "tests/test_greet.py": TEST_GREET},
}
GIVEN = {"count": "given: [registry, pyproject.toml, .gitattributes, .gitignore]\n"}
PAGE = """---
title: The {slug}
chapter: 1
concept: One can {slug} with one function.
touches: [agent/{slug}.py]
proof: python -m agent hello
{given}---

A {slug} works.

## Why

Because.

## Task

1. Write `{slug}`.

## Contract

```python
def {slug}(text): ...
```

## Hints

<details><summary>Where does {slug} begin?</summary>

At the start.

</details>

<details><summary>Is there more?</summary>

A second hint.

</details>

## Prove it

```console
$ just with python -m agent hello
HELLO
```

## Solution
"""


def write_line(root: Path, scratch: Path, slugs: list[str], edition: int) -> None:
    shutil.rmtree(root / "stages")
    stages, files = [], dict(BASE)
    for slug in slugs:
        files = files | STEPS[slug]
        stages.append((slug, files))
    line = add_line(root, stages, edition, scratch)
    for stage in line.stages:
        page = PAGE.format(slug=stage.slug, given=GIVEN.get(stage.slug, ""))
        (root / "stages" / stage.folder / "lesson.md").write_text(page, encoding="utf-8")


@pytest.fixture(scope="module")
def ladder(template: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A course of three small stages with tests, to be copied."""
    base = tmp_path_factory.mktemp("ladder")
    root = base / "course"
    shutil.copytree(template, root, symlinks=True)
    for name in ("agent", "scripts", "tests", "registry"):
        shutil.rmtree(root / name)
    write_line(root, base, ["count", "shout", "greet"], 1)
    lock = env.TEST_LOCK
    env.marker(root, lock).write_text(env.digest(root, lock), encoding="utf-8")
    git(root, "add", "--all")
    git(root, "commit", "--quiet", "-m", "A ladder")
    yield root
    shutil.rmtree(base)


@pytest.fixture
def course(ladder: Path, tmp_path: Path) -> Course:
    (tmp_path / "home").mkdir()
    shutil.copytree(ladder, tmp_path / "course", symlinks=True)
    return Course(tmp_path / "course", tmp_path / "home")


def begin(course: Course, number: int, **files: str) -> Path:
    """A stage that is started, with these modules of `agent` written."""
    done = course("start", str(number))
    assert done.returncode == 0, done.stderr
    (folder,) = (course.root / "work").glob(f"{number:02d}-*")
    for name, text in files.items():
        (folder / "agent" / f"{name}.py").write_text(text, encoding="utf-8")
    return folder


def everything(folder: Path) -> dict[str, bytes]:
    """What stands in a work folder, git's own file aside."""
    paths = [path for path in sorted(folder.rglob("*")) if path.is_file() and path.name != ".git"]
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in paths}


# start


def test_a_stage_starts_from_the_one_before_with_its_tests_laid_in(course: Course) -> None:
    done = course("start", "2")
    folder = course.root / "work" / "02-shout"
    assert (folder / "agent" / "count.py").read_text() == COUNT
    assert not (folder / "agent" / "shout.py").exists()
    assert (folder / "tests" / "test_shout.py").read_text() == TEST_SHOUT
    assert git(folder, "symbolic-ref", "--short", "HEAD") == "work/02-shout"
    assert git(folder, "rev-parse", "HEAD^") == course.line.stages[0].commit
    assert git(folder, "status", "--porcelain") == ""
    assert git(course.root, "status", "--porcelain") == ""
    for part in ("Write `shout`.", "def shout(text)", "cd work/02-shout", "just check"):
        assert part in done.stdout


@pytest.mark.parametrize("words", [("start", "2"), ("stage", "2")])
def test_the_way_to_a_tree_and_then_to_its_lesson_works_as_it_is_typed(
    course: Course, words: tuple[str, ...]
) -> None:
    here = course.root / "an open folder"
    here.mkdir()
    rows: dict[str, str] = {}
    for row in course(*words, cwd=here).stdout.splitlines():
        for name in ("go there", "read it"):
            if row.strip().startswith(name):
                rows[name] = row.strip().removeprefix(name).strip()
    assert list(rows) == ["go there", "read it"]
    typed = f"{rows['go there']} && cat {rows['read it']} && pwd"
    done = course.call(["sh", "-c", typed], here, "", {})
    assert done.returncode == 0, done.stderr
    assert "title: The shout" in done.stdout
    assert done.stdout.rstrip().endswith("/02-shout")


def test_the_first_stage_starts_empty_with_what_its_lesson_gives(course: Course) -> None:
    folder = begin(course, 1)
    assert set(everything(folder)) == {
        ".gitattributes", ".gitignore", "agent/__init__.py", "pyproject.toml",
        "registry/words.txt", "tests/test_count.py",
    }  # fmt: skip


def test_started_again_it_says_where_it_is_and_changes_nothing(course: Course) -> None:
    folder = begin(course, 2, shout="half done\n")
    before = everything(folder)
    done = course("start", "2")
    assert done.returncode == 0
    assert "work/02-shout" in done.stdout
    assert "Nothing in it was changed" in done.stdout
    assert everything(folder) == before


def test_a_work_folder_that_was_deleted_comes_back_with_its_commits(course: Course) -> None:
    folder = begin(course, 2, shout=SHOUT)
    git(folder, "add", "--all")
    git(folder, "commit", "--quiet", "-m", "mine")
    shutil.rmtree(folder)
    assert course("start", "2").returncode == 0
    assert (folder / "agent" / "shout.py").read_text() == SHOUT


def test_again_saves_all_that_was_there_and_starts_over(course: Course) -> None:
    folder = begin(course, 2, shout="committed\n")
    git(folder, "add", "--all")
    git(folder, "commit", "--quiet", "-m", "mine")
    (folder / "agent" / "shout.py").write_text("changed\n")
    (folder / "untracked.txt").write_text("new\n")
    (folder / "notes").mkdir()
    (folder / "notes" / "ignored.txt").write_text("kept\n")
    done = course("start", "2", "--again")
    assert done.returncode == 0, done.stderr
    branch = git(course.root, "branch", "--list", "work-saved/*", "--format=%(refname:short)")
    assert branch.startswith("work-saved/02-shout-")
    assert branch in done.stdout
    for name, text in (
        ("agent/shout.py", "changed"),
        ("untracked.txt", "new"),
        ("notes/ignored.txt", "kept"),
    ):
        assert git(course.root, "show", f"{branch}:{name}") == text
    assert git(course.root, "show", f"{branch}^:agent/shout.py") == "committed"
    assert not (folder / "agent" / "shout.py").exists()
    assert not (folder / "untracked.txt").exists()
    assert git(folder, "rev-parse", "HEAD^") == course.line.stages[0].commit


def test_again_takes_the_done_mark_back(course: Course) -> None:
    begin(course, 1, count=COUNT)
    assert course("check", "1").returncode == 0
    course("hint", "1")
    assert course("start", "1").returncode == 0
    assert read_progress(course.root)["count"] == {"done": True, "hints": 1}
    done = course("start", "1", "--again")
    assert "It counts as done again when its check passes." in done.stdout
    assert read_progress(course.root)["count"] == {"done": False, "hints": 1}
    assert not any(" done" in row for row in course("list").stdout.splitlines())


def test_T04_list_shows_what_lies_in_work_too(course: Course) -> None:
    begin(course, 1)
    begin(course, 2)
    course("stage", "2")
    course("stage", "3")
    rows = [row.split(None, 1)[1] for row in course("list").stdout.splitlines() if "  0" in row]
    assert [row.partition("  in ")[2] for row in rows] == [
        "work", ".stages and work", ".stages"
    ]  # fmt: skip
    stages = json.loads(course("list", "--json").stdout)["stages"]
    assert [one["in_work"] for one in stages] == [True, True, False]
    assert [one["in_stages"] for one in stages] == [False, True, True]


def test_from_mine_goes_on_from_the_last_finished_stage_uncommitted_work_included(
    course: Course,
) -> None:
    mine = "def count(text):\n    return sum(1 for _ in text.split())\n"
    first = begin(course, 1, count=mine)
    assert course("check", "1").returncode == 0
    done = course("start", "2", "--from", "mine")
    assert done.returncode == 0, done.stderr
    folder = course.root / "work" / "02-shout"
    assert (folder / "agent" / "count.py").read_text() == mine
    assert (folder / "tests" / "test_shout.py").exists()
    assert git(first, "status", "--porcelain") == ""
    assert git(folder, "merge-base", "work/01-count", "HEAD") == git(first, "rev-parse", "HEAD")


def test_from_mine_without_a_finished_stage_is_refused_and_makes_nothing(course: Course) -> None:
    begin(course, 1)
    done = course("start", "2", "--from", "mine")
    assert done.returncode == 2
    assert "just start 2" in done.stderr
    assert not (course.root / "work" / "02-shout").exists()


def test_a_folder_of_the_users_own_in_the_way_is_left_alone(course: Course) -> None:
    folder = course.root / "work" / "02-shout"
    folder.mkdir(parents=True)
    (folder / "diary.txt").write_text("dear diary\n")
    for words in (["start", "2"], ["start", "2", "--again"]):
        done = course(*words)
        assert done.returncode == 1
        assert "Move it away" in done.stderr
        assert (folder / "diary.txt").read_text() == "dear diary\n"


def test_a_branch_called_work_is_named_as_what_is_in_the_way(course: Course) -> None:
    git(course.root, "branch", "work")
    done = course("start", "2")
    assert done.returncode == 1
    assert "git branch -m" in done.stderr


def test_clean_stages_leaves_the_work_folders(course: Course) -> None:
    folder = begin(course, 2, shout=SHOUT)
    course("stage", "1")
    before = everything(folder)
    assert course("clean-stages").returncode == 0
    assert everything(folder) == before
    assert "work/02-shout" in git(course.root, "branch", "--list", "work/*")


def test_a_zip_download_can_be_worked_through(course: Course) -> None:
    shutil.rmtree(course.root / ".git")
    folder = begin(course, 1, count=COUNT)
    assert course("check", cwd=folder).returncode == 0
    done = course("start", "2", "--from", "mine")
    assert done.returncode == 0, done.stderr
    done = course("start", "2", "--again")
    assert done.returncode == 0, done.stderr


# check: success


def test_a_right_stage_passes_and_is_marked(course: Course) -> None:
    folder = begin(course, 2, shout=SHOUT, __main__=MAIN)
    before = everything(folder)
    done = course("check", cwd=folder / "agent")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "3 tests of this stage and 2 of earlier stages" in done.stdout
    assert "One can shout with one function." in done.stdout
    assert "just solution 2" in done.stdout
    assert "  next        just start 3\n  from yours  just start 3 --from mine\n" in done.stdout
    assert everything(folder) == before
    assert read_progress(course.root)["shout"]["done"] is True
    (row,) = (row for row in course("list").stdout.splitlines() if " shout " in row)
    assert " done" in row


def test_the_number_works_from_anywhere(course: Course) -> None:
    begin(course, 1, count=COUNT)
    assert course("check", "count", cwd=course.home).returncode == 0


@pytest.mark.parametrize("before", [None, "[]", '{"tests/test_count.py": "long"}', "\0", "{}"])
def test_a_check_keeps_how_long_each_file_took(course: Course, before: str | None) -> None:
    kept = course.root / ".tiny" / "check-seconds.json"
    kept.parent.mkdir(exist_ok=True)
    if before is not None:
        kept.write_text(before)
    begin(course, 2, shout=SHOUT, __main__=MAIN)
    assert course("check", "2").returncode == 0
    seconds = json.loads(kept.read_text())
    assert set(seconds) == {"tests/test_count.py", "tests/test_shout.py"}
    assert all(0 < spent < 60 for spent in seconds.values()), seconds


def test_latest_only_runs_the_stages_own_tests_and_marks_nothing(course: Course) -> None:
    begin(course, 2, shout=SHOUT, __main__=MAIN, count="def count(text):\n    return 7\n")
    done = course("check", "2", "--latest-only")
    assert done.returncode == 0, done.stdout
    assert "3 tests of this stage." in done.stdout
    assert read_progress(course.root) == {}


def test_T44_a_regression_of_an_earlier_stage_fails_and_is_named(course: Course) -> None:
    begin(course, 2, shout=SHOUT, __main__=MAIN, count="def count(text):\n    return 3\n")
    done = course("check", "2")
    assert done.returncode == 1
    assert "Contract: `count` of nothing is 0. (stage 1, count)" in done.stdout
    assert "All tests of this stage pass; 1 of earlier stages fails." in done.stdout


def test_T44_nothing_of_a_later_stage_is_asked_for(course: Course) -> None:
    begin(course, 1, count=COUNT)
    done = course("check", "1")
    assert done.returncode == 0, done.stdout
    assert "2 tests of this stage." in done.stdout


# check: whose code, whose tests


def outer_agent(folder: Path, count: str) -> Path:
    (folder / "agent").mkdir(parents=True)
    (folder / "agent" / "__init__.py").touch()
    (folder / "agent" / "count.py").write_text(count)
    return folder


def hostile(course: Course, outer: Path) -> dict[str, str]:
    """The outer `agent` on the path, in an environment that is active, and installed in ours."""
    (packages,) = (course.root / ".venv").glob("lib/python*/site-packages")
    (packages / "editable.pth").write_text(f"{outer}\n")
    return {"PYTHONPATH": str(outer), "VIRTUAL_ENV": str(outer)}


def test_T41_an_outer_agent_that_is_right_does_not_help(course: Course, tmp_path: Path) -> None:
    more = hostile(course, outer_agent(tmp_path / "outer", COUNT))
    folder = begin(course, 1)
    shutil.rmtree(folder / "agent")
    done = course("check", cwd=folder, env=more)
    assert done.returncode == 1
    assert "agent.count has no count yet" in done.stdout


def test_T41_an_outer_agent_that_is_wrong_does_no_harm(course: Course, tmp_path: Path) -> None:
    more = hostile(course, outer_agent(tmp_path / "outer", "def count(text): return 7\n"))
    folder = begin(course, 1, count=COUNT)
    (folder / "agent" / "__init__.py").unlink()
    done = course("check", cwd=folder, env=more)
    assert done.returncode == 0, done.stdout + done.stderr


def test_T41_an_agent_that_is_a_link_to_another_is_refused(course: Course, tmp_path: Path) -> None:
    outer = outer_agent(tmp_path / "outer", COUNT)
    folder = begin(course, 1)
    shutil.rmtree(folder / "agent")
    (folder / "agent").symlink_to(outer / "agent")
    done = course("check", cwd=folder)
    assert done.returncode == 1
    assert "another agent than yours" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    "weaken",
    [
        pytest.param(lambda folder: (folder / "tests/test_count.py").write_text(""), id="emptied"),
        pytest.param(lambda folder: (folder / "tests/test_count.py").unlink(), id="removed"),
    ],
)
def test_T46_an_edited_test_is_named_and_the_lines_is_run(
    course: Course, weaken: Callable[[Path], None]
) -> None:
    folder = begin(course, 1, count="def count(text):\n    return 7\n")
    weaken(folder)
    done = course("check", cwd=folder)
    assert done.returncode == 1
    assert "note: tests/test_count.py" in done.stdout
    assert "expected:  3" in done.stdout


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("conftest.py", "collect_ignore_glob = ['tests/*']\n"),
        ("tests/conftest.py", "collect_ignore_glob = ['*']\n"),
        ("pytest.ini", "[pytest]\naddopts = --collect-only\n"),
        ("pyproject.toml", "[tool.pytest.ini_options]\naddopts = '--collect-only'\n"),
    ],
)
def test_T46_settings_in_the_work_folder_do_not_bend_the_tests(
    course: Course, name: str, text: str
) -> None:
    folder = begin(course, 1, count="def count(text):\n    return 7\n")
    (folder / name).write_text(text)
    done = course("check", cwd=folder)
    assert done.returncode == 1
    assert "expected:  3" in done.stdout


def test_T46_other_line_ends_are_no_edit(course: Course) -> None:
    folder = begin(course, 1, count=COUNT)
    path = folder / "tests" / "test_count.py"
    path.write_bytes(path.read_bytes().replace(b"\n", b"\r\n"))
    assert "note:" not in course("check", cwd=folder).stdout


def test_a_given_file_that_was_changed_is_named(course: Course) -> None:
    folder = begin(course, 1, count=COUNT)
    (folder / "registry" / "words.txt").write_text("three\n")
    done = course("check", cwd=folder)
    assert "registry/words.txt, which the lesson gives, is edited" in done.stdout


# check: failures

PRINTS = "import sys\n\nsys.stdout.buffer.write(b'\\xff\\xfe')\n"
ENDLESS = "import sys\n\nwhile True:\n    sys.stdout.write('x' * 100_000)\n"
STUBBORN = """import time

def shout(text):
    while True:
        try:
            time.sleep(60)
        except BaseException:
            pass
"""
WRONG = {
    "wrong answer": (
        {"shout": "def shout(text):\n    return text\n", "__main__": MAIN},
        ["Task 1: `shout` makes capitals.", "a shout is in capitals", "given:     'hi'",
         "expected:  'HI'", "came back: 'hi'", "2 of 3 tests of this stage fail."],
    ),
    "no answer": (
        {"shout": "def shout(text):\n    pass\n", "__main__": MAIN},
        ["Task 1", "came back: None", "3 of 3 tests of this stage fail."],
    ),
    "nothing written": (
        {},
        ["Task 1", "Contract: agent.shout has no shout yet"],
    ),
    "empty output": (
        {"shout": SHOUT, "__main__": ""},
        ["Task 2", "expected:  'HI'", "came back: ''",
         "1 of 3 tests of this stage fails."],
    ),
    "crash": (
        {"shout": "def shout(text):\n    return 1 / 0\n", "__main__": MAIN},
        ["Task 1", "in your code: work/02-shout/agent/shout.py:2  return 1 / 0",
         "ZeroDivisionError: division by zero"],
    ),
    "crash of the command": (
        {"shout": SHOUT, "__main__": "print({}['key'])\n"},
        ["Task 2", "it crashed in agent/__main__.py:1", "KeyError: 'key'"],
    ),
    "syntax error": (
        {"shout": "def shout(text:\n    return text\n", "__main__": MAIN},
        ["agent/shout.py, line 1: SyntaxError", "def shout(text:"],
    ),
    "no text": (
        {"shout": "\0", "__main__": MAIN},
        ["agent/shout.py", "null bytes"],
    ),
    "import error": (
        {"shout": f"import no_such_package\n{SHOUT}", "__main__": MAIN},
        ["work/02-shout/agent/shout.py:1  import no_such_package",
         "ModuleNotFoundError: No module named 'no_such_package'"],
    ),
    "hang": (
        {"shout": "def shout(text):\n    while True:\n        pass\n", "__main__": MAIN},
        ["Task 1", "a shout is in capitals", "did not come to an end within 2 seconds",
         "agent/shout.py:", "not run"],
    ),
    "hang that catches all": (
        {"shout": STUBBORN, "__main__": MAIN},
        ["Task 1", "a shout is in capitals", "did not come to an end", "not run"],
    ),
    "hang of the command": (
        {"shout": SHOUT, "__main__": "import time\n\ntime.sleep(60)\n"},
        ["Task 2", "the command prints the shout", "did not come to an end"],
    ),
    "end of the process": (
        {"shout": "import os\n\ndef shout(text):\n    os._exit(0)\n", "__main__": MAIN},
        ["Task 1", "a shout is in capitals", "ended the whole process, exit code 0"],
    ),
    "interrupt": (
        {"shout": "def shout(text):\n    raise KeyboardInterrupt\n", "__main__": MAIN},
        ["Task 1", "a shout is in capitals", "KeyboardInterrupt"],
    ),
    "death of the process": (
        {"shout": "import os\n\ndef shout(text):\n    os.kill(os.getpid(), 11)\n"},
        ["Task 1", "crashed the whole process: signal 11"],
    ),
    "sys.exit": (
        {"shout": "import sys\n\ndef shout(text):\n    sys.exit(3)\n", "__main__": MAIN},
        ["Task 1", "sys.exit(3)"],
    ),
    "endless output": (
        {"shout": f"def shout(text):\n    {ENDLESS[12:].replace(chr(10), chr(10) + '    ')}\n"
                  .replace("    while", "    import sys\n    while", 1)},
        ["Task 1", "64 MB"],
    ),
    "endless output of the command": (
        {"shout": SHOUT, "__main__": ENDLESS},
        ["Task 2", "the command prints the shout"],
    ),
    "endless data": (
        {"shout": "def shout(text):\n    return [0] * 10**9\n", "__main__": MAIN},
        ["Task 1", "more than 2 GB", "agent/shout.py:2", "not run"],
    ),
    "a long answer": (
        {"shout": "def shout(text):\n    return 'x' * 10_000_000\n", "__main__": MAIN},
        ["Task 1", "came back: 'xxx"],
    ),
    "not UTF-8": (
        {"shout": SHOUT, "__main__": PRINTS},
        ["Task 2", "not UTF-8", "0xff"],
    ),
    "half a character": (
        {"shout": "def shout(text):\n    return '\\udcff\\x1b[2J'\n", "__main__": MAIN},
        ["Task 1", "came back: '\\udcff\\x1b[2J'"],
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", WRONG)
def test_T47_what_is_wrong_is_said_in_the_lessons_terms(course: Course, case: str) -> None:
    files, parts = WRONG[case]
    folder = begin(course, 2, **files)
    before = everything(folder)
    done = course("check", "2", env=SHORT)
    assert done.returncode == 1, done.stdout + done.stderr
    for part in parts:
        assert part in done.stdout, f"no {part!r} in:\n{done.stdout}{done.stderr}"
    assert "Traceback" not in done.stdout + done.stderr
    assert "tiny-check-" not in done.stdout, "the copy's path is nothing to the learner"
    assert len(done.stdout) < 5000
    assert everything(folder) == before
    assert read_progress(course.root) == {}


def test_T47_verbose_shows_every_failure(course: Course) -> None:
    begin(course, 2, shout="def shout(text):\n    return text\n", __main__=MAIN)
    done = course("check", "2", "--verbose")
    assert "Task 1" in done.stdout
    assert "Task 2" in done.stdout


def test_an_exception_is_placed_in_the_lessons_own_file(course: Course) -> None:
    shout = "from agent.count import count\n\n\ndef shout(text):\n    return count(None)\n"
    begin(course, 2, shout=shout, __main__=MAIN)
    done = course("check", "2")
    assert "in your code: work/02-shout/agent/shout.py:5  return count(None)\n" in done.stdout
    there = "there: AttributeError: 'NoneType' object has no attribute 'split'"
    assert f"{there} (raised in agent/count.py:2)\n" in done.stdout


def test_an_exception_is_placed_in_agent_where_no_file_of_the_lesson_led_to_it(
    course: Course,
) -> None:
    begin(course, 2, shout=SHOUT, __main__=MAIN, count="def count(text):\n    return 1 / 0\n")
    done = course("check", "2")
    assert "in your code: work/02-shout/agent/count.py:2  return 1 / 0\n" in done.stdout
    assert "there: ZeroDivisionError: division by zero\n" in done.stdout


@pytest.fixture
def looping(tmp_path: Path) -> Check:
    """A tree whose runner asks its client for ever, until the test that listens fails it."""
    stage = Stage(1, "loop", "", "", "")
    for name, text in {
        "pyproject.toml": SETTINGS,
        "agent/__init__.py": "",
        "agent/client.py": "def send(listen):\n    return listen('hi')\n",
        "agent/runner.py": (
            "from agent.client import send\n\n\n"
            "def run(listen):\n    while True:\n        send(listen)\n"
        ),
        "tests/test_loop.py": (
            "import pytest\nfrom agent.runner import run\n\n\n"
            "def test_a_run_ends():\n"
            '    """Task 1: a run ends."""\n'
            "    heard = []\n\n"
            "    def listen(text):\n"
            "        heard.append(text)\n"
            "        if len(heard) > 9:\n"
            "            pytest.fail('expected an end, came 10 requests')\n\n"
            "    run(listen)\n"
        ),
    }.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    return Check(tmp_path, Line(1, (stage,)), stage, tmp_path, {})


@pytest.mark.parametrize(
    ("touches", "place"),
    [
        (["agent/runner.py", "agent/other.py"], "agent/runner.py:6  send(listen)"),
        (["agent/"], "agent/client.py:2  return listen('hi')"),
        (["agent/other.py"], "agent/client.py:2  return listen('hi')"),
    ],
)
def test_what_a_test_raised_inside_the_agent_is_placed_and_not_said_twice(
    looping: Check, monkeypatch: pytest.MonkeyPatch, touches: list[str], place: str
) -> None:
    monkeypatch.chdir(looping.root)
    (one,) = run_tests(looping.folder, touches=touches).failed
    assert failure(looping, one, verbose=False).splitlines() == [
        "Task 1: a run ends.",
        "  test: a run ends",
        "  expected:  an end",
        "  came back: 10 requests",
        f"  in your code: {place}",
    ]


HANG = "def count(text):\n    while True:\n        pass\n"
CAUGHT = """import time

def count(text):
    try:
        time.sleep(60)
    except BaseException:
        return 3
"""


@pytest.mark.parametrize("count", [HANG, CAUGHT, STUBBORN.replace("shout", "count")])
@pytest.mark.parametrize("shout", ["def shout(text):\n    return text\n", SHOUT])
def test_a_hang_in_an_earlier_stages_test_is_named_beside_the_stages_own_failures(
    course: Course, count: str, shout: str
) -> None:
    begin(course, 2, shout=shout, __main__=MAIN, count=count)
    done = course("check", "2", env=SHORT)
    assert done.returncode == 1
    assert "Task 1: words are what stands between blanks. (stage 1, count)" in done.stdout
    assert "it did not come to an end" in done.stdout
    assert "The tests after it were not run." in done.stdout
    assert ("Task 1: `shout` makes capitals." in done.stdout) == (
        shout != SHOUT and count != STUBBORN.replace("shout", "count")
    )


def test_a_check_without_a_stage_says_where_to_go(course: Course) -> None:
    done = course("check")
    assert done.returncode == 2
    assert "work/" in done.stderr


def test_a_check_of_a_stage_that_is_not_started_says_how_to_begin(course: Course) -> None:
    done = course("check", "2")
    assert done.returncode == 2
    assert "just start 2" in done.stderr


# progress


def test_T49_progress_and_work_survive_a_new_stage_in_between(
    course: Course, tmp_path: Path
) -> None:
    folder = begin(course, 1, count=COUNT)
    assert course("check", "1").returncode == 0
    write_line(course.root, tmp_path / "more", ["shout", "count", "greet"], 2)
    rows = course("list").stdout.splitlines()
    assert [row.split()[:2] for row in rows if " done" in row] == [["02", "count"]]
    done = course("check", cwd=folder, env=SHORT)
    assert "Stage 2, count" in done.stdout
    done = course("start", "count")
    assert "work/01-count" in done.stdout
    assert not (course.root / "work" / "02-count").exists()


def test_two_who_save_progress_at_once_lose_nothing(tmp_path: Path) -> None:
    script = (
        "import sys; from pathlib import Path; from workshop.progress import set_progress\n"
        "for i in range(40): set_progress(Path(sys.argv[1]), f'{sys.argv[2]}-{i}', done=True)\n"
    )
    words = [sys.executable, "-c", script, str(tmp_path)]
    running = [subprocess.Popen([*words, name], cwd=HERE) for name in ("a", "b")]
    assert [one.wait(60) for one in running] == [0, 0]
    assert len(read_progress(tmp_path)) == 80


def test_progress_that_cannot_be_read_is_kept_aside(tmp_path: Path) -> None:
    (tmp_path / ".tiny").mkdir()
    (tmp_path / ".tiny" / "progress.json").write_text("{half")
    set_progress(tmp_path, "count", done=True)
    assert read_progress(tmp_path) == {"count": {"done": True}}
    (aside,) = (tmp_path / ".tiny").glob("progress-unreadable-*")
    assert aside.read_text() == "{half"


# prove, hint, solution


def test_prove_agrees_where_the_command_prints_what_the_lesson_shows(course: Course) -> None:
    folder = begin(course, 2, shout=SHOUT, __main__=MAIN)
    done = course("prove", cwd=folder)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("HELLO") == 2
    assert "They agree." in done.stdout


def test_prove_marks_what_differs(course: Course) -> None:
    begin(course, 2, shout="def shout(text):\n    return text\n", __main__=MAIN)
    done = course("prove", "2")
    assert done.returncode == 1
    assert "\n- HELLO\n" in done.stdout
    assert "\n+ hello\n" in done.stdout


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ([], ""),
        (["just list"], "1 of 2 commands; the other:\n  just list\n"),
        (
            ["just list", "just with ls"],
            "1 of 3 commands; the others:\n  just list\n  just with ls\n",
        ),
    ],
)
@pytest.mark.parametrize("shout", [SHOUT, "def shout(text):\n    return text\n"])
def test_prove_names_the_commands_that_it_does_not_run(
    course: Course, more: list[str], said: str, shout: str
) -> None:
    begin(course, 2, shout=shout, __main__=MAIN)
    (page,) = (course.root / "stages").glob("02-*/lesson.md")
    shown = "".join(f"```console\n$ {one}\nout\n```\n\n" for one in more)
    elsewhere = "## Solution\n\n```console\n$ just diff 2\n```\n"
    page.write_text(page.read_text().replace("## Solution\n", shown + elsewhere))
    done = course("prove", "2")
    assert done.returncode == (0 if shout == SHOUT else 1)
    assert done.stdout.endswith(said)
    assert ("commands" in done.stdout) == bool(more)
    assert ("\n1 line differs" in done.stdout) == (shout != SHOUT)


def test_prove_holds_the_exit_code_to_the_lessons(course: Course) -> None:
    folder = begin(course, 2, shout=SHOUT, __main__=MAIN)
    (page,) = (course.root / "stages").glob("02-*/lesson.md")
    page.write_text(page.read_text().replace("touches:", "exit: 3\ntouches:"))
    done = course("prove", cwd=folder)
    assert done.returncode == 1
    assert "ended with exit code 0; the lesson's ends with 3" in done.stdout
    (folder / "agent" / "__main__.py").write_text(f"{MAIN}\nraise SystemExit(3)\n")
    assert course("prove", cwd=folder).returncode == 0


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("import time\n\ntime.sleep(60)\n", "was stopped after 2.4 seconds"),
        (ENDLESS, "more than 1 MB"),
        (PRINTS, "+ \ufffd\ufffd"),
    ],
)
def test_T47_prove_survives_what_it_runs(course: Course, text: str, part: str) -> None:
    begin(course, 2, __main__=text)
    done = course("prove", "2", env={"TINY_TEST_SCALE": "0.02"})
    assert done.returncode == 1
    assert part in done.stdout, done.stdout[-2000:]
    assert len(done.stdout) < 50_000


def test_hints_come_one_at_a_time_and_then_the_solution_is_named(course: Course) -> None:
    said = [course("hint", "2").stdout for _ in range(4)]
    assert "Hint 1 of 2: Where does shout begin?" in said[0]
    assert "A second hint." not in said[0]
    assert "A second hint." in said[1]
    assert "no more hints" in said[2]
    assert "just solution 2" in said[2]
    assert said[3] == said[2]
    everything_ = course("hint", "2", "--all").stdout
    assert "At the start." in everything_
    assert "A second hint." in everything_


def test_a_solution_is_our_change_where_nothing_is_begun(course: Course) -> None:
    done = course("solution", "2")
    assert done.returncode == 0
    assert "+    return text.upper()" in done.stdout


def test_a_solution_stands_beside_the_learners_and_overwrites_nothing(course: Course) -> None:
    mine = "def shout(text):\n    return text.lower()\n"
    folder = begin(course, 2, shout=mine, helper="HELP = 1\n")
    before, status = everything(folder), git(folder, "status", "--porcelain")
    done = course("solution", cwd=folder)
    assert done.returncode == 0, done.stderr
    assert "-    return text.lower()" in done.stdout
    assert "+    return text.upper()" in done.stdout
    assert "Only yours: agent/helper.py" in done.stdout
    assert everything(folder) == before
    assert git(folder, "status", "--porcelain") == status


@pytest.mark.skipif(find_just() is None, reason="just is not installed")
def test_the_recipes_call_these_commands(course: Course) -> None:
    done = course.just("start", "2")
    assert done.returncode == 0, done.stderr
    done = course.just("check", cwd=course.root / "work" / "02-shout" / "agent", env=SHORT)
    assert done.returncode == 1
    assert done.stdout.startswith("Stage 2, shout: not yet.")
    assert "error:" not in done.stderr, "no line of just's own"
    assert "Hint 1 of 2" in course.just("hint", "2").stdout


# the real stages


@pytest.fixture(scope="module")
def real(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Course]:
    """This very line, as a zip download without a repository, with this environment."""
    base = tmp_path_factory.mktemp("real")
    root = base / "course"
    ignored = shutil.ignore_patterns("tests", "__pycache__")
    for name in ("stages", "workshop"):
        shutil.copytree(HERE / name, root / name, ignore=ignored)
    for name in ("requirements.lock", ".env.example"):
        shutil.copy2(HERE / name, root / name)
    (root / ".env").touch()
    (root / ".venv").symlink_to(HERE / ".venv")
    (base / "home").mkdir()
    yield Course(root, base / "home")
    shutil.rmtree(base)


def real_stage(slug: str) -> Stage:
    try:
        return read_line(HERE).resolve(slug)
    except Problem:
        pytest.skip(f"the line has no {slug}")


@pytest.mark.parametrize("slug", ["card", "client", "concierge"])
def test_a_real_stage_fails_as_it_begins_and_passes_with_our_solution(
    real: Course, slug: str
) -> None:
    number = str(real_stage(slug).number)
    assert real("start", number).returncode == 0
    words = ["check", number, *([] if slug == "card" else ["--latest-only"])]
    before = real(*words)
    assert before.returncode == 1, before.stdout + before.stderr
    assert before.stdout.splitlines()[2].startswith(("Task ", "Contract:")), before.stdout
    repo = open_repo(real.root)
    stage = ensure_built(repo).resolve(number)
    lay_out(repo.git, stage.commit, real.root / "work" / stage.folder)
    after = real(*words)
    assert after.returncode == 0, after.stdout + after.stderr
    assert Lesson.read(lesson_path(HERE, stage)).concept in after.stdout or slug != "card"
