"""A stage's change as the pages show it: split by file, in the colours of its language.

It reads git's own patch. Nothing is lost of it: a test puts the rows together again.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from html import escape

from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers.python import PythonLexer

HUNK = re.compile(r"@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@")
# The element of each row. Its sign is the style's, so that it is not copied with the code.
ROWS = {
    "+": "<ins>{}\n</ins>",
    "-": "<del>{}\n</del>",
    " ": '<span class="kept">{}\n</span>',
    "@": '<span class="head">{}\n</span>',
    "\\": '<span class="head">{}\n</span>',
}
# Pygments' kinds that the pages give no colour, and those that they show as one.
PLAIN = r"n|p|w|o|nn|bp|si|nb|ne|m[a-z]?|il"
SAME = {"kn": "k", "kc": "k", "kd": "k", "kr": "k", "ow": "k", "s1": "s", "s2": "s", "sd": "s",
        "sa": "s", "se": "s", "c1": "c"}  # fmt: skip


@dataclass(frozen=True)
class Change:
    """One file's change. An id is empty where that side has no file; `rows` are git's own."""

    name: str
    old: str
    new: str
    rows: tuple[str, ...]

    @property
    def added(self) -> int:
        return sum(sign == "+" for sign, _, _, _ in numbered(self.rows))

    @property
    def removed(self) -> int:
        return sum(sign == "-" for sign, _, _, _ in numbered(self.rows))


def changes(patch: str) -> list[Change]:
    """The files of a patch with full ids, in its order."""
    found: list[Change] = []
    rows = patch.split("\n")
    at = 0
    while at < len(rows):
        if not rows[at].startswith("diff --git "):
            at += 1
            continue
        name, old, new = file_name(rows[at]), "", ""
        at += 1
        # The header's lines begin with a letter, `---` or `+++`; a hunk counts its own.
        while at < len(rows) and not rows[at].startswith(("@@ ", "diff --git ", "GIT binary")):
            ids = re.match(r"index ([0-9a-f]+)\.\.([0-9a-f]+)", rows[at])
            if ids:
                old, new = (one if one.strip("0") else "" for one in ids.groups())
            at += 1
        start = at
        while at < len(rows) and rows[at].startswith("@@ "):
            at += 1 + hunk_length(rows, at)
        found.append(Change(name, old, new, tuple(rows[start:at])))
    return found


def file_name(header: str) -> str:
    """Of `diff --git a/X b/X`: both names are the same, since renames are not looked for."""
    both = header.removeprefix("diff --git ")
    return both[: len(both) // 2].strip('"').removeprefix("a/")


def hunk_length(rows: list[str], at: int) -> int:
    """The rows that belong to the hunk whose `@@` row is at `at`, without that row."""
    found = HUNK.match(rows[at])
    assert found, rows[at]
    old, new = int(found[2] or 1), int(found[4] or 1)
    length = 0
    while old or new or rows[at + length + 1 : at + length + 2] == ["\\ No newline at end of file"]:
        sign = rows[at + length + 1][:1]
        old -= sign in "- "
        new -= sign in "+ "
        length += 1
    return length


def numbered(rows: tuple[str, ...]) -> Iterator[tuple[str, str, int, int]]:
    """Each row of a file's hunks: sign (`@` for a hunk's head), text, old and new line number."""
    old = new = left = 0
    for row in rows:
        head = HUNK.match(row) if not left else None
        if head:
            old, new = int(head[1]), int(head[3])
            left = int(head[2] or 1) + int(head[4] or 1)
            yield "@", row, old, new
            continue
        sign = row[:1]
        yield sign, row[1:], old, new
        old += sign in "- "
        new += sign in "+ "
        left -= {"+": 1, "-": 1, " ": 2}.get(sign, 0)


def render(change: Change, blob: Callable[[str], str]) -> str:
    """The change as HTML: one `<pre>`, and in it an element a row."""
    olds, news = coloured(change.name, blob(change.old)), coloured(change.name, blob(change.new))
    rows = []
    for sign, text, old, new in numbered(change.rows):
        side, at = (olds, old) if sign == "-" else (news, new)
        if sign == "\\":  # no sign of ours, but git's word
            text = sign + text
        code = escape(text, quote=False) if sign in "@\\" else side[at - 1]
        rows.append(ROWS[sign].format(code))
    return f'<div class="highlight diff"><pre>{"".join(rows)}</pre></div>'


def coloured(name: str, text: str) -> list[str]:
    """The lines of a file as HTML, Python in colours."""
    if not name.endswith(".py"):
        return [escape(line, quote=False) for line in text.split("\n")]
    made = highlight(text, PythonLexer(stripnl=False, ensurenl=False), HtmlFormatter(nowrap=True))
    return [compact(line) for line in str(made).split("\n")]


def compact(html: str) -> str:
    """The same with fewer spans: none for what has no colour, one for neighbours of one kind."""
    html = re.sub(rf'<span class="(?:{PLAIN})">([^<]*)</span>', r"\1", html)
    html = re.sub(
        r'<span class="(\w+)">', lambda of: f'<span class="{SAME.get(of[1], of[1])}">', html
    )
    html = html.replace("&quot;", '"').replace("&#39;", "'")
    return re.sub(
        r'<span class="([sk])">([^<]*)</span>(?:<span class="\1">[^<]*</span>)+', joined, html
    )


def joined(found: re.Match[str]) -> str:
    text = re.sub(r"<[^>]+>", "", found[0])
    return f'<span class="{found[1]}">{text}</span>'
