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


@dataclass(frozen=True)
class Calibration:
    """The least readings for a route, and what they gave on the rows that they come from."""

    least: dict[str, float]  # the name of a reading: its least value
    coverage: float  # answered, of the rows in scope
    accuracy: float  # right, of the answered
    refused: float  # refused, of the rows that nobody should take
    bound_to: str = ""
    line: Sequence[float] = ()  # dimensions + 1 numbers, the last one is added: see fit_scope

    def scope(self, position: np.ndarray) -> float | None:
        """Near 1 for what is like the requests that some card takes, near -1 for the others."""
        return float(position @ self.line[:-1] + self.line[-1]) if self.line else None

    def low(self, readings: dict[str, float]) -> str | None:
        """The first reading that is too low for a route, as in low_score."""
        low = (f"low_{name}" for name, least in self.least.items() if readings[name] < least)
        return next(low, None)


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
    levels = np.quantile(table[right], np.linspace(0, 0.35, 22), axis=0)
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
    """The line that parts rows inside from the others, and the scope of each row.

    Ridge regression on 1 and -1. A line flatters the rows that it was fitted on, so each row
    is read as if it had not been there (leave-one-out residuals; Allen's PRESS, 1974).
    """
    rows = np.hstack([positions, np.ones((len(positions), 1))])
    target, ridge = np.where(inside, 1.0, -1.0), len(rows) / positions.shape[1]
    inverse = np.linalg.inv(rows.T @ rows + ridge * np.eye(rows.shape[1]))
    line = inverse @ rows.T @ target
    own = (rows @ inverse * rows).sum(axis=1)  # how much of a row's scope is its own doing
    return line.round(6).tolist(), target - (target - rows @ line) / (1 - own)


def place(registry: Path, index: Index) -> tuple[Path, str]:
    """A file a model, and what its calibration is bound to: the model, and all examples."""
    embedder = index.embedder
    name, prefixes = embedder.model, [embedder.query_prefix, embedder.passage_prefix]
    what = [name, prefixes, index.matrix.shape[1], index.owners, index.texts]
    bound = sha256(json.dumps(what).encode()).hexdigest()
    return registry / "calibration" / f"{re.sub('[^A-Za-z0-9.-]+', '-', name)}.json", bound


def save(registry: Path, index: Index, calibration: Calibration) -> Path:
    path, bound = place(registry, index)
    text = json.dumps(asdict(replace(calibration, bound_to=bound)))
    try:
        path.parent.mkdir(exist_ok=True)
        path.write_text(text + "\n", encoding="utf-8")
    except OSError as error:
        raise RowsError(f"{path}: {error}. Calibrate a --registry that can be written.") from None
    return path


def load(registry: Path, index: Index) -> Calibration | None:
    """The calibration of this model and registry; None where there is none, or another's."""
    path, bound = place(registry, index)
    try:
        found = Calibration(**json.loads(path.read_text(encoding="utf-8")))
        numbers = np.array([*found.least.values(), *found.line], dtype=float)
        names = {"score", "margin"} | ({"scope"} if len(found.line) > 1 else set())
        whole = set(found.least) == names and len(found.line) in (0, index.matrix.shape[1] + 1)
    except (OSError, ValueError, TypeError, AttributeError, RecursionError):
        return None
    return found if whole and np.isfinite(numbers).all() and found.bound_to == bound else None
