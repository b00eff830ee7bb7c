"""The gap log: a line of JSON for each request that nobody took. It is never read here."""

import fcntl
import json
import os
from datetime import UTC, datetime
from pathlib import Path

from agent.concierge import Route

NEAREST = 3
# Without O_NONBLOCK, a pipe that nobody reads would hold up the route.
APPEND = os.O_RDWR | os.O_APPEND | os.O_CREAT | getattr(os, "O_NONBLOCK", 0)


def log_gap(path: Path, route: Route, model: str) -> bool:
    """Add a refusal to a file, in one write. False, and nothing raised, where that fails."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        file = os.open(path, APPEND, 0o666)
        try:
            fcntl.flock(file, fcntl.LOCK_EX)  # between the look at the end and the write
            row = line_end(file) + as_row(route, model)
            return os.write(file, row) == len(row)
        finally:
            os.close(file)
    except (OSError, ValueError):
        return False


def as_row(route: Route, model: str) -> bytes:
    nearest = [vars(candidate) for candidate in route.ranking[:NEAREST]]
    gap = {
        "time": datetime.now(UTC).isoformat(timespec="seconds"),
        "request": route.request,
        "reason": route.reason,
        "nearest": nearest,
        "model": model,
    }
    return json.dumps(gap, ensure_ascii=False).encode("utf-8", "replace") + b"\n"


def line_end(file: int) -> bytes:
    """What ends the last line of a file, if somebody left it open."""
    size = os.fstat(file).st_size
    open_ended = size and os.pread(file, 1, size - 1) != b"\n"
    return b"\n" if open_ended else b""
