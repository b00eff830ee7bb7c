"""The gap log: a line for each request that nobody takes, the list of agents still to build."""

import json
from datetime import UTC, datetime
from pathlib import Path

from agent.concierge import Route


def log_gap(path: Path, route: Route, model: str) -> bool:
    """Append a refused request to a JSONL file. False if it could not be written."""
    gap = {
        "time": datetime.now(UTC).isoformat(timespec="seconds"),
        "request": route.request,
        "reason": route.reason,
        "nearest": [vars(candidate) for candidate in route.ranking[:3]],
        "model": model,
    }
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        # One write of one line in append mode: two processes do not mix theirs.
        with path.open("ab", buffering=0) as file:
            file.write(json.dumps(gap, ensure_ascii=False).encode() + b"\n")
    except OSError:
        return False
    return True
