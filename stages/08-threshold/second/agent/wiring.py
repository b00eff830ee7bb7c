"""Puts the parts together, with the settings of this tree. The parts know nothing of it."""

import os
from pathlib import Path
from typing import Any

import numpy as np

from agent.cache import cached
from agent.calibration import fit, load, save
from agent.cards import read_registry
from agent.client import Client
from agent.concierge import Concierge
from agent.errors import RowsError
from agent.index import Embedder, Index
from agent.settings import read_settings

TREE = Path(__file__).resolve().parent.parent  # the folder that holds agent/


def build_index(registry: Path) -> Index:
    """All cards' examples, each owned by its card."""
    pairs = [(text, card.name) for card in read_registry(registry) for text in card.examples]
    settings = read_settings(TREE, os.environ)
    prefixes = settings.query_prefix, settings.passage_prefix
    embedder = Embedder(settings.embed_model, *prefixes, Client(settings).embed)
    return Index.build(pairs, cached(embedder, home() / "vectors"))


def open_concierge(registry: Path) -> Concierge:
    """A concierge over the registry's cards, with the calibration that was measured for them."""
    concierge = Concierge(build_index(registry))
    concierge.calibration = load(registry, concierge.index)
    return concierge


def calibrate(registry: Path, rows: list[dict[str, Any]], **shares: float) -> Path:
    """Fit a calibration on rows and keep it. RowsError names an unknown card. Returns its path."""
    concierge = open_concierge(registry)
    cards = [row["card"] for row in rows]
    if unknown := set(cards) - {None, *concierge.cards}:
        raise RowsError(f"{registry}: no card has the name {', '.join(sorted(unknown))}")
    routes = concierge.route_all([row["text"] for row in rows])
    inside = np.array([card is not None for card in cards])
    nearest = [route.ranking[0].card for route in routes]  # also of what would be refused
    right = np.array([card == near for card, near in zip(cards, nearest, strict=True)])
    found = fit([route.readings for route in routes], inside, right, **shares)
    return save(registry, concierge.index, found)


def home() -> Path:
    """Where a run leaves what the next one may use: TINY_HOME, or `.tiny` in this tree."""
    return Path(os.environ.get("TINY_HOME") or TREE / ".tiny")
