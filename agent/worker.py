"""The worker: one process that runs the tools of one run, since only a process can be stopped.

It guards against tools that hang, crash, print or leave children, and keeps keys from them. Not
against one that means harm or opens a session of its own. Their files are read here too.
"""

import json
import os
import re
import signal
import socket
import struct
import subprocess
import sys
import time
from collections.abc import Mapping
from contextlib import suppress
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from agent.tools import Outcome, Tool, invoke, load_tool

TREE = Path(__file__).resolve().parent.parent  # the folder that holds agent/
KEPT = re.compile(
    r"(PATH|HOME|LANG|LC_\w+|TMPDIR|TZ|SSL_CERT_(FILE|DIR)|(?i:(https?|all|no)_proxy)"
    r"|TINY_(?!\w*(KEY|TOKEN|SECRET|PASS))\w+)"
)
CODE = "import sys; sys.path.insert(0, sys.argv[1]); from agent.worker import serve; serve()"
MOST = 2**24  # bytes of a result


class Worker:
    """Starts with the first call, and anew after one that had to be stopped."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        kept = {name: value for name, value in environ.items() if KEPT.fullmatch(name)}
        secret = [name for name in kept if name.lower().endswith("proxy") and "@" in kept[name]]
        self.environ = {name: kept[name] for name in kept if name not in secret}
        self.process: subprocess.Popen[bytes] | None = None
        self.pipe: Connection | None = None

    def call(self, tool: Tool, arguments: dict[str, Any], seconds: float) -> Outcome:
        """What comes of a call. After `seconds` the tool is stopped, with all it has started."""
        ends = time.monotonic() + seconds
        try:
            pipe = self.start()
            pipe.send_bytes(json.dumps([str(tool.source), tool.name, arguments, seconds]).encode())
            if pipe.poll(max(0, ends - time.monotonic())):
                return Outcome(*json.loads(pipe.recv_bytes(MOST)))
            self.stop()
            return Outcome("timed_out", f"{tool.name} was stopped: not done in {seconds:.1f} s")
        except EOFError:
            code = None
            with suppress(subprocess.TimeoutExpired):
                code = self.process and self.process.wait(1)
            self.stop()
            return Outcome("failed", f"{tool.name} broke off: its process ended with {code}")
        except OSError as error:
            self.stop()
            return Outcome("failed", f"{tool.name} could not be called: {error}")

    def start(self) -> Connection:
        """Start the process, if it does not run already."""
        if self.pipe:
            return self.pipe
        self.pipe, theirs = Pipe()
        with socket.socket(fileno=os.dup(self.pipe.fileno())) as ours:  # it may read no more
            ours.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, struct.pack("ll", 0, 400_000))
        with theirs:
            self.process = subprocess.Popen(
                [sys.executable, "-I", "-c", CODE, str(TREE), str(theirs.fileno())],
                env=self.environ,
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                start_new_session=True,  # a group of its own, to be stopped as a whole
            )
        return self.pipe

    def stop(self) -> None:
        """Stop the process and what it has started."""
        if self.pipe:
            self.pipe.close()
        if self.process:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()
        self.process = self.pipe = None


def serve() -> None:
    """What the process does: calls in, outcomes out, until the other side is gone."""
    pipe, tools, me = Connection(int(sys.argv[2])), dict[tuple[str, str], Tool](), os.getpid()
    while True:
        try:
            source, name, arguments, seconds = json.loads(pipe.recv_bytes())
        except EOFError:
            return
        signal.setitimer(signal.ITIMER_REAL, seconds + 1)  # if nobody is left to stop it
        if (source, name) not in tools:
            tools[source, name] = load_tool(Path(source), name)
        outcome = invoke(tools[source, name], arguments)
        if os.getpid() != me:  # a child that the tool forked, and that came back with it
            os._exit(0)
        if len(answer := json.dumps([outcome.kind, outcome.text]).encode()) > MOST:
            answer = json.dumps(["failed", f"{name} gave over {MOST} bytes: ask for less"]).encode()
        pipe.send_bytes(answer)
        signal.setitimer(signal.ITIMER_REAL, 0)
