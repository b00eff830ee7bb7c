"""The runner: asks a model, runs what it calls, sends the results back, until it calls nothing."""

import json
from collections.abc import Callable, Iterator, Sequence
from copy import deepcopy
from dataclasses import dataclass
from itertools import count
from typing import Any, NoReturn

from agent.chat import Call, Chat, Reply, Usage
from agent.tools import Outcome, Tool
from agent.tools import call as call_tool

Watch = Callable[[dict[str, Any]], None]  # is called with each event

SHOWN = 100  # characters of a call in a line


@dataclass(frozen=True)
class Result:
    """What came of a run, and the whole conversation that led there."""

    answer: str
    requests: int  # to the model
    tool_calls: int  # that the model asked for, run or not
    usage: Usage  # of all turns
    messages: tuple[dict[str, Any], ...]


def look_away(event: dict[str, Any]) -> None:
    """Watch nothing."""


class Runner:
    """One run of a model with tools: a second one needs a Runner of its own."""

    def __init__(self, chat: Chat, tools: Sequence[Tool], watch: Watch = look_away) -> None:
        self.chat, self.tools, self.watch = chat, tuple(tools), watch

    def run(self, messages: Sequence[dict[str, Any]]) -> Result:
        """Everything from the request to the answer. EndpointError if a reply does not come."""
        talk = deepcopy(list(messages))
        replies = list(self._turns(talk))
        asked = sum(len(reply.calls) for reply in replies)
        usage = total([reply.usage for reply in replies])
        return Result(replies[-1].text, len(replies), asked, usage, tuple(talk))

    def _turns(self, talk: list[dict[str, Any]]) -> Iterator[Reply]:
        """The replies up to the one that calls nothing; `talk` grows by each and its results."""
        for turn in count(1):
            self.watch({"event": "request", "turn": turn, "messages": len(talk)})
            reply = self.chat.ask(list(talk), self.tools)
            talk.append(reply.message)
            yield reply
            if not reply.calls:
                return
            for asked in reply.calls:
                talk.append(self._answer(asked))

    def _answer(self, asked: Call) -> dict[str, Any]:
        """The one message that a call gets, whatever becomes of it."""
        outcome = outcome_of(asked, self.tools)
        made = {"kind": outcome.kind, "name": asked.name, "arguments": asked.arguments}
        self.watch({"event": "call", **made, "text": outcome.text})
        return {"role": "tool", "tool_call_id": asked.id, "content": outcome.text}


def outcome_of(asked: Call, tools: Sequence[Tool]) -> Outcome:
    """What the tool of that name says, or why none can be asked."""
    tool = next((tool for tool in tools if tool.name == asked.name), None)
    if tool is None:
        names = ", ".join(tool.name for tool in tools) or "none"
        return Outcome("failed", f"there is no tool {asked.name!r}, and nothing ran: use {names}")
    try:
        arguments = json.loads(asked.arguments, parse_constant=no_number)
    except (ValueError, RecursionError) as error:
        return Outcome("failed", f"{tool.name} did not run: its arguments are no JSON: {error}")
    if not isinstance(arguments, dict):
        return Outcome("failed", f"{tool.name} did not run: its arguments are no JSON object")
    return call_tool(tool, arguments)


def no_number(word: str) -> NoReturn:
    """Refuse NaN and Infinity, which Python reads and JSON does not have."""
    raise ValueError(f"{word} is no value")


def total(usages: Sequence[Usage]) -> Usage:
    """The sum, which is an estimate as soon as one part is."""
    read, written = sum(usage.input for usage in usages), sum(usage.output for usage in usages)
    return Usage(read, written, any(usage.estimated for usage in usages))


def log_line(event: dict[str, Any]) -> str:
    """An event as a line for people. Example: [runner] turn 2: 4 messages"""
    match event["event"]:
        case "request":
            said = f"turn {event['turn']}: {event['messages']} messages"
        case "call":
            name = event["name"][:SHOWN]
            arguments = event["arguments"][: SHOWN - len(name)]
            said = f"{name}({arguments}): {event['kind']}, {len(event['text'])} characters"
        case other:
            said = str(other)
    return "[runner] " + "".join(sign if sign.isprintable() else " " for sign in said)
