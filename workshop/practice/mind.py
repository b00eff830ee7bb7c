"""What the stand-in compares texts with: the endpoint's own embedding model, and shared words."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from . import kept
from .embeddings import PASSAGE, QUERY, BadText, Embedder
from .words import asked_for, keys, matched

LONGEST = 1200  # characters of a text that are compared; a longer one says the same by then


# What any request and any tool have in common is their mean. Without it, tools are told apart
# better: 77 of 100 examples of the catalogue found their tool among five, 79 without the mean.
REQUESTS = """
Book a table for two on Friday evening
What is the capital of Portugal?
Wie spät ist es in Tokio?
Send the report to my boss
Schreib eine Notiz für morgen
Delete the old backup
Wo finde ich den Vertrag?
How many people live there?
Such nach günstigen Angeboten
Change the colour to blue
Kannst du das Dokument öffnen?
Please approve the request
Is the shop open today?
Die Rechnung stimmt nicht, bitte korrigieren
Add three items to the list
Zeig mir alle offenen Vorgänge
"""
TOOLS = """
create event: Creates an entry with a title and a time.
search files: Finds files by name or content and lists them.
delete user: Removes an account for good.
get status: Tells how far something is.
send message: Sends a text to one or more people.
update record: Changes fields of a stored record.
list orders: Lists orders, newest first.
convert units: Converts a value from one unit into another.
upload image: Stores a picture and returns its address.
set price: Sets the price of an article.
check spelling: Finds mistakes in a text.
book seat: Reserves a seat on a connection.
export table: Writes rows to a file.
start job: Starts a process and returns its id.
translate text: Translates a text into another language.
show map: Shows a place on a map.
"""


class Mind:
    """Similarities of texts. Vectors of tools are kept for the life of the process, and on disk."""

    def __init__(self, embedder: Embedder, folder: Path | None = None) -> None:
        """`folder` is where vectors of tools outlive the process; None keeps none."""
        self.embedder = embedder
        self.folder = folder
        self._tools: dict[str, np.ndarray] | None = None
        self._fresh = False
        self._means: tuple[np.ndarray, np.ndarray] | None = None
        self._lock = threading.RLock()

    def vector(self, prefix: str, text: str) -> np.ndarray | None:
        """The vector, of length 1; None for a text that the model cannot take."""
        clean = text.replace("\0", " ").encode("utf-8", "replace").decode("utf-8")[:LONGEST]
        if not clean.strip():
            return None
        try:
            self.embedder.check(prefix + clean)
        except BadText:
            return None
        raw, _ = self.embedder.embed(prefix + clean)
        return np.frombuffer(raw, dtype="<f4")

    def tool(self, text: str, prefix: str = PASSAGE) -> np.ndarray | None:
        """The vector of a tool's description."""
        name = kept.key(prefix + text)
        with self._lock:
            if self._tools is None:
                self._tools = self._from_disk()
            known = self._tools.get(name)
            if known is None:
                known = self.vector(prefix, text)
                if known is not None and len(self._tools) < kept.MOST:
                    self._tools[name] = known
                    self._fresh = True
        return known

    def _from_disk(self) -> dict[str, np.ndarray]:
        """What an earlier process kept, if it had the same engine."""
        known = kept.read(self.folder) if self.folder is not None else {}
        first = TOOLS.strip().splitlines()[0]
        canary, stored = self.vector(PASSAGE, first), known.get(kept.key(PASSAGE + first))
        same = canary is not None and stored is not None and np.array_equal(canary, stored)
        return known if same else {}

    def save(self) -> None:
        """Write the tools' vectors down, where there are new ones."""
        with self._lock:
            if self._fresh and self.folder is not None and self._tools is not None:
                kept.write(self.folder, self._tools)
            self._fresh = False

    def means(self) -> tuple[np.ndarray, np.ndarray]:
        """The mean vectors of requests and of tools."""
        if self._means is None:
            self._means = self._mean(REQUESTS, QUERY), self._mean(TOOLS, PASSAGE)
        return self._means

    def _mean(self, texts: str, prefix: str) -> np.ndarray:
        vectors = [self.tool(text, prefix) for text in texts.strip().splitlines()]
        return np.mean([vector for vector in vectors if vector is not None], axis=0)

    def to_tools(self, request: str, texts: Sequence[str]) -> list[float]:
        """The request's similarity to each tool, less what any two have: about -0.3 to 0.6."""
        asked = self.vector(QUERY, request)
        if asked is None:
            return [0.0] * len(texts)
        of_requests, of_tools = self.means()
        vectors = [self.tool(text) for text in texts]
        self.save()
        asked = _unit(asked - of_requests)
        return [
            0.0 if vector is None else float(asked @ _unit(vector - of_tools)) for vector in vectors
        ]

    def to_texts(self, request: str, texts: Sequence[str]) -> list[float]:
        """The request's similarity to each text."""
        asked = self.vector(QUERY, request)
        if asked is None:
            return [0.0] * len(texts)
        vectors = [self.vector(PASSAGE, text) for text in texts]
        return [0.0 if vector is None else float(asked @ vector) for vector in vectors]

    def guess(self, request: str, texts: list[str]) -> int:
        """Which of some short texts is nearest."""
        scores = self.to_tools(request, texts)
        return max(range(len(texts)), key=lambda place: (scores[place], -place))


def _unit(vector: np.ndarray) -> np.ndarray:
    return vector / max(float(np.linalg.norm(vector)), 1e-9)


def weigh(request: str, texts: Sequence[str]) -> list[float]:
    """The part of the request's content words that each text holds; rare words count more."""
    asked = asked_for(request)
    if not asked or not texts:
        return [0.0] * len(texts)
    hits = np.array([[matched(word, held) for word in asked] for held in map(keys, texts)])
    there = (hits > 0).sum(axis=0)
    weights = np.log((len(texts) + 1) / (there + 0.5)) + 0.2
    if there.any():  # a word that stands nowhere says little about which text is best
        weights = np.where(there == 0, 0.8 * weights[there > 0].min(), weights)
    return [float(score) for score in hits @ weights / weights.sum()]
