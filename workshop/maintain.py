"""Changing the line: `edit` opens a stage as a real commit, `save` carries it through the rest.

A fix is carried forward by merging real commits, never by applying stored patches. Nothing of
main is written before the whole new line is there, and nothing of the maintainer's is removed
before it stands on a branch.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path

from workshop.errors import DONE, USAGE, Problem
from workshop.git import Git
from workshop.line import (
    LOCK,
    SLUG,
    Line,
    build,
    commit_tree,
    ensure_built,
    read_line,
)
from workshop.repo import Repo, open_repo
from workshop.series import TREE_PATHS, commits_of, make_line, patch, write_line

try:
    import fcntl
except ImportError:  # not on Windows
    fcntl = None  # type: ignore[assignment]

EDIT = Path(".edit")
STATE = EDIT / "state.json"
CARRY = EDIT / "carry"
CACHES = {"__pycache__", ".pytest_cache", ".mypy_cache", ".ruff_cache", ".hypothesis", ".venv"}
UNDER_WAY = ("rebase-merge", "rebase-apply", "MERGE_HEAD", "CHERRY_PICK_HEAD", "REVERT_HEAD")

Entry = tuple[str, str]  # a file's mode and blob


@dataclass
class Step:
    """How a stage of the new line comes about.

    how is "edited": the edit worktree's tree; "pick": the old commit `source`, carried over;
    "tree": the tree `source` as it is.
    """

    slug: str
    how: str
    source: str = ""
    old: str = ""  # the slug that it had, where it was there


@dataclass
class State:
    """An edit that is under way, as .edit/state.json keeps it."""

    request: str
    name: str
    lock: str
    edition: int
    old: list[list[str]]  # slug, tree, commit
    steps: list[Step]
    start: str = ""  # the commit that the edit worktree began at; "" where there is nothing to edit
    phase: str = "editing"  # editing, carrying, writing
    edited: str = ""  # the tree that the maintainer made of it
    done: list[str] = field(default_factory=list)  # commits of the new line, so far
    stopped: bool = False  # at a conflict, in the worktree .edit/carry
    new_edition: int = 0
    moves: list[list[str]] = field(default_factory=list)  # folders: from, to
    undo: bool = False

    @property
    def folder(self) -> Path:
        return EDIT / self.name

    @property
    def branch(self) -> str:
        return f"edit/{self.name}"


def add_parsers(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """The commands edit and save."""
    parser = subparsers.add_parser("edit", help="maintainers: open a stage to change it")
    parser.add_argument("stage", nargs="?", help="the stage to edit")
    parser.add_argument("--split", metavar="SLUG", help="edit the first half; SLUG is the second")
    parser.add_argument(
        "--insert", nargs=2, metavar=("N", "SLUG"), help="a new stage before stage N"
    )
    parser.add_argument("--drop", metavar="N", help="take a stage out")
    parser.add_argument("--move", nargs=2, metavar=("N", "M"), help="put stage N at place M")
    parser.add_argument("--rename", nargs=2, metavar=("N", "SLUG"), help="give a stage a new slug")
    parser.set_defaults(run=lambda args: edit(args.root, args))
    parser = subparsers.add_parser("save", help="maintainers: carry the edit through the line")
    parser.add_argument("--abort", action="store_true", help="give the edit up; keeps your work")
    parser.add_argument("--from", dest="ref", metavar="REF", help="adopt a branch of stage commits")
    parser.add_argument("--same-edition", action="store_true", help="keep the edition's number")
    parser.set_defaults(run=lambda args: save(args.root, args))


# --- edit ------------------------------------------------------------------------------------


def edit(root: Path, args: argparse.Namespace) -> int:
    """Open an edit. With one open: say where it is, or refuse another."""
    repo = maintainers_repo(root)
    with alone(repo):
        return edit_alone(repo, args)


def edit_alone(repo: Repo, args: argparse.Namespace) -> int:
    """An edit, while no other edit and no save runs."""
    request = request_of(args)
    state = load(repo)
    if state:
        if request and request != state.request:
            raise Problem(
                f"an edit is open: {state.request}.", "Finish it with: just save, or: --abort."
            )
        if state.start and state.phase == "editing":
            open_worktree(repo, state.folder, state.branch, state.start)
        say(where(state))
        return DONE
    if not request:
        raise Problem("no stage is named, and no edit is open.", "Say: just edit 5.", USAGE)
    line = maintained_line(repo, empty=bool(args.insert))
    ensure_built(repo, line)
    state = plan(repo, line, args, request)
    if state.start:
        refuse_leftovers(repo, state)
    ignore_edits(repo)
    store(repo, state)
    if state.start:
        open_worktree(repo, state.folder, state.branch, state.start)
    say(where(state))
    return DONE


def request_of(args: argparse.Namespace) -> str:
    """What is asked for, in one line; Problem where it is more than one thing."""
    asked = []
    for name in ("insert", "move", "rename"):
        words = getattr(args, name, None)
        if words:
            asked.append(f"edit --{name} {' '.join(words)}")
    if getattr(args, "drop", None) is not None:
        asked.append(f"edit --drop {args.drop}")
    if getattr(args, "stage", None) is not None:
        split = f" --split {args.split}" if args.split else ""
        asked.append(f"edit {args.stage}{split}")
    elif getattr(args, "split", None):
        raise Problem("--split needs the stage to split.", "Say: just edit 5 --split SLUG.", USAGE)
    if len(asked) > 1:
        raise Problem(f"one edit at a time: {', '.join(asked)}.", "Do the first, save it.", USAGE)
    return asked[0] if asked else ""


def plan(repo: Repo, line: Line, args: argparse.Namespace, request: str) -> State:
    """The steps that give the new line, and where the edit begins."""
    picks = [Step(stage.slug, "pick", stage.commit, stage.slug) for stage in line.stages]
    steps = list(picks)
    start = ""
    if args.insert:
        number = place(line, args.insert[0], len(line.stages) + 1)
        slug = new_slug(line, args.insert[1])
        start = line.stages[number - 2].commit if number > 1 else empty_commit(repo)
        steps.insert(number - 1, Step(slug, "edited"))
        name = f"{number:02d}-{slug}"
    elif args.drop is not None:
        stage = line.resolve(args.drop)
        del steps[stage.number - 1]
        name = stage.folder
    elif args.move:
        stage = line.resolve(args.move[0])
        number = place(line, args.move[1], len(line.stages))
        if number == stage.number:
            raise Problem(f"{stage.folder} is stage {number} already.", "", USAGE)
        steps.insert(number - 1, steps.pop(stage.number - 1))
        name = stage.folder
    elif args.rename:
        stage = line.resolve(args.rename[0])
        slug = new_slug(line, args.rename[1])
        steps[stage.number - 1] = Step(slug, "pick", stage.commit, stage.slug)
        name = stage.folder
    else:
        stage = line.resolve(args.stage)
        start, name = stage.commit, stage.folder
        steps[stage.number - 1] = Step(stage.slug, "edited", "", stage.slug)
        if args.split:
            steps.insert(stage.number, Step(new_slug(line, args.split), "tree", stage.tree))
    if len(steps) > 99:
        raise Problem("a line has at most 99 stages.", "Join two first.")
    return State(request, name, lock_sum(repo), line.edition, old_of(line), steps, start)


def place(line: Line, word: str, last: int) -> int:
    """A place in the line, 1 to `last`; a stage's name stands for its place."""
    if re.fullmatch(r"0?[1-9]|[1-9][0-9]", word.strip()):
        number = int(word)
    else:
        number = line.resolve(word).number
    if number > last:
        raise Problem(f"there is no place {number}.", f"Places are 1 to {last}.", USAGE)
    return number


def new_slug(line: Line, slug: str) -> str:
    """A slug that no stage has, and that no stage's number or tag can be taken for."""
    if not SLUG.fullmatch(slug) or re.match(r"[0-9]+(-|$)|stage(-|$)", slug):
        raise Problem(
            f"{slug!r} is no slug.",
            "Use a-z, 0-9 and single hyphens; no number and no 'stage' in front.",
            USAGE,
        )
    if any(stage.slug == slug for stage in line.stages):
        raise Problem(f"the slug {slug} is in use.", "Choose another.", USAGE)
    return slug


def where(state: State) -> str:
    """Where an open edit stands, and what comes next."""
    if state.phase == "writing":
        return f"{state.request}: a save was cut off. Next: just save"
    if state.stopped:
        return f"{state.request}: stopped at a conflict. Resolve in {CARRY.as_posix()}, {NEXT}"
    if not state.start:
        return f"{state.request}: nothing to edit. Next: just save, or: just save --abort"
    return f"{state.request}: open in {state.folder.as_posix()}. Next: just save"


NEXT = "then just save, or: just save --abort"


def refuse_leftovers(repo: Repo, state: State) -> None:
    """Neither a folder nor a branch of that name may be there: it would be somebody's work."""
    if (repo.root / state.folder).exists():
        raise Problem(
            f"{state.folder.as_posix()} is in the way.", "Move it somewhere else, then run again."
        )
    if repo.git.line("rev-parse", "--verify", "-q", f"refs/heads/{state.branch}"):
        raise Problem(
            f"the branch {state.branch} is there already.",
            f"Keep it under another name: git branch -m {state.branch} my-{state.name}",
        )


# --- save ------------------------------------------------------------------------------------


def save(root: Path, args: argparse.Namespace) -> int:
    """Carry the open edit through the line and write it back; or go on where it stopped."""
    repo = maintainers_repo(root)
    with alone(repo):
        return save_alone(repo, args)


@contextmanager
def alone(repo: Repo) -> Iterator[None]:
    """One edit or save at a time: two would write over each other. Ends with the process."""
    if fcntl is None:
        yield
        return
    with (repo.common_dir / "tiny-edit.lock").open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise Problem("another edit or save is running.", "Let it end first.") from None
        yield


def save_alone(repo: Repo, args: argparse.Namespace) -> int:
    """A save, while no other save and no edit runs."""
    state = load(repo)
    if args.abort:
        return abort(repo, state)
    if args.ref:
        if state:
            raise Problem(f"an edit is open: {state.request}.", "just save, or: just save --abort.")
        state = adopt(repo, args.ref)
    if state is None:
        raise Problem("no edit is open.", "Open one with: just edit N.", USAGE)
    if state.phase == "writing":
        return finish(repo, state)
    if lock_sum(repo) != state.lock:
        raise Problem(
            f"{LOCK.as_posix()} has changed since the edit began.",
            "Put it back, or: just save --abort (which keeps your work on a branch).",
        )
    if state.start:
        take_edit(repo, state)
    if not (state.request.startswith("edit") and unchanged(repo, state)):
        check_main(repo, state, {})
    carry(repo, state)
    return settle(repo, state, args.same_edition)


def adopt(repo: Repo, ref: str) -> State:
    """The state for `save --from`: every stage's tree as the branch has it."""
    line = maintained_line(repo, empty=True)
    commit = repo.git.line("rev-parse", "--verify", "-q", "--end-of-options", f"{ref}^{{commit}}")
    if not commit:
        raise Problem(f"{ref!r} is no commit.", "Name a branch of 'NN slug' commits.", USAGE)
    have = {stage.slug for stage in line.stages}
    steps = [
        Step(slug, "tree", tree, slug if slug in have else "")
        for slug, tree in commits_of(repo, commit)
    ]
    ignore_edits(repo)
    return State(f"save --from {ref}", "adopted", lock_sum(repo), line.edition, old_of(line), steps)


def take_edit(repo: Repo, state: State) -> None:
    """Commit what the edit worktree holds. A carry that was made of another state starts again."""
    git = open_worktree(repo, state.folder, state.branch, state.start)
    head = git.line("symbolic-ref", "-q", "HEAD")
    if head != f"refs/heads/{state.branch}":
        raise Problem(
            f"{state.folder.as_posix()} is not on the branch {state.branch}.",
            f"Bring it back: git -C {state.folder.as_posix()} switch {state.branch}",
        )
    for name in UNDER_WAY:
        if (git.root / git.line("rev-parse", "--git-path", name)).exists():
            raise Problem(
                f"a merge, rebase or pick is under way in {state.folder.as_posix()}.",
                "Finish it or give it up there, then just save.",
            )
    tree = stage_all(git)
    if tree != git.line("rev-parse", "HEAD^{tree}"):
        number, slug = state.name.split("-", 1)
        git("commit", "--quiet", "--no-verify", "--allow-empty", "-m", f"{number} {slug}")
    if state.phase == "carrying" and tree != state.edited:
        kept = keep_carry(repo, state)
        also = f" What stood in {CARRY.as_posix()} is on {kept}." if kept else ""
        warn(f"the edit has changed: it is carried again from the start.{also}")
        state.done, state.stopped = [], False
    state.edited, state.phase = tree, "carrying"
    store(repo, state)


def unchanged(repo: Repo, state: State) -> bool:
    """Whether the edit is of one stage and left it as it was."""
    slugs = [step.slug for step in state.steps]
    trees = {slug: tree for slug, tree, _ in state.old}
    edited = [step.slug for step in state.steps if step.how == "edited"]
    return (
        slugs == [slug for slug, _, _ in state.old]
        and bool(edited)
        and trees[edited[0]] == state.edited
    )


def stage_all(git: Git) -> str:
    """`git add -A`, and the tree that it gives. Ignored files stay out."""
    git(*users_ignores(git), "add", "-A", "--", ".")
    for row in git("ls-files", "-s", "-z").split(b"\0"):
        if row.startswith(b"160000"):
            name = os.fsdecode(row.split(b"\t", 1)[1])
            raise Problem(
                f"{git.root.name}/{name} is a repository of its own.", "Move it out, then save."
            )
    return git("write-tree").decode().strip()


def users_ignores(git: Git) -> list[str]:
    """What the user ignores everywhere (.DS_Store, an editor's files) belongs to no stage."""
    env = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    words = ["git", "config", "--path", "core.excludesFile"]
    done = subprocess.run(words, cwd=git.root, env=env, capture_output=True, check=False)
    path = os.fsdecode(done.stdout.removesuffix(b"\n"))
    if not path:
        home = os.environ.get("XDG_CONFIG_HOME") or os.path.expanduser("~/.config")
        path = os.path.join(home, "git", "ignore")
    return ["-c", f"core.excludesFile={path}"]


def carry(repo: Repo, state: State) -> None:
    """Make the new line's commits, one by one. Problem at a conflict; run again to go on."""
    if state.request.startswith("edit"):
        state.phase = "carrying"
        store(repo, state)
    for number in range(len(state.done) + 1, len(state.steps) + 1):
        step = state.steps[number - 1]
        tip = state.done[-1] if state.done else None
        if step.how == "edited":
            tree = state.edited
        elif step.how == "tree":
            tree = step.source
        else:
            tree = pick(repo, state, step, tip or empty_commit(repo), number)
        state.done.append(commit_tree(repo.git, number, step.slug, tree, tip))
        state.stopped = False
        if step.how == "pick":
            repo.git("update-ref", "refs/tiny/edit/carried", state.done[-1])
            store(repo, state)


def pick(repo: Repo, state: State, step: Step, tip: str, number: int) -> str:
    """The tree of an old commit, carried onto `tip` by a three-way merge."""
    theirs = tree_of(repo, step.source)
    parent = repo.git.line("rev-parse", "--verify", "-q", f"{step.source}^")
    base = tree_of(repo, parent) if parent else empty_tree(repo)
    ours = tree_of(repo, tip)
    if not state.stopped and ours in (base, theirs):
        return theirs
    name = f"{number:02d}-{step.slug}"
    git = open_worktree(repo, CARRY, "", tip)
    picking = (git.root / git.line("rev-parse", "--git-path", "CHERRY_PICK_HEAD")).exists()
    if state.stopped and (picking or git.line("rev-parse", "HEAD") != tip):
        refuse_unresolved(git, name, step.source)
        tree = stage_all(git)
        git.run("cherry-pick", "--quit")
        return tree
    git("reset", "--quiet", "--hard", tip)
    done = git.run("cherry-pick", "--allow-empty", "--keep-redundant-commits", step.source)
    if done.returncode == 0:
        return git.line("rev-parse", "HEAD^{tree}")
    files = unmerged(git)
    if not files:
        said = done.stderr.decode(errors="replace").strip()
        raise Problem(f"stage {name} could not be carried over: {said}")
    state.stopped = True
    store(repo, state)
    raise Problem(
        f"stage {name} conflicts in: {', '.join(files)}.",
        f"resolve in {CARRY.as_posix()}, {NEXT}",
    )


def unmerged(git: Git) -> dict[str, dict[int, str]]:
    """The files in conflict, with the blobs of their sides (1 base, 2 ours, 3 theirs)."""
    found: dict[str, dict[int, str]] = {}
    for row in filter(None, git("ls-files", "-u", "-z").split(b"\0")):
        meta, name = row.split(b"\t", 1)
        _, blob, side = meta.decode().split()
        found.setdefault(os.fsdecode(name), {})[int(side)] = blob
    return found


def refuse_unresolved(git: Git, name: str, source: str) -> None:
    """Markers must be gone; where a conflict leaves none, the maintainer must have decided."""
    for file in marked(git, source):
        raise Problem(
            f"stage {name}: {file} still has conflict markers.",
            f"resolve in {CARRY.as_posix()}, {NEXT}",
        )
    for file, sides in unmerged(git).items():
        path = git.root / file
        plain = path.is_file() and not path.is_symlink()
        data = path.read_bytes() if plain else b""
        if re.search(rb"^(<{7} |>{7} )", data, re.MULTILINE):
            why = "still has conflict markers"
        elif not plain or not {2, 3} <= set(sides) or data == git("cat-file", "blob", sides[2]):
            why = "is not decided: git add it there, or git rm it"
        else:
            continue
        raise Problem(f"stage {name}: {file} {why}.", f"resolve in {CARRY.as_posix()}, {NEXT}")


def marked(git: Git, source: str) -> list[str]:
    """Files with the closing mark of this very pick, also where `git add` took them as resolved."""
    closing = re.compile(rb"^>{7} " + source[:7].encode(), re.MULTILINE)
    out = git("ls-files", "-m", "-o", "--exclude-standard", "-z")
    out += git("diff", "--name-only", "--no-relative", "-z", "HEAD")
    names = sorted({os.fsdecode(name) for name in out.split(b"\0") if name})
    paths = [(name, git.root / name) for name in names]
    return [
        name
        for name, path in paths
        if path.is_file() and not path.is_symlink() and closing.search(path.read_bytes())
    ]


def settle(repo: Repo, state: State, same_edition: bool) -> int:
    """The new line is there: look that it can be written, then write it."""
    pairs = [
        (step.slug, tree_of(repo, commit))
        for step, commit in zip(state.steps, state.done, strict=True)
    ]
    line = make_line(repo, pairs, state.edition)
    ids = [stage.commit for stage in line.stages]
    before = [commit for _, _, commit in state.old]
    if ids == before:
        close(repo, state)
        say("Nothing changed: nothing is written.")
        return DONE
    moved = ids[: len(before)] != before
    state.new_edition = state.edition + (moved and not same_edition)
    state.moves = folder_moves(state)
    check_main(repo, state, files_of(repo, line.stages[-1].tree if line.stages else None))
    check_moves(repo, state)
    check_patches(repo, state, line)
    if ids:
        repo.git("update-ref", "refs/tiny/edit/carried", ids[-1])
    state.phase = "writing"
    store(repo, state)
    return finish(repo, state)


def finish(repo: Repo, state: State) -> int:
    """Write it all. Each step may be done twice, so a save that was cut off is run again."""
    old = old_line(repo, state)
    new = make_line(
        repo,
        [(s.slug, tree_of(repo, c)) for s, c in zip(state.steps, state.done, strict=True)],
        state.new_edition,
    )
    target, moves = new, state.moves
    if state.undo:
        target, moves = old, [[there, here] for here, there in reversed(state.moves)]
    wanted = files_of(repo, target.stages[-1].tree if target.stages else None)
    check_main(repo, state, wanted)
    for here, there in moves:
        move_folder(repo.root, Path(here), Path(there))
    write_line(repo, target)
    write_main(repo, state, wanted)
    build(repo, target)
    if state.undo:
        remove_patches(
            repo, {stage.folder for stage in new.stages} - {s.folder for s in old.stages}
        )
        move_tags(repo, new, old)
        return DONE
    notes = move_tags(repo, old, new)
    report(repo, state, old, new, notes)
    close(repo, state)
    return DONE


def report(repo: Repo, state: State, old: Line, new: Line, notes: list[str]) -> None:
    """Say what moved, what to look at, and how the commits differ."""
    had = {stage.slug: stage for stage in old.stages}
    kept = set()
    for step, stage in zip(state.steps, new.stages, strict=True):
        was = had.get(step.old)
        kept.add(step.old)
        if was is None:
            say(f"{stage.folder}: new, {stage.commit[:12]}")
        elif was.commit != stage.commit:
            name = stage.folder if was.folder == stage.folder else f"{was.folder} -> {stage.folder}"
            say(f"{name}: {was.commit[:12]} -> {stage.commit[:12]}")
        above = new.before(stage)
        if stage.tree == (above.tree if above else empty_tree(repo)):
            warn(f"warning: stage {stage.folder} changes nothing.")
    for here, there in state.moves:
        if there.startswith(EDIT.name):
            say(f"{Path(here).name}: dropped; its folder is in {there}")
    for note in notes:
        warn(note)
    for name in strangers(repo, new):
        warn(f"left alone, not in the line: {name}")
    say(f"edition {new.edition}" + (f" (was {old.edition})" if new.edition != old.edition else ""))
    if old.stages and new.stages:
        first = next(
            (i for i, (a, b) in enumerate(zip(old.stages, new.stages, strict=False))
             if a.commit != b.commit),
            min(len(old.stages), len(new.stages)),
        )  # fmt: skip
        base = [f"^{old.stages[first - 1].commit}"] if first else []
        ends = old.stages[-1].commit, new.stages[-1].commit
        if base:
            words = [f"{base[0][1:]}..{end}" for end in ends]
        else:
            words = [f"{ends[1]}..{ends[0]}", f"{ends[0]}..{ends[1]}"]
        say(f"git range-diff {' '.join(words)}")
        done = repo.git.run("range-diff", "--no-color", *words)
        sys.stdout.write(done.stdout.decode(errors="replace"))
        sys.stdout.flush()


# --- abort and the end -----------------------------------------------------------------------


def abort(repo: Repo, state: State | None) -> int:
    """Give the edit up. What the maintainer made stands on a branch afterwards."""
    if state is None:
        raise Problem("no edit is open.", "There is nothing to abort.", USAGE)
    kept = []
    if state.phase == "writing":
        state.undo = True
        store(repo, state)
        finish(repo, state)
    if state.start:
        kept += keep_edit(repo, state)
    carried = keep_carry(repo, state)
    if carried:
        kept.append(carried)
    close(repo, state)
    say(f"{state.request}: given up. The line is as it was.")
    for name in kept:
        say(f"your work is on the branch {name}")
    return DONE


def keep_edit(repo: Repo, state: State) -> list[str]:
    """Put the edit worktree's state on a rescue branch, where it differs from the start."""
    tips = []
    tip = repo.git.line("rev-parse", "--verify", "-q", f"refs/heads/{state.branch}")
    if tip and tip != state.start:
        tips.append(tip)
    if (repo.root / state.folder).is_dir():
        git = open_worktree(repo, state.folder, state.branch, state.start)
        head = git.line("rev-parse", "HEAD")
        tree = stage_all(git)
        if tree != git.line("rev-parse", "HEAD^{tree}"):
            head = snapshot(git, tree, head)
        if head != state.start:
            tips = [head, *[one for one in tips if not is_ancestor(repo, one, head)]]
    return [rescue(repo, f"edit-{state.name}", tip) for tip in tips]


def keep_carry(repo: Repo, state: State) -> str:
    """Put a conflict that was being resolved on a rescue branch. Its name, or ""."""
    if not (state.stopped and (repo.root / CARRY).is_dir()):
        return ""
    git = open_worktree(repo, CARRY, "", "HEAD")
    tree, head = stage_all(git), git.line("rev-parse", "HEAD")
    git.run("cherry-pick", "--quit")
    return rescue(repo, f"carry-{state.name}", snapshot(git, tree, head))


def snapshot(git: Git, tree: str, parent: str) -> str:
    return git("commit-tree", tree, "-p", parent, "-m", "work in progress").decode().strip()


def rescue(repo: Repo, name: str, commit: str) -> str:
    """A new branch rescue/NAME-TIME at a commit."""
    stamp = time.strftime("%Y%m%d-%H%M%S", time.gmtime())
    for more in ("", *(f"-{count}" for count in range(2, 100))):
        branch = f"rescue/{name}-{stamp}{more}"
        if not repo.git.line("rev-parse", "--verify", "-q", f"refs/heads/{branch}"):
            break
    repo.git("update-ref", f"refs/heads/{branch}", commit, "")
    return branch


def is_ancestor(repo: Repo, one: str, other: str) -> bool:
    return repo.git.run("merge-base", "--is-ancestor", one, other).returncode == 0


def close(repo: Repo, state: State) -> None:
    """Remove the edit's worktrees, branch and state: what they held is in the line or rescued."""
    if state.start and (repo.root / state.folder).is_dir():
        git = open_worktree(repo, state.folder, state.branch, state.start)
        if not state.undo and state.edited and stage_all(git) != state.edited:
            late = snapshot(git, stage_all(git), git.line("rev-parse", "HEAD"))
            warn(f"changed while saving: see {rescue(repo, f'edit-{state.name}', late)}")
        keep_ignored(repo, git, state.name)
    if (repo.root / CARRY).is_dir():
        keep_ignored(repo, open_worktree(repo, CARRY, "", "HEAD"), "carry")
    for folder in (state.folder, CARRY):
        if (repo.root / folder / ".git").is_file():
            repo.git("worktree", "remove", "--force", "--force", str(repo.root / folder))
    repo.git("worktree", "prune")
    updates = ""
    tip = repo.git.line("rev-parse", "--verify", "-q", f"refs/heads/{state.branch}")
    if state.start and tip:
        if tip != state.start:
            stamp = time.strftime("%Y%m%d-%H%M%S", time.gmtime())
            updates += f"update refs/tiny/old-edits/{state.name}-{stamp} {tip}\n"
        updates += f"delete refs/heads/{state.branch} {tip}\n"
    if repo.git.line("rev-parse", "--verify", "-q", "refs/tiny/edit/carried"):
        updates += "delete refs/tiny/edit/carried\n"
    repo.git("update-ref", "--stdin", input=updates.encode())
    (repo.root / STATE).unlink(missing_ok=True)
    if not any((repo.root / EDIT).iterdir()):
        (repo.root / EDIT).rmdir()


def keep_ignored(repo: Repo, git: Git, name: str) -> None:
    """Ignored files are in no commit, and a worktree's end deletes them: move all but caches."""
    words = ("ls-files", "-o", "-i", "--exclude-standard", "--directory", "-z")
    out = git(*users_ignores(git), *words)
    for file in [os.fsdecode(row).rstrip("/") for row in out.split(b"\0") if row]:
        if set(Path(file).parts) & CACHES or file.endswith((".pyc", "uv.lock")):
            continue
        target = fresh(repo.root / EDIT / "kept" / name) / file
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.move(git.root / file, target)
        warn(f"kept, because git ignores it: {target.relative_to(repo.root).as_posix()}")


def fresh(path: Path) -> Path:
    """A path that is not taken yet: `path`, or `path` with a number."""
    for count in range(2, 1000):
        if not path.exists():
            return path
        path = path.with_name(f"{path.name.split('~')[0]}~{count}")
    return path


# --- worktrees and state ---------------------------------------------------------------------


def open_worktree(repo: Repo, folder: Path, branch: str, start: str) -> Git:
    """The worktree in `folder`, made where it is missing: on `branch`, or detached where ""."""
    path = repo.root / folder
    git = Git(path)
    if path.is_dir():
        top = git.line("rev-parse", "--show-toplevel")
        if not (top and os.path.samefile(top, path)):
            repo.git.run("worktree", "repair", str(path))
            top = git.line("rev-parse", "--show-toplevel")
        if top and os.path.samefile(top, path):
            return git
        raise Problem(
            f"{folder.as_posix()} is no worktree of this repository.",
            "Move it somewhere else, then run this again.",
        )
    repo.git("worktree", "prune")
    if not branch:
        where = ["--detach", str(path), start]
    elif repo.git.line("rev-parse", "--verify", "-q", f"refs/heads/{branch}"):
        where = [str(path), branch]
    else:
        where = ["-b", branch, "--no-track", str(path), start]
    repo.git("worktree", "add", "--quiet", "--force", *where)
    return git


def maintainers_repo(root: Path) -> Repo:
    repo = open_repo(root)
    if repo.sha256:
        raise Problem(
            "this is a SHA-256 repository: the ids of line.lock are SHA-1.",
            "Change the line in an ordinary clone.",
        )
    return repo


def maintained_line(repo: Repo, empty: bool) -> Line:
    """The line; where the course has not begun, an empty one."""
    begun = list((repo.root / "stages").glob("*/change.patch"))
    if empty and not (repo.root / LOCK).exists() and not begun:
        return Line(1, ())
    return read_line(repo.root)


def old_of(line: Line) -> list[list[str]]:
    return [[stage.slug, stage.tree, stage.commit] for stage in line.stages]


def old_line(repo: Repo, state: State) -> Line:
    return make_line(repo, [(slug, tree) for slug, tree, _ in state.old], state.edition)


def lock_sum(repo: Repo) -> str:
    path = repo.root / LOCK
    return hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else ""


def load(repo: Repo) -> State | None:
    path = repo.root / STATE
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
        found["steps"] = [Step(**step) for step in found["steps"]]
        return State(**found)
    except FileNotFoundError:
        return None
    except (ValueError, KeyError, TypeError):
        raise Problem(
            f"{STATE.as_posix()} cannot be read.",
            f"Keep what you need of {EDIT.name}/, then remove {STATE.as_posix()}.",
        ) from None


def store(repo: Repo, state: State) -> None:
    path = repo.root / STATE
    path.parent.mkdir(exist_ok=True)
    temporary = path.with_suffix(".new")
    temporary.write_text(json.dumps(asdict(state), indent=1) + "\n", encoding="utf-8")
    temporary.replace(path)


def ignore_edits(repo: Repo) -> None:
    """`git add -A` in main must not take .edit/ for a submodule, whatever .gitignore says."""
    if repo.private or repo.git.run("check-ignore", "-q", f"{EDIT.name}/x").returncode == 0:
        return
    path = repo.common_dir / "info" / "exclude"
    path.parent.mkdir(exist_ok=True)
    text = path.read_text(encoding="utf-8") if path.exists() else ""
    gap = "" if not text or text.endswith("\n") else "\n"
    path.write_text(f"{text}{gap}/{EDIT.name}/\n", encoding="utf-8")


def empty_tree(repo: Repo) -> str:
    return repo.git("mktree", input=b"").decode().strip()


def empty_commit(repo: Repo) -> str:
    """What stage 01 of an edit stands on: a commit that holds nothing."""
    return commit_tree(repo.git, 0, "nothing", empty_tree(repo), None)


def tree_of(repo: Repo, commit: str) -> str:
    return repo.git("rev-parse", f"{commit}^{{tree}}").decode().strip()


# --- what is written in main -----------------------------------------------------------------


def files_of(repo: Repo, tree: str | None) -> dict[str, Entry]:
    """The files of a tree that belong to the stages: path -> mode and blob."""
    if not tree:
        return {}
    found = {}
    out = repo.git("ls-tree", "-r", "-z", "--full-tree", tree, "--", *TREE_PATHS)
    for row in filter(None, out.split(b"\0")):
        meta, name = row.split(b"\t", 1)
        mode, _, blob = meta.decode().split()
        found[os.fsdecode(name)] = (mode, blob)
    return found


def on_disk(repo: Repo, names: set[str], convert: str) -> dict[str, Entry]:
    """The named files as the working copy has them, as git would store them."""
    there = sorted(
        name for name in names if not behind_link(repo.root, name) and is_file(repo.root / name)
    )
    with tempfile.TemporaryDirectory(prefix="tiny-main-") as scratch:
        env = {"GIT_INDEX_FILE": str(Path(scratch) / "index"), "GIT_WORK_TREE": str(repo.root)}
        words = ("-c", f"core.autocrlf={convert}", "update-index", "--add", "-z", "--stdin")
        repo.git(*words, input=b"".join(os.fsencode(name) + b"\0" for name in there), env=env)
        out = repo.git("ls-files", "-s", "-z", env=env)
    found = {}
    for row in filter(None, out.split(b"\0")):
        meta, name = row.split(b"\t", 1)
        mode, blob, _ = meta.decode().split()
        found[os.fsdecode(name)] = (mode, blob)
    return found


def is_file(path: Path) -> bool:
    return path.is_symlink() or path.is_file()


def behind_link(root: Path, name: str) -> bool:
    """Whether a folder on the way to the file is a symbolic link, or no folder at all."""
    for parent in list(Path(name).parents)[:-1]:
        path = root / parent
        if path.is_symlink() or (path.exists() and not path.is_dir()):
            return True
    return False


def check_main(repo: Repo, state: State, wanted: dict[str, Entry]) -> None:
    """Problem where main's copy of the last stage holds work that is saved nowhere."""
    old = files_of(repo, state.old[-1][1] if state.old else None)
    head = {} if repo.private else files_of(repo, repo.git.line("rev-parse", "-q", "HEAD^{tree}"))
    new = files_of(repo, tree_of(repo, state.done[-1])) if state.phase == "writing" else {}
    names = {*old, *head, *wanted, *new}
    known = [old, head, wanted, new]
    dirty, blocked = [], []
    disk = on_disk(repo, names, "false")
    loose = on_disk(repo, names, "input")
    for name in sorted(names):
        path = repo.root / name
        if name in wanted and (behind_link(repo.root, name) or path.is_dir()):
            if not will_be_free(repo.root, name, set(old) | set(new), wanted):
                blocked.append(name)
            continue
        tracked = any(name in files for files in (old, head, new))
        if disk.get(name) is None:
            # Gone from disk: an uncommitted deletion, unless some state lacks the file too.
            expected = [files for files in (old, head) if files or not tracked]
            gone = all(name in files for files in expected) and name not in new
            if tracked and gone and state.phase != "writing":
                dirty.append(f"{name} (deleted)")
            continue
        if not any(files.get(name) in (disk[name], loose.get(name)) for files in known):
            (dirty if tracked else blocked).append(name)
    if blocked:
        raise Problem(
            f"your own files are in the way of the line's: {', '.join(blocked)}.",
            "Move them somewhere else, then just save. Nothing is written yet.",
        )
    if dirty:
        raise Problem(
            f"main holds changes that are committed nowhere: {', '.join(dirty)}.",
            "Commit them, or bring them into the edit and restore them (git checkout -- FILE), "
            "then just save. Nothing is written yet.",
        )


def will_be_free(root: Path, name: str, ours: set[str], wanted: dict[str, Entry]) -> bool:
    """Whether what stands in a file's way is the line's own, and goes away with this save."""
    for parent in list(Path(name).parents)[:-1]:
        path = root / parent
        if path.is_symlink() or (path.exists() and not path.is_dir()):
            return parent.as_posix() in ours and parent.as_posix() not in wanted
    for folder, _, files in os.walk(root / name):
        for file in files:
            inside = (Path(folder) / file).relative_to(root).as_posix()
            if inside not in ours or inside in wanted:
                return False
    return True


def write_main(repo: Repo, state: State, wanted: dict[str, Entry]) -> None:
    """Bring main's copy to the last stage. Only the line's own files are removed."""
    ours = set(files_of(repo, state.old[-1][1] if state.old else None))
    if state.done:
        ours |= set(files_of(repo, tree_of(repo, state.done[-1])))
    for name in sorted(ours - set(wanted)):
        path = repo.root / name
        if not behind_link(repo.root, name) and is_file(path):
            path.unlink()
            remove_empty(repo.root, path.parent)
    disk = on_disk(repo, set(wanted), "false")
    loose = on_disk(repo, set(wanted), "input")
    for name, (mode, blob) in wanted.items():
        if (mode, blob) in (disk.get(name), loose.get(name)):
            continue
        data = repo.git("cat-file", "blob", blob)
        path = repo.root / name
        if path.is_dir() and not path.is_symlink():
            for folder, _, _ in os.walk(path, topdown=False):
                os.rmdir(folder)
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary = repo.root / EDIT / "file.new"
        temporary.unlink(missing_ok=True)
        if mode == "120000":
            temporary.symlink_to(os.fsdecode(data))
        else:
            temporary.write_bytes(data)
            if mode == "100755":
                temporary.chmod(temporary.stat().st_mode | 0o111)
        temporary.replace(path)


def remove_empty(root: Path, folder: Path) -> None:
    """Remove a folder and those above it, as far as they are empty."""
    while folder != root and not any(folder.iterdir()):
        folder.rmdir()
        folder = folder.parent


def strangers(repo: Repo, line: Line) -> list[str]:
    """Files in the stages' paths that are not the line's: the user's own."""
    if repo.private:
        return []
    last = set(files_of(repo, line.stages[-1].tree if line.stages else None))
    out = repo.git("ls-files", "-c", "-o", "--exclude-standard", "-z", "--", *TREE_PATHS)
    names = {os.fsdecode(name) for name in out.split(b"\0") if name}
    return sorted(name for name in names - last if is_file(repo.root / name))


def folder_moves(state: State) -> list[list[str]]:
    """Where the folders in stages/ go: a lesson follows its stage; a dropped one is put aside."""
    moves, kept = [], set()
    numbers = {slug: number for number, (slug, _, _) in enumerate(state.old, 1)}
    for number, step in enumerate(state.steps, 1):
        if step.old:
            kept.add(step.old)
            here, there = f"{numbers[step.old]:02d}-{step.old}", f"{number:02d}-{step.slug}"
            if here != there:
                moves.append([f"stages/{here}", f"stages/{there}"])
    stamp = time.strftime("%Y%m%d-%H%M%S", time.gmtime())
    for slug, number in numbers.items():
        if slug not in kept:
            name = f"{number:02d}-{slug}"
            moves.append([f"stages/{name}", f"{EDIT.name}/dropped/{name}-{stamp}"])
    return moves


def check_moves(repo: Repo, state: State) -> None:
    """Problem where a folder would land on files that are there already."""
    for here, there in state.moves:
        for path in (repo.root / there).rglob("*"):
            name = path.relative_to(repo.root / there)
            twin = repo.root / here / name
            both_folders = path.is_dir() and twin.is_dir()
            if twin.exists() and not both_folders and name.as_posix() != "change.patch":
                raise Problem(
                    f"{there}/{name.as_posix()} is in the way of the one in {here}.",
                    "Move it somewhere else, then just save. Nothing is written yet.",
                )


def check_patches(repo: Repo, state: State, new: Line) -> None:
    """Problem where a patch was changed by hand: writing the line would lose that."""
    known: dict[str, list[bytes]] = {}
    for line in (old_line(repo, state), new):
        for stage in line.stages:
            above = line.before(stage)
            data = patch(repo, above.tree if above else None, stage.tree)
            known.setdefault(stage.folder, []).append(data)
    for folder, datas in known.items():
        name = f"stages/{folder}/change.patch"
        path = repo.root / name
        data = path.read_bytes() if path.is_file() else datas[0]
        # Line ends that a checkout turned (T26) are nothing of the user's own.
        if data in datas or data.replace(b"\r\n", b"\n") in datas:
            continue
        head = repo.git.run("cat-file", "blob", f"HEAD:./{name}")
        if repo.private or head.returncode or head.stdout != data:
            raise Problem(
                f"{name} was changed by hand, and saving would write over it.",
                f"Keep a copy, then: git checkout -- {name}. Nothing is written yet.",
            )


def move_folder(root: Path, here: Path, there: Path) -> None:
    """Move a folder with all that is in it; into one that is there, file by file."""
    source, target = root / here, root / there
    if not source.is_dir():
        return
    if not target.exists():
        target.parent.mkdir(parents=True, exist_ok=True)
        source.rename(target)
        return
    for path in sorted(source.iterdir()):
        if path.is_dir() and not path.is_symlink():
            move_folder(root, here / path.name, there / path.name)
        else:
            path.replace(target / path.name)
    source.rmdir()


def remove_patches(repo: Repo, folders: set[str]) -> None:
    """Remove the patches of stages that are not to be; a lesson that lies there stays."""
    for folder in folders:
        path = repo.root / "stages" / folder
        if path.is_dir():
            (path / "change.patch").unlink(missing_ok=True)
            remove_empty(repo.root, path)


def move_tags(repo: Repo, old: Line, new: Line) -> list[str]:
    """Move the tags that stood where the old lock said; name the others."""
    out = repo.git("for-each-ref", "--format=%(refname) %(objectname)", "refs/tags/stage-*")
    have = dict(row.split() for row in out.decode(errors="replace").splitlines())
    notes, updates = [], []
    wanted = {f"refs/tags/{stage.tag}": stage.commit for stage in new.stages}
    before = {f"refs/tags/{stage.tag}": stage.commit for stage in old.stages}
    for ref, at in have.items():
        if wanted.get(ref) == at or (ref not in wanted and ref not in before):
            continue
        if before.get(ref) != at:
            notes.append(f"the tag {ref[10:]} was not the line's and stays: just setup --retag")
            continue
        updates.append(f"update refs/tiny/old-tags/{ref[10:]}-{at[:12]} {at}\n")
        to = wanted.get(ref)
        updates.append(f"update {ref} {to} {at}\n" if to else f"delete {ref} {at}\n")
    repo.git("update-ref", "--stdin", input="".join(updates).encode())
    return notes


def say(text: str) -> None:
    print(text, flush=True)


def warn(text: str) -> None:
    print(text, file=sys.stderr, flush=True)
