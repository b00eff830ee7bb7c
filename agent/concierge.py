"""The concierge: which agent takes a request. One embedding and one product, no LLM call."""

import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

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
    """A request, and the cards that come closest, best first."""

    request: str
    ranking: list[Candidate]
    calibrated: bool = False
    reason: str | None = None  # for nobody: empty_query, tie, low_scope, low_score, low_margin
    scope: float | None = None  # see Calibration.scope

    @property
    def card(self) -> str | None:
        """The card that takes the request; None for nobody."""
        return None if self.reason else self.ranking[0].card

    @property
    def readings(self) -> dict[str, float]:
        """What a calibration sets the least values of."""
        score = self.ranking[0].score if self.ranking else 0.0
        read = {"score": score, "margin": self.margin}
        return read if self.scope is None else {"scope": self.scope, **read}

    @property
    def margin(self) -> float:
        """How far the best card is ahead of the second; its whole score if it is alone."""
        scores = [candidate.score for candidate in self.ranking] + [0.0, 0.0]
        return scores[0] - scores[1]


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
        """A route for each request, with one embedding call for them all."""
        texts = [tidy(request) for request in requests]
        asked = [text for text in texts if has_words(text)]
        vectors = iter(self.index.vectors(asked) if asked else ())
        empty = Route("", [], self.calibration is not None, reason="empty_query")
        return [
            self.rank(text, next(vectors)) if has_words(text) else replace(empty, request=text)
            for text in texts
        ]

    def rank(self, request: str, vector: np.ndarray) -> Route:
        position = self.space(vector)
        scores = np.append(self.matrix @ position, np.float32(-2))
        table = scores[self.entries]  # (cards, most examples of a card)
        means = np.partition(table, -self.best, axis=1)[:, -self.best :].mean(axis=1)
        ranking = []
        for c in np.argsort(-means, kind="stable")[:SHOWN]:
            example = self.index.texts[self.entries[c, table[c].argmax()]]
            ranking.append(Candidate(self.cards[c], min(float(means[c]), 1.0), example))
        route = Route(request, ranking)
        if self.calibration:
            route = replace(route, calibrated=True, scope=self.calibration.scope(position))
            route = replace(route, reason=self.calibration.low(route.readings))
        tie = len(ranking) > 1 and route.margin < 1e-6
        return replace(route, reason="tie") if tie else route


def tidy(request: str) -> str:
    """What a model reads of a request: one line, of a long one the first 400 and the last 200."""
    text = re.sub(r"[\s\0-\x1f\x7f]+", " ", request.encode(errors="replace").decode()).strip()
    return text if len(text) <= 603 else f"{text[:400]} … {text[-200:]}"


def has_words(text: str) -> bool:
    """Whether there is a letter or a digit, in any script."""
    return any(sign.isalnum() for sign in text)


def as_json(route: Route) -> dict[str, Any]:
    """A route for machines."""
    return {"card": route.card, "margin": route.margin, **asdict(route)}


def as_text(route: Route) -> str:
    """A route for a person: who takes it and why, then the cards that come closest."""
    why = [route.reason] if route.reason else []
    why += [] if route.calibrated else ["uncalibrated: nothing is refused"]
    read = ", ".join(f"{name} {value:.2f}" for name, value in route.readings.items())
    lines = [" ".join([route.card or "nobody", *(f"({reason})" for reason in why), "", read])]
    lines += [f"  {c.score:.2f}  {c.card:18}  {c.example}" for c in route.ranking]
    return "\n".join(lines)
