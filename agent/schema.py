"""JSON schemas, as far as cards need them: what is wrong with a value, and where.

Other keywords than those below are not looked at. `x-mend` says a pattern in words.
"""

import re
from collections.abc import Iterator
from difflib import get_close_matches
from typing import Any

TYPES: dict[str, Any] = {"object": dict, "array": list, "string": str, "integer": int}
TYPES |= {"number": (int, float), "boolean": bool, "null": type(None)}
WORDS = {"object": "keys with values", "array": "a list", "number": "a number in digits"}
WORDS |= {"integer": "a whole number in digits", "string": "text, quoted if it has ': ' in it"}


def check(value: Any, schema: dict[str, Any], path: tuple = ()) -> Iterator[tuple[tuple, str]]:
    """What is wrong with `value`: the path of keys to it, and a message with the mend."""
    said = f"{'.'.join(map(str, path)) or 'this'} is {repr(value)[:60]}: write"
    types = schema.get("type", list(TYPES))
    types = [types] if isinstance(types, str) else types
    if not any(is_a(value, kind) for kind in types):
        yield path, f"{said} {' or '.join(WORDS.get(kind, kind) for kind in types)}"
    elif isinstance(value, str) and not re.search(schema.get("pattern", ""), value):
        yield path, f"{said} {schema.get('x-mend', schema['pattern'])}"
    elif value not in schema.get("enum", [value]):
        yield path, f"{said} one of {', '.join(map(str, schema['enum']))}"
    elif is_a(value, "number") and value < schema.get("minimum", value):
        yield path, f"{said} {schema['minimum']} or more"
    elif isinstance(value, list):
        fewest, most = schema.get("minItems", 0), schema.get("maxItems", len(value))
        if not fewest <= len(value) <= most:
            yield path, f"{path[-1]} has {len(value)} entries: write {fewest} to {most}"
        for i, item in enumerate(value):
            yield from check(item, schema.get("items", {}), (*path, i))
    elif isinstance(value, dict):
        known = schema.get("properties", {})
        for key in [key for key in schema.get("required", []) if key not in value]:
            yield path, f"the key {key!r} is missing: add it"
        for key in value:
            if key in known:
                yield from check(value[key], known[key], (*path, key))
            elif schema.get("additionalProperties") is False and not key.startswith("x-"):
                near = get_close_matches(key, known, 1, 0.5) or [f"x-{key}"]
                yield (*path, key), f"unknown key {key!r}: did you mean {near[0]!r}?"


def is_a(value: Any, kind: str) -> bool:
    """True and false are no numbers here, though Python says that they are."""
    return isinstance(value, TYPES[kind]) and (kind == "boolean" or not isinstance(value, bool))
