"""The runner: ask, run, send back, until the model just answers. Its budget stops it before."""

import json
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import Any

from agent.artifacts import Artifacts
from agent.budget import Meter, Spent, size_of
from agent.calls import EXPAND, Reading, read, text_call
from agent.cards import Card
from agent.chat import Call, Chat, Reply, Usage
from agent.deadline import within
from agent.errors import EndpointError, LateError, StoreError
from agent.tokens import estimate, estimate_tools
from agent.tools import Outcome, Tool, call, invoke
from agent.worker import Worker

KINDS = ("ghost", "repaired", "unparsable", "wrong_arguments", "repeated", "text_call", "truncated")
MOST_GHOSTS = 8  # a model that asks on and on for what is not there is stopped
REASONS = {"done": "", "ghosts": f"{MOST_GHOSTS} calls of tools that are not there"}
REASONS |= {"empty_answer": "two replies held neither text nor calls"}
LAST_WORD = "No further tool call will be run. Answer now with what you have found so far."
LAST_ROOM = 256  # tokens for it, at least, if results can be cut that far
CUT = " … (cut)"
NUDGE = "Your answer was empty. Answer now, in a few sentences of text."
Watch = Callable[[dict[str, Any]], None]  # gets each event of a run: {"event": "request", …}


@dataclass(frozen=True)
class Result:
    """What came of a run. `messages` is the whole conversation."""

    status: str  # done, ghosts, empty_answer, endpoint, or the limit that is spent
    answer: str  # with a spent budget: the last word, which may be empty
    reason: str  # why it is not done, for people
    found: tuple[dict[str, str], ...]  # what the tools gave: name, arguments, text
    requests: int
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
        meter: Meter | None = None,
        worker: Worker | None = None,
        artifacts: Artifacts | None = None,  # None: a long result is cut
    ) -> None:
        self.chat, self.watch, self.rescue = chat, watch, rescue
        self.meter, self.worker = meter or Meter(), worker or Worker({})
        self.tools = {tool.name: tool for tool in tools}
        self.artifacts, self.request = artifacts, ""
        self.messages: list[dict[str, Any]] = []
        self.size = estimate_tools([tool.definition for tool in tools])  # of a request, in tokens
        self.replies: list[Reply] = []
        self.counts = Counter(dict.fromkeys(KINDS, 0))
        self.run_before: set[str] = set()
        self.found: list[dict[str, str]] = []
        self.refused = False  # a call was not run for want of budget

    def run(self, messages: Sequence[dict[str, Any]]) -> Result:
        """Ask until a reply calls nothing: that is the answer. EndpointError if none comes."""
        for message in messages:
            self.add(message)
        self.request = messages[-1]["content"] if messages else ""
        if any(tool.source for tool in self.tools.values()):
            with suppress(OSError):  # the first call will say so
                self.worker.start()  # while the model thinks
        try:
            return self.go()
        except Spent as spent:
            return self.last_word(spent.limit)
        except LateError:
            return self.last_word("seconds")
        except EndpointError as error:
            return self.result("endpoint", "", str(error))
        finally:
            self.worker.stop()

    def add(self, message: dict[str, Any]) -> None:
        self.messages.append(message)
        self.size += size_of(message)
        if self.artifacts and message["role"] in ("system", "user"):  # ours and the user's alone
            self.artifacts.admit(message["content"])
        if self.artifacts and self.artifacts.handles and EXPAND not in self.tools:
            tool = self.artifacts.tool(self.meter.seconds_left)
            self.tools[EXPAND] = tool  # there exactly when there is something to read
            self.size += estimate_tools([tool.definition])

    def last_word(self, limit: str) -> Result:
        """One request more, out of what was kept for it. Calls in its reply are not run."""
        most = getattr(self.meter.budget, limit)
        said = f"the budget of {most} {limit.replace('_', ' ')} is spent"
        self.add({"role": "user", "content": LAST_WORD})
        try:
            self.shorten(self.meter.tokens_left(last=True) - LAST_ROOM)
            return self.result(limit, self.ask(last=True).text, said)
        except (Spent, EndpointError):
            return self.result(limit, "", said)

    def shorten(self, most: int) -> None:
        """Halve the longest tool result until a request has at most so many tokens."""
        results = [message for message in self.messages if message["role"] == "tool"]
        while self.size > most and results:
            longest = max(results, key=lambda message: len(message["content"]))
            text = longest["content"]
            if len(text) < 80:
                return
            longest["content"] = text[: len(text) // 2] + CUT
            self.size += estimate(longest["content"]) - estimate(text)

    def go(self) -> Result:
        nudged = False
        while self.counts["ghost"] < MOST_GHOSTS:
            reply = self.ask()
            if reply.calls:
                self.run_calls(reply)
            elif reply.text.strip():
                self.add(reply.message)
                return self.result("done", reply.text)
            elif nudged:
                return self.result("empty_answer", "")
            else:  # nothing, or thoughts alone: no turn to keep (vllm#21089), and one word more
                self.add({"role": "user", "content": NUDGE})
                nudged = True
        return self.result("ghosts", "")

    def run_calls(self, reply: Reply) -> None:
        """Every call of a reply, in order, and one reply to each."""
        readings = [read(asked, self.tools) for asked in reply.calls]
        kept = replace(reply, calls=tuple(reading.call for reading in readings))
        self.add(kept.message)
        for reading, asked in zip(readings, reply.calls, strict=True):
            self.add(self.answer(reading, asked))
        if self.refused:
            raise Spent("tool_calls")

    def ask(self, last: bool = False) -> Reply:
        room, turn = self.meter.request(self.size, last), len(self.replies) + 1
        spent = {"tokens": self.meter.tokens, "of": self.meter.budget.tokens}
        self.watch({"event": "request", "turn": turn, "messages": len(self.messages), **spent})
        tools, seconds = list(self.tools.values()), self.meter.seconds_left(last)
        # The tools stay: some endpoints refuse a history with calls when none are sent.
        more: dict[str, Any] = {"tool_choice": "none"} if last and tools else {}
        reply = self.chat.ask(self.messages, tools, seconds, max_tokens=room, **more)
        self.meter.spend(reply.usage, self.size, size_of(reply.message))
        if self.size > 1000 and reply.usage.input < self.size // 2:  # ollama#17889: without a word
            self.counts["truncated"] += 1
            read = f"the endpoint read {reply.usage.input} of about {self.size} tokens"
            self.watch({"event": "warning", "text": f"{read}: it cuts long requests"})
        if not reply.calls and (written := text_call(reply.text, self.tools)):
            self.counts["text_call"] += 1
            written = replace(written, id=f"text_{turn}")
            reply = replace(reply, text="", calls=(written,)) if self.rescue else reply
        self.replies.append(reply)
        said = {"text": reply.text, "calls": len(reply.calls), **asdict(reply.usage)}
        self.watch({"event": "reply", "turn": turn, **said})
        return reply

    def answer(self, reading: Reading, asked: Call) -> dict[str, Any]:
        """The one reply that each call gets, whatever becomes of it."""
        outcome = reading.outcome or self.execute(reading)
        self.counts["repaired"] += reading.repaired
        if outcome.kind in self.counts:
            self.counts[outcome.kind] += 1
        mine = reading.call.name == EXPAND  # what comes from the store does not go there again
        text, handle = (outcome.text, None) if mine else self.keep(outcome.text)
        text = text if mine or handle else self.meter.cut(text)  # both are short, and have places
        if outcome.kind == "ok":
            self.found.append(
                {"name": reading.call.name, "arguments": asked.arguments, "text": text}
            )
        shown: dict[str, Any] = {"name": asked.name, "arguments": asked.arguments}
        shown["text"] = outcome.text
        if handle:  # the store has the whole
            shown |= {"text": text, "characters": len(outcome.text), "handle": handle}
        self.watch({"event": "call", "kind": outcome.kind, **shown})
        return {"role": "tool", "tool_call_id": reading.call.id, "content": text}

    def keep(self, text: str) -> tuple[str, str | None]:
        """What the conversation gets of a result, and the handle of the whole, if it is kept."""
        if not self.artifacts or self.artifacts.short(text):
            return text, None
        work = partial(self.artifacts.keep, text, self.request)
        try:
            return within(self.meter.seconds_left(), work, lambda: None)
        except (StoreError, TimeoutError) as error:  # a full disk ends no run
            said = str(error) or "there was no time to digest a long result"
            self.watch({"event": "warning", "text": said})
            return text, None

    def execute(self, reading: Reading) -> Outcome:
        assert reading.tool
        if self.meter.seconds_left() <= 0:
            return Outcome("not_run", "not run: no time is left in the budget")
        if not self.meter.tool_call():
            self.refused = True
            return Outcome("not_run", "not run: no tool call is left in the budget")
        same = reading.tool.name + json.dumps(reading.arguments, sort_keys=True)
        self.counts["repeated"] += same in self.run_before
        self.run_before.add(same)
        return call(reading.tool, reading.arguments, self.invoke)

    def invoke(self, tool: Tool, given: dict[str, Any]) -> Outcome:
        if tool.source is None:  # a function of our own, not from a file
            return invoke(tool, given)
        return self.worker.call(tool, given, self.meter.seconds_left())

    def result(self, status: str, answer: str, reason: str = "") -> Result:
        used = [reply.usage for reply in self.replies]
        usage = Usage(
            sum(usage.input for usage in used),
            sum(usage.output for usage in used),
            any(usage.estimated for usage in used),
        )
        calls = sum(len(reply.calls) for reply in self.replies)
        counts = dict(self.counts)
        reason = reason or REASONS[status]
        self.watch({"event": "end", "status": status, "answer": answer, "reason": reason, **counts})
        spent = self.meter.turns, calls, usage, tuple(self.messages), counts
        return Result(status, answer, reason, tuple(self.found), *spent)


def run_card(card: Card, tools: Sequence[Tool], request: str, chat: Chat, **how: Any) -> Result:
    """A run that begins with the card's prompt and the request, and sees nothing else.

    `how` is what else a Runner takes.
    """
    begin = [("system", card.prompt), ("user", request)]
    return Runner(chat, tools, **how).run([{"role": role, "content": said} for role, said in begin])


def log_line(event: dict[str, Any]) -> str | None:
    """An event for people; None if it is not for them. [runner] turn 2: 4 messages, …"""
    if event["event"] == "request":
        turn = f"[runner] turn {event['turn']}: {event['messages']} messages"
        return f"{turn}, {event.get('tokens', '?')} of {event.get('of', '?')} tokens"
    if event["event"] == "call":
        called = "".join(c for c in f"{event['name']}({event['arguments']})" if c.isprintable())
        size = event.get("characters", len(event["text"]))
        kept = f", kept as {event['handle']}" if "handle" in event else ""
        return f"[runner] {called[:100]}: {event['kind']}, {size} characters{kept}"
    if event["event"] == "warning":
        return f"[runner] warning: {event['text']}"
    if event["event"] == "end" and event["status"] != "done":
        return f"[runner] ended: {event['status']}, {event.get('reason', '')}"
    return None
