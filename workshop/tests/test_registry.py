"""The registry as a whole: what the router's numbers silently rely on.

The validator judges one card. These tests look across all cards and all rows: that the two hundred
tools are two hundred different tools, and that no row of the eval set is known to a card.
"""

from __future__ import annotations

import difflib
import functools
import itertools
import json
import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

REGISTRY = Path(__file__).resolve().parents[2] / "registry"
CATALOGUE = REGISTRY / "catalogue"
CALIBRATION = REGISTRY / "eval" / "calibration.jsonl"
ABC = REGISTRY.parent / "scripts" / "08_abc.yaml"  # its form and its answers: test_abc_rows.py

CARD_KEYS = {"name", "description", "examples", "prompt", "tools", "budget"}
ROW_KEYS = {"text", "card", "kind", "lang"}
CATALOGUE_CARDS, TOOLS_EACH, REAL_CARDS = 40, 5, 4
FEWEST_ROWS, FEWEST_OUT, FEWEST_NEAR = 600, 100, 100
HALF_GERMAN = 0.02  # how far the German share may be from one half
NEAR_COPY = 0.9  # difflib's ratio above which two texts count as one
ALIKE = 0.1  # shared share of property names, which 95 % of the pairs of tools stay below
TWINS = 0.5  # and which no pair reaches
LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)

Row = dict[str, Any]
Card = dict[str, Any]


# Reading


@functools.cache
def card_files() -> tuple[Path, ...]:
    return tuple(sorted(REGISTRY.rglob("*.card.yaml")))


@functools.cache
def cards() -> dict[str, Card]:
    """Every card by the name of its file."""
    return {
        path.name.removesuffix(".card.yaml"): yaml.load(path.read_bytes(), Loader=LOADER)
        for path in card_files()
    }


def examples() -> Iterator[tuple[str, str]]:
    for name, card in cards().items():
        for text in card["examples"]:
            yield f"{name}, example", text


@functools.cache
def definitions() -> dict[str, dict[str, Any]]:
    """The catalogue's tools as `card/tool`, so that a name used twice is seen."""
    return {
        f"{path.name.removesuffix('.card.yaml')}/{number}/{tool['name']}": tool
        for path in sorted(CATALOGUE.glob("*.card.yaml"))
        for number, tool in enumerate(cards()[path.name.removesuffix(".card.yaml")]["tools"])
    }


def eval_files() -> list[Path]:
    return sorted((REGISTRY / "eval").glob("*.jsonl"))


@functools.cache
def rows_of(path: Path) -> tuple[Row, ...]:
    return tuple(json.loads(line) for line in path.read_text("utf-8").splitlines())


@functools.cache
def abc_rows() -> tuple[Row, ...]:
    return tuple(yaml.load(ABC.read_bytes(), Loader=LOADER)["rows"])


def held_out_rows() -> tuple[Row, ...]:
    return tuple(row for path in eval_files() if path != CALIBRATION for row in rows_of(path))


# Comparing


def plain(text: str) -> str:
    """The text without case, punctuation and spacing."""
    return " ".join(re.sub(r"[\W_]+", " ", text.casefold()).split())


def near_copies(left: Iterable[tuple[str, str]], right: Iterable[tuple[str, str]]) -> list[str]:
    """Pairs from left and right that are one text, or nearly one."""
    found = []
    lefts = [(label, text, plain(text)) for label, text in left]
    matcher = difflib.SequenceMatcher(autojunk=False)
    for label_b, text_b in right:
        b = plain(text_b)
        matcher.set_seq2(b)
        for label_a, text_a, a in lefts:
            if 2 * min(len(a), len(b)) <= NEAR_COPY * (len(a) + len(b)):
                continue  # the lengths alone keep the ratio below
            matcher.set_seq1(a)
            if matcher.quick_ratio() > NEAR_COPY and matcher.ratio() > NEAR_COPY:
                found.append(f"{label_a}: {text_a!r} ~ {label_b}: {text_b!r}")
    return found


def labelled(label: str, rows: Iterable[Row]) -> list[tuple[str, str]]:
    return [(f"{label} row {number}", row["text"]) for number, row in enumerate(rows, 1)]


# A JSON schema, checked as far as tools use it

TYPES: dict[str, tuple[type, ...]] = {
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "array": (list,),
    "object": (dict,),
    "null": (type(None),),
}
ANYWHERE = {"type", "description", "title", "enum", "const", "default", "examples"}
NUMERIC = {"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"}
COUNTS = {"minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties"}
KEYWORDS = {
    "string": {
        "minLength",
        "maxLength",
        "pattern",
        "format",
        "contentEncoding",
        "contentMediaType",
    },
    "integer": NUMERIC,
    "number": NUMERIC,
    "boolean": set(),
    "array": {"items", "minItems", "maxItems", "uniqueItems"},
    "object": {"properties", "required", "additionalProperties", "minProperties", "maxProperties"},
    "null": set(),
}


def is_a(value: Any, kinds: list[str]) -> bool:
    """Whether a value is of one of the JSON types. True and false are no numbers."""
    if isinstance(value, bool):
        return "boolean" in kinds
    return any(isinstance(value, TYPES[kind]) for kind in kinds if kind != "boolean")


def schema_faults(schema: Any, where: str = "$") -> list[str]:
    """What is wrong with a schema; an empty list when nothing is."""
    if not isinstance(schema, dict):
        return [f"{where}: a schema is a mapping, not {schema!r}"]
    choice = next((key for key in ("oneOf", "anyOf") if key in schema), None)
    if choice and "type" not in schema:
        parts = schema[choice]
        if not isinstance(parts, list) or len(parts) < 2:
            return [f"{where}: {choice} is not a list of two or more"]
        faults = [
            f"{where}: {key!r} beside {choice}"
            for key in schema
            if key not in {choice, "description", "title", "default"}
        ]
        for number, part in enumerate(parts):
            faults += schema_faults(part, f"{where}.{choice}[{number}]")
        return faults
    kind = schema.get("type")
    kinds = [str(k) for k in (kind if isinstance(kind, list) else [kind])]
    if not kinds or not TYPES.keys() >= set(kinds):
        return [f"{where}: type {kind!r} is none of {', '.join(TYPES)}"]
    faults = []
    known = ANYWHERE.union(*(KEYWORDS[k] for k in kinds))
    faults += [f"{where}: {key!r} says nothing about {kind}" for key in schema if key not in known]
    for key in schema.keys() & NUMERIC:
        if not is_a(schema[key], ["number"]):
            faults.append(f"{where}: {key} is not a number")
    for key in schema.keys() & COUNTS:
        if not is_a(schema[key], ["integer"]) or schema[key] < 0:
            faults.append(f"{where}: {key} is not a count")
    if faults:
        return faults
    for low, high in [
        ("minimum", "maximum"),
        *((f"min{w}", f"max{w}") for w in ("Length", "Items", "Properties")),
    ]:
        if low in schema and high in schema and schema[low] > schema[high]:
            faults.append(f"{where}: {low} is above {high}")
    if "enum" in schema:
        choices = schema["enum"]
        if not isinstance(choices, list) or not choices:
            return [*faults, f"{where}: enum is not a list with something in it"]
        if len({json.dumps(choice) for choice in choices}) < len(choices):
            faults.append(f"{where}: enum says something twice")
        faults += [f"{where}: {c!r} in enum is not {kind}" for c in choices if not is_a(c, kinds)]
        if "default" in schema and schema["default"] not in choices:
            faults.append(f"{where}: the default is not in enum")
    if "default" in schema and not is_a(schema["default"], kinds):
        faults.append(f"{where}: the default is not {kind}")
    if "pattern" in schema:
        try:
            re.compile(schema["pattern"])
        except (re.error, TypeError) as error:
            faults.append(f"{where}: pattern: {error}")
    if "array" in kinds:
        faults += schema_faults(schema.get("items"), f"{where}[]")
    if "object" in kinds:
        faults += object_faults(schema, where)
    return faults


def object_faults(schema: dict[str, Any], where: str) -> list[str]:
    faults = []
    extra = schema.get("additionalProperties", False)
    if not isinstance(extra, bool):
        faults += schema_faults(extra, f"{where}.*")
    properties = schema.get("properties", {} if extra else None)
    if not isinstance(properties, dict):
        return [*faults, f"{where}: properties is not a mapping"]
    for name, part in properties.items():
        if not isinstance(name, str):
            faults.append(f"{where}: the property {name!r} is not text; quote it")
        faults += schema_faults(part, f"{where}.{name}")
    required = schema.get("required", [])
    if not isinstance(required, list):
        return [*faults, f"{where}: required is not a list"]
    faults += [
        f"{where}: required {name!r} is no property" for name in required if name not in properties
    ]
    if len(required) > len({str(name) for name in required}):
        faults.append(f"{where}: required names something twice")
    return faults


def shape(schema: Any, inside_properties: bool = False) -> Any:
    """A schema without the words that describe it: what is left when only the prose differs."""
    if isinstance(schema, dict):
        return {
            key: shape(value, key == "properties" and not inside_properties)
            for key, value in schema.items()
            if inside_properties or key not in ("description", "title", "examples")
        }
    return [shape(part) for part in schema] if isinstance(schema, list) else schema


def property_names(schema: dict[str, Any]) -> set[str]:
    """Names of the properties at every depth."""
    names: set[str] = set(schema.get("properties", {}))
    parts = [*schema.get("properties", {}).values(), schema.get("items")]
    for part in [*parts, *schema.get("oneOf", []), *schema.get("anyOf", [])]:
        if isinstance(part, dict):
            names |= property_names(part)
    return names


def jaccard(left: set[str], right: set[str]) -> float:
    return len(left & right) / len(left | right) if left | right else 1.0


# The cards


def test_there_are_forty_catalogue_cards_and_four_real_ones() -> None:
    in_catalogue = [path for path in card_files() if path.parent == CATALOGUE]
    assert len(in_catalogue) == CATALOGUE_CARDS
    assert len(card_files()) - len(in_catalogue) == REAL_CARDS
    assert len(cards()) == len(card_files()), "two files of one name"


def test_every_card_has_the_six_keys_and_the_name_of_its_file() -> None:
    wrong = {
        name: sorted(CARD_KEYS ^ set(card)) or card["name"]
        for name, card in cards().items()
        if set(card) != CARD_KEYS or card["name"] != name
    }
    assert wrong == {}


def test_no_yaml_file_uses_anchors_tags_or_a_key_twice() -> None:
    wrong = []
    for path in [*card_files(), ABC]:
        text = path.read_text("utf-8")
        for event in yaml.parse(text, Loader=LOADER):
            if getattr(event, "anchor", None) or getattr(event, "tag", None):
                wrong.append(f"{path.name}:{event.start_mark.line + 1}: anchor, alias or tag")
        waiting = [yaml.compose(text, Loader=LOADER)]
        while waiting:
            node = waiting.pop()
            if isinstance(node, yaml.MappingNode):
                twice = Counter(key.value for key, _ in node.value)
                wrong += [f"{path.name}: {key} twice" for key, n in twice.items() if n > 1]
                waiting += [value for _, value in node.value]
            elif isinstance(node, yaml.SequenceNode):
                waiting += node.value
    assert wrong == []


def test_every_card_has_six_to_ten_examples_all_of_them_text() -> None:
    wrong = {
        name: card["examples"]
        for name, card in cards().items()
        if not 6 <= len(card["examples"]) <= 10
        or not all(isinstance(text, str) and text for text in card["examples"])
    }
    assert wrong == {}


def test_R3_no_example_stands_in_the_registry_twice() -> None:
    seen = Counter(plain(text) for _, text in examples())
    assert [text for text, count in seen.items() if count > 1] == []


def test_the_catalogue_holds_five_tools_a_card_and_two_hundred_names() -> None:
    count = Counter(label.split("/")[0] for label in definitions())
    assert {name: n for name, n in count.items() if n != TOOLS_EACH} == {}
    names = Counter(tool["name"] for tool in definitions().values())
    assert [name for name, n in names.items() if n > 1] == []
    assert len(names) == CATALOGUE_CARDS * TOOLS_EACH


def test_L5_every_tool_name_is_one_that_endpoints_take() -> None:
    names = [
        tool["name"] if isinstance(tool, dict) else tool
        for card in cards().values()
        for tool in card["tools"]
    ]
    assert [name for name in names if not re.fullmatch(r"[A-Za-z0-9_-]{1,64}", name)] == []


def test_no_real_tool_has_the_name_of_a_catalogue_tool() -> None:
    listed = {tool["name"] for tool in definitions().values()}
    real = {tool for card in cards().values() for tool in card["tools"] if isinstance(tool, str)}
    assert real, "the real cards name their tools"
    assert real & listed == set()


# The tools


def test_every_definition_has_a_name_a_description_and_a_valid_object_schema() -> None:
    wrong = []
    for label, tool in definitions().items():
        if set(tool) != {"name", "description", "parameters"}:
            wrong.append(f"{label}: keys {sorted(tool)}")
            continue
        if not isinstance(tool["description"], str) or not tool["description"]:
            wrong.append(f"{label}: no description")
        if tool["parameters"].get("type") != "object":
            wrong.append(f"{label}: the parameters are not an object")
        wrong += [f"{label}: {fault}" for fault in schema_faults(tool["parameters"])]
    assert wrong == []


def test_no_two_tools_have_the_same_parameters_or_description() -> None:
    shapes: dict[str, str] = {}
    wrong = []
    for label, tool in definitions().items():
        for part in (
            json.dumps(shape(tool["parameters"]), sort_keys=True, default=str),
            plain(tool["description"]),
        ):
            other = shapes.setdefault(part, label)
            if other != label:
                wrong.append(f"{label} is {other}: {part[:80]}")
    assert wrong == []


def test_the_tools_are_not_variations_of_one() -> None:
    names = {label: property_names(tool["parameters"]) for label, tool in definitions().items()}
    pairs = [
        (jaccard(names[a], names[b]), a, b) for a, b in itertools.combinations(sorted(names), 2)
    ]
    alike = sorted((pair for pair in pairs if pair[0] >= ALIKE), reverse=True)
    assert pairs
    assert len(alike) <= 0.05 * len(pairs), alike[:20]
    assert [pair for pair in alike if pair[0] >= TWINS] == []


# The rows


def test_every_row_has_the_four_fields_and_a_card_exactly_when_it_is_in_scope() -> None:
    wrong = []
    for path in eval_files():
        for number, row in enumerate(rows_of(path), 1):
            if (
                set(row) != ROW_KEYS
                or row["kind"] not in ("in", "out", "near")
                or row["lang"] not in ("en", "de")
                or not isinstance(row["text"], str)
            ):
                wrong.append(f"{path.name}:{number}: fields or values of {row}")
            elif (row["kind"] == "in") != isinstance(row["card"], str):
                wrong.append(f"{path.name}:{number}: kind {row['kind']}, card {row['card']}")
            elif row["kind"] == "in" and row["card"] not in cards():
                wrong.append(f"{path.name}:{number}: there is no card {row['card']}")
    assert wrong == []


def test_R13_the_eval_set_has_six_hundred_rows_with_a_hundred_out_and_a_hundred_near() -> None:
    kinds = Counter(row["kind"] for row in held_out_rows())
    assert kinds.total() >= FEWEST_ROWS
    assert kinds["out"] >= FEWEST_OUT
    assert kinds["near"] >= FEWEST_NEAR


def test_the_calibration_rows_have_all_three_kinds_in_number() -> None:
    kinds = Counter(row["kind"] for row in rows_of(CALIBRATION))
    assert min(kinds[kind] for kind in ("in", "out", "near")) >= 100


@pytest.mark.parametrize("calibration", [False, True], ids=["test", "calibration"])
def test_R9_half_of_the_rows_of_each_kind_are_german(calibration: bool) -> None:
    rows = rows_of(CALIBRATION) if calibration else held_out_rows()
    for kind in ("in", "out", "near", None):
        german = [row["lang"] == "de" for row in rows if kind in (row["kind"], None)]
        assert abs(sum(german) / len(german) - 0.5) <= HALF_GERMAN, kind or "all"


@pytest.mark.parametrize("calibration", [False, True], ids=["test", "calibration"])
def test_every_card_is_asked_for_in_both_languages(calibration: bool) -> None:
    rows = rows_of(CALIBRATION) if calibration else held_out_rows()
    asked = {(row["card"], row["lang"]) for row in rows}
    wanted = set(itertools.product(cards(), ("en", "de")))
    assert sorted(wanted - asked) == []


def test_no_row_stands_in_the_eval_set_twice() -> None:
    rows = [row for path in eval_files() for row in rows_of(path)]
    seen = Counter(plain(row["text"]) for row in [*rows, *abc_rows()])
    assert [text for text, count in seen.items() if count > 1] == []


def test_no_test_row_is_an_example_or_nearly_one() -> None:
    assert near_copies(labelled("test", held_out_rows()), examples()) == []


def test_no_calibration_row_is_an_example_or_nearly_one() -> None:
    assert near_copies(labelled("calibration", rows_of(CALIBRATION)), examples()) == []


def test_no_test_row_is_a_calibration_row_or_nearly_one() -> None:
    found = near_copies(
        labelled("test", held_out_rows()), labelled("calibration", rows_of(CALIBRATION))
    )
    assert found == []


def test_no_request_of_a_against_b_against_c_is_known_to_a_card_or_the_router() -> None:
    known = [*examples()]
    for path in eval_files():
        known += labelled(path.name, rows_of(path))
    assert near_copies(labelled("abc", abc_rows()), known) == []


# Every text


def test_every_file_is_nfc_with_plain_newlines_and_nothing_invisible() -> None:
    wrong = []
    for path in [*card_files(), *eval_files(), ABC]:
        text = path.read_bytes().decode("utf-8")
        if not unicodedata.is_normalized("NFC", text):
            wrong.append(f"{path.name}: not NFC")
        if not text.endswith("\n") or text.endswith("\n\n"):
            wrong.append(f"{path.name}: does not end with one newline")
        for number, line in enumerate(text.split("\n"), 1):
            if line != line.rstrip():
                wrong.append(f"{path.name}:{number}: blank at the end")
            odd = {
                unicodedata.name(c, repr(c))
                for c in line
                if unicodedata.category(c) in ("Cc", "Cf", "Zl", "Zp", "Co", "Cn")
                or (c != " " and unicodedata.category(c) == "Zs")
            }
            if odd:
                wrong.append(f"{path.name}:{number}: {', '.join(sorted(odd))}")
    assert wrong == []


def test_no_request_or_description_has_stray_whitespace() -> None:
    texts = [*examples()]
    texts += [(f"{name}, description", card["description"]) for name, card in cards().items()]
    texts += [(label, tool["description"]) for label, tool in definitions().items()]
    for path in eval_files():
        texts += labelled(path.name, rows_of(path))
    texts += labelled(ABC.name, abc_rows())
    # A folded scalar (`>`) ends with a newline of YAML's own, which is not stray in a description.
    wrong = [
        f"{label}: {text!r}"
        for label, text in texts
        if text.removesuffix("\n") != " ".join(text.split()) or not text.strip()
    ]
    assert wrong == []


def test_every_prompt_is_text_with_one_to_six_sentences() -> None:
    wrong = {
        name: card["prompt"]
        for name, card in cards().items()
        if not 1 <= len(re.findall(r"[.!?](?=\s|$)", card["prompt"])) <= 6
    }
    assert wrong == {}


# The checks themselves


@pytest.mark.parametrize(
    "schema",
    [
        None,
        {},
        {"type": "text"},
        {"type": []},
        {"type": "string", "minimum": 1},
        {"type": "string", "enum": []},
        {"type": "string", "enum": ["a", "a"]},
        {"type": "string", "enum": ["yes", False]},
        {"type": "string", "enum": ["a"], "default": "b"},
        {"type": "string", "pattern": "("},
        {"type": "string", "maxLength": -1},
        {"type": "integer", "default": True},
        {"type": "integer", "minimum": 5, "maximum": 2},
        {"type": "number", "minimum": "0"},
        {"type": "array"},
        {"type": "array", "items": {"type": "strin"}},
        {"oneOf": []},
        {"oneOf": [{"type": "string"}, {"type": "text"}]},
        {"oneOf": [{"type": "string"}, {"type": "integer"}], "minimum": 1},
        {"type": "object"},
        {"type": "object", "properties": {"a": "string"}},
        {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["b"]},
        {"type": "object", "properties": {"a": {"type": "string"}}, "required": "a"},
        {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a", "a"]},
        {"type": "object", "properties": {True: {"type": "string"}}},
        {"type": "object", "properties": {}, "additionalProperties": {"type": "x"}},
    ],
    ids=str,
)
def test_the_schema_check_finds_a_fault(schema: Any) -> None:
    assert schema_faults(schema) != []


def test_the_schema_check_takes_a_schema_with_everything_in_it() -> None:
    place = {"type": "object", "properties": {"lat": {"type": "number", "minimum": -90}}}
    schema = {
        "type": "object",
        "properties": {
            "day": {"type": "string", "format": "date", "description": "The day."},
            "unit": {"type": "string", "enum": ["km", "mi"], "default": "km"},
            "note": {"type": ["string", "null"], "default": None},
            "where": {"oneOf": [{"type": "string"}, place], "description": "A name or a place."},
            "places": {"type": "array", "items": place, "minItems": 1, "maxItems": 9},
            "labels": {"type": "object", "additionalProperties": {"type": "string"}},
        },
        "required": ["day"],
        "additionalProperties": False,
    }
    assert schema_faults(schema) == []
    assert property_names(schema) == {"day", "unit", "note", "where", "places", "labels", "lat"}


def test_two_schemas_that_differ_in_prose_alone_have_one_shape() -> None:
    one = {"type": "object", "properties": {"title": {"type": "string", "description": "A."}}}
    two = {"type": "object", "properties": {"title": {"type": "string", "description": "B."}}}
    three = {"type": "object", "properties": {"name": {"type": "string", "description": "A."}}}
    assert shape(one) == shape(two) != shape(three)


def test_a_near_copy_is_found_through_case_punctuation_and_one_changed_word() -> None:
    right = [("b", "Book a flight to Lisbon for the 9th of May, please!")]
    assert near_copies([("a", "book a flight to lisbon for the 9th of may please")], right)
    assert near_copies([("a", "Book a flight to Lisboa for the 9th of May, please!")], right)
    assert not near_copies([("a", "Cancel the flight to Lisbon on the 9th of May")], right)
