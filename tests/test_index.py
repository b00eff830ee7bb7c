"""Stage 05: texts with owners, one matrix, one product; no vector in it is believed."""

import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from helpers import Loopback, command, embeddings, need

Call = Callable[[Sequence[str]], np.ndarray]


def embedder(call: Call, query: str = "", passage: str = "") -> Any:
    return need("agent.index", "Embedder")("model-a", query, passage, call)


def build(vectors: dict[str, Any], request: Any = (1, 0), call: Call | None = None) -> Any:
    """An index of texts with these vectors, each owned by `of TEXT`; a request has `request`."""

    def look_up(texts: Sequence[str]) -> np.ndarray:
        return np.array([vectors.get(text, request) for text in texts], dtype=np.float32)

    pairs = [(text, f"of {text}") for text in vectors]
    return need("agent.index", "Index").build(pairs, embedder(call or look_up))


def refused(run: Callable[[], Any], given: str) -> str:
    """What the VectorError says that this must lead to."""
    error = need("agent.errors", "VectorError")
    try:
        came = run()
    except error as refusal:
        return str(refusal)
    except Exception as other:
        pytest.fail(f"given {given}: expected a VectorError, {type(other).__name__} came: {other}")
    pytest.fail(f"given {given}: expected a VectorError, came back {came!r}")


# Task 1: the matrix


def test_the_matrix_holds_a_row_of_length_1_for_each_text() -> None:
    """Task 1: one row for each pair, float32, scaled to length 1, in the order of the pairs."""
    index = build({"a": (3, 4), "b": (0, 0.5), "c": (-200, 0)})
    wanted = np.array([(0.6, 0.8), (0, 1), (-1, 0)])
    assert index.matrix.shape == (3, 2), f"expected shape (3, 2), came back {index.matrix.shape}"
    assert index.matrix.dtype == np.float32, f"expected float32, came back {index.matrix.dtype}"
    assert np.allclose(index.matrix, wanted), f"expected {wanted}, came back {index.matrix}"
    got, pairs = (index.texts, index.owners), (["a", "b", "c"], ["of a", "of b", "of c"])
    assert tuple(map(list, got)) == pairs, f"expected texts and owners {pairs}, came back {got}"


@pytest.mark.parametrize(
    "bad",
    [(0, 0), (math.nan, 1), (math.inf, 1), (-math.inf, 0)],
    ids=["zero", "nan", "inf", "-inf"],
)
def test_E5_a_vector_without_a_direction_is_refused_with_its_text(bad: Any) -> None:
    """Task 2: a vector that is zero or not finite is a VectorError that names the text."""
    vectors = {"the first": (1, 0), "Wo ist der Hund": bad, "the last": (0, 1)}
    said = refused(lambda: build(vectors), f"the vector {bad}")
    assert "Wo ist der Hund" in said, f"given {bad} for 'Wo ist der Hund': came back {said!r}"


@pytest.mark.parametrize("bad", [(0, 0), (math.nan, 1), (1, math.inf)], ids=["zero", "nan", "inf"])
def test_E5_a_request_without_a_direction_is_refused_too(bad: Any) -> None:
    """Task 2: the vector of a request is held to the same rule."""
    index = build({"a": (1, 0), "b": (0, 1)}, request=bad)
    said = refused(lambda: index.search("Wo ist der Hund"), f"the vector {bad} for a request")
    assert "Wo ist der Hund" in said, f"given {bad} for the request: came back {said!r}"


# Task 3: the search


def test_the_scores_are_the_cosines_of_known_angles() -> None:
    """Task 3: the score is the cosine: of 0, 30, 60, 90 and 180 degrees."""
    angles = {"60": (1, 3**0.5), "0": (7, 0), "180": (-2, 0), "30": (3**0.5, 1), "90": (0, 0.1)}
    hits = build(angles).search("request", k=5)
    got = [(hit.text, hit.owner, round(hit.score, 6)) for hit in hits]
    table = (("0", 1.0), ("30", 0.866025), ("60", 0.5), ("90", 0.0), ("180", -1.0))
    wanted = [(text, f"of {text}", cosine) for text, cosine in table]
    assert got == wanted, f"expected {wanted}, came back {got}"


def test_the_ranking_is_that_of_a_plain_loop() -> None:
    """Task 3: on 200 random vectors, the best ten are those that a loop in plain Python finds."""
    rng = np.random.default_rng(5)
    numbers, request = rng.normal(size=(200, 24)), rng.normal(size=24)
    vectors = {f"text {i}": row for i, row in enumerate(numbers)}

    def cosine(row: list[float]) -> float:
        product = sum(a * b for a, b in zip(row, request.tolist(), strict=True))
        return product / math.hypot(*row) / math.hypot(*request)

    loop = sorted(((cosine(row.tolist()), text) for text, row in vectors.items()), reverse=True)
    hits = build(vectors, request=request).search("request", k=10)
    got, wanted = [hit.text for hit in hits], [text for _, text in loop[:10]]
    assert got == wanted, f"expected {wanted}, came back {got}"
    scores = [hit.score for hit in hits]
    assert scores == pytest.approx([c for c, _ in loop[:10]], abs=1e-5), f"came back {scores}"


def test_ties_keep_the_order_of_the_pairs() -> None:
    """Task 3: entries with the same score come in the order of the pairs."""
    vectors = {f"text {i:02}": ((0, 1), (1, 0))[i % 2] for i in range(60)}
    got = [hit.text for hit in build(vectors).search("request", k=40)]
    wanted = [f"text {i:02}" for i in (*range(1, 60, 2), *range(0, 20, 2))]
    assert got == wanted, f"given 30 entries with 1.0 and 30 with 0.0: came back {got}"


def test_k_over_the_size_returns_all() -> None:
    """Task 3: a k over the size returns every entry; k is 3 when it is not given."""
    index = build({text: (1, i) for i, text in enumerate("abcd")})
    got = len(index.search("request", k=99)), len(index.search("request"))
    assert got == (4, 3), f"given 4 entries, k=99 and no k: expected 4 and 3, came back {got}"


def test_an_empty_index_finds_nothing() -> None:
    """Task 3: without pairs, build and search send nothing, and search returns []."""
    seen: list[Any] = []
    index = build({}, call=lambda texts: seen.append(texts) or np.zeros((0,), np.float32))
    got = index.search("request")
    assert got == [], f"given no pairs: expected [], came back {got!r}"
    assert not seen, f"given no pairs: expected no embedding, came {seen}"


def test_E17_a_score_is_never_over_1() -> None:
    """Task 3: a text searched for itself has at most 1, though float32 says 1.0000001."""
    rows = np.random.default_rng(17).normal(size=(60, 384)).astype(np.float32)
    vectors = {f"text {i}": row for i, row in enumerate(rows)}
    index = build(vectors)
    scores = [index.search(text, k=1)[0].score for text in vectors]
    assert max(scores) <= 1, f"given a text itself: expected at most 1, came {max(scores):.9f}"
    assert min(scores) > 0.99999, f"given a text itself: expected 1, came {min(scores):.9f}"
    types = {type(score) for score in scores}
    assert types == {float}, f"expected a score that is a plain float, came {types}"


# Task 4: prefixes, and the embedder that belongs to the index


def test_E15_requests_are_queries_and_examples_are_passages() -> None:
    """Task 4: an example is embedded with `passage: ` before it, a request with `query: `."""
    seen: list[str] = []

    def call(texts: Sequence[str]) -> np.ndarray:
        seen.extend(texts)
        return np.ones((len(texts), 2), dtype=np.float32)

    made = embedder(call, "query: ", "passage: ")
    index = need("agent.index", "Index").build([("eins", "x"), ("zwei", "x")], made)
    assert seen == ["passage: eins", "passage: zwei"], f"the index was built from {seen}"
    seen.clear()
    index.search("drei")
    assert seen == ["query: drei"], f"given the request 'drei': {seen} was embedded"
    assert index.texts == ["eins", "zwei"], f"expected texts without prefix, came {index.texts}"


def test_E15_a_prefix_is_never_doubled() -> None:
    """Task 4: a text that already starts with its prefix does not get it again."""
    seen: list[str] = []

    def call(texts: Sequence[str]) -> np.ndarray:
        seen.extend(texts)
        return np.ones((len(texts), 2), dtype=np.float32)

    made = embedder(call, "query: ", "passage: ")
    need("agent.index", "Index").build([("passage: eins", "x")], made).search("query: drei")
    assert seen == ["passage: eins", "query: drei"], f"given both prefixes: {seen} was embedded"


def test_E13_an_index_is_searched_with_the_embedder_that_made_it() -> None:
    """Task 4: an index holds its embedder; a second one of the same dimension changes nothing."""
    index_class = need("agent.index", "Index")
    first = embedder(lambda texts: np.array([[1, len(t)] for t in texts], np.float32))
    other = embedder(lambda texts: np.array([[len(t), 1] for t in texts], np.float32))
    one = index_class.build([("a", "x"), ("aaaaaaaa", "y")], first)
    two = index_class.build([("a", "x"), ("aaaaaaaa", "y")], other)
    got = [index.search("bbbbbbbb", k=1)[0].score for index in (one, two)]
    assert one.embedder is first, f"expected the embedder it was built with, came {one.embedder}"
    assert got == pytest.approx([1, 1]), f"expected 1.0 from each index's own, came back {got}"


def test_E13_a_request_of_another_dimension_is_refused() -> None:
    """Task 4: an endpoint that answers with another number of dimensions is a VectorError."""

    def call(texts: Sequence[str]) -> np.ndarray:
        return np.ones((len(texts), 3 if "a" in texts else 4), dtype=np.float32)

    index = build({"a": (), "b": ()}, call=call)
    said = refused(lambda: index.search("request"), "3 dimensions in the index, 4 in a request")
    assert {"3", "4"} <= set(said), f"expected both sizes, came back {said!r}"


def test_a_request_has_one_row_of_length_1() -> None:
    """Contract: `vectors` gives the requests' rows of length 1, as the index sees them."""
    index = build({"a": (3, 4), "b": (0, 2)})
    got = index.vectors(["a", "b", "request"])
    wanted = np.array([(0.6, 0.8), (0, 1), (1, 0)])
    same = got.shape == (3, 2) and np.allclose(got, wanted)
    assert same, f"expected {wanted.tolist()}, came back {np.asarray(got).tolist()}"


# Task 5: texts that cannot be told apart


def test_E9_texts_that_the_endpoint_cut_are_named_as_twins() -> None:
    """Task 5: two texts that differ in the tail alone and come back as one vector are named."""

    def cut(texts: Sequence[str]) -> np.ndarray:
        return np.array([[sum(map(ord, t[:40])), len(t[:40])] for t in texts], np.float32)

    head = "x" * 40
    texts = {head + " cats": (), "something else": (), head + " dogs": ()}
    got = build(texts, call=cut).twins()
    wanted = [(head + " cats", head + " dogs")]
    assert list(map(tuple, got)) == wanted, f"expected {wanted}, came back {got}"


def test_E9_one_text_with_two_owners_is_no_twin() -> None:
    """Task 5: the same text twice has the same vector by right, and is not named."""

    def call(texts: Sequence[str]) -> np.ndarray:
        return np.array([[len(text), 1] for text in texts], dtype=np.float32)

    pairs = [("same", "x"), ("other", "x"), ("same", "y")]
    got = need("agent.index", "Index").build(pairs, embedder(call)).twins()
    assert got == [], f"given {pairs}: expected no twins, came back {got}"


# Task 6: the command


CARD = """\
name: {name}
description: Answers one kind of request for a test, and no other kind.
examples:
{examples}
prompt: |
  You answer.
tools:
  - answer_it
budget: {{turns: 2, tool_calls: 2, tokens: 900, seconds: 5}}
"""
REGISTRY = {
    "word-counter": ["zähle diese wörter", "count my words", "words in this letter"],
    "dog-walker": ["walk my dog", "feed the dog please", "der hund muss raus"],
}


def registry(folder: Path, cards: dict[str, list[str]]) -> Path:
    for name, examples in cards.items():
        lines = "\n".join(f"  - {example}" for example in examples)
        text = CARD.format(name=name, examples=lines)
        (folder / f"{name}.card.yaml").write_text(text, encoding="utf-8")
    return folder


def word_vector(text: str) -> list[float]:
    """Sixty-four counters, one for a few words each; texts that share words are close."""
    counts = [0.01] * 64
    for word in text.split():
        counts[sum(i * ord(sign) for i, sign in enumerate(word, 1)) % 64] += 1
    return counts


def test_the_command_prints_the_three_nearest_examples(tmp_path: Path) -> None:
    """Task 6: `nearest` prints score, owner and text of three; twins go to stderr."""
    (cards := tmp_path / "cards").mkdir()
    twins = ["feed the cat now", "feed the now cat", "pet the cat"]
    registry(cards, {**REGISTRY, "cat-feeder": twins})
    prefixes = {"TINY_QUERY_PREFIX": "query: ", "TINY_PASSAGE_PREFIX": "passage: "}
    with Loopback(embeddings(word_vector)) as server:
        env = {**server.env, **prefixes}
        done = command("nearest", "walk my dog", "--registry", cards, env=env)
    assert done.returncode == 0, f"expected exit code 0, got {done.returncode}: {done.stderr}"
    lines = done.stdout.splitlines()
    assert len(lines) == 3, f"expected three lines, came {done.stdout!r}"
    first = lines[0].split(maxsplit=2)
    # Three of four words are shared: 3 / 4, but for the 0.01 in each counter.
    cosine = np.dot(*(np.array(word_vector(f"{p}: walk my dog")) for p in ("query", "passage")))
    score = f"{cosine / np.linalg.norm(word_vector('query: walk my dog')) ** 2:.2f}"
    wanted = [score, "dog-walker", "walk my dog"]
    assert first == wanted, f"given 'walk my dog': expected {wanted}, came {first}"
    seen = [text for request in server.requests for text in request.json["input"]]
    for text in twins[:2]:
        assert text in done.stderr, f"given one vector for two texts: {text!r} not in stderr"
    assert "query: walk my dog" in seen, f"E15: expected the request with `query: `, came {seen}"
    assert "passage: pet the cat" in seen, f"E15: expected examples with `passage: `, came {seen}"
