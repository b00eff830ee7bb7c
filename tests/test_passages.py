"""Stage 32: the passages of an artifact that fit a query, by its words, or by vectors."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from helpers import Loopback, Reply, Request, command, embeddings, need

HANDLE = "art_0123456789ab"
MOST = 640  # tokens of an answer
Vector = Callable[[str], Sequence[float]]

# Twelve sentences of the same length. None shares a word with another.
NAMES = ["ape", "bee", "cow", "dog", "elk", "fox", "gnu", "hen", "ibex", "jay", "kea", "lynx"]
TEXT = "\n".join(f"{name.upper()}{'q' * (60 - len(name))}{i:02}." for i, name in enumerate(NAMES))
OTHER = "wording that nothing shares"


class Model:
    """An embedder that notes the calls it had. What `vector` raises, it raises."""

    def __init__(self, vector: Vector) -> None:
        self.vector, self.calls = vector, list[list[str]]()

    def __call__(self, texts: Sequence[str]) -> np.ndarray:
        self.calls.append(list(texts))
        return np.array([self.vector(text) for text in texts], dtype=np.float32)

    @property
    def asked(self) -> list[str]:
        return [text for call in self.calls for text in call]

    @property
    def embedder(self) -> Any:
        return need("agent.index", "Embedder")("fake", "q: ", "p: ", self)


def expand(text: str, query: str = "", **more: Any) -> str:
    """What `expand` gives, or a failure in the lesson's words."""
    function = need("agent.expand", "expand")
    try:
        said = function(text, more.pop("handle", HANDLE), query, **more)
    except TypeError as error:
        pytest.fail(f"Contract: expand takes a text, a handle, a query and {list(more)}: {error}")
    except need("agent.errors", "StoreError"):
        raise
    except Exception as error:
        pytest.fail(
            f"Contract: expand raises StoreError alone; came {type(error).__name__}: {error}"
        )
    assert isinstance(said, str), f"Contract: expand gives a text, came {said!r}"
    return said


def places(said: str, text: str) -> list[int]:
    """Where the passages of an answer stand. Each has to be in the text, at that place."""
    head, *lines = said.split("\n")
    form = rf"\[{HANDLE}: (\d+) passages? of {len(text)} characters, with places\.(.*)\]"
    match = re.fullmatch(form, head)
    assert match, f"expected a first line as in the Contract, came {head!r}"
    found = []
    for line in lines:
        place = re.match(r"@(\d+) ", line)
        assert place, f"expected '@', a place, a blank and a sentence, came {line!r}"
        at, passage = int(place[1]), line[place.end() :]
        assert text.startswith(passage, at), f"the text has no {passage!r} at {at}"
        found.append(at)
    assert int(match[1]) == len(found), f"the first line says {match[1]}, but {len(found)} came"
    return found


def note(said: str) -> str:
    """What the first line says after its first sentence."""
    return said.partition("\n")[0].partition("with places.")[2].removesuffix("]")


def lines_of(text: str, *numbers: int) -> list[int]:
    """The places of these lines."""
    starts = [0, *(found.end() for found in re.finditer("\n", text))]
    return [starts[number] for number in numbers]


def never(text: str) -> Sequence[float]:
    raise AssertionError(f"{text[:60]!r} was embedded, though words were enough")


def towards(*best: str) -> Vector:
    """A vector for each text: the query's, and the nearer to it the earlier a word is in `best`."""

    def vector(text: str) -> Sequence[float]:
        if text.startswith("q: "):
            return [1.0, 0.0, 0.0]
        rank = next((i for i, word in enumerate(best) if word.lower() in text.lower()), None)
        if rank is None:
            return [-1.0, 1.0, (len(text) + ord(text[-2])) % 7 / 10]
        return [1.0, 0.0, rank / 10]

    return vector


# Task 1: by words


def test_the_sentence_with_the_words_comes_with_its_place() -> None:
    """Task 1: what holds the query's words comes back as it stands in the text."""
    text = "First line.\nThe seal on a new mast clamp is violet.\nLast line.\n" + "Another.\n" * 5
    said = expand(text, "Which colour is the seal of the mast clamp?")
    assert "@12 The seal on a new mast clamp is violet." in said.splitlines(), f"came {said!r}"
    places(said, text)


def test_the_best_two_come_with_their_neighbours() -> None:
    """Task 1: the sentences before and after the best two come too, others do not."""
    text = "\n".join(f"{'filler' * 3} number{i:02} alone." for i in range(40))
    text = text.replace("number10 alone", "zebra yacht quartz").replace(
        "number20 alone", "zebra yacht"
    )
    text = text.replace("number30 alone", "zebra filler")
    got = places(expand(text, "zebra yacht quartz"), text)
    wanted = lines_of(text, 9, 10, 11, 19, 20, 21, 30)
    assert got == wanted, f"expected lines 9 to 11, 19 to 21 and 30 at {wanted}, came {got}"


def test_the_best_comes_alone_where_its_neighbours_do_not_fit() -> None:
    """Task 1: three long pieces have over 640 tokens; the one that fits the query comes."""
    text = "".join(chr(0x4E00 + i * 37 % 5_000) for i in range(9_000))
    text = f"{text[:4_000]}传感器密封件的颜色是紫色的{text[4_000:]}"
    said = expand(text, "传感器密封件的颜色")
    assert "颜色是紫色的" in said, f"expected the piece with the words, came {said[:100]!r}"


def test_a_neighbour_is_not_looked_for_outside_of_the_text() -> None:
    """Task 1: the first sentence has none before it, the last none after it."""
    got = places(expand(TEXT, f"{TEXT.split('.')[0]} {TEXT.split()[-1]}"), TEXT)
    assert got == lines_of(TEXT, 0, 1, 10, 11), f"expected the first and last two, came {got}"


def test_the_passages_stand_in_the_order_of_the_text() -> None:
    """Task 1: the best one comes where the text has it, not first."""
    text = "\n".join(["zebra one.", *["other line here."] * 8, "zebra yacht two.", "The end."])
    got = places(expand(text, "yacht zebra"), text)
    assert got == sorted(got), f"expected places that rise, came {got}"
    assert got[0] == 0, f"expected the first line first, came {got}"


def test_an_answer_is_filled_and_no_longer_than_640_tokens() -> None:
    """Task 1: passages come until there is no room: at most 640 tokens, the first line included."""
    estimate = need("agent.tokens", "estimate")
    for sentence in (
        "The zebra number {} eats grass.",
        "斑马{}在吃草" + "很" * 200,
        "zebra {} " + "eats " * 50,
    ):
        text = "\n".join(sentence.replace("{}", str(i)) for i in range(200))
        text += "\n" + "Something else.\n" * 900
        said = expand(text, "zebra 斑马")
        size = estimate(said)
        assert size <= MOST, f"given lines as {sentence[:20]!r}: expected 640 at most, came {size}"
        assert size >= MOST / 2, (
            f"given 300 fitting lines: expected most of 640 tokens, came {size}"
        )


def test_a_sentence_that_stands_often_comes_once() -> None:
    """Task 1: copies of one sentence do not fill the answer."""
    lines = [f"Page {i} was fetched by somebody." for i in range(300)]
    lines[40:40] = ["Connection to database refused."] * 60
    lines.append("The database gave up, since its disk was full.")
    text = "\n".join(lines)
    said = expand(text, "connection database refused disk")
    count = said.count("database refused.")
    assert "its disk was full." in said, f"expected the last line too, came {said[:300]!r}"
    assert count <= 5, f"expected the copies once, and as neighbours, came {count}"


def test_it_is_read_within_a_part_or_from_a_place() -> None:
    """Task 1: with `part` or `start`, all passages are from there; a place is one of the text."""
    head = "".join(f"# Part {n}\n\nzebra {n} one.\nzebra {n} two.\n\n" for n in range(1, 6))
    text = head + "other things. " * 40
    outline = need("agent.outline", "outline")(text)
    part = outline.parts[2]
    got = places(expand(text, "zebra", part=3), text)
    assert len(got) >= 2, f"expected both lines of the part, came {got}"
    assert all(part.start <= at < part.end for at in got), f"of {part}: came {got}"
    start = text.index("zebra 4 two")
    got = places(expand(text, "zebra", start=start), text)
    assert got[0] == start, f"from {start} on: came {got}"


def test_a_part_that_is_not_there_is_an_error() -> None:
    """Contract: with a query too, no such part and no such place are a StoreError."""
    error = need("agent.errors", "StoreError")
    for more in ({"part": 99}, {"part": -1}, {"start": len(TEXT) + 1}, {"start": -1}):
        with pytest.raises(error):
            expand(TEXT, "zebra", **more)


def test_without_a_query_it_is_read_on() -> None:
    """Contract: a blank query gives the line and the text of `read_on`."""
    text = "A line of the text.\n" * 500
    for query in ("", " \n"):
        for more in ({}, {"start": 4000}, {"part": 2}):
            wanted = "\n".join(need("agent.expand", "read_on")(text, HANDLE, **more))
            said = expand(text, query, **more)
            assert said == wanted, f"given {more}: expected {wanted[:80]!r}, came {said[:80]!r}"


@pytest.mark.parametrize("text", ["", " \n\t", "\0", "x", "\udc80 half", "no match at all " * 9])
def test_no_text_is_an_error(text: str) -> None:
    """Contract: any text gives an answer that can be sent."""
    for model in (None, Model(lambda text: [1.0, 2.0]).embedder):
        said = expand(text, "zebra", embedder=model)
        said.encode()
        assert said.startswith(f"[{HANDLE}: "), f"given {text!r}: came {said!r}"


def test_a_long_query_takes_no_longer() -> None:
    """Contract: of a query the first 500 characters count, so no query holds a run up."""
    text = ". ".join(f"word{i % 4000} other{i % 3000} third{i % 2000}" for i in range(6_000))
    query = " ".join(f"word{i} other{i}" for i in range(1_500))
    before = time.process_time()
    expand(text, query)
    took = time.process_time() - before
    assert took < 1.5, f"given 3,000 words on {len(text)} characters: {took:.1f} s of CPU time"


# Task 2: by vectors


def test_nothing_is_embedded_where_words_are_enough() -> None:
    """Task 2: if a sentence holds half of the query's weight, no endpoint is asked."""
    query = f"{TEXT.split()[3]} wherever"
    got = places(expand(TEXT, query, embedder=Model(never).embedder), TEXT)
    assert got == lines_of(TEXT, 2, 3, 4), f"expected line 3 and its neighbours, came {got}"


def test_the_query_is_ranked_by_vectors_where_words_fail() -> None:
    """Task 2: a paraphrase finds its sentence, and those of its kind, by their vectors."""
    text = "\n".join(f"Number {i} tells {'very ' * 12}little of {i * 7}." for i in range(200))
    text = text.replace("Number 77 ", "Whale 77 ").replace("Number 150 ", "Whale 150 ")
    model = Model(towards("Whale 150", "Whale 77"))
    said = expand(text, OTHER, embedder=model.embedder)
    got = set(places(said, text))
    wanted = set(lines_of(text, 76, 77, 78, 149, 150, 151))
    assert wanted <= got, f"expected both and their neighbours, {wanted}, came {sorted(got)}"
    assert len(got) < 60, f"expected as many as fit, came {len(got)} of 200"
    assert not note(said), f"expected no note, came {note(said)!r}"


def test_half_of_the_words_is_enough() -> None:
    """Task 2: half of the query's words in a sentence are enough, a quarter is not."""
    lines = [f"plain line with number{i}." for i in range(40)]
    lines[7] = "azure bison crimson dolphin."
    lines[20] = "ember falcon."
    text, model = "\n".join(lines), Model(towards("number33"))
    expand(text, "azure bison unseen absent", embedder=model.embedder)
    assert not model.calls, "given half of the words: expected no call of the embedder"
    said = expand(text, "azure missing unseen absent", embedder=model.embedder)
    assert model.calls, "given a quarter of the words: expected vectors"
    at = lines_of(text, 33)[0]
    assert at in places(said, text), f"expected the nearest vector at {at}, came {said!r}"


def test_E15_queries_and_passages_have_their_prefixes() -> None:
    """Task 2: the query is embedded with the query's prefix, sentences with the passages'."""
    model = Model(towards("cow"))
    expand(TEXT, OTHER, embedder=model.embedder)
    queries = [text for text in model.asked if not text.startswith("p: ")]
    assert queries == [f"q: {OTHER}"], f"expected the query alone without 'p: ', came {queries}"
    lost = {f"p: {line}" for line in TEXT.splitlines()} - set(model.asked)
    assert not lost, f"expected every sentence, came none of {sorted(lost)[:3]}"


def test_what_all_sentences_share_is_taken_off() -> None:
    """Task 2: the ranking is that of cosines once the sentences' mean is taken off everything."""
    lines = [f"{i:02} {'thing with some words ' * 12}end." for i in range(40)]  # 8 or so fit
    near, far = range(5, 17), 30  # far is nearest to the query, near have its direction
    query, vectors = [10.0, 3.0, 0.0], [[10.0, -0.3, 0.1 * (-1) ** i] for i in range(40)]
    for i in near:
        vectors[i] = [10.0, 0.5, 0.01 * (i % 5)]
    vectors[far] = [10.0, 3.0, 1.6]
    known = {f"p: {line}": vector for line, vector in zip(lines, vectors, strict=True)}
    model = Model(lambda text: known.get(text, query))
    got = places(expand("\n".join(lines), OTHER, embedder=model.embedder), "\n".join(lines))

    rows, sought = unit(vectors), unit([query])[0]
    assert max(range(40), key=lambda i: dot(rows[i], sought)) == far, "this test is wrong"
    mean = [sum(column) / 40 for column in zip(*rows, strict=True)]
    rows = unit([[x - m for x, m in zip(row, mean, strict=True)] for row in rows])
    sought = [x - m for x, m in zip(sought, mean, strict=True)]
    best = sorted(range(40), key=lambda i: -dot(rows[i], sought))[:3]
    assert set(best) <= set(near), "this test is wrong"
    starts = lines_of("\n".join(lines), *best, far)
    assert set(starts[:3]) <= set(got), f"expected lines {best}, came the places {got}"
    assert starts[3] not in got, f"line {far} is nearest only as long as the mean is in it"


def dot(one: Sequence[float], other: Sequence[float]) -> float:
    return sum(a * b for a, b in zip(one, other, strict=True))


def unit(vectors: list[list[float]]) -> list[list[float]]:
    return [[x / dot(vector, vector) ** 0.5 for x in vector] for vector in vectors]


def test_a_text_of_over_5000_sentences_is_not_embedded() -> None:
    """Contract: with more than 5,000 sentences, words alone rank."""
    text = "\n".join(f"a{i}" for i in range(5_001))
    got = places(expand(text, OTHER, embedder=Model(never).embedder), text)
    assert got == [], f"given words that nothing shares: expected no passage, came {got}"


def test_a_query_of_odd_characters_can_be_embedded() -> None:
    """Contract: half a character or a NUL in a query or a text never reaches the endpoint."""
    model = Model(lambda text: [1.0, len(text)])
    expand("One \ud83d.\nTwo \0.\nThree.", "\ud83d\0 query", embedder=model.embedder)
    assert model.calls, "expected the query to be embedded"
    odd = [
        text
        for text in model.asked
        if "\0" in text or text != text.encode("utf-8", "replace").decode()
    ]
    assert not odd, f"expected texts that can be sent, came {odd}"


# Task 3: an endpoint that fails


def failing(error: str, said: str) -> Any:
    def vector(text: str) -> Sequence[float]:
        raise need("agent.errors", error)(said)

    return Model(vector).embedder


PARTLY = "\n".join(["Only zebra here.", *(f"Plain line number{i}." for i in range(50))])
FOUR = "zebra missing unseen absent"  # a quarter of its words stands in PARTLY


@pytest.mark.parametrize("error", ["EndpointError", "LateError", "VectorError"])
def test_words_alone_rank_where_the_endpoint_fails(error: str) -> None:
    """Task 3: what words find comes back all the same, and the first line says why no more."""
    said = expand(PARTLY, FOUR, embedder=failing(error, "the lines are down"))
    got = places(said, PARTLY)
    assert got == lines_of(PARTLY, 0, 1), f"expected line 0 and the one after it, came {got}"
    wanted = " By their words alone: the lines are down"
    assert note(said).startswith(wanted), f"expected {wanted!r}, came {note(said)!r}"


@pytest.mark.parametrize("reason", ["语" * 400, "http://" + "long" * 200])
def test_a_long_reason_makes_no_long_answer(reason: str) -> None:
    """Task 3: the reason has at most 200 characters, and its tokens count."""
    text = "\n".join(f"The zebra{i} of the {i} plain" for i in range(300))
    text += "\nzebra.\n" + "\n".join(f"zebra and {i}" for i in range(60))
    for handle in (HANDLE, f"art_{'0' * 64}"):
        said = expand(text, FOUR, embedder=failing("EndpointError", reason), handle=handle)
        size = need("agent.tokens", "estimate")(said)
        assert size <= MOST, f"given a reason of {len(reason)}: expected 640 tokens, came {size}"
        assert reason[:7] in said, f"expected the reason, came {said[:200]!r}"


def test_B7_an_endpoint_that_is_too_slow_is_left() -> None:
    """Task 3: after `seconds`, words alone rank, and the first line gives a reason."""
    stop = threading.Event()

    def vector(text: str) -> Sequence[float]:
        stop.wait(5)
        return [1.0, 2.0]

    began = time.monotonic()
    try:
        said = expand(PARTLY, FOUR, embedder=Model(vector).embedder, seconds=0.05)
    finally:
        stop.set()
    took = time.monotonic() - began
    assert took < 4, f"given 0.05 s: expected an answer soon after, it took {took:.1f} s"
    assert places(said, PARTLY) == lines_of(PARTLY, 0, 1), f"expected the words', came {said!r}"
    assert re.match(" By their words alone: .{3}", note(said)), f"no reason in {note(said)!r}"


def test_E3_vectors_of_two_sizes_are_no_crash() -> None:
    """Task 3: an endpoint whose vectors cannot be compared has failed."""
    model = Model(lambda text: [1.0, 2.0, 3.0] if text.startswith("q: ") else [1.0, 2.0])
    said = expand(PARTLY, FOUR, embedder=model.embedder)
    assert note(said).startswith(" By their words alone: "), f"expected a note, came {said!r}"


# Task 4: vectors that are kept


def test_a_second_query_embeds_itself_and_the_canary(tmp_path: Path) -> None:
    """Task 4: with a cache, the sentences are embedded once, whatever is asked of them."""
    models = [Model(towards("cow")), Model(towards("fox"))]
    for model in models:
        kept = need("agent.cache", "cached")(model.embedder, tmp_path)
        expand(TEXT, f"{OTHER} {len(models)}", embedder=kept)
    sentences = {f"p: {line}" for line in TEXT.splitlines()}
    assert sentences <= set(models[0].asked), f"expected all at first, came {models[0].asked}"
    again = [text for text in models[1].asked if not text.startswith("q: ")]
    assert len(again) <= 1, f"expected the canary at most, came {again}"
    assert not sentences & set(again), f"embedded again: {again}"


def test_what_there_was_time_for_is_kept(tmp_path: Path) -> None:
    """Task 4: sentences are embedded 256 at a time, and a batch that is done is not asked again."""
    text = "\n".join(f"Line number {i} of the text." for i in range(400))
    cached, error = need("agent.cache", "cached"), need("agent.errors", "EndpointError")

    def vector(said: str) -> Sequence[float]:
        if said == "p: Line number 300 of the text.":
            raise error("enough for today")
        return [1.0, len(said) % 7, hash(said) % 5]

    first, second = Model(vector), Model(lambda said: [1.0, len(said) % 7, hash(said) % 5])
    assert note(expand(text, OTHER, embedder=cached(first.embedder, tmp_path))), "expected a note"
    assert not note(expand(text, OTHER, embedder=cached(second.embedder, tmp_path)))
    again = [said for said in second.asked if said.startswith("p: Line number 2")]
    done = [said for said in again if int(said.split()[3]) < 256]
    assert not done, f"given a call that broke off at 300: {len(done)} of the first 256 again"
    assert "p: Line number 399 of the text." in second.asked, "expected the rest to be asked"


# Task 5: the command


def put(text: str, env: dict[str, str]) -> str:
    done = command("put", "-", input=text, env=env)
    assert done.returncode == 0, f"put: {done.stderr}"
    return done.stdout.strip()


def test_the_command_finds_passages_and_keeps_vectors(tmp_path: Path) -> None:
    """Task 5: `expand --query` prints the answer; a second query finds the sentences embedded."""
    with Loopback(embeddings(towards("hen"))) as server:
        env = {**server.env, "TINY_HOME": str(tmp_path)}
        handle = put(TEXT, env)
        first = command("expand", handle, "--query", OTHER, env=env)
        asked = len(server.requests)
        second = command("expand", handle, "--query", f"more {OTHER}", env=env)
    assert first.returncode == 0, f"expected exit code 0, came {first.returncode}: {first.stderr}"
    head = f"[{handle}: 12 passages of {len(TEXT)} characters, with places.]"
    assert first.stdout.startswith(f"{head}\n"), f"expected {head}, came {first.stdout[:120]!r}"
    assert f"@{lines_of(TEXT, 7)[0]} HENq" in first.stdout, f"no hen in {first.stdout!r}"
    assert second.stdout == first.stdout, f"expected the same again, came {second.stdout!r}"
    texts = [text for sent in server.requests[asked:] for text in sent.json["input"]]
    assert f"q: more {OTHER}" in texts, f"expected the query, came {texts}"
    assert len(texts) <= 2, f"expected the query and the canary, came {texts}"


def test_the_command_reads_a_part_of_an_artifact(tmp_path: Path) -> None:
    """Task 5: `--part` and `--start` hold with a query, and no such part is exit code 1."""
    text = "".join(f"# Part {n}\n\nzebra {n}.\n\nMore of {n}.\n\n" for n in range(1, 6))
    env = {
        "TINY_HOME": str(tmp_path),
        "TINY_BASE_URL": "http://127.0.0.1:9",
        "TINY_EMBED_MODEL": "m",
    }
    handle = put(text, env)
    start = str(text.index("More of 2"))
    query = ("expand", handle, "--query", "zebra more", "--part", "2", "--start", start)
    done = command(*query, env=env)
    assert f"@{start} More of 2." in done.stdout, f"expected part 2, came {done}"
    assert "zebra" not in done.stdout, f"from {start} on: came {done.stdout!r}"
    assert "More of 3." not in done.stdout, f"expected part 2 alone, came {done.stdout!r}"
    done = command("expand", handle, "--query", "zebra", "--part", "9", env=env)
    assert done.returncode == 1, f"no part 9: expected exit code 1, came {done.returncode}"
    assert done.stderr.startswith("error: "), f"expected an error, came {done.stderr!r}"


def test_C31_the_command_does_without_the_endpoint(tmp_path: Path) -> None:
    """Task 5: an endpoint that answers 500 is a note in the first line, and exit code 0."""

    def broken(request: Request) -> Reply:
        return 500, {"error": {"message": "out of order"}}

    with Loopback(broken) as server:
        env = {**server.env, "TINY_HOME": str(tmp_path)}
        handle = put(PARTLY, env)
        done = command("expand", handle, "--query", FOUR, env=env)
    assert done.returncode == 0, f"expected exit code 0, came {done.returncode}: {done.stderr}"
    assert "By their words alone: " in done.stdout.partition("\n")[0], f"came {done.stdout!r}"
    assert "out of order" in done.stdout, f"expected what the endpoint said, came {done.stdout!r}"
    assert "@0 Only zebra here." in done.stdout, (
        f"expected the words' passage, came {done.stdout!r}"
    )
