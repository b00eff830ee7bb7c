"""The stages' shared helpers: a command that runs in the tests' process leaves nothing there."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from workshop.suite import Report, run_tests, start_process
from workshop.tests.warm import USABLE, Warm

ROOT = Path(__file__).resolve().parents[2]
AGENT = """
import logging
import os
import signal
import sys
import warnings

from agent import state


def main(argv=None):
    words = sys.argv[1:] if argv is None else argv
    state.RUNS.append(words)
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    logging.info("run %d of %s", len(state.RUNS), os.environ.get("TINY_NAME", "nobody"))
    if "spoil" in words:
        os.environ["TINY_NAME"] = "spoiled"
        os.environ.pop("PATH", None)
        os.chdir("/")
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)
        sys.path.insert(0, "/nowhere")
        sys.argv.append("more")
        warnings.simplefilter("ignore")
    if "crash" in words:
        raise ValueError("it broke")
    if "words" in words:
        sys.exit("words of its own")
    if "read" in words:
        print(sys.stdin.read().upper())
    print(len(state.RUNS), words)
    return 3 if "three" in words else 0


if __name__ == "__main__":
    sys.exit(main())
"""
SCRIPT = """import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
import agent.state

print(len(sys.argv))
"""
HEAD = "import os, signal, sys, warnings\nfrom helpers import *\n"


def run(tmp_path: Path, body: str, helpers: Path = ROOT / "tests" / "helpers.py") -> Report:
    """Run one test of this body, in a tree with the helpers and a small agent."""
    files = {
        "agent/__init__.py": "",
        "agent/__main__.py": AGENT,
        "agent/state.py": "RUNS = []\n",
        "scripts/count.py": SCRIPT,
        "pyproject.toml": (ROOT / "pyproject.toml").read_text(encoding="utf-8"),
        "tests/test_it.py": HEAD + "def test_it(tmp_path):\n    " + "\n    ".join(body.split("\n")),
    }
    for name, text in files.items():
        (tmp_path / "tree" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "tree" / name).write_text(text, encoding="utf-8")
    shutil.copy2(helpers, tmp_path / "tree" / "tests" / "helpers.py")
    return run_tests(tmp_path / "tree", each=20)


def passes(tmp_path: Path, body: str) -> None:
    report = run(tmp_path, body)
    assert [one.outcome for one in report.outcomes] == ["passed"], report.output[-3000:]


def test_each_command_loads_the_agent_anew(tmp_path: Path) -> None:
    body = """need("agent.state", "RUNS").append("mine")
assert command("a").stdout == "1 ['a']\\n"
assert command("b").stdout == "1 ['b']\\n"
assert need("agent.state", "RUNS") == ["mine"]"""
    passes(tmp_path, body)


def test_a_command_that_changes_the_process_changes_it_for_itself_alone(tmp_path: Path) -> None:
    body = """def state():
    handlers = [signal.getsignal(one) for one in (signal.SIGTERM, signal.SIGPIPE)]
    streams = sys.stdin, sys.stdout, sys.stderr
    return dict(os.environ), os.getcwd(), list(sys.path), list(sys.argv), handlers, streams
before = state(), list(warnings.filters)
assert command("spoil").returncode == 0
assert (state(), list(warnings.filters)) == before
done = command("a", env={"TINY_NAME": "Ada"})
assert done.stderr == "run 1 of Ada\\n", done.stderr
assert command("a").stderr == "run 1 of nobody\\n\""""
    passes(tmp_path, body)


@pytest.mark.parametrize("how", ["command", "process"])
def test_a_command_ends_as_a_process_does(tmp_path: Path, how: str) -> None:
    body = f"""def check(words, code, out, err, **more):
    done = {how}(*words, **more)
    assert (done.returncode, done.stdout) == (code, out), done
    assert done.stderr.endswith(err), done.stderr
check(["three"], 3, "1 ['three']\\n", "run 1 of nobody\\n")
check(["crash"], 1, "", "ValueError: it broke\\n")
check(["words"], 1, "", "words of its own\\n")
check(["read"], 0, "WÖRTER\\n1 ['read']\\n", "nobody\\n", input="wörter")
check([b"\\xff"], 0, "1 ['\\\\udcff']\\n", "nobody\\n")
assert "__main__.py" in {how}("crash").stderr
assert {how}("x", script="scripts/count.py").stdout == "2\\n\""""
    passes(tmp_path, body)


@pytest.mark.parametrize("name", ["agent.gone", "agent.state", "agent"])
def test_what_is_not_written_yet_is_a_point_of_the_contract(tmp_path: Path, name: str) -> None:
    report = run(tmp_path, f"need({name!r}, 'gone')")
    assert [one.error for one in report.failed] == ["Failed"]
    assert report.failed[0].message == f"Contract: {name} has no gone yet"


def test_a_script_that_is_not_written_yet_is_a_point_of_the_contract(tmp_path: Path) -> None:
    report = run(tmp_path, "command(script='scripts/none.py')")
    assert report.failed[0].message == "Contract: there is no scripts/none.py yet"


def test_a_crash_of_a_command_is_told_with_its_place(tmp_path: Path) -> None:
    report = run(tmp_path, "done = command('crash')\nassert not done.stderr, done.stderr")
    assert 'raise ValueError("it broke")' in (report.failed[0].message or "")


def test_a_command_that_hangs_is_ended_and_the_process_put_right(tmp_path: Path) -> None:
    body = """import contextlib, time
signal.signal(signal.SIGALRM, lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
signal.setitimer(signal.ITIMER_REAL, 0.3)
out = sys.stdout
with contextlib.suppress(KeyboardInterrupt):
    command("read", input="x" * 10, script="scripts/sleep.py")
assert sys.stdout is out
assert command("a").stdout == "1 ['a']\\n\""""
    (tmp_path / "tree" / "scripts").mkdir(parents=True)
    (tmp_path / "tree" / "scripts" / "sleep.py").write_text("import time\ntime.sleep(60)\n")
    passes(tmp_path, body)


def test_a_loopback_answers_records_and_tells_what_failed_in_it(tmp_path: Path) -> None:
    body = """import httpx, pytest
def answer(request):
    assert request.path != "/wrong", "never ask for this"
    return 201, {"said": request.json} if request.body else iter([b"in ", b"pieces"])
with Loopback(answer) as server:
    came = httpx.post(server.url + "/x", json=[1])
    assert (came.status_code, came.json()) == (201, {"said": [1]})
    assert httpx.get(server.url).text == "in pieces"
    assert [(r.method, r.path) for r in server.requests] == [("POST", "/x"), ("GET", "/")]
with pytest.raises(AssertionError, match="never ask"), Loopback(answer) as server:
    httpx.get(server.url + "/wrong")"""
    passes(tmp_path, body)


def test_an_agent_of_another_tree_is_never_what_runs(tmp_path: Path) -> None:
    other = tmp_path / "other"
    shutil.copytree(ROOT / "agent", other / "agent")
    body = f"""import agent
agent.__file__ = {str(other / "agent" / "__init__.py")!r}
try:
    command("tokens", "x")
finally:
    agent.__file__ = str(TREE / "agent" / "__init__.py")"""
    report = run(tmp_path, body)
    assert "not this tree's agent" in (report.failed[0].message or ""), report.output[-2000:]


def test_only_the_first_failure_in_the_lessons_order_is_looked_for(tmp_path: Path) -> None:
    tests = [("Contract: c", "1 == 2"), ("Task 2: b", "1 == 2"), ("Task 1: a", "1 == 1")]
    files = {
        "agent/__init__.py": "",
        "pyproject.toml": (ROOT / "pyproject.toml").read_text(encoding="utf-8"),
        "tests/test_it.py": "".join(
            f'def test_{number}():\n    """{point}."""\n    import agent\n    assert {claim}\n'
            for number, (point, claim) in enumerate(tests)
        ),
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text, encoding="utf-8")
    report = run_tests(tmp_path, first=True)
    ran = [(one.point, one.outcome) for one in report.outcomes]
    assert ran == [("Task 1: a.", "passed"), ("Task 2: b.", "failed")]
    assert len(run_tests(tmp_path).failed) == 2


STATE = """import multiprocessing, os, sys

def test_state():
    '''Task 1.'''
    loaded = [name for name in sys.modules if name.split(".")[0] in ("agent", "workshop", "tests")]
    import agent
    child = multiprocessing.get_context("spawn").Process(target=print)
    child.start()
    child.join()
    rest = {k: v for k, v in os.environ.items() if k not in ("TINY_REPORT", "TINY_HOME")}
    files = sorted(os.listdir("/proc/self/fd")) if os.path.exists("/proc/self/fd") else []
    own = os.getsid(0) == os.getpid()
    read = sys.stdin.buffer.raw.read()
    state = [loaded, agent.__file__, os.getcwd(), sys.path, sys.argv[0], child.exitcode, own, read]
    raise AssertionError([*state, files, sorted(rest.items()), sys.flags, sys.getrecursionlimit()])

def test_ends():
    '''Task 2.'''
    os.kill(os.getpid(), 9)
"""


@pytest.mark.skipif(not USABLE, reason="the gate does not fork here")
def test_a_run_in_a_fork_is_what_one_of_its_own_is(tmp_path: Path) -> None:
    files = {
        "agent/__init__.py": "",
        "pyproject.toml": (ROOT / "pyproject.toml").read_text(encoding="utf-8"),
        "tests/test_it.py": STATE,
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text, encoding="utf-8")
    warm = Warm()
    fresh, forked, again = (
        run_tests(tmp_path, start=s) for s in (start_process, warm.start, warm.start)
    )
    warm.close()
    assert fresh.code == -9
    assert len(fresh.failed) == 1
    assert (fresh.outcomes, fresh.cuts) == (forked.outcomes, forked.cuts)
    assert (again.code, again.outcomes) == (fresh.code, fresh.outcomes)
    assert forked.code == fresh.code
