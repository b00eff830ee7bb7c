"""What a request wants done, read from its verbs: to look something up, or a kind of change."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise

from .words import fold, ideas, several, without_places, words

# Changes that may stand for each other, as lines of words.IDEAS.
WRITE, REMOVE, SEND, BOOK, END, START = "write", "remove", "send", "book", "end", "start"
GROUPS = {0: WRITE, 1: WRITE, 2: WRITE, 11: WRITE, 3: REMOVE, 4: REMOVE, 5: SEND, 6: SEND}
GROUPS |= {10: BOOK, 12: END, 14: END, 13: START}
LOOKS = frozenset(["~7", "~8", "~9", "~15"])

QUOTED = re.compile(r"[\"“„»][^\"“”„«»]*[\"”“«]|`[^`]*`")
CLAUSE = re.compile(r"(?<=[.!?;,])\s+|\s+(?:and then|und dann|and|und|then|dann)\s+")
POLITE = re.compile(
    r"(?i)^(?:(?:can|could|would|will) you|(?:kann|könn|würde|magst|möchte)\w* (?:du|sie|ihr))\b"
)
LEAD = re.compile(
    r"(?i)^(?:please|bitte|kindly|now|jetzt|just|mal|also|so|ok(?:ay)?|hi|hello|hallo|hey|to|"
    r"(?:i|we) (?:want|need|would like)(?: you)? to|(?:i|we)['’]d like(?: you)? to|let['’]?s|"
    r"(?:go ahead|feel free) and|mir|uns)\b\W*"
)
QUESTION = re.compile(
    r"(?i)^(?:what|when|where|who|whose|whom|which|how|why|is|are|was|were|does|do|did|has|had|"
    r"may|should|any|whether|kann|können|darf|dürfen|muss|müssen|soll|sollen|wann|wo\w*|wer|wem|wen|"
    r"wie\w*|welche\w*|warum|wieso|weshalb|ist|sind|war|waren|hat|habe|haben|gibt|gab|ob)\b"
)
TO_ME = re.compile(
    r"(?i)^(?:tell|give|get|bring|fetch|sag|gib|erzähl|hol|nenn|erklär)\w*\s+"
    r"(?:me|us|mir|uns)\b|^(?:explain|nenne?|erkläre?|let me (?:see|know))\b"
)
# "Notizen zu Ann Moss", "Notes on Ann Moss": what is wanted is to see them.
NOUN_FIRST = re.compile(
    r"[A-ZÄÖÜ]\w+(?:en|[^s]s) (?:zu|zum|zur|von|vom|bei|aus|über|on|of|about|from)\b"
)
# Removing in words that alone say nothing of it.
TAKING = re.compile(
    r"(?i)\b(?:take(?:s them)?|nimm|nehm\w*|hol|zieh\w*)\b.*\b(?:off|out|away|back|aus|vo[nm]|raus|"
    r"weg|heraus|zurück|ab)\b|\b(?:call|get rid|throw)\b.*\b(?:off|of|away|out)\b|"
    r"\b(?:revoke|undo|unsubscrib|discard|entzieh|widerruf|abbestell|rückgängig|weglass|verwirf|"
    r"aufheb|zurückgeb|freigeb|strike|scrap|wipe|kill|withdraw|retract)\w*|"
    r"(?:\b(?:no longer|not|nicht|kein\w*)|n['’]t)\b.{0,30}\b(?:need|want|brauch)\w*|"
    r"\b(?:need|want|brauch\w*)\b.{0,40}\b(?:no longer|any ?more|(?:nicht|kein\w*) mehr)\b|"
    r"\b(?:fällt|lass)\b.*\baus(?:fallen)?\b"
)
PARTICLES = frozenset(several("ab an ein auf aus um hinzu zuruck weg raus frei fort vor zusammen"))
BEFORE_VERBS = frozenset(several("to please bitte you should must soll sollst zu"))
BOTH = ("open", "page", "offn", "load")  # a page is opened to read it, a ticket to make it
BEFORE_NOUNS = frozenset(
    several("the a an my our your this that these those his her their its all any every no of")
)


@dataclass(frozen=True)
class Intent:
    """`looks`: it asks, and orders no change. `kinds`: the changes that its verbs name."""

    looks: bool
    kinds: frozenset[str]


@lru_cache(maxsize=256)
def intent(request: str) -> Intent:
    """What the request wants done. What it quotes or brings after a colon does not count."""
    text = without_places(QUOTED.sub(" ", request[:4000]))
    head, colon, _ = text.partition(": ")
    text = head if colon and len(words(head)) > 1 else text
    clauses = [part for part in CLAUSE.split(text.strip()) if part and words(part)]
    whole = [True, *(part.rstrip()[-1] in ".!?" for part in clauses)]
    read = [_clause(part, first) for part, first in zip(clauses, whole, strict=False)]
    if len(read) > 1 and clauses[0][:5].lower() == "when " and "?" not in text:
        read = read[1:]  # "When I get home, remind me of the keys"
    kinds = frozenset[str]().union(*(one.kinds for one in read if not one.looks))
    return Intent(any(one.looks for one in read) and not kinds, kinds)


def _clause(text: str, first: bool) -> Intent:
    """What one clause wants. `first`: it begins a sentence, so that a capital tells nothing."""
    text = text.strip()
    polite = bool(POLITE.match(text))
    text = POLITE.sub("", text).strip()
    while (shorter := LEAD.sub("", text, count=1)) != text:
        text = shorter
    said = words(text)
    if not said or QUESTION.match(text) or TO_ME.match(text):
        return Intent(bool(said), frozenset())
    if text.rstrip(" )").endswith("?") and not polite:
        return Intent(True, frozenset())
    if NOUN_FIRST.match(text):
        return Intent(True, frozenset())
    kinds = frozenset([REMOVE]) if TAKING.search(text) else frozenset[str]()
    for verb in _verbs(said, first):
        marks = ideas(verb)
        if marks & LOOKS and not kinds_of(verb):
            return Intent(not kinds and not fold(verb).startswith(BOTH), kinds)
        if kinds_of(verb):
            return Intent(False, kinds | kinds_of(verb))
    thing = said[-1].endswith("s") and kinds_of(said[-1])  # "Ann Moss notes"
    only_names = first and not any(word[0].islower() for word in (said[:-1] if thing else said))
    return Intent(only_names and not kinds, kinds)


def _verbs(said: list[str], first: bool) -> list[str]:
    """Where a verb may stand, the likeliest first: in front, at the end, after `to` or `please`."""
    last = fold(said[-1])
    joined = [last + said[0]] if last in PARTICLES else []
    ends = [said[-1]] if said[-1][0].islower() and fold(said[-2:][0]) not in BEFORE_NOUNS else []
    ordered = [word for before, word in pairwise(said) if fold(before) in BEFORE_VERBS]
    front = said[:1] if first or said[0][0].islower() else []
    found = [*joined, *front, *ends, *ordered]
    return [verb for verb in found if not (verb.endswith("s") and kinds_of(verb))]  # "notes"


def serves(able: frozenset[str], wanted: frozenset[str]) -> bool:
    """Can a tool of these kinds do one of the changes that are wanted?

    To write or make something may be anything, and a start or an end may be set as a value.
    """
    others = able - {REMOVE}
    return bool(able & wanted or (WRITE in wanted and others)) or (
        WRITE in able and bool(wanted & {START, END})
    )


@lru_cache(maxsize=8192)
def kinds_of(word: str) -> frozenset[str]:
    """The kinds of change that a word names. Example: storniere -> remove"""
    found = {GROUPS.get(int(mark[1:]), "") for mark in ideas(word)} - {""}
    return frozenset(found)
