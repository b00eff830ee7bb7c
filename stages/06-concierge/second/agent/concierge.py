"""The concierge picks the agent for a request: one embedding, one product, no LLM."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from agent.errors import CardError
from agent.index import Index

BEST = 3  # so many examples of a card must agree
SHOWN = 4  # cards in a ranking
DIGITS = 9  # equal vectors may differ by rounding, in a product, after so many decimals


@dataclass(frozen=True)
class Candidate:
    """A card and how close it is to a request."""

    card: str
    score: float  # mean cosine of its best examples
    example: str  # the closest of them


@dataclass(frozen=True)
class Route:
    """Who takes a request, and who else was near."""

    request: str
    ranking: list[Candidate]  # best first

    @property
    def card(self) -> str:
        """The card that takes the request."""
        return self.ranking[0].card

    @property
    def margin(self) -> float:
        """How far the first is ahead; without a second, its score."""
        first, *others = (candidate.score for candidate in self.ranking)
        return first - others[0] if others else first


class Concierge:
    """Routes requests to the cards that own an index's entries."""

    def __init__(self, index: Index) -> None:
        if not index.texts:
            raise CardError("no card has an example: write some, or name a folder with --registry")
        self.index = index
        self.cards = list(dict.fromkeys(index.owners))  # in the order of their first entries
        number = {card: i for i, card in enumerate(self.cards)}
        self.card_of = np.array([number[owner] for owner in index.owners])
        counts = np.bincount(self.card_of)
        best = min(BEST, counts.min())  # the same number for every card, so that no lazy one wins
        # Entries sorted by card, and within a card by cosine: where each card's best ones stand.
        self.places = (np.cumsum(counts) - counts)[:, None] + np.arange(best)

    def route(self, request: str) -> Route:
        """The route of one request."""
        return self.route_all([request])[0]

    def route_all(self, requests: Sequence[str]) -> list[Route]:
        """The routes of many requests, in their order, with one call of the embedder."""
        if not requests:
            return []
        vectors = self.index.vectors(requests).astype(np.float64)
        cosines = np.clip(vectors @ self.index.matrix.T, -1, 1).round(DIGITS)
        return [Route(text, self.rank(row)) for text, row in zip(requests, cosines, strict=True)]

    def rank(self, cosines: np.ndarray) -> list[Candidate]:
        """The best cards for one cosine an entry; ties keep the order of the index."""
        by_card = np.lexsort((-cosines, self.card_of))  # stable: at a tie, the first entry leads
        best = by_card[self.places]  # (cards, best): entries
        scores = cosines[best].mean(axis=1)
        return [
            Candidate(self.cards[i], float(scores[i]), self.index.texts[best[i, 0]])
            for i in np.argsort(-scores, kind="stable")[:SHOWN]
        ]
