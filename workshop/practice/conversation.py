"""A chat request, checked as a strict server checks it, and read into plain values.

Whatever is wrong is a Refused that names the field. Nothing is repaired here: a client that only
works with a lenient server should hear so.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from .refused import JSON, Refused
from .tokens import count

MODEL = "practice-chat"
CONTEXT = 65_536  # tokens; the catalogue's 200 tools alone are 34,000
MAX_TOOLS = 256
MAX_MESSAGES = 2048
MAX_DEPTH = 60  # of a tool's schema
TOOLSETS = 32  # lists of tools that are remembered; one of 200 is 150 KB
PER_MESSAGE = 4  # tokens around a message: its role and its marks

NAME = re.compile(r"[A-Za-z0-9_-]{1,64}\Z")
ROLES = ("system", "developer", "user", "assistant", "tool")

# Taken and without effect: a deterministic answer has no use for them.
NO_EFFECT = (
    "user",
    "metadata",
    "store",
    "service_tier",
    "reasoning_effort",
    "verbosity",
    "prompt_cache_key",
    "safety_identifier",
)
NOT_HERE = {
    "functions": "Send tools instead.",
    "function_call": "Send tool_choice instead.",
    "logit_bias": "There are no logits here.",
    "top_logprobs": "There are no log probabilities here.",
    "audio": "This model writes text only.",
    "prediction": "This model takes no predicted output.",
    "web_search_options": "This model searches nothing by itself.",
}


@dataclass(frozen=True)
class Call:
    """One tool call of an assistant message."""

    id: str
    name: str
    arguments: JSON


@dataclass(frozen=True)
class Message:
    """One message. `text` is "" where the content was null."""

    role: str
    text: str
    calls: tuple[Call, ...] = ()
    call_id: str = ""


@dataclass(frozen=True)
class Tool:
    """One function that may be called."""

    name: str
    description: str
    parameters: JSON


@dataclass(frozen=True)
class Request:
    """A request that can be answered."""

    messages: tuple[Message, ...]
    tools: tuple[Tool, ...]
    choice: str  # auto, none, required, or "=NAME"
    parallel: bool
    limit: int | None  # tokens of the answer
    stops: tuple[str, ...]
    n: int
    stream: bool
    stream_usage: bool
    as_json: bool
    prompt_tokens: int
    digest: str  # of everything that decides the answer


def read(body: JSON, context: int = CONTEXT) -> Request:
    """The request in `body`. Refused names the field that is wrong."""
    try:
        return _read(body, context)
    except RecursionError:
        raise Refused(400, "The body is nested too deeply.", code="invalid_json") from None


def _read(body: JSON, context: int) -> Request:
    _check_model(body)
    _check_plain_fields(body)
    tools = _tools(body)
    messages = _messages(body)
    tokens = tools.tokens + sum(PER_MESSAGE + count(_weight(message)) for message in messages)
    if tokens > context:
        raise Refused(
            400,
            f"This model's context is {context} tokens; your messages and tools have {tokens}.",
            param="messages",
            code="context_length_exceeded",
        )
    limit = _limit(body)
    stream = bool(body.get("stream"))
    deciding = sorted(k for k in body if k not in ("stream", "stream_options", "user"))
    parts = (
        f"{json.dumps(name)}: "
        + (tools.dumped if name == "tools" else json.dumps(body[name], sort_keys=True))
        for name in deciding
    )
    dumped = "{" + ", ".join(parts) + "}"
    return Request(
        messages=messages,
        tools=tools.tools,
        choice=_choice(body, tools.tools),
        parallel=body.get("parallel_tool_calls") is not False,
        limit=min(context - tokens, limit or context) or 1,
        stops=_stops(body),
        n=body.get("n") or 1,
        stream=stream,
        stream_usage=_stream_usage(body, stream),
        as_json=_as_json(body),
        prompt_tokens=tokens,
        digest=hashlib.sha256(dumped.encode()).hexdigest(),
    )


def _weight(message: Message) -> str:
    """The text of a message that counts as tokens."""
    calls = (call.name + json.dumps(call.arguments) for call in message.calls)
    return "".join([message.text, *calls])


def _wrong(param: str, said: str) -> Refused:
    return Refused(400, f"{param} {said}", param=param, code="invalid_value")


def _check_model(body: JSON) -> None:
    model = body.get("model")
    if not isinstance(model, str) or not model:
        raise Refused(400, "model is missing: name it as a text.", param="model")
    if model != MODEL:
        raise Refused(
            404,
            f"The model {model[:80]!r} does not chat here. This endpoint has {MODEL!r}.",
            param="model",
            code="model_not_found",
        )


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _number(low: float, high: float) -> tuple[Callable[[Any], bool], str]:
    return (lambda v: _is_number(v) and low <= v <= high), f"must be a number, {low:g} to {high:g}."


def _integer(low: int, high: int) -> tuple[Callable[[Any], bool], str]:
    return (lambda v: type(v) is int and low <= v <= high), f"must be an integer, {low} to {high}."


def _flag() -> tuple[Callable[[Any], bool], str]:
    return (lambda v: isinstance(v, bool)), "must be true or false."


PLAIN: dict[str, tuple[Callable[[Any], bool], str]] = {
    "temperature": _number(0, 2),
    "top_p": _number(0, 1),
    "presence_penalty": _number(-2, 2),
    "frequency_penalty": _number(-2, 2),
    "max_tokens": _integer(1, 10_000_000),
    "max_completion_tokens": _integer(1, 10_000_000),
    "n": _integer(1, 8),
    "seed": _integer(-(2**63), 2**63 - 1),
    "stream": _flag(),
    "parallel_tool_calls": _flag(),
    "logprobs": ((lambda v: v is False), "must be false: there are no log probabilities here."),
    "modalities": ((lambda v: v == ["text"]), 'must be ["text"]: this model writes text only.'),
}
READ_ELSEWHERE = (
    "model",
    "messages",
    "tools",
    "tool_choice",
    "stop",
    "stream_options",
    "response_format",
)


def _check_plain_fields(body: JSON) -> None:
    for name, value in body.items():
        if name in READ_ELSEWHERE or name in NO_EFFECT or value is None:
            continue
        shown = name[:80]
        if name in NOT_HERE:
            if value in ({}, []):
                continue
            raise _wrong(shown, f"is not supported. {NOT_HERE[name]}")
        if name not in PLAIN:
            raise Refused(
                400, f"{shown} is no field of a chat request.", param=shown, code="unknown_field"
            )
        fits, rule = PLAIN[name]
        if not fits(value):
            raise _wrong(name, rule)
    if body.get("max_tokens") is not None and body.get("max_completion_tokens") is not None:
        raise _wrong("max_completion_tokens", "and max_tokens are the same: send one of them.")
    if body.get("parallel_tool_calls") is not None and body.get("tools") is None:
        raise _wrong("parallel_tool_calls", "is only allowed with tools.")


def _limit(body: JSON) -> int | None:
    return body.get("max_tokens") or body.get("max_completion_tokens")


def _stops(body: JSON) -> tuple[str, ...]:
    given = body.get("stop")
    if given is None:
        return ()
    stops = [given] if isinstance(given, str) else given
    fits = isinstance(stops, list) and 1 <= len(stops) <= 4
    if not fits or not all(isinstance(stop, str) and stop for stop in stops):
        raise _wrong("stop", "must be a text, or 1 to 4 texts, none of them empty.")
    return tuple(stops)


def _stream_usage(body: JSON, stream: bool) -> bool:
    options = body.get("stream_options")
    if options is None:
        return False
    if not stream:
        raise _wrong("stream_options", "is only allowed with stream: true.")
    if not isinstance(options, dict) or set(options) - {"include_usage", "include_obfuscation"}:
        raise _wrong("stream_options", "must be an object with include_usage.")
    if not isinstance(options.get("include_usage", False), bool):
        raise _wrong("stream_options.include_usage", "must be true or false.")
    return bool(options.get("include_usage"))


def _as_json(body: JSON) -> bool:
    form = body.get("response_format")
    if form is None:
        return False
    kind = form.get("type") if isinstance(form, dict) else None
    if kind == "json_schema":
        raise _wrong("response_format", "json_schema is not supported. Send json_object or text.")
    if kind not in ("text", "json_object"):
        raise _wrong("response_format", 'must be {"type": "text"} or {"type": "json_object"}.')
    return bool(kind == "json_object")


@dataclass(frozen=True)
class Toolset:
    """The tools of a request, checked, and what they cost."""

    tools: tuple[Tool, ...] = ()
    tokens: int = 0
    dumped: str = "null"  # as JSON with sorted keys


_latest: dict[str, Toolset] = {}  # requests of one run bring the same tools; the newest last
_remembering = threading.Lock()


def _tools(body: JSON) -> Toolset:
    given = body.get("tools")
    if given is None:
        return Toolset()
    if not isinstance(given, list) or not given:
        raise _wrong("tools", "must be a list with at least one tool, or be left out.")
    if len(given) > MAX_TOOLS:
        raise _wrong("tools", f"has {len(given)} tools; one request takes up to {MAX_TOOLS}.")
    try:
        written = json.dumps(given, ensure_ascii=False, separators=(",", ":"))
    except RecursionError:
        _checked(given)  # it names the tool that is nested too deeply
        raise
    with _remembering:
        known = _latest.get(written)
    if known is None:
        known = Toolset(_checked(given), count(written), json.dumps(given, sort_keys=True))
        with _remembering:
            _latest[written] = known
            while len(_latest) > TOOLSETS:
                del _latest[next(iter(_latest))]
    return known


def _checked(given: list[Any]) -> tuple[Tool, ...]:
    tools: list[Tool] = []
    names: set[str] = set()
    for place, entry in enumerate(given):
        at = f"tools[{place}]"
        if not isinstance(entry, dict) or entry.get("type") != "function":
            raise _wrong(f"{at}.type", 'must be "function".')
        function = entry.get("function")
        if not isinstance(function, dict):
            raise _wrong(f"{at}.function", "must be an object with name and parameters.")
        tool = _tool(function, f"{at}.function")
        if tool.name in names:
            raise _wrong(f"{at}.function.name", f"{tool.name!r} is there twice.")
        names.add(tool.name)
        tools.append(tool)
    return tuple(tools)


def _tool(function: JSON, at: str) -> Tool:
    name = _name(function.get("name"), f"{at}.name")
    description = function.get("description")
    if description is not None and not isinstance(description, str):
        raise _wrong(f"{at}.description", "must be a text.")
    if not isinstance(function.get("strict"), bool | None):
        raise _wrong(f"{at}.strict", "must be true or false.")
    parameters = function.get("parameters")
    if parameters is None:
        parameters = {"type": "object", "properties": {}}
    if not isinstance(parameters, dict) or parameters.get("type", "object") != "object":
        raise _wrong(f"{at}.parameters", 'must be a JSON schema of type "object".')
    if not isinstance(parameters.get("properties", {}), dict):
        raise _wrong(f"{at}.parameters.properties", "must be an object.")
    required = parameters.get("required", [])
    if not isinstance(required, list) or not all(isinstance(item, str) for item in required):
        raise _wrong(f"{at}.parameters.required", "must be a list of names.")
    if _depth(parameters) > MAX_DEPTH:
        raise _wrong(f"{at}.parameters", f"is nested more than {MAX_DEPTH} deep.")
    return Tool(name, description or "", parameters)


def _depth(value: object) -> int:
    depth, level = 0, [value]
    while level and depth <= MAX_DEPTH:
        depth += 1
        inner: list[object] = []
        for item in level:
            if isinstance(item, dict):
                inner.extend(item.values())
            elif isinstance(item, list):
                inner.extend(item)
        level = inner
    return depth


def _name(given: object, at: str) -> str:
    if not isinstance(given, str) or not NAME.match(given):
        raise _wrong(at, "must be 1 to 64 of the signs A-Z a-z 0-9 _ -.")
    return given


def _choice(body: JSON, tools: tuple[Tool, ...]) -> str:
    given = body.get("tool_choice")
    if given is None:
        return "auto"
    if not tools:
        raise _wrong("tool_choice", "is only allowed with tools.")
    if isinstance(given, str):
        if given not in ("auto", "none", "required"):
            raise _wrong("tool_choice", "must be auto, none, required or a named function.")
        return given
    function = given.get("function") if isinstance(given, dict) else None
    if not isinstance(function, dict) or given.get("type") != "function":
        raise _wrong("tool_choice", "must be auto, none, required or a named function.")
    name = _name(function.get("name"), "tool_choice.function.name")
    if all(tool.name != name for tool in tools):
        raise _wrong("tool_choice.function.name", f"{name!r} is not among the tools.")
    return f"={name}"


def _messages(body: JSON) -> tuple[Message, ...]:
    given = body.get("messages")
    if not isinstance(given, list):
        raise _wrong("messages", "must be a list of messages.")
    if not given:
        raise _wrong("messages", "must have at least one message.")
    if len(given) > MAX_MESSAGES:
        raise _wrong("messages", f"has {len(given)} messages; it takes up to {MAX_MESSAGES}.")
    messages: list[Message] = []
    open_calls: list[str] = []
    for place, entry in enumerate(given):
        at = f"messages[{place}]"
        message = _message(entry, at)
        if message.role == "tool":
            if message.call_id not in open_calls:
                raise _wrong(f"{at}.tool_call_id", "answers no call of the message before it.")
            open_calls.remove(message.call_id)
        else:
            _check_answered(open_calls, at)
            open_calls = [call.id for call in message.calls]
        messages.append(message)
    _check_answered(open_calls, f"messages[{len(given)}]")
    return tuple(messages)


def _check_answered(open_calls: list[str], at: str) -> None:
    if open_calls:
        waiting = ", ".join(repr(call[:64]) for call in open_calls[:5])
        raise _wrong(at, f"must be a tool message first: no answer yet to {waiting}.")


def _message(entry: object, at: str) -> Message:
    if not isinstance(entry, dict):
        raise _wrong(at, "must be an object with role and content.")
    role = entry.get("role")
    if not isinstance(role, str) or role not in ROLES:
        raise _wrong(f"{at}.role", f"must be one of {', '.join(ROLES)}.")
    if not isinstance(entry.get("name"), str | None):
        raise _wrong(f"{at}.name", "must be a text.")
    content = entry.get("content")
    calls: tuple[Call, ...] = ()
    if entry.get("tool_calls") is not None:
        if role != "assistant":
            raise _wrong(f"{at}.tool_calls", "is only allowed for an assistant.")
        calls = _calls(entry["tool_calls"], f"{at}.tool_calls")
    if content is None and calls:
        return Message(role, "", calls)
    text = _content(content, role, f"{at}.content")
    if role == "assistant" and not text and not calls:
        raise _wrong(f"{at}.content", "is empty, and there is no tool call.")
    if role != "tool":
        return Message(role, text, calls)
    call_id = entry.get("tool_call_id")
    if not isinstance(call_id, str) or not call_id:
        raise _wrong(f"{at}.tool_call_id", "is missing: a tool message names its call.")
    return Message(role, text, (), call_id)


def _content(content: object, role: str, at: str) -> str:
    if isinstance(content, str):
        return content
    if not isinstance(content, list) or not content:
        raise _wrong(at, "must be a text or a list of text parts.")
    texts: list[str] = []
    for place, part in enumerate(content):
        kind = part.get("type") if isinstance(part, dict) else None
        key = "refusal" if kind == "refusal" and role == "assistant" else "text"
        if kind not in ("text", "refusal") or kind != key:
            raise _wrong(f"{at}[{place}].type", 'must be "text": this model reads text only.')
        text = part.get(key)
        if not isinstance(text, str):
            raise _wrong(f"{at}[{place}].{key}", "must be a text.")
        texts.append(text)
    return "\n".join(texts)


def _calls(given: object, at: str) -> tuple[Call, ...]:
    if not isinstance(given, list) or not given:
        raise _wrong(at, "must be a list with at least one call, or be left out.")
    calls: list[Call] = []
    for place, entry in enumerate(given):
        here = f"{at}[{place}]"
        if not isinstance(entry, dict) or entry.get("type") != "function":
            raise _wrong(f"{here}.type", 'must be "function".')
        call_id = entry.get("id")
        if not isinstance(call_id, str) or not call_id:
            raise _wrong(f"{here}.id", "must be a text.")
        if any(call.id == call_id for call in calls):
            raise _wrong(f"{here}.id", "is there twice.")
        function = entry.get("function")
        if not isinstance(function, dict):
            raise _wrong(f"{here}.function", "must be an object with name and arguments.")
        name = _name(function.get("name"), f"{here}.function.name")
        calls.append(Call(call_id, name, _arguments(function, f"{here}.function.arguments")))
    return tuple(calls)


def _arguments(function: JSON, at: str) -> JSON:
    given = function.get("arguments")
    if not isinstance(given, str):
        raise _wrong(at, "must be a text that holds a JSON object.")
    try:
        arguments = json.loads(given)
    except ValueError:
        arguments = None
    if not isinstance(arguments, dict):
        raise _wrong(at, "must be a text that holds a JSON object.")
    return arguments
