"""The digest: a long text in at most 800 tokens. What it says stands in the text, word for word.

It embeds nothing, asks no model, and keeps nothing: the text itself stays in the store.
"""

from bisect import bisect_left

from agent.outline import Outline, outline
from agent.sentences import Span, rank
from agent.tokens import estimate

MOST = 800  # tokens of a digest
SURE = 0.8  # no estimate was more than a fifth too low
LEAD = 40  # characters of a sentence that can stand for its part
SAMPLE, SAMPLES = 2_000, 20
ALARMS = " fatal critical error warn"
MORE = 'To read more: expand("{}", query=…), or part= a number of a part, or start= a place.'


def digest(text: str, request: str, handle: str, most: int = MOST) -> str:
    """What the text is, its parts, and the sentences that fit the request, each with its place.

    A text that is no longer than its digest would be comes back as it is.
    """
    room = int(most * SURE)
    if len(text) < 16 * room and estimate(text) <= room:
        return clean(text)
    found = outline(text)
    size = f"about {roughly(text)} tokens"
    head = f"[A digest of 000 tokens. {handle} holds the whole: {found.about}, {size}.]"
    lines = [head, f"[{MORE.format(handle)}]", "Parts, with their places:"]
    lines += parts(found, room // 3)
    room -= estimate("\n".join(lines)) + 30
    chosen = choose(text, found, request, room)
    lines += ["Sentences, with their places:"]
    lines += [f"@{start} {text[start:end]}" for start, end in chosen]
    left = len(text) - sum(end - start for start, end in chosen)
    said = clean("\n".join([*lines, f"[{left} characters are left out here.]"]))
    count = estimate(said)
    return said.replace("000", str(count + (count > 999)), 1)  # four digits are a token more


def parts(found: Outline, room: int) -> list[str]:
    """The outline in so many tokens: with fewer characters of each title, or with fewer parts."""
    for size, step in ((60, 1), (30, 1), (12, 1), (30, 2), (12, 2), (12, 4), (8, 8)):
        lines = [
            f"{number}. @{part.start} {part.title[:size]}"
            for number, part in enumerate(found.parts, 1)
            if number % step == 1 % step
        ]
        if estimate("\n".join(lines)) <= room:
            return lines
    return []


def choose(text: str, found: Outline, request: str, room: int) -> list[Span]:
    """The spans that fit the request best, then the first of each part, for so many tokens."""
    ranking = rank(text, request + (ALARMS if found.about.startswith("log") else ""))
    spans, seen, chosen = ranking.spans, set[str](), list[Span]()
    starts = [start for start, _ in spans]
    firsts = (bisect_left(starts, part.start) for part in found.parts)
    leads = [
        next((i for i in range(first, first + 5) if long(spans, i)), first) for first in firsts
    ]
    for start, end in (spans[i] for i in [*ranking.best()[:MOST], *leads] if i < len(spans)):
        cost = estimate(f"@{start} {text[start:end]}") + 1
        if text[start:end] not in seen and cost <= room:
            seen.add(text[start:end])
            chosen.append((start, end))
            room -= cost
    return sorted(chosen)


def long(spans: list[Span], i: int) -> bool:
    return i < len(spans) and spans[i][1] - spans[i][0] >= LEAD


def roughly(text: str) -> int:
    """The tokens of a text; of a long one from 20 samples, so that it takes no longer."""
    if len(text) <= SAMPLE * SAMPLES:
        return estimate(text)
    starts = (len(text) * i // SAMPLES for i in range(SAMPLES))
    return sum(estimate(text[at : at + SAMPLE]) for at in starts) * len(text) // (SAMPLE * SAMPLES)


def clean(text: str) -> str:
    """Without halves of characters, which no request can carry."""
    return text.encode("utf-8", "replace").decode()
