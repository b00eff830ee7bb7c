"""A conversation as the rules see it: the open request, what was done for it, what it offers."""

from __future__ import annotations

import datetime
import re
from collections.abc import Sequence
from dataclasses import dataclass

from .conversation import Call, Message
from .fill import Sources
from .mind import Mind, weigh
from .refused import JSON
from .results import Result, read_result, source_of
from .spot import TODAY, Find, spot
from .stored import handles_in, reads
from .words import keys

FINAL = re.compile(
    r"(?i)\b(?:final answer|answer now|last (?:request|answer|turn)|answer with what (?:you have|"
    r"there is)|no (?:more|further) (?:tool )?calls|do not call|don't call|without (?:any )?"
    r"(?:more )?tools?|"
    r"budget (?:is|has been) (?:spent|used)|abschließend|antworte jetzt|mit dem,? was du hast|"
    r"keine (?:weiteren )?(?:aufrufe|werkzeuge))"
)


@dataclass
class View:
    """The conversation as the rules see it."""

    request: str
    system: str
    final: bool
    results: list[Result]  # since the request
    earlier: list[Result]
    today: datetime.date
    held: str  # what users and assistants said besides, and what earlier tools gave back

    def made(self, name: str, arguments: JSON) -> bool:
        """Was this very call made?"""
        return any(
            result.call.name == name and _same(result.call.arguments, arguments)
            for result in self.results
        )

    def called(self, name: str) -> int:
        return sum(result.call.name == name for result in self.results)

    def handle(self) -> str:
        """The stored text that the request is about: it names one, or what a digest names.

        Of equal ones the last.
        """
        named = handles_in(self.request)
        if named:
            return named[-1]
        there = [result for result in [*self.earlier, *self.results] if result.handle]
        of = dict.fromkeys((result.handle for result in there), "")
        for result in there:
            places = " ".join(str(value) for value in result.call.arguments.values())
            of[result.handle] += f"\n{places}\n{result.text}"
        shared = weigh(self.request, list(of.values()))
        ranked = [(round(score, 6), place) for place, score in enumerate(shared)]
        return list(of)[max(ranked)[1]] if ranked else ""


def look(messages: tuple[Message, ...]) -> View:
    """The request that is open, and what was done for it."""
    users = [place for place, message in enumerate(messages) if message.role == "user"]
    system = "\n".join(m.text for m in messages if m.role in ("system", "developer"))
    last = next((m for m in reversed(messages) if m.role in ("user", "system", "developer")), None)
    trailing = last is not None and bool(FINAL.search(last.text)) and last is not messages[0]
    final = trailing and last is not None and (last.role == "user" or messages[-1] is last)
    asked = [p for p in users if not (len(users) > 1 and FINAL.search(messages[p].text))] or users
    place = asked[-1] if asked else -1
    request = messages[place].text if asked else system
    calls = {call.id: call for message in messages for call in message.calls}
    done: list[tuple[int, Result]] = []
    open_calls: dict[str, Call] = {}
    origins: dict[str, str] = {}  # of handles: where the text comes from
    for at, message in enumerate(messages):
        if message.calls:
            open_calls = {call.id: call for call in message.calls}
        elif message.role == "tool":
            call = open_calls.get(message.call_id) or calls[message.call_id]
            origin = origins.get(reads(call.arguments) or "", "")
            for handle in handles_in(message.text):
                origins.setdefault(handle, source_of(call))
            done.append((at, read_result(call, message.text, origin)))
    return View(
        request=request,
        system=system,
        final=final,
        results=[result for at, result in done if at > place],
        earlier=[result for at, result in done if at < place],
        today=_today(messages),
        held="\n".join(
            message.text
            for at, message in enumerate(messages)
            if at != place and message.role in ("user", "assistant", "tool") and message.text
        ),
    )


def _today(messages: tuple[Message, ...]) -> datetime.date:
    for message in messages:
        hit = re.search(
            r"(?i)(?:today|heute|current date|date)\D{0,20}(\d{4}-\d{2}-\d{2})", message.text[:4000]
        )
        if hit and message.role in ("system", "developer"):
            try:
                return datetime.date.fromisoformat(hit[1])
            except ValueError:
                continue
    return TODAY


def sources_of(view: View, mind: Mind, without: frozenset[str] = frozenset()) -> Sources:
    finds = [find for find in spot(view.request, view.today) if find.value not in without]
    items = [
        item
        for result in reversed(view.results)
        if not result.error
        for item in _sorted_items(view.request, result)
        if not result.handle or "handle" in item or _is_about(item, finds)
    ]
    for result in reversed(view.earlier[-4:]):
        items.extend(result.items[:20] if not result.error else [])
    return Sources(view.request, finds, items, mind.guess, today=view.today)


def _is_about(item: dict[str, str], finds: Sequence[Find]) -> bool:
    """Does it hold a name of the request? A digest's lines are of everybody and everything."""
    names = [keys(find.value) for find in finds if find.kind == "name"]
    held = keys(" ".join(item.values()))
    return not names or any(name <= held for name in names)


def _sorted_items(request: str, result: Result) -> list[dict[str, str]]:
    """The items that share most with the request first, of equal ones the first."""
    scores = weigh(request, [" ".join(item.values()) for item in result.items])
    order = sorted(range(len(scores)), key=lambda place: (-round(scores[place], 6), place))
    return [result.items[place] for place in order]


def _same(one: JSON, other: JSON) -> bool:
    """Are two calls' arguments the same? A slash at the end of an address makes no difference."""

    def bare(value: object) -> object:
        return value.rstrip("/") if isinstance(value, str) else value

    return {k: bare(v) for k, v in one.items()} == {k: bare(v) for k, v in other.items()}
