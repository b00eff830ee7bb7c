"""Checks a built site without a browser: links, anchors, foreign addresses, sizes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

SITE_BYTES = 3_000_000
PAGE_BYTES = 150_000
LOADS = {
    ("script", "src"), ("img", "src"), ("iframe", "src"), ("source", "src"), ("video", "src"),
    ("audio", "src"), ("embed", "src"), ("object", "data"), ("link", "href"), ("use", "href"),
    ("image", "href"), ("img", "srcset"), ("source", "srcset"), ("form", "action"),
}  # fmt: skip


@dataclass
class Page(HTMLParser):
    """What a page links to and loads, and the anchors that it has."""

    path: Path
    links: list[str] = field(default_factory=list)
    loads: list[str] = field(default_factory=list)
    ids: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        super().__init__()
        self.feed(self.path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            if name == "id" and value:
                self.ids.append(value)
            elif (tag, name) in LOADS and value is not None:
                self.loads.append(value)
            elif tag == "a" and name == "href" and value is not None:
                self.links.append(value)


def check(site: Path) -> list[str]:
    """What is wrong with the site in a folder. Each line names the page."""
    pages = {path: Page(path) for path in sorted(site.rglob("*.html"))}
    anchors = {path.resolve(): page.ids for path, page in pages.items()}
    found = [] if pages else [f"{site}: no page"]
    for path, page in pages.items():
        name = path.relative_to(site).as_posix()
        found += [f"{name}: {fault}" for fault in faults(page, anchors, site)]
        if path.stat().st_size > PAGE_BYTES:
            found.append(f"{name}: {path.stat().st_size:,} bytes, more than {PAGE_BYTES:,}")
    size = total(site)
    if size > SITE_BYTES:
        found.append(f"the whole site: {size:,} bytes, more than {SITE_BYTES:,}")
    for path in sorted(site.rglob("*.css")):
        text = path.read_text(encoding="utf-8")
        if "@import" in text or any(
            f"url({mark}" in text for mark in ("http", "'http", '"http', "//")
        ):
            found.append(f"{path.relative_to(site).as_posix()}: loads from another host")
    return found


def total(site: Path) -> int:
    return sum(path.stat().st_size for path in site.rglob("*") if path.is_file())


def faults(page: Page, anchors: dict[Path, list[str]], site: Path) -> Iterator[str]:
    for one in sorted({one for one in page.ids if page.ids.count(one) > 1}):
        yield f"the id {one} stands there twice"
    for address in page.loads:
        if urlsplit(address).scheme not in ("", "data") or address.startswith("//"):
            yield f"loads {address}, which is not the site's own"
        elif not address.startswith("data:") and not target(page.path, address).exists():
            yield f"loads {address}, which is not there"
    for address in page.links:
        parts = urlsplit(address)
        if parts.scheme or parts.netloc:
            if parts.scheme not in ("https", "mailto"):
                yield f"links to {address}"
            continue
        to = target(page.path, address)
        if not to.is_relative_to(site.resolve()) or not to.is_file():
            yield f"links to {address}, which is not there"
        elif parts.fragment and unquote(parts.fragment) not in anchors.get(to, ()):
            yield f"links to {address}, where there is no such anchor"


def target(path: Path, address: str) -> Path:
    """The file that an address of a page means."""
    name = unquote(urlsplit(address).path)
    return (path.parent / name).resolve() if name else path.resolve()
