"""How far `agent.tokens.estimate` is from the real o200k tokenizer, by kind of text.

The texts are ours, made from a seed, or on every machine; the estimate was fitted to none of them.
It is asked in a process of its own, from the root of the tree that is measured.
"""

from __future__ import annotations

import argparse
import base64
import importlib.util
import json
import random
import subprocess
import sys
import uuid
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from workshop.errors import USAGE, Problem

ROOT = Path(__file__).resolve().parents[2]
TEXTS = Path(__file__).resolve().parent / "texts"
SIZE = 1500  # characters of a text
STEP = 500  # from the start of a text to the start of the next one
CLOSE = 0.10
MODULES = [  # large enough, and in every Python from 3.11 on
    "argparse", "ast", "bdb", "calendar", "cmd", "codecs", "configparser", "csv", "dataclasses",
    "decimal", "difflib", "dis", "doctest", "enum", "filecmp", "fractions", "ftplib",
    "functools", "gettext", "glob", "gzip", "heapq", "imaplib", "inspect", "ipaddress",
    "locale", "mailbox", "mimetypes", "optparse", "pathlib", "pdb", "pickle", "platform",
    "plistlib", "pprint", "profile", "queue", "random", "sched", "selectors", "shelve", "shlex",
    "shutil", "smtplib", "socketserver", "statistics", "string", "subprocess", "tarfile",
    "tempfile", "textwrap", "threading", "timeit", "trace", "traceback", "turtle", "typing",
    "unittest.case", "urllib.request", "uuid", "warnings", "wave", "weakref", "webbrowser",
    "zipapp", "zipfile",
]  # fmt: skip
ASK = (
    "import json, sys; from agent.tokens import estimate;"
    "print(json.dumps([estimate(text) for text in json.load(sys.stdin)]))"
)


@dataclass(frozen=True)
class Row:
    kind: str
    texts: int
    within: float  # share of the texts whose estimate is within CLOSE of the count
    lowest: float  # worst estimate / count - 1, on either side
    highest: float


def measure(tree: Path = ROOT) -> list[Row]:
    """One row a kind: the estimate of `tree`'s agent against o200k."""
    encode = o200k()
    rows = []
    for kind, texts in kinds(tree).items():
        answers = ask(tree, texts)
        off = [answer / len(encode(text)) - 1 for answer, text in zip(answers, texts, strict=True)]
        close = sum(abs(error) <= CLOSE for error in off) / len(off)
        rows.append(Row(kind, len(texts), close, min(off), max(off)))
    return rows


def o200k() -> Callable[[str], list[int]]:
    """The real tokenizer. Its way of reading its data is deprecated, which is not our warning."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)
            from bpe_openai import get_encoding

            encoding = get_encoding("o200k_base")
    except ImportError:
        raise Problem("bpe-openai is not installed", "`just test` installs it") from None
    encode: Callable[[str], list[int]] = encoding.encode_ordinary
    return encode


def ask(tree: Path, texts: list[str]) -> list[int]:
    """What the agent of `tree` estimates for each text."""
    done = subprocess.run(
        [sys.executable, "-c", ASK],
        cwd=tree,
        input=json.dumps(texts),
        capture_output=True,
        text=True,
        encoding="utf-8",
    )
    if done.returncode:
        raise Problem(f"{tree}: agent.tokens.estimate does not answer", done.stderr.strip()[-300:])
    answers: list[int] = json.loads(done.stdout)
    return answers


def kinds(tree: Path) -> dict[str, list[str]]:
    return {
        "English": windows((TEXTS / "english.txt").read_text(encoding="utf-8")),
        "German": windows((TEXTS / "german.txt").read_text(encoding="utf-8")),
        "JSON schemas": schemas(tree / "registry" / "catalogue"),
        "Python": sources(),
        "CSV": windows(csv_lines()),
        "logs": windows(log_lines()),
        "Chinese": windows((TEXTS / "chinese.txt").read_text(encoding="utf-8")),
        "base64": windows(base64_lines()),
    }


def windows(text: str) -> list[str]:
    return [text[start : start + SIZE] for start in range(0, len(text) - SIZE + 1, STEP)]


def schemas(folder: Path) -> list[str]:
    """The catalogue's tool definitions, a text a card, in four layouts by turns."""
    layouts: list[dict[str, Any]] = [{"separators": (",", ":")}, {"indent": 2}, {}, {"indent": 4}]
    texts = []
    for number, path in enumerate(sorted(folder.glob("*.card.yaml"))):
        tools = yaml.safe_load(path.read_text(encoding="utf-8"))["tools"]
        texts.append(json.dumps(tools, ensure_ascii=False, **layouts[number % 4])[:SIZE])
    if not texts:
        raise Problem(f"{folder} holds no *.card.yaml", "the schemas measured are the cards' tools")
    return texts


def sources() -> list[str]:
    """1,500 characters from the middle of each of some modules of the standard library."""
    texts = []
    for name in MODULES:
        spec = importlib.util.find_spec(name)
        if spec is None or spec.origin is None or not spec.origin.endswith(".py"):
            continue
        text = Path(spec.origin).read_text(encoding="utf-8")
        middle = max(0, len(text) // 2 - SIZE // 2)
        if len(text) >= SIZE:
            texts.append(text[middle : middle + SIZE])
    return texts


def csv_lines(seed: int = 11) -> str:
    dice = random.Random(seed)
    names = ["Ada", "Bruno", "Chiara", "Dmitri", "Eszter", "Fatima", "Grzegorz", "Hülya"]
    lines = ["order_id;customer;country;net;tax;booked_at;paid"]
    for _ in range(90):
        fields = [
            str(dice.randint(10_000, 99_999_999)),
            f"{dice.choice(names)} {dice.choice(names)}",
            dice.choice(["DE", "PL", "IT", "HU"]),
            f"{dice.uniform(1, 9000):.2f}",
            f"{dice.uniform(0, 900):.4f}",
            f"2026-{dice.randint(1, 12):02}-{dice.randint(1, 28):02} {dice.randint(0, 23):02}:00",
            dice.choice(["yes", "no", ""]),
        ]
        lines.append(";".join(fields))
    numbers = [",".join(f"{dice.gauss(0, 50):.5f}" for _ in range(7)) for _ in range(60)]
    return "\n".join(lines + numbers)


def log_lines(seed: int = 12) -> str:
    """Three common formats by turns: a web server's, a Java application's, syslog's."""
    dice = random.Random(seed)
    lines = []
    for _ in range(40):
        day = dice.randint(1, 28)
        clock = f"{dice.randint(0, 23):02}:{dice.randint(0, 59):02}:{dice.randint(0, 59):02}"
        address = ".".join(str(dice.randint(1, 254)) for _ in range(4))
        trace = uuid.UUID(int=dice.getrandbits(128))
        item, size = dice.randint(1, 99999), dice.randint(1025, 65535)
        status = dice.choice([200, 304, 404])
        lines += [
            f"{address} - - [{day:02}/Apr/2026:{clock} +0200] "
            f'"GET /shop/item/{item} HTTP/1.1" {status} {size} "-" "curl/8.5.0"',
            f"2026-04-{day:02}T{clock}.{dice.randint(0, 999999):06}Z ERROR [pool-1-thread-{day}] "
            f"c.e.stock.ReservationJob - trace={trace} gave up after 3 tries",
            f"Apr {day:2} {clock} web{dice.randint(1, 30):02} sshd[{dice.randint(300, 65000)}]: "
            f"Failed password for invalid user admin from {address} port {size} ssh2",
        ]
    return "\n".join(lines)


def base64_lines(seed: int = 13) -> str:
    """In lines of 76 characters, and in one line."""
    dice = random.Random(seed)
    wrapped = base64.encodebytes(dice.randbytes(3000))
    return (wrapped + base64.b64encode(dice.randbytes(3000))).decode()


def table(rows: list[Row]) -> str:
    lines = ["kind          texts  within 10 %  most below  most above"]
    for row in rows:
        close, lowest, highest = (100 * x for x in (row.within, row.lowest, row.highest))
        lines.append(f"{row.kind:12}{row.texts:7}{close:11.0f} %{lowest:10.1f} %{highest:10.1f} %")
    return "\n".join(lines)


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m workshop.measure.tokens", description=__doc__)
    parser.add_argument("--tree", type=Path, default=ROOT, help="the tree whose agent is measured")
    args = parser.parse_args(argv)
    try:
        if not args.tree.is_dir():
            raise Problem(f"{args.tree} is not a folder", "--tree takes a stage's tree", USAGE)
        print(table(measure(args.tree.resolve())))
    except Problem as problem:
        print(problem, file=sys.stderr)
        return problem.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main())
