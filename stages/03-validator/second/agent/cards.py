"""A card says what an agent is for and what it may use."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agent.errors import CardError
from agent.validator import Verdict, judge_file, judge_registry


@dataclass(frozen=True)
class Budget:
    """What one run may spend."""

    turns: int  # requests to the model
    tool_calls: int
    tokens: int  # input and output together
    seconds: float


@dataclass(frozen=True)
class Card:
    """One agent. A tool is the name of a function, or a definition that nobody has written yet."""

    name: str
    description: str
    examples: tuple[str, ...]  # requests that this agent should take
    prompt: str
    tools: tuple[str | dict[str, Any], ...]
    budget: Budget


def make_card(data: dict[str, Any]) -> Card:
    """A card from its six keys. Keys that start with `x-` are the author's own."""
    kept = {key: data[key] for key in Card.__dataclass_fields__}
    limits = {key: data["budget"][key] for key in Budget.__dataclass_fields__}
    lists = {"examples": tuple(data["examples"]), "tools": tuple(data["tools"])}
    return Card(**{**kept, **lists, "budget": Budget(**limits)})


def read_card(path: Path) -> Card:
    """The card in `path`. CardError names the file and the line of each mistake."""
    return sound_cards([judge_file(path)])[0]


def read_registry(folder: Path) -> list[Card]:
    """Every card below `folder`, in the order of paths. CardError has all mistakes of all files."""
    verdicts = judge_registry(folder)
    if not verdicts:
        raise CardError(f"{folder}: no cards here: name a folder that has some")
    return sound_cards(verdicts)


def sound_cards(verdicts: list[Verdict]) -> list[Card]:
    """The cards of files that are all good, or one CardError."""
    mistakes = [
        f"{verdict.path}:{line}: {message}"
        for verdict in verdicts
        for line, message in verdict.errors
    ]
    if mistakes:
        raise CardError("\n".join(mistakes))
    return [make_card(verdict.data) for verdict in verdicts]
