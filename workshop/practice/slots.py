"""What a parameter wants: its role, read from its name, description, type and format."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

from .refused import JSON
from .words import fold, several

ROLES: list[tuple[str, str]] = [  # the first row with one of the name's words decides
    ("url", "url uri link href website webpage homepage site"),
    ("email", "email mail mailbox e"),
    ("address", "address street anschrift adresse strasse"),
    ("phone", "phone telephone mobile tel telefon fax"),
    ("language", "language lang locale sprache"),
    ("currency", "currency waehrung wahrung"),
    ("code", "command sql cmd expression script code_block regex"),
    ("path", "path file filename filepath folder directory dir document doc datei pfad cwd"),
    ("id", "id ids uuid handle key sku iban plate serial isbn ref reference identifier token"),
    ("date", "date day deadline due birthday datum tag until since expires"),
    ("time", "time hour clock uhrzeit at"),
    (
        "query",
        "query q search keyword keywords term terms needle phrase contains suchbegriff topic",
    ),
    ("query", "pattern word words question suche stichwort look frage about"),
    ("text", "text note notes content body message comment description summary details reason"),
    ("text", "inhalt nachricht notiz symptom problem purpose what wording caption grund feedback"),
    ("title", "title subject heading headline label thema betreff titel"),
    ("name", "name person contact customer client company account employee user who recipient"),
    ("name", "people attendee attendees assignee assignees supplier guest owner author to city"),
    ("name", "place location town country region station origin destination from street venue"),
    ("name", "ort stadt kunde firma person hotel team group project channel product item artist"),
]
ROLE = {word: role for role, row in reversed(ROLES) for word in row.split()}
FORMATS = {
    "uri": "url",
    "url": "url",
    "iri": "url",
    "email": "email",
    "idn-email": "email",
    "date": "date",
    "date-time": "datetime",
    "time": "time",
    "uuid": "id",
}
UNITS = [  # the first word of each row is the base of its time units' minutes
    ("minute", "minute minutes min mins minuten"),
    ("hour", "hour hours h hrs stunde stunden"),
    ("day", "day days tag tage tagen"),
    ("week", "week weeks woche wochen"),
    ("month", "month months monat monate monaten"),
    ("year", "year years jahr jahre jahren"),
    ("second", "second seconds sec s sekunde sekunden"),
    ("night", "night nights nacht nachte nachten ubernachtung ubernachtungen"),
    ("kilometre", "km kilometre kilometer kilometers distance"),
    ("metre", "m metre meter metres meters meters"),
    ("kilogram", "kg kilo kilos kilogram kilogramm weight"),
    ("gram", "g gram grams gramm"),
    ("percent", "% percent prozent pct percentage off"),
    ("celsius", "°c celsius grad degrees degree temperature"),
    ("litre", "l litre liter litres"),
    (
        "money",
        "€ $ £ eur usd gbp chf euro euros dollar dollars franken amount price cost budget fee",
    ),
    (
        "people",
        "people persons personen guests guest gaste seats seat capacity participants plaetze",
    ),
]
UNIT = {word: row for row, text in UNITS for word in text.split()}
SMALL = frozenset(
    several("""
    id ids number no nr of the a is by on at to from in with new first last
""")
)
RANK = {"url": 0, "email": 0, "phone": 0, "datetime": 1, "date": 1, "time": 1, "path": 1, "id": 1}
RANK |= {
    "address": 1,
    "language": 1,
    "currency": 1,
    "number": 2,
    "name": 3,
    "": 4,
    "title": 6,
    "query": 7,
}
RANK |= {"code": 6, "text": 5, "flag": 0}


@dataclass(frozen=True)
class Slot:
    """One parameter and what it wants."""

    name: str
    tokens: tuple[str, ...]
    schema: JSON
    role: str
    required: bool


@lru_cache(maxsize=8192)
def name_tokens(name: str) -> tuple[str, ...]:
    """`newStart_date` is new, start, date."""
    apart = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name)
    return tuple(fold(part) for part in re.split(r"[^A-Za-z0-9äöüÄÖÜß]+", apart) if part)


def slot_of(name: str, schema: JSON, required: bool) -> Slot:
    tokens = name_tokens(name)
    return Slot(name, tokens, schema, role_of(tokens, schema), required)


def role_of(tokens: tuple[str, ...], schema: JSON) -> str:
    kind = schema.get("type")
    if kind == "array" and isinstance(schema.get("items"), dict):
        inner = schema["items"]
        return role_of(
            tuple(token.removesuffix("s") for token in tokens),
            {**inner, **{"description": schema.get("description", "")}},
        )
    if kind in ("integer", "number"):
        return "number"
    if kind == "boolean" or "enum" in schema or "const" in schema:
        return "flag"
    form = schema.get("format")
    if isinstance(form, str) and form in FORMATS:
        return FORMATS[form]
    told = schema.get("description")
    told = fold(told) if isinstance(told, str) else ""
    if re.search(r"\b(?:yyyy|iso 8601|iso date)\b", told):
        return "date"
    if tokens and tokens[-1] in ("number", "no", "nr", "code"):
        return "id"
    for token in reversed(tokens):
        if token in ROLE:
            role = ROLE[token]
            if role == "name" and re.search(r"\b(?:e-?mail|mail address)\b", told):
                return "email" if "or" not in told.split() else "name"
            if role == "name" and token in ("from", "to") and "date" in told:
                return "date"
            if role == "name" and re.search(
                r"\b(?:document|file)(?:'s|s)? name|\.(?:md|txt|pdf)\b", told
            ):
                return "path"
            return role
    for word, role in (("url", "url"), ("e-mail", "email"), ("path", "path"), ("search", "query")):
        if re.search(rf"\b{word}\b", told):
            return role
    return ""


def described(slot: Slot) -> JSON:
    told = slot.schema.get("description")
    return {"description": told} if isinstance(told, str) else {}


def says(slot: Slot, *hints: str) -> bool:
    told = fold(str(slot.schema.get("description", "")))
    return any(hint in slot.tokens or hint in told for hint in hints)


def wants_code(slot: Slot) -> bool:
    told = str(slot.schema.get("description", ""))
    return bool(
        re.search(r"(?i)\bcode\b|\biso\b|639|such as (?:en|de)\b|e\.g\. ?['\"]?(?:en|de)\b", told)
        or "pattern" in slot.schema
        or slot.schema.get("maxLength") in (2, 5)
    )


def likely_names(slot: Slot, item: dict[str, str]) -> list[str]:
    """Which of an item's names could serve the parameter, the likeliest first."""
    wanted = set(slot.tokens)
    ranked: list[tuple[int, str]] = []
    for name in item:
        tokens = set(name_tokens(name))
        if name == slot.name:
            ranked.append((0, name))
        elif slot.role == "id" and tokens & {"id", "key", "number", "handle", "ref"}:
            nouns = (wanted ^ tokens) - SMALL
            if not nouns or tokens <= {"id"} or wanted & tokens - SMALL:
                ranked.append((1 + len(nouns), name))
        elif slot.role in ("path", "url") and ROLE.get(next(iter(tokens), ""), "") == slot.role:
            ranked.append((2, name))
        elif (
            slot.role == "path"
            and tokens & {"id", "name", "title"}
            and wanted & {"doc", "document"}
        ):
            ranked.append((4, name))
        elif slot.role in ("email", "phone") and slot.role in tokens:
            ranked.append((2, name))
        elif slot.role == "id" and wanted & {"ref", "reference"} and tokens & {"path", "url"}:
            ranked.append((5, name))
        elif slot.role == "name" and tokens & wanted - SMALL:
            ranked.append((3, name))
    return [name for _, name in sorted(ranked)]
