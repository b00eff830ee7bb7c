"""The site, as far as it can be checked without a browser."""

from __future__ import annotations

import html
import os
import re
import signal
import subprocess
import time
import urllib.request
from pathlib import Path

import pytest

from workshop import env
from workshop.errors import Problem
from workshop.lesson import HEADINGS
from workshop.rebuild import hints_of
from workshop.repo import open_repo
from workshop.series import patch
from workshop.site import map as pictures
from workshop.site import measured
from workshop.site.check import PAGE_BYTES, check
from workshop.site.diffs import Change, changes, numbered, render
from workshop.site.facts import Course as Facts
from workshop.site.facts import Entry, read_course
from workshop.site.host import read_url
from workshop.site.links import relink
from workshop.site.plots import svg
from workshop.site.sources import SOLUTION, doc_names
from workshop.tests.conftest import Site
from workshop.tests.course import HERE, Course

pytestmark = pytest.mark.xdist_group("site")
SIGNS = {"ins": "+", "del": "-", 'span class="kept"': " ", 'span class="head"': ""}
INDEX = (
    "# A course\n\n> [!TIP]\n> One.\n\n<!-- site: map -->\n\n## Stages\n\n<!-- site: stages -->\n"
)
PARTS = "".join(f"\n## {heading}\n\nA part.\n" for heading in HEADINGS)
LESSON = PARTS.replace("## Solution\n", f"## Solution\n\n<details>\n\n{SOLUTION}\n\n</details>\n")


@pytest.fixture(scope="module")
def facts() -> Facts:
    return read_course(HERE)


@pytest.fixture
def paged(course: Course) -> Course:
    """A course whose lessons have all parts, with a front page."""
    for lesson in course.root.glob("stages/*/lesson.md"):
        lesson.write_text(lesson.read_text(encoding="utf-8") + LESSON, encoding="utf-8")
    (course.root / "docs").mkdir()
    (course.root / "docs" / "index.md").write_text(INDEX, encoding="utf-8")
    path = env.marker(course.root, env.SITE_LOCK)
    path.write_text(env.digest(course.root, env.SITE_LOCK), encoding="utf-8")
    return course


def page(site: Site, name: str) -> str:
    return (site.folder / f"{name}.html").read_text(encoding="utf-8")


def rows(text: str) -> list[str]:
    """The rows of a file's change, put together again from the page."""
    found = []
    for tag, code in re.findall(r"<(ins|del|span class=\"(?:kept|head)\")>(.*?)\n</", text, re.S):
        found.append(SIGNS[tag] + html.unescape(re.sub(r"<[^>]+>", "", code)))
    return found


def test_the_generator_has_nothing_to_say(site: Site) -> None:
    assert site.said == []


def test_every_link_and_anchor_resolves_and_every_page_is_small_enough(site: Site) -> None:
    assert check(site.folder) == []


def test_the_whole_site_takes_less_than_20_seconds(site: Site) -> None:
    assert site.seconds < 20


def test_every_stage_and_every_page_of_docs_has_a_page(site: Site, facts: Facts) -> None:
    there = {path.relative_to(site.folder).as_posix() for path in site.folder.rglob("*.html")}
    wanted = {f"{entry.page}.html" for entry in facts.entries}
    wanted |= {f"{name}.html" for name in doc_names(HERE)}
    assert there == {"index.html", "search.html", *wanted}


def test_a_page_of_a_stage_has_all_its_parts(site: Site, facts: Facts) -> None:
    for entry in facts.entries:
        text = page(site, entry.page)
        body = text[text.index("<article") : text.index("</article>")]
        assert re.findall(r"<h2>([^<]+)<", body) == list(HEADINGS), entry.slug
        assert html.escape(entry.lesson.title, quote=False) in body
        assert f"stage {entry.stage.number} of {len(facts.entries)}<" in body
        assert f"+{entry.added} lines" in body
        assert entry.stage.tag in body
        assert body.count('class="part here"') == (pictures.part_of(entry) is not None)


def test_hints_and_solution_are_folded(site: Site, facts: Facts) -> None:
    for entry in facts.entries:
        body = page(site, entry.page)
        folded = re.findall(r"<details><summary>(.*?)</summary>", body)
        assert set(folded) >= {title for title, _ in hints_of(entry.lesson)}, entry.slug
        assert any(title.startswith("The change, ") for title in folded), entry.slug


def test_pages_follow_each_other_in_the_order_of_the_line(site: Site, facts: Facts) -> None:
    for one, after in zip(facts.entries, facts.entries[1:], strict=False):
        assert f'rel="next" title="{after.number} ' in page(site, one.page)
        assert f'rel="prev" title="{one.number} ' in page(site, after.page)


def test_T50_a_solution_is_the_change_between_two_stages(site: Site, facts: Facts) -> None:
    repo = open_repo(HERE)
    before: Entry | None = None
    for entry in facts.entries:
        tree = before.stage.tree if before else None
        text = patch(repo, tree, entry.stage.tree).decode()
        shown = re.findall(
            r'<details class="file".*?<code>(.*?)</code>.*?<pre>(.*?)</pre>',
            page(site, entry.page),
            re.DOTALL,
        )
        names = {html.unescape(name) for name, _ in shown}
        listed = set(re.findall(r"^diff --git a/(\S+)", text, re.MULTILINE))
        given = ("tests/", *entry.lesson.given)
        counted = {change.name for change in entry.data}
        assert names == {name for name in listed - counted if not name.startswith(given)}
        assert not any(name.endswith(".py") for name in counted)
        for name, code in shown:
            wanted = text.split(f"diff --git a/{name} b/{name}\n")[1].split("\ndiff --git ")[0]
            at = wanted.find("\n@@ ")  # a file without a line has none
            exact = [] if at < 0 else wanted[at + 1 :].removesuffix("\n").split("\n")
            assert rows(code) == exact, f"{entry.slug}: {name}"
        before = entry


def test_what_is_not_shown_of_a_change_is_counted(site: Site, facts: Facts) -> None:
    for entry in facts.entries:
        text = page(site, entry.page)
        if entry.given:
            assert f"+{sum(change.added for change in entry.given):,} lines in " in text
        for change in entry.data:
            assert f"+{change.added:,} <code>{change.name}</code>" in text


def test_T50_lines_that_look_like_a_header_of_a_diff_are_kept() -> None:
    old, new = "-- a\n++ b\nsame", "++ b\n@@ -1 +1 @@\nsame\n"
    text = (
        "diff --git a/x.txt b/x.txt\nindex 11..22 100644\n--- a/x.txt\n+++ b/x.txt\n"
        "@@ -1,3 +1,3 @@\n--- a\n-++ b\n-same\n\\ No newline at end of file\n"
        "+++ b\n+@@ -1 +1 @@\n+same\n"
        "diff --git a/empty b/empty\nnew file mode 100644\nindex 00..33\n"
    )
    one, empty = changes(text)
    assert (one.name, one.added, one.removed) == ("x.txt", 3, 3)
    assert (empty.name, empty.rows, empty.old) == ("empty", (), "")
    made = render(one, {"11": old, "22": new}.__getitem__)
    assert rows(made) == list(one.rows)
    assert [sign for sign, *_ in numbered(one.rows)] == list("@---\\+++")


def test_T50_code_that_looks_like_html_stays_code() -> None:
    code = "x = '<b>&amp;</b>'  # </pre>\n"
    one = Change("x.py", "", "11", ("@@ -0,0 +1 @@", f"+{code.rstrip()}"))
    made = render(one, {"": "", "11": code}.__getitem__)
    assert rows(made) == list(one.rows)
    assert made.count("</pre>") == 1


def test_an_alert_of_a_code_host_becomes_a_note(site: Site) -> None:
    text = page(site, "index")
    assert 'class="admonition note"' in text
    assert "[!" not in text


def test_every_slug_of_the_map_is_a_stage(facts: Facts) -> None:
    slugs = {slug for part in pictures.PARTS for slug in part.slugs}
    assert slugs <= {entry.slug for entry in facts.entries}


def test_every_stage_from_chapter_2_on_is_on_the_map(facts: Facts) -> None:
    placed = [e.slug for entries in pictures.placed(facts).values() for e in entries]
    assert len(placed) == len(set(placed))
    wanted = {entry.slug for entry in facts.entries if entry.lesson.chapter > 1}
    assert wanted <= set(placed)


def test_no_two_parts_of_the_map_share_a_place() -> None:
    for drawing in (pictures.WIDE, pictures.NARROW):
        cells = [drawing.cell(part) for part in pictures.PARTS]
        assert len(cells) == len(set(cells)), drawing.name
    keys = [part.key for part in pictures.PARTS]
    assert {end for edge in pictures.EDGES for end in edge} <= set(keys)


@pytest.mark.parametrize("drawing", [pictures.WIDE, pictures.NARROW], ids=lambda d: str(d.name))
def test_a_part_of_the_map_grows_with_its_stages(facts: Facts, drawing: pictures.Drawing) -> None:
    parts = list(pictures.PARTS)
    few = {part.key: list(facts.entries[:1]) for part in parts}
    many = {**few, "coder": list(facts.entries[:9])}
    one, other = (pictures.fitted(drawing, stages) for stages in (few, many))
    assert other.size(parts)[1] == one.size(parts)[1] + 2 * pictures.BADGE
    assert drawing.width >= 8 + pictures.BADGE * pictures.A_ROW


def test_the_map_links_to_every_stage_by_name(site: Site, facts: Facts) -> None:
    text = page(site, "index")
    for entry in facts.entries:
        title = f"Stage {entry.number}: {html.escape(entry.lesson.title)}"
        link = f'href="{entry.page}.html" aria-label="{title}"><title>{title}</title>'
        assert text.count(link) == 2, entry.slug  # wide and narrow


@pytest.mark.parametrize(
    ("body", "fault"),
    [
        ('<a href="gone.html">x</a>', "links to gone.html, which is not there"),
        ('<a href="#gone">x</a>', "links to #gone, where there is no such anchor"),
        ('<a href="../secret">x</a>', "links to ../secret, which is not there"),
        ('<a href="http://plain.example">x</a>', "links to http://plain.example"),
        ('<script src="https://cdn.example/x.js"></script>', "loads https://cdn.example/x.js"),
        ('<img src="//cdn.example/x.png">', "loads //cdn.example/x.png"),
        ('<link rel="stylesheet" href="gone.css">', "loads gone.css, which is not there"),
        ('<b id="x"></b><b id="x"></b>', "the id x stands there twice"),
        ("x" * PAGE_BYTES, "bytes, more than"),
    ],
)
def test_the_check_finds_a_fault(tmp_path: Path, body: str, fault: str) -> None:
    (tmp_path / "index.html").write_text(f"<html>{body}</html>", encoding="utf-8")
    (found,) = check(tmp_path)
    assert fault in found


def test_the_check_finds_a_font_of_another_host(tmp_path: Path) -> None:
    (tmp_path / "index.html").write_text("<html></html>")
    (tmp_path / "x.css").write_text("@font-face { src: url(https://fonts.example/x.woff2) }")
    assert check(tmp_path) == ["x.css: loads from another host"]


@pytest.mark.parametrize(
    ("remote", "url"),
    [
        ("https://github.com/one/two.git", "https://github.com/one/two"),
        ("git@github.com:one/two.git", "https://github.com/one/two"),
        ("ssh://git@gitlab.com:22/group/sub/two", "https://gitlab.com/group/sub/two"),
        ("https://name:secret@codeberg.org/one/two/", "https://codeberg.org/one/two"),
        ("https://ghp_key@github.com/one/two", "https://github.com/one/two"),
        ("https://git.example/one/two.git", None),
        ("/srv/git/github.com/one/two", None),
        ("../two", None),
        ("", None),
    ],
)
def test_a_remote_becomes_a_link_without_its_key(remote: str, url: str | None) -> None:
    found = read_url(remote)
    assert (found.url if found else None) == url


def test_a_tag_is_linked_where_the_remote_is_on_a_code_host(paged: Course) -> None:
    (paged.root / "docs" / "index.md").write_text(f"{INDEX}\n[it](../justfile)\n")
    remote = ("remote", "add", "origin", "https://me:key@github.com/one/two.git")
    subprocess.run(["git", *remote], cwd=paged.root, check=True)
    done = paged("docs", "--build", "out")
    assert done.returncode == 0, done.stderr
    text = (paged.root / "out" / "stages" / "echo.html").read_text(encoding="utf-8")
    assert 'href="https://github.com/one/two/tree/stage-02-echo"' in text
    front = (paged.root / "out" / "index.html").read_text(encoding="utf-8")
    assert 'href="https://github.com/one/two/blob/main/justfile"' in front
    assert "key@" not in text


def test_links_between_files_become_links_between_pages(facts: Facts) -> None:
    source = HERE / "docs" / "measurements.md"
    folder = facts.of("threshold").stage.folder
    text = (
        f"[a](../stages/{folder}/lesson.md#why) [b](index.md) [c](../justfile) [d](#here)\n"
        "`[e](gone.md)`\n```text\n[f](gone.md)\n```\n[g](https://example.org/x.md)\n"
    )
    made = relink(text, source, Facts(facts.root, facts.entries, facts.blob, None))
    assert made == text.replace(f"../stages/{folder}/lesson.md", "/stages/threshold.md").replace(
        "(index.md)", "(/index.md)"
    ).replace("[c](../justfile)", "c")


def test_a_link_that_leads_nowhere_is_a_problem(facts: Facts) -> None:
    with pytest.raises(Problem, match=r"gone\.md leads nowhere"):
        relink("[x](gone.md)", HERE / "docs" / "index.md", facts)


def test_the_tables_of_measurements_say_what_the_files_hold() -> None:
    text = (HERE / measured.PAGE).read_text(encoding="utf-8")
    assert text == measured.with_tables(HERE, text), "run: python -m workshop pages"


def test_every_measurement_has_its_place_on_the_page(site: Site) -> None:
    text = (HERE / measured.PAGE).read_text(encoding="utf-8")
    there = measured.there(HERE)
    known = [one.name for one in measured.MEASUREMENTS]
    assert known == [found[2] for found in measured.MARKS.finditer(text)]
    plots = sum(len(one.plots(one.read(HERE))) for one in there)
    assert page(site, "measurements").count('<figure class="plot">') == plots


@pytest.mark.parametrize(
    ("shown", "got", "count"),
    [
        ({"a": 1.0, "b": [1, 2]}, {"a": 1.015, "b": [1, 2]}, 0),
        ({"a": 1.0}, {"a": 1.03}, 1),
        ({"a": 1}, {"b": 1}, 1),
        ({"a": [1]}, {"a": [1, 1]}, 1),
        ({"a": None}, {"a": 0.0}, 1),
        ({"a": True}, {"a": 1}, 0),
        ({"seconds": 1, "route_ms": 2}, {"seconds": 9, "route_ms": 8}, 0),
    ],
)
def test_a_measurement_differs_by_more_than_its_tolerance(
    shown: object, got: object, count: int
) -> None:
    assert len(measured.differences(shown, got, 0.02)) == count


def test_A_against_B_against_C_is_shown_with_its_endpoint() -> None:
    share = {"hits": 3, "of": 4, "share": 0.75, "between": (0.3, 0.95)}
    none = {"hits": 0, "of": 0, "share": 0, "between": (0, 1)}
    arm = {
        **dict.fromkeys(("input", "output", "definitions", "results", "results_long"), 1234.5),
        **{"agent": none, "tool": share, "answer": share, "answer_long": none},
        **{"kinds": {"ghost": 2}, "refused": 0, "failed": 1},
    }
    found = {"endpoint": "practice-chat. No model.", "arms": {"A5": arm, "B": arm}}
    shown = measured.abc_table(found)
    assert "Measured on practice-chat. No model." in shown
    row = "| B | 1,234 | 1,234 | 1,234 | 1,234 | – | 75 % | 75 % | – | 2 | 0 | 0 | 1 |"
    assert row in shown.splitlines()
    drawings = [svg(plot) for plot in measured.abc_plots(found)]
    assert len(drawings) == 4
    assert all("practice-chat. No model." in drawing for drawing in drawings)


def test_docs_check_builds_looks_and_leaves_nothing(paged: Course) -> None:
    done = paged("docs", "--check")
    assert done.returncode == 0, done.stderr
    assert re.fullmatch(r"6 pages, [\d,]+ bytes, [\d.]+ s: no fault\n", done.stdout)
    assert not (paged.root / "site").exists()
    lesson = next(paged.root.glob("stages/02-*/lesson.md"))
    text = lesson.read_text(encoding="utf-8")
    lesson.write_text(text.replace("A part.", "[x](#gone)", 1), encoding="utf-8")
    done = paged("docs", "--check")
    assert done.returncode == 1
    assert "gone" in done.stderr


def test_docs_build_writes_over_no_folder_of_yours(paged: Course) -> None:
    (paged.root / "mine").mkdir()
    (paged.root / "mine" / "index.html").write_text("mine")
    done = paged("docs", "--build", "mine")
    assert done.returncode == 1
    assert "holds something else" in done.stderr
    assert [path.name for path in (paged.root / "mine").iterdir()] == ["index.html"]


def test_docs_serves_on_this_machine_and_builds_again_after_a_change(paged: Course) -> None:
    words = paged.start("docs", "--port", "0")
    environment = {**paged.environment(), "PYTHONUNBUFFERED": "1"}
    with subprocess.Popen(
        words, cwd=paged.root, env=environment, stdout=subprocess.PIPE, text=True
    ) as child:
        try:
            assert child.stdout
            url = ""
            while not url.startswith("http://127.0.0.1:"):
                url = child.stdout.readline()
                assert url, "it ended"
            address = f"{url.split()[0]}stages/echo.html"
            assert "/.build?" in read(address)
            lesson = next(paged.root.glob("stages/02-*/lesson.md"))
            text = lesson.read_text(encoding="utf-8")
            lesson.write_text(text.replace("A part.", "A new part.", 1), encoding="utf-8")
            wait_for(lambda: "A new part." in read(address))
        finally:
            child.send_signal(signal.SIGINT)
            child.wait(30)
    assert child.returncode == 130
    assert "/.build?" not in (paged.root / "site" / "index.html").read_text(encoding="utf-8")


def read(address: str) -> str:
    with urllib.request.urlopen(address, timeout=30) as answer:
        return str(answer.read().decode())


def wait_for(true: object, seconds: float = 60) -> None:
    scale = float(os.environ.get("TINY_TEST_SCALE") or "1")
    end = time.monotonic() + seconds * scale
    assert callable(true)
    while not true():
        assert time.monotonic() < end, "it did not happen"
        time.sleep(0.2)
