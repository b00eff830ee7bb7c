"""The runner: ask, run, send back, until the model just answers or a budget is spent."""

import json
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from agent.budget import Meter, Spent
from agent.calls import Reading, read, text_call
from agent.cards import Card
from agent.chat import Call, Chat, Reply, Usage
from agent.tools import Outcome, Tool, call

KINDS = ("ghost", "repaired", "unparsable", "wrong_arguments", "repeated", "text_call")
MOST_GHOSTS = 8  # a model that asks on and on for what is not there is stopped
NUDGE = "Your answer was empty. Answer now, in a few sentences of text."
NOT_RUN = Outcome("not_run", "not run: the budget of tool calls is spent.")
Watch = Callable[[dict[str, Any]], None]  # gets each event of a run: {"event": "request", …}


@dataclass(frozen=True)
class Result:
    """What came of a run. `messages` is the whole conversation."""

    status: str  # done, ghosts, empty_answer; turns or tool_calls: that limit was reached
    answer: str
    requests: int  # those of nested runs included
    tool_calls: int
    usage: Usage
    messages: tuple[dict[str, Any], ...]
    counts: dict[str, int]  # of each kind in KINDS


class Runner:
    """One run of one agent: made anew for each, so that two runs share nothing."""

    def __init__(
        self,
        chat: Chat,
        tools: Sequence[Tool],
        watch: Watch = lambda event: None,
        rescue: bool = False,  # run calls that are written as text
        meter: Meter | None = None,  # None: one with the default budget
    ) -> None:
        self.chat, self.watch, self.rescue = chat, watch, rescue
        self.meter = Meter() if meter is None else meter
        self.tools = {tool.name: tool for tool in tools}
        self.messages: list[dict[str, Any]] = []
        self.replies: list[Reply] = []
        self.counts = Counter(dict.fromkeys(KINDS, 0))
        self.run_before: set[str] = set()

    def run(self, messages: Sequence[dict[str, Any]]) -> Result:
        """Ask until the run has an end, an answer or another. EndpointError if no reply comes."""
        self.messages += messages
        try:
            status, answer = self.converse()
        except Spent as spent:
            status, answer = spent.limit, ""
        return self.result(status, answer)

    def converse(self) -> tuple[str, str]:
        """Status and answer of a run that stays within its budget. Spent if it does not."""
        nudged = False
        while self.counts["ghost"] < MOST_GHOSTS:
            reply = self.ask()
            if reply.calls:
                self.run_calls(reply)
            elif reply.text.strip():
                self.messages.append(reply.message)
                return "done", reply.text
            elif nudged:
                return "empty_answer", ""
            else:  # nothing, or thoughts alone: no turn to keep (vllm#21089), and one word more
                self.messages.append({"role": "user", "content": NUDGE})
                nudged = True
        return "ghosts", ""

    def run_calls(self, reply: Reply) -> None:
        """One reply to every call, in order. Spent only then, if some of them could not be run."""
        readings = [read(asked, self.tools) for asked in reply.calls]
        kept = replace(reply, calls=tuple(reading.call for reading in readings))
        self.messages.append(kept.message)
        outcomes = []
        for reading, asked in zip(readings, reply.calls, strict=True):
            outcomes.append(reading.outcome or self.execute(reading))
            self.messages.append(self.answer(reading, asked, outcomes[-1]))
        if NOT_RUN in outcomes:
            raise Spent("tool_calls")

    def ask(self) -> Reply:
        """One request and its reply. Spent if the budget has no turn left for it."""
        self.meter.request()
        turn, said = len(self.replies) + 1, len(self.messages)
        self.watch({"event": "request", "turn": turn, "messages": said})
        reply = self.chat.ask(self.messages, list(self.tools.values()))
        if not reply.calls and (written := text_call(reply.text, self.tools)):
            self.counts["text_call"] += 1
            written = replace(written, id=f"text_{turn}")
            reply = replace(reply, text="", calls=(written,)) if self.rescue else reply
        self.replies.append(reply)
        self.watch({"event": "reply", "turn": turn, "text": reply.text, **asdict(reply.usage)})
        return reply

    def answer(self, reading: Reading, asked: Call, outcome: Outcome) -> dict[str, Any]:
        """The one reply that each call gets, whatever becomes of it."""
        self.counts["repaired"] += reading.repaired
        if outcome.kind in self.counts:
            self.counts[outcome.kind] += 1
        shown = {"name": asked.name, "arguments": asked.arguments, "text": outcome.text}
        self.watch({"event": "call", "kind": outcome.kind, **shown})
        return {"role": "tool", "tool_call_id": reading.call.id, "content": outcome.text}

    def execute(self, reading: Reading) -> Outcome:
        """The outcome of a call that can be run, if the budget has one left."""
        assert reading.tool
        if not self.meter.tool_call():
            return NOT_RUN
        same = reading.tool.name + json.dumps(reading.arguments, sort_keys=True)
        self.counts["repeated"] += same in self.run_before
        self.run_before.add(same)
        return call(reading.tool, reading.arguments)

    def result(self, status: str, answer: str) -> Result:
        used = [reply.usage for reply in self.replies]
        usage = Usage(
            sum(usage.input for usage in used),
            sum(usage.output for usage in used),
            any(usage.estimated for usage in used),
        )
        calls = sum(len(reply.calls) for reply in self.replies)
        counts = dict(self.counts)
        self.watch({"event": "end", "status": status, "answer": answer, **counts})
        said, requests = tuple(self.messages), self.meter.turns
        return Result(status, answer, requests, calls, usage, said, counts)


def run_card(card: Card, tools: Sequence[Tool], request: str, chat: Chat, **how: Any) -> Result:
    """A run that begins with the card's prompt and the request, and sees nothing else.

    `how` is what else a Runner takes.
    """
    begin = [("system", card.prompt), ("user", request)]
    return Runner(chat, tools, **how).run([{"role": role, "content": said} for role, said in begin])


def log_line(event: dict[str, Any]) -> str | None:
    """An event for people; None if it is not for them. Example: [runner] turn 2: 4 messages"""
    if event["event"] == "request":
        return f"[runner] turn {event['turn']}: {event['messages']} messages"
    if event["event"] == "call":
        called = "".join(c for c in f"{event['name']}({event['arguments']})" if c.isprintable())
        return f"[runner] {called[:100]}: {event['kind']}, {len(event['text'])} characters"
    if event["event"] == "end" and event["status"] != "done":
        return f"[runner] ended: {event['status']}"
    return None
