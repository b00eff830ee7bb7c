"""Publishing the line: its tags and a branch `line` go to a remote. A tag there never moves.

Git runs with the user's own configuration here, since the remote needs his credentials. The
pre-push hook alone is left out: what is pushed is the line, not his work.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
from pathlib import Path

from workshop.errors import DONE, USAGE, Problem
from workshop.line import Line, ensure_built
from workshop.repo import Repo, open_repo


def add_parsers(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """The command publish."""
    parser = subparsers.add_parser("publish", help="maintainers: push the tags and branch line")
    parser.add_argument("remote", help="a remote's name or address")
    parser.add_argument("--as", dest="name", metavar="edition-K", help="beside older editions")
    parser.add_argument("--dry-run", action="store_true", help="say what would be pushed")
    parser.set_defaults(run=lambda args: publish(args.root, args))


def publish(root: Path, args: argparse.Namespace) -> int:
    """Push the line in one transaction, or refuse before anything is pushed."""
    repo = open_repo(root)
    if repo.sha256:
        raise Problem(
            "this is a SHA-256 repository: its commits are not those of line.lock.",
            "Publish from an ordinary clone.",
        )
    line = ensure_built(repo)
    if not line.stages:
        raise Problem("the line has no stage yet.", "Begin it with: just edit --insert 1 SLUG.")
    if args.name is not None and args.name != f"edition-{line.edition}":
        raise Problem(
            f"--as {args.name}: line.lock is edition {line.edition}.",
            f"Say: --as edition-{line.edition}",
            USAGE,
        )
    wanted = wanted_refs(line, args.name)
    there, annotated = remote_refs(repo, args.remote)
    remote = masked(args.remote)
    refuse_moves(line, wanted, {**there, **annotated}, args.name, remote)
    branch = next(ref for ref in wanted if ref.startswith("refs/heads/"))
    refuse_rewind(repo, branch, there.get(branch), wanted[branch], args.name, line.edition, remote)
    known = {**there, **annotated}
    todo = {ref: commit for ref, commit in wanted.items() if known.get(ref) != commit}
    for ref in sorted(set(there) - set(wanted)):
        if ref.startswith("refs/tags/stage-") and not args.name:
            print(f"{remote} also has {ref[10:]}, which this line has not.", file=sys.stderr)
    if not todo:
        print(f"{remote} has edition {line.edition} already: nothing to push.")
        return DONE
    for ref, commit in todo.items():
        verb = "would push" if args.dry_run else "push"
        print(f"{verb} {commit[:12]} {ref.removeprefix('refs/')}", flush=True)
    if args.dry_run:
        return DONE
    print("Your git settings are used, without a pre-push hook.", file=sys.stderr, flush=True)
    words = ("push", "--atomic", "--no-follow-tags", "--recurse-submodules=no", "--no-verify")
    refspecs = [f"{commit}:{ref}" for ref, commit in todo.items()]
    if users_git(repo, *words, "--", args.remote, *refspecs, capture=False).returncode:
        raise Problem(
            f"git push to {remote} failed: its words are above. Nothing was pushed.",
            "Mend that, then publish again.",
        )
    print(f"edition {line.edition} is on {remote}: {len(line.stages)} stages.")
    return DONE


def wanted_refs(line: Line, name: str | None) -> dict[str, str]:
    """The refs that the remote should have, with the lock's ids."""
    front = f"refs/tags/{name}/" if name else "refs/tags/"
    refs = {f"{front}{stage.tag}": stage.commit for stage in line.stages}
    branch = f"refs/heads/line-{name}" if name else "refs/heads/line"
    return {**refs, branch: line.stages[-1].commit}


def remote_refs(repo: Repo, remote: str) -> tuple[dict[str, str], dict[str, str]]:
    """The remote's refs, and what its annotated tags point at."""
    done = users_git(repo, "ls-remote", "--", remote)
    if done.returncode:
        said = masked(done.stderr.decode(errors="replace").strip())
        raise Problem(f"{masked(remote)} cannot be read: {said}", "See: git remote -v")
    there, annotated = {}, {}
    for row in done.stdout.decode(errors="replace").splitlines():
        commit, ref = row.split("\t", 1)
        if ref.endswith("^{}"):
            annotated[ref[:-3]] = commit
        else:
            there[ref] = commit
    return there, annotated


def refuse_moves(
    line: Line, wanted: dict[str, str], there: dict[str, str], name: str | None, remote: str
) -> None:
    """Problem where a tag is there with another id: whoever has it would keep the old one."""
    taken = [
        f"{ref[10:]} ({there[ref][:12]} there, {commit[:12]} here)"
        for ref, commit in wanted.items()
        if ref.startswith("refs/tags/") and there.get(ref, commit) != commit
    ]
    if taken:
        mend = (
            "A published edition stays as it is. Save the change as a new edition."
            if name
            else f"Publish beside them: --as edition-{line.edition}"
        )
        raise Problem(f"{remote} has other tags of that name: {', '.join(taken)}.", mend)


def refuse_rewind(
    repo: Repo, branch: str, there: str | None, commit: str, name: str | None, edition: int,
    remote: str,
) -> None:  # fmt: skip
    """Problem where the branch would not only go forward."""
    if there is None or there == commit:
        return
    if repo.git.run("merge-base", "--is-ancestor", there, commit).returncode:
        mend = (
            "Save the change as a new edition."
            if name
            else f"Publish beside it: --as edition-{edition}"
        )
        raise Problem(
            f"the branch {branch[11:]} on {remote} is at {there[:12]}, which this line does not "
            "continue.",
            mend,
        )


def users_git(repo: Repo, *args: str, capture: bool = True) -> subprocess.CompletedProcess[bytes]:
    """Git as the user has it set, on this repository and without hooks."""
    local = repo.git("rev-parse", "--local-env-vars").decode().split()
    env = {name: value for name, value in os.environ.items() if name not in local}
    where = ["--git-dir", str(repo.git.git_dir)] if repo.git.git_dir else []
    return subprocess.run(
        ["git", *where, "-c", "core.hooksPath=/dev/null", *args],
        cwd=repo.root,
        env=env,
        capture_output=capture,
        check=False,
    )


def masked(text: str) -> str:
    """An address without the password in it."""
    return re.sub(r"(://[^/@\s:]*):[^/@\s]+@", r"\1:***@", text)
