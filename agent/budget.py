"""The budget: what a run may spend and what it has spent. It is asked before, never after."""

import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from agent.cards import Budget
from agent.chat import Usage
from agent.tokens import estimate

LEAST_REPLY, MOST_REPLY = 16, 4096  # tokens that a request leaves to the reply
KEPT = 0.2  # of tokens and seconds, and one turn, for the last word
SHARE = 4  # a tool's result may have one part in so many of the tokens that are left
DEFAULT = Budget(turns=8, tool_calls=16, tokens=30_000, seconds=90)  # nothing is unlimited


def lowered(budget: Budget, limits: Sequence[tuple[str, float]]) -> Budget:
    """The budget with some limits lowered. Nothing raises one."""
    least: dict[str, Any] = {key: min(value, getattr(budget, key)) for key, value in limits}
    return replace(budget, **least)


def size_of(message: dict[str, Any]) -> int:
    """The tokens of a message, about: its texts, and a few for what stands around them."""
    calls = [call["function"] for call in message.get("tool_calls", ())]
    texts = [message["content"], *(call["name"] + call["arguments"] for call in calls)]
    return sum(estimate(text) + 4 for text in texts)


class Spent(Exception):
    """A limit is reached. `limit` is the key of the budget that it stands for."""

    def __init__(self, limit: str) -> None:
        super().__init__(limit)
        self.limit = limit


class Meter:
    """What one run has spent. A nested run's meter spends its parent's budget too."""

    def __init__(self, budget: Budget = DEFAULT, parent: "Meter | None" = None) -> None:
        self.budget = budget
        self.turns = self.tool_calls = self.tokens = 0
        self.ends = time.monotonic() + min(budget.seconds, 10**6)  # what clocks can wait
        self.all: list[Meter] = [self, *(parent.all if parent else [])]

    def kept(self, meter: "Meter", last: bool) -> float:
        """What a request may not touch: a run's own last word alone may have what is kept."""
        return 0 if last and meter is self else KEPT

    def turns_left(self, last: bool = False) -> int:
        return min(
            m.budget.turns - m.turns - (m.budget.turns > 1 and self.kept(m, last) > 0)
            for m in self.all
        )

    def tokens_left(self, last: bool = False) -> int:
        return min(int(m.budget.tokens * (1 - self.kept(m, last))) - m.tokens for m in self.all)

    def seconds_left(self, last: bool = False) -> float:
        ends = min(m.ends - m.budget.seconds * self.kept(m, last) for m in self.all)
        return ends - time.monotonic()

    def request(self, tokens: int, last: bool = False) -> int:
        """To be called before each request to the model, with the tokens that it holds, about.

        Returns the tokens that the reply may have. Spent, and nothing is counted, if not.
        """
        if self.turns_left(last) < 1:
            raise Spent("turns")
        if (room := self.tokens_left(last) - tokens) < LEAST_REPLY:
            raise Spent("tokens")
        if self.seconds_left(last) <= 0:
            raise Spent("seconds")
        for meter in self.all:
            meter.turns += 1
        return min(room, MOST_REPLY)

    def spend(self, usage: Usage, sent: int, written: int) -> None:
        """Count what a request cost: what the endpoint says, and at least half our estimates."""
        cost = max(usage.input, sent // 2) + max(usage.output, written // 2)
        for meter in self.all:
            meter.tokens += cost

    def cut(self, text: str) -> str:
        """The text, or the beginning that a part of the tokens left has room for, and a note."""
        room = max(self.tokens_left() // SHARE, LEAST_REPLY)
        if len(text) * 4 <= room:  # no character has more than 4
            return text
        kept = text[: 16 * room]
        while (size := estimate(kept)) > room:
            kept = kept[: min(len(kept) * room // size, len(kept) - 1)]
        note = f"\n(cut: {len(kept)} of {len(text)} characters, the budget has room for no more)"
        return text if kept == text else kept + note

    def tool_call(self) -> bool:
        """To be called before each tool call: whether it may run. If so, it is counted."""
        may = all(meter.tool_calls < meter.budget.tool_calls for meter in self.all)
        for meter in self.all if may else []:
            meter.tool_calls += 1
        return may
