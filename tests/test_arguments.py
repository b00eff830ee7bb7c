"""Stage 11: what a model gives a tool is held to the schema before the tool sees it."""

import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

import pytest

from helpers import TREE, command, need

Given = list[dict[str, Any]]


def outcome(tool: Any, arguments: dict[str, Any]) -> tuple[str, str]:
    """Kind and text of what a call gives."""
    call = need("agent.tools", "call")
    try:
        came = call(tool, arguments)
    except BaseException as error:
        pytest.fail(f"Contract: call({tool.name}, {arguments}) raised {error!r}")
    kind, text = getattr(came, "kind", None), getattr(came, "text", None)
    assert isinstance(kind, str), f"Contract: an Outcome has a kind, came {came!r}"
    assert isinstance(text, str), f"Contract: an Outcome has a text, came {came!r}"
    return kind, text


def order() -> tuple[Any, Given]:
    """A tool, and a list of the arguments that came through to its function."""
    seen: Given = []

    def order_pizza(
        name: str,
        slices: int,
        spice: float = 0.5,
        hot: bool = True,
        toppings: list[str] = [],  # noqa: B006
        rooms: list[int] | None = None,
        size: Literal["small", "large"] = "small",
        note: str | None = None,
    ) -> str:
        """Order a pizza."""
        seen.append(dict(locals(), seen=None))
        return "ordered"

    return need("agent.tools", "make_tool")(order_pizza), seen


def got(key: str, value: Any) -> Any:
    """What the function gets for this argument, the two that are needed beside it."""
    tool, seen = order()
    came = outcome(tool, {"name": "Ada", "slices": 2, key: value})
    assert came == ("ok", "ordered"), f"given {key}={value!r}: expected a call, came {came}"
    return seen[0][key]


def wrong(arguments: dict[str, Any]) -> str:
    """What is said about arguments that must not reach the function."""
    tool, seen = order()
    kind, text = outcome(tool, arguments)
    shown = repr(arguments)[:200]
    assert kind == "wrong_arguments", f"given {shown}: expected wrong_arguments, came {kind}"
    assert not seen, f"given {shown}: expected no call, the function got {seen}"
    return text


def same(one: Any, other: Any) -> bool:
    """Equal and of one type: 1 is not 1.0, nor True."""
    return type(one) is type(other) and one == other


# Task 1: what is wrong is said, and nothing is called


def test_what_is_right_reaches_the_function_as_it_is() -> None:
    """Task 1: arguments that fit arrive unchanged; the rest has the function's own defaults."""
    tool, seen = order()
    given = {"name": "4", "slices": 0, "hot": False, "toppings": ["a", "1"], "size": "large"}
    came = outcome(tool, given)
    assert came == ("ok", "ordered"), f"given {given}: expected a call, came {came}"
    passed = {key: seen[0][key] for key in given}
    assert passed == given, f"expected {given}, the function got {passed}"
    rest = (seen[0]["spice"], seen[0]["rooms"], seen[0]["note"])
    assert rest == (0.5, None, None), f"expected the defaults, the function got {rest}"


@pytest.mark.parametrize("missing", ["name", "slices"])
def test_a_missing_argument_is_named(missing: str) -> None:
    """Task 1: a required argument that is not there is named, and nothing is called."""
    said = wrong({key: value for key, value in (("name", "a"), ("slices", 1)) if key != missing})
    assert missing in said, f"given no {missing}: expected its name in {said!r}"


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("name", ["a"]),
        ("name", {"a": 1}),
        ("slices", "two"),
        ("slices", 2.5),
        ("slices", []),
        ("spice", "hot"),
        ("hot", "maybe"),
        ("toppings", "olives"),
        ("toppings", {"a": 1}),
        ("size", "medium"),
        ("size", ["small"]),
    ],
    ids=repr,
)
def test_a_value_of_another_kind_is_named(key: str, value: Any) -> None:
    """Task 1: a value that does not fit is named with its key, and nothing is called."""
    said = wrong({"name": "Ada", "slices": 2, key: value})
    assert key in said, f"given {key}={value!r}: expected the key in {said!r}"
    assert repr(value) in said, f"given {key}={value!r}: expected the value in {said!r}"


def test_a_value_in_a_list_is_named_with_its_place() -> None:
    """Task 1: what is wrong inside a list is named by key and position, from 0."""
    said = wrong({"name": "Ada", "slices": 2, "rooms": [1, 2, "x"]})
    assert "rooms.2" in said, f"given 'x' as the third of rooms: expected rooms.2 in {said!r}"


def test_the_choices_are_told() -> None:
    """Task 1: where there are choices, they are in the message."""
    said = wrong({"name": "Ada", "slices": 2, "size": "medium"})
    assert "small" in said, f"expected the choice small in {said!r}"
    assert "large" in said, f"expected the choice large in {said!r}"


def test_all_that_is_wrong_is_said_at_once_and_in_order() -> None:
    """Task 1: each fault is in the one message; missing ones stand in the schema's order."""
    said = wrong({"hot": "maybe"})
    places = [said.find(key) for key in ("name", "slices", "hot")]
    assert min(places) >= 0, f"given three faults: expected name, slices and hot in {said!r}"
    assert places[0] < places[1], f"expected name before slices in {said!r}"


@pytest.mark.parametrize("size", [1_000, 200_000])
@pytest.mark.parametrize("key", ["slices", "toppings", "size"])
def test_L9_a_large_value_is_not_repeated(key: str, size: int) -> None:
    """Task 1: the message has at most 300 characters, and of one value at most 60."""
    said = wrong({"name": "Ada", "slices": 2, key: "x" * size})
    assert len(said) <= 300, f"given {size} characters: expected at most 300, came {len(said)}"
    assert "x" * 61 not in said, f"given {size} characters: expected at most 60 in {said!r}"
    assert key in said, f"given a wrong {key}: expected its name in {said!r}"


def test_L9_many_faults_are_cut() -> None:
    """Task 2: what is said of a hundred unknown names has at most 300 characters too."""
    said = wrong({"name": "Ada", "slices": 2, **{f"unknown_{i}": i for i in range(100)}})
    assert len(said) <= 300, f"given 100 unknown names: expected 300 at most, came {len(said)}"


# Task 2: unknown names


def test_an_unknown_name_is_answered_with_the_known_ones() -> None:
    """Task 2: a name that is no parameter is named, with those that are, and nothing is called."""
    said = wrong({"name": "Ada", "slices": 2, "extra_cheese": True})
    for key in ("extra_cheese", "name", "slices", "toppings", "note"):
        assert key in said, f"given extra_cheese: expected {key} in {said!r}"


def test_an_unknown_name_that_is_null_is_unknown() -> None:
    """Task 2: null is no excuse for a name that is no parameter."""
    said = wrong({"name": "Ada", "slices": 2, "extra_cheese": None})
    assert "extra_cheese" in said, f"expected extra_cheese in {said!r}"


def test_L9_a_long_name_is_not_repeated() -> None:
    """Task 2: of an unknown name, at most 40 characters are in the message."""
    said = wrong({"name": "Ada", "slices": 2, "k" * 5_000: 1})
    assert "k" * 41 not in said, f"expected at most 40 of it in {said!r}"
    assert "k" * 20 in said, f"expected its begin in {said!r}"


def test_a_tool_without_parameters_takes_none() -> None:
    """Task 2: a function without parameters is called with none, and refuses any."""

    def ring() -> str:
        """Ring the bell."""
        return "ringing"

    tool = need("agent.tools", "make_tool")(ring)
    came = outcome(tool, {})
    assert came == ("ok", "ringing"), f"given no arguments: expected a call, came {came}"
    kind, text = outcome(tool, {"times": 2})
    assert kind == "wrong_arguments", f"given times=2: expected wrong_arguments, came {kind}"
    assert "times" in text, f"expected the name in {text!r}"


# Task 3: the same value in another kind


@pytest.mark.parametrize(
    ("key", "given", "wanted"),
    [
        ("name", 4, "4"),
        ("name", 1.5, "1.5"),
        ("name", "4", "4"),
        ("slices", "4", 4),
        ("slices", "-3", -3),
        ("slices", 4.0, 4),
        ("slices", "4.0", 4),
        ("spice", "0.25", 0.25),
        ("spice", 3, 3),
        ("spice", "3", 3),
        ("hot", "false", False),
        ("hot", "true", True),
        ("toppings", '["a", "b"]', ["a", "b"]),
        ("toppings", [1, "b"], ["1", "b"]),
        ("rooms", ["1", 2.0], [1, 2]),
        ("rooms", '["1"]', [1]),
        ("toppings", "[]", []),
        ("note", 7, "7"),
    ],
    ids=repr,
)
def test_L13_the_same_value_in_another_kind_is_taken(key: str, given: Any, wanted: Any) -> None:
    """Task 3: a value whose kind alone is wrong is turned into the one that is wanted."""
    came = got(key, given)
    right = same(came, wanted) and repr(came) == repr(wanted)
    assert right, f"given {key}={given!r}: expected {wanted!r}, the function got {came!r}"


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("name", True),
        ("name", ["Ada"]),
        ("slices", True),
        ("slices", "4.5"),
        ("slices", "1,000"),
        ("slices", "four"),
        ("slices", ""),
        ("slices", "1e999"),
        ("spice", "NaN"),
        ("spice", "1e999"),
        ("spice", False),
        ("hot", 1),
        ("hot", "1"),
        ("hot", "yes"),
        ("hot", ""),
        ("toppings", '{"a": 1}'),
        ("toppings", "a, b"),
        ("toppings", "4"),
        ("toppings", [None]),
        ("rooms", "[1.5]"),
        ("rooms", "[" * 5_000),
    ],
    ids=lambda value: repr(value)[:20],
)
def test_L13_what_would_be_a_guess_is_refused(key: str, value: Any) -> None:
    """Task 3: nothing else is turned: true is not 1, yes is not true, 4.5 is not 4."""
    wrong({"name": "Ada", "slices": 2, key: value})


def test_L13_a_value_and_its_JSON_are_the_same_call() -> None:
    """Task 3: for numbers, truth values and lists, a value and json.dumps of it arrive as one."""
    rng = random.Random(11)
    words = ["", "ä b", "[]", "7", 'a "quoted" one']
    make: dict[str, Callable[[], Any]] = {
        "slices": lambda: rng.randrange(-(10**12), 10**12),
        "spice": lambda: rng.choice([rng.gauss(0, 1e3), rng.random() * 1e-9]),
        "hot": lambda: rng.random() < 0.5,
        "toppings": lambda: [rng.choice(words) for _ in range(rng.randrange(4))],
        "rooms": lambda: [rng.randrange(99) for _ in range(rng.randrange(4))],
    }
    for key, value in [(key, one()) for key, one in make.items() for _ in range(8)]:
        came = got(key, json.dumps(value))
        assert same(came, value), f"given {key}={json.dumps(value)!r}: expected {value!r}: {came!r}"


# Task 4: null


def test_null_for_what_may_be_left_out_is_left_out() -> None:
    """Task 4: null for an argument that is not required is as if it were not there."""
    for key, default in (("spice", 0.5), ("hot", True), ("note", None), ("size", "small")):
        came = got(key, None)
        assert same(came, default), f"given {key}=null: expected {default!r}, came {came!r}"


def test_null_for_what_is_required_is_wrong() -> None:
    """Task 4: null for a required argument is wrong, and named."""
    said = wrong({"name": None, "slices": 2})
    assert "name" in said, f"given name=null: expected it in {said!r}"


# Task 5: any schema, and the command


def test_a_schema_that_was_written_by_hand_is_held_too() -> None:
    """Task 5: choices and kinds of a catalogue card's definition are checked in the same way."""
    card = need("agent.cards", "read_card")(TREE / "registry/catalogue/translator.card.yaml")
    [shown] = [t for t in card.tools if isinstance(t, dict) and t["name"] == "translate_text"]
    seen: Given = []
    tool = need("agent.tools", "Tool")(**shown, function=lambda **given: seen.append(given))
    right = {"text": "Hallo", "target_language": "fr", "use_glossary": "true", "alternatives": "2"}
    kind, text = outcome(tool, right)
    assert kind == "ok", f"given {right}: expected ok, came {kind}: {text}"
    wanted = {"text": "Hallo", "target_language": "fr", "use_glossary": True, "alternatives": 2}
    assert seen == [wanted], f"given {right}: expected {wanted}, the function got {seen}"
    for key, value in (("register", "rude"), ("target_language", "French"), ("alternatives", -1)):
        kind, text = outcome(tool, {**right, key: value})
        assert kind == "wrong_arguments", f"given {key}={value!r}: expected wrong_arguments: {kind}"
        assert key in text, f"given {key}={value!r}: expected the key in {text!r}"
    assert len(seen) == 1, f"expected no further call, the function got {seen[1:]}"


def test_the_given_arguments_are_left_alone() -> None:
    """Task 5: a call does not change the mapping it was given."""
    tool, _ = order()
    arguments = {"name": 4, "slices": "2", "rooms": ["1"], "note": None}
    before = json.dumps(arguments)
    outcome(tool, arguments)
    after = json.dumps(arguments)
    assert after == before, f"expected {before} unchanged, came {after}"


FILE = '''\
def add(a: int, b: int = 1) -> int:
    """Add two numbers."""
    return a + b
'''


def test_the_command_turns_and_refuses(tmp_path: Path) -> None:
    """Task 5: `tool` calls with what fits, and says what is wrong on stderr, exit code 1."""
    (path := tmp_path / "sums.py").write_text(FILE)
    done = command("tool", path, "add", '{"a": "40", "b": 2.0}')
    came = (done.returncode, done.stdout)
    assert came == (0, "42\n"), f"expected 42 and exit code 0, came {came}: {done.stderr}"
    done = command("tool", path, "add", '{"a": "forty", "c": 1}')
    came = (done.returncode, done.stdout)
    assert came == (1, ""), f"expected exit code 1 and no output, came {came}: {done.stderr}"
    for word in ("forty", "'c'"):
        assert word in done.stderr, f"expected {word} in {done.stderr!r}"
