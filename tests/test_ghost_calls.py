"""Stage 17: calls to what does not exist, and other calls gone wrong: answered and counted."""

import json
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from helpers import Done, command, need
from scripted import Raw, Scripted, calls, fails, says

HELLO = [{"role": "user", "content": "Hello."}]
NONE = dict.fromkeys(("ghost", "repaired", "unparsable", "wrong_arguments", "repeated"), 0)
Answer = Raw | Callable[[dict[str, Any]], Raw]


class Hands:
    """Tools that note what they were called with."""

    def __init__(self, *names: str) -> None:
        self.done: list[tuple[str, dict[str, Any]]] = []
        self.tools = [self.tool(name) for name in names]

    def tool(self, name: str) -> Any:
        def act(**given: Any) -> str:
            self.done.append((name, given))
            return f"{name} is done"

        properties = {"path": {"type": "string"}, "a": {"type": "integer"}}
        schema = {"type": "object", "properties": properties, "required": []}
        return need("agent.tools", "Tool")(name, "Acts.", schema, act)


@contextmanager
def chat(*script: Answer) -> Iterator[tuple[Any, Scripted]]:
    """A Chat whose endpoint gives these answers, and the endpoint."""
    with Scripted(*script) as endpoint, httpx.HTTPTransport(verify=False) as transport:
        env = {"TINY_BASE_URL": endpoint.url, "TINY_EMBED_MODEL": "e", "TINY_CHAT_MODEL": "m"}
        settings = need("agent.settings", "read_settings")(Path("/nowhere"), env)
        yield need("agent.chat", "Chat")(settings, transport), endpoint


def go(
    hands: Hands, *script: Answer, watch: Callable[[dict[str, Any]], None] = lambda event: None
) -> tuple[Any, list[dict[str, Any]]]:
    """What came of a run, and the bodies of its requests."""
    need("agent.calls", "read")
    with chat(*script) as (model, endpoint):
        try:
            result = need("agent.runner", "Runner")(model, hands.tools, watch).run(HELLO)
        except need("agent.errors", "EndpointError") as error:
            pytest.fail(f"a request was refused, for what the history holds: {error}")
    for field in ("status", "answer", "counts", "messages"):
        assert hasattr(result, field), f"Contract: a Result has {field}, came back {result!r}"
    return result, [seen.body for seen in endpoint.requests]


def counted(result: Any) -> dict[str, int]:
    """The counts that this stage promises. A later stage may add others."""
    return {kind: result.counts.get(kind) for kind in NONE}


def replied(body: dict[str, Any]) -> list[str]:
    return [said["content"] for said in body["messages"] if said["role"] == "tool"]


def asked(messages: Sequence[dict[str, Any]]) -> list[dict[str, str]]:
    """The name and the arguments of each call in a history."""
    return [call["function"] for said in messages for call in said.get("tool_calls", ())]


def constant(name: str) -> None:
    raise ValueError(f"{name} is no JSON")


def strict(body: dict[str, Any]) -> Raw:
    """An endpoint that breaks on a name or on arguments that are no such thing."""
    for function in asked(body["messages"]):
        if not re.fullmatch("[A-Za-z0-9_-]{1,64}", function["name"]):
            return fails(400, f"bad name {function['name']!r}")
        try:
            good = isinstance(json.loads(function["arguments"], parse_constant=constant), dict)
        except (ValueError, RecursionError):
            good = False
        if not good:
            return fails(500, f"cannot parse {function['arguments'][:80]!r}")
    return says("Done.")


# Task 1: ghosts


def test_L1_a_ghost_is_answered_with_the_names_that_there_are() -> None:
    """Task 1: the run goes on, and the reply names at most five tools, the first ones."""
    hands = Hands(*(f"tool_{n}" for n in range(7)))
    result, sent = go(hands, calls(("serach_web", {"path": "x"})), says("Done."))
    assert (result.status, result.answer) == ("done", "Done."), f"came {result}"
    [text] = replied(sent[1])
    named = re.findall(r"tool_\d", text)
    assert named == ["tool_0", "tool_1", "tool_2", "tool_3", "tool_4"], f"came {text!r}"
    assert "serach_web" in text, f"expected the name that is not there, came {text!r}"
    assert counted(result) == {**NONE, "ghost": 1}, f"came {result.counts}"
    assert hands.done == [], f"expected nothing run, came {hands.done}"


def test_L1_eight_ghosts_end_the_run() -> None:
    """Task 1: after eight, the status is `ghosts`, the answer empty, and all calls have replies."""
    ghosts = [calls(("serach", {}), ("lookup", {})) for _ in range(4)]
    result, sent = go(Hands("read"), *ghosts, says("Never asked for."))
    got = result.status, result.answer, len(sent), result.counts["ghost"]
    assert got == ("ghosts", "", 4, 8), f"given two ghosts a turn: expected 4 requests, came {got}"
    ids = [call["id"] for said in result.messages for call in said.get("tool_calls", ())]
    answered = [said["tool_call_id"] for said in result.messages if said["role"] == "tool"]
    assert len(ids) == 8, f"expected eight calls in the history, came {ids}"
    assert answered == ids, f"expected a reply to each of {ids}, came {answered}"


def test_L1_seven_ghosts_do_not() -> None:
    """Task 1: a model that finds its way after seven may still answer."""
    ghosts = calls(*[("serach", {})] * 7)
    result, _ = go(Hands("read"), ghosts, calls(("read", {})), says("Done."))
    got = result.status, result.answer, result.counts["ghost"]
    assert got == ("done", "Done.", 7), f"came {got}"


# Task 2: names


WRAPPED = [f"{wrapper}read_page" for wrapper in ("functions.", "tools/", "tool.", "default.")]
TWISTED = ["functions.read_page:0", "read_page:12", "READ_PAGE", "read-page", "tools.Read-Page"]


@pytest.mark.parametrize("name", [*WRAPPED, *TWISTED])
def test_L3_a_name_that_can_mean_one_tool_only_is_repaired(name: str) -> None:
    """Task 2: wrappers, capitals and hyphens are no ghosts; the tool runs, and it is counted."""
    hands = Hands("read_page", "list_links")
    result, sent = go(hands, calls((name, {"path": "x"})), says("Done."))
    assert hands.done == [("read_page", {"path": "x"})], f"given {name}: came {hands.done}"
    assert counted(result) == {**NONE, "repaired": 1}, f"given {name}: came {result.counts}"
    [call] = asked(sent[1]["messages"])
    assert call["name"] == "read_page", f"expected the tool's name in the history, came {call}"


@pytest.mark.parametrize(
    "name", ["functions.serach", "Read-Page", "my_read", "read.page", "x.read", "myfunctions.read"]
)
def test_L3_a_name_that_fits_no_tool_or_two_is_a_ghost(name: str) -> None:
    """Task 2: nothing is guessed: read_page and read-page are two tools, and x.read is none."""
    hands = Hands("read_page", "read-page", "read", "myread")
    result, _ = go(hands, calls((name, {})), says("Done."))
    assert hands.done == [], f"given {name}: expected nothing run, came {hands.done}"
    assert counted(result) == {**NONE, "ghost": 1}, f"given {name}: came {result.counts}"


def test_L3_an_exact_name_is_not_repaired() -> None:
    """Task 2: a tool that is there by its very name is meant, whatever else it looks like."""
    hands = Hands("read_page", "read-page", "READ")
    exact: list[Any] = [(name, {}) for name in ("read-page", "READ", "read_page")]
    result, _ = go(hands, calls(*exact), says("Done."))
    assert hands.done == exact, f"expected {exact}, came {hands.done}"
    assert counted(result) == NONE, f"came {result.counts}"


BAD_NAMES = ["nasa/pic", "a.b", "two words", "x" * 100, "", "größe", "a\x1b[31mb", "{}"]


def test_L5_the_history_holds_no_name_that_an_endpoint_refuses() -> None:
    """Task 2: a ghost's name goes into the history in the form that all take."""
    ghosts = [calls(*((name, {}) for name in part)) for part in (BAD_NAMES[:4], BAD_NAMES[4:7])]
    result, sent = go(Hands("read"), *ghosts, strict)
    assert result.answer == "Done.", f"expected the run to go on, came {result}"
    names = [call["name"] for call in asked(sent[2]["messages"])]
    assert len(names) == 7, f"expected all seven calls in the history, came {names}"


# Task 3: arguments

BROKEN = {
    "cut in a text": '{"path": "a',
    "cut in an object": '{"path": "a"',
    "two objects": '{"a":1}{"a":2}',
    "words behind": '{"a": 1} is what I want',
    "a list": "[1]",
    "null": "null",
    "a text": '"read"',
    "no JSON": "path=a",
    "a number that JSON has not": '{"a": NaN}',
    "too deep": '{"a": ' + "[" * 5000,
}


@pytest.mark.parametrize("text", BROKEN.values(), ids=BROKEN.keys())
def test_L7_L11_broken_arguments_are_not_run_and_not_sent_back(text: str) -> None:
    """Task 3: the model is told what is wrong. The history gets {}, the event the text as it is."""
    hands, seen = Hands("read"), list[dict[str, Any]]()
    result, sent = go(hands, calls(("read", text)), strict, watch=seen.append)
    assert hands.done == [], f"given {text[:40]}: expected nothing run, came {hands.done}"
    assert result.answer == "Done.", f"given {text[:40]}: expected the run to go on, came {result}"
    assert counted(result) == {**NONE, "unparsable": 1}, f"came {result.counts}"
    [call], [said] = asked(sent[1]["messages"]), replied(sent[1])
    assert json.loads(call["arguments"]) == {}, f"given {text[:40]}: the history has {call}"
    assert said.strip(), f"given {text[:40]}: expected a reply that says why, came {said!r}"
    [event] = [event for event in seen if event["event"] == "call"]
    got = event["kind"], event["arguments"]
    assert got == ("unparsable", text), f"expected the text as it came, came {got}"


def test_L7_the_reply_says_where_the_text_breaks() -> None:
    """Task 3: a text that is cut is told with the character where it stops making sense."""
    _, sent = go(Hands("read"), calls(("read", '{"path": "a')), says("Done."))
    [said] = replied(sent[1])
    assert re.search(r"\d", said), f"expected a position, came {said!r}"


def test_C5_two_objects_in_one_text_are_told_to_be_two_calls() -> None:
    """Task 3: neither object is run, and the reply says: one object a call."""
    _, sent = go(Hands("read"), calls(("read", '{"a":1}{"a":2}')), says("Done."))
    [said] = replied(sent[1])
    assert "one object" in said, f"expected 'one object' in the reply, came {said!r}"


def test_L9_a_payload_of_40_kb_is_not_sent_back() -> None:
    """Task 3: of a broken text, the reply quotes a little and names the length."""
    _, sent = go(Hands("read"), calls(("read", "x" * 40_000), ("y" * 9999, "{}")), says("Done."))
    bad, ghost = replied(sent[1])
    assert len(bad) < 500, f"expected less than 500 characters, came {len(bad)}"
    assert re.search(r"40[,.]?000", bad), f"expected the length, came {bad!r}"
    assert len(ghost) < 500, f"given a name of 9,999 characters: {len(ghost)} came back"
    size = len(json.dumps(sent[1]["messages"]))
    assert size < 3000, f"expected a short history, came {size} characters"


def test_arguments_that_do_not_fit_are_counted_apart() -> None:
    """Task 3: JSON that the schema does not take is `wrong_arguments`, as since stage 11."""
    hands = Hands("read")
    result, sent = go(hands, calls(("read", {"a": "many"}), ("read", {"b": 1})), strict)
    assert counted(result) == {**NONE, "wrong_arguments": 2}, f"came {result.counts}"
    assert hands.done == [], f"expected nothing run, came {hands.done}"
    kept = [json.loads(call["arguments"]) for call in asked(sent[1]["messages"])]
    assert kept == [{"a": "many"}, {"b": 1}], f"expected the arguments kept, came {kept}"


# Task 4: repeated


def test_the_same_call_again_is_run_and_counted() -> None:
    """Task 4: same tool and same arguments, in whatever order their keys stand."""
    hands = Hands("read", "list")
    script = (
        calls(("read", '{"a": 1, "path": "x"}'), ("read", '{"path": "x"}')),
        calls(("read", '{"path": "x", "a": 1}'), ("list", '{"path": "x"}')),
        says("Done."),
    )
    result, _ = go(hands, *script)
    assert counted(result) == {**NONE, "repeated": 1}, f"given one twin: came {result.counts}"
    assert len(hands.done) == 4, f"expected all four run, came {hands.done}"


def test_each_kind_is_counted_apart_and_in_each_run_anew() -> None:
    """Task 4: one of each kind, and in the next run none."""
    hands = Hands("read")
    each = calls(
        ("serach", {}),
        ("READ", {"a": 1}),
        ("read", {"a": 1}),
        ("read", "{"),
        ("read", {"b": 2}),
    )
    result, _ = go(hands, each, says("Done."))
    assert counted(result) == dict.fromkeys(NONE, 1), f"came {result.counts}"
    again, _ = go(hands, calls(("read", {"a": 1})), says("Done."))
    assert counted(again) == NONE, f"given a run without a fault: came {again.counts}"


# Task 5: the command

CARD = """\
name: word-counter
description: Counts the words of a text, for a test.
examples: [count my words, words in this text, how many words]
prompt: You count words.
tools: [{name: count, description: Count words., parameters: {type: object}}]
budget: {turns: 8, tool_calls: 16, tokens: 30000, seconds: 30}
"""


@pytest.fixture
def run(tmp_path: Path) -> Callable[..., Done]:
    """Runs the card with an endpoint that gives these answers."""
    (tmp_path / "word-counter.card.yaml").write_text(CARD, encoding="utf-8")

    def run(*script: Raw) -> Done:
        need("agent.calls", "read")
        with Scripted(*script) as endpoint:
            env = {"TINY_BASE_URL": endpoint.url, "TINY_EMBED_MODEL": "e", "TINY_CHAT_MODEL": "m"}
            more = "--json", "--registry", tmp_path
            return command("run", "word-counter", "How many?", *more, env=env)

    return run


def test_json_shows_status_and_counts(run: Callable[..., Done]) -> None:
    """Task 5: the result for machines has the status and all counts, also those of 0."""
    done = run(calls(("cuont", {})), says("Two."))
    assert done.returncode == 0, f"expected exit code 0, got {done.returncode}: {done.stderr}"
    assert done.stdout, f"expected an object, came nothing: {done.stderr}"
    shown = json.loads(done.stdout)
    assert (shown.get("status"), shown["answer"]) == ("done", "Two."), f"came {shown}"
    assert {**NONE, "ghost": 1}.items() <= shown["counts"].items(), f"came {shown['counts']}"
    logged = [line for line in done.stderr.splitlines() if "cuont" in line]
    assert len(logged) == 1, f"expected one line for the call, came {done.stderr}"
    assert "ghost" in logged[0], f"expected the kind in it, came {logged[0]!r}"


def test_a_run_that_ghosts_ended_is_exit_code_1(run: Callable[..., Done]) -> None:
    """Task 5: there is no answer, so it is no success."""
    done = run(calls(*[("cuont", {})] * 8), says("Never asked for."))
    assert done.returncode == 1, f"expected exit code 1, got {done.returncode}: {done.stderr}"
    shown = json.loads(done.stdout)
    assert (shown.get("status"), shown["answer"]) == ("ghosts", ""), f"came {shown}"
