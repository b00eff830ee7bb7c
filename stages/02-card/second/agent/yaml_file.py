"""One YAML document as data that knows its lines, refused where YAML would guess.

Does not know what a card is. Reads PyYAML's events one after the other, so that nothing is
built before it has been looked at.
"""

from __future__ import annotations

import re
from collections.abc import Hashable
from typing import Any

import yaml
from yaml import events as ev

BYTES = 64 * 1024
LEVELS = 20
TEXT = "tag:yaml.org,2002:str"
BREAK = re.compile("\r\n|[\r\n\u2028\u2029]")
NEXT_LINE = "\x85"  # PyYAML takes it for a line's end, and no editor does


class YamlError(ValueError):
    """What is wrong in a file, in which line (from 1), and what mends it."""

    def __init__(self, line: int, message: str) -> None:
        super().__init__(f"line {line}: {message}")
        self.line = line
        self.message = message


def read_yaml(raw: bytes) -> tuple[Any, dict[tuple, int]]:
    """The data of a document, and the line of each path in it. YamlError for all that is wrong."""
    text = as_text(raw)
    try:
        return Document(text).read()
    except yaml.MarkedYAMLError as error:
        raise in_plain_words(text, error) from None


def as_text(raw: bytes) -> str:
    if len(raw) > BYTES:
        raise YamlError(1, f"the file has {len(raw)} bytes; {BYTES} are the most. Shorten it.")
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        # The part before the fault is sound. A byte order mark adds no line.
        sound = raw[: error.start].decode("utf-8", errors="replace")
        where = line_at(sound, len(sound))
        raise YamlError(where, "this is not UTF-8. Save the file as UTF-8.") from None
    bad = yaml.reader.Reader.NON_PRINTABLE.search(text.replace(NEXT_LINE, "\0"))
    if bad:
        code = ord(text[bad.start()])
        what = f"a control character (U+{code:04X}). Remove it, or save the file as UTF-8."
        raise YamlError(line_at(text, bad.start()), what)
    return text


def line_at(text: str, position: int) -> int:
    return len(BREAK.findall(text, 0, position)) + 1


class Document:
    """A descent through the events of one document."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.loader = yaml.SafeLoader(text)
        self.lines: dict[tuple, int] = {}

    def read(self) -> tuple[Any, dict[tuple, int]]:
        self.next()  # the stream's start
        if isinstance(self.next(), ev.StreamEndEvent):
            only = "holds comments and nothing else" if self.text.strip() else "is empty"
            raise YamlError(1, f"the file {only}. Write a document into it.")
        data = self.value(self.next(), ())
        self.next()  # the document's end
        after = self.next()
        if not isinstance(after, ev.StreamEndEvent):
            raise YamlError(line_of(after), "a second document starts. Give it a file of its own.")
        self.lines[()] = 1
        return data, self.lines

    def next(self) -> ev.Event:
        try:
            return self.loader.get_event()
        except (ValueError, OverflowError):  # "\UFFFFFFFF" is a number that no character has
            raise YamlError(
                self.loader.get_mark().line + 1, "an escape like \\U stands for no character."
            ) from None

    def value(self, event: ev.Event, path: tuple) -> Any:
        line = line_of(event)
        self.lines.setdefault(path, line)
        refuse_indirection(event)
        if len(path) >= LEVELS:
            raise YamlError(line, f"more than {LEVELS} levels. Write it flatter.")
        if isinstance(event, ev.MappingStartEvent):
            return self.mapping(path)
        if isinstance(event, ev.SequenceStartEvent):
            return self.sequence(path)
        return self.scalar(event)

    def mapping(self, path: tuple) -> dict[str, Any]:
        found: dict[str, Any] = {}
        while not isinstance(event := self.next(), ev.MappingEndEvent):
            key, line = self.key(event), line_of(event)
            here = (*path, key)
            if key in found:
                first = self.lines[here]
                twice = f"{key!r} stands twice, in line {first} and line {line}. Remove one."
                raise YamlError(line, twice)
            self.lines[here] = line
            found[key] = self.value(self.next(), here)
        return found

    def sequence(self, path: tuple) -> list[Any]:
        found: list[Any] = []
        while not isinstance(event := self.next(), ev.SequenceEndEvent):
            found.append(self.value(event, (*path, len(found))))
        return found

    def key(self, event: ev.Event) -> str:
        refuse_indirection(event)
        if isinstance(event, ev.ScalarEvent):
            if self.tag(event) == TEXT:
                return str(event.value)
            odd = f"YAML does not read the key {event.value!r} as text. Put it in quotes."
            raise YamlError(line_of(event), odd)
        raise YamlError(line_of(event), "a list or a mapping is no key. Use a text.")

    def tag(self, event: ev.ScalarEvent) -> str:
        return str(self.loader.resolve(yaml.ScalarNode, event.value, event.implicit))

    def scalar(self, event: ev.ScalarEvent) -> Hashable:
        node = yaml.ScalarNode(self.tag(event), event.value, event.start_mark, event.end_mark)
        try:
            return self.loader.construct_object(node)
        except (yaml.YAMLError, ValueError, OverflowError):
            odd = f"{event.value[:40]!r} looks like a number, a date or a sign of YAML's own, and"
            raise YamlError(line_of(event), f"{odd} is none. Put it in quotes.") from None


def line_of(event: ev.Event) -> int:
    return int(event.start_mark.line) + 1


def refuse_indirection(event: ev.Event) -> None:
    """YamlError for an alias, an anchor or a tag: each can make much of little."""
    if isinstance(event, ev.AliasEvent):
        what = f"the alias *{event.anchor}"
    elif getattr(event, "anchor", None):
        what = f"the anchor &{event.anchor}"
    elif getattr(event, "tag", None):
        what = f"the tag {event.tag}"
    else:
        return
    mend = "Write the value out, or put it in quotes if it is text."
    raise YamlError(line_of(event), f"{what} is not allowed. {mend}")


# What PyYAML says, or where it was: what a person can do about it. The first that fits is taken.
MENDS = (
    ("quoted scalar", "quotes are opened and never closed. Close the quotes."),
    ("scanning an alias", "a value cannot start with *. Put it in quotes."),
    ("scanning an anchor", "a value cannot start with &. Put it in quotes."),
    ("tag", "a value cannot start with !. Put it in quotes."),
    ("mapping values", "a value holds ': ', or a key stands too far right. Put it in quotes."),
    ("cannot start any token", "a value starts with a sign of YAML's own. Put it in quotes."),
    ("directive", "a line cannot start with %. Put the value in quotes."),
    ("escape", "a backslash in \"…\" starts an escape. Use '…' quotes."),
    ("", "this does not fit what stands before it. Put the whole value in quotes, or align it."),
)


def in_plain_words(text: str, error: yaml.MarkedYAMLError) -> YamlError:
    mark, context = error.problem_mark or error.context_mark, error.context or ""
    if "quoted scalar" in context and "end of stream" in (error.problem or ""):
        mark = error.context_mark
    rows = BREAK.split(text)
    row = rows[mark.line] if mark.line < len(rows) else ""
    indent = row[: len(row) - len(row.lstrip())]
    if "\t" in indent or "'\\t'" in (error.problem or ""):
        return YamlError(mark.line + 1, "a tab. Use spaces.")
    said = f"{context} {error.problem}"
    mend = next(mend for sign, mend in MENDS if sign in said)
    return YamlError(mark.line + 1, mend)
