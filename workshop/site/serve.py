"""`just docs`: builds, serves on this machine alone, and builds again when a source changes."""

from __future__ import annotations

import functools
import subprocess
import sys
import tempfile
import threading
import time
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from workshop.errors import DONE, FAILED, INTERRUPTED, Problem
from workshop.site.build import build
from workshop.site.check import check, total

WATCHED = ("stages", "docs", "workshop/site")
PAUSE = 0.5  # seconds between two looks at the sources
WAIT = 25.0  # seconds that a page's question for a new build is held
SCRIPT = (
    b"<script>(async()=>{const v=()=>fetch('/.build?'+n).then(r=>r.text());let n='';n=await v();"
    b"for(;;){try{const m=await v();if(m!==n)location.reload()}"
    b"catch{await new Promise(r=>setTimeout(r,1000))}}})()</script>"
)


def make(root: Path, target: Path, host: str | None) -> int:
    """`--build DIR`: build once."""
    if target.exists() and any(target.iterdir()) and not (target / "searchindex.js").exists():
        raise Problem(f"{target} holds something else.", "Name a new folder, or an empty one.")
    begun = time.monotonic()
    said = build(root, target, root / ".tiny" / "site", host)
    for row in said:
        print(row, file=sys.stderr)
    pages = len(list(target.rglob("*.html")))
    print(f"{target}: {pages} pages, {total(target):,} bytes, {time.monotonic() - begun:.1f} s")
    return FAILED if said else DONE


def check_all(root: Path, host: str | None) -> int:
    """`--check`: build from nothing in a folder of its own, and look at every page."""
    begun = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="tiny-site-") as scratch:
        site = Path(scratch) / "site"
        found = build(root, site, Path(scratch), host)
        found += check(site)
        pages, size = len(list(site.rglob("*.html"))), total(site)
    for row in found:
        print(f"error: {row}", file=sys.stderr)
    spent = time.monotonic() - begun
    faults = f"{len(found)} faults" if found else "no fault"
    print(f"{pages} pages, {size:,} bytes, {spent:.1f} s: {faults}")
    return FAILED if found else DONE


class Handler(SimpleHTTPRequestHandler):
    """The site's files; each page gets a script that asks whether there is a newer one."""

    protocol_version = "HTTP/1.1"

    def __init__(self, *args: object, live: Live, folder: Path, **kwargs: object) -> None:
        self.live = live
        super().__init__(*args, directory=str(folder), **kwargs)  # type: ignore[arg-type]

    def do_GET(self) -> None:
        if self.path.startswith("/.build"):
            known = self.path.partition("?")[2]
            self.send_text(self.live.newer_than(known).encode(), "text/plain")
            return
        path = Path(self.translate_path(self.path))
        path = path / "index.html" if path.is_dir() and self.path.endswith("/") else path
        if path.suffix == ".html" and path.is_file():
            self.send_text(path.read_bytes() + SCRIPT, "text/html; charset=utf-8")
            return
        super().do_GET()

    def send_text(self, data: bytes, kind: str) -> None:
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(data)))
        self.send_header("Cache-Control", "no-store")
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, format: str, *args: object) -> None:
        """Nothing: the terminal is for builds."""


class Live:
    """The number of the newest build, and who waits for the next."""

    def __init__(self) -> None:
        self.number = 1
        self.changed = threading.Condition()

    def newer_than(self, known: str) -> str:
        """The build's number, at once when it is not the one known; else when there is one."""
        with self.changed:
            self.changed.wait_for(lambda: str(self.number) != known, timeout=WAIT)
            return str(self.number)

    def built(self) -> None:
        with self.changed:
            self.number += 1
            self.changed.notify_all()


def state(root: Path) -> dict[Path, int]:
    """When each source was last written."""
    found = {}
    for folder in WATCHED:
        for path in (root / folder).rglob("*"):
            if path.suffix in (".md", ".patch", ".lock", ".json", ".py", ".css", ".js", ".html"):
                try:
                    found[path] = path.stat().st_mtime_ns
                except OSError:
                    continue
    return found


def serve(root: Path, port: int, host: str | None) -> int:
    """Build into `site/` and serve it until Ctrl-C."""
    site, live = root / "site", Live()
    before = state(root)
    make(root, site, host)
    handler = functools.partial(Handler, live=live, folder=site)
    try:
        server = ThreadingHTTPServer(("127.0.0.1", port), handler)
    except OSError as error:
        mend = "Name another: just docs --port 8001. 0 takes a free one."
        raise Problem(f"port {port} cannot be served on: {error.strerror}.", mend) from None
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    print(f"http://127.0.0.1:{server.server_port}/  (Ctrl-C ends it)", flush=True)
    try:
        while True:
            time.sleep(PAUSE)
            now = state(root)
            if now != before:
                before = now
                # A process of its own: a change of this code counts too.
                words = [sys.executable, "-E", "-s", str(root / "workshop" / "__main__.py")]
                words += ["docs", "--build", str(site), *(["--host", host] if host else [])]
                subprocess.run(words, cwd=root, check=False)
                live.built()
    except KeyboardInterrupt:
        return INTERRUPTED
    finally:
        server.shutdown()
        server.server_close()
