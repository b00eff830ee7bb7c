"""The numbers of lesson 05 about embedding models come from this run."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from workshop.measure import embedders
from workshop.outputs import differences

LESSON = Path(__file__).resolve().parents[2] / "stages" / "05-index" / "lesson.md"


def test_the_lesson_shows_what_the_measurement_prints(capsys: pytest.CaptureFixture[str]) -> None:
    assert embedders.installed_minilm(), "requirements-measure.lock is not installed"
    assert embedders.main([]) == 0
    printed = capsys.readouterr().out
    block = re.search(
        r"```text\n(.*?)```\n\n[^\n]*python -m workshop\.measure\.embedders",
        LESSON.read_text(encoding="utf-8"),
        re.DOTALL,
    )
    assert block, "lesson 05 shows no measurement of embedders"
    # A right answer more or less of 60, on another machine, is no other finding.
    assert not differences(block[1], printed, 0.05), printed
