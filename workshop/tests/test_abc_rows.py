"""The rows of A against B against C: their form, and that every answer is where it should be.

The answers are looked for in what the cards' tools read: pages as the web-reader sees them, the
customer database after the calls that fill it, the documents. Nothing is asked of a model, and
nothing is fetched. `test_registry.py` holds the rows against the examples and the router's rows.
"""

from __future__ import annotations

import functools
import re
from collections import Counter
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import yaml

from workshop.practice.web import handbook, site
from workshop.tests.modules import load

REGISTRY = Path(__file__).resolve().parents[2] / "registry"
ABC = REGISTRY.parent / "scripts" / "08_abc.yaml"
KEYS = {"text", "lang", "card", "tool", "answer"}
LONG = "northwind.example/handbook"
ADDRESS = re.compile(r"(?:https?://)?((?:[\w-]+\.)+example(?:/[\w/-]*)?)")
LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)

Row = dict[str, Any]


@functools.cache
def held() -> dict[str, Any]:
    return yaml.load(ABC.read_bytes(), Loader=LOADER)


def rows(card: str | None = None, page: str | None = None) -> list[Row]:
    """All rows, or those of one card, or of one card with that kind of page."""
    return [r for r in held()["rows"] if card is None or (r["card"], r.get("page")) == (card, page)]


def catalogue_rows() -> list[Row]:
    return [row for row in rows() if row["answer"] is None]


@functools.cache
def tools_by_card() -> dict[str, list[str]]:
    found = {}
    for path in REGISTRY.rglob("*.card.yaml"):
        card = yaml.load(path.read_bytes(), Loader=LOADER)
        found[card["name"]] = [t["name"] if isinstance(t, dict) else t for t in card["tools"]]
    return found


def tools(row: Row) -> list[str]:
    return [row["tool"]] if isinstance(row["tool"], str) else row["tool"]


def fold(text: str) -> str:
    """Text as an answer is compared. Example: "Air\\n mail" -> "air mail" """
    return " ".join(text.casefold().split())


def questions() -> dict[str, tuple[str, str]]:
    """Each question that the handbook comes with, folded: its kind and its answer."""
    return {
        fold(getattr(fact, kind)).rstrip("?"): (kind, fact.answer)
        for fact in handbook.make(handbook.SEED).facts
        for kind in ("question", "paraphrase", "german")
    }


def asked(row: Row) -> list[tuple[str, str]]:
    """The handbook's questions that stand in a row, as kind and answer."""
    return [found for question, found in questions().items() if question in fold(row["text"])]


# The form


def test_every_row_has_its_fields_and_a_card_that_has_its_tools() -> None:
    wrong = [
        row
        for row in rows()
        if set(row) - {"page"} != KEYS
        or row.get("page", "long") != "long"
        or row["lang"] not in ("en", "de")
        or not isinstance(row["answer"], str | None)
        or not tools(row)
        or not set(tools(row)) <= set(tools_by_card().get(row["card"], []))
    ]
    assert wrong == []


def test_there_are_72_rows_and_half_of_them_are_german() -> None:
    languages = Counter(row["lang"] for row in rows())
    assert languages.total() >= 72
    assert languages["de"] == languages["en"]


def test_each_real_card_has_its_share_of_rows_in_both_languages() -> None:
    groups = {
        "short": (16, rows("web-reader")),
        "long": (24, rows("web-reader", "long")),
        "crm": (10, rows("crm-writer")),
        "docs": (10, rows("docs-finder")),
        "catalogue": (14, catalogue_rows()),
    }
    for name, (fewest, group) in groups.items():
        assert len(group) >= fewest, name
        assert {row["lang"] for row in group} == {"en", "de"}, name
    assert sum(len(group) for _, group in groups.values()) == len(rows())


def test_the_catalogue_rows_are_for_different_cards_and_each_for_one_tool() -> None:
    catalogue = {path.name.removesuffix(".card.yaml") for path in REGISTRY.glob("catalogue/*.yaml")}
    cards = Counter(row["card"] for row in catalogue_rows())
    assert cards.keys() <= catalogue
    assert max(cards.values()) == 1
    assert [row for row in catalogue_rows() if len(tools(row)) != 1] == []


def test_no_answer_stands_in_its_request_but_where_a_new_contact_is_saved() -> None:
    told = [
        row["text"] for row in rows() if row["answer"] and fold(row["answer"]) in fold(row["text"])
    ]
    assert len(told) == 1
    assert "Claasen" in told[0]


# The answers


def test_a_page_is_long_exactly_when_it_is_the_handbook() -> None:
    assert [row for row in rows() if (LONG in row["text"]) != (row.get("page") == "long")] == []


def test_the_long_rows_are_the_handbooks_own_questions_with_their_answers() -> None:
    kinds = Counter[str]()
    answers = set()
    for row in rows("web-reader", "long"):
        found = asked(row)
        assert len(found) == 1, row["text"]
        (kind, answer) = found[0]
        assert row["answer"] == answer, row["text"]
        assert (row["lang"] == "de") == (kind == "german"), row["text"]
        assert ("find_on_page" in tools(row)) == (kind == "question"), row["text"]
        kinds[kind] += 1
        answers.add(answer)
    assert kinds == {"question": 12, "paraphrase": 6, "german": 6}
    assert len(answers) == 24, "each asks for another fact"


def test_the_long_rows_ask_for_facts_from_the_whole_page() -> None:
    wanted = {row["answer"] for row in rows("web-reader", "long")}
    depths = [fact.depth for fact in handbook.make(handbook.SEED).facts if fact.answer in wanted]
    assert min(depths) < 0.1
    assert max(depths) > 0.9


@functools.cache
def shown(url: str) -> tuple[str, str]:
    """What the web-reader sees of a page of the practice web: its text, and where it leads."""
    web = load("registry/tools/web_reader.py")
    page = site().get(url)
    assert page is not None, url
    assert page.status == 200, url
    charset = page.kind.partition("charset=")[2]
    seen = web.Seen(web.Page(url, "text/html", page.body.decode(charset), cut=False))
    return seen.text(), " ".join(link for link, _ in seen.links if link.startswith("http"))


def test_every_web_answer_stands_on_the_page_that_the_request_names() -> None:
    for row in [*rows("web-reader"), *rows("web-reader", "long")]:
        addresses = ADDRESS.findall(row["text"])
        assert len(addresses) == 1, row["text"]
        text, links = shown(f"http://{addresses[0]}")
        place = links if row["tool"] == "list_links" else text
        assert fold(row["answer"]) in fold(place), row["text"]


@pytest.fixture
def crm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The CRM's tools, on a database that holds what the file says it holds."""
    monkeypatch.setenv("TINY_CRM", str(tmp_path / "crm.sqlite"))
    tools = load("registry/tools/crm_writer.py")
    for call in held()["contacts"]:
        ((name, arguments),) = call.items()
        getattr(tools, name)(**arguments)
    return tools


def test_the_database_is_filled_by_calls_that_each_add_one_thing(crm: ModuleType) -> None:
    contacts = [call["save_contact"] for call in held()["contacts"] if "save_contact" in call]
    notes = [call["add_note"] for call in held()["contacts"] if "add_note" in call]
    for number, contact in enumerate(contacts, 1):
        assert f"contact {number}: {contact['name']}, " in crm.find_contact(contact["name"])
        written = [note["text"] for note in notes if note["contact_id"] == number]
        assert crm.list_notes(number).startswith(f"{len(written)} note")


def test_every_crm_answer_is_in_the_database_or_is_what_the_request_saves(crm: ModuleType) -> None:
    count = sum("save_contact" in call for call in held()["contacts"])
    everything = crm.find_contact("example") + "".join(map(crm.list_notes, range(1, count + 1)))
    for row in rows("crm-writer"):
        new = {"save_contact"} <= set(tools(row)) and row["answer"] in row["text"]
        assert new or fold(row["answer"]) in fold(everything), row["text"]


def test_every_crm_answer_is_with_the_one_contact_that_the_request_names(crm: ModuleType) -> None:
    contacts = [call["save_contact"] for call in held()["contacts"] if "save_contact" in call]
    for row in rows("crm-writer"):
        named = [
            number
            for number, contact in enumerate(contacts, 1)
            if contact["name"] in row["text"]
            or contact["company"] in row["text"]
            or re.search(rf"[ck]ontact {number}\b|Kontakt {number}\b", row["text"])
        ]
        if row["answer"] in row["text"]:
            assert named == [], row["text"]
            continue
        assert len(named) == 1, row["text"]
        known = crm.find_contact(contacts[named[0] - 1]["name"]) + crm.list_notes(named[0])
        assert fold(row["answer"]) in fold(known), row["text"]


DOCUMENTS = {  # a part of the request: the document that it is about
    "IT security policy": "it-security-policy.md",
    "code of conduct": "code-of-conduct.md",
    "data protection guideline": "data-protection-guideline.md",
    "titles of all internal documents": "code-of-conduct.md",
    "Reisekostenrichtlinie": "reisekostenrichtlinie.md",
    "Einkaufsrichtlinie": "einkaufsrichtlinie.md",
    "Betriebsvereinbarung Homeoffice": "betriebsvereinbarung-homeoffice.md",
    "Leitfaden für Besuche": "leitfaden-besucher.txt",
    "Mitarbeiterhandbuch": "mitarbeiterhandbuch.md",
    "IT-Sicherheitsrichtlinie": "it-security-policy.md",
    "Leitfaden zum Onboarding": "onboarding-guide.md",
}


def test_every_answer_of_the_docs_finder_stands_in_the_document_that_the_request_names() -> None:
    for row in rows("docs-finder"):
        (name,) = (name for part, name in DOCUMENTS.items() if part in row["text"])
        text = (REGISTRY / "documents" / name).read_text(encoding="utf-8")
        assert fold(row["answer"]) in fold(text), row["text"]


def test_reading_and_writing_are_both_asked_of_the_crm() -> None:
    asked_for = {name for row in rows("crm-writer") for name in tools(row)}
    assert asked_for == set(tools_by_card()["crm-writer"])
