"""The practice chat: `/v1/chat/completions` by rules and similarity. It is not a language model.

Every answer says so in `system_fingerprint`. The same conversation gets the same answer, bit for
bit, also in another process: nothing here is random and nothing knows the time.

conversation.py checks a request, turns.py decides what comes next, and this module puts it on the
wire. Tokens are counted by tokens.py, an estimate, plus 4 a message.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass

from .conversation import MODEL, PER_MESSAGE, Request
from .refused import JSON
from .tokens import count
from .turns import Mind, Turn, next_turn

FINGERPRINT = "practice-stand-in-not-a-language-model"
OWNER = "practice: a stand-in by rules, not a language model"
CREATED = 1767225600  # 2026-01-01: a time of the day would make every answer another one


@dataclass(frozen=True)
class Reply:
    """What goes on the wire: one message, n times the same."""

    request: Request
    text: str | None
    calls: list[JSON]
    finish: str
    tokens: int

    @property
    def head(self) -> JSON:
        return {
            "id": f"chatcmpl-{self.request.digest[:24]}",
            "created": CREATED,
            "model": MODEL,
            "system_fingerprint": FINGERPRINT,
        }

    @property
    def usage(self) -> JSON:
        spent, written = self.request.prompt_tokens, self.tokens * self.request.n
        return {
            "prompt_tokens": spent,
            "completion_tokens": written,
            "total_tokens": spent + written,
        }

    def body(self) -> JSON:
        """The answer as one JSON object."""
        message: JSON = {"role": "assistant", "content": self.text, "refusal": None}
        if self.calls:
            message["tool_calls"] = self.calls
        choices = [
            {"index": index, "message": message, "logprobs": None, "finish_reason": self.finish}
            for index in range(self.request.n)
        ]
        return {
            **self.head,
            "object": "chat.completion",
            "choices": choices,
            "usage": self.usage,
        }

    def events(self) -> Iterator[str]:
        """The answer as server-sent events, with `[DONE]` at the end."""
        for chunk in self._chunks():
            yield f"data: {json.dumps(chunk, ensure_ascii=True)}\n\n"
        yield "data: [DONE]\n\n"

    def _chunks(self) -> Iterator[JSON]:
        with_usage = {"usage": None} if self.request.stream_usage else {}
        shape = {**self.head, "object": "chat.completion.chunk", **with_usage}
        for index in range(self.request.n):
            for delta in self._deltas():
                yield {**shape, "choices": [_choice(index, delta, None)]}
            yield {**shape, "choices": [_choice(index, {}, self.finish)]}
        if self.request.stream_usage:
            yield {**shape, "choices": [], "usage": self.usage}

    def _deltas(self) -> Iterator[JSON]:
        yield {"role": "assistant", "content": None if self.calls else "", "refusal": None}
        for part in _parts(self.text or ""):
            yield {"content": part}
        for index, call in enumerate(self.calls):
            function = {"name": call["function"]["name"], "arguments": ""}
            yield {"tool_calls": [{"index": index, **call, "function": function}]}
            for part in _parts(call["function"]["arguments"]):
                yield {"tool_calls": [{"index": index, "function": {"arguments": part}}]}


def _choice(index: int, delta: JSON, finish: str | None) -> JSON:
    return {"index": index, "delta": delta, "logprobs": None, "finish_reason": finish}


def _parts(text: str) -> list[str]:
    """The text in pieces of a few words."""
    return re.findall(r"(?:\S*\s*){4}|.+", text, re.DOTALL)[:-1] if text else []


def answer(request: Request, mind: Mind) -> Reply:
    """The reply to a request that was checked."""
    turn = next_turn(request, mind)
    if turn.calls:
        return _with_calls(request, turn)
    text, finish = turn.text, "stop"
    if request.as_json:
        text = json.dumps({"answer": text}, ensure_ascii=False)
    text = _stopped(text, request.stops)
    if request.limit is not None and count(text) > request.limit:
        text, finish = cut(text, request.limit), "length"
    return Reply(request, text, [], finish, PER_MESSAGE + count(text))


def _with_calls(request: Request, turn: Turn) -> Reply:
    """Calls as they go out. Where the limit is too small the last one's arguments are cut off."""
    calls: list[JSON] = []
    finish, left = "tool_calls", request.limit or 0
    tokens = PER_MESSAGE
    for place, (name, arguments) in enumerate(turn.calls):
        written = json.dumps(arguments, ensure_ascii=False)
        price = count(name) + count(written)
        if price > left:
            written, finish = cut(written, max(left - count(name), 1)), "length"
        call_id = hashlib.sha256(f"{request.digest}/{place}".encode()).hexdigest()[:24]
        calls.append(
            {
                "id": f"call_{call_id}",
                "type": "function",
                "function": {"name": name, "arguments": written},
            }
        )
        tokens += count(name) + count(written)
        left -= price
        if finish == "length":
            break
    return Reply(request, None, calls, finish, tokens)


def _stopped(text: str, stops: tuple[str, ...]) -> str:
    """The text up to the first of the stops, without it."""
    places = [text.find(stop) for stop in stops]
    return text[: min((place for place in places if place >= 0), default=len(text))]


def cut(text: str, tokens: int) -> str:
    """The longest start of the text that is estimated at `tokens` or fewer."""
    low, high = 0, len(text)
    while low < high:
        middle = (low + high + 1) // 2
        if count(text[:middle]) <= tokens:
            low = middle
        else:
            high = middle - 1
    return text[:low]
