"""The budget: asked before a request or a tool call, and by every run that stands above one."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from threading import Lock
from typing import Any

from agent.cards import Budget

DEFAULT = Budget(turns=8, tool_calls=16, tokens=30_000, seconds=90)


def lowered(budget: Budget, limits: Sequence[tuple[str, float]]) -> Budget:
    """A budget with the lower number of each key given. Example: [("turns", 2)]"""
    least: dict[str, Any] = dict(vars(budget))
    for key, most in limits:
        least[key] = min(least[key], most)
    return replace(budget, **least)


class Spent(Exception):
    """What would come next is beyond a limit, so it is not done."""

    def __init__(self, limit: str) -> None:
        super().__init__(f"the budget allows no more {limit}")
        self.limit = limit  # the key of the budget that is spent


class Meter:
    """What a run, and each run inside it, has used of a budget. A parent's budget is spent too."""

    def __init__(self, budget: Budget = DEFAULT, parent: "Meter | None" = None) -> None:
        self.budget, self.parent = budget, parent
        self.turns = 0  # requests so far, those of nested runs included
        self.tool_calls = 0  # the same of calls that were run
        self.lock: Lock = parent.lock if parent else Lock()  # one for all: runs may be side by side

    def request(self) -> None:
        """Count a request that is about to be sent, or raise Spent."""
        if not self._take("turns"):
            raise Spent("turns")

    def tool_call(self) -> bool:
        """Count a call that is about to be run, or say False."""
        return self._take("tool_calls")

    def _take(self, key: str) -> bool:
        """Count one more of `key` in the whole family, or in none of it."""
        with self.lock:
            family = list(self._upward())
            if any(getattr(meter, key) >= getattr(meter.budget, key) for meter in family):
                return False
            for meter in family:
                setattr(meter, key, getattr(meter, key) + 1)
            return True

    def _upward(self) -> "Iterator[Meter]":
        """This meter, then its parent, up to the first of all."""
        meter: Meter | None = self
        while meter is not None:
            yield meter
            meter = meter.parent
