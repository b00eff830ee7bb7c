"""The command line: python -m agent COMMAND. Answers go to stdout, all else to stderr."""

import argparse
import os
import sys
from pathlib import Path

from agent.errors import AgentError

REGISTRY = Path(__file__).resolve().parent.parent / "registry"


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
    validate = commands.add_parser("validate", help="judge every card in a folder")
    validate.add_argument("--registry", type=Path, default=REGISTRY, metavar="DIR")
    validate.set_defaults(run=validate_registry)

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
    from agent.validator import judge_registry

    verdicts = judge_registry(args.registry)
    bad = 0
    for path, _, errors in verdicts:
        seen = os.fsencode(os.path.relpath(path)).decode("utf-8", "backslashreplace")
        print("bad " if errors else "good", seen)
        for line, message in errors:
            print(f"       line {line}: {message}")
        bad += bool(errors)
    print(f"{len(verdicts) - bad} good, {bad} bad")
    return 1 if bad or not verdicts else 0


if __name__ == "__main__":
    sys.exit(main())
