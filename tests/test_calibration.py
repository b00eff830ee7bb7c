"""Stage 08: the least score and margin for a route, measured on rows, bound to model and cards."""

import itertools
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from helpers import Done, Loopback, command, embeddings, need

TOPICS = ["invoice", "weather", "train"]  # the fake endpoint knows these words, and no others
CARDS = {"invoice": "invoice-writer", "weather": "weather-reporter", "train": "train-planner"}
FORMS = ["Please see to the {}", "What about my {} today", "A {} for Monday", "Another {}, please"]


def vector(text: str) -> list[float]:
    """A large part that all texts share (R1), a part of the topic, and a little noise."""
    rng = np.random.default_rng(list(text.removeprefix("p: ").removeprefix("q: ").encode()))
    shared = np.eye(12)[0] * 2.0
    topic = sum((np.eye(12)[i + 1] for i, word in enumerate(TOPICS) if word in text), np.zeros(12))
    stray = 0 if any(topic) else 1  # where no topic is, each text goes its own way
    return (shared + topic + rng.normal(0, 0.08 + 0.25 * stray, 12)).tolist()


def embedder(model: str = "squeezed", query: str = "q: ", passage: str = "p: ") -> Any:
    def embed(texts: list[str]) -> np.ndarray:
        return np.array([vector(text) for text in texts], dtype=np.float32)

    return need("agent.index", "Embedder")(model, query, passage, embed)


def index(pairs: list[tuple[str, str]], of: Any = None) -> Any:
    return need("agent.index", "Index").build(pairs, of or embedder())


PAIRS = [(form.format(word), card) for word, card in CARDS.items() for form in FORMS]
INSIDE = [(f"I need the {w} {n}", c) for w, c in CARDS.items() for n in ("now", "soon", "later")]
OUTSIDE = ["sing a song", "who was Ada", "best pizza", "tell a joke", "why is it blue", "go home"]
ROWS = [{"text": t, "card": c, "kind": "in", "lang": "en"} for t, c in INSIDE]
ROWS += [{"text": t, "card": None, "kind": "out", "lang": "en"} for t in OUTSIDE]


def calibration(**least: float) -> Any:
    make = need("agent.calibration", "Calibration")
    return make(least=least, coverage=1.0, accuracy=1.0, refused=1.0)


def raw_concierge() -> Any:
    """On the vectors as the model sent them: nothing is moved."""
    plain = need("agent.space", "Space")(np.zeros(12), np.eye(12))
    concierge = need("agent.concierge", "Concierge")(index(PAIRS), plain)
    assert getattr(concierge, "calibration", 0) is None, (
        "Contract: a Concierge has an attribute `calibration`, and it is None at first; got "
        f"{getattr(concierge, 'calibration', 'no such attribute')!r}"
    )
    return concierge


def table(routes: list[Any]) -> list[dict[str, float]]:
    return [{"score": r.readings["score"], "margin": r.readings["margin"]} for r in routes]


def brute_force(
    readings: list[dict[str, float]], inside: np.ndarray, right: np.ndarray, **shares: float
) -> tuple[float, float]:
    """How far the best pair of least values stays below the shares, and its coverage."""
    values = np.array([list(one.values()) for one in readings])
    tried = [[v for v in set(column) if (column[right] >= v).mean() >= 0.65] for column in values.T]
    best = (-9.0, 0.0)
    for least in itertools.product(*tried):
        taken = (values >= least).all(axis=1)
        if (taken & right).any():
            accuracy, refused = right[taken & inside].mean(), 1 - taken[~inside].mean()
            missed = min(0, accuracy - shares["accuracy"]) + min(0, refused - shares["refused"])
            best = max(best, (missed, taken[inside].mean()))
    return best


def some_table(seed: int) -> tuple[list[dict[str, float]], np.ndarray, np.ndarray]:
    """40 rows: 22 right, 4 in scope but wrong, 14 that nobody should take."""
    rng, rows = np.random.default_rng(seed), np.arange(40)
    inside, right = rows < 26, rows < 22
    values = (rng.normal(0, 1, (40, 2)) + 1.8 * right[:, None]).round(2)
    return [{"score": s, "margin": m} for s, m in values.tolist()], inside, right


def test_R1_the_usual_threshold_of_one_half_refuses_nothing_where_scores_are_squeezed() -> None:
    """Task 1: a least value means nothing by itself; it comes from rows."""
    concierge = raw_concierge()
    concierge.calibration = calibration(score=0.5)
    routes = concierge.route_all(OUTSIDE)
    taken = [route.request for route in routes if route.card]
    assert taken == OUTSIDE, f"no score here is under 0.5, so all are taken; got {taken}"
    concierge.calibration = None
    routes = concierge.route_all([row["text"] for row in ROWS])
    inside = np.array([row["card"] is not None for row in ROWS])
    right = np.array([row["card"] == r.card for row, r in zip(ROWS, routes, strict=True)])
    fit = need("agent.calibration", "fit")
    concierge.calibration = fit(table(routes), inside, right, accuracy=0.97, refused=0.85)
    refused = [r.card is None for r in concierge.route_all(OUTSIDE)]
    assert np.mean(refused) >= 0.85, f"fitted for 0.85 of {OUTSIDE} refused; got {refused}"
    cards = [r.card for r in concierge.route_all([text for text, _ in INSIDE])]
    hits = np.mean([got == wanted for got, (_, wanted) in zip(cards, INSIDE, strict=True)])
    assert hits >= 0.65, f"a fitted calibration still routes what is in scope; got {cards}"


def test_a_fit_is_about_as_good_as_trying_every_pair_of_values() -> None:
    """Task 2: the most coverage that keeps to both shares."""
    fit, lost, shares = need("agent.calibration", "fit"), [], {"accuracy": 0.95, "refused": 0.8}
    for seed in range(0, 40, 4):
        readings, inside, right = some_table(seed)
        missed, coverage = brute_force(readings, inside, right, **shares)
        if missed < 0:
            continue
        found = fit(readings, inside, right, **shares)
        assert min(found.accuracy - 0.95, found.refused - 0.8) >= 0, (
            f"table {seed}: {found.least} gives accuracy {found.accuracy:.2f} and refuses "
            f"{found.refused:.2f}; some pair of values keeps to 0.95 and 0.8"
        )
        lost.append(coverage - found.coverage)
    assert np.mean(lost) < 0.04, (
        f"coverage below that of the best pair, of {len(lost)} tables: {np.mean(lost):.3f} in "
        "the mean, wanted under 0.04"
    )


def test_the_shares_of_a_calibration_are_those_of_its_own_rows() -> None:
    """Task 2: coverage, accuracy and refused can be counted again from the least values."""
    readings, inside, right = some_table(3)
    found = need("agent.calibration", "fit")(readings, inside, right, accuracy=0.95, refused=0.8)
    assert set(found.least) == {"score", "margin"}, f"least names the readings; got {found.least}"
    taken = np.array([all(one[n] >= least for n, least in found.least.items()) for one in readings])
    wanted = [taken[inside].mean(), right[taken & inside].mean(), 1 - taken[~inside].mean()]
    got = [found.coverage, found.accuracy, found.refused]
    assert np.allclose(got, wanted), (
        f"coverage (of the rows in scope), accuracy (of the answered in scope) and refused (of "
        f"the rows for nobody) with {found.least} are {wanted}; got {got}"
    )


def test_shares_out_of_reach_give_what_comes_closest_and_never_refuse_everything() -> None:
    """Task 2: each least value is one that at least 65 % of the right rows reach."""
    fit = need("agent.calibration", "fit")
    for seed in range(2):
        readings, inside, right = some_table(seed)
        found = fit(readings, inside, right, accuracy=1.0, refused=1.0)
        for name, least in found.least.items():
            kept = np.mean([one[name] >= least for one in itertools.compress(readings, right)])
            assert kept >= 0.6, f"{name} of at least {least} is met by {kept:.2f} of right rows"
    apart = [{"score": 1.0, "margin": 0.0}, {"score": 0.0, "margin": 1.0}]
    readings = [*apart, {"score": 0.5, "margin": -0.5}, {"score": 0.95, "margin": 0.95}]
    inside, right = np.array([True, True, True, False]), np.array([True, True, False, False])
    found = fit(readings, inside, right, accuracy=0.97, refused=0.85)
    assert 0 < min(found.coverage, found.accuracy) <= 1, (
        f"two right rows, each low where the other is high: values that refuse both have no "
        f"accuracy and are no answer; got {found}"
    )


@pytest.mark.parametrize("kept", ["all in scope", "all for nobody", "none at all", "none right"])
def test_rows_of_one_kind_only_are_an_error(kept: str) -> None:
    """Task 2: without rows of both kinds there is nothing to fit."""
    readings, inside, right = some_table(0)
    chosen = {"all in scope": inside, "all for nobody": ~inside, "none at all": inside & ~inside}
    keep = chosen.get(kept, inside | True)
    right = right & (kept != "none right")
    fit, error = need("agent.calibration", "fit"), need("agent.errors", "RowsError")
    with pytest.raises(error) as caught:
        fit(list(itertools.compress(readings, keep)), inside[keep], right[keep], 0.9, 0.9)
    said = str(caught.value)
    assert "null" in said, f"rows: {kept}. The message says which rows to add; got {said!r}"


def test_a_reading_below_its_least_value_is_the_reason() -> None:
    """Task 3: low_score or low_margin; a value that is just reached is enough."""
    concierge = raw_concierge()
    request = INSIDE[0][0]
    free = concierge.route(request)
    assert (free.card, free.reason, free.calibrated) == (INSIDE[0][1], None, False), (
        f"without a calibration nothing is refused, and calibrated is False; got {free}"
    )
    score, margin = free.readings["score"], free.readings["margin"]
    cases = [
        ({"score": score, "margin": margin}, None),
        ({"score": score + 1e-4, "margin": margin}, "low_score"),
        ({"score": score, "margin": margin + 1e-4}, "low_margin"),
        ({"score": score + 1e-4, "margin": margin + 1e-4}, "low_score"),
    ]
    for least, reason in cases:
        concierge.calibration = calibration(**least)
        route = concierge.route(request)
        assert (route.reason, route.calibrated) == (reason, True), (
            f"score {score:.4f}, margin {margin:.4f}, least {least}: the reason is {reason}; "
            f"got {route.reason}, calibrated {route.calibrated}"
        )
        assert (route.card is None) == (reason is not None), f"reason {reason}, got {route.card}"
        assert [c.card for c in route.ranking] == [c.card for c in free.ranking], (
            "a refusal keeps the ranking: the nearest cards are still to be shown"
        )


def test_the_margin_is_the_lead_over_the_second_card() -> None:
    """Contract: readings are the score of the best card, and its lead over the second."""
    route = raw_concierge().route(INSIDE[0][0])
    first, second = (candidate.score for candidate in route.ranking[:2])
    wanted = (first, first - second)
    got = (route.readings["score"], route.readings["margin"])
    assert np.allclose(got, wanted), f"scores {first}, {second}: {wanted}; got {got}"


def test_a_calibration_comes_back_as_it_was_saved(tmp_path: Path) -> None:
    """Task 4: save writes a file below registry/calibration, load reads it again."""
    save, load = need("agent.calibration", "save"), need("agent.calibration", "load")
    assert load(tmp_path, index(PAIRS)) is None, "load without a file is None"
    path = save(tmp_path, index(PAIRS), calibration(score=0.25, margin=0.125))
    assert path in (tmp_path / "calibration").iterdir(), f"saved as {path}"
    got = load(tmp_path, index(PAIRS))
    assert got is not None, "the same model and cards: load finds what save wrote"
    assert got.least == {"score": 0.25, "margin": 0.125}, f"saved and loaded: {got}"
    path.write_text(path.read_text(encoding="utf-8")[:40], encoding="utf-8")
    assert load(tmp_path, index(PAIRS)) is None, "a file that is cut off counts as none"


@pytest.mark.parametrize(
    "change",
    ["model", "query prefix", "passage prefix", "example", "card", "one card more", "one example"],
)
def test_E13_a_calibration_is_not_used_for_another_model_or_registry(
    tmp_path: Path, change: str
) -> None:
    """Task 4: bound to the model, both prefixes, and each example with its card."""
    save, load = need("agent.calibration", "save"), need("agent.calibration", "load")
    # Even where two models share a file: their names differ in a sign that no file name takes.
    save(tmp_path, index(PAIRS, embedder("hub/model")), calibration(score=0.25))
    of, pairs = embedder("hub/model"), list(PAIRS)
    if change == "model":
        of = embedder("hub-model")
    elif change == "query prefix":
        of = embedder("hub/model", query="")
    elif change == "passage prefix":
        of = embedder("hub/model", passage="")
    elif change == "example":
        pairs[0] = ("Reworded invoice", pairs[0][1])
    elif change == "card":
        pairs = [(text, card.replace("train", "rail")) for text, card in pairs]
    elif change == "one card more":
        pairs += [("Put the kettle on", "tea-maker")]
    else:
        pairs[0] = (pairs[0][0], pairs[-1][1])
    got = load(tmp_path, index(pairs, of))
    assert got is None, f"fitted before the {change} changed; wanted None, got {got}"


@pytest.fixture
def server() -> Iterator[Loopback]:
    with Loopback(embeddings(vector)) as server:
        yield server


@pytest.fixture
def registry(tmp_path: Path) -> Path:
    """Three cards on disk."""
    folder = tmp_path / "registry"
    folder.mkdir()
    for word, name in CARDS.items():
        examples = "".join(f"  - {json.dumps(form.format(word))}\n" for form in FORMS)
        (folder / f"{name}.card.yaml").write_text(
            f"name: {name}\ndescription: Takes what has to do with one {word}, and nothing else.\n"
            f"examples:\n{examples}prompt: Do what is asked.\ntools:\n  - name: do_it\n"
            "    description: Does what is asked.\n    parameters: {type: object, properties: {}}\n"
            "budget: {turns: 2, tool_calls: 2, tokens: 2000, seconds: 20}\n",
            encoding="utf-8",
        )
    return folder


def write_rows(path: Path, rows: list[dict[str, Any]]) -> str:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return str(path)


@pytest.fixture
def run(server: Loopback, registry: Path) -> Callable[..., Done]:
    """A command on the three cards: its name and more words to a finished run."""

    def run_it(name: str, *words: str, input: str = "") -> Done:
        return command(name, "--registry", registry, *words, env=server.env, input=input)

    return run_it


def test_calibrate_makes_the_calibration_that_route_then_uses(
    registry: Path, run: Callable[..., Done]
) -> None:
    """Task 5: `calibrate`, then `route` is no longer uncalibrated, and refuses."""
    before = json.loads(run("route", "--json", OUTSIDE[0]).stdout)
    assert (before.get("calibrated"), before["card"] is None) == (False, False), (
        f"without a calibration nothing is refused and calibrated is false; got {before}"
    )
    text = run("route", OUTSIDE[0]).stdout
    assert "uncalibrated" in text, f"`route` says uncalibrated where it is; got {text!r}"
    rows = write_rows(registry.parent / "rows.jsonl", ROWS)
    done = run("calibrate", rows)
    got = (done.returncode, "coverage" in done.stdout)
    assert got == (0, True), f"calibrate: exit code {got[0]}, printed {done.stdout}{done.stderr}"
    lines = run("route", "--json", input="\n".join(OUTSIDE)).stdout.splitlines()
    answers = [json.loads(line) for line in lines]
    refused = [answer["card"] is None for answer in answers]
    assert np.mean(refused) >= 0.85, f"{OUTSIDE} after calibrate, refused: {refused}"
    assert all(answer.get("calibrated") for answer in answers), f"calibrated is true; got {answers}"
    reasons = {answer["reason"] for answer in answers if answer["card"] is None}
    assert reasons <= {"low_score", "low_margin", "low_scope"}, f"reasons: {reasons}"
    text = run("route", OUTSIDE[refused.index(True)]).stdout
    assert (text[:6], "uncalibrated" in text) == ("nobody", False), f"a refusal: {text!r}"
    card = registry / "train-planner.card.yaml"
    card.write_text(card.read_text(encoding="utf-8").replace("Another", "One more"))
    after = json.loads(run("route", "--json", OUTSIDE[0]).stdout)
    assert after.get("calibrated") is False, f"an example was reworded after calibrate; got {after}"


def test_wanted_shares_are_options_of_calibrate(registry: Path, run: Callable[..., Done]) -> None:
    """Task 5: --accuracy and --refused say what the calibration has to keep to."""
    rows = write_rows(registry.parent / "rows.jsonl", ROWS)
    saved = []
    for shares in (["--refused", "0", "--accuracy", "0"], ["--refused", "1"]):
        done = run("calibrate", *shares, rows)
        assert done.returncode == 0, f"{shares}: exit code {done.returncode}, {done.stderr!r}"
        [path] = (registry / "calibration").iterdir()
        saved.append(json.loads(path.read_text(encoding="utf-8")))
    assert saved[0]["coverage"] == 1, f"nothing wanted but coverage: 1.0; got {saved[0]}"
    assert saved[1]["refused"] > 0.8, f"wanted to refuse all of {OUTSIDE}; got {saved[1]}"


def test_rows_that_cannot_be_used_are_errors_that_say_what_to_mend(
    registry: Path, run: Callable[..., Done]
) -> None:
    """Task 5: unknown cards, rows of one kind, no rows: exit code 1, and no file is written."""
    strange = [*ROWS, {"text": "x", "card": "nobody-knows", "kind": "in", "lang": "en"}]
    cases = [(strange, "nobody-knows"), (ROWS[:9], "null"), (ROWS[9:], "null"), ([], "no rows")]
    for rows, word in cases:
        path = write_rows(registry.parent / "rows.jsonl", rows)
        done = run("calibrate", path)
        got = (done.returncode, done.stdout)
        assert got == (1, ""), f"{len(rows)} rows: exit code 1, nothing on stdout; got {got}"
        said = done.stderr
        assert word in said, f"{len(rows)} rows: the message holds {word!r}; got {said!r}"
        made = list(registry.glob("calibration/*"))
        assert not made, f"{len(rows)} rows that cannot be used left {made}"
