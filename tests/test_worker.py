"""Stage 24: tools run in one process a run, which can be stopped, and which knows no key."""

import fcntl
import importlib
import json
import os
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from helpers import command, need
from scripted import Raw, Scripted, calls, says

HELLO = [{"role": "user", "content": "Hello."}]
LONG = 60.0  # seconds that a call may take, where nothing is meant to stop it
HANG = 5  # seconds that a hanging tool hangs
SOON = 4  # seconds after which a stop was none

TOOLS = '''\
"""Tools that behave well, and tools that do not."""

import fcntl
import os
import signal
import subprocess
import sys
import time

RUNS = []


def add(a: int, b: int = 1) -> int:
    """Add two numbers."""
    return a + b


def count() -> int:
    """Count the calls that this process had."""
    RUNS.append(1)
    return len(RUNS)


def pid() -> int:
    """Give the number of the process."""
    return os.getpid()


def nap(wait: float) -> str:
    """Sleep."""
    time.sleep(wait)
    return "slept"


def leave(code: int) -> str:
    """End the process without a word."""
    os._exit(code)


def crash() -> str:
    """Break the process from below."""
    os.kill(os.getpid(), signal.SIGSEGV)
    time.sleep(10)
    return "still here"


def give_up() -> str:
    """Ask Python to end."""
    raise SystemExit(3)


def shout() -> str:
    """Print a lot, in every way there is."""
    print("x" * 100_000)
    print("y" * 100_000, file=sys.stderr)
    os.write(1, b"z" * 100_000)
    subprocess.run(["sh", "-c", "echo from a child; echo from a child >&2"])
    return "said it"


def listen() -> str:
    """Read what is typed."""
    return repr(sys.stdin.read())


def deep() -> int:
    """Call itself."""
    return deep() + 1


def big(size: int) -> str:
    """Give that many characters."""
    return "ä" * size


def names() -> list[str]:
    """Name the environment's variables."""
    return [f"{name}={value}" for name, value in os.environ.items()]


def split() -> str:
    """Come back twice."""
    child = os.fork()
    if child:
        os.waitpid(child, 0)
    return "parent" if child else "child"


def detach(lock: str) -> str:
    """Leave a child behind that holds a lock for 8 seconds."""
    file = os.open(lock, os.O_RDWR | os.O_CREAT)
    fcntl.flock(file, fcntl.LOCK_EX)
    subprocess.Popen(["sleep", "8"], pass_fds=[file])
    return "left it"
'''


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("tools") / "hands.py"
    path.write_text(TOOLS, encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def worker() -> Iterator[Any]:
    """One worker for all tests that do not care whose it is: a process takes 0.1 s to start."""
    made = None
    with suppress(ImportError, AttributeError, TypeError):  # the tests say so themselves
        made = importlib.import_module("agent.worker").Worker({"PATH": os.environ["PATH"]})
    yield made
    if made is not None:
        made.stop()


def start(environ: dict[str, str]) -> Any:
    try:
        return need("agent.worker", "Worker")(environ)
    except TypeError as error:
        pytest.fail(f"Contract: Worker takes an environment: {error}")


def outcome(
    worker: Any, file: Path, name: str, seconds: float = LONG, **given: Any
) -> tuple[Any, Any]:
    """The kind and the text of a call by this worker."""
    need("agent.worker", "Worker")
    tool = need("agent.tools", "load_tool")(file, name)
    try:
        came = worker.call(tool, given, seconds)
    except (TypeError, AttributeError) as error:
        pytest.fail(f"Contract: Worker.call: {type(error).__name__}: {error}")
    except Exception as error:
        pytest.fail(f"Contract: call raises nothing; {type(error).__name__} came: {error}")
    assert hasattr(came, "kind"), f"Contract: call gives an Outcome, came back {came!r}"
    return came.kind, came.text


# Task 1: a process for the calls


def test_a_call_by_the_worker_is_a_call(worker: Any, file: Path) -> None:
    """Task 1: the outcome is the one that the function has when it is called here."""
    direct = need("agent.tools", "call")
    for name, given in [
        ("add", {"a": 1, "b": 2}),
        ("add", {"a": 5}),
        ("give_up", {}),
        ("deep", {}),
    ]:
        tool = need("agent.tools", "load_tool")(file, name)
        here = direct(tool, given)
        kind, text = outcome(worker, file, name, **given)
        assert kind == here.kind, f"{name}: expected {here.kind}, came {kind}: {text}"
        assert text == here.text, f"{name}: expected {here.text!r}, came {text!r}"


def test_the_calls_are_in_one_other_process(worker: Any, file: Path) -> None:
    """Task 1: the calls of a worker run in one process, which is not this one."""
    numbers = [outcome(worker, file, "pid")[1] for _ in range(2)]
    assert numbers[0] == numbers[1], f"expected one process, came {numbers}"
    assert int(numbers[0]) != os.getpid(), "the tool ran in this process"


def test_a_call_takes_far_less_than_a_process(worker: Any, file: Path) -> None:
    """Task 1: a call costs about 0.1 ms, where a process for each would be 50 ms and more."""
    outcome(worker, file, "add", a=1)
    times = []
    for _ in range(50):
        began = time.perf_counter()
        outcome(worker, file, "add", a=1)
        times.append(time.perf_counter() - began)
    middle = 1000 * sorted(times)[25]
    assert middle < 25, f"expected a millisecond or less a call, the middle one took {middle:.1f}"


def test_L21_a_huge_result_comes_whole(worker: Any, file: Path) -> None:
    """Task 1: 500,000 characters come back as they are."""
    kind, text = outcome(worker, file, "big", size=500_000)
    assert kind == "ok", f"expected ok, came {kind}: {text[:100]}"
    assert text == "ä" * 500_000, f"expected 500,000 ä, came {len(text)} characters"


def test_L21_a_result_without_measure_is_a_failure(worker: Any, file: Path) -> None:
    """Task 1: over 2**24 bytes on the way, the call has failed, and the next one works."""
    kind, text = outcome(worker, file, "big", size=3_000_000)
    assert kind == "failed", f"given 18 MB: expected failed, came {kind}: {text[:100]}"
    assert len(text) < 300, f"expected a short text, came {len(text)} characters"
    assert outcome(worker, file, "add", a=1) == ("ok", "2"), "the next call did not work"


# Task 2: what has to be stopped


def test_B7_a_hanging_tool_is_stopped(worker: Any, file: Path) -> None:
    """Task 2: at the deadline a call is an outcome `timed_out`, and the next one works."""
    before, began = outcome(worker, file, "pid")[1], time.monotonic()
    kind, text = outcome(worker, file, "nap", 0.05, wait=HANG)
    took = time.monotonic() - began
    assert kind == "timed_out", f"given 0.05 s: expected timed_out, came {kind}: {text}"
    assert took < SOON, f"given 0.05 s: it was stopped after {took:.1f} s"
    assert "nap" in text, f"expected the tool's name in the text, came {text!r}"
    kind, after = outcome(worker, file, "pid")
    assert kind == "ok", f"after a stop: expected ok, came {kind}: {after}"
    assert after != before, "after a stop the calls still run in the same process"
    gone(int(before))


def gone(number: int) -> None:
    """A failure if the process is still there."""
    ends = time.monotonic() + 5
    while time.monotonic() < ends:
        try:
            os.kill(number, 0)
        except ProcessLookupError:
            return
        time.sleep(0.01)
    pytest.fail(f"the process {number} is still there, or nobody has waited for it")


@pytest.mark.parametrize(("name", "given"), [("leave", {"code": 7}), ("crash", {})])
def test_L15_a_tool_that_ends_its_process_has_failed(
    worker: Any, file: Path, name: str, given: dict[str, Any]
) -> None:
    """Task 2: a process that is gone is an outcome `failed`, and the next call works."""
    began = time.monotonic()
    kind, text = outcome(worker, file, name, **given)
    took = time.monotonic() - began
    assert kind == "failed", f"{name}: expected failed, came {kind}: {text}"
    assert took < SOON, f"{name}: it was noticed after {took:.1f} s"
    assert name in text, f"expected the tool's name in the text, came {text!r}"
    assert len(text) < 300, f"expected a short text, came {len(text)} characters"
    assert outcome(worker, file, "add", a=1) == ("ok", "2"), "the next call did not work"


def test_L23_what_a_tool_left_behind_is_stopped(worker: Any, file: Path, tmp_path: Path) -> None:
    """Task 2: a call is not held up by a child that lives on, and `stop` ends the child too."""
    lock, began = tmp_path / "lock", time.monotonic()
    kind, text = outcome(worker, file, "detach", lock=str(lock))
    took = time.monotonic() - began
    assert (kind, text) == ("ok", "left it"), f"expected the tool's result, came {kind}: {text}"
    assert took < SOON, f"the call was held up for {took:.1f} s"
    process = int(outcome(worker, file, "pid")[1])
    worker.stop()
    gone(process)
    with lock.open("r+") as held:
        ends = time.monotonic() + 5
        while time.monotonic() < ends:
            try:
                fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                time.sleep(0.01)
            else:
                return
    pytest.fail("after `stop`, the child of the tool is still there: it holds its lock")


def test_a_tool_that_forks_answers_once(worker: Any, file: Path) -> None:
    """Contract: what a tool forks ends when it comes back; no answer is taken for another's."""
    got = (outcome(worker, file, "split")[1], outcome(worker, file, "add", a=1, b=2)[1])
    assert got == ("parent", "3"), f"given a fork, then 1 + 2: expected parent and 3, came {got}"


def test_a_worker_may_be_stopped_at_any_time(file: Path) -> None:
    """Task 2: `stop` before the first call, or twice, is nothing."""
    made = start({})
    for _ in range(2):
        try:
            made.stop()
        except Exception as error:
            pytest.fail(f"Contract: stop raises nothing; {type(error).__name__} came: {error}")


# Task 3: what the process sees


def test_L23_the_standard_streams_lead_nowhere(
    worker: Any, file: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """Task 3: what a tool or its child prints reaches nobody, and what it reads is the end."""
    need("agent.worker", "Worker")
    worker.stop()  # so that its process starts with the streams below
    ours, keyboard = os.dup(0), os.pipe()
    os.write(keyboard[1], b"typed by somebody")
    os.close(keyboard[1])
    os.dup2(keyboard[0], 0)
    try:
        said = outcome(worker, file, "shout")
        read = outcome(worker, file, "listen")
    finally:
        os.dup2(ours, 0)
        os.close(ours)
        os.close(keyboard[0])
    assert said == ("ok", "said it"), f"expected the tool's result, came {said[0]}: {said[1][:100]}"
    assert read == ("ok", "''"), f"expected an empty text at once, came {read}"
    out, err = capfd.readouterr()
    assert (out, err) == ("", ""), f"expected nothing to be printed, came {out[:50]!r} {err[:50]!r}"


ENVIRON = {
    "PATH": "/opt/python@3.12/bin:" + os.environ["PATH"],
    "HOME": "/home/ada",
    "TZ": "UTC",
    "LC_ALL": "C.UTF-8",
    "TINY_HOME": "/home/ada/.tiny",
    "TINY_DOCS": "/home/ada/documents",
    "https_proxy": "http://proxy.example:3128",
}
SECRET = {
    "TINY_API_KEY": "sk-1",
    "TINY_EMBED_API_KEY": "sk-2",
    "TINY_TOKEN": "sk-3",
    "TINY_WEB_PASSWORD": "sk-4",
    "TINY_CLIENT_SECRET": "sk-5",
    "OPENAI_API_KEY": "sk-6",
    "AWS_SESSION": "sk-7",
    "HTTP_PROXY": "http://ada:sk-8@proxy.example:3128",
}


def test_the_process_has_no_key(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Task 3: of the environment, a tool sees what it needs and no key."""
    monkeypatch.setenv("TINY_NOT_GIVEN", "to this worker")
    made = start({**ENVIRON, **SECRET})
    try:
        text = outcome(made, file, "names")[1]
    finally:
        made.stop()
    seen = dict(line.split("=", 1) for line in json.loads(text))
    leaked = [name for name, value in SECRET.items() if name in seen or value in text]
    assert not leaked, f"a tool sees {leaked}"
    assert "TINY_NOT_GIVEN" not in seen, "a tool sees more than the worker was given"
    lost = [name for name, value in ENVIRON.items() if seen.get(name) != value]
    assert not lost, f"a tool does not see {lost}, but only {sorted(seen)}"


def test_the_names_of_env_and_environment(tmp_path: Path) -> None:
    """Task 3: `read_names` gives what stands in `.env` and in the environment, which wins."""
    text = "TINY_DOCS=from-env\nTINY_HOME=from-env\nEMPTY\n"
    (tmp_path / ".env").write_text(text, encoding="utf-8")
    got = need("agent.settings", "read_names")(tmp_path, {"TINY_HOME": "mine", "PATH": "/bin"})
    wanted = {"TINY_DOCS": "from-env", "TINY_HOME": "mine", "PATH": "/bin"}
    assert got == wanted, f"expected {wanted}, came {got}"


# Task 4: the run


def test_a_tool_knows_its_file(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Task 4: `load_tool` notes the file, as an absolute path; `make_tool` has none to note."""
    monkeypatch.chdir(file.parent)
    loaded = need("agent.tools", "load_tool")(Path(file.name), "add")
    source = getattr(loaded, "source", "no field of that name")
    assert source == file.resolve(), f"expected {file}, came {source}"
    made = need("agent.tools", "make_tool")(loaded.function)
    source = getattr(made, "source", "no field of that name")
    assert source is None, f"expected None for a function of our own, came {source!r}"


def test_call_leaves_the_calling_to_invoke(file: Path) -> None:
    """Task 4: `call` checks and fits the arguments, and hands them to `invoke` if they fit."""
    call, handed = need("agent.tools", "call"), list[Any]()
    tool, done = need("agent.tools", "load_tool")(file, "add"), need("agent.tools", "Outcome")

    def invoke(tool: Any, given: dict[str, Any]) -> Any:
        handed.append((tool.name, given))
        return done("ok", "by hand")

    try:
        came = call(tool, {"a": "4"}, invoke)
        wrong = call(tool, {"a": "four"}, invoke)
    except TypeError as error:
        pytest.fail(f"Contract: call takes tool, arguments and invoke: {error}")
    assert came == done("ok", "by hand"), f"expected what invoke gives, came {came!r}"
    assert handed == [("add", {"a": 4})], f"expected one call with a 4, came {handed}"
    assert getattr(wrong, "kind", wrong) == "wrong_arguments", f"given 'four': came {wrong!r}"


def chat(url: str) -> Any:
    names = {"TINY_BASE_URL": url, "TINY_EMBED_MODEL": "m", "TINY_CHAT_MODEL": "m"}
    settings = need("agent.settings", "read_settings")(Path(__file__).parent, names)
    return need("agent.chat", "Chat")(settings)


def endpoint_of(*script: Raw) -> Scripted:
    """A scripted endpoint that keeps no connection open after an answer."""
    close = {"Connection": "close"}
    return Scripted(*(replace(one, headers={**one.headers, **close}) for one in script))


def run(tools: list[Any], *script: Raw, seconds: float = LONG, worker: Any = None) -> Any:
    limits = {"turns": 8, "tool_calls": 16, "tokens": 30_000, "seconds": seconds}
    meter = need("agent.budget", "Meter")(need("agent.cards", "Budget")(**limits))
    more = {"meter": meter} | ({} if worker is None else {"worker": worker})
    with endpoint_of(*script) as endpoint:
        try:
            runner = need("agent.runner", "Runner")(chat(endpoint.url), tools, **more)
        except TypeError as error:
            pytest.fail(f"Contract: Runner takes worker: {error}")
        return runner.run(list(HELLO))


def results(came: Any) -> list[str]:
    return [m["content"] for m in getattr(came, "messages", []) if m["role"] == "tool"]


def test_a_run_has_a_process_of_its_own(file: Path) -> None:
    """Task 4: the calls of a run share a process; nothing of it is left for the next run."""
    tools = [need("agent.tools", "load_tool")(file, name) for name in ("count", "pid")]
    seen = []
    for _ in range(2):
        asked = [("count", {}), ("count", {}), ("pid", {})]
        came = run(tools, calls(*asked), calls(("count", {})), says("Done."))
        assert getattr(came, "status", came) == "done", f"expected done, came {came!r}"
        seen.append(results(came))
    counted = [[one[0], one[1], one[3]] for one in seen]
    assert counted == [["1", "2", "3"]] * 2, f"expected 1, 2, 3 in both runs, came {counted}"
    processes = [int(one[2]) for one in seen]
    assert len({*processes, os.getpid()}) == 3, f"expected two processes, came {processes}"
    for number in processes:
        gone(number)


def test_a_function_of_our_own_runs_here() -> None:
    """Task 4: a tool that no file holds is called in this process, as before."""
    ran: list[int] = []

    def note() -> str:
        """Note the process."""
        ran.append(os.getpid())
        return "noted"

    came = run([need("agent.tools", "make_tool")(note)], calls(("note", {})), says("Done."))
    assert results(came) == ["noted"], f"expected the result, came {came!r}"
    assert ran == [os.getpid()], f"expected one call in this process, came {ran}"


def test_B7_a_hanging_tool_ends_with_the_seconds_of_the_run(file: Path) -> None:
    """Task 4: a run whose tool hangs is back in time, with status `seconds` and a reply to it."""
    tools = [need("agent.tools", "load_tool")(file, "nap")]
    began = time.monotonic()
    script = calls(("nap", {"wait": HANG}), ("nap", {"wait": HANG})), says("Done.")
    came = run(tools, *script, seconds=0.4)
    took = time.monotonic() - began
    assert getattr(came, "status", came) == "seconds", f"expected seconds, came {came!r}"
    assert took < SOON, f"given 0.4 s: back after {took:.1f} s"
    assert len(results(came)) in (0, 2), f"expected a reply to both calls, came {results(came)}"


CARD = """\
name: word-counter
description: Counts words for a test, and does nothing else at all.
examples: [count these words, how many words, zähle die wörter]
prompt: |
  You count words.
tools: [names]
budget: {turns: 4, tool_calls: 3, tokens: 3000, seconds: 60}
"""
NAMES = '''\
import os


def names() -> list[str]:
    """Name the environment's variables."""
    print("printed by a tool")
    return [f"{name}={value}" for name, value in os.environ.items() if name.startswith("TINY_")]
'''


def test_the_command_keeps_its_keys_from_tools(tmp_path: Path) -> None:
    """Task 4: `run` calls a card's tools in the worker: no key there, nothing printed here."""
    (tmp_path / "word-counter.card.yaml").write_text(CARD, encoding="utf-8")
    (tmp_path / "tools").mkdir()
    (tmp_path / "tools" / "word_counter.py").write_text(NAMES, encoding="utf-8")
    with endpoint_of(calls(("names", {})), says("Done.")) as endpoint:
        env = {"TINY_BASE_URL": endpoint.url, "TINY_EMBED_MODEL": "m", "TINY_CHAT_MODEL": "m"}
        env |= {"TINY_API_KEY": "sk-for-the-endpoint", "TINY_DOCS": "/documents"}
        done = command("run", "word-counter", "--registry", tmp_path, "Hello.", env=env)
        asked = endpoint.requests
    assert done.returncode == 0, f"expected exit code 0, got {done.returncode}: {done.stderr}"
    assert done.stdout == "Done.\n", f"expected the answer alone, came {done.stdout!r}"
    assert "printed by a tool" not in done.stderr, f"a tool printed: {done.stderr!r}"
    key = asked[0].headers["authorization"]
    assert key == "Bearer sk-for-the-endpoint", f"the endpoint itself needs the key, came {key}"
    got = asked[1].body["messages"][-1]["content"]
    assert "TINY_DOCS=/documents" in got, f"expected TINY_DOCS in the tool, came {got}"
    assert "sk-for-the-endpoint" not in got, f"the tool saw the key: {got}"
