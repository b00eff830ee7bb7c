"""A card says what an agent is for and what it may use. A registry is a folder of them."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agent.errors import CardError
from agent.validator import SUFFIX, Verdict, judge_file, judge_registry


@dataclass(frozen=True)
class Budget:
    """What one run may spend."""

    turns: int  # requests to the model
    tool_calls: int
    tokens: int  # input and output together
    seconds: float


@dataclass(frozen=True)
class Keep:
    """Which results of tools go to the store."""

    above: int = 1_000  # tokens: longer ones
    digest: int = 800  # tokens of what stands in the conversation instead


@dataclass(frozen=True)
class Card:
    """One agent. A tool is the name of a function, or a definition that nobody has written yet."""

    name: str
    description: str
    examples: tuple[str, ...]  # requests that this agent should take
    prompt: str
    tools: tuple[str | dict[str, Any], ...]
    budget: Budget
    artifacts: Keep = Keep()


def make_card(data: dict[str, Any]) -> Card:
    """A card from its keys. Keys that start with `x-` are the author's own."""
    kept = {key: data[key] for key in Card.__dataclass_fields__ if key in data}
    limits = {key: data["budget"][key] for key in Budget.__dataclass_fields__}
    lists = {"examples": tuple(data["examples"]), "tools": tuple(data["tools"])}
    rule = data.get("artifacts", {})
    keep = Keep(**{key: rule[key] for key in Keep.__dataclass_fields__ if key in rule})
    return Card(**{**kept, **lists, "budget": Budget(**limits), "artifacts": keep})


def read_card(path: Path) -> Card:
    """The card in `path`. CardError says each thing that is wrong, with its line and mend."""
    return good_cards([judge_file(path)])[0]


def read_registry(folder: Path) -> list[Card]:
    """Every card below `folder`, in the order of paths. CardError if one is bad."""
    if not (verdicts := judge_registry(folder)):
        raise CardError(f"{folder}: no file here ends in {SUFFIX}. Name a folder with --registry.")
    return good_cards(verdicts)


def good_cards(verdicts: list[Verdict]) -> list[Card]:
    if errors := [f"{v.path}:{line}: {what}" for v in verdicts for line, what in v.errors]:
        raise CardError("\n  ".join([f"{len(errors)} to mend:", *errors]))
    return [make_card(verdict.data) for verdict in verdicts]
