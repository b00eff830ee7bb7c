"""A space in which scores spread: seen from the index's mean, in units of a card's own spread."""

from dataclasses import dataclass

import numpy as np

from agent.index import Index


@dataclass(frozen=True)
class Space:
    """Moves vectors by `centre`, (dimensions,), and turns them by `turn`, (dimensions, same)."""

    centre: np.ndarray
    turn: np.ndarray

    @classmethod
    def fit(cls, index: Index) -> "Space":
        """What all cards share, and what differs within a card, tells no card from another.

        The mean is taken out, and each direction is divided by its spread within cards
        (whitening, as in Fisher's discriminant, 1936). Examples are few and directions many,
        so the mean spread is added to each.
        """
        cards, owners = np.unique(index.owners, return_inverse=True)
        means = np.stack([index.matrix[owners == card].mean(axis=0) for card in range(len(cards))])
        within = index.matrix - means[owners]
        spread = within.T @ within
        spread += np.eye(len(spread)) * (np.trace(spread) / len(spread) or 1)
        centre = index.matrix.mean(axis=0) * (len(cards) > 1)  # a card alone is its own centre
        return cls(centre, np.linalg.cholesky(np.linalg.inv(spread)).astype(np.float32))

    def __call__(self, vectors: np.ndarray) -> np.ndarray:
        """The vectors in this space, each of length 1. Their shape stays."""
        moved = (vectors - self.centre) @ self.turn
        return moved / np.maximum(np.linalg.norm(moved, axis=-1, keepdims=True), 1e-9)
