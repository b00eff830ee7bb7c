"""How well the concierge routes: coverage, accuracy, refusals, and each row that it got wrong.

Answered is a row that an agent takes; right, one that the right agent takes. It tunes nothing.
"""

import argparse
import json
import os
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

# Python puts this file's folder on the path, not the tree's root, where `agent` is.
ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from agent.concierge import Concierge, Route  # noqa: E402
from agent.errors import AgentError  # noqa: E402
from agent.index import Embedder, Index  # noqa: E402
from agent.rows import read_rows  # noqa: E402
from agent.space import Space  # noqa: E402
from agent.wiring import open_concierge  # noqa: E402

KINDS = ("in", "out", "near")  # in scope; out of scope; out of scope, but close to a card
SIZES = (1_000, 10_000, 100_000)  # examples


@dataclass(frozen=True)
class Score:
    """Shares of the rows of one language, 0 to 1. NaN where there is no such row."""

    rows: int
    coverage: float  # answered, of those in scope
    accuracy: float  # right, of the answered in scope
    right: float  # answered right, of those in scope
    false_routes: float  # answered, of those that nobody should take
    out_refused: float  # refused, of those out of scope
    near_refused: float  # refused, of the near misses


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Measure the router on labelled requests.")
    parser.add_argument("--registry", type=Path, default=ROOT / "registry", metavar="DIR")
    parser.add_argument("--rows", type=Path, default=ROOT / "registry/eval/test.jsonl")
    parser.add_argument("--raw", action="store_true", help="on the vectors as the model sent them")
    parser.add_argument("--wrong", action="store_true", help="show each row it got wrong")
    parser.add_argument("--scale", action="store_true", help="how the time grows with the index")
    parser.add_argument("--json", action="store_true", help="the same for machines")
    args = parser.parse_args(argv)
    if args.scale:
        sizes = scale()
        print(json.dumps(sizes) if args.json else scale_table(sizes))
        return 0
    try:
        rows = read_rows(args.rows)
        concierge = open_concierge(args.registry)
        if args.raw:
            size = concierge.index.matrix.shape[1]
            plain = Space(np.zeros(size), np.eye(size))
            concierge = Concierge(concierge.index, plain)
        routes = concierge.route_all([row["text"] for row in rows])
    except AgentError as error:
        print(f"error: {error}", file=sys.stderr)
        return error.exit_code
    scores = {"all": score(rows, routes)}
    for lang in sorted({row["lang"] for row in rows}):
        chosen = [i for i, row in enumerate(rows) if row["lang"] == lang]
        scores[lang] = score([rows[i] for i in chosen], [routes[i] for i in chosen])
    wrong = [pair for pair in zip(rows, routes, strict=True) if pair[0]["card"] != pair[1].card]
    if args.json:
        listed = [{**row, "got": route.card} for row, route in wrong]
        # JSON has no NaN: a share of no rows is null.
        answer = {
            name: {key: value if value == value else None for key, value in asdict(one).items()}
            for name, one in scores.items()
        }
        print(json.dumps({**answer, "wrong": listed}, ensure_ascii=False))
        return 0
    show_scores(scores)
    print(f"\n{len(wrong)} of {len(rows)} rows are wrong", end="")
    print(":" if args.wrong else "; --wrong shows them")
    for row, route in wrong if args.wrong else ():
        print(f"  {row['text']}\n      {row['card'] or 'nobody'}, not {route.card or 'nobody'}")
    return 0


def score(rows: list[dict[str, Any]], routes: list[Route]) -> Score:
    answered = np.array([route.card is not None for route in routes])
    right = np.array([row["card"] == route.card for row, route in zip(rows, routes, strict=True)])
    inside, out, near = (np.array([row["kind"] == kind for row in rows]) for kind in KINDS)
    return Score(
        rows=len(rows),
        coverage=share(answered, inside),
        accuracy=share(right, inside & answered),
        right=share(right & answered, inside),
        false_routes=share(answered, ~inside),
        out_refused=share(~answered, out),
        near_refused=share(~answered, near),
    )


def share(of: np.ndarray, among: np.ndarray) -> float:
    return float(of[among].mean()) if among.any() else float("nan")


def show_scores(scores: dict[str, Score]) -> None:
    names = {field: field.replace("_", " ") for field in asdict(scores["all"])}
    print(f"{'':16}" + "".join(f"{name:>8}" for name in scores))
    for field, name in names.items():
        values = [getattr(one, field) for one in scores.values()]
        cells = [f"{v:8}" if isinstance(v, int) else f"{v:8.3f}" for v in values]
        print(f"{name:16}" + "".join(cells))


def scale() -> list[dict[str, float]]:
    """The time of a route without its embedding, on random vectors of 384 numbers."""
    rng, rows = np.random.default_rng(0), []
    for size in SIZES:
        matrix = rng.standard_normal((size, 384), dtype=np.float32)
        matrix /= np.linalg.norm(matrix, axis=1, keepdims=True)
        owners = [f"card-{entry // 10}" for entry in range(size)]
        concierge = Concierge(Index(owners, owners, matrix, Embedder("", "", "", np.array)))
        product = milliseconds(np.matmul, matrix, matrix[0])
        route = milliseconds(concierge.rank, "request", matrix[0])
        times = {"product_ms": product, "route_ms": route}
        rows.append({"examples": size, "megabytes": matrix.nbytes / 1e6, **times})
    return rows


def scale_table(sizes: list[dict[str, float]]) -> str:
    lines = [f"{'examples':>10}{'MB':>8}{'one product':>15}{'a whole route':>17}"]
    for row in sizes:
        lines.append(
            f"{row['examples']:>10,}{row['megabytes']:8.1f}"
            f"{row['product_ms']:12.3f} ms{row['route_ms']:14.3f} ms"
        )
    return "\n".join(lines)


def milliseconds(run: Callable[..., object], *args: Any) -> float:
    """The median time of a call, of 21."""
    spent = []
    for _ in range(21):
        start = time.perf_counter()
        run(*args)
        spent.append(time.perf_counter() - start)
    return float(np.median(spent)) * 1000


if __name__ == "__main__":
    try:
        code = main()
        sys.stdout.flush()
    except BrokenPipeError:  # the reader has gone, as `head` does
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        code = 0
    sys.exit(code)
