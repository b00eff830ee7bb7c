"""Runs of a tree's tests that begin in a process which has imported pytest and the four packages.

A run of one file of tests is half start-up, and the gate makes hundreds of runs. Here a process
forks for each: the child has no `agent` yet, as a fresh one, and is what `python -m pytest` is.
This file is that process, too, and imports nothing of the workshop.
"""

from __future__ import annotations

import gc
import json
import os
import runpy
import select
import subprocess
import sys
from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import IO, Any

IMPORTED = ("dotenv", "http.server", "httpx", "multiprocessing.connection", "numpy", "yaml")
USABLE = sys.platform == "linux"  # elsewhere numpy may not survive a fork


class Forked:
    """One run, as far as `run_tests` looks at it: the first process of a session of its own."""

    def __init__(self, told: IO[bytes]) -> None:
        self.told = told
        self.pid = int(told.readline())
        self.code: int | None = None

    def wait(self, timeout: float | None = None) -> int:
        """Its exit code, as Popen gives it. TimeoutExpired where it is not there in time."""
        if self.code is None:
            if not select.select([self.told], [], [], timeout)[0]:
                raise subprocess.TimeoutExpired("pytest", timeout or 0)
            self.code = int(self.told.readline())
        return self.code


class Warm:
    """The process that forks, one run at a time. It begins with the first."""

    process: subprocess.Popen[bytes] | None = None

    def start(
        self, command: Sequence[str], folder: Path, env: Mapping[str, str], said: IO[bytes]
    ) -> Forked:
        """Do in a fork what a command of `run_tests` does."""
        if self.process is None:
            kept = {name: value for name, value in env.items() if not name.startswith("TINY_")}
            self.process = subprocess.Popen(
                [sys.executable, "-s", __file__],
                env=kept,
                bufsize=0,  # so that what select does not see is not in a buffer of ours
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
            )
        assert self.process.stdin
        assert self.process.stdout
        words = command[command.index("pytest") + 1 :]
        asked = {"words": words, "folder": str(folder), "env": dict(env), "said": said.name}
        self.process.stdin.write(json.dumps(asked).encode() + b"\n")
        return Forked(self.process.stdout)

    def close(self) -> None:
        if self.process:
            self.process.communicate()


def serve() -> None:
    """Fork for each line of standard input; answer with the child's id, then its exit code."""
    from _pytest.config import default_plugins

    for name in (*(f"_pytest.{plugin}" for plugin in default_plugins), *IMPORTED):
        import_module(name)
    gc.collect()
    gc.freeze()
    for line in sys.stdin:
        pid = os.fork()
        if not pid:
            return become(json.loads(line))
        print(pid, flush=True)
        print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), flush=True)
    return None


def become(asked: dict[str, Any]) -> None:
    """Be the process that was asked for, in a session of its own, until it ends."""
    os.setsid()
    nothing, said = os.open(os.devnull, os.O_RDONLY), os.open(asked["said"], os.O_WRONLY)
    for old, new in ((nothing, 0), (said, 1), (said, 2)):
        os.dup2(old, new)
    os.close(nothing)
    os.close(said)
    os.chdir(asked["folder"])
    os.environ.clear()
    os.environ.update(asked["env"])
    sys.path[0] = asked["folder"]
    sys.argv = ["pytest", *asked["words"]]
    runpy.run_module("pytest", run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    serve()
