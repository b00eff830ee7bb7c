"""Stage 35: a line that says what is going on, on a terminal, and nowhere else."""

import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import termios
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, TextIO
from unicodedata import east_asian_width

import pytest

from helpers import TREE, Loopback, Reply, Request, command, need
from scripted import says

OFTEN = 0.01  # seconds between two drawings, in these tests
NEVER = 600.0
PATIENCE = 20.0  # seconds that a slow machine may take
LINES = ["[concierge] dog-walker  score 0.90", "[runner] turn 1: 2 messages"]


class Screen:
    """The terminal at the other end: what its rows show. It knows as much as a line needs."""

    def __init__(self, columns: int) -> None:
        self.columns, self.cells, self.x, self.y, self.wraps = columns, {(0, 0): " "}, 0, 0, True

    @property
    def rows(self) -> list[str]:
        """The rows that are not empty."""
        last = max(y for _, y in self.cells)
        texts = [
            "".join(self.cells.get((x, y), " ") for x in range(self.columns)).strip()
            for y in range(last + 1)
        ]
        return [text for text in texts if text]

    def feed(self, text: str) -> None:
        for code, letter in re.findall(r"(\x1b\[[?\d;]*[A-Za-z])|([\s\S])", text):
            if code:
                self.obey(code[2:-1], code[-1])
            elif letter == "\r":
                self.x = 0
            elif letter == "\n":
                self.y += 1
            elif letter >= " ":
                self.show(letter)

    def obey(self, number: str, letter: str) -> None:
        if letter == "K":
            start = 0 if number in ("1", "2") else min(self.x, self.columns - 1)
            for x in range(start, self.columns):
                self.cells.pop((x, self.y), None)
            self.cells[0, self.y] = self.cells.get((0, self.y), " ")
        elif letter == "A":
            self.y -= int(number or 1)
        elif letter == "G":
            self.x = int(number or 1) - 1
        elif number == "?7":
            self.wraps = letter == "h"

    def show(self, letter: str) -> None:
        wide = 2 if east_asian_width(letter) in "WF" else 1
        if self.x + wide > self.columns:
            self.x, self.y = (0, self.y + 1) if self.wraps else (self.columns - wide, self.y)
        for part in range(wide):
            self.cells[self.x + part, self.y] = "" if part else letter
        self.x += wide


class Terminal:
    """A pseudo-terminal of this process: `stream` is what a program writes to."""

    def __init__(self, columns: int) -> None:
        self.master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
        self.stream = os.fdopen(slave, "w", encoding="utf-8", errors="backslashreplace")
        self.screen, self.came, self.gone = Screen(columns), b"", False

    def read(self, seconds: float = 0.0) -> bytes:
        """What has come since the last time; waits so long for the first of it."""
        came = b""
        while select.select([self.master], [], [], 0 if came else seconds)[0]:
            try:
                came += os.read(self.master, 65536)
            except OSError:  # nobody holds the other end any more
                break
        self.came += came
        whole = self.came.decode(errors="ignore")
        self.screen = Screen(self.screen.columns)
        self.screen.feed(whole)
        return came

    def wait_for(self, what: Callable[[list[str]], Any], why: str) -> None:
        """Read until the rows are so, or fail."""
        ends = time.monotonic() + PATIENCE
        while not what(self.screen.rows):
            if time.monotonic() > ends:
                pytest.fail(f"{why}: expected within {PATIENCE:.0f} s, shown {self.screen.rows}")
            self.read(0.05)

    def hang_up(self) -> None:
        if not self.gone:
            os.close(self.master)
        self.gone = True


@contextmanager
def terminal(columns: int = 80) -> Iterator[Terminal]:
    one = Terminal(columns)
    try:
        yield one
    finally:
        with suppress(OSError):
            one.stream.close()
        one.hang_up()


@pytest.fixture(autouse=True)
def kind(monkeypatch: pytest.MonkeyPatch) -> None:
    """The terminal's kind, which nothing but the variable says."""
    monkeypatch.setenv("TERM", "xterm-256color")


@contextmanager
def progress(stream: TextIO | None, doing: str = "looking", every: float = OFTEN) -> Iterator[Any]:
    try:
        made = need("agent.progress", "Progress")(stream, doing, every)
        entered = made.__enter__()
    except (TypeError, AttributeError) as error:
        pytest.fail(f"Contract: Progress(stream, doing, every) for a with: {error}")
    assert hasattr(entered, "log"), f"Contract: __enter__ gives the Progress, came {entered!r}"
    try:
        yield entered
    except BaseException as error:
        held = made.__exit__(type(error), error, error.__traceback__)
        assert not held, f"Contract: an error passes through, __exit__ gave {held!r}"
        raise
    else:
        made.__exit__(None, None, None)


def drawn(text: str) -> Callable[[list[str]], bool]:
    """Whether the last row is a line of progress with this text in it."""
    return lambda rows: bool(rows) and text in rows[-1] and bool(re.search(r"\d ?s\b", rows[-1]))


# Task 1: the line


def test_the_last_line_says_what_is_going_on_and_for_how_long() -> None:
    """Task 1: on a terminal, a line with the seconds and what is being done; none after it."""
    with terminal() as one:
        with progress(one.stream, "looking for an agent"):
            one.wait_for(drawn("looking for an agent"), "a line")
            assert re.search(r"\b0 ?s\b", one.screen.rows[-1]), f"no seconds in {one.screen.rows}"
        one.read()
        assert one.screen.rows == [], f"expected no line at the end, shown {one.screen.rows}"


def test_what_is_quick_shows_nothing() -> None:
    """Task 1: the first line comes after `every` seconds."""
    with terminal() as one:
        with progress(one.stream, every=NEVER):
            one.read(0.05)
            assert one.screen.rows == [], f"expected nothing yet, shown {one.screen.rows}"
        one.read()
        assert one.screen.rows == [], f"expected nothing at the end, shown {one.screen.rows}"


def test_log_lines_go_above_it_and_stay() -> None:
    """Task 1: a log line takes the place of the line, which comes again below it."""
    with terminal() as one:
        with progress(one.stream) as made:
            for line in LINES:
                one.wait_for(drawn(""), "a line")
                made.log(line)
                one.wait_for(lambda rows, line=line: line in rows, f"the log line {line!r}")
                one.wait_for(drawn(""), "a line below it")
        one.read()
        assert one.screen.rows == LINES, f"expected {LINES}, shown {one.screen.rows}"


def test_the_last_log_line_is_what_is_going_on() -> None:
    """Task 1: what a log line says after its bracket is what is being done; so is `doing`."""
    with terminal() as one, progress(one.stream) as made:
        made.log("[runner] turn 7: 9 messages")
        one.wait_for(drawn("turn 7: 9 messages"), "what the log line said")
        assert "[runner]" not in one.screen.rows[-1], f"shown {one.screen.rows[-1]!r}"
        made.doing = "arm B, run 3 of 60"
        one.wait_for(drawn("arm B, run 3 of 60"), "what `doing` was set to")


# Task 2: one row, and gone at the end


@pytest.mark.parametrize(
    ("columns", "doing"),
    [
        (20, "turn 12: 24 messages, 17400 of 24000 tokens"),  # a narrow window
        (80, "x" * 300),  # long arguments
        (80, "查找" * 25),  # 50 letters that take 100 columns
        (200, "y" * 300),
    ],
    ids=["narrow", "long", "wide letters", "a wide window"],
)
def test_the_line_takes_one_row(columns: int, doing: str) -> None:
    """Task 2: whatever is being done, no second row is begun, and none is left."""
    with terminal(columns) as one:
        with progress(one.stream, doing):
            for _ in range(3):
                size = len(one.came)
                one.wait_for(lambda _, size=size: len(one.came) > size, "a drawing")
            rows = one.screen.rows
            assert len(rows) == 1, f"given {columns} columns: expected one row, shown {rows}"
        one.read()
        rows = one.screen.rows
        assert rows == [], f"given {columns} columns: expected nothing left, shown {rows}"
        one.stream.write("z" * (columns + 5))
        one.stream.flush()
        one.read(0.5)
        rows = one.screen.rows
        assert len(rows) == 2, f"expected what comes later to wrap as before, shown {rows}"


@pytest.mark.parametrize("error", [KeyboardInterrupt(), ValueError("no")])
def test_an_error_leaves_no_line(error: BaseException) -> None:
    """Task 2: where the block ends by an error, or by Ctrl-C, the line is gone too."""
    with terminal() as one:
        came: list[BaseException] = []
        try:
            with progress(one.stream):
                one.wait_for(drawn("looking"), "a line")
                raise error
        except (KeyboardInterrupt, ValueError) as passed:
            came.append(passed)
        assert came == [error], f"expected the error to pass through, came {came}"
        one.read()
        assert one.screen.rows == [], f"expected no line, shown {one.screen.rows}"


class Slow(str):
    """A text that takes its time to become part of another one."""

    asked = threading.Event()

    def __format__(self, spec: str) -> str:
        self.asked.set()
        time.sleep(0.03)
        return str(self)


def test_nothing_is_drawn_after_the_end() -> None:
    """Task 2: a drawing that is under way when the block ends does not come after it."""
    Slow.asked.clear()
    with terminal() as one:
        with progress(one.stream, Slow("looking")):
            Slow.asked.wait(0.5)
        one.read()
        before = len(one.came)
        one.read(0.06)
        assert len(one.came) == before, f"drawn after the end: {one.came[before:]!r}"
        assert one.screen.rows == [], f"expected no line, shown {one.screen.rows}"


# Task 3: no terminal


def test_off_a_terminal_there_are_the_log_lines_alone(tmp_path: Path) -> None:
    """Task 3: a file gets each log line as it is, and no other byte."""
    with (tmp_path / "log").open("w", encoding="utf-8") as file, progress(file) as made:
        time.sleep(4 * OFTEN)
        for line in LINES:
            made.log(line)
        came = (tmp_path / "log").read_text(encoding="utf-8")
        wanted = "".join(f"{line}\n" for line in LINES)
        assert came == wanted, f"expected {wanted!r} at once, came {came!r}"
        time.sleep(4 * OFTEN)
    came = (tmp_path / "log").read_text(encoding="utf-8")
    assert came == wanted, f"expected {wanted!r} at the end, came {came!r}"


@pytest.mark.parametrize("term", ["dumb", None])
def test_a_terminal_that_cannot_erase_gets_no_line(
    term: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Task 3: where TERM is dumb, or not set, there are the log lines alone."""
    if term is None:
        monkeypatch.delenv("TERM")
    else:
        monkeypatch.setenv("TERM", term)
    with terminal() as one:
        with progress(one.stream) as made:
            made.log(LINES[0])
            time.sleep(4 * OFTEN)
        one.read(0.05)
        wanted = f"{LINES[0]}\r\n".encode()
        assert one.came == wanted, f"given TERM={term}: expected {wanted!r}, came {one.came!r}"


# Task 4: nobody there


def test_a_reader_that_is_gone_costs_nothing() -> None:
    """Task 4: a closed pipe stops neither the block nor its end."""
    reading, writing = os.pipe()
    os.close(reading)
    with os.fdopen(writing, "w", encoding="utf-8") as stream:
        done = []
        with progress(stream) as made:
            for line in LINES:
                made.log(line)
            done.append("the work")
        assert done == ["the work"], "expected the block to go on"
        with suppress(OSError):
            stream.close()


def test_a_terminal_that_is_closed_costs_nothing() -> None:
    """Task 4: a window that is shut while something works stops nothing either."""
    with terminal() as one:
        done = []
        with progress(one.stream) as made:
            one.wait_for(drawn("looking"), "a line")
            one.hang_up()
            time.sleep(3 * OFTEN)
            made.log(LINES[0])
            done.append("the work")
        assert done == ["the work"], "expected the block to go on"


def test_no_stream_at_all_is_no_error() -> None:
    """Task 4: Python's standard error is None where it was closed before the start."""
    with progress(None) as made:
        made.log(LINES[0])
        time.sleep(2 * OFTEN)


# Task 5: the command

CARD = """\
name: dog-walker
description: Takes what has to do with a dog, for a test.
examples: [about my dog, the dog of a friend, a dog and no other]
prompt: You know all about a dog.
tools: [{name: look_up_dog, description: Look up., parameters: {type: object}}]
budget: {turns: 6, tool_calls: 6, tokens: 9000, seconds: 60}
"""


@contextmanager
def served(folder: Path, wait: threading.Event | None = None) -> Iterator[dict[str, str]]:
    """A card in `folder`, and an endpoint that answers "Done." where it need not wait."""
    (folder / "dog-walker.card.yaml").write_text(CARD, encoding="utf-8")

    def answer(request: Request) -> Reply:
        if wait:
            wait.wait(PATIENCE)
        return 200, says("Done.").body

    with Loopback(answer) as server:
        yield {**server.env, "TINY_CHAT_MODEL": "m", "TINY_HOME": str(folder / "home")}


def test_the_command_shows_it_and_ctrl_c_leaves_no_line(tmp_path: Path) -> None:
    """Task 5: `run` on a terminal has the line after half a second; Ctrl-C is exit code 130."""
    need("agent.progress", "Progress")
    free = threading.Event()
    words = [sys.executable, "-m", "agent", "run", "dog-walker", "--registry", str(tmp_path), "Hi."]
    with terminal() as one, served(tmp_path, free) as names:
        env = {k: v for k, v in os.environ.items() if not k.startswith("TINY_")} | names
        env |= {"PYTHONPATH": str(TREE), "TERM": "xterm"}
        child = subprocess.Popen(
            words, env=env, cwd=tmp_path, stdout=subprocess.PIPE, stderr=one.stream
        )
        try:
            one.wait_for(lambda rows: any(row.startswith("[runner]") for row in rows), "a run")
            one.wait_for(drawn("turn 1"), "a line")
            child.send_signal(signal.SIGINT)
            out, _ = child.communicate(timeout=PATIENCE)
        finally:
            free.set()
            child.kill()
            child.wait()
        one.read()
        assert child.returncode == 130, f"expected exit code 130, got {child.returncode}"
        assert out == b"", f"expected nothing on stdout, came {out!r}"
        others = [row for row in one.screen.rows if not row.startswith("[")]
        assert others == [], f"expected log lines alone, shown {one.screen.rows}"


def test_the_command_is_as_before_off_a_terminal(tmp_path: Path) -> None:
    """Task 5: in a pipe, stderr has the log lines and stdout the answer, without a control code."""
    need("agent.progress", "Progress")
    with served(tmp_path) as names:
        done = command("run", "dog-walker", "--registry", tmp_path, "Hi.", env=names)
    assert (done.returncode, done.stdout) == (0, "Done.\n"), f"came {done}"
    others = [row for row in done.stderr.splitlines() if not row.startswith("[")]
    assert others == [], f"expected log lines alone, came {done.stderr!r}"
    assert "\x1b" not in done.stderr, f"expected no control code, came {done.stderr!r}"


def test_a_trace_gives_its_warning_to_the_log(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Task 5: `warn` gets the warning that no trace is written, once, and stderr does not."""
    (tmp_path / "file").write_text("no folder", encoding="utf-8")
    said: list[str] = []
    folder = tmp_path / "file" / "traces"
    try:
        trace = need("agent.trace", "Trace")(folder, "", said.append, card="a")
    except TypeError as error:
        pytest.fail(f"Contract: Trace(folder, key, warn, **about): {error}")
    trace({"event": "request", "turn": 1})
    trace.close()
    assert len(said) == 1, f"expected one warning, came {said}"
    assert said[0].startswith("warning:"), f"expected a warning, came {said}"
    err = capsys.readouterr().err
    assert err == "", f"expected nothing on stderr, came {err!r}"
