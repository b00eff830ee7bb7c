"""A against B against C: one agent with many tools; routed, with five; routed, with the store.

The same requests go through each, with the same budget. What came of a run is counted, and no run
is repeated until it succeeds. It tunes nothing.
"""

import argparse
import json
import math
import os
import random
import re
import shutil
import sys
import tempfile
import time
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

import yaml

# Python puts this file's folder on the path, not the tree's root, where `agent` is.
ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "scripts")]

from abc_report import claims, notes, plot, tables  # noqa: E402

from agent import runner, toolbox  # noqa: E402
from agent.artifacts import Artifacts  # noqa: E402
from agent.budget import Meter  # noqa: E402
from agent.cards import Budget, Card, read_registry  # noqa: E402
from agent.chat import Chat  # noqa: E402
from agent.errors import AgentError, EndpointError, RowsError  # noqa: E402
from agent.progress import Progress  # noqa: E402
from agent.settings import Settings, read_names, read_settings  # noqa: E402
from agent.store import Store  # noqa: E402
from agent.tokens import estimate, estimate_tools  # noqa: E402
from agent.tools import Tool, call, load_tool  # noqa: E402
from agent.wiring import make_embedder, open_concierge  # noqa: E402
from agent.worker import Worker  # noqa: E402

SIZES = (5, 25, 50, 100, 128, 200)  # tools of A
ARMS = [*(f"A{size}" for size in SIZES), "B", "C"]
BUDGET = Budget(turns=8, tool_calls=16, tokens=1_000_000, seconds=300)  # that no arm is held back
PROMPT = "You have tools. Use the one that fits the request, and answer from what it gives."
NO_MODEL = "The practice endpoint is a stand-in that follows rules. It is not a language model."
TOO_MUCH = re.compile(r"answered 4(?:00|13|22)\b")  # not a wrong key, nor a model that is not there


@dataclass(frozen=True)
class Run:
    """What came of one request in one arm. None: it does not apply, or there was no run."""

    key: str  # of the endpoint, the arm, the seed and the row
    arm: str
    text: str
    long: bool  # about the page of 38,000 tokens
    agent: bool | None  # the right card; A has only one
    tool: bool | None  # the first call of a tool is of a right one
    answer: bool | None  # the answer holds what it must
    definitions: int  # tokens of the tools, about, in each request
    results: int  # tokens of all tools' results, about, each counted once
    input: int  # tokens, over all requests of the run, as the endpoint says
    output: int
    estimated: bool  # it does not say, and they are our estimates
    requests: int
    status: str  # as a Result has it; nobody, or refused by the endpoint
    reason: str
    counts: dict[str, int]  # ghost calls and their like
    seconds: float


class Bench:
    """The parts that all arms share."""

    def __init__(
        self, registry: Path, rows: dict[str, Any], settings: Settings, folder: Path
    ) -> None:
        self.registry, self.rows, self.folder = registry, rows, folder
        self.chat, self.concierge = Chat(settings), open_concierge(registry)
        self.cards = {card.name: card for card in read_registry(registry)}
        self.tools = {name: self.tools_of(card) for name, card in self.cards.items()}
        for row in rows["rows"]:
            names = {tool.name for tool in self.tools.get(row["card"], ())}
            if unknown := set(right_tools(row)) - names:
                raise RowsError(f"{row['text']!r}: {row['card']} has no tool {sorted(unknown)}.")
        self.crm = folder / "crm"
        self.fill()

    def tools_of(self, card: Card) -> list[Tool]:
        try:
            return toolbox.tools_of(card, self.registry)
        except AgentError:  # a card whose tools are still to be written
            return []

    def fill(self) -> None:
        """What the customer database holds before each run."""
        os.environ["TINY_CRM"] = str(self.crm)
        self.crm.touch()
        for entry in self.rows.get("contacts", ()):
            for name, arguments in entry.items():
                done = call(load_tool(self.registry / "tools/crm_writer.py", name), arguments)
                if done.kind != "ok":
                    raise RowsError(f"contacts: {name} says {done.text}")

    def run(self, key: str, arm: str, seed: int, row: dict[str, Any]) -> Run:
        """One request in one arm."""
        began, card = time.monotonic(), None
        if arm[0] == "A":
            tools, prompt = self.some_tools(int(arm[1:]), seed, row), PROMPT
        else:
            name = self.concierge.route(row["text"]).card
            card, prompt = name, self.cards[name].prompt if name else ""
            tools = self.tools[name] if name else []
        store = Artifacts(Store(self.folder / "artifacts"), self.embedder) if arm == "C" else None
        result = self.ask(row["text"], prompt, tools, store) if card or arm[0] == "A" else None
        return judge(key, arm, row, card, tools, result, time.monotonic() - began)

    def embedder(self, handle: str) -> Any:
        return make_embedder(self.folder / "vectors" / handle)

    def some_tools(self, size: int, seed: int, row: dict[str, Any]) -> list[Tool]:
        """So many tools in an order that the seed shuffles, with the row's card's among them."""
        own = self.tools[row["card"]]
        names = {tool.name for tool in own}
        others = {t.name: t for tools in self.tools.values() for t in tools if t.name not in names}
        if len(own) + len(others) < size:
            raise RowsError(f"{self.registry} has {len(own) + len(others)} tools, and not {size}.")
        shuffled = random.Random(seed).sample(sorted(others), size - len(own))
        tools = [*own, *(others[name] for name in shuffled)]
        return sorted(tools, key=lambda tool: random.Random(f"{seed}{tool.name}").random())

    def ask(
        self, text: str, prompt: str, tools: list[Tool], store: Artifacts | None
    ) -> runner.Result:
        os.environ["TINY_CRM"] = str(shutil.copy(self.crm, self.folder / "crm-of-this-run"))
        worker = Worker(read_names(ROOT, os.environ))
        run = runner.Runner(self.chat, tools, meter=Meter(BUDGET), worker=worker, artifacts=store)
        said = [("system", prompt), ("user", text)]
        return run.run([{"role": role, "content": content} for role, content in said])


def judge(
    key: str,
    arm: str,
    row: dict[str, Any],
    card: str | None,
    tools: Sequence[Tool],
    result: runner.Result | None,
    seconds: float,
) -> Run:
    """A row's expectations against what came."""
    agent = None if arm[0] == "A" else card == row["card"]
    about = key, arm, row["text"], row.get("page") == "long", agent
    definitions = estimate_tools([tool.definition for tool in tools])
    if not result:
        answer = None if row["answer"] is None else False
        return Run(*about, False, answer, 0, 0, 0, 0, False, 0, "nobody", "", {}, seconds)
    calls = [c["function"]["name"] for m in result.messages for c in m.get("tool_calls", ())]
    read = [m["content"] for m in result.messages if m["role"] == "tool"]
    answer = None if row["answer"] is None else holds(result.answer, row["answer"])
    # So many tools, or such ones, are not taken. Later on it is the conversation that is too long.
    refused = TOO_MUCH.search(result.reason) and result.requests == 1
    how = "refused" if refused else result.status, result.reason, result.counts, seconds
    used = result.usage.input, result.usage.output, result.usage.estimated, result.requests
    tool = bool(calls) and calls[0] in right_tools(row)
    return Run(*about, tool, answer, definitions, sum(map(estimate, read)), *used, *how)


def right_tools(row: dict[str, Any]) -> list[str]:
    return row["tool"] if isinstance(row["tool"], list) else [row["tool"]]


def holds(text: str, answer: str) -> bool:
    """Whether the answer stands in a text. Example: 14 is neither in 2014 nor in 14.50."""
    wanted = re.escape(folded(answer))
    return bool(re.search(rf"(?<!\d)(?<!\d[.,:]){wanted}(?![.,:]?\d)", folded(text)))


def folded(text: str) -> str:
    return " ".join(text.casefold().split())


def interval(hits: float, of: int) -> tuple[float, float]:
    """Where a share lies with 95 % (Wilson, 1927). Example: 5 of 10 -> 0.24, 0.76"""
    if not of:
        return 0.0, 1.0
    share, z2 = hits / of, 1.96**2
    middle, spread = share + z2 / 2 / of, math.sqrt(share * (1 - share) / of + z2 / 4 / of**2)
    return (middle - 1.96 * spread) / (1 + z2 / of), (middle + 1.96 * spread) / (1 + z2 / of)


def summary(runs: Sequence[Run]) -> dict[str, Any]:
    """The figures of one arm: means over its runs, and shares with their intervals.

    A run that the endpoint refused counts in no mean and no share.
    """
    ran = [run for run in runs if run.status != "refused"]

    def mean(values: Iterable[float]) -> float:
        found = list(values)
        return sum(found) / max(1, len(found))

    def share(key: str, runs: Iterable[Run]) -> dict[str, Any]:
        found = [(run.text, getattr(run, key)) for run in runs if getattr(run, key) is not None]
        hits, of = sum(hit for _, hit in found), len(found)
        rows = len({text for text, _ in found})  # a row that is run again is no other row
        part = hits / max(1, of)
        return {"hits": hits, "of": of, "share": part, "between": interval(part * rows, rows)}

    kinds = sorted({kind for run in ran for kind in run.counts})
    return {
        "runs": len(runs),
        "input": mean(run.input for run in ran),
        "output": mean(run.output for run in ran),
        "requests": mean(run.requests for run in ran),
        "definitions": mean(run.definitions for run in ran if run.status != "nobody"),
        "results": mean(run.results for run in ran),
        "results_long": mean(run.results for run in ran if run.long),
        "input_long": mean(run.input for run in ran if run.long),
        "agent": share("agent", ran),
        "tool": share("tool", ran),
        "answer": share("answer", ran),
        "answer_long": share("answer", (run for run in ran if run.long)),
        "kinds": {kind: sum(run.counts.get(kind, 0) for run in ran) for kind in kinds},
        "cut": sum(run.counts.get("truncated", 0) > 0 for run in ran),
        "estimated": sum(run.estimated for run in ran),
        "refused": len(runs) - len(ran),
        "failed": sum(run.status not in ("done", "nobody", "refused") for run in runs),
        "seconds": mean(run.seconds for run in ran),
    }


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Measure A against B against C.")
    parser.add_argument("--registry", type=Path, default=ROOT / "registry", metavar="DIR")
    parser.add_argument("--rows", type=Path, default=ROOT / "scripts/08_abc.yaml")
    parser.add_argument("--arms", nargs="+", default=ARMS, help=f"of {' '.join(ARMS)}")
    parser.add_argument("--every", type=count, default=1, help="only each so-many-th row")
    parser.add_argument("--seeds", type=count, default=1, help="runs of each row, in other orders")
    parser.add_argument("--runs", type=Path, help="a file that keeps each run, to go on from")
    parser.add_argument("--json", action="store_true", help="the same for machines")
    parser.add_argument("--svg", type=Path, help="write a plot to this file")
    args = parser.parse_args(argv)
    for arm in args.arms:
        if not re.fullmatch(r"A([5-9]|[1-9]\d{1,2})|B|C", arm):
            parser.error(f"{arm} is no arm: {', '.join(ARMS)}, or A with another number from 5")
    for path in filter(None, (args.runs, args.svg)):
        if not path.parent.is_dir():
            parser.error(f"{path.parent} is no folder")
        if path.is_dir():
            parser.error(f"{path} is a folder: name a file")
    args.arms = list(dict.fromkeys(args.arms))
    try:
        settings = read_settings(ROOT, os.environ)
        rows = read_rows(args.rows)
        about = f"{settings.chat_model} at {settings.chat_url}"
        if settings.chat_model == "practice-chat":
            about = f"{settings.chat_model}. {NO_MODEL}"
        with Progress(sys.stderr, "reading the registry") as progress:
            runs = measure(args, about, settings, rows, progress)
    except AgentError as error:
        print(f"error: {error}", file=sys.stderr)
        return error.exit_code
    except KeyboardInterrupt:
        return 130
    arms = {arm: summary([run for run in runs if run.arm == arm]) for arm in args.arms}
    if args.json:
        print(json.dumps({"endpoint": about, "seeds": args.seeds, "arms": arms}))
    else:
        said = f"endpoint: {about}", tables(arms), notes(arms), claims(arms)
        print("\n".join(filter(None, said)))
    if args.svg:
        args.svg.write_text(plot(arms, about), encoding="utf-8")
    return 0


def count(text: str) -> int:
    """A number from 1."""
    if not re.fullmatch("0*[1-9][0-9]{0,8}", text):
        raise argparse.ArgumentTypeError("a number from 1")
    return int(text)


def read_rows(path: Path) -> dict[str, Any]:
    """The file of rows. RowsError names what is wrong with it."""
    try:
        read = yaml.safe_load(path.read_text(encoding="utf-8"))
        for entry in read.get("contacts", ()):
            entry.items()
        for row in read["rows"]:
            if missing := {"text", "card", "tool", "answer"} - set(row):
                raise RowsError(f"{path}: a row lacks {sorted(missing)}: {row}")
            texts = [row["text"], row["card"], row["answer"] or "", *right_tools(row)]
            if not all(isinstance(text, str) for text in texts) or not right_tools(row):
                raise RowsError(f"{path}: text, card, tool and answer are texts: {row}")
        if not read["rows"]:
            raise RowsError(f"{path} has no rows.")
    except (
        OSError,
        RecursionError,
        ValueError,
        TypeError,
        LookupError,
        AttributeError,
        yaml.YAMLError,
    ) as error:
        raise RowsError(f"{path} cannot be used ({error}).") from None
    return read


def measure(
    args: argparse.Namespace,
    about: str,
    settings: Settings,
    rows: dict[str, Any],
    progress: Progress,
) -> list[Run]:
    """Every run that is not in the file of runs yet, and those that are. All arms, row by row."""
    chosen = rows["rows"][:: args.every]
    wanted = [(arm, seed, row) for seed in range(args.seeds) for row in chosen for arm in args.arms]
    known = {run.key: run for run in read_runs(args.runs)}
    runs = []
    with tempfile.TemporaryDirectory(prefix="abc-") as folder:
        bench = Bench(args.registry, rows, settings, Path(folder))
        for number, one in enumerate(wanted, 1):
            progress.doing = f"{one[0]}, run {number} of {len(wanted)}"
            key = sha256(json.dumps([about, *one], sort_keys=True).encode()).hexdigest()[:16]
            run = known.get(key) or bench.run(key, *one)
            if run.requests == 1 and run.status == "endpoint":
                raise EndpointError(f"{run.arm}, {run.text!r}: {run.reason}")
            if key not in known:
                keep_run(args.runs, run)
            runs.append(run)
    return runs


def read_runs(path: Path | None) -> list[Run]:
    """The runs of an earlier call; a line that a kill cut off is left out."""
    if not path or not path.exists():
        return []
    runs = []
    for line in path.read_text(encoding="utf-8", errors="replace").splitlines():
        with suppress(ValueError, TypeError, RecursionError):
            runs.append(Run(**json.loads(line)))
    return runs


def keep_run(path: Path | None, run: Run) -> None:
    if path:
        with path.open("a", encoding="utf-8") as file:
            file.write(f"\n{json.dumps(asdict(run))}")  # what a kill cut off stays on its own line


if __name__ == "__main__":
    sys.exit(main())
