"""A lesson: its front matter, and its parts by their headings."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path

import yaml

from workshop.errors import Problem

HEADINGS = ("Why", "Task", "Contract", "Hints", "Prove it", "Solution", "Break it", "Next")
CHAPTERS = {
    1: "Two problems",
    2: "Cards",
    3: "The router",
    4: "Saying no",
    5: "The runner",
    6: "The budget",
    7: "Artifacts",
    8: "Together",
    9: "A coding agent",
    10: "Past the prototype",
}

# The front matter's keys: the kind of value, and whether every lesson has it.
KEYS: dict[str, tuple[type | tuple[type, ...], bool]] = {
    "title": (str, True),
    "chapter": (int, True),
    "concept": (str, True),
    "touches": (list, True),
    "proof": (str, True),
    "run": (str, False),
    "given": (list, False),
    "tolerance": ((int, float), False),
    "exit": (int, False),
}
NAMES = {str: "a text", int: "a whole number", list: "a list of texts", (int, float): "a number"}


@dataclass(frozen=True)
class Lesson:
    """One stage's page. `proof` and `run` are commands as they are typed after `just with`."""

    path: Path
    title: str
    chapter: int
    concept: str
    touches: list[str]
    proof: str
    run: str | None = None  # what `just run` calls from this stage on
    given: list[str] = field(default_factory=list)  # what a rebuilder is handed beside the tests
    tolerance: float = 0.0  # for numbers in the proof's output
    exit: int = 0  # the exit code that the proof ends with
    body: str = ""

    @classmethod
    def read(cls, path: Path) -> Lesson:
        """The lesson in a file. Problem names the file and what is wrong with its front matter."""
        try:
            text = path.read_text(encoding="utf-8")
        except FileNotFoundError:
            raise Problem(f"{path} is missing.", "Restore it: git checkout -- stages") from None
        parts = re.match(r"(?:<!--.*?-->\n)?---\n(.*?\n)---\n(.*)", text, re.DOTALL)
        if not parts:
            raise Problem(f"{path} has no front matter.", "Start it with a line that is just ---.")
        try:
            data = yaml.safe_load(parts[1])
        except yaml.YAMLError as error:
            raise Problem(f"{path}: front matter: {error}", "Mend that line.") from None
        known = ", ".join(KEYS)
        if not isinstance(data, dict):
            raise Problem(f"{path}: the front matter has no keys.", f"There are: {known}.")
        for key in data:
            if key not in KEYS:
                raise Problem(f"{path}: front matter: no key is called {key!r}.", f"Only {known}.")
            if len(re.findall(rf"^{key}:", parts[1], re.MULTILINE)) > 1:
                raise Problem(f"{path}: front matter: {key} stands there twice.", "Remove one.")
        for key, (kind, needed) in KEYS.items():
            value = data.get(key)
            if value is None and key not in data and not needed:
                continue
            items = value if isinstance(value, list) else []
            if isinstance(value, bool) or not isinstance(value, kind) or value == "":
                said = "is missing" if key not in data else f"is {value!r}"
                raise Problem(f"{path}: front matter: {key} {said}.", f"It is {NAMES[kind]}.")
            if not all(isinstance(item, str) for item in items):
                raise Problem(
                    f"{path}: front matter: {key} is {value!r}.", "It is a list of texts."
                )
        return cls(path=path, body=parts[2], **data)

    @property
    def sections(self) -> dict[str, str]:
        """The text under each `## ` heading, in their order; the hook is under ""."""
        found, heading, fence = {"": ""}, "", ""
        for row in self.body.splitlines(keepends=True):
            mark = re.match(r" {0,3}(```+|~~~+)", row)
            if mark and not fence:
                fence = mark[1]
            elif mark and mark[1].startswith(fence) and row.strip() == mark[1]:
                fence = ""
            if not fence and row.startswith("## "):
                heading = row[3:].strip()
                found[heading] = ""
            else:
                found[heading] += row
        return found

    @property
    def commands(self) -> list[tuple[str, str]]:
        """Each command that a `console` block shows, and what it prints there."""
        return console_commands(self.body)


def console_commands(text: str) -> list[tuple[str, str]]:
    """The commands in a page's `console` blocks, after `$ `, and what follows each."""
    found = []
    for block in re.findall(r"^```console\n(.*?)^```", text, re.DOTALL | re.MULTILINE):
        for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            command, _, output = part.partition("\n")
            found.append((command, output))
    return found
