"""One YAML file, read as a person typed it: plain data, or the line and the mend."""

from collections.abc import Callable
from typing import Any

import yaml

MOST_BYTES, MOST_DEPTH = 64 * 1024, 20
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


def plain_scalar(node: yaml.ScalarNode) -> Any:
    """What PyYAML makes of a scalar. It has no doubts, and base 60."""
    is_text = node.tag[18:] in ("str", "value", "merge")  # a lone = or << is text too
    return node.value if is_text else yaml.safe_load(node.value)


def read_yaml(
    raw: bytes, scalar: Callable[[yaml.ScalarNode], Any] = plain_scalar
) -> tuple[Any, dict[tuple, int]]:
    """The data in `raw`, and the line of each value. YamlError says what is wrong and where.

    `scalar` makes the value of each scalar that is not a key.
    """
    if len(raw) > MOST_BYTES:
        raise YamlError(1, f"the file has {len(raw)} bytes: shorten it to {MOST_BYTES}")
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        raise YamlError(line, "the file is not UTF-8: save it as UTF-8") from None
    try:
        loader = Loader(text)
        node = loader.get_single_node()
    except yaml.reader.ReaderError as error:
        line = text.count("\n", 0, error.position) + 1
        raise YamlError(line, f"remove the invisible character U+{error.character:04X}") from None
    except yaml.MarkedYAMLError as error:
        mark, said = error.problem_mark, f"{error.context} {error.problem}"
        hint = next(hint for part, hint in HINTS.items() if part in said)
        said = f"column {mark.column + 1}, {error.problem}: {hint}"
        raise YamlError(mark.line + 1, said) from None
    except YamlError:
        raise
    except (ValueError, OverflowError):  # Python has no such character or integer
        raise YamlError(loader.line + 1, "no such character: check the digits") from None
    if node is None:
        what = "the file holds only comments" if text.strip() else "the file is empty"
        raise YamlError(1, f"{what}: write a card")
    lines: dict[tuple, int] = {(): 1}  # the path of keys to a value: its line
    return value(node, (), lines, scalar), lines


def value(
    node: yaml.Node,
    path: tuple,
    lines: dict[tuple, int],
    scalar: Callable[[yaml.ScalarNode], Any],
) -> Any:
    """The plain value of a node. It and every value below leave their lines."""
    lines[path] = node.start_mark.line + 1
    if isinstance(node, yaml.ScalarNode):
        return scalar(node)
    if isinstance(node, yaml.SequenceNode):
        return [value(item, (*path, i), lines, scalar) for i, item in enumerate(node.value)]
    values: dict[str, Any] = {}
    for key, item in node.value:
        line, name = key.start_mark.line + 1, key.value
        if key.tag != "tag:yaml.org,2002:str":
            raise YamlError(line, f"a key must be text: put {str(name)[:20]!r} in quotes")
        if name in values:
            first = lines[*path, name]
            raise YamlError(line, f"{name!r} stands on lines {first} and {line}: keep one")
        values[name] = value(item, (*path, name), lines, scalar)
        lines[*path, name] = line
    return values
