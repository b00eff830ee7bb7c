"""The digest: a long text in few tokens, by its own sentences. Nothing is reworded or sent.

A draft is written out whole with every line that is tried, so that what is counted is what is
returned: there are no sums of parts that could miss something.
"""

import random
import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import chain, islice, zip_longest

from agent.outline import Part, outline
from agent.sentences import Span, rank
from agent.tokens import estimate

MOST = 800  # tokens
SURE = 0.8  # of them by our estimate
DENSE = 16  # characters: no text of words has as many in a token
LONG = 100_000  # characters: of a longer text, the tokens are worked out from samples
SAMPLES, SAMPLE = 48, 2_000
WIDTHS = (60, 48, 36, 28, 20, 16, 12)  # characters of the parts' titles, as they get shorter
LEAD = 40  # characters of a sentence that says something of its part
ALARM = re.compile(r"\b(?:fatal|critical|error|warn)", re.IGNORECASE)
HALF = re.compile("[\ud800-\udfff]")


@dataclass
class Draft:
    """A digest as it grows."""

    text: str
    handle: str
    about: str
    room: int
    parts: str = ""
    quotes: list[Span] = field(default_factory=list)

    def written(self) -> tuple[str, int]:
        """The whole, and its tokens, which stand in its first line."""
        lines = [
            f'[To read more: expand("{self.handle}", query=…), '
            "or part= a number of a part, or start= a place.]",
            *([self.parts] if self.parts else []),
            *(["Sentences, with their places:"] if self.quotes else []),
            *(f"@{start} {self.text[start:end]}" for start, end in sorted(self.quotes)),
            f"[{len(self.text) - sum(end - at for at, end in self.quotes)} "
            "characters are left out here.]",
        ]
        rest, count = clean("\n".join(lines)), 0
        while True:  # a longer number may need a token more, never one less
            head = f"[A digest of {count} tokens. {self.handle} holds the whole: {self.about}]"
            whole = f"{clean(head)}\n{rest}"
            if (found := estimate(whole)) == count:
                return whole, count
            count = found

    def quote(self, spans: Iterable[Span]) -> None:
        """Take each of the spans that the room still has a place for."""
        left = self.room - self.written()[1]
        for span in spans:
            if estimate(clean(self.text[slice(*span)])) > left:
                continue
            self.quotes.append(span)
            cost = self.written()[1]
            if cost > self.room:
                self.quotes.pop()
            else:
                left = self.room - cost


def digest(text: str, request: str, handle: str, most: int = MOST) -> str:
    """The text in at most `most` tokens: what it is, its parts, and sentences with places.

    A text that is short enough comes back itself.
    """
    room = int(most * SURE)
    if len(text) < DENSE * room and estimate(clean(text)) <= room:
        return clean(text)
    found = outline(text)
    draft = Draft(text, handle, f"{found.about}, about {tokens(text)} tokens.", room)
    draft.parts = listed(found.parts, room // 3)
    ranking = rank(text, request)
    asked = (ranking.spans[i] for i in ranking.best())
    loud = alarms(text, ranking.spans) if found.about.startswith("log") else []
    both = chain.from_iterable(zip_longest(asked, loud))
    wanted = chain((span for span in both if span), leads(found.parts, ranking.spans))
    # Each quoted sentence costs a token and more: no more of them than the room has are tried.
    draft.quote(islice(once(text, wanted), room + len(found.parts)))
    return draft.written()[0]


def clean(text: str) -> str:
    """The text with "?" in place of each half of a character. Every place stays the same."""
    return HALF.sub("?", text)


def tokens(text: str) -> int:
    """The estimate of a text; of a long one, that of a piece out of each 48th of it, scaled."""
    if len(text) <= LONG:
        return estimate(text)
    dice, stride = random.Random(len(text)), len(text) / SAMPLES  # the same text, the same count
    starts = (int(i * stride + dice.random() * (stride - SAMPLE)) for i in range(SAMPLES))
    found = sum(estimate(text[start : start + SAMPLE]) for start in starts)
    return round(found * len(text) / (SAMPLES * SAMPLE))


def listed(parts: list[Part], room: int) -> str:
    """The lines of the parts: with shorter titles if they need it, then fewer of them."""
    numbered = list(enumerate(parts, 1))
    shapes = [*((len(parts), width) for width in WIDTHS), *fewer(len(parts))]
    for count, width in shapes:
        shown = [numbered[i * len(parts) // count] for i in range(count)]
        lines = [f"{number}. @{part.start} {part.title[:width]}" for number, part in shown]
        said = "\n".join(["Parts, with their places:", *lines])
        if estimate(clean(said)) <= room:
            return said
    return ""


def fewer(count: int) -> Iterator[tuple[int, int]]:
    return ((less, WIDTHS[-1]) for less in range(count - 1, 0, -1))


def alarms(text: str, spans: list[Span]) -> list[Span]:
    """The sentences that say an error or a warning; what is said least often comes first."""
    found = [(word[0].lower(), span) for span in spans if (word := ALARM.search(text, *span))]
    often = Counter(word for word, _ in found)
    return [span for _, span in sorted(found, key=lambda one: (often[one[0]], one[1]))]


def leads(parts: list[Part], spans: list[Span]) -> Iterator[Span]:
    """For each part a sentence from its beginning, a longer one if there is any."""
    for part in parts:
        first = bisect_left(spans, (part.start, 0))
        near = spans[first : first + 5]
        yield from [span for span in near if span[1] - span[0] >= LEAD][:1] or near[:1]


def once(text: str, spans: Iterable[Span]) -> Iterator[Span]:
    """The spans without those whose words were there before."""
    seen = set[str]()
    for start, end in spans:
        words = " ".join(text[start:end].split())
        if words not in seen:
            seen.add(words)
            yield start, end
