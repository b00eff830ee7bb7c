"""Commands in a tree's environment: `just run` and `just with`.

Where no endpoint is set, the practice endpoint runs in this process for as long as the command
does, so it is gone when the command ends, however it ends.
"""

from __future__ import annotations

import contextlib
import io
import os
import shlex
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from workshop.errors import INTERRUPTED, USAGE, Problem
from workshop.lesson import Lesson
from workshop.line import Line, Stage, ensure_built
from workshop.repo import open_repo
from workshop.show import lesson_path
from workshop.trees import tree_of

# A variable of the caller's that could make another tree's `agent` the one that is imported.
DROPPED = ("PYTHONPATH", "PYTHONHOME", "PYTHONSAFEPATH", "VIRTUAL_ENV", "TINY_ROOT", "TINY_JUST")


def run_request(root: Path, words: list[str]) -> int:
    """The agent of the tree that the user stands in, on a request."""
    line = ensure_built(open_repo(root))
    tree = tree_of(root, line, Path.cwd())
    command = run_command(root, line, tree.stage)
    if not command:
        proof = Lesson.read(lesson_path(root, tree.stage)).proof
        raise Problem(
            f"stage {tree.stage.number}, {tree.stage.slug}, has nothing to run a request with yet.",
            f"What it has: just with {proof}",
            USAGE,
        )
    asks = shlex.split(command)[-1] == "ask"  # it reads no requests from standard input
    if not words and (asks or sys.stdin is None or sys.stdin.isatty()):
        request = example(root, line, tree.stage, shlex.split(command))
        raise Problem("run what?", f"For example: just run {request}", USAGE)
    return call(root, tree.folder, [*shlex.split(command), *words])


def example(root: Path, line: Line, stage: Stage, command: list[str]) -> str:
    """A request that the newest lesson up to this stage shows `just run`'s command with."""
    starts = [["just", "run"], ["just", "with", *command]]
    if command[-1] == "ask":  # a request alone does, too
        starts.append(["just", "with", *command[:-1]])
    for earlier in reversed(line.stages[: stage.number]):
        for shown, _ in Lesson.read(lesson_path(root, earlier)).commands:
            try:
                words = shlex.split(shown)
            except ValueError:  # quotes that span lines
                continue
            for start in starts:
                request = words[-1]
                if words[:-1] == start and " " in request:
                    plain = not set(request) & set('"$`\\!')
                    return f'"{request}"' if plain else shlex.quote(request)
    return '"…"'


def run_command(root: Path, line: Line, stage: Stage) -> str | None:
    """What `just run` calls: the `run` of the last lesson up to this stage that names one."""
    for earlier in reversed(line.stages[: stage.number]):
        if command := Lesson.read(lesson_path(root, earlier)).run:
            return command
    return None


def run_with(root: Path, words: list[str]) -> int:
    """Any command, from the root of the tree that the user stands in."""
    line = ensure_built(open_repo(root))
    tree = tree_of(root, line, Path.cwd())
    if not words:
        proof = Lesson.read(lesson_path(root, tree.stage)).proof
        raise Problem("with which command?", f"For example: just with {proof}", USAGE)
    return call(root, tree.folder, words)


def call(root: Path, folder: Path, words: list[str]) -> int:
    """Run a command in a tree and give its exit code."""
    with endpoint(root) as extra:
        env = environment(root, extra)
        program = shutil.which(words[0], path=env["PATH"])
        if program is None:
            raise Problem(f"{words[0]!r} is no command here.", "Is it spelt right?", 127)
        return wait([program, *words[1:]], folder, env)


def environment(root: Path, extra: dict[str, str]) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if name not in DROPPED}
    path = os.pathsep.join([str(root / ".venv" / "bin"), kept.get("PATH", os.defpath)])
    # Empty counts as not set, so that what .env says is used; an empty prefix is one.
    for name in [name for name, value in kept.items() if not value]:
        if name.startswith("TINY_") and not name.endswith("_PREFIX"):
            del kept[name]
    return {"TINY_HOME": str(root / ".tiny"), **kept, "PATH": path, **extra}


@contextlib.contextmanager
def endpoint(root: Path) -> Iterator[dict[str, str]]:
    """The TINY_ variables to set: those of the practice endpoint, where none is set."""
    from workshop import practice

    named = {**read_env_file(root / ".env"), **{k: v for k, v in os.environ.items() if v}}
    embeds_here = named.get("TINY_EMBED_BASE_URL") == "practice"
    if named.get("TINY_BASE_URL") and not embeds_here:
        yield {}
        return
    home = Path(os.environ.get("TINY_HOME") or root / ".tiny")
    with practice.start(folder=home) as server:
        extra = dict(server.env)
        if embeds_here and named.get("TINY_BASE_URL"):
            extra["TINY_EMBED_BASE_URL"] = extra.pop("TINY_BASE_URL")
            extra["TINY_EMBED_API_KEY"] = extra.pop("TINY_API_KEY")
            extra.pop("TINY_CHAT_MODEL")
        elif named.get("TINY_EMBED_BASE_URL"):  # embeddings of the user's own, chat of ours
            for name in ("TINY_EMBED_MODEL", "TINY_QUERY_PREFIX", "TINY_PASSAGE_PREFIX"):
                extra.pop(name)
            if key := named.get("TINY_EMBED_API_KEY") or named.get("TINY_API_KEY"):
                extra["TINY_EMBED_API_KEY"] = key
        for name in ("TINY_QUERY_PREFIX", "TINY_PASSAGE_PREFIX"):
            if name in os.environ:  # the lessons' experiments: also an empty one counts
                extra.pop(name, None)
        yield extra


def read_env_file(path: Path) -> dict[str, str]:
    """What `.env` sets, as it stands there. Problem names the line that cannot be read (T55)."""
    from dotenv.parser import parse_stream

    mend = "Each line is NAME=value, or starts with a #. .env.example shows some."
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return {}
    except UnicodeDecodeError as error:
        line = path.read_bytes()[: error.start].count(b"\n") + 1
        raise Problem(f"{path}, line {line}: it is not UTF-8.", mend, USAGE) from None
    found = {}
    for binding in parse_stream(io.StringIO(text)):
        if binding.error or (binding.key is not None and binding.value is None):
            blank = len(binding.original.string) - len(binding.original.string.lstrip())
            line = binding.original.line + binding.original.string[:blank].count("\n")
            raise Problem(f"{path}, line {line}: it cannot be read.", mend, USAGE)
        if binding.key and binding.value:
            found[binding.key] = binding.value
    return found


def wait(words: list[str], folder: Path, env: dict[str, str]) -> int:
    """Run a command. Ctrl-C reaches it through the terminal; we stay until it is gone."""
    asked: list[float] = []
    before = {
        number: signal.signal(number, lambda *_: asked.append(time.monotonic()))
        for number in (signal.SIGINT, signal.SIGTERM)
    }
    sent = 0
    try:
        child = subprocess.Popen(words, cwd=folder, env=env)
        while True:
            try:
                code = child.wait(timeout=0.1)
                break
            except subprocess.TimeoutExpired:
                # Sent to us alone, as `kill` does: the child has not had it. Pass it on.
                if len(asked) > sent and time.monotonic() - asked[-1] > 0.3:
                    sent = len(asked)
                    child.send_signal(signal.SIGINT if sent < 3 else signal.SIGKILL)
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    if asked and code:
        return INTERRUPTED
    return 128 - code if code < 0 else code
