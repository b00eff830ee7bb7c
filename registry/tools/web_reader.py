"""The web-reader's tools: a page's text, its links, and a word on it. They only ever send GETs.

Guarded: schemes, passwords in addresses, private addresses, redirects, seconds, and bytes, counted
after unpacking. A name is looked up once, and what was judged is what is connected to.
Not guarded: what a proxy of the environment reaches, and what a page says. No script is run.
"""

import ipaddress
import os
import queue
import re
import socket
import threading
import time
import unicodedata
import urllib.request
import zlib
from collections import Counter
from collections.abc import Sized
from contextlib import ExitStack
from dataclasses import dataclass
from html.parser import HTMLParser
from typing import Annotated
from urllib.parse import urldefrag, urljoin

import httpx

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
NAT64 = ipaddress.IPv6Network("64:ff9b::/96")  # these two hold an IPv4 address
COMPATIBLE = ipaddress.IPv6Network("::/96")
LOCAL = (ipaddress.IPv6Network("fec0::/10"), ipaddress.IPv6Network("64:ff9b:1::/48"))
SIZE = 2_000_000  # bytes of a page
SECONDS = 20.0  # for all of a call, redirects and parsing included
REDIRECTS = 5
PASSAGES = 20  # that find_on_page quotes

HTML = ("text/html", "application/xhtml+xml")
TEXT = r"text/.+|application/(.+\+)?(json|xml|yaml|javascript)"
VOID = "area|base|br|col|embed|hr|img|input|link|meta|source|track|wbr"
UNSEEN = "script|style|title|template|svg|object|iframe|datalist"
BLOCK = "p|ul|ol|dl|table|pre|blockquote|section|article|main|nav|h[1-6]"
LINE = "address|aside|br|caption|dd|dt|div|figcaption|footer|form|header|hr|legend|li|option|tr"

Url = Annotated[str, "The page's address, for example https://northwind.example/prices"]
Words = Annotated[str, "The word or phrase to look for; case and accents make no difference"]


class PageError(Exception):
    """Why a page cannot be read, and what to do instead."""


@dataclass(frozen=True)
class Page:
    """What an address led to. `url` is the address after redirects, `cut` says there was more."""

    url: str
    kind: str  # text/html
    source: str
    cut: bool


def fetch_page(url: Url) -> str:
    """Read a web page: its title, its address after redirects, and its whole text."""
    page, seen = read(url)
    text = seen.text() or "(the page has no text)"
    return f"title: {seen.title or '(none)'}\naddress: {place(page)}\n\n{text}"


def list_links(url: Url) -> str:
    """List the links of a web page, each with its text and address, to see where it leads."""
    page, seen = read(url)
    links: dict[str, str] = {}
    for address, words in seen.links:
        if address.startswith(("http://", "https://")):
            links[address] = links.get(address) or " ".join("".join(words).split())
    lines = [f"- {words or '(no text)'}: {address}" for address, words in links.items()]
    return "\n".join([f"{count(lines, 'link')} on {place(page)}", *lines])


def find_on_page(url: Url, text: Words) -> str:
    """Say whether and how often a word or phrase stands on a web page, and quote what is around."""
    words = fold(text)[0].split()
    if not words:
        raise PageError("text is empty. Name the word or phrase to look for.")
    page, seen = read(url)
    whole = f"{seen.title}\n{seen.text()}"
    folded, origin = fold(whole)
    hits = list(re.finditer(r"\s+".join(map(re.escape, words)), folded))
    spans: list[tuple[int, int]] = []
    for hit in hits[:PASSAGES]:
        start, end = max(origin[hit.start()] - 150, 0), origin[hit.end() - 1] + 150
        if spans and start <= spans[-1][1]:
            start, _ = spans.pop()
        spans.append((start, end))
    first = f", the first {PASSAGES} quoted" if len(hits) > PASSAGES else ""
    said = f"{count(hits, 'hit')} on {place(page)} for “{text.strip()}”{first}"
    return "\n".join([said, *(f"- … {' '.join(whole[a:b].split())} …" for a, b in spans)])


def count(found: Sized, noun: str) -> str:
    return f"{len(found)} {noun}{'' if len(found) == 1 else 's'}"


def place(page: Page) -> str:
    return page.url + (f" (only its first {SIZE} bytes were read)" if page.cut else "")


def fold(text: str) -> tuple[str, list[int]]:
    """Text for comparing, and where each of its characters stands in the original.

    Example: Café -> cafe, [0, 1, 2, 3]
    """
    plain = {}
    for c in set(text):
        marked = unicodedata.normalize("NFKD", c).casefold()
        kept = "".join(m for m in marked if unicodedata.category(m) not in ("Mn", "Cf"))
        plain[c] = " " if c.isspace() else kept
    return "".join(plain[c] for c in text), [i for i, c in enumerate(text) for _ in plain[c]]


def read(url: str) -> tuple[Page, "Seen"]:
    """Get and parse a page, in SECONDS.

    In a thread, because looking up a name cannot be stopped, and a server that drips its headers
    passes the timeout of every single read. Leaving closes the connections, which ends the thread.
    """
    results: queue.SimpleQueue[tuple[Page, Seen] | Exception] = queue.SimpleQueue()
    deadline = time.monotonic() + SECONDS

    def work() -> None:
        try:
            page = follow(url, deadline, connections)
            results.put((page, Seen(page)))
        except Exception as error:
            results.put(error)

    with ExitStack() as connections:
        threading.Thread(target=work, daemon=True).start()
        try:
            result = results.get(timeout=SECONDS)
        except queue.Empty:
            result = PageError(f"{shown(url)} takes over {SECONDS:g} s. Try another page.")
    if isinstance(result, Exception):
        raise result
    return result


def follow(url: str, deadline: float, connections: ExitStack) -> Page:
    """The page that `url` leads to. Each redirect is held to the rules of the first address."""
    address = parse(url)
    for _ in range(REDIRECTS + 1):
        try:
            response = send(address, deadline, connections)
            if not response.has_redirect_location:
                return receive(address, response, deadline)
            address = parse(str(address.join(response.headers["location"])))
        # ImportError and ValueError: a proxy in the environment that is not usable.
        except (httpx.HTTPError, httpx.InvalidURL, ImportError, OSError, ValueError) as error:
            said = f"{shown(address)} cannot be read ({error or type(error).__name__})"
            raise PageError(f"{said}. Check the address, or try another page.") from None
    raise PageError(f"{shown(url)} redirects more than {REDIRECTS} times. Try another page.")


def parse(url: str) -> httpx.URL:
    """An address that the rules allow. Example: northwind.example/a -> http://northwind.example/a"""
    text = url.strip()
    if not re.match(r"[a-z][a-z0-9+.-]*:(?!\d)", text, re.I):  # host:8080 has no scheme
        text = "https://" + text.lstrip("/")
    try:
        address = httpx.URL(text)
    except (httpx.InvalidURL, ValueError):
        address = httpx.URL("")
    try:
        host = address.host
    except UnicodeError:  # a name that punycode does not spell
        host = ""
    if address.scheme not in ("http", "https") or not host:
        raise PageError(f"{shown(url)!r} is no web address. Give one that starts with https://")
    if address.userinfo:
        raise PageError(f"The address {shown(url)} holds a password. Give it without.")
    # The practice web speaks http only, and models like to write https.
    return address.copy_with(scheme="http") if is_practice(address.host) else address


def shown(url: str | httpx.URL) -> str:
    """An address for a message: short, and without a password."""
    return re.sub(r"(^|//)[^/?#]*@", r"\1", str(url).strip())[:200]


def is_practice(host: str) -> bool:
    return host.rstrip(".").endswith(".example")


def send(address: httpx.URL, deadline: float, connections: ExitStack) -> httpx.Response:
    """The head of the answer: by way of the practice web, a proxy, or straight from the host."""
    host, targets = address.raw_host.decode(), [address]
    if is_practice(host):
        proxy = os.environ.get("TINY_PRACTICE_WEB")
        if not proxy:
            raise PageError(
                f"{shown(host)} is a practice site. Set TINY_PRACTICE_WEB to its proxy."
            )
    else:
        found = resolve(host)
        straight = any(ip.is_loopback for ip in found) or urllib.request.proxy_bypass(host)
        proxies = {} if straight else urllib.request.getproxies()
        proxy = proxies.get(address.scheme) or proxies.get("all")
        # To the very address that was judged: a second look-up may give another (DNS rebinding).
        targets = targets if proxy else [address.copy_with(host=str(ip)) for ip in found]
    failed: Exception = PageError(f"{shown(host)} is not known. Check the address.")
    tls = "https" in (address.scheme, (proxy or "").partition(":")[0])  # else no CAs to load
    for target in targets:
        client = httpx.Client(
            transport=httpx.HTTPTransport(verify=tls, proxy=proxy),
            trust_env=False,
            timeout=max(deadline - time.monotonic(), 0.01),
            headers={"User-Agent": "tiny-agents web-reader", "Accept-Encoding": "gzip"},
        )
        connections.enter_context(client)
        request = client.build_request("GET", target, headers={"Host": address.netloc.decode()})
        request.extensions["sni_hostname"] = host  # whose certificate it must be
        try:
            return client.send(request, stream=True)
        except (httpx.ConnectError, httpx.ConnectTimeout) as error:
            failed = error
    raise failed


def resolve(host: str) -> list[Address]:
    """The host's addresses, or none when it is not known here. PageError when one is private."""
    try:
        answers = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError):
        return []
    found = [ipaddress.ip_address(str(answer[4][0])) for answer in answers]
    for ip in found:
        held = held_in(ip)
        public = held.is_global and not held.is_multicast
        public = public and not any(held in net for net in LOCAL)
        if not public and os.environ.get("TINY_WEB_LOCAL") != "1":
            raise PageError(f"{host} is in the local network. Set TINY_WEB_LOCAL=1 to allow it.")
    return found


def held_in(ip: Address) -> Address:
    """The IPv4 address that an IPv6 one stands for, or itself. Example: ::ffff:127.0.0.1"""
    if isinstance(ip, ipaddress.IPv4Address):
        return ip
    if ip in NAT64 or ip in COMPATIBLE:
        return ipaddress.IPv4Address(int(ip) & 0xFFFFFFFF)
    return ip.ipv4_mapped or ip.sixtofour or ip


def receive(address: httpx.URL, response: httpx.Response, deadline: float) -> Page:
    """The body as text. What is not text is refused before it is read."""
    at = shown(address)
    if not response.is_success:
        said = f"{response.status_code} {response.reason_phrase}".strip()
        raise PageError(f"{at} answered {said}. Check the address, or try another page.")
    kind, _, rest = response.headers.get("content-type", HTML[0]).lower().partition(";")
    kind, packing = kind.strip(), response.headers.get("content-encoding", "").lower()
    if kind not in HTML and not re.fullmatch(TEXT, kind):
        raise PageError(f"{at} is {kind}, which is not text. Try another page.")
    if packing not in ("", "identity", "gzip", "x-gzip"):
        raise PageError(f"{at} is packed as {packing}, unasked. Try another page.")
    unpack, body = zlib.decompressobj(zlib.MAX_WBITS | 16), bytearray()
    for chunk in response.iter_raw():
        room = SIZE + 1 - len(body)  # one byte too many tells that there is more
        try:
            body += unpack.decompress(chunk, room) if "gzip" in packing else chunk[:room]
        except zlib.error:
            raise PageError(f"{at} is not the gzip it says. Try another page.") from None
        if len(body) > SIZE:
            break
        if time.monotonic() > deadline:
            raise httpx.ReadTimeout("it takes too long")
    source = decode(bytes(body[:SIZE]), rest, kind in HTML)
    if "\0" in source[:2000]:
        raise PageError(f"{at} says {kind}, but is not text. Try another page.")
    return Page(str(address), kind, source, cut=len(body) > SIZE)


def decode(body: bytes, parameters: str, is_html: bool) -> str:
    """Text by the charset of the header, else of the page's <meta>, else as UTF-8."""
    head = body[:4096].decode("ascii", "replace") if is_html else ""
    name = r"charset\s*=\s*[\"']?([\w.:-]+)"
    found = re.search(name, parameters, re.I) or re.search("<meta[^>]{,200}?" + name, head, re.I)
    charset = found[1].lower() if found else "utf-8"
    # As browsers do: Latin-1 is read as Windows-1252, which has the euro sign where pages use it.
    charset = "cp1252" if charset in ("iso-8859-1", "latin1", "us-ascii") else charset
    charset = "utf-8" if charset == "punycode" else charset  # no page is; it takes minutes
    try:
        text = body.decode(charset, "replace")
    except (LookupError, UnicodeError):
        text = body.decode("utf-8", "replace")
    return text.removeprefix("\ufeff")


class Seen(HTMLParser):
    """What a reader sees of a page: `title`, `text()`, and `links` as (address, bits of text)."""

    def __init__(self, page: Page) -> None:
        super().__init__()
        self.page, self.base, self.title = page, page.url, ""
        self.links: list[tuple[str, list[str]]] = []
        self.parts = ["\n"]
        self.words: list[str] = []  # of the link that we are in
        self.open = [("", False)]  # the elements that we are in: tag, unseen
        self.depth: Counter[str] = Counter()  # how many of each
        if page.kind in HTML:
            # "<![x" makes the parser raise. And a tag at the end instead of close(), which takes
            # hours on 2 MB of "<a <a <a": it tries again from each "<".
            self.feed(page.source.replace("<![", "<!x[") + "<br>")
        self.title = " ".join(self.title.split())

    def text(self) -> str:
        """The text in lines, at most one empty line between two. What is not HTML as it is."""
        if self.page.kind not in HTML:
            return self.page.source
        lines = [line.strip(" ") for line in "".join(self.parts).split("\n")]
        text = "\n".join("" if re.fullmatch("-|#+", line) else line for line in lines)
        return re.sub("\n{3,}", "\n\n", text).strip().replace("\xa0", " ")

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        above = self.open[-1][0]
        if tag == above in ("li", "td", "th", "tr") or (above == "p" and re.fullmatch(BLOCK, tag)):
            self.handle_endtag(above)  # an end tag that may be left out
        style = given.get("style", "").replace(" ", "").lower()
        hidden = "hidden" in given or "display:none" in style or "visibility:hidden" in style
        unseen = self.open[-1][1] or hidden or bool(re.fullmatch(UNSEEN, tag))
        if not re.fullmatch(VOID, tag):
            self.open.append((tag, unseen))
            self.depth[tag] += 1
        if "href" in given and tag in ("a", "area", "base"):
            self.lead(tag, given["href"])
        if not unseen:
            self.line(tag)
            heading = "#" * int(tag[1]) + " " if re.fullmatch("h[1-6]", tag) else ""
            self.say({"li": "- ", "img": given.get("alt", "")}.get(tag, heading))

    def handle_endtag(self, tag: str) -> None:
        self.words = [] if tag == "a" else self.words
        while self.depth[tag]:
            closed, unseen = self.open.pop()
            self.depth[closed] -= 1
            if not unseen:
                self.line(closed, start=False)
            if closed == tag:
                break

    def handle_data(self, data: str) -> None:
        data = data.replace("\xad", "").replace(
            "\u200b", ""
        )  # a hyphen and a space that only break
        if self.depth["title"] and not self.depth["svg"]:
            self.title += data
        if not self.open[-1][1]:
            kept = self.depth["pre"] and data.replace(" ", "\xa0")
            self.say(kept or re.sub(r"\s+", " ", data))

    def lead(self, tag: str, href: str) -> None:
        """Note where a link leads, or the page's <base>."""
        try:
            address = urldefrag(urljoin(self.base, href.strip())).url
        except ValueError:
            return
        if tag == "base":
            self.base = address
        else:
            self.words = []
            self.links.append((address, self.words))

    def line(self, tag: str, start: bool = True) -> None:
        """End the line where an element starts or ends one. A table's row stays in one line."""
        in_cell = self.depth["td"] + self.depth["th"]
        if tag in ("td", "th"):
            self.say(" | " if start and self.parts[-1][-1] != "\n" else "")
        elif start and tag != "li" and re.fullmatch("- |#+ ", self.parts[-1]):
            pass  # <li><p> is one line
        elif in_cell and not re.fullmatch("table|tr|li|h[1-6]", tag):
            self.say(" ")
        elif re.fullmatch(BLOCK, tag):
            self.say("\n\n")
        elif tag == "br" or (re.fullmatch(LINE, tag) and self.parts[-1][-1] != "\n"):
            self.say("\n")

    def say(self, text: str) -> None:
        text = text.removeprefix(" ") if self.parts[-1][-1] in " \n" else text
        if text:
            self.parts.append(text)
            self.words.append(text)
