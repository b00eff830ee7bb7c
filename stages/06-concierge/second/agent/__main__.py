"""The command line: python -m agent COMMAND. Answers go to stdout, all else to stderr."""

import argparse
import json
import os
import sys
from pathlib import Path

from agent.errors import AgentError

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
    route.add_argument("request", nargs="?", help="without it, one a line on standard input")
    route.add_argument("--registry", type=Path, default=TREE / "registry", metavar="DIR")
    route.add_argument("--json", action="store_true", help="one object a line, for machines")
    route.set_defaults(run=route_requests)

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
    for text, names in shared_examples(verdicts):
        who = " and ".join(names)
        print(f"warning: {text!r} is an example of {who}: keep it in one")
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


def route_requests(args: argparse.Namespace) -> int:
    from agent.wiring import open_concierge

    concierge = open_concierge(args.registry)
    requests = [args.request]
    if args.request is None:
        requests = [text for line in sys.stdin if (text := line.strip())]
    for route in concierge.route_all(requests):
        if args.json:
            ranking = [vars(candidate) for candidate in route.ranking]
            answer = {"request": route.request, "card": route.card, "margin": route.margin}
            print(json.dumps({**answer, "ranking": ranking}))
            continue
        score = route.ranking[0].score
        print(f"{route.card}  score {score:.2f}, margin {route.margin:.2f}")
        for near in route.ranking:
            print(f"  {near.score:.2f}  {near.card:18}  {' '.join(near.example.split())}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
