"""What is built from what. The one place that knows settings, client and index together."""

from __future__ import annotations

import os
from pathlib import Path

from agent.cards import read_registry
from agent.client import Client
from agent.index import Embedder, Index
from agent.settings import read_settings

TREE = Path(__file__).resolve().parents[1]


def build_index(registry: Path) -> Index:
    """Every example of every card of a registry, owned by the card's name."""
    cards = read_registry(registry)
    pairs = [(example, card.name) for card in cards for example in card.examples]
    return Index.build(pairs, make_embedder())


def make_embedder() -> Embedder:
    """The embedder that the settings name."""
    said = read_settings(TREE, os.environ)
    return Embedder(said.embed_model, said.query_prefix, said.passage_prefix, Client(said).embed)
