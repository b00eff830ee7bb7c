"""Which tool: the request's similarity to the tools, and rules for what the request holds."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

from .conversation import Tool
from .fill import Filled, Sources, fill
from .intent import REMOVE, TAKING, Intent, intent, kinds_of, serves
from .mind import Mind
from .slots import ROLE, name_tokens
from .spot import spot
from .texts import MENTIONS, WORD_AT
from .words import content, fold, ideas, keys, matched, several

# Ideas of words.IDEAS, by line: what a tool's name or a request says is to be done.
WRITES = frozenset(f"~{place}" for place in (0, 1, 2, 3, 4, 5, 6, 10, 11, 12, 13))
READS = frozenset(f"~{place}" for place in (7, 8, 9, 15))
WRITE_VERBS = frozenset(
    several("""
    add create new save store write update change edit set delete remove drop cancel send
    mail post reply answer forward book reserve move close start run stop assign approve
    reject invite schedule submit issue grant revoke reset record report deploy promote open
    place order publish upload insert append rename mark make register enrol request claim
""")
)
READ_VERBS = frozenset(
    several("""
    get find search list read fetch look lookup show check query count track view describe
    download compare audit estimate calculate explain detect trace tail preview expand
    convert translate open load see browse inspect ask what
""")
)
SEARCHES = ("find", "search", "count")
QUESTIONS = frozenset(
    several("""
    what when where who which how why is are does has have was wann wo wer wie warum ist sind hat
    haben gibt
""")
)
ASKS = re.compile(
    r"(?i)\?|^\W*(?:what|when|where|who|which|how|is|are|does|do|was|wann|wo|wer|wie|welche\w*|"
    r"warum|why|gibt es|ist|sind|hat|has|have)\b"
)


# Weights beside the similarity, whose best and second best are often 0.05 apart.
WORDS, EVIDENCE, GUESS, MISSING, UNUSED, DEED = 0.3, 0.05, 0.02, 0.05, 0.08, 0.1
NAMED, LISTED, LOOKED_FOR, ELSEWHERE = 0.1, 0.15, 0.1, 0.2


@dataclass(frozen=True)
class Candidate:
    """A tool, what it would be called with, and how well it suits."""

    tool: Tool
    filled: Filled
    score: float
    likeness: float  # the similarity alone
    barred: bool = False  # it changes something, and the request orders no such change

    @property
    def complete(self) -> bool:
        return not self.filled.missing


def tool_text(tool: Tool) -> str:
    """What a tool is compared by."""
    said = " ".join(name_tokens(tool.name))
    return f"{said}: {tool.description}"[:600] if tool.description else said


def verb(tool: Tool) -> str:
    """What the tool does, from its name: `find`, `save`."""
    return deed(tool.name)


@lru_cache(maxsize=4096)
def deed(name: str) -> str:
    """What a tool of this name does: `find`, `save`."""
    tokens = name_tokens(name)
    return next(
        (t for t in tokens if t in WRITE_VERBS or t in READ_VERBS), tokens[0] if tokens else ""
    )


def writes(tool: Tool) -> bool:
    """Does the tool change something, as far as its name says, or its description's first word?"""
    return _writes(tool.name, tool.description[:80])


@lru_cache(maxsize=4096)
def _writes(name: str, description: str) -> bool:
    if deed(name) in WRITE_VERBS or deed(name) in READ_VERBS:
        return changes(name)
    told = content(description)[:1]
    return any(fold(word).removesuffix("s") in WRITE_VERBS for word in told)


def bars(tool: Tool, wanted: Intent) -> bool:
    """Does it change something where the request orders nothing, or another kind of change?"""
    removes = REMOVE in kinds_of(verb(tool)) or bool(TAKING.search(verb(tool)))
    runs = verb(tool) == "run" and READ_VERBS & set(name_tokens(tool.name))  # run_query only looks
    if runs or not (removes or writes(tool)):
        return False
    if removes:
        return REMOVE not in wanted.kinds
    if wanted.looks:
        return True
    sentence = re.split(r"(?<=[.;])\s", tool.description[:600])[0]
    able = kinds_of(verb(tool)) or kinds_of_all(tool.description[:600])
    takes = REMOVE in kinds_of_all(sentence) or bool(TAKING.search(sentence))
    able = able | {REMOVE} if takes else able - {REMOVE}
    return bool(wanted.kinds and able) and not serves(able, wanted.kinds)


def kinds_of_all(text: str) -> frozenset[str]:
    return frozenset[str]().union(*map(kinds_of, content(text)))


def changes(name: str) -> bool:
    """Does a tool of this name change something?"""
    return deed(name) in WRITE_VERBS


def asks(request: str) -> bool:
    """Is it a question, not an order?"""
    return bool(ASKS.search(request)) and not wants_writing(request)


def wants_writing(request: str) -> bool:
    """Does one of the first words, or a German prefix at the end, ask to change something?"""
    said = re.findall(r"[^\W\d_]+", request)
    first = [fold(word) for word in said[:6]]
    if not first or first[0] in QUESTIONS or first[0].startswith("welch"):
        return False
    return any(word in WRITE_VERBS for word in first[:4]) or any(
        ideas(word) & WRITES and not ideas(word) & READS for word in said[:3]
    )


def rank(request: str, tools: tuple[Tool, ...], sources: Sources, mind: Mind) -> list[Candidate]:
    """The tools, the most suitable first. The same input gives the same order."""
    if not tools:
        return []
    texts = [tool_text(tool) for tool in tools]
    alike = mind.to_tools(request, texts)
    words = by_words(request, tools)
    a_word = bool(WORD_AT.search(request))
    writing, asking = wants_writing(request), asks(request)
    first = [
        like
        + WORDS * word
        + _by_deed(tool, writing, asking)
        - _by_list(tool, request)
        + (NAMED if names_things(tool, request) and (writes(tool) or verb(tool) == "list") else 0.0)
        + (LOOKED_FOR if a_word and verb(tool) in SEARCHES else 0.0)
        - (ELSEWHERE if beside(tool, request) else 0.0)
        for tool, like, word in zip(tools, alike, words, strict=True)
    ]
    wanted = intent(request)
    # Filling costs more than it can change for a tool that is far behind.
    near = set(sorted(range(len(tools)), key=lambda place: -first[place])[:24])
    found: list[Candidate] = []
    for place, tool in enumerate(tools):
        if place not in near:
            continue
        filled = fill(tool, sources)
        barred = bars(tool, wanted)
        score = (
            first[place]
            - barred
            + EVIDENCE * min(filled.evidence, 2.0)
            - GUESS * min(filled.guesses, 3)
        )
        score -= UNUSED * min(filled.unused, 2)
        if filled.missing:
            score -= MISSING
        found.append(Candidate(tool, filled, score, alike[place], barred))
    return sorted(found, key=lambda one: -one.score)


def _by_deed(tool: Tool, writing: bool, asking: bool) -> float:
    """Orders go to tools that change something, questions to those that only look."""
    if writes(tool):
        return DEED if writing else -2 * DEED if asking else 0.0
    return -DEED / 2 if writing else DEED / 2 if asking else 0.0


def names_things(tool: Tool, request: str) -> bool:
    """Does the request name what the tool's name names beside its verb: the links, a contact?"""
    things = name_tokens(tool.name)[1:]
    named = keys(request)
    return bool(things) and all(matched(thing, named) >= 0.6 for thing in things)


def beside(tool: Tool, request: str) -> bool:
    """Does it give, of one page or file, a list or the place of a word that nobody asked for?"""
    needed = tool.parameters.get("required", [])
    places = [ROLE.get(token) for name in needed for token in name_tokens(name)]
    if not {"url", "path"} & set(places):
        return False
    if verb(tool) == "list":
        return not names_things(tool, PLACES.sub(" ", request))
    return verb(tool) in SEARCHES and not names_a_word(request)


PLACES = re.compile(
    r"(?i)\b(?:web ?|internet|home)?(?:pages?|sites?|seiten?)\b|\b(?:files?|datei(?:en)?)\b"
)
OCCURS = re.compile(
    r"(?i)\b(?:occur\w*|appear\w*|mention\w*|komm(?:t|en)\b.*\bvor|vorkomm\w*|erwähn\w*|find\w*|such\w*|"
    r"search\w*|look for|words?|phrase|wort|wörter|begriff)\b"
)


def names_a_word(request: str) -> bool:
    """Does the request name a word or a phrase that is to be looked for?"""
    quoted = any(find.kind == "quoted" for find in spot(request))
    return quoted or any(way.search(request) for way in (WORD_AT, MENTIONS, OCCURS))


LISTS = re.compile(
    r"(?i)\b(?:lists?|(?<!on )(?<!in )(?<!at )(?<!from )(?<!to )(?<!with )"
    r"which [^\W\d_]+s\b|"
    r"all|every|any|overview|(?<!for )(?<!after )how many|welche|alle\w?|auflist\w*|"
    r"übersicht|zeig\w*|show|"
    r"gibt es|wie viele|wer)\b"
)


def _by_list(tool: Tool, request: str) -> float:
    """A list is not what a request for one thing is after."""
    does = verb(tool)
    if LISTS.search(request) and (does != "list" or names_things(tool, request)):
        return 0.0
    if LISTS.search(request):
        return LISTED
    return 0.1 if does == "list" else -0.05 if does in ("search", "read", "fetch") else 0.0


def by_words(request: str, tools: tuple[Tool, ...]) -> list[float]:
    """How many of the request's words each tool's name and description hold; rare ones count."""
    asked = list(dict.fromkeys(content(request)))[:60]
    if not asked:
        return [0.0] * len(tools)
    names = [keys(" ".join(name_tokens(tool.name))) for tool in tools]
    told = [keys(tool.description[:600]) for tool in tools]
    scores = [0.0] * len(tools)
    total = 0.0
    for word in asked:
        hits = [
            max(matched(word, name), 0.6 * matched(word, text))
            for name, text in zip(names, told, strict=True)
        ]
        there = sum(hit > 0 for hit in hits)
        if not there:
            continue
        weight = 1.0 / (1 + 4 * (there - 1) / len(tools))
        total += 1
        scores = [score + weight * hit for score, hit in zip(scores, hits, strict=True)]
    return [0.8 * score / max(total, 1.5) for score in scores]
