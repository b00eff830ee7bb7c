"""The loop against a real server and a real small model, whatever that answers.

With 135 million parameters it mostly answers nonsense: what is held here is that the loop neither
crashes nor spends more than its budget.
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from agent.budget import Meter
from agent.cards import Budget
from agent.chat import Chat
from agent.errors import EndpointError
from agent.runner import Result, Runner
from agent.settings import Settings
from agent.tools import Tool, make_tool
from workshop.measure import small_model

pytestmark = [
    pytest.mark.skipif(not small_model.is_there(), reason="no small model on this machine"),
    pytest.mark.xdist_group("real model"),
]
SECONDS = 60.0
STATUSES = {"done", "turns", "tool_calls", "tokens", "seconds", "ghosts", "empty_answer"}


def add(a: int, b: int) -> int:
    """Adds two whole numbers."""
    return a + b


@contextmanager
def chat(url: str) -> Iterator[Chat]:
    made = Chat(Settings("", "", "", "", "", url, "", "smollm2"))
    yield made
    if made.http:
        made.http.close()


def run(url: str, request: str, **limits: Any) -> tuple[Result, float]:
    budget = Budget(**{"turns": 3, "tool_calls": 3, "tokens": 1500, "seconds": SECONDS, **limits})
    began = time.monotonic()
    with chat(url) as model:
        made = Runner(model, [make_tool(add)], meter=Meter(budget))
        result = made.run([{"role": "user", "content": request}])
    return result, time.monotonic() - began


@pytest.fixture(scope="module")
def port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


@pytest.fixture(scope="module")
def url(port: int) -> Iterator[str]:
    """The server's address, given while it may still be loading."""
    words = [sys.executable, "-m", "workshop.measure.small_model", str(port)]
    env = {**os.environ, "OMP_WAIT_POLICY": "passive"}
    null = subprocess.DEVNULL
    with subprocess.Popen(words, stdin=null, stdout=null, stderr=null, env=env) as process:
        try:
            wait_for_port(port, process)
            yield f"http://127.0.0.1:{port}/v1"
        finally:
            process.kill()


def wait_for_port(port: int, process: subprocess.Popen[bytes]) -> None:
    ends = time.monotonic() + 120
    while time.monotonic() < ends:
        assert process.poll() is None, f"the server ended with {process.returncode}"
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.02)
    raise AssertionError("the server opened no port in 120 s")


def test_C23_a_server_that_is_loading_is_waited_for_and_the_budget_holds(url: str) -> None:
    result, seconds = run(url, "What is two and two?")
    assert result.status in STATUSES, result.reason
    assert result.requests <= 3
    assert seconds < SECONDS + 0.5


def test_a_request_for_a_tool_is_survived_whatever_is_answered(url: str) -> None:
    result, seconds = run(url, "Use the tool add to add 2 and 40. Then say the sum.")
    assert result.status in STATUSES, result.reason
    assert result.requests <= 3
    assert set(result.counts) >= {"ghost", "unparsable", "text_call"}
    assert seconds < SECONDS + 0.5


def test_a_call_that_the_server_forces_can_be_read_and_answered(url: str) -> None:
    tool: Tool = make_tool(add)
    asked = [{"role": "user", "content": "Add 2 and 40."}]
    with chat(url) as model:
        reply = model.ask(asked, [tool], SECONDS, max_tokens=64, tool_choice="required")
    assert reply.usage.input > 0
    assert not reply.usage.estimated
    assert all(call.name == "add" for call in reply.calls), reply.calls
    assert len({call.id for call in reply.calls}) == len(reply.calls)


def test_a_context_that_overflows_ends_the_run_with_the_servers_words(url: str) -> None:
    result, _ = run(url, "word " * 3000, tokens=30_000)
    assert result.status == "endpoint", result.status
    assert "context" in result.reason, result.reason


def test_the_seconds_hold_while_the_model_writes(url: str) -> None:
    result, seconds = run(url, "Count from one to a thousand, in words.", seconds=1.0)
    assert seconds < 1.0 + 0.5
    assert result.requests <= 3


def test_a_server_that_is_gone_is_an_error_with_its_address() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        gone = f"http://127.0.0.1:{free.getsockname()[1]}/v1"
    with chat(gone) as model, pytest.raises(EndpointError, match=r"127\.0\.0\.1"):
        model.ask([{"role": "user", "content": "hi"}])
