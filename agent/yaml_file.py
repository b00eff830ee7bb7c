"""One YAML file, read as a person typed it: plain data, or the line and the mend."""

import re
from typing import Any

import yaml

MOST_BYTES, MOST_DEPTH = 64 * 1024, 20
JSON_SCALAR = re.compile(r"-?(0|[1-9][0-9]{0,14})(\.[0-9]{1,15})?|true|false|null")
CUT = re.compile(r"[ \t]+#")  # after a value: YAML takes the rest of the line for a comment
UNUSABLE = re.compile("[\0-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff\ufeff]")
HINTS = {  # a part of what PyYAML says: the mend
    "mapping values are not allowed": "put a value that has ': ' in quotes, or mend the indent",
    "'\\t'": "a tab stands where YAML wants spaces: indent with spaces",
    "single document": "one card a file: move what follows '---' to a file of its own",
    "": "check the indent, and put a value that starts or ends with a sign in quotes",
}


class YamlError(ValueError):
    """What is wrong, and the mend. `line` is counted from 1."""

    def __init__(self, line: int, message: str) -> None:
        super().__init__(f"line {line}: {message}")
        self.line, self.message = line, message


class Loader(yaml.SafeLoader):
    """Refuses what explodes or lies, before it is built: 306 bytes can do it (pyyaml#235)."""

    depth = 0

    def compose_node(self, parent: yaml.Node | None, index: Any) -> yaml.Node:
        event, self.depth = self.peek_event(), self.depth + 1
        if event.anchor or getattr(event, "tag", None):
            what = "an anchor, an alias or a tag (& * !): put it in quotes, or spell it out"
            raise YamlError(event.start_mark.line + 1, what)
        if self.depth > MOST_DEPTH:
            raise YamlError(event.start_mark.line + 1, f"over {MOST_DEPTH} levels deep: flatten it")
        node = super().compose_node(parent, index)
        self.depth -= 1
        return node


def read_yaml(raw: bytes) -> tuple[Any, dict[tuple, int]]:
    """The data in `raw`, and the line of each value. YamlError says what is wrong and where."""
    if len(raw) > MOST_BYTES:
        raise YamlError(1, f"the file has {len(raw)} bytes: shorten it to {MOST_BYTES}")
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        raise YamlError(line, "the file is not UTF-8: save it as UTF-8") from None
    try:
        node = yaml.compose(text, Loader=Loader)
    except yaml.reader.ReaderError as error:
        line = text.count("\n", 0, error.position) + 1
        raise YamlError(line, f"remove the invisible character U+{error.character:04X}") from None
    except yaml.MarkedYAMLError as error:
        mark, said = error.problem_mark, f"{error.context} {error.problem}"
        hint = next(hint for part, hint in HINTS.items() if part in said)
        said = f"column {mark.column + 1}, {error.problem}: {hint}"
        raise YamlError(mark.line + 1, said) from None
    if node is None:
        what = "the file holds only comments" if text.strip() else "the file is empty"
        raise YamlError(1, f"{what}: write a card")
    lines: dict[tuple, int] = {(): 1}  # the path of keys to a value: its line
    return value(node, (), lines), lines


def value(node: yaml.Node, path: tuple, lines: dict[tuple, int]) -> Any:
    """The plain value of a node. It and every value below leave their lines."""
    lines[path] = node.start_mark.line + 1
    if isinstance(node, yaml.ScalarNode):
        return scalar(node)
    if isinstance(node, yaml.SequenceNode):
        return [value(item, (*path, i), lines) for i, item in enumerate(node.value)]
    values: dict[str, Any] = {}
    for key, item in node.value:
        line, name = key.start_mark.line + 1, key.value
        if key.tag != "tag:yaml.org,2002:str" or UNUSABLE.search(name):
            raise YamlError(line, f"a key must be text: put {str(name)[:20]!r} in quotes")
        if name in values:
            first = lines[*path, name]
            raise YamlError(line, f"{name!r} stands on lines {first} and {line}: keep one")
        values[name] = value(item, (*path, name), lines)
        lines[*path, name] = line
    return values


def scalar(node: yaml.ScalarNode) -> Any:
    """Text, or what JSON spells the same. YAML's other readings (no, 1:30, 010) are errors."""
    line, text, plain = node.start_mark.line + 1, node.value, node.style is None
    if plain and JSON_SCALAR.fullmatch(text):
        return yaml.safe_load(text)
    if plain and not node.tag.endswith(":str"):
        raise YamlError(line, f"{text[:30]!r} is {node.tag[18:]} to YAML: quote it or write digits")
    if plain and CUT.match(node.end_mark.buffer, node.end_mark.pointer):
        raise YamlError(line, f"{text[:30]!r} is cut by ' #': quote it, or move the comment")
    if UNUSABLE.search(text):
        raise YamlError(line, f"{text[:30]!r} holds a control character: remove it")
    return text
