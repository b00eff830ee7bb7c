"""The concierge: which agent takes a request. One embedding and one product, no LLM call."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from agent.calibration import Calibration
from agent.errors import CardError
from agent.index import Index
from agent.space import Space

BEST = 3  # examples that speak for a card: the same number for every card
SHOWN = 4  # cards in an answer: the best one and the three after it


@dataclass(frozen=True)
class Candidate:
    """A card, the mean cosine of its best examples, and the closest of them."""

    card: str
    score: float
    example: str


@dataclass(frozen=True)
class Route:
    """A request, the cards that come closest, best first, and why none of them takes it."""

    request: str
    ranking: list[Candidate]
    calibrated: bool = False
    reason: str | None = None  # low_score, low_margin, or None

    @property
    def card(self) -> str | None:
        """The card that takes the request; None for a refusal."""
        return None if self.reason else self.ranking[0].card

    @property
    def margin(self) -> float:
        """How far the best card is ahead of the second; its whole score if it is alone."""
        return self.ranking[0].score - (self.ranking[1].score if len(self.ranking) > 1 else 0.0)

    @property
    def readings(self) -> dict[str, float]:
        """What a calibration has least values for. The first that is too low is the reason."""
        return {"score": self.ranking[0].score, "margin": self.margin}


class Concierge:
    """Ranks the cards that own the entries of an index; with a calibration, it refuses too."""

    calibration: Calibration | None = None

    def __init__(self, index: Index, space: Space | None = None) -> None:
        if not index.texts:
            raise CardError("nobody to route to: the registry has no cards. Add one.")
        owned: dict[str, list[int]] = {}
        for entry, card in enumerate(index.owners):
            owned.setdefault(card, []).append(entry)
        self.index, self.cards, self.space = index, list(owned), space or Space.fit(index)
        self.matrix = self.space(index.matrix)
        self.best = min([BEST, *map(len, owned.values())])
        # A row of entries for each card, filled up with an entry that does not exist: it scores -2.
        filler = [len(index.owners)] * max(map(len, owned.values()))
        self.entries = np.array([(row + filler)[: len(filler)] for row in owned.values()])

    def route(self, request: str) -> Route:
        """The cards closest to the request. Ties keep the order of the index."""
        return self.route_all([request])[0]

    def route_all(self, requests: Sequence[str]) -> list[Route]:
        """A route for each request, with one embedding call for them all."""
        vectors = self.index.vectors(requests)
        return [self.rank(*pair) for pair in zip(requests, vectors, strict=True)]

    def rank(self, request: str, vector: np.ndarray) -> Route:
        scores = np.append(self.matrix @ self.space(vector), np.float32(-2))
        table = scores[self.entries]  # (cards, most examples of a card)
        means = np.partition(table, -self.best, axis=1)[:, -self.best :].mean(axis=1)
        ranking = []
        for c in np.argsort(-means, kind="stable")[:SHOWN]:
            example = self.index.texts[self.entries[c, table[c].argmax()]]
            ranking.append(Candidate(self.cards[c], min(float(means[c]), 1.0), example))
        route = Route(request, ranking, calibrated=self.calibration is not None)
        low = self.calibration and self.calibration.too_low(route.readings)
        return replace(route, reason=f"low_{low}") if low else route
