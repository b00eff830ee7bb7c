"""Stage 09: nobody is an answer, with a reason, the nearest cards and a line in the gap log."""

import json
import zlib
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from helpers import Done, Loopback, command, embeddings, need

CARDS = {"invoice": "invoice-writer", "weather": "weather-reporter", "train": "train-planner"}
FORMS = ["Please see to the {}", "What about my {} today", "A {} for Monday", "Another {}, please"]
PAIRS = [(form.format(word), card) for word, card in CARDS.items() for form in FORMS]
EMPTY = ["", " \t\n ", "?", "🙂🎉", "…!?", "\0\0"]


def vector(text: str) -> list[float]:
    """A part that all texts share, a part of the topic, and a little noise, the same each time."""
    text = text.removeprefix("p: ").removeprefix("q: ")
    rng = np.random.default_rng(zlib.crc32(text.encode(errors="replace")))
    topic = sum((np.eye(12)[i + 1] for i, word in enumerate(CARDS) if word in text), np.zeros(12))
    return (np.eye(12)[0] + topic + rng.normal(0, 0.08, 12)).tolist()


class Fake:
    """An embedder that remembers what it was asked."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    def __call__(self, texts: list[str]) -> np.ndarray:
        self.asked += texts
        return np.array([vector(text) for text in texts], dtype=np.float32)


def concierge(pairs: list[tuple[str, str]] = PAIRS) -> tuple[Any, Fake]:
    """A concierge, and its embedder, which has forgotten the examples."""
    fake = Fake()
    embedder = need("agent.index", "Embedder")("fake", "q: ", "p: ", fake)
    made = need("agent.concierge", "Concierge")(need("agent.index", "Index").build(pairs, embedder))
    fake.asked.clear()
    return made, fake


def calibration(line: list[float] | None = None, **least: float) -> Any:
    make = need("agent.calibration", "Calibration")
    line = [0.0] * 12 + [0.5] if line is None else line
    try:
        return make(least=least, coverage=1.0, accuracy=1.0, refused=1.0, line=line)
    except TypeError as error:
        pytest.fail(f"Contract: Calibration has a field `line`: {error}")


@pytest.mark.parametrize(("rows", "dimensions"), [(30, 5), (12, 20)])
def test_the_scope_of_a_row_is_what_a_line_without_that_row_says(
    rows: int, dimensions: int
) -> None:
    """Task 1: leave-one-out, the same as fitting again without each row."""
    rng = np.random.default_rng(rows)
    positions, inside = rng.normal(0, 0.3, (rows, dimensions)), np.arange(rows) % 3 > 0
    line, unseen = need("agent.calibration", "fit_scope")(positions, inside)
    table = np.hstack([positions, np.ones((rows, 1))])
    target, ridge = np.where(inside, 1.0, -1.0), rows / dimensions

    def solve(kept: np.ndarray) -> np.ndarray:
        square = table[kept].T @ table[kept] + ridge * np.eye(dimensions + 1)
        return np.linalg.solve(square, table[kept].T @ target[kept])

    everything = np.arange(rows)
    wanted = solve(everything)
    assert np.allclose(line, wanted, atol=2e-6), (
        f"the line of {rows} rows is the ridge regression on 1 and -1, penalty {ridge}, constant "
        f"last: {wanted.round(3)}; got {np.round(line, 3)}"
    )
    refitted = np.array([table[i] @ solve(everything[everything != i]) for i in range(rows)])
    assert np.allclose(unseen, refitted, atol=1e-6), (
        f"fitted again without each of {rows} rows: {refitted[:4].round(3)} ...; got "
        f"{np.round(unseen[:4], 3)} ..."
    )


def test_the_scope_line_refuses_with_a_reason_before_score_and_margin() -> None:
    """Task 2: low_scope, low_score, low_margin: the first reading that is too low."""
    made, _ = concierge()
    request = "I need the invoice now"
    free = made.route(request)
    scope = getattr(free, "scope", "no such field")
    assert scope is None, f"Contract: Route has a field scope, None without a calibration: {scope}"
    cases = [
        ({"scope": 0.5, "score": -1, "margin": -1}, None),
        ({"scope": 0.51, "score": 2, "margin": 2}, "low_scope"),
        ({"scope": 0.5, "score": 2, "margin": 2}, "low_score"),
        ({"scope": 0.5, "score": -1, "margin": 2}, "low_margin"),
    ]
    for least, reason in cases:
        made.calibration = calibration(**least)
        route = made.route(request)
        assert (route.reason, route.scope) == (reason, 0.5), (
            f"scope 0.5, least {least}: the reason is {reason}; got {route.reason}, scope "
            f"{route.scope}"
        )
        assert (route.card is None) == (reason is not None), f"{reason}, but {route.card} takes it"


def test_the_scope_is_read_at_the_place_of_the_request_in_the_space() -> None:
    """Task 2: scope = place · line + the constant; the place is what the space makes of it."""
    made, _ = concierge()
    line = [*np.linspace(-1, 1, 12).tolist(), 0.25]
    made.calibration = calibration(line, scope=-9)
    request = "Will the train be late"
    place = made.space(made.index.vectors([request]))[0]
    wanted = float(place @ line[:-1]) + line[-1]
    got = getattr(made.route(request), "scope", None)
    assert got is not None, "with a line there is a scope"
    assert abs(got - wanted) < 1e-5, f"wanted {wanted:.5f}, got {got:.5f}"


def test_a_calibration_without_a_line_works_as_in_stage_08() -> None:
    """Contract: `line` may be left out; then there is no scope, and least has none."""
    made, _ = concierge()
    try:
        made.calibration = need("agent.calibration", "Calibration")({"score": 2.0}, 1.0, 1.0, 1.0)
    except TypeError as error:
        pytest.fail(f"Contract: the field `line` has a default: {error}")
    route = made.route("I need the invoice now")
    got = (route.reason, getattr(route, "scope", "no such field"))
    assert got == ("low_score", None), f"a least score of 2 and no line: low_score; got {got}"


@pytest.mark.parametrize("request_text", EMPTY)
def test_R5_a_request_without_a_word_is_refused_without_an_embedding_call(
    request_text: str,
) -> None:
    """Task 3: empty_query: no letter and no digit, so there is nothing to embed."""
    made, fake = concierge()
    route = made.route(request_text)
    got = (route.card, route.reason, route.ranking, fake.asked)
    assert got == (None, "empty_query", [], []), (
        f"{request_text!r}: nobody, empty_query, no ranking and no call; got {got}"
    )


@pytest.mark.parametrize("text", ["7", "価格は", "цена", "سعر", "ß"])
def test_R5_one_letter_of_any_script_is_a_request(text: str) -> None:
    """Task 3: letters and digits of all scripts count."""
    made, fake = concierge()
    route = made.route(text)
    assert route.reason != "empty_query", f"{text!r} has a letter or digit; got {route.reason}"
    assert fake.asked == [f"q: {text}"], f"{text!r} is embedded; got {fake.asked}"


def test_R5_empty_requests_among_others_keep_their_places() -> None:
    """Task 3: a route for each request, in order, whatever is empty among them."""
    made, _ = concierge()
    routes = made.route_all(["", "the invoice", "?", "the train", " "])
    got = [route.card for route in routes]
    wanted = [None, "invoice-writer", None, "train-planner", None]
    assert got == wanted, f"an empty one, an invoice, '?', a train, a blank: {wanted}; got {got}"
    assert made.route_all([]) == [], "no requests, no routes"


@pytest.mark.parametrize("calibrated", [False, True])
def test_R3_two_cards_with_the_same_text_are_a_tie_and_both_are_named(calibrated: bool) -> None:
    """Task 4: tie, also where nothing else is refused; the order of cards decides nothing."""
    twice = [(text, card) for card in ("first-desk", "second-desk") for text, _ in PAIRS[:4]]
    made, _ = concierge(twice + PAIRS[4:])
    made.calibration = calibration(scope=-9, score=-9, margin=-9) if calibrated else None
    route = made.route("I need the invoice now")
    assert (route.card, route.reason) == (None, "tie"), (
        f"calibrated {calibrated}, two cards with the same examples: tie; got {route.reason}, "
        f"{route.card}"
    )
    named = {candidate.card for candidate in route.ranking[:2]}
    assert named == {"first-desk", "second-desk"}, f"both lead the ranking; got {named}"


def test_R3_a_card_alone_has_nobody_to_tie_with() -> None:
    """Task 4: with one card only, no score is a tie, not even one below zero."""
    embed = need("agent.index", "Embedder")("fake", "", "", lambda texts: np.array(
        [[-1.0, 0.2] if "far" in text else [1.0, 0.1] for text in texts], dtype=np.float32
    ))  # fmt: skip
    index = need("agent.index", "Index").build([("near", "only-desk")], embed)
    route = need("agent.concierge", "Concierge")(index).route("far")
    assert (route.card, route.reason) == ("only-desk", None), (
        f"one card, no calibration, cosine {route.ranking[0].score:.2f}: nothing is refused; got "
        f"{route.reason}"
    )


def test_of_an_endless_request_the_first_400_and_last_200_characters_are_read() -> None:
    """Task 5: 2 MB of text is one short embedding, and one short line in an answer."""
    made, fake = concierge()
    endless = "a" * 400 + "b" * 2_000_000 + "c" * 200
    route = made.route(endless)
    [sent] = fake.asked
    assert sent == "q: " + "a" * 400 + " … " + "c" * 200, (
        f"400 a, 2 million b, 200 c: sent are the a and the c with ' … ' between; got "
        f"{len(sent)} characters that start {sent[:20]!r}"
    )
    assert len(route.request) == 603, f"the request in a Route is the short one; got {route!r:.90}"
    whole = "d" * 603
    assert made.route(whole).request == whole, "603 characters are no more than that: kept whole"


@pytest.mark.parametrize(
    ("given", "sent"),
    [
        ("the\0invoice", "the invoice"),
        ("  the\r\n\tinvoice \x1b now ", "the invoice now"),
        ("the \udcff\ud83d invoice", "the ?? invoice"),
    ],
)
def test_what_a_model_cannot_read_does_not_reach_it(given: str, sent: str) -> None:
    """Task 5: NUL, control characters and broken UTF-8 are taken out of a request."""
    made, fake = concierge()
    route = made.route(given)
    got = (fake.asked, route.request)
    assert got == ([f"q: {sent}"], sent), f"{given!r} is embedded as {sent!r}; got {got}"


def refused() -> Any:
    made, _ = concierge()
    made.calibration = calibration(scope=9)
    return made.route("Wer erfand die Tabelle?\u2028Und wann")


def test_a_gap_is_one_line_of_json_with_the_three_nearest_cards(tmp_path: Path) -> None:
    """Task 6: time, request, reason, nearest and model, appended to what is there."""
    log_gap, route, path = need("agent.gaps", "log_gap"), refused(), tmp_path / "a/b/gaps.jsonl"
    assert log_gap(path, route, "fake") is True, "written, in folders that it made: True"
    before = path.read_bytes()
    log_gap(path, route, "fake")
    assert path.read_bytes().startswith(before), "what was in the log stays as it was"
    lines = path.read_text(encoding="utf-8").split("\n")
    assert len(lines) == 3, f"two gaps are two lines, each with its end; got {lines}"
    gap = json.loads(lines[1])
    assert {"time", "request", "reason", "nearest", "model"} <= gap.keys(), f"keys: {[*gap]}"
    got = [gap["request"], gap["reason"], gap["model"]]
    assert got == [route.request, "low_scope", "fake"], f"of {route.request!r}: got {got}"
    nearest = [(c.card, c.score, c.example) for c in route.ranking[:3]]
    got = [(near["card"], near["score"], near["example"]) for near in gap["nearest"]]
    assert got == nearest, f"the three nearest cards are {nearest}; got {got}"


def test_a_log_that_cannot_be_written_is_no_error(tmp_path: Path) -> None:
    """Task 6: False, and the route stands."""
    (tmp_path / "file").write_text("not a folder", encoding="utf-8")
    log_gap = need("agent.gaps", "log_gap")
    for path in (tmp_path / "file" / "gaps.jsonl", tmp_path):
        got = log_gap(path, refused(), "fake")
        assert got is False, f"{path.name} cannot be written: False; got {got!r}"


def test_writers_at_the_same_time_do_not_mix_their_lines(tmp_path: Path) -> None:
    """Task 6: one write a line, in append mode."""
    log_gap, route, path = need("agent.gaps", "log_gap"), refused(), tmp_path / "gaps.jsonl"
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda number: log_gap(path, route, f"m{number}"), range(160)))
    models = [json.loads(line)["model"] for line in path.read_text(encoding="utf-8").splitlines()]
    assert sorted(models) == sorted(f"m{number}" for number in range(160)), (
        f"160 writes of 8 threads are 160 whole lines; got {len(models)}"
    )


@pytest.fixture(scope="module")
def server() -> Iterator[Loopback]:
    with Loopback(embeddings(vector)) as server:
        yield server


@pytest.fixture
def route(tmp_path: Path, server: Loopback) -> Any:
    """`python -m agent route --json` over three cards: arguments and input to a finished run."""
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
    env = {**server.env, "TINY_HOME": str(tmp_path / "home")}

    def run(*args: str | bytes, given: bytes = b"", **more: str) -> Done:
        words = ["route", "--registry", folder, *args]
        return command(*words, input=given, env=env | more, cwd=tmp_path)

    return run


def test_one_refused_request_ends_with_exit_code_5_and_a_line_in_the_gap_log(
    route: Any, tmp_path: Path
) -> None:
    """Task 7: nobody takes it: 5; the log is gaps.jsonl in TINY_HOME, named on stderr."""
    done = route("--json", "?")
    assert done.returncode == 5, f"'?' is refused: exit code 5; got {done.returncode} {done.stderr}"
    answer = json.loads(done.stdout)
    wanted = {"card", "reason", "margin", "scope", "request", "ranking", "calibrated"}
    assert wanted <= answer.keys(), f"--json has the fields {sorted(wanted)}; got {sorted(answer)}"
    assert (answer["card"], answer["reason"]) == (None, "empty_query"), f"'?': got {answer}"
    log = tmp_path / "home" / "gaps.jsonl"
    assert log.is_file(), f"the gap is logged in {log}; there is none"
    assert "gaps.jsonl" in done.stderr, f"stderr names the log; got {done.stderr!r}"
    (tmp_path / "other" / "gaps.jsonl").mkdir(parents=True)  # a folder, where the log should be
    done = route("?", TINY_HOME=str(tmp_path / "other"))
    got = (done.returncode, done.stdout[:6])
    assert got == (5, "nobody"), f"with a log that cannot be written: 5, nobody; got {got}"


def test_a_stream_has_an_answer_a_line_and_ends_with_exit_code_0(route: Any) -> None:
    """Task 7: many requests: empty lines, broken UTF-8 and endless ones included."""
    endless = b"the train " + b"x" * 2_000_000
    given = b"the invoice\n\n\xff\xfe weather\n" + endless + b"\n?"
    done = route("--json", given=given)
    assert done.returncode == 0, f"exit code 0; got {done.returncode}, {done.stderr[-300:]!r}"
    got = [json.loads(line)["card"] for line in done.stdout.splitlines()]
    wanted = ["invoice-writer", None, "weather-reporter", "train-planner", None]
    assert got == wanted, f"five lines of input have the cards {wanted}; got {got}"
    done = route(b"\xff\xfe the weather")
    got = (done.returncode, done.stdout.split()[:1])
    assert got == (0, ["weather-reporter"]), f"broken UTF-8 as an argument: got {got}"
