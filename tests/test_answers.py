"""Stage 18: what counts as an answer, and calls that a model writes as text."""

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest

from helpers import command, need
from scripted import Raw, Scripted, calls, fails, replies, says

BEGIN = [{"role": "system", "content": "You add."}, {"role": "user", "content": "What is 1 + 2?"}]


def add(a: int, b: int = 0) -> int:
    """Add two numbers."""
    return a + b


def now() -> str:
    """Say what time it is."""
    return "noon"


def tools() -> list[Any]:
    return [need("agent.tools", "make_tool")(function) for function in (add, now)]


Script = Raw | Callable[[dict[str, Any]], Raw]


def run(*script: Script, **how: Any) -> tuple[Any, list[list[dict[str, Any]]]]:
    """The result of a run, and the messages of each request. The script's last reply repeats."""
    sent: list[list[dict[str, Any]]] = []

    def answer(request: httpx.Request) -> httpx.Response:
        body = json.loads(request.content)
        made = script[min(len(sent), len(script) - 1)]
        sent.append(body["messages"])
        if len(sent) > 30:
            pytest.fail("expected an end, came 30 requests and more")
        raw = made if isinstance(made, Raw) else made(body)
        return httpx.Response(raw.status, content=raw.body)

    settings = need("agent.settings", "Settings")(
        embed_url="http://127.0.0.1:9/v1",
        embed_key="",
        embed_model="e",
        query_prefix="",
        passage_prefix="",
        chat_url="http://127.0.0.1:9/v1",
        chat_key="",
        chat_model="m",
    )
    chat = need("agent.chat", "Chat")(settings, httpx.MockTransport(answer))
    runner = need("agent.runner", "Runner")
    try:
        made = runner(chat, tools(), **how)
    except TypeError as error:
        pytest.fail(f"Contract: Runner takes {', '.join(how)} by name ({error})")
    return made.run(BEGIN), sent


def text_call(text: str) -> Any:
    return need("agent.calls", "text_call")(text, {tool.name: tool for tool in tools()})


# Task 1: what an answer is

EMPTY = [
    pytest.param(says(""), id="nothing"),
    pytest.param(says(None), id="null"),
    pytest.param(says(" \n\t "), id="blanks"),
    pytest.param(
        replies({"content": "", "reasoning_content": "Hm. " * 125}, finish_reason="length"),
        id="thoughts alone",
    ),
]


@pytest.mark.parametrize("empty", EMPTY)
def test_C9_an_empty_reply_is_no_answer(empty: Raw) -> None:
    """Task 1: a reply without calls is the answer only if it holds more than blanks."""
    result, sent = run(empty, says("It is 3."))
    got = (result.status, result.answer, len(sent))
    wanted = ("done", "It is 3.", 2)
    assert got == wanted, f"given an empty reply, then a text: expected {wanted}, came back {got}"


@pytest.mark.parametrize("empty", EMPTY)
def test_C7_an_empty_assistant_turn_is_never_sent(empty: Raw) -> None:
    """Task 1: an empty reply is not kept in the history, which some endpoints then refuse."""
    _, sent = run(calls(("add", {"a": 1})), empty, says("It is 3."))
    assert len(sent) == 3, f"given a call, an empty reply, a text: expected 3 requests, came {sent}"
    bad = [
        message
        for messages in sent
        for message in messages
        if message["role"] == "assistant"
        and not message.get("tool_calls")
        and not (message["content"] or "").strip()
    ]
    assert not bad, f"given an empty reply: expected no empty assistant turn, came {bad}"


def test_an_answer_is_kept_as_it_came() -> None:
    """Task 1: the answer is the reply's text, blanks and line ends included."""
    text = "  First.\n\nSecond.\n"
    result, _ = run(says(text))
    assert result.answer == text, f"expected {text!r}, came back {result.answer!r}"


# Task 2: one more chance


def test_an_empty_reply_is_followed_by_one_message_more() -> None:
    """Task 2: the next request is the same and one user message, which asks for the answer."""
    _, sent = run(says(""), says("It is 3."))
    assert len(sent) == 2, f"given an empty reply: expected a second request, came {sent}"
    first, second = sent
    assert second[:-1] == first, f"expected the same messages first, came {second}"
    last = second[-1]
    asks = last["role"] == "user" and last["content"].strip()
    assert asks, f"expected a user message with text last, came {last}"


def test_C9_the_second_empty_reply_ends_the_run() -> None:
    """Task 2: with the second empty reply the run ends, as `empty_answer`: no storm of requests."""
    result, sent = run(says(""))
    got = (result.status, result.answer, len(sent))
    assert got == ("empty_answer", "", 2), f"given nothing but empty replies: came back {got}"


def test_C9_there_is_one_more_chance_in_a_run() -> None:
    """Task 2: the chance is one a run, also when tools were called in between."""
    result, sent = run(says(""), calls(("add", {"a": 1})), says(""), says("too late"))
    got = (result.status, len(sent))
    assert got == ("empty_answer", 3), f"given empty, a call, empty: came back {got}"


# Task 3: calls as text

FORMS = [
    pytest.param('{"name": "add", "parameters": {"a": 1, "b": 2}}', id="bare"),
    pytest.param('{"name": "add", "arguments": {"a": 1, "b": 2}}', id="bare arguments"),
    pytest.param(
        '<tool_call>\n{"name": "add", "arguments": {"a": 1, "b": 2}}\n</tool_call>', id="envelope"
    ),
    pytest.param('<tool_call>{"name": "add", "arguments": {"a": 1, "b": 2}}', id="unclosed"),
    pytest.param(
        "<function=add><parameter=a>1</parameter><parameter=b>2</parameter></function>", id="tags"
    ),
    pytest.param(
        "<tool_call>\n<function=add>\n<parameter=a>\n1\n</parameter>\n<parameter=b>\n2\n"
        "</parameter>\n</function>\n</tool_call>\n",
        id="tags in an envelope",
    ),
    pytest.param("<function=add>\n<parameter=a>1\n<parameter=b>2", id="unclosed tags"),
]


@pytest.mark.parametrize("text", FORMS)
def test_C13_a_call_that_is_written_as_text_is_known(text: str) -> None:
    """Task 3: the three forms that models write are read, closed or not, with blanks around."""
    for given in (text, f"\n  {text}\n"):
        call = text_call(given)
        assert call is not None, f"given {given!r}: expected a call, came back None"
        got = (call.name, {key: int(value) for key, value in json.loads(call.arguments).items()})
        assert got == ("add", {"a": 1, "b": 2}), f"given {given!r}: came back {call}"


def test_C13_a_call_as_text_is_counted_and_otherwise_the_answer() -> None:
    """Task 3: unless asked to, a run counts the call, runs nothing, and the text is the answer."""
    text = '<tool_call>{"name": "add", "arguments": {"a": 1, "b": 2}}</tool_call>'
    result, sent = run(says(text))
    got = (result.status, result.answer, result.counts.get("text_call"), len(sent))
    assert got == ("done", text, 1, 1), f"given a call as text: came back {got}"


def test_a_real_call_is_no_text_call() -> None:
    """Task 3: a reply that calls is not searched for calls in its text."""
    text = '{"name": "add", "arguments": {"a": 5}}'
    result, sent = run(calls(("add", {"a": 1}), text=text), says("It is 1."), rescue=True)
    got = (result.counts.get("text_call"), result.tool_calls, sent[1][-1]["content"])
    assert got == (0, 1, "1"), f"given a call and a text: expected (0, 1, '1'), came back {got}"


# Task 4: run it if asked to


@pytest.mark.parametrize("text", FORMS)
def test_C13_with_rescue_a_call_as_text_is_run(text: str) -> None:
    """Task 4: with `rescue`, the call is run and answered as if it were a real one."""
    result, sent = run(says(text), says("It is 3."), rescue=True)
    got = (result.status, result.answer, result.counts.get("text_call"), result.tool_calls)
    assert got == ("done", "It is 3.", 1, 1), f"given {text!r}: came back {got}"
    asked, told = sent[1][-2:]
    assert not asked["content"], f"expected the call in place of the text, came {asked}"
    (call,) = asked.get("tool_calls", [None])
    assert call, f"expected one call in the assistant's message, came {asked}"
    assert call["function"]["name"] == "add", f"expected add to be called, came {call}"
    assert (told["role"], told["content"]) == ("tool", "3"), f"expected the sum 3, came {told}"
    assert told["tool_call_id"] == call["id"], f"expected one id in both, came {asked}, {told}"


def test_C13_each_rescued_call_has_an_id_of_its_own() -> None:
    """Task 4: two calls as text in one run get two ids."""
    one, two = (says(json.dumps({"name": "add", "arguments": {"a": a}})) for a in (1, 2))
    _, sent = run(one, two, says("Done."), rescue=True)
    ids = [message["tool_call_id"] for message in sent[-1] if message["role"] == "tool"]
    assert len(ids) == len(set(ids)) == 2, f"expected two ids, came {ids}"


# Task 5: never from prose

CALL = '{"name": "add", "arguments": {"a": 1}}'
NO_CALLS = [
    'Use {"name": "add", "arguments": {"a": 1}} for it.',
    'Here it is:\n<tool_call>{"name": "add", "arguments": {"a": 1}}</tool_call>',
    '<tool_call>{"name": "add", "arguments": {"a": 1}}</tool_call> I have called it.',
    '```json\n{"name": "add", "arguments": {"a": 1}}\n```',
    '```\n<tool_call>{"name": "add", "arguments": {"a": 1}}</tool_call>\n```',
    "<function=now> is how one asks for the time",
    "<function=add><parameter=a>1</parameter></function> This is how it is called.",
    "<function=add>with <parameter=a>1</parameter> and <parameter=b>2</parameter></function>",
    "`<function=add><parameter=a>1</parameter></function>`",
    '{"name": "subtract", "arguments": {"a": 1}}',
    '{"name": "add"}',
    '{"name": "add", "arguments": [1]}',
    '{"name": "add", "arguments": {"a": 1}} {"name": "add", "arguments": {"a": 2}}',
    '{"name": {"first": "Ada"}, "arguments": {}}',
    '{"name": ["add"], "arguments": {"a": 1}}',
    '{"name": "add", "arguments": {"a": 1}',
    "<function=subtract><parameter=a>1</parameter></function>",
    '[{"name": "add", "arguments": {"a": 1}}]',
    '"add"',
    "<tool_call></tool_call>",
    '{"name": "add", "arguments": {"a": "' + "x" * 10_000 + '"}}',
    '{"a":' * 5_000,
]


def test_C13_what_is_not_wholly_a_call_is_none() -> None:
    """Task 5: prose, fences, other names, other kinds and over 10,000 characters are no call."""
    assert text_call(CALL), f"given {CALL!r}: expected a call, came back None"
    for text in NO_CALLS:
        came = text_call(text)
        assert came is None, f"given {text[:99]!r}: expected None, came back {came}"


def test_a_JSON_answer_ends_no_run() -> None:
    """Task 5: an answer in JSON is an answer, whatever its keys hold."""
    text = '{"name": {"first": "Ada"}, "arguments": ["x"]}'
    result, _ = run(says(text))
    got = (result.status, result.answer, result.counts.get("text_call"))
    assert got == ("done", text, 0), f"given {text!r}: came back {got}"


def test_C13_prose_about_a_call_is_the_answer() -> None:
    """Task 5: also with `rescue`, what is not wholly a call is the answer and is not counted."""
    text = NO_CALLS[3]
    result, sent = run(says(text), rescue=True)
    got = (result.status, result.answer, result.counts.get("text_call"), len(sent))
    assert got == ("done", text, 0, 1), f"given {text!r}: came back {got}"


def test_C13_a_long_text_is_read_in_no_time() -> None:
    """Task 5: no text of 10,000 characters takes longer than a tenth of a second."""
    assert text_call(CALL), f"given {CALL!r}: expected a call, came back None"
    for text in ("<tool_call>{}" + " " * 9_900 + "x", "{" + "} " * 4_900 + "x"):
        began = time.perf_counter()
        text_call(text)
        seconds = time.perf_counter() - began
        assert seconds < 0.1, f"given {text[:20]!r}…: expected under 0.1 s, came {seconds:.2f} s"


# Task 6: the commands


CARD = """\
name: adder
description: Adds two numbers for a test, and does nothing else.
examples:
  - add these numbers
  - what is one plus two
  - wie viel ist eins und zwei
prompt: |
  You add.
tools:
  - name: add
    description: Adds two numbers.
    parameters: {type: object, properties: {a: {type: integer}}, required: [a]}
budget: {turns: 8, tool_calls: 8, tokens: 30000, seconds: 60}
"""


def adder(folder: Path, *words: str, script: list[Script]) -> tuple[Any, int]:
    """`run adder …` on a scripted endpoint: what it printed, and how many requests came."""
    (folder / "adder.card.yaml").write_text(CARD)
    with Scripted(*script) as endpoint:
        names = {"TINY_BASE_URL": endpoint.url, "TINY_EMBED_MODEL": "e", "TINY_CHAT_MODEL": "m"}
        done = command("run", "adder", "1 and 2", "--registry", folder, *words, env=names)
    return done, len(endpoint.requests)


def test_a_run_without_an_answer_exits_with_1(tmp_path: Path) -> None:
    """Task 6: an empty answer is exit code 1, no text, and its status on stderr."""
    done, requests = adder(tmp_path, script=[says(""), says(""), fails(500)])
    got = (done.returncode, done.stdout.strip(), requests)
    assert got == (1, "", 2), f"given empty replies: expected (1, no answer, 2), came {got}"
    assert "empty_answer" in done.stderr, f"expected empty_answer on stderr, came {done.stderr!r}"


def test_the_command_rescues_if_told_to(tmp_path: Path) -> None:
    """Task 6: `--rescue` runs calls written as text; without it they are the answer."""
    text = '{"name": "add", "arguments": {"a": 1}}'
    done, requests = adder(tmp_path, script=[says(text), says("It is 1.")])
    got = (done.returncode, done.stdout, requests)
    assert got == (0, f"{text}\n", 1), f"given no --rescue: came {got}: {done.stderr}"
    done, requests = adder(tmp_path, "--rescue", "--json", script=[says(text), says("It is 1.")])
    assert done.returncode == 0, f"given --rescue: came exit code {done.returncode}: {done.stderr}"
    shown = json.loads(done.stdout)
    came = (shown["status"], shown["answer"], shown["counts"].get("text_call"), requests)
    assert came == ("done", "It is 1.", 1, 2), f"given --rescue --json: came {came}"
