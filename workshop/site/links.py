"""Markdown of the repository made fit for the site: links between files become links to pages."""

from __future__ import annotations

import os.path
import re
from collections.abc import Callable
from pathlib import Path, PurePosixPath

from workshop.errors import Problem
from workshop.site.facts import Course

LINK = re.compile(r"(?<!!)\[([^\]]*)\]\(([^)\s]+)\)")
FENCE = re.compile(r" {0,3}(```+|~~~+)")
CODE = re.compile(r"(`+)(?!`).*?(?<!`)\1(?!`)")


def outside_code(text: str, change: Callable[[str], str]) -> str:
    """The text with `change` applied to each line that is no code."""
    lines, fence = [], ""
    for line in text.splitlines(keepends=True):
        mark = FENCE.match(line)
        if mark and not fence:
            fence = mark[1]
        elif mark and mark[1].startswith(fence) and line.strip() == mark[1]:
            fence = ""
        elif not fence:
            line = change(line)
        lines.append(line)
    return "".join(lines)


def relink(text: str, source: Path, course: Course) -> str:
    """Links to files of the repository, as links to pages, or to the code host, or as no links.

    `source` is the file that the text stands in. Problem where a link leads nowhere.
    """
    pages = {f"stages/{entry.stage.folder}/lesson.md": entry.page for entry in course.entries}
    folder = source.relative_to(course.root).parent.as_posix()

    def one(found: re.Match[str]) -> str:
        words, target = found[1], found[2]
        if re.match(r"[a-z]+:|#", target):
            return found[0]
        name, _, anchor = target.partition("#")
        path = os.path.normpath(str(PurePosixPath(folder) / name))
        hash_ = f"#{anchor}" if anchor else ""
        if path in pages:
            return f"[{words}](/{pages[path]}.md{hash_})"
        if path.startswith("docs/") and path.endswith(".md") and (course.root / path).is_file():
            return f"[{words}](/{path.removeprefix('docs/')}{hash_})"
        if not (course.root / path).exists():
            raise Problem(f"{source}: the link to {target} leads nowhere.", "Mend the link.")
        return f"[{words}]({course.host.path(path)}{hash_})" if course.host else words

    def line(text: str) -> str:
        spans = [match.span() for match in CODE.finditer(text)]

        def kept(found: re.Match[str]) -> str:
            inside = any(start < found.start() and found.end() < end for start, end in spans)
            return found[0] if inside else one(found)

        return LINK.sub(kept, text)

    return outside_code(text, line)


def raw(html: str) -> str:
    """HTML as a block that Markdown leaves alone, blank lines and all."""
    return f"\n``````````{{raw}} html\n{html}\n``````````\n"
