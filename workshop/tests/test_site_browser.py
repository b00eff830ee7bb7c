"""The site in a real browser: Debian's chromium, driven by playwright, over http and from files."""

from __future__ import annotations

import functools
import os
import shutil
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from workshop.tests.conftest import Site

playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="axe is not installed")
CHROMIUM = shutil.which("chromium")
pytestmark = [
    pytest.mark.xdist_group("site"),
    pytest.mark.skipif(not CHROMIUM, reason="no chromium: apt-get install chromium"),
]
# Without these, the browser itself asks hosts of its maker's; and the tests may run as root.
FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync",
         "--disable-background-networking", "--disable-component-update"]  # fmt: skip
SAMPLE = ("index", "stages/threshold", "measurements")
SECONDS = 30 * float(os.environ.get("TINY_TEST_SCALE") or "1")
WAYS = ["http", "file"]


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: object) -> None:
        """Nothing."""


@dataclass
class Visit:
    """What a browser met on all pages that it opened: by the page's name."""

    requests: list[str] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    answers: list[tuple[str, int]] = field(default_factory=list)
    widths: dict[str, int] = field(default_factory=dict)


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with playwright.sync_playwright() as driver:
        found = driver.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield found
        found.close()


@pytest.fixture(scope="module")
def bases(site: Site) -> Iterator[dict[str, str]]:
    """The site's address each way."""
    handler = functools.partial(Quiet, directory=str(site.folder))
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield {
        "http": f"http://127.0.0.1:{server.server_port}/",
        "file": f"{site.folder.as_uri()}/",
    }
    server.shutdown()
    thread.join()
    server.server_close()


def names(site: Site) -> list[str]:
    found = [path.relative_to(site.folder) for path in site.folder.rglob("*.html")]
    return sorted(path.with_suffix("").as_posix() for path in found)


def opened(browser: Any, base: str, name: str, **how: Any) -> Any:
    """A page in a context of its own, which the caller closes by `page.context.close()`."""
    context = browser.new_context(**how)
    context.set_default_timeout(1000 * SECONDS)
    page = context.new_page()
    page.goto(f"{base}{name}.html")
    return page


def visit(browser: Any, base: str, pages: list[str], width: int) -> Visit:
    """Open all pages at a width."""
    met = Visit()
    page = opened(browser, base, "index", viewport={"width": width, "height": 640})
    page.on("request", lambda request: met.requests.append(request.url))
    page.on("console", lambda said: met.errors.append(f"{page.url}: {said.type}: {said.text}"))
    page.on("pageerror", lambda error: met.errors.append(f"{page.url}: {error}"))
    page.on("response", lambda got: met.answers.append((got.url, got.status)))
    for name in pages:
        page.goto(f"{base}{name}.html")
        met.widths[name] = page.evaluate("document.documentElement.scrollWidth")
    page.context.close()
    met.errors += [f"{url}: {status}" for url, status in met.answers if status >= 400]
    return met


@pytest.fixture(scope="module")
def narrow(browser: Any, bases: dict[str, str], site: Site) -> Visit:
    """All pages over http, as on a small phone."""
    return visit(browser, bases["http"], names(site), 360)


@pytest.fixture(scope="module")
def from_files(browser: Any, bases: dict[str, str]) -> Visit:
    """Some pages as files, on a screen of 1,280 pixels at 200 %."""
    return visit(browser, bases["file"], [*SAMPLE, "search"], 640)


def test_no_request_leaves_the_site_over_http(narrow: Visit, bases: dict[str, str]) -> None:
    assert len(narrow.requests) > 100
    assert [url for url in narrow.requests if not url.startswith(bases["http"])] == []


def test_no_request_leaves_the_site_from_a_file(from_files: Visit, bases: dict[str, str]) -> None:
    assert from_files.requests
    assert [url for url in from_files.requests if not url.startswith(bases["file"])] == []


def test_no_page_has_an_error_over_http(narrow: Visit) -> None:
    assert narrow.errors == []


def test_no_page_has_an_error_from_a_file(from_files: Visit) -> None:
    assert from_files.errors == []


def test_every_page_fits_into_360_pixels(narrow: Visit) -> None:
    assert {name: width for name, width in narrow.widths.items() if width > 360} == {}


def test_pages_fit_at_200_per_cent(from_files: Visit) -> None:
    assert {name: width for name, width in from_files.widths.items() if width > 640} == {}


@pytest.mark.parametrize("way", WAYS)
def test_search_finds_a_stage(browser: Any, bases: dict[str, str], way: str) -> None:
    page = opened(browser, bases[way], "stages/threshold")
    errors: list[str] = []
    page.on("console", lambda said: errors.append(said.text))
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.fill("input[name=q]", "abstain calibration")
    page.press("input[name=q]", "Enter")
    page.wait_for_selector("#search-results li a")
    links = page.eval_on_selector_all("#search-results li a", "all => all.map(a => a.href)")
    assert any("stages/abstain.html" in link for link in links)
    page.click("#search-results li a >> nth=0")
    page.wait_for_selector("article h1")
    assert "search.html" not in page.url
    assert errors == []
    page.context.close()


def test_without_scripts_all_but_search_works(browser: Any, bases: dict[str, str]) -> None:
    page = opened(browser, bases["file"], "stages/threshold", java_script_enabled=False)
    summary = page.locator("#hints details summary").first
    answer = page.locator("#hints details p").first
    assert not answer.is_visible()
    summary.click()
    assert answer.is_visible()
    page.locator("#solution > details > summary").click()
    assert page.locator("#solution .diff ins").first.is_visible()
    assert page.locator("button.copy").count() == 0
    page.click("a.here-map")
    page.locator(".map.wide a.badge").first.click()
    assert "stages/" in page.url
    assert page.locator("a.next-page").is_visible()
    page.context.close()


@pytest.mark.parametrize("way", WAYS)
def test_copying_takes_the_command_alone(browser: Any, bases: dict[str, str], way: str) -> None:
    page = opened(browser, bases[way], "index")
    if way == "http":
        page.context.grant_permissions(["clipboard-write"])
    block = page.locator(".highlight-console").first
    block.locator("button.copy").click()
    page.wait_for_function("document.querySelector('button.copy').textContent === 'copied'")
    assert (
        pasted(page)
        == 'just run "Was steht auf northwind.example/handbook zur Garantie auf das Gateway?"'
    )
    page.context.close()


def pasted(page: Any) -> str:
    """What the clipboard holds, as a user sees it."""
    page.evaluate(
        "() => { const area = document.createElement('textarea'); area.id = 'pasted';"
        "document.body.prepend(area); area.focus() }"
    )
    page.keyboard.press("Control+V")
    return str(page.input_value("#pasted"))


def test_code_that_is_selected_in_a_change_has_no_signs(
    browser: Any, bases: dict[str, str]
) -> None:
    page = opened(browser, bases["file"], "stages/threshold")
    page.locator("#solution > details > summary").click()
    text = page.evaluate(
        "() => { const row = document.querySelector('#solution .diff ins');"
        "getSelection().selectAllChildren(row); return getSelection().toString() }"
    )
    assert text.strip()
    assert not text.startswith("+")
    page.context.close()


def test_hints_and_solution_open_and_close_by_keyboard(browser: Any, bases: dict[str, str]) -> None:
    page = opened(browser, bases["file"], "stages/threshold")
    for place in ("#hints details", "#solution > details"):
        fold = page.locator(place).first
        fold.locator("summary").first.focus()
        for key, state in (("Enter", True), ("Enter", False), ("Space", True)):
            page.keyboard.press(key)
            assert fold.evaluate("one => one.open") is state, f"{place}: {key}"
    page.context.close()


def test_the_map_is_walked_by_keyboard(browser: Any, bases: dict[str, str]) -> None:
    page = opened(browser, bases["file"], "index", viewport={"width": 1280, "height": 900})
    page.locator(".map.wide a.badge").first.focus()
    first = page.evaluate("document.activeElement.getAttribute('aria-label')")
    page.keyboard.press("Tab")
    second = page.evaluate("document.activeElement.getAttribute('aria-label')")
    assert first != second
    assert second.startswith("Stage ")
    page.keyboard.press("Enter")
    page.wait_for_url("**/stages/*.html")
    page.context.close()


@pytest.mark.parametrize("width", [360, 1280])
def test_one_drawing_of_the_map_is_seen(browser: Any, bases: dict[str, str], width: int) -> None:
    page = opened(browser, bases["file"], "index", viewport={"width": width, "height": 900})
    seen = [page.locator(f".map.{name}").is_visible() for name in ("wide", "narrow")]
    assert seen == [width > 700, width < 700]
    page.context.close()


@pytest.mark.parametrize("name", [*SAMPLE, "search"])
def test_axe_finds_no_serious_fault(browser: Any, bases: dict[str, str], name: str) -> None:
    assert serious_faults(browser, bases["file"], name, "light", {}) == []


@pytest.mark.parametrize("name", SAMPLE)
def test_axe_finds_no_faint_text_in_the_dark(
    browser: Any, bases: dict[str, str], name: str
) -> None:
    only = {"runOnly": ["color-contrast"]}
    assert serious_faults(browser, bases["file"], name, "dark", only) == []


def serious_faults(
    browser: Any, base: str, name: str, scheme: str, options: dict[str, Any]
) -> list[str]:
    page = opened(browser, base, name, color_scheme=scheme)
    page.evaluate("document.querySelectorAll('details').forEach(one => one.open = true)")
    found = axe.Axe().run(page, options={"resultTypes": ["violations"], **options}).response
    page.context.close()
    return [
        f"{one['id']}: {node['html'][:200]}: {node['failureSummary']}"
        for one in found["violations"]
        if one["impact"] in ("serious", "critical")
        for node in one["nodes"][:3]
    ]


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_text_of_pictures_has_contrast_AA(
    browser: Any, bases: dict[str, str], scheme: str
) -> None:
    """axe does not look into SVG."""
    for name in SAMPLE:
        page = opened(browser, bases["file"], name, color_scheme=scheme)
        found = page.evaluate(Path(__file__).with_name("contrast.js").read_text(encoding="utf-8"))
        assert found["texts"] > 5, name
        assert found["faint"] == [], name
        page.context.close()
