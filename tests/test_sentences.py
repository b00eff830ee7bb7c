"""Stage 29: the sentences of a text, each with its place, and how well they fit a query."""

from __future__ import annotations

import math
import random
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from helpers import command, need

# None begins another.
WORDS = ["abcd", "bcde", "cdef", "defg", "efgh", "fghi", "ghij", "hijk", "ijkl", "jklm"]
HARD = ["a", "Ä", "文", "😀", " ", "\t", "\n", "\r\n", "\r", "\0", ". ", "!", "…” ", "。", "\u2028"]
HARD += ["\udc80", "İ", "e\u0301", "x" * 40, "7"]


def call(name: str, *given: Any) -> Any:
    """What a function of the stage gives, or a failure in the lesson's words."""
    function = need("agent.sentences", name)
    try:
        found = function(*given)
    except TypeError as error:
        pytest.fail(f"Contract: {name} takes {len(given)} arguments: {error}")
    if found is None:
        pytest.fail(f"Contract: {name} gives something back, came None")
    return found


def pieces(text: str) -> list[str]:
    return [text[start:end] for start, end in call("split", text)]


def rank(text: str, query: str) -> Any:
    found = call("rank", text, query)
    for name in ("spans", "scores", "cover", "best"):
        if not hasattr(found, name):
            pytest.fail(f"Contract: a Ranking has {name}, came {found!r}")
    return found


def fitting(text: str, query: str) -> list[str]:
    """The sentences that have a score, in the text's order."""
    found = rank(text, query)
    return [text[slice(*found.spans[i])] for i in sorted(found.scores)]


def reference(sentences: Sequence[str], query: Sequence[str]) -> list[float]:
    """BM25 from its formula: k1 = 1.2, b = 0.4, the length in characters."""
    k1, b, n = 1.2, 0.4, len(sentences)
    average = sum(map(len, sentences)) / n
    scores = [0.0] * n
    for word in query:
        times = [sentence.rstrip(".").split().count(word) for sentence in sentences]
        holding = sum(map(bool, times))
        idf = math.log(1 + (n - holding + 0.5) / (holding + 0.5))
        for i, f in enumerate(times):
            norm = k1 * (1 - b + b * len(sentences[i]) / average)
            scores[i] += idf * f * (k1 + 1) / (f + norm)
    return scores


@pytest.mark.parametrize("seed", range(4))
def test_nothing_but_blanks_is_left_between_sentences(seed: int) -> None:
    """Task 1: whatever a text holds, its sentences stand at their places, in order, whole."""
    dice = random.Random(seed)
    for _ in range(60):
        text = "".join(dice.choices(HARD, k=dice.choice((0, 1, 9, 90))))
        last = 0
        for start, end in call("split", text):
            piece = text[start:end]
            assert last <= start < end <= len(text), f"{text!r}: [{start}:{end}] after {last}"
            assert not text[last:start].strip(), f"{text!r}: {text[last:start]!r} is in no sentence"
            assert piece == piece.strip(), f"{text!r}: blanks around {piece!r}"
            assert len(piece) <= 300, f"expected 300 characters at most, came {len(piece)}"
            last = end
        assert not text[last:].strip(), f"{text!r}: {text[last:]!r} is in no sentence"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("It rains. Stay in! Why? Well… so", ["It rains.", "Stay in!", "Why?", "Well…", "so"]),
        ('He said "No." (It rained.) End.', ['He said "No."', "(It rained.)", "End."]),
        ("„Er kam.“ Dann ging er. »So!« Ja.", ["„Er kam.“", "Dann ging er.", "»So!«", "Ja."]),
        ("传感器很高。真的？！他说：“好。”完", ["传感器很高。", "真的？！", "他说：“好。”", "完"]),
        ("Version 3.11 of a.b.c is 1.5 m", ["Version 3.11 of a.b.c is 1.5 m"]),  # no blank follows
    ],
)
def test_a_sentence_ends_at_its_mark(text: str, expected: list[str]) -> None:
    """Task 1: sentences end where a mark and a blank stand, Chinese ones at their own marks."""
    came = pieces(text)
    assert came == expected, f"{text!r}: expected {expected}, came {came}"


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r", "\u2028", "\n\n \n"])
def test_S9_each_way_to_end_a_line_ends_a_sentence(end: str) -> None:
    """Task 1: a line ends with LF, CR LF, CR alone, or a separator of Unicode."""
    text = f"a,1{end}b,2{end}c,3{end}"
    came = pieces(text)
    assert came == ["a,1", "b,2", "c,3"], f"{text!r}: expected three lines, came {came}"


def test_one_endless_line_is_cut() -> None:
    """Task 1: a piece has 300 characters at most, and a word is cut only where it must be."""
    text = "lorem ipsum " * 200
    came = pieces(text)
    assert max(map(len, came)) <= 300, f"expected at most 300, came {max(map(len, came))}"
    assert len(came) <= 16, f"expected pieces of 150 characters or more, came {len(came)} pieces"
    cut = {piece.split()[0] for piece in came} | {piece.split()[-1] for piece in came}
    assert cut <= {"lorem", "ipsum"}, f"expected cuts between words, came {cut}"
    came = pieces("x" * 1_000)
    assert "".join(came) == "x" * 1_000, "expected every character of a word without a blank"


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("Sensors hold", ["senso", "hold"]),
        ("the THE The", ["the"]),
        ("Preise, Preisen; Größe", ["prei", "preis", "größ"]),
        ("a room 7 x_y 2024", ["room", "7", "2024"]),
        ("传感器 高", ["传感", "感器", "高"]),
        ("?! …", []),
    ],
)
def test_words_are_looked_for_without_their_endings(query: str, expected: list[str]) -> None:
    """Task 2: small letters, no ending, each once; numbers whole; Chinese by two characters."""
    came = call("terms", query)
    assert came == expected, f"{query!r}: expected {expected}, came {came}"


@pytest.mark.parametrize("seed", range(3))
def test_scores_are_those_of_the_formula(seed: int) -> None:
    """Task 3: the scores of BM25, and none for a sentence that shares no word."""
    dice = random.Random(seed)
    sentences = [" ".join(dice.choices(WORDS, k=dice.randint(1, 6))) + "." for _ in range(40)]
    sentences += [f"filler {i}." for i in range(160)]  # so that no word stands in a quarter
    query = dice.sample(WORDS, 3)
    expected = reference(sentences, query)
    found = rank("\n".join(sentences), " ".join(query))
    assert len(found.spans) == len(sentences), f"expected 200 sentences, came {len(found.spans)}"
    for i, score in enumerate(expected):
        came = found.scores.get(i, 0.0)
        said = f"{sentences[i]!r} for {query}: expected {score:.6f}, came {came:.6f}"
        assert came == pytest.approx(score, abs=1e-9), said
    assert set(found.scores) == {i for i, s in enumerate(expected) if s}, "expected no score of 0"


def test_a_rare_word_outweighs_a_usual_one() -> None:
    """Task 3: of two sentences that hold one word each, the one with the rarer word is first."""
    text = "The river was cold.\n" * 3 + "The mill was shut.\n" + "Nothing at all here.\n" * 20
    found = rank(text, "river mill")
    best = text[slice(*found.spans[found.best()[0]])] if found.scores else "nothing"
    assert best == "The mill was shut.", f"expected the rarer word's sentence first, came {best!r}"


def test_a_word_that_stands_everywhere_says_nothing() -> None:
    """Task 3: what stands in more than a quarter of the sentences, and more than three, is out."""
    text = "".join(f"The lamp {i} is on.\n" for i in range(10)) + "A bell rings.\n" + "No.\n" * 20
    came = fitting(text, "the lamp of the bell")
    assert came == ["A bell rings."], f"10 of 31 have 'lamp': expected the bell's, came {came}"
    came = fitting("The lamp.\nOne lamp.\nA lamp.", "lamp")
    assert len(came) == 3, f"up to three sentences may share a word, came {came}"


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("order 77", ["row 77."]),  # not 770, not 177, not 7 or 77000
        ("80", ["Port 80 is open.", "v80"]),
        ("12345", ["No 12345."]),
        ("art", ["The art of rain."]),  # not the middle of "start"
        ("SENSORS", ["Ein Windsensor dreht sich."]),
        ("ÄRGER", ["Viel ärger war es nicht."]),
        ("感器", ["这个传感器很高。"]),
    ],
)
def test_where_a_word_fits(query: str, expected: list[str]) -> None:
    """Task 3: numbers are whole, short words begin one, long ones may stand within another."""
    text = """row 77. row 770. row 177. row 77000. Port 80 is open. Port 8080 is shut.
v80
No 12345. No 9123456. The art of rain. A start is made. Ein Windsensor dreht sich.
Viel ärger war es nicht. 这个传感器很高。没有。"""
    came = fitting(text, query)
    assert came == expected, f"{query!r}: expected {expected}, came {came}"


def test_a_word_that_is_said_often_stays_in_its_sentence() -> None:
    """Task 3: a sentence without the word has no score, however often another one has it."""
    came = fitting("foo foo foo foo foo foo foo foo foo foo. Nothing here.", "foo")
    assert came == ["foo foo foo foo foo foo foo foo foo foo."], f"came {came}"


def test_S7_places_hold_where_small_letters_are_longer() -> None:
    """Task 3: lower() makes two characters of İ, and no place moves by it."""
    text = "İ" * 30 + ". The rope is red. Ropes burn.\n" + "x. " * 20
    found = rank(text, "rope")
    came = [text[slice(*found.spans[i])] for i in sorted(found.scores)]
    assert came == ["The rope is red.", "Ropes burn."], f"expected both ropes, came {came}"


def test_the_cover_is_the_share_of_weight_that_the_best_one_holds() -> None:
    """Task 3: 1 where a sentence has all words, less by the weight of each that it lacks."""
    text = "red rope.\nred wine.\nblue sky.\n" + "no.\n" * 20
    weight = {n: math.log(1 + (23 - n + 0.5) / (n + 0.5)) for n in (0, 1, 2)}
    share = (weight[2] + weight[1]) / (weight[2] + weight[1] + weight[0])
    for query, expected in {"red rope": 1.0, "red rope tiger": share, "tiger": 0, "": 0}.items():
        came = rank(text, query).cover
        assert came == pytest.approx(expected), f"{query!r}: expected {expected}, came {came}"


def test_what_is_empty_has_no_sentences() -> None:
    """Contract: an empty or blank text has no sentence, and no query fails on it."""
    for text in ("", " \n\t "):
        found = rank(text, "word 7 文")
        assert not found.spans, f"{text!r}: expected no sentence, came {found}"
        assert not found.scores, f"{text!r}: expected no score, came {found}"


def test_the_best_come_first_and_ties_in_the_order_of_the_text() -> None:
    """Task 4: best first; of two with the same score the one that comes first."""
    spans = [(i * 2, i * 2 + 1) for i in range(5)]
    made = call("Ranking", spans, {4: 1.0, 1: 2.0, 3: 1.0, 0: 1.0}, 0.5)
    came = made.best()
    assert came == [1, 0, 3, 4], f"expected 1, then 0, 3 and 4, came {came}"


def test_time_grows_with_the_length_alone() -> None:
    """Task 3: 30,000 sentences, 6,000 of which have the word: no search through all for each."""
    text = "rope\nsky\nsea\nair\nsun\n" * 6_000
    began = time.process_time()
    found = rank(text, "rope")
    took = time.process_time() - began
    assert len(found.scores) == 6_000, f"expected 6000 with a score, came {len(found.scores)}"
    assert took < 2.5, f"expected about 0.1 s, took {took:.1f}"


def test_search_prints_the_best_five(tmp_path: Path) -> None:
    """Task 5: score, place and sentence of the best five on stdout, the cover on stderr."""
    text = "".join(f"Rope {i} is long.\n" for i in range(7)) + "Red rope.\n" + "No wind.\n" * 40
    home = {"TINY_HOME": str(tmp_path)}
    handle = command("put", "-", env=home, input=text).stdout.strip()
    done = command("search", handle, "red rope", env=home)
    assert done.returncode == 0, f"expected exit code 0, got {done.returncode}: {done.stderr}"
    rows = [line.split(maxsplit=2) for line in done.stdout.splitlines()]
    assert len(rows) == 5, f"expected five lines, came {done.stdout!r}"
    for row in rows:
        assert len(row) == 3, f"expected score, place and sentence, came {row}"
        assert text.startswith(row[2], int(row[1])), f"{row[2]!r} doesn't stand at {row[1]}"
    assert rows[0][2] == "Red rope.", f"expected 'Red rope.' first, came {rows[0]}"
    assert "100%" in done.stderr, f"expected the cover, 100%, on stderr, came {done.stderr!r}"


def test_search_that_finds_nothing_is_exit_code_1(tmp_path: Path) -> None:
    """Task 5: no sentence shares a word: nothing on stdout, exit code 1."""
    home = {"TINY_HOME": str(tmp_path)}
    handle = command("put", "-", env=home, input="Red rope.").stdout.strip()
    done = command("search", handle, "tiger", env=home)
    assert (done.returncode, done.stdout) == (1, ""), f"expected 1 and nothing, came {done}"
