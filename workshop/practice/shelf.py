"""Vectors on disk for the length of a test run, so that its commands embed a text once.

Whoever uses the practice endpoint has none of this: what a request costs is part of the lessons.
"""

from __future__ import annotations

import sqlite3
from hashlib import sha256
from pathlib import Path

Vector = tuple[bytes, int]
NAME = "TINY_PRACTICE_SHELF"  # the file; where it is not set, nothing is kept


class Shelf:
    """A table of texts' keys and their vectors, which several processes may use at once.

    For one thread at a time.
    """

    def __init__(self, path: Path) -> None:
        self.base = sqlite3.connect(path, timeout=60, isolation_level=None, check_same_thread=False)
        self.base.execute("PRAGMA synchronous = OFF")
        self.base.execute("CREATE TABLE IF NOT EXISTS texts (key PRIMARY KEY, vector, tokens)")

    def get(self, text: str) -> Vector | None:
        rows = self.base.execute("SELECT vector, tokens FROM texts WHERE key = ?", (key(text),))
        found: Vector | None = rows.fetchone()
        return found

    def put(self, text: str, vector: Vector) -> None:
        self.base.execute("INSERT OR IGNORE INTO texts VALUES (?, ?, ?)", (key(text), *vector))


def key(text: str) -> bytes:
    return sha256(text.encode()).digest()
