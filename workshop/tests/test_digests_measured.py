"""The bars of digest and expand on the page of 38,000 tokens, and on one from an unseen seed.

Other words and German have no bar: their floors are what was measured when they were written, less
some.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from agent.digest import digest
from workshop.errors import Problem
from workshop.measure import digests
from workshop.measure.tokens import o200k

pytestmark = pytest.mark.xdist_group("digests")  # in one process: it measures once
FROZEN, UNSEEN = digests.SEEDS
FLOORS = {"other words": 0.75, "German": 0.90}  # 38 of 44 and 10 of 11; all


@pytest.fixture(scope="module")
def measured() -> dict[int, dict[str, digests.Row]]:
    """Each page's rows by kind. Of the unseen one's questions that may embed, every fourth."""
    return {
        seed: {row.kind: row for row in digests.measure(seed, digests.kept, every)}
        for seed, every in ((FROZEN, 1), (UNSEEN, 4))
    }


Measured = dict[int, dict[str, digests.Row]]


@pytest.mark.parametrize("seed", [FROZEN, UNSEEN])
def test_no_digest_of_the_long_page_is_over_800_tokens(measured: Measured, seed: int) -> None:
    assert measured[seed].keys() == set(digests.KINDS.values())
    for row in measured[seed].values():
        assert 100 < row.tokens <= 800, row


@pytest.mark.parametrize("seed", [FROZEN, UNSEEN])
def test_95_of_100_facts_asked_for_in_the_pages_words_are_found_with_two_expands(
    measured: Measured, seed: int
) -> None:
    row = measured[seed]["the page's words"]
    assert row.questions >= 40
    assert row.two >= 0.95 * row.questions


@pytest.mark.parametrize("seed", [FROZEN, UNSEEN])
@pytest.mark.parametrize("kind", FLOORS)
def test_facts_asked_for_in_other_words_and_in_german_are_found_as_often_as_before(
    measured: Measured, seed: int, kind: str
) -> None:
    row = measured[seed][kind]
    assert row.questions >= 11
    assert row.two >= FLOORS[kind] * row.questions


@pytest.mark.parametrize("seed", [FROZEN, UNSEEN])
def test_the_page_cut_off_after_800_tokens_holds_hardly_a_fact(
    measured: Measured, seed: int
) -> None:
    assert all(row.truncated <= 2 for row in measured[seed].values())


def test_a_text_is_cut_off_at_the_last_character_that_fits() -> None:
    encode, text = digests.o200k(), digests.page(FROZEN)
    beginning = digests.cut(text, 800)
    assert len(encode(beginning)) <= 800
    assert len(encode(text[: len(beginning) + 20])) > 800


def test_vectors_come_back_from_the_file_nearly_as_they_were(tmp_path: Path) -> None:
    dice = np.random.default_rng(5)
    common = dice.normal(size=384)
    vectors = (common + 0.5 * dice.normal(size=(50, 384))).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    path = tmp_path / "vectors.npz"
    digests.write(path, dict(enumerate(vectors)))
    first = path.read_bytes()
    again = digests.read(path)
    assert list(again) == list(range(50))
    assert abs(np.array(list(again.values())) @ vectors.T - vectors @ vectors.T).max() < 0.01
    digests.write(path, dict(enumerate(vectors)))
    assert path.read_bytes() == first


def test_a_text_whose_vector_was_not_kept_is_named_with_the_mend() -> None:
    with pytest.raises(Problem, match=r"lacks 1 of 1 texts, as 'query: no question'") as caught:
        digests.kept(["query: no question"])
    assert "--keep" in str(caught.value)


def test_the_file_of_vectors_has_at_most_one_and_a_half_megabytes() -> None:
    assert digests.VECTORS.stat().st_size <= 1_500_000


@pytest.mark.parametrize(
    "text",
    [
        "የሰው ልጅ ሁሉ ሲወለድ ነጻና በክብርና በመብትም እኩልነት ያለው ነው።",
        "ᏂᎦᏓ ᎠᏂᏴᏫ ᏂᎨᎫᏓᎸᎾ ᎠᎴ ᎤᏂᎶᏱᎭ ᎢᎦᏅ",
        "འགྲོ་བ་མིའི་རིགས་རྒྱུད་ཡོངས་ལ་སྐྱེས་ཙམ་ཉིད་ནས",
        "ᠬᠦᠮᠦᠨ ᠪᠦᠷ ᠲᠥᠷᠥᠵᠦ ᠮᠡᠨᠳᠡᠯᠡᠬᠦ ᠡᠷᠬᠡ ᠴᠢᠯᠥᠭᠡ ᠲᠡᠢ",
        "▏▎▍█ ⠋⠙⠹ ███░░░▓▓▒▒",
        "ˈɪntɚˌnæʃənəl fəˈnɛtɪk ˈælfəˌbɛt",
        "MKTAYIAKQRQISFVKSHFSRQLEERLGLIEVQAPILSRVGDGTQDNLSGAEKAVQVKVKALPD",
        "duckduckgogg42xjoc72x3sjasowoarfbgcmvfimaftt6twagswzczad.onion",
        "Όλοι οι άνθρωποι γεννιούνται ελεύθεροι και ίσοι στην αξιοπρέπεια.",
        "Все люди рождаются свободными и равными в своем достоинстве.",
        "人人生而自由，在尊严和权利上一律平等。",
        "يولد جميع الناس أحراراً متساوين في الكرامة والحقوق.",
    ],
)
def test_no_digest_of_rare_scripts_and_signs_is_over_800_tokens(text: str) -> None:
    long = "".join(f"{number} {text}\n" for number in range(400))
    said = digest(long, text.split()[0], "art_0123456789ab")
    assert len(o200k()(said)) <= digests.MOST, said
