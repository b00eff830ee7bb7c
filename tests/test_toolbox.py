"""Stage 12: the tools that a card names become tools that can be called."""

import json
from pathlib import Path
from typing import Any

import pytest

from helpers import TREE, command, need

CARD = """\
name: {name}
description: Answers one kind of request for a test, and no other kind.
examples:
  - {name} one
  - {name} two
  - {name} three
prompt: |
  You answer.
tools:
{tools}
budget: {{turns: 2, tool_calls: 2, tokens: 900, seconds: 5}}
"""
FILE = '''\
"""The letter-counter's tools."""

from typing import Annotated


def count_letters(text: Annotated[str, "any text"], only: str | None = None) -> int:
    """Count the letters of a text.

    This is for people.
    """
    return sum(letter.isalpha() for letter in text)


def count_lines(text: str) -> int:
    """Count the lines of a text."""
    return len(text.splitlines())


def bare(text):
    return text
'''
PAPER = """\
  - name: post_letter
    description: Posts a letter.
    parameters:
      type: object
      properties:
        to: {type: string}
        stamps: {type: integer, minimum: 1}
      required: [to]
  - name: burn_letter
    description: Burns it.
    parameters: {type: object}"""


@pytest.fixture
def registry(tmp_path: Path) -> Path:
    """Cards with tools of a file, with definitions, with what is missing; and the file."""
    cards = {
        "letter-counter": "  - count_lines\n  - count_letters",
        "letter-poster": PAPER,
        "no-file": "  - count_lines",
        "parcel-sender": PAPER,
    }
    for name, tools in cards.items():
        text = CARD.format(name=name, tools=tools)
        (tmp_path / f"{name}.card.yaml").write_text(text, encoding="utf-8")
    (tmp_path / "tools").mkdir()
    (tmp_path / "tools" / "letter_counter.py").write_text(FILE, encoding="utf-8")
    return tmp_path


def find(registry: Path, name: str) -> Any:
    found = need("agent.toolbox", "find_card")(registry, name)
    assert hasattr(found, "tools"), f"Contract: find_card gives a Card, came {found!r}"
    return found


def tools(registry: Path, name: str) -> Any:
    made = need("agent.toolbox", "tools_of")(find(registry, name), registry)
    assert isinstance(made, list), f"Contract: tools_of gives a list of Tools, came {made!r}"
    return made


def outcome(tool: Any, **arguments: Any) -> tuple[str, str]:
    came = need("agent.tools", "call")(tool, arguments)
    return came.kind, came.text


# Task 1: a card by its name


def test_a_card_is_found_by_its_name(registry: Path) -> None:
    """Task 1: find_card gives the card of that name, as read_card reads it."""
    read = need("agent.cards", "read_card")
    for name in ("letter-poster", "letter-counter"):
        came, wanted = find(registry, name), read(registry / f"{name}.card.yaml")
        assert came == wanted, f"given {name}: expected {wanted}, came {came}"


@pytest.mark.parametrize(
    ("given", "near"),
    [("letter-conter", "letter-counter"), ("Letter-Poster", "letter-poster"), ("parcel", "parcel")],
)
def test_a_name_that_is_nearly_right_is_answered_with_the_right_one(
    registry: Path, given: str, near: str
) -> None:
    """Task 1: no such card is a CardError with the given name and those that come close."""
    error = need("agent.errors", "CardError")
    find_card = need("agent.toolbox", "find_card")
    with pytest.raises(error) as refusal:
        find_card(registry, given)
    said = str(refusal.value)
    assert given in said, f"given {given}: expected it in {said!r}"
    assert near in said.replace(given, "", 1), f"given {given}: expected {near} in {said!r}"


def test_a_name_like_no_other_is_answered_with_some(registry: Path) -> None:
    """Task 1: where none comes close, the first cards by name are told."""
    error = need("agent.errors", "CardError")
    find_card = need("agent.toolbox", "find_card")
    with pytest.raises(error) as refusal:
        find_card(registry, "xyz")
    said = str(refusal.value)
    assert "letter-counter" in said, f"given xyz: expected the first card in {said!r}"


# Task 2: functions


def test_a_name_on_a_card_is_a_function_in_the_cards_file(registry: Path) -> None:
    """Task 2: letter-counter's tools come from tools/letter_counter.py, in the card's order."""
    made = tools(registry, "letter-counter")
    names = [tool.name for tool in made]
    assert names == ["count_lines", "count_letters"], f"expected the card's order, came {names}"
    came = [outcome(tool, text="a b\nc") for tool in made]
    assert came == [("ok", "2"), ("ok", "3")], f"expected 2 lines and 3 letters, came {came}"


def test_a_file_that_is_missing_is_named(registry: Path) -> None:
    """Task 2: a card with functions and no file is a ToolError that names the file."""
    error, tools_of = need("agent.errors", "ToolError"), need("agent.toolbox", "tools_of")
    with pytest.raises(error) as refusal:
        tools_of(find(registry, "no-file"), registry)
    assert "no_file.py" in str(refusal.value), f"expected no_file.py in {refusal.value}"


@pytest.mark.parametrize("name", ["count_words", "bare"])
def test_a_function_that_is_no_tool_is_named(registry: Path, name: str) -> None:
    """Task 2: a function that is missing or cannot be a tool is a ToolError that names it."""
    path = registry / "letter-counter.card.yaml"
    path.write_text(CARD.format(name="letter-counter", tools=f"  - {name}"), encoding="utf-8")
    error, tools_of = need("agent.errors", "ToolError"), need("agent.toolbox", "tools_of")
    with pytest.raises(error) as refusal:
        tools_of(find(registry, "letter-counter"), registry)
    assert name in str(refusal.value), f"given {name}: expected it in {refusal.value}"


@pytest.mark.parametrize("name", ["web-reader", "crm-writer", "docs-finder"])
def test_the_real_cards_have_tools_that_explain_themselves(name: str) -> None:
    """Task 2: each tool of the three real cards loads, and describes itself and its parameters."""
    tools_of, read = need("agent.toolbox", "tools_of"), need("agent.cards", "read_card")
    card = read(TREE / "registry" / f"{name}.card.yaml")
    made = tools_of(card, TREE / "registry")
    assert isinstance(made, list), f"Contract: tools_of gives a list of Tools, came {made!r}"
    names = [tool.name for tool in made]
    assert names == list(card.tools), f"expected the card's {card.tools}, came {names}"
    for tool in made:
        assert len(tool.description) > 20, f"expected a description of {tool.name}: {tool}"
        for key, schema in tool.parameters["properties"].items():
            said = schema.get("description", "")
            assert len(said) > 10, f"expected a description of {tool.name}'s {key}, came {schema}"


# Task 3: definitions


def test_a_definition_is_a_tool_as_it_stands(registry: Path) -> None:
    """Task 3: a definition on a card becomes a Tool with its name, description and schema."""
    made = tools(registry, "letter-poster")
    shown = [tool.definition["function"] for tool in made]
    wanted = find(registry, "letter-poster").tools
    assert shown == list(wanted), f"expected {wanted}, came {shown}"


def test_a_call_of_a_definition_says_that_nothing_was_done(registry: Path) -> None:
    """Task 3: calling it is a failure that says so; its arguments are checked first."""
    post, burn = tools(registry, "letter-poster")
    for kind, text in (outcome(post, to="Ada", stamps="2"), outcome(burn)):
        assert kind == "failed", f"expected kind failed, came {kind}: {text}"
        assert "nothing was done" in text, f"expected 'nothing was done' in {text!r}"
    kind, text = outcome(post, stamps=0)
    assert kind == "wrong_arguments", f"given stamps=0: expected wrong_arguments, came {kind}"
    assert "to" in text, f"expected the missing argument's name in {text!r}"


# Task 4: the command


@pytest.mark.parametrize(
    ("card", "wanted"),
    [
        (
            "letter-counter",
            ["count_lines(text)", "Count the lines of a text.", "count_letters(text, only)",
             "Count the letters of a text."],
        ),
        (
            "letter-poster",
            ["post_letter(to, stamps)", "Posts a letter.", "burn_letter()", "Burns it."],
        ),
    ],
)  # fmt: skip
def test_the_command_lists_the_tools_and_what_they_cost(
    registry: Path, card: str, wanted: list[str]
) -> None:
    """Task 4: `tools` prints each tool with its parameters and description, then the tokens."""
    done = command("tools", card, "--registry", registry)
    assert done.returncode == 0, f"expected exit code 0, got {done.returncode}: {done.stderr}"
    *lines, last = done.stdout.splitlines() or [""]
    came = [line.strip() for line in lines]
    assert came == wanted, f"expected {wanted}, came {came}"
    indented = [line.startswith(" ") for line in lines]
    assert indented == [False, True] * 2, f"expected the descriptions indented, came {lines}"
    bill = need("agent.tokens", "estimate_tools")
    tokens = bill([tool.definition for tool in tools(registry, card)])
    assert last == f"{tokens} tokens in every request", f"expected {tokens} tokens, came {last!r}"


@pytest.mark.parametrize("card", ["letter-counters", "no-file"])
def test_the_command_says_what_is_missing(registry: Path, card: str) -> None:
    """Task 4: no such card, or a tool that is not there, is an error and exit code 1."""
    done = command("tools", card, "--registry", registry)
    came = (done.returncode, done.stdout)
    assert came == (1, ""), f"given {card}: expected exit code 1 and no output, came {came}"
    assert done.stderr.startswith("error: "), f"expected an error, came {done.stderr!r}"
    assert len(done.stderr.splitlines()) == 1, f"expected one line, came {done.stderr!r}"


def test_a_tool_of_the_folder_is_called_by_hand(tmp_path: Path) -> None:
    """Contract: `tool` with a file of registry/tools calls a real tool."""
    (tmp_path / "rules.md").write_text("# Rules\n\nBicycles stand in the cellar.\n")
    path = TREE / "registry" / "tools" / "docs_finder.py"
    given = json.dumps({"query": "bicycle"})
    done = command("tool", path, "search_docs", given, env={"TINY_DOCS": str(tmp_path)})
    assert done.returncode == 0, f"expected exit code 0, got {done.returncode}: {done.stderr}"
    assert "in the cellar" in done.stdout, f"expected the rule, came {done.stdout!r}"
