"""An index you can read: texts with owners, one matrix, one product. It decides nothing."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from agent.errors import VectorError


@dataclass(frozen=True)
class Embedder:
    """An embedding model: its name, its two prefixes, and the call that embeds."""

    model: str
    query_prefix: str
    passage_prefix: str
    embed: Callable[[Sequence[str]], np.ndarray]  # n texts -> (n, dimensions), float32

    def unit_vectors(self, texts: Sequence[str], prefix: str) -> np.ndarray:
        """Rows of length 1: (len(texts), dimensions). VectorError names a text that has none."""
        # To an e5 model "query: query: " is another text: a prefix is never doubled.
        matrix = self.embed([t if t.startswith(prefix) else prefix + t for t in texts])
        lengths = np.linalg.norm(matrix, axis=1, keepdims=True)
        for text, length in zip(texts, lengths[:, 0], strict=True):
            if not 0 < length < np.inf:
                raise VectorError(f"{self.model}: no usable vector for {text[:60]!r}. Reword it.")
        return matrix / lengths


@dataclass(frozen=True)
class Hit:
    """An entry of the index, and how close it is to a request."""

    text: str
    owner: str
    score: float  # cosine, in [-1, 1]


@dataclass(frozen=True)
class Index:
    """Texts, their owners, their vectors, and the embedder that made them: no other searches it."""

    texts: list[str]
    owners: list[str]
    matrix: np.ndarray  # (entries, dimensions), float32, rows of length 1
    embedder: Embedder

    @classmethod
    def build(cls, pairs: Sequence[tuple[str, str]], embedder: Embedder) -> "Index":
        """An index of (text, owner) pairs, in their order."""
        texts = [text for text, _ in pairs]
        matrix = embedder.unit_vectors(texts, embedder.passage_prefix) if texts else np.eye(0)
        return cls(texts, [owner for _, owner in pairs], matrix, embedder)

    def vectors(self, requests: Sequence[str]) -> np.ndarray:
        """The requests as the index sees them: (len(requests), dimensions), rows of length 1."""
        vectors = self.embedder.unit_vectors(requests, self.embedder.query_prefix)
        if vectors.shape[1] != self.matrix.shape[1]:
            sizes = f"{self.matrix.shape[1]} numbers in the index, {vectors.shape[1]} in a request"
            raise VectorError(f"{self.embedder.model}: {sizes}. Build the index again.")
        return vectors

    def search(self, request: str, k: int = 3) -> list[Hit]:
        """The `k` entries closest to the request, best first; ties keep the order of the pairs."""
        if not self.texts:
            return []
        scores = np.clip(self.matrix @ self.vectors([request])[0], -1, 1)
        best = np.argsort(-scores, kind="stable")[:k]
        return [Hit(self.texts[i], self.owners[i], float(scores[i])) for i in best]

    def twins(self) -> list[tuple[str, str]]:
        """Different texts with the same vector: the endpoint cuts long texts, and says nothing."""
        first: dict[bytes, str] = {}
        keys = [vector.tobytes() for vector in self.matrix]
        pairs = [(first.setdefault(k, t), t) for k, t in zip(keys, self.texts, strict=True)]
        return [(one, other) for one, other in pairs if one != other]
