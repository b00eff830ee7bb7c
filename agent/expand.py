"""Expand: what a digest left out comes back, by place, by part or by query. All to the letter."""

import time
from collections.abc import Sequence
from functools import partial

import numpy as np

from agent.deadline import within
from agent.digest import MOST, SURE, clean
from agent.errors import EndpointError, StoreError, VectorError
from agent.index import Embedder
from agent.outline import outline
from agent.sentences import Span, rank
from agent.tokens import estimate

ROOM = int(MOST * SURE)  # tokens of an answer, by our estimate
ENOUGH = 0.35  # of the query's weight in one sentence: then words alone rank
QUERY = 500  # characters: of a longer one no more is looked for
LEAST = 10  # tokens: no passage has fewer
CONTEXT = 2  # passages that come with the sentence before and after them
BATCH = 256  # sentences that are embedded before the clock is looked at again
LARGE = 5_000  # sentences: more are ranked by words alone


def expand(
    text: str,
    handle: str,
    query: str = "",
    part: int = 0,
    start: int = 0,
    embedder: Embedder | None = None,
    seconds: float = 60,
) -> str:
    """A line that says what it is, and what was asked for, in at most ROOM tokens.

    The passages that fit the query, of a part or the whole; without a query, the text from the
    start of the part, or from a place. StoreError if there is no such part or place.
    """
    query = clean(query).replace("\0", " ")[:QUERY]
    if not query.strip():
        return clean("\n".join(read_on(text, handle, part, start)))
    span = span_of(text, part, start)
    found, note = passages(text, span, query, ROOM - 90, embedder, seconds)
    lines = [f"[{handle}: {len(found)} passages of {len(text)} characters, with places.{note}]"]
    return clean("\n".join(lines + [f"@{first} {text[first:end]}" for first, end in found]))


def read_on(text: str, handle: str, part: int = 0, start: int = 0) -> tuple[str, str]:
    """What is read and where it goes on, and the text itself."""
    first, end = page(text, span_of(text, part, start), ROOM - 60)
    on = f"It goes on at start={end}" if end < len(text) else "It ends here"
    return f"[{handle}: characters {first} to {end} of {len(text)}. {on}.]", text[first:end]


def span_of(text: str, part: int, start: int) -> Span:
    """Where to read: a part of the outline, or the whole; from `start` on, if that is later."""
    first, end = 0, len(text)
    if part:
        parts = outline(text).parts
        if not 0 < part <= len(parts):
            raise StoreError(
                f"there is no part {part}. The outline has the parts 1 to {len(parts)}."
            )
        first, end = parts[part - 1].start, parts[part - 1].end
    if not 0 <= start <= len(text):
        raise StoreError(f"there is no place {start}: places go from 0 to {len(text)}.")
    return max(first, start), end if start < end else len(text)


def page(text: str, span: Span, room: int) -> Span:
    """The beginning of a span that has at most `room` tokens, but at least a character.

    Pages from end to end make up the text, whatever it holds.
    """
    start, end = span
    end = min(end, start + 16 * room)
    while end > start + 1 and (size := estimate(text[start:end])) > room:
        end = start + max(1, min((end - start) * room // size, end - start - 1))
    if end < span[1]:
        for mark in ("\n", " "):
            if (cut := text.rfind(mark, start + (end - start) * 4 // 5, end)) > start:
                return start, cut + 1
    return start, end


def passages(
    text: str, span: Span, query: str, room: int, embedder: Embedder | None, seconds: float
) -> tuple[list[Span], str]:
    """The sentences in a span that fit a query best, in the text's order, and how they were found.

    By their words, if one holds enough of the query's; else by their vectors, if that is possible.
    """
    first, last = span
    found, note = rank(text[first:last], query), ""
    spans, order = [(start + first, end + first) for start, end in found.spans], found.best()
    if found.cover < ENOUGH and embedder and 0 < len(spans) <= LARGE:
        pieces = [clean(text[start:end]).replace("\0", " ") for start, end in spans]
        rank_all = partial(closest, pieces, query, embedder, time.monotonic() + seconds)
        try:
            order = within(seconds, rank_all, lambda: None)
        except (EndpointError, VectorError, TimeoutError) as error:
            note = f" By their words alone: {str(error)[:200] or 'there was no time for more.'}"
    elif found.cover < ENOUGH and len(spans) > LARGE:
        note = f" By their words alone: over {LARGE} sentences. Name a part."
    room -= estimate(note)
    chosen, seen = set[int](), set[str]()
    for place, i in enumerate(order[:MOST]):
        if (said := text[slice(*spans[i])]) in seen:
            continue
        seen.add(said)
        around = range(max(i - 1, 0), min(i + 2, len(spans)))
        for group in [around, [i]] if place < CONTEXT else [[i]]:  # alone, if they do not fit
            new = {j: estimate(f"@{spans[j][0]} {text[slice(*spans[j])]}") + 1 for j in group}
            new = {j: cost for j, cost in new.items() if j not in chosen}
            if sum(new.values()) <= room:
                room -= sum(new.values())
                chosen |= set(new)
        if room < LEAST:
            break
    return [spans[i] for i in sorted(chosen)], note


def closest(texts: Sequence[str], query: str, embedder: Embedder, ends: float) -> list[int]:
    """The numbers of the texts, the one with the highest cosine to the query first.

    They are embedded a batch at a time, so that a cache keeps what there was time for.
    """
    vector, found = embedder.unit_vectors([query], embedder.query_prefix)[0], []
    for at in range(0, len(texts), BATCH):
        if time.monotonic() > ends:
            raise TimeoutError
        batch = [*texts[at : at + BATCH], texts[at]]  # two at least: a cache keeps no single one
        found.append(embedder.unit_vectors(batch, embedder.passage_prefix)[:-1])
    matrix = np.concatenate(found)
    if matrix.shape[1] != vector.size:
        sizes = f"{vector.size} and of {matrix.shape[1]} numbers"
        raise VectorError(f"{embedder.model}: vectors of {sizes}. Ask again.")
    mean = matrix.mean(axis=0)  # what all sentences of one text share tells nothing
    matrix -= mean
    scores = matrix @ (vector - mean) / np.maximum(np.linalg.norm(matrix, axis=1), 1e-9)
    return np.argsort(-scores, kind="stable").tolist()
