"""Stage real-tools: a page is read within its rules, and as a person would see it."""

import gzip
import socket
import threading
import time
import tracemalloc
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import ModuleType
from typing import Any

import pytest

from workshop.tests.modules import load

TOOLS = "registry/tools/web_reader.py"
Answer = Callable[[BaseHTTPRequestHandler], None]


@pytest.fixture(scope="module")
def tools() -> ModuleType:
    return load(TOOLS)


@pytest.fixture
def web(tools: ModuleType, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The tools, allowed to read from this machine."""
    for name in ("http_proxy", "https_proxy", "all_proxy", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)
    monkeypatch.delenv("TINY_PRACTICE_WEB", raising=False)
    monkeypatch.setenv("TINY_WEB_LOCAL", "1")
    return tools


@contextmanager
def serve(answer: Answer) -> Iterator[tuple[str, list[str]]]:
    """A server on loopback: its address, and the paths that were asked for."""
    asked: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(self.path)
            with suppress(OSError):  # the client has gone, as it should
                answer(self)

        def log_message(self, format: str, *args: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, args=(0.005,), daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", asked
    finally:
        server.shutdown()
        server.server_close()


def page(body: str | bytes, kind: str | None = "text/html", code: int = 200, **more: str) -> Answer:
    def answer(request: BaseHTTPRequestHandler) -> None:
        raw = body.encode() if isinstance(body, str) else body
        request.send_response(code)
        for name, value in more.items():
            request.send_header(name.replace("_", "-"), value)
        if kind:
            request.send_header("Content-Type", kind)
        request.send_header("Content-Length", str(len(raw)))
        request.end_headers()
        request.wfile.write(raw)

    return answer


def fetched(web: ModuleType, body: str | bytes, kind: str | None = "text/html", **more: str) -> str:
    with serve(page(body, kind, 200, **more)) as (url, _):
        return web.fetch_page(url)


def text_of(web: ModuleType, body: str | bytes, kind: str | None = "text/html") -> str:
    """The page's text alone, without the lines on title and address."""
    return fetched(web, body, kind).partition("\n\n")[2]


def refused(web: ModuleType, url: str, tool: str = "fetch_page", *more: str) -> str:
    """The one sentence with which a call must fail."""
    try:
        came = getattr(web, tool)(url, *more)
    except web.PageError as error:
        said = str(error)
        assert "\n" not in said, f"given {url[:80]!r}: expected one line, came back {said[:300]!r}"
        assert len(said) < 600, f"given {url[:80]!r}: expected a short sentence, {len(said)} came"
        return said
    except Exception as other:
        pytest.fail(f"given {url[:80]!r}: expected a PageError, {other!r} came out")
    pytest.fail(f"given {url[:80]!r}: expected a PageError, came back {came[:200]!r}")


# Task 1: rules


@pytest.mark.parametrize(
    "url",
    [
        "file:///etc/passwd",
        "ftp://h.example/a",
        "gopher://127.0.0.1:70/",
        "javascript:alert(1)",
        "data:text/html,hello",
        "mailto:a@b.example",
        "",
        "   ",
        "http://",
        "https:///path",
        "http://[::1",
        "http://h:99999/",
        "http://a b/",
        "http://h.example/\0",
        "x" * 30_000,
        "http://h.invalid/" + "x" * 30_000,
        "x" * 100_000,
    ],
)
def test_only_http_and_https_addresses_are_read(web: ModuleType, url: str) -> None:
    """What is no http or https address is refused, and the mend is named."""
    said = refused(web, url)
    assert "http" in said or "known" in said, f"given {url[:60]!r}: no mend in {said!r}"


@pytest.mark.parametrize("start", ["http://", "ftp://", "http:/://", "", "//"])
@pytest.mark.parametrize("word", ["geheim", "p@geheim"])
def test_an_address_with_a_password_is_refused_without_repeating_it(
    web: ModuleType, start: str, word: str
) -> None:
    """Credentials in an address are refused, and not shown."""
    with serve(page("hello")) as (url, asked):
        said = refused(web, url.replace("http://", f"{start}anna:{word}@"))
    assert "geheim" not in said, f"the password came back: {said!r}"
    assert asked == [], f"expected no request, the server saw {asked}"


@pytest.mark.parametrize(
    "host",
    [
        "127.0.0.1",
        "localhost",
        "127.1",
        "2130706433",
        "0x7f000001",
        "0.0.0.0",
        "[::1]",
        "[::ffff:127.0.0.1]",
        "10.1.2.3",
        "172.16.0.1",
        "192.168.178.1",
        "169.254.169.254",
        "100.64.0.1",
        "[fe80::1]",
        "[fd00::1]",
        "[2002:7f00:1::]",
        "224.0.0.1",
    ],
)
def test_private_addresses_are_refused(
    web: ModuleType, monkeypatch: pytest.MonkeyPatch, host: str
) -> None:
    """Addresses of the local network are refused, however they are written."""
    monkeypatch.delenv("TINY_WEB_LOCAL")
    started = time.monotonic()
    said = refused(web, f"http://{host}:9/")
    assert "TINY_WEB_LOCAL" in said, f"given {host}: expected the setting's name, came {said!r}"
    assert time.monotonic() - started < 3, f"given {host}: refused only after a connection"


def test_a_redirect_into_the_local_network_is_refused(
    web: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A redirect is held to the same rules as the first address."""
    with serve(page("", code=302, Location="http://127.0.0.1:9/secret")) as (proxy, _):
        monkeypatch.setenv("TINY_PRACTICE_WEB", proxy)
        monkeypatch.delenv("TINY_WEB_LOCAL")
        said = refused(web, "http://northwind.example/")
    assert "TINY_WEB_LOCAL" in said, f"expected the local address to be refused, came {said!r}"


@pytest.mark.parametrize("target", ["file:///etc/passwd", "ftp://HOST/", "http://a:b@HOST/page"])
def test_a_redirect_to_another_scheme_or_with_a_password_is_refused(
    web: ModuleType, target: str
) -> None:
    """A redirect to file, ftp or an address with a password is refused."""

    def answer(request: BaseHTTPRequestHandler) -> None:
        to = target.replace("HOST", request.headers["Host"])
        page("a page", code=302 if request.path == "/" else 200, Location=to)(request)

    with serve(answer) as (url, asked):
        refused(web, url)
    assert asked == ["/"], f"expected one request, the server saw {asked}"


def test_a_name_is_looked_up_once(web: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    """What was judged is what is connected to: a name that changes cannot lead inside."""
    asked_for: list[str] = []
    real = socket.getaddrinfo

    def look_up(host: Any, *args: Any, **more: Any) -> Any:
        name = host.decode() if isinstance(host, bytes) else str(host)
        if name != "rebind.invalid":
            return real(host, *args, **more)
        asked_for.append(name)
        return real("127.0.0.1" if len(asked_for) == 1 else "127.0.0.2", *args, **more)

    monkeypatch.setattr(socket, "getaddrinfo", look_up)
    with serve(page("hello")) as (url, _):
        came = web.fetch_page(url.replace("127.0.0.1", "rebind.invalid"))
    assert came.endswith("hello"), f"came back {came!r}"
    assert len(asked_for) == 1, f"expected one look-up, there were {len(asked_for)}"


def hop(request: BaseHTTPRequestHandler) -> None:
    """/3 leads to /2, /1 and /0, which is the page. Any other path leads to itself."""
    left = request.path.strip("/")
    if left == "0":
        return page("<title>there</title>arrived")(request)
    target = f"/{int(left) - 1}" if left.isdigit() else request.path
    page("", code=302, Location=target)(request)


@pytest.mark.parametrize(("path", "requests"), [("/5", 6), ("/6", 6), ("/loop", 6)])
def test_at_most_five_redirects_are_followed(web: ModuleType, path: str, requests: int) -> None:
    """Five redirects are followed, the sixth is refused."""
    with serve(hop) as (url, asked):
        if path == "/5":
            came = web.fetch_page(url + path)
            assert f"address: {url}/0" in came, f"expected the last address, came {came!r}"
        else:
            refused(web, url + path)
    assert len(asked) == requests, f"given {path}: expected {requests} requests, saw {asked}"


def test_at_most_two_megabytes_are_read_and_it_says_so(web: ModuleType) -> None:
    """2,000,000 bytes of a page are read, and the answer says that there was more."""
    came = fetched(web, b"a" * 2_000_000 + b"b" * 1000, "text/plain")
    assert "2000000 bytes" in came, f"expected a word on the cut, came {came[:200]!r}"
    assert (came.count("aaaaaaaaaa"), "b" * 9 in came) == (200_000, False), "a wrong part was read"


def test_a_page_of_just_two_megabytes_is_not_called_cut(web: ModuleType) -> None:
    """A page that fits is whole, and nothing is said."""
    came = fetched(web, b"a" * 2_000_000, "text/plain")
    assert "only its first" not in came, f"expected no word on a cut, came {came[:200]!r}"


def endless(request: BaseHTTPRequestHandler) -> None:
    request.send_response(200)
    request.send_header("Content-Type", "text/plain")
    request.end_headers()
    while True:
        request.wfile.write(b"<p>more</p>" * 10_000)


def test_a_page_without_end_is_cut(web: ModuleType) -> None:
    """A page that never ends is cut at the cap."""
    with serve(endless) as (url, _):
        came = web.fetch_page(url)
    assert "2000000 bytes" in came, f"expected a word on the cut, came {came[:200]!r}"


def test_a_gzip_bomb_is_cut_after_unpacking(web: ModuleType) -> None:
    """The cap counts unpacked bytes: 40 MB in 40 kB give 2 MB."""
    pack = zlib.compressobj(9, zlib.DEFLATED, 31)
    block = b"a" * 1_000_000
    bomb = b"".join(pack.compress(block) for _ in range(40)) + pack.flush()
    tracemalloc.start()
    try:
        came = fetched(web, bomb, "text/plain", Content_Encoding="gzip")
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 30_000_000, f"expected less than 30 MB in memory, it was {peak}"
    assert "2000000 bytes" in came, f"expected a word on the cut, came {came[:200]!r}"
    assert len(came) < 2_001_000, f"expected 2 MB at most, came {len(came)}"


def test_gzip_is_unpacked_and_other_packings_are_refused(web: ModuleType) -> None:
    """Gzip is read; a packing that was not asked for, twice gzip and damage are refused."""
    packed = gzip.compress("<p>Grüße</p>".encode())
    came = fetched(web, packed, "text/html; charset=utf-8", Content_Encoding="gzip")
    assert came.endswith("Grüße"), f"expected the unpacked text, came {came!r}"
    for packing in ("br", "gzip, gzip", "gzip"):
        with serve(page(b"\0\1\2\3", Content_Encoding=packing)) as (url, _):
            refused(web, url)


def drip(request: BaseHTTPRequestHandler, head: bool) -> None:
    """Answers byte by byte, each in time for the timeout of a single read."""
    if not head:
        request.wfile.write(b"HTTP/1.0 200 OK\r\nContent-Type: text/html\r\n\r\n")
    for byte in b"HTTP/1.0 200 OK\r\nX-Slow: " + b"a" * 1000:
        request.wfile.write(bytes([byte]))
        time.sleep(0.02)


@pytest.mark.parametrize("head", [True, False], ids=["headers", "body"])
def test_B7_a_slow_drip_ends_at_the_deadline(web: ModuleType, head: bool) -> None:
    """SECONDS bound the whole call, also when headers or body drip."""
    web = load(TOOLS)
    setattr(web, "SECONDS", 0.3)  # noqa: B010
    with serve(lambda request: drip(request, head)) as (url, _):
        started = time.monotonic()
        said = refused(web, url)
        took = time.monotonic() - started
    assert took < 2, f"expected an end after 0.3 s, it took {took:.1f} s: {said!r}"


def test_the_limits_are_as_documented(web: ModuleType) -> None:
    """SIZE, SECONDS and REDIRECTS are 2,000,000, 20 and 5."""
    limits = web.SIZE, web.SECONDS, web.REDIRECTS
    assert limits == (2_000_000, 20, 5), f"came back {limits}"


def test_a_tool_leaves_no_thread_behind_after_a_drip(web: ModuleType) -> None:
    """What waits for a dripping server ends soon after the deadline."""
    web = load(TOOLS)
    setattr(web, "SECONDS", 0.2)  # noqa: B010
    before = set(threading.enumerate())
    with serve(lambda request: drip(request, True)) as (url, _):
        refused(web, url)
        names = [t for t in set(threading.enumerate()) - before if "process_request" not in t.name]
        deadline = time.monotonic() + 5
        while time.monotonic() < deadline and sum(t.is_alive() for t in names) > 1:
            time.sleep(0.02)
        alive = [t.name for t in names if t.is_alive() and "serve_forever" not in t.name]
    assert alive == [], f"expected no thread of the tool to live on, there are {alive}"


@pytest.mark.parametrize("code", [400, 401, 403, 404, 410, 429, 500, 503])
def test_an_error_status_is_named(web: ModuleType, code: int) -> None:
    """4xx and 5xx are errors that name the status, without the error page's text."""
    with serve(page("<h1>secret details</h1>" * 400, code=code)) as (url, _):
        said = refused(web, url + "/@anna/page")
    assert f"{url}/@anna/page" in said, f"expected the address, came {said!r}"
    assert str(code) in said, f"expected {code} in the message, came {said!r}"
    assert "secret details" not in said, f"expected no error page, came {said!r}"


@pytest.mark.parametrize("kind", ["image/png", "application/pdf", "application/octet-stream"])
def test_a_binary_is_refused_by_its_name(web: ModuleType, kind: str) -> None:
    """What is not text is refused, and its type is named."""
    with serve(page(b"%PDF-1.7\0\0", kind)) as (url, _):
        said = refused(web, url)
    assert kind in said, f"expected {kind} in the message, came {said!r}"


def test_a_binary_that_calls_itself_html_is_refused(web: ModuleType) -> None:
    """Bytes with NUL are no page, whatever the type says."""
    with serve(page(b"\x89PNG\r\n\0\0\0\rIHDR", "text/html")) as (url, _):
        refused(web, url)


def test_a_server_that_is_not_there_is_named(web: ModuleType) -> None:
    """A host that refuses the connection gives one sentence with the address."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    said = refused(web, f"http://127.0.0.1:{port}/x")
    assert str(port) in said, f"expected the address, came {said!r}"


def test_an_unknown_host_is_named(web: ModuleType) -> None:
    """A name that does not resolve gives one sentence with the name."""
    said = refused(web, "http://no-such-host.invalid/")
    assert "no-such-host.invalid" in said, f"expected the host, came {said!r}"


@pytest.mark.parametrize(
    ("given", "asked"),
    [
        ("northwind.example/prices?a=1#x", "http://northwind.example/prices?a=1"),
        ("http://northwind.example/prices", "http://northwind.example/prices"),
        ("https://northwind.example", "http://northwind.example/"),
        ("//www.stadtbad-nord.example/", "http://www.stadtbad-nord.example/"),
        ("NORTHWIND.EXAMPLE", "http://northwind.example/"),
        ("  northwind.example:8080/a  ", "http://northwind.example:8080/a"),
    ],
)
def test_practice_sites_are_read_through_the_practice_web(
    web: ModuleType, monkeypatch: pytest.MonkeyPatch, given: str, asked: str
) -> None:
    """Hosts under .example go to TINY_PRACTICE_WEB, by http, with or without a scheme."""
    with serve(page("<title>Practice</title>here")) as (proxy, paths):
        monkeypatch.setenv("TINY_PRACTICE_WEB", proxy)
        monkeypatch.delenv("TINY_WEB_LOCAL")
        came = web.fetch_page(given)
    assert paths == [asked], f"given {given!r}: expected {asked}, the proxy saw {paths}"
    assert "Practice" in came, f"given {given!r}: came back {came!r}"


def test_without_the_practice_web_its_setting_is_named(web: ModuleType) -> None:
    """A practice site without TINY_PRACTICE_WEB gives an error that names the setting."""
    said = refused(web, "northwind.example")
    assert "TINY_PRACTICE_WEB" in said, f"came back {said!r}"


def test_C31_no_proxy_stands_before_loopback(
    web: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A proxy of the environment is not asked for loopback."""
    for name in ("http_proxy", "HTTP_PROXY", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    came = fetched(web, "<p>straight</p>")
    assert came.endswith("straight"), f"came back {came!r}"


def test_a_proxy_of_the_environment_is_asked_for_other_hosts(
    web: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A name that only the proxy knows is read through the proxy."""
    with serve(page("<p>by proxy</p>")) as (proxy, paths):
        monkeypatch.setenv("http_proxy", proxy)
        monkeypatch.delenv("TINY_WEB_LOCAL")
        came = web.fetch_page("http://shop.invalid/a")
    assert came.endswith("by proxy"), f"came back {came!r}"
    assert paths == ["http://shop.invalid/a"], f"the proxy saw {paths}"


def test_the_host_is_asked_by_its_name(web: ModuleType) -> None:
    """The request goes to the judged address and still names the host."""
    hosts: list[str] = []

    def answer(request: BaseHTTPRequestHandler) -> None:
        hosts.append(request.headers["Host"])
        page("hello")(request)

    with serve(answer) as (url, _):
        port = url.rpartition(":")[2]
        web.fetch_page(f"http://localhost:{port}/")
    assert hosts == [f"localhost:{port}"], f"expected localhost:{port}, the server saw {hosts}"


# Task 2: text

PRICES = """<!doctype html><html><head><meta charset="utf-8">
<title>Preise &amp; Zeiten</title>
<style>p { color: red }</style><script>var hidden = "<p>in a script</p>";</script></head><body>
<nav><ul><li><a href="/">Start</a></li>
<li><a href="zeiten.html">Öffnungs&shy;zeiten</a></li></ul></nav>
<h1>Eintritts<b>preise</b></h1>
<p>Erwachsene zahlen&nbsp;4,50&nbsp;&euro;,
   Kinder die   H&auml;lfte.<p>Zweiter Absatz<br>nach dem Umbruch</p>
<table><tr><th>Tag</th><th>Zeit</th></tr>
<tr><td><p>Montag</p></td><td>6&ndash;22 Uhr</td></tr></table>
<ol><li><p>eins</p></li><li>zwei</ol>
<p hidden>unsichtbar</p><div style="display: none"><p>versteckt</p></div>
<template>Vorlage</template><svg><title>Bild</title></svg>
<pre>a
  b</pre>
<h2>Anfahrt</h2><div>Bus 12<div>Haltestelle Nord</div></div><!-- Kommentar --></body></html>"""


def test_a_page_reads_as_a_person_sees_it(web: ModuleType) -> None:
    """Blocks make lines; lists, tables and headings are marked; entities are characters."""
    with serve(page(PRICES)) as (url, _):
        head, _, text = web.fetch_page(url).partition("\n\n")
    assert head == f"title: Preise & Zeiten\naddress: {url}", f"came back {head!r}"
    lines = [line for line in text.split("\n") if line]
    expected = [
        "- Start",
        "- Öffnungszeiten",
        "# Eintrittspreise",
        "Erwachsene zahlen 4,50 €, Kinder die Hälfte.",
        "Zweiter Absatz",
        "nach dem Umbruch",
        "Tag | Zeit",
        "Montag | 6–22 Uhr",
        "- eins",
        "- zwei",
        "a",
        "  b",
        "## Anfahrt",
        "Bus 12",
        "Haltestelle Nord",
    ]
    assert lines == expected, f"expected {expected}, came back {lines}"


@pytest.mark.parametrize(
    ("body", "text"),
    [
        ("<p>a<p>b", "a\n\nb"),
        ("<p hidden>no<p>yes", "yes"),
        ("<div><p hidden>no</div>yes", "yes"),
        ("<ul><li hidden>no<li>yes</ul>", "- yes"),
        ("<p hidden>a<b>b</b></p>yes", "yes"),
        ("<p style='VISIBILITY:hidden'>no</p>yes", "yes"),
        ("yes<script>no", "yes"),
        ("yes<!-- no", "yes"),
        ("yes<a href='no", "yes"),
        ("yes &amp", "yes &"),
        ("1 < 2 & 3", "1 < 2 & 3"),
        ("</p></div></b>yes", "yes"),
        ("<![CDATA[x]]>yes", "yes"),
        ("<![a[x]]>yes", "yes"),
        ("<?php no ?>yes", "yes"),
        ("a<img src=x alt='Bild'>b", "aBildb"),
        ("<b>a</b> <i>b</i>", "a b"),
        ("<noscript>yes</noscript>", "yes"),
        ("&#8364; &#x20ac; &unknown;", "€ € &unknown;"),
        ("", "(the page has no text)"),
        ("<p> </p>", "(the page has no text)"),
    ],
)
def test_what_pages_really_hold(web: ModuleType, body: str, text: str) -> None:
    """Unclosed, misnested and hidden elements give the text that a browser shows."""
    came = text_of(web, body)
    came = came.replace("x]]>", "")  # browsers differ on what a <![ is
    assert came == text, f"given {body!r}: expected {text!r}, came back {came!r}"


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        ("Müller 5 €".encode("cp1252"), "text/html; charset=iso-8859-1"),
        ("Müller 5 €".encode("iso-8859-15"), 'text/html; charset="ISO-8859-15"'),
        (b"<meta charset=windows-1252>" + "Müller 5 €".encode("cp1252"), "text/html"),
        (
            b'<meta http-equiv="Content-Type" content="text/html; charset=cp1252">'
            + "Müller 5 €".encode("cp1252"),
            "text/html",
        ),
        (b"<meta charset=cp1252>" + "Müller 5 €".encode(), "text/html; charset=utf-8"),
        ("Müller 5 €".encode(), "text/html"),
        ("Müller 5 €".encode(), None),
        ("Müller 5 €".encode("utf-8-sig"), "text/html"),
        ("Müller 5 €".encode("utf-16"), "text/html; charset=utf-16"),
        ("Müller 5 €".encode(), "text/html; charset=no-such-charset"),
        ("Müller 5 €".encode(), "text/html; charset=base64"),
    ],
)
def test_the_charset_is_taken_from_header_then_meta_then_utf8(
    web: ModuleType, body: bytes, kind: str | None
) -> None:
    """The header's charset counts, then the page's own, then UTF-8."""
    came = text_of(web, body, kind)
    assert came == "Müller 5 €", f"given {body!r} as {kind}: came back {came!r}"


def test_bytes_that_do_not_decode_are_replaced(web: ModuleType) -> None:
    """A byte that is no UTF-8 becomes U+FFFD and ends nothing."""
    came = text_of(web, b"<p>caf\xe9 offen</p>")
    assert came == "caf\ufffd offen", f"came back {came!r}"


@pytest.mark.parametrize(
    "kind", ["text/plain", "application/json", "text/csv", "application/ld+json", "application/xml"]
)
def test_text_that_is_not_html_comes_as_it_is(web: ModuleType, kind: str) -> None:
    """JSON and plain text keep their blanks, lines and signs."""
    body = '{"a":  "<b>1</b> &amp;",\n\n\n\n  "b": 2}'
    came = text_of(web, body, kind)
    assert came == body, f"given {kind}: expected it unchanged, came back {came!r}"


@pytest.mark.parametrize("piece", ["<a ", "<", "<!--", "<p>", "<b></i>", "<td>x", "&", "<![", " "])
def test_hostile_html_is_read_in_linear_time(web: ModuleType, piece: str) -> None:
    """A page of nothing but unclosed tags ends in seconds, not in hours."""
    body = piece * (30_000 // len(piece))
    started = time.monotonic()
    fetched(web, body)
    took = time.monotonic() - started
    assert took < 5, f"given 30 kB of {piece!r}: it took {took:.1f} s"


LINKS = """<base href="/sub/"><a href="a.html">Eins</a> <a href="/b#teil"> Zwei
 Drei</a> <a href="a.html#x">noch einmal</a> <a href="mailto:x@y.example">Mail</a>
<a href="javascript:go()">los</a> <a href="https://other.example/"><img alt="Anderswo" src="x"></a>
<a href="http://[kaputt">kaputt</a> <a name="anker">kein Ziel</a> <a href="c.html"></a>
<a href="//third.example/x">Drittes</a>"""


def test_links_are_listed_once_with_their_absolute_address(web: ModuleType) -> None:
    """Links have text and absolute address; http and https only, each address once."""
    with serve(page(LINKS)) as (url, _):
        came = web.list_links(url + "/start/index.html").split("\n")
    expected = [
        f"5 links on {url}/start/index.html",
        f"- Eins: {url}/sub/a.html",
        f"- Zwei Drei: {url}/b",
        "- Anderswo: https://other.example/",
        f"- (no text): {url}/sub/c.html",
        "- Drittes: http://third.example/x",
    ]
    assert came == expected, f"expected {expected}, came back {came}"


def test_L19_a_page_without_links_says_zero(web: ModuleType) -> None:
    """No links is said as `0 links on …`."""
    with serve(page("<p>nothing</p>")) as (url, _):
        came = web.list_links(url)
    assert came == f"0 links on {url}", f"came back {came!r}"


@pytest.mark.parametrize(
    ("words", "hits"),
    [
        ("free shipping", 2),
        ("FREE  Shipping", 2),
        ("cafe", 1),
        ("café", 1),
        ("strasse", 1),
        ("barrierefrei", 1),
        ("a.c", 0),
        ("(", 1),
        ("titelwort", 1),
        ("script", 0),
    ],
)
def test_a_word_is_found_without_regard_to_case_accents_and_breaks(
    web: ModuleType, words: str, hits: int
) -> None:
    """Hits are counted, and 0 hits are said as such."""
    body = """<title>Titelwort</title><p>FREE SHIPPING from 50 euros. We love free
    <b>shipping</b>.<p>Cafe&#769; in der Straße, barriere&shy;frei (abc).<script>script</script>"""
    with serve(page(body)) as (url, _):
        came = web.find_on_page(url, words)
    first = came.split("\n")[0]
    noun = "hit" if hits == 1 else "hits"
    assert first.startswith(f"{hits} {noun} on {url}"), f"given {words!r}: came back {first!r}"
    assert bool(hits) == ("\n" in came), f"given {words!r}: expected passages, came back {came!r}"


def test_a_hit_comes_with_what_stands_around_it(web: ModuleType) -> None:
    """A passage holds the hit and its surroundings, in the page's own letters."""
    body = "<p>" + "x " * 500 + "Der Eintritt kostet 4,50 € für Erwachsene." + " y" * 500
    with serve(page(body)) as (url, _):
        came = web.find_on_page(url, "EINTRITT")
    assert "Der Eintritt kostet 4,50 € für Erwachsene." in came, f"came back {came[:400]!r}"
    assert len(came) < 700, f"expected a passage, came back {len(came)} characters"


def test_many_hits_are_counted_and_the_first_quoted(web: ModuleType) -> None:
    """The count is of all hits, also when only the first are quoted."""
    body = "".join(f"<p>Preis {n} {'lang ' * 100}</p>" for n in range(50))
    with serve(page(body)) as (url, _):
        came = web.find_on_page(url, "preis")
    assert came.startswith("50 hits on "), f"came back {came[:100]!r}"
    assert came.count("\n- … ") == 20, f"expected 20 passages, came {came.count(chr(10))}"


@pytest.mark.parametrize("words", ["", "  ", "\u00ad"])
def test_an_empty_word_is_refused(web: ModuleType, words: str) -> None:
    """Looking for nothing is an error, and no page is fetched."""
    with serve(page("x")) as (url, asked):
        refused(web, url, "find_on_page", words)
    assert asked == [], f"expected no request, the server saw {asked}"


@pytest.mark.parametrize(
    "address",
    ["64:ff9b::a9fe:a9fe", "64:ff9b::c0a8:101", "64:ff9b:1::1", "fec0::1", "::7f00:1", "::1"],
)
def test_an_address_that_stands_for_a_local_one_is_local(
    web: ModuleType, monkeypatch: pytest.MonkeyPatch, address: str
) -> None:
    """NAT64, IPv4 inside IPv6 and site-local addresses lead into the local network too."""
    monkeypatch.delenv("TINY_WEB_LOCAL", raising=False)
    with pytest.raises(web.PageError, match="local network"):
        web.resolve(address)


def test_a_public_address_behind_nat64_is_public(web: ModuleType) -> None:
    """What NAT64 leads to decides, not NAT64."""
    assert web.resolve("64:ff9b::808:808")


def test_a_name_that_punycode_cannot_spell_is_no_address(web: ModuleType) -> None:
    """Any host is judged before it is looked up."""
    with pytest.raises(web.PageError):
        web.fetch_page("http://xn--a/")
