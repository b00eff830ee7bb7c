"""The practice endpoint: an OpenAI-compatible server on this machine, without a key or an account.

It serves embeddings from a small model on the CPU. Nothing leaves the machine.
"""

from __future__ import annotations

from .server import Endpoint, serve, start

__all__ = ["Endpoint", "serve", "start"]
