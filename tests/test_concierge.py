"""Stage 06: a card scores the mean of its best examples; the best card takes the request."""

import importlib.util
import json
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from helpers import Done, Loopback, command, embeddings, need


def concierge(
    entries: Sequence[tuple[str, str, Any]], requests: dict[str, Any], calls: Any = None
) -> Any:
    """A concierge over (text, card, vector) entries; `requests` have the vectors given."""
    vectors = {text: vector for text, _, vector in entries} | requests
    calls = [] if calls is None else calls

    def embed(texts: Sequence[str]) -> np.ndarray:
        calls.append(list(texts))
        return np.array([vectors[text] for text in texts], dtype=np.float32)

    made = need("agent.index", "Embedder")("model", "", "", embed)
    index = need("agent.index", "Index").build([entry[:2] for entry in entries], made)
    make = need("agent.concierge", "Concierge")
    if importlib.util.find_spec("agent.space") is None:
        return make(index)
    # From stage 07 on, vectors are moved before they are compared. Here they stay where they are.
    size = index.matrix.shape[1]
    return make(index, need("agent.space", "Space")(np.zeros(size), np.eye(size)))


def at(cosine: float) -> tuple[float, float]:
    """A vector with this cosine to the request (1, 0)."""
    return cosine, (1 - cosine**2) ** 0.5


def examples(**cards: Sequence[float]) -> list[tuple[str, str, Any]]:
    """Entries with these cosines to the request (1, 0): `word_counter=[0.5, 0.1]`."""
    return [(f"{name} {i}", name, at(c)) for name, cs in cards.items() for i, c in enumerate(cs)]


def route(entries: Sequence[tuple[str, str, Any]]) -> Any:
    return concierge(entries, {"a request": (1, 0)}).route("a request")


def scores(found: Any) -> dict[str, float]:
    return {candidate.card: candidate.score for candidate in found.ranking}


# Task 1: a card's score


def test_a_score_is_the_mean_of_the_best_three() -> None:
    """Task 1: a card scores the mean cosine of its three best examples."""
    found = route(examples(one=[0.1, 0.9, 0.3, 0.6], two=[0.5, 0.7, 0.6, -0.4, 0.2]))
    got = scores(found)
    wanted = {"one": (0.9 + 0.6 + 0.3) / 3, "two": (0.7 + 0.6 + 0.5) / 3}
    assert got == pytest.approx(wanted, abs=1e-5), f"expected {wanted}, came back {got}"


@pytest.mark.parametrize(
    ("lone", "wanted"),
    [([0.7], {"lone": 0.7, "rich": 0.9}), ([0.7, 0.5], {"lone": 0.6, "rich": 0.75})],
    ids=["1 example against 8", "2 examples against 8"],
)
def test_R7_the_same_number_of_examples_speaks_for_each_card(
    lone: list[float], wanted: dict[str, float]
) -> None:
    """Task 1: where one card has fewer than three examples, that number counts for all."""
    got = scores(route(examples(rich=[0.1, 0.9, 0.2, 0.6, 0.1, 0.3, 0.5, 0.0], lone=lone)))
    given = f"8 examples, and {len(lone)}"
    assert got == pytest.approx(wanted, abs=1e-5), f"given {given}: expected {wanted}, came {got}"


def test_R7_one_more_example_never_lowers_its_own_card() -> None:
    """Task 1: to a card with three or more examples, any further one does no harm."""
    rng = np.random.default_rng(7)
    for trial in range(60):
        numbers = rng.normal(size=(9, 6))
        entries = [(f"text {i}", f"card-{i % 2}", row) for i, row in enumerate(numbers[:7])]
        requests = {"a request": rng.normal(size=6)}
        before = scores(concierge(entries, requests).route("a request"))
        more = [*entries, ("one more", "card-1", numbers[8])]
        after = scores(concierge(more, requests).route("a request"))
        said = f"trial {trial}: {before['card-1']} became {after['card-1']}"
        assert after["card-1"] >= before["card-1"] - 1e-6, f"given one more example, {said}"
        same = abs(after["card-0"] - before["card-0"]) < 1e-6
        assert same, f"given one more example of card-1, card-0 moved: {before}, {after}"


def test_the_ranking_is_that_of_a_plain_loop() -> None:
    """Task 1: on random vectors, cards, scores and examples are those of a plain loop."""
    rng = np.random.default_rng(6)
    for trial in range(20):
        cards = [f"card-{i}" for i in range(12)]
        owners = cards * 3 + rng.choice(cards, size=50).tolist()
        vectors, request = rng.normal(size=(len(owners), 16)), rng.normal(size=16)
        # A card's examples do not stand together.
        entries = [(f"text {i}", card, vectors[i]) for i, card in enumerate(owners)]
        loop = []
        for card in cards:
            own = [
                (float(row @ request / np.linalg.norm(row) / np.linalg.norm(request)), text)
                for text, owner, row in entries
                if owner == card
            ]
            best = sorted(own, reverse=True)[:3]
            loop.append((sum(cosine for cosine, _ in best) / 3, card, best[0][1]))
        wanted = sorted(loop, reverse=True)[:4]
        found = concierge(entries, {"a request": request}).route("a request")
        got = [(candidate.card, candidate.example) for candidate in found.ranking]
        names = [(card, text) for _, card, text in wanted]
        assert got == names, f"trial {trial}: expected {names}, came back {got}"
        values = [candidate.score for candidate in found.ranking]
        assert values == pytest.approx([s for s, _, _ in wanted], abs=1e-5), f"came back {values}"


# Task 2: the ranking


def test_the_best_card_comes_first_and_takes_the_request() -> None:
    """Task 2: `card` is the first of the ranking, and the request stands in the route."""
    found = route(examples(low=[0.1] * 3, high=[0.8] * 3, middle=[0.5] * 3))
    names = [candidate.card for candidate in found.ranking]
    assert names == ["high", "middle", "low"], f"came back {names}"
    got = found.card, found.request
    assert got == ("high", "a request"), f"expected high and the request, came back {got}"


def test_the_ranking_holds_at_most_four_cards() -> None:
    """Task 2: the ranking is the best card and at most three runners-up."""
    found = route(examples(**{f"c{i}": [i / 10] * 3 for i in range(7)}))
    names = [candidate.card for candidate in found.ranking]
    assert names == ["c6", "c5", "c4", "c3"], f"given 7 cards: came back {names}"


def test_ties_keep_the_order_of_the_index() -> None:
    """Task 2: cards with the same score come in the order of their first example."""
    same = [0.6, 0.5, 0.4]
    names = [c.card for c in route(examples(d=same, b=same, c=[0.9] * 3, a=same)).ranking]
    assert names == ["c", "d", "b", "a"], f"given d, b and a with one score: came back {names}"


def test_a_candidate_shows_its_closest_example() -> None:
    """Task 2: the example of a candidate is its closest; the first of them at a tie."""
    found = route(examples(one=[0.2, 0.9, 0.4, 0.9], two=[0.3, 0.1, 0.5]))
    got = [candidate.example for candidate in found.ranking]
    assert got == ["one 1", "two 2"], f"given 0.9 twice: expected one 1, two 2, came back {got}"


def test_a_score_is_a_plain_number_of_at_most_1() -> None:
    """Task 2: E17 holds here too: a score is a float, and never over 1."""
    rows = np.random.default_rng(17).normal(size=(40, 384)).astype(np.float32)
    for row in rows:
        entries = [(f"one {i}", "one", row) for i in range(3)]
        found = concierge(entries, {"a request": row}).route("a request").ranking[0].score
        assert type(found) is float, f"expected a plain float, came {type(found)}"
        assert 0.9999 < found <= 1, f"expected at most 1, came {found:.9f}"


# Task 3: the margin


def test_the_margin_is_the_lead_over_the_second_card() -> None:
    """Task 3: the margin is the first score minus the second."""
    margin = route(examples(one=[0.8] * 3, two=[0.55] * 3, three=[0.1] * 3)).margin
    assert margin == pytest.approx(0.25, abs=1e-5), f"given 0.8 and 0.55: came back {margin}"


def test_a_card_alone_takes_the_request_with_its_whole_score() -> None:
    """Task 3: a single card is the whole ranking, and its margin is its score."""
    found = route(examples(alone=[0.3, 0.5, 0.4]))
    got = (found.card, len(found.ranking), round(found.margin, 5))
    assert got == ("alone", 1, 0.4), f"expected alone, 1 card, margin 0.4, came back {got}"


# Task 4: many requests


def test_many_requests_are_one_embedding_call() -> None:
    """Task 4: `route_all` embeds all requests in one call; each route is as if it were alone."""
    calls: list[Any] = []
    entries = examples(one=[0.9, 0.8, 0.7], two=[-0.9, -0.8, -0.7], three=[0.0] * 3)
    requests = {"east": (1, 0), "west": (-1, 0), "north": (0.1, 1)}
    made = concierge(entries, requests, calls)
    calls.clear()
    found = made.route_all(list(requests))
    assert calls == [list(requests)], f"expected one call with all three, came {calls}"
    got = [(one.request, one.card) for one in found]
    assert got[:2] == [("east", "one"), ("west", "two")], f"came back {got}"
    alone = [made.route(request).ranking for request in requests]
    assert [one.ranking for one in found] == alone, f"alone: {alone}, together: {found}"


def test_nobody_to_route_to_is_an_error() -> None:
    """Task 5: a concierge over an empty index is a CardError."""
    error = need("agent.errors", "CardError")
    made = need("agent.index", "Embedder")("model", "", "", lambda texts: np.zeros((0, 2)))
    index, make = need("agent.index", "Index").build([], made), need("agent.concierge", "Concierge")
    try:
        came = make(index)
    except error:
        return
    except Exception as other:
        pytest.fail(f"given no cards: expected a CardError, {type(other).__name__} came: {other}")
    pytest.fail(f"given no cards: expected a CardError, came back {came!r}")


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
    "dog-walker": ["walk my dog", "feed my dog please", "walk the old dog"],
    "cat-feeder": ["die katze hat hunger", "pet the cat", "feed the cat"],
}


def vector(text: str) -> list[float]:
    """Sixty-four counters, one for a few words each; texts that share words are close."""
    counts = [0.01] * 64
    for word in text.split():
        counts[sum(i * ord(sign) for i, sign in enumerate(word, 1)) % 64] += 1
    return counts


Ask = Callable[..., Done]


@pytest.fixture
def ask(tmp_path: Path) -> Iterator[Ask]:
    """Runs `python -m agent route` on the three cards above."""
    (cards := tmp_path / "cards").mkdir()
    for name, texts in REGISTRY.items():
        lines = "\n".join(f"  - {text}" for text in texts)
        path = cards / f"{name}.card.yaml"
        path.write_text(CARD.format(name=name, examples=lines), encoding="utf-8")

    def run(*words: str, lines: str = "") -> Done:
        return command("route", *words, "--registry", cards, env=server.env, input=lines)

    with Loopback(embeddings(vector)) as server:
        yield run


def test_the_command_prints_the_card_and_those_that_came_close(ask: Ask) -> None:
    """Task 6: `route` prints card, score and margin, then score, card and example of each."""
    done = ask("walk my old dog")
    assert done.returncode == 0, f"expected exit code 0, got {done.returncode}: {done.stderr}"
    first, *rest = done.stdout.splitlines()
    said = f"came {done.stdout!r}"
    assert first.split()[0] == "dog-walker", f"expected dog-walker first, {said}"
    assert {"score", "margin"} <= set(first.split()), f"expected score and margin, {said}"
    assert len(rest) == 3, f"given 3 cards: expected a line for each, {said}"
    score, card, example = rest[0].split(maxsplit=2)
    assert card == "dog-walker", f"expected dog-walker in the second line too, {said}"
    assert example in REGISTRY[card], f"expected one of its examples, {said}"
    assert score in first, f"expected one score in both lines, {said}"
    assert len(score) == 4, f"expected two decimals, {said}"


def test_each_line_of_standard_input_is_a_request(ask: Ask) -> None:
    """Task 6: without a request, each line of standard input is one; --json is a line for each."""
    done = ask("--json", lines="walk the dog\nhat die katze hunger\ncount my wörter")
    assert done.returncode == 0, f"expected exit code 0, got {done.returncode}: {done.stderr}"
    found = [json.loads(line) for line in done.stdout.splitlines()]
    got = [(one["request"], one["card"]) for one in found]
    wanted = [
        ("walk the dog", "dog-walker"),
        ("hat die katze hunger", "cat-feeder"),
        ("count my wörter", "word-counter"),
    ]
    assert got == wanted, f"expected {wanted}, came back {got}"
    for one in found:
        first, second = one["ranking"][:2]
        keys = {"card", "score", "example"}
        assert keys <= first.keys(), f"expected {keys} in a candidate, came {first}"
        lead = first["score"] - second["score"]
        assert one["margin"] == pytest.approx(lead), f"expected {lead}, came {one['margin']}"
