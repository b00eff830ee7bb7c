"""The practice endpoint's HTTP side: four routes on 127.0.0.1, by the standard library alone.

POST /v1/chat/completions, POST /v1/embeddings, GET /v1/models, GET /v1/models/ID. Any key is
taken, or none. As an HTTP proxy it answers for the practice web, the hosts under `.example`, and
for nothing else: it forwards no request.
A log line holds the method, the route, the status, counts and the time: never a text or a key.
"""

from __future__ import annotations

import base64
import json
import socket
import socketserver
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import numpy as np

from workshop.errors import INTERRUPTED, USAGE, Problem

from . import chat, conversation
from .embeddings import DIMENSIONS, MODEL, PASSAGE, QUERY, BadText, Embedder, load
from .mind import Mind
from .refused import JSON, Refused
from .web import Page, site

HOST = "127.0.0.1"
PORT = 8765
MAX_BODY = 8 * 1024 * 1024
MAX_TEXTS = 256
MAX_DRAIN = 4 * MAX_BODY
CREATED = 1767225600  # 2026-01-01, the date in the model list

Log = Callable[[str], None]


@dataclass(frozen=True)
class Endpoint:
    """A running practice endpoint: its address, and the variables that point an agent at it."""

    base_url: str

    @property
    def env(self) -> dict[str, str]:
        return {
            "TINY_BASE_URL": self.base_url,
            "TINY_API_KEY": "practice",
            "TINY_CHAT_MODEL": conversation.MODEL,
            "TINY_EMBED_MODEL": MODEL,
            "TINY_QUERY_PREFIX": QUERY,
            "TINY_PASSAGE_PREFIX": PASSAGE,
            "TINY_PRACTICE_WEB": self.base_url.removesuffix("/v1"),
        }


def _model_cards() -> dict[str, JSON]:
    owners = {MODEL: "practice", conversation.MODEL: chat.OWNER}
    return {
        name: {"id": name, "object": "model", "created": CREATED, "owned_by": owner}
        for name, owner in owners.items()
    }


def _no_model(name: str) -> Refused:
    names = " and ".join(repr(known) for known in _model_cards())
    return Refused(
        404,
        f"The model {name[:80]!r} does not exist here. This endpoint has {names}.",
        param="model",
        code="model_not_found",
    )


def _texts(given: object, embedder: Embedder) -> list[str]:
    """The texts of `input`, all of them checked before the first one is embedded."""
    if isinstance(given, str):
        named = [("input", given)]
    elif isinstance(given, list):
        if not given:
            raise Refused(400, "input is an empty list. Send at least one text.", param="input")
        if len(given) > MAX_TEXTS:
            raise Refused(
                400,
                f"input has {len(given)} texts; one request takes up to {MAX_TEXTS}.",
                param="input",
            )
        named = [(f"input[{i}]", item) for i, item in enumerate(given)]
    else:
        raise Refused(400, "input must be a text or a list of texts.", param="input")
    for name, item in named:
        if not isinstance(item, str):
            raise Refused(
                400,
                f"{name} is not a text. This endpoint takes texts, not token numbers.",
                param="input",
            )
        if not item:
            raise Refused(400, f"{name} is an empty text.", param="input")
        try:
            embedder.check(item)
        except BadText as error:
            raise Refused(400, f"{name} {error}.", param="input") from None
    return [item for _, item in named]


def _embeddings(request: JSON, embedder: Embedder) -> tuple[JSON, str]:
    model = request.get("model")
    if not isinstance(model, str) or not model:
        raise Refused(400, "model is missing: name it as a text.", param="model")
    if model == conversation.MODEL:
        raise Refused(
            400, f"{model} does not embed. Use {MODEL!r}.", param="model", code="wrong_model"
        )
    if model != MODEL:
        raise _no_model(model)
    form = request.get("encoding_format", "float")
    if form not in ("float", "base64"):
        raise Refused(400, "encoding_format must be float or base64.", param="encoding_format")
    size = request.get("dimensions")
    if size is not None and (type(size) is not int or size != DIMENSIONS):
        raise Refused(
            400, f"dimensions must be {DIMENSIONS}: {MODEL} has no other.", param="dimensions"
        )
    if "input" not in request:
        raise Refused(400, "input is missing: a text or a list of texts.", param="input")
    texts = _texts(request["input"], embedder)
    data: list[JSON] = []
    tokens = 0
    for index, text in enumerate(texts):
        raw, count = embedder.embed(text)
        tokens += count
        vector: str | list[float]
        if form == "base64":
            vector = base64.b64encode(raw).decode("ascii")
        else:
            vector = np.frombuffer(raw, dtype="<f4").tolist()
        data.append({"object": "embedding", "index": index, "embedding": vector})
    answer: JSON = {
        "object": "list",
        "data": data,
        "model": MODEL,
        "usage": {"prompt_tokens": tokens, "total_tokens": tokens},
    }
    return answer, f"{len(texts)} texts {tokens} tokens"


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server_version = "practice"
    sys_version = ""
    disable_nagle_algorithm = True
    timeout = 60
    server: Server

    def answer(self) -> None:
        began = time.monotonic()
        route, note, headers = "(other)", "", {}
        events: Iterator[str] | None = None
        try:
            body = self._body()
            path = self.path.split("?", 1)[0]
            if not path.startswith("/") and path != "*":
                route = "(web)"
                page = self._web_page()
                status = page.status
                self._send_page(page)
                self.server.log(f"{self.command} {route} {status} {len(page.body)} bytes")
                return
            if path == "/v1/embeddings":
                route = path
                self._allow("POST")
                reply, note = _embeddings(self._json(body), self.server.embedder)
            elif path == "/v1/models":
                route = path
                self._allow("GET", "HEAD")
                reply = {"object": "list", "data": list(_model_cards().values())}
            elif path.startswith("/v1/models/"):
                route = "/v1/models/ID"
                self._allow("GET", "HEAD")
                name = unquote(path.removeprefix("/v1/models/"))
                if name not in _model_cards():
                    raise _no_model(name)
                reply = _model_cards()[name]
            elif path == "/v1/chat/completions":
                route = path
                self._allow("POST")
                asked = conversation.read(self._json(body), self.server.context)
                said = chat.answer(asked, self.server.mind)
                note = f"{len(asked.messages)} messages {len(asked.tools)} tools {said.finish}"
                if asked.stream:
                    events = said.events()
                reply = said.body()
            else:
                raise Refused(
                    404,
                    "No such route. This endpoint has /v1/chat/completions, /v1/embeddings and "
                    "/v1/models.",
                    code="unknown_route",
                )
            status = 200
        except Refused as refused:
            status, reply, headers = refused.status, refused.body(), refused.headers
            self.close_connection = self.close_connection or refused.close
        except (ConnectionError, TimeoutError):
            self.close_connection = True
            return
        except Exception as error:
            status = 500
            reply = Refused(500, f"The practice endpoint failed: {type(error).__name__}.").body()
            self.close_connection = True
        if events is not None:
            self._send_events(events)
        else:
            self._send(status, reply, headers)
        spent = round((time.monotonic() - began) * 1000)
        line = f"{self.command} {route} {status} {note}".rstrip()
        self.server.log(f"{line} {spent} ms")

    do_GET = do_HEAD = do_POST = do_PUT = do_PATCH = do_DELETE = do_OPTIONS = answer
    do_CONNECT = do_TRACE = answer

    def _web_page(self) -> Page:
        """The practice web's page for an absolute address."""
        page = site().get(self.path) if self.command != "CONNECT" else None
        if page is None:
            raise Refused(
                403,
                "This is no proxy: it answers http://….example from its own pages and fetches "
                "nothing.",
                code="not_forwarded",
                close=self.command == "CONNECT",
            )
        self._allow("GET", "HEAD")
        return page

    def _send_page(self, page: Page) -> None:
        self.send_response(page.status)
        self.send_header("Content-Type", page.kind)
        self.send_header("Content-Length", str(len(page.body)))
        if page.location is not None:
            self.send_header("Location", page.location)
        with suppress(ConnectionError, TimeoutError):
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(page.body)

    def _allow(self, *methods: str) -> None:
        if self.command not in methods:
            raise Refused(
                405,
                f"This route takes {methods[0]}, not {self.command}.",
                code="method_not_allowed",
                headers={"Allow": ", ".join(methods)},
            )

    def _body(self) -> bytes:
        """The request's body, read whole so that the connection can serve the next request."""
        if self.headers.get("Transfer-Encoding") is not None:
            raise Refused(411, "Send the body with a Content-Length, not in chunks.", close=True)
        given = self.headers.get_all("Content-Length") or []
        if not given:
            if self.command in ("POST", "PUT", "PATCH"):
                raise Refused(411, "Content-Length is missing.", close=True)
            return b""
        text = given[0].strip()
        if len(set(given)) > 1 or not (text.isascii() and text.isdigit()):
            raise Refused(400, "Content-Length is not a number.", close=True)
        length = int(text[:20])
        if length > MAX_BODY:
            self._drain(length)
            raise Refused(
                413, f"The body is over {MAX_BODY // 2**20} MB. Send fewer texts.", close=True
            )
        body = self.rfile.read(length)
        if len(body) < length:
            raise ConnectionError("the client left in the middle of its request")
        return body

    def _drain(self, length: int) -> None:
        """Read what is too long away, within limits: a client that still writes hears no answer."""
        self.connection.settimeout(2)
        left = min(length, MAX_DRAIN)
        with suppress(OSError):
            while left > 0 and (part := self.rfile.read1(min(left, 65536))):
                left -= len(part)

    def _json(self, body: bytes) -> JSON:
        try:
            request = json.loads(body.decode("utf-8"))
        except (ValueError, RecursionError):
            raise Refused(400, "The body is not JSON in UTF-8.", code="invalid_json") from None
        if not isinstance(request, dict):
            raise Refused(400, "The body must be a JSON object.", code="invalid_json")
        return request

    def _send(self, status: int, reply: JSON, headers: dict[str, str] | None = None) -> None:
        body = json.dumps(reply, ensure_ascii=True).encode("ascii")
        self.send_response(status)
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        if self.close_connection:
            self.send_header("Connection", "close")
        with suppress(ConnectionError, TimeoutError):
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(body)

    def _send_events(self, events: Iterator[str]) -> None:
        """Server-sent events, each in a chunk of its own."""
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Cache-Control", "no-store")
        self.send_header("Transfer-Encoding", "chunked")
        with suppress(ConnectionError, TimeoutError):
            self.end_headers()
            for event in events:
                raw = event.encode("ascii")
                self.wfile.write(b"%x\r\n%s\r\n" % (len(raw), raw))
            self.wfile.write(b"0\r\n\r\n")

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        """What http.server itself refuses (a broken request line, an unknown method), as JSON."""
        self.close_connection = True
        self.command = self.command or ""
        self._send(code, Refused(code, "This is not a request that can be answered.").body())
        self.server.log(f"(broken) {int(code)}")

    def log_message(self, format: str, *args: Any) -> None:
        """http.server's own log would hold the path as it was sent."""


class Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 64

    def __init__(
        self, port: int, embedder: Embedder, log: Log | None, context: int, folder: Path | None
    ) -> None:
        self.embedder = embedder
        self.mind = Mind(embedder, folder)
        self.context = context
        self._log = log
        self._log_lock = threading.Lock()
        self._open: set[socket.socket] = set()
        self._open_lock = threading.Lock()
        super().__init__((HOST, port), Handler)

    def server_bind(self) -> None:
        """As in TCPServer: HTTPServer would look this machine's name up."""
        socketserver.TCPServer.server_bind(self)
        self.server_name, self.server_port = HOST, self.server_address[1]

    @property
    def base_url(self) -> str:
        return f"http://{HOST}:{self.server_port}/v1"

    def log(self, line: str) -> None:
        if self._log is not None:
            with self._log_lock:
                self._log(line)

    def process_request(self, request: Any, client_address: Any) -> None:
        with self._open_lock:
            self._open.add(request)
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        with self._open_lock:
            self._open.discard(request)
        super().shutdown_request(request)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that went away is no news; anything else is one line."""
        error = sys.exc_info()[1]
        if not isinstance(error, OSError):
            self.log(f"(failed) {type(error).__name__}")

    def end(self) -> None:
        """Close the port and every connection, also those that wait for a next request."""
        self.server_close()
        with self._open_lock:
            for connection in self._open:
                with suppress(OSError):
                    connection.shutdown(socket.SHUT_RDWR)


def _open_server(port: int, log: Log | None, context: int, folder: Path | None) -> Server:
    if not 0 <= port <= 65535:
        raise Problem(f"{port} is not a port.", "Choose one from 1 to 65535.", USAGE)
    embedder = load()
    try:
        return Server(port, embedder, log, context, folder)
    except OSError as error:
        raise Problem(
            f"Port {port} on {HOST} cannot be opened: {error.strerror or error}.",
            "Stop the program that uses it, or choose another port with --port.",
        ) from error


@contextmanager
def start(
    port: int = 0,
    log: Log | None = None,
    context: int = conversation.CONTEXT,
    folder: Path | None = None,
) -> Iterator[Endpoint]:
    """Serve in a daemon thread of this process, which the endpoint never outlives.

    Port 0 lets the system choose a free one. `log` gets one line a request. `context` is the chat
    model's, in tokens. In `folder` the vectors of tools outlive the process.
    """
    server = _open_server(port, log, context, folder)
    thread = threading.Thread(
        target=server.serve_forever, kwargs={"poll_interval": 0.05}, name="practice", daemon=True
    )
    thread.start()
    try:
        yield Endpoint(server.base_url)
    finally:
        server.shutdown()
        thread.join()
        server.end()


def serve(port: int = PORT) -> int:
    """Serve in the foreground until Ctrl-C, which ends it with 130."""
    log: Log = lambda line: print(line, file=sys.stderr, flush=True)  # noqa: E731
    try:
        with start(port, log) as endpoint:
            print(f"The practice endpoint: {endpoint.base_url}\n")
            for name, value in endpoint.env.items():
                print(f"export {name}='{value}'")
            print(
                f"\ncurl -s {endpoint.base_url}/embeddings -H 'Content-Type: application/json' \\\n"
                f'  -d \'{{"model": "{MODEL}", "input": "{QUERY}what is due today?"}}\'\n\n'
                "Ctrl-C ends it.",
                flush=True,
            )
            threading.Event().wait()
    except KeyboardInterrupt:
        pass
    return INTERRUPTED
