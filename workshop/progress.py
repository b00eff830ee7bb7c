"""What the learner has done: `.tiny/progress.json`, by slug, so that stages may be renumbered."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

State = dict[str, dict[str, Any]]


def progress_path(root: Path) -> Path:
    return root / ".tiny" / "progress.json"


def read_progress(root: Path) -> State:
    """Each slug's state, such as {"done": true, "hints": 2}; nothing where it cannot be read."""
    try:
        found = json.loads(progress_path(root).read_text(encoding="utf-8"))
        return {slug: dict(state) for slug, state in found.items()}
    except (OSError, ValueError, TypeError, AttributeError):
        return {}


def set_progress(root: Path, slug: str, **values: Any) -> None:
    """Change a slug's state and keep all else. Two at once wait for each other."""
    path = progress_path(root)
    with one_at_a_time(root, "progress"):
        state = read_progress(root)
        if path.exists() and not state and path.read_text(errors="replace").strip() != "{}":
            path.replace(path.with_name(f"progress-unreadable-{time.strftime('%Y%m%d-%H%M%S')}"))
        state.setdefault(slug, {}).update(values)
        temporary = path.with_name(f"progress.{os.getpid()}")
        temporary.write_text(json.dumps(state, indent=1) + "\n", encoding="utf-8")
        temporary.replace(path)


@contextlib.contextmanager
def one_at_a_time(root: Path, name: str) -> Iterator[None]:
    """Hold `.tiny/NAME.lock`; the next one waits."""
    (root / ".tiny").mkdir(exist_ok=True)
    with (root / ".tiny" / f"{name}.lock").open("a") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
