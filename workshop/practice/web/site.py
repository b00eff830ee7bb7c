"""Which page an address has, and what the proxy answers for the rest.

The server hands over a request line's absolute address. Hosts that end in `.example` are answered
from the pages of this package. Nothing is ever fetched from anywhere else.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from urllib.parse import unquote, urlsplit

from . import handbook, pages

HTML = "text/html; charset=utf-8"


@dataclass(frozen=True)
class Page:
    """One answer of the site."""

    body: bytes
    status: int = 200
    kind: str = HTML
    location: str | None = None


class Site:
    """All pages, by host and path."""

    def __init__(self, known: dict[tuple[str, str], Page]) -> None:
        self.known = known
        self.hosts = frozenset(host for host, _ in known)

    def get(self, address: str) -> Page | None:
        """The answer for an absolute address; None for one that is not the practice web's."""
        try:
            parts = urlsplit(address)
            host, port = (parts.hostname or "").rstrip("."), parts.port
        except ValueError:
            return None
        if (
            parts.scheme.lower() != "http"
            or not host.endswith(".example")
            or port not in (None, 80)
        ):
            return None
        if host not in self.hosts:
            said = f"The practice web has no host {host[:80]}."
            return Page(_plain("502 Bad Gateway", said), 502)
        path = unquote(parts.path).rstrip("/") or "/"
        page = self.known.get((host, path))
        if page is None:
            return Page(_plain("404 Not Found", "There is no such page on this site."), 404)
        return page


def _plain(title: str, said: str) -> bytes:
    text = pages.escape(said)
    page = f"<html lang=en><title>{title}</title><h1>{title}</h1><p>{text}</p></html>"
    return f"<!DOCTYPE html>\n{page}\n".encode()


@lru_cache(maxsize=1)
def site() -> Site:
    """The site with its usual pages. Making the handbook takes a moment, so it is made once."""
    known = {
        (host, path): Page(text.encode("utf-8")) for (host, path), text in pages.every().items()
    }
    for host, path in pages.LATIN:
        body = pages.every()[host, path].encode("iso-8859-1", "xmlcharrefreplace")
        known[host, path] = Page(body, kind="text/html; charset=ISO-8859-1")
    for (host, path), target in pages.MOVED.items():
        body = _plain("301 Moved Permanently", f"This page is now at {target}.")
        known[host, path] = Page(body, 301, location=target)
    book = handbook.make(handbook.SEED)
    known[pages.NORTHWIND, "/handbook"] = Page(book.html.encode("utf-8"))
    return Site(known)
