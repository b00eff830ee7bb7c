"""The bars of the token estimate, on texts that it was not fitted to."""

from __future__ import annotations

import pytest

from workshop.measure import tokens


@pytest.fixture(scope="module")
def rows() -> dict[str, tokens.Row]:
    return {row.kind: row for row in tokens.measure()}


@pytest.mark.parametrize("kind", ["English", "German", "JSON schemas", "Python"])
def test_the_estimate_is_within_a_tenth_for_85_of_100_texts(
    rows: dict[str, tokens.Row], kind: str
) -> None:
    assert rows[kind].texts >= 15
    assert rows[kind].within >= 0.85


@pytest.mark.parametrize("kind", ["CSV", "logs", "Chinese", "base64"])
def test_the_estimate_is_never_a_fifth_too_low(rows: dict[str, tokens.Row], kind: str) -> None:
    assert rows[kind].texts >= 2
    assert rows[kind].lowest >= -0.20


@pytest.mark.parametrize("kind", ["CSV", "logs", "Chinese", "base64"])
def test_the_estimate_is_never_half_too_high(rows: dict[str, tokens.Row], kind: str) -> None:
    assert rows[kind].highest <= 0.50


def test_every_text_has_1500_characters() -> None:
    for kind, texts in tokens.kinds(tokens.ROOT).items():
        assert {len(text) for text in texts} == {1500}, kind


def test_the_generated_texts_are_the_same_each_time() -> None:
    assert tokens.csv_lines() == tokens.csv_lines()
    assert tokens.log_lines() == tokens.log_lines()
    assert tokens.base64_lines() == tokens.base64_lines()
