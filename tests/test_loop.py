"""Stage 15: ask, run, send back, until the model just answers."""

import json
import random
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any

import httpx
import pytest

from helpers import command, need
from scripted import Raw, Scripted, calls, fails, replies, says

HELLO = [{"role": "user", "content": "Hello."}]


def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


def greet(name: str) -> str:
    """Greet somebody."""
    return f"Hello, {name}."


def nothing() -> list[str]:
    """Find nothing."""
    return []


@contextmanager
def chat(*script: Raw) -> Iterator[tuple[Any, Scripted]]:
    """A Chat whose endpoint gives these answers, and the endpoint."""
    with Scripted(*script) as endpoint, httpx.HTTPTransport(verify=False) as transport:
        env = {"TINY_BASE_URL": endpoint.url, "TINY_EMBED_MODEL": "e", "TINY_CHAT_MODEL": "m"}
        settings = need("agent.settings", "read_settings")(Path("/nowhere"), env)
        yield need("agent.chat", "Chat")(settings, transport), endpoint


def runner(model: Any, functions: Sequence[Any], *more: Any) -> Any:
    make = need("agent.runner", "Runner")
    tools = [need("agent.tools", "make_tool")(function) for function in functions]
    try:
        return make(model, tools, *more)
    except TypeError as error:
        pytest.fail(f"Contract: a Runner is made of chat, tools and watch: {error}")


def finished(run: Any, messages: Sequence[dict[str, Any]] = HELLO) -> Any:
    result = run.run(messages)
    wanted = need("agent.runner", "Result")
    assert isinstance(result, wanted), f"Contract: run returns a Result, came back {result!r}"
    return result


def go(
    *script: Raw, functions: Sequence[Any] = (add, greet, nothing)
) -> tuple[Any, list[dict[str, Any]]]:
    """What came of a run, and the bodies of its requests."""
    with chat(*script) as (model, endpoint):
        result = finished(runner(model, functions))
    return result, [seen.body for seen in endpoint.requests]


def results(body: dict[str, Any]) -> list[str]:
    """What the tools' replies of a request say, in order."""
    return [said["content"] for said in body["messages"] if said["role"] == "tool"]


def unpaired(messages: Sequence[dict[str, Any]]) -> str:
    """What a strict endpoint would say against a conversation; "" for nothing."""
    waiting: list[str] = []
    taken: set[str] = set()
    for place, said in enumerate(messages):
        if said["role"] == "tool":
            if not waiting or said["tool_call_id"] != waiting.pop(0):
                return f"message {place} is no reply to the call whose turn it is"
        elif waiting:
            return f"message {place} stands where the reply to {waiting[0]} is due"
        if not isinstance(said["content"], str):
            return f"message {place}: content is {said['content']!r}"
        for call in said.get("tool_calls", ()):
            if call["id"] in taken or call["type"] != "function":
                return f"message {place}: {call} has no id of its own, or no type"
            taken.add(call["id"])
            waiting.append(call["id"])
    return f"no reply to {waiting}" if waiting else ""


# Task 1: until the model just answers


def test_the_first_reply_without_calls_is_the_answer() -> None:
    """Task 1: calls are run and sent back, turn after turn, until a reply has none."""
    result, sent = go(
        calls(("add", {"a": 1, "b": 2}), text="I add."),
        calls(("add", {"a": 3, "b": 4}), ("greet", {"name": "Ada"})),
        says("Ten."),
        says("Never asked for."),
    )
    got = result.answer, result.requests, result.tool_calls, len(sent)
    assert got == ("Ten.", 3, 3, 3), f"expected 'Ten.', 3 requests, 3 calls, came {got}"
    assert results(sent[2]) == ["3", "7", "Hello, Ada."], f"came {results(sent[2])}"


def test_an_answer_at_once_is_one_request() -> None:
    """Task 1: a model that calls nothing is asked once."""
    result, sent = go(says("Five."))
    got = result.answer, result.requests, result.tool_calls, len(sent)
    assert got == ("Five.", 1, 0, 1), f"expected 'Five.', one request, no call, came {got}"


def test_the_usage_is_that_of_all_turns() -> None:
    """Task 1: tokens are added up, and one estimate makes the sum an estimate."""
    used = [{"prompt_tokens": n, "completion_tokens": 1, "total_tokens": n + 1} for n in (40, 60)]
    asked = calls(("nothing", {}), usage=used[0])
    usage = go(asked, says("Done.", usage=used[1]))[0].usage
    got = usage.input, usage.output, usage.estimated
    assert got == (100, 2, False), f"given 40 + 60 read, 1 + 1 written: came {got}"
    usage = go(asked, says("Done.", usage=None))[0].usage
    assert usage.estimated, f"given one turn without usage: expected an estimate, came {usage}"
    assert usage.input > 40, f"given 40 and a turn without usage: came {usage}"


# Task 2: what the model is sent


def test_each_request_is_the_one_before_and_what_came_since() -> None:
    """Task 2: the conversation only grows: request, reply, results, and the tools each time."""
    asked = calls(("add", {"a": 1, "b": 2}), text="I add.")
    _, sent = go(asked, calls(("nothing", {})), says("Done."))
    assert sent[0]["messages"] == HELLO, f"came {sent[0]['messages']}"
    for before, after in pairwise(sent):
        kept = after["messages"][: len(before["messages"])]
        assert kept == before["messages"], f"expected {before['messages']} kept, came {kept}"
        assert after["tools"] == before["tools"], f"expected the same tools, came {after['tools']}"
    said = sent[1]["messages"][1]
    assert (said["role"], said["content"]) == ("assistant", "I add."), f"came {said}"
    names = [tool["function"]["name"] for tool in sent[0]["tools"]]
    assert names == ["add", "greet", "nothing"], f"expected the three tools, came {names}"


def test_the_result_holds_the_conversation() -> None:
    """Task 2: `messages` begins with all that the last request carried."""
    result, sent = go(calls(("add", {"a": 1, "b": 2})), says("Three."))
    wanted = sent[-1]["messages"]
    got = list(result.messages[: len(wanted)])
    assert got == wanted, f"expected {wanted}, came {got}"


def test_two_runs_share_nothing() -> None:
    """Task 2: each run has a Runner of its own, and the list it is given stays as it is."""
    given = [dict(HELLO[0])]
    with chat(calls(("add", {"a": 1, "b": 2})), says("Three."), says("Hi.")) as (model, endpoint):
        finished(runner(model, [add]), given)
        second = finished(runner(model, [greet]), given)
    assert given == HELLO, f"expected the list as it was, came {given}"
    sent = endpoint.requests[2].body
    assert sent["messages"] == HELLO, f"the second run began with {sent['messages']}"
    names = [tool["function"]["name"] for tool in sent["tools"]]
    assert names == ["greet"], f"expected the second run's own tools, came {names}"
    assert (second.requests, second.tool_calls) == (1, 0), f"came {second}"


# Task 3: one reply for each call


def test_each_call_gets_one_reply_in_order() -> None:
    """Task 3: also a call that cannot be run: no such tool, no JSON, no object, wrong arguments."""
    asked = calls(
        ("greet", {"name": "Ada"}),
        ("serach", {}),
        ("add", '{"a": 1'),
        ("add", "[1, 2]"),
        ("add", {"a": 1}),
        ("add", {"a": 1, "b": 2}),
    )
    result, sent = go(asked, says("Done."))
    assert result.answer == "Done.", f"expected the run to go on, came {result}"
    assert unpaired(sent[1]["messages"]) == "", unpaired(sent[1]["messages"])
    got = results(sent[1])
    assert len(got) == 6, f"given 6 calls: expected 6 replies, came {got}"
    assert (got[0], got[5]) == ("Hello, Ada.", "3"), f"expected the good calls run, came {got}"
    assert all(text.strip() for text in got), f"expected each failure to be said, came {got}"
    assert "serach" in got[1], f"expected the name that is not there, came {got[1]!r}"


def test_C3_calls_with_one_id_are_both_run_and_answered() -> None:
    """Task 3: each reply has the id that its call has in the history."""
    listed = [
        {"id": "x", "function": {"name": "add", "arguments": json.dumps({"a": n, "b": n})}}
        for n in (1, 2)
    ]
    nameless = {"function": {"name": "greet", "arguments": {"name": "Ada"}}}
    _, sent = go(replies({"content": None, "tool_calls": [*listed, nameless]}), says("Done."))
    assert unpaired(sent[1]["messages"]) == "", unpaired(sent[1]["messages"])
    got = results(sent[1])
    assert got == ["2", "4", "Hello, Ada."], f"given ids x, x and none: came {got}"


def test_no_script_leaves_a_call_without_its_reply() -> None:
    """Task 3: whatever is called, the next request is one that a strict endpoint takes."""
    rng = random.Random(15)
    pool: list[tuple[str, Any]] = [
        ("add", {"a": 2, "b": 3}),
        ("add", {"a": "x"}),
        ("nothing", {}),
        ("greet", "{"),
        ("nowhere", {}),
    ]
    for trial in range(3):
        turns = [calls(*rng.choices(pool, k=rng.randint(1, 3))) for _ in range(3)]
        _, sent = go(*turns, says("Done."))
        for body in sent:
            said = unpaired(body["messages"])
            assert said == "", f"trial {trial}: {said}: {body['messages']}"


# Task 4: a tool's failure


class Oddity(BaseException):
    """What no tool should raise, and some library does."""


@pytest.mark.parametrize("raised", [ValueError, SystemExit, RecursionError, Oddity])
def test_L15_a_tool_that_raises_does_not_end_the_run(raised: type[BaseException]) -> None:
    """Task 4: what a tool raises is told to the model, with its type and no stack."""

    def fail() -> str:
        """Fail."""
        raise raised("the disk is full")

    result, sent = go(calls(("fail", {})), says("It failed."), functions=[fail])
    assert result.answer == "It failed.", f"given {raised.__name__}: came {result}"
    [text] = results(sent[1])
    told = raised.__name__ in text and "the disk is full" in text
    assert told, f"expected the type and the message, came {text!r}"
    assert len(text.splitlines()) == 1, f"expected one line, came {text!r}"


def test_L15_ctrl_c_ends_the_run() -> None:
    """Task 4: KeyboardInterrupt alone goes through."""

    def wait() -> str:
        """Wait."""
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        go(calls(("wait", {})), says("Done."), functions=[wait])


@pytest.mark.parametrize("value", [[], "", {}, None], ids=repr)
def test_L19_an_empty_result_is_said_in_words(value: Any) -> None:
    """Task 4: the model reads what `call` gives, and never an empty text."""

    def search() -> str:
        """Search."""
        return value

    _, sent = go(calls(("search", {})), says("Nothing."), functions=[search])
    wanted = need("agent.tools", "call")(need("agent.tools", "make_tool")(search), {}).text
    [text] = results(sent[1])
    assert text == wanted, f"given {value!r}: expected {wanted!r}, came {text!r}"
    assert len(text.split()) > 1, f"given {value!r}: expected words, came {text!r}"


# Task 5: what is going on


def test_the_run_tells_what_it_does() -> None:
    """Task 5: `watch` gets an event for each request and each call, in their order."""
    seen: list[dict[str, Any]] = []
    asked = calls(("greet", '{"name": "Ada"}'), ("greet", "{}"))
    with chat(asked, says("Done.")) as (model, _):
        finished(runner(model, [greet], seen.append))
    found = [event for event in seen if event.get("event") in ("request", "call")]
    names = [event["event"] for event in found]
    assert names == ["request", "call", "call", "request"], f"came {names}"
    first, one, two, last = found
    turns = [(event["turn"], event["messages"]) for event in (first, last)]
    assert turns == [(1, 1), (2, 4)], f"expected turn 1 with 1 message, 2 with 4, came {turns}"
    wanted = {"kind": "ok", "name": "greet", "arguments": '{"name": "Ada"}', "text": "Hello, Ada."}
    assert wanted.items() <= one.items(), f"expected {wanted}, came {one}"
    assert two["kind"] == "wrong_arguments", f"given no name to greet: came {two}"


def test_a_log_line_is_one_line_for_people() -> None:
    """Task 5: `log_line` is short, in one line, and a model cannot write to the terminal."""
    seen: list[dict[str, Any]] = []
    long = json.dumps({"name": "x" * 5000})
    asked = calls(("greet", '{"name": "\x1b[31m"}\n'), ("greet", long))
    with chat(asked, says("Done.")) as (model, _):
        finished(runner(model, [greet], seen.append))
    line_of = need("agent.runner", "log_line")
    lines = [line_of(event) for event in seen if event.get("event") in ("request", "call")]
    assert str(lines[0]).startswith("[runner] turn 1: 1 messages"), f"came {lines[0]!r}"
    assert str(lines[1]).startswith("[runner] greet("), f"came {lines[1]!r}"
    assert "ok" in lines[2], f"expected the kind of the outcome, came {lines[2]!r}"
    for line in lines:
        assert line.isprintable(), f"expected no line end and no control character, came {line!r}"
        assert len(line) < 200, f"expected a short line, came {len(line)} characters"


# Task 6: the command

CARD = """\
name: word-counter
description: Counts the words of a text, for a test.
examples: [count my words, words in this text, how many words]
prompt: You count words.
tools:
  - name: count
    description: Count words.
    parameters: {type: object, properties: {text: {type: string}}, required: [text]}
budget: {turns: 6, tool_calls: 6, tokens: 9000, seconds: 30}
"""


@pytest.fixture
def cards(tmp_path: Path) -> Path:
    (folder := tmp_path / "registry").mkdir()
    (folder / "word-counter.card.yaml").write_text(CARD, encoding="utf-8")
    return folder


def run_command(cards: Path, endpoint: Scripted, card: str = "word-counter") -> Any:
    env = {"TINY_BASE_URL": endpoint.url, "TINY_EMBED_MODEL": "e", "TINY_CHAT_MODEL": "m"}
    return command("run", card, "how many words?", "--registry", cards, env=env)


def test_the_command_prints_the_answer_and_logs_the_turns(cards: Path) -> None:
    """Task 6: `run` prints the answer on stdout alone, and a line for each event on stderr."""
    with Scripted(calls(("count", {"text": "a b"})), says("Two.")) as endpoint:
        done = run_command(cards, endpoint)
    assert done.returncode == 0, f"expected exit code 0, got {done.returncode}: {done.stderr}"
    assert done.stdout == "Two.\n", f"expected 'Two.', came {done.stdout!r}"
    first, second = (seen.body for seen in endpoint.requests)
    said = first["messages"][-1]
    assert said == {"role": "user", "content": "how many words?"}, f"came {said}"
    names = [tool["function"]["name"] for tool in first["tools"]]
    assert names == ["count"], f"expected the card's tool, came {names}"
    assert len(results(second)) == 1, f"expected one result sent back, came {second['messages']}"
    lines = [line for line in done.stderr.splitlines() if line.startswith("[runner] ")]
    assert [line[9:14] for line in lines] == ["turn ", "count", "turn "], f"came {done.stderr}"


def test_the_command_names_what_is_missing(cards: Path) -> None:
    """Task 6: no such card is exit code 1, an endpoint that does not answer is 4."""
    with Scripted(fails(400, "no such model")) as endpoint:
        typo = run_command(cards, endpoint, "word-conter")
        failed = run_command(cards, endpoint)
    codes = typo.returncode, failed.returncode
    assert codes == (1, 4), f"expected 1 and 4, came {codes}: {typo.stderr} {failed.stderr}"
    assert "word-counter" in typo.stderr, f"expected the card that is there, came {typo.stderr}"
    assert "no such model" in failed.stderr, f"expected what it said, came {failed.stderr}"
    for done in (typo, failed):
        assert "Traceback" not in done.stderr, f"expected a message, came {done.stderr}"
