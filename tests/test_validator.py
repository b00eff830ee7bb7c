"""Stage 03: every YAML file of a registry gets a verdict; none is skipped."""

import json
import os
import re
from pathlib import Path
from typing import Any

import pytest

from helpers import TREE, command, need

CARD = """\
name: word-counter
description: Counts the words of a given text and names the most frequent ones.
examples:
  - How many words does this paragraph have
  - Count the nouns in my essay
  - Wie viele Wörter hat dieser Brief?
prompt: |
  You count words.
tools:
  - count_words
budget:
  turns: 4
  tool_calls: 5
  tokens: 8000
  seconds: 60
"""
TOOL = "{name: list_words, description: Lists words., parameters: {type: object}}"


def card_error(name: str, given: Path) -> str:
    """What the CardError says that `name` of agent.cards must raise for a file or folder."""
    function, error = need("agent.cards", name), need("agent.errors", "CardError")
    try:
        came = function(given)
    except error as refusal:
        return str(refusal)
    pytest.fail(f"{name}({given.name!r}): expected a CardError, came back {str(came)[:80]}")


def write(folder: Path, text: str | bytes, name: str = "word-counter.card.yaml") -> Path:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


def verdict(folder: Path, text: str | bytes) -> Any:
    return need("agent.validator", "judge_file")(write(folder, text))


def bad(folder: Path, old: str, new: str, line: int) -> str:
    """The messages for the card with `old` replaced, which must be bad in that line."""
    assert old in CARD, f"the test is wrong: {old!r} is not in the card"
    errors = verdict(folder, CARD.replace(old, new)).errors
    assert errors, f"given {new!r}: expected an error in line {line}, the verdict was good"
    lines = [where for where, _ in errors]
    assert line in lines, f"given {new!r}: expected an error in line {line}, came back {errors}"
    return "\n".join(what for _, what in errors)


def good(folder: Path, old: str, new: str) -> Any:
    """The data of the card with `old` replaced, which must be good."""
    assert old in CARD, f"the test is wrong: {old!r} is not in the card"
    judged = verdict(folder, CARD.replace(old, new))
    assert not judged.errors, f"given {new!r}: expected a good verdict, came back {judged.errors}"
    return judged.data


# Task 1: a verdict for every file


def test_Y11_no_file_is_skipped(tmp_path: Path) -> None:
    """Task 1: bad cards, YAML without the suffix and folders below all have a verdict, by path."""
    names = ["a.card.yaml", "b.yaml", "c.YML", "d/e.card.yaml", "word-counter.card.yaml"]
    for name in names:
        write(tmp_path, CARD if "word" in name else "- a list\r\n", name)
    verdicts = need("agent.validator", "judge_registry")(tmp_path)
    got = [v.path.relative_to(tmp_path).as_posix() for v in verdicts]
    assert got == names, (
        f"given {names}: expected a verdict for each in this order, came back {got}"
    )
    passed = [v.path.name for v in verdicts if not v.errors]
    assert passed == names[-1:], f"expected {names[-1:]} to be good, came back {passed}"


def test_Y11_a_CRLF_file_with_a_colon_is_bad_and_not_skipped(tmp_path: Path) -> None:
    """Task 1: CRLF and an unquoted colon together give a bad verdict with its line."""
    text = CARD.replace("Counts the", "Use when: Counts the").replace("\n", "\r\n")
    write(tmp_path, text)
    verdicts = need("agent.validator", "judge_registry")(tmp_path)
    assert len(verdicts) == 1, f"given one file: expected one verdict, came back {verdicts}"
    lines = [line for line, _ in verdicts[0].errors]
    assert lines == [2], f"given a colon in line 2: expected an error there, came back {lines}"


def test_files_that_are_not_YAML_are_none_of_its_business(tmp_path: Path) -> None:
    """Task 1: other files than .yaml and .yml have no verdict."""
    for name in ("notes.txt", "tool.py", "rows.jsonl", "card.schema.json"):
        write(tmp_path, "{", name)
    verdicts = need("agent.validator", "judge_registry")(tmp_path)
    assert verdicts == [], f"given no YAML file: expected [], came back {verdicts}"


@pytest.mark.parametrize("name", ["word-counter.yaml", "word-counter.yml", "word-counter.card.yml"])
def test_a_YAML_file_without_the_suffix_is_bad(tmp_path: Path, name: str) -> None:
    """Task 1: a YAML file that does not end in .card.yaml is bad, and the suffix is named."""
    errors = need("agent.validator", "judge_file")(write(tmp_path, CARD, name)).errors
    assert errors, f"given {name}: expected an error, the verdict was good"
    assert ".card.yaml" in errors[0][1], f"expected .card.yaml in {errors[0][1]!r}"


def test_a_folder_with_the_name_of_a_card_is_bad(tmp_path: Path) -> None:
    """Task 1: a folder that is called like a card is bad and raises nothing."""
    (tmp_path / "word-counter.card.yaml").mkdir()
    verdicts = need("agent.validator", "judge_registry")(tmp_path)
    got = [(v.path.name, bool(v.errors)) for v in verdicts]
    wanted = [("word-counter.card.yaml", True)]
    assert got == wanted, f"given a folder: expected {wanted}, came back {got}"


def test_a_card_that_is_not_there_is_bad(tmp_path: Path) -> None:
    """Task 1: a link to nowhere is bad and raises nothing."""
    (tmp_path / "word-counter.card.yaml").symlink_to(tmp_path / "nowhere")
    verdicts = need("agent.validator", "judge_registry")(tmp_path)
    assert len(verdicts) == 1, f"given one link: expected one verdict, came back {verdicts}"
    assert verdicts[0].errors, "given a link to nowhere: expected an error, the verdict was good"


def test_a_verdict_has_path_data_and_errors(tmp_path: Path) -> None:
    """Contract: a verdict has path, data and errors; a good one has the data and no errors."""
    judged = verdict(tmp_path, CARD)
    assert judged.errors == [], f"given a good card: expected [], came back {judged.errors}"
    assert judged.path.name == "word-counter.card.yaml", f"came back {judged.path}"
    turns = judged.data["budget"]["turns"]
    assert turns == 4, f"expected the data with turns 4, came back {turns!r}"


def test_all_errors_of_a_card_are_said_in_the_order_of_lines(tmp_path: Path) -> None:
    """Task 1: a card with three mistakes in its form gets three errors, ordered by line."""
    text = CARD.replace("turns: 4", "turns: 0").replace("- count_words", "- count words")
    errors = verdict(tmp_path, text.replace("seconds: 60", "seconds: -1")).errors
    lines = [line for line, _ in errors]
    assert lines == [10, 12, 15], f"given mistakes in lines 10, 12, 15: came back {errors}"


# Task 2: scalars that YAML reads otherwise than a person


@pytest.mark.parametrize(
    "value",
    [
        *("no", "No", "yes", "on", "OFF", "True", "~", "Null"),  # the Norway kind
        *("1:30", "12:30:45", "190:20:30.15"),  # sexagesimal
        *("010", "-012", "0x1F", "0b101"),  # other bases
        *("1_000", "1_0.5", "+5", ".5", "5.", ".inf", "-.INF", ".nan", "1.5e+3"),
        *("2026-11-29", "2026-11-29T10:00:00Z", "=", "<<"),
    ],
)
@pytest.mark.parametrize(
    ("before", "line"), [("  - How many words does this paragraph have", 4), ("  turns: 4", 12)]
)
def test_Y5_what_YAML_reads_in_its_own_way_is_an_error(
    tmp_path: Path, value: str, before: str, line: int
) -> None:
    """Task 2: unquoted is text or what JSON spells so; YAML's other readings are errors."""
    start = "  - " if line == 4 else "  turns: "
    bad(tmp_path, before, start + value, line)


@pytest.mark.parametrize("value", ["no", "1:30", "010", "1_000", "2026-11-29", "~", "x #1", "a: b"])
@pytest.mark.parametrize("quote", ["'", '"'])
def test_Y5_quotes_make_text_of_anything(tmp_path: Path, value: str, quote: str) -> None:
    """Task 2: the same value in quotes is text."""
    data = good(
        tmp_path, "description: Counts the words", f"x-a: {quote}{value}{quote}\ndescription: W"
    )
    assert data["x-a"] == value, f"given {value!r} in quotes: came back {data['x-a']!r}"


@pytest.mark.parametrize("text", ["0", "-7", "12", "0.5", "1.25", "true", "false", "null"])
def test_Y5_what_JSON_spells_the_same_is_its_value(tmp_path: Path, text: str) -> None:
    """Task 2: numbers, true, false and null as JSON spells them have JSON's value."""
    got, wanted = good(tmp_path, "budget:", f"x-a: {text}\nbudget:")["x-a"], json.loads(text)
    assert (type(got), got) == (type(wanted), wanted), f"given {text}: came back {got!r}"


@pytest.mark.parametrize(
    "text", ["1e3", "1e-3", "08", "0o10", "1.2.3", "y", "NaN", "x#y", "C# code"]
)
def test_Y5_what_YAML_reads_as_text_stays_text(tmp_path: Path, text: str) -> None:
    """Task 2: what is text for YAML stays text, also when it looks like a number."""
    got = good(tmp_path, "budget:", f"x-a: {text}\nbudget:")["x-a"]
    assert got == text, f"given {text}: expected the text, came back {got!r}"


@pytest.mark.parametrize(
    ("old", "new", "line"),
    [
        ("the nouns in my essay", "the words in ticket #12", 5),
        ("Counts the words of a given text", "Counts words #and more of a text", 2),
        ("the nouns in my essay", "the words   #", 5),
        ("the most frequent ones.", "the most\n  frequent #ones.", 2),
        ("- Count the nouns in my essay", "- it's #5", 5),
    ],
)
def test_Y5_a_text_cut_by_a_comment_is_an_error(
    tmp_path: Path, old: str, new: str, line: int
) -> None:
    """Task 3: an unquoted text with ' #' after it is an error in its line."""
    bad(tmp_path, old, new, line)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("budget:\n", "budget: # what one run may spend\n"),
        ("turns: 4", "turns: 4 # two would do"),
        ("Counts the words of a given text and names the most frequent ones.", "'Counts.' # ok"),
        ("prompt: |", "prompt: | # as the model gets it"),
        ("You count words.", "You count words. # not letters"),
        ("tools:\n", "# the tools\n\n  # and more\ntools:\n"),
    ],
)
def test_comments_that_cut_no_text_are_allowed(tmp_path: Path, old: str, new: str) -> None:
    """Task 3: a comment after a key, a number or a quoted text, or on its own line, is fine."""
    good(tmp_path, old, new)


def test_a_hash_inside_a_block_is_text(tmp_path: Path) -> None:
    """Task 3: in a block (|) nothing is a comment."""
    got = good(tmp_path, "You count words.", "You count #words # here.")["prompt"]
    assert got == "You count #words # here.\n", f"expected the whole line, came back {got!r}"


@pytest.mark.parametrize("escape", [r"\0", r"\a", r"\e", r"\x7f", r"\uD800", r"\uDC00"])
def test_control_characters_and_lone_surrogates_are_errors(tmp_path: Path, escape: str) -> None:
    """Task 3: an escape for a control character or half a surrogate pair is an error."""
    bad(tmp_path, "Counts the words of a given text", f'"Counts{escape}"\nx-a: ', 2)


@pytest.mark.parametrize("escape", [r"\n", r"\t", r"\u00fc", r"\U0001F600"])
def test_other_escapes_are_text(tmp_path: Path, escape: str) -> None:
    """Task 3: line ends, tabs and letters may be escaped."""
    got = good(tmp_path, "budget:", f'x-a: "a{escape}b"\nbudget:')["x-a"]
    wanted = f"a{escape.encode().decode('unicode_escape')}b"
    assert got == wanted, f"given {escape}: expected {wanted!r}, came back {got!r}"


# Task 4: the form


@pytest.mark.parametrize("text", ["", "# to do\n", "- a\n", "just text\n", CARD + "---\n" + CARD])
def test_Y15_what_is_no_card_is_bad(tmp_path: Path, text: str) -> None:
    """Task 4: an empty file, only comments, a list, a scalar and two documents are bad."""
    judged = verdict(tmp_path, text)
    assert judged.errors, f"given {text[:20]!r}: expected an error, the verdict was good"


def test_Y15_each_kind_has_its_own_message(tmp_path: Path) -> None:
    """Task 4: the five kinds have five different messages."""
    texts = ["", "# to do\n", "- a\n", "just text\n", CARD + "---\n" + CARD]
    said = [verdict(tmp_path, text).errors[0][1] for text in texts]
    assert len(set(said)) == 5, f"given five kinds of file: expected five messages, got {said}"


@pytest.mark.parametrize("encoding", ["utf-16", "latin-1"])
def test_a_file_that_is_not_UTF_8_is_bad(tmp_path: Path, encoding: str) -> None:
    """Task 4: a file in another encoding is bad, and the message says UTF-8."""
    errors = verdict(tmp_path, CARD.encode(encoding)).errors
    assert errors, f"given {encoding}: expected an error, the verdict was good"
    assert "UTF-8" in errors[0][1], f"expected UTF-8 in {errors[0][1]!r}"


def test_a_BOM_is_accepted(tmp_path: Path) -> None:
    """Task 4: a byte order mark changes nothing."""
    errors = verdict(tmp_path, b"\xef\xbb\xbf" + CARD.encode()).errors
    assert errors == [], f"given a BOM: expected a good verdict, came back {errors}"


@pytest.mark.parametrize("key", ["name", "description", "examples", "prompt", "tools", "budget"])
def test_a_missing_key_is_named(tmp_path: Path, key: str) -> None:
    """Task 4: a key that is missing is named."""
    said = bad(tmp_path, f"{key}:", f"x-{key}:", 1)
    assert key in said.replace(f"x-{key}", ""), f"without {key}: expected it in {said!r}"


@pytest.mark.parametrize(
    ("old", "key", "near"),
    [
        ("turns:", "turn", "turns"),
        ("turns:", "max_turn", "turns"),
        ("tool_calls:", "toolcalls", "tool_calls"),
        ("tokens:", "token", "tokens"),
        ("seconds:", "secs", "seconds"),
        ("examples:", "example", "examples"),
        ("prompt:", "promt", "prompt"),
        ("budget:", "bugdet", "budget"),
        ("tools:", "Tools", "tools"),
    ],
)
def test_Y17_an_unknown_key_names_the_nearest_known_one(
    tmp_path: Path, old: str, key: str, near: str
) -> None:
    """Task 4: an unknown key is an error in its line that names it and the nearest known key."""
    line = next(i for i, text in enumerate(CARD.splitlines(), 1) if text.strip().startswith(old))
    errors = verdict(tmp_path, CARD.replace(old, f"{key}:", 1)).errors
    said = [re.findall(r"\w+", what) for where, what in errors if where == line]
    said = [words for words in said if key in words]
    assert said, f"given {key} in line {line}: expected it in an error there, came back {errors}"
    assert any(near in words for words in said), f"given {key}: expected {near!r} in {errors}"


def test_Y17_a_key_of_a_tool_is_checked_too(tmp_path: Path) -> None:
    """Task 4: an unknown key in a tool's definition is an error."""
    said = bad(tmp_path, "count_words", TOOL.replace("parameters:", "parameter:"), 10)
    assert "parameters" in said, f"given parameter: expected parameters in {said!r}"


@pytest.mark.parametrize("old", ["budget:\n", "  turns:"])
def test_Y17_keys_with_x_are_allowed(tmp_path: Path, old: str) -> None:
    """Task 4: keys that start with x- are allowed, in the card and in its budget."""
    indent = old[: len(old) - len(old.lstrip())]
    good(tmp_path, old, f"{indent}x-note: mine\n{old}")


@pytest.mark.parametrize(
    "name", ["Word-counter", "word counter", "1-card", "w", "w" * 42, '"word-counter\\n"']
)
def test_a_name_has_a_form(tmp_path: Path, name: str) -> None:
    """Task 4: a name is 2 to 41 of a-z, 0-9 and -, and begins with a letter."""
    bad(tmp_path, "name: word-counter", f"name: {name}", 1)


def test_a_name_is_that_of_the_file(tmp_path: Path) -> None:
    """Task 4: a name that is not the file's is an error in its line, with the file's name."""
    said = bad(tmp_path, "name: word-counter", "# mine\nname: word-teller", 2)
    assert "word-counter" in said, f"given word-teller: expected word-counter in {said!r}"


@pytest.mark.parametrize(("count", "fine"), [(0, False), (1, True), (5, True), (6, False)])
def test_a_card_has_one_to_five_tools(tmp_path: Path, count: int, fine: bool) -> None:
    """Task 4: one to five tools."""
    new = "tools:" + ("".join(f"\n  - tool_{i}" for i in range(count)) or " []")
    if fine:
        good(tmp_path, "tools:\n  - count_words", new)
    else:
        said = bad(tmp_path, "tools:\n  - count_words", new, 9)
        assert str(count) in said, f"given {count} tools: expected {count} in {said!r}"


@pytest.mark.parametrize(
    "name", ["nasa/pic", "a.b", "count words", "zähle", "''", "t" * 65, '"t\\n"']
)
def test_L5_a_tool_has_a_name_that_endpoints_take(tmp_path: Path, name: str) -> None:
    """Task 4: a tool's name is 1 to 64 of A-Z, a-z, 0-9, _ and -, also in a definition."""
    bad(tmp_path, "count_words", name, 10)
    bad(tmp_path, "count_words", TOOL.replace("list_words", name), 10)


@pytest.mark.parametrize(
    "tool",
    [
        "5",
        "[count_words]",
        "{name: a}",
        "{name: a, description: b, parameters: []}",
        "{name: a, description: ' ', parameters: {type: object}}",
        "{name: a, description: b, parameters: {}}",
    ],
)
def test_a_tool_is_a_name_or_a_definition(tmp_path: Path, tool: str) -> None:
    """Task 4: a tool is a name or a mapping with name, description and parameters."""
    bad(tmp_path, "count_words", tool, 10)


@pytest.mark.parametrize(
    "value", ["0", "-1", "2.5", "4.0", "true", "'4'", "four", "null", "[4]", "1e3"]
)
@pytest.mark.parametrize("key", ["turns", "tool_calls", "tokens"])
def test_a_limit_is_a_positive_whole_number(tmp_path: Path, key: str, value: str) -> None:
    """Task 4: turns, tool_calls and tokens are whole numbers of 1 or more; true is no number."""
    lines = {"turns: 4": 12, "tool_calls: 5": 13, "tokens: 8000": 14}
    old = next(text for text in lines if text.startswith(key))
    said = bad(tmp_path, old, f"{key}: {value}", lines[old])
    assert key in said, f"given {key}: {value}: expected {key} in {said!r}"


@pytest.mark.parametrize(
    ("value", "fine"), [("0.5", True), ("90", True), ("0", False), ("-0.5", False)]
)
def test_seconds_may_be_a_fraction(tmp_path: Path, value: str, fine: bool) -> None:
    """Task 4: seconds are a positive number and may be a fraction."""
    if fine:
        got = good(tmp_path, "seconds: 60", f"seconds: {value}")["budget"]["seconds"]
        assert got == float(value), f"given {value}: came back {got!r}"
    else:
        bad(tmp_path, "seconds: 60", f"seconds: {value}", 15)


@pytest.mark.parametrize("example", ["''", "' '", "'?!'", "[a]", "5"])
def test_E11_an_example_has_words(tmp_path: Path, example: str) -> None:
    """Task 4: an example is text with at least one letter or digit."""
    bad(tmp_path, "Count the nouns in my essay", example, 5)


@pytest.mark.parametrize(("count", "fine"), [(2, False), (3, True), (50, True), (51, False)])
def test_a_card_has_3_to_50_examples(tmp_path: Path, count: int, fine: bool) -> None:
    """Task 4: 3 to 50 examples."""
    old = CARD[CARD.index("examples:") : CARD.index("prompt:")]
    new = "examples:\n" + "".join(f"  - Count the words in {i}\n" for i in range(count))
    if fine:
        good(tmp_path, old, new)
    else:
        bad(tmp_path, old, new, 3)


@pytest.mark.parametrize(
    ("old", "new", "line"),
    [
        ("Count the nouns in my essay", "How many words does this paragraph have", 5),
        ("  - count_words", "  - count_words\n  - count_words", 11),
        ("  - count_words", f"  - list_words\n  - {TOOL}", 11),
    ],
)
def test_an_entry_that_stands_twice_is_an_error(
    tmp_path: Path, old: str, new: str, line: int
) -> None:
    """Task 4: the second of two equal examples or tools is an error in its line."""
    bad(tmp_path, old, new, line)


# Task 5: cards and registries


def test_read_card_names_every_error_with_file_and_line(tmp_path: Path) -> None:
    """Task 5: read_card raises a CardError with the file and line of each error."""
    path = write(tmp_path, CARD.replace("turns: 4", "turns: 0").replace("s: 60", "s: -1"))
    said = card_error("read_card", path)
    for line in (12, 15):
        part = f"{path}:{line}:"
        assert part in said, f"expected {part!r} in {said!r}"


def test_read_registry_gives_the_cards_in_the_order_of_paths(tmp_path: Path) -> None:
    """Task 5: read_registry gives every card below a folder, in the order of paths."""
    read_registry = need("agent.cards", "read_registry")
    for name in ("b/word-counter", "a/word-teller", "z-card"):
        own = name.rpartition("/")[2]
        write(tmp_path, CARD.replace("word-counter", own), f"{name}.card.yaml")
    got = [card.name for card in read_registry(tmp_path)]
    wanted = ["word-teller", "word-counter", "z-card"]
    assert got == wanted, f"expected {wanted}, came back {got}"


def test_read_registry_takes_no_registry_with_a_bad_file(tmp_path: Path) -> None:
    """Task 5: one bad file makes read_registry raise a CardError that names it."""
    write(tmp_path, CARD)
    write(tmp_path, "", "empty.card.yaml")
    said = card_error("read_registry", tmp_path)
    assert "empty.card.yaml" in said, f"expected the file in {said!r}"


@pytest.mark.parametrize("name", ["", "nowhere"])
def test_a_registry_without_cards_is_an_error(tmp_path: Path, name: str) -> None:
    """Task 5: a folder without cards, or none, is a CardError that names the folder."""
    folder = tmp_path / name
    said = card_error("read_registry", folder)
    assert str(folder) in said, f"expected the folder in {said!r}"


# Task 6: the command


def test_the_command_prints_every_verdict(tmp_path: Path) -> None:
    """Task 6: `validate` prints a line a file, the errors below it, and the counts; exit code 1."""
    write(tmp_path, CARD)
    write(tmp_path, CARD.replace("turns: 4", "turns: 0"), "word-teller.card.yaml")
    done = command("validate", "--registry", tmp_path)
    assert done.returncode == 1, f"given a bad card: expected exit code 1, got {done.returncode}"
    rows = [*done.stdout.splitlines(), "", "", ""]
    assert len(rows) > 6, f"expected 4 lines, got:\n{done.stdout}{done.stderr}"
    paths = [
        os.path.relpath(tmp_path / f"word-{name}.card.yaml", TREE) for name in ("counter", "teller")
    ]
    assert rows[0].split() == ["good", paths[0]], f"expected good {paths[0]}, got {rows[0]!r}"
    assert rows[1].split() == ["bad", paths[1]], f"expected bad {paths[1]}, got {rows[1]!r}"
    assert rows[2].strip().startswith("line 12: "), f"expected line 12, got {rows[2]!r}"
    assert rows[-4] == "1 good, 1 bad", f"expected '1 good, 1 bad' at the end, got {rows[-4]!r}"


def test_the_command_takes_the_trees_own_registry() -> None:
    """Task 6: without --registry it is the registry beside agent/; all good is exit code 0."""
    done = command("validate")
    count = sum(1 for path in (TREE / "registry").rglob("*.card.yaml"))
    assert done.returncode == 0, (
        f"given good cards: expected 0, got {done.returncode}: {done.stderr}"
    )
    last = done.stdout.rstrip("\n").rpartition("\n")[2]
    assert last == f"{count} good, 0 bad", f"expected '{count} good, 0 bad', got {last!r}"


@pytest.mark.parametrize("escape", [r"\U00110000", r"\UFFFFFFFF", r"\x9b", r"\u202e"])
def test_escapes_that_are_no_text_are_bad(tmp_path: Path, escape: str) -> None:
    """Task 3: an escape beyond Unicode, for a C1 control or for a change of direction is bad."""
    errors = verdict(tmp_path, CARD.replace("budget:", f'x-a: "a{escape}"\nbudget:')).errors
    assert errors, f"given {escape}: expected an error, the verdict was good"


@pytest.mark.parametrize("escape", [r"\e", r"\uD800"])
def test_control_characters_in_a_key_are_errors(tmp_path: Path, escape: str) -> None:
    """Task 3: keys hold no control characters either."""
    bad(tmp_path, "budget:", f'"x-{escape}": 1\nbudget:', 11)


def test_Y7_an_unquoted_colon_in_an_example_says_quotes(tmp_path: Path) -> None:
    """Task 4: an example that YAML takes for a mapping is told to be quoted."""
    said = bad(tmp_path, "Count the nouns in my essay", "Use when: asked", 5)
    assert "quote" in said, f"expected quote in {said!r}"


def test_parameters_are_of_type_object(tmp_path: Path) -> None:
    """Task 4: parameters are a JSON schema of type object."""
    bad(tmp_path, "count_words", TOOL.replace("object", "string"), 10)
