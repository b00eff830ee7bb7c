"""An index of sentences by meaning: each has a direction, and an owner.

Does not choose among owners, and does not know where vectors come from.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from agent.errors import VectorError

SHOWN = 80  # characters of a text in an error


@dataclass(frozen=True)
class Embedder:
    """A model, what it wants in front of a text, and the way to its vectors."""

    model: str
    query_prefix: str
    passage_prefix: str
    embed: Callable[[Sequence[str]], np.ndarray]

    def directions(self, texts: Sequence[str], prefix: str) -> np.ndarray:
        """A row of length 1 for each text, (texts, dimensions), float32. Embeds in one call."""
        sent = [prefix + text.removeprefix(prefix) for text in texts]
        raw = np.asarray(self.embed(sent), dtype=np.float64)
        if raw.ndim != 2 or len(raw) != len(texts):
            raise VectorError(f"{self.model} gave {raw.shape} numbers for {len(texts)} texts.")
        largest = np.abs(raw).max(axis=1, initial=0)  # NaN where one number is NaN
        for text, most in zip(texts, largest, strict=True):
            if not 0 < most < np.inf:
                shown = text if len(text) <= SHOWN else text[:SHOWN] + "…"
                raise VectorError(f"{self.model} gave no usable vector for {shown!r}. Change it.")
        # Divided by the largest first: squares of very large and very small numbers are lost.
        raw = raw / largest[:, None]
        return (raw / np.sqrt((raw**2).sum(axis=1))[:, None]).astype(np.float32)


@dataclass(frozen=True)
class Hit:
    """A text that was found, without its prefix, and its cosine."""

    text: str
    owner: str
    score: float


@dataclass(frozen=True)
class Index:
    """Texts, their owners and their directions, in one order."""

    texts: list[str]
    owners: list[str]
    matrix: np.ndarray  # (entries, dimensions), float32, rows of length 1
    embedder: Embedder

    @classmethod
    def build(cls, pairs: Sequence[tuple[str, str]], embedder: Embedder) -> Index:
        """An index of (text, owner) pairs. VectorError for a vector without a direction."""
        prefix = embedder.passage_prefix
        texts = [text.removeprefix(prefix) for text, _ in pairs]
        nothing = np.zeros((0, 0), dtype=np.float32)
        matrix = embedder.directions(texts, prefix) if texts else nothing
        return cls(texts, [owner for _, owner in pairs], matrix, embedder)

    def vectors(self, requests: Sequence[str]) -> np.ndarray:
        """The directions of requests, (requests, dimensions). VectorError if they do not fit."""
        size = self.matrix.shape[1]
        if not requests:
            return np.zeros((0, size), dtype=np.float32)
        found = self.embedder.directions(requests, self.embedder.query_prefix)
        if self.texts and found.shape[1] != size:
            raise VectorError(
                f"a request's vector has {found.shape[1]} numbers, the index's have {size}. "
                "Build the index with the model that embeds the requests."
            )
        return found

    def search(self, request: str, k: int = 3) -> list[Hit]:
        """The `k` entries closest to a request, best first; the earlier one of equals first."""
        if not self.texts:
            return []
        # A sum row by row gives equal rows equal scores, which a matrix product need not.
        cosines = (self.matrix * self.vectors([request])).sum(axis=1).clip(-1, 1).tolist()
        best = heapq.nsmallest(k, ((-score, place) for place, score in enumerate(cosines)))
        return [Hit(self.texts[place], self.owners[place], -less) for less, place in best]

    def twins(self) -> list[tuple[str, str]]:
        """Different texts with one vector: the first of them with each of the others."""
        return list(dict.fromkeys(self.same_rows()))

    def same_rows(self) -> Iterator[tuple[str, str]]:
        first: dict[bytes, str] = {}
        for text, row in zip(self.texts, self.matrix, strict=True):
            earlier = first.setdefault((row + 0.0).tobytes(), text)  # -0.0 is 0.0
            if earlier != text:
                yield earlier, text
