"""Stage 34: concierge, runner and store behind one door. A request in, an answer out."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import FrozenInstanceError
from pathlib import Path
from typing import Any

import pytest

from helpers import TREE, Done, Loopback, Reply, Request, command, embeddings, need
from scripted import Raw, calls, fails, says

NAMES = {"dog-walker": "dog", "cat-feeder": "cat", "word-counter": "word"}
CARD = """\
name: {name}
description: Takes what has to do with a {word}, for a test.
examples: [about my {word}, the {word} of a friend, a {word} and no other]
prompt: You know all about a {word}.
tools: {tools}
artifacts: {{above: 500}}
budget: {{turns: 6, tool_calls: 6, tokens: 9000, seconds: 60}}
"""
DEFINED = "[{{name: look_up_{word}, description: Look up., parameters: {{type: object}}}}]"
TOOL = '''\
def look_up_dog(what: str) -> str:
    """Look up a dog."""
    return "\\n".join(f"Line {i} is about the {what}, number {i * 7}." for i in range(200))
'''
TIE = "about my dog"  # where two cards have the same examples
END = fails(400, "the script has ended")


def vector(text: str) -> list[float]:
    """One number for each of the three words, and a little for the rest of the text."""
    return [float(word in text) + 0.01 * (len(text) % 7) for word in NAMES.values()] + [0.1]


class House:
    """A registry of three cards, a home, and an endpoint that embeds and follows a script."""

    def __init__(self, folder: Path) -> None:
        self.cards, self.home, self.script = folder / "registry", folder / "home", [says("Done.")]
        self.cards.mkdir()
        for name, word in NAMES.items():
            self.write(name, word)
        self.server = Loopback(self.reply)

    def write(self, name: str, word: str, tools: str = DEFINED) -> None:
        text = CARD.format(name=name, word=word, tools=tools.format(word=word))
        (self.cards / f"{name}.card.yaml").write_text(text, encoding="utf-8")

    def reply(self, request: Request) -> Reply:
        if request.path.endswith("embeddings"):
            return embeddings(vector)(request)
        given: Raw = self.script[min(len(self.chats), len(self.script)) - 1]
        return given.status, given.body

    @property
    def env(self) -> dict[str, str]:
        return {**self.server.env, "TINY_CHAT_MODEL": "m", "TINY_HOME": str(self.home)}

    @property
    def chats(self) -> list[dict[str, Any]]:
        return [r.json for r in self.server.requests if r.path.endswith("chat/completions")]

    @property
    def embedded(self) -> list[str]:
        found = [r.json["input"] for r in self.server.requests if r.path.endswith("embeddings")]
        return [text for texts in found for text in texts]

    @property
    def gaps(self) -> list[dict[str, Any]]:
        path = self.home / "gaps.jsonl"
        lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
        return [json.loads(line) for line in lines]

    def door(self, **how: Any) -> Any:
        try:
            return need("agent.front_door", "FrontDoor")(self.cards, **how)
        except TypeError as error:
            pytest.fail(f"Contract: FrontDoor(registry, limits, rescue, log): {error}")

    def answer(self, request: str, *card: str, door: Any = None, **how: Any) -> Any:
        door = door or self.door(**how)
        try:
            came = door.answer(request, *card)
        except (TypeError, AttributeError) as error:
            pytest.fail(f"Contract: FrontDoor.answer(request, card): {error}")
        wanted = need("agent.front_door", "Answer")
        assert isinstance(came, wanted), f"Contract: answer gives an Answer, came back {came!r}"
        return came

    def command(self, *argv: str) -> Done:
        need("agent.front_door", "FrontDoor")
        done = command(*argv, "--registry", self.cards, env=self.env)
        assert "Traceback" not in done.stderr, f"expected no crash, came {done.stderr}"
        return done


@pytest.fixture
def house(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[House]:
    for name in list(os.environ):
        if name.startswith("TINY_"):
            monkeypatch.delenv(name)
    one = House(tmp_path)
    with one.server:
        for name, value in one.env.items():
            monkeypatch.setenv(name, value)
        yield one


def result(**other: Any) -> Any:
    """A Result that is done, but for what is said."""
    known: dict[str, Any] = {"status": "done", "answer": "", "reason": "", "found": ()}
    known |= {"requests": 1, "tool_calls": 0, "messages": (), "counts": {}}
    known |= {"usage": need("agent.chat", "Usage")(10, 5)}
    return need("agent.runner", "Result")(**known | other)


def for_machines(came: Any) -> Any:
    """An Answer's object, through JSON."""
    shown = came.as_json()
    assert isinstance(shown, dict), f"Contract: as_json gives a dict, came back {shown!r}"
    return json.loads(json.dumps(shown))


def made(route: Any = None, card: Any = "dog-walker", **other: Any) -> Any:
    """An Answer with such a result."""
    try:
        return need("agent.front_door", "Answer")(
            route, card, result(**other), (), Path("/traces/one.jsonl")
        )
    except TypeError as error:
        pytest.fail(f"Contract: Answer(route, card, result, handles, trace): {error}")


# Task 1: a request in, an answer out


def test_a_request_is_answered_by_the_card_that_takes_it(house: House) -> None:
    """Task 1: the concierge picks the card, whose prompt opens the run; Answer says who it was."""
    came = house.answer("about my cat\nand more")
    got = came.card, getattr(came.route, "card", came.route), came.text, came.status, came.handles
    wanted = "cat-feeder", "cat-feeder", "Done.", "done", ()
    assert got == wanted, f"expected {wanted}, came {got}"
    assert came.result.requests == 1, f"expected the result of the run, came {came.result}"
    said = [(m["role"], m["content"]) for m in house.chats[0]["messages"]]
    begin = [("system", "You know all about a cat."), ("user", "about my cat\nand more")]
    assert said == begin, f"expected {begin}, came {said}"
    with pytest.raises(FrozenInstanceError):
        came.card = "dog-walker"


def test_a_run_is_traced(house: House) -> None:
    """Task 1: `trace` is the file of the run, whose first line names card, model and request."""
    came = house.answer("about my cat")
    assert came.trace.parent == house.home / "traces", f"expected it in TINY_HOME: {came.trace}"
    first = json.loads(came.trace.read_text(encoding="utf-8").splitlines()[0])
    wanted = {"card": "cat-feeder", "model": "m", "request": "about my cat"}
    assert wanted.items() <= first.items(), f"expected {wanted}, came {first}"


@pytest.mark.parametrize(
    ("limits", "most"),
    [([("turns", 2)], 2), ([("turns", 99)], 6), ([("turns", 3), ("tokens", 5000)], 3)],
)
def test_B1_limits_lower_the_budget_of_every_card(
    house: House, limits: Sequence[tuple[str, float]], most: int
) -> None:
    """Task 1: a run has the card's budget, which the door's limits lower and never raise."""
    house.script = [calls(("look_up_dog", {}))]
    came = house.answer("about my dog", limits=limits)
    assert came.status == "turns", f"given {limits}: expected turns, came {came.status}"
    assert len(house.chats) <= most, f"given {limits}: {len(house.chats)} requests were sent"


def test_S11_the_answer_has_the_handles_of_what_was_kept(house: House) -> None:
    """Task 1: each artifact of the run once, in order; behind the handle is the whole text."""
    (house.cards / "tools").mkdir()
    (house.cards / "tools" / "dog_walker.py").write_text(TOOL, encoding="utf-8")
    house.write("dog-walker", "dog", "[look_up_dog]")
    asked = [("look_up_dog", {"what": what}) for what in ("poodle", "beagle", "poodle")]
    house.script = [calls(*asked), says("Found."), END]
    came = house.answer("about my dog")
    assert came.status == "done", f"expected done, came {came.status}: {came.result}"
    handles = list(came.handles)
    assert len(handles) == len(set(handles)) == 2, f"expected two handles, came {handles}"
    store = need("agent.store", "Store")(house.home / "artifacts")
    kept = [store.get(handle).decode() for handle in handles]
    wanted = [
        "\n".join(f"Line {i} is about the {what}, number {i * 7}." for i in range(200))
        for what in ("poodle", "beagle")
    ]
    assert kept == wanted, f"expected both texts in order, came {[t[:40] for t in kept]}"
    shown = for_machines(came)
    assert shown.get("handles") == handles, f"expected them for machines, came {shown}"


def test_a_handle_that_was_there_before_is_not_of_this_run(house: House) -> None:
    """Task 1: a request may name an artifact of another run; this one has kept nothing."""
    handle = need("agent.store", "Store")(house.home / "artifacts").put(b"about a dog\n" * 99)
    house.script = [calls(("expand", {"handle": handle})), says("Woof."), END]
    came = house.answer(f"about my dog in {handle}")
    assert came.text == "Woof.", f"expected the answer, came {came}"
    assert list(came.handles) == [], f"expected no handle, came {came.handles}"


# Task 2: a named card


def test_a_named_card_is_run_and_nothing_is_routed(house: House) -> None:
    """Task 2: with a card, nothing is embedded, and there is no route."""
    came = house.answer("about my dog", "cat-feeder")
    assert (came.card, came.route) == ("cat-feeder", None), f"expected cat-feeder, came {came}"
    assert house.embedded == [], f"expected nothing embedded, came {house.embedded}"
    prompt = house.chats[0]["messages"][0]["content"]
    assert prompt == "You know all about a cat.", f"expected its prompt, came {prompt!r}"


@pytest.mark.parametrize("name", ["nobody", "", "../dog-walker"])
def test_a_card_that_is_not_there_is_an_error(house: House, name: str) -> None:
    """Task 2: a CardError; no other card is taken for it, also for an empty name."""
    error = need("agent.errors", "CardError")
    refusals, came = [], None
    try:
        came = house.answer("about my dog", name)
    except error as refusal:
        refusals.append(str(refusal))
    assert refusals, f"given {name!r}: expected a CardError, came back {came}"
    assert repr(name) in refusals[0], f"expected the name in {refusals[0]!r}"
    assert house.chats == [], f"expected no request to the model, came {house.chats}"


# Task 3: nobody


def test_nobody_is_an_answer_without_card_and_result(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Task 3: the gap is logged, and no model is asked. None needs to be set."""
    house.write("dog-sitter", "dog")
    said: list[str] = []
    monkeypatch.delenv("TINY_CHAT_MODEL")
    came = house.answer(TIE, log=said.append)
    got = came.card, came.result, tuple(came.handles), came.trace
    assert got == (None, None, (), None), f"expected nobody, came {got}"
    assert (came.status, came.exit_code) == ("refused", 5), f"came {came.status}, {came.exit_code}"
    assert came.route.reason == "tie", f"expected the route and why, came {came.route}"
    assert str(came.text).startswith("nobody (tie)"), (
        f"expected the route as text, came {came.text!r}"
    )
    assert house.chats == [], f"expected no request to the model, came {house.chats}"
    gaps = [(gap["request"], gap["reason"]) for gap in house.gaps]
    assert gaps == [(TIE, "tie")], f"expected one gap, came {gaps}"
    assert any("gaps.jsonl" in line for line in said), f"expected where it stands, came {said}"
    shown = for_machines(came)
    got = shown.get("card", ""), shown.get("reason"), shown.get("request"), shown.get("status")
    assert got == (None, "tie", TIE, "refused"), f"expected the refusal for machines, came {shown}"


# Task 4: for people, for machines, for the shell


@pytest.mark.parametrize(
    ("status", "code"),
    [
        ("done", 0),
        ("ghosts", 1),
        ("empty_answer", 1),
        ("turns", 3),
        ("tool_calls", 3),
        ("tokens", 3),
        ("seconds", 3),
        ("endpoint", 4),
    ],
)
def test_each_status_has_its_exit_code(status: str, code: int) -> None:
    """Task 4: 0 done, 1 ran and failed, 3 budget spent, 4 endpoint failed."""
    came = made(status=status)
    got = came.status, came.exit_code
    assert got == (status, code), f"given a result that is {status}: expected {code}, came {got}"


def test_without_an_answer_people_read_what_was_found() -> None:
    """Task 4: `text` is the answer; if there is none, a line for each result of a tool."""
    found = (
        {"name": "look", "arguments": '{"a": 1}', "text": "x" * 400},
        {"name": "see", "arguments": "{}", "text": "short"},
    )
    came = made(answer="It is so.", found=found).text
    assert came == "It is so.", f"expected the answer alone, came {came!r}"
    wanted = f'look({{"a": 1}}): {"x" * 300}\nsee({{}}): short'
    came = made(status="turns", found=found).text
    assert came == wanted, f"expected {wanted!r}, came {came!r}"


def test_machines_get_route_and_result_in_one_object(house: House) -> None:
    """Task 4: as_json has the route's keys, the result's but messages, card, handles and trace."""
    shown = for_machines(house.answer("about my cat"))
    wanted = {"card": "cat-feeder", "request": "about my cat", "status": "done", "answer": "Done."}
    wanted |= {"reason": "", "requests": 1, "tool_calls": 0, "handles": [], "found": []}
    assert wanted.items() <= shown.items(), f"expected {wanted}, came {shown}"
    ranked = [one["card"] for one in shown.get("ranking", [])]
    assert ranked[:1] == ["cat-feeder"], f"expected the ranking, came {shown}"
    assert shown["trace"].endswith(".jsonl"), f"expected the path of the trace, came {shown}"
    assert shown["usage"]["input"] == 10, f"expected the usage, came {shown}"
    assert "messages" not in shown, f"expected no messages, came {shown}"


# Task 5: one door for many requests


def test_a_door_reads_its_registry_once_and_runs_share_nothing(house: House) -> None:
    """Task 5: the second request embeds itself alone, and its run begins as the first did."""
    said: list[str] = []
    door = house.door(log=said.append)
    house.answer("about my cat", door=door)
    before, lines = len(house.embedded), list(said)
    came = house.answer("the dog of a friend", door=door)
    assert came.card == "dog-walker", f"expected dog-walker, came {came.card}"
    new = house.embedded[before:]
    assert new == ["q: the dog of a friend"], f"expected the request alone, came {new}"
    roles = [message["role"] for message in house.chats[1]["messages"]]
    assert roles == ["system", "user"], f"expected a fresh run, came {house.chats[1]['messages']}"
    assert lines[0].startswith("[concierge] cat-feeder"), f"expected the route first: {lines}"
    assert all(line.startswith("[runner]") for line in lines[1:]), f"expected a run, came {lines}"
    assert len(lines) == 2, f"expected a line for the route and one for the turn, came {lines}"


# Task 6: the command


def test_ask_takes_a_card(house: House) -> None:
    """Task 6: `ask --card NAME` runs that card, and --json has the answer's object."""
    done = house.command("ask", "--card", "cat-feeder", "about my dog", "--json")
    assert done.returncode == 0, f"expected exit code 0, got {done.returncode}: {done.stderr}"
    shown = json.loads(done.stdout)
    got = shown["card"], shown["status"], shown.get("handles")
    assert got == ("cat-feeder", "done", []), f"expected cat-feeder, came {shown}"
    assert house.embedded == [], f"expected nothing routed, came {house.embedded}"
    assert "[concierge]" not in done.stderr, f"expected no route, came {done.stderr!r}"


@pytest.mark.parametrize("words", [("run", ""), ("ask", "--card", ""), ("ask", "--card", "x")])
def test_a_card_without_a_name_is_nobody(house: House, words: Sequence[str]) -> None:
    """Task 6: an empty name, as a variable leaves it that is not set, runs nothing: exit code 1."""
    done = house.command(*words, "about my dog")
    assert done.returncode == 1, f"given {words}: expected 1, got {done.returncode}: {done.stdout}"
    assert house.chats == [], f"given {words}: expected no run, came {house.chats}"


def test_C31_an_endpoint_that_is_not_there_is_exit_code_4(house: House) -> None:
    """Task 6: so it is where the request could not even be routed."""
    house.server.__exit__(None)
    done = house.command("ask", "about my dog")
    assert done.returncode == 4, f"expected exit code 4, got {done.returncode}: {done.stderr}"
    assert done.stdout == "", f"expected nothing on stdout, came {done.stdout!r}"


def test_a_log_that_nobody_reads_costs_no_answer(house: House) -> None:
    """Task 6: a stderr whose reader has gone leaves the answer as it is, and exit code 0."""
    need("agent.front_door", "FrontDoor")
    reading, writing = os.pipe()
    os.close(reading)
    words = [sys.executable, "-m", "agent", "ask", "--card", "dog-walker", "--registry"]
    left = {"PYTHONUNBUFFERED"}  # with it nothing is left in a buffer
    kept = {k: v for k, v in os.environ.items() if not k.startswith("TINY_") and k not in left}
    env = kept | house.env
    done = subprocess.run(
        [*words, str(house.cards), "about my dog"],
        env={**env, "PYTHONPATH": str(TREE)},
        stdout=subprocess.PIPE,
        stderr=writing,
        timeout=60,
        check=False,
    )
    os.close(writing)
    got = done.returncode, done.stdout
    assert got == (0, b"Done.\n"), f"expected the answer and exit code 0, came {got}"
