"""Tools: a typed, documented function becomes a JSON schema. What it may do, the model may do."""

import importlib.util
import inspect
import json
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from traceback import format_exception_only
from types import UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

from agent.errors import ToolError
from agent.schema import check, is_a

KINDS = {str: "string", int: "integer", float: "number", bool: "boolean"}


@dataclass(frozen=True)
class Tool:
    """What a model may call. `parameters` is a JSON schema of type object."""

    name: str
    description: str
    parameters: dict[str, Any]
    function: Callable[..., Any]
    source: Path | None = None  # the file that a worker loads it from; None: it runs here

    @cached_property
    def definition(self) -> dict[str, Any]:
        """The tool as each request carries it: with sorted keys, so always the same bytes."""
        shown = {"name": self.name, "description": self.description, "parameters": self.parameters}
        return json.loads(json.dumps({"type": "function", "function": shown}, sort_keys=True))


@dataclass(frozen=True)
class Outcome:
    """What came of a call. `text` is what the model reads."""

    kind: str  # ok, failed or wrong_arguments
    text: str


def make_tool(function: Callable[..., Any]) -> Tool:
    """The tool that a function is. ToolError if a model could not know how to call it."""
    name, text = function.__name__, inspect.getdoc(function)
    if not text:
        raise ToolError(f"{name} has no docstring: say in a sentence what it does.")
    try:
        hints, properties = get_type_hints(function, include_extras=True), dict[str, Any]()
    except Exception as error:
        raise ToolError(f"{name} has an annotation that cannot be read: {error}.") from None
    taken = inspect.signature(function).parameters
    for key, parameter in taken.items():
        if parameter.kind not in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY):
            raise ToolError(f"{name} takes {key} without a name: give each parameter its own.")
        properties[key] = schema_of(hints.get(key), f"{name}, {key}")
        if isinstance(parameter.default, str | int | float):
            properties[key]["default"] = parameter.default
    needed = [key for key, parameter in taken.items() if parameter.default is parameter.empty]
    schema = {"type": "object", "properties": properties, "required": needed}
    return Tool(name, text.split("\n\n")[0].replace("\n", " "), schema, function)


def schema_of(hint: Any, where: str) -> dict[str, Any]:
    """The JSON schema of an annotation. Example: list[str] -> an array of strings."""
    origin, inner = get_origin(hint), get_args(hint)
    if isinstance(hint, type) and hint in KINDS:
        return {"type": KINDS[hint]}
    if origin is Annotated and isinstance(inner[1], str):
        return {**schema_of(inner[0], where), "description": inner[1]}
    if origin is list:
        return {"type": "array", "items": schema_of(inner[0], where)}
    if origin is Literal and all(isinstance(value, str) for value in inner):
        return {"type": "string", "enum": list(inner)}
    if origin in (Union, UnionType) and len(inner) == 2 and inner[1] is type(None):
        return schema_of(inner[0], where)  # a value that may be left out
    known = "str, int, float, bool, list[…], Literal of texts, or one of them | None"
    raise ToolError(f"{where}: the annotation must be {known}. Annotated[…, text] describes it.")


def invoke(tool: Tool, given: dict[str, Any]) -> Outcome:
    """Call the function itself."""
    try:
        return Outcome("ok", as_text(tool.function(**given)))
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # SystemExit and RecursionError too: the tool's, not ours
        return Outcome("failed", as_text(said(error)))


def call(tool: Tool, arguments: dict[str, Any], invoke: Callable[..., Outcome] = invoke) -> Outcome:
    """Call a tool. What goes wrong is a result for the model; only Ctrl-C is raised."""
    given, wrong = fit(arguments, tool.parameters)
    if wrong:
        return Outcome("wrong_arguments", "; ".join(wrong)[:300])
    return invoke(tool, given)


def fit(arguments: dict[str, Any], schema: dict[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """The arguments as the schema wants them, and what is wrong with them: missing, kind, unknown.

    A null for what may be left out counts as left out.
    """
    known, needed = schema.get("properties", {}), schema.get("required", [])
    given = {
        key: coerce(value, known.get(key, {}))
        for key, value in arguments.items()
        if value is not None or key in needed or key not in known
    }
    wrong = [what for _, what in check(given, schema)]
    unknown = [key for key in given if key not in known]
    wrong += [f"there is no argument {key[:40]!r}: there are {', '.join(known)}" for key in unknown]
    return given, wrong


def coerce(value: Any, schema: dict[str, Any]) -> Any:
    """The same value in the kind that is wanted, if nothing is lost (opencodex#1938).

    Example: "4" -> 4 where an integer is wanted, 4 -> "4" where a string is.
    """
    kind = schema.get("type")
    if kind == "string" and is_a(value, "number"):
        return json.dumps(value)
    if isinstance(value, str) and kind in ("integer", "number", "boolean", "array", "object"):
        try:
            read = json.loads(value, parse_constant=str)
        except (ValueError, RecursionError):
            return value
        large = isinstance(read, float) and not abs(read) < 2**53  # it may have been rounded
        if (is_a(read, kind) or is_a(read, "number")) and not large:
            value = read
    if kind == "integer" and isinstance(value, float) and value.is_integer():
        return int(value)
    if kind == "array" and isinstance(value, list):
        return [coerce(item, schema.get("items", {})) for item in value]
    return value


def as_text(value: Any) -> str:
    """A result as the model reads it. Nothing is said to be final, or it is tried again."""
    if value is None:
        return "(done, no result)"
    if value in ("", [], (), {}):
        return "(0 results: this is final)"  # superplane#4123
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return text.encode("utf-8", "replace").decode()


def load_tool(path: Path, name: str) -> Tool:
    """The tool that the function `name` in a Python file is. ToolError if there is none."""
    spec = importlib.util.spec_from_file_location(f"tools.{path.stem}", path)
    if spec is None or spec.loader is None:
        raise ToolError(f"{path} is no Python file: its name ends in .py.")
    if not path.is_file():
        raise ToolError(f"{path} is not there: write it, or take {name} off its card.")
    sys.modules[spec.name] = module = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        raise ToolError(f"{path} cannot be loaded ({said(error)}).") from None
    if not inspect.isfunction(function := getattr(module, name, None)):
        raise ToolError(f"{path} has no function {name!r}: write it, or mend the name.")
    return replace(make_tool(function), name=name, source=path.resolve())


def said(error: BaseException) -> str:
    """An error in a line. Example: ValueError: no such page"""
    return " ".join("".join(format_exception_only(error)).split())[:300]
