"""Stage 02: a card is read as a person typed it, or refused with a line."""

import dataclasses
from pathlib import Path
from typing import Any

import pytest
import yaml

from helpers import command, need

CARD = """\
name: word-counter
description: Counts the words of a given text and names the most frequent ones.
examples:
  - How many words does this paragraph have
  - Count the nouns in my essay
  - Wie viele Wörter hat dieser Brief?
prompt: |
  You count words.
  Answer with a number.
tools:
  - count_words
  - name: list_words
    description: Lists the words of a text.
    parameters:
      type: object
      properties:
        text: {type: string}
      required: [text]
budget:
  turns: 4
  tool_calls: 5
  tokens: 8000
  seconds: 1.5
"""


def read(text: str | bytes) -> Any:
    raw = text.encode() if isinstance(text, str) else text
    return need("agent.yaml_file", "read_yaml")(raw)


def refused(text: str | bytes) -> Any:
    """The YamlError for a text that must be refused."""
    read_yaml, error = need("agent.yaml_file", "read_yaml"), need("agent.yaml_file", "YamlError")
    raw = text.encode() if isinstance(text, str) else text
    try:
        data = read_yaml(raw)[0]
    except error as refusal:
        return refusal
    except Exception as other:
        kind = type(other).__name__
        pytest.fail(
            f"given {raw[:60]!r}: expected a YamlError, {kind} came out: {str(other)[:200]}"
        )
    pytest.fail(f"given {raw[:60]!r}: expected a YamlError, came back {str(data)[:80]}")


def card_error(name: str, given: Path) -> str:
    """What the CardError says that `name` of agent.cards must raise for a file or folder."""
    function, error = need("agent.cards", name), need("agent.errors", "CardError")
    try:
        came = function(given)
    except error as refusal:
        return str(refusal)
    pytest.fail(f"{name}({given.name!r}): expected a CardError, came back {str(came)[:80]}")


def write(folder: Path, text: str | bytes) -> Path:
    path = folder / "word-counter.card.yaml"
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


def put(line: str) -> str:
    """The card with this line put in at line 3, before `examples`."""
    return CARD.replace("examples:", f"{line}\nexamples:")


# Task 1: the card


def test_a_card_has_six_fields_and_lists_become_tuples(tmp_path: Path) -> None:
    """Task 1: a card is a frozen Card with its budget; its lists are tuples."""
    card = need("agent.cards", "read_card")(write(tmp_path, CARD))
    wanted = yaml.safe_load(CARD)
    for key in ("name", "description", "prompt"):
        got = getattr(card, key)
        assert got == wanted[key], f"{key}: expected {wanted[key]!r}, came back {got!r}"
    for key in ("examples", "tools"):
        got = getattr(card, key)
        assert got == tuple(wanted[key]), f"{key}: expected {tuple(wanted[key])}, came back {got!r}"
    for key, most in wanted["budget"].items():
        got = getattr(card.budget, key)
        assert got == most, f"budget.{key}: expected {most}, came back {got!r}"


@pytest.mark.parametrize("path", [("name",), ("budget", "turns")])
def test_a_card_and_its_budget_cannot_be_changed(tmp_path: Path, path: tuple[str, ...]) -> None:
    """Task 1: Card and Budget are frozen."""
    thing = need("agent.cards", "read_card")(write(tmp_path, CARD))
    for key in path[:-1]:
        thing = getattr(thing, key)
    with pytest.raises(dataclasses.FrozenInstanceError):
        setattr(thing, path[-1], "another")


def test_keys_of_the_author_are_left_aside(tmp_path: Path) -> None:
    """Task 1: keys that start with x- are the author's own and are no part of the card."""
    read_card = need("agent.cards", "read_card")
    plain = read_card(write(tmp_path, CARD))
    noted = read_card(write(tmp_path, put("x-owner: [tools, team]")))
    assert noted == plain, f"with x-owner: expected the same card as without, came back {noted}"


# Task 2: keys


@pytest.mark.parametrize(
    ("line", "first", "second"),
    [("name: another", 1, 3), ("'name': word-counter", 1, 3), ("x-a: {b: 1}\nx-a: {b: 1}", 3, 4)],
)
def test_Y1_a_key_that_stands_twice_is_an_error_with_both_lines(
    line: str, first: int, second: int
) -> None:
    """Task 2: a key that stands twice is an error that names the key and both lines."""
    error = refused(put(line))
    key = "x-a" if "x-a" in line else "name"
    said = f"given {key!r} on lines {first} and {second}: came back {error.message!r}"
    assert key in error.message, f"{said}, expected the key in it"
    for number in (first, second):
        assert str(number) in error.message, f"{said}, expected {number} in it"


def test_Y1_a_key_that_stands_twice_is_found_below_the_top() -> None:
    """Task 2: a key that stands twice is an error at every depth."""
    error = refused(CARD.replace("  turns: 4", "  turns: 4\n  turns: 40"))
    said = f"given turns on lines 20 and 21: came back {error.message!r}"
    assert "20" in error.message, f"{said}, expected both lines"
    assert "21" in error.message, f"{said}, expected both lines"


def test_Y1_the_same_key_in_two_places_is_no_error() -> None:
    """Task 2: the same key in two different mappings is not twice."""
    data = read("x-a: {b: 1}\nx-c: {b: 1}\n")[0]
    wanted = {"x-a": {"b": 1}, "x-c": {"b": 1}}
    assert data == wanted, f"given b in two mappings: expected {wanted}, came back {data}"


@pytest.mark.parametrize("key", ["on", "yes", "no", "1", "1.5", "null", "~", "1:30", "[a, b]"])
def test_Y3_a_key_that_is_no_text_is_an_error(key: str) -> None:
    """Task 2: a key that YAML does not read as text is an error with its line."""
    error = refused(put(f"{key}: 1"))
    assert error.line == 3, f"given {key}: on line 3: expected line 3, came back {error.line}"


# Task 3: what explodes


@pytest.mark.parametrize(
    ("line", "what"),
    [
        ("x-a: &here 1", "an anchor"),
        ("x-a: &here {b: 1}", "an anchor on a mapping"),
        ("&here x-a: 1", "an anchor on a key"),
        ("x-a: *here", "an alias"),
        ("x-a: &r [*r]", "an alias of itself"),
        ("x-a: !!str 1", "a tag"),
        ("x-a: !own 1", "a tag of one's own"),
        ("x-a: !!python/name:os.system", "a Python tag"),
        ("<<: {x-a: 1}", "a merge key"),
    ],
)
def test_Y13_anchors_aliases_tags_and_merge_keys_are_refused(line: str, what: str) -> None:
    """Task 3: anchors, aliases, tags and merge keys are refused with their line."""
    error = refused(put(line))
    assert error.line == 3, f"given {what} on line 3: expected line 3, came back {error.line}"


def test_Y13_a_bomb_of_aliases_is_refused() -> None:
    """Task 3: a few hundred bytes of aliases are refused before they are built."""
    rows = ["x-0: &a0 [l, l, l, l, l, l, l, l, l]"]
    rows += [f"x-{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 9)}]" for i in range(1, 5)]
    error = refused("\n".join(rows))
    assert error.line == 1, f"given a bomb that starts on line 1: came back line {error.line}"


@pytest.mark.parametrize("text", ["[" * 2000 + "]" * 2000, "{a: " * 2000, "- " * 2000 + "a"])
def test_Y13_deep_nesting_is_refused(text: str) -> None:
    """Task 3: more than 20 levels are refused, and 2,000 are no RecursionError."""
    error = refused(text)
    assert error.line == 1, f"given 2,000 levels on line 1: came back line {error.line}"


@pytest.mark.parametrize(("levels", "good"), [(20, True), (21, False)])
def test_Y13_twenty_levels_are_allowed(levels: int, good: bool) -> None:
    """Task 3: 20 levels are read, 21 are refused; a value at the top is level 1."""
    text = "[" * (levels - 1) + "a" + "]" * (levels - 1)
    if not good:
        refused(text)
        return
    data = read(text)[0]
    wanted: Any = "a"
    for _ in range(levels - 1):
        wanted = [wanted]
    assert data == wanted, f"given {levels} levels: expected {wanted}, came back {data}"


@pytest.mark.parametrize(("size", "good"), [(65536, True), (65537, False)])
def test_Y13_a_file_may_have_64_kB(size: int, good: bool) -> None:
    """Task 3: a file of 65,536 bytes is read, one byte more is refused."""
    text = CARD + "#" * (size - len(CARD.encode()) - 1) + "\n"
    if good:
        name = read(text)[0]["name"]
        assert name == "word-counter", f"given {size} bytes: expected the card, came back {name!r}"
    else:
        message = refused(text).message
        assert str(size) in message, f"given {size} bytes: expected {size} in {message!r}"


# Task 4: bytes


@pytest.mark.parametrize(
    "raw",
    [b"\xef\xbb\xbf" + CARD.encode(), CARD.replace("\n", "\r\n").encode()],
    ids=["BOM", "CRLF"],
)
def test_Y11_a_BOM_and_CRLF_are_accepted(raw: bytes) -> None:
    """Task 4: a byte order mark and Windows line ends change nothing."""
    data, wanted = read(raw)[0], yaml.safe_load(CARD)
    assert data == wanted, f"given {raw[:12]!r}…: expected {wanted}, came back {data}"


@pytest.mark.parametrize("encoding", ["utf-16", "utf-32", "latin-1", "cp1252"])
def test_a_file_that_is_not_UTF_8_is_refused(encoding: str) -> None:
    """Task 4: a file that is not UTF-8 is refused, and the message says UTF-8."""
    error = refused(CARD.encode(encoding))
    assert "UTF-8" in error.message, f"given {encoding}: expected UTF-8 in {error.message!r}"


@pytest.mark.parametrize("sign", ["\0", "\a", "\x1b", "\x7f"])
def test_a_control_character_is_refused_with_its_line(sign: str) -> None:
    """Task 4: a control character in the file is refused with its line."""
    error = refused(put(f"x-note: a{sign}b"))
    assert error.line == 3, f"given {sign!r} on line 3: expected line 3, came back {error.line}"


# Task 5: errors


@pytest.mark.parametrize(
    ("line", "hint"),
    [
        ("x-use: Use when: asked", "quotes"),
        ("x-a:\n\tb: 1", "spaces"),
        ("x-a: @home", "quotes"),
        ("x-a: `ls`", "quotes"),
        ("x-a: %d", "quotes"),
        ("x-a: {q} is a letter", "quotes"),
        ('x-a: "a" and b', "quotes"),
    ],
)
def test_Y7_Y9_what_YAML_cannot_read_has_a_line_and_a_mend(line: str, hint: str) -> None:
    """Task 5: an error of YAML's has its line and a mend in plain words."""
    error, bad = refused(put(line)), 3 + line.count("\n")
    assert error.line == bad, f"given {line!r}: expected line {bad}, came back {error.line}"
    assert hint in error.message, f"given {line!r}: expected {hint!r} in {error.message!r}"


def test_Y15_nothing_only_comments_and_two_documents_say_different_things() -> None:
    """Task 5: an empty file, one with only comments and one with two documents differ."""
    texts = ["", "# to do\n", CARD + "---\n" + CARD]
    said = [refused(text).message for text in texts]
    assert len(set(said)) == 3, f"given three kinds of file: expected three messages, got {said}"
    line, second = refused(texts[2]).line, CARD.count("\n") + 1
    assert line == second, f"given a second document on line {second}: came back line {line}"


def test_a_YamlError_says_its_line_in_its_text() -> None:
    """Contract: str() of a YamlError holds the line and the message."""
    error = refused(put("x-a: *here"))
    assert isinstance(error, ValueError), f"expected a ValueError, came back {type(error)}"
    for part in (f"line {error.line}", error.message):
        assert part in str(error), f"expected {part!r} in str(error), came back {str(error)!r}"


# The contract of the functions


def test_read_yaml_agrees_with_PyYAML_on_the_real_cards() -> None:
    """Contract: read_yaml gives the data that PyYAML gives, where PyYAML is to be trusted."""
    registry = Path(need("agent.errors", "__file__")).resolve().parent.parent / "registry"
    names = ["coder", "crm-writer", "docs-finder", "web-reader", "catalogue/room-booker"]
    for name in names:
        raw = (registry / f"{name}.card.yaml").read_bytes()
        data, wanted = read(raw)[0], yaml.safe_load(raw)
        assert data == wanted, f"{name}: expected what yaml.safe_load gives, came back {data}"


@pytest.mark.parametrize(
    ("path", "line"),
    [
        ((), 1),
        (("name",), 1),
        (("examples", 2), 6),
        (("tools", 1, "name"), 12),
        (("tools", 1, "parameters", "required"), 18),
        (("budget",), 19),
        (("budget", "turns"), 20),
    ],
)
def test_read_yaml_knows_the_line_of_each_value(path: tuple[Any, ...], line: int) -> None:
    """Contract: lines maps the path of keys and positions to the line, counted from 1."""
    got = read(CARD)[1].get(path)
    assert got == line, f"lines[{path}]: expected {line}, came back {got}"


@pytest.mark.parametrize("key", ["name", "description", "examples", "prompt", "tools", "budget"])
def test_a_missing_key_is_a_CardError_with_file_and_key(tmp_path: Path, key: str) -> None:
    """Task 6: a missing key is a CardError that names the file and the key."""
    data = {k: v for k, v in yaml.safe_load(CARD).items() if k != key}
    path = write(tmp_path, yaml.safe_dump(data, allow_unicode=True))
    said = card_error("read_card", path)
    for part in (path.name, key):
        assert part in said, f"expected {part!r} in {said!r}"


@pytest.mark.parametrize("text", [None, "- a list\n", "a scalar\n", "", "name: [\n", "\xff"])
def test_what_is_no_card_is_a_CardError_with_the_file(tmp_path: Path, text: str | None) -> None:
    """Task 6: a file that is missing, unreadable or no card is a CardError that names it."""
    path = tmp_path / "word-counter.card.yaml"
    if text is not None:
        path.write_bytes(text.encode("latin-1"))
    said = card_error("read_card", path)
    assert path.name in said, f"expected the file's name in {said!r}"


def test_a_CardError_is_an_error_that_a_person_can_mend() -> None:
    """Contract: CardError is an AgentError with exit code 1."""
    error = need("agent.errors", "CardError")
    assert issubclass(error, need("agent.errors", "AgentError")), "CardError is no AgentError"
    assert error.exit_code == 1, f"expected exit code 1, came back {error.exit_code}"


def test_the_command_shows_a_card(tmp_path: Path) -> None:
    """Task 6: `card FILE` prints name, description, tools, limits and examples; exit code 0."""
    done = command("card", str(write(tmp_path, CARD)))
    assert done.returncode == 0, f"expected exit code 0, got {done.returncode}: {done.stderr}"
    data = yaml.safe_load(CARD)
    parts = [data["name"], data["description"], "count_words", "list_words", *data["examples"]]
    parts += [part for key, most in data["budget"].items() for part in (key, str(most))]
    for part in parts:
        assert part in done.stdout, f"expected {part!r} in the output, got:\n{done.stdout}"


def test_the_command_refuses_on_standard_error(tmp_path: Path) -> None:
    """Task 6: `card FILE` of a bad card prints nothing but an error, and exits with 1."""
    done = command("card", str(write(tmp_path, put("name: another"))))
    assert done.returncode == 1, f"expected exit code 1, got {done.returncode}: {done.stdout}"
    assert done.stdout == "", f"expected nothing on stdout, got {done.stdout!r}"
    assert "word-counter.card.yaml" in done.stderr, f"expected the file in {done.stderr!r}"
    assert "Traceback" not in done.stderr, f"expected no traceback, got {done.stderr!r}"
