"""The command line: python -m agent COMMAND. Answers go to stdout, all else to stderr."""

import argparse
import io
import json
import os
import re
import sys
from pathlib import Path
from typing import Any

from agent.errors import AgentError, TraceError

BUDGET_KEYS = ("turns", "tool_calls", "tokens", "seconds")
TREE = Path(__file__).resolve().parent.parent  # the folder that holds agent/


def main(argv: list[str] | None = None) -> int:
    """Run one command. Returns its exit code."""
    parser = argparse.ArgumentParser(prog="python -m agent")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    tokens = commands.add_parser("tokens", help="estimate the tokens of a text")
    tokens.add_argument("text")
    tokens.set_defaults(run=count_tokens)
    card = commands.add_parser("card", help="show one card")
    card.add_argument("file", type=Path)
    card.set_defaults(run=show_card)
    validate = commands.add_parser("validate", help="judge every card")
    validate.add_argument("--registry", type=Path, default=TREE / "registry", metavar="DIR")
    validate.set_defaults(run=validate_registry)
    embed = commands.add_parser("embed", help="turn a text into numbers")
    embed.add_argument("text")
    embed.set_defaults(run=embed_text)
    nearest = commands.add_parser("nearest", help="rank all examples by their closeness")
    nearest.add_argument("request")
    nearest.add_argument("--registry", type=Path, default=TREE / "registry", metavar="DIR")
    nearest.set_defaults(run=show_nearest)
    route = commands.add_parser("route", help="say which agent takes a request")
    route.add_argument("request", nargs="?", help="without one: each line of standard input")
    route.add_argument("--registry", type=Path, default=TREE / "registry", metavar="DIR")
    route.add_argument("--json", action="store_true", help="one JSON object a line and request")
    route.set_defaults(run=show_routes)
    calibrate = commands.add_parser("calibrate", help="fit what a route needs on labelled rows")
    calibrate.add_argument("rows", type=Path)
    calibrate.add_argument("--registry", type=Path, default=TREE / "registry", metavar="DIR")
    calibrate.add_argument("--accuracy", type=share, default=0.97, help="of the answered")
    calibrate.add_argument("--refused", type=share, default=0.85, help="of the rows for nobody")
    calibrate.set_defaults(run=make_calibration)
    tools = commands.add_parser("tools", help="list a card's tools")
    tools.add_argument("card")
    tools.add_argument("--registry", type=Path, default=TREE / "registry", metavar="DIR")
    tools.set_defaults(run=list_tools)
    tool = commands.add_parser("tool", help="show a function as a tool, or call it")
    tool.add_argument("file", type=Path)
    tool.add_argument("name")
    tool.add_argument("arguments", nargs="?", type=json_object, help="a JSON object: call it")
    tool.set_defaults(run=show_tool)
    chat = commands.add_parser("chat", help="send one message to the model")
    chat.add_argument("message")
    chat.add_argument("--card", help="send this card's tools too, and show what is called")
    chat.add_argument("--registry", type=Path, default=TREE / "registry", metavar="DIR")
    chat.set_defaults(run=chat_once)
    run = commands.add_parser("run", help="run one card on a request")
    run.add_argument("card")
    ask = commands.add_parser("ask", help="route a request and run its card: a request alone does")
    ask.add_argument("--card", metavar="NAME", help="this one, whoever the concierge would take")
    for command in (run, ask):
        command.add_argument("request", nargs="+")
        command.add_argument("--registry", type=Path, default=TREE / "registry", metavar="DIR")
        command.add_argument("--json", action="store_true", help="the result as one JSON object")
        command.add_argument("--rescue", action="store_true", help="run calls written as text")
        command.add_argument("--budget", action="append", default=[], type=limit, metavar="KEY=N")
        command.set_defaults(run=answer_request)
    put = commands.add_parser("put", help="keep a file in the store, and print its handle")
    put.add_argument("file", help="- for standard input")
    put.set_defaults(run=put_artifact)
    get = commands.add_parser("get", help="write an artifact out, byte for byte")
    get.add_argument("handle")
    get.set_defaults(run=get_artifact)
    outlined = commands.add_parser("outline", help="show the parts of an artifact")
    outlined.add_argument("handle")
    outlined.set_defaults(run=show_outline)
    searched = commands.add_parser("search", help="rank an artifact's sentences by their words")
    searched.add_argument("handle")
    searched.add_argument("query")
    searched.set_defaults(run=search_artifact)
    digested = commands.add_parser("digest", help="say in 800 tokens what an artifact holds")
    digested.add_argument("handle")
    digested.add_argument("request", nargs="?", default="", help="what it is wanted for")
    digested.set_defaults(run=show_digest)
    expanded = commands.add_parser("expand", help="read on in an artifact, or find passages in it")
    expanded.add_argument("handle")
    expanded.add_argument("--query", default="", help="passages that fit it, by words or vectors")
    expanded.add_argument("--part", type=int, default=0, help="of this part of the outline alone")
    expanded.add_argument("--start", type=int, default=0, help="from this place on")
    expanded.set_defaults(run=expand_artifact)
    shown = commands.add_parser("trace", help="show what happened in a run, the last one or FILE")
    shown.add_argument("file", type=Path, nargs="?")
    shown.set_defaults(run=show_trace)

    argv = sys.argv[1:] if argv is None else argv
    first, *others = argv or [""]
    blank = [" " in word.strip() for word in (first, *others)]
    if blank[0] or (first.startswith("-") and any(blank)):  # no command has one: a request
        argv = ["ask", *argv]
    args = parser.parse_args(argv)
    try:
        code = args.run(args)
        if sys.stdout:  # None where it was closed
            sys.stdout.flush()
        return code
    except AgentError as error:
        print(f"error: {error}", file=sys.stderr)
        return error.exit_code
    except KeyboardInterrupt:
        return 130
    except OSError as error:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        if isinstance(error, BrokenPipeError):  # the reader has gone, as `head` does
            return 0
        print(f"error: {error}", file=sys.stderr)
        return 1


def count_tokens(args: argparse.Namespace) -> int:
    from agent.tokens import estimate

    print(estimate(args.text))
    return 0


def show_card(args: argparse.Namespace) -> int:
    from agent.cards import read_card

    card = read_card(args.file)
    print(f"{card.name}: {card.description}\n")
    print("tools   ", *(tool if isinstance(tool, str) else tool["name"] for tool in card.tools))
    print("budget  ", *(f"{key} {most}" for key, most in vars(card.budget).items()))
    print("examples", *card.examples, sep="\n  ")
    return 0


def validate_registry(args: argparse.Namespace) -> int:
    from agent.validator import judge_registry, shared_examples

    verdicts = judge_registry(args.registry)
    for path, _, errors in verdicts:
        print("bad " if errors else "good", os.path.relpath(path))
        for line, what in errors:
            print(f"       line {line}: {what}")
    for what in shared_examples(verdicts):
        print("warning:", what)
    bad = sum(bool(verdict.errors) for verdict in verdicts)
    print(f"{len(verdicts) - bad} good, {bad} bad")
    return 1 if bad or not verdicts else 0


def embed_text(args: argparse.Namespace) -> int:
    from agent import client, settings

    vector = client.Client(settings.read_settings(TREE, os.environ)).embed([args.text])[0]
    print(f"{vector.size} numbers:", *(f"{number:.3f}" for number in vector[:6]), "...")
    return 0


def show_nearest(args: argparse.Namespace) -> int:
    from agent.wiring import build_index

    index = build_index(args.registry)
    for one, other in index.twins():
        print(f"warning: {one!r} and {other!r} have the same vector", file=sys.stderr)
    for hit in index.search(args.request):
        print(f"{hit.score:.2f}  {hit.owner:16}  {hit.text}")
    return 0


def show_routes(args: argparse.Namespace) -> int:
    from agent.concierge import as_json, as_text
    from agent.front_door import report_gap
    from agent.wiring import open_concierge

    concierge = open_concierge(args.registry)
    lines = sys.stdin.buffer if args.request is None else [os.fsencode(args.request)]
    for line in lines:
        route = concierge.route(line.decode(errors="replace"))
        print(json.dumps(as_json(route)) if args.json else as_text(route), flush=True)
        if route.reason:
            print(report_gap(route, concierge.index.embedder.model), file=sys.stderr)
    return 5 if args.request is not None and route.reason else 0


def share(text: str) -> float:
    """A number from 0 to 1; ValueError, which argparse turns into a usage error, for another."""
    if not 0 <= float(text) <= 1:
        raise ValueError
    return float(text)


def make_calibration(args: argparse.Namespace) -> int:
    from agent.rows import read_rows
    from agent.wiring import calibrate

    rows = read_rows(args.rows)
    path = calibrate(args.registry, rows, accuracy=args.accuracy, refused=args.refused)
    found = json.loads(path.read_text(encoding="utf-8"))
    for name, value in {**found["least"], **found}.items():
        if isinstance(value, float):
            print(f"{'least ' if name in found['least'] else ''}{name:9} {value:.3f}")
    print(f"from {len(rows)} rows, written to {os.path.relpath(path)}", file=sys.stderr)
    return 0


def json_object(text: str) -> dict[str, Any]:
    """A JSON object; ValueError, which argparse turns into a usage error, for anything else."""
    try:
        read = json.loads(text)
    except RecursionError:
        raise ValueError from None
    if not isinstance(read, dict):
        raise ValueError
    return read


def show_tool(args: argparse.Namespace) -> int:
    from agent.tools import call, load_tool

    tool = load_tool(args.file, args.name)
    if args.arguments is None:
        print(json.dumps(tool.definition, indent=2, ensure_ascii=False))
        return 0
    outcome = call(tool, args.arguments)
    print(outcome.text, file=sys.stdout if outcome.kind == "ok" else sys.stderr)
    return 0 if outcome.kind == "ok" else 1


def list_tools(args: argparse.Namespace) -> int:
    from agent.tokens import estimate_tools
    from agent.toolbox import find_card, tools_of

    tools = tools_of(find_card(args.registry, args.card), args.registry)
    for tool in tools:
        print(f"{tool.name}({', '.join(tool.parameters.get('properties', {}))})")
        print(f"    {tool.description}")
    print(f"{estimate_tools([tool.definition for tool in tools])} tokens in every request")
    return 0


def say(text: str) -> None:
    """Print what a model or a tool said, without what a terminal would take for commands."""
    print(re.sub(r"[\0-\x08\x0b-\x1f\x7f-\x9f]", " ", text))


def write(data: bytes) -> None:
    """Write bytes out as they are, if there is anything to write them to."""
    if sys.stdout:
        sys.stdout.buffer.write(data)


def chat_once(args: argparse.Namespace) -> int:
    from agent import chat, settings
    from agent.toolbox import find_card, tools_of

    model = chat.Chat(settings.read_settings(TREE, os.environ))
    tools = tools_of(find_card(args.registry, args.card), args.registry) if args.card else []
    reply = model.ask([{"role": "user", "content": chat.clean(args.message)}], tools)
    called = [f"{call.name}({call.arguments})" for call in reply.calls]
    say("\n".join(filter(None, [reply.text, *called])))
    about = " (estimated)" if reply.usage.estimated else ""
    print(f"{reply.usage.input} tokens in, {reply.usage.output} out{about}", file=sys.stderr)
    return 0


def limit(text: str) -> tuple[str, float]:
    """A limit to lower, as turns=2; ValueError, which is a usage error, for anything else."""
    key, _, number = text.partition("=")
    try:
        value = float(number) if key == "seconds" else int(number)
    except ValueError:
        value = 0
    if key not in BUDGET_KEYS or not value > 0:
        said = f"KEY=N: KEY is {', '.join(BUDGET_KEYS)}, N above 0, whole but for seconds"
        raise argparse.ArgumentTypeError(said)
    return key, value


def as_request(words: list[str]) -> str:
    """What was typed, also without quotes, as text that can be sent."""
    return os.fsencode(" ".join(words)).decode(errors="replace")


def answer_request(args: argparse.Namespace) -> int:
    from agent.front_door import FrontDoor
    from agent.progress import Progress
    from agent.settings import read_settings
    from agent.trace import hidden

    with Progress(sys.stderr, "looking for an agent") as progress:
        door = FrontDoor(args.registry, args.budget, args.rescue, progress.log)
        if args.card is None and len(args.request) > 1 and args.request[0] in door.concierge.cards:
            word = args.request[0]
            mend = f"To run it: python -m agent run {word} …; or put the request in quotes"
            progress.log(f"error: {word} is a card. {mend}.")
            return 2
        answer = door.answer(as_request(args.request), args.card)
    key = read_settings(TREE, os.environ).chat_key.strip()
    if args.json:
        print(json.dumps(hidden(answer.as_json(), key)))
    elif answer.text:
        say(hidden(answer.text, key))
    return answer.exit_code


def open_store() -> Any:
    from agent.store import Store
    from agent.wiring import home

    return Store(home() / "artifacts")


def put_artifact(args: argparse.Namespace) -> int:
    piped = args.file == "-" and sys.stdin
    data = sys.stdin.buffer.read() if piped else Path(args.file).read_bytes()
    print(open_store().put(data))
    return 0


def get_artifact(args: argparse.Namespace) -> int:
    write(open_store().get(args.handle))
    return 0


def show_outline(args: argparse.Namespace) -> int:
    from agent.outline import outline

    found = outline(open_store().text(args.handle))
    say(found.about)
    for number, part in enumerate(found.parts, 1):
        say(f"{number:3} {part.start:8} {part.title}")
    return 0


def search_artifact(args: argparse.Namespace) -> int:
    from agent.sentences import rank

    text = open_store().text(args.handle)
    found = rank(text, args.query)
    for i in found.best()[:5]:
        start, end = found.spans[i]
        say(f"{found.scores[i]:5.1f} {start:8} {text[start:end]}")
    print(f"the best holds {found.cover:.0%} of the query's weight", file=sys.stderr)
    return 0 if found.scores else 1


def show_digest(args: argparse.Namespace) -> int:
    from agent.digest import digest

    say(digest(open_store().text(args.handle), as_request([args.request]), args.handle))
    return 0


def expand_artifact(args: argparse.Namespace) -> int:
    from agent.expand import expand, read_on
    from agent.wiring import home, make_embedder

    text = open_store().text(args.handle)
    if query := as_request([args.query]).strip():
        embedder = make_embedder(home() / "vectors" / args.handle)
        say(expand(text, args.handle, query, args.part, args.start, embedder))
        return 0
    said, found = read_on(text, args.handle, args.part, args.start)
    if sys.stderr:
        print(said, file=sys.stderr)
    write(found.encode("utf-8", "surrogateescape"))  # to the letter
    return 0


def show_trace(args: argparse.Namespace) -> int:
    from agent import runner, trace
    from agent.wiring import home

    files = [args.file] if args.file else sorted((home() / "traces").glob("*.jsonl"))
    if not files:
        print("there is no trace yet: run a card first", file=sys.stderr)
        return 1
    for event in trace.read_trace(files[-1]):
        said = str(event.get("text", event.get("answer", event.get("request", ""))))
        said = said or f"{event.get('calls', 0)} calls"
        try:
            line = runner.log_line(event) or f"[{event['event']}] {' '.join(said.split())[:80]}"
        except (KeyError, TypeError) as error:
            raise TraceError(f"{files[-1]}: an event lacks {error}: is it a trace?") from None
        line = "".join(c if c.isprintable() else " " for c in line)
        print(f"{event['seconds']:8.3f}  {line}")
    return 0


if __name__ == "__main__":
    sys.stderr = sys.stderr or io.StringIO()  # closed: what goes to None is printed on stdout
    if isinstance(sys.stdout, io.TextIOWrapper):  # a terminal may know fewer letters than a model
        sys.stdout.reconfigure(errors="replace")
    sys.exit(main())
