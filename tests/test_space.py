"""Stage 07: scores are taken in a space of the index's own mean and spread."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from helpers import need

CARDS, EACH, SIZE = 6, 7, 12


def unit(rows: np.ndarray) -> np.ndarray:
    return rows / np.linalg.norm(rows, axis=-1, keepdims=True)


def rows_of(seed: int) -> tuple[np.ndarray, list[str], np.ndarray]:
    """Unit rows with much in common, their owners, and five requests."""
    rng = np.random.default_rng(seed)
    means = rng.normal(size=(CARDS, SIZE))
    spread = rng.normal(size=(SIZE, SIZE)) * np.linspace(0.1, 1.5, SIZE)
    owners = [f"card-{i % CARDS}" for i in range(CARDS * EACH)]
    rows = np.tile(means, (EACH, 1)) + rng.normal(size=(CARDS * EACH, SIZE)) @ spread
    requests = means[:5] + rng.normal(size=(5, SIZE)) @ spread
    return unit(rows + 4), owners, unit(requests + 4)


def index_of(rows: np.ndarray, owners: Sequence[str], requests: np.ndarray | None = None) -> Any:
    vectors = {
        f"request {i}": row for i, row in enumerate(requests if requests is not None else ())
    }

    def embed(texts: Sequence[str]) -> np.ndarray:
        return np.array([vectors[text] for text in texts], dtype=np.float32)

    need("agent.space", "Space")
    made = need("agent.index", "Embedder")("model", "", "", embed)
    texts = [f"text {i}" for i in range(len(rows))]
    return need("agent.index", "Index")(texts, list(owners), rows.astype(np.float32), made)


def space_of(rows: np.ndarray, owners: Sequence[str]) -> Any:
    return need("agent.space", "Space").fit(index_of(rows, owners))


def by_the_book(rows: np.ndarray, owners: Sequence[str], requests: np.ndarray) -> np.ndarray:
    """The cosines, without a turn: by the inner product of the inverse spread (Mahalanobis)."""
    spread = np.zeros((rows.shape[1], rows.shape[1]))
    for owner in set(owners):
        own = rows[[one == owner for one in owners]]
        for row in own - own.mean(axis=0):
            spread += np.outer(row, row)
    spread += np.eye(len(spread)) * (np.trace(spread) / len(spread))
    a, b = requests - rows.mean(axis=0), rows - rows.mean(axis=0)
    product = a @ np.linalg.solve(spread, b.T)
    lengths = [np.sqrt((x * np.linalg.solve(spread, x.T).T).sum(axis=1)) for x in (a, b)]
    return product / np.outer(*lengths)


def test_the_cosines_are_those_of_the_inverse_spread() -> None:
    """Task 5: cosines in the space are those by Mahalanobis's inner product around the mean."""
    for seed in range(4):
        rows, owners, requests = rows_of(seed)
        space = space_of(rows, owners)
        got, wanted = space(requests) @ space(rows).T, by_the_book(rows, owners, requests)
        off = abs(got - wanted).max()
        assert off < 1e-3, f"seed {seed}: a cosine is off by {off:.4f}; the first: {got[0, :3]}"


def test_the_centre_is_the_mean_of_the_rows() -> None:
    """Task 5: the centre is the plain mean of the index's rows, not of the cards' means."""
    rows, owners, _ = rows_of(1)
    rows, owners = rows[:-4], owners[:-4]
    off = abs(space_of(rows, owners).centre - rows.mean(axis=0)).max()
    assert off < 1e-5, f"expected the mean of the rows, off by {off:.5f}"


def test_what_comes_out_has_length_1_and_the_shape_that_went_in() -> None:
    """Task 5: one vector or many, the shape stays, and each has length 1."""
    rows, owners, requests = rows_of(2)
    space = space_of(rows, owners)
    many, one = space(requests), space(requests[0])
    shapes = many.shape, one.shape
    assert shapes == ((5, SIZE), (SIZE,)), f"expected (5, {SIZE}) and ({SIZE},), came {shapes}"
    lengths = np.linalg.norm(many, axis=1)
    assert np.allclose(lengths, 1, atol=1e-5), f"expected lengths of 1, came {lengths}"
    assert np.allclose(many[0], one, atol=1e-5), f"alone {one}, among others {many[0]}"


def test_a_rotation_of_all_vectors_changes_no_score() -> None:
    """Task 5: which axes a model has picked does not matter."""
    make = need("agent.concierge", "Concierge")
    for seed in range(4):
        rows, owners, requests = rows_of(seed)
        turn, _ = np.linalg.qr(np.random.default_rng(seed + 99).normal(size=(SIZE, SIZE)))
        asked = [f"request {i}" for i in range(5)]
        plain = make(index_of(rows, owners, requests)).route_all(asked)
        turned = make(index_of(rows @ turn, owners, requests @ turn)).route_all(asked)
        for one, other in zip(plain, turned, strict=True):
            names = [[c.card for c in found.ranking] for found in (one, other)]
            assert names[0] == names[1], f"seed {seed}: {names[0]} became {names[1]}"
            scores = [[c.score for c in found.ranking] for found in (one, other)]
            near = scores[1] == pytest.approx(scores[0], abs=1e-4)
            assert near, f"seed {seed}: {scores[0]} became {scores[1]}"


def test_what_all_vectors_share_drops_out() -> None:
    """Task 5: the same vector, added to every row and every request, changes nothing."""
    rows, owners, requests = rows_of(3)
    shift = np.random.default_rng(8).normal(size=SIZE)
    before, after = space_of(rows, owners), space_of(rows + shift, owners)
    off = abs(before(requests) @ before(rows).T - after(requests + shift) @ after(rows + shift).T)
    assert off.max() < 1e-3, f"given a shift of every vector: a cosine moved by {off.max():.4f}"


def test_a_direction_in_which_cards_spread_counts_less() -> None:
    """Task 5: a request is led by what tells cards apart, not by what varies inside each."""
    # Columns: shared, tells the cards apart, varies inside each card.
    near = [(1, 0.5, s) for s in (-0.9, -0.5, 0.1)]
    far = [(1, -0.5, s) for s in (-0.1, 0.5, 0.9)]
    rows, request = unit(np.array([*near, *far])), unit(np.array([[1, 0.4, 0.9]]))
    make = need("agent.concierge", "Concierge")
    index = index_of(rows, ["near"] * 3 + ["far"] * 3, request)
    identity = need("agent.space", "Space")(np.zeros(3), np.eye(3))
    raw = make(index, identity).route("request 0").ranking[0].card
    assert raw == "far", f"Contract: with zeros and an identity nothing moves, came {raw}"
    got = make(index).route("request 0").ranking[0].card
    assert got == "near", f"given a request on near's side: expected near, came {got}"


@pytest.mark.parametrize("rows", [1, 3, 7])
def test_a_card_alone_is_still_found(rows: int) -> None:
    """Task 5: with one card the centre is zero, or the card would be its own background."""
    vectors, _, _ = rows_of(4)
    vectors, asked = vectors[:rows], vectors[:1]
    index = index_of(vectors, ["alone"] * rows, asked)
    centre = need("agent.space", "Space").fit(index).centre
    assert not np.any(centre), f"given one card: expected a centre of zeros, came {centre}"
    found = need("agent.concierge", "Concierge")(index).route("request 0").ranking[0]
    assert found.card == "alone", f"expected the only card, came {found}"
    assert found.score > 0.3, f"expected a high score, came {found}"


def test_cards_without_a_spread_are_told_apart() -> None:
    """Task 5: one example a card leaves no spread to divide by, and no number that is none."""
    rows = unit(np.array([(1, 1.0, 0), (1, 0, 1.0), (1, 0, -1.0)]))
    index = index_of(rows, ["a", "b", "c"], rows)
    found = need("agent.concierge", "Concierge")(index).route_all(
        [f"request {i}" for i in range(3)]
    )
    got = [route.card for route in found]
    assert got == ["a", "b", "c"], f"given each example itself: expected a, b, c, came {got}"
    scores = [candidate.score for route in found for candidate in route.ranking]
    assert np.isfinite(scores).all(), f"expected numbers, came {scores}"
