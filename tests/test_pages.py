"""Stage 31: reading on, page by page, from a place or in a part, to the last byte."""

from __future__ import annotations

import random
import re
import time
from pathlib import Path
from typing import Any

import pytest

import helpers
from helpers import command, need

HANDLE = "art_0123456789ab"
ROOM = 580  # tokens of a page
LINE = re.compile(
    r"\[(art_[0-9a-f]+): characters (\d+) to (\d+) of (\d+)\. "
    r"(?:It goes on at start=(\d+)|(It ends here))\.\]"
)
HARD = ["a", " word", "Ä", "文", "😀", "e\u0301", "\t", "\n", "\r\n", "\r", "\0", "\u2028", "\x1b["]
HARD += ["\ufeff", "\udc80", "x" * 70, "\n\n", "  ", "👩\u200d🚀"]
LINES = "".join(f"Row {i} says that the river is {i * 7 % 90} metres wide.\n" for i in range(250))
BYTES = [
    b"",
    b"\0",
    b"\r",
    b"\n\n",
    b"a\r\nb\rc",
    b"\xff\xfeU\0T\0F\0",
    b"\xed\xa0\x80 half a character",
    "äöü€😀".encode() * 400,
    ("äöü€😀" * 400).encode()[:-2],
    ("ä" * 900).encode("latin-1"),
    b"line\r\n" * 900 + b"\rlast\r",
    b"\0" * 20_000,
]


def call(name: str, *given: Any) -> Any:
    function = need("agent.expand", name)
    try:
        found = function(*given)
    except TypeError as error:
        pytest.fail(f"Contract: {name}{given!r:.80}: {error}")
    if not isinstance(found, tuple) or len(found) != 2:
        pytest.fail(f"Contract: {name} gives two values, came {found!r:.80}")
    return found


def read_on(text: str, part: int = 0, start: int = 0) -> tuple[int, int, int | None, str]:
    """A page: first character, end, where it goes on (None: it ends here), and its text."""
    said, found = call("read_on", text, HANDLE, part, start)
    line = LINE.fullmatch(said)
    assert line, f"expected a line with handle, places and what follows, came {said!r}"
    assert line[1] == HANDLE, f"expected {HANDLE}, came {said!r}"
    assert int(line[4]) == len(text), f"expected {len(text)} characters in all, came {said!r}"
    return int(line[2]), int(line[3]), int(line[5]) if line[5] else None, found


def read_all(text: str, part: int = 0, start: int = 0) -> list[str]:
    """All pages, each from where the one before said that it goes on."""
    pages, at = [], start
    for _ in range(len(text) + 2):
        first, end, on, found = read_on(text, part, at)
        assert found == text[first:end], f"it says {first} to {end}, and the page is {found!r:.80}"
        pages.append(found)
        if on is None:
            return pages
        assert on == end, f"the page ends at {end}, and goes on at {on}"
        assert on > at, f"expected it to go on behind {at}, came {on}: no page ever ends this"
        at = on
    pytest.fail(f"{text!r:.60}: {len(text) + 2} pages of {len(text)} characters, and no end")


def cut(text: str, room: int = ROOM) -> list[str]:
    """All pages of a text, cut by `page`."""
    pages, at = [], 0
    while at < len(text):
        start, end = call("page", text, (at, len(text)), room)
        assert start == at, f"{text!r:.80}: expected a page from {at} on, came one from {start}"
        assert at < end <= len(text), f"{text!r:.80}, {room}: from {at} on, a page to {end}"
        pages.append(text[at:end])
        at = end
    return pages


def estimate(text: str) -> int:
    tokens: int = need("agent.tokens", "estimate")(text)
    return tokens


def unicode(dice: random.Random, size: int) -> str:
    """Characters from all of Unicode, half characters too, or a few kinds again and again."""
    if dice.random() < 0.3:
        return "".join(chr(dice.randrange(0x110000)) for _ in range(size))
    return "".join(dice.choices(dice.choices(HARD, k=4), k=size))


@pytest.mark.parametrize("seed", range(5))
def test_S7_pages_end_to_end_are_the_text(seed: int) -> None:
    """Task 2: whatever characters a text has, its pages laid end to end are the text."""
    dice = random.Random(seed)
    for _ in range(4):
        text = unicode(dice, dice.choice((0, 1, 2, 700, 4_000)))
        pages = read_all(text)
        assert "".join(pages) == text, f"seed {seed}, {text!r:.80}: {len(pages)} pages differ"


@pytest.mark.parametrize("seed", range(5))
def test_small_pages_are_the_text_too(seed: int) -> None:
    """Task 1: pages of a few tokens: no limit is passed, no character lost, none read twice."""
    dice = random.Random(seed)
    for _ in range(12):
        text, room = unicode(dice, dice.choice((1, 9, 120))), dice.choice((1, 2, 9, 40))
        for found in cut(text, room):
            tokens = estimate(found)
            said = f"{found!r:.80}: {tokens} tokens in a page of {room}"
            assert tokens <= room or len(found) == 1, said


@pytest.mark.parametrize("data", BYTES, ids=range(len(BYTES)))
def test_S9_bytes_come_back_through_the_store(data: bytes, tmp_path: Path) -> None:
    """Task 2: CR LF, a lone CR, NUL and what is no UTF-8 are the bytes that they were."""
    store = need("agent.store", "Store")(tmp_path / "kept")
    text = store.text(store.put(data))
    came = "".join(read_all(text)).encode("utf-8", "surrogateescape")
    assert came == data, f"expected {data!r:.60}, came {came!r:.60}"


def test_S9_random_bytes_come_back_through_the_store(tmp_path: Path) -> None:
    """Task 2: bytes by chance, most of which are no UTF-8; each page's bytes by themselves."""
    store = need("agent.store", "Store")(tmp_path / "kept")
    dice = random.Random(31)
    for size in (1, 7, 100, 3_000):
        data = dice.randbytes(size) + "Größe\r\n".encode() * dice.randrange(90) + b"\xc3"
        pages = read_all(store.text(store.put(data)))
        came = b"".join(page.encode("utf-8", "surrogateescape") for page in pages)
        assert came == data, f"expected {data!r:.60}, came {came!r:.60}"


def test_a_page_has_its_limit() -> None:
    """Task 1: 580 tokens at most by the estimate, and of plain text more than half of that."""
    for text in (
        LINES,
        LINES.replace("\n", " "),
        LINES.replace("river", "Fluß"),
        "传感器" * 900,
    ):
        pages = cut(text)
        tokens = [estimate(page) for page in pages]
        assert max(tokens) <= ROOM, f"expected {ROOM} tokens at most, came {tokens}"
        assert min(tokens[:-1]) > ROOM / 2, f"expected more than {ROOM / 2}, came {tokens}"


def test_a_page_of_blanks_has_9280_characters_at_most() -> None:
    """Task 1: 16 characters for each token, however cheap they are."""
    for text in ("=" * 20_000, "\n" * 20_000):
        sizes = [len(page) for page in cut(text)]
        assert max(sizes) <= 16 * ROOM, f"expected {16 * ROOM} characters at most, came {sizes}"


def test_pages_end_where_lines_end() -> None:
    """Task 1: a page ends with a line's end if one is near, or else behind a blank."""
    for mark, text in (("\n", LINES), (" ", LINES.replace("\n", " "))):
        pages = cut(text)
        assert len(pages) > 2, f"expected pages, came {len(pages)}"
        ends = [page[-1] for page in pages[:-1]]
        assert set(ends) == {mark}, f"expected each page to end with {mark!r}, came {ends}"


def test_S7_a_place_counts_characters() -> None:
    """Task 3: places are code points: page 5 of "äöü€😀" begins where page 4 ended."""
    text = "äöü€😀" * 2_000
    _, at, _, _ = read_on(text, 0, 3_001)
    first, end, _, found = read_on(text, 0, at)
    assert first == at, f"expected a page from {at} on, came {first}"
    assert found == text[at:end], f"expected the characters {at} to {end}, came {found!r:.60}"
    assert "\ufffd" not in found, "expected no broken character"


def test_a_part_is_read_from_its_start_to_its_end() -> None:
    """Task 3: with `part`, the pages are those of that part of the outline."""
    text = "".join(f"# Chapter {i}\n\n{LINES[: 900 * i]}\n" for i in range(1, 8))
    parts = need("agent.outline", "outline")(text).parts
    for number in (1, 2, 7):
        start, end = parts[number - 1].start, parts[number - 1].end
        first, at, _, found = read_on(text, number)
        assert first == start, f"part {number}: expected it from {start} on, came {first}"
        while at < end:
            first, at, _, more = read_on(text, number, at)
            found += more
            assert more, f"part {number}: expected a page from {first} on, came nothing"
        assert found == text[start:end], f"part {number}: {start} to {end}, came {found!r:.60}"


def test_a_place_before_a_part_begins_with_the_part() -> None:
    """Task 3: of a part and an earlier place, the part's start is where it begins."""
    text = f"# One\n\n{LINES}\n# Two\n\n{LINES}"
    part = need("agent.outline", "outline")(text).parts[1]
    for start in (0, 5, part.start):
        first, *_ = read_on(text, 2, start)
        assert first == part.start, f"start={start}: expected {part.start}, came {first}"


@pytest.mark.parametrize("keep", [True, False])
def test_S11_whoever_follows_the_places_comes_to_the_end(keep: bool) -> None:
    """Task 3: behind its part, reading goes on, whether `part` is given again or not."""
    text = "".join(f"# Chapter {i}\n\n{LINES[:3_000]}\n" for i in range(4))
    start = need("agent.outline", "outline")(text).parts[1].start
    if keep:
        pages = read_all(text, 2)
    else:
        _, at, _, page = read_on(text, 2)
        pages = [page, *read_all(text, 0, at)]
    assert "".join(pages) == text[start:], f"expected all from {start} on, in {len(pages)} pages"


@pytest.mark.parametrize(
    ("part", "start", "there"),
    [(-1, 0, "3"), (4, 0, "3"), (99, 0, "3"), (0, -1, "3033"), (1, -5, "3033"), (0, 10**9, "3033")],
)
def test_what_is_not_there_is_an_error(part: int, start: int, there: str) -> None:
    """Task 4: a part or a place that isn't there is a StoreError that says what is there."""
    text = "".join(f"# Chapter {i}\n\n{LINES[:997]}\n" for i in range(3))
    assert len(text) == 3_033, "the test's own text"
    with pytest.raises(need("agent.errors", "StoreError")) as raised:
        call("read_on", text, HANDLE, part, start)
    said = str(raised.value)
    assert there in said, f"part={part}, start={start}: expected the last, {there}, in {said!r}"


def test_the_end_of_a_text_is_no_error() -> None:
    """Task 4: from the last place on there is nothing, and it says so; so has an empty text."""
    for text in ("", "abc", LINES):
        first, end, on, found = read_on(text, 0, len(text))
        expected = (len(text), len(text), None, "")
        assert (first, end, on, found) == expected, f"expected {expected}, came {(first, end, on)}"


def test_a_page_in_the_middle_of_much_is_quick() -> None:
    """Task 1: of 3,000,000 characters, a page looks at no more than it may hold."""
    text = LINES[:10_000] * 300
    began = time.process_time()
    for at in range(0, len(text), 300_000):
        read_on(text, 0, at)
    took = time.process_time() - began
    assert took < 3, f"10 pages: expected about 0.02 s, took {took:.1f}"


def test_S9_expand_writes_the_bytes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Task 5: what `expand` writes on stdout is those bytes and no other, page after page."""

    def text_of(file: Any) -> str:  # no UTF-8, so that a character is a byte
        file.seek(0)
        return str(file.read(), "latin-1")

    data = "Größe\r\nlone \r€ ".encode() * 200 + b"\xff\0\x1b[1m\xed\xa0\x80" * 9 + b"\r\n\r"
    home: dict[str, Any] = {"env": {"TINY_HOME": str(tmp_path)}}
    handle = command("put", "-", input=data, **home).stdout.strip()
    monkeypatch.setattr(helpers, "text_of", text_of)
    came, at, pages = "", "0", 0
    while at:
        done = command("expand", handle, "--start", at, **home)
        assert done.returncode == 0, f"expected exit code 0, got {done.returncode}: {done.stderr}"
        line = LINE.search(done.stderr)
        assert line, f"expected the page's line on stderr, came {done.stderr!r}"
        came, at, pages = came + done.stdout, line[5], pages + 1
        assert pages < 30, f"expected a few pages, came {pages} and no end"
    assert came.encode("latin-1") == data, f"expected {len(data)} bytes in pages, came {len(came)}"
    assert pages > 1, f"expected more than one page, came {pages}"


def test_expand_reads_a_part(tmp_path: Path) -> None:
    """Task 5: `expand HANDLE --part N` writes that part; a part that isn't there is exit code 1."""
    home: dict[str, Any] = {"env": {"TINY_HOME": str(tmp_path)}}
    text = "# One\n\nThe first.\n\n# Two\n\nThe second.\n"
    handle = command("put", "-", input=text, **home).stdout.strip()
    done = command("expand", handle, "--part", "2", **home)
    assert done.stdout == "# Two\n\nThe second.\n", f"expected part 2, came {done.stdout!r}"
    done = command("expand", handle, "--part", "3", **home)
    assert (done.returncode, done.stdout) == (1, ""), f"expected 1 and nothing, came {done}"
