"""Python files of the stage trees that are no package: a card's tools, the scripted endpoint."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

ROOT = Path(__file__).resolve().parents[2]


def load(name: str) -> ModuleType:
    """A fresh copy of the module in a file of main's. Example: registry/tools/web_reader.py"""
    path = ROOT / name
    spec = importlib.util.spec_from_file_location(f"tiny_{path.stem}", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # where dataclasses look for it
    spec.loader.exec_module(module)
    return module
