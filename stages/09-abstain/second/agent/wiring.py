"""Puts the parts together, with the settings of this tree. The parts know nothing of it."""

import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from agent.cache import cached
from agent.calibration import fit, fit_scope, load, save
from agent.cards import read_registry
from agent.client import Client
from agent.concierge import Concierge
from agent.errors import RowsError
from agent.index import Embedder, Index
from agent.request import one_line, says_something
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
    """A concierge over the registry's cards, with the calibration that belongs to them."""
    concierge = Concierge(build_index(registry))
    concierge.calibration = load(registry, concierge.index)
    return concierge


def calibrate(registry: Path, rows: list[dict[str, Any]], **shares: float) -> Path:
    """Fit a calibration on rows, write it where `open_concierge` finds it, return its path."""
    concierge = Concierge(build_index(registry))
    unknown = {row["card"] for row in rows} - {None, *concierge.cards}
    if unknown:
        said = f"{registry} does not have the cards {sorted(unknown)}"
        raise RowsError(f"{said}, which rows name. Mend the rows, or name their --registry.")
    texts = [one_line(row["text"]) for row in rows]
    told = [(text, row["card"]) for text, row in zip(texts, rows, strict=True)]
    told = [(text, card) for text, card in told if says_something(text)]
    if not told:
        raise RowsError("no row has a letter or a digit: there is nothing to measure. Add rows.")
    vectors = concierge.index.vectors([text for text, _ in told])
    routes = [concierge.rank(text, v) for (text, _), v in zip(told, vectors, strict=True)]
    inside = np.array([card is not None for _, card in told])
    line, scopes = fit_scope(concierge.space(vectors), inside)
    readings = [
        {"scope": float(scope), **route.readings}
        for scope, route in zip(scopes, routes, strict=True)
    ]
    # A tie that nobody should take is refused, but that is no card found.
    named = np.array([route.card == card for (_, card), route in zip(told, routes, strict=True)])
    found = fit(readings, inside, named & inside, **shares)
    return save(registry, concierge.index, replace(found, line=line))


def home() -> Path:
    """Where a run leaves what the next one may use: TINY_HOME, or `.tiny` in this tree."""
    return Path(os.environ.get("TINY_HOME") or TREE / ".tiny")
