"""What tools gave back: JSON or text, its values, its sentences, an error or nothing at all."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from .conversation import Call
from .mind import Mind, weigh
from .spot import PATTERNS
from .stored import handles_in, passages, quotable, reads
from .words import content, ideas

MOST_ITEMS = 200
MOST_SENTENCES = 6000
QUOTE = 320  # characters
COMPARED = 40  # sentences, by vectors, where words do not decide
ERROR = re.compile(
    r"(?i)^\W*(?:\w*(?:error|exception)\b|fehler\b|failed\b|unknown (?:tool|function|parameter)|"
    r"missing\b|invalid\b|no such tool|tool \S+ (?:does not exist|not found)|cannot\b|could not\b|"
    r"not (?:allowed|executed)|refused\b|http (?:error )?[45]\d\d|[45]\d\d )"
)
NOTHING_FOUND = re.compile(
    r"(?i)^\W*(?:0 [a-zäöü]+\b|no (?:results?|match\w*|hits?|entries|"
    r"documents?|contacts?|notes?|such|\w+ (?:found|matche[sd]))|nothing (?:was )?found|none\b|"
    r"keine? (?:treffer|ergebnis\w*|\w+ gefunden)|nichts gefunden|not found|empty\b|null\b)"
)
NOT_RUN = re.compile(r"(?i)^\W*(?:error:? )?(?:this call was )?(?:not|never) (?:run|executed)\b")
CLASS = re.compile(
    r"^\W*(?:(?:tool )?error:? )?(?:[A-Za-z_]\w*\.)*[A-Z]\w*(?:Error|Exception): (?=\S)"
)
SOURCE_KEYS = ("url", "path", "source", "doc", "document", "file", "title", "handle")
ID = re.compile(
    r"(?<![\w./-])(?:[a-z]{1,12}[-_:])?(?=[0-9]*[a-f])(?=[a-f]*[0-9])[0-9a-f]{8,64}(?![\w./-])"
)
KEY_VALUE = re.compile(
    r"\b([A-Za-z][A-Za-z_]{1,24}(?: (?:id|number))?)\s*[:=]\s*[\"'“]?([^\s\"'”,;()\[\]]{1,200})"
)
SPLIT = re.compile(r"(?<=[.!?])[\"”“')]*\s+(?=[A-ZÄÖÜ0-9\"„“(])")
NO_END = re.compile(
    r"(?:\b(?:e\.g|i\.e|z\.\s?B|ca|Nr|No|Mr|Mrs|Dr|St|Str|vgl|bzw|usw|etc)|\b[A-Z]|\b\d)\.$"
)

KINDS: list[tuple[str, re.Pattern[str]]] = [  # what an answer to such a question holds
    (
        "price cost fee preis",
        re.compile(r"(?i)\d[\d.,]*\s?(?:€|eur|\$|usd|£|chf)|[€$£]\s?\d|\bfree\b|kostenlos|frei\b"),
    ),
    ("hour opening öffnungszeit", re.compile(r"\b\d{1,2}[:.]\d{2}\b|\b\d{1,2} ?(?i:uhr|am|pm)\b")),
    ("phone telefon", re.compile(r"\+?\d[\d /()-]{6,}\d")),
    ("email e-mail", re.compile(r"@[\w-]+\.")),
    ("address adress anschrift", re.compile(r"\b\d{5}\b|\b(?:Street|Road|straße|weg|platz)\b")),
]


@dataclass(frozen=True)
class Sentence:
    """A quotable piece of a result, with what it is compared by and where it is from."""

    text: str
    compared: str
    source: str
    heading: bool = False


@dataclass
class Result:
    """One call and what came back."""

    call: Call
    text: str
    error: bool
    empty: bool
    skipped: bool = False  # the client did not run the call: a spent budget, say
    handle: str = ""  # of the stored text that this is a digest or a passage of
    whole: bool = False  # a part or a place of it was read, not what fits a query
    items: list[dict[str, str]] = field(default_factory=list)
    sentences: list[Sentence] = field(default_factory=list)


def read_result(call: Call, text: str, origin: str = "") -> Result:
    """A tool message, read. Never an error: what is no JSON is text.

    `origin` is where the text comes from, where the call names a handle alone.
    """
    try:
        data = json.loads(text) if text.lstrip()[:1] in ("{", "[", '"') else None
    except (ValueError, RecursionError):
        data = None
    if isinstance(data, str):
        text, data = data, None
    source = origin or source_of(call)
    named, handles = reads(call.arguments), handles_in(text)
    if isinstance(data, dict | list):
        result = Result(call, text, _is_error(data), _is_empty(data))
        result.items = list(_items(data, 0))[:MOST_ITEMS]
        result.sentences = list(_json_sentences(data, source, 0))[:MOST_SENTENCES]
        for long in _long_texts(data, 0):
            result.items.extend(_text_items(long))
        if handles and not result.error:
            told = [line for long in _texts(data, 0) for line in quotable(long)]
            result.handle = named or handles[0]
            result.sentences = list(sentences("\n".join(told), source))[:MOST_SENTENCES]
        return result
    stripped = text.strip()
    empty = not stripped or stripped in ("[]", "{}") or bool(NOTHING_FOUND.match(stripped[:200]))
    skipped = bool(NOT_RUN.match(stripped[:200]))
    result = Result(call, text, skipped or bool(ERROR.match(stripped[:200])), empty, skipped)
    if (named or handles) and not result.error and not empty:
        result.handle = named or handles[0]
        texts = [value for value in call.arguments.values() if isinstance(value, str) and value]
        result.whole = bool(named) and len(texts) == 1
        text = "\n".join(passages(text) if named else quotable(text))
        result.items = [{"handle": result.handle, "line": result.handle}]
    result.items += _text_items(text)
    result.sentences = list(sentences(text, source))[:MOST_SENTENCES]
    return result


def source_of(call: Call) -> str:
    for key in SOURCE_KEYS:
        value = call.arguments.get(key)
        if isinstance(value, str) and value:
            return value[:200]
    name = call.arguments.get("name")
    return name[:200] if isinstance(name, str) and re.search(r"\.\w{1,5}\Z", name) else ""


def _is_error(data: Any) -> bool:
    if not isinstance(data, dict):
        return False
    if data.get("error") or data.get("errors") or data.get("isError") is True:
        return True
    return data.get("ok") is False or data.get("success") is False or data.get("status") == "error"


def _is_empty(data: Any) -> bool:
    if not data:
        return True
    if isinstance(data, dict):
        if data.get("found") is False or data.get("count") == 0 or data.get("total") == 0:
            return True
        values = [
            value for key, value in data.items() if key not in ("query", "ok", "status", "count")
        ]
        containers = [value for value in values if isinstance(value, list | dict)]
        others = [value for value in values if not isinstance(value, list | dict)]
        return (
            bool(containers)
            and not any(containers)
            and not any(isinstance(v, str) and v for v in others)
        )
    return False


def _plain(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return "" if value is None else str(value)


def _items(data: Any, deep: int) -> Iterator[dict[str, str]]:
    """Every object of a JSON value, as plain names and values, outer ones first."""
    if deep > 12:
        return
    if isinstance(data, dict):
        own = {key: _plain(v)[:400] for key, v in data.items() if isinstance(v, str | int | float)}
        if own:
            yield own
        for value in data.values():
            yield from _items(value, deep + 1)
    elif isinstance(data, list):
        for value in data[:MOST_ITEMS]:
            if isinstance(value, str):
                yield from _text_items(value[:400])[:1] or [{"name": value[:400]}]
            else:
                yield from _items(value, deep + 1)


def _long_texts(data: Any, deep: int) -> Iterator[str]:
    return (text for text in _texts(data, deep) if len(text) > 60)


def _texts(data: Any, deep: int) -> Iterator[str]:
    if deep > 12:
        return
    if isinstance(data, str):
        yield data
    elif isinstance(data, dict | list):
        for value in data.values() if isinstance(data, dict) else data[:MOST_ITEMS]:
            yield from _texts(value, deep + 1)


@lru_cache(maxsize=1)
def _kinds() -> list[tuple[str, re.Pattern[str]]]:
    return [(kind, pattern) for kind, pattern in PATTERNS if kind in ("url", "email", "path")]


def _text_items(text: str) -> list[dict[str, str]]:
    """The addresses, paths and named values of a text, a line each."""
    found: list[dict[str, str]] = []
    for line in text[:200_000].splitlines():
        if len(found) >= MOST_ITEMS:
            break
        item: dict[str, str] = {}
        cut = line[:400]
        for name, value in KEY_VALUE.findall(cut):
            if "//" not in value[:3]:
                item.setdefault(name.lower().replace(" ", "_"), value.rstrip("."))
        for kind, pattern in _kinds():
            if kind not in item and (hit := pattern.search(cut)):
                item[kind] = hit[0].rstrip(".,;:)")
        if hit := re.match(r"\W{0,4}([a-z_]{2,20}) #?(\d{1,9})\b(?=[:,.)]|\s-)", cut):
            item[f"{hit[1]}_id"] = hit[2]  # "- contact 3: Peter Brandt"
        if hit := re.search(
            r"(?i)\b(?:handle|artifact|artefact)\b\W{0,3}(?:is\W+)?([\w:.-]*\d[\w:.-]*)", cut
        ):
            item["handle"] = hit[1].rstrip(".:")
        elif hit := ID.search(cut):
            item["handle"] = hit[0]
        if item:
            item["line"] = cut.strip()
            found.append(item)
    return found


def sentences(text: str, source: str) -> Iterator[Sentence]:
    """The sentences of a text, each compared together with the heading above it."""
    heading = ""
    for line in text.splitlines():
        line = " ".join(line.split())
        if not line:
            continue
        if place := re.fullmatch(r"\[([^\]:]{1,120})(?:: ([^\]]{1,200}))?\]", line):
            source, heading = place[1], place[2] or ""  # [travel.md: Hotels]
            continue
        if re.fullmatch(r"[-*•] [^\d.!?:|@]{1,40}", line):  # an entry of a menu
            yield Sentence(line, line, source, True)
            continue
        if re.fullmatch(r"\d+ \w+ (?:for|on|in|für|auf|zu) .{1,300}", line):  # "5 hits for “tea”"
            yield Sentence(line, line, source, True)
            continue
        title = line.lstrip("#").strip()
        is_heading = line.startswith("#") or (
            len(line) < 60 and line[-1] not in ".!?:,;|" and not re.search(r"\d|[|@/]| - ", line)
        )
        if is_heading:
            heading = title
            yield Sentence(title, title, source, True)
            continue
        for sentence in _split(line):
            for part in _parts(sentence):
                yield Sentence(part, f"{heading} {part}" if heading else part, source)


def _split(line: str) -> list[str]:
    pieces: list[str] = []
    for piece in SPLIT.split(line):
        if pieces and NO_END.search(pieces[-1]):
            pieces[-1] += " " + piece
        else:
            pieces.append(piece)
    return pieces


def _parts(sentence: str) -> Iterator[str]:
    """A sentence, or pieces of one that is endless, cut between words."""
    while len(sentence) > QUOTE:
        place = sentence.rfind(" ", QUOTE // 2, QUOTE)
        place = place if place > 0 else QUOTE
        yield sentence[:place].strip()
        sentence = sentence[place:].strip()
    if sentence.strip():
        yield sentence.strip()


def _json_sentences(data: Any, source: str, deep: int) -> Iterator[Sentence]:
    if deep > 12:
        return
    if isinstance(data, list):
        for value in data:
            yield from _json_sentences(value, source, deep + 1)
    elif isinstance(data, dict):
        own = next(
            (str(data[key]) for key in SOURCE_KEYS if isinstance(data.get(key), str)), source
        )
        short = {
            key: _plain(value)
            for key, value in data.items()
            if isinstance(value, str | int | float) and len(_plain(value)) <= 100
        }
        if short:
            line = ", ".join(f"{key}: {value}" for key, value in short.items())
            for part in _parts(line):
                yield Sentence(part, part.replace("_", " "), own)
        for key, value in data.items():
            if key not in short:
                yield from _json_sentences(value, own, deep + 1)
    elif isinstance(data, str):
        yield from sentences(data, source)
    elif data is not None:
        yield Sentence(_plain(data), _plain(data), source)


@dataclass(frozen=True)
class Found:
    """The pieces that match a request best, in their order, and how well the best one does."""

    quotes: list[Sentence]
    cover: float  # 0 to about 1: the part of the request's words that the best one holds
    likeness: float  # the best similarity, where it was needed, else 0
    kind: bool = True  # a price where a price is asked for, a time where a time is


def best(request: str, pieces: Sequence[Sentence], mind: Mind, most: int = 5) -> Found:
    """Shared words first. Only where they do not decide are the likeliest compared by vectors."""
    seen: dict[str, Sentence] = {}
    for piece in pieces:
        seen.setdefault(piece.text, piece)
    pieces = list(seen.values())
    if not pieces:
        return Found([], 0.0, 0.0)
    shared = weigh(request, [piece.compared for piece in pieces])
    wanted = _kind_of(request)
    scores = [
        share * (0.3 if piece.heading else 1)
        + (0.25 if wanted and share > 0 and wanted.search(piece.text) else 0.0)
        for share, piece in zip(shared, pieces, strict=True)
    ]
    order = sorted(range(len(pieces)), key=lambda place: (-scores[place], place))
    cover, likeness = scores[order[0]], 0.0
    if cover < 0.5:
        near = order[:COMPARED]
        alike = mind.to_texts(request, [pieces[place].compared for place in near])
        middle = sorted(alike)[len(alike) // 2]
        for place, value in zip(near, alike, strict=True):
            scores[place] += max(0.0, 8 * (value - min(middle, 0.84)))
        spoken = [v for v, place in zip(alike, near, strict=True) if not pieces[place].heading]
        likeness = max(spoken, default=0.0)
        order = sorted(near, key=lambda place: (-scores[place], place))
    top = scores[order[0]]
    kept = [place for place in order if scores[place] >= 0.6 * top and scores[place] > 0][:most]
    quotes = [pieces[place] for place in sorted(kept)]
    quotes = [quote for quote in quotes if not quote.heading] or quotes
    kind = wanted is None or any(wanted.search(quote.text) for quote in quotes)
    return Found(quotes, cover, likeness, kind)


def _kind_of(request: str) -> re.Pattern[str] | None:
    asked = frozenset().union(*(ideas(word) for word in content(request)))
    for names, pattern in KINDS:
        if asked & ideas(names.split()[0]) or any(
            asked & ideas(name) for name in names.split()[1:]
        ):
            return pattern
    if re.search(r"(?i)\b(?:how much|wie ?viel|wie teuer|kostet)\b", request):
        return KINDS[0][1]
    return KINDS[1][1] if re.search(r"(?i)\b(?:when|wann|hours|geöffnet)\b", request) else None
