"""How long a digest takes, beside reading the same text and splitting its words once.

On the practice web's long page, and on as much of it, end to end, as makes 10 KB to 50 MB.

    python -m workshop.measure.growth [--json]
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from functools import partial
from typing import Any

from agent.digest import digest
from workshop.practice.web import handbook

SIZES = (10_000, 100_000, 1_000_000, 10_000_000, 50_000_000)  # characters
HANDLE = "art_0123456789ab"
ROUNDS = 5


def main() -> int:
    rows = measure()
    if "--json" in sys.argv:
        print(json.dumps(rows))
        return 0
    print(f"{'characters':>12} {'digest':>12} {'splitting':>12} {'ratio':>7} {'a character':>14}")
    for size, spent, base in rows:
        each = f"{spent * 1e6 / size:.1f} ns"
        print(f"{size:12} {spent:9.2f} ms {base:9.2f} ms {spent / base:7.1f} {each:>14}")
    return 0


def measure() -> list[tuple[int, float, float]]:
    """Of the page itself, and of each size: characters, milliseconds of a digest, of splitting."""
    made = handbook.make(handbook.SEED)
    question = made.facts[0].question
    rows = []
    for size in (len(made.text), *SIZES):
        text = (made.text * (size // len(made.text) + 1))[:size]
        rounds = ROUNDS if size < 2_000_000 else 1
        spent = best(partial(digest, text, question, HANDLE), rounds)
        rows.append((size, spent, best(partial(words, text.encode()), rounds)))
    return rows


def words(data: bytes) -> list[str]:
    return data.decode().split()


def best(work: Callable[[], Any], rounds: int) -> float:
    """The shortest of some runs, in milliseconds."""
    spent = []
    for _ in range(rounds):
        began = time.perf_counter()
        work()
        spent.append(time.perf_counter() - began)
    return min(spent) * 1000


if __name__ == "__main__":
    sys.exit(main())
