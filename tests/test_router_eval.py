"""Stage 07: the router is measured on labelled requests, and each number can be counted by hand."""

import importlib.util
import json
import math
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from helpers import TREE, Done, Loopback, command, embeddings, need

SCRIPT = "scripts/03_router_eval.py"


def row(card: str | None, kind: str = "in", lang: str = "en", text: str = "a request") -> Any:
    return {"text": text, "card": card, "kind": kind, "lang": lang}


# Task 6: rows


def read(folder: Path, text: str | bytes) -> Any:
    path = folder / "rows.jsonl"
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return need("agent.rows", "read_rows")(path)


def rows_error(path: Path) -> str:
    read_rows, error = need("agent.rows", "read_rows"), need("agent.errors", "RowsError")
    try:
        came = read_rows(path)
    except error as refusal:
        return str(refusal)
    except Exception as other:
        pytest.fail(f"expected a RowsError, {type(other).__name__} came out: {other}")
    pytest.fail(f"expected a RowsError, came back {came}")


def test_rows_are_the_objects_in_the_lines(tmp_path: Path) -> None:
    """Task 6: one object a line, in order; empty lines and a last line break do not matter."""
    rows = [row("a"), row(None, "out", "de", "Wie geht\u2028es dir")]
    lines = [json.dumps(rows[0]), "", json.dumps(rows[1], ensure_ascii=False), " "]
    got = read(tmp_path, "\r\n".join(lines))
    assert got == rows, f"expected {rows}, came back {got}"


@pytest.mark.parametrize(
    "bad",
    ["{", "[]x", '{"text": "a", "card": null, "kind": "in"}', "[1]", "5", '"text"', "{}"],
)
def test_a_row_that_is_none_is_named_by_its_line(tmp_path: Path, bad: str) -> None:
    """Task 6: what is no row is a RowsError with the file and the line, counted from 1."""
    path = tmp_path / "rows.jsonl"
    path.write_text(f"{json.dumps(row('a'))}\n\n{bad}\n", encoding="utf-8")
    said = rows_error(path)
    assert "rows.jsonl" in said, f"given {bad!r}: expected the file in {said!r}"
    assert "3" in said.replace(str(path), ""), f"given {bad!r} in line 3: came back {said!r}"


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    """Task 6: so is a file that is not there, and one that is not UTF-8."""
    said = rows_error(tmp_path / "none.jsonl")
    assert "none.jsonl" in said, f"expected the file in {said!r}"
    (path := tmp_path / "latin.jsonl").write_bytes('{"text": "Grüße"}'.encode("latin-1"))
    said = rows_error(path)
    assert "latin.jsonl" in said, f"given Latin-1: expected the file in {said!r}"


# Task 7: the numbers


def score(rows: list[Any], cards: list[str | None]) -> Any:
    """What `score` of the script says, when the concierge has chosen these cards."""
    if not (TREE / SCRIPT).is_file():
        pytest.fail(f"Contract: there is no {SCRIPT} yet")
    spec = importlib.util.spec_from_file_location("router_eval_of_a_stage", TREE / SCRIPT)
    if spec is None or spec.loader is None:
        pytest.fail(f"Contract: {SCRIPT} is no Python file")
    module = importlib.util.module_from_spec(spec)
    path = list(sys.path)
    sys.modules[spec.name] = module
    try:
        spec.loader.exec_module(module)
    finally:
        del sys.modules[spec.name]
        sys.path[:] = path
    if not hasattr(module, "score"):
        pytest.fail(f"Contract: {SCRIPT} has no score yet")
    return module.score(rows, [SimpleNamespace(card=card) for card in cards])


def test_the_shares_are_those_counted_by_hand() -> None:
    """Task 7: each share has the right rows above and below the line."""
    table = [
        (row("a"), "a"),  # right
        (row("a"), "b"),  # answered, wrong
        (row("b"), "b"),  # right
        (row("b"), None),  # in scope and refused
        (row("c"), "c"),  # right
        (row(None, "out"), None),  # out of scope and refused
        (row(None, "out"), "a"),  # out of scope and answered
        (row(None, "near"), None),
        (row(None, "near"), None),
        (row(None, "near"), "c"),
    ]
    got = score([one for one, _ in table], [card for _, card in table])
    wanted = {
        "rows": 10,
        "coverage": 4 / 5,
        "accuracy": 3 / 4,
        "right": 3 / 5,
        "false_routes": 2 / 5,
        "out_refused": 1 / 2,
        "near_refused": 2 / 3,
    }
    came = {name: getattr(got, name, None) for name in wanted}
    assert came == pytest.approx(wanted), f"expected {wanted}, came back {came}"


def test_a_refusal_is_not_right_because_the_label_is_null() -> None:
    """Task 7: `right` and `accuracy` are of the rows in scope alone."""
    got = score([row("a"), *[row(None, "out")] * 9], ["b", *[None] * 9])
    came = (got.accuracy, got.right, got.out_refused)
    assert came == (0, 0, 1), f"given 1 wrong row and 9 refusals: expected 0, 0, 1, came {came}"


def test_a_share_of_no_rows_is_not_a_number() -> None:
    """Task 7: where there is no such row, the share is NaN, and neither 0 nor 1."""
    got = score([row("a")], [None])
    shares = (got.accuracy, got.false_routes, got.out_refused, got.near_refused)
    assert all(map(math.isnan, shares)), f"given one refused row in scope: came back {shares}"
    assert (got.coverage, got.right) == (0, 0), f"expected 0 and 0, came {got}"


# Task 8: the script

# Columns: shared, tells the cards apart, varies inside each card.
VECTORS = {
    **{f"near one {i}": (1, 0.5, s) for i, s in enumerate((-0.9, -0.5, 0.1))},
    **{f"far one {i}": (1, -0.5, s) for i, s in enumerate((-0.1, 0.5, 0.9))},
    "led astray": (1, 0.4, 0.9),
    "plainly far": (1, -0.5, 0.5),
    "ganz nah": (1, 0.5, -0.5),
    "falsches Etikett": (1, -0.5, 0.4),
    "what is the time": (1, 0.1, -0.4),
    "fast ganz nah": (1, 0.2, -0.6),
}
ROWS = [
    row("near-card", text="led astray"),
    row("far-card", text="plainly far"),
    row("near-card", lang="de", text="ganz nah"),
    row("near-card", lang="de", text="falsches Etikett"),
    row(None, "out", text="what is the time"),
    row(None, "near", "de", text="fast ganz nah"),
]
CARD = """\
name: {name}-card
description: Answers one kind of request for a test, and no other kind.
examples:
  - {name} one 0
  - {name} one 1
  - {name} one 2
prompt: |
  You answer.
tools:
  - answer_it
budget: {{turns: 2, tool_calls: 2, tokens: 900, seconds: 5}}
"""


def run(folder: Path, *words: str) -> Done:
    """The script, on the two cards and six rows above."""
    (cards := folder / "cards").mkdir(exist_ok=True)
    for name in ("near", "far"):
        text = CARD.format(name=name)
        (cards / f"{name}-card.card.yaml").write_text(text, encoding="utf-8")
    (rows := folder / "rows.jsonl").write_text("\n".join(map(json.dumps, ROWS)), encoding="utf-8")
    given: list[Any] = ["--registry", cards, "--rows", rows, *words]
    with Loopback(embeddings(lambda text: VECTORS.get(text, (1, 1, 1)))) as server:
        prefixes = {"TINY_QUERY_PREFIX": "", "TINY_PASSAGE_PREFIX": ""}
        env = {**server.env, **prefixes, "TINY_HOME": str(folder / "home")}
        return command(*given, script=SCRIPT, env=env, cwd=folder)


def numbers(folder: Path, *words: str) -> Any:
    done = run(folder, "--json", *words)
    assert done.returncode == 0, f"expected exit code 0, got {done.returncode}: {done.stderr}"
    return json.loads(done.stdout)


def test_the_script_counts_all_rows_and_each_language(tmp_path: Path) -> None:
    """Task 8: `--json` has the scores for all, de and en, and the rows that it got wrong."""
    got = numbers(tmp_path)
    wanted = {"all": (6, 3 / 4), "en": (3, 1.0), "de": (3, 1 / 2)}
    came = {name: (got[name]["rows"], got[name]["right"]) for name in wanted}
    assert came == wanted, f"expected rows and share of right {wanted}, came {came}"
    wrong = {one["text"]: one["got"] for one in got["wrong"]}
    label = wrong.get("falsches Etikett")
    assert label == "far-card", f"expected the row and what it got, came {got['wrong']}"
    assert "led astray" not in wrong, f"expected the space to put it right, came {wrong}"
    assert (tmp_path / "home").is_dir(), "expected the vectors to be kept below TINY_HOME"


def test_raw_is_on_the_vectors_as_the_model_sent_them(tmp_path: Path) -> None:
    """Task 8: `--raw` measures without the space, so one row more is wrong here."""
    got = numbers(tmp_path, "--raw")
    right = (got["all"]["right"], got["en"]["right"], got["de"]["right"])
    assert right == (0.5, 0.5, 0.5), f"given --raw: expected half of each right, came {right}"
    wrong = {one["text"]: one["got"] for one in got["wrong"]}
    assert wrong.get("led astray") == "far-card", f"given --raw: came {wrong}"


def test_the_table_and_the_wrong_rows_are_printed(tmp_path: Path) -> None:
    """Task 8: without --json, a table; `--wrong` adds each wrong row, its card and the other."""
    done = run(tmp_path, "--wrong")
    assert done.returncode == 0, f"expected exit code 0, got {done.returncode}: {done.stderr}"
    lines = [line.split() for line in done.stdout.splitlines()]
    assert ["right", "0.750", "0.500", "1.000"] in lines, f"columns all, de, en: {done.stdout}"
    for part in ("falsches Etikett", "near-card", "far-card", "what is the time"):
        assert part in done.stdout, f"given --wrong: expected {part!r} in {done.stdout}"


def test_rows_that_cannot_be_used_end_the_script(tmp_path: Path) -> None:
    """Task 8: an error goes to stderr in one line, with nothing on stdout and exit code 1."""
    done = run(tmp_path, "--rows", str(tmp_path / "none.jsonl"))
    got = (done.returncode, done.stdout)
    assert got == (1, ""), f"given no such file: expected exit code 1, got {got}: {done.stderr}"
    assert "none.jsonl" in done.stderr, f"expected the file in {done.stderr!r}"
    assert "Traceback" not in done.stderr, f"expected no traceback, got {done.stderr}"


@pytest.mark.parametrize("bad", ["null", "[]", "0", '""'])
def test_an_empty_value_is_no_empty_line(tmp_path: Path, bad: str) -> None:
    """Task 6: a line that holds anything holds a row."""
    path = tmp_path / "rows.jsonl"
    path.write_text(bad, encoding="utf-8")
    said = rows_error(path)
    assert "1" in said.replace(str(path), ""), f"given {bad!r} in line 1: came back {said!r}"


@pytest.mark.parametrize("text", [5, None, ["a"]])
def test_a_text_that_is_none_is_refused(tmp_path: Path, text: Any) -> None:
    """Task 6: the text of a row is text."""
    path = tmp_path / "rows.jsonl"
    path.write_text(json.dumps({**row("a"), "text": text}), encoding="utf-8")
    said = rows_error(path)
    assert "1" in said.replace(str(path), ""), f"given the text {text!r}: came back {said!r}"


def test_a_file_without_rows_is_refused(tmp_path: Path) -> None:
    """Task 6: a file without a single row is a RowsError that names it."""
    (path := tmp_path / "rows.jsonl").write_text("\n \n", encoding="utf-8")
    assert "rows.jsonl" in rows_error(path), "expected the file in the message"
