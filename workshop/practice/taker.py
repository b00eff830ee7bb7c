"""What a tool's parameters are filled from, and which finds are spent."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import date
from typing import Any

from .conversation import Tool
from .limits import fits_text
from .refused import JSON
from .slots import SMALL, Slot, likely_names
from .spot import TODAY, Find
from .words import fold, keys, matched, words

NOTHING = object()
SIDES = {  # the small words that say which of two: English and German
    "from": "from von aus ab vom source",
    "to": "to nach zu an auf bis into ins in zum target",
    "start": "from von ab am on starts",
    "end": "to until bis ends",
    "first": "from von ab",
    "last": "to until bis",
    "origin": "from von aus ab",
    "destination": "to nach zu",
    "source": "from von aus",
    "target": "to into nach ins in auf",
    "in": "in nach",
    "place": "in at bei near nahe",
    "city": "in for für at",
    "location": "in at for",
    "artist": "by von",
    "author": "by von",
    "room": "in im the",
    "stop": "from at von ab",
    "address": "an in to from zu nach",
    "check": "from von ab am",
}


@dataclass
class Sources:
    """What arguments can be made of."""

    request: str
    finds: Sequence[Find]
    items: Sequence[dict[str, str]] = ()  # of earlier results, the best first: name to value
    guess: Callable[[str, list[str]], int] | None = None  # the likeliest of some values
    known: frozenset[str] = frozenset()  # keys of the request
    today: date = TODAY

    def __post_init__(self) -> None:
        self.known = keys(self.request)


@dataclass
class Filled:
    """A call that could be made. `evidence` counts what the request plainly named."""

    arguments: JSON
    missing: list[str] = field(default_factory=list)
    evidence: float = 0.0
    guesses: int = 0
    from_results: int = 0
    unused: int = 0  # addresses, quotes and the like that found no place


class Taker:
    """Takes finds and values of earlier results for the parameters of one tool."""

    def __init__(self, sources: Sources, tool: Tool) -> None:
        self.sources = sources
        self.tool = tool
        self.tool_ideas = keys(tool.name)
        self.root = tool.parameters
        self.spent: list[tuple[int, int]] = []
        self.roles: set[str] = set()
        self.result = Filled({})

    def default(self, slot: Slot) -> Any:
        return slot.schema["default"] if slot.required and "default" in slot.schema else NOTHING

    def names(self, slot: Slot) -> bool:
        """Does the request name this parameter?"""
        carrying = [token for token in slot.tokens if token not in SMALL]
        return bool(carrying) and all(
            matched(token, self.sources.known) >= 0.7 for token in carrying
        )

    def nearness(self, slot: Slot, find: Find) -> float:
        """How much the words before a find speak of the parameter: 0 to about 1.5."""
        before = find.before.split()
        score = 0.0
        for token in slot.tokens:
            wanted = {fold(word) for word in SIDES.get(token, "").split()} | {fold(token)}
            for back, word in enumerate(reversed(before)):
                if word in wanted or (token not in SMALL and matched(word, keys(token)) >= 0.6):
                    score += 0.6 / (back + 1)
                    break
        return score

    def kinds(self, slot: Slot, kinds: tuple[str, ...], least: float = 0.0) -> Any:
        """The best unspent find of these kinds."""
        best: tuple[float, int, Find | None] = (least - 1e-9, 0, None)
        for place, find in enumerate(self.sources.finds):
            if find.kind not in kinds or self.is_spent(find):
                continue
            if find.kind == "noun" and self.is_the_tool(find):
                continue
            if not fits_text(find.value, slot.schema):
                continue
            score = self.nearness(slot, find)
            if (score, -place) > (best[0], best[1]):
                best = (score, -place, find)
        if best[2] is None:
            return NOTHING
        self.spend(best[2])
        self.result.evidence += 0.5 + min(best[0], 0.5)
        return best[2].value

    def spend(self, find: Find) -> None:
        self.spent.append((find.start, find.end))

    def is_spent(self, find: Find) -> bool:
        return any(start < find.end and find.start < end for start, end in self.spent)

    def is_the_tool(self, find: Find) -> bool:
        """`Licht` for dim_lamp: a noun that only says which tool is meant."""
        return find.kind == "noun" and any(
            matched(word, self.tool_ideas) >= 0.6 for word in words(find.value)
        )

    def own_id(self, slot: Slot) -> Any:
        """The id of what the request is about, where a result holds both: an update, no new one."""
        names = [find.value for find in self.sources.finds if find.kind == "name"]
        for item in self.sources.items if slot.role == "id" else ():
            if slot.name in item and any(name in " ".join(item.values()) for name in names):
                return item[slot.name]
        return NOTHING

    def from_items(self, slot: Slot) -> Any:
        """A value of an earlier result: the same name, or the same kind of thing."""
        if slot.role not in ("id", "path", "url", "email", "phone", "name"):
            return NOTHING
        if not slot.required:
            return self.own_id(slot)
        for item in self.sources.items:
            for name in likely_names(slot, item):
                value: Any = item[name]
                if slot.schema.get("type") in ("integer", "number"):
                    continue
                if fits_text(value, slot.schema):
                    self.result.from_results += 1
                    return value
        return NOTHING
