"""Stage 22: a deadline for each request and for the whole run, whatever an endpoint does."""

import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import pytest

from helpers import command, need
from scripted import Raw, Scripted, calls, says

BODY = b'{"choices": [{"message": {"role": "assistant", "content": "Done at last."}}]}'
HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nX-Padding: " + b"." * 60
HEAD += b"\r\nContent-Length: %d\r\n\r\n" % len(BODY)
HELLO = [{"role": "user", "content": "Hello."}]
SOON = 0.08  # seconds of a request's deadline
SLOW = 1.8  # seconds that a slow endpoint takes
LATEST = 1.5  # seconds after which a deadline of 0.08 was none


@pytest.fixture(autouse=True, scope="module")
def warm() -> None:
    """A first client takes longer than others, for all that it imports."""
    httpx.Client().close()


def made(what: str, make: Callable[..., Any], *given: Any, **named: Any) -> Any:
    """What `make` gives. A parameter that it does not have is the contract's business."""
    try:
        return make(*given, **named)
    except (TypeError, AttributeError) as error:
        pytest.fail(f"Contract: {what}: {type(error).__name__}: {error}")


def chat(url: str, transport: Any = None, make: Any = None) -> Any:
    """A Chat for this address."""
    names = {"TINY_BASE_URL": url, "TINY_EMBED_MODEL": "m", "TINY_CHAT_MODEL": "m"}
    settings = need("agent.settings", "read_settings")(Path(__file__).parent, names)
    return (make or need("agent.chat", "Chat"))(settings, transport)


def meter(parent: Any = None, **limits: Any) -> Any:
    budget = {"turns": 8, "tool_calls": 16, "tokens": 30_000, "seconds": 60} | limits
    more = {} if parent is None else {"parent": parent}
    lots = need("agent.cards", "Budget")(**budget)
    return made("Meter", need("agent.budget", "Meter"), lots, **more)


def endpoint_of(*script: Any) -> Scripted:
    """A scripted endpoint that keeps no connection open after an answer."""

    def closing(answer: Raw) -> Raw:
        return replace(answer, headers={**answer.headers, "Connection": "close"})

    def each(one: Any) -> Any:
        return closing(one) if isinstance(one, Raw) else lambda body: closing(one(body))

    return Scripted(*map(each, script))


def run(endpoint: Scripted, tools: Any, spends: Any) -> tuple[Any, float]:
    """A run on this meter: its result, and the seconds that it took."""
    made_tools = [need("agent.tools", "make_tool")(function) for function in tools]
    runner = need("agent.runner", "Runner")(chat(endpoint.url), made_tools, meter=spends)
    began = time.monotonic()
    result = made("run", runner.run, list(HELLO))
    return result, time.monotonic() - began


def failure_of(work: Callable[[], Any]) -> Any:
    """What the work raises, or else what it returns."""
    try:
        return work()
    except Exception as error:
        return error


def late(ask: Callable[[], Any]) -> tuple[Exception, float]:
    """The LateError of a request, and the seconds until it came."""
    error, began = need("agent.errors", "LateError"), time.monotonic()
    try:
        came = made("ask", ask)
    except error as raised:
        return raised, time.monotonic() - began
    except Exception as other:
        pytest.fail(f"expected a LateError, {type(other).__name__} came: {other}")
    took = time.monotonic() - began
    pytest.fail(f"expected a LateError, after {took:.2f} s came back {came!r}")


@contextmanager
def slow(first: float, at_once: int) -> Iterator[str]:
    """An endpoint whose right answer takes 1.8 s: it comes after `first` seconds, byte by byte
    from the byte `at_once` on."""
    stop, listener = threading.Event(), socket.create_server(("127.0.0.1", 0))
    whole = HEAD + BODY
    step = (SLOW - first) / max(1, len(whole) - at_once)

    def serve() -> None:
        with suppress(OSError):
            connection, _ = listener.accept()
            with connection:
                connection.recv(65536)
                if stop.wait(first):
                    return
                connection.sendall(whole[:at_once])
                for place in range(at_once, len(whole)):
                    if stop.wait(step):
                        return
                    connection.sendall(whole[place : place + 1])

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}/v1"
    finally:
        stop.set()
        listener.close()
        thread.join(1)


# Task 1: one request


@pytest.mark.parametrize(
    ("first", "at_once"),
    [(SLOW, len(HEAD + BODY)), (0, 0), (0, len(HEAD))],
    ids=["hangs", "drips in its headers", "drips in its body"],
)
def test_C37_a_request_ends_at_its_deadline(first: float, at_once: int) -> None:
    """Task 1: an answer that is not all there after `seconds` is a LateError, then and there."""
    with slow(first, at_once) as url:
        ask = chat(url).ask
        error, took = late(lambda: ask(HELLO, seconds=SOON))
    assert took < LATEST, f"given {SOON} s: expected an end soon after, it came after {took:.2f} s"
    assert isinstance(error, need("agent.errors", "EndpointError")), "a LateError is none of them"
    code = getattr(error, "exit_code", None)
    assert code == 4, f"expected exit code 4, came {code}"


def test_C37_a_late_request_is_not_sent_again() -> None:
    """Task 1: what was late is not tried a second time: it would be paid twice."""
    with endpoint_of(Raw(BODY, wait=SLOW)) as endpoint:
        ask = chat(endpoint.url).ask
        late(lambda: ask(HELLO, seconds=SOON))
        sent = len(endpoint.requests)
    assert sent <= 1, f"given one that hangs: expected 1 request, the endpoint had {sent}"


def test_C37_no_seconds_are_none() -> None:
    """Task 1: `seconds=0` is no time at all, and not no limit."""
    go = threading.Event()

    def hang(request: httpx.Request) -> httpx.Response:
        go.wait(SLOW)
        return httpx.Response(200, content=BODY)

    ask = chat("http://127.0.0.1:9/v1", httpx.MockTransport(hang)).ask
    try:
        _, took = late(lambda: ask(HELLO, seconds=0))
    finally:
        go.set()
    assert took < LATEST, f"given 0 s: expected an end at once, it came after {took:.2f} s"


def test_an_answer_without_end_is_refused_before_it_fills_the_memory() -> None:
    """Contract: an answer of over 524,288 bytes is an EndpointError, and is not read on."""
    with endpoint_of(Raw(b" " * 1_000_000 + says("x").body)) as endpoint:
        came = failure_of(lambda: chat(endpoint.url).ask(list(HELLO), seconds=30))
    error = need("agent.errors", "EndpointError")
    assert isinstance(came, error), f"given 1 MB: expected an EndpointError, came {str(came)[:200]}"


def test_a_packed_answer_is_refused_unopened() -> None:
    """Contract: an answer with a Content-Encoding is an EndpointError: 1 kB may be 1 GB."""
    with endpoint_of(Raw(says("x").body, headers={"Content-Encoding": "gzip"})) as endpoint:
        came = failure_of(lambda: chat(endpoint.url).ask(list(HELLO), seconds=30))
        asked = endpoint.requests[0].headers.get("accept-encoding")
    assert isinstance(came, need("agent.errors", "EndpointError")), f"came {str(came)[:200]}"
    assert asked == "identity", f"expected to ask for identity, asked for {asked}"


def test_an_answer_in_time_is_that_of_before() -> None:
    """Task 1: a deadline changes nothing about an answer that keeps it, slow or not."""
    body = Raw(BODY, drip=0.0002)
    with endpoint_of(body) as endpoint:
        ask = chat(endpoint.url).ask
        reply = made("ask", lambda: ask(HELLO, seconds=8, max_tokens=7))
        sent = endpoint.requests[0].body
    text = getattr(reply, "text", reply)
    assert text == "Done at last.", f"expected 'Done at last.', came back {text!r}"
    assert "seconds" not in sent, f"the request's body has a key `seconds`: {sent}"
    assert sent.get("max_tokens") == 7, f"expected max_tokens 7 in the body, it was {sent}"


# Task 2: what was given up


def test_C37_nothing_of_a_late_answer_is_used_again() -> None:
    """Task 2: the request after a late one gets its own answer, not the rest of the other's."""

    def answer(body: dict[str, Any]) -> Raw:
        said = body["messages"][-1]["content"]
        return Raw(BODY, drip=0.01) if said == "Hello." else says(f"to {said}")

    with endpoint_of(answer) as endpoint:
        one = chat(endpoint.url)
        late(lambda: one.ask(HELLO, seconds=SOON))
        two, three = ([{"role": "user", "content": said}] for said in ("two", "three"))
        replies = [made("ask", lambda m=m: one.ask(m, seconds=8)) for m in (two, three)]
    texts = [getattr(reply, "text", reply) for reply in replies]
    assert texts == ["to two", "to three"], f"after a late one came {texts}"


def within(seconds: float, work: Callable[[], Any], given_up: list[str]) -> Any:
    function = need("agent.deadline", "within")
    return function(seconds, work, lambda: given_up.append("given up"))


def test_within_gives_what_the_work_gives() -> None:
    """Task 2: `within` returns what the work returns and raises what it raises."""
    given_up: list[str] = []
    got = within(8, lambda: "made", given_up)
    assert got == "made", f"expected what the work returned, came back {got!r}"

    def fail() -> None:
        raise KeyError("the work's own")

    raised = failure_of(lambda: within(8, fail, given_up))
    assert isinstance(raised, KeyError), f"expected the work's KeyError, came {raised!r}"
    assert given_up == [], f"expected nothing to be given up, came {given_up}"


def test_within_gives_late_work_up_once() -> None:
    """Task 2: late work is a TimeoutError, at the deadline, and `give_up` is called once."""
    given_up: list[str] = []
    go, began = threading.Event(), time.monotonic()
    raised = failure_of(lambda: within(0.03, lambda: go.wait(SLOW), given_up))
    took = time.monotonic() - began
    go.set()
    assert isinstance(raised, TimeoutError), f"given 0.03 s: expected TimeoutError, came {raised!r}"
    assert took < LATEST, f"given 0.03 s: it ended after {took:.2f} s"
    assert given_up == ["given up"], f"expected one call of give_up, came {given_up}"


# Task 3: the budget's seconds


def test_the_time_of_a_meter_runs() -> None:
    """Task 3: `seconds_left` begins at the budget's seconds or below, and goes down."""
    one = meter(seconds=20)
    before = made("seconds_left", lambda: one.seconds_left())
    time.sleep(0.02)
    after = made("seconds_left", lambda: one.seconds_left())
    assert isinstance(before, float), f"expected a number of seconds, came {before!r}"
    assert 10 < before <= 20, f"given 20 s: expected nearly as many left, came {before}"
    gone = before - after
    assert 0.015 < gone < 5, f"after 0.02 s: {before} became {after}, {gone} less"


def test_a_request_without_time_is_refused_and_not_counted() -> None:
    """Task 3: once the time is over, `request` raises Spent("seconds") and counts no turn."""
    one = meter(seconds=0.005)
    time.sleep(0.01)
    spent = need("agent.budget", "Spent")
    raised = failure_of(lambda: made("request", lambda: one.request(10)))
    assert isinstance(raised, spent), f"with no time left: expected Spent, came {raised!r}"
    assert raised.limit == "seconds", f"expected the limit seconds, came {raised.limit!r}"
    assert one.turns == 0, f"expected no turn to be counted, came {one.turns}"


def test_a_nested_run_has_no_more_time_than_its_parent() -> None:
    """Task 3: of a meter and its parents, the one that ends first counts."""
    parent = meter(seconds=1)
    child = meter(parent=parent, seconds=50)
    left = made("seconds_left", lambda: child.seconds_left())
    assert 0 < (left or 99) <= 1, f"given 50 s in a run with 1 s left: came {left}"
    short = meter(parent=meter(seconds=50), seconds=1)
    left = made("seconds_left", lambda: short.seconds_left())
    assert 0 < (left or 99) <= 1, f"given 1 s in a run with 50 s left: came {left}"


# Task 4: the run


@pytest.mark.parametrize("answer", [Raw(BODY, wait=SLOW), Raw(BODY, drip=SLOW / len(BODY))])
def test_B7_a_run_is_back_when_its_seconds_are_over(answer: Raw) -> None:
    """Task 4: an endpoint that hangs or drips ends the run in time, with status `seconds`."""
    with endpoint_of(answer) as endpoint:
        result, took = run(endpoint, [], meter(seconds=0.1))
        sent = len(endpoint.requests)
    got = getattr(result, "status", result)
    assert got == "seconds", f"given 0.1 s: expected the status seconds, came {got!r}"
    assert took < LATEST, f"given 0.1 s: the run was back after {took:.2f} s"
    assert result.answer == "", f"expected no answer, came {result.answer!r}"
    assert sent <= result.requests, f"the endpoint had {sent} requests, {result.requests} counted"


def test_B7_a_request_has_the_time_that_is_left() -> None:
    """Task 4: each request's deadline is what is left of the run, not the budget anew."""
    noted: list[float] = []

    class Noting(need("agent.chat", "Chat")):  # type: ignore[misc]
        def ask(self, messages: Any, tools: Any = (), seconds: float = 60, **more: Any) -> Any:
            noted.append(seconds)
            return super().ask(messages, tools, seconds, **more)

    def nap() -> str:
        """Sleep for a moment."""
        time.sleep(0.02)
        return "slept"

    with endpoint_of(calls(("nap", {})), says("Done.")) as endpoint:
        tools = [need("agent.tools", "make_tool")(nap)]
        runner = need("agent.runner", "Runner")
        made(
            "run",
            runner(chat(endpoint.url, make=Noting), tools, meter=meter(seconds=20)).run,
            HELLO,
        )
    assert len(noted) == 2, f"given a call and an answer: expected 2 requests, came {noted}"
    assert 10 < noted[0] <= 20, f"given 20 s: expected nearly as many, the request had {noted[0]}"
    gone = noted[0] - noted[1]
    assert gone > 0.015, f"after a nap of 0.02 s the second request had {gone} s less"


def test_B7_calls_for_which_no_time_is_left_are_not_run() -> None:
    """Task 4: once the time is over, further calls of a reply are answered and not run, and no
    further request is sent."""
    ran: list[str] = []
    spends = meter(seconds=0.4)

    def nap() -> str:
        """Sleep until no time is left."""
        ran.append("nap")
        while len(ran) < 2 and made("seconds_left", lambda: spends.seconds_left()) > 0:
            time.sleep(0.01)
        return "slept well"

    with endpoint_of(calls(*[("nap", {})] * 3), says("Done.")) as endpoint:
        result, _ = run(endpoint, [nap], spends)
        sent = [one for one in endpoint.requests if one.body.get("tool_choice") != "none"]
    assert getattr(result, "status", result) == "seconds", f"expected seconds, came {result!r}"
    assert ran == ["nap"], f"given three calls, the first of which took all: {len(ran)} ran"
    assert len(sent) == 1, f"expected no request after the nap, the endpoint had {len(sent)}"
    said = [m["content"] for m in result.messages if m["role"] == "tool"]
    assert said[:1] == ["slept well"], f"expected the first call's result, came {said}"
    assert len(said) == 3, f"given 3 calls: expected a reply to each, came {said}"
    assert all("not run" in text for text in said[1:]), f"expected `not run`, came {said[1:]}"


CARD = """\
name: word-counter
description: Counts words for a test, and does nothing else at all.
examples: [count these words, how many words, zähle die wörter]
prompt: |
  You count words.
tools: [count]
budget: {turns: 3, tool_calls: 3, tokens: 3000, seconds: 60}
"""
TOOL = '''\
def count(text: str) -> int:
    """Count the words."""
    return len(text.split())
'''


def test_the_command_is_back_in_time_with_exit_code_3(tmp_path: Path) -> None:
    """Task 4: `run --budget seconds=0.1` ends in time: exit code 3, and the limit is named."""
    (tmp_path / "word-counter.card.yaml").write_text(CARD, encoding="utf-8")
    (tmp_path / "tools").mkdir()
    (tmp_path / "tools" / "word_counter.py").write_text(TOOL, encoding="utf-8")
    words = ["run", "word-counter", "--registry", tmp_path, "--budget", "seconds=0.1", "How many?"]
    with endpoint_of(Raw(BODY, wait=SLOW)) as endpoint:
        env = {"TINY_BASE_URL": endpoint.url, "TINY_EMBED_MODEL": "m", "TINY_CHAT_MODEL": "m"}
        began = time.monotonic()
        done = command(*words, env=env)
        took = time.monotonic() - began
    assert done.returncode == 3, f"expected exit code 3, got {done.returncode}: {done.stderr}"
    assert "seconds" in done.stderr, f"expected the limit on stderr, came {done.stderr!r}"
    assert took < 0.3 + LATEST, f"given 0.1 s: back after {took:.2f} s"
