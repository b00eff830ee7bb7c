"""What the tests share: the contract's names, the command line, a server on loopback."""

from __future__ import annotations

import errno
import gc
import importlib
import importlib.util
import json
import logging
import os
import runpy
import signal
import subprocess
import sys
import traceback
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from io import TextIOWrapper
from pathlib import Path
from tempfile import TemporaryDirectory, TemporaryFile
from threading import Thread
from typing import IO, Any

import pytest

TREE = Path(__file__).resolve().parent.parent  # the folder that holds agent/ and tests/
Word = str | bytes | Path
Done = subprocess.CompletedProcess[str]  # returncode, stdout, stderr


def need(module: str, name: str) -> Any:
    """What the Contract names, or a failure that says what is not there yet."""
    try:
        return getattr(importlib.import_module(module), name)
    except AttributeError:
        pytest.fail(f"Contract: {module} has no {name} yet")
    except ImportError as error:
        why = "" if module.startswith(error.name or "?") else f" ({error})"
        pytest.fail(f"Contract: {module} has no {name} yet{why}")


def command(
    *argv: Word,
    script: str = "",
    env: Mapping[str, str] | None = None,
    input: str | bytes = "",
    cwd: Path = TREE,
) -> Done:
    """`python -m agent *argv`, or a script of the tree, run to its end in this process.

    Modules, environment, folder, streams and signals are fresh for it and are put back after it,
    so that nothing is left for the next run. `env` is added to the environment, in which no other
    TINY_ variable is set but a TINY_HOME that is empty and soon gone.
    """
    is_there(script)
    with TemporaryDirectory() as home, own_state(), streams(input) as (out, err):
        os.environ.update({"TINY_HOME": home, **(env or {})})
        os.chdir(cwd)
        file = str(TREE / script) if script else "agent"
        sys.argv = [file, *map(os.fsdecode, argv)]
        code: int | str | None = 0
        try:
            if script:
                sys.path.insert(0, str(Path(file).parent))
                runpy.run_path(file, run_name="__main__")
            else:
                runpy.run_module("agent", run_name="__main__", alter_sys=True)
        except SystemExit as ended:
            code = ended.code
            if isinstance(code, str):
                print(code, file=sys.stderr)
        except Exception as error:
            if isinstance(error, MemoryError) or getattr(error, "errno", 0) == errno.EFBIG:
                raise  # a limit of the check's, which has words of its own for it
            traceback.print_exc()
            code = 1
        sys.stdout.flush()
        sys.stderr.flush()
        number = code if isinstance(code, int) else int(code is not None)
        return Done(sys.argv, number, text_of(out), text_of(err))


def process(
    *argv: Word,
    script: str = "",
    env: Mapping[str, str] | None = None,
    input: str | bytes = "",
    cwd: Path = TREE,
    seconds: float = 60,
) -> Done:
    """The same in a process of its own, which takes ten times as long."""
    is_there(script)
    with TemporaryDirectory() as home:
        given = {k: v for k, v in os.environ.items() if not k.startswith("TINY_")}
        given |= {"PYTHONUTF8": "1", "TINY_HOME": home, **(env or {})}
        if not script:  # a script has to find its tree by itself
            given["PYTHONPATH"] = str(TREE)
        done = subprocess.run(
            [sys.executable, *([str(TREE / script)] if script else ["-m", "agent"]), *argv],
            cwd=cwd,
            env=given,
            input=input.encode() if isinstance(input, str) else input,
            capture_output=True,
            timeout=seconds,
            check=False,
        )
    return Done(done.args, done.returncode, done.stdout.decode(), done.stderr.decode())


def is_there(script: str) -> None:
    """A failure of the contract where the command or the script is not written yet."""
    agent = Path(need("agent", "__file__")).resolve().parent
    assert agent == TREE / "agent", f"not this tree's agent, but {agent}"
    if script and not (TREE / script).is_file():
        pytest.fail(f"Contract: there is no {script} yet")
    if not script and importlib.util.find_spec("agent.__main__") is None:
        pytest.fail("Contract: there is no agent/__main__.py yet")


@contextmanager
def own_state() -> Iterator[None]:
    """A process's state: what is changed in it is put back, and the tree's modules load anew."""
    environ, folder, argv, path = dict(os.environ), os.getcwd(), sys.argv, list(sys.path)
    handlers, level = logging.root.handlers, logging.root.level
    caught = {one: signal.getsignal(one) for one in (signal.SIGINT, signal.SIGTERM, signal.SIGPIPE)}
    modules = {name: sys.modules.pop(name) for name in ours()}
    for name in environ:
        if name.startswith("TINY_"):
            del os.environ[name]
    logging.root.handlers = []
    gc.freeze()  # so that the collection below is of what the run made, and takes no time
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                yield
            finally:
                for name in ours():
                    del sys.modules[name]
                gc.collect()
    finally:
        gc.unfreeze()
        sys.modules.update(modules)
        sys.argv, sys.path[:] = argv, path
        logging.root.handlers, logging.root.level = handlers, level
        for number, handler in caught.items():
            if signal.getsignal(number) is not handler:
                signal.signal(number, handler)
        os.environ.clear()
        os.environ.update(environ)
        os.chdir(folder)


def ours() -> list[str]:
    """The names of the loaded modules that are files of this tree, tests aside."""
    files = {name: getattr(module, "__file__", None) for name, module in sys.modules.items()}
    tree, tests = f"{TREE}{os.sep}", f"{TREE / 'tests'}{os.sep}"
    return [
        name
        for name, file in files.items()
        if name != "__main__" and file and file.startswith(tree) and not file.startswith(tests)
    ]


@contextmanager
def streams(given: str | bytes) -> Iterator[tuple[IO[bytes], IO[bytes]]]:
    """Files in place of the three standard streams; yields those of output and errors."""
    before = sys.stdin, sys.stdout, sys.stderr
    with TemporaryFile() as source, TemporaryFile() as out, TemporaryFile() as err:
        source.write(given.encode() if isinstance(given, str) else given)
        source.seek(0)
        sys.stdin = TextIOWrapper(source, "utf-8")
        sys.stdout = TextIOWrapper(out, "utf-8")
        sys.stderr = TextIOWrapper(err, "utf-8", "backslashreplace")
        try:
            yield out, err
        finally:
            sys.stdin, sys.stdout, sys.stderr = before


def text_of(file: IO[bytes]) -> str:
    file.seek(0)
    return file.read().decode()


@dataclass(frozen=True)
class Request:
    """One request that a Loopback had."""

    method: str
    path: str
    headers: dict[str, str]  # names in lower case
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


Reply = tuple[int, Any]  # the status, and a body: bytes, text, or what becomes JSON


class Loopback:
    """An HTTP server on a free port of loopback, for the length of a `with`.

    `answer` takes a Request and gives (status, body). A body of bytes or text is sent as it is,
    an iterator of bytes piece by piece, anything else as JSON. What `answer` raises is raised
    where the `with` ends.
    """

    def __init__(self, answer: Callable[[Request], Reply]) -> None:
        self.answer = answer
        self.requests: list[Request] = []
        self.raised: list[BaseException] = []
        loop = self

        class Handler(BaseHTTPRequestHandler):
            def handle_one(self) -> None:
                size = int(self.headers.get("Content-Length") or 0)
                headers = {name.lower(): value for name, value in self.headers.items()}
                request = Request(self.command, self.path, headers, self.rfile.read(size))
                loop.requests.append(request)
                try:
                    status, body = loop.answer(request)
                except BaseException as error:
                    loop.raised.append(error)
                    status, body = 500, "the test's own server failed"
                self.send(status, body)

            def send(self, status: int, body: Any) -> None:
                kind = "text/plain; charset=utf-8"
                if not isinstance(body, str | bytes | Iterator):
                    kind, body = "application/json", json.dumps(body)
                body = body.encode() if isinstance(body, str) else body
                with suppress(OSError):  # whoever asked has gone
                    self.send_response(status)
                    self.send_header("Content-Type", kind)
                    if isinstance(body, bytes):
                        self.send_header("Content-Length", str(len(body)))
                    self.end_headers()
                    for piece in [body] if isinstance(body, bytes) else body:
                        self.wfile.write(piece)
                        self.wfile.flush()

            do_GET = do_POST = handle_one

            def log_message(self, *_: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.server.server_port}"

    @property
    def env(self) -> dict[str, str]:
        """The variables that lead to this server, with a model and the prefixes q: and p:."""
        return {
            "TINY_BASE_URL": f"{self.url}/v1",
            "TINY_EMBED_MODEL": "fake",
            "TINY_QUERY_PREFIX": "q: ",
            "TINY_PASSAGE_PREFIX": "p: ",
        }

    def __enter__(self) -> Loopback:
        serve = Thread(target=self.server.serve_forever, args=(0.01,), daemon=True)
        serve.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self.server.shutdown()
        self.server.server_close()
        if self.raised and kind is None:
            raise self.raised[0]


def embeddings(vector: Callable[[str], Sequence[float]]) -> Callable[[Request], Reply]:
    """An answer for a Loopback: /v1/embeddings, with a function from a text to its vector."""

    def answer(request: Request) -> Reply:
        texts = request.json["input"]
        data = [{"index": i, "embedding": list(vector(text))} for i, text in enumerate(texts)]
        return 200, {"object": "list", "data": data}

    return answer
