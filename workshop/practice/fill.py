"""Arguments for a tool, from a request and from earlier results, by rules over its schema.

A parameter's name, description, type and format say what it wants (slots.py); spot.py says what
there is. Required parameters come first, one find serves one parameter, and an optional one is
filled only where the request plainly names it. What cannot be filled is reported as missing.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

from .conversation import Tool
from .limits import as_number, fits_number, plain
from .refused import JSON
from .slots import RANK, UNIT, Slot, described, name_tokens, slot_of
from .spot import CURRENCY, Find
from .taker import NOTHING, Filled, Sources
from .texts import Texts
from .words import fold, ideas, keys, matched, words

__all__ = ["Filled", "Sources", "fill"]

MAX_DEEP = 4
MINUTES = {"second": 1 / 60, "minute": 1, "hour": 60, "day": 1440, "week": 10080}


def fill(tool: Tool, sources: Sources) -> Filled:
    """The arguments for a tool, and the required names that have no value."""
    return Filler(sources, tool).fill()


class Filler(Texts):
    """Fills one tool's parameters, whatever their types."""

    def fill(self) -> Filled:
        self.result.arguments, self.result.missing = self.members(self.root, True, 0)
        self.result.unused = len(
            {
                find.value
                for find in self.sources.finds
                if find.kind in ("url", "email", "phone", "quoted", "path")
                and not self.is_spent(find)
            }
        )
        return self.result

    def members(self, schema: JSON, required: bool, deep: int) -> tuple[JSON, list[str]]:
        """(the object's values, the required names that have none)."""
        properties = schema.get("properties")
        properties = properties if isinstance(properties, dict) else {}
        needed = schema.get("required")
        needed = needed if isinstance(needed, list) else []
        slots = [
            slot_of(name, self.resolve(inner), name in needed) for name, inner in properties.items()
        ]
        filled: JSON = {}
        if deep == 0 and set(name_tokens(self.tool.name)) & {"find", "search", "look", "grep"}:
            slots = [replace(s, role="query") if s.role == "text" else s for s in slots]
        self.roles |= {slot.role for slot in slots}
        # The plain ones take their finds first; what is left over is for texts and searches.
        for slot in sorted(slots, key=lambda slot: (RANK.get(slot.role, 5), not slot.required)):
            value = self.value(slot, deep)
            if value is not NOTHING:
                filled[slot.name] = value
        missing = [name for name in needed if isinstance(name, str) and name not in filled]
        ordered = {name: filled[name] for name in properties if name in filled}
        return ordered, missing

    def resolve(self, schema: object, deep: int = 0) -> JSON:
        """A schema without references, and the first way of several."""
        if not isinstance(schema, dict) or deep > MAX_DEEP:
            return {}
        reference = schema.get("$ref")
        if isinstance(reference, str) and reference.startswith("#/"):
            target: object = self.root
            for part in reference[2:].split("/"):
                target = target.get(part) if isinstance(target, dict) else None
            return self.resolve(target, deep + 1)
        for ways_key in ("oneOf", "anyOf", "allOf"):
            ways = schema.get(ways_key)
            if isinstance(ways, list) and ways:
                plain = [
                    way for way in ways if not isinstance(way, dict) or way.get("type") != "null"
                ]
                first = self.resolve(plain[0] if plain else {}, deep + 1)
                return {**first, **{k: v for k, v in schema.items() if k != ways_key}}
        kind = schema.get("type")
        if isinstance(kind, list):
            kinds = [one for one in kind if one != "null"]
            return {**schema, "type": kinds[0] if kinds else "null"}
        return schema

    def value(self, slot: Slot, deep: int) -> Any:
        schema = slot.schema
        if "const" in schema:
            return schema["const"]
        options = schema.get("enum")
        if isinstance(options, list) and options:
            return self.option(slot, options)
        kind = schema.get("type")
        if kind == "boolean":
            return self.flag(slot)
        if kind in ("integer", "number"):
            return self.number(slot, kind)
        if kind == "array":
            return self.array(slot, deep)
        if kind == "object" or (kind is None and "properties" in schema):
            return self.inner(slot, deep)
        if kind == "null":
            return None if slot.required else NOTHING
        if kind not in ("string", None):
            return NOTHING
        return self.string(slot)

    def inner(self, slot: Slot, deep: int) -> Any:
        if deep >= MAX_DEEP or not (slot.required or self.names(slot)):
            return NOTHING
        before = self.result.evidence
        values, missing = self.members(slot.schema, slot.required, deep + 1)
        if missing or (not slot.required and self.result.evidence == before):
            return NOTHING
        return values if values or slot.required else NOTHING

    def option(self, slot: Slot, options: list[Any]) -> Any:
        scored = [(self.option_score(slot, option), -place) for place, option in enumerate(options)]
        best, place = max(scored)
        if best >= (0.5 if slot.required else 0.75):
            self.result.evidence += 0.4
            return options[-place]
        default = self.default(slot)
        if default is not NOTHING or not slot.required:
            return default
        self.result.guesses += 1
        texts = [f"{slot.name} {option}".replace("_", " ") for option in options]
        if self.sources.guess is None or len(options) > 24:
            return options[0]
        return options[self.sources.guess(self.sources.request, texts)]

    def option_score(self, slot: Slot, option: object) -> float:
        if not isinstance(option, str | int | float) or isinstance(option, bool):
            return 0.0
        for find in self.sources.finds:
            if isinstance(option, str):
                same = find.kind == "language" and fold(option) in (find.value, fold(find.unit))
                if same or CURRENCY.get(find.unit) == option or find.value == option:
                    return 1.0
            elif find.kind == "number" and plain(find.value) == option:
                return 1.0
        if not isinstance(option, str):
            return 0.0
        parts = [part for part in words(option.replace("-", " ").replace("_", " ")) if part]
        if not parts:
            return 0.0
        asked = [fold(word) for word in words(self.sources.request)]
        if all(fold(part) in asked for part in parts):
            return 1.0
        own = [part for part in parts if part not in slot.tokens]
        if not own:
            return 0.0
        return sum(min(matched(part, self.sources.known), 0.8) for part in own) / len(own)

    def flag(self, slot: Slot) -> Any:
        named = self.names(slot)
        if not slot.required:
            if not named or all(ideas(token) & self.tool_ideas for token in slot.tokens):
                return NOTHING
        elif not named:
            default = self.default(slot)
            return False if default is NOTHING else default
        return not re.search(
            r"(?i)\b(?:without|no|not|n't|never|ohne|kein\w*|nicht)\b", self.sources.request
        )

    def number(self, slot: Slot, kind: str) -> Any:
        best: tuple[float, Find | None, float] = (0.0, None, 0.0)
        for find in self.sources.finds:
            if find.kind not in ("number", "weak number") or self.is_spent(find):
                continue
            if "id" in slot.tokens and not (
                find.kind == "number" and self.names_number(slot, find)
            ):
                continue
            score, factor = self.number_score(slot, find)
            value = plain(find.value) * factor
            if score > best[0] and fits_number(value, slot.schema, kind):
                best = (score, find, value)
        score, chosen, value = best
        if chosen is not None and score >= (0.2 if slot.required else 0.9):
            self.spend(chosen)
            self.result.evidence += min(score, 1) * 0.5
            return as_number(value, kind)
        listed = self.number_of_items(slot)
        if listed is not None:
            return as_number(listed, kind)
        default = self.default(slot)
        if default is not NOTHING or not slot.required:
            return default
        this_year = self.sources.today.year
        if slot.tokens[-1:] in (("year",), ("jahr",)) and fits_number(this_year, slot.schema, kind):
            self.result.guesses += 1
            return this_year
        return NOTHING

    def names_number(self, slot: Slot, find: Find) -> bool:
        """Does the word right before the number name the parameter: `contact 3`, `order no. 7`?"""
        before = find.before.split()
        return any(matched(word, keys(" ".join(slot.tokens))) >= 0.6 for word in before[-2:])

    def number_of_items(self, slot: Slot) -> float | None:
        """A number that an earlier result holds under the parameter's name."""
        names = [find.value for find in self.sources.finds if find.kind == "name"]
        for item in self.sources.items:
            text = item.get(slot.name) or (item.get("id") if "id" in slot.tokens else None)
            if text is None or not re.fullmatch(r"-?\d{1,15}(?:\.\d{1,6})?", text):
                continue
            whole = " ".join(item.values())
            if slot.required:
                self.result.from_results += 1
                return float(text)
            if "id" in slot.tokens and any(name in whole for name in names):
                return float(text)
        return None

    def number_score(self, slot: Slot, find: Find) -> tuple[float, float]:
        """(how well the number suits the parameter, what to multiply it with)."""
        tokens = [fold(token) for token in slot.tokens]
        told = [fold(word) for word in words(str(slot.schema.get("description", "")))]
        wants = {UNIT[token] for token in tokens if token in UNIT}
        hints = wants or {UNIT[word] for word in told if word in UNIT}
        unit = fold(find.unit)
        has = UNIT.get(unit) or UNIT.get(fold(find.unit).rstrip("s"))
        near = self.nearness(slot, find)
        score = 0.1 if find.kind == "weak number" else 0.35
        score += near
        if has:
            if has in hints:
                return score + 1.0, 1
            for want in hints & MINUTES.keys():
                if has in MINUTES:
                    return score + 0.8, MINUTES[has] / MINUTES[want]
            if hints:
                return 0.0, 1
            counted = set(tokens) & {"quantity", "count", "number", "limit", "size", "max", "n"}
            return score - (0.3 if counted and has in ("money", "percent") else 0.0), 1
        if unit and any(matched(find.unit, keys(token)) >= 0.7 for token in slot.tokens):
            return score + 0.8, 1
        if set(tokens) & {"quantity", "count", "amount", "copies", "number", "limit", "top"}:
            score += 0.3 if unit else 0.1
        return score, 1

    def array(self, slot: Slot, deep: int) -> Any:
        items = self.resolve(slot.schema.get("items"))
        most = slot.schema.get("maxItems")
        most = most if type(most) is int and most > 0 else 20
        options = items.get("enum")
        if isinstance(options, list) and options:
            hits = [o for o in options if self.option_score(slot, o) >= 0.75]
            if hits:
                self.result.evidence += 0.4
                return hits[:most]
            self.result.guesses += slot.required
            return [options[0]] if slot.required else NOTHING
        one = Slot(slot.name, slot.tokens, {**items, **described(slot)}, slot.role, slot.required)
        found: list[Any] = []
        if one.schema.get("type") in ("string", None, "integer", "number"):
            single = one.role in ("text", "title", "query", "code")
            while len(found) < (1 if single else min(most, 10)):
                value = self.value(replace(one, required=slot.required and not found), deep)
                if value is NOTHING or value in found:
                    break
                found.append(value)
        elif one.schema.get("type") in ("object", "array") and deep < MAX_DEEP:
            value = self.value(one, deep + 1)
            if value is not NOTHING:
                found.append(value)
        least = slot.schema.get("minItems")
        if found and type(least) is int and len(found) < least:
            return NOTHING
        return found or NOTHING
