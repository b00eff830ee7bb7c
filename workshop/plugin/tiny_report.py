"""A pytest plugin: writes what happened to each test as JSON, and whose `agent` was tested.

A line a fact, as it happens, so that a process that ends in the middle of a test leaves all of
it but the end. It stands in a folder of its own, so that putting it on the path puts nothing
else there.
"""

import contextlib
import json
import os
import re
import signal
import sys
import time
import traceback
from pathlib import Path
from typing import Any

import pytest

REPORT = Path(os.environ["TINY_REPORT"])
SECONDS = float(os.environ.get("TINY_TEST_SECONDS", "0"))  # that one test may take; 0 is any
ENDLESS = f"it did not come to an end within {SECONDS:g} seconds"
BYTES = 64 * 1024 * 1024  # that one file may grow to
MEMORY = 2 * 1024 * 1024 * 1024
TREE = Path.cwd().resolve()
COLLECTED: dict[str, BaseException] = {}  # what importing a file of tests raised
TOUCHES = tuple(json.loads(os.environ.get("TINY_TOUCHES", "[]")))  # the lesson's files
HUNG = False
FAILED: set[str] = set()  # the tests that failed, so that one counts once
LAST = ""  # why no test is run after this one
TOLD = False  # the report names the test that was the last
IN_ORDER = bool(os.environ.get("TINY_IN_ORDER"))  # run the tests in the order of their points


def note(fact: dict[str, Any]) -> None:
    with REPORT.open("a", encoding="utf-8") as file:
        file.write(json.dumps(fact) + "\n")


def pytest_configure() -> None:
    if not SECONDS:
        return
    signal.signal(signal.SIGALRM, ring)
    with contextlib.suppress(ImportError, ValueError, OSError):
        import resource

        resource.setrlimit(resource.RLIMIT_FSIZE, (BYTES, resource.RLIM_INFINITY))
        if sys.platform == "linux":
            resource.setrlimit(resource.RLIMIT_AS, (MEMORY, resource.RLIM_INFINITY))


def ring(*_: object) -> None:
    global HUNG, LAST
    HUNG, LAST = True, "a test hung"
    pytest.fail(ENDLESS)


def set_alarm() -> None:
    # It rings again and again: what is raised may be swallowed by the code that hangs.
    if SECONDS:
        signal.setitimer(signal.ITIMER_REAL, SECONDS, 1.0)


def ends_here() -> bool:
    """Whether no test is run after the one that is noted now. Once it was said, no other is it."""
    global TOLD
    now, TOLD = bool(LAST) and not TOLD, bool(LAST)
    return now


def stop_alarm() -> None:
    if SECONDS:
        signal.setitimer(signal.ITIMER_REAL, 0)


@pytest.hookimpl(hookwrapper=True)
def pytest_make_collect_report(collector: pytest.Collector) -> Any:
    note({"start": collector.nodeid, "point": "", "at": time.monotonic()})
    set_alarm()
    yield
    stop_alarm()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    if IN_ORDER:
        items.sort(key=lambda item: point_order(point_of(item)))


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Any:
    note({"start": item.nodeid, "point": point_of(item), "at": time.monotonic()})
    yield
    if LAST:
        item.session.shouldstop = LAST


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_call() -> Any:
    set_alarm()
    yield
    stop_alarm()


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_setup() -> Any:
    set_alarm()
    yield
    stop_alarm()


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: Any) -> Any:
    global LAST
    outcome = yield
    report = outcome.get_result()
    hung = HUNG and not TOLD  # also where the code that hung caught what the alarm raised
    if item.nodeid in FAILED or (report.when != "call" and not hung and not report.failed):
        return
    error = call.excinfo
    if report.failed or hung:
        FAILED.add(item.nodeid)
    if SECONDS and error and isinstance(error.value, MemoryError):
        LAST = "out of memory"  # what captures the output is broken now
    caught = hung and not report.failed
    note(
        {
            "test": item.nodeid,
            "point": point_of(item),
            "outcome": "failed" if caught else report.outcome,
            "error": "Failed" if caught else error.typename if error else None,
            "message": ENDLESS if caught else said(error.value)[:4000] if error else None,
            "last": ends_here(),
            **(place_of(error.value) if error and report.failed else {}),
        }
    )


def pytest_exception_interact(node: Any, call: Any, report: Any) -> None:
    if isinstance(report, pytest.CollectReport):
        COLLECTED[report.nodeid] = call.excinfo.value


def pytest_collectreport(report: pytest.CollectReport) -> None:
    hung = HUNG and not TOLD
    if report.failed or hung:
        error = COLLECTED.get(report.nodeid)
        note(
            {
                "test": report.nodeid,
                "point": "",
                "outcome": "failed",
                "error": "CollectError",
                "message": ENDLESS if hung else str(report.longrepr)[-4000:],
                "last": ends_here(),
                **(place_of(error) if error else {}),
            }
        )


def pytest_sessionfinish(session: pytest.Session) -> None:
    agent = sys.modules.get("agent")
    note({"agent": getattr(agent, "__file__", None), "at": time.monotonic()})


def point_order(point: str) -> int:
    """Where a test's point stands in the lesson: Task 3 is 3, and the contract comes after all."""
    found = re.match(r"Task (\d+)", point)
    return int(found[1]) if found else 99


def point_of(item: pytest.Item) -> str:
    return (getattr(getattr(item, "function", None), "__doc__", None) or "").strip()


def said(error: BaseException) -> str:
    try:
        return str(error)
    except Exception as other:  # an exception class of the learner's own
        return f"(its text raised {type(other).__name__})"


def place_of(error: BaseException) -> dict[str, str]:
    """Where in the tree's own code, tests aside, an exception or what led to it was raised.

    That is the deepest line in a file that the lesson touches; else in `agent/`, else anywhere.
    """
    chain: list[tuple[BaseException, list[tuple[str, int, str]]]] = []
    one: BaseException | None = error
    while one is not None and all(one is not other for other, _ in chain):
        chain.append((one, frames_of(one)))
        one = one.__cause__ or one.__context__
    for homes in (TOUCHES, ("agent/",), ("",)):
        for one, frames in chain:
            for name, line, text in frames:
                if not any(name == home or is_below(name, home) for home in homes):
                    continue
                what = "" if HUNG else f"{type(one).__name__}: {said(one)}"[:2000]
                place, deepest = f"{name}:{line}", f"{frames[0][0]}:{frames[0][1]}"
                raised = "" if HUNG or deepest == place else deepest
                return {"place": place, "text": text[:200], "cause": what, "raised": raised}
    return {}


def is_below(name: str, folder: str) -> bool:
    return not folder or name.startswith(f"{folder.rstrip('/')}/")


def frames_of(error: BaseException) -> list[tuple[str, int, str]]:
    """An exception's lines in the tree's own code, tests aside, the deepest first."""
    frames = [
        (frame.filename, frame.lineno or 0, frame.line or "")
        for frame in traceback.extract_tb(error.__traceback__)
    ]
    if isinstance(error, SyntaxError) and error.filename:
        frames.append((error.filename, error.lineno or 0, (error.text or "").strip()))
    found = []
    for file, line, text in reversed(frames):
        if file.startswith("<") or not Path(file).is_file():
            continue
        with contextlib.suppress(ValueError, OSError):
            name = Path(file).resolve().relative_to(TREE).as_posix()
            if not name.startswith("tests/"):
                found.append((name, line, text))
    return found
