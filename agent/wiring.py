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
from agent.concierge import Concierge, has_words, tidy
from agent.errors import RowsError
from agent.index import Embedder, Index
from agent.settings import read_settings

TREE = Path(__file__).resolve().parent.parent  # the folder that holds agent/


def build_index(registry: Path) -> Index:
    """All cards' examples, each owned by its card."""
    pairs = [(text, card.name) for card in read_registry(registry) for text in card.examples]
    return Index.build(pairs, make_embedder(home() / "vectors"))


def make_embedder(folder: Path) -> Embedder:
    """The embedder of the settings. It keeps vectors in the folder."""
    settings = read_settings(TREE, os.environ)
    prefixes = settings.query_prefix, settings.passage_prefix
    return cached(Embedder(settings.embed_model, *prefixes, Client(settings).embed), folder)


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
    rows = [row for row in rows if has_words(tidy(row["text"]))]
    if len({row["card"] is None for row in rows}) < 2:
        raise RowsError("a calibration needs rows of both kinds: with a card, and with null.")
    texts = [tidy(row["text"]) for row in rows]
    routes, positions = concierge.route_all(texts), concierge.space(concierge.index.vectors(texts))
    inside = np.array([row["card"] is not None for row in rows])
    right = inside & [row["card"] == r.card for row, r in zip(rows, routes, strict=True)]
    line, scopes = fit_scope(positions, inside)
    read = [{"scope": s, **r.readings} for r, s in zip(routes, scopes.tolist(), strict=True)]
    found = replace(fit(read, inside, right, **shares), line=line)
    return save(registry, concierge.index, found)


def home() -> Path:
    """Where a run leaves what the next one may use: TINY_HOME, or `.tiny` in this tree."""
    return Path(os.environ.get("TINY_HOME") or TREE / ".tiny")
