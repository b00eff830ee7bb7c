"""The command line: python -m agent COMMAND. Answers go to stdout, all else to stderr."""

import argparse
import os
import sys
from pathlib import Path

from agent.errors import AgentError


def main(argv: list[str] | None = None) -> int:
    """Run one command. Returns its exit code."""
    parser = argparse.ArgumentParser(prog="python -m agent")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    tokens = commands.add_parser("tokens", help="estimate the tokens of a text")
    tokens.add_argument("text")
    tokens.set_defaults(run=count_tokens)

    card = commands.add_parser("card", help="show what a card says")
    card.add_argument("file", type=Path)
    card.set_defaults(run=show_card)

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
    names = [tool.get("name", "?") if isinstance(tool, dict) else tool for tool in card.tools]
    sys.stdout.write(
        f"{card.name}: {card.description}\n\n"
        f"tools    {' '.join(map(str, names))}\n"
        f"budget   {' '.join(f'{limit} {most}' for limit, most in vars(card.budget).items())}\n"
        "examples\n" + "".join(f"  {example}\n" for example in card.examples)
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
