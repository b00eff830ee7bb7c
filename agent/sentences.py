"""Sentences: a text's pieces with their places, and how well each fits a query, by words alone.

Rare words weigh most: BM25 (Robertson and others, 1994). It embeds nothing and asks nobody.
"""

import math
import re
from bisect import bisect_right
from collections import Counter, defaultdict
from dataclasses import dataclass

LONGEST = 300  # characters of a piece: longer sentences and lines are cut
BREAK = re.compile(
    r"(?<=[.!?…])[\"'“”‘’»«)\]]{0,3}\s+|[。！？]+[“”‘’」』）]{0,3}|[\r\n\u2028\u2029]+"
)
WORD = re.compile(r"[^\W_]+")
CJK = re.compile(r"[\u2e80-\ud7ff\uf900-\ufaff]+")
COMMON = 4  # a word that stands in one piece of so many says nothing

Span = tuple[int, int]  # text[start:end]


@dataclass(frozen=True)
class Ranking:
    """The sentences of a text, their scores, and how much of the query the best one holds."""

    spans: list[Span]
    scores: dict[int, float]  # by the sentence's number; those that share no word are left out
    cover: float  # 0 to 1: the weight of the words it shares, by that of all words

    def best(self) -> list[int]:
        """The numbers of the sentences that have a score, best first; ties in the text's order."""
        return sorted(self.scores, key=lambda i: (-self.scores[i], i))


def split(text: str) -> list[Span]:
    """The sentences and lines of a text, without the blanks around them."""
    ends = [found.end() for found in BREAK.finditer(text)]
    spans: list[Span] = []
    for start, end in zip([0, *ends], [*ends, len(text)], strict=True):
        while end - start > LONGEST:
            cut = text.rfind(" ", start + LONGEST // 2, start + LONGEST) + 1 or start + LONGEST
            spans.append((start, cut))
            start = cut
        spans.append((start, end))
    stripped = ((start, end, text[start:end]) for start, end in spans)
    return [
        (end - len(piece.lstrip()), start + len(piece.rstrip()))
        for start, end, piece in stripped
        if piece.strip()
    ]


def terms(query: str) -> list[str]:
    """What is looked for: words without their endings. Example: Sensors hold -> senso, hold

    Chinese and Japanese have no blanks: every two characters are a word.
    """
    found: list[str] = []
    for word in WORD.findall(query.lower()):
        if CJK.match(word):
            found += [word[i : i + 2] for i in range(max(1, len(word) - 1))]
        elif len(word) > 1 or word.isdigit():
            found.append(word if word.isdigit() else word[: max(4, len(word) - 2)])
    return list(dict.fromkeys(found))


def rank(text: str, query: str) -> Ranking:
    """Every sentence of the text against the query. Time grows with the text's length alone."""
    spans = split(text)
    starts, low = [start for start, _ in spans], lowered(text)
    scores, held, weights = defaultdict[int, float](float), defaultdict[int, float](float), 0.0
    usual = sum(end - start for start, end in spans) / max(1, len(spans))
    for term in terms(query):
        counts = count(low, term, starts)
        if len(counts) > max(3, len(spans) // COMMON):
            continue
        weight = math.log(1 + (len(spans) - len(counts) + 0.5) / (len(counts) + 0.5))
        weights += weight
        for i, times in counts.items():
            length = (spans[i][1] - spans[i][0]) / usual
            scores[i] += weight * times * 2.2 / (times + 1.2 * (0.6 + 0.4 * length))
            held[i] += weight
    return Ranking(spans, dict(scores), max(held.values(), default=0.0) / (weights or 1.0))


def lowered(text: str) -> str:
    """The text in small letters, with every character at its place."""
    low = text.lower()
    if len(low) == len(text):
        return low
    return "".join(c if len(c.lower()) > 1 else c.lower() for c in text)  # as İ, which grows


def count(low: str, term: str, starts: list[int]) -> dict[int, int]:
    """How often a term stands in each sentence. A short one begins a word; numbers are whole."""
    # A longer one may stand within another: German writes "wind sensors" as one.
    found, within = Counter[int](), len(term) > 4 or bool(CJK.match(term))
    most, at = len(starts), low.find(term)
    if most > 3 and low.count(term) > 4 * most:
        return dict.fromkeys(range(most), 1)
    while at >= 0:
        before, after = low[at - 1 : at], low[at + len(term) : at + len(term) + 1]
        if term.isdigit():
            fits = not (before.isdigit() or after.isdigit())
        else:
            fits = within or not before.isalnum()
        if fits:
            found[bisect_right(starts, at) - 1] += 1
        at = low.find(term, at + len(term))
    return found
