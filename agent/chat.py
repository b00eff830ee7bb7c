"""Chat: one turn. Messages and tools in, the model's reply out. It runs nothing, keeps nothing."""

import json
import re
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC
from email.utils import parsedate_to_datetime
from itertools import count
from typing import Any

import httpx

from agent.client import Endpoint, plain
from agent.errors import EndpointError, LateError, SettingsError
from agent.settings import Settings
from agent.tokens import estimate
from agent.tools import Tool

BUSY = (429, 502, 503, 504)
ATTEMPTS = 8
USAGE = ("prompt_tokens", "completion_tokens")


@dataclass(frozen=True)
class Call:
    """A tool that the model asks for. `arguments` is JSON, if the model wrote it well."""

    id: str  # stands once in a conversation
    name: str
    arguments: str


@dataclass(frozen=True)
class Usage:
    """Tokens of one turn or of many: read and written."""

    input: int = 0
    output: int = 0
    estimated: bool = False  # the endpoint did not say


@dataclass(frozen=True)
class Reply:
    """What a model said, and what it wants called. Either may be empty."""

    text: str
    calls: tuple[Call, ...]
    usage: Usage

    @property
    def message(self) -> dict[str, Any]:
        """The reply as the next request carries it, in the form that all endpoints take."""
        calls = [
            {"id": c.id, "type": "function", "function": {"name": c.name, "arguments": c.arguments}}
            for c in self.calls
        ]
        said: dict[str, Any] = {"role": "assistant", "content": self.text}
        return {**said, "tool_calls": calls} if calls else said


class Chat(Endpoint):
    """The endpoint that answers."""

    most = 2**19  # bytes of an answer

    def __init__(self, settings: Settings, transport: httpx.BaseTransport | None = None) -> None:
        if not settings.chat_model:
            raise SettingsError(
                "TINY_CHAT_MODEL is not set. Set it in .env: .env.example shows how."
            )
        super().__init__(settings.chat_url, settings.chat_key, transport)
        self.model = settings.chat_model

    def ask(
        self,
        messages: Sequence[dict[str, Any]],
        tools: Sequence[Tool] = (),
        seconds: float = 60,
        **more: Any,
    ) -> Reply:
        """One turn; `more` goes into the request, as max_tokens. LateError after `seconds`."""
        body: dict[str, Any] = {"model": self.model, "messages": list(messages), "stream": False}
        body |= more
        if tools:  # an empty list is refused by some
            body["tools"] = [tool.definition for tool in tools]
        status, answer = self.post_until_free(body, time.monotonic() + seconds)
        try:
            if status != 200:
                raise KeyError
            message = answer["choices"][0]["message"]
            return self.read(message, answer.get("usage"), body)
        except (AttributeError, IndexError, KeyError, TypeError):
            said = plain(answer, self.key)
            raise EndpointError(f"{self.url} answered {status}, no reply: {said}") from None

    def post_until_free(self, body: dict[str, Any], ends: float) -> tuple[int, Any]:
        """The first answer that is not "busy", or the last of 8. It is no turn, but takes time."""
        for attempt in range(ATTEMPTS):
            status, answer = self.post("/chat/completions", body, ends - time.monotonic())
            status = status_in(answer) or status
            pause = pause_in(self.headers, attempt)
            if status not in BUSY or attempt == ATTEMPTS - 1:
                break
            if time.monotonic() + pause >= ends:
                raise LateError(f"{self.url} is busy: {status}, {plain(answer, self.key)}")
            time.sleep(pause)
        return status, answer

    def read(self, message: dict[str, Any], usage: Any, body: dict[str, Any]) -> Reply:
        """The reply in a message. Calls alone say that there are calls: finish_reason does not."""
        text = as_plain_text(message.get("content"))
        seen = {call["id"] for said in body["messages"] for call in said.get("tool_calls", ())}
        calls = []
        for asked in message.get("tool_calls") or ():
            calls.append(read_call(asked, seen))
            seen.add(calls[-1].id)
        counted = [usage.get(key) for key in USAGE] if isinstance(usage, dict) else [None]
        if all(type(number) is int and 0 <= number < 10**12 for number in counted):
            return Reply(text, tuple(calls), Usage(*counted))
        wrote = text + "".join(call.name + call.arguments for call in calls)
        about = estimate(json.dumps(body, ensure_ascii=False)), estimate(wrote)
        return Reply(text, tuple(calls), Usage(*about, estimated=True))


def status_in(answer: Any) -> int | None:
    """The status of an error that came as a success (inspect_ai#1534)."""
    error = answer.get("error") if isinstance(answer, dict) else None
    code = str(error.get("code")) if isinstance(error, dict) else ""
    return int(code) if re.fullmatch("[45][0-9][0-9]", code) else None


def pause_in(headers: Mapping[str, str], attempt: int) -> float:
    """Seconds until the next attempt: Retry-After, which may be a date, or longer each time."""
    given = headers.get("retry-after", "")
    if re.fullmatch("[0-9]+", given):
        return float(given[:12])
    try:
        date = parsedate_to_datetime(given)
        date = date if date.tzinfo else date.replace(tzinfo=UTC)
        return max(0.0, date.timestamp() - time.time())
    except (ValueError, TypeError, OverflowError):
        return min(0.25 * 2**attempt, 8)


def as_plain_text(content: Any) -> str:
    """The text of `content`: a text, null, or a list of parts."""
    if isinstance(content, list):
        texts = [part.get("text") if isinstance(part, dict) else part for part in content]
        content = "".join(text for text in texts if isinstance(text, str))
    return clean(content) if isinstance(content, str) else ""


def clean(text: str) -> str:
    """The text without halves of characters, which the next request could not carry."""
    return text.encode("utf-8", "replace").decode()


def read_call(asked: dict[str, Any], seen: set[str]) -> Call:
    """A call with an id of its own: ids that are missing or stand twice are made anew."""
    function = asked["function"]
    name, arguments = function.get("name"), function.get("arguments")
    if not isinstance(arguments, str):  # some send the object itself, or nothing
        arguments = json.dumps({} if arguments is None else arguments, ensure_ascii=False)
    arguments = clean(arguments) if arguments.strip() else "{}"
    given = asked.get("id")
    if not isinstance(given, str) or not given or given in seen:
        given = next(f"call_{n}" for n in count(len(seen)) if f"call_{n}" not in seen)
    return Call(given, clean(name) if isinstance(name, str) else "", arguments)
