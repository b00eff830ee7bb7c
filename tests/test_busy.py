"""Stage 23: an endpoint that is busy is asked again, as long as attempts and seconds last."""

import json
import time
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest

from helpers import command, need
from scripted import Raw, Scripted, calls, fails, says

HELLO = [{"role": "user", "content": "Hello."}]
AT_ONCE = 3  # seconds: an end after this was none at once
GONE = "Fri, 31 Dec 1999 23:59:59 GMT"  # the date in RFC 9110, section 10.2.3


def made(what: str, make: Callable[..., Any], *given: Any, **named: Any) -> Any:
    """What `make` gives. A parameter that it does not have is the contract's business."""
    try:
        return make(*given, **named)
    except (TypeError, AttributeError) as error:
        pytest.fail(f"Contract: {what}: {type(error).__name__}: {error}")


def endpoint_of(*script: Raw) -> Scripted:
    """A scripted endpoint that keeps no connection open after an answer."""
    close = {"Connection": "close"}
    return Scripted(*(replace(one, headers={**one.headers, **close}) for one in script))


def chat(url: str) -> Any:
    names = {"TINY_BASE_URL": url, "TINY_EMBED_MODEL": "m", "TINY_CHAT_MODEL": "m"}
    settings = need("agent.settings", "read_settings")(Path(__file__).parent, names)
    return need("agent.chat", "Chat")(settings)


def ask(*script: Raw, seconds: float = 30) -> tuple[Any, list[Any], float]:
    """What one `ask` returns or raises, the requests that it took, and the seconds."""
    agent_error = need("agent.errors", "AgentError")
    with endpoint_of(*script) as endpoint:
        began = time.monotonic()
        try:
            came = made("ask", chat(endpoint.url).ask, HELLO, seconds=seconds)
        except agent_error as error:
            came = error
        return came, endpoint.requests, time.monotonic() - began


def text_of(came: Any) -> Any:
    return getattr(came, "text", came)


def late(came: Any) -> bool:
    return isinstance(came, need("agent.errors", "LateError"))


def run(*script: Raw, tools: Any = (), **limits: Any) -> tuple[Any, Any, list[Any]]:
    """A run: its result or the EndpointError that it raised, its meter, and the requests."""
    budget = {"turns": 8, "tool_calls": 16, "tokens": 30_000, "seconds": 60} | limits
    meter = need("agent.budget", "Meter")(need("agent.cards", "Budget")(**budget))
    given = [need("agent.tools", "make_tool")(function) for function in tools]
    with endpoint_of(*script) as endpoint:
        runner = need("agent.runner", "Runner")(chat(endpoint.url), given, meter=meter)
        try:
            came = runner.run(list(HELLO))
        except need("agent.errors", "EndpointError") as error:
            came = error
    return came, meter, endpoint.requests


# Task 1: what is asked again


@pytest.mark.parametrize("status", [429, 502, 503, 504])
def test_C23_a_busy_endpoint_is_asked_again(status: int) -> None:
    """Task 1: 429, 502, 503 and 504 are asked again, until something else comes."""
    busy = fails(status, "loading the model", Retry_After="0")
    came, requests, _ = ask(busy, busy, busy, says("Now I can."))
    assert text_of(came) == "Now I can.", f"given {status} three times: came back {came!r}"
    assert len(requests) == 4, f"expected 4 requests, came {len(requests)}"
    bodies = [one.body for one in requests]
    assert all(body == bodies[0] for body in bodies), f"expected one body, came {bodies}"


@pytest.mark.parametrize("status", [400, 401, 404, 422, 500])
def test_what_waiting_does_not_mend_is_not_asked_again(status: int) -> None:
    """Task 1: another status is an EndpointError after one request, whatever Retry-After says."""
    came, requests, _ = ask(fails(status, "no such model", Retry_After="0"), says("Hm."))
    wanted = need("agent.errors", "EndpointError")
    assert isinstance(came, wanted), f"given {status}: expected an EndpointError, came {came!r}"
    assert not late(came), f"given {status}: expected no LateError, came {came!r}"
    assert len(requests) == 1, f"given {status}: expected 1 request, came {len(requests)}"
    assert str(status) in str(came), f"expected {status} in the message, came {came}"


@pytest.mark.parametrize("code", [429, "429", 502, 503])
def test_C15_an_error_inside_a_success_counts(code: Any) -> None:
    """Task 1: a 200 that holds an error with such a code is busy too."""
    inside = {"error": {"code": code, "message": "slow down"}, "choices": None}
    came, requests, _ = ask(
        Raw(json.dumps(inside).encode(), headers={"Retry-After": "0"}), says("Now I can.")
    )
    assert text_of(came) == "Now I can.", f"given 200 with {inside}: came back {came!r}"
    assert len(requests) == 2, f"expected 2 requests, came {len(requests)}"


@pytest.mark.parametrize("code", [400, "401", 500])
def test_C15_the_code_inside_is_the_status_that_is_told(code: Any) -> None:
    """Task 1: another code inside a 200 is an EndpointError that names it, after one request."""
    inside = {"error": {"code": code, "message": "the provider says no"}, "choices": None}
    came, requests, _ = ask(Raw(json.dumps(inside).encode()), says("Hm."))
    wanted = need("agent.errors", "EndpointError")
    assert isinstance(came, wanted), f"given 200 with {inside}: came back {came!r}"
    assert len(requests) == 1, f"given {inside}: expected 1 request, came {len(requests)}"
    said = str(came)
    assert str(code) in said, f"expected {code} in the message, came {said}"
    assert "the provider says no" in said, f"expected what the provider says, came {said}"
    assert "127.0.0.1" in said, f"expected the endpoint's address, came {said}"


@pytest.mark.parametrize("code", ["rate_limited", None, 42, {}, "４２９", 4290])
def test_C15_what_is_no_code_changes_nothing(code: Any) -> None:
    """Task 1: an inner code that is no number from 400 to 599 leaves the status as it came."""
    inside = json.dumps({"error": {"code": code, "message": "hm"}}).encode()
    came, requests, _ = ask(Raw(inside, status=429, headers={"Retry-After": "0"}), says("Fine."))
    assert text_of(came) == "Fine.", f"given 429 with the code {code!r}: came back {came!r}"
    came, requests, _ = ask(Raw(inside), says("Hm."))
    assert len(requests) == 1, f"given 200 with {code!r}: expected 1 request, came {len(requests)}"


def test_C19_a_page_of_a_proxy_is_busy_too() -> None:
    """Task 1: a 502 with a page in HTML is asked again; told are at most 200 characters of it."""
    page = b"<html><style>p {}</style><h1>Bad gateway</h1>" + b"<p>nginx</p>" * 800
    busy = Raw(page, 502, {"Content-Type": "text/html", "Retry-After": "0"})
    came, requests, _ = ask(*[busy] * 20, says("Done."))
    assert len(requests) > 1, f"given 502 twenty times: expected more than {len(requests)} requests"
    said = str(came)
    assert "502" in said, f"expected the status, came {said}"
    assert "Bad gateway" in said, f"expected what the page says, came {said}"
    assert len(said) < 400, f"expected a short message, came {len(said)} characters"


# Task 2: how often, and how long


def test_C23_eight_attempts_are_all() -> None:
    """Task 2: after 8 attempts, the last answer is an EndpointError, and not a LateError."""
    came, requests, _ = ask(*[fails(503, "loading the model", Retry_After="0")] * 20, says("Hm."))
    wanted = need("agent.errors", "EndpointError")
    assert isinstance(came, wanted), (
        f"given 503 twenty times: expected EndpointError, came {came!r}"
    )
    assert not late(came), f"there was time left, and yet came {came!r}"
    assert len(requests) == 8, f"given 503 twenty times: expected 8 requests, came {len(requests)}"
    said = str(came)
    assert "503" in said, f"expected the status in the message, came {said}"
    assert "loading the model" in said, f"expected what the endpoint says, came {said}"


def pause(given: str | None, attempt: int = 0) -> Any:
    headers = httpx.Headers({} if given is None else {"Retry-After": given})
    return made("pause_in", need("agent.chat", "pause_in"), headers, attempt)


@pytest.mark.parametrize(("given", "wanted"), [("0", 0), ("7", 7), ("120", 120), (GONE, 0)])
def test_C21_retry_after_is_seconds_or_a_date(given: str, wanted: float) -> None:
    """Task 2: `Retry-After` is seconds or a date; a date in the past is no pause."""
    for attempt in (0, 5):
        got = pause(given, attempt)
        assert got == wanted, f"given {given!r}, attempt {attempt}: expected {wanted}, came {got!r}"


@pytest.mark.parametrize("form", ["%a, %d %b %Y %H:%M:%S GMT", "%A, %d-%b-%y %H:%M:%S GMT"])
def test_C21_a_date_ahead_is_waited_for(form: str) -> None:
    """Task 2: a date is waited for until it comes, in the two forms that name their zone."""
    given = (datetime.now(UTC) + timedelta(seconds=40)).strftime(form)
    got = pause(given)
    assert isinstance(got, float), f"given {given!r}: expected seconds, came {got!r}"
    assert 30 < got <= 40, f"given {given!r}, 40 s ahead: came {got}"


@pytest.mark.parametrize(
    "given",
    [None, "", "soon", "-5", "nan", "inf", "1e3", "0x10", "Mon, 99 Foo 2026 99:99:99 GMT"],
)
def test_C21_without_a_time_the_pause_doubles(given: str | None) -> None:
    """Task 2: without `Retry-After`, or with another word: 0.25 s, doubled each time, at most 8."""
    got = [pause(given, attempt) for attempt in range(7)]
    wanted = [0.25, 0.5, 1, 2, 4, 8, 8]
    assert got == wanted, f"given {given!r}: expected {wanted}, came {got}"


def test_the_pause_is_waited() -> None:
    """Task 2: between two attempts lies the pause."""
    came, requests, _ = ask(fails(503), says("Now I can."))
    assert text_of(came) == "Now I can.", f"given 503 once: came back {came!r}"
    lay = requests[1].at - requests[0].at
    assert 0.24 < lay < AT_ONCE, f"expected 0.25 s between two attempts, there were {lay:.2f}"


# Task 3: inside the seconds


def ahead(seconds: float) -> str:
    return (datetime.now(UTC) + timedelta(seconds=seconds)).strftime("%a, %d %b %Y %H:%M:%S GMT")


@pytest.mark.parametrize("given", ["60", "date"])
def test_B7_a_pause_that_is_too_long_is_late_at_once(given: str) -> None:
    """Task 3: `Retry-After: 60` with 20 s left is a LateError now, not after 20 s."""
    busy = fails(429, "slow down", Retry_After=ahead(60) if given == "date" else given)
    came, requests, took = ask(busy, says("Hm."), seconds=20)
    assert late(came), f"given a pause of 60 s and 20 s: expected a LateError, came {came!r}"
    assert took < AT_ONCE, f"expected it at once, it came after {took:.2f} s"
    assert len(requests) == 1, f"expected 1 request, came {len(requests)}"
    said = str(came)
    assert "429" in said, f"expected the status in the message, came {said}"
    assert "slow down" in said, f"expected what the endpoint says, came {said}"


def test_B7_an_endpoint_that_is_busy_for_ever_is_late() -> None:
    """Task 3: attempts and pauses together are held to `seconds`."""
    came, requests, took = ask(*[fails(503)] * 20, says("Hm."), seconds=0.2)
    assert late(came), f"given 503 for ever and 0.2 s: expected a LateError, came {came!r}"
    assert took < AT_ONCE, f"given 0.2 s: it came after {took:.2f} s"
    assert len(requests) == 1, f"given 0.2 s and a pause of 0.25: {len(requests)} requests"


def test_B7_an_attempt_has_the_time_that_is_left() -> None:
    """Task 3: the deadline is one for all attempts, not a new one for each."""
    busy, hangs = fails(503, Retry_After="0"), replace(says("At last."), wait=1.5)
    came, _, _ = ask(busy, hangs, seconds=0.2)
    assert late(came), f"given 503, then one that hangs, and 0.2 s: came back {came!r}"


# Task 4: the run


def test_C23_attempts_are_no_turns() -> None:
    """Task 4: however often a request is sent, it is one turn, one request and one event."""
    busy = fails(503, Retry_After="0")
    result, meter, requests = run(busy, busy, busy, says("Now I can."), turns=2)
    answer = getattr(result, "answer", result)
    assert answer == "Now I can.", f"given 503 three times and 2 turns: came {result!r}"
    assert len(requests) == 4, f"expected 4 requests at the endpoint, came {len(requests)}"
    got = result.status, result.requests, meter.turns
    assert got == ("done", 1, 1), f"expected done, 1 request and 1 turn, came {got}"


def test_C23_an_endpoint_may_be_busy_between_two_turns() -> None:
    """Task 4: a busy answer in the middle of a run costs nothing but time."""

    def add(a: int, b: int) -> int:
        """Add two numbers."""
        return a + b

    busy = fails(429, Retry_After="0")
    script = calls(("add", {"a": 1, "b": 2})), busy, busy, says("It is 3.")
    result, meter, _ = run(*script, tools=[add])
    answer = getattr(result, "answer", result)
    assert answer == "It is 3.", f"given 429 twice between two turns: came {result!r}"
    assert meter.turns == 2, f"expected 2 turns, came {meter.turns}"


@pytest.mark.parametrize("headers", [{}, {"Retry_After": "60"}])
def test_B7_a_busy_endpoint_spends_the_seconds(headers: dict[str, str]) -> None:
    """Task 4: where no time is left for the pause, the run ends with status `seconds`."""
    began = time.monotonic()
    result, _, requests = run(*[fails(503, **headers)] * 20, says("Hm."), seconds=0.2)
    took = time.monotonic() - began
    status = getattr(result, "status", result)
    assert status == "seconds", f"given 503 for ever and 0.2 s: came {result!r}"
    assert took < AT_ONCE, f"given 0.2 s: back after {took:.2f} s"
    assert len(requests) <= 2, f"expected a request or two, came {len(requests)}"


CARD = """\
name: word-counter
description: Counts words for a test, and does nothing else at all.
examples: [count these words, how many words, zähle die wörter]
prompt: |
  You count words.
tools: [{name: count, description: Count words., parameters: {type: object, properties: {}}}]
budget: {turns: 3, tool_calls: 3, tokens: 3000, seconds: 60}
"""


def test_the_command_answers_when_the_endpoint_can(tmp_path: Path) -> None:
    """Task 4: `run` prints one line for the turn, however often it was asked, and the answer."""
    (tmp_path / "word-counter.card.yaml").write_text(CARD, encoding="utf-8")
    busy = fails(503, Retry_After="0")
    with endpoint_of(busy, busy, says("Three words.")) as endpoint:
        env = {"TINY_BASE_URL": endpoint.url, "TINY_EMBED_MODEL": "m", "TINY_CHAT_MODEL": "m"}
        done = command("run", "word-counter", "--registry", tmp_path, "How many?", env=env)
    assert done.returncode == 0, f"expected exit code 0, got {done.returncode}: {done.stderr}"
    assert done.stdout == "Three words.\n", f"expected the answer, came {done.stdout!r}"
    turns = [line for line in done.stderr.splitlines() if "turn" in line]
    assert len(turns) == 1, f"expected one line for the turn, came {done.stderr!r}"
