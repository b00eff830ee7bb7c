"""Settings: which endpoint, which model. Read once, at the entry, and passed down."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from dotenv import dotenv_values

from agent.errors import SettingsError


@dataclass(frozen=True)
class Settings:
    """What the TINY_ variables say. A key is never shown."""

    embed_url: str  # ends in a version: http://127.0.0.1:11434/v1
    embed_key: str = field(repr=False)
    embed_model: str
    query_prefix: str
    passage_prefix: str
    chat_url: str = ""
    chat_key: str = field(default="", repr=False)
    chat_model: str = ""


def read_settings(tree: Path, environ: Mapping[str, str]) -> Settings:
    """The settings for the tree that holds `agent/`. The environment wins over `.env`."""
    names = read_names(tree, environ)
    url = names.get("TINY_EMBED_BASE_URL") or names.get("TINY_BASE_URL") or ""
    key = names.get("TINY_EMBED_API_KEY") or names.get("TINY_API_KEY") or ""
    model = names.get("TINY_EMBED_MODEL") or ""
    if not url or not model:
        mend = "Set it in .env, or run this through just, which starts the practice endpoint."
        raise SettingsError(f"{'TINY_EMBED_MODEL' if url else 'TINY_BASE_URL'} is not set. {mend}")
    both = key + (names.get("TINY_API_KEY") or "")
    if not (both.isascii() and both.isprintable()):
        raise SettingsError("TINY_API_KEY holds a character that no key has. Copy it again.")
    prefixes = names.get("TINY_QUERY_PREFIX") or "", names.get("TINY_PASSAGE_PREFIX") or ""
    chat = base_url(names.get("TINY_BASE_URL") or url), names.get("TINY_API_KEY") or ""
    return Settings(base_url(url), key, model, *prefixes, *chat, names.get("TINY_CHAT_MODEL") or "")


def read_names(tree: Path, environ: Mapping[str, str]) -> dict[str, str]:
    """The variables of `.env` and of the environment, which wins."""
    home = tree.parents[1] if re.search(r"/(\.stages|work)/\d\d-", tree.as_posix()) else tree
    found = dotenv_values(home / ".env", interpolate=False, encoding="utf-8-sig")
    return {name: value for name, value in {**found, **environ}.items() if value is not None}


def base_url(url: str) -> str:
    """What `/embeddings` is added to. Example: http://h and http://h/v1/ -> http://h/v1"""
    host = r"https?://(?:\[[\da-f:.]+\]|\w[\w-]*(?:\.[\w-]+)*)(?::\d{1,5})?"
    match = re.fullmatch(rf"({host})(/[^?#\s]*)?", url.strip(), re.I)
    if not match:
        raise SettingsError("TINY_BASE_URL: write http://host:port/v1. A key has its own variable.")
    path = re.sub(r"/((chat/)?completions|embeddings|models)$", "", (match[2] or "").rstrip("/"))
    return match[1] + (path if re.search("/v[0-9]", path) else path + "/v1")
