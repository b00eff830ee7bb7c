"""Stage 27: an outline: what a text is, and its parts with their places, from end to end."""

import random
import re
import time
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from helpers import command, need

SOON = 20.0  # seconds for what takes some hundredths
WORDS = ["alpha", "beta", "gamma", "delta", "epsilon", "zeta", "eta", "theta", "iota", "kappa"]


def outline(text: str, **more: int) -> Any:
    try:
        return need("agent.outline", "outline")(text, **more)
    except TypeError as error:
        pytest.fail(f"Contract: outline(text, most): {error}")


def parts(text: str, **more: int) -> list[Any]:
    found = getattr(outline(text, **more), "parts", None)
    assert isinstance(found, list), f"given {text!r:.60}: expected a list of parts, came {found!r}"
    return found


def shown(text: str, **more: int) -> list[tuple[int, str]]:
    """Place and title of each part."""
    return [(part.start, part.title) for part in parts(text, **more)]


def check(text: str, most: int = 24) -> None:
    """A failure unless the parts are the text, laid end to end."""
    given, found = f"given {text!r:.300} and at most {most}", parts(text, most=most)
    pieces = [text[part.start : part.end] for part in found]
    assert "".join(pieces) == text, (
        f"{given}: the parts end to end are another text: {found!r:.500}"
    )
    places = [place for part in found for place in (part.start, part.end)]
    wanted = [0, *(p.end for p in found[:-1] for _ in "se"), len(text)] if text else []
    assert places == wanted, f"{given}: expected each to begin where one ends, came {places}"
    assert all(pieces), f"{given}: there is an empty part: {found!r:.500}"
    assert len(found) <= most, f"{given}: came {len(found)} parts"
    for title in (part.title for part in found):
        assert 1 <= len(title) <= 60, f"{given}: expected 1 to 60 characters, came {title!r}"
        assert title.splitlines() == [title], f"{given}: expected one line, came {title!r}"


# Task 1: the artifact as text


def test_S7_S9_the_text_holds_every_byte(tmp_path: Path) -> None:
    """Task 1: line ends stay, and bytes that are no UTF-8 come back from the text."""
    kept, chance = need("agent.store", "Store")(tmp_path), random.Random(27)
    samples = ["a\r\nb\rc\n\0\u2028".encode(), "äöü€😀".encode() * 9, "ä".encode()[:1], b""]
    for data in [*samples, *(chance.randbytes(chance.randrange(40)) for _ in range(20))]:
        handle = kept.put(data)
        read = getattr(kept, "text", None) or pytest.fail("Contract: a Store has no text yet")
        text = read(handle)
        assert isinstance(text, str), f"given {data!r}: expected a text, came {text!r}"
        back = text.encode("utf-8", "surrogateescape")
        assert back == data, f"given {data!r}: came {text!r}, which is {back!r}"


def test_the_text_of_no_artifact(tmp_path: Path) -> None:
    """Task 1: an unknown handle is the StoreError that `get` raises."""
    kept = need("agent.store", "Store")(tmp_path)
    read = getattr(kept, "text", None) or pytest.fail("Contract: a Store has no text yet")
    for handle in ("art_0123456789ab", "../x"):
        with pytest.raises(need("agent.errors", "StoreError")):
            read(handle)


# Task 2: parts from end to end

PIECES = [
    "# A heading", "## Another ##", "###### Deep", "#no heading", "1. Numbered", "2.1 Deeper",
    "<h1>One</h1>", "<h2 id='x'>T<b>w</b>o</h2>", "<html>", "<!-- -->", "<", "&amp;", "```",
    "Alone", "", "", " ", "\t", "A sentence that ends here. And another one!", "word " * 30,
    "wort" * 90, "。我们在这里。", "\U0001f642\U0001f3f3\ufe0f\u200de\u0301", "\udc80\udcff", "\0",
    "\x1b[31m", "\u2028", "\x85", "\ufeff", "{", "}", '{"a": [1, 2]}', "[", "]", "a,b", "1,2", '"',
    "2024-05-01 10:00:00 INFO x", "10:00:00 ERROR y", "|", "a;b;c",
]  # fmt: skip
ENDS = ["\n", "\n\n", "\r\n", "\r\n\r\n", "\r", "\n \n", "", " "]


def random_text(chance: random.Random) -> str:
    """A text of pieces that look like something; one in ten is long."""
    size = chance.choice([1, 3, 10, 40, 40, 120]) if chance.random() < 0.9 else 900
    some = chance.sample(PIECES, chance.randrange(1, 9))
    ends = chance.sample(ENDS, chance.randrange(1, 4))
    return "".join(chance.choice(some) + chance.choice(ends) for _ in range(size))


@pytest.mark.parametrize("seed", range(6))
def test_S7_the_parts_end_to_end_are_the_text(seed: int) -> None:
    """Task 2: for any text, and any number of parts; 30 at random a seed."""
    chance = random.Random(seed)
    for _ in range(30):
        check(random_text(chance), chance.choice([1, 2, 3, 7, 24, 24, 24, 100]))


def test_S7_the_parts_of_any_characters() -> None:
    """Task 2: for texts of any code points, halves of surrogate pairs among them."""
    chance = random.Random(7)
    ranges = [(0, 0x80), (0, 0x500), (0xD800, 0xE000), (0, 0x110000), (0x4E00, 0x9000)]
    for size in (1, 2, 50, 401, 7999, 8000, 8001, 20_000):
        low, high = chance.choice(ranges)
        check("".join(chr(chance.randrange(low, high)) for _ in range(size)))


@pytest.mark.parametrize(
    "piece", ["a", "ä", "\n", "\r\n", " ", "#", "# ", "# a\n", "\0", "。", "1. a\n"]
)
def test_the_parts_of_one_thing_again_and_again(piece: str) -> None:
    """Task 2: one endless line, blanks alone, headings alone."""
    for times in (1, 2, 25, 5000):
        check(piece * times)


def test_an_empty_text_has_no_parts() -> None:
    """Task 2: nothing has no parts, and is a text all the same."""
    assert parts("") == [], f"expected no parts, came {parts('')}"
    about = outline("").about
    assert "0 characters" in about, f"expected 0 characters, came {about!r}"


def test_what_a_text_is() -> None:
    """Task 2: `about` says in a line what it is, and how many characters and lines it has."""
    given = {
        "äöü€😀 one.\nTwo": "text, 14 characters, 2 lines",
        "\r\none\r\ntwo\n": "text, 11 characters, 3 lines",
        " <!DOCTYPE html>\n<p>x</p>": "HTML, 25 characters, 2 lines",
        "<Body class=x>": "HTML, 14 characters, 1 lines",
        "\ufeff<h1>a</h1>": "HTML, 11 characters, 1 lines",
        "<!-- a page --><p>": "HTML, 18 characters, 1 lines",
        "<pre>, <section>": "text, 16 characters, 1 lines",
        "<hello>, world": "text, 14 characters, 1 lines",
    }
    got = {text: getattr(outline(text), "about", None) for text in given}
    assert got == given, f"expected {given}, came {got}"


def test_S7_places_are_characters() -> None:
    """Task 2: a place counts code points, not bytes: text[start:end] is the part."""
    text = "# äöü€😀\n\n" + "😀" * 9 + "\n\n# zwei\n\nEnde."
    got = [text[part.start : part.end] for part in parts(text)]
    wanted = [text[: text.index("# zwei")], text[text.index("# zwei") :]]
    assert got == wanted, f"expected {wanted}, came {got}"


# Task 3: headings


def starts(text: str, *headings: str) -> list[tuple[int, str]]:
    """What `shown` must be where each of these begins a part, named by itself; the first at 0."""
    places = [text.index(heading) for heading in headings]
    return list(zip([0, *places[1:]], headings, strict=True))


def test_headings_of_markdown() -> None:
    """Task 3: lines of `#`; the title is without them."""
    text = "# One #\n\nText.\n## C#\n#no\n ## no\n\n###\tThree   ###  \n###### Six\n####### no\n"
    got = shown(text)
    wanted = [(0, "One"), (15, "C#"), (33, "Three"), (51, "Six")]
    assert got == wanted, f"given {text!r}: expected {wanted}, came {got}"


def test_markdown_by_an_independent_reading() -> None:
    """Task 3: on random Markdown, what a loop over its lines finds is what the outline has."""
    chance = random.Random(3)
    for _ in range(20):
        rows = []
        for _ in range(chance.randrange(4, 60)):
            heading = chance.random() < 0.3
            marks = "#" * chance.randrange(1, 7) + " " if heading else ""
            rows.append(marks + " ".join(chance.sample(WORDS, 3)) + ("" if heading else "."))
        text, place, found = "# First\n" + "\n".join(rows), 0, []
        for row in text.split("\n"):
            marks, _, title = row.partition(" ")
            if set(marks) == {"#"}:
                found.append((place, title))
            place += len(row) + 1
        if 2 <= len(found) <= 24:
            got = shown(text)
            assert got == found, f"given {text!r}: expected {found}, came {got}"


@pytest.mark.parametrize("fence", ["```", "~~~"])
def test_a_comment_in_a_block_of_code_is_no_heading(fence: str) -> None:
    """Task 3: between fences, `#` begins a comment."""
    block = f"{fence}sh\n# install it\nmake\n\n# run it\nmake run\n{fence}\n"
    text = f"# One\n\n{block}\nText.\n\n# Two\n\n{block}\n# Three\n\nText."
    got = shown(text)
    wanted = [(0, "One"), (text.index("# Two"), "Two"), (text.index("# Three"), "Three")]
    assert got == wanted, f"given {text!r}: expected {wanted}, came {got}"


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_numbered_headings(end: str) -> None:
    """Task 3: a number and a short line that is no sentence; with any line ends."""
    rows = ["1. Purpose", "It is so, as was said", "2 Scope", "1. This is a sentence.", "Text."]
    rows += ["2.1 Who it is for", "3 apples, and so on;", "10. Überall", "4. 5", "5." + "x" * 200]
    text = end.join([*rows, "6. End"])
    got, wanted = shown(text), starts(text, rows[0], rows[2], rows[5], rows[7], "6. End")
    assert got == wanted, f"given {text!r}: expected {wanted}, came {got}"


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_headings_that_stand_alone(end: str) -> None:
    """Task 3: a short line between blank ones that is no sentence, where nothing else is one."""
    rows = ["Purpose", "", "It is so. It was so.", "It will be so.", "", "Who it is for", "  "]
    rows += [
        "A line that stands alone.",
        "",
        "Text",
        "of two lines",
        "",
        "- a point",
        "",
        "Überall",
    ]
    text = end.join([*rows, "", "Text.", "", "y" * 90, "", "Text.", ""])
    got, wanted = shown(text), starts(text, "Purpose", "Who it is for", "Überall")
    assert got == wanted, f"given {text!r}: expected {wanted}, came {got}"


def test_the_first_kind_of_heading_counts() -> None:
    """Task 3: with two of `#`, numbered lines are none; with one, they are."""
    rows = "1. One\n\nText.\n\n2. Two\n\nText.\n\n"
    got = shown("# A\n\n" + rows + "# B\n\n" + rows)
    wanted = [(0, "A"), (5 + len(rows), "B")]
    assert got == wanted, f"expected {wanted}, came {got}"
    got = shown("# A\n\n" + rows)
    wanted = [(0, "1. One"), (20, "2. Two")]
    assert got == wanted, f"expected {wanted}, came {got}"


class Reference(HTMLParser):
    """Where the headings of a page of one line begin, and their texts, by the standard library."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[tuple[int, str]] = []
        self.inside = False

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        if re.fullmatch("h[1-6]", tag):
            self.inside = True
            self.found.append((self.getpos()[1], ""))

    def handle_endtag(self, tag: str) -> None:
        self.inside = self.inside and not re.fullmatch("h[1-6]", tag)

    def handle_data(self, data: str) -> None:
        if self.inside:
            place, title = self.found[-1]
            self.found[-1] = (place, title + data)


def test_html_by_an_independent_reading() -> None:
    """Task 3: on random pages, the headings are those that Python's own parser finds."""
    chance = random.Random(5)
    marks = ["{}", "<b>{}</b>", "<a href='#x'>{}</a> ", "{} &amp; ", "{} &#8364; ", "  {}  "]
    for _ in range(20):
        page = ["<!doctype html><html><body class='a'>"]
        for _ in range(chance.randrange(3, 24)):
            level = chance.choice("123456")
            name = chance.choice(["h", "H"]) + level
            words = "".join(chance.choice(marks).format(w) for w in chance.sample(WORDS, 2))
            more = chance.choice(["", " id=x", ' class="a b"'])
            page.append(f"<{name}{more}>{words}</{name}>")
            page.append(f"<p>{' '.join(WORDS)}.</p><header>no</header>" * chance.randrange(3))
        text, reference = "".join(page), Reference()
        reference.feed(text)
        wanted = [(place, " ".join(title.split())) for place, title in reference.found]
        wanted[0] = (0, wanted[0][1])
        got = [(place, title.replace(" ", "")) for place, title in shown(text)]
        same = [(place, title.replace(" ", "")) for place, title in wanted]
        assert got == same, f"given {text!r}: expected {wanted}, came {got}"


def test_a_byte_order_mark_hides_no_heading() -> None:
    """Task 3: a file that begins with U+FEFF has its first heading all the same."""
    for text, heading in (
        ("# One\n\nText.\n\n# Two\n", "# Two"),
        ("<h1>One</h1><h1>Two</h1>", "<h1>T"),
    ):
        got, wanted = shown("\ufeff" + text), [(0, "One"), (text.index(heading) + 1, "Two")]
        assert got == wanted, f"given {text!r} after a mark: expected {wanted}, came {got}"


def test_a_title_is_a_short_line() -> None:
    """Task 3: white space is one blank, 60 characters are kept, and nothing at all has a name."""
    text = f"<h1>a\n\t b\n</h1><h2>{'word ' * 40}</h2><h3> <br> </h3><h1>&lt;b&gt; &uuml;</h1>"
    got = [title.strip() for _, title in shown(text)]
    wanted = ["a b", ("word " * 12).strip(), "(blank)", "<b> ü"]
    assert got == wanted, f"given {text!r}: expected {wanted}, came {got}"


@pytest.mark.parametrize(("size", "own"), [(300, False), (500, True)])
def test_what_stands_before_the_first_heading(size: int, own: bool) -> None:
    """Task 3: over 400 characters are a part of their own, fewer go with what follows."""
    before = ("Some words\nbefore. " + "more words. " * 40)[: size - 1] + "\n"
    got = shown(before + "# One\n\nText.\n\n# Two\n")
    wanted = [(0, "Some words"), (size, "One")] if own else [(0, "One")]
    wanted.append((size + 14, "Two"))
    assert got == wanted, f"given {size} characters before it: expected {wanted}, came {got}"


# Task 4: levels


def book(*levels: int) -> str:
    """A heading of each level, named by its number, with a sentence under it."""
    rows = (f"{'#' * level} Section {number}\n\nText.\n" for number, level in enumerate(levels))
    return "\n".join(rows)


def titles(text: str, **more: int) -> list[str]:
    return [title for _, title in shown(text, **more)]


def numbers(*them: int, mark: str = "") -> list[str]:
    return [f"Section {number}{mark}" for number in them]


def test_the_deepest_level_that_has_room() -> None:
    """Task 4: levels are taken as long as there are at most 24 headings, not one more."""
    levels = ([1] + [2, 3, 3] * 4) * 5
    levels.remove(2)
    got = titles(book(*levels))
    wanted = numbers(*(i for i, level in enumerate(levels) if level < 3))
    assert got == wanted, f"given 24 headings of levels 1 and 2: expected {wanted}, came {got}"
    levels += [2]
    got, wanted = (
        titles(book(*levels)),
        numbers(*(i for i, level in enumerate(levels) if level < 2)),
    )
    assert got == wanted, f"given 25 headings of levels 1 and 2: expected {wanted}, came {got}"


def test_levels_of_numbers_and_of_html() -> None:
    """Task 4: the level of a number is how many dots it has within, of a tag its digit."""
    rows = "".join(f"{a}. Part\n\n{a}.1 One\n\n{a}.2 Two\n\nText.\n\n" for a in range(1, 10))
    got, wanted = titles(rows), [f"{a}. Part" for a in range(1, 10)]
    assert got == wanted, f"given 9 numbers and 18 with a dot: expected {wanted}, came {got}"
    page = "".join(f"<h2>{a}</h2><h4>x</h4><h4>y</h4>" for a in range(9))
    got, wanted = titles(page), [str(a) for a in range(9)]
    assert got == wanted, f"given 9 h2 and 18 h4: expected {wanted}, came {got}"


def test_one_title_over_many_sections() -> None:
    """Task 4: a level with one heading alone is none to stop at: some of the next stay."""
    got, wanted = titles(book(1, *[2] * 30)), numbers(*range(0, 31, 2), mark=" …")
    assert got == wanted, f"given one title and 30 sections: expected {wanted}, came {got}"


@pytest.mark.parametrize(
    ("count", "most", "step"), [(24, 24, 1), (25, 24, 2), (24, 7, 4), (5, 1, 5)]
)
def test_too_many_headings(count: int, most: int, step: int) -> None:
    """Task 4: every k-th stays, k as small as can be, and its title says that there are more."""
    got = titles(book(*[2] * count), most=most)
    wanted = numbers(*range(0, count, step), mark=" …" if step > 1 else "")
    assert got == wanted, f"{count} headings, at most {most}: expected {wanted}, came {got}"


# Task 5: where there are no headings


def prose(sentences: int, end: str) -> str:
    chance = random.Random(9)
    rows = (" ".join(chance.choices(WORDS, k=chance.randrange(5, 12))) for _ in range(sentences))
    return "".join(f"{row.capitalize()}.{end}" for row in rows)


@pytest.mark.parametrize("most", [24, 5])
def test_parts_of_about_the_same_size(most: int) -> None:
    """Task 5: a part for each 4,000 characters, `most` at the most, cut where a sentence ends."""
    text = prose(1000, " ")
    found, count = parts(text, most=most), min(most, len(text) // 4000)
    assert len(found) == count, f"{len(text)} characters: expected {count} parts, came {len(found)}"
    for number, part in enumerate(found):
        late = part.start - len(text) * number // count
        assert 0 <= late <= 400, f"part {number + 1} begins {late} characters after its share"
        before = text[: part.start][-2:]
        assert before in ("", ". "), f"part {number + 1} begins after {before!r}"
        begins = text[part.start :][:20]
        assert part.title.startswith(begins), f"expected a title of {begins!r}, came {part.title!r}"


@pytest.mark.parametrize("size", [1, 3999, 7999])
def test_a_short_text_is_one_part(size: int) -> None:
    """Task 5: under 8,000 characters without headings there is nothing to divide."""
    got = shown((prose(200, " ") * 9)[:size])
    assert len(got) == 1, f"{size} characters: expected one part, came {got}"


@pytest.mark.parametrize(
    ("text", "ends"),
    [
        (prose(6, " ").strip() + "\n\n" + prose(6, "\n"), "\n\n"),
        (prose(2, " ").strip() + "\r\n \r\n" + prose(2, " ").strip() + "\r\n", "\r\n \r\n"),
        (prose(3, " ").strip() + " and\n", "\n"),
        ("我们在这里，他们在那里。" * 9, "。"),
        ("wort " * 9, " "),
    ],
    ids=["paragraph", "CR LF", "line", "Chinese", "word"],
)
def test_where_a_text_is_cut(text: str, ends: str) -> None:
    """Task 5: after a paragraph if there is one, or else a line, a sentence, a word."""
    assert len(text) < 900, "the test's text is too long"
    long = text * (30_000 // len(text))
    places = [part.start for part in parts(long)][1:]
    assert places, "given 30,000 characters: expected several parts, came one"
    if len(text) < 400:
        wrong = [long[:place][-8:] for place in places if not long[:place].endswith(ends)]
        assert not wrong, f"expected each part to end with {ends!r}, came {wrong}"
    count = len(long) // 4000
    wanted = [cut(long, len(long) * i // count, ends) for i in range(1, count)]
    some = [(a, b) for a, b in zip(wanted, places, strict=True) if a and a != b]
    assert not some, f"expected the first {ends!r} after its share: (expected, came) are {some}"


def cut(text: str, target: int, ends: str) -> int:
    """The first end after a place; 0 if there is none in the next 400 characters."""
    found = text.find(ends, target, target + 400)
    return found + len(ends) if found >= 0 else 0


def test_one_endless_word_is_cut_all_the_same() -> None:
    """Task 5: where nothing ends, at its share."""
    got = [part.start for part in parts("x" * 20_000)]
    assert got == [0, 4000, 8000, 12_000, 16_000], f"expected every 4,000, came {got}"


@pytest.mark.parametrize(
    "text",
    ["<p>" + "<h1 " * 9000, "\n\nab" * 15_000, "1" + " " * 50_000, ("\n" + "\t" * 200) * 250],
    ids=["tags", "lines alone", "blanks", "tabs"],
)
def test_no_text_takes_long(text: str) -> None:
    """Contract: the time grows with the size, not with its square."""
    began = time.process_time()
    check(text)
    took = time.process_time() - began
    assert took < SOON, f"{len(text)} characters took {took:.1f} s"


# Task 6: the command


def test_the_command_prints_the_outline(tmp_path: Path) -> None:
    """Task 6: what it is, then number, place and title of each part."""
    text, env = "# Größe\n\nText.\n\n# Zwei\x1b[31m\n\nText.\n", {"TINY_HOME": str(tmp_path)}
    handle = need("agent.store", "Store")(tmp_path / "artifacts").put(text.encode())
    done = command("outline", handle, env=env)
    assert done.returncode == 0, f"expected exit code 0, came {done}"
    wanted = "text, 35 characters, 7 lines\n  1        0 Größe\n  2       16 Zwei [31m\n"
    assert done.stdout == wanted, f"expected {wanted!r}, came {done.stdout!r}"
    done = command("outline", "art_0123456789ab", env=env)
    assert done.returncode == 1, f"no such artifact: expected exit code 1, came {done}"
    assert done.stdout == "", f"no such artifact: expected nothing on stdout, came {done.stdout!r}"
