"""Trees: which one you stand in, and the stages' exact trees in `.stages/`."""

from __future__ import annotations

import json
import os
import re
import shlex
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from workshop.errors import DONE, FAILED, Problem
from workshop.git import Git
from workshop.line import Line, Stage, ensure_built
from workshop.repo import Repo, open_repo

STAGES = ".stages"
WORK = "work"
# What tools leave behind and can make again. It is nobody's work.
CACHES = {"__pycache__", ".pytest_cache", ".ruff_cache", ".mypy_cache", ".hypothesis", ".venv"}
LITTER = {".DS_Store", "Thumbs.db", "desktop.ini"}  # made by file managers


@dataclass(frozen=True)
class Tree:
    """A folder that holds an `agent/`: main's, or a stage's. Main is at the last stage."""

    folder: Path
    stage: Stage


def tree_of(root: Path, line: Line, here: Path) -> Tree:
    """The tree that `here` is in. A folder in no tree means main."""
    with_root = here.resolve()
    for home in (STAGES, WORK, ".edit"):
        base = (root / home).resolve()
        if with_root.is_relative_to(base) and with_root != base:
            folder = base / with_root.relative_to(base).parts[0]
            number, slug = re.findall(r"^(?:([0-9]+)-)?(.*)", folder.name, re.DOTALL)[0]
            for stage in line.stages:
                if stage.slug == slug:
                    return Tree(folder, stage)
            if (folder / ".git").is_file():  # of a stage that is new, or is no more
                place = min(max(int(number or len(line.stages)), 1), len(line.stages))
                return Tree(folder, line.stages[place - 1])
    return Tree(root, line.stages[-1])


def show_stage(root: Path, word: str, reset: bool, as_json: bool, yes: bool = False) -> int:
    """Lay out the exact tree of a stage. One that holds changes is never called exact."""
    repo = open_repo(root)
    line = ensure_built(repo)
    stage = line.resolve(word)
    path = root / STAGES / stage.folder
    if not has_tree(repo, path):
        add_tree(repo, path, stage)
    git = Git(path)
    changed = changes(git)
    if changed and reset:
        put_back(repo, path, stage, changed, yes)
        changed = changes(git)
    head = git.line("rev-parse", "HEAD")
    if not changed and head != stage.commit:
        keep_commits(repo, head, stage)
        git("checkout", "--quiet", "--detach", "--no-overwrite-ignore", stage.commit)
        print(
            f"{shown(root, path)} was at another commit and is brought to {stage.folder}.",
            file=sys.stderr,
        )
    exact = not changed
    if as_json:
        print(
            json.dumps(
                {"stage": stage.folder, "path": str(path), "exact": exact, "modified": changed}
            )
        )
        return DONE if exact else FAILED
    if not exact:
        print(
            f"{shown(root, path)} is modified, so it is not stage {stage.number} as it was:",
            file=sys.stderr,
        )
        for name in changed[:20]:
            print(f"  {name}", file=sys.stderr)
        print(f"  To see how: git -C {shown(root, path)} diff", file=sys.stderr)
        print(
            f"  To go back: just stage {stage.number} --reset (keeps yours on a branch)",
            file=sys.stderr,
        )
        return FAILED
    print(f"Stage {stage.number}, {stage.slug}: {shown(root, path)}")
    print(where_to(root, stage, path))
    print(f"  its change just diff {stage.number}")
    return DONE


def where_to(root: Path, stage: Stage, path: Path) -> str:
    """How to go to a tree, and then its lesson: each as it is typed after the one before."""
    page = os.path.relpath(root.resolve() / "stages" / stage.folder / "lesson.md", path.resolve())
    return f"  go there   cd {shlex.quote(shown(root, path))}\n  read it    {shlex.quote(page)}"


def work_folder(root: Path, stage: Stage) -> Path:
    """Where a stage is rebuilt. A folder that was made under another number is still the one."""
    found = sorted((root / WORK).glob(f"[0-9][0-9]-{stage.slug}"))
    return found[0] if found else root / WORK / stage.folder


def shown(root: Path, path: Path) -> str:
    """A path as it is typed from where the user stands."""
    return os.path.relpath(path, Path.cwd())


def worktrees(repo: Repo) -> dict[Path, dict[str, str]]:
    """The repository's worktrees: their paths, and what git says of each."""
    out = repo.git("worktree", "list", "--porcelain", "-z")
    found = {}
    for block in out.decode(errors="surrogateescape").split("\0\0"):
        rows = dict(row.partition(" ")[::2] for row in block.split("\0") if row)
        if "worktree" in rows:
            found[Path(rows["worktree"]).resolve()] = rows
    return found


def has_tree(repo: Repo, path: Path) -> bool:
    """Whether a worktree of this repository stands at `path`, mended where the folder has moved."""
    if not path.exists():
        return False
    if path.is_dir() and not any(path.iterdir()):
        path.rmdir()
        return False
    dot_git = path / ".git"
    if not dot_git.is_file():
        raise Problem(
            f"{path} is no worktree of this repository.", "Move it away, then run this again."
        )
    if not is_connected(repo, path):
        reconnect(repo, path)
    if not is_connected(repo, path):
        raise Problem(
            f"{path} is no worktree of this repository.", "Move it away, then run this again."
        )
    return True


def is_connected(repo: Repo, path: Path) -> bool:
    """Whether a folder is a worktree of this very repository, and this repository knows it."""
    if not Git(path).line("rev-parse", "HEAD"):
        return False
    common = path / Git(path).line("rev-parse", "--git-common-dir")
    return common.resolve() == repo.common_dir and path.resolve() in worktrees(repo)


def reconnect(repo: Repo, path: Path) -> None:
    """Mend both ends of a worktree whose repository was moved, renamed or copied (T13).

    Not `git worktree repair`: in a copy of a repository, it takes the original's worktrees away.
    """
    said = (path / ".git").read_text(errors="surrogateescape").strip().removeprefix("gitdir: ")
    admin = repo.common_dir / "worktrees" / Path(said).name
    if not (admin / "HEAD").is_file():
        return
    end = Path((admin / "gitdir").read_text(errors="surrogateescape").strip())
    if end.is_file() and not end.samefile(path / ".git"):
        its = Path(end.read_text(errors="surrogateescape").strip().removeprefix("gitdir: "))
        if its.resolve() == admin:  # another folder is that worktree; this one is a copy of it
            return
    for file, text in (
        (path / ".git", f"gitdir: {admin}"),
        (admin / "gitdir", f"{path.resolve() / '.git'}"),
    ):
        temporary = file.with_name(f"{file.name}.{os.getpid()}")
        temporary.write_text(text + "\n", errors="surrogateescape")
        temporary.replace(file)


def add_tree(repo: Repo, path: Path, stage: Stage) -> None:
    path.parent.mkdir(exist_ok=True)
    forget(repo, path, stage)
    # --force twice: a folder that was deleted by hand leaves an entry, perhaps a locked one (T5).
    repo.git(
        "worktree", "add", "--quiet", "--force", "--force", "--detach", str(path), stage.commit
    )


def changes(git: Git) -> list[str]:
    """What differs from the commit in a tree, ignored files aside: `git status` in short form.

    Asked of a fresh index: in the tree's own, files can be marked as never changed.
    """
    with tempfile.TemporaryDirectory(prefix="tiny-status-") as scratch:
        index = {"GIT_INDEX_FILE": str(Path(scratch) / "index")}
        git("read-tree", "HEAD", env=index)
        words = ("--porcelain", "-z", "--untracked-files=all", "--no-renames")
        out = git("status", *words, env=index)
    rows = [row.decode(errors="replace") for row in out.split(b"\0") if row]
    return [row for row in rows if not (row[:2] == "??" and Path(row[3:]).name in LITTER)]


def ignored(git: Git) -> list[str]:
    """Files that git ignores and that no tool makes again: perhaps somebody's notes or keys."""
    out = git("ls-files", "-z", "--others", "--ignored", "--exclude-standard")
    names = [name.decode(errors="replace") for name in out.split(b"\0") if name]
    return [name for name in names if not CACHES & set(Path(name).parts) and name != "uv.lock"]


def put_back(repo: Repo, path: Path, stage: Stage, changed: list[str], yes: bool) -> None:
    """Bring a changed tree back, after its state was saved on a branch."""
    if not yes and sys.stdin.isatty():
        print(
            f"{len(changed)} changed files go to a branch, and the tree goes back. Type yes:",
            file=sys.stderr,
        )
        if sys.stdin.readline().strip() != "yes":
            raise Problem("nothing was changed.")
    branch = rescue(repo, path, stage)
    git = Git(path)
    git("checkout", "--quiet", "--force", "--detach", stage.commit)
    git("clean", "--quiet", "-fd")
    print(f"Your changes are on the branch {branch}.", file=sys.stderr)


def rescue(repo: Repo, path: Path, stage: Stage) -> str:
    """Save all that a tree holds, ignored files aside, as a commit on a branch of its own."""
    git = Git(path)
    with tempfile.TemporaryDirectory(prefix="tiny-rescue-") as scratch:
        index = {"GIT_INDEX_FILE": str(Path(scratch) / "index")}
        git("read-tree", "HEAD", env=index)
        git("add", "--all", env=index)
        tree = git("write-tree", env=index).decode().strip()
    message = f"What stood in {path.name}\n".encode()
    commit = git("commit-tree", tree, "-p", "HEAD", input=message).decode().strip()
    return name_branch(repo, commit, stage)


def name_branch(repo: Repo, commit: str, stage: Stage) -> str:
    """A new branch `rescue/NN-slug-TIME` at a commit."""
    base = f"rescue/{stage.folder}-{time.strftime('%Y%m%d-%H%M%S')}"
    for suffix in ("", *(f"-{n}" for n in range(2, 100))):
        zeros = "0" * len(commit)
        if not repo.git.run("update-ref", f"refs/heads/{base}{suffix}", commit, zeros).returncode:
            return base + suffix
    raise Problem(f"no branch {base} could be made.")


def keep_commits(repo: Repo, head: str, stage: Stage) -> str:
    """A new branch for commits that were made on a detached HEAD, or "" where nothing needs one."""
    held = repo.git.line("for-each-ref", "--contains", head, "--count=1", "--format=%(refname)")
    if held:
        return ""
    # A commit of an older edition of the line was made by the builder, not by the user.
    # After `commit --amend`, author and subject are still the builder's; the committer is not.
    said = repo.git.line("log", "-1", "--format=%ae %ce %s", head)
    if re.fullmatch(r"(authors@tiny-agents\.invalid ){2}[0-9]{2} [a-z0-9-]+", said):
        return ""
    branch = name_branch(repo, head, stage)
    print(f"Commits that you made there are on the branch {branch}.", file=sys.stderr)
    return branch


def clean_stages(root: Path) -> int:
    """Remove the trees in `.stages/` that hold nothing of the user's. The others are named."""
    repo = open_repo(root)
    line = ensure_built(repo)
    base = root.resolve() / STAGES
    removed, kept = 0, []
    for path in sorted(base.iterdir()) if base.is_dir() else ():
        if path.name == ".line.git":
            continue
        why = what_it_holds(repo, path, stage_of(line, path))
        if not why:
            done = repo.git.run("worktree", "remove", "--force", str(path))
            why = done.stderr.decode(errors="replace").strip() if done.returncode else ""
        if why:
            kept.append(f"Kept {shown(root, path)}: {why}")
        else:
            removed += 1
    for path, entry in worktrees(repo).items():  # of folders that were deleted by hand
        if path.parent == base and not path.exists() and "locked" not in entry:
            forget(repo, path, stage_of(line, path))
            repo.git.run("worktree", "remove", "--force", str(path))
    print(f"Removed {removed} of the trees in {STAGES}/.")
    print("".join(f"{row}\n" for row in kept), end="")
    return DONE


def stage_of(line: Line, path: Path) -> Stage:
    """The stage that a folder is named after; the last one, where there is none."""
    return next((stage for stage in line.stages if stage.folder == path.name), line.stages[-1])


def forget(repo: Repo, path: Path, stage: Stage) -> None:
    """Before the entry of a worktree that is gone goes too: keep the commits that it alone has."""
    entry = worktrees(repo).get(path.resolve(), {})
    if "HEAD" in entry and entry["HEAD"].strip("0"):
        keep_commits(repo, entry["HEAD"], stage)


def what_it_holds(repo: Repo, path: Path, stage: Stage) -> str:
    """What of the user's is in a folder in `.stages/`, or "" for nothing."""
    if path.is_symlink() or not (path / ".git").is_file():
        return "it is none of ours"
    try:
        has_tree(repo, path)
    except Problem as problem:
        return problem.message
    if Path.cwd().resolve().is_relative_to(path.resolve()):
        return "you stand in it"
    git = Git(path)
    if "locked" in worktrees(repo).get(path.resolve(), {}):
        return f"it is locked (git worktree unlock {path.name})"
    if changed := changes(git):
        return f"{len(changed)} changed or new files, such as {changed[0][3:]}"
    if own := ignored(git):
        return f"{len(own)} ignored files, such as {own[0]}"
    if branch := git.line("symbolic-ref", "--quiet", "--short", "HEAD"):
        return f"the branch {branch} is checked out there"
    if branch := keep_commits(repo, git.line("rev-parse", "HEAD"), stage):
        return f"it held commits of yours, which are on the branch {branch} now; run this again"
    return ""
