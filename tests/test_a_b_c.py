"""Stage 36: the same requests through each arm, counted, with the endpoint's own faults beside."""

import importlib.util
import json
import math
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any
from xml.etree import ElementTree

import pytest

from helpers import TREE, Loopback, Reply, Request, command, embeddings
from scripted import Raw, calls, fails, replies, says

SCRIPT = "scripts/08_abc.py"
WORDS = {"dog-walker": "dog", "cat-feeder": "cat", "word-counter": "word"}
CARD = """\
name: {name}
description: Takes what has to do with a {word}, for a test.
examples: [about my {word}, the {word} of a friend, a {word} and no other]
prompt: You know all about a {word}.
tools:
  - {{name: find_{word}, description: Find it., parameters: {{type: object}}}}
  - {{name: feed_{word}, description: Feed it., parameters: {{type: object}}}}
  - {{name: wash_{word}, description: Wash it., parameters: {{type: object}}}}
budget: {{turns: 6, tool_calls: 6, tokens: 9000, seconds: 60}}
"""
CRM = '''\
"""A customer database that is a file with a line for each contact, and a long list."""

import os


def save_contact(name: str) -> str:
    """Save a contact."""
    with open(os.environ["TINY_CRM"], "a", encoding="utf-8") as file:
        file.write(name + "\\n")
    return "saved"


def read_contacts() -> str:
    """Read all contacts."""
    with open(os.environ["TINY_CRM"], encoding="utf-8") as file:
        return " ".join(file.read().split())


def read_list() -> str:
    """Read the long list."""
    return "\\n".join(f"Line {i} of the list is about number {i * 7}." for i in range(400))
'''
DESK = """\
name: crm-writer
description: Takes what has to do with a desk, for a test.
examples: [about my desk, the desk of a friend, a desk and no other]
prompt: You know all about a desk.
tools: [save_contact, read_contacts, read_list]
budget: {turns: 6, tool_calls: 6, tokens: 9000, seconds: 60}
"""
Model = Callable[[dict[str, Any]], Raw]  # the body of a request in, a reply out


def row(word: str, text: str, tool: Any, answer: str | None = None, **more: Any) -> dict[str, Any]:
    card = {one: name for name, one in WORDS.items()}.get(word, "crm-writer")
    return {"text": text, "lang": "en", "card": card, "tool": tool, "answer": answer, **more}


def asked(body: dict[str, Any]) -> str:
    """The request of a conversation."""
    return str(body["messages"][1]["content"])


def acts(first: Sequence[Any], last: Raw) -> Model:
    """A model that makes these calls, and then says this."""

    def model(body: dict[str, Any]) -> Raw:
        return last if any(m["role"] == "tool" for m in body["messages"]) else calls(*first)

    return model


def vector(text: str) -> list[float]:
    found = [float(word in text) for word in (*WORDS.values(), "desk")]
    return [*found, 0.01 * (len(text) % 7), 0.1]


@cache
def the_script() -> ModuleType:
    """The script, loaded once: importing what it needs takes longer than a test."""
    if not (TREE / SCRIPT).is_file():
        pytest.fail(f"Contract: there is no {SCRIPT} yet")
    spec = importlib.util.spec_from_file_location("a_b_c_of_a_stage", TREE / SCRIPT)
    assert spec, f"Contract: {SCRIPT} is no Python file"
    assert spec.loader, f"Contract: {SCRIPT} is no Python file"
    module, path = importlib.util.module_from_spec(spec), list(sys.path)
    sys.modules[spec.name] = module
    try:
        spec.loader.exec_module(module)
    finally:
        sys.path[:] = path
    for name in ("main", "interval"):
        if not hasattr(module, name):
            pytest.fail(f"Contract: {SCRIPT} has no {name} yet")
    return module


@dataclass
class Came:
    """What a run of the script did."""

    code: int | None
    out: str
    err: str
    chats: list[dict[str, Any]]  # what the model was sent

    @property
    def arms(self) -> Any:
        return self.whole["arms"]

    @property
    def whole(self) -> Any:
        """The object of --json."""
        assert self.code == 0, f"expected exit code 0, got {self.code}: {self.err}"
        try:
            return json.loads(self.out)
        except ValueError:
            pytest.fail(f"Contract: --json prints one object, came {self.out!r}: {self.err}")


class Lab:
    """The script on a small registry and on rows of ours, with a model that is a function."""

    def __init__(self, folder: Path, patch: pytest.MonkeyPatch, capture: Any) -> None:
        self.folder, self.patch, self.capture = folder, patch, capture
        self.model: Model = lambda body: says("It is so.")
        self.name = "m"
        self.cards = folder / "registry"
        (self.cards / "tools").mkdir(parents=True)
        (self.cards / "tools" / "crm_writer.py").write_text(CRM, encoding="utf-8")
        for name, word in WORDS.items():
            text = CARD.format(name=name, word=word)
            (self.cards / f"{name}.card.yaml").write_text(text, encoding="utf-8")
        self.server = Loopback(self.reply)

    def add_desk(self) -> None:
        """The card whose tools are written. Without it no run starts a process for them."""
        (self.cards / "crm-writer.card.yaml").write_text(DESK, encoding="utf-8")

    def reply(self, request: Request) -> Reply:
        if request.path.endswith("embeddings"):
            return embeddings(vector)(request)
        raw = self.model(request.json)
        return raw.status, raw.body

    @property
    def chats(self) -> list[dict[str, Any]]:
        return [r.json for r in self.server.requests if r.path.endswith("chat/completions")]

    def words(self, rows: Any, *argv: str, **more: Any) -> list[str]:
        path = self.folder / "rows.yaml"
        contacts = [{"save_contact": {"name": "Ada"}}]
        held = {"contacts": contacts, "rows": rows, **more} if isinstance(rows, list) else rows
        path.write_text(json.dumps(held), encoding="utf-8")  # JSON is YAML
        return ["--registry", str(self.cards), "--rows", str(path), *argv]

    def run(self, rows: Any, *argv: str, **more: Any) -> Came:
        before = len(self.chats)
        self.patch.setenv("TINY_CHAT_MODEL", self.name)
        self.patch.setenv("TINY_CRM", "elsewhere")  # put back after the test, whatever is done
        self.capture.readouterr()
        try:
            code = the_script().main(self.words(rows, *argv, **more))
        except SystemExit as ended:
            code = ended.code if isinstance(ended.code, int) else 1
        except TypeError as error:
            pytest.fail(f"Contract: main(argv) -> int: {error}")
        out, err = self.capture.readouterr()
        return Came(code, out, err, self.chats[before:])


@pytest.fixture
def lab(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Iterator[Lab]:
    for name in list(os.environ):
        if name.startswith("TINY_"):
            monkeypatch.delenv(name)
    one = Lab(tmp_path, monkeypatch, capsys)
    with one.server:
        for name, value in {**one.server.env, "TINY_HOME": str(tmp_path / "home")}.items():
            monkeypatch.setenv(name, value)
        yield one


def names(body: dict[str, Any]) -> list[str]:
    return [tool["function"]["name"] for tool in body.get("tools", [])]


DOG = row("dog", "about my dog", "find_dog", "yes")
CAT = row("cat", "about my cat", ["find_cat", "feed_cat"], "14")
WORD = row("word", "about my word", "find_word")


# Task 1: the arms


def test_each_arm_is_sent_its_tools(lab: Lab) -> None:
    """Task 1: A has so many, the row's card's among them; B and C have the card's alone."""
    came = lab.run([DOG], "--arms", "A5", "B", "C", "A9")
    assert came.code == 0, f"expected exit code 0, got {came.code}: {came.err}"
    sent = [names(body) for body in came.chats]
    own = {"find_dog", "feed_dog", "wash_dog"}
    sizes = [len(set(some)) for some in sent]
    assert sizes == [5, 3, 3, 9], f"expected 5, 3, 3 and 9 tools, came {sent}"
    assert all(own <= set(some) for some in sent), f"expected {own} in each, came {sent}"
    prompts = [body["messages"][0]["content"] for body in came.chats]
    card = "You know all about a dog."
    assert prompts[1:3] == [card, card], f"expected the card's prompt in B and C, came {prompts}"
    assert card not in (prompts[0], prompts[3]), f"expected a general one in A, came {prompts}"
    said = {body["messages"][1]["content"] for body in came.chats}
    assert said == {"about my dog"}, f"expected the row's text as it is, came {said}"


def test_a_seed_is_an_order_of_tools(lab: Lab) -> None:
    """Task 1: another seed shuffles A's tools, the same one gives the same order again."""
    orders = [
        [names(body) for body in lab.run([DOG], "--arms", "A9", "--seeds", "2").chats]
        for _ in range(2)
    ]
    assert len(orders[0]) == 2, f"expected a request for each seed, came {orders[0]}"
    one, other = orders[0]
    assert sorted(one) == sorted(other), f"expected all 9 tools twice, came {orders[0]}"
    assert one != other, f"expected two orders, came {one} twice"
    assert orders[0] == orders[1], f"expected the same orders again, came {orders}"


def test_C_alone_has_the_store(lab: Lab) -> None:
    """Task 1: B reads a long result whole; C reads a digest of it and can expand it."""
    lab.add_desk()
    lab.model = acts([("read_list", {})], says("Read."))
    came = lab.run([row("desk", "about my desk", "read_list", page="long")], "--json",
                   "--arms", "B", "C")  # fmt: skip
    texts = {
        "expand" in names(body): body["messages"][-1]["content"]
        for body in came.chats
        if body["messages"][-1]["role"] == "tool"
    }
    whole = "\n".join(f"Line {i} of the list is about number {i * 7}." for i in range(400))
    assert texts.get(False) == whole, f"expected the whole list in B, came {texts.get(False)!r}"
    assert "art_" in texts.get(True, ""), f"expected a digest with expand in C, came {texts}"
    b, c = came.arms["B"], came.arms["C"]
    assert b["results"] == b["results_long"] > 3000, f"expected all its tokens in B, came {b}"
    assert c["results"] < 1000, f"expected those of a digest in C, came {c['results']}"


def test_each_run_finds_the_same_database(lab: Lab) -> None:
    """Task 1: what a run saves is not there for the next one; the contacts of the file are."""
    lab.add_desk()
    lab.model = acts([("save_contact", {"name": "Bob"}), ("read_contacts", {})], says("Saved."))
    came = lab.run([row("desk", "about my desk", "save_contact")], "--arms", "A5", "B")
    read = [
        body["messages"][-1]["content"]
        for body in came.chats
        if body["messages"][-1]["role"] == "tool"
    ]
    assert read == ["Ada Bob"] * 2, f"expected Ada and Bob in each run, came {read}: {came.err}"


# Task 2: judging


def test_agent_tool_and_answer_are_counted_by_hand(lab: Lab) -> None:
    """Task 2: the right card, the first call, what the answer holds; null is not counted."""
    rows = [
        DOG,  # right in all
        CAT,  # the second of two right tools comes first; the answer is another
        WORD,  # the wrong tool first; no answer is expected
        row("cat", "the word of a friend", "find_cat", "x"),  # goes to the wrong card
        row("dog", "?", "find_dog", "yes"),  # goes to nobody
    ]
    first = {"about my dog": "find_dog", "about my cat": "feed_cat", "about my word": "wash_word"}

    def model(body: dict[str, Any]) -> Raw:
        call = (first.get(asked(body), "find_word"), {})
        return acts([call, ("find_word", {})], says("Oh  YES,\nit is."))(body)

    lab.model = model
    came = lab.run(rows, "--arms", "B", "A5", "--json")
    b, a = came.arms["B"], came.arms["A5"]
    got = {key: (b[key]["hits"], b[key]["of"]) for key in ("agent", "tool", "answer")}
    wanted = {"agent": (3, 5), "tool": (2, 5), "answer": (1, 4)}
    assert got == wanted, f"expected hits and rows {wanted}, came {got}"
    shares = {key: b[key]["share"] for key in wanted}
    assert shares == pytest.approx({"agent": 0.6, "tool": 0.4, "answer": 0.25}), f"came {shares}"
    assert a["agent"]["of"] == 0, f"expected no right agent in A, came {a['agent']}"
    nobody = [body for body in came.chats if asked(body) == "?" and len(names(body)) == 3]
    assert nobody == [], f"expected no run where nobody takes it, came {nobody}"
    assert b["input"] == pytest.approx(4 * 20 / 5), f"expected nobody's 0 tokens, came {b}"


@pytest.mark.parametrize(
    ("right", "pairs"),
    [
        (True, [("14", "It is 14."), ("0,30", "(0,30 Euro)"), ("air mail", "By AIR\n MAIL!")]),
        (False, [("14", "In 2014"), ("14", "It is 14.50"), ("150", "1,150"), ("9:30", "at 19:30")]),
    ],
)
def test_an_answer_is_no_part_of_a_number(
    lab: Lab, right: bool, pairs: list[tuple[str, str]]
) -> None:
    """Task 2: found whatever the case and the blanks, but not within a longer number."""
    told = {f"about my dog, {i}": said for i, (_, said) in enumerate(pairs)}
    rows = [row("dog", text, "find_dog", pairs[i][0]) for i, text in enumerate(told)]
    lab.model = lambda body: says(told[asked(body)])
    share = lab.run(rows, "--arms", "B", "--json").arms["B"]["answer"]
    wanted = len(pairs) * right, len(pairs)
    got = share["hits"], share["of"]
    assert got == wanted, f"given {pairs}: expected {wanted} found, came {got}"


# Task 3: what the endpoint does


def test_M1_what_the_endpoint_refuses_is_counted_out_and_shown(lab: Lab) -> None:
    """Task 3: a 400 for too many tools is `refused`: in no share and no mean, but in the table."""

    def model(body: dict[str, Any]) -> Raw:
        if len(names(body)) > 6 and asked(body) != "about my dog":
            return fails(400, "too many tools: 6 is the most")
        return says("yes")

    lab.model = model
    rows = [DOG, CAT, WORD]
    arms = lab.run(rows, "--arms", "A9", "A5", "--json").arms
    got = arms["A9"]["runs"], arms["A9"]["refused"], arms["A9"]["failed"]
    assert got == (3, 2, 0), f"expected 2 of 3 refused and none failed, came {got}"
    share, less = arms["A9"]["answer"], arms["A5"]["refused"]
    assert (share["hits"], share["of"]) == (1, 1), f"expected the one that ran, came {share}"
    assert arms["A9"]["input"] == 10, f"expected its tokens, came {arms['A9']['input']}"
    assert less == 0, f"expected none refused with 5 tools, came {less}"
    shown = lab.run(rows, "--arms", "A9", "A5").out
    lines = [line for line in shown.splitlines() if line.startswith("A9") and "refused" in line]
    assert lines, f"expected A9's refusals in words, came {shown}"


def test_M1_an_arm_that_is_refused_altogether_proves_nothing(lab: Lab) -> None:
    """Task 3: no claim compares with it, and the plot shows no share of it."""
    lab.model = lambda body: fails(400, "no") if len(names(body)) > 6 else says("yes")
    path = lab.folder / "plot.svg"
    came = lab.run([DOG], "--arms", "A9", "B", "--svg", str(path))
    assert came.code == 0, f"expected exit code 0, got {came.code}: {came.err}"
    assert "less than A9" not in came.out, f"expected no claim about A9, came {came.out}"
    circles = [one for one in ElementTree.parse(path).iter() if one.tag.endswith("circle")]
    assert len(circles) == 1, f"expected a dot for B alone, came {len(circles)}"


@pytest.mark.parametrize("status", [401, 404, 500])
def test_another_failure_of_the_first_request_ends_the_script(lab: Lab, status: int) -> None:
    """Task 3: a wrong key or model is nothing to measure: exit code 4, and why."""
    lab.model = lambda body: fails(status, "so it is")
    came = lab.run([DOG, CAT], "--arms", "A5", "B")
    assert came.code == 4, f"given {status}: expected exit code 4, got {came.code}: {came.out}"
    assert "so it is" in came.err, f"given {status}: expected why, came {came.err!r}"
    assert came.out == "", f"given {status}: expected no table, came {came.out!r}"


def test_a_failure_in_the_middle_of_a_run_is_counted(lab: Lab) -> None:
    """Task 3: a conversation that has become too long for the endpoint is `failed`, not refused."""
    lab.model = acts([("find_dog", {})], fails(400, "too long"))
    arm = lab.run([DOG], "--arms", "B", "--json").arms["B"]
    got = arm["refused"], arm["failed"], arm["tool"]["hits"], arm["answer"]["hits"]
    assert got == (0, 1, 1, 0), f"expected 1 failed with the right tool, came {got}"


def test_C35_what_the_endpoint_cuts_is_counted_and_said(lab: Lab) -> None:
    """Task 3: it reports 10 of some 2,000 tokens as read: `cut`, and a line says so."""
    long = row("dog", "about my dog " + "and so on " * 800, "find_dog", "yes")
    arms = lab.run([DOG, long], "--arms", "A5", "--json").arms
    assert arms["A5"]["cut"] == 1, f"expected 1 run cut, came {arms['A5']}"
    shown = lab.run([DOG, long], "--arms", "A5").out
    lines = [line for line in shown.splitlines() if line.startswith("A5") and "cut" in line]
    assert lines, f"expected it in words, came {shown}"


def test_C27_tokens_that_the_endpoint_does_not_count_are_said_to_be_estimates(lab: Lab) -> None:
    """Task 3: without `usage`, `estimated` counts the run, and its tokens are not 0."""
    lab.model = lambda body: replies({"content": "yes"}, None)
    arm = lab.run([DOG], "--arms", "B", "--json").arms["B"]
    assert arm["estimated"] == 1, f"expected 1 run with estimates, came {arm}"
    assert arm["input"] > 20, f"expected tokens all the same, came {arm['input']}"


# Task 4: intervals


def bounds(hits: int, of: int, z: float = 1.959964) -> tuple[float, float]:
    """The shares p from which hits of `of` is just z standard deviations away, by halving."""
    share = hits / of

    def far(p: float) -> bool:
        return abs(share - p) > z * math.sqrt(p * (1 - p) / of)

    ends = []
    for outside in (0.0, 1.0):
        inside = share
        for _ in range(60):
            middle = (outside + inside) / 2
            outside, inside = (middle, inside) if far(middle) else (outside, middle)
        ends.append(inside)
    return ends[0], ends[1]


@pytest.mark.parametrize(("hits", "of"), [(0, 5), (5, 10), (9, 10), (10, 10), (63, 78), (1, 1)])
def test_the_interval_is_where_the_share_is_1_96_deviations_away(hits: int, of: int) -> None:
    """Task 4: Wilson's formula agrees with solving its equation by halving."""
    got, wanted = the_script().interval(hits, of), bounds(hits, of)
    assert isinstance(got, tuple | list), f"Contract: interval gives two numbers, came {got!r}"
    assert got == pytest.approx(wanted, abs=1e-3), f"{hits} of {of}: expected {wanted}, came {got}"


def test_the_interval_of_nothing_is_everything() -> None:
    """Task 4: of no rows, 0 to 1."""
    got = the_script().interval(0, 0)
    assert tuple(got or ()) == (0, 1), f"expected 0 to 1, came {got}"


def test_a_row_that_is_run_again_is_no_other_row(lab: Lab) -> None:
    """Task 4: with 3 seeds, there are 3 times the runs, and the interval is that of the rows."""
    lab.model = lambda body: says("yes")
    arms = lab.run([DOG, CAT], "--arms", "B", "--seeds", "3", "--json").arms
    share = arms["B"]["answer"]
    assert (arms["B"]["runs"], share["hits"], share["of"]) == (6, 3, 6), f"came {arms['B']}"
    wanted = bounds(1, 2)
    got = share["between"]
    assert got == pytest.approx(wanted, abs=1e-3), f"expected that of 1 of 2: {wanted}, came {got}"


# Task 5: a file of runs


def test_what_has_run_is_not_run_again(lab: Lab) -> None:
    """Task 5: with --runs, the second call asks nothing and says the same; a new row is asked."""
    words = "--arms", "A5", "B", "--json", "--runs", str(lab.folder / "runs.jsonl")
    first = lab.run([DOG, CAT], *words)
    again = lab.run([DOG, CAT], *words)
    assert len(first.chats) == 4, f"expected 4 requests, came {len(first.chats)}"
    assert again.chats == [], f"expected nothing asked again, came {len(again.chats)} requests"
    assert again.whole == first.whole, f"expected {first.whole}, came {again.whole}"
    third = lab.run([DOG, {**CAT, "answer": "so"}, WORD], *words)
    texts = [asked(body) for body in third.chats]
    wanted = ["about my cat"] * 2 + ["about my word"] * 2
    assert sorted(texts) == wanted, f"expected the changed and the new row, came {texts}"


def test_runs_of_another_model_are_not_taken(lab: Lab) -> None:
    """Task 5: the same file with another model: all is asked anew, and both are kept."""
    words = "--arms", "B", "--json", "--runs", str(lab.folder / "runs.jsonl")
    lab.run([DOG], *words)
    lab.name = "another"
    came = [len(lab.run([DOG], *words).chats) for _ in range(2)]
    assert came == [1, 0], f"expected 1 request and then none, came {came}"
    lab.name = "m"
    assert lab.run([DOG], *words).chats == [], "expected the first model's runs to be there still"


def test_a_measurement_that_broke_off_goes_on(lab: Lab) -> None:
    """Task 5: each run is kept at once, and a line that a kill cut off is run again, once."""
    path = lab.folder / "runs.jsonl"
    words = "--arms", "B", "--json", "--runs", str(path)
    lab.model = lambda body: fails(500) if asked(body) == "about my word" else says("yes")
    broken = lab.run([DOG, CAT, WORD], *words)
    assert broken.code == 4, f"expected exit code 4, got {broken.code}"
    text = path.read_text(encoding="utf-8")
    path.write_text(text[: len(text.rstrip()) - 20], encoding="utf-8")  # of the cat's line
    lab.model = lambda body: says("yes")
    texts = [[asked(body) for body in lab.run([DOG, CAT, WORD], *words).chats] for _ in range(2)]
    wanted = [["about my cat", "about my word"], []]
    assert texts == wanted, f"expected {wanted}, came {texts}"


# Task 6: what is printed


def test_the_table_and_the_object_name_the_endpoint(lab: Lab) -> None:
    """Task 6: model and address on both; a line for each arm."""
    url = f"{lab.server.url}/v1"
    shown = lab.run([DOG], "--arms", "A5", "B", "C")
    assert shown.code == 0, f"expected exit code 0, got {shown.code}: {shown.err}"
    assert f"m at {url}" in shown.out, f"expected the endpoint, came {shown.out}"
    begins = [line.split()[0] for line in shown.out.splitlines() if line.strip()]
    assert {"A5", "B", "C"} <= set(begins), f"expected a line for each arm, came {shown.out}"
    whole = lab.run([DOG], "--arms", "B", "--json").whole
    assert whole["endpoint"] == f"m at {url}", f"expected the endpoint, came {whole['endpoint']!r}"


def test_the_practice_endpoint_is_said_to_be_no_language_model(lab: Lab) -> None:
    """Task 6: on the table, in the object and in the plot."""
    lab.name, path = "practice-chat", lab.folder / "plot.svg"
    shown = lab.run([DOG], "--arms", "B", "--svg", str(path)).out
    whole = lab.run([DOG], "--arms", "B", "--json").whole
    for where, text in (
        ("table", shown),
        ("object", whole["endpoint"]),
        ("plot", path.read_text()),
    ):
        assert "not a language model" in text, f"expected it in the {where}, came {text}"


def test_the_plot_is_xml_whatever_the_model_is_called(lab: Lab) -> None:
    """Task 6: an SVG with a bar for each arm, named, and the endpoint."""
    lab.name, path = 'm<&">x', lab.folder / "plot.svg"
    lab.run([DOG], "--arms", "A5", "B", "--svg", str(path))
    root = ElementTree.parse(path).getroot()
    texts = [text.strip() for text in root.itertext() if text.strip()]
    assert root.tag.endswith("svg"), f"expected an SVG, came {root.tag}"
    assert {"A5", "B"} <= set(texts), f"expected each arm's name, came {texts}"
    assert any('m<&">x at' in text for text in texts), f"expected the endpoint, came {texts}"
    bars = [one for one in root.iter() if one.tag.endswith("rect")]
    assert len(bars) == 2, f"expected two bars, came {len(bars)}"


def test_claims_are_made_where_there_is_something_to_compare(lab: Lab) -> None:
    """Task 6: B's definitions beside the largest A's; nothing of a long page that was not read."""
    came = lab.run([DOG], "--arms", "A5", "A9", "B", "C")
    lines = [line for line in came.out.splitlines() if " less than " in line]
    assert len(lines) == 1, f"expected one claim, came {lines}"
    assert "A9" in lines[0], f"expected the largest A, came {lines[0]!r}"


@pytest.mark.parametrize(
    "words",
    [
        ["--every", "0"],
        ["--seeds", "0"],
        ["--arms", "D"],
        ["--arms", "A4"],
        ["--runs", "/nowhere/x.jsonl"],
        ["--svg", "/nowhere/x.svg"],
    ],
)
def test_what_cannot_be_measured_is_a_usage_error(lab: Lab, words: list[str]) -> None:
    """Task 6: exit code 2 before anything is asked."""
    came = lab.run([DOG], *words)
    assert came.code == 2, f"given {words}: expected exit code 2, got {came.code}: {came.err}"
    assert lab.server.requests == [], f"given {words}: something was asked"


@pytest.mark.parametrize(
    ("rows", "arm", "what"),
    [
        ([{**DOG, "card": "nobody"}], "B", "nobody"),
        ([{**DOG, "tool": "find_cat"}], "B", "find_cat"),
        ([{"text": "x", "card": "dog-walker", "tool": "find_dog"}], "B", "answer"),
        ({"rows": 5}, "B", "rows.yaml"),
        ({"contacts": 5, "rows": [DOG]}, "B", "rows.yaml"),
        ({"contacts": [{"nothing": {}}], "rows": [DOG]}, "B", "nothing"),
        ([DOG], "A200", "9"),  # as many as the registry has
    ],
)
def test_rows_that_do_not_fit_are_an_error(lab: Lab, rows: Any, arm: str, what: str) -> None:
    """Task 6: exit code 1 and a line that names what is wrong, before a model is asked."""
    came = lab.run(rows, "--arms", arm)
    assert came.code == 1, f"given {rows}: expected exit code 1, got {came.code}: {came.err}"
    assert what in came.err, f"given {rows}: expected {what!r} in {came.err!r}"
    assert "Traceback" not in came.err, f"given {rows}: came {came.err}"
    assert came.chats == [], f"given {rows}: expected no request to the model, came {came.chats}"


def test_every_n_th_row_is_measured(lab: Lab) -> None:
    """Task 6: --every 2 takes the first row, the third, and so on. Contacts may be left out."""
    path = lab.folder / "rows.json"
    path.write_text(json.dumps({"rows": [DOG, CAT, WORD]}), encoding="utf-8")
    came = lab.run([], "--rows", str(path), "--arms", "B", "--every", "2")
    assert came.code == 0, f"expected exit code 0, got {came.code}: {came.err}"
    texts = [asked(body) for body in came.chats]
    assert texts == ["about my dog", "about my word"], f"expected rows 1 and 3, came {texts}"


def test_the_script_runs_from_any_folder(lab: Lab) -> None:
    """Contract: as a script, from a folder that is not the tree's."""
    env = {k: v for k, v in os.environ.items() if k.startswith("TINY_")} | {"TINY_CHAT_MODEL": "m"}
    words = lab.words([DOG], "--arms", "B", "--json")
    done = command(*words, script=SCRIPT, env=env, cwd=lab.folder)
    assert done.returncode == 0, f"expected exit code 0, got {done.returncode}: {done.stderr}"
    assert done.stdout.startswith("{"), f"expected one object, came {done.stdout!r}"
    assert json.loads(done.stdout)["arms"]["B"]["runs"] == 1, f"came {done.stdout}"
    assert "\x1b" not in done.stderr, f"expected no progress off a terminal, came {done.stderr!r}"
