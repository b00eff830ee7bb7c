"""Stage 16: a card's prompt, the request and the card's tools, and nothing else; then the door."""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from helpers import Done, Loopback, Reply, Request, command, embeddings, need
from scripted import Raw, Scripted, calls, says

NAMES = {"dog-walker": "dog", "cat-feeder": "cat", "word-counter": "word"}
CARD = """\
name: {name}
description: Takes what has to do with a {word}, for a test.
examples: [about my {word}, the {word} of a friend, a {word} and no other]
prompt: You know all about a {word}.
tools: [{{name: look_up_{word}, description: Look up., parameters: {{type: object}}}}]
budget: {{turns: 6, tool_calls: 6, tokens: 9000, seconds: 30}}
"""


def card(name: str) -> Any:
    make, budget = need("agent.cards", "Card"), need("agent.cards", "Budget")
    limits = budget(turns=6, tool_calls=6, tokens=9000, seconds=30)
    return make(name, "For a test.", ("one", "two", "three"), f"You are {name}.", (), limits)


def secret(key: str) -> str:
    """Look up a secret."""
    return f"the secret of {key} is 4711"


def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


@contextmanager
def chat(*script: Raw) -> Iterator[tuple[Any, Scripted]]:
    """A Chat whose endpoint gives these answers, and the endpoint."""
    with Scripted(*script) as endpoint, httpx.HTTPTransport(verify=False) as transport:
        env = {"TINY_BASE_URL": endpoint.url, "TINY_EMBED_MODEL": "e", "TINY_CHAT_MODEL": "m"}
        settings = need("agent.settings", "read_settings")(Path("/nowhere"), env)
        yield need("agent.chat", "Chat")(settings, transport), endpoint


def run(one: Any, functions: list[Callable[..., Any]], request: str, model: Any) -> Any:
    run_card = need("agent.runner", "run_card")
    tools = [need("agent.tools", "make_tool")(function) for function in functions]
    result = run_card(one, tools, request, model)
    wanted = need("agent.runner", "Result")
    assert isinstance(result, wanted), f"Contract: run_card returns a Result, came back {result!r}"
    return result


# Task 1: what an agent sees


def test_an_agent_sees_its_prompt_the_request_and_its_tools() -> None:
    """Task 1: the first request of a run holds these three, and nothing else."""
    with chat(says("Five.")) as (model, endpoint):
        result = run(card("adder"), [add], "2 + 3?\n  and why?", model)
    assert result.answer == "Five.", f"came {result}"
    sent = endpoint.requests[0].body
    wanted = [
        {"role": "system", "content": "You are adder."},
        {"role": "user", "content": "2 + 3?\n  and why?"},
    ]
    assert sent["messages"] == wanted, f"expected {wanted}, came {sent['messages']}"
    names = [tool["function"]["name"] for tool in sent["tools"]]
    assert names == ["add"], f"expected its one tool, came {names}"


def test_an_agent_without_tools_is_sent_none() -> None:
    """Task 1: a card may have no tools that can be called."""
    with chat(says("Five.")) as (model, endpoint):
        run(card("talker"), [], "Hello?", model)
    sent = endpoint.requests[0].body
    assert "tools" not in sent, f"expected no tools, came {sent}"


# Task 2: two runs


def test_two_runs_of_one_card_share_nothing() -> None:
    """Task 2: the second run begins as the first did, with one chat and one card for both."""
    one = card("keeper")
    script = calls(("secret", {"key": "a"})), says("It is 4711."), says("What secret?")
    with chat(*script) as (model, endpoint):
        run(one, [secret], "What is the secret?", model)
        second = run(one, [secret], "What is the secret?", model)
    first, _, again = (seen.body for seen in endpoint.requests)
    same = again["messages"] == first["messages"] and again["tools"] == first["tools"]
    assert same, f"expected the first request again, came {again}"
    got = second.answer, second.requests, second.tool_calls
    assert got == ("What secret?", 1, 0), f"expected the second run's own numbers, came {got}"
    assert "4711" not in str(second), f"the second result knows of the first run: {second}"


def test_an_agent_knows_nothing_of_another() -> None:
    """Task 2: no message, no prompt and no tool of the run before is in the next one's."""
    script = calls(("secret", {"key": "a"})), says("It is 4711."), says("Five.")
    with chat(*script) as (model, endpoint):
        run(card("keeper"), [secret], "What is the secret?", model)
        run(card("adder"), [add], "2 + 3?", model)
    sent = json.dumps(endpoint.requests[2].body)
    found = [word for word in ("4711", "secret", "keeper") if word in sent]
    assert not found, f"expected nothing of the first agent, found {found} in {sent}"


# The command line: a registry of three cards, an endpoint that embeds and answers


def vector(text: str) -> list[float]:
    """One number for each of the three words, and a little for the rest of the text."""
    return [float(word in text) + 0.01 * (len(text) % 7) for word in NAMES.values()] + [0.1]


class Door:
    """The command on three cards. `home` is its TINY_HOME, `chats` what the model was sent."""

    def __init__(self, folder: Path, server: Loopback) -> None:
        self.cards, self.home, self.server = folder / "registry", folder / "home", server
        self.cards.mkdir()
        for name, word in NAMES.items():
            self.write(name, word)

    def write(self, name: str, word: str) -> None:
        text = CARD.format(name=name, word=word)
        (self.cards / f"{name}.card.yaml").write_text(text, encoding="utf-8")

    def __call__(self, *argv: str) -> Done:
        env = {**self.server.env, "TINY_CHAT_MODEL": "m", "TINY_HOME": str(self.home)}
        done = command(*argv, "--registry", self.cards, env=env)
        assert "Traceback" not in done.stderr, f"expected no crash, came {done.stderr}"
        return done

    @property
    def chats(self) -> list[dict[str, Any]]:
        return [r.json for r in self.server.requests if r.path == "/v1/chat/completions"]

    @property
    def first(self) -> dict[str, Any]:
        assert self.chats, "expected a request to the model, none came"
        return self.chats[0]

    @property
    def gaps(self) -> list[dict[str, Any]]:
        path = self.home / "gaps.jsonl"
        lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
        return [json.loads(line) for line in lines]


@contextmanager
def served(folder: Path) -> Iterator[Door]:
    """The three cards with an endpoint that embeds, and answers "Done."."""
    embed = embeddings(vector)

    def answer(request: Request) -> Reply:
        return embed(request) if request.path.endswith("embeddings") else (200, says("Done.").body)

    with Loopback(answer) as server:
        yield Door(folder, server)


@pytest.fixture
def door(tmp_path: Path) -> Iterator[Door]:
    with served(tmp_path) as one:
        yield one


def messages(word: str, request: str) -> list[dict[str, str]]:
    prompt = {"role": "system", "content": f"You know all about a {word}."}
    return [prompt, {"role": "user", "content": request}]


# Task 3: run


def test_run_takes_a_request_of_several_words_without_quotes(door: Door) -> None:
    """Task 3: what is typed after the card is the request, and the card's prompt goes before it."""
    done = door("run", "dog-walker", "where", "is the", "dog?")
    assert done.returncode == 0, f"expected exit code 0, got {done.returncode}: {done.stderr}"
    assert done.stdout == "Done.\n", f"expected the answer alone, came {done.stdout!r}"
    sent, wanted = door.first["messages"], messages("dog", "where is the dog?")
    assert sent == wanted, f"expected {wanted}, came {sent}"


# Task 4: ask


def test_a_card_named_first_is_told_apart_from_a_request(door: Door) -> None:
    """Contract: `ask CARD WORD…` is a usage error that names `run`."""
    done = door("ask", "dog-walker", "where", "is the dog?")
    assert done.returncode == 2, f"expected exit code 2, got {done.returncode}: {done.stdout!r}"
    assert "run dog-walker" in done.stderr, f"expected the mend, came {done.stderr!r}"


def test_ask_runs_the_card_that_takes_the_request(door: Door) -> None:
    """Task 4: the concierge picks the card, whose prompt and tools alone are sent."""
    done = door("ask", "cat")
    assert done.returncode == 0, f"expected exit code 0, got {done.returncode}: {done.stderr}"
    assert done.stdout == "Done.\n", f"expected the answer alone, came {done.stdout!r}"
    [sent] = door.chats
    wanted = messages("cat", "cat")
    assert sent["messages"] == wanted, f"expected {wanted}, came {sent['messages']}"
    names = [tool["function"]["name"] for tool in sent["tools"]]
    assert names == ["look_up_cat"], f"expected the cat-feeder's tool alone, came {names}"
    chosen = [line for line in done.stderr.splitlines() if line.startswith("[concierge] ")]
    assert len(chosen) == 1, f"expected one line of the concierge, came {done.stderr!r}"
    assert "cat-feeder" in chosen[0], f"expected the card in it, came {chosen[0]!r}"
    assert door.gaps == [], f"expected no gap, came {door.gaps}"


# Task 5: a request alone

TYPED = "My dog:\n" + "  he barks\tat night" * 60 + "\nWhat now?"


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Door, Done]]:
    """What `python -m agent REQUEST --json` did."""
    with served(tmp_path_factory.mktemp("alone")) as door:
        yield door, door(TYPED, "--json")


def test_a_request_alone_is_asked_and_arrives_as_it_was_typed(alone: tuple[Door, Done]) -> None:
    """Task 5: no command has a blank, so it is a request. The agent gets it whole."""
    door, done = alone
    assert done.returncode == 0, f"expected exit code 0, got {done.returncode}: {done.stderr}"
    sent = door.first["messages"]
    wanted = messages("dog", TYPED)
    assert sent == wanted, f"given {len(TYPED)} characters: expected {wanted}, came {sent}"


def test_json_is_the_result_for_machines(alone: tuple[Door, Done]) -> None:
    """Task 5: with --json, one object with card and result, without the messages."""
    _, done = alone
    assert done.stdout.count("\n") == 1, f"expected one line, came {done.stdout!r}: {done.stderr}"
    shown = json.loads(done.stdout)
    wanted = {"card": "dog-walker", "answer": "Done.", "requests": 1, "tool_calls": 0}
    assert wanted.items() <= shown.items(), f"expected {wanted}, came {shown}"
    assert shown.get("usage", {}).keys() == {"input", "output", "estimated"}, f"came {shown}"
    assert "messages" not in shown, f"expected no messages, came {shown}"


def test_one_word_alone_is_no_request(door: Door) -> None:
    """Task 5: a word could be a command with a fault in it, so it is a usage error."""
    assert need("agent.runner", "run_card"), "Contract: agent.runner has no run_card"
    done = door("dog")
    assert done.returncode == 2, f"expected exit code 2, got {done.returncode}: {done.stderr}"
    assert door.server.requests == [], f"expected nothing sent, came {door.server.requests}"


# Task 6: nobody


TIE = "about my dog"


def refused(door: Door, *argv: str) -> str:
    """What is printed for a request that two cards tie for."""
    door.write("dog-sitter", "dog")  # the same examples as the dog-walker's
    done = door(*argv)
    assert done.returncode == 5, f"expected exit code 5, got {done.returncode}: {done.stderr}"
    assert door.chats == [], f"expected no request to the model, came {door.chats}"
    got = [(gap["request"], gap["reason"]) for gap in door.gaps]
    assert got == [(TIE, "tie")], f"expected one line in the gap log, came {got}"
    return done.stdout


def test_a_refused_request_is_exit_code_5_and_a_line_in_the_gap_log(door: Door) -> None:
    """Task 6: where nobody takes it, no model is asked; the route and its reason are printed."""
    said = refused(door, "ask", *TIE.split())
    assert said.startswith("nobody (tie)"), f"came {said!r}"
    assert "dog-sitter" in said, f"expected what came closest, came {said!r}"


def test_a_refusal_for_machines_is_the_route(door: Door) -> None:
    """Task 6: with --json, the route as `route` gives it: `card` is null."""
    shown = json.loads(refused(door, TIE, "--json"))
    got = shown["card"], shown["reason"], shown["request"]
    assert got == (None, "tie", TIE), f"expected a refusal, came {shown}"


def test_R5_an_empty_request_is_refused_too(door: Door) -> None:
    """Task 6: what holds no letter and no digit is sent to no endpoint as a request."""
    done = door("ask", "?")
    assert done.returncode == 5, f"expected exit code 5, got {done.returncode}: {done.stderr}"
    assert door.chats == [], f"expected no request to the model, came {door.chats}"
    got = [(gap["request"], gap["reason"]) for gap in door.gaps]
    assert got == [("?", "empty_query")], f"expected one line in the gap log, came {got}"
