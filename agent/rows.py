"""Rows: requests, each with the card that should take it, or null for nobody."""

import json
from pathlib import Path
from typing import Any

from agent.errors import RowsError

KEYS = {"text", "card", "kind", "lang"}  # kind: in (scope), out (of it), near (a near miss)


def read_rows(path: Path) -> list[dict[str, Any]]:
    """The rows in a JSONL file. RowsError names the file and the line."""
    try:
        lines = path.read_text(encoding="utf-8").split("\n")
    except (OSError, UnicodeDecodeError) as error:
        raise RowsError(f"{path}: {error}. Name a file of rows.") from None
    rows = []
    for number, line in enumerate(lines, 1):
        try:
            row = json.loads(line.strip() or "{}")
        except (ValueError, RecursionError) as error:
            raise RowsError(f"{path}, line {number}: not JSON: {error}.") from None
        fits = isinstance(row, dict) and row.keys() >= KEYS and isinstance(row["text"], str)
        if line.strip() and not (fits and isinstance(row["card"], str | None)):
            raise RowsError(f"{path}, line {number}: a row has text, card or null, kind and lang.")
        rows += [row] if line.strip() else []
    if not rows:
        raise RowsError(f"{path}: no rows. Name a file of rows.")
    return rows
