"""Stage 20: limits on requests and tool calls, asked before each."""

import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest

from helpers import Done, command, need
from scripted import Raw, Scripted, calls, fails, says

Script = Raw | Callable[[dict[str, Any]], Raw]
ENDLESS = calls(("add", {"a": 1}))


def budget(**limits: Any) -> Any:
    """A budget that is large but for the limits given."""
    large = {"turns": 30, "tool_calls": 60, "tokens": 200_000, "seconds": 60}
    return need("agent.cards", "Budget")(**{**large, **limits})


def meter(*parents: Any, **limits: Any) -> Any:
    made = need("agent.budget", "Meter")
    return made(budget(**limits), *parents)


class Run:
    """A run on a script whose last reply repeats: what was sent, run and told, and the result."""

    def __init__(self, *script: Script, **how: Any) -> None:
        self.sent: list[list[dict[str, Any]]] = []
        self.ran: list[int] = []
        self.events: list[dict[str, Any]] = []

        def add(a: int) -> int:
            """Add one."""
            self.ran.append(a)
            return a + 1

        def answer(request: httpx.Request) -> httpx.Response:
            self.sent.append(json.loads(request.content)["messages"])
            if len(self.sent) > 60:
                pytest.fail("expected a limit that ends the run, came 60 requests and more")
            made = script[min(len(self.sent), len(script)) - 1]
            raw = made if isinstance(made, Raw) else made({})
            return httpx.Response(raw.status, content=raw.body)

        names = {"embed_url": "http://127.0.0.1:9/v1", "embed_key": "", "embed_model": "e"}
        names |= {"query_prefix": "", "passage_prefix": "", "chat_key": "", "chat_model": "m"}
        settings = need("agent.settings", "Settings")(**names, chat_url=names["embed_url"])
        chat = need("agent.chat", "Chat")(settings, httpx.MockTransport(answer))
        runner, tools = need("agent.runner", "Runner"), [need("agent.tools", "make_tool")(add)]
        try:
            made = runner(chat, tools, watch=self.events.append, **how)
        except TypeError as error:
            pytest.fail(f"Contract: Runner takes {', '.join(how)} by name ({error})")
        self.result = made.run([{"role": "user", "content": "1 and 1"}])

    @property
    def kinds(self) -> list[str]:
        return [event["kind"] for event in self.events if event["event"] == "call"]


def unanswered(messages: Any) -> list[str]:
    """The ids of calls that are not followed, in order, by one tool message each."""
    rest, bad = list(messages), []
    while rest:
        for call in rest.pop(0).get("tool_calls", []):
            told = rest.pop(0) if rest and rest[0]["role"] == "tool" else {}
            bad += [call["id"]] if told.get("tool_call_id") != call["id"] else []
    return bad


# Task 1: turns


@pytest.mark.parametrize("turns", [2, 3, 6])
def test_B1_never_one_request_more_than_the_limit(turns: int) -> None:
    """Task 1: a model that calls on and on gets as many requests as there are turns, exactly."""
    run = Run(ENDLESS, meter=meter(turns=turns))
    said = f"given {turns} turns and endless calls: came {len(run.sent)} requests"
    assert len(run.sent) == turns, f"{said}, expected {turns}"
    got = (run.result.status, run.result.requests)
    assert got == ("turns", turns), f"{said}; expected the status turns, came back {got}"


def test_B1_a_single_turn_is_one_request() -> None:
    """Task 1: with one turn, one request is sent and no other."""
    run = Run(ENDLESS, meter=meter(turns=1))
    assert len(run.sent) == 1, f"given one turn: expected one request, came {len(run.sent)}"
    assert run.result.status == "turns", f"expected the status turns, came {run.result.status}"


def test_an_answer_within_the_limit_is_done() -> None:
    """Task 1: a run that ends before its limit is done, as without one."""
    run = Run(ENDLESS, says("It is 2."), meter=meter(turns=3))
    got = (run.result.status, run.result.answer, run.result.requests, run.result.tool_calls)
    assert got == ("done", "It is 2.", 2, 1), f"given a call, an answer, 3 turns: came back {got}"


# Task 2: tool calls


def test_B1_no_tool_runs_more_often_than_the_limit() -> None:
    """Task 2: of five calls in one reply, two run where two are left."""
    asked = calls(*(("add", {"a": a}) for a in range(5)))
    run = Run(asked, meter=meter(tool_calls=2))
    assert run.ran == [0, 1], (
        f"given 5 calls and a limit of 2: expected 0, 1 to run, came {run.ran}"
    )
    assert run.result.status == "tool_calls", f"expected tool_calls, came {run.result.status}"
    wanted = ["ok", "ok", "not_run", "not_run", "not_run"]
    assert run.kinds == wanted, f"expected the kinds {wanted}, came {run.kinds}"


def test_L17_every_call_has_its_reply_also_where_the_budget_ends() -> None:
    """Task 2: a call that is not run is answered, so that no history holds half a pair."""
    asked = calls(*(("add", {"a": a}) for a in range(5)))
    run = Run(asked, meter=meter(tool_calls=2))
    for messages in (*run.sent, run.result.messages):
        bad = unanswered(messages)
        assert not bad, f"given 5 calls and a limit of 2: no reply to {bad} in {messages}"
    told = [message for message in run.result.messages if message["role"] == "tool"]
    assert len(told) >= 5, f"given 5 calls: expected 5 replies, came {told}"
    assert [one["content"] for one in told[:2]] == ["1", "2"], f"expected 1, 2 first, came {told}"
    assert all(one["content"] for one in told), f"expected words in each reply, came {told}"


def test_the_model_may_answer_after_its_last_call() -> None:
    """Task 2: a budget that is used up but not passed ends nothing."""
    run = Run(ENDLESS, ENDLESS, says("It is 2."), meter=meter(tool_calls=2))
    got = (run.result.status, run.result.answer, len(run.ran))
    assert got == ("done", "It is 2.", 2), f"given 2 calls and a limit of 2: came back {got}"


def test_what_cannot_be_run_costs_no_tool_call() -> None:
    """Task 2: a tool that is not there and arguments that cannot be read cost a turn alone."""
    wrong = calls(("subtract", {"a": 1}), ("add", '{"a": '))
    run = Run(wrong, wrong, ENDLESS, says("It is 2."), meter=meter(tool_calls=1))
    got = (run.result.status, len(run.ran))
    assert got == ("done", 1), f"given 4 calls of what is not there, 1 that is: came back {got}"


# Task 3: nothing is unlimited


def test_a_run_without_a_meter_has_a_limit() -> None:
    """Task 3: a Runner that is given no meter sends 8 requests at most, and runs 16 calls."""
    run = Run(ENDLESS)
    assert len(run.sent) == 8, f"given endless calls: expected 8 requests, came {len(run.sent)}"
    run = Run(calls(*(("add", {"a": a}) for a in range(20))))
    assert len(run.ran) == 16, f"given 20 calls in a reply: expected 16 to run, came {run.ran}"


def test_two_runs_share_no_default_meter() -> None:
    """Task 3: the meter of a run without one is its own."""
    first, second = Run(ENDLESS), Run(ENDLESS)
    got = (len(first.sent), len(second.sent))
    assert got == (8, 8), f"given two runs, one after the other: expected 8 requests, came {got}"


# Task 4: a run inside a run


def test_a_nested_run_spends_its_parents_turns() -> None:
    """Task 4: what a nested run sends counts for each run above it, and ends with theirs."""
    top = meter(turns=5)
    middle = meter(top)
    for _ in range(3):
        before = top.turns
        run = Run(ENDLESS, meter=meter(middle))
        spent = top.turns - before
        assert spent == len(run.sent), f"{len(run.sent)} requests were {spent} turns of the first"
        assert run.result.status == "turns", f"expected turns, came {run.result.status}"
    assert 0 < top.turns <= 5, f"given 5 turns for three nested runs: came {top.turns} requests"
    assert middle.turns == top.turns, f"came {middle.turns} turns between, {top.turns} above"


def test_a_nested_run_spends_its_parents_tool_calls() -> None:
    """Task 4: of a parent's three calls, a nested run may use what is left."""
    top = meter(tool_calls=3)
    first = Run(ENDLESS, says("It is 2."), meter=meter(top))
    second = Run(ENDLESS, meter=meter(top))
    got = (len(first.ran), len(second.ran), top.tool_calls)
    assert got == (1, 2, 3), f"given 3 calls above: expected 1, 2 and 3 in all, came {got}"
    assert second.result.status == "tool_calls", f"came the status {second.result.status}"


def test_a_nested_run_has_limits_of_its_own() -> None:
    """Task 4: a nested run stops at its own limit, and leaves the parent the rest."""
    top = meter(turns=20)
    run = Run(ENDLESS, meter=meter(top, turns=2))
    got = (len(run.sent), top.turns)
    assert got == (2, 2), f"given 2 turns below 20: expected 2 requests, came {got}"
    run = Run(says("Done."), meter=top)
    assert run.result.status == "done", f"expected the parent to go on, came {run.result.status}"


def test_limits_hold_for_any_script() -> None:
    """Task 4: on random scripts and limits, no level spends more than its own, no pair is split."""
    draw = random.Random(20)
    for trial in range(20):
        limits = [{"turns": draw.randint(1, 6), "tool_calls": draw.randint(1, 8)} for _ in "ab"]
        top = meter(**limits[0])
        for _ in range(2):
            own = meter(top, **limits[1])
            script = [
                calls(*[("add", {"a": 1})] * count) if (count := draw.randint(0, 4)) else says("2")
                for _ in range(6)
            ]
            run = Run(*script, meter=own)
            given = f"trial {trial}, {limits}"
            assert len(run.sent) == own.turns <= limits[1]["turns"], f"given {given}: {own.turns}"
            most = limits[1]["tool_calls"]
            assert len(run.ran) == own.tool_calls <= most, f"given {given}: {len(run.ran)} ran"
            bad = [one for one in (*run.sent, run.result.messages) if unanswered(one)]
            assert not bad, f"given {given}: a call without its reply in {bad[:1]}"
        got = (top.turns, top.tool_calls)
        within = got[0] <= limits[0]["turns"] and got[1] <= limits[0]["tool_calls"]
        assert within, f"given {limits[0]} for two nested runs: came {got}"


# Task 5: limits are lowered, never raised


def test_a_limit_can_be_lowered_and_not_raised() -> None:
    """Task 5: `lowered` takes the lower of both limits, and leaves the budget as it is."""
    lowered, first = need("agent.budget", "lowered"), budget(turns=8, tool_calls=10)
    came = lowered(first, [("turns", 2), ("tool_calls", 99), ("seconds", 1.5)])
    got = (came.turns, came.tool_calls, came.tokens, came.seconds)
    wanted = (2, 10, first.tokens, 1.5)
    assert got == wanted, f"given turns 2, tool_calls 99: expected {wanted}, came back {got}"
    assert first.turns == 8, f"expected the given budget as it was, came {first}"
    assert lowered(first, []) == first, "given no limits: expected the same budget"


# Task 6: the command


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
budget: {turns: 3, tool_calls: 8, tokens: 30000, seconds: 60}
"""


def adder(folder: Path, *words: str) -> tuple[Done, int]:
    """`run adder …` on endless calls: what it printed, and how many requests came."""
    (folder / "adder.card.yaml").write_text(CARD)
    with Scripted(*[ENDLESS] * 9, fails(500)) as endpoint:
        names = {"TINY_BASE_URL": endpoint.url, "TINY_EMBED_MODEL": "e", "TINY_CHAT_MODEL": "m"}
        done = command("run", "adder", "1 and 1", "--registry", folder, *words, env=names)
    return done, len(endpoint.requests)


def test_B1_a_spent_budget_is_exit_code_3(tmp_path: Path) -> None:
    """Task 6: a run has its card's budget, and says with exit code 3 that it is spent."""
    done, requests = adder(tmp_path)
    got = (done.returncode, requests)
    assert got == (3, 3), f"given a card with 3 turns: expected exit 3, 3 requests, came {got}"
    assert "turns" in done.stderr.splitlines()[-1], f"expected turns last, came {done.stderr!r}"


def test_the_command_lowers_limits(tmp_path: Path) -> None:
    """Task 6: `--budget KEY=N`, as often as you like, lowers a limit of the card."""
    words = ("--budget", "tool_calls=1", "--budget", "turns=99", "--json")
    done, requests = adder(tmp_path, *words)
    status = json.loads(done.stdout or "{}").get("status")
    assert status == "tool_calls", f"given {words}: came {status}, {done.stderr!r}"
    assert requests <= 3, f"given {words} and a card with 3 turns: came {requests} requests"


def test_a_limit_that_is_none_is_a_usage_error() -> None:
    """Task 6: a key that is not in a budget, and a number that is not above 0, exit with 2."""
    for given in ("turns", "coffee=3", "turns=0", "turns=-1", "turns=2.5", "seconds=nan"):
        done = command("run", "adder", "1 and 1", "--budget", given)
        known = "unrecognized" not in done.stderr
        got = (done.returncode, known and "--budget" in done.stderr)
        assert got == (2, True), f"given --budget {given}: expected exit 2, came {done.stderr!r}"
