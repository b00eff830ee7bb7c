"""A cache of vectors on disk: a file a model, an entry for each text with its prefix."""

import os
from collections.abc import Sequence
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from zipfile import BadZipFile

import numpy as np

from agent.index import Embedder

CANARY = "The same model gives this sentence the same vector."


def cached(embedder: Embedder, folder: Path) -> Embedder:
    """The same embedder, which keeps vectors in `folder`; not of one text alone: a request."""
    path = folder / f"vectors-{digest(embedder.model)[:16]}.npz"

    def embed(texts: Sequence[str]) -> np.ndarray:
        if len(texts) == 1:
            return embedder.embed(texts)
        keys, known = [digest(text) for text in texts], read_cache(path)
        wanted = dict(zip(keys, texts, strict=True))
        missing = {key: text for key, text in wanted.items() if key not in known}
        canary, *fresh = embedder.embed([CANARY, *missing.values()])
        if not same(known.get(digest(CANARY), canary), canary):
            known, missing = {}, wanted  # another model answers to this name now
            fresh = list(embedder.embed(list(missing.values())))
        if missing:
            known |= {digest(CANARY): canary, **dict(zip(missing, fresh, strict=True))}
            write_cache(path, known)
        return np.array([known[key] for key in keys], dtype=np.float32)

    return replace(embedder, embed=embed)


def digest(text: str) -> str:
    return sha256(text.encode(errors="replace")).hexdigest()


def same(one: np.ndarray, other: np.ndarray) -> bool:
    """Whether two vectors are equal but for the noise of another batch or machine."""
    return one.shape == other.shape and np.allclose(one, other, atol=0.05 * abs(one).max())


def read_cache(path: Path) -> dict[str, np.ndarray]:
    """The vectors in a cache file; none, where it is not there or damaged."""
    try:
        with path.open("rb") as raw, np.load(raw, allow_pickle=False) as file:
            return dict(zip(file["keys"].tolist(), file["vectors"], strict=True))
    except (OSError, ValueError, LookupError, EOFError, TypeError, RuntimeError, BadZipFile):
        return {}


def write_cache(path: Path, known: dict[str, np.ndarray]) -> None:
    """Replace the file in one step. Where that fails, only time is lost."""
    temporary = path.with_name(f"{path.name}.{os.getpid()}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with temporary.open("wb") as file:
            np.savez(file, keys=np.array(list(known)), vectors=np.array(list(known.values())))
        temporary.replace(path)
    except OSError:
        if temporary.is_file():
            temporary.unlink()
