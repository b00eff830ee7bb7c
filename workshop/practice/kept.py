"""Vectors of tools on disk, so that a next process need not embed two hundred of them again.

A damaged file counts as empty, one of another engine too: its first text is embedded anew and
compared. Only tools' descriptions are kept, never a request or a result.
"""

from __future__ import annotations

import os
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from zipfile import BadZipFile

import numpy as np

FILE = "practice-tools.npz"
MOST = 4096  # vectors, 1.5 KB each


def key(text: str) -> str:
    return sha256(text.encode("utf-8", "replace")).hexdigest()


def read(folder: Path) -> dict[str, np.ndarray]:
    """The vectors by the key of their text; none where the file is missing or damaged."""
    try:
        with (folder / FILE).open("rb") as raw, np.load(raw, allow_pickle=False) as file:
            keys, vectors = file["keys"].tolist(), file["vectors"]
    except (OSError, ValueError, LookupError, EOFError, TypeError, RuntimeError, BadZipFile):
        return {}
    sound = vectors.ndim == 2 and vectors.dtype == np.float32 and len(keys) == len(vectors)
    return dict(zip(keys, vectors, strict=True)) if sound else {}


def write(folder: Path, known: dict[str, np.ndarray]) -> None:
    """Replace the file in one step. Where that fails, only time is lost."""
    temporary = folder / f"{FILE}.{os.getpid()}"
    latest = dict(list(known.items())[-MOST:])
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with temporary.open("wb") as file:
            np.savez(file, keys=np.array(list(latest)), vectors=np.array(list(latest.values())))
        temporary.replace(folder / FILE)
    except OSError:
        with suppress(OSError):
            temporary.unlink()
