"""The front door: a request goes in, an Answer comes out. The parts behind it know no door."""

import os
from collections.abc import Callable, Sequence
from contextlib import closing, suppress
from dataclasses import asdict, dataclass, field
from difflib import get_close_matches
from functools import cached_property
from pathlib import Path
from typing import Any

from agent import concierge, runner
from agent.artifacts import Artifacts
from agent.budget import Meter, lowered
from agent.calibration import load
from agent.cards import Card, read_registry
from agent.chat import Chat
from agent.concierge import Concierge, Route
from agent.errors import CardError
from agent.gaps import log_gap
from agent.index import Index
from agent.runner import Result
from agent.settings import read_names, read_settings
from agent.store import Store
from agent.toolbox import tools_of
from agent.trace import Trace, hidden
from agent.wiring import TREE, home, make_embedder
from agent.worker import Worker

SPENT = 3  # the exit code of every status that is not here: a limit, of which there may be more
EXIT_CODES = {"done": 0, "ghosts": 1, "empty_answer": 1, "endpoint": 4, "refused": 5}


@dataclass(frozen=True)
class Answer:
    """What came of a request. A person, a program and the shell each get a view of it."""

    route: Route | None  # None if the card was named
    card: str | None  # None for nobody, as is the result, and the trace
    result: Result | None
    handles: tuple[str, ...]  # of what this run has put into the store
    trace: Path | None

    @property
    def status(self) -> str:
        return self.result.status if self.result else "refused"

    @property
    def exit_code(self) -> int:
        return EXIT_CODES.get(self.status, SPENT)

    @property
    def text(self) -> str:
        if self.result:
            found = (f"{f['name']}({f['arguments']}): {f['text'][:300]}" for f in self.result.found)
            return self.result.answer or "\n".join(found)
        return concierge.as_text(self.route) if self.route else ""

    def as_json(self) -> dict[str, Any]:
        shown = concierge.as_json(self.route) if self.route else {}
        if not self.result:
            return {**shown, "status": self.status}
        shown |= asdict(self.result)
        del shown["messages"]
        return {**shown, "card": self.card, "handles": [*self.handles], "trace": str(self.trace)}


def silent(line: str) -> None:
    """A log that nobody reads."""


@dataclass
class Listener:
    """Hears each event of one run: for the trace, for the log, and for the handles in it."""

    trace: Trace
    log: Callable[[str], None]
    handles: dict[str, None] = field(default_factory=dict)  # a set that keeps its order

    def __call__(self, event: dict[str, Any]) -> None:
        self.trace(event)
        if event["event"] == "call" and "handle" in event:
            self.handles[event["handle"]] = None
        if line := runner.log_line(hidden(event, self.trace.key)):
            self.log(hidden(line, self.trace.key))


@dataclass
class FrontDoor:
    """Serves any number of requests. What it reads, it reads once; what a run has is its own."""

    registry: Path
    limits: Sequence[tuple[str, float]] = ()
    rescue: bool = False
    log: Callable[[str], None] = silent

    @cached_property
    def cards(self) -> dict[str, Card]:
        return {card.name: card for card in read_registry(self.registry)}

    @cached_property
    def concierge(self) -> Concierge:
        pairs = [(text, card.name) for card in self.cards.values() for text in card.examples]
        made = Concierge(Index.build(pairs, make_embedder(home() / "vectors")))
        made.calibration = load(self.registry, made.index)
        return made

    @cached_property
    def chat(self) -> Chat:
        return Chat(read_settings(TREE, os.environ))

    def answer(self, request: str, card: str | None = None) -> Answer:
        """Have the card answer, or without one the card that takes the request, or nobody."""
        if card is not None:
            return self.run(self.find(card), request, None)
        route = self.concierge.route(request)
        if route.card is None:
            self.say(report_gap(route, self.concierge.index.embedder.model))
            return Answer(route, None, None, (), None)
        self.say(f"[concierge] {concierge.as_text(route).splitlines()[0]}")
        return self.run(self.find(route.card), request, route)

    def find(self, name: str) -> Card:
        if name in self.cards:
            return self.cards[name]
        near = get_close_matches(name, self.cards, 3, 0.4) or sorted(self.cards)[:5]
        raise CardError(f"{self.registry} has no card {name!r}. Is it one of {', '.join(near)}?")

    def run(self, card: Card, request: str, route: Route | None) -> Answer:
        chat, tools = self.chat, tools_of(card, self.registry)
        about = {"card": card.name, "model": chat.model, "request": request}
        with closing(Trace(home() / "traces", chat.key, **about)) as trace:
            listener = Listener(trace, self.say)
            result = runner.run_card(
                card,
                tools,
                request,
                chat,
                watch=listener,
                rescue=self.rescue,
                meter=Meter(lowered(card.budget, self.limits)),
                worker=Worker(read_names(TREE, os.environ)),
                artifacts=Artifacts(
                    Store(home() / "artifacts"),
                    lambda handle: make_embedder(home() / "vectors" / handle),
                    card.artifacts,
                ),
            )
        return Answer(route, card.name, result, tuple(listener.handles), trace.path)

    def say(self, line: str) -> None:
        with suppress(OSError):  # its reader may have gone; the answer is still wanted
            self.log(line)


def report_gap(route: Route, model: str) -> str:
    """Log a request that nobody takes. Returns what to say about it."""
    path = home() / "gaps.jsonl"
    said = "logged in" if log_gap(path, route, model) else "warning: cannot be logged in"
    return f"{said} {os.path.relpath(path)}"
