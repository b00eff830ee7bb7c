"""A progress line: what is going on, and for how long. Off a terminal there is none."""

import os
import threading
import time
from contextlib import suppress
from io import StringIO
from types import TracebackType
from typing import TextIO

ERASE = "\r\033[K"
CUT, WRAP = "\033[?7l", "\033[?7h"  # what is too long ends at the margin: a second row would stay
EVERY = 0.5  # seconds


class Progress:
    """The last line of a terminal while something works. Log lines go above it.

    Off a terminal, and on one that cannot erase, there are the log lines alone.
    """

    def __init__(self, stream: TextIO | None, doing: str, every: float = EVERY) -> None:
        self.stream, self.doing, self.every = stream or StringIO(), doing, every
        self.began = time.monotonic()
        self.shown = self.stream.isatty() and (os.environ.get("TERM") or "dumb") != "dumb"
        self.lock, self.over = threading.Lock(), threading.Event()
        self.thread = threading.Thread(target=self.redraw, daemon=True)

    def __enter__(self) -> "Progress":
        if self.shown:
            self.thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.over.set()
        if self.thread.ident:
            self.thread.join()  # it may be about to draw
            self.write(ERASE)

    def log(self, line: str) -> None:
        """Print a line, and take it for what is going on."""
        self.doing = line.partition("] ")[2] or line
        self.write(f"{ERASE}{line}\n" if self.shown else f"{line}\n")

    def redraw(self) -> None:
        while not self.over.wait(self.every):
            seconds = f"{time.monotonic() - self.began:.0f} s"
            self.write(f"{ERASE}{CUT}… {seconds}, {self.doing}{WRAP}")

    def write(self, text: str) -> None:
        try:
            with self.lock:
                self.stream.write(text)
                self.stream.flush()
        except (OSError, ValueError):  # nobody reads it any more
            self.shown = False
            with suppress(OSError, ValueError):  # what is left goes nowhere, and fails no exit
                os.dup2(os.open(os.devnull, os.O_WRONLY), self.stream.fileno())
