"""What a schema allows: limits of numbers, lengths and patterns of texts."""

from __future__ import annotations

import re

from .refused import JSON


def plain(value: str) -> float:
    try:
        return float(value)
    except ValueError:
        return 0.0


def as_number(value: float, kind: str) -> int | float:
    return round(value) if kind == "integer" or value == int(value) else value


def fits_number(value: float, schema: JSON, kind: str) -> bool:
    if kind == "integer" and value != int(value):
        return False
    for name, holds in (
        ("minimum", lambda limit: value >= limit),
        ("maximum", lambda limit: value <= limit),
        ("exclusiveMinimum", lambda limit: value > limit),
        ("exclusiveMaximum", lambda limit: value < limit),
        (
            "multipleOf",
            lambda limit: limit > 0 and abs(value / limit - round(value / limit)) < 1e-9,
        ),
    ):
        limit = schema.get(name)
        if isinstance(limit, int | float) and not isinstance(limit, bool) and not holds(limit):
            return False
    return True


def fits_text(value: object, schema: JSON) -> bool:
    if not isinstance(value, str) or not value:
        return False
    least = schema.get("minLength")
    if type(least) is int and len(value) < least:
        return False
    pattern = schema.get("pattern")
    if isinstance(pattern, str) and len(value) <= 200:
        return _matches(pattern, value)
    return True


def _matches(pattern: str, value: str) -> bool:
    """Does the value fit? A pattern that could run for ever, or is none, asks for nothing."""
    if len(pattern) > 200 or re.search(r"[+*}]\)?[+*{]|\([^)]*[+*|}][^)]*\)[+*{]", pattern):
        return True
    try:
        return re.search(pattern, value) is not None
    except (re.error, OverflowError, RecursionError):
        return True


def shortened(value: str, schema: JSON) -> str:
    most = schema.get("maxLength")
    return value[:most].rstrip() if type(most) is int and 0 < most < len(value) else value
