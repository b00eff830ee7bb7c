"""Puts the parts together, with the settings of this tree. The parts know nothing of it."""

import os
from pathlib import Path

from agent.cards import read_registry
from agent.client import Client
from agent.concierge import Concierge
from agent.index import Embedder, Index
from agent.settings import read_settings

TREE = Path(__file__).resolve().parent.parent  # the folder that holds agent/


def build_index(registry: Path) -> Index:
    """All cards' examples, each owned by its card."""
    pairs = [(text, card.name) for card in read_registry(registry) for text in card.examples]
    settings = read_settings(TREE, os.environ)
    prefixes = settings.query_prefix, settings.passage_prefix
    return Index.build(pairs, Embedder(settings.embed_model, *prefixes, Client(settings).embed))


def open_concierge(registry: Path) -> Concierge:
    """The concierge of a folder of cards."""
    return Concierge(build_index(registry))
