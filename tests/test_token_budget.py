"""Stage 21: tokens, estimated before a request and counted after it."""

import json
import random
import re
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest

from helpers import command, need
from scripted import Raw, Scripted, calls, fails, says

Answer = Callable[[dict[str, Any]], Raw]
WORDS = ["the", "budget", "of", "a", "run", "is", "asked", "before", "each", "request"]
BEGIN = [{"role": "system", "content": "You search."}, {"role": "user", "content": "Find it."}]


def prose(tokens: int) -> str:
    """English of about so many tokens."""
    return " ".join(WORDS[i % len(WORDS)] for i in range(tokens))


def tokens_of(text: str) -> int:
    return need("agent.tokens", "estimate")(text)


def budget(**limits: Any) -> Any:
    """A budget that is large but for the limits given."""
    large = {"turns": 40, "tool_calls": 60, "tokens": 200_000, "seconds": 60}
    return need("agent.cards", "Budget")(**{**large, **limits})


def meter(*parents: Any, **limits: Any) -> Any:
    made = need("agent.budget", "Meter")(budget(**limits), *parents)
    if not hasattr(made, "tokens"):
        pytest.fail("Contract: a Meter has no tokens yet")
    return made


def spend(made: Any, said: tuple[int, int], sent: int, written: int) -> None:
    made.spend(need("agent.chat", "Usage")(*said), sent, written)


def ask(made: Any, tokens: int) -> Any:
    """The room that a request of so many tokens leaves, or the limit that refuses it."""
    try:
        return made.request(tokens)
    except need("agent.budget", "Spent") as spent:
        return spent.limit


class Run:
    """A run of an agent whose one tool gives `result`. `answer` makes a reply from a body."""

    def __init__(self, answer: Raw | Answer, result: str = "nothing", **how: Any) -> None:
        self.sent: list[dict[str, Any]] = []
        self.events: list[dict[str, Any]] = []
        begin = how.pop("begin", BEGIN)

        def look(word: str) -> str:
            """Look for a word."""
            return result

        def reply(request: httpx.Request) -> httpx.Response:
            self.sent.append(json.loads(request.content))
            if len(self.sent) > 60:
                pytest.fail("expected a limit that ends the run, came 60 requests and more")
            raw = answer if isinstance(answer, Raw) else answer(self.sent[-1])
            return httpx.Response(raw.status, content=raw.body)

        names = {"embed_url": "http://127.0.0.1:9/v1", "embed_key": "", "embed_model": "e"}
        names |= {"query_prefix": "", "passage_prefix": "", "chat_key": "", "chat_model": "m"}
        settings = need("agent.settings", "Settings")(**names, chat_url=names["embed_url"])
        chat = need("agent.chat", "Chat")(settings, httpx.MockTransport(reply))
        tools = [need("agent.tools", "make_tool")(look)]
        made = need("agent.runner", "Runner")(chat, tools, watch=self.events.append, **how)
        self.result = made.run(begin)

    @property
    def counted(self) -> list[int]:
        """The tokens of each request, by the texts of its messages alone."""
        return [count(body) for body in self.sent]


def count(body: dict[str, Any]) -> int:
    return sum(tokens_of(message["content"]) for message in body["messages"])


def used(given: int, made: int) -> dict[str, int]:
    return {"prompt_tokens": given, "completion_tokens": made, "total_tokens": given + made}


def looks(usage: Any) -> Raw:
    return calls(("look", {"word": "a"}), usage=usage)


# Task 1: asked before the request


def test_B5_a_request_that_would_not_fit_is_not_sent() -> None:
    """Task 1: with too few tokens left, the next request is not sent, and the run ends."""
    run = Run(looks(used(5_000, 960)), meter=meter(tokens=6_000))
    got = (len(run.sent), run.result.status, run.result.answer)
    wanted = (1, "tokens", "")
    assert got == wanted, f"given 6,000 tokens, 5,960 in a turn: expected {wanted}, came {got}"


def test_B5_a_first_request_that_is_too_large_is_not_sent() -> None:
    """Task 1: also the first request is estimated: nothing is sent, and no turn is counted."""
    begin = [{"role": "user", "content": prose(3_000)}]
    run = Run(says("Done."), meter=meter(tokens=2_000), begin=begin)
    got = (len(run.sent), run.result.status, run.result.requests)
    assert got == (0, "tokens", 0), f"given a request of 3,000 tokens, 2,000 allowed: came {got}"


def test_B5_the_definitions_of_tools_are_part_of_a_request() -> None:
    """Task 1: the estimate holds the tools too, which each request carries."""
    run = Run(says("Done."), meter=meter(tokens=60))
    got = (len(run.sent), run.result.status)
    assert got == (0, "tokens"), f"given a tool of about 70 tokens, 60 allowed: came {got}"


def test_a_meter_refuses_what_leaves_no_room_for_a_reply() -> None:
    """Task 1: with less than 16 tokens left for the reply, `request` raises and counts none."""
    made = meter(tokens=1_000)
    for tokens in (985, 1_000, 5_000):
        came = ask(made, tokens)
        assert came == "tokens", f"given 1,000 tokens and {tokens} to send: came {came}"
    assert made.turns == 0, f"given refused requests: expected 0 turns, came {made.turns}"
    came = ask(made, 100)
    assert isinstance(came, int), f"given 1,000 tokens and 100 to send: expected a number, {came}"
    assert 16 <= came <= 900, f"given 1,000 tokens and 100 to send: came room for {came}"
    assert made.turns == 1, f"given one request: expected 1 turn, came {made.turns}"


# Task 2: room for the reply


def test_each_request_says_how_long_the_reply_may_be() -> None:
    """Task 2: `max_tokens` is what the request leaves of the budget, and 4,096 at most."""
    made = meter(tokens=3_000)
    run = Run(lambda body: looks(used(count(body), 100)), result=prose(200), meter=made)
    assert len(run.sent) > 2, f"given 3,000 tokens: expected some requests, came {len(run.sent)}"
    spent = 0
    for body, sent in zip(run.sent, run.counted, strict=True):
        room = body.get("max_tokens")
        said = f"given 3,000 tokens, {spent} spent, {sent} in the request: came max_tokens {room}"
        assert isinstance(room, int), f"{said}, expected a number"
        assert 16 <= room <= 3_000 - spent - sent, said
        spent += sent + 100
    large = Run(says("Done."), meter=meter(tokens=100_000))
    came = large.sent[0].get("max_tokens")
    assert came == 4_096, f"given 100,000 tokens: expected max_tokens 4096, came {came}"


# Task 3: counted after it


def test_what_the_endpoint_says_is_counted() -> None:
    """Task 3: a request costs what the endpoint says, read and written."""
    made = meter()
    spend(made, (120, 30), sent=100, written=20)
    spend(made, (80, 10), sent=100, written=12)
    assert made.tokens == 240, f"given 120 + 30 and 80 + 10: expected 240, came {made.tokens}"


def test_an_endpoint_that_says_too_little_is_not_believed() -> None:
    """Task 3: each of both costs at least half of its estimate, rounded down."""
    made = meter()
    spend(made, (1, 900), sent=1_001, written=200)
    assert made.tokens == 1_400, f"given 1 of 1,001 read: expected 500 + 900, came {made.tokens}"
    spend(made, (1_000, 0), sent=1_000, written=201)
    assert made.tokens == 2_500, f"given 0 of 201 written: expected 1,100, came {made.tokens}"


def test_a_run_on_an_endpoint_that_says_too_little_ends() -> None:
    """Task 3: an endpoint that reports one token a turn gets at most twice the budget."""
    run = Run(looks(used(1, 1)), result=prose(500), meter=meter(tokens=12_000))
    assert run.result.status == "tokens", f"expected the status tokens, came {run.result.status}"
    total = sum(run.counted)
    assert total <= 24_000, f"given 12,000 tokens: expected 24,000 sent at most, came {total}"


WITHOUT = {
    "null": None,
    "no fields": {},
    "null fields": {"prompt_tokens": None, "completion_tokens": None},
    "half of it": {"prompt_tokens": 90, "completion_tokens": None},
    "text": "none",
    "below zero": {"prompt_tokens": -5_000, "completion_tokens": -1},
}


@pytest.mark.parametrize("usage", WITHOUT.values(), ids=WITHOUT)
def test_C27_without_usage_the_estimate_is_charged(usage: Any) -> None:
    """Task 3: where usage is missing, the estimates are what a request costs, and are marked."""
    made = meter(tokens=3_000)
    run = Run(looks(usage), result=prose(100), meter=made)
    assert run.result.status == "tokens", f"given the usage {usage}: came {run.result.status}"
    assert run.result.usage.estimated, f"given the usage {usage}: came {run.result.usage}"
    total = sum(run.counted)
    assert 1_000 < total <= 3_300, f"given 3,000 tokens, usage {usage}: came {total} sent"
    assert total <= made.tokens <= 3_300, f"given {total} sent: {made.tokens} were counted"


@pytest.mark.parametrize("text", ["中文字" * 300, "Привет, мир! " * 150, "größere Häuser " * 150])
def test_other_scripts_cost_what_the_endpoint_says(text: str) -> None:
    """Task 3: what is written is estimated as text, not as the escapes that JSON can make of it."""
    made, written = meter(), tokens_of(text)
    run = Run(says(text, used(100, written)), meter=made)
    assert run.result.status == "done", f"expected an answer, came {run.result}"
    most = 1.1 * (100 + written)
    said = f"given {text[:9]}…, which is {written} tokens: {made.tokens} were counted"
    assert 100 + written <= made.tokens <= most, f"{said}, expected at most {most:.0f}"


def test_a_nested_run_spends_its_parents_tokens() -> None:
    """Task 3: tokens count for each run above, and the run ends when one of them has none left."""
    top = meter(tokens=4_000)
    run = Run(lambda body: looks(used(500, 100)), meter=meter(meter(top)))
    assert run.result.status == "tokens", f"given 4,000 above: came {run.result.status}"
    spent = 600 * len(run.sent)
    assert top.tokens == spent, f"given {spent} spent below: {top.tokens} were counted above"
    assert spent <= 4_000 + 500, f"given 4,000 tokens above: came {spent}"


def test_no_run_spends_more_than_its_budget() -> None:
    """Task 3: on an endpoint that counts well and keeps to max_tokens, no run goes over."""
    draw = random.Random(21)
    for trial in range(8):
        most, size = draw.randint(400, 6_000), draw.randint(1, 3_000)
        spent = [0]

        def answer(body: dict[str, Any], spent: list[int] = spent) -> Raw:
            wrote = min(body.get("max_tokens", 10**6), draw.randint(1, 400))
            spent[0] += count(body) + wrote
            return looks(used(count(body), wrote))

        run = Run(answer, result=prose(size), meter=meter(tokens=most))
        given = f"trial {trial}: {most} tokens, results of {size}"
        assert spent[0] <= most, f"given {given}: came {spent[0]} in {len(run.sent)} requests"
        status = run.result.status
        assert status in ("tokens", "turns"), f"given {given}: came the status {status}"


# Task 4: a large result


def test_L21_a_result_of_2_MB_is_cut_before_it_is_sent() -> None:
    """Task 4: a result gets a quarter of the tokens left; the whole of it is in the event."""
    text, script = prose(400_000), [looks(used(50, 10)), says("Done.")]
    began = time.perf_counter()
    run = Run(lambda body: script.pop(0), result=text, meter=meter(tokens=20_000))
    seconds = time.perf_counter() - began
    assert run.result.status == "done", f"expected an answer, came {run.result.status}"
    told = run.sent[-1]["messages"][-1]["content"]
    size = tokens_of(told)
    assert size <= 5_000 + 50, f"given 20,000 tokens: expected 5,000 at most, came {size}"
    assert size >= 2_500, f"given 20,000 tokens: expected more than half of 5,000, came {size}"
    whole = [event["text"] for event in run.events if event["event"] == "call"]
    assert whole == [text], "expected the whole result in the event, it is not there"
    assert seconds < 5, f"expected no time for it, came {seconds:.1f} s"


def test_L21_what_is_cut_says_so() -> None:
    """Task 4: the beginning stays, and a last line says how many of how many characters it is."""
    for text in (prose(5_000), "中文字" * 3_000, "a\n" * 9_000, "x" * 50_000, "= " * 9_000):
        made = meter(tokens=2_000)
        came = made.cut(text)
        given = f"given 2,000 tokens and {len(text)} times {text[:6]!r}"
        kept, _, note = came.rpartition("\n")
        assert text.startswith(kept), f"{given}: expected its beginning, came {came[:60]!r}…"
        numbers = [int(number) for number in re.findall(r"\d+", note)]
        wanted = [len(kept), len(text)]
        assert numbers[:2] == wanted, f"{given}: expected {wanted} in the last line, came {note!r}"
        size = tokens_of(kept)
        assert 100 <= size <= 500, f"{given}: expected a quarter, 500, came {size} tokens"


def test_a_result_that_has_room_is_as_it_was() -> None:
    """Task 4: what fits is not touched."""
    made = meter(tokens=2_000)
    for text in ("", "a", prose(100), "größer\n\n", '{"a": [1, 2]}'):
        came = made.cut(text)
        assert came == text, f"given 2,000 tokens and {text!r}: came {came!r}"


def test_with_nothing_left_a_result_has_16_tokens() -> None:
    """Task 4: a result has room for 16 tokens, also where the budget has none."""
    made = meter(tokens=1_000)
    spend(made, (2_000, 0), 0, 0)
    kept = made.cut(prose(400)).rpartition("\n")[0]
    size = tokens_of(kept)
    assert 4 <= size <= 16, f"given a spent budget: expected 16 tokens at most, came {kept!r}"


# Task 5: an endpoint that cuts


def warned(run: Run) -> tuple[int, int]:
    """The count, and the number of events that warn."""
    events = [event for event in run.events if event["event"] == "warning" and event["text"]]
    return run.result.counts.get("truncated", -1), len(events)


def test_C35_an_endpoint_that_cuts_requests_is_named() -> None:
    """Task 5: a request of 9,000 tokens of which 2,050 were read is counted and warned of."""
    begin = [{"role": "user", "content": prose(9_000)}]
    run = Run(says("Done.", used(2_050, 5)), begin=begin, meter=meter())
    got = (run.result.status, *warned(run))
    assert got == ("done", 1, 1), f"given 2,050 of 9,000 tokens read: came {got}"
    (event,) = [event for event in run.events if event["event"] == "warning"]
    line = need("agent.runner", "log_line")(event)
    assert line, f"expected a line for people, came {line!r}"
    assert "2050" in line, f"expected what was read in the line, came {line!r}"


def test_C35_who_reads_all_is_not_warned_of() -> None:
    """Task 5: no warning for a full count, a small request, or an endpoint that does not count."""
    large, small = [{"role": "user", "content": prose(3_000)}], BEGIN
    for begin, usage in ((large, used(3_000, 5)), (large, used(2_000, 5)), (small, used(1, 5))):
        run = Run(says("Done.", usage), begin=begin, meter=meter())
        got = warned(run)
        assert got == (0, 0), f"given {usage} for {len(begin[-1]['content'])} characters: {got}"
    got = warned(Run(says("Done.", None), begin=large, meter=meter()))
    assert got == (0, 0), f"given no usage: expected no warning, came {got}"


# Task 6: what is shown


CARD = """\
name: finder
description: Finds a word for a test, and does nothing else.
examples:
  - find this word
  - where does it stand
  - wo steht das Wort
prompt: |
  You find.
tools:
  - name: look
    description: Looks for a word.
    parameters: {type: object, properties: {word: {type: string}}, required: [word]}
budget: {turns: 8, tool_calls: 8, tokens: 4000, seconds: 60}
"""


def test_the_log_line_says_what_is_spent(tmp_path: Path) -> None:
    """Task 6: `[runner] turn 2: 4 messages, 412 of 4000 tokens`, and exit code 3 with none left."""
    (tmp_path / "finder.card.yaml").write_text(CARD)
    script = [looks(used(400, 12)), says("Done."), fails(500)]
    with Scripted(*script) as endpoint:
        names = {"TINY_BASE_URL": endpoint.url, "TINY_EMBED_MODEL": "e", "TINY_CHAT_MODEL": "m"}
        words = ("run", "finder", "where is it?", "--registry", tmp_path)
        done = command(*words, env=names)
        none = command(*words, "--budget", "tokens=20", env=names)
    assert done.returncode == 0, f"expected exit code 0, got {done.returncode}: {done.stderr}"
    turns = [line for line in done.stderr.splitlines() if line.startswith("[runner] turn")]
    wanted = ["0 of 4000 tokens", "412 of 4000 tokens"]
    wanted = [f"[runner] turn {i + 1}: {2 * i + 2} messages, {wanted[i]}" for i in (0, 1)]
    assert turns == wanted, f"expected {wanted}, came {turns}"
    got = (none.returncode, len(endpoint.requests))
    assert got == (3, 2), f"given --budget tokens=20: expected exit 3, no request more, came {got}"
    assert "tokens" in none.stderr.splitlines()[-1], f"expected tokens last, came {none.stderr!r}"
