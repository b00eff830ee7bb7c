"""A trace: a file for each run, an event a line, written as it happens. It only ever adds."""

import json
import os
import sys
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from agent.client import hide
from agent.errors import TraceError

VERSION = 1


class Trace:
    """Called with each event. What cannot be written is said once and never ends a run.

    It holds what the model and the tools said, and is readable by its owner alone.
    """

    def __init__(
        self, folder: Path, key: str, warn: Callable[[str], None] | None = None, **about: Any
    ) -> None:
        now = datetime.now(UTC)
        self.path = folder / f"{now:%Y%m%dT%H%M%S.%f}-{os.getpid()}.jsonl"
        self.key, self.warn, self.began = key, warn, time.monotonic()
        self.file: int | None = None
        try:
            folder.mkdir(parents=True, exist_ok=True)
            flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC
            self.file = os.open(self.path, flags, 0o600)
        except OSError as error:
            self.give_up(error)
        self({"event": "begin", "trace": VERSION, "at": now.isoformat(), **about})

    def __call__(self, event: dict[str, Any]) -> None:
        if self.file is None:
            return
        line = {"seconds": round(time.monotonic() - self.began, 3), **hidden(event, self.key)}
        try:
            data = json.dumps(line).encode() + b"\n"
            if os.write(self.file, data) < len(data):
                raise OSError("no room is left")
        except OSError as error:
            self.give_up(error)

    def give_up(self, error: OSError) -> None:
        said = f"warning: no trace is written ({error})"
        self.warn(said) if self.warn else print(said, file=sys.stderr)
        self.close()

    def close(self) -> None:
        if self.file is not None:
            os.close(self.file)
        self.file = None


def hidden(value: Any, key: str) -> Any:
    """The same value with the key out of every text in it."""
    if isinstance(value, dict):
        return {name: hidden(item, key) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [hidden(item, key) for item in value]
    return hide(value, key) if isinstance(value, str) else value


def read_trace(path: Path) -> list[dict[str, Any]]:
    """The events of a trace, without a last line that a kill cut off. TraceError if it is none."""
    try:
        *lines, _ = path.read_bytes().split(b"\n")
        events = [json.loads(line) for line in lines]
        version = events[0]["trace"]
        if not all(isinstance(e["event"], str) and e["seconds"] >= 0 for e in events):
            raise ValueError("a line that is no event")
    except (OSError, ValueError, LookupError, TypeError, RecursionError) as error:
        raise TraceError(f"{path} is no trace ({type(error).__name__}: {error}).") from None
    if version != VERSION:
        raise TraceError(f"{path} has version {version}; this reads {VERSION}.")
    return events
