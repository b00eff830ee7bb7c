"""The generator's input: a Markdown file a page, from the lessons, the line and `docs/`."""

from __future__ import annotations

from html import escape
from pathlib import Path

from workshop.errors import Problem
from workshop.lesson import CHAPTERS
from workshop.series import write
from workshop.site import map as pictures
from workshop.site.diffs import Change, render
from workshop.site.facts import Course, Entry
from workshop.site.links import raw, relink
from workshop.site.measured import with_plots

SOLUTION = "(the diff from the line, put here by the build)"
FIRST = ("how-it-works", "endpoints", "measurements", "troubleshooting", "glossary")
LAST = ("maintainers",)
OPEN = 160  # rows: a file of a solution with more than these is folded


def write_sources(course: Course, folder: Path) -> None:
    """Write all pages. A file that says the same is not touched; one without a page goes."""
    pages = {f"{entry.page}.md": stage_page(course, entry) for entry in course.entries}
    for name in doc_names(course.root):
        pages[f"{name}.md"] = doc_page(course, name)
    pages["index.md"] = front_page(course)
    for name, text in pages.items():
        write(folder / name, text.encode())
    for path in folder.rglob("*.md"):
        if path.relative_to(folder).as_posix() not in pages:
            path.unlink()


def doc_names(root: Path) -> list[str]:
    """The pages of `docs/` in their order: the ones that are named above, the others between."""
    found = {path.stem for path in (root / "docs").glob("*.md")} - {"index"}
    others = sorted(found - {*FIRST, *LAST})
    return [name for name in (*FIRST, *others, *LAST) if name in found]


def doc_page(course: Course, name: str) -> str:
    path = course.root / "docs" / f"{name}.md"
    text = relink(path.read_text(encoding="utf-8"), path, course)
    return with_plots(course.root, text, raw)


def front_page(course: Course) -> str:
    """docs/index.md, the map and the stages in the place of their marks, and what the menu has."""
    path = course.root / "docs" / "index.md"
    text = relink(path.read_text(encoding="utf-8"), path, course)
    wide, narrow = (pictures.picture(course, one) for one in (pictures.WIDE, pictures.NARROW))
    picture = (
        f'<div class="the-map" id="map">{wide}{narrow}</div>'
        f"<details><summary>The same as a list</summary>{pictures.listed(course)}</details>"
    )
    text = text.replace("<!-- site: map -->\n", raw(picture))
    text = text.replace("<!-- site: stages -->\n", stages_list(course))
    trees = [menu("The system", doc_names(course.root))]
    for number, name in CHAPTERS.items():
        pages = [entry.page for entry in course.entries if entry.lesson.chapter == number]
        trees += [menu(f"{number:02d} {name}", pages)] if pages else []
    return text + "".join(trees)


def menu(caption: str, pages: list[str]) -> str:
    return f"\n```{{toctree}}\n:hidden:\n:caption: {caption}\n\n" + "\n".join(pages) + "\n```\n"


def stages_list(course: Course) -> str:
    """A heading a chapter, and below it a line a stage."""
    rows, chapter = [], 0
    for entry in course.entries:
        if entry.lesson.chapter != chapter:
            chapter = entry.lesson.chapter
            rows.append(f"\n### {chapter:02d} {CHAPTERS[chapter]}\n")
        link = f"[{entry.number} {entry.lesson.title}](/{entry.page}.md)"
        rows.append(f"- {link}, +{entry.added}  \n  {entry.lesson.concept}")
    return "\n".join(rows) + "\n"


def stage_page(course: Course, entry: Entry) -> str:
    """A lesson between its heading and its solution, which come from the line."""
    lesson = entry.lesson
    body = relink(lesson.body, lesson.path, course)
    if SOLUTION not in body:
        raise Problem(f"{lesson.path} has no place for its solution.", f"Add a line: {SOLUTION}")
    body = body.replace(SOLUTION, solution(course, entry))
    # The hook stands before the first heading.
    hook, mark, rest = body.strip().partition("\n## ")
    head = raw(facts(course, entry) + pictures.small(course, entry, "../"))
    return f"# {entry.number} {lesson.title}\n{head}\n{{.hook}}\n{hook.strip()}\n{mark}{rest}\n"


def facts(course: Course, entry: Entry) -> str:
    """The line under a stage's title."""
    lesson, tag = entry.lesson, escape(entry.stage.tag)
    where = (
        f'<a href="{escape(course.host.tag(entry.stage.tag), quote=True)}">{tag}</a>'
        if course.host
        else f"<code>{tag}</code>, laid out by <code>just stage {entry.stage.number}</code>"
    )
    return (
        f'<p class="facts"><span>Chapter {lesson.chapter:02d}, '
        f"{escape(CHAPTERS[lesson.chapter])}</span>"
        f"<span>stage {entry.stage.number} of {len(course.entries)}</span>"
        f"<span>+{entry.added} lines in <code>agent/</code></span><span>tag {where}</span></p>"
    )


def solution(course: Course, entry: Entry) -> str:
    """The change, folded by file; what a rebuilder is handed, as counts."""
    parts = [file_html(course, change) for change in entry.ours]
    if entry.given:
        added = sum(change.added for change in entry.given)
        names = sorted({top(change.name) for change in entry.given})
        listed = ", ".join(f"<code>{escape(name)}</code>" for name in names)
        command = f"just diff {entry.stage.number} tests/"
        parts.append(
            f'<p class="given">Beside it, and handed to you by <code>just start '
            f"{entry.stage.number}</code>: +{added:,} lines in {listed}. "
            f"<code>{command}</code> shows the tests.</p>"
        )
    if entry.data:
        listed = ", ".join(
            f"+{change.added:,} <code>{escape(change.name)}</code>" for change in entry.data
        )
        parts.append(
            f'<p class="given">Data, as counts: {listed}. '
            f"<code>just diff {entry.stage.number} --all</code> shows it.</p>"
        )
    return raw("\n".join(parts))


def top(name: str) -> str:
    """A file of the tests by its name, one of the data by its folder."""
    parts = name.split("/")
    return name if len(parts) < 3 else "/".join(parts[:2]) + "/"


def file_html(course: Course, change: Change) -> str:
    kind = "new" if not change.old else "deleted" if not change.new else "changed"
    count = f"+{change.added}" + (f" −{change.removed}" if change.removed else "")
    fold = "" if len(change.rows) > OPEN else " open"
    return (
        f'<details class="file"{fold}><summary><code>{escape(change.name)}</code> '
        f"<span>{kind}, {count}</span></summary>{render(change, course.blob)}</details>"
    )
