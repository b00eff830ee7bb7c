"""The bill of the tools: what the script counts, prints, and refuses."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest

from helpers import TREE, command, need, process

SCRIPT = "scripts/01_token_bill.py"
COUNTS = [5, 25, 50, 100, 128, 200]


def estimate_tools(tools: list[dict[str, Any]]) -> int:
    answer: int = need("agent.tokens", "estimate_tools")(tools)
    return answer


def card(number: int) -> dict[str, Any]:
    """A card with five tools, longer from card to card. What few of them have is read faster."""
    size = {"größe": {"type": "string", "description": "Maß in Metern."}}
    return {
        "name": f"helper-{number:02}",
        "tools": [
            {
                "name": f"tool_{number}_{tool}",
                "description": "Looks an entry up. " * (1 + number // 4),
                "parameters": {"type": "object", "properties": {} if tool else size},
            }
            for tool in range(5)
        ],
    }


def write_cards(folder: Path) -> Path:
    """Forty cards of five tools, written in an order that is not that of their names."""
    for number in sorted(range(40), key=lambda number: number * 7 % 40):
        path = folder / f"helper-{number:02}.card.yaml"
        path.write_text(json.dumps(card(number), ensure_ascii=False), encoding="utf-8")
    (folder / "README.md").write_text("Not a card.", encoding="utf-8")
    return folder


def answer(*args: str | Path) -> str:
    done = command(*args, script=SCRIPT)
    assert done.returncode == 0, f"exit code {done.returncode}, expected 0: {done.stderr}"
    return done.stdout


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_cards(tmp_path_factory.mktemp("cards"))


@pytest.fixture(scope="module")
def rows(folder: Path) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(answer("--registry", folder, "--json"))["rows"]
    return found


@pytest.fixture(scope="module")
def printed(folder: Path) -> str:
    return answer("--registry", folder)


def test_the_bill_counts_six_sizes(rows: list[dict[str, Any]]) -> None:
    """Task 5: a row each for 5, 25, 50, 100, 128 and 200 tools."""
    sizes = [row["tools"] for row in rows]
    assert sizes == COUNTS, f"the rows are for {sizes}, expected {COUNTS}"


def test_tools_are_taken_in_the_order_of_the_names(rows: list[dict[str, Any]]) -> None:
    """Task 5: the first N tools, cards by file name, tools as they stand, wrapped for the wire."""
    tools = [
        {"type": "function", "function": tool}
        for number in range(40)
        for tool in card(number)["tools"]
    ]
    for row in rows:
        expected = estimate_tools(tools[: row["tools"]])
        assert row["tokens"] == expected, f"{row}: expected {expected} tokens"


def test_a_thousand_requests_cost_a_thousand_times_as_much(rows: list[dict[str, Any]]) -> None:
    """Task 5: the definitions go along with every request."""
    for row in rows:
        assert row["thousand_requests"] == 1000 * row["tokens"], f"{row}"


def test_shares_are_of_windows_of_1024(rows: list[dict[str, Any]]) -> None:
    """Task 5: a window of 4k has 4 × 1,024 tokens, and its share is a fraction of 1."""
    for row in rows:
        expected = {f"{size}k": row["tokens"] / (size * 1024) for size in (4, 8, 32, 128)}
        assert row["windows"] == pytest.approx(expected), f"{row}: expected {expected}"


def test_the_table_fits_80_columns(printed: str) -> None:
    """Task 6: a terminal of 80 columns shows the table without a break."""
    longest = max(printed.splitlines(), key=len)
    assert len(longest) <= 80, f"{len(longest)} characters: {longest}"


def test_the_table_shows_every_row(printed: str, rows: list[dict[str, Any]]) -> None:
    """Task 6: a line a size: tools, tokens, tokens of 1,000 requests, four shares."""
    for row in rows:
        lines = [line for line in printed.splitlines() if line.split()[:1] == [str(row["tools"])]]
        line = lines[0] if lines else ""
        assert f"{row['tokens']:,}" in line, f"no {row['tokens']:,} in {line!r}"
        assert f"{row['thousand_requests']:,}" in line, f"no {row['thousand_requests']:,}: {line!r}"
        assert len(re.findall(r"[\d.]+ %", line)) == 4, f"not four shares in {line!r}"


def test_an_overfull_window_is_shown_as_such(printed: str, rows: list[dict[str, Any]]) -> None:
    """Task 6: what does not fit is over 100 %, not cut to 100 %."""
    share = rows[-1]["windows"]["4k"]
    assert share > 1, f"200 tools fill {share:.0%} of 4k in this test's cards"
    assert f"{100 * share:.0f} %" in printed, f"no {100 * share:.0f} % in:\n{printed}"


def test_the_output_states_the_error_of_the_estimate(printed: str) -> None:
    """Task 6: the output says that its tokens are an estimate, and how far off it can be."""
    assert "estimate" in printed, f"no word of an estimate in:\n{printed}"
    assert "10 %" in printed, f"no error in:\n{printed}"
    assert "o200k" in printed, f"nothing says against what it was measured:\n{printed}"


def test_the_script_runs_from_any_folder(folder: Path, rows: list[dict[str, Any]]) -> None:
    """Task 5: the script finds `agent` by its own place, not by where it is started."""
    done = process("--registry", ".", "--json", script=SCRIPT, cwd=folder)
    assert done.returncode == 0, f"exit code {done.returncode}, expected 0: {done.stderr}"
    found = json.loads(done.stdout)["rows"]
    assert found == rows, f"started in the cards' folder it gave {found}"


def test_the_catalogue_is_the_default(tmp_path: Path, rows: list[dict[str, Any]]) -> None:
    """Task 5: without --registry, the cards of the script's own tree are counted."""
    if not (TREE / SCRIPT).is_file():
        pytest.fail(f"Contract: there is no {SCRIPT} yet")
    for name in ("agent", "scripts"):
        shutil.copytree(TREE / name, tmp_path / "tree" / name)
    (catalogue := tmp_path / "tree" / "registry" / "catalogue").mkdir(parents=True)
    write_cards(catalogue)
    done = process("--json", script=str(tmp_path / "tree" / SCRIPT), cwd=tmp_path)
    assert done.returncode == 0, f"exit code {done.returncode}, expected 0: {done.stderr}"
    found = json.loads(done.stdout)["rows"]
    assert found == rows, f"with the same cards in registry/catalogue it gave {found}"


def refusal(folder: Path) -> str:
    """What the script says when it refuses: on stderr, exit code 1, no traceback."""
    done = command("--registry", folder, script=SCRIPT)
    assert done.returncode == 1, f"exit code {done.returncode}, expected 1: {done.stdout}"
    assert done.stdout == "", f"a refusal belongs on stderr, stdout had {done.stdout!r}"
    assert "Traceback" not in done.stderr, f"a message, not a traceback:\n{done.stderr}"
    return done.stderr


def test_a_missing_folder_is_named(tmp_path: Path) -> None:
    """Task 8: the message names the folder."""
    message = refusal(tmp_path / "nowhere")
    assert str(tmp_path / "nowhere") in message, message


def test_too_few_tools_are_counted_in_the_message(tmp_path: Path) -> None:
    """Task 8: it says how many tools there are and how many it needs."""
    (write_cards(tmp_path) / "helper-03.card.yaml").unlink()
    message = refusal(tmp_path)
    assert "195" in message, f"195 tools are there: {message}"
    assert "200" in message, f"200 are needed: {message}"


@pytest.mark.parametrize(
    "text",
    [
        "tools: [",
        "tools:\n\t- name: x",
        "just a sentence",
        "name: helper-00",
        "tools: none",
        "tools:\n  - look_up",
        "tools:\n  - name: look_up\n    description: Looks it up.",
        "tools:\n  - {name: x, description: d, parameters: {default: 2026-01-31}}",
        "when: 2026-13-41",
    ],
    ids=["yaml", "tab", "sentence", "no tools", "word", "text", "no parameters", "date", "no day"],
)
def test_a_malformed_card_is_named(tmp_path: Path, text: str) -> None:
    """Task 8: the message names the file of a card that cannot be counted."""
    (write_cards(tmp_path) / "helper-00.card.yaml").write_text(text, encoding="utf-8")
    message = refusal(tmp_path)
    assert "helper-00.card.yaml" in message, f"{text!r} gave: {message}"


def test_a_card_that_is_not_utf8_is_named(tmp_path: Path) -> None:
    """Task 8: the message names the file of a card that cannot be read as UTF-8."""
    (write_cards(tmp_path) / "helper-00.card.yaml").write_bytes("tools: für".encode("latin-1"))
    message = refusal(tmp_path)
    assert "helper-00.card.yaml" in message, message
