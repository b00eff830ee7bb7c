"""`run` and `with`: the command of the tree that you stand in, in its environment."""

from __future__ import annotations

import json
import os
import pty
import signal
import subprocess
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

import pytest

from workshop.tests.course import Course

NO_ENDPOINT = {"TINY_BASE_URL": "-"}


def told(done: subprocess.CompletedProcess[str]) -> dict[str, Any]:
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def test_run_calls_the_command_that_an_earlier_lesson_names(course: Course) -> None:
    course("stage", "3")
    found = told(course("run", "Was kostet der Tarif?", cwd=course.tree(3)))
    assert found["stage"] == 3
    assert found["words"] == ["route", "Was kostet der Tarif?"]


def test_run_takes_several_words_as_they_are(shared: Course) -> None:
    assert told(shared("run", "two", "words"))["words"] == ["route", "two", "words"]


@pytest.mark.parametrize("where", [".", "registry", "stages/02-echo", "/"])
def test_T14_in_no_stages_tree_run_means_main(shared: Course, where: str) -> None:
    found = told(shared("run", "hello", cwd=shared.root / where))
    assert found["stage"] == 4
    assert found["cwd"] == str(shared.root)


@pytest.mark.parametrize("home", [".stages", "work", ".edit"])
def test_T14_in_a_stages_tree_run_means_that_one(course: Course, home: str) -> None:
    course("stage", "2")
    if home != ".stages":
        (course.root / home).mkdir()
        course.tree(2).rename(course.root / home / "02-echo")
    tree = course.root / home / "02-echo"
    for where in (tree, tree / "agent"):
        found = told(course("run", "hello", cwd=where))
        assert found["stage"] == 2
        assert found["cwd"] == str(tree)


def test_a_tree_of_a_stage_that_is_new_is_a_tree_too(course: Course) -> None:
    course("stage", "2")
    (course.root / ".edit").mkdir()
    course.tree(2).rename(course.root / ".edit" / "02-brand-new")
    found = told(course("run", "hello", cwd=course.root / ".edit" / "02-brand-new"))
    assert found["stage"] == 2


def test_run_where_a_stage_has_no_such_entry_names_what_it_has(course: Course) -> None:
    course("stage", "1")
    done = course("run", "hello", cwd=course.tree(1))
    assert done.returncode == 2
    assert "just with python scripts/count.py" in done.stderr


ASKED = "\n## Prove it\n\n```console\n$ just with python -m agent {}\nout\n```\n"


def add_to_lesson(course: Course, number: int, *commands: str, run: str = "") -> None:
    (page,) = (course.root / "stages").glob(f"{number:02d}-*/lesson.md")
    text = page.read_text() + "".join(ASKED.format(command) for command in commands)
    page.write_text(text.replace("proof:", f"run: {run}\nproof:") if run else text)


def on_a_terminal(course: Course, *words: str) -> subprocess.CompletedProcess[str]:
    """A command whose standard input is a terminal."""
    leader, follower = pty.openpty()
    try:
        return subprocess.run(
            course.start(*words), cwd=course.root, env=course.environment(), stdin=follower,
            capture_output=True, encoding="utf-8", timeout=60, check=False,
        )  # fmt: skip
    finally:
        os.close(leader)
        os.close(follower)


def test_run_without_a_request_shows_the_newest_lessons_example(course: Course) -> None:
    assert 'just run "…"' in on_a_terminal(course, "run").stderr
    add_to_lesson(course, 2, 'route "an old one"')
    add_to_lesson(course, 3, 'route "Was kostet $5?"', 'route "one" "two"', "other 'a b'")
    done = on_a_terminal(course, "run")
    assert done.returncode == 2
    assert done.stderr == "error: run what?\n  For example: just run 'Was kostet $5?'\n"


def test_requests_piped_to_a_command_that_reads_them_stay_possible(shared: Course) -> None:
    assert told(shared("run", input="eins\n"))["words"] == ["route"]


def test_run_without_a_request_is_refused_where_the_command_reads_none(course: Course) -> None:
    add_to_lesson(course, 4, '"What is new?"', run="python -m agent ask")
    for done in (course("run", input="eins\n"), on_a_terminal(course, "run")):
        assert done.returncode == 2
        assert done.stderr == 'error: run what?\n  For example: just run "What is new?"\n'
    assert told(course("run", "hello"))["words"] == ["ask", "hello"]


def test_with_runs_in_the_root_of_the_tree(course: Course) -> None:
    course("stage", "1")
    done = course("with", "python", "scripts/count.py", cwd=course.tree(1) / "agent")
    assert (done.returncode, done.stdout) == (0, "counted\n")


def test_with_python_is_the_environments(course: Course) -> None:
    done = course("with", "python", "-c", "import sys; print(sys.prefix)")
    assert done.stdout.strip() == str(course.root / ".venv")


def test_with_no_command_says_which_there_is(shared: Course) -> None:
    done = shared("with")
    assert done.returncode == 2
    assert "just with python scripts/count.py" in done.stderr


def test_with_a_command_that_is_not_there(shared: Course) -> None:
    done = shared("with", "no-such-command")
    assert done.returncode == 127
    assert "no-such-command" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("code", [0, 1, 2, 3, 5, 77])
def test_the_exit_code_of_the_command_is_passed_on(shared: Course, code: int) -> None:
    assert shared("run", "--exit", str(code)).returncode == code


def test_a_command_that_a_signal_ended_gives_128_and_its_number(shared: Course) -> None:
    assert shared("with", "sh", "-c", "kill -TERM $$").returncode == 128 + signal.SIGTERM


def test_standard_input_reaches_the_command(shared: Course) -> None:
    found = told(shared("run", "--input", input="eins\nzwei ü\n"))
    assert found["input"] == "eins\nzwei ü\n"


def test_T41_no_variable_of_the_users_makes_another_agent_the_one(
    course: Course, tmp_path: Path
) -> None:
    (tmp_path / "decoy" / "agent").mkdir(parents=True)
    (tmp_path / "decoy" / "agent" / "__init__.py").write_text("STAGE = 'decoy'\n")
    course("stage", "2")
    decoy = str(tmp_path / "decoy")
    more = {"PYTHONPATH": decoy, "VIRTUAL_ENV": decoy, "PYTHONHOME": decoy, "PYTHONSAFEPATH": "1"}
    found = told(course("run", "hello", cwd=course.tree(2), env=more))
    assert found["stage"] == 2
    assert found["file"] == str(course.tree(2) / "agent" / "__init__.py")
    assert found["python"] == str(course.root / ".venv")
    assert not set(found["env"]) & set(more)


def test_T41_an_agent_installed_in_the_environment_is_not_the_one(course: Course) -> None:
    (packages,) = (course.root / ".venv").glob("lib/python*/site-packages")
    (packages / "main.pth").write_text(f"{course.root}\n")
    course("stage", "2")
    assert told(course("run", "hello", cwd=course.tree(2)))["stage"] == 2


def test_every_tree_shares_one_home_for_caches(course: Course) -> None:
    course("stage", "2")
    found = told(course("run", "hello", cwd=course.tree(2)))
    assert found["env"]["TINY_HOME"] == str(course.root / ".tiny")
    assert told(course("run", "x", env={"TINY_HOME": "/mine"}))["env"]["TINY_HOME"] == "/mine"


def test_no_practice_endpoint_where_one_is_set(shared: Course) -> None:
    found = told(shared("run", "hello", env={"TINY_BASE_URL": "http://127.0.0.1:9/v1"}))
    assert found["env"]["TINY_BASE_URL"] == "http://127.0.0.1:9/v1"
    assert "TINY_EMBED_MODEL" not in found["env"]


def test_the_env_file_of_the_root_sets_the_endpoint_too(course: Course) -> None:
    (course.root / ".env").write_text("TINY_BASE_URL=http://127.0.0.1:9/v1\n")
    for value in ("-", ""):
        found = told(course("run", "hello", env={"TINY_BASE_URL": value}))
        assert "TINY_BASE_URL" not in found["env"]  # the agent reads the file itself


@pytest.mark.parametrize("value", ["-", ""])
def test_without_one_the_practice_endpoint_answers_while_the_command_runs(
    shared: Course, value: str
) -> None:
    script = "import os, urllib.request as r; b = os.environ['TINY_BASE_URL']; print(b)\n"
    script += "print(r.urlopen(b + '/models').status)"
    done = shared("with", "python", "-c", script, env={"TINY_BASE_URL": value})
    assert done.returncode == 0, done.stderr
    url, status = done.stdout.split()
    assert status == "200"
    with pytest.raises(urllib.error.URLError):
        urllib.request.urlopen(f"{url}/models", timeout=5)


def test_the_practice_endpoints_variables(shared: Course) -> None:
    found = told(shared("run", "hello", env=NO_ENDPOINT))["env"]
    assert found["TINY_EMBED_MODEL"] == "multilingual-e5-small"
    assert (found["TINY_QUERY_PREFIX"], found["TINY_PASSAGE_PREFIX"]) == ("query: ", "passage: ")
    assert found["TINY_PRACTICE_WEB"] == found["TINY_BASE_URL"].removesuffix("/v1")


@pytest.mark.parametrize("value", ["", "Frage: "])
def test_a_prefix_of_the_users_wins_also_an_empty_one(shared: Course, value: str) -> None:
    found = told(shared("run", "hello", env={**NO_ENDPOINT, "TINY_QUERY_PREFIX": value}))["env"]
    assert found["TINY_QUERY_PREFIX"] == value
    assert found["TINY_PASSAGE_PREFIX"] == "passage: "


def test_embeddings_of_the_users_stay_beside_a_practice_chat(shared: Course) -> None:
    mine = {"TINY_EMBED_BASE_URL": "http://127.0.0.1:9/v1", "TINY_EMBED_MODEL": "bge-m3"}
    found = told(shared("run", "hello", env={**NO_ENDPOINT, **mine}))["env"]
    assert found["TINY_EMBED_MODEL"] == "bge-m3"
    assert found["TINY_BASE_URL"].startswith("http://127.0.0.1:")


def test_practice_embeddings_beside_a_chat_model_of_the_users(shared: Course) -> None:
    found = told(shared("run", "hello", env={"TINY_EMBED_BASE_URL": "practice"}))["env"]
    assert found["TINY_BASE_URL"] == "http://127.0.0.1:9/v1"
    assert found["TINY_EMBED_BASE_URL"].startswith("http://127.0.0.1:")
    assert found["TINY_EMBED_BASE_URL"] != found["TINY_BASE_URL"]
    assert found["TINY_PRACTICE_WEB"] == found["TINY_EMBED_BASE_URL"].removesuffix("/v1")


def test_T55_a_bad_env_file_in_a_parent_folder_is_nobodys_business(
    course: Course, tmp_path: Path
) -> None:
    (tmp_path / ".env").write_bytes(b"\xff not a setting\n=\n'")
    for words in (("setup",), ("list",), ("stage", "2"), ("run", "hello")):
        assert course(*words).returncode == 0, words


@pytest.mark.parametrize(
    ("text", "number"),
    [
        (b"TINY_API_KEY=secret-1\nthis is no setting\n", 2),
        (b"# one\n\n\nTINY_API_KEY='secret-1\n", 4),
        (b"TINY_API_KEY\n", 1),
        (b"# one\nTINY_API_KEY=secret-1\xff\n", 2),
    ],
)
def test_T55_only_run_needs_the_env_file_and_it_names_the_bad_line(
    course: Course, text: bytes, number: int
) -> None:
    (course.root / ".env").write_bytes(text)
    for words in (("setup",), ("list",), ("stage", "2"), ("diff", "2")):
        assert course(*words).returncode == 0, words
    done = course("run", "hello")
    assert done.returncode == 2
    assert f".env, line {number}:" in done.stderr
    assert "secret-1" not in done.stderr
    assert "Traceback" not in done.stderr


def is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def sleeper(course: Course, words: list[str]) -> tuple[subprocess.Popen[bytes], dict[str, Any]]:
    """A command that has started and sleeps, in a process group of its own, as in a terminal."""
    child = subprocess.Popen(
        words,
        cwd=course.root,
        env=course.environment(NO_ENDPOINT),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )
    assert child.stdout is not None
    return child, json.loads(child.stdout.readline())


def assert_gone(found: dict[str, Any]) -> None:
    assert not is_alive(found["pid"])
    with pytest.raises(urllib.error.URLError):
        urllib.request.urlopen(found["env"]["TINY_BASE_URL"] + "/models", timeout=5)


def test_one_ctrl_c_ends_command_and_endpoint_with_130(shared: Course) -> None:
    child, found = sleeper(shared, shared.start("run", "--sleep"))
    os.killpg(child.pid, signal.SIGINT)
    _, said = child.communicate(timeout=20)
    assert child.returncode == 130
    assert b"workshop" not in said  # the agent's own words, and no traceback of ours
    assert_gone(found)


def test_a_signal_to_the_workshop_alone_ends_the_command_too(shared: Course) -> None:
    child, found = sleeper(shared, shared.start("run", "--sleep"))
    child.send_signal(signal.SIGTERM)
    child.communicate(timeout=20)
    assert child.returncode == 130
    assert_gone(found)


def test_practice_ends_with_130_on_ctrl_c(shared: Course) -> None:
    child = subprocess.Popen(
        shared.start("practice", "--port", "0"),
        env=shared.environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )
    assert child.stdout is not None
    url = next(word for word in child.stdout.readline().decode().split() if "http" in word)
    with urllib.request.urlopen(f"{url}/models", timeout=10) as answer:
        assert answer.status == 200
    os.killpg(child.pid, signal.SIGINT)
    _, said = child.communicate(timeout=20)
    assert child.returncode == 130
    assert b"Traceback" not in said
