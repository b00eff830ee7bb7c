"""`just bench`: what things cost, as ratios within one run. Speed is measured here, not tested."""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from workshop.errors import DONE
from workshop.line import build, read_line
from workshop.repo import open_repo
from workshop.suite import lay_out
from workshop.trees import CACHES

ROUNDS = 9
CHECK_SECONDS = 5  # what `just check` may take


@dataclass(frozen=True)
class Row:
    """One measurement: how long, against what, and how much that may be."""

    what: str
    milliseconds: float
    against: str
    ratio: float | None
    most: float | None


def main(root: Path, words: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="just bench")
    parser.add_argument("--json", action="store_true", help="the same for machines")
    args = parser.parse_args(words)
    rows = [
        *routes(root),
        *turns(root),
        *digests(root),
        *starting(root),
        *line(root),
        *checks(root),
    ]
    if args.json:
        print(json.dumps([asdict(row) for row in rows]))
        return DONE
    print(f"{'what':44}{'median':>12}  {'ratio':>7}  {'most':>5}  against")
    for row in rows:
        ratio = f"{row.ratio:7.2f}" if row.ratio is not None else " " * 7
        most = f"{row.most:5.1f}" if row.most is not None else " " * 5
        print(f"{row.what:44}{row.milliseconds:9.2f} ms  {ratio}  {most}  {row.against}".rstrip())
    return DONE


def median(run: Callable[[], Any], rounds: int = ROUNDS) -> float:
    """The median time of a call, in milliseconds."""
    spent = []
    for _ in range(rounds):
        start = time.perf_counter()
        run()
        spent.append(time.perf_counter() - start)
    return statistics.median(spent) * 1000


def routes(root: Path) -> list[Row]:
    """A route without its embedding, against the one product that it cannot do without.

    Measured in a process of its own: the workshop does not import the agent.
    """
    script = root / "scripts" / "03_router_eval.py"
    if not script.exists():
        return []
    runs = []
    for _ in range(3):
        out = subprocess.run(
            [sys.executable, str(script), "--scale", "--json"],
            cwd=root,
            capture_output=True,
            check=True,
        ).stdout
        runs.append(json.loads(out))
    rows = []
    for sizes in zip(*runs, strict=True):
        best = min(sizes, key=lambda one: one["route_ms"] / one["product_ms"])
        count = best["examples"]
        most = 2.0 if count >= 10_000 else None
        ratio = best["route_ms"] / best["product_ms"]
        rows.append(
            Row(f"a route, {count:,} examples", best["route_ms"], "one product", ratio, most)
        )
    return rows


def turns(root: Path) -> list[Row]:
    """A tool turn of the runner against the barest loop that does the same."""
    words = [sys.executable, "-m", "workshop.measure.turns", "--json"]
    if not (root / "agent" / "runner.py").exists():
        return []
    out = subprocess.run(words, cwd=root, capture_output=True, check=True).stdout
    ours, bare, first = json.loads(out)
    return [
        Row("a tool turn, of 100", ours, "the barest loop of httpx", ours / bare, 1.5),
        Row("a run's first turn, its worker's start", first, "", None, None),
    ]


def digests(root: Path) -> list[Row]:
    """A digest of the long page and of larger texts, against splitting their words once."""
    if not (root / "agent" / "digest.py").exists():
        return []
    words = [sys.executable, "-m", "workshop.measure.growth", "--json"]
    out = subprocess.run(words, cwd=root, capture_output=True, check=True).stdout
    against = "splitting its words once"
    return [
        Row(f"a digest of {size:,} characters", spent, against, spent / base, None)
        for size, spent, base in json.loads(out)
    ]


def starting(root: Path) -> list[Row]:
    """`python -m agent --help` against importing three of the packages that it may need."""

    def process(*words: str) -> Callable[[], Any]:
        return lambda: subprocess.run(
            [sys.executable, *words], cwd=root, capture_output=True, check=True
        )

    bare = median(process("-c", "import httpx, numpy, yaml"))
    help_ = median(process("-m", "agent", "--help"))
    return [Row("python -m agent --help", help_, "import httpx, numpy, yaml", help_ / bare, 1.5)]


def line(root: Path) -> list[Row]:
    """Building the line, and laying out a stage, against git's own archive of the same stage."""
    repo, stages = open_repo(root), read_line(root)
    rows = [
        Row(
            f"the line, {len(stages.stages)} stages",
            median(lambda: build(repo, stages), 3),
            "",
            None,
            None,
        )
    ]
    last = stages.stages[-1]
    with tempfile.TemporaryDirectory(prefix="tiny-bench-") as scratch:
        folder = Path(scratch) / "tree"

        def archive() -> None:
            shutil.rmtree(folder, ignore_errors=True)
            lay_out(repo.git, last.commit, folder)

        base = median(archive, 3)
    start = [sys.executable, str(root / "workshop" / "__main__.py"), "stage", str(last.number)]
    tree = root / ".stages" / last.folder
    env = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}
    if not tree.exists():
        cold = median(
            lambda: subprocess.run(start, cwd=root, env=env, capture_output=True, check=True), 1
        )
        rows.append(Row("just stage, cold", cold, "git archive", cold / base, None))
    warm = median(
        lambda: subprocess.run(start, cwd=root, env=env, capture_output=True, check=True), 3
    )
    rows.append(Row("just stage, warm", warm, "git archive", warm / base, None))
    return rows


def checks(root: Path) -> list[Row]:
    """`just check N` for each stage, on our own code, in a download of its own."""
    repo, stages = open_repo(root), read_line(root)
    left_out = shutil.ignore_patterns(*CACHES, ".git", ".venv", ".stages", ".tiny", ".edit", "work")
    rows = []
    with tempfile.TemporaryDirectory(prefix="tiny-bench-") as scratch:
        copy = Path(scratch) / "tiny-agents"
        shutil.copytree(root, copy, symlinks=True, ignore=left_out)
        (copy / ".venv").symlink_to(root / ".venv")
        entry = [str(root / ".venv" / "bin" / "python"), str(copy / "workshop" / "__main__.py")]
        for stage in stages.stages:

            def run(word: str, number: str = str(stage.number)) -> None:
                subprocess.run([*entry, word, number], cwd=copy, capture_output=True, check=True)

            run("start")
            lay_out(repo.git, stage.commit, copy / "work" / stage.folder)
            spent = median(lambda run=run: run("check"), 1)  # type: ignore[misc]
            name = f"just check {stage.number}, all its tests"
            most = f"{CHECK_SECONDS} s"
            rows.append(Row(name, spent, most, spent / CHECK_SECONDS / 1000, 1.0))
    return rows
