"""What no card shows alone: two of one name, and examples that two of them share."""

from __future__ import annotations

from pathlib import Path

import pytest

CARD = """\
name: {name}
description: Looks after one thing.
examples: [{examples}]
prompt: Look after it.
tools: [look_after]
budget: {{turns: 1, tool_calls: 1, tokens: 100, seconds: 1}}
"""


def put(folder: Path, name: str, *examples: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name}.card.yaml"
    quoted = ", ".join(f"'{example}'" for example in examples)
    path.write_text(CARD.format(name=name, examples=quoted), encoding="utf-8")
    return path


def validate(folder: Path, capsys: pytest.CaptureFixture[str]) -> tuple[int, str]:
    try:
        from agent.__main__ import main
    except ImportError as error:
        pytest.fail(f"Contract: agent.__main__ has no main yet ({error})")
    code = main(["validate", "--registry", str(folder)])
    return code, capsys.readouterr().out


def test_R3_an_example_in_two_cards_is_a_warning_that_names_both(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Task 7: an example that two cards share is a warning with both names, and no error."""
    put(tmp_path, "room-booker", "Book a room", "Is a desk free", "Cancel my room")
    put(tmp_path, "hotel-booker", "book a ROOM", "Find a hotel", "Cancel my stay")
    code, out = validate(tmp_path, capsys)
    warnings = [line for line in out.splitlines() if "warning" in line]
    assert code == 0, f"expected exit code 0, came back {code}: {out}"
    assert len(warnings) == 1, f"expected one warning, came back {warnings}"
    named = all(name in warnings[0] for name in ("room-booker", "hotel-booker"))
    assert named, f"expected both cards' names, came back {warnings[0]!r}"


def test_cards_that_share_nothing_give_no_warning(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Task 7: cards with examples of their own give no warning."""
    put(tmp_path, "room-booker", "Book a room", "Is a desk free", "Cancel my room")
    put(tmp_path, "hotel-booker", "Find a hotel", "Any bed tonight", "Cancel my stay")
    code, out = validate(tmp_path, capsys)
    assert (code, "warning" in out) == (0, False), f"came back {code}: {out}"


def test_two_cards_of_one_name_are_an_error(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Task 7: one name in two folders is an error: nobody could tell whose answer it is."""
    put(tmp_path / "a", "room-booker", "Book a room", "Is a desk free", "Cancel my room")
    put(tmp_path / "b", "room-booker", "Find a hotel", "Any bed tonight", "Cancel my stay")
    code, out = validate(tmp_path, capsys)
    assert code == 1, f"expected exit code 1, came back {code}: {out}"
    assert "same name" in out or out.count("room-booker") >= 2, f"came back {out}"
