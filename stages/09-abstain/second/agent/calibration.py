"""A calibration: how high a score and a margin must be, measured on rows.

It belongs to one model and one registry, and is not used for another.
"""

import itertools
import json
import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from hashlib import sha256
from pathlib import Path

import numpy as np

from agent.errors import RowsError
from agent.index import Index

LEVELS = 22  # values that are tried for each reading


@dataclass(frozen=True)
class Calibration:
    """The least readings for a route, and what they gave on the rows that they come from."""

    least: dict[str, float]  # the name of a reading: its least value
    coverage: float  # answered, of the rows in scope
    accuracy: float  # right, of the answered
    refused: float  # refused, of the rows that nobody should take
    bound_to: str = ""
    line: Sequence[float] = ()  # a weight for each dimension, and the constant

    def low(self, readings: dict[str, float]) -> str | None:
        """The first reading that is too low for a route, as in low_score."""
        for name, value in readings.items():
            if name in self.least and value < self.least[name]:
                return f"low_{name}"
        return None

    def scope(self, position: np.ndarray) -> float | None:
        """On which side of the line a place of the space is, and how far. None without a line."""
        if not self.line:
            return None
        *weights, constant = self.line
        return float(np.dot(position, weights)) + constant


def fit(
    readings: list[dict[str, float]],  # of each row
    inside: np.ndarray,  # (rows,), bool: some card should take it
    right: np.ndarray,  # (rows,), bool: the nearest card is the one that should
    accuracy: float,
    refused: float,
) -> Calibration:
    """The least readings with the most coverage that keep to both shares, or come closest."""
    if not right.any() or inside.all():
        counts = f"{inside.sum()} of {len(inside)} rows have a card, {right.sum()} were found"
        raise RowsError(f"{counts}: a calibration needs found ones, and some with null. Add them.")
    table = np.array([list(one.values()) for one in readings])
    levels = np.quantile(table[right], np.linspace(0, 0.35, LEVELS), axis=0)
    best, found = (-9.0, 0.0), Calibration({}, 0, 0, 0)
    for least in itertools.product(*levels.T):
        taken = np.all(table >= least, axis=1)
        if not taken[right].any():
            continue  # nothing right is left, so there is no accuracy
        kept, sure = float(taken[inside].mean()), float(right[taken & inside].mean())
        away = float(1 - taken[~inside].mean())
        missed = min(0, sure - accuracy) + min(0, away - refused)
        if (missed, kept) > best:
            names = dict(zip(readings[0], map(float, least), strict=True))
            best, found = (missed, kept), Calibration(names, kept, sure, away)
    return found


def fit_scope(positions: np.ndarray, inside: np.ndarray) -> tuple[list[float], np.ndarray]:
    """The line between rows that a card should take and the others; and each row's scope.

    `positions` is (rows, dimensions), `inside` (rows,), bool. Ridge regression on 1 and -1, by
    singular values. A row's scope, (rows,), is read from the line without that row: its residual
    grows by what the row contributes to its own value (the leave-one-out identity).
    """
    rows, dimensions = positions.shape
    wanted = np.where(inside, 1.0, -1.0)
    sides = np.hstack([positions.astype(np.float64), np.ones((rows, 1))])
    left, sizes, right = np.linalg.svd(sides, full_matrices=False)
    penalised = sizes**2 + rows / dimensions
    line = right.T @ (sizes / penalised * (left.T @ wanted))
    kept = sizes**2 / penalised  # how much of each direction the penalty lets through
    own = left**2 @ kept
    blind = wanted - (wanted - sides @ line) / (1 - own)
    return [round(weight, 6) for weight in line.tolist()], blind


def place(registry: Path, index: Index) -> tuple[Path, str]:
    """A file a model, and what its calibration is bound to: the model, and all examples."""
    embedder = index.embedder
    name, prefixes = embedder.model, [embedder.query_prefix, embedder.passage_prefix]
    what = [name, prefixes, index.matrix.shape[1], index.owners, index.texts]
    bound = sha256(json.dumps(what).encode()).hexdigest()
    return registry / "calibration" / f"{re.sub('[^A-Za-z0-9.-]+', '-', name)}.json", bound


def save(registry: Path, index: Index, calibration: Calibration) -> Path:
    path, bound = place(registry, index)
    path.parent.mkdir(exist_ok=True)
    text = json.dumps(asdict(replace(calibration, bound_to=bound)), indent=1)
    path.write_text(text + "\n", encoding="utf-8")
    return path


def load(registry: Path, index: Index) -> Calibration | None:
    """The calibration of this model and registry; None where there is none, or another's."""
    path, bound = place(registry, index)
    try:
        found = Calibration(**json.loads(path.read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError):
        return None
    fits = len(found.line) in (0, index.matrix.shape[1] + 1)
    return found if fits and found.bound_to == bound else None
