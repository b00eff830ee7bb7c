"""The concierge: which agent takes a request. One embedding and one product, no LLM call."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from agent.calibration import Calibration
from agent.errors import CardError
from agent.index import Index
from agent.request import one_line, says_something
from agent.space import Space

BEST = 3  # examples that speak for a card: the same number for every card
SHOWN = 4  # cards in an answer: the best one and the three after it
SAME = 1e-6  # a lead under this is none: it is the order of files and the noise of float32


@dataclass(frozen=True)
class Candidate:
    """A card, the mean cosine of its best examples, and the closest of them."""

    card: str
    score: float
    example: str


@dataclass(frozen=True)
class Route:
    """A request, and the cards that come closest, best first."""

    request: str
    ranking: list[Candidate]
    calibrated: bool = False
    reason: str | None = None  # why nobody takes it: empty_query, tie, or a reading that is low
    scope: float | None = None  # near 1 for what cards take, near -1 for the rest

    @property
    def card(self) -> str | None:
        """The card that takes the request; None for nobody."""
        return None if self.reason else self.ranking[0].card

    @property
    def readings(self) -> dict[str, float]:
        """What a calibration sets the least values of, in the order in which they refuse."""
        score = self.ranking[0].score if self.ranking else 0.0
        scope = {} if self.scope is None else {"scope": self.scope}
        return {**scope, "score": score, "margin": self.margin}

    @property
    def margin(self) -> float:
        """How far the best card is ahead of the second; its whole score if it is alone."""
        first, second, *_ = [*(candidate.score for candidate in self.ranking[:2]), 0.0, 0.0]
        return first - second

    @property
    def is_tie(self) -> bool:
        """Whether no card is ahead."""
        return len(self.ranking) > 1 and self.margin < SAME


class Concierge:
    """Ranks the cards that own the entries of an index."""

    calibration: Calibration | None = None  # without one, nothing is refused

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
        """A route for each request, in their order. One embedding call, and none for empty ones."""
        lines = [one_line(request) for request in requests]
        asked = [line for line in lines if says_something(line)]
        vectors = iter(self.index.vectors(asked) if asked else ())
        return [
            self.rank(line, next(vectors)) if says_something(line) else self.refuse_empty(line)
            for line in lines
        ]

    def refuse_empty(self, line: str) -> Route:
        known = self.calibration
        scope = 0.0 if known and known.line else None
        return Route(line, [], known is not None, "empty_query", scope)

    def rank(self, request: str, vector: np.ndarray) -> Route:
        position = self.space(vector)
        scores = np.append(self.matrix @ position, np.float32(-2))
        table = scores[self.entries]  # (cards, most examples of a card)
        means = np.partition(table, -self.best, axis=1)[:, -self.best :].mean(axis=1)
        ranking = []
        for c in np.argsort(-means, kind="stable")[:SHOWN]:
            example = self.index.texts[self.entries[c, table[c].argmax()]]
            ranking.append(Candidate(self.cards[c], min(float(means[c]), 1.0), example))
        if self.calibration is None:
            route = Route(request, ranking)
            return replace(route, reason="tie" if route.is_tie else None)
        route = Route(request, ranking, True, scope=self.calibration.scope(position))
        return replace(
            route, reason="tie" if route.is_tie else self.calibration.low(route.readings)
        )


def as_json(route: Route) -> dict[str, Any]:
    """A route for machines."""
    return {"card": route.card, "margin": route.margin, **asdict(route)}


def as_text(route: Route) -> str:
    """A route for people: who takes it and why not, the readings, and the cards that came close."""
    notes = [f"({route.reason})"] if route.reason else []
    notes += [] if route.calibrated else ["(uncalibrated: nothing is refused)"]
    said = ", ".join(f"{name} {value:.2f}" for name, value in route.readings.items())
    rows = [f"\n  {one.score:.2f}  {one.card:18}  {one.example}" for one in route.ranking]
    return " ".join([route.card or "nobody", *notes]) + f"  {said}" + "".join(rows)
