"""What was measured: JSON in docs/measured/, made by the project's scripts and kept in the tree.

`python -m workshop pages` runs the commands again. A test compares what they print with the files.
"""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from workshop.errors import Problem
from workshop.outputs import close
from workshop.series import write
from workshop.site.plots import Bar, Plot, svg

PAGE = Path("docs") / "measurements.md"
FOLDER = Path("docs") / "measured"
MARKS = re.compile(
    r"(<!-- measured: ([a-z0-9-]+) -->\n)(.*?)(<!-- end of measured -->\n)", re.DOTALL
)
TIMES = re.compile(r"seconds|_ms$|time")  # keys whose values no two runs share


@dataclass(frozen=True)
class Measurement:
    """One file: the command that makes it, how exact it is, and how a page shows it."""

    name: str
    command: tuple[str, ...]
    tolerance: float
    table: Callable[[Any], str]
    plots: Callable[[Any], list[Plot]]
    dropped: tuple[str, ...] = ()

    def file(self, root: Path) -> Path:
        return root / FOLDER / f"{self.name}.json"

    def read(self, root: Path) -> Any:
        """What was measured. Problem where the file is missing or damaged."""
        path = self.file(root)
        try:
            return json.loads(path.read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise Problem(
                f"{path} is no measurement: {error}", "Make it: python -m workshop pages"
            ) from None

    def run(self, root: Path, env: dict[str, str] | None = None) -> Any:
        """Measure. The command runs as `just with` runs it."""
        words = ["sh", str(root / "workshop" / "start"), "with", "python", *self.command]
        done = subprocess.run(
            words, cwd=root, env=env, capture_output=True, encoding="utf-8", check=False
        )
        if done.returncode:
            raise Problem(f"{' '.join(self.command)} failed: {done.stderr}", "Mend it first.")
        found = json.loads(done.stdout)
        return {key: value for key, value in found.items() if key not in self.dropped}


def table(head: list[str], rows: list[list[str]]) -> str:
    """A Markdown table, its first column for words and the others for numbers."""
    marks = ["---", *["---:"] * (len(head) - 1)]
    return "".join(f"| {' | '.join(row)} |\n" for row in [head, marks, *rows])


def percent(share: float | None, digits: int = 0) -> str:
    return "–" if share is None else f"{100 * share:.{digits}f} %"


def bill_table(found: Any) -> str:
    windows = list(found["windows"])
    head = ["tools", "tokens a request", "for 1,000 requests", *(f"of {name}" for name in windows)]
    rows = [
        [str(row["tools"]), f"{row['tokens']:,}", f"{row['thousand_requests']:,}",
         *(percent(row["windows"][name]) for name in windows)]
        for row in found["rows"]
    ]  # fmt: skip
    return table(head, rows)


def bill_plots(found: Any) -> list[Plot]:
    rows = found["rows"]
    most = max(row["tokens"] for row in rows) * 1.02
    groups = tuple(
        (f"{row['tools']} tools", (Bar(0, row["tokens"], f"{row['tokens']:,}"),)) for row in rows
    )
    lines = tuple((size, name) for name, size in found["windows"].items() if size < most)
    title = "Tokens of tool definitions in each request, and context windows"
    return [Plot(title, groups, most, lines=lines)]


def router_table(found: Any) -> str:
    fields = [field for field in found["all"] if field != "rows"]
    rows = [["rows", *(str(one["rows"]) for one in found.values())]]
    rows += [
        [field.replace("_", " "), *(percent(one[field], 1) for one in found.values())]
        for field in fields
    ]
    return table(["share", *found], rows)


def router_plots(found: Any) -> list[Plot]:
    fields = [field for field in found["all"] if field != "rows"]
    groups = tuple(
        (
            field.replace("_", " "),
            tuple(
                Bar(at, one[field] or 0.0, percent(one[field]))
                for at, one in enumerate(found.values())
            ),
        )
        for field in fields
    )
    return [Plot("The router on its eval rows", groups, 1.0, series=tuple(found))]


ABC_COLUMNS = ("input", "output", "definitions", "results")
ABC_SHARES = {"agent": "right agent", "tool": "right tool", "answer": "answer found",
              "answer_long": "long page"}  # fmt: skip


def abc_table(found: Any) -> str:
    """A row an arm, and above them the endpoint that it was measured on."""
    head = ["arm", *ABC_COLUMNS, *ABC_SHARES.values(), "ghost calls", "cut", "refused", "failed"]
    rows = []
    for name, arm in found["arms"].items():
        kinds = [str(arm["kinds"].get(kind, 0)) for kind in ("ghost", "truncated")]
        rows.append(
            [name, *(f"{arm[key]:,.0f}" for key in ABC_COLUMNS),
             *(percent(share_of(arm[key])) for key in ABC_SHARES), *kinds,
             str(arm["refused"]), str(arm["failed"])]
        )  # fmt: skip
    return f"Measured on {found['endpoint']}\n\n{table(head, rows)}"


def share_of(share: Any) -> float | None:
    return float(share["share"]) if share["of"] else None


def abc_plots(found: Any) -> list[Plot]:
    arms: dict[str, Any] = found["arms"]
    tokens = []
    for key, what in (
        ("input", "Input tokens a request, over all its turns"),
        ("definitions", "Tokens of tool definitions in each turn"),
        ("results_long", "Tokens of tool results on the long page, each counted once"),
    ):
        most = max(arm[key] for arm in arms.values()) or 1.0
        groups = tuple(
            (name, (Bar(0, arm[key], f"{arm[key]:,.0f}"),)) for name, arm in arms.items()
        )
        tokens.append(Plot(f"{what}. {found['endpoint']}", groups, most))
    shares = tuple(
        (
            name,
            tuple(
                Bar(at, share_of(arm[key]) or 0.0, percent(share_of(arm[key])))
                for at, key in enumerate(("tool", "answer"))
            ),
        )
        for name, arm in arms.items()
    )
    title = f"Requests with the right tool, and with the answer. {found['endpoint']}"
    return [*tokens, Plot(title, shares, 1.0, series=("right tool", "answer found"))]


MEASUREMENTS = (
    Measurement("token-bill", ("scripts/01_token_bill.py", "--json"), 0.0, bill_table, bill_plots),
    Measurement(
        "router", ("scripts/03_router_eval.py", "--json"), 0.02, router_table, router_plots,
        dropped=("wrong",),
    ),
    Measurement(
        "abc", ("scripts/08_abc.py", "--every", "9", "--json"), 0.05, abc_table, abc_plots
    ),
)  # fmt: skip


def there(root: Path) -> list[Measurement]:
    """The measurements that this tree has a script for."""
    return [one for one in MEASUREMENTS if (root / one.command[0]).exists()]


def renew(root: Path) -> Iterator[tuple[Measurement, bool]]:
    """Measure anew, and write what has changed.

    Each measurement, and whether it has changed.
    """
    for one in there(root):
        found, path = one.run(root), one.file(root)
        changed = not path.exists() or bool(differences(one.read(root), found, one.tolerance))
        if changed:
            text = json.dumps(found, indent=1, ensure_ascii=False) + "\n"
            write(path, text.encode())
        yield one, changed


def differences(shown: Any, got: Any, tolerance: float, where: str = "") -> list[str]:
    """Where two measurements differ: numbers by more than the tolerance, all else at all."""
    if isinstance(shown, dict) and isinstance(got, dict) and shown.keys() == got.keys():
        return [
            found
            for key in shown
            if not TIMES.search(str(key))
            for found in differences(shown[key], got[key], tolerance, f"{where}.{key}")
        ]
    if isinstance(shown, list) and isinstance(got, list) and len(shown) == len(got):
        return [
            found
            for at, pair in enumerate(zip(shown, got, strict=True))
            for found in differences(*pair, tolerance, f"{where}[{at}]")
        ]
    both = (shown, got)
    if all(isinstance(one, int | float) and not isinstance(one, bool) for one in both):
        return [] if close(shown, got, tolerance) else [f"{where}: {shown}, now {got}"]
    return [] if shown == got else [f"{where}: {shown!r}, now {got!r}"]


def with_tables(root: Path, text: str) -> str:
    """A page with the tables between its marks as the files have them."""
    known = {one.name: one for one in there(root)}

    def fill(found: re.Match[str]) -> str:
        one = known.get(found[2])
        if not one:
            return found[0]
        return f"{found[1]}\n{one.table(one.read(root))}\n{found[4]}"

    return MARKS.sub(fill, text)


def with_plots(root: Path, text: str, raw: Callable[[str], str]) -> str:
    """The page as the site has it: the plots before the tables. `raw` wraps HTML."""
    known = {one.name: one for one in there(root)}

    def fill(found: re.Match[str]) -> str:
        one = known.get(found[2])
        if not one:
            return found[3]
        plots = "".join(svg(plot) for plot in one.plots(one.read(root)))
        return f"{raw(plots)}\n{found[3]}"

    return MARKS.sub(fill, text)
