"""Calls: what a model asked for, read against the tools that there are. It runs nothing."""

import json
import re
from dataclasses import dataclass, field
from typing import Any

from agent.chat import Call
from agent.tools import Outcome, Tool

WRAPPER = re.compile(r"^((functions|tools?|default|multi_tool_use)[./:]+)+|:\d+$")  # codex#9447
TEXT_CALL = re.compile(r"(?:<tool_call>\s*)?(\{.*\})(?:\s*</tool_call>)?", re.S)
TEXT_FORM = re.compile(
    r"(?:<tool_call>\s*)?<function=([\w-]+)>(.*?)(?:</function>\s*)?(?:</tool_call>)?", re.S
)
PARAMETER = re.compile(
    r"<parameter=([\w-]+)>\s*(.*?)(?:</parameter>|(?=<parameter=|</function>)|\Z)", re.S
)


EXPAND = "expand"  # the tool that comes with a digest
SCALAR = (str, int, float, type(None))


def no_constant(name: str) -> None:
    raise ValueError(f"{name} is no JSON")  # Python takes NaN, the next endpoint does not


DECODER = json.JSONDecoder(parse_constant=no_constant)


@dataclass(frozen=True)
class Reading:
    """A call that can be run, or the outcome that says why not."""

    call: Call  # as the history carries it: what no endpoint takes is out
    tool: Tool | None = None
    arguments: dict[str, Any] = field(default_factory=dict)
    repaired: bool = False
    outcome: Outcome | None = None


def read(call: Call, tools: dict[str, Tool]) -> Reading:
    """What is wrong with a call, in words that let the model mend it."""
    tool = find_tool(call.name, tools)
    name = tool.name if tool else re.sub(r"[^A-Za-z0-9_-]", "_", call.name)[:64] or "unnamed"
    arguments, wrong = parse(call.arguments)
    kept = Call(call.id, name, "{}" if wrong else call.arguments)  # broken ones never (hud-python)
    if not tool:
        named = [name for name in tools if name != EXPAND][:5]
        there = ", ".join([*named, EXPAND] if EXPAND in tools else named)
        said = f"there is no tool {call.name[:64]!r}. There are: {there or 'none'}."
        return Reading(kept, outcome=Outcome("ghost", said))
    outcome = Outcome("unparsable", wrong) if wrong else None
    return Reading(kept, tool, arguments, tool.name != call.name, outcome)


def find_tool(name: str, tools: dict[str, Tool]) -> Tool | None:
    """The tool of this name, or the only one that it can mean: functions.READ:0 -> read."""
    if name in tools:
        return tools[name]
    bare = fold(WRAPPER.sub("", name))
    meant = [tool for tool in tools.values() if fold(tool.name) == bare]
    return meant[0] if len(meant) == 1 else None


def fold(name: str) -> str:
    return name.casefold().replace("-", "_")


def too_deep(value: Any, most: int = 100) -> bool:
    """Whether lists and objects stand in one another more than `most` times."""
    level = [value]
    for _ in range(most):
        inner = [each.values() if isinstance(each, dict) else each for each in level]
        level = [item for each in inner if not isinstance(each, SCALAR) for item in each]
    return bool(level)


def parse(text: str) -> tuple[dict[str, Any], str]:
    """The arguments in a JSON text, and what is wrong with it. Nothing is guessed (hermes#1796)."""
    text = text.strip(" \t\r\n")  # what JSON takes for blanks
    try:
        value, end = DECODER.raw_decode(text or "{}")
    except RecursionError:
        return {}, "the arguments are nested too deep"
    except ValueError as error:
        said = f"{text[:200]}… ({len(text)} characters)" if len(text) > 200 else text
        return {}, f"the arguments are no JSON, {error}: {said}"
    if too_deep(value):
        return {}, "the arguments are nested too deep"
    if text[end:].strip():
        return {}, f"more stands after the first object, at character {end}: one call, one object"
    if not isinstance(value, dict):
        return {}, "the arguments must be one JSON object"
    return value, ""


def text_call(text: str, tools: dict[str, Tool]) -> Call | None:
    """The call that a model wrote as text, if the whole text is one and the tool is there."""
    name: Any = None
    arguments: Any = None
    if len(text) > 10_000:
        return None
    text = text.strip()
    if form := TEXT_FORM.fullmatch(text):
        if PARAMETER.sub("", form[2]).strip():  # prose between them: an example, no call
            return None
        name = form[1]
        arguments = {key: value.rstrip() for key, value in PARAMETER.findall(form[2])}
    elif form := TEXT_CALL.fullmatch(text):
        said, _ = parse(form[1])
        name, arguments = said.get("name"), said.get("arguments", said.get("parameters"))
    if isinstance(name, str) and name in tools and isinstance(arguments, dict):
        return Call("call_text", name, json.dumps(arguments, ensure_ascii=False))
    return None
