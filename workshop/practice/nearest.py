"""The sentence of a stored text that answers best: by shared words, and by vectors where they fail.

A digest and the passages that were read after it are some 100 sentences. All of them are compared.
"""

from __future__ import annotations

from collections.abc import Sequence

from .mind import Mind, weigh
from .results import Found, Sentence
from .words import content, is_german

MOST = 120  # sentences; 64 new ones are a second of one core
PLAIN, CLEAR = 0.7, 0.15  # so much of the request's words, so much more than any other: it is it
SHARE = 0.08  # what all of the request's words are worth, beside a similarity of 0.75 to 0.95
GOOD, AHEAD = 0.92, 0.05  # answers well: so near, or so far before the next
FAR, POOR, ALIKE = 0.79, 0.87, 0.012  # no answer: far, or not near and not ahead of a next


def nearest(asked: str, question: str, pieces: Sequence[Sentence], mind: Mind) -> Found:
    """The best sentence, and one or two that are as good. `cover`: 1 is well answered, 0 poorly.

    `asked` is the question without what names the place where it is answered.
    """
    seen: dict[str, Sentence] = {}
    for piece in pieces:
        if not piece.heading and content(piece.text):
            seen.setdefault(piece.text, piece)
    pieces = list(seen.values())
    if not pieces:
        return Found([], 0.0, 0.0)
    shared = weigh(asked, [piece.text for piece in pieces])
    order = sorted(range(len(pieces)), key=lambda place: (-shared[place], place))[:MOST]
    first = shared[order[0]]
    if first >= PLAIN and (len(order) == 1 or first - shared[order[1]] >= CLEAR):
        return Found([pieces[order[0]]], 1.0, 0.0)
    texts = [pieces[place].text for place in order]
    alike = mind.to_texts(question, texts)
    if len(content(asked)) < len(content(question)):
        alike = [
            (one + other) / 2 for one, other in zip(alike, mind.to_texts(asked, texts), strict=True)
        ]
    scores = {place: like + SHARE * shared[place] for place, like in zip(order, alike, strict=True)}
    order = sorted(order, key=lambda place: (-scores[place], place))
    top = scores[order[0]]
    ahead = top - scores[order[1]] if len(order) > 1 else AHEAD
    # In another language few words are shared; in the same, a sentence without them is another's.
    told = " ".join(piece.text for piece in pieces[:20])
    same = is_german(question) == is_german(told) and shared[order[0]] < 0.6
    good = top >= GOOD or (ahead >= AHEAD and top >= 0.83 and not same)
    poor = top < FAR or (top < POOR and ahead < ALIKE)
    best = [pieces[place] for place in order[:3] if scores[place] >= top - ALIKE]
    return Found(best, 1.0 if good else 0.0 if poor else 0.4, 0.0)
