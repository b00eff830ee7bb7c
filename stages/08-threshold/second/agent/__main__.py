"""The command line: python -m agent COMMAND. Answers go to stdout, all else to stderr."""

import argparse
import json
import os
import sys
from dataclasses import asdict
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
    route.add_argument("request", nargs="?", help="without one: each line of standard input")
    route.add_argument("--registry", type=Path, default=TREE / "registry", metavar="DIR")
    route.add_argument("--json", action="store_true", help="one JSON object a line and request")
    route.set_defaults(run=show_routes)
    calibrate = commands.add_parser("calibrate", help="measure when to refuse, on labelled rows")
    calibrate.add_argument("rows", type=Path, metavar="ROWS")
    calibrate.add_argument("--registry", type=Path, default=TREE / "registry", metavar="DIR")
    calibrate.add_argument("--accuracy", type=share, default=0.97, help="right, of the answered")
    calibrate.add_argument("--refused", type=share, default=0.85, help="of the rows for nobody")
    calibrate.set_defaults(run=calibrate_registry)

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


def share(text: str) -> float:
    """A number from 0 to 1, for argparse."""
    if not 0 <= float(text) <= 1:
        raise ValueError
    return float(text)


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
    lines = sys.stdin if args.request is None else [args.request]
    for request in filter(None, map(str.strip, lines)):
        route = concierge.route(request)
        if args.json:
            answer = {"card": route.card, "margin": route.margin, **asdict(route)}
            print(json.dumps(answer, ensure_ascii=False), flush=True)
            continue
        who = route.card or f"nobody ({route.reason})"
        note = "" if route.calibrated else "  (uncalibrated: nothing is refused)"
        print(f"{who}  score {route.ranking[0].score:.2f}, margin {route.margin:.2f}{note}")
        for candidate in route.ranking:
            print(f"  {candidate.score:.2f}  {candidate.card:18}  {candidate.example}", flush=True)
    return 0


def calibrate_registry(args: argparse.Namespace) -> int:
    from agent.calibration import save
    from agent.wiring import fit_rows, open_concierge

    concierge = open_concierge(args.registry)
    fitted = fit_rows(concierge, args.rows, args.accuracy, args.refused)
    path = save(args.registry, concierge.index, fitted)
    for name, value in fitted.least.items():
        print(f"least {name:8}{value:8.3f}")
    for name in ("coverage", "accuracy", "refused"):
        print(f"{name:14}{getattr(fitted, name):8.3f}")
    print(f"kept in {os.path.relpath(path)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
