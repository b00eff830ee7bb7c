"""A scripted endpoint on loopback: it gives one answer a request, in order, and notes each request.

    with Scripted(calls(("add", {"a": 1})), says("done")) as endpoint:
        ...
    assert len(endpoint.requests) == 2

An answer is what `says`, `calls`, `replies`, `fails` or `Raw` make. When the script has ended, the
last answer is given again, until 100 requests have come: then all fail, so that a loop without a
limit ends.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

MOST = 100
USAGE = {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}


@dataclass(frozen=True)
class Raw:
    """An answer as it goes over the wire. `drip` seconds pass before each byte of the body."""

    body: bytes
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    wait: float = 0.0  # seconds before anything is sent
    drip: float = 0.0


@dataclass(frozen=True)
class Seen:
    """A request that came, and when, on the monotonic clock."""

    at: float
    path: str
    headers: dict[str, str]
    body: dict[str, Any]
    status: int  # what it was answered with


def replies(message: dict[str, Any], usage: Any = USAGE, **more: Any) -> Raw:
    """A completion with this message. `more` is added to its choice, as finish_reason is."""
    choice = {"index": 0, "message": {"role": "assistant", **message}, **more}
    answer = {"object": "chat.completion", "choices": [choice], "usage": usage}
    return Raw(json.dumps(answer).encode())


def says(text: Any, usage: Any = USAGE) -> Raw:
    return replies({"content": text}, usage, finish_reason="stop")


def calls(*asked: tuple[str, Any], text: Any = None, usage: Any = USAGE) -> Raw:
    """Tool calls. Arguments that are no text are sent as their JSON."""
    listed = [
        {"id": f"id_{time.monotonic_ns()}_{i}", "type": "function", "function": function(*one)}
        for i, one in enumerate(asked)
    ]
    return replies({"content": text, "tool_calls": listed}, usage, finish_reason="tool_calls")


def function(name: str, arguments: Any) -> dict[str, Any]:
    text = arguments if isinstance(arguments, str) else json.dumps(arguments)
    return {"name": name, "arguments": text}


def fails(status: int, message: str = "not now", **headers: str) -> Raw:
    """An error. Example: fails(429, Retry_After="2")"""
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return Raw(json.dumps({"error": {"message": message}}).encode(), status, named)


class Scripted:
    """The endpoint. `url` ends in /v1. A function in the script gets the body, gives an answer."""

    def __init__(self, *script: Raw | Callable[[dict[str, Any]], Raw]) -> None:
        self.script: Sequence[Raw | Callable[[dict[str, Any]], Raw]] = script
        self.requests: list[Seen] = []
        self.stopped = threading.Event()
        endpoint = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            disable_nagle_algorithm = True

            def do_POST(self) -> None:
                endpoint.handle(self)

            def log_message(self, format: str, *args: Any) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.server.handle_error = lambda *_: None  # type: ignore[method-assign] # a client left
        self.server.block_on_close = False
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}/v1"
        self.lock = threading.Lock()

    @property
    def answered(self) -> list[Seen]:
        """The requests that were answered with 200."""
        return [seen for seen in self.requests if seen.status == 200]

    def handle(self, http: BaseHTTPRequestHandler) -> None:
        read = http.rfile.read(int(http.headers.get("Content-Length", 0)))
        body = json.loads(read or b"{}")
        with self.lock:
            made = self.script[min(len(self.requests), len(self.script) - 1)]
            raw = made if isinstance(made, Raw) else made(body)
            if len(self.requests) >= MOST:
                raw = fails(400, f"over {MOST} requests: is there no limit?")
            now, headers = time.monotonic(), {k.lower(): v for k, v in http.headers.items()}
            self.requests.append(Seen(now, http.path, headers, body, raw.status))
        if self.stopped.wait(raw.wait):
            return
        try:
            http.send_response(raw.status)
            sent = {"Content-Type": "application/json", "Content-Length": str(len(raw.body))}
            for name, value in {**sent, **raw.headers}.items():
                http.send_header(name, value)
            http.end_headers()
            step = 1 if raw.drip else max(1, len(raw.body))
            for start in range(0, len(raw.body), step):
                if raw.drip and self.stopped.wait(raw.drip):
                    return
                http.wfile.write(raw.body[start : start + step])
        except OSError:  # the client has gone
            http.close_connection = True

    def __enter__(self) -> Scripted:
        serve = {"target": self.server.serve_forever, "kwargs": {"poll_interval": 0.01}}
        self.thread = threading.Thread(**serve, daemon=True)
        self.thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stopped.set()
        self.server.shutdown()
        self.thread.join()
        self.server.server_close()
