"""A budget holds, whatever the model, the tools and the endpoint do: counted by the endpoint."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from agent.budget import Meter
from agent.cards import Budget
from agent.chat import Chat
from agent.runner import Result, Runner
from agent.settings import Settings
from agent.tools import Tool, load_tool
from workshop.tests.modules import load

LATE = 0.5  # seconds over the budget, at most
TOOLS = '''
import os, subprocess, time

def add(a: int, b: int) -> int:
    """Adds two whole numbers."""
    return a + b

def hang() -> str:
    """Never comes back."""
    subprocess.Popen(["sleep", "60"])
    time.sleep(60)
    return "back"

def flood() -> str:
    """Says very much."""
    return "word " * 400_000

def die() -> str:
    """Ends its process."""
    os._exit(3)
'''


scripted = load("tests/scripted.py")
says, calls, fails, Raw = scripted.says, scripted.calls, scripted.fails, scripted.Raw
ADD = ("add", {"a": 1, "b": 2})
LIES = {"prompt_tokens": 0, "completion_tokens": 0}
BOAST = {"prompt_tokens": 10**9, "completion_tokens": 10**9}


@dataclass(frozen=True)
class Case:
    """An endpoint's script, the limits, and the statuses that may come of it."""

    script: tuple[Any, ...]
    limits: dict[str, Any]
    ends: tuple[str, ...] = field(default=())


def slow(answer: Any, **how: float) -> Any:
    return Raw(answer.body, **how)


CASES = {
    "endless calls": Case((calls(ADD),), {"turns": 4}, ("turns",)),
    "one turn": Case((calls(ADD),), {"turns": 1}, ("turns",)),
    "many calls a turn": Case((calls(*[ADD] * 50),), {"tool_calls": 7}, ("tool_calls",)),
    "ghosts": Case((calls(("gone", {})),), {"turns": 5}, ("turns", "ghosts")),
    "many ghosts a turn": Case((calls(*[("gone", {})] * 40),), {"turns": 5}, ("ghosts",)),
    "broken arguments": Case((calls(("add", '{"a": ')),), {"turns": 3}, ("turns",)),
    "empty answers": Case((says(""),), {"turns": 4}, ("empty_answer",)),
    "usage that is never told": Case(
        (calls(ADD, text="word " * 900, usage=None),), {"tokens": 5000}, ("tokens",)
    ),
    "usage of nothing": Case(
        (calls(ADD, text="word " * 900, usage=LIES),), {"tokens": 5000}, ("tokens",)
    ),
    "usage beyond all measure": Case((calls(ADD, usage=BOAST),), {"tokens": 5000}, ("tokens",)),
    "a flood from a tool": Case((calls(("flood", {})),), {"tokens": 9000}, ("tokens",)),
    "a tool that ends its process": Case((calls(("die", {})),), {"turns": 3}, ("turns",)),
    "a tool that hangs": Case(
        (calls(("hang", {})), says("so far")), {"seconds": 1.0}, ("seconds",)
    ),
    "hanging tools, many": Case((calls(*[("hang", {})] * 9),), {"seconds": 1.0}, ("seconds",)),
    "a drip": Case((slow(says("hello"), drip=0.1),), {"seconds": 1.0}, ("seconds",)),
    "a hang": Case((slow(says("hello"), wait=60),), {"seconds": 1.0}, ("seconds",)),
    "503 for ever": Case((fails(503),), {"seconds": 1.0}, ("seconds", "endpoint")),
    "503 with no wait": Case((fails(503, Retry_After="0"),), {"seconds": 5.0}, ("endpoint",)),
    "wait a minute": Case((fails(429, Retry_After="60"),), {"seconds": 1.0}, ("seconds",)),
    "wait for ever": Case((fails(429, Retry_After="999999"),), {"seconds": 1.0}, ("seconds",)),
    "a wait in the middle": Case(
        (calls(ADD), fails(429, Retry_After="60")), {"seconds": 1.0}, ("seconds",)
    ),
    "slow turns": Case((slow(calls(ADD), wait=0.3),), {"seconds": 1.0}, ("seconds",)),
    "an error in the middle": Case((calls(ADD), fails(400)), {}, ("endpoint",)),
}


@pytest.fixture
def tools(tmp_path: Path) -> list[Tool]:
    path = tmp_path / "things.py"
    path.write_text(TOOLS, encoding="utf-8")
    return [load_tool(path, name) for name in ("add", "hang", "flood", "die")]


def run(
    case: Case, tools: list[Tool], parent: Meter | None = None
) -> tuple[Result, Any, float, Budget]:
    limits = {"turns": 12, "tool_calls": 20, "tokens": 30_000, "seconds": 20.0, **case.limits}
    budget = Budget(**limits)
    with scripted.Scripted(*case.script) as endpoint:
        chat = Chat(Settings("", "", "", "", "", endpoint.url, "", "m"))
        began = time.monotonic()
        runner = Runner(chat, tools, meter=Meter(budget, parent))
        result = runner.run([{"role": "user", "content": "do it"}])
        took = time.monotonic() - began
        if chat.http:
            chat.http.close()
        return result, endpoint, took, budget


@pytest.mark.parametrize("name", CASES)
def test_a_budget_holds(name: str, tools: list[Tool]) -> None:
    case = CASES[name]
    result, endpoint, took, budget = run(case, tools)
    assert result.status in case.ends
    assert len(endpoint.answered) <= budget.turns
    assert len(endpoint.requests) <= 8 * budget.turns
    assert took <= budget.seconds + LATE
    ran = [one for one in result.found if one["name"] == "add"]
    assert len(ran) <= budget.tool_calls
    for seen in endpoint.requests:
        check_pairs(seen.body["messages"])


def check_pairs(messages: list[dict[str, Any]]) -> None:
    """L17: each call has one reply, in order, before anything else is said."""
    waiting: list[str] = []
    for message in messages:
        if message["role"] == "tool":
            assert message["tool_call_id"] == waiting.pop(0)
        else:
            assert not waiting
            waiting = [call["id"] for call in message.get("tool_calls", [])]
    assert not waiting


@pytest.mark.parametrize("name", ["endless calls", "a flood from a tool", "a tool that hangs"])
def test_what_was_found_is_given_back(name: str, tools: list[Tool]) -> None:
    result, _, _, _ = run(CASES[name], tools)
    assert result.found or result.answer


def test_runs_in_a_run_never_spend_more_than_the_outer_budget(tools: list[Tool]) -> None:
    outer = Meter(Budget(turns=5, tool_calls=6, tokens=30_000, seconds=10.0))
    answered = 0
    for _ in range(4):
        _, endpoint, _, _ = run(Case((calls(ADD),), {"turns": 3}), tools, outer)
        answered += len(endpoint.answered)
    assert answered <= 4, "the last of the outer run's five turns is its own"
    assert outer.tool_calls <= 6
    assert outer.request(100, last=True) > 0, "its last word is still there"
