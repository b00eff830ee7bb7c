"""What of the long page a digest keeps, and what two expands bring back.

    python -m workshop.measure.digests [--seed N] [--keep]

Asked are the questions that come with the handbook of a seed, 44 facts from 2 % to 98 % of its
depth: in the page's words, in other words, and in German. A fact counts as found when its sentence
stands in what an agent would have read: the digest for that question; an expand by the question;
then an expand by the question within the part that most of the first one's passages are from. That
is mechanical: no model chooses better words. Beside them stands the text cut off after 800 tokens.
Tokens are counted with o200k. The page is the text that the web-reader's fetch_page gives.

An expand may embed every sentence of the page, which takes a minute. The vectors of the two pages
that the tests measure are kept in a file, with 7 bits a number. `--keep` writes it anew, and embeds
only what it does not hold. Another seed is embedded as it is asked for.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from hashlib import sha256
from itertools import accumulate, chain
from pathlib import Path
from zipfile import BadZipFile

import numpy as np
from numpy.typing import NDArray

from agent.digest import MOST, digest
from agent.expand import expand
from agent.index import Embedder
from agent.outline import outline
from workshop.errors import USAGE, Problem
from workshop.practice import embeddings
from workshop.practice.web import handbook
from workshop.tests.modules import load

from .tokens import o200k

SEEDS = (handbook.SEED, 20270601)  # the frozen page, and one that nothing was built with
KINDS = {"question": "the page's words", "paraphrase": "other words", "german": "German"}
URL = "http://northwind.example/handbook"
HANDLE = "art_0123456789ab"
VECTORS = Path(__file__).resolve().parent / "handbook_vectors.npz"
LEVELS = 63  # steps on either side of the mean: 7 bits
PLACE = re.compile(r"^@(\d+) ", re.M)

Array = NDArray[np.float32]
Embed = Callable[[Sequence[str]], Array]


@dataclass(frozen=True)
class Row:
    """The questions of one kind, and how many of their facts were found after each step."""

    kind: str
    questions: int
    tokens: int  # of the longest digest
    digest: int
    one: int  # after an expand, counted with those before
    two: int
    truncated: int  # in the page's first 800 tokens


def measure(seed: int, embed: Embed, every: int = 1) -> list[Row]:
    """A row for each kind of question. `every` 2 asks every second of those that may embed."""
    encode = o200k()
    facts, text = handbook.make(seed).facts, page(seed)
    beginning = cut(text, MOST)
    rows = []
    for kind, label in KINDS.items():
        asked = facts[:: 1 if kind == "question" else every]
        longest, found = 0, Counter[int]()
        for fact in asked:
            query: str = getattr(fact, kind)
            said = digest(text, query, HANDLE)
            longest = max(longest, len(encode(said)))
            steps = enumerate(chain([said], expands(text, query, embed)))  # until it is found
            found[next((step for step, given in steps if fact.sentence in given), 3)] += 1
        after = list(accumulate(found[step] for step in range(3)))
        truncated = sum(fact.sentence in beginning for fact in asked)
        rows.append(Row(label, len(asked), longest, after[0], after[1], after[2], truncated))
    return rows


def expands(text: str, query: str, embed: Embed) -> Iterator[str]:
    """What two expands by one query give: of the whole text, and of the part it is most about."""
    embedder = Embedder(embeddings.MODEL, embeddings.QUERY, embeddings.PASSAGE, embed)
    first = expand(text, HANDLE, query=query, embedder=embedder, seconds=3600)
    yield first
    places = [int(place) for place in PLACE.findall(first)]
    parts = outline(text).parts
    held = [sum(part.start <= place < part.end for place in places) for part in parts]
    most = held.index(max(held)) + 1
    yield expand(text, HANDLE, query=query, part=most, embedder=embedder, seconds=3600)


@lru_cache(maxsize=4)
def page(seed: int) -> str:
    """The handbook of a seed as fetch_page gives it."""
    web = load("registry/tools/web_reader.py")
    seen = web.Seen(web.Page(URL, "text/html", handbook.make(seed).html, cut=False))
    return f"title: {seen.title}\naddress: {URL}\n\n{seen.text()}"


def cut(text: str, most: int) -> str:
    """The longest beginning of a text that has at most so many tokens, give or take one."""
    encode = o200k()
    low, high = 0, 12 * most
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if len(encode(text[:middle])) <= most else (low, middle - 1)
    return text[:low]


# Vectors


def live(texts: Sequence[str]) -> Array:
    """Vectors of the practice endpoint's model, unasked for over HTTP."""
    e5 = embeddings.load()
    return np.array([np.frombuffer(e5.embed(text)[0], dtype="<f4") for text in texts])


def kept(texts: Sequence[str]) -> Array:
    """Vectors from the file alone. Problem if one is not there: the pages or their cuts changed."""
    known = read(VECTORS)
    try:
        return np.array([known[key(text)] for text in texts], dtype=np.float32)
    except KeyError:
        missing = [text for text in texts if key(text) not in known]
        said = f"{VECTORS.name} lacks {len(missing)} of {len(texts)} texts, as {missing[0][:60]!r}"
        raise Problem(said, "write it anew: python -m workshop.measure.digests --keep") from None


def keep(path: Path = VECTORS) -> tuple[int, int]:
    """Write the file for both pages: how many texts it holds, and how many of them were embedded.

    The texts are those that the measurement asks for, so that none is kept which is not needed.
    """
    known, wanted = read(path), dict[str, Array]()
    fresh = 0

    def embed(texts: Sequence[str]) -> Array:
        nonlocal fresh
        for text in texts:
            if text not in wanted:
                fresh += key(text) not in known
                wanted[text] = known[key(text)] if key(text) in known else live([text])[0]
        return np.array([wanted[text] for text in texts])

    for seed in SEEDS:
        measure(seed, embed)
    vectors = {key(text): vector for text, vector in wanted.items()}
    if vectors.keys() != known.keys():  # written again, the old ones would drift by a bit
        write(path, vectors)
    return len(wanted), fresh


def key(text: str) -> int:
    return int.from_bytes(sha256(text.encode()).digest()[:8], "little")


@lru_cache(maxsize=1)
def read(path: Path) -> dict[int, Array]:
    """The vectors by the key of their text; none where the file is missing or damaged."""
    try:
        with np.load(path, allow_pickle=False) as file:
            keys, steps, mean = file["keys"].tolist(), file["steps"], file["mean"]
            vectors = mean + steps.astype(np.float32) * file["sizes"].astype(np.float32)
    except (OSError, ValueError, LookupError, EOFError, BadZipFile):
        return {}
    return dict(zip(keys, vectors, strict=True))


def write(path: Path, known: dict[int, Array]) -> None:
    """The same vectors give the same bytes. Each is kept as its distance from the mean, in steps.

    What the vectors of e5 have in common is most of their length, and would take most of the bits.
    """
    ordered = dict(sorted(known.items()))
    vectors = np.array(list(ordered.values()), dtype=np.float32)
    mean = vectors.mean(axis=0)
    sizes = (abs(vectors - mean).max(axis=1, keepdims=True) / LEVELS).astype(np.float16)
    steps = np.rint((vectors - mean) / sizes.astype(np.float32)).astype(np.int8)
    keys = np.array(list(ordered), dtype=np.uint64)
    np.savez_compressed(path, keys=keys, steps=steps, sizes=sizes, mean=mean)
    read.cache_clear()


# The command


def table(rows: list[Row]) -> str:
    lines = ["asked in          questions  digest  +1 expand  +2 expands  cut off  longest digest"]
    lines += [
        f"{row.kind:17}{row.questions:10}{row.digest:8}{row.one:11}{row.two:12}{row.truncated:9}"
        f"{row.tokens:9} tokens"
        for row in rows
    ]
    return "\n".join(lines)


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m workshop.measure.digests",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--seed", type=int, action="append", help="of a handbook; may be repeated")
    parser.add_argument("--keep", action="store_true", help="write the kept vectors anew first")
    args = parser.parse_args(argv)
    try:
        if args.keep and args.seed:
            raise Problem("--keep takes no --seed", "it keeps the vectors of two pages", USAGE)
        if args.keep:
            texts, fresh = keep()
            size = VECTORS.stat().st_size
            print(f"{VECTORS.name}: {texts} texts, {fresh} embedded now, {size} bytes")
        for seed in args.seed or SEEDS:
            tokens = len(o200k()(page(seed)))
            print(f"handbook of seed {seed}, {tokens} tokens")
            print(table(measure(seed, kept if seed in SEEDS else remembered())))
    except Problem as problem:
        print(problem, file=sys.stderr)
        return problem.exit_code
    return 0


def remembered() -> Embed:
    """Live vectors, each text embedded once."""
    known: dict[str, Array] = {}

    def embed(texts: Sequence[str]) -> Array:
        known.update({text: live([text])[0] for text in texts if text not in known})
        return np.array([known[text] for text in texts])

    return embed


if __name__ == "__main__":
    sys.exit(main())
