"""The command line: python -m agent COMMAND. Answers go to stdout, all else to stderr."""

import argparse
import json
import os
import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from agent.errors import AgentError

if TYPE_CHECKING:
    from agent.concierge import Concierge, Route

REFUSED = 5  # the exit code where nobody takes the one request
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
    calibrate.add_argument("--accuracy", type=float, default=0.97, help="of the answered")
    calibrate.add_argument("--refused", type=float, default=0.85, help="of what nobody should take")
    calibrate.set_defaults(run=make_calibration)

    args = parser.parse_args(argv)
    try:
        code = args.run(args)
        sys.stdout.flush()
        return code
    except AgentError as error:
        print(f"error: {error}", file=sys.stderr)
        return error.exit_code
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:  # the reader has gone, as `head` does
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        return 0


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
    from agent.wiring import open_concierge

    concierge = open_concierge(args.registry)
    if args.request is not None:
        return REFUSED if answer(concierge, args.request, args.json) else 0
    for raw in sys.stdin.buffer:  # bytes: a line that is broken must not end the stream
        answer(concierge, raw.decode("utf-8", "surrogateescape"), args.json)
    return 0


def answer(concierge: "Concierge", request: str, as_json: bool) -> bool:
    """Print where a request goes, and log it if that is nowhere. Returns whether it is refused."""
    from agent.gaps import log_gap
    from agent.wiring import home

    route = concierge.route(request)
    if as_json:
        print(json.dumps({"card": route.card, "margin": route.margin, **asdict(route)}), flush=True)
    else:
        print(in_words(route), flush=True)
    if route.reason:
        path = home() / "gaps.jsonl"
        done = log_gap(path, route, concierge.index.embedder.model)
        print(f"{'noted in' if done else 'could not be noted in'} {path}", file=sys.stderr)
    return route.reason is not None


def in_words(route: "Route") -> str:
    notes = [f"({route.reason})"] if route.reason else []
    notes += [] if route.calibrated else ["(uncalibrated: nothing is refused)"]
    said = ", ".join(f"{name} {value:.2f}" for name, value in route.readings.items())
    rows = [f"\n  {one.score:.2f}  {one.card:18}  {one.example}" for one in route.ranking]
    return " ".join([route.card or "nobody", *notes]) + f"  {said}" + "".join(rows)


def make_calibration(args: argparse.Namespace) -> int:
    from agent.rows import read_rows
    from agent.wiring import calibrate

    rows = read_rows(args.rows)
    path = calibrate(args.registry, rows, accuracy=args.accuracy, refused=args.refused)
    print(path.read_text(encoding="utf-8"), end="")
    print(f"from {len(rows)} rows, written to {os.path.relpath(path)}", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
