"""How many tokens a text is, without a tokenizer.

An estimate for o200k and vocabularies like it: not exact, no limit to rely on to the last token.
"""

from __future__ import annotations

import json
import math
import re
from typing import Any

# A tokenizer first cuts a text into pieces, by rules close to these, and looks each piece up in
# its vocabulary. The cut can be had without the vocabulary. The first rule that fits takes the
# piece, and none looks further ahead than its own piece or 50 characters, so time grows with
# the length of the text and no faster.
PIECE = re.compile(
    r"""
    (?P<blob>(?<![a-zA-Z])(?=(?:[a-zA-Z+/_-]{0,20}\d){2})(?=[a-z\d+/_-]{0,40}[A-Z])[a-zA-Z\d+/_-]{40,}
      |(?:\ |(?<![a-zA-Z\d]))(?:[A-Z]{24,}|[a-z\d]{40,}))
  | (?P<word>(?:[^\w\r\n]|_)?[a-zß-öø-ɏ]+)                  # " word", "_word", ".word"
  | (?P<title>(?:[^\w\r\n]|_)?[A-ZÀ-ÖØ-Þ][a-zß-öø-ɏ]+)      # " Word", also "Case" of camelCase
  | (?P<upper>(?:[^\w\r\n]|_)?[A-ZÀ-ÖØ-Þ]+(?![a-zß-öø-ɏ]))  # " WORD"
  | (?P<digits>\d{1,3})
  | (?P<cjk>\ ?[\u2e80-\ud7ff\uf900-\ufaff\uff00-\uffef]+)  # Chinese, Japanese, Korean
  | (?P<emoji>[\U0001f000-\U0001faff]+)
  | (?P<rare>\ ?(?:[\u0250-\u036f\u0f00-\u0fff\u1200-\u177f\u1800-\u1cff\u2580-\u259f]
      |[\u2800-\u28ff\ua000-\uabff\U00010000-\U0010ffff])+)
  | (?P<other>[^\w\r\n]?[^\W\d_]+)                          # letters of other scripts
  | (?P<ruler>\ ?(?P<same>[^\w\s]|_)(?P=same){3,})         # "======"
  | (?P<marks>\ ?(?:[^\w\s]|_)+[\r\n/]*)                    # '":{"', ");\n"
  | (?P<space>[\r\n]+|[^\S\r\n]+(?!\S)|\s)                  # line ends, indentation
    """,
    re.VERBOSE,
)

# The price of a piece: `base` tokens, and `rate` more for each character beyond `free`. Fitted
# to o200k on English, German, Python, JSON schemas and random base64.
PRICE = {  # base, free, rate
    "blob": (0, 0, 0.68),
    "word": (1, 10, 0.2),
    "title": (1, 4, 0.18),
    "upper": (1, 3, 0.2),
    "digits": (1, 3, 0),
    "cjk": (0, 0, 0.9),
    "other": (1, 3, 0.27),
    "ruler": (1, 16, 0.02),
    "emoji": (0, 0, 2),
    "rare": (0, 0, 3),  # scripts and signs that a vocabulary spells byte by byte
    "marks": (1, 3, 0.5),
    "space": (1, 80, 0.06),
}

# An accented letter is dear, and a sign of a language whose long words are dear.
ACCENT = re.compile("[À-ɏ]")
ACCENT_PRICE = 1.25


def estimate(text: str) -> int:
    """The tokens of `text`, about: 0 for "", rounded up, never an error."""
    total = ACCENT_PRICE * len(ACCENT.findall(text))
    for piece in PIECE.finditer(text):
        base, free, rate = PRICE[piece.lastgroup or ""]
        total += base + rate * max(0, piece.end() - piece.start() - free)
    return math.ceil(total)


def estimate_tools(tools: list[dict[str, Any]]) -> int:
    """The tokens of a request's `tools` array, as the compact JSON that goes over the wire.

    Counted is the array alone: not the key `tools`, not the messages.
    """
    return estimate(json.dumps(tools, ensure_ascii=False, separators=(",", ":")))
