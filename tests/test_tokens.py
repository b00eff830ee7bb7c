"""The estimate of tokens, held against counts of the real o200k tokenizer that stand here."""

from __future__ import annotations

import base64
import hashlib
import json
import time
from typing import Any

import pytest

from helpers import need


def estimate(text: str) -> int:
    answer: int = need("agent.tokens", "estimate")(text)
    return answer


def estimate_tools(tools: list[dict[str, Any]]) -> int:
    answer: int = need("agent.tokens", "estimate_tools")(tools)
    return answer


SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "title": {
            "type": "string",
            "description": "What the entry is called.",
            "minLength": 1,
            "maxLength": 120,
        },
        "start": {
            "type": "string",
            "format": "date-time",
            "description": "Start, with the offset of the time zone.",
        },
        "attendees": {
            "type": "array",
            "items": {"type": "string", "format": "email"},
            "maxItems": 200,
        },
        "visibility": {
            "type": "string",
            "enum": ["default", "private", "public"],
            "default": "default",
        },
        "reminder_minutes": {"type": "integer", "minimum": 0, "maximum": 40320},
    },
    "required": ["title", "start"],
    "additionalProperties": False,
}

STORY = (
    "The ferry left at six, and nobody on deck said a word until the harbour lights had sunk "
    "behind the breakwater. Mara counted the crates again. There were nineteen, one fewer than "
    "the captain had signed for, and she knew better than to mention it before breakfast. By "
    "noon the wind had turned, the soup was cold, and the missing crate had become the only "
    'subject on board. "It was never loaded," the cook insisted. "I would have tripped over '
    'it." He tripped over everything, so this was taken as proof.'
)

MANUAL = (
    "Before you replace the filter, switch the pump off and wait until the pressure gauge shows "
    "zero. Unscrew the four bolts on the housing in a diagonal order, lift the cover, and take "
    "out the old cartridge. Check the rubber seal for cracks; a damaged seal is the most "
    "frequent cause of leaks. Insert the new cartridge with the arrow pointing downwards, close "
    "the cover, and tighten the bolts to 12 newton metres. Run the pump for two minutes and "
    "note the date in the maintenance log."
)

GESCHICHTE = (
    "Als der Zug endlich anhielt, war der Bahnsteig leer, und über den Gleisen lag ein dünner "
    "Nebel. Johanna stellte ihren Koffer neben die Bank, schlug den Kragen hoch und wartete. "
    "Der Onkel hatte versprochen, pünktlich zu sein, aber Pünktlichkeit war in dieser Familie "
    "nie mehr gewesen als ein frommer Wunsch. Nach einer halben Stunde kam ein Junge mit einem "
    "Handwagen und fragte, ob sie die Frau aus der Stadt sei. Sie nickte, obwohl sie sich in "
    "diesem Augenblick selbst nicht mehr sicher war."
)

MELDUNG = (
    "Der Rat der Stadt hat am Donnerstagabend nach fast vierstündiger Debatte keine Entscheidung "
    "über die Zukunft des Freibads getroffen. Mit 19 zu 16 Stimmen verwies er die Vorlage zurück "
    "in den Ausschuss für Sport und Finanzen. Die Verwaltung hatte vorgeschlagen, das Bad nach "
    "der laufenden Saison zu schließen und das Gelände an einen Investor zu verkaufen, der dort "
    "sechzig Wohnungen bauen möchte. Dagegen hatten innerhalb von drei Wochen mehr als 7.400 "
    "Menschen unterschrieben."
)

CODE = '''def read_rows(path: Path, limit: int | None = None) -> list[dict[str, str]]:
    """The rows of a CSV file, at most `limit` of them."""
    rows: list[dict[str, str]] = []
    with path.open(encoding="utf-8", newline="") as handle:
        for number, row in enumerate(csv.DictReader(handle)):
            if limit is not None and number >= limit:
                break
            if not row.get("customer_id"):
                raise ValueError(f"{path}:{number + 2}: customer_id is empty")
            rows.append({key.strip().lower(): value for key, value in row.items()})
    return rows
'''

CSV = "id,customer,city,amount,booked_on\n" + "".join(
    f"{7919 * i % 100000},Customer {i},{['Berlin', 'Lyon', 'Oslo'][i % 3]},"
    f"{i * 13737 % 900000 / 100:.2f},2026-{i % 12 + 1:02}-{i % 28 + 1:02}\n"
    for i in range(1, 21)
)

LOG = "".join(
    f"2026-05-{i % 28 + 1:02}T{i % 24:02}:{i * 7 % 60:02}:{i * 13 % 60:02}.{i * 7919 % 1000:03}Z "
    f"{['INFO', 'WARN'][i % 2]} [worker-{i % 8}] request {i * 104729 % 1000000:06x} "
    f"took {i * 37 % 900} ms, status {[200, 404, 500][i % 3]}\n"
    for i in range(1, 13)
)

CHINESE = (
    "会议改到下周三上午十点，地点还是三楼的小会议室。请大家提前准备好上个季度的销售数据，"
    "并且把需要讨论的问题写在共享文档里。如果有人不能参加，请最晚在周一之前告诉我，"
    "我会把会议记录发给你们。"
)

BASE64 = base64.b64encode(b"".join(hashlib.sha256(bytes([i])).digest() for i in range(15))).decode()

COUNTED = [  # text, tokens in o200k, lowest and highest answer as a share of that
    pytest.param(STORY, 110, 0.8, 1.2, id="English story"),
    pytest.param(MANUAL, 102, 0.8, 1.2, id="English manual"),
    pytest.param(GESCHICHTE, 119, 0.8, 1.2, id="German story"),
    pytest.param(MELDUNG, 99, 0.8, 1.2, id="German news"),
    pytest.param(json.dumps(SCHEMA, separators=(",", ":")), 128, 0.8, 1.2, id="compact schema"),
    pytest.param(json.dumps(SCHEMA, indent=2), 231, 0.8, 1.2, id="indented schema"),
    pytest.param(CODE, 145, 0.8, 1.2, id="Python"),
    pytest.param(CSV, 438, 0.8, 2.0, id="CSV"),
    pytest.param(LOG, 425, 0.8, 2.0, id="log"),
    pytest.param(CHINESE, 64, 0.8, 2.0, id="Chinese"),
    pytest.param(BASE64, 436, 0.8, 2.0, id="base64"),
]


def test_an_empty_text_costs_nothing() -> None:
    """Task 1: an empty text costs 0."""
    answer = estimate("")
    assert answer == 0, f'estimate("") gave {answer}, expected 0'


@pytest.mark.parametrize("text", ["a", " ", "\n", "7", "é", "漢", "🎉", "_", "\x00"])
def test_a_single_character_costs_at_least_one(text: str) -> None:
    """Task 1: any other text costs at least 1, as an int."""
    answer = estimate(text)
    assert type(answer) is int, f"estimate({text!r}) gave {answer!r}, expected an int"
    assert 1 <= answer <= 5, f"estimate({text!r}) gave {answer}, expected 1 to 5"


def test_the_same_text_always_costs_the_same() -> None:
    """Task 1: no chance and no memory in it."""
    answers = {estimate(STORY) for _ in range(5)}
    assert len(answers) == 1, f"the same text five times gave {answers}"


@pytest.mark.parametrize(("text", "counted", "low", "high"), COUNTED)
def test_the_estimate_is_near_the_count(text: str, counted: int, low: float, high: float) -> None:
    """Task 2: prose, schemas and code within 20 % of the count, data never 20 % below."""
    answer = estimate(text)
    assert low * counted <= answer <= high * counted, (
        f"o200k counts {counted}, expected {low * counted:.0f} to {high * counted:.0f}, "
        f"got {answer} for: {text[:60]!r}"
    )


@pytest.mark.parametrize("text", [STORY, GESCHICHTE, CODE, LOG], ids=["en", "de", "py", "log"])
def test_ten_times_the_text_costs_about_ten_times_as_much(text: str) -> None:
    """Task 2: the estimate grows with the text."""
    once, ten = estimate(text), estimate(text * 10)
    assert ten == pytest.approx(10 * once, rel=0.05), f"once {once}, ten times {ten}"


@pytest.mark.parametrize("text", ["\ud800", "a\udfffb", "\ud83d" * 50, "\x00\x7f", "e\u0301" * 9])
def test_no_text_is_an_error(text: str) -> None:
    """Task 3: half a surrogate pair, control characters and loose accents have a price too."""
    answer = estimate(text)
    assert answer >= 1, f"estimate({text!r}) gave {answer}, expected at least 1"


@pytest.mark.parametrize(
    "unit",
    ["a", "A", " ", "\n", "7", "-", "_", "é", "漢", "🎉", "aB3/", "Ab", " x", "a1", "-_", "\ud800"],
)
def test_time_grows_with_the_length_and_no_faster(unit: str) -> None:
    """Task 3: 50,000 characters of whatever take less than a second of the processor."""
    for size, most in ((10_000, 0.5), (50_000, 1.0)):  # so that a square ends at the first
        text = (unit * size)[:size]
        start = time.process_time()  # a busy machine makes nothing slow on this clock
        estimate(text)
        seconds = time.process_time() - start
        assert seconds < most, f"{size:,} characters of {unit!r} took {seconds:.1f} s"


def wire_tool(description: str) -> dict[str, Any]:
    return {
        "type": "function",
        "function": {"name": "add_entry", "description": description, "parameters": SCHEMA},
    }


@pytest.mark.parametrize(
    "description",
    [
        "Adds an entry to the calendar.",
        "Prüft die Öffnungszeiten der Geschäfte und schlägt Alternativen vor.",
    ],
    ids=["ASCII", "umlauts"],
)
def test_tools_are_counted_as_compact_json(description: str) -> None:
    """Task 4: the price of tools is the price of their compact JSON, `ü` as itself."""
    tools = [wire_tool(description), wire_tool("Moves an entry.")]
    expected = estimate(json.dumps(tools, ensure_ascii=False, separators=(",", ":")))
    answer = estimate_tools(tools)
    assert answer == expected, f"the JSON costs {expected}, estimate_tools gave {answer}"


def test_no_tools_cost_next_to_nothing() -> None:
    """Task 4: an empty list is two characters of JSON."""
    answer = estimate_tools([])
    assert answer <= 2, f"estimate_tools([]) gave {answer}, expected at most 2"


def test_counting_tools_does_not_change_them() -> None:
    """Task 4: what is counted is sent afterwards, so it stays as it was."""
    tools = [wire_tool("Adds an entry.")]
    before = json.dumps(tools)
    estimate_tools(tools)
    assert json.dumps(tools) == before, "estimate_tools changed the tools"
