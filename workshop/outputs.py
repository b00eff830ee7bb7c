"""Compares what a command printed with what a lesson shows: numbers within a tolerance."""

from __future__ import annotations

import re

NUMBER = re.compile(r"-?\d[\d,]*(?:\.\d+)?")
TIME = re.compile(r"\d[\d.,]*\s?(?:ms|s|µs|seconds)\b")


def differences(shown: str, printed: str, tolerance: float) -> list[str]:
    """The lines that differ: none where the texts say the same.

    White space counts once, times are not compared, and a number may be off by `tolerance`
    (0.02 means 0.02 for numbers below 1 and 2 % for the others). `...` on a line of its own
    stands for any number of lines.
    """
    wanted, got = rows(shown), rows(printed)
    found, at = [], 0
    skipping = False
    for row in wanted:
        if row == "...":
            skipping = True
            continue
        if skipping:
            while at < len(got) and not same_row(row, got[at], tolerance):
                at += 1
            skipping = False
        if at >= len(got):
            found.append(f"missing: {row}")
            continue
        if not same_row(row, got[at], tolerance):
            found.append(f"shown: {row}\n  printed: {got[at]}")
        at += 1
    if not skipping:
        found += [f"not shown: {row}" for row in got[at:]]
    return found


def rows(text: str) -> list[str]:
    return [" ".join(line.split()) for line in text.strip().splitlines()]


def same_row(shown: str, printed: str, tolerance: float) -> bool:
    one, other = TIME.sub("TIME", shown), TIME.sub("TIME", printed)
    if NUMBER.sub("#", one) != NUMBER.sub("#", other):
        return False
    pairs = zip(NUMBER.findall(one), NUMBER.findall(other), strict=True)
    return all(close(number(a), number(b), tolerance) for a, b in pairs)


def number(text: str) -> float:
    return float(text.replace(",", ""))


def close(shown: float, printed: float, tolerance: float) -> bool:
    return abs(shown - printed) <= tolerance * max(1.0, abs(shown)) + 1e-9
