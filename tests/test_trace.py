"""Stage 19: what a run leaves: a file that only grows, an event a line."""

import io
import json
import os
import resource
import signal
import sys
import warnings
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest

from helpers import Done, command, need
from scripted import Raw, Scripted, calls, fails, says

EVENTS = [
    {"event": "request", "turn": 1, "messages": 2},
    {"event": "reply", "turn": 1, "text": "Grüße,\n“Ada” \u2028 \ud83d", "input": 9, "output": 3},
    {"event": "call", "kind": "ok", "name": "add", "arguments": '{"a": 1}', "text": "1"},
    {"event": "end", "status": "done", "answer": "It is 1."},
]


def trace(folder: Path, key: str = "", **about: Any) -> Any:
    return need("agent.trace", "Trace")(folder, key, **about)


def rows(written: Any) -> list[dict[str, Any]]:
    """The lines of the file as it stands, read as JSON, each with its end."""
    text = written.path.read_bytes()
    assert text.endswith(b"\n"), f"expected whole lines, the file ends in {text[-40:]!r}"
    return [json.loads(line) for line in text.split(b"\n")[:-1]]


def forked(work: Callable[[], None]) -> int:
    """What `work` ends with, in a process of its own: 0, 1 if it raises, -9 if it is killed."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of threads that are not in the child
        child = os.fork()
    if child == 0:
        code = 1
        try:
            work()
            code = 0
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


# Task 1: a file a run, an event a line


def test_the_first_line_names_the_version_and_the_run(tmp_path: Path) -> None:
    """Task 1: the file begins with version, time and what the run is about; folders are made."""
    written = trace(tmp_path / "new" / "traces", card="adder", model="m", request="1 and 2")
    (first,) = rows(written)
    known = {"event": "begin", "trace": 1, "card": "adder", "model": "m", "request": "1 and 2"}
    assert known.items() <= first.items(), f"expected {known} in the first line, came {first}"
    at = datetime.fromisoformat(first["at"])
    assert at.utcoffset() == timedelta(0), f"expected a time in UTC, came {first['at']}"
    assert abs(datetime.now(UTC) - at) < timedelta(minutes=5), f"expected now, came {first['at']}"


def test_each_event_is_a_line_as_it_came(tmp_path: Path) -> None:
    """Task 1: an event is one JSON object in one line, with the seconds since the run began."""
    written = trace(tmp_path)
    for event in EVENTS:
        written(event)
    found = rows(written)[1:]
    assert len(found) == len(EVENTS), f"given {len(EVENTS)} events: came {len(found)} lines"
    for event, line in zip(EVENTS, found, strict=True):
        assert event.items() <= line.items(), f"given {event}: came {line}"
    seconds = [line["seconds"] for line in rows(written)]
    assert seconds == sorted(seconds), f"expected seconds that grow, came {seconds}"
    assert 0 <= seconds[0] <= seconds[-1] < 60, f"expected seconds from 0 on, came {seconds}"


def test_T1_no_two_runs_share_a_file(tmp_path: Path) -> None:
    """Task 1: each run has a file of its own, `*.jsonl`; their names sort by time."""
    made = [trace(tmp_path, number=number) for number in range(20)]
    for written in made:
        written(EVENTS[0])
    names = sorted(path.name for path in tmp_path.glob("*.jsonl"))
    assert len(names) == 20, f"given 20 runs: expected 20 files, came {len(names)}"
    numbers = [
        json.loads((tmp_path / name).read_bytes().split(b"\n")[0])["number"] for name in names
    ]
    assert numbers == list(range(20)), f"expected the names in the order of time, came {numbers}"
    assert all(len(rows(written)) == 2 for written in made), "expected two lines in each file"


# Task 2: it only grows, and holds nothing back


def test_the_file_only_grows_and_holds_all_at_once(tmp_path: Path) -> None:
    """Task 2: after each event the file is what it was and one whole line more."""
    written = trace(tmp_path)
    for event in EVENTS:
        before = written.path.read_bytes()
        written(event)
        after = written.path.read_bytes()
        same = after[: len(before)] == before
        assert same, f"given {event}: expected the lines before it unchanged, came {after!r}"
        assert after.count(b"\n") == before.count(b"\n") + 1, f"given {event}: came {after!r}"
        assert after.endswith(b"\n"), f"given {event}: expected a whole line, came {after!r}"


def test_T1_a_kill_leaves_whole_lines(tmp_path: Path) -> None:
    """Task 2: a run that is killed leaves every event so far."""

    def work() -> None:
        written = trace(tmp_path)
        for event in EVENTS:
            written(event)
        os.kill(os.getpid(), signal.SIGKILL)

    code = forked(work)
    assert code == -signal.SIGKILL, f"expected a run that is killed, came exit code {code}"
    (path,) = tmp_path.glob("*.jsonl")
    found = [event["event"] for event in need("agent.trace", "read_trace")(path)]
    wanted = ["begin", *(event["event"] for event in EVENTS)]
    assert found == wanted, f"given a kill after 4 events: expected {wanted}, came {found}"


# Task 3: no secret in it

KEYS = ["sk-test-0123456789", 'sk-"quoted"\\back', "SHORT", "abc-12", "longlowercase"]


@pytest.mark.parametrize("key", KEYS)
def test_C32_the_key_is_never_in_it(key: str, tmp_path: Path) -> None:
    """Task 3: the key is in no text of an event, at any depth, also not as JSON writes it."""
    inner = json.dumps({"header": f"Bearer {key}"})
    written = trace(tmp_path, key, request=f"send {key} to them")
    written({"event": "call", "arguments": inner, "text": f"{key}{key}", "turn": 1})
    written({"event": "end", "answer": ["a", {"b": [f"<{key}>"]}]})
    found = rows(written)
    assert len(found) == 3, f"expected three lines, came {found}"

    def texts(value: Any) -> list[str]:
        inside = value.values() if isinstance(value, dict) else value
        deeper = isinstance(value, dict | list)
        return [t for item in inside for t in texts(item)] if deeper else [str(value)]

    for text in texts(found):
        for form in (key, json.dumps(key)[1:-1]):
            assert form not in text, f"given the key {key}: it stands in {text!r}"
    assert found[1]["turn"] == 1, f"expected what is no text as it was, came {found[1]}"
    assert "header" in found[1]["arguments"], f"expected the rest as it was, came {found[1]}"


@pytest.mark.parametrize("key", ["", "ollama", "no-key", "practice"])
def test_what_is_no_secret_is_left_alone(key: str, tmp_path: Path) -> None:
    """Task 3: no key, `no-key`, and up to 8 small letters are no secret: texts stay whole."""
    text = "there is no-key for ollama in practice"
    written = trace(tmp_path, key)
    written({"event": "end", "answer": text})
    came = rows(written)[-1]["answer"]
    assert came == text, f"given the key {key!r} and {text!r}: came {came!r}"


def test_only_its_owner_may_read_it(tmp_path: Path) -> None:
    """Task 3: the file is for its owner alone, whatever the umask allows."""
    before = os.umask(0)
    try:
        written = trace(tmp_path)
    finally:
        os.umask(before)
    mode = written.path.stat().st_mode & 0o777
    assert mode == 0o600, f"expected the mode 600, came {mode:o}"


# Task 4: it never fails a run


def test_T1_a_folder_that_cannot_be_made_fails_no_run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Task 4: what cannot be written is said once, on stderr, and the run goes on."""
    (tmp_path / "file").write_text("no folder")
    written = trace(tmp_path / "file" / "traces", card="adder")
    for event in EVENTS:
        written(event)
    said = capsys.readouterr()
    assert said.err.count("warning:") == 1, f"expected one warning on stderr, came {said.err!r}"
    assert not said.out, f"expected nothing on stdout, came {said.out!r}"


def test_T1_a_full_disk_fails_no_run_and_leaves_whole_lines(tmp_path: Path) -> None:
    """Task 4: when there is no room left in the middle of a run, what was written can be read."""

    def work() -> None:
        sys.stderr = io.StringIO()
        written = trace(tmp_path)
        size = written.path.stat().st_size
        hard = resource.getrlimit(resource.RLIMIT_FSIZE)[1]
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (size + 150, hard))
        written(EVENTS[0])
        written({"event": "reply", "text": "x" * 500})
        written(EVENTS[2])
        assert sys.stderr.getvalue().count("warning:") == 1

    code = forked(work)
    assert code == 0, "given a disk that is full at the third line: expected one warning, it raised"
    (path,) = tmp_path.glob("*.jsonl")
    found = [event["event"] for event in need("agent.trace", "read_trace")(path)]
    assert found == ["begin", "request"], f"expected the two whole lines, came {found}"


# Task 5: reading it back

LINE = b'{"seconds": 0.001, "event": "end", "status": "done", "answer": "It is 1."}\n'
BEGIN = b'{"seconds": 0.0, "event": "begin", "trace": 1, "at": "2026-01-01T00:00:00+00:00"}\n'


def test_the_events_are_read_back(tmp_path: Path) -> None:
    """Task 5: `read_trace` gives what was written, in order."""
    written = trace(tmp_path, request="1 and 2")
    for event in EVENTS:
        written(event)
    found = need("agent.trace", "read_trace")(written.path)
    assert found == rows(written), f"expected the file's lines, came {found}"


def test_T1_a_line_that_a_kill_cut_off_is_left_out(tmp_path: Path) -> None:
    """Task 5: a last line without its end is left out, wherever it was cut."""
    read = need("agent.trace", "read_trace")
    (path := tmp_path / "cut.jsonl").write_bytes(BEGIN + LINE)
    whole = read(path)
    assert len(whole) == 2, f"given two whole lines: came {whole}"
    for size in (1, 9, len(LINE) - 1):
        path.write_bytes(BEGIN + LINE + LINE[:size])
        came = read(path)
        assert came == whole, f"given {size} characters of a third line: came {came}"


NO_TRACES = {
    "empty": b"",
    "one cut line": BEGIN[:-1],
    "text": b"hello\nworld\n",
    "no bytes of a text": b"\xff\xfe\n",
    "a list": b"[1]\n",
    "other JSON": b'{"seconds": 0, "event": "begin"}\n',
    "a line in the middle": BEGIN + b"{\n" + LINE,
    "a number as a line": BEGIN + b"5\n",
    "no event": BEGIN + b'{"seconds": 1}\n',
    "no seconds": BEGIN + b'{"event": "end"}\n',
    "deep": b"[" * 100_000 + b"\n",
    "another version": BEGIN.replace(b'"trace": 1', b'"trace": 77'),
}


def test_what_is_no_trace_is_an_error(tmp_path: Path) -> None:
    """Task 5: what is no trace is a TraceError that names the file, or the version."""
    read, error = need("agent.trace", "read_trace"), need("agent.errors", "TraceError")
    path = tmp_path / "file.jsonl"
    for name, text in [*NO_TRACES.items(), ("not there", None), ("a folder", None)]:
        path.unlink(missing_ok=True)
        if text is not None:
            path.write_bytes(text)
        said = ""
        try:
            came = read(tmp_path if name == "a folder" else path)
        except error as raised:
            said = str(raised)
        except Exception as other:
            kind = type(other).__name__
            pytest.fail(f"given {name}: expected a TraceError, {kind} came: {str(other)[:99]}")
        else:
            pytest.fail(f"given {name}: expected a TraceError, came back {came}")
        wanted = "77" if "version" in name else str(tmp_path)
        assert wanted in said, f"given {name}: expected {wanted} in the error, came {said}"


# Task 6: a run's events, and the commands


def add(a: int) -> int:
    """Add one."""
    return a + 1


def test_a_run_tells_of_replies_and_of_its_end() -> None:
    """Task 6: after each reply comes `reply`, and `end` is the last event of a run."""
    script = [calls(("add", {"a": 1}), text="Let me see."), says("It is 2.")]

    def answer(request: httpx.Request) -> httpx.Response:
        return httpx.Response(200, content=script.pop(0).body)

    names = {"embed_url": "http://127.0.0.1:9/v1", "embed_key": "", "embed_model": "e"}
    names |= {"query_prefix": "", "passage_prefix": "", "chat_key": "", "chat_model": "m"}
    settings = need("agent.settings", "Settings")(**names, chat_url="http://127.0.0.1:9/v1")
    chat = need("agent.chat", "Chat")(settings, httpx.MockTransport(answer))
    events: list[dict[str, Any]] = []
    tools = [need("agent.tools", "make_tool")(add)]
    runner = need("agent.runner", "Runner")(chat, tools, watch=events.append)
    runner.run([{"role": "user", "content": "1 and 1"}])
    kinds = [event["event"] for event in events]
    wanted = ["request", "reply", "call", "request", "reply", "end"]
    assert kinds == wanted, f"given a call and an answer: expected {wanted}, came {kinds}"
    said = {"turn": 1, "text": "Let me see.", "input": 10, "output": 5, "estimated": False}
    assert said.items() <= events[1].items(), f"expected {said} in the reply, came {events[1]}"
    end = {"status": "done", "answer": "It is 2.", "ghost": 0, "text_call": 0}
    assert end.items() <= events[-1].items(), f"expected {end} in the end, came {events[-1]}"


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
    parameters: {type: object, properties: {a: {type: string}}, required: [a]}
budget: {turns: 8, tool_calls: 8, tokens: 30000, seconds: 60}
"""


def adder(folder: Path, *words: str, script: list[Raw], key: str = "") -> Done:
    """`run adder …` on a scripted endpoint. Its home is the folder `home`."""
    (folder / "adder.card.yaml").write_text(CARD)
    with Scripted(*script, fails(500)) as endpoint:
        names = {"TINY_BASE_URL": endpoint.url, "TINY_EMBED_MODEL": "e", "TINY_CHAT_MODEL": "m"}
        names |= {"TINY_HOME": str(folder / "home"), "TINY_API_KEY": key}
        return command("run", "adder", "1 and 2", "--registry", folder, *words, env=names)


def test_a_run_is_written_down_and_shown(tmp_path: Path) -> None:
    """Task 6: `run` writes a trace into TINY_HOME, `trace` shows the last one."""
    key = "sk-test-0123456789"
    script = [calls(("add", {"a": key})), says("It\x1b[2J is 3.")]
    done = adder(tmp_path, script=script, key=key)
    assert done.returncode == 0, f"expected exit code 0, got {done.returncode}: {done.stderr}"
    assert key not in done.stderr, f"expected no key on stderr, came {done.stderr!r}"
    lines = done.stderr.splitlines()
    assert len(lines) == 3, f"expected a line for two requests and a call, came {done.stderr!r}"
    (path,) = (tmp_path / "home" / "traces").glob("*.jsonl")
    assert key.encode() not in path.read_bytes(), "expected no key in the trace, it stands there"
    events = need("agent.trace", "read_trace")(path)
    begin = {"card": "adder", "model": "m", "request": "1 and 2"}
    assert begin.items() <= events[0].items(), f"expected {begin} in the first, came {events[0]}"
    kinds = [event["event"] for event in events]
    wanted = ["begin", "request", "reply", "call", "request", "reply", "end"]
    assert kinds == wanted, f"expected {wanted}, came {kinds}"

    shown = command("trace", env={"TINY_HOME": str(tmp_path / "home")})
    assert shown.returncode == 0, f"expected exit code 0, got {shown.returncode}: {shown.stderr}"
    rows = shown.stdout.splitlines()
    assert len(rows) == len(events), f"expected a line for each event, came {shown.stdout!r}"
    for event, row in zip(events, rows, strict=True):
        begins = f"{event['seconds']:8.3f}  ["
        assert row.startswith(begins), f"expected {begins!r} first, came {row!r}"
    assert "1 and 2" in rows[0], f"expected the request in the first line, came {rows[0]!r}"
    assert "is 3." in rows[-1], f"expected the answer in the last line, came {rows[-1]!r}"
    assert "\x1b" not in shown.stdout, f"expected nothing that moves a cursor, came {rows[-1]!r}"


def test_T1_a_run_without_a_trace_is_a_run(tmp_path: Path) -> None:
    """Task 6: where no trace can be written, `run` warns and answers all the same."""
    (tmp_path / "home").write_text("no folder")
    done = adder(tmp_path, "--json", script=[says("It is 3.")])
    assert done.returncode == 0, f"expected exit code 0, got {done.returncode}: {done.stderr}"
    shown = json.loads(done.stdout)
    assert shown["answer"] == "It is 3.", f"expected the answer, came {done.stdout!r}"
    assert shown.get("trace", "").endswith(".jsonl"), (
        f"expected the trace's path, came {done.stdout!r}"
    )
    assert "warning" in done.stderr, f"expected a warning on stderr, came {done.stderr!r}"


def test_the_command_shows_a_file(tmp_path: Path) -> None:
    """Task 6: `trace FILE` shows that file; a file that is none, and no trace yet, exit with 1."""
    request = b'{"seconds": 0.0, "event": "request", "turn": 1, "messages": 2}\n'
    end = b'{"seconds": 0.5, "event": "end", "status": "ghosts", "answer": ""}\n'
    (path := tmp_path / "run.jsonl").write_bytes(BEGIN + request + end)
    shown = command("trace", path)
    assert shown.returncode == 0, f"expected exit code 0, got {shown.returncode}: {shown.stderr}"
    came = shown.stdout.splitlines()
    assert len(came) == 3, f"given a trace of three lines: came {shown.stdout!r}"
    assert "ghosts" in came[-1], f"expected how it ended in the last line, came {shown.stdout!r}"
    path.write_bytes(b"5\n")
    bad, none = command("trace", path), command("trace")
    for given, done in (("a file that is no trace", bad), ("no trace yet", none)):
        got = (done.returncode, done.stdout, "Traceback" in done.stderr)
        assert got == (1, "", False), f"given {given}: expected exit code 1, came {done.stderr!r}"
        assert done.stderr.strip(), f"given {given}: expected a word on stderr, came nothing"
