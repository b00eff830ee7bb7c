"""Milliseconds a turn of the runner, over 100 tool turns, beside the barest loop of httpx.

Both ask one endpoint, in a process of its own on loopback, which answers each request with one
call. The barest loop has no budget, no check, no worker and no trace: the least that can be done.
The first turn is left out of both: it opens the connection, and waits for the worker to start.
That time is told beside.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import httpx

from agent.budget import Meter
from agent.cards import Budget
from agent.chat import Chat
from agent.runner import Runner
from agent.settings import Settings
from agent.tools import Tool, load_tool
from agent.trace import Trace

TURNS = 100
TOOL = '''def add(a: int, b: int) -> int:
    """Adds two whole numbers."""
    return a + b
'''


class Answers(BaseHTTPRequestHandler):
    """One call for each request; text once the history holds all turns."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        done = body.count(b'"tool_call_id"')
        function = {"name": "add", "arguments": json.dumps({"a": done, "b": 1})}
        call = {"id": f"call_{done}", "type": "function", "function": function}
        message: dict[str, Any] = {"role": "assistant", "content": None, "tool_calls": [call]}
        if done >= TURNS:
            message = {"role": "assistant", "content": "done"}
        usage = {"prompt_tokens": len(body) // 4, "completion_tokens": 20}
        answer = json.dumps({"choices": [{"message": message}], "usage": usage}).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, format: str, *args: Any) -> None:
        pass


def serve() -> None:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Answers)
    print(server.server_address[1], flush=True)
    server.serve_forever()


@contextmanager
def endpoint() -> Iterator[str]:
    code = "from workshop.measure.turns import serve; serve()"
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE) as process:
        try:
            assert process.stdout
            yield f"http://127.0.0.1:{int(process.stdout.readline())}/v1"
        finally:
            process.kill()


def barest(url: str, tool: Tool) -> list[float]:
    """Ask, run, send back, and nothing else. The times at which it asked."""
    messages: list[dict[str, Any]] = [{"role": "user", "content": "add"}]
    asked: list[float] = []
    with httpx.Client(trust_env=False) as http:
        while True:
            asked.append(time.perf_counter())
            body = {"model": "m", "messages": messages, "tools": [tool.definition]}
            message = http.post(f"{url}/chat/completions", json=body).json()["choices"][0][
                "message"
            ]
            messages.append(message)
            if not message.get("tool_calls"):
                return asked
            for call in message["tool_calls"]:
                result = tool.function(**json.loads(call["function"]["arguments"]))
                reply = {"role": "tool", "tool_call_id": call["id"], "content": str(result)}
                messages.append(reply)


def ours(url: str, tool: Tool, folder: Path) -> list[float]:
    """The runner, with worker and trace. The times at which it asked."""
    budget = Budget(turns=TURNS + 2, tool_calls=TURNS, tokens=10**8, seconds=600)
    chat = Chat(Settings("", "", "", "", "", url, "", "m"))
    trace = Trace(folder / "traces", chat.key)
    asked: list[float] = []

    def watch(event: dict[str, Any]) -> None:
        if event["event"] == "request":
            asked.append(time.perf_counter())
        trace(event)

    runner = Runner(chat, [tool], watch, meter=Meter(budget))
    result = runner.run([{"role": "user", "content": "add"}])
    trace.close()
    assert (result.status, result.requests) == ("done", TURNS + 1), result.status
    return asked


def measure(rounds: int = 5) -> tuple[float, float, float]:
    """Milliseconds a turn, ours and the barest, and of our first turn: medians of rounds."""
    mine: list[float] = []
    bare: list[float] = []
    first: list[float] = []
    with tempfile.TemporaryDirectory() as name, endpoint() as url:
        path = Path(name) / "adding.py"
        path.write_text(TOOL, encoding="utf-8")
        tool = load_tool(path, "add")
        barest(url, tool)
        for _ in range(rounds):
            asked = ours(url, tool, Path(name))
            mine.append((asked[-1] - asked[1]) / (TURNS - 1))
            first.append(asked[1] - asked[0])
            asked = barest(url, tool)
            bare.append((asked[-1] - asked[1]) / (TURNS - 1))
    return tuple(1000 * statistics.median(one) for one in (mine, bare, first))  # type: ignore[return-value]


if __name__ == "__main__":
    mine, bare, first = measure()
    if "--json" in sys.argv:
        print(json.dumps([mine, bare, first]))
        sys.exit()
    print(f"{mine:.2f} ms a turn, the barest loop {bare:.2f}, ratio {mine / bare:.2f}")
    print(f"{first:.0f} ms for the first turn, with the start of the worker")
