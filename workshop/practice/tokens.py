"""How many tokens a text is, for `usage`, the context and `max_tokens`: an estimate by pieces.

It is the endpoint's own count, as a server's is: an agent's estimate may differ by some percent.
"""

from __future__ import annotations

import math
import re

PIECE = re.compile(
    r"""
    (?P<word>[ _./-]?[A-Z]*[a-zß-öø-ɏ]+|[ _./-]?[A-Z]+)
  | (?P<digits>\d{1,3})
  | (?P<wide>[\u2e80-\ud7ff\uf900-\ufaff\uff00-\uffef\U00010000-\U0010ffff])
  | (?P<marks>\ ?(?:[^\w\s]|_)+)
  | (?P<space>[\r\n]+|[^\S\r\n]+)
  | (?P<other>\w+)
    """,
    re.VERBOSE,
)
PRICE = {  # base, free characters, for each one beyond
    "word": (1.0, 9, 0.2),
    "digits": (1.0, 3, 0.0),
    "wide": (0.9, 1, 0.0),
    "marks": (1.0, 3, 0.4),
    "space": (1.0, 60, 0.05),
    "other": (1.0, 3, 0.3),
}
ACCENTS = re.compile("[À-ɏ]")


def count(text: str) -> int:
    """The tokens of `text`, about; 0 for ""."""
    total = 1.1 * len(ACCENTS.findall(text))
    for piece in PIECE.finditer(text):
        base, free, rate = PRICE[piece.lastgroup or "other"]
        total += base + rate * max(0, piece.end() - piece.start() - free)
    return math.ceil(total)
