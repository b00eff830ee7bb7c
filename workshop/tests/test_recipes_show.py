"""`list` and `diff`: what there is, and what changed."""

from __future__ import annotations

import json
import os
import pty
import subprocess
from pathlib import Path

import pytest

from workshop.tests.course import SLUGS, Course, git


def rows(course: Course) -> list[str]:
    done = course("list")
    assert done.returncode == 0, done.stderr
    return [row for row in done.stdout.splitlines() if row.startswith("  ")]


def test_T04_list_shows_the_stages_in_their_order(shared: Course) -> None:
    found = rows(shared)
    assert [row.split()[:2] for row in found] == [[f"0{n}", s] for n, s in enumerate(SLUGS, 1)]
    assert "The shout" in found[2]
    assert "+3" in found[2]  # two of agent/shout.py, and the stage's number
    assert "01 Two problems" in shared("list").stdout


def test_list_counts_the_lines_that_a_stage_adds_to_the_agent(shared: Course) -> None:
    stages = json.loads(shared("list", "--json").stdout)["stages"]
    for stage in stages:
        numstat = git(
            shared.root, "log", "-1", "--root", "--numstat", "--format=", stage["commit"], "agent"
        )
        assert stage["added"] == sum(int(row.split()[0]) for row in numstat.splitlines() if row)


def test_T04_list_marks_what_is_done_and_what_is_laid_out(course: Course) -> None:
    (course.root / ".tiny").mkdir(exist_ok=True)
    (course.root / ".tiny" / "progress.json").write_text('{"echo": {"done": true}, "old": {}}')
    course("stage", "3")
    found = rows(course)
    assert ["done" in row for row in found] == [False, True, False, False]
    assert [".stages" in row for row in found] == [False, False, True, False]


@pytest.mark.parametrize("text", ["", "not json", "[]", '{"echo": 1}', "\xff"])
def test_a_broken_progress_file_does_not_stop_the_list(course: Course, text: str) -> None:
    (course.root / ".tiny").mkdir(exist_ok=True)
    (course.root / ".tiny" / "progress.json").write_bytes(text.encode("latin-1"))
    assert len(rows(course)) == len(SLUGS)


def test_T29_a_tag_that_differs_is_named_and_not_used_or_moved(course: Course) -> None:
    other = git(course.root, "rev-parse", "HEAD")
    git(course.root, "tag", "stage-02-echo", other)
    done = course("list")
    assert ["differs" in row for row in done.stdout.splitlines() if row[:2] == "  "] == [
        False,
        True,
        False,
        False,
    ]
    assert "stage-02-echo" in done.stderr
    assert "just setup --retag" in done.stderr
    assert git(course.root, "rev-parse", "stage-02-echo") == other
    course("stage", "2")
    assert git(course.tree(2), "rev-parse", "HEAD") == course.line.stages[1].commit


def test_T29_retag_moves_the_tag_and_keeps_the_old_one(course: Course) -> None:
    other = git(course.root, "rev-parse", "HEAD")
    git(course.root, "tag", "stage-02-echo", other)
    assert course("setup", "--retag").returncode == 0
    assert git(course.root, "rev-parse", "stage-02-echo") == course.line.stages[1].commit
    kept = git(course.root, "for-each-ref", "--format=%(objectname)", "refs/tiny/old-tags")
    assert kept == other
    assert course("list").stderr == ""


def test_T28_a_clone_without_tags_has_them_after_setup(course: Course, tmp_path: Path) -> None:
    source = f"file://{course.root}"
    git(tmp_path, "clone", "--quiet", "--depth", "1", "--no-tags", source, "clone")
    clone = Course(tmp_path / "clone", course.home)
    (course.root / ".venv").rename(clone.root / ".venv")
    assert clone("setup").returncode == 0
    for stage in clone.line.stages:
        assert git(clone.root, "rev-parse", f"refs/tags/{stage.tag}") == stage.commit


def test_list_as_json(shared: Course) -> None:
    told = json.loads(shared("list", "--json").stdout)
    assert told["edition"] == 1
    assert [stage["slug"] for stage in told["stages"]] == list(SLUGS)
    assert told["stages"][0]["tag_state"] == "ok"


def test_a_lesson_with_a_fault_is_named(course: Course) -> None:
    page = course.root / "stages" / "02-echo" / "lesson.md"
    page.write_text(page.read_text().replace("concept:", "concpet:"))
    done = course("list")
    assert done.returncode == 1
    assert "02-echo/lesson.md" in done.stderr
    assert "concpet" in done.stderr
    assert "Traceback" not in done.stderr


def test_diff_of_one_stage_is_against_the_one_before(shared: Course) -> None:
    done = shared("diff", "2")
    assert done.returncode == 0, done.stderr
    assert "-STAGE = 1\n+STAGE = 2\n" in done.stdout
    assert "shout" not in done.stdout
    assert done.stdout.splitlines()[1:] == shared("diff", "1", "2").stdout.splitlines()[1:]


def test_diff_of_the_first_stage_is_against_nothing(shared: Course) -> None:
    assert "+STAGE = 1\n" in shared("diff", "1").stdout


def test_diff_goes_both_ways_and_takes_names(shared: Course) -> None:
    assert "+STAGE = 4\n" in shared("diff", "stage-02-echo", "last").stdout
    assert "+STAGE = 2\n" in shared("diff", "4", "2").stdout


def test_diff_shows_code_before_tests_before_data(shared: Course) -> None:
    done = shared("diff", "1", "--all")
    names = [row.split(" b/")[1] for row in done.stdout.splitlines() if row[:10] == "diff --git"]
    kinds = [name.split("/")[0] for name in names]
    assert [kind for kind in kinds if kind in ("agent", "scripts", "tests", "registry")] == [
        "agent",
        "scripts",
        "tests",
        "registry",
    ]
    assert kinds[-1] == "registry"


def test_diff_shows_much_data_as_a_count_unless_asked(shared: Course) -> None:
    short = shared("diff", "2").stdout
    assert '{"row": 1}' not in short
    assert "registry/rows.jsonl" in short
    assert "100" in short
    assert '+{"row": 1}' in shared("diff", "2", "--all").stdout
    assert '+{"row": 1}' in shared("diff", "2", "registry/").stdout


def test_diff_of_paths_shows_them_alone_wherever_you_stand(course: Course) -> None:
    course("stage", "2")
    for path in ("tests", "tests/", "tests/test_count.py", "./tests", "tests/*.py"):
        done = course("diff", "2", path, cwd=course.tree(2) / "agent")
        assert done.stdout.count("diff --git") == 1, path
        assert "test_count.py" in done.stdout
    assert course("diff", "1", "3", "--", "agent/shout.py").stdout.count("diff --git") == 1


def test_diff_stat(shared: Course) -> None:
    done = shared("diff", "2", "--stat")
    assert "agent/__main__.py" in done.stdout
    assert "+STAGE" not in done.stdout


@pytest.mark.parametrize("words", [(), ("99",), ("1", "99"), ("1", "nothing"), ("1", "--odd")])
def test_diff_of_what_is_not_there_exits_2(shared: Course, words: tuple[str, ...]) -> None:
    done = shared("diff", *words)
    assert done.returncode == 2
    assert done.stderr.startswith("error: ")
    assert "Traceback" not in done.stderr


def test_T35_settings_of_the_repository_do_not_change_a_diff(course: Course) -> None:
    before = course("diff", "3").stdout
    for name, value in {
        "diff.noprefix": "true",
        "diff.context": "0",
        "diff.external": "false",
        "color.ui": "always",
        "diff.suppressBlankEmpty": "true",
    }.items():
        git(course.root, "config", name, value)
    assert course("diff", "3").stdout == before


def on_a_terminal(course: Course, *words: str, **more: str) -> bytes:
    """What a command writes to a terminal."""
    leader, follower = pty.openpty()
    done = subprocess.run(
        course.start(*words),
        cwd=course.root,
        env=course.environment({"TERM": "dumb", **more}),
        stdin=subprocess.DEVNULL,
        stdout=follower,
        stderr=subprocess.PIPE,
        timeout=60,
        check=False,
    )
    os.close(follower)
    assert done.returncode == 0, done.stderr
    written = b""
    try:
        while chunk := os.read(leader, 65536):
            written += chunk
    except OSError:  # the other end is closed
        pass
    os.close(leader)
    return written


def test_diff_has_colour_on_a_terminal_and_none_with_NO_COLOR(shared: Course) -> None:
    words = ("diff", "3", "agent/__init__.py")
    assert b"\x1b[" in on_a_terminal(shared, *words, GIT_PAGER="cat")
    assert b"\x1b[" not in on_a_terminal(shared, *words, GIT_PAGER="cat", NO_COLOR="1")


def test_diff_uses_the_pager_of_the_users_configuration_on_a_terminal_only(course: Course) -> None:
    (course.home / ".gitconfig").write_text("[core]\n\tpager = sed s/^/paged:/\n")
    words = ("diff", "3", "agent/__init__.py")
    assert b"paged:" in on_a_terminal(course, *words)
    assert "paged:" not in course(*words).stdout


def test_a_reader_that_goes_away_is_no_error(shared: Course) -> None:
    script = f'sh "{shared.root}/workshop/start" diff 4 1 --all | head -n 1'
    done = shared.call(["sh", "-c", script], None, "", {})
    assert done.stderr == ""
    script = f'sh "{shared.root}/workshop/start" list | :'
    assert shared.call(["sh", "-c", script], None, "", {}).stderr == ""
