"""Stage 10: a typed, documented function becomes a tool, and a call of it an outcome."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, Literal

import pytest

from helpers import TREE, command, need

Function = Callable[..., Any]


def made(function: Function) -> Any:
    """The tool that a function is, with all that the Contract names."""
    make = need("agent.tools", "make_tool")
    try:
        tool = make(function)
    except Exception as error:
        pytest.fail(f"Contract: make_tool({function.__name__}) raised {error!r}")
    for name in ("name", "description", "parameters", "function", "definition"):
        assert hasattr(tool, name), f"Contract: a Tool has a {name}, make_tool gave {tool!r}"
    return tool


def schema(function: Function) -> Any:
    return made(function).parameters


def called(function: Function, **arguments: Any) -> Any:
    """The outcome of a call, with all that the Contract names."""
    tool, call = made(function), need("agent.tools", "call")
    try:
        outcome = call(tool, arguments)
    except BaseException as error:
        pytest.fail(f"Contract: call({tool.name}) raised {error!r}, which is no outcome")
    for name in ("kind", "text"):
        assert isinstance(getattr(outcome, name, None), str), f"Contract: {name} in {outcome!r}"
    return outcome


def refused(function: Function) -> str:
    """What the ToolError says that this function must lead to."""
    make, error = need("agent.tools", "make_tool"), need("agent.errors", "ToolError")
    try:
        came = make(function)
    except error as refusal:
        return str(refusal)
    except Exception as other:
        pytest.fail(f"expected a ToolError, {type(other).__name__} came out: {other}")
    pytest.fail(f"expected a ToolError, came back {came!r}")


def send_parcel(
    street: str,
    kilos: Annotated[float, "Weight with the box"],
    rooms: list[int],
    speed: Literal["slow", "fast"] = "slow",
    note: Annotated[str, "For the driver"] | None = None,
    *,
    insured: bool = False,
) -> str:
    """Send a parcel to
    a street.

    What stands below the first paragraph is for people.
    """
    return f"{street} {kilos} {rooms} {speed} {note} {insured}"


# Task 1: name, description, parameters


def test_a_tool_has_the_functions_name_and_first_paragraph() -> None:
    """Task 1: the name is the function's, the description its first paragraph in one line."""
    tool = made(send_parcel)
    got, wanted = (tool.name, tool.description), ("send_parcel", "Send a parcel to a street.")
    assert got == wanted, f"expected {wanted}, came back {got}"


def test_parameters_without_a_default_are_required() -> None:
    """Task 1: a property for each parameter, in order; required are those without a default."""
    got = schema(send_parcel)
    names, needed = list(got.get("properties", {})), got.get("required")
    wanted = ["street", "kilos", "rooms", "speed", "note", "insured"]
    assert got.get("type") == "object", f"expected a schema of type object, came {got}"
    assert names == wanted, f"expected the properties {wanted}, came {names}"
    assert needed == wanted[:3], f"expected {wanted[:3]} in required, came {needed}"


def test_a_function_without_parameters_needs_nothing() -> None:
    """Task 1: no parameters are an object without properties, and nothing is required."""

    def ring() -> None:
        """Ring the bell."""

    got, wanted = schema(ring), {"type": "object", "properties": {}, "required": []}
    assert got == wanted, f"expected {wanted}, came back {got}"


def test_a_tool_shows_itself_as_a_request_carries_it() -> None:
    """Task 1: `definition` is the entry of a request's `tools`, and JSON can hold it."""
    tool = made(send_parcel)
    inner = {"name": "send_parcel", "description": tool.description, "parameters": tool.parameters}
    wanted = {"type": "function", "function": inner}
    assert tool.definition == wanted, f"expected {wanted}, came back {tool.definition}"
    read = json.loads(json.dumps(tool.definition))
    assert read == wanted, f"expected the same after JSON, came back {read}"


def test_a_definition_is_the_same_bytes_each_time() -> None:
    """Task 1: the keys of a definition are sorted at every depth."""
    one, other = (made(send_parcel).definition for _ in range(2))
    got, wanted = json.dumps(one), json.dumps(other, sort_keys=True)
    assert got == wanted, f"expected {wanted}, came back {got}"


# Task 2: annotations


@pytest.mark.parametrize(
    ("annotation", "wanted"),
    [
        (str, {"type": "string"}),
        (int, {"type": "integer"}),
        (float, {"type": "number"}),
        (bool, {"type": "boolean"}),
        (list[str], {"type": "array", "items": {"type": "string"}}),
        (
            list[list[int]],
            {"type": "array", "items": {"type": "array", "items": {"type": "integer"}}},
        ),
        (Literal["up", "down"], {"type": "string", "enum": ["up", "down"]}),
        (Annotated[int, "how many"], {"type": "integer", "description": "how many"}),
        (
            Annotated[list[str], "who"],
            {"type": "array", "items": {"type": "string"}, "description": "who"},
        ),
        (list[Literal["a"]], {"type": "array", "items": {"type": "string", "enum": ["a"]}}),
        (str | None, {"type": "string"}),
        (Annotated[bool | None, "or not"], {"type": "boolean", "description": "or not"}),
    ],
    ids=str,
)
def test_an_annotation_is_a_schema(annotation: Any, wanted: dict[str, Any]) -> None:
    """Task 2: each annotation that is known becomes its JSON schema."""

    def tool(value: Any) -> None:
        """Take it."""

    tool.__annotations__["value"] = annotation
    got = schema(tool).get("properties")
    assert got == {"value": wanted}, f"given {annotation}: expected {wanted}, came {got}"


def test_annotations_that_are_text_are_read() -> None:
    """Task 2: `from __future__ import annotations` makes texts of them, and changes nothing."""

    def tool(words: "list[str]", most: "Annotated[int, 'at most']" = 3) -> None:
        """Take them."""

    wanted = {
        "words": {"type": "array", "items": {"type": "string"}},
        "most": {"type": "integer", "description": "at most", "default": 3},
    }
    got = schema(tool).get("properties")
    assert got == wanted, f"expected {wanted}, came back {got}"


def test_defaults_stand_in_the_schema() -> None:
    """Task 2: a default is shown, also one that is false; None is not."""
    properties = schema(send_parcel)["properties"]
    got = {key: value["default"] for key, value in properties.items() if "default" in value}
    wanted = {"speed": "slow", "insured": False}
    assert got == wanted, f"expected the defaults {wanted}, came {got}"


def test_the_schema_is_what_a_card_of_the_catalogue_has_by_hand() -> None:
    """Task 2: for the same tool, what is derived is what a person wrote into translator's card."""

    def look_up_glossary_term(
        term: str,
        to_language: str,
        from_language: str | None = None,
        domain: Literal["general", "legal", "technical", "marketing", "finance"] = "general",
        match: Literal["exact", "stem", "fuzzy"] = "stem",
    ) -> str:
        """Looks up how a term is to be translated in this company. Reads only."""
        return ""

    read_card = need("agent.cards", "read_card")
    card = read_card(TREE / "registry/catalogue/translator.card.yaml")
    [wanted] = [t for t in card.tools if isinstance(t, dict) and t["name"].startswith("look_up")]
    got = made(look_up_glossary_term).definition["function"]
    assert got == wanted, f"expected the card's {wanted}, came back {got}"


# Task 3: what a model cannot call


def test_a_function_without_a_docstring_is_refused() -> None:
    """Task 3: without a docstring the model knows nothing; the ToolError names the function."""

    def mystery(a: str) -> None: ...

    said = refused(mystery)
    assert "mystery" in said, f"expected the function's name in {said!r}"


@pytest.mark.parametrize(
    "annotation",
    [dict, list, object, Any, int | str, Literal[1, 2], dict[str, int], list[bytes],
     Annotated[str, ["a list"]]],
)  # fmt: skip
def test_an_annotation_that_is_not_known_is_refused(annotation: Any) -> None:
    """Task 3: any other annotation is a ToolError that names function and parameter."""

    def shape(weird_one: Any) -> None:
        """Take it."""

    shape.__annotations__["weird_one"] = annotation
    said = refused(shape)
    assert "shape" in said, f"given {annotation}: expected the function's name in {said!r}"
    assert "weird_one" in said, f"given {annotation}: expected the parameter's name in {said!r}"


def test_a_parameter_without_an_annotation_is_refused() -> None:
    """Task 3: a parameter without a type is a ToolError that names it."""
    namespace: dict[str, Any] = {}
    exec('def plain(bare_one):\n    """Take it."""', namespace)
    said = refused(namespace["plain"])
    assert "bare_one" in said, f"expected the parameter's name in {said!r}"


@pytest.mark.parametrize("taken", ["*many_of: str", "**many_of: str", "many_of: str, /"])
def test_a_parameter_that_has_no_name_to_call_by_is_refused(taken: str) -> None:
    """Task 3: *args, **kwargs and positional-only parameters are a ToolError that names them."""
    namespace: dict[str, Any] = {}
    exec(f'def plain({taken}):\n    """Take it."""', namespace)
    said = refused(namespace["plain"])
    assert "many_of" in said, f"given ({taken}): expected the parameter's name in {said!r}"


def test_an_annotation_that_cannot_be_read_is_refused() -> None:
    """Task 3: a type that does not exist is a ToolError, no NameError."""

    def lost(a: "NoSuchType") -> None:  # type: ignore[name-defined]  # noqa: F821
        """Take it."""

    said = refused(lost)
    assert "lost" in said, f"expected the function's name in {said!r}"


# Task 4: a call and its failures


def test_a_call_gives_what_the_function_returns() -> None:
    """Task 4: the arguments reach the parameters of their names; the kind is ok."""
    got = called(send_parcel, rooms=[2], kilos=1.5, street="Nordweg", insured=True)
    wanted = ("ok", "Nordweg 1.5 [2] slow None True")
    assert (got.kind, got.text) == wanted, f"expected {wanted}, came back {got}"


class Quiet(BaseException):
    def __str__(self) -> str:
        raise ValueError("not even this")


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (ValueError("no such page"), "ValueError: no such page"),
        (KeyError("a"), "KeyError"),
        (SystemExit(3), "SystemExit"),
        (RecursionError("too deep"), "RecursionError: too deep"),
        (GeneratorExit(), "GeneratorExit"),
        (MemoryError(), "MemoryError"),
        (Quiet(), "Quiet"),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, BaseException) else "",
)
def test_L15_what_a_tool_raises_is_a_result(error: BaseException, said: str) -> None:
    """Task 4: whatever a tool raises is an outcome of kind failed, that names type and message."""

    def fall() -> None:
        """Fall."""
        raise error

    got = called(fall)
    assert got.kind == "failed", f"given {said}: expected kind failed, came {got}"
    assert said in got.text, f"given {said}: expected it in {got.text!r}"


def test_L15_a_recursion_without_end_is_a_result() -> None:
    """Task 4: a tool that calls itself without end is an outcome too."""

    def turn() -> None:
        """Turn round."""
        turn()

    got = called(turn)
    assert got.kind == "failed", f"expected kind failed, came {got}"
    assert "RecursionError" in got.text, f"expected RecursionError in {got.text!r}"


def test_L15_ctrl_c_is_not_the_tools_failure() -> None:
    """Task 4: KeyboardInterrupt goes through, for it is the person's, not the model's."""

    def wait() -> None:
        """Wait."""
        raise KeyboardInterrupt

    tool, call = made(wait), need("agent.tools", "call")
    try:
        came = call(tool, {})
    except KeyboardInterrupt:
        return
    pytest.fail(f"expected KeyboardInterrupt, came back {came!r}")


def test_L15_a_failure_is_short_and_has_no_stack() -> None:
    """Task 4: a failure is one line of at most 300 characters."""

    def burst() -> None:
        """Burst."""
        raise ValueError("begins here\n" + "lorem ipsum\n" * 200_000)

    got = called(burst)
    assert "ValueError: begins here lorem" in got.text, f"expected the message's begin in {got}"
    assert len(got.text) <= 300, f"expected at most 300 characters, came {len(got.text)}"
    assert "\n" not in got.text, f"expected one line, came {got.text!r}"
    assert "Traceback" not in got.text, f"expected no stack, came {got.text!r}"


# Task 5: results as text


@pytest.mark.parametrize(
    ("value", "wanted"),
    [
        ("Grüße,\n 2 €", "Grüße,\n 2 €"),
        ("null", "null"),
        (0, "0"),
        (1.5, "1.5"),
        (False, "false"),
        ([0], "[0]"),
        ({"größe": ["a", None]}, '{"größe": ["a", null]}'),
    ],
    ids=repr,
)
def test_a_result_is_text(value: Any, wanted: str) -> None:
    """Task 5: a text is left as it is; anything else is JSON, with ä as ä."""

    def give() -> Any:
        """Give."""
        return value

    got = called(give)
    came, text = got.kind, got.text
    if not isinstance(value, str):
        text, wanted = json.loads(text), json.loads(wanted)
        assert "\\u" not in got.text, f"given {value!r}: expected ä as ä, came {got.text!r}"
    assert (came, text) == ("ok", wanted), f"given {value!r}: expected {wanted!r}, came {got}"


@pytest.mark.parametrize("value", ["", [], (), {}], ids=repr)
def test_L19_nothing_found_is_said_to_be_final(value: Any) -> None:
    """Task 5: an empty result says that there are 0 results and that this is final."""

    def find() -> Any:
        """Find."""
        return value

    got, wanted = called(find), ("ok", "(0 results: this is final)")
    assert (got.kind, got.text) == wanted, f"given {value!r}: expected {wanted}, came {got}"


def test_L19_no_result_is_said_to_be_done() -> None:
    """Task 5: None says that it is done."""

    def write() -> None:
        """Write."""

    got, wanted = called(write), ("ok", "(done, no result)")
    assert (got.kind, got.text) == wanted, f"given None: expected {wanted}, came {got}"


def test_a_result_can_be_sent() -> None:
    """Task 5: half of an emoji, which UTF-8 cannot hold, becomes a question mark."""

    def give() -> str:
        """Give."""
        return "ok \ud83d!"

    got = called(give)
    assert got.text == "ok ?!", f"given a lone surrogate: expected 'ok ?!', came {got.text!r}"


def test_a_result_that_is_no_json_is_a_failure() -> None:
    """Task 5: what JSON cannot hold is a failure of the tool."""

    def give() -> Any:
        """Give."""
        return object()

    got = called(give)
    assert got.kind == "failed", f"given an object(): expected kind failed, came {got}"


# Task 6: a file, and the command

FILE = '''\
"""Tools."""

from typing import Annotated

notes: list[str] = []


def add(a: Annotated[int, "the first"], b: int = 1) -> int:
    """Add two numbers."""
    return a + b


def fall() -> None:
    """Fall."""
    raise ValueError("no floor")
'''


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "sums.py"
    path.write_text(FILE)
    return path


def test_the_command_shows_a_function_as_a_tool(file: Path) -> None:
    """Task 6: without arguments, `tool` prints the definition as JSON."""
    done = command("tool", file, "add")
    assert done.returncode == 0, f"expected exit code 0, got {done.returncode}: {done.stderr}"
    a = {"type": "integer", "description": "the first"}
    properties = {"a": a, "b": {"type": "integer", "default": 1}}
    schema = {"type": "object", "properties": properties, "required": ["a"]}
    inner = {"name": "add", "description": "Add two numbers.", "parameters": schema}
    wanted = {"type": "function", "function": inner}
    try:
        got = json.loads(done.stdout)
    except ValueError:
        pytest.fail(f"expected JSON, came {done.stdout!r}")
    assert got == wanted, f"expected {wanted}, came {got}"


def test_the_command_calls_it(file: Path) -> None:
    """Task 6: with a JSON object, `tool` prints what the call gave, on stdout."""
    done = command("tool", file, "add", '{"a": 40, "b": 2}')
    got = (done.returncode, done.stdout, done.stderr)
    assert got == (0, "42\n", ""), f"expected 42 and exit code 0, came {got}"


def test_the_command_says_what_failed(file: Path) -> None:
    """Task 6: a failure is on stderr, with exit code 1."""
    done = command("tool", file, "fall", "{}")
    got = (done.returncode, done.stdout)
    assert got == (1, ""), f"expected exit code 1 and no output, came {got}: {done.stderr}"
    assert "ValueError: no floor" in done.stderr, f"expected the failure, came {done.stderr!r}"
    assert "Traceback" not in done.stderr, f"expected no stack, came {done.stderr!r}"


def test_a_file_may_hold_more_than_functions(file: Path) -> None:
    """Task 6: a file with a dataclass and annotations that are text is loaded like any other."""
    head = "from __future__ import annotations\nfrom dataclasses import dataclass\n"
    noun = "@dataclass\nclass Sum:\n    a: int\n"
    verb = 'def add(a: int) -> int:\n    """Add."""\n    return Sum(a).a + 1\n'
    file.write_text(head + noun + verb)
    done = command("tool", file, "add", '{"a": 1}')
    got = (done.returncode, done.stdout)
    assert got == (0, "2\n"), f"expected 2 and exit code 0, came {got}: {done.stderr}"


@pytest.mark.parametrize("text", ["[1]", "{", "a=1", "", "null"])
def test_arguments_that_are_no_object_are_a_usage_error(file: Path, text: str) -> None:
    """Task 6: what is no JSON object is a usage error, exit code 2, and nothing is called."""
    done = command("tool", file, "add", text)
    assert done.returncode == 2, f"given {text!r}: expected exit code 2, got {done.returncode}"
    assert "usage: python -m agent tool" in done.stderr, f"expected usage, came {done.stderr!r}"


@pytest.mark.parametrize(
    ("name", "wanted"), [("subtract", "subtract"), ("notes", "notes"), ("Annotated", "Annotated")]
)
def test_a_name_that_is_no_function_is_an_error(file: Path, name: str, wanted: str) -> None:
    """Task 6: a name that is no function of the file is a ToolError that names both."""
    done = command("tool", file, name)
    assert done.returncode == 1, f"given {name}: expected exit code 1, got {done.returncode}"
    assert done.stderr.startswith("error: "), f"expected an error, came {done.stderr!r}"
    assert wanted in done.stderr, f"expected {wanted} in {done.stderr!r}"
    assert "sums.py" in done.stderr, f"expected the file in {done.stderr!r}"


@pytest.mark.parametrize(
    ("text", "named"),
    [("def f(:\n", "SyntaxError"), ("import no_such_module_4711\n", "no_such_module_4711"),
     ("raise SystemExit(0)\n", "SystemExit"), (None, "")],
    ids=["syntax", "import", "exit", "no file"],
)  # fmt: skip
def test_a_file_that_cannot_be_loaded_is_an_error(
    tmp_path: Path, text: str | None, named: str
) -> None:
    """Task 6: a file that cannot be loaded is a ToolError that names it and says why."""
    path = tmp_path / "broken_one.py"
    if text is not None:
        path.write_text(text)
    done = command("tool", path, "f")
    assert done.returncode == 1, f"expected exit code 1, got {done.returncode}: {done.stderr}"
    assert done.stderr.startswith("error: "), f"expected an error, came {done.stderr!r}"
    assert "broken_one.py" in done.stderr, f"expected the file's name in {done.stderr!r}"
    assert named in done.stderr, f"expected {named} in {done.stderr!r}"


def test_a_file_that_is_no_python_is_an_error(tmp_path: Path) -> None:
    """Task 6: a file whose name does not end in .py is a ToolError."""
    (path := tmp_path / "sums.txt").write_text(FILE)
    done = command("tool", path, "add")
    assert done.returncode == 1, f"expected exit code 1, got {done.returncode}: {done.stderr}"
    assert "sums.txt" in done.stderr, f"expected the file's name in {done.stderr!r}"
