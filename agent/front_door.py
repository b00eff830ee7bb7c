"""The front door: concierge, runner and store together. A request in, an answer out."""

import os
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from agent import runner, settings, toolbox
from agent.artifacts import Artifacts
from agent.budget import Meter, lowered
from agent.chat import Chat
from agent.concierge import Concierge, Route, as_json, as_text
from agent.gaps import log_gap
from agent.store import Store
from agent.trace import Trace, hidden
from agent.wiring import TREE, home, make_embedder, open_concierge
from agent.worker import Worker

EXITS = {"done": 0, "refused": 5, "endpoint": 4, "ghosts": 1, "empty_answer": 1}
SPENT = 3  # the exit code of every other status: a limit of the budget


@dataclass(frozen=True)
class Answer:
    """What came of a request. Nobody's has neither a card nor a result."""

    route: Route | None  # None if the card was named
    card: str | None
    result: runner.Result | None
    handles: tuple[str, ...]  # what the run left in the store
    trace: Path | None

    @property
    def status(self) -> str:
        """That of the result; refused without one."""
        return self.result.status if self.result else "refused"

    @property
    def exit_code(self) -> int:
        """0 done, 1 failed, 3 budget spent, 4 endpoint unreachable, 5 refused."""
        return EXITS.get(self.status, SPENT)

    @property
    def text(self) -> str:
        """What a person reads: the answer; without one, what the tools found, or who was near."""
        if not self.result:
            return as_text(self.route) if self.route else ""
        found = (map(found.get, ("name", "arguments", "text")) for found in self.result.found)
        lines = (f"{name}({given}): {str(text)[:300]}" for name, given, text in found)
        return self.result.answer or "\n".join(lines)

    def as_json(self) -> dict[str, Any]:
        """The same for machines, without the conversation, which is in the trace."""
        said: dict[str, Any] = as_json(self.route) if self.route else {}
        if self.result:
            said |= {key: value for key, value in asdict(self.result).items() if key != "messages"}
            said |= {"card": self.card, "handles": self.handles, "trace": str(self.trace)}
        return {**said, "status": self.status}


class FrontDoor:
    """A registry's cards behind one door, with the settings of this tree."""

    def __init__(
        self,
        registry: Path,
        limits: Sequence[tuple[str, float]] = (),  # that lower every card's budget
        rescue: bool = False,
        log: Callable[[str], None] = lambda line: None,
    ) -> None:
        self.registry, self.limits, self.rescue, self.log = registry, limits, rescue, log

    @cached_property
    def chat(self) -> Chat:
        return Chat(settings.read_settings(TREE, os.environ))

    @cached_property
    def concierge(self) -> Concierge:
        return open_concierge(self.registry)

    def answer(self, request: str, card: str | None = None) -> Answer:
        """Route the request, unless a card is named, and run what takes it. AgentError if not."""
        if card is not None:
            return self.run(request, card, None)
        route = self.concierge.route(request)
        if route.card:
            self.log(f"[concierge] {as_text(route).splitlines()[0]}")
            return self.run(request, route.card, route)
        self.log(report_gap(route, self.concierge.index.embedder.model))
        return Answer(route, None, None, (), None)

    def run(self, request: str, name: str, route: Route | None) -> Answer:
        key, handles = self.chat.key, list[str]()
        card = toolbox.find_card(self.registry, name)
        tools = toolbox.tools_of(card, self.registry)
        about = {"card": name, "model": self.chat.model, "request": request}
        trace = Trace(home() / "traces", key, self.log, **about)

        def watch(event: dict[str, Any]) -> None:
            trace(event)
            handles.extend([event["handle"]] if "handle" in event else [])
            if line := runner.log_line(hidden(event, key)):
                self.log(hidden(line, key))

        vectors = home() / "vectors"
        store = Store(home() / "artifacts")
        kept = Artifacts(store, lambda handle: make_embedder(vectors / handle), card.artifacts)
        how: dict[str, Any] = {"watch": watch, "rescue": self.rescue, "artifacts": kept}
        how["meter"] = Meter(lowered(card.budget, self.limits))
        how["worker"] = Worker(settings.read_names(TREE, os.environ))
        try:
            result = runner.run_card(card, tools, request, self.chat, **how)
        finally:
            trace.close()
        return Answer(route, name, result, tuple(dict.fromkeys(handles)), trace.path)


def report_gap(route: Route, model: str) -> str:
    """Log a request that nobody takes. Returns where it stands."""
    path = home() / "gaps.jsonl"
    key = settings.read_settings(TREE, os.environ).chat_key.strip()
    logged = log_gap(path, replace(route, request=hidden(route.request, key)), model)
    return f"{'logged in' if logged else 'warning: cannot be logged in'} {os.path.relpath(path)}"
