"""The docs-finder's tools: search and read one folder's .md and .txt files. They write nothing.

A name is looked up in the list of what is there and never joined to a path, so `..`, absolute
paths and NUL lead nowhere. Links, and files that are not plain text, are listed and not read.
Not guarded: a folder that is swapped for a link between listing and reading.
"""

import math
import os
import re
import stat
import unicodedata
from collections import Counter
from collections.abc import Iterator, Sized
from dataclasses import dataclass
from difflib import SequenceMatcher
from itertools import pairwise
from pathlib import Path
from typing import Annotated

HITS = 5
SHOWN = 6  # names of documents in an error
SIZE = 2_000_000  # bytes of a document
PASSAGE = 1_200  # characters
COMMON = re.compile(
    "about|an?d?|are|does?|for|from|have|how|in|is|it|of|on|our|says?|that|the|this|to|we|what|where|"
    "which|who|with|"
    "als|auf|aus|bei|das|dem|den|der|des|die|ein|eine[mnrs]?|fur|gibt|hat|ich|ist|laut|man|mit|"
    "steht|uber|um|uns|unsere[mnrs]?|von|was|welche[mnrs]?|wer|wie|wird|zu|zum|zur"
)

Query = Annotated[
    str, "Words that the passage should hold: the rule's own words, not a whole question"
]
Name = Annotated[str, "The document's name, for example code-of-conduct.md"]
Section = Annotated[str | None, "The heading of the one section to read; leave out for all of it"]


class DocsError(Exception):
    """Why there is no such document or section, and which there are."""


@dataclass(frozen=True)
class Document:
    """One file. Where it cannot be read, `note` says why and `text` is empty."""

    name: str  # hr/leave-policy.md
    text: str
    note: str = ""


@dataclass(frozen=True)
class Passage:
    """A section of a document, or a piece of a long one."""

    document: str
    heading: str  # Travel policy › Hotels
    text: str


def search_docs(query: Query) -> str:
    """Search the company's documents for words; gives the best passages with document and heading.

    Words are compared, not meanings. At most HITS passages come back.
    """
    found = documents()
    ranked = rank(stems(query), [p for document in found for p in split(document)])[:HITS]
    said = f"{count(ranked, 'passage')} for “{query.strip()[:200]}”"
    said += "" if ranked else ". Try other words, or those of the other language."
    unread = [f"{document.name} ({document.note})" for document in found if document.note]
    last = [f"\nNot searched: {', '.join(unread)}"] if unread else []
    return "\n".join([said, *(f"\n[{p.document}: {p.heading}]\n{p.text}" for p in ranked), *last])


def read_doc(name: Name, section: Section = None) -> str:
    """Read one of the company's documents, whole or only one section of it."""
    document = choose(name, documents())
    if not section:
        return document.text or "(the document is empty)"
    lines, heads = document.text.splitlines(), headings(document.text)
    wanted = fold(section.rpartition("›")[2]).strip("# ")
    fits = [h for h in heads if fold(h[2]) == wanted] or [h for h in heads if wanted in fold(h[2])]
    if not (wanted and fits):
        there = "; ".join(text for _, _, text in heads[:30]) or "none"
        raise DocsError(f"{document.name} has no section {section[:80]!r}. It has: {there}")
    start, level, _ = fits[0]
    ends = [line for line, other, _ in heads if line > start and other <= level]
    return "\n".join(lines[start : ends[0] if ends else None])


def list_docs() -> str:
    """List all of the company's documents, each with its title."""
    found = documents()
    lines = [f"- {d.name}: {f'cannot be read, {d.note}' if d.note else title(d)}" for d in found]
    return "\n".join([count(found, "document"), *lines])


def documents() -> list[Document]:
    """Every file of the folder, by name. None is left out because it cannot be read."""
    folder = os.environ.get("TINY_DOCS") or Path(__file__).resolve().parent.parent / "documents"
    root, found = Path(folder), list[Document]()
    if not root.is_dir():
        raise DocsError(f"There is no folder {root}. Set TINY_DOCS to the one with the documents.")

    def unread(error: OSError) -> None:
        found.append(Document(shown(Path(error.filename), root), "", error.strerror or "no folder"))

    for place, folders, files in os.walk(root, onerror=unread):  # follows no links
        links = [name for name in folders if Path(place, name).is_symlink()]
        folders[:] = [name for name in folders if not name.startswith(".")]
        for name in [*files, *links]:
            if not name.startswith("."):
                found.append(read(Path(place, name), shown(Path(place, name), root)))
    return sorted(found, key=lambda document: document.name)


def shown(path: Path, root: Path) -> str:
    """A path as the model sees it; a file's name need not be UTF-8."""
    return os.fsencode(path.relative_to(root).as_posix()).decode("utf-8", "replace")


def read(path: Path, name: str) -> Document:
    """The document in `path`. Neither follows a link nor waits for a pipe."""
    if path.is_symlink():
        return Document(name, "", "a link")
    if path.suffix.lower() not in (".md", ".txt"):
        return Document(name, "", "neither .md nor .txt")
    try:
        with open(os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK), "rb") as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                return Document(name, "", "not a file")
            raw = file.read(SIZE + 1)
    except OSError as error:
        return Document(name, "", error.strerror or "unreadable")
    if len(raw) > SIZE:
        return Document(name, "", f"larger than {SIZE} bytes")
    try:
        return Document(name, raw.decode("utf-8-sig"))
    except UnicodeDecodeError:
        return Document(name, "", "not UTF-8")


def choose(name: str, found: list[Document]) -> Document:
    """The document of that name; case, the ending and the title will do."""
    wanted = fold(name.strip())
    fits = [d for d in found if d.name == name.strip()] or [
        d
        for d in found
        if wanted in (fold(d.name), fold(d.name).rpartition(".")[0], fold(title(d)))
    ]
    near = sorted(found, key=lambda d: -SequenceMatcher(None, wanted, fold(d.name)).ratio())
    names = ", ".join(document.name for document in near[:SHOWN]) or "none"
    names += f", and {len(near) - SHOWN} more (list_docs)" if len(near) > SHOWN else ""
    if len(fits) != 1:
        raise DocsError(f"There is no document {name[:80]!r}. There are: {names}")
    if fits[0].note:
        raise DocsError(f"{fits[0].name} cannot be read: {fits[0].note}. There are: {names}")
    return fits[0]


def title(document: Document) -> str:
    """The first line with words on it, or its start."""
    lines = (line.strip("# ") for line in document.text.splitlines())
    return next(filter(None, lines), "(empty)")[:100]


def headings(text: str) -> list[tuple[int, int, str]]:
    """Line number, level and words of each heading. A # in a block of code is none."""
    found, code = [], False
    for number, line in enumerate(text.splitlines()):
        code ^= line.startswith("```")
        if not code and (match := re.match(r"(#{1,6}) +(.*?)[ #]*$", line)):
            found.append((number, len(match[1]), match[2][:100]))
    return found


def split(document: Document) -> list[Passage]:
    """The document's sections, each in pieces of at most PASSAGE characters."""
    lines, trail, passages = document.text.splitlines(), dict[int, str](), list[Passage]()
    whole = title(document)
    heads = [(0, 7, ""), *headings(document.text), (len(lines), 7, "")]
    for (start, level, words), (end, _, _) in pairwise(heads):
        trail = {above: text for above, text in trail.items() if above < level}
        trail |= {level: words} if words else {}
        text = "\n".join(lines[start + 1 if words else start : end])
        heading = " › ".join(trail.values()) or whole
        passages += [Passage(document.name, heading, piece) for piece in pieces(text)]
    return passages


def pieces(text: str) -> Iterator[str]:
    """Cut where a paragraph ends, else where a line, else where a word does."""
    start = 0
    while start < len(text):
        end = start + PASSAGE
        if end < len(text):
            cuts = [text.rfind(mark, start, end) for mark in ("\n\n", "\n", " ")]
            end = next((cut for cut in cuts if cut > start), end)
        if piece := text[start:end].strip():
            yield piece
        start = end


def rank(wanted: list[str], passages: list[Passage]) -> list[Passage]:
    """Passages that hold a wanted word, best first, by BM25 (Robertson and Zaragoza 2009)."""
    bags = []
    for p in passages:
        own = p.heading.rpartition("›")[2]  # counts three times
        bags.append(Counter(stems(f"{p.document} {p.heading} {own} {own} {p.text}")))
    sizes = [bag.total() for bag in bags]
    usual = sum(sizes) / max(len(sizes), 1)
    vocabulary = set().union(*bags)
    scores = [0.0] * len(bags)
    for term in set(wanted):
        near = {word: nearness(term, word) for word in vocabulary}
        near = {word: weight for word, weight in near.items() if weight}
        counts = [sum(bag[word] * near[word] for word in near.keys() & bag.keys()) for bag in bags]
        holding = sum(map(bool, counts))
        rarity = math.log(1 + (len(bags) - holding + 0.5) / (holding + 0.5))
        for i, times in enumerate(counts):
            scores[i] += rarity * times * 2.2 / (times + 1.2 * (0.6 + 0.4 * sizes[i] / usual))
    best = sorted(range(len(bags)), key=lambda i: -scores[i])
    return [passages[i] for i in best if scores[i] > 0]


def nearness(term: str, word: str) -> float:
    """1 for the same word, less for a part of a compound. Example: bahn, bahnfahrt -> 0.5"""
    if term == word:
        return 1.0
    short, long = sorted((term, word), key=len)
    return 0.5 if len(short) >= 4 and (long.startswith(short) or long.endswith(short)) else 0.0


def stems(text: str) -> list[str]:
    """Words without what they end in. Example: Einkäufe, policies -> einkauf, polic"""
    words = [word for word in re.findall(r"\w+", fold(text)) if not COMMON.fullmatch(word)]
    ending = re.compile(r"(?<=\w{4})(ungen|ung|ing|ern|e[dmnrs]?|[iny])$|(?<=\w{3})s$")
    for i, word in enumerate(words):
        while (shorter := ending.sub("", word)) != word:
            word = shorter
        words[i] = word
    return words


def fold(text: str) -> str:
    """Text for comparing; ä, ae and a are one. Example: Kündigung, kuendigung -> kundigung"""
    parts = unicodedata.normalize("NFKD", text).casefold()
    bare = "".join(part for part in parts if not unicodedata.combining(part))
    return re.sub("([aou])e", r"\1", bare)


def count(found: Sized, noun: str) -> str:
    return f"{len(found)} {noun}{'' if len(found) == 1 else 's'}"
