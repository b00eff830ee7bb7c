"""Stage 25: a part of the budget is kept for a last word, and what was found is never lost."""

import json
import time
from collections.abc import Callable
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import pytest

from helpers import command, need
from scripted import Raw, Scripted, calls, fails, says

HELLO = [{"role": "user", "content": "What is it?"}]
LAST = "I have found a 5 so far."
SUM = ("add", {"a": 2, "b": 3})


def made(what: str, make: Callable[..., Any], *given: Any, **named: Any) -> Any:
    """What `make` gives. A parameter that it does not have is the contract's business."""
    try:
        return make(*given, **named)
    except (TypeError, AttributeError) as error:
        pytest.fail(f"Contract: {what}: {type(error).__name__}: {error}")


Answer = Raw | Callable[[dict[str, Any]], Raw]


def endpoint_of(*script: Answer) -> Scripted:
    """A scripted endpoint that keeps no connection open after an answer."""

    def closing(answer: Raw) -> Raw:
        return replace(answer, headers={**answer.headers, "Connection": "close"})

    def each(one: Answer) -> Answer:
        return closing(one) if isinstance(one, Raw) else lambda body: closing(one(body))

    return Scripted(*map(each, script))


def unless_last(answer: Raw, last: Raw | None = None) -> Callable[[dict[str, Any]], Raw]:
    """The answer to each request but the last one, which may call nothing."""
    last = last or says(LAST)
    return lambda body: last if body.get("tool_choice") == "none" else answer


def chat(url: str) -> Any:
    names = {"TINY_BASE_URL": url, "TINY_EMBED_MODEL": "m", "TINY_CHAT_MODEL": "m"}
    settings = need("agent.settings", "read_settings")(Path(__file__).parent, names)
    return need("agent.chat", "Chat")(settings)


def meter(parent: Any = None, **limits: Any) -> Any:
    budget = {"turns": 8, "tool_calls": 16, "tokens": 30_000, "seconds": 60} | limits
    more = {} if parent is None else {"parent": parent}
    return need("agent.budget", "Meter")(need("agent.cards", "Budget")(**budget), **more)


def adder() -> tuple[Any, list[int]]:
    """A tool that adds, and the list of what it gave."""
    gave: list[int] = []

    def add(a: int, b: int) -> int:
        """Add two numbers."""
        gave.append(a + b)
        return a + b

    return need("agent.tools", "make_tool")(add), gave


def run(*script: Answer, tools: Any = None, spends: Any = None, **limits: Any) -> tuple[Any, Any]:
    """A run on these limits: its result and the bodies of its requests."""
    tools = [adder()[0]] if tools is None else tools
    spends = spends or meter(**limits)
    error = need("agent.errors", "EndpointError")
    with endpoint_of(*script) as endpoint:
        runner = need("agent.runner", "Runner")(chat(endpoint.url), tools, meter=spends)
        try:
            result = runner.run([dict(message) for message in HELLO])
        except error as raised:
            pytest.fail(f"Contract: an EndpointError does not leave the run, and came: {raised}")
        bodies = [one.body for one in endpoint.requests]
    for body in bodies:
        check(body["messages"])
    wanted = need("agent.runner", "Result")
    assert isinstance(result, wanted), f"Contract: run gives a Result, came back {result!r}"
    for name in ("reason", "found"):
        assert hasattr(result, name), f"Contract: Result has no {name} yet"
    check(result.messages)
    return result, bodies


def check(messages: Any) -> None:
    """L17: every call has its reply, in order, before anything else is said."""
    waiting: list[str] = []
    for message in messages:
        if message["role"] == "tool":
            assert waiting, f"a reply to no call: {message}"
            came, wanted = message["tool_call_id"], waiting.pop(0)
            assert came == wanted, f"expected the reply to {wanted}, came {came}"
        else:
            assert not waiting, f"no reply to {waiting} before {message}"
            waiting = [call["id"] for call in message.get("tool_calls", ())]
    assert not waiting, f"the conversation ends without a reply to {waiting}"


# Task 1: what is kept


def test_a_turn_and_a_fifth_are_kept() -> None:
    """Task 1: one turn, and a fifth of tokens and seconds, are left to a last request alone."""
    one = meter(turns=5, tokens=1000, seconds=100)
    for name, first, last in (("turns_left", 4, 5), ("tokens_left", 800, 1000)):
        left = made(name, lambda name=name: getattr(one, name)())
        assert left == first, f"{name}: expected {first}, came {left}"
        left = made(name, lambda name=name: getattr(one, name)(last=True))
        assert left == last, f"{name}(last=True): expected {last}, came {left}"
    first, last = (made("seconds_left", one.seconds_left, last=last) for last in (False, True))
    assert 50 < first <= 80, f"seconds_left: expected nearly 80, came {first}"
    assert 85 < last <= 100, f"seconds_left(last=True): expected nearly 100, came {last}"


@pytest.mark.parametrize("turns", [1, 2, 3, 5])
def test_B1_the_last_request_is_one_of_the_turns(turns: int) -> None:
    """Task 1: requests are never more than the turns, the last one included."""
    result, bodies = run(unless_last(calls(SUM)), turns=turns)
    assert len(bodies) == turns, f"given {turns} turns: the endpoint had {len(bodies)} requests"
    assert result.requests == turns, f"given {turns} turns: {result.requests} were counted"
    assert result.status == "turns", f"expected the status turns, came {result.status!r}"


def test_a_single_turn_is_not_kept() -> None:
    """Task 1: of one turn nothing is kept: a plain answer to it is `done`, tools or not."""
    result, bodies = run(unless_last(says("Five.")), turns=1)
    got = result.status, result.answer
    assert got == ("done", "Five."), f"given 1 turn and an answer: came {got}"
    assert "tool_choice" not in bodies[0], f"expected a request like any, came {bodies[0]}"


def test_B5_the_last_request_is_inside_the_tokens() -> None:
    """Task 1: where each reply is as long as it may be, all of them stay in the budget."""
    estimate, spent = need("agent.tokens", "estimate"), list[int]()

    def answer(body: dict[str, Any]) -> Raw:
        read = sum(estimate(message["content"]) for message in body["messages"])
        spent.append(read + body["max_tokens"])
        usage = {"prompt_tokens": read, "completion_tokens": body["max_tokens"]}
        return unless_last(calls(SUM, usage=usage), says(LAST, usage=usage))(body)

    result, _ = run(answer, tokens=6000)
    assert result.status == "tokens", f"expected the status tokens, came {result.status!r}"
    assert result.answer == LAST, f"expected the last word, came {result.answer!r}"
    assert sum(spent[:-1]) <= 4800, f"a fifth of 6000 is kept, but before it went {spent[:-1]}"
    assert sum(spent) <= 6000, f"given 6000 tokens: {spent} were spent"


def test_a_nested_run_leaves_what_its_parent_keeps() -> None:
    """Task 1: a nested run takes its last word from its own part, never from its parent's."""
    parent = meter(turns=3)
    script = unless_last(calls(SUM))
    child, bodies = run(script, spends=meter(parent, turns=9))
    assert len(bodies) == 2, f"of 3 turns, 2 are not kept: the nested run had {len(bodies)}"
    assert child.status == "turns", f"expected the status turns, came {child.status!r}"
    assert len(child.found) == 2, f"expected both sums to be kept, came {child.found}"
    result, bodies = run(script, spends=parent)
    assert len(bodies) == 1, f"expected one request for the parent, came {len(bodies)}"
    assert result.answer == LAST, f"expected the parent's last word, came {result.answer!r}"
    left = made("tokens_left", meter(meter(tokens=1000), tokens=1000).tokens_left, last=True)
    assert left == 800, f"of a parent with 1000 tokens, a nested last word may have 800: {left}"


# Task 2: the last word

SLOW_DOWN = fails(429, "slow down", Retry_After="60")
DEAR = {"prompt_tokens": 500, "completion_tokens": 10}


@pytest.mark.parametrize(
    ("limits", "answer"),
    [
        ({"turns": 6}, calls(SUM)),
        ({"tool_calls": 5}, calls(SUM)),
        ({"tokens": 2000}, calls(SUM, usage=DEAR)),
        ({"seconds": 20}, SLOW_DOWN),
    ],
    ids=["turns", "tool_calls", "tokens", "seconds"],
)
def test_B3_a_spent_budget_still_gives_an_answer(limits: dict[str, int], answer: Raw) -> None:
    """Task 2: whichever limit is reached, the model is asked once more what it has found."""
    limit = next(iter(limits))
    result, bodies = run(calls(SUM), unless_last(answer), **limits)
    assert result.status == limit, f"expected the status {limit}, came {result.status!r}"
    assert result.answer == LAST, f"{limit} spent: expected the last word, came {result.answer!r}"
    assert limit.replace("_", " ") in result.reason, (
        f"expected the limit in the reason, came {result.reason!r}"
    )
    assert result.found, f"expected what the tool gave, came {result.found}"
    asked = bodies[-1]["messages"][-1]
    assert asked["role"] == "user", f"expected to be told that this is the end, came {asked}"
    assert asked["content"] != HELLO[0]["content"], f"came the request again: {asked}"


def test_only_the_last_request_may_call_nothing() -> None:
    """Task 2: the last request carries the tools, and `tool_choice` none; no other has it."""
    _, bodies = run(unless_last(calls(SUM)), turns=3)
    choices = [body.get("tool_choice") for body in bodies]
    assert choices == [None, None, "none"], f"expected none in the last alone, came {choices}"
    tools = [body.get("tools") for body in bodies]
    assert tools[0], "expected the tools in the first request"
    assert tools[2] == tools[0], f"expected the same tools in the last, came {tools[2]}"


def test_without_tools_there_is_nothing_to_choose() -> None:
    """Task 2: a run without tools has neither `tools` nor `tool_choice` in its last request."""
    result, bodies = run(SLOW_DOWN, says(LAST), tools=[])
    assert result.status == "seconds", f"expected the status seconds, came {result.status!r}"
    assert result.answer == LAST, f"expected the last word, came {result.answer!r}"
    keys = {"tools", "tool_choice"} & bodies[-1].keys()
    assert not keys, f"expected none of them in the last request, came {keys}"


def test_calls_in_the_last_reply_are_not_run() -> None:
    """Task 2: whatever the last reply calls, nothing is run any more; its text is the answer."""
    tool, gave = adder()
    result, bodies = run(calls(SUM, SUM, text="Half of it."), tools=[tool], turns=3)
    assert len(bodies) == 3, f"given 3 turns: the endpoint had {len(bodies)} requests"
    assert gave == [5] * 4, f"given 2 calls in each of 3 replies: expected 4 to run, came {gave}"
    assert result.status == "turns", f"expected the status turns, came {result.status!r}"
    assert result.answer == "Half of it.", f"expected its text, came {result.answer!r}"


def test_L17_every_call_has_its_reply_before_the_last_request() -> None:
    """Task 2: calls for which no budget was left are answered before the model is asked again."""
    result, bodies = run(calls(SUM, SUM, SUM), unless_last(calls(SUM)), tool_calls=1)
    assert result.answer == LAST, f"expected the last word, came {result.answer!r}"
    said = [m["content"] for m in bodies[-1]["messages"] if m["role"] == "tool"]
    assert len(said) == 3, f"given 3 calls: expected 3 replies in the last request, came {said}"
    assert said[0] == "5", f"expected the first to be run, came {said[0]!r}"


def test_long_results_are_shortened_to_fit() -> None:
    """Task 2: where the conversation is too long for what is left, results are cut, not dropped."""
    text = " ".join(f"word{i}" for i in range(2000))

    def read() -> str:
        """Read a long page."""
        return text

    estimate = need("agent.tokens", "estimate")
    cheap = {"prompt_tokens": 100, "completion_tokens": 10}
    dear = {"prompt_tokens": 2150, "completion_tokens": 100}
    script = calls(("read", {}), usage=cheap), unless_last(calls(("read", {}), usage=dear))
    result, bodies = run(*script, tools=[need("agent.tools", "make_tool")(read)], tokens=3000)
    assert result.status == "tokens", f"expected the status tokens, came {result.status!r}"
    assert result.answer == LAST, f"640 tokens were left, and yet came {result.answer!r}"
    sent = [m["content"] for m in bodies[-1]["messages"] if m["role"] == "tool"]
    kept = result.found[0]["text"]
    assert len(sent) == 2, f"expected both results in the last request, came {sent}"
    assert sent[0][:40] == text[:40], f"expected its beginning, came {sent[0][:40]!r}"
    assert len(sent[0]) < len(kept), f"{len(sent[0])} of {len(kept)} characters were sent"
    size = sum(estimate(message["content"]) for message in bodies[-1]["messages"])
    room = bodies[-1]["max_tokens"]
    assert size + room <= 640, f"of 640 tokens left, {size} were sent, {room} are for the reply"
    assert room >= 100, f"expected room for a reply, came {room} tokens"


def test_B7_the_last_request_is_inside_the_seconds() -> None:
    """Task 2: where the endpoint hangs to the end, the run is back in its seconds all the same."""
    hangs, began = replace(says("At last."), wait=1.8), time.monotonic()
    result, _ = run(calls(SUM), hangs, seconds=0.5)
    took = time.monotonic() - began
    assert result.status == "seconds", f"expected the status seconds, came {result.status!r}"
    assert took < 1.6, f"given 0.5 s: back after {took:.2f} s"
    assert result.answer == "", f"expected no answer, came {result.answer!r}"


# Task 3: what was found


def test_the_result_says_why_and_what() -> None:
    """Task 3: `reason` and `found` follow `answer`; a run that is done has no reason."""
    names = [field.name for field in fields(need("agent.runner", "Result"))]
    wanted = ["status", "answer", "reason", "found"]
    assert names[:4] == wanted, f"expected the fields {wanted} first, came {names}"
    result, _ = run(calls(SUM), says("It is 5."))
    assert result.status == "done", f"expected done, came {result.status!r}"
    assert result.reason == "", f"expected no reason, came {result.reason!r}"
    wanted = {"name": "add", "arguments": '{"a": 2, "b": 3}', "text": "5"}
    assert list(result.found) == [wanted], f"expected {wanted}, came {result.found}"


def test_what_failed_was_not_found() -> None:
    """Task 3: `found` holds the results of calls that went well, in order, and no others."""

    def divide(a: int, b: int) -> float:
        """Divide two numbers."""
        return a / b

    wrong = ("divide", {"a": 1, "b": 0}), ("divide", {"a": "x"}), ("multiply", {"a": 1})
    good = ("divide", {"a": 1, "b": 2}), ("divide", {"a": 3, "b": 2})
    tools = [need("agent.tools", "make_tool")(divide)]
    result, _ = run(calls(*wrong, *good), says("So much."), tools=tools)
    texts = [one["text"] for one in result.found]
    assert texts == ["0.5", "1.5"], f"given 3 bad calls and 2 good ones: found {texts}"


def test_B3_an_endpoint_that_fails_keeps_what_was_found() -> None:
    """Task 3: an EndpointError in the middle is the status `endpoint`, and nothing is lost."""
    result, bodies = run(calls(SUM), fails(400, "no such model"))
    assert result.status == "endpoint", f"expected the status endpoint, came {result.status!r}"
    assert "no such model" in result.reason, f"expected why, came {result.reason!r}"
    assert [one["text"] for one in result.found] == ["5"], f"expected the sum, {result.found}"
    assert len(bodies) == 2, f"expected no last request there, came {len(bodies)} in all"
    assert result.answer == "", f"expected no answer, came {result.answer!r}"


@pytest.mark.parametrize("last", [fails(400, "no"), SLOW_DOWN, says("")], ids=["400", "429", ""])
def test_B3_without_a_last_word_what_was_found_is_left(last: Raw) -> None:
    """Task 3: if the last request brings nothing, the limit stays the status, and found stays."""
    result, _ = run(unless_last(calls(SUM), last), turns=3)
    assert result.status == "turns", f"expected the status turns, came {result.status!r}"
    assert result.answer == "", f"expected no answer, came {result.answer!r}"
    assert len(result.found) == 2, f"expected both sums, came {result.found}"


# Task 4: the command

CARD = """\
name: word-counter
description: Counts words for a test, and does nothing else at all.
examples: [count these words, how many words, zähle die wörter]
prompt: |
  You count words.
tools: [count]
budget: {turns: 4, tool_calls: 3, tokens: 3000, seconds: 60}
"""
TOOL = '''\
def count(text: str) -> str:
    """Count the words."""
    return f"{len(text.split())} words"
'''
COUNT = ("count", {"text": "one two"})


def tell(tmp_path: Path, *script: Answer, words: Any = ()) -> Any:
    """`run` of this card against this script."""
    (tmp_path / "word-counter.card.yaml").write_text(CARD, encoding="utf-8")
    (tmp_path / "tools").mkdir()
    (tmp_path / "tools" / "word_counter.py").write_text(TOOL, encoding="utf-8")
    with endpoint_of(*script) as endpoint:
        env = {"TINY_BASE_URL": endpoint.url, "TINY_EMBED_MODEL": "m", "TINY_CHAT_MODEL": "m"}
        return command("run", "word-counter", "--registry", tmp_path, *words, "Go.", env=env)


def test_the_command_prints_the_last_word(tmp_path: Path) -> None:
    """Task 4: with a spent budget: the last word on stdout, the limit on stderr, exit code 3."""
    words = ["--json", "--budget", "turns=2"]
    done = tell(tmp_path, unless_last(calls(COUNT)), words=words)
    assert done.returncode == 3, f"expected exit code 3, got {done.returncode}: {done.stderr}"
    shown = json.loads(done.stdout)
    got = shown["status"], shown["answer"]
    assert got == ("turns", LAST), f"expected turns and the last word, came {got}"
    assert "turns" in shown.get("reason", ""), f"expected the reason, came {shown}"
    found = [one["text"] for one in shown.get("found", [])]
    assert found == ["2 words"], f"expected what was found, came {shown}"
    ended = [line for line in done.stderr.splitlines() if "ended" in line]
    assert len(ended) == 1, f"expected a line about the end, came {done.stderr!r}"
    assert shown["reason"] in ended[0], f"expected the reason on stderr, came {ended}"


def test_the_command_prints_what_was_found(tmp_path: Path) -> None:
    """Task 4: without an answer, stdout has a line for each result; a failed endpoint is exit 4."""
    done = tell(tmp_path, calls(COUNT), fails(400, "no such model"))
    assert done.returncode == 4, f"expected exit code 4, got {done.returncode}: {done.stderr}"
    wanted = 'count({"text": "one two"}): 2 words\n'
    assert done.stdout == wanted, f"expected {wanted!r}, came {done.stdout!r}"
    assert "no such model" in done.stderr, f"expected why on stderr, came {done.stderr!r}"
    assert "Traceback" not in done.stderr, f"came {done.stderr}"
