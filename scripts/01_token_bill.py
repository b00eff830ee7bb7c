"""What the tools of the catalogue cost before the first word is said.

It calls no model, and it counts the `tools` array alone: no prompts, no messages.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

import yaml

# Python puts this file's folder on the path, not the tree's root, where `agent` is.
ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from agent.tokens import estimate_tools  # noqa: E402

CATALOGUE = ROOT / "registry" / "catalogue"
COUNTS = (5, 25, 50, 100, 128, 200)
WINDOWS = {"4k": 4 * 1024, "8k": 8 * 1024, "32k": 32 * 1024, "128k": 128 * 1024}
REQUESTS = 1000
ERROR = (
    "Tokens are an estimate: within 10 % of the o200k tokenizer for at least 85 of\n"
    "100 texts of 1,500 characters (English, German, JSON schemas, Python)."
)


class BillError(Exception):
    """A folder or a card that no bill can be made of; the message names it and the mend."""


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="What tool definitions cost, in tokens.")
    parser.add_argument("--registry", type=Path, default=CATALOGUE, help="folder of the cards")
    parser.add_argument("--json", action="store_true", help="the same numbers for machines")
    args = parser.parse_args(argv)
    try:
        tools = read_tools(args.registry)
        rows = bill(tools)
    except BillError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    if args.json:
        print(json.dumps({"rows": rows, "windows": WINDOWS, "error": ERROR.replace("\n", " ")}))
    else:
        print(table(rows))
    return 0


def read_tools(folder: Path) -> list[dict[str, Any]]:
    """Every tool of the folder's cards, as the wire has it: cards by name, tools as they stand."""
    if not folder.is_dir():
        raise BillError(f"{folder} is not a folder: --registry takes the folder of the cards")
    tools = [tool for path in sorted(folder.glob("*.card.yaml")) for tool in card_tools(path)]
    if len(tools) < max(COUNTS):
        raise BillError(f"{folder} holds {len(tools)} tools, needed are {max(COUNTS)}: add cards")
    return tools


def card_tools(path: Path) -> list[dict[str, Any]]:
    try:
        card = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError, yaml.YAMLError) as error:
        raise BillError(f"{path} is not a card: {' '.join(str(error).split())}") from None
    tools = card.get("tools") if isinstance(card, dict) else None
    if not isinstance(tools, list):
        raise BillError(f"{path} has no list under `tools`: write one to five tools there")
    for number, tool in enumerate(tools, 1):
        if not isinstance(tool, dict) or not {"name", "description", "parameters"} <= tool.keys():
            raise BillError(f"{path}, tool {number}: needs name, description and parameters")
        try:
            json.dumps(tool)
        except (TypeError, ValueError) as error:
            raise BillError(f"{path}, tool {number}: {error}: write plain JSON values") from None
    return [{"type": "function", "function": tool} for tool in tools]


def bill(tools: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """A row for each count: the tokens of one request and of 1,000, the share of each window."""
    rows = []
    for count in COUNTS:
        tokens = estimate_tools(tools[:count])
        row = {"tools": count, "tokens": tokens, "thousand_requests": tokens * REQUESTS}
        rows.append({**row, "windows": {name: tokens / size for name, size in WINDOWS.items()}})
    return rows


def table(rows: list[dict[str, Any]]) -> str:
    lines = [
        "          tokens before      for 1,000    share of a context window of",
        "   tools the first word       requests" + "".join(f"{name:>8}" for name in WINDOWS),
    ]
    for row in rows:
        shares = "".join(f"{percent(share):>8}" for share in row["windows"].values())
        lines.append(f"{row['tools']:8}{row['tokens']:15,}{row['thousand_requests']:16,}{shares}")
    return "\n".join([*lines, "", "A window of 4k is 4 × 1,024 tokens.", ERROR])


def percent(share: float) -> str:
    return f"{100 * share:.0f} %" if share >= 0.0995 else f"{100 * share:.1f} %"


if __name__ == "__main__":
    sys.exit(main())
