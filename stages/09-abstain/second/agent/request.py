"""A request as a model can read it: one short line. Says nothing about what it means."""

import re

HEAD, GAP, TAIL = 400, " … ", 200
MOST = HEAD + len(GAP) + TAIL
CONTROL = re.compile("[\x00-\x1f\x7f-\x9f]+")


def one_line(text: str) -> str:
    """At most 603 characters: of a longer text, the start and the end.

    Example: "a\\0\\n b" -> "a b". A lone surrogate, which is how broken UTF-8 arrives, becomes a
    question mark.
    """
    sound = text.encode("utf-8", "replace").decode("utf-8")
    line = " ".join(CONTROL.sub(" ", sound).split())
    return line if len(line) <= MOST else f"{line[:HEAD]}{GAP}{line[-TAIL:]}"


def says_something(line: str) -> bool:
    """Whether there is a letter or a digit in it, of any script."""
    return any(map(str.isalnum, line))
