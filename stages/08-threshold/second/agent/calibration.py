"""Least values for what the concierge reads, fitted on rows, kept for one model and registry."""

import json
import math
import os
import re
from dataclasses import asdict, dataclass, fields, replace
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np

from agent.errors import CardError, RowsError
from agent.index import Index

KEPT = 0.65  # of the right rows reach each least value, whatever else is wanted
TRIED = 36  # values of each reading


@dataclass(frozen=True)
class Calibration:
    """The least value of each reading, and what these values did on the rows of the fit."""

    least: dict[str, float]  # "score" and "margin" to their least values
    coverage: float  # answered, of the rows in scope
    accuracy: float  # right, of the answered in scope
    refused: float  # refused, of the rows for nobody
    bound_to: str = ""

    def too_low(self, readings: dict[str, float]) -> str | None:
        """The name of the first reading below its least value."""
        floor = self.least.get
        return next((n for n, value in readings.items() if not value >= floor(n, -math.inf)), None)


def fit(
    readings: list[dict[str, float]],
    inside: np.ndarray,
    right: np.ndarray,
    accuracy: float,
    refused: float,
) -> Calibration:
    """The least values with the most coverage that keep to both shares, or miss them by the least.

    Every pair of the values worth trying is a row of `answered`; one product counts for them all.
    """
    right = right & inside
    if not right.any():
        raise RowsError("no row in scope went to its card: rows with a card and with null needed")
    if inside.all():
        raise RowsError("no row for nobody: rows with null are needed beside those with a card")
    grid = np.empty((1, 0))  # pairs of least values
    answered = np.ones((1, len(inside)), dtype=bool)  # by these values: the rows
    for name in readings[0]:
        values = np.array([reading[name] for reading in readings])
        tries = worth_trying(values, inside, right)
        reached = values >= tries[:, None]
        grid = np.column_stack([np.repeat(grid, len(tries), axis=0), np.tile(tries, len(grid))])
        answered = (answered[:, None] & reached).reshape(-1, len(inside))
    sorts = np.stack([inside, right, ~inside], axis=1)
    counts = answered.astype(np.float32) @ sorts.astype(np.float32)
    in_scope, hits, taken = counts.T.astype(np.float64)
    nobodys = (~inside).sum()
    shares = np.stack([hits / np.maximum(in_scope, 1), (nobodys - taken) / nobodys])
    missed = np.maximum(np.array([[accuracy], [refused]]) - shares, 0).sum(axis=0).round(12)
    missed[hits == 0] = np.inf
    best = np.lexsort((-shares.sum(axis=0), -in_scope, missed))[0]  # the last key counts first
    return Calibration(
        least=dict(zip(readings[0], grid[best].tolist(), strict=True)),
        coverage=float(in_scope[best] / inside.sum()),
        accuracy=float(shares[0, best]),
        refused=float(shares[1, best]),
    )


def worth_trying(values: np.ndarray, inside: np.ndarray, right: np.ndarray) -> np.ndarray:
    """From a value that refuses nothing up to one that KEPT of the right rows reach."""
    falling = np.sort(values[right])[::-1]
    most = falling[math.ceil(KEPT * len(falling)) - 1]
    useful = np.unique(values[inside & (values <= most)])
    places = np.linspace(0, len(useful) - 1, min(TRIED, len(useful))).round().astype(int)
    return np.unique([values.min(), *useful[places]])


def save(registry: Path, index: Index, calibration: Calibration) -> Path:
    """Keep a calibration for this index. Returns the file."""
    path = place(registry, index)
    bound = asdict(replace(calibration, bound_to=fingerprint(index)))
    temporary = path.with_name(f"{path.name}.{os.getpid()}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary.write_text(json.dumps(bound, indent=2) + "\n", encoding="utf-8")
        temporary.replace(path)
    except OSError as error:
        raise CardError(f"{path}: cannot be written: {error.strerror}") from None
    return path


def load(registry: Path, index: Index) -> Calibration | None:
    """The calibration for this index; None where there is none, or only another's."""
    try:
        data = json.loads(place(registry, index).read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return None
    if not isinstance(data, dict) or data.keys() != {field.name for field in fields(Calibration)}:
        return None
    least, shares = data["least"], [data[key] for key in ("coverage", "accuracy", "refused")]
    sound = isinstance(least, dict) and all(map(is_number, [*least.values(), *shares]))
    return Calibration(**data) if sound and data["bound_to"] == fingerprint(index) else None


def is_number(value: Any) -> bool:
    return type(value) in (int, float) and math.isfinite(value)


def place(registry: Path, index: Index) -> Path:
    """A file for each model. Its name is for people; what counts is the fingerprint inside."""
    name = re.sub(r"[^\w.-]+", "-", index.embedder.model, flags=re.ASCII).strip("-.")[:80]
    return registry / "calibration" / f"{name or 'model'}.json"


def fingerprint(index: Index) -> str:
    """A hash of all that decides a score: model, prefixes, examples and their cards."""
    embedder = index.embedder
    pairs = sorted(zip(index.owners, index.texts, strict=True))
    parts = [embedder.model, embedder.query_prefix, embedder.passage_prefix, pairs]
    return sha256(json.dumps(parts).encode()).hexdigest()
