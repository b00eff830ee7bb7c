"""The pages in docs/ say what the source says: files, stages, messages, commands."""

from __future__ import annotations

import ast
import functools
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from workshop.lesson import console_commands
from workshop.line import Line, Stage, read_line
from workshop.pages import own_pages, relinked, renew

ROOT = Path(__file__).resolve().parents[2]
LINE = read_line(ROOT)
PAGES = [pytest.param(path, id=path.name) for path in own_pages(ROOT)]
DOCS = ROOT / "docs"
MESSAGES = ("troubleshooting.md", "maintainers.md")  # pages that quote what is printed
NOT_RUN = {"endpoints.md": 4, "maintainers.md": 2}  # blocks whose commands need more than a clone
FENCES = {"console", "sh", "ini", "yaml"}
SPOKEN = {"CardError", "EndpointError", "LateError", "Problem", "RowsError", "SettingsError"}
SPOKEN |= {"DefinitionOnly", "StoreError", "ToolError", "TraceError", "VectorError", "YamlError"}
STAGE = re.compile(r"stages/(\d\d-[a-z0-9-]+)/")


def read(page: str) -> str:
    return (DOCS / page).read_text(encoding="utf-8")


def prose(text: str) -> str:
    """A page without its blocks of code."""
    return re.sub(r"^```.*?^```", "", text, flags=re.DOTALL | re.MULTILINE)


def rows(text: str) -> Iterator[list[str]]:
    """The cells of each row of a page's tables."""
    for line in text.splitlines():
        if line.startswith("| "):
            yield [cell.strip() for cell in line.strip("|").split(" | ")]


def quoted() -> set[str]:
    """The messages that pages quote, as they stand there."""
    found: set[str] = set()
    for page in MESSAGES:
        for table in re.split(r"^\| message .*\n", read(page), flags=re.MULTILINE)[1:]:
            for cells in rows(table.split("\n\n")[0]):
                found |= set(re.findall(r"`([^`]+)`", cells[0]))
    return found


def pieces(message: str) -> list[str]:
    """What a quoted message has between the parts that differ, sentence by sentence."""
    parts = re.split(r"…|(?<=[.?!]) ", message)
    return [piece for piece in (part.strip(" .") for part in parts) if piece]


@functools.cache
def source() -> dict[Path, ast.Module]:
    """The modules that print what a person reads."""
    paths = [*ROOT.glob("agent/*.py"), *ROOT.glob("workshop/*.py")]
    paths += [*ROOT.glob("workshop/practice/*.py"), *ROOT.glob("registry/tools/*.py")]
    paths += ROOT.glob("workshop/site/*.py")
    return {path: ast.parse(path.read_text(encoding="utf-8")) for path in paths}


def texts(node: ast.AST) -> list[str]:
    """The texts in a piece of code; those that stand side by side are one."""
    every = (n.value for n in ast.walk(node) if isinstance(n, ast.Constant))
    return [value for value in every if isinstance(value, str)]


@functools.cache
def printed() -> list[str]:
    """What each file can print, and the words that its code and comments have for it."""
    found = ["\0".join([*texts(tree), path.read_text("utf-8")]) for path, tree in source().items()]
    return [*found, (ROOT / "workshop" / "start").read_text(encoding="utf-8")]


def is_printed(message: str) -> bool:
    """Whether one file has all parts of a message."""
    return any(all(part in text for part in pieces(message)) for text in printed())


def raised() -> Iterator[tuple[str, list[str]]]:
    """Each message that is raised for a person: its place, and the texts that it is made of."""
    for path, tree in source().items():
        if "registry" in path.parts:  # what a tool says is for the model
            continue
        for function in (n for n in ast.walk(tree) if isinstance(n, ast.FunctionDef)):
            for node in (n for n in ast.walk(function) if isinstance(n, ast.Raise)):
                call = node.exc
                if not isinstance(call, ast.Call) or ast.unparse(call.func) not in SPOKEN:
                    continue
                what = call.args[ast.unparse(call.func) == "YamlError"]  # its first is the line
                names = {n.id for n in ast.walk(what) if isinstance(n, ast.Name)}
                parts = texts(what)
                for made in (n for n in ast.walk(function) if isinstance(n, ast.Assign)):
                    if {ast.unparse(target) for target in made.targets} & names:
                        parts += texts(made.value)
                yield f"{path.relative_to(ROOT)}, line {node.lineno}", parts


def test_the_messages_that_are_quoted_stand_in_the_source() -> None:
    messages = quoted()
    assert len(messages) > 150
    assert [one for one in messages if max(map(len, pieces(one))) < 3] == [], "they quote nothing"
    assert [one for one in messages if not is_printed(one)] == []


def test_every_message_that_is_raised_is_explained() -> None:
    known = [piece for message in quoted() for piece in pieces(message) if len(piece) > 5]
    missing = [
        f"{place}: {' … '.join(parts)}"
        for place, parts in raised()
        if not any(piece in part for piece in known for part in parts)
    ]
    assert missing == [], "docs/troubleshooting.md or docs/maintainers.md is to explain these"


@pytest.mark.parametrize("page", PAGES)
def test_a_link_leads_to_a_file_and_a_stage_has_its_number(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    assert text == relinked(text, LINE), "run: python -m workshop pages"
    for link in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", prose(text)):
        assert (page.parent / link).exists(), link
    assert set(STAGE.findall(text)) <= {stage.folder for stage in LINE.stages}


@pytest.mark.parametrize("page", PAGES)
def test_a_file_that_a_page_names_is_there(page: Path) -> None:
    own = r"(?:agent|registry|scripts|tests|stages|workshop|docs|\.ci)/[\w./-]*"
    for name in re.findall(rf"`({own}|\w+\.py)`", prose(page.read_text(encoding="utf-8"))):
        if "NN-slug" in name or name == "card_name.py":
            continue
        there = [ROOT / name, ROOT / "agent" / name, ROOT / "tests" / name]
        assert any(path.exists() for path in there), name


def test_every_file_of_agent_has_its_place_in_how_it_works() -> None:
    named = set(re.findall(r"`(\w+\.py)`", read("how-it-works.md")))
    there = {path.name for path in (ROOT / "agent").glob("*.py")} - {"__init__.py"}
    assert there - named == set()


def test_the_stage_of_a_term_changes_its_file() -> None:
    terms = 0
    for cells in rows(read("glossary.md")):
        stage = STAGE.search(cells[-1])
        if stage:
            name = cells[2].strip("`")
            patch = ROOT / "stages" / stage[1] / "change.patch"
            changed = re.findall(r"^diff --git a/(\S+)", patch.read_text(errors="replace"), re.M)
            assert any(path.startswith(name) for path in changed), f"{cells[0]}: {name}"
            terms += 1
    assert terms > 40


@pytest.mark.parametrize("page", ["README.md", "how-it-works.md", "endpoints.md"])
def test_a_page_shows_commands_and_what_they_print(page: str) -> None:
    path = ROOT / page if page == "README.md" else DOCS / page
    shown = console_commands(path.read_text(encoding="utf-8"))
    assert [command for command, output in shown if output.strip()]


def test_commands_that_are_not_run_are_known_and_say_what_they_need() -> None:
    """All other blocks of commands are `console`, and those are run."""
    count: dict[str, int] = {}
    for page in sorted(DOCS.glob("*.md")):
        text = page.read_text(encoding="utf-8")
        opened = re.findall(r"^```(\w*)\n.*?^```$", text, re.DOTALL | re.MULTILINE)
        assert set(opened) <= FENCES, page.name
        before = [text[: found.start()] for found in re.finditer(r"^```sh$", text, re.MULTILINE)]
        for above in before:
            assert "This needs " in above.rstrip().split("\n\n")[-1], above[-300:]
            count[page.name] = count.get(page.name, 0) + 1
    assert count == NOT_RUN


def test_a_link_follows_its_stage_to_another_number() -> None:
    line = Line(1, (Stage(1, "other", "", "", ""), Stage(2, "card", "", "", "")))
    text = "[card](../stages/07-card/lesson.md), stages/NN-slug/, [gone](stages/03-gone/x)"
    assert relinked(text, line) == text.replace("07-card", "02-card")


def test_renewing_a_page_leaves_an_open_edit_alone(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("```console\n$ just save --abort\nNo such thing.\n```\n", encoding="utf-8")
    shown = console_commands(page.read_text(encoding="utf-8"))
    assert renew(page, shown, tmp_path, 0.0) == 0
    assert "No such thing." in page.read_text(encoding="utf-8")
