"""Texts for parameters: a way for each role, from an address to what is left of the request."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from .limits import fits_text, shortened
from .slots import SMALL, Slot, says, wants_code
from .spot import CURRENCY, spot
from .taker import NOTHING, Taker
from .words import COMMANDS, content, fold, ideas

AFTER_COLON = re.compile(r":\s+(\S.*)\Z", re.DOTALL)
CLAUSE = re.compile(
    r"(?i)\b(?:that|saying|says|to say|with the (?:text|note|message|words)|dass|daß|"
    r"mit (?:dem Text|der Notiz|der Nachricht|den Worten)|weil|because)\b[:,]?\s+(.+)\Z",
    re.DOTALL,
)
REMIND = re.compile(r"(?i)\b(?:remind|erinner)\w*\b.*?\b(?:to|an|daran,?)\s+(.+)\Z", re.DOTALL)
CALLED = re.compile(
    r"(?i)\b(?:called|named|titled|entitled|namens|mit dem (?:Titel|Betreff|Namen)|(?:zum )?Thema|"
    r"genannt|heißt|about|über)\s+(.+?)(?:[,.;!?]|\Z)"
)
MENTIONS = re.compile(r"(?i)\b(?:mentions?|contains?|erwähnt|enthält)\s+([^\s,.;?!][^,.;?!]{1,40})")
WORD_AT = re.compile(
    r"(?i)\b(?:the words?|das wort|die wörter|den begriff|the term)\s+([^\s,.;?!]+)"
)
SEARCHED = re.compile(
    r"(?i)\b(?:search\w*(?: \w+){0,3} for|look(?:ing)? (?:for|up)|such\w*(?: \w+){0,4} nach)\s+"
    r"(.+?)(?:[.;!?]|\Z)"
)
# What a question asks with, and not about.
ASKING = re.compile(
    r"(?i)(?:many|much|often|long|far|allowed|get|gets|got|receive|may|might|must|shall|ought|"
    r"viele?[rnsm]?|oft|häufig|lange|weit|d[aü]rf\w*|muss\w*|müss\w*|soll\w*|kann\w*|könn\w*|"
    r"m[aö]g\w*|möchte\w*|bekomm\w*|krieg\w*|erh[aä]lt\w*|bei|can|you|we|one)\Z"
)
CODE = re.compile(r"```(?:\w+\n)?(.+?)```", re.DOTALL)
SQL = re.compile(r"(?is)\b((?:select|with|insert|update|delete|explain)\s.+?)(?:;|\Z)")
RUN = re.compile(r"(?i)^\s*(?:run|execute|führe?)\s+(.+?)(?:\s+aus)?[.!]?\s*\Z", re.DOTALL)


class Texts(Taker):
    """Fills parameters of type string."""

    def string(self, slot: Slot) -> Any:
        for way in WAYS.get(slot.role, (Texts.named,)):
            value = way(self, slot)
            if value is not NOTHING and fits_text(value, slot.schema):
                return shortened(value, slot.schema)
        value = self.from_items(slot)
        if value is not NOTHING:
            return value
        default = self.default(slot)
        if default is not NOTHING:
            return default
        if slot.required and slot.role not in ("id", "url", "email", "phone", "path"):
            return self.fallback(slot)
        return NOTHING

    def fallback(self, slot: Slot) -> Any:
        """For a required text that nothing names: a name or a noun of the request."""
        if slot.role in ("date", "datetime", "time", "currency", "language"):
            return NOTHING
        for kinds in (("name", "quoted"), ("noun", "id")):
            for find in self.sources.finds:
                if find.kind not in kinds or self.is_spent(find) or self.is_the_tool(find):
                    continue
                if fits_text(find.value, slot.schema):
                    self.spend(find)
                    self.result.guesses += 1
                    return shortened(find.value, slot.schema)
        return NOTHING

    def typed(self, slot: Slot) -> Any:
        kind = {"currency": "code"}.get(slot.role, slot.role)
        value = self.kinds(slot, (kind,))
        if value is NOTHING and slot.role == "currency":
            for find in self.sources.finds:
                if find.kind == "number" and fold(find.unit) in CURRENCY:
                    return CURRENCY[fold(find.unit)]
        return value

    def language(self, slot: Slot) -> Any:
        for find in self.sources.finds:
            if find.kind == "language" and not self.is_spent(find):
                value = find.value if wants_code(slot) else find.unit
                if fits_text(value, slot.schema):
                    self.spend(find)
                    self.result.evidence += 0.6
                    return value
        return NOTHING

    def day(self, slot: Slot) -> Any:
        least = (
            0.0 if slot.required or not set(slot.tokens) & {"end", "until", "to", "last"} else 0.2
        )
        return self.kinds(slot, ("date", "month"), least)

    def moment(self, slot: Slot) -> Any:
        value = self.kinds(slot, ("datetime",))
        if value is not NOTHING:
            return value
        day = self.kinds(slot, ("date",))
        clock = self.kinds(slot, ("time",))
        if day is NOTHING and (clock is NOTHING or not slot.required):
            return NOTHING
        if day is NOTHING:
            day = "2026-01-01"
        return f"{day}T{'09:00' if clock is NOTHING else clock}:00"

    def identifier(self, slot: Slot) -> Any:
        if any(slot.name in item for item in self.sources.items):
            value = self.from_items(slot)
            if value is not NOTHING:
                return value
        value = self.kinds(slot, ("id", "path") if "path" in slot.tokens else ("id",))
        if value is not NOTHING:
            return value
        carrying = [token for token in slot.tokens if token not in SMALL]
        for find in self.sources.finds:
            near = self.nearness(slot, find)
            if find.kind == "number" and near >= 0.3 and not self.is_spent(find):
                self.spend(find)
                self.result.evidence += 0.6
                return find.value
        value = self.from_items(slot)
        if value is NOTHING and set(carrying) & {"key", "reference", "handle"}:
            value = self.kinds(slot, ("quoted",))
        return value

    def path(self, slot: Slot) -> Any:
        value = self.kinds(slot, ("path",))
        if value is NOTHING:
            value = self.from_items(slot)
        return value if value is not NOTHING else self.kinds(slot, ("quoted",), 0.3)

    def named(self, slot: Slot) -> Any:
        """A name: what follows the parameter's own word, then a name after a leading word."""
        quoted = () if self.roles & {"title", "text", "query", "code"} else ("quoted",)
        for kinds, least in (
            (("email",), 9.0 if not says(slot, "address", "mail", "recipient") else 0.0),
            (("name", "noun", "id", *quoted), 0.3),
            (("name", *quoted), 0.0),
        ):
            if not slot.required and least < 0.3 and slot.role != "name":
                continue
            value = self.kinds(slot, kinds, least)
            if value is not NOTHING:
                return value
        return NOTHING

    def address(self, slot: Slot) -> Any:
        value = self.kinds(slot, ("address",))
        return value if value is not NOTHING else self.named(slot)

    def code(self, slot: Slot) -> Any:
        request = self.sources.request
        fenced = CODE.search(request)
        if fenced:
            return fenced[1].strip()
        if "sql" in slot.tokens and (hit := SQL.search(request)):
            return hit[1].strip()
        value = self.kinds(slot, ("quoted",))
        if value is NOTHING and (hit := AFTER_COLON.search(request)):
            value = hit[1].strip()
        runs = slot.required and "sql" not in slot.tokens
        if value is NOTHING and runs and (hit := RUN.search(request)):
            value = hit[1].strip()
        return value

    def text(self, slot: Slot) -> Any:
        """A text to write: what is quoted, what follows a colon or `that`, or what is left over."""
        request = self.sources.request
        if hit := AFTER_COLON.search(request):
            start = hit.start(1)
            if not any(s <= start < e for s, e in self.spent_texts()):
                self.spent.append((start, len(request)))
                self.result.evidence += 0.5
                return _unquoted(hit[1].strip())
        value = self.kinds(slot, ("quoted",))
        if value is not NOTHING:
            return value
        for pattern in (REMIND, CLAUSE):
            if (hit := pattern.search(request)) and len(hit[1].split()) >= 2:
                self.result.evidence += 0.4
                return hit[1].strip().rstrip(".!")
        if not slot.required:
            return NOTHING
        return self.rest(slot, 60)

    def spent_texts(self) -> list[tuple[int, int]]:
        return [(s, e) for s, e in self.spent if e == len(self.sources.request)]

    def title(self, slot: Slot) -> Any:
        value = self.kinds(slot, ("quoted",))
        if value is NOTHING and (hit := CALLED.search(self.sources.request)):
            value = hit[1].strip()
        if value is NOTHING and slot.required:
            value = self.rest(slot, 10)
        return value

    def query(self, slot: Slot) -> Any:
        value = self.kinds(slot, ("quoted",))
        if value is not NOTHING:
            return value
        request = self.sources.request
        told = f"{self.tool.name} {self.tool.description} {slot.schema.get('description', '')}"
        if re.search(r"(?i)person|contact|customer|compan|firm|kunde|author", told):
            value = self.kinds(slot, ("name", "email", "phone"))
            if value is not NOTHING:
                return value
        if hit := WORD_AT.search(request) or MENTIONS.search(request):
            self.result.evidence += 0.5
            return hit[1].strip()
        if not slot.required and not set(slot.tokens) & {"query", "q", "search", "text"}:
            return NOTHING
        if any(find.kind in ("url", "path") for find in self.sources.finds):
            self.result.guesses += 2  # a word to look for on a page is one that the request names
        for hit in SEARCHED.finditer(request):
            kept = self.carrying(hit[1], hit.start(1))
            if kept:
                self.result.evidence += 0.3
                return " ".join(kept[:8])
        kept = self.carrying(request, 0)
        return " ".join(kept[:6]) if kept else NOTHING

    def carrying(self, text: str, offset: int) -> list[str]:
        """The content words outside of spent spans, without the verbs that only command."""
        kept = []
        for hit in re.finditer(r"[^\W_][\w'’&-]*", text):
            word = hit[0]
            place = offset + hit.start()
            if any(start <= place < end for start, end in self.spent):
                continue
            if any(start <= place < end for start, end in _addresses(self.sources.request)):
                continue
            if not content(word) or ASKING.match(word):
                continue
            if ideas(word) and ideas(word) <= COMMANDS:
                continue
            kept.append(word)
        return kept

    def rest(self, slot: Slot, most: int) -> Any:
        """What the request says besides the command and what other parameters took."""
        request = self.sources.request.strip()
        clause = re.match(r"[^,]+,\s+(.+)\Z", request, re.DOTALL)
        if clause and most > 20 and len(clause[1].split()) >= 3:
            # "Notiz zu Herrn Seidel, er prüft noch": who it is about stands before the comma.
            names = (find for find in self.sources.finds if find.kind == "name")
            about = any(name.end <= clause.start(1) for name in names)
            tail = clause[1].rstrip(".!?") if about else ""
            if tail:
                return tail
        tail = re.sub(
            r"(?i)^(?:please|bitte|can you|could you|kannst du|könntest du)\s+", "", request
        )
        first = tail.split(maxsplit=1)
        if len(first) == 2 and ideas(first[0]) & COMMANDS:
            tail = first[1]
        tail = tail.strip().rstrip(".?!")
        self.result.guesses += 1
        return " ".join(tail.split()[:most]) if tail else NOTHING


WAYS: dict[str, tuple[Callable[[Texts, Slot], Any], ...]] = {
    "url": (Texts.typed,),
    "email": (Texts.typed,),
    "phone": (Texts.typed,),
    "currency": (Texts.typed,),
    "time": (Texts.typed,),
    "date": (Texts.day,),
    "datetime": (Texts.moment,),
    "language": (Texts.language,),
    "address": (Texts.address,),
    "id": (Texts.identifier,),
    "path": (Texts.path,),
    "name": (Texts.named,),
    "code": (Texts.code,),
    "text": (Texts.text,),
    "title": (Texts.title,),
    "query": (Texts.query,),
}


def _addresses(request: str) -> list[tuple[int, int]]:
    """Where addresses stand, also those that were used before."""
    return [(find.start, find.end) for find in spot(request) if find.kind in ("url", "email")]


def _unquoted(text: str) -> str:
    pairs = ("“”", '""', "„“", "„”", "»«", "''", "``")
    return text[1:-1] if len(text) > 2 and text[0] + text[-1] in pairs else text
