"""The toolbox: the tools that a card names, from the folder `tools/` beside the cards."""

from difflib import get_close_matches
from pathlib import Path
from typing import Any

from agent.cards import Card, read_registry
from agent.errors import CardError, ToolError
from agent.tools import Tool, load_tool


def find_card(registry: Path, name: str) -> Card:
    """The card of this name. CardError names the ones that come close."""
    cards = {card.name: card for card in read_registry(registry)}
    if name not in cards:
        near = get_close_matches(name, cards, 3, 0.4) or sorted(cards)[:5]
        raise CardError(f"{registry} has no card {name!r}. Is it one of {', '.join(near)}?")
    return cards[name]


def tools_of(card: Card, registry: Path) -> list[Tool]:
    """The card's tools, in its order. ToolError if one that it names is not there."""
    if "expand" in [tool if isinstance(tool, str) else tool["name"] for tool in card.tools]:
        raise ToolError(f"{card.name}: the tool expand is the store's own. Take another name.")
    path = registry / "tools" / f"{card.name.replace('-', '_')}.py"
    return [
        load_tool(path, tool) if isinstance(tool, str) else Tool(**tool, function=refuse)
        for tool in card.tools
    ]


class DefinitionOnly(Exception):
    """A tool that nobody has written."""


def refuse(**arguments: Any) -> None:
    """What a tool does that is a definition and no more."""
    raise DefinitionOnly("this is a definition to choose by, no tool yet: nothing was done")
