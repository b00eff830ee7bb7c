"""Stage 30: the digest, a long text in at most 800 tokens, word for word and with places."""

from __future__ import annotations

import json
import random
import re
import time
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import pytest

from helpers import command, need

HANDLE = "art_0123456789ab"
HEAD = re.compile(rf"\[A digest of (\d+) tokens\. {HANDLE} holds the whole: (.*)\]")
ROOM = 640  # four fifths of 800


def digest(text: str, request: str = "", *most: int) -> str:
    function = need("agent.digest", "digest")
    try:
        said = function(text, request, HANDLE, *most)
    except TypeError as error:
        pytest.fail(f"Contract: digest takes text, request, handle and most: {error}")
    if not isinstance(said, str):
        pytest.fail(f"Contract: digest gives a text, came {said!r}")
    return said


def estimate(text: str) -> int:
    tokens: int = need("agent.tokens", "estimate")(text)
    return tokens


@dataclass
class Said:
    """What the lines of a digest say."""

    tokens: int
    about: str
    parts: list[tuple[int, int, str]]  # number, place, title
    sentences: list[tuple[int, str]]
    left: int


def read(said: str) -> Said:
    """A digest's lines, held to their form."""
    lines = said.split("\n")
    head = HEAD.fullmatch(lines[0])
    assert head, f"expected a head that names tokens and handle, came {lines[0]!r}"
    assert HANDLE in lines[1], f"expected a word on how to read more, came {lines[1]!r}"
    assert "expand" in lines[1], f"expected a word on how to read more, came {lines[1]!r}"
    assert lines[2] == "Parts, with their places:", f"expected the parts third, came {lines[2]!r}"
    middle = "Sentences, with their places:"
    assert middle in lines, f"expected a line {middle!r}, came {said!r}"
    at = lines.index(middle)
    parts, sentences = [], []
    for line in lines[3:at]:
        part = re.fullmatch(r"(\d+)\. @(\d+) (.*)", line)
        assert part, f"expected number, place and title of a part, came {line!r}"
        parts.append((int(part[1]), int(part[2]), part[3]))
    for line in lines[at + 1 : -1]:
        found = re.fullmatch(r"@(\d+) (.*)", line, re.DOTALL)
        assert found, f"expected place and sentence, came {line!r}"
        sentences.append((int(found[1]), found[2]))
    left = re.fullmatch(r"\[(\d+) characters are left out here\.\]", lines[-1])
    assert left, f"expected what was left out in the last line, came {lines[-1]!r}"
    return Said(int(head[1]), head[2], parts, sentences, int(left[1]))


def prose(fact: str, filler: str, headings: bool = True) -> str:
    """Five chapters, with a fact in the middle of the fourth."""
    chapters = []
    for i in range(5):
        lines = [filler.format(i * 20 + j) for j in range(20)]
        lines.insert(10, fact if i == 3 else filler.format(900 + i))
        chapters.append((f"# Chapter {i + 1}\n\n" if headings else "") + "\n".join(lines))
    return "\n\n".join(chapters)


EN = "The sensor of house {0} is checked twice a year, and box {0} holds its papers."
DE = "Der Fühler von Haus {0} wird zweimal im Jahr geprüft, Mappe {0} enthält die Papiere."
ZH = "第{0}号房屋的传感器每年检查两次，相关文件保存在第{0}号柜子里面。"
FACT = "The anemometer stands 7.5 metres high."
LOG = "2026-02-03 10:{0:02}:00 INFO job {1} is done, and all of its rows are written"
KINDS: dict[str, tuple[str, str, str]] = {  # the text, the request, what the digest must hold
    "prose": (prose(FACT, EN), "How high is the anemometer?", FACT),
    "CR LF": (prose(FACT, EN).replace("\n", "\r\n"), "How high is the anemometer?", FACT),
    "German": (
        prose("Der Windmesser steht 7,5 Meter hoch.", DE),
        "Wie hoch stehen Windmesser?",
        "Der Windmesser steht 7,5 Meter hoch.",
    ),
    "Chinese": (
        prose("风速计装在七米五的高处。", ZH, headings=False).replace("\n", ""),
        "风速计有多高？",
        "风速计装在七米五的高处。",
    ),
    "HTML": (
        "<!doctype html><body>"
        + "".join(
            f"<h2>Chapter {i}</h2>\n<p>{EN.format(i)}</p>\n<p>{FACT if i == 61 else 'So.'}</p>\n"
            for i in range(90)
        ),
        "How high is the anemometer?",
        f"<p>{FACT}</p>",
    ),
    "JSON": (
        json.dumps(
            [{"id": i, "name": f"part {i}", "note": "as usual"} for i in range(200)]
            + [{"id": 200, "name": "anemometer", "high": 7.5}],
            indent=1,
        ),
        "the name of the anemometer",
        '"name": "anemometer",',
    ),
    "CSV": (
        "id,name,high\n"
        + "".join(
            f"{i},{'anemometer' if i == 417 else f'part {i}'},{i * 7 % 90}\n" for i in range(600)
        ),
        "anemometer high",
        "417,anemometer,39",
    ),
    "log": (
        "\n".join(
            LOG.format(i % 60, i) if i != 201 else "2026-02-03 13:21:00 ERROR job 201 has no disk"
            for i in range(300)
        ),
        "why is there no report?",
        "2026-02-03 13:21:00 ERROR job 201 has no disk",
    ),
    "one line": (
        prose(FACT, EN, headings=False).replace("\n", " "),
        "How high is the anemometer?",
        FACT,
    ),
    "no marks": ("lorem ipsum " * 900 + "anemometer " + "dolor sit " * 600, "anemometer", ""),
    "no UTF-8": (
        prose(FACT, EN.replace("house", "h\udcfcuse")),
        "How high is the anemometer?",
        FACT,
    ),
}
ALL = pytest.mark.parametrize("kind", KINDS)


@lru_cache
def made(kind: str) -> str:
    text, request, _ = KINDS[kind]
    return digest(text, request)


@ALL
def test_every_quoted_sentence_stands_in_the_text_at_its_place(kind: str) -> None:
    """Task 3: what a digest quotes is the text's own, to the letter, in its order."""
    text = KINDS[kind][0].encode("utf-8", "replace").decode()
    sentences = read(made(kind)).sentences
    assert sentences, f"{kind}: expected sentences, came none"
    for place, sentence in sentences:
        there = text[place : place + len(sentence)]
        assert there == sentence, f"{kind}: @{place} has {there!r}, the digest {sentence!r}"
        ends = re.search("[\r\n\u2028\u2029]", sentence)
        assert not ends, f"{kind}: expected a sentence in one line, came {sentence!r}"
    places = [place for place, _ in sentences]
    assert places == sorted(places), f"{kind}: expected the text's order, came {places}"


@ALL
def test_the_request_finds_its_sentence(kind: str) -> None:
    """Task 3: the sentence that fits the request is quoted, whatever kind of text it is."""
    _, request, fact = KINDS[kind]
    sentences = [sentence for _, sentence in read(made(kind)).sentences]
    if fact:
        assert fact in sentences, f"{kind}, {request!r}: expected {fact!r}, came {sentences}"
    else:
        assert any(request in sentence for sentence in sentences), f"{kind}: came {sentences}"


@ALL
def test_a_digest_states_its_own_tokens_and_has_at_most_640(kind: str) -> None:
    """Task 1: the number in its first line is the estimate of the whole, under four fifths."""
    said = made(kind)
    stated, counted = read(said).tokens, estimate(said)
    assert stated == counted, f"{kind}: it says {stated} tokens, its estimate is {counted}"
    assert counted <= ROOM, f"{kind}: expected {ROOM} tokens at most, came {counted}"


@ALL
def test_parts_have_their_numbers_and_places(kind: str) -> None:
    """Task 2: each part shown is one of the outline's, with its number, place and title."""
    found = need("agent.outline", "outline")(KINDS[kind][0])
    said = read(made(kind))
    about = found.about.encode("utf-8", "replace").decode()
    assert said.about.startswith(about), f"{kind}: expected {about!r}, came {said.about!r}"
    assert said.parts, f"{kind}: expected parts, came none"
    for number, place, title in said.parts:
        part = found.parts[number - 1]
        name = part.title.encode("utf-8", "replace").decode()
        assert place == part.start, f"{kind}, part {number}: expected @{part.start}, came @{place}"
        assert title, f"{kind}, part {number}: expected {name!r}, came no title"
        assert name.startswith(title), f"{kind}, part {number}: expected {name!r}, came {title!r}"


@ALL
def test_what_is_left_out_is_counted(kind: str) -> None:
    """Task 1: the last line says how many characters of the text are not quoted."""
    said = read(made(kind))
    expected = len(KINDS[kind][0]) - sum(len(sentence) for _, sentence in said.sentences)
    assert said.left == expected, f"{kind}: expected {expected}, came {said.left}"


def test_all_parts_are_there_where_they_have_room() -> None:
    """Task 2: five short headings are five lines, with their whole titles."""
    came = [(number, title) for number, _, title in read(made("prose")).parts]
    expected = [(i, f"Chapter {i}") for i in range(1, 6)]
    assert came == expected, f"expected {expected}, came {came}"


def test_the_parts_take_a_third_at_most() -> None:
    """Task 2: 24 long titles are shortened, or some left out, so that sentences have room."""
    for title in (
        "What is to be said on the care of each of them",
        "传感器的安装维护检查与更换办法说明",
    ):
        chapters = [f"# {title} {i}\n\n{EN.format(i)}\n{EN.format(i + 30)}" for i in range(24)]
        text = "\n\n".join([*chapters, FACT])
        said = read(digest(text, "anemometer"))
        lines = "\n".join(f"{number}. @{place} {name}" for number, place, name in said.parts)
        took = estimate(lines)
        assert took <= ROOM // 3, f"expected {ROOM // 3} tokens at most, came {took}: {lines}"
        assert len(said.parts) >= 6, f"expected at least every fourth part, came {said.parts}"
        assert FACT in dict(said.sentences).values(), f"expected {FACT!r}, came {said.sentences}"


def test_without_a_request_each_part_has_a_word() -> None:
    """Task 3: the first longer sentence of each part, not its heading, stands for it."""
    text = KINDS["prose"][0]
    said = read(digest(text))
    for number, (_, start, title) in enumerate(said.parts):
        end = (*[place for _, place, _ in said.parts], len(text))[number + 1]
        first = text.index("The sensor", start)
        held = [place for place, _ in said.sentences if start <= place < end]
        assert first in held, f"{title}: expected the sentence at {first}, came those at {held}"


def test_what_fits_the_request_comes_before_the_rest() -> None:
    """Task 3: with more fitting sentences than room, nothing else is quoted."""
    fitting = "The anemometer of mast {} turns in the wind and is read by hour {}."
    text = prose(FACT, EN) + "\n" + "\n".join(fitting.format(i, i + 7) for i in range(25))
    sentences = [sentence for _, sentence in read(digest(text, "anemometer")).sentences]
    others = [sentence for sentence in sentences if "anemometer" not in sentence]
    held = len(sentences) - len(others)
    assert held >= 12, f"expected sentences on the anemometer, came {sentences}"


def test_the_same_sentence_is_quoted_once() -> None:
    """Task 3: a line that comes again and again costs its tokens once."""
    text = "The anemometer is out of order.\n" * 9 + KINDS["prose"][0]
    sentences = [sentence for _, sentence in read(digest(text, "anemometer order")).sentences]
    count = sentences.count("The anemometer is out of order.")
    assert count == 1, f"expected it once, came {count} times"


@pytest.mark.parametrize("level", ["FATAL", "CRITICAL", "ERROR", "WARNING", "WARN"])
def test_the_alarms_of_a_log_are_there_unasked(level: str) -> None:
    """Task 4: a log's errors and warnings are quoted, whatever the request is."""
    alarm = f"2026-02-03 11:57:00 {level} something is odd"
    lines = [LOG.format(i % 60, i) for i in range(200)]
    lines[127] = alarm
    sentences = [sentence for _, sentence in read(digest("\n".join(lines))).sentences]
    assert alarm in sentences, f"expected {alarm!r}, came {sentences}"


def test_a_short_text_is_passed_through() -> None:
    """Task 5: what is no longer than its digest would be comes back as it is."""
    for text in ("", "x", "Two lines.\r\nAnd a half: \r", FACT * 40, "传感器" * 100, '{"a": [1]}'):
        came = digest(text, "anemometer")
        assert came == text, f"expected the text itself, came {came!r}"
    came = digest("half \udcfc of one")
    assert came == "half ? of one", f"expected what a request can carry, came {came!r}"


def test_the_limit_of_a_short_text() -> None:
    """Task 5: 640 tokens are passed through, one more is a digest."""
    text = FACT + " The end." * 190
    while estimate(f"{text} The end.") <= ROOM:
        text += " The end."
    assert digest(text) == text, f"expected {estimate(text)} tokens to come back as they are"
    said = read(digest(f"{text} The end."))
    assert said.tokens <= ROOM, f"expected a digest of {ROOM} tokens, came {said.tokens}"


def test_another_limit_holds() -> None:
    """Contract: `most` is another number of tokens, and four fifths of it are used."""
    for most in (400, 1_500):
        said = digest(*KINDS["log"][:2], most)
        counted = estimate(said)
        assert counted <= most * 0.8, f"most={most}: expected {most * 0.8}, came {counted}"
        assert read(said).tokens == counted, f"most={most}: it says {read(said).tokens}"


def test_a_line_of_digits_is_no_long_head() -> None:
    """Task 1: a log whose first line is a number of 5,000 digits keeps to the limit too."""
    text = ("2024-01-01 " + "1" * 5_000 + "\n") * 4
    said = digest(text, "1")
    assert estimate(said) <= ROOM, f"expected {ROOM} tokens at most, came {estimate(said)}"
    assert read(said).tokens == estimate(said), f"it says {read(said).tokens} tokens"


@pytest.mark.parametrize("seed", range(6))
def test_S7_no_text_and_no_request_is_an_error(seed: int) -> None:
    """Contract: any characters at all: the limit, the count and the places hold."""
    dice = random.Random(seed)
    pool = [
        "a",
        "Ä ",
        "文",
        "😀",
        "\t",
        "\n",
        "\r\n",
        "\r",
        "\0",
        ". ",
        "İ",
        "\udc80",
        "{",
        "9",
        "#",
    ]
    words = dice.choices(pool, k=5)
    text = "".join(dice.choices(words, k=4_000)) + "ab cd " * 400
    request = text[:50]
    said = digest(text, request)
    held = text.encode("utf-8", "replace").decode()
    found = read(said)
    assert found.tokens == estimate(said) <= ROOM, f"{words}: {found.tokens}, {estimate(said)}"
    for place, sentence in found.sentences:
        assert held.startswith(sentence, place), f"{words}: {sentence!r} is not at {place}"


def test_the_digest_of_a_long_text_is_quick() -> None:
    """Contract: 600,000 characters: the time grows with the length and no faster."""
    text = "\n".join(EN.format(i) for i in range(7_000))
    began = time.process_time()
    said = read(digest(text, "house 6417"))
    took = time.process_time() - began
    assert took < 4, f"expected about 0.1 s, took {took:.1f}"
    sentences = [sentence for _, sentence in said.sentences]
    assert EN.format(6417) in sentences, f"expected house 6417, came {sentences}"
    tokens = re.search(r"about (\d+) tokens", said.about)
    assert tokens, f"expected the tokens of the whole, came {said.about!r}"
    once = estimate(f"{EN.format(6417)}\n") * 7_000
    assert once * 0.8 < int(tokens[1]) < once * 1.2, f"expected about {once}, came {tokens[1]}"


def test_the_command_prints_a_digest(tmp_path: Path) -> None:
    """Task 6: `digest HANDLE [REQUEST]` prints it for the artifact, by the store's handle."""
    text, request, fact = KINDS["prose"]
    home: dict[str, Any] = {"env": {"TINY_HOME": str(tmp_path)}}
    handle = command("put", "-", input=text, **home).stdout.strip()
    done = command("digest", handle, request, **home)
    assert done.returncode == 0, f"expected exit code 0, got {done.returncode}: {done.stderr}"
    assert fact in done.stdout, f"expected {fact!r}, came {done.stdout!r}"
    assert handle in done.stdout.splitlines()[0], f"expected {handle} first, came {done.stdout!r}"
    done = command("digest", handle, **home)
    assert done.returncode == 0, f"without a request: {done.returncode}, {done.stderr}"
    assert done.stdout.startswith("[A digest of"), f"without a request: {done.stdout!r}"
    done = command("digest", "art_" + "0" * 12, **home)
    assert done.returncode == 1, f"no such artifact: expected exit code 1, got {done.returncode}"
