"""A card: the file that says what an agent is for, and what a run of it may spend.

Does not judge the values: whoever reads a card gets what stands in it.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, TypeVar

from agent.errors import CardError
from agent.yaml_file import YamlError, read_yaml

Kind = TypeVar("Kind")


@dataclass(frozen=True)
class Budget:
    """The most that one run may spend."""

    turns: int
    tool_calls: int
    tokens: int
    seconds: float


@dataclass(frozen=True)
class Card:
    """An agent, as its author wrote it down. A tool is a name or a whole definition."""

    name: str
    description: str
    examples: tuple[str, ...]
    prompt: str
    tools: tuple[str | dict[str, Any], ...]
    budget: Budget


def read_card(path: Path) -> Card:
    """The card in a file. CardError, with the file's name, where there is none."""
    try:
        data, _ = read_yaml(path.read_bytes())
        data = {**mapping(data, "the card")}
        if "budget" in data:
            data["budget"] = fill(Budget, mapping(data["budget"], "budget"), "budget.")
        return fill(Card, data, "")
    except OSError as error:
        raise CardError(f"{path}: cannot be read: {error.strerror}. Look at its name.") from None
    except YamlError as error:
        raise CardError(f"{path}: {error}") from None
    except LookupError as error:
        raise CardError(f"{path}: {error.args[0]}") from None


def mapping(data: Any, what: str) -> dict[str, Any]:
    if isinstance(data, dict):
        return data
    raise LookupError(f"{what} is no mapping. Write keys with values.")


def fill(kind: type[Kind], data: dict[str, Any], above: str) -> Kind:
    """An object of a dataclass from the keys that it has fields for. LookupError for a gap."""
    wanted = [field.name for field in fields(kind)]  # type: ignore[arg-type]
    gaps = [above + name for name in wanted if name not in data]
    if gaps:
        raise LookupError(f"no {', no '.join(gaps)}. Add what is missing.")
    return kind(**{name: frozen(data[name]) for name in wanted})


def frozen(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value
