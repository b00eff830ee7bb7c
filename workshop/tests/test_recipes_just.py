"""The justfile: thin, in the syntax of old versions too, and every byte of a request arrives."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import pytest

from workshop.cli import COMMANDS
from workshop.tests.course import HERE, Course, find_just

pytestmark = pytest.mark.skipif(find_just() is None, reason="just is not installed")
RECIPES = (HERE / "justfile").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    "words",
    [
        ["Was kostet der Pro-Tarif?"],
        ["say \"hello\" and 'bye'"],
        ["$HOME ${HOME} $(id) `id` $$"],
        ["{{ justfile_directory() }} {{{{ }}"],
        ["two\nlines\n"],
        ["tab\tand  two blanks "],
        [""],
        ["", "", "x", ""],
        ["back\\slash \\n \\"],
        ["*", "?", "[a-z]", "~", "!", "#", ";", "&", "|", "<", ">", "%s"],
        ["-x", "--json", "--", "-"],
        ["Grüße, 世界 🙂"],
        ["a=b", "A=b"],
    ],
)
def test_T52_every_byte_of_a_request_arrives(shared: Course, words: list[str]) -> None:
    done = shared.just("run", *words)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["words"] == ["route", *words]


def test_T52_with_passes_on_what_it_gets(shared: Course) -> None:
    words = ["", "-n", "$HOME", "a\nb", "--help"]
    script = "import sys; print(ascii(sys.argv[1:]))"
    done = shared.just("with", "python", "-c", script, *words)
    assert done.stdout.strip() == ascii(words)


@pytest.mark.parametrize("name", ["two words", "quo\"te's", "$HOME `id`", "{{x}}", "ü-世", "-dash"])
def test_the_folder_of_the_project_may_have_any_name(
    course: Course, tmp_path: Path, name: str
) -> None:
    course.root.rename(tmp_path / name)
    odd = Course(tmp_path / name, course.home)
    done = odd.just("stage", "2")
    assert done.returncode == 0, done.stderr
    done = odd.just("run", "hello", cwd=odd.tree(2) / "agent")
    assert json.loads(done.stdout)["stage"] == 2
    assert "run" in odd.just().stdout


@pytest.mark.parametrize("where", [".", "agent", ".stages/03-shout", ".stages/03-shout/agent"])
def test_T14_recipes_mean_the_tree_that_you_stand_in(course: Course, where: str) -> None:
    course("stage", "3")
    found = json.loads(course.just("run", "hello", cwd=course.root / where).stdout)
    assert found["stage"] == (3 if "shout" in where else 4)


def test_T14_from_a_folder_outside_the_project_main_is_meant(course: Course) -> None:
    justfile = str(course.root / "justfile")
    done = course.just("-f", justfile, "run", "hello", cwd=Path("/"))
    assert json.loads(done.stdout)["cwd"] == str(course.root)
    assert course.just("-f", justfile, "stage", "2", cwd=Path("/")).returncode == 0
    assert course.tree(2).is_dir()


def test_just_adds_no_line_of_its_own_and_passes_the_code_on(shared: Course) -> None:
    done = shared.just("run", "--exit", "5")
    assert done.returncode == 5
    assert done.stderr == ""
    assert shared.just("stage", "99").returncode == 2


def test_T53_just_alone_lists_every_recipe_with_a_description(shared: Course) -> None:
    done = shared.just()
    assert done.returncode == 0
    rows = [row for row in done.stdout.splitlines() if row.startswith("    ")]
    assert [row.split()[0] for row in rows] == [name for name in COMMANDS if name != "pages"]
    assert all(" # " in row for row in rows), rows


def test_T53_the_justfile_is_formatted(shared: Course) -> None:
    done = shared.just("--fmt", "--check", "--unstable")
    rows = [row for row in done.stdout.splitlines() if re.match(r"[-+](?![-+]{2} )", row)]
    # What 1.36 and older write where newer ones write the short form.
    assert rows in ([], ["-set positional-arguments", "+set positional-arguments := true"])
    assert not rows or done.returncode


def test_T53_the_justfile_uses_nothing_newer_than_1_21() -> None:
    """Every line is of a form that 1.21 knows: it has no parser for what came later."""
    forms = (
        r"",
        r"# .*",
        r"set positional-arguments",
        r"export TINY_(ROOT|JUST) := (justfile_directory|just_executable)\(\)",
        r"\[(no-cd|private|no-exit-message)\]",
        r"[a-z-]+( \*[a-z]+)?:",
        r'    @sh "\$TINY_ROOT/workshop/start" [a-z-]+ "\$@"',
        r'    @"\$TINY_JUST" --justfile "\$TINY_ROOT/justfile" --list --unsorted',
    )
    odd = [row for row in RECIPES.splitlines() if not any(re.fullmatch(f, row) for f in forms)]
    assert odd == []


def test_T55_a_bad_env_file_above_or_beside_the_justfile_stops_no_recipe(
    course: Course, tmp_path: Path
) -> None:
    for folder in (tmp_path, course.root):
        (folder / ".env").write_bytes(b"\xff '\n= =\n")
    for words in (["setup"], ["list"], ["stage", "2"], ["diff", "2"]):
        done = course.just(*words)
        assert done.returncode == 0, done.stderr


def test_a_download_needs_no_repository_for_just(course: Course) -> None:
    shutil.rmtree(course.root / ".git")
    assert course.just("stage", "1").returncode == 0
