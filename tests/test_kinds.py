"""Stage 28: JSON, tables, logs and JSON lines are told from text, and JSON has its own parts."""

import csv
import io
import json
import logging
import random
import time
from typing import Any

import pytest

from helpers import need

SOON = 20.0  # seconds for what takes some hundredths
WORDS = ["alpha", "beta", "größe", "delta", "epsilon", "你好", "eta", "theta", "iota", "kappa"]


def about(text: str) -> str:
    """What the text is, after a look at its parts: end to end they are the text."""
    found = need("agent.outline", "outline")(text)
    said = getattr(found, "about", None)
    assert isinstance(said, str), f"given {text!r:.60}: expected a text about it, came {found!r}"
    assert said.splitlines() == [said], f"given {text!r:.200}: expected a line, came {said!r:.300}"
    pieces = "".join(text[part.start : part.end] for part in found.parts)
    assert pieces == text, f"given {text!r:.200}: the parts are {found.parts!r:.500}"
    return said


def kind(text: str) -> str:
    """`about` without the number of characters and lines that ends it."""
    said, ends = about(text), f", {len(text)} characters, "
    assert ends in said, f"given {text!r:.200}: expected {ends!r} in {said!r:.300}"
    return said.rpartition(ends)[0]


def shown(text: str) -> list[tuple[int, str]]:
    """Place and title of each part."""
    about(text)
    return [(part.start, part.title) for part in need("agent.outline", "outline")(text).parts]


# Task 1: JSON


def test_an_object_has_its_entries_as_parts() -> None:
    """Task 1: at each key a part, titled by the key and what it holds."""
    text = '{"name": "Ä\\n", "tags": [1, 2],\n "none" : null, "more": {"a": {}}, "n": -1.50}'
    got = shown(text)
    titles = [(0, 'name: "Ä\\n"'), (16, "tags: list of 2"), (33, "none: null")]
    titles += [(48, "more: object of 1"), (67, "n: -1.5")]
    assert got == titles, f"given {text}: expected {titles}, came {got}"
    said = about(text)
    assert said == f"JSON, object of 5, {len(text)} characters, 2 lines", f"came {said!r}"


def test_a_list_has_its_entries_as_parts() -> None:
    """Task 1: at each value a part, titled by its number from 0 and what it is."""
    text = ' [ {"a": 1, "b": 2}, "x" , [ ], 3 ] '
    got, wanted = shown(text), [(0, "[0]: object of 2"), (21, '[1]: "x"'), (27, "[2]: list of 0")]
    wanted.append((32, "[3]: 3"))
    assert got == wanted, f"given {text!r}: expected {wanted}, came {got}"
    said = kind(text)
    assert said == "JSON, list of 4", f"given {text!r}: came {said!r}"


def some(chance: random.Random, depth: int) -> Any:
    """A value of any kind, with texts that look like JSON in it."""
    if depth and chance.random() < 0.6:
        values = [some(chance, depth - 1) for _ in range(chance.randrange(4))]
        return values if chance.random() < 0.5 else {key(chance): value for value in values}
    return chance.choice([None, True, 12, -1.5e300, "", 'a"}],{[: \\', "\u2028\n", *WORDS])


def key(chance: random.Random) -> str:
    return " ".join(chance.sample(WORDS, 2)) + chance.choice(["", '"', "}", ": [", "\\", "\n"])


def test_json_by_an_independent_reading() -> None:
    """Task 1: in random JSON, each part begins with the entry that the json module has there."""
    chance, decode, seen = random.Random(28), json.JSONDecoder().raw_decode, 0
    for _ in range(30):
        values = [some(chance, 2) for _ in range(chance.randrange(4, 20))]
        whole: Any = values if chance.random() < 0.5 else {key(chance): one for one in values}
        how: dict[str, Any] = {"ensure_ascii": chance.random() < 0.5}
        how |= chance.choice([{}, {"indent": 2}, {"indent": "\t"}, {"separators": (",", ":")}])
        text = json.dumps(whole, **how)
        entries = list(whole if isinstance(whole, list) else whole.items())
        if len(entries) < 2 or max(len(json.dumps(one, **how)) for one in entries) > len(text) / 2:
            continue  # Task 2
        seen += 1
        places = [place for place, _ in shown(text)]
        assert len(places) == len(entries), f"given {text}: expected {entries}, came {places}"
        for number, place in enumerate(places[1:], 1):
            got, wanted = decode(text, place)[0], entries[number]
            wanted = wanted[0] if isinstance(whole, dict) else wanted
            assert got == wanted, f"given {text}: at {place} expected {wanted!r}, there is {got!r}"
        said, name = kind(text), "object" if isinstance(whole, dict) else "list"
        assert said == f"JSON, {name} of {len(entries)}", f"given {text}: came {said!r}"
    assert seen > 9, f"the test has looked at {seen} texts only"


def test_a_long_list_has_24_parts() -> None:
    """Task 1: JSON in one endless line: every k-th entry, and the title says so."""
    text = json.dumps([{"id": number} for number in range(1000)])
    got = shown(text)
    wanted = [f"[{number}]: object of 1 …" for number in range(0, 1000, 42)]
    assert [title for _, title in got] == wanted, f"expected {wanted}, came {got}"
    wrong = [at for at, title in got[1:] if not text.startswith(f'{{"id": {title[1:-16]}}}', at)]
    assert not wrong, f"there is no such entry at {wrong}"


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("{}", "JSON, object of 0"),
        (" [\n] ", "JSON, list of 0"),
        ('{"a": {}}', "JSON, object of 1"),
        ('{"a":[                              ]}', "JSON, object of 1"),
        ('\ufeff{"a": 1, "b": 2}', "JSON, object of 2"),
        ("12", "text"),
        ('"a text"', "text"),
        ("null", "text"),
        ('{"a": 1', "text"),
        ('{"a": 1} and more', "text"),
        ("{a: 1}", "text"),
        ("[1, 2,]", "text"),
        ("[x] a point", "text"),
        ("[" * 20_000, "text"),
        ('{"a":' * 20_000, "text"),
        ("[" * 20_000 + "]" * 20_000, "text"),
    ],
    ids=lambda text: text[:16],
)
def test_what_is_json_and_what_is_not(text: str, wanted: str) -> None:
    """Task 1: a whole object or list, nothing after it; what Python can't read is text."""
    got = kind(text)
    assert got == wanted, f"given {text!r:.60}: expected {wanted!r}, came {got!r}"


def test_a_title_from_json_is_a_short_line() -> None:
    """Task 1: keys and values may be anything; the rules for titles hold."""
    text = json.dumps({"a\nb": "c" * 500, "d" * 500: [], "": "\t e"}, ensure_ascii=False)
    got = [title for _, title in shown(text)]
    wanted = ['a b: "' + "c" * 54, "d" * 60, ': "\\t e"']
    assert got == wanted, f"given {text:.60}…: expected {wanted}, came {got}"


# Task 2: envelopes


def test_the_entry_that_is_most_of_it_is_opened() -> None:
    """Task 2: of an answer with its data deep in an envelope, the data are the outline."""
    rows = [{"id": number, "name": "row " * 9} for number in range(9)]
    text = json.dumps({"status": "ok", "data": {"count": 9, "items": rows}})
    got = shown(text)
    wanted = [(text.index('{"id": ' + str(number)), f"data.items[{number}]") for number in range(9)]
    wanted = [
        (0, f"{wanted[0][1]}: object of 2"),
        *((a, f"{b}: object of 2") for a, b in wanted[1:]),
    ]
    assert got == wanted, f"given {text:.80}…: expected {wanted}, came {got}"
    said = kind(text)
    assert said == "JSON, object of 2", f"`about` is of the whole: came {said!r}"


def test_three_are_opened_and_no_more() -> None:
    """Task 2: {"a": {"b": {"c": {"d": …}}}}: three times inside, and there are the parts."""
    inside = json.dumps([list(range(100)), list(range(100))])
    titles = []
    for names in ("", "a", "ab", "abc", "abcd"):
        text = "".join(f'{{"{name}": ' for name in names) + inside + "}" * len(names)
        titles.append([title for _, title in shown(text)])
    wanted = [[f"{path}[0]: list of 100", f"{path}[1]: list of 100"] for path in ("", "a", "a.b")]
    assert titles[:3] == wanted, f"none to two: expected {wanted}, came {titles[:3]}"
    wanted = [["a.b.c[0]: list of 100", "a.b.c[1]: list of 100"]]
    assert titles[3:4] == wanted, f"three: expected {wanted}, came {titles[3:4]}"
    assert len(titles[4]) == 1, f"four: expected one part, came {titles[4]}"


@pytest.mark.parametrize(("size", "opened"), [(70, False), (85, True)])
def test_most_of_it_is_80_percent(size: int, opened: bool) -> None:
    """Task 2: an entry is opened if it is a list or object and 80 % of the text."""
    text = json.dumps({"a": ["x" * size] * 5, "b": "y" * (470 - 5 * size)})
    got = [title.partition(":")[0] for _, title in shown(text)]
    wanted = [f"a[{number}]" for number in range(5)] if opened else ["a", "b"]
    assert got == wanted, f"an entry of {size} %: expected {wanted}, came {got}"
    text = json.dumps({"a": "x" * 500, "b": 1})
    got = [title.partition(":")[0] for _, title in shown(text)]
    assert got == ["a", "b"], f"a text of 95 %: expected a and b, came {got}"


def test_what_stands_before_the_entries_is_kept() -> None:
    """Task 2: over 400 characters before the first entry of what was opened are a part."""
    text = json.dumps({"note": "x" * 500, "rows": ["y" * 400] * 9})
    got = shown(text)
    wanted = [(text.index('"yyy') + 404 * number, f"rows[{number}]") for number in range(9)]
    same = [(place, title.partition(":")[0]) for place, title in got[1:]]
    assert same == wanted, f"expected a part, then {wanted}, came {got}"
    assert got[0][1].startswith('{"note": "xxx'), f"expected its beginning, came {got[0]}"


# Task 3: tables


@pytest.mark.parametrize("mark", [",", ";", "\t", "|"])
def test_tables_by_the_csv_module(mark: str) -> None:
    """Task 3: what csv.writer writes is a table, with its columns named; quotes and all."""
    chance, head = random.Random(mark), ["id", f"na{mark}me", "größe", 'a "b"']
    cells = ["1", "", "two words", f"with {mark} in it", 'say "x"', "1.5", "ä"]
    for rows in (3, 30, 2000):
        file = io.StringIO()
        writer = csv.writer(file, delimiter=mark, lineterminator=chance.choice(["\n", "\r\n"]))
        writer.writerows([head, *(chance.choices(cells, k=4) for _ in range(rows))])
        text = file.getvalue()
        for given in (text, "\ufeff" + text):
            got = kind(given)
            wanted = f"table, columns {', '.join(head)}"
            assert got.split() == wanted.split(), (
                f"given {given!r:.200}: expected {wanted!r}, came {got!r}"
            )


def test_a_table_has_even_parts() -> None:
    """Task 3: its parts are those of a text without headings: each begins with a row."""
    text = "id;name\n" + "".join(f"{number};row {number}\n" for number in range(2000))
    got = shown(text)
    assert len(got) == len(text) // 4000, f"{len(text)} characters: came {got}"
    wrong = [(at, title) for at, title in got if at and text[at - 1] != "\n"]
    assert not wrong, f"expected each part to begin with a row, came {wrong}"


@pytest.mark.parametrize(
    "text",
    [
        "a,b\n1,2\n3,4\n",
        "a,b\n1,2\n3,4\n5,6,7\n8,9\n",
        "a,b\n1,2\n\n3,4\n5,6\n",
        "one\ntwo\nthree\nfour\nfive\n",
        "Dear Ada,\nthank you, I am well.\nThe rest, as you know, is long.\nYours\nBob\n",
    ],
    ids=["3 lines", "a row of three", "a blank line", "one column", "a letter"],
)
def test_what_is_no_table(text: str) -> None:
    """Task 3: rows of several columns, the same number in each, four lines at least."""
    got = kind(text)
    assert got == "text", f"given {text!r}: expected 'text', came {got!r}"


def test_the_name_of_a_column_may_be_anything() -> None:
    """Task 3: `about` is one line of it, and all of it is cut to 150 characters."""
    got = kind('"a\nb",c\n1,2\n3,4\n5,6\n')  # also looks that it is one line
    assert got.startswith("table, columns a"), f"expected a table, came {got!r}"
    got = kind(f"{'x' * 200},{'y' * 200}\n1,2\n3,4\n5,6\n")
    assert got.startswith("table, columns xxx"), f"expected a table, came {got!r}"
    assert len(got) <= 150, f"expected 150 characters, came {len(got)}: {got!r}"


# Task 4: logs

TIMES = {
    "ISO": ("2026-05-01T10:00:{:02}Z INFO started", "2026-05-01T10:00:{:02}"),
    "blank": ("2026-05-01 10:00:{:02} started, at last", "2026-05-01 10:00:{:02}"),
    "millis": ("2026-05-01 10:00:{:02}.250 started", "2026-05-01 10:00:{:02}.250"),
    "colon": ("2026-05-01 10:00:{:02}: started", "2026-05-01 10:00:{:02}"),
    "slashes": ("2026/05/01 10:00:{:02} started", "2026/05/01 10:00:{:02}"),
    "brackets": ("[2026-05-01 10:00:{:02}] started", "2026-05-01 10:00:{:02}"),
    "level first": ("INFO  main: [2026-05-01 10:00:{:02}] up", "2026-05-01 10:00:{:02}"),
    "day": ("2026-05-{:02} backup done", "2026-05-{:02}"),
    "syslog": ("Oct 11 22:14:{:02} host sshd[1]: session", "Oct 11 22:14:{:02}"),
    "syslog, one digit": ("Oct  1 22:14:{:02} host kernel: x", "Oct  1 22:14:{:02}"),
    "time": ("10:00:{:02},5 started", "10:00:{:02},5"),
    "web server": ('::1 - ada [10/Oct/2026:13:55:{:02} +0200] "GET /"', "10/Oct/2026:13:55:{:02}"),
}


@pytest.mark.parametrize("form", TIMES)
def test_a_log_says_from_when_to_when(form: str) -> None:
    """Task 4: lines with a time near their beginning are a log; its first and last time."""
    line, stamp = TIMES[form]
    text = "".join(f"{line.format(second)}\n" for second in range(10, 30))
    got, wanted = kind(text), f"log from {stamp.format(10)} to {stamp.format(29)}"
    assert got == wanted, f"given {text[:60]!r}…: expected {wanted!r}, came {got!r}"


def test_the_log_of_python_is_a_log() -> None:
    """Task 4: what Python's logging module writes, commas in the times and all."""
    form = logging.Formatter("%(asctime)s %(levelname)s %(message)s")
    levels = [logging.INFO] * 7 + [logging.ERROR] * 2 + [logging.WARNING, logging.CRITICAL]
    rows = [
        form.format(logging.LogRecord("n", level, "f", 1, "it is so", (), None)) for level in levels
    ]
    got = kind("\n".join(rows))
    wanted = f"log from {rows[0][:23]} to {rows[-1][:23]}, 2 ERROR, 1 WARNING, 1 CRITICAL"
    assert got == wanted, f"given {rows[0]!r}: expected {wanted!r}, came {got!r}"


def test_the_levels_of_the_whole_log_are_counted() -> None:
    """Task 4: whole words in capitals, also past the beginning, in the order in which they come."""
    line = "2026-05-01 10:00:00 {} {}\n"
    text = line.format("INFO", "no error, no ERRORS") * 2000
    text += line.format("WARN", "x") + line.format("ERROR", "FATAL") * 3 + line.format("WARN", "y")
    got, wanted = kind(text).partition(", ")[2], "2 WARN, 3 ERROR, 3 FATAL"
    assert got == wanted, f"expected {wanted!r}, came {got!r}"


def test_a_log_may_have_other_lines() -> None:
    """Task 4: three lines in five with a time are enough; two in five are none."""
    stamped = [f"2026-05-01 10:00:{second:02} INFO started" for second in range(12)]
    for others, wanted in (
        (8, "log from 2026-05-01 10:00:00 to 2026-05-01 10:00:11"),
        (18, "text"),
    ):
        rows = stamped + ["    at some.place(in.code)"] * others
        random.Random(4).shuffle(rows)
        rows = [stamped[0], *rows, "", stamped[-1]]
        got = kind("\n".join(rows))
        assert got == wanted, f"14 times and {others} others: expected {wanted!r}, came {got!r}"


def test_a_log_has_even_parts() -> None:
    """Task 4: each part begins with a line, and is titled by it."""
    text = "".join(f"2026-05-01 10:{n // 60:02}:{n % 60:02} INFO {n}\n" for n in range(3000))
    got = shown(text)
    assert len(got) == min(24, len(text) // 4000), f"{len(text)} characters: came {got}"
    wrong = [(at, title) for at, title in got if text[at:].partition("\n")[0] != title]
    assert not wrong, f"expected each to begin with its line, came {wrong}"


# Task 5: JSON lines


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_json_lines(end: str) -> None:
    """Task 5: an object a line; `about` has the first one, up to 100 characters of it."""
    rows = [json.dumps({"time": f"10:00:{n:02}", "text": "x" * 200}) for n in range(30)]
    for text in (end.join(rows), "\ufeff" + end.join([*rows, ""])):
        got, wanted = kind(text), f"JSON lines, the first {rows[0][:100]}"
        assert got == wanted, f"given {text[:40]!r}…: expected {wanted!r}, came {got!r}"


def test_json_lines_are_no_table() -> None:
    """Task 5: lines with the same keys have the same number of commas."""
    text = '{"id": 1, "name": "a"}\n' * 9
    got, wanted = kind(text), 'JSON lines, the first {"id": 1, "name": "a"}'
    assert got == wanted, f"given {text[:40]!r}…: expected {wanted!r}, came {got!r}"


# Task 6: everything else


def test_a_table_with_dates_is_a_table() -> None:
    """Task 6: the first row has the names, and no time."""
    text = "date,value\n" + "".join(f"2026-05-{day},{day}\n" for day in range(10, 31))
    got = kind(text)
    assert got == "table, columns date, value", f"given {text[:40]!r}…: came {got!r}"


@pytest.mark.parametrize(
    ("text", "wanted", "count"),
    [
        ("<h1>One</h1>\n<p>a, b</p>\n<h1>Two</h1>\n<p>a</p>\n", "HTML", 2),
        ("# One\n\nIt was 10:00:00, or so.\n\n# Two\n\n{a}\n", "text", 2),
        ("One\n\nIt is so.\n\nTwo\n\nIt is so.\n", "text", 2),
        ("", "text", 0),
    ],
    ids=["HTML", "Markdown", "lines alone", "empty"],
)
def test_everything_else_is_as_before(text: str, wanted: str, count: int) -> None:
    """Task 6: what is none of these has the outline of the stage before."""
    got = kind(text)
    assert got == wanted, f"given {text!r}: expected {wanted!r}, came {got!r}"
    parts = shown(text)
    assert len(parts) == count, f"given {text!r}: expected {count} parts, came {parts}"


@pytest.mark.parametrize(
    "text",
    [
        '"' * 50_000,
        'a,"b\n' * 10_000,
        "2026-01-01" * 5000,
        "[" + "1," * 5000 + "1]",
        "a " * 25_000,
    ],
    ids=["quotes", "open quotes", "dates", "JSON", "words"],
)
def test_no_text_takes_long(text: str) -> None:
    """Contract: the time grows with the size, not with its square."""
    began = time.process_time()
    about(text)
    took = time.process_time() - began
    assert took < SOON, f"{len(text)} characters took {took:.1f} s"
