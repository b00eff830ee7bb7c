"""Stage 14: the tools that a request carries, and the calls that a reply holds."""

import json
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import httpx
import pytest

from helpers import command, need
from scripted import Raw, Scripted, calls, replies, says

HELLO = [{"role": "user", "content": "Hello."}]


def turn(
    answer: Raw, messages: Sequence[dict[str, Any]] = HELLO, tools: Sequence[Any] | None = None
) -> tuple[Any, dict[str, Any]]:
    """The reply to messages and tools, and the body of the request that was sent for it."""
    need("agent.chat", "Call")
    sent: list[dict[str, Any]] = []

    def handle(request: httpx.Request) -> httpx.Response:
        sent.append(json.loads(request.content))
        return httpx.Response(answer.status, content=answer.body, headers=answer.headers)

    env = {"TINY_BASE_URL": "http://h", "TINY_EMBED_MODEL": "e", "TINY_CHAT_MODEL": "m"}
    settings = need("agent.settings", "read_settings")(Path("/nowhere"), env)
    chat = need("agent.chat", "Chat")(settings, httpx.MockTransport(handle))
    try:
        reply = chat.ask(messages) if tools is None else chat.ask(messages, tools)
    except TypeError as error:
        pytest.fail(f"Contract: ask takes messages and tools: {error}")
    wanted = need("agent.chat", "Reply")
    assert isinstance(reply, wanted), f"Contract: ask returns a Reply, came back {reply!r}"
    return reply, sent[-1]


def asked(*listed: dict[str, Any], **more: Any) -> Raw:
    """An answer with these tool calls, as they are."""
    return replies({"content": None, "tool_calls": list(listed)}, **more)


def one(name: str = "add", arguments: Any = "{}", **more: Any) -> dict[str, Any]:
    """A tool call as an endpoint sends it. Example: one(id="x")"""
    return {**more, "function": {"name": name, "arguments": arguments}}


def read(reply: Any) -> list[tuple[str, str]]:
    return [(call.name, call.arguments) for call in reply.calls]


def tool(name: str) -> Any:
    """A tool whose schema has its keys in no order."""
    city = {"type": "string", "description": "A city", "enum": ["Ulm", "Bonn"]}
    schema = {"type": "object", "required": ["city"], "properties": {"city": city}}
    return need("agent.tools", "Tool")(name, "Says the weather.", schema, lambda city: city)


# Task 1: the request


def test_the_tools_go_along() -> None:
    """Task 1: the request carries each tool's definition, in order."""
    tools = [tool("weather"), tool("almanac")]
    sent = turn(says("Hi."), tools=tools)[1]
    wanted = [one.definition for one in tools]
    assert sent.get("tools") == wanted, f"expected {wanted}, the request has {sent.get('tools')}"
    assert sent["messages"] == HELLO, f"expected the messages as given, came {sent['messages']}"


def test_the_keys_of_the_tools_are_sorted() -> None:
    """Task 1: the keys are in order at each depth, so the bytes are the same each turn."""
    sent = json.dumps(turn(says("Hi."), tools=[tool("weather")])[1].get("tools"))
    wanted = json.dumps(json.loads(sent), sort_keys=True)
    assert sent == wanted, f"expected the keys in order: {wanted}, came {sent}"


@pytest.mark.parametrize("given", [None, []], ids=["left out", "empty"])
def test_no_tools_is_no_key(given: list[Any] | None) -> None:
    """Task 1: without tools, the request has no `tools`: an empty list is refused by some."""
    sent = turn(says("Hi."), tools=given)[1]
    assert "tools" not in sent, f"given no tools: expected no such key, came {sent}"


# Task 2: calls are read


@pytest.mark.parametrize("reason", ["tool_calls", "stop", "end_turn", "length", None])
def test_C11_the_calls_decide_and_not_finish_reason(reason: str | None) -> None:
    """Task 2: calls are calls, whatever finish_reason says."""
    answer = asked(one("add", '{"a": 1}', id="x", type="function"), finish_reason=reason)
    reply, _ = turn(answer)
    got = [(call.id, call.name, call.arguments) for call in reply.calls]
    assert got == [("x", "add", '{"a": 1}')], f"given finish_reason {reason!r}: came {got}"


@pytest.mark.parametrize("listed", [{}, {"tool_calls": None}, {"tool_calls": []}])
def test_C11_no_calls_are_none_whatever_finish_reason_says(listed: dict[str, Any]) -> None:
    """Task 2: a reply without calls has none, also where finish_reason is "tool_calls"."""
    reply, _ = turn(replies({"content": "Five.", **listed}, finish_reason="tool_calls"))
    got = reply.text, tuple(reply.calls)
    assert got == ("Five.", ()), f"given {listed}: expected a text and no calls, came {got}"


def test_the_order_of_the_calls_is_kept() -> None:
    """Task 2: a reply may hold text and many calls; they keep their order."""
    given = [(f"tool_{n}", json.dumps({"n": n})) for n in (3, 1, 2)]
    reply, _ = turn(calls(*given, text="I look."))
    assert read(reply) == given, f"expected {given}, came {read(reply)}"
    assert reply.text == "I look.", f"expected the text beside the calls, came {reply.text!r}"


@pytest.mark.parametrize(
    "message",
    [
        {"tool_calls": [{"id": "x", "type": "function"}]},
        {"tool_calls": ["add"]},
        {"tool_calls": [{"id": "x", "function": None}]},
    ],
    ids=["no function", "a text", "null"],
)
def test_a_call_without_a_function_is_no_reply(message: dict[str, Any]) -> None:
    """Task 2: a call that is none is an EndpointError, not a crash."""
    error = need("agent.errors", "EndpointError")
    try:
        reply, _ = turn(replies({"content": "", **message}))
    except error:
        return
    except Exception as other:
        pytest.fail(f"given {message}: expected an EndpointError, {other!r} came")
    pytest.fail(f"given {message}: expected an EndpointError, came back {reply!r}")


# Task 3: arguments


@pytest.mark.parametrize(
    ("given", "wanted"),
    [({"a": 1, "b": ["ü"]}, {"a": 1, "b": ["ü"]}), (None, {}), ("", {}), (" \n", {}), ({}, {})],
    ids=["an object", "null", "empty", "blank", "an empty object"],
)
def test_L11_arguments_are_a_text_that_is_json(given: Any, wanted: dict[str, Any]) -> None:
    """Task 3: arguments that come as an object, or not at all, become JSON."""
    reply, _ = turn(asked(one("add", given, id="x")))
    [(_, text)] = read(reply)
    assert isinstance(text, str), f"given {given!r}: expected a text, came {text!r}"
    came = f"given {given!r}: expected {wanted} as JSON, came {text!r}"
    assert text.strip(), came
    assert json.loads(text) == wanted, came


def test_arguments_that_are_left_out_are_an_empty_object() -> None:
    """Task 3: a call may come without arguments, and without a name that is a text."""
    reply, _ = turn(asked({"function": {"name": "now"}}, {"function": {"arguments": "{}"}}))
    assert read(reply) == [("now", "{}"), ("", "{}")], f"came {read(reply)}"


def test_a_text_of_arguments_stays_as_it_is() -> None:
    """Task 3: whether arguments are well written is not asked here."""
    given = ['{"path": "a', '{"a":1}{"a":2}', '{ "b" : 1,"a":2 }', "nothing"]
    reply, _ = turn(asked(*(one("add", text, id=f"id {n}") for n, text in enumerate(given))))
    got = [text for _, text in read(reply)]
    assert got == given, f"expected {given}, came {got}"


def test_L11_half_a_sign_does_not_reach_the_next_request() -> None:
    """Task 3: half a surrogate pair cannot be sent as UTF-8; a ? stands for it."""
    answer = replies(
        {"content": "cut \ud83d", "tool_calls": [one("add\ud83d", '{"a": "\ud83d"}', id="x")]}
    )
    reply, _ = turn(answer)
    got = reply.text, *read(reply)[0]
    wanted = "cut ?", "add?", '{"a": "?"}'
    assert got == wanted, f"given a lone \\ud83d: expected {wanted}, came {got!a}"


# Task 4: ids


@pytest.mark.parametrize(
    "given", [{}, {"id": None}, {"id": ""}, {"id": 7}, {"type": "function"}], ids=str
)
def test_C1_an_id_that_is_missing_is_made(given: dict[str, Any]) -> None:
    """Task 4: a call without an id gets one, the same in the call and in the message."""
    reply, _ = turn(asked(one("add", **given), one("mul", **given)))
    ids = [call.id for call in reply.calls]
    good = all(isinstance(name, str) and name for name in ids) and len(set(ids)) == 2
    assert good, f"given two calls with {given}: expected two ids of their own, came {ids}"
    sent = [(call.get("id"), call.get("type")) for call in reply.message["tool_calls"]]
    wanted = [(name, "function") for name in ids]
    assert sent == wanted, f"expected {wanted} in the message, came {sent}"


def test_C3_of_two_calls_with_one_id_the_second_gets_another() -> None:
    """Task 4: both calls stay, in order; the first keeps the id."""
    reply, _ = turn(asked(one("add", id="x"), one("mul", id="x"), one("add", id="y")))
    ids = [call.id for call in reply.calls]
    assert [name for name, _ in read(reply)] == ["add", "mul", "add"], f"came {read(reply)}"
    assert ids[0] == "x", f"expected the first to keep x, came {ids}"
    assert len(set(ids)) == 3, f"given x, x, y: expected three ids, came {ids}"


def test_C3_an_id_from_earlier_in_the_conversation_is_taken() -> None:
    """Task 4: an id stands once in a conversation, not only once in a reply."""
    before, _ = turn(asked(one("add", id="x"), one("add")))
    results = [{"role": "tool", "tool_call_id": c.id, "content": "5"} for c in before.calls]
    reply, _ = turn(asked(one("add", id="x"), one("add")), [*HELLO, before.message, *results])
    ids = [call.id for said in (before, reply) for call in said.calls]
    assert len(set(ids)) == 4, f"given x again in the next turn: expected four ids, came {ids}"


def test_C3_no_mixture_of_ids_gives_two_alike() -> None:
    """Task 4: an id that is made is never one that another call brings."""
    rng = random.Random(14)
    for _ in range(6):
        given = [rng.choice(["call_0", "call_1", "call_2", "0", "", None]) for _ in range(8)]
        reply, _ = turn(asked(*(one("add", id=name) for name in given)))
        ids = [call.id for call in reply.calls]
        assert len(set(ids)) == 8, f"given the ids {given}: expected eight ids, came {ids}"


# Task 5: the message


def test_the_message_is_what_all_endpoints_take() -> None:
    """Task 5: a text that is never null, and calls with id, type, and arguments as text."""
    reply, _ = turn(asked(one("add", {"a": 1}), one("now", None, id="x")))
    said = reply.message
    assert isinstance(said, dict), f"expected a message, came {said!r}"
    assert set(said) == {"role", "content", "tool_calls"}, f"expected three keys, came {said}"
    assert (said["role"], said["content"]) == ("assistant", ""), f"content null came as {said}"
    wanted = [
        {"id": c.id, "type": "function", "function": {"name": c.name, "arguments": c.arguments}}
        for c in reply.calls
    ]
    assert said["tool_calls"] == wanted, f"expected {wanted}, came {said['tool_calls']}"


def test_a_message_without_calls_has_no_list_of_them() -> None:
    """Task 5: without calls, the message is role and content."""
    said = turn(says("Five."))[0].message
    wanted = {"role": "assistant", "content": "Five."}
    assert said == wanted, f"expected {wanted}, came {said}"


# Task 6: what it cost


def test_C27_calls_count_when_tokens_are_estimated() -> None:
    """Task 6: without `usage`, the calls count as written and the tools as read."""
    small, _ = turn(calls(("add", {}), usage=None))
    large, _ = turn(calls(("add", {"text": "word " * 800}), usage=None), tools=[tool("t")] * 9)
    assert large.usage.estimated, f"given no usage: expected an estimate, came {large.usage}"
    wrote = large.usage.output - small.usage.output
    assert wrote > 300, f"given 4,000 characters of arguments: {wrote} tokens more were counted"
    read = large.usage.input - small.usage.input
    assert read > 200, f"given nine tools: {read} tokens more were counted as read"


# Task 7: the command

CARD = """\
name: word-counter
description: Counts the words of a text, for a test.
examples: [count my words, words in this text, how many words]
prompt: You count words.
tools: [{name: count, description: Count words., parameters: {type: object}}]
budget: {turns: 6, tool_calls: 6, tokens: 9000, seconds: 30}
"""


def test_the_command_shows_what_a_model_would_call(tmp_path: Path) -> None:
    """Task 7: `chat --card` sends the card's tools, prints each call in a line, runs nothing."""
    need("agent.chat", "Call")
    (tmp_path / "word-counter.card.yaml").write_text(CARD, encoding="utf-8")
    answer = calls(("count", '{"text": "\x1b[2J"}'), ("cuont", "{"), text="I count.")
    with Scripted(answer) as endpoint:
        env = {"TINY_BASE_URL": endpoint.url, "TINY_EMBED_MODEL": "e", "TINY_CHAT_MODEL": "m"}
        more = "--card", "word-counter", "--registry", tmp_path
        done = command("chat", "How many?", *more, env=env)
    assert done.returncode == 0, f"expected exit code 0, got {done.returncode}: {done.stderr}"
    wanted = ["I count.", 'count({"text": " [2J"})', "cuont({)"]
    assert done.stdout.splitlines() == wanted, f"expected {wanted}, came {done.stdout!r}"
    [sent] = [seen.body for seen in endpoint.requests]
    assert sent["messages"] == [{"role": "user", "content": "How many?"}], f"came {sent}"
    names = [tool["function"]["name"] for tool in sent.get("tools", ())]
    assert names == ["count"], f"expected the card's tool, came {names}"
