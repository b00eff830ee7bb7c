"""Rebuilding a stage: the work folder, its start, the hints, and our solution beside yours.

`check` is in examine.py. Nothing here removes or overwrites what is in a work folder, except
`start --again`, and that saves it to a branch before.
"""

from __future__ import annotations

import re
import tempfile
import time
from pathlib import Path

from workshop.errors import DONE, USAGE, Problem
from workshop.git import Git
from workshop.lesson import Lesson
from workshop.line import Line, Stage, ensure_built
from workshop.progress import one_at_a_time, read_progress, set_progress
from workshop.repo import Repo, open_repo
from workshop.series import tree_paths
from workshop.show import lesson_path, print_diff
from workshop.trees import (
    WORK,
    changes,
    has_tree,
    ignored,
    shown,
    tree_of,
    where_to,
    work_folder,
    worktrees,
)

ZERO = "0" * 40


def named_stage(root: Path, line: Line, word: str | None) -> Stage:
    """The stage that is named, or the one whose work folder the user stands in."""
    if word is not None:
        return line.resolve(word)
    tree = tree_of(root, line, Path.cwd())
    if tree.folder.parent != (root / WORK).resolve():
        raise Problem(
            "of which stage? You stand in no work folder.",
            "Name it, such as 6, or go to a folder in work/.",
            USAGE,
        )
    return tree.stage


def begun(root: Path, stage: Stage) -> Path:
    """The work folder of a stage that was started. Problem where it was not."""
    folder = work_folder(root, stage)
    if not folder.is_dir():
        raise Problem(
            f"stage {stage.number}, {stage.slug}, is not started.",
            f"Begin with: just start {stage.number}",
            USAGE,
        )
    return folder.resolve()


def start(root: Path, word: str, mine: bool, again: bool) -> int:
    """Make the work folder of a stage, or say where it is."""
    repo = open_repo(root)
    line = ensure_built(repo)
    stage = line.resolve(word)
    with one_at_a_time(root, WORK):
        folder = work_folder(root, stage)
        branch = f"{WORK}/{folder.name}"
        here = has_tree(repo, folder)
        tip = repo.git.line("rev-parse", "--verify", "--quiet", f"refs/heads/{branch}")
        elsewhere = checked_out(repo, branch)
        if elsewhere and elsewhere != folder.resolve() and elsewhere.exists():
            raise Problem(
                f"the branch {branch} is checked out in {elsewhere}.",
                f"Work there, or free it first: git -C {elsewhere} switch --detach",
            )
        if (here or tip) and not again:
            if not here:
                add_worktree(repo, folder, branch)
            print(f"Stage {stage.number}, {stage.slug}, is begun: {shown(root, folder)}")
            print("Nothing in it was changed.")
            next_steps(root, stage, folder)
            return DONE
        base = last_of_mine(root, repo, line, stage) if mine else None
        commit = start_commit(root, repo, line, stage, base)
        if here:
            save(repo, folder, branch, tip)
            git = Git(folder)
            git("checkout", "--quiet", "--force", "-B", branch, commit)
            git("clean", "--quiet", "-fd")
        else:
            if tip:
                print(f"What was on {branch} is on {saved_branch(repo, folder.name, tip)}.")
            new_branch(repo, branch, commit, tip or ZERO)
            add_worktree(repo, folder, branch)
        if again and read_progress(root).get(stage.slug, {}).get("done"):
            set_progress(root, stage.slug, done=False)
            print("It counts as done again when its check passes.")
    lesson = Lesson.read(lesson_path(root, stage))
    sections = lesson.sections
    print(f"Stage {stage.number}, {stage.slug}: {lesson.title}. Yours: {shown(root, folder)}\n")
    for heading in ("Task", "Contract"):
        if text := sections.get(heading, "").strip():
            print(f"{heading}\n\n{text}\n")
    next_steps(root, stage, folder)
    return DONE


def next_steps(root: Path, stage: Stage, folder: Path) -> None:
    print(where_to(root, stage, folder))
    print("  try it     just check")
    print(f"  stuck?     just hint {stage.number}")


def start_commit(root: Path, repo: Repo, line: Line, stage: Stage, base: str | None) -> str:
    """The stage before, or `base`, with this stage's tests and what its lesson gives laid in."""
    git, before = repo.git, line.before(stage)
    parent = base or (before.commit if before else None)
    given = Lesson.read(lesson_path(root, stage)).given
    with tempfile.TemporaryDirectory(prefix="tiny-start-") as scratch:
        index = {"GIT_INDEX_FILE": str(Path(scratch) / "index")}
        git("read-tree", *([parent] if parent else ["--empty"]), env=index)
        old = git("ls-files", "-z", "--cached", "--", ":(top)tests", env=index)
        rows = b"".join(b"0 " + b"0" * 40 + b"\t" + name + b"\0" for name in old.split(b"\0")[:-1])
        listed = git("ls-tree", "-r", "-z", "--full-tree", stage.commit, "--", "tests", *given)
        for row in listed.split(b"\0")[:-1]:
            meta, name = row.split(b"\t", 1)
            mode, _, blob = meta.split()
            rows += mode + b" " + blob + b"\t" + name + b"\0"
        if not before:  # so that no `agent` of another folder can stand in for it
            empty = git("hash-object", "-w", "--stdin", input=b"").strip()
            rows += b"100644 " + empty + b"\tagent/__init__.py\0"
        git("update-index", "-z", "--index-info", input=rows, env=index)
        tree = git("write-tree", env=index).decode().strip()
    message = f"Start of {stage.folder}: its tests\n".encode()
    parents = ["-p", parent] if parent else []
    return git("commit-tree", tree, *parents, input=message).decode().strip()


def last_of_mine(root: Path, repo: Repo, line: Line, stage: Stage) -> str:
    """The learner's last finished stage below this one: what stands in its folder, committed."""
    done = {slug for slug, state in read_progress(root).items() if state.get("done")}
    for earlier in reversed(line.stages[: stage.number - 1]):
        folder = work_folder(root, earlier)
        branch = f"{WORK}/{folder.name}"
        if earlier.slug not in done:
            continue
        if folder.is_dir() and has_tree(repo, folder):
            git = Git(folder)
            if changes(git):
                git("add", "--all")
                git("commit", "--quiet", "--no-verify", "-m", f"As {stage.folder} began")
                print(f"What was not committed in {shown(root, folder)} is committed there.")
            commit = git.line("rev-parse", "HEAD")
        else:
            commit = repo.git.line("rev-parse", "--verify", "--quiet", f"refs/heads/{branch}")
        if not commit:
            continue
        print(f"From your stage {earlier.number}, {earlier.slug}.")
        if earlier.number < stage.number - 1:
            first, last = earlier.number + 1, stage.number - 1
            which = f"Stage {first} is" if first == last else f"Stages {first} to {last} are"
            print(f"{which} not finished, and the check of stage {stage.number} asks for that too.")
        return commit
    raise Problem(
        f"none of your stages below {stage.number} is finished.",
        f"Start from ours: just start {stage.number}",
        USAGE,
    )


def checked_out(repo: Repo, branch: str) -> Path | None:
    """The worktree that has a branch checked out."""
    for path, entry in worktrees(repo).items():
        if entry.get("branch") == f"refs/heads/{branch}":
            return path
    return None


def add_worktree(repo: Repo, folder: Path, branch: str) -> None:
    folder.parent.mkdir(exist_ok=True)
    # --force twice: a folder that was deleted by hand leaves an entry, perhaps a locked one.
    repo.git("worktree", "add", "--quiet", "--force", "--force", str(folder), branch)


def new_branch(repo: Repo, branch: str, commit: str, old: str) -> None:
    done = repo.git.run("update-ref", f"refs/heads/{branch}", commit, old)
    if done.returncode:
        raise Problem(
            f"no branch {branch} could be made: {done.stderr.decode(errors='replace').strip()}",
            f"A branch called {branch.split('/')[0]} is in its way; rename it with: git branch -m",
        )


def snapshot(folder: Path, with_ignored: bool = False) -> str:
    """The tree of all that stands in a work folder, without touching its index."""
    git = Git(folder)
    with tempfile.TemporaryDirectory(prefix="tiny-save-") as scratch:
        index = {"GIT_INDEX_FILE": str(Path(scratch) / "index")}
        git("read-tree", "HEAD", env=index)
        git("add", "--all", env=index)
        names = ignored(git) if with_ignored else []
        if names:
            listed = "".join(f"{name}\0" for name in names).encode(errors="replace")
            words = ("add", "--force", "--pathspec-from-file=-", "--pathspec-file-nul")
            git("--literal-pathspecs", *words, input=listed, env=index)
        return git("write-tree", env=index).decode().strip()


def save(repo: Repo, folder: Path, branch: str, tip: str) -> None:
    """Put all that stands in a work folder on a branch of its own, ignored files too."""
    git = Git(folder)
    tree = snapshot(folder, with_ignored=True)
    message = f"What stood in {folder.name}\n".encode()
    commit = git("commit-tree", tree, "-p", "HEAD", input=message).decode().strip()
    print(f"What was there is on the branch {saved_branch(repo, folder.name, commit)}.")
    if tip and repo.git.run("merge-base", "--is-ancestor", tip, commit).returncode:
        print(f"What was on {branch} is on {saved_branch(repo, folder.name, tip)}.")


def saved_branch(repo: Repo, name: str, commit: str) -> str:
    """A new branch `work-saved/NN-slug-TIME` at a commit."""
    base = f"work-saved/{name}-{time.strftime('%Y%m%d-%H%M%S')}"
    zeros = "0" * len(commit)
    for suffix in ("", *(f"-{number}" for number in range(2, 100))):
        ref = f"refs/heads/{base}{suffix}"
        if not repo.git.run("update-ref", ref, commit, zeros).returncode:
            return base + suffix
    raise Problem(
        f"no branch {base} could be made.",
        "A branch called work-saved is in its way; rename it with: git branch -m",
    )


def hints_of(lesson: Lesson) -> list[tuple[str, str]]:
    """A lesson's hints: the question that each answers, and the answer."""
    pattern = r"<details>\s*<summary>(.*?)</summary>(.*?)</details>"
    found = re.findall(pattern, lesson.sections.get("Hints", ""), re.DOTALL)
    return [(title.strip(), text.strip()) for title, text in found]


def hint(root: Path, word: str | None, everything: bool) -> int:
    """The next hint of a stage, or all of them."""
    line = ensure_built(open_repo(root))
    stage = named_stage(root, line, word)
    hints = hints_of(Lesson.read(lesson_path(root, stage)))
    given = read_progress(root).get(stage.slug, {}).get("hints", 0)
    given = given if isinstance(given, int) else 0
    chosen = range(len(hints)) if everything else range(given, min(given + 1, len(hints)))
    for number in chosen:
        title, text = hints[number]
        print(f"Hint {number + 1} of {len(hints)}: {title}\n\n{text}\n")
    if not everything and chosen:
        set_progress(root, stage.slug, hints=given + 1)
    if not chosen:
        print(f"There are no more hints for stage {stage.number}.")
        print(f"  all again  just hint {stage.number} --all")
        print(f"  ours       just solution {stage.number}")
    return DONE


def solution(root: Path, word: str | None) -> int:
    """Our change of a stage; where the learner has begun it, theirs beside ours."""
    repo = open_repo(root)
    line = ensure_built(repo)
    stage = named_stage(root, line, word)
    before = line.before(stage)
    base = before.commit if before else repo.git("mktree", input=b"").decode().strip()
    folder = work_folder(root, stage)
    if not folder.is_dir() or not has_tree(repo, folder):
        print_diff(repo, base, stage.commit, [], stat=False, all=False)
        return DONE
    given = ("tests", *Lesson.read(lesson_path(root, stage)).given)
    out = repo.git("diff", "--name-only", "--no-renames", "-z", base, stage.commit).decode()
    ours = [name for name in out.split("\0") if name and not is_below(name, given)]
    mine = snapshot(folder)
    print(f"Yours beside ours, stage {stage.number}: - is yours, + is ours.\n", flush=True)
    same = not repo.git("diff", "--name-only", mine, stage.commit, "--", *ours)
    if same:
        print("The files that this stage touches say the same in both.")
    else:
        print_diff(repo, mine, stage.commit, ours, stat=False, all=False)
    theirs = [
        name
        for name in sorted(set(tree_paths(repo, mine)) - set(tree_paths(repo, stage.commit)))
        if not is_below(name, given)
    ]
    if theirs:
        print(f"\nOnly yours: {', '.join(theirs[:10])}{' …' if len(theirs) > 10 else ''}")
    print(f"\nOurs alone: just diff {stage.number}")
    return DONE


def is_below(name: str, folders: tuple[str, ...]) -> bool:
    return any(name == one or name.startswith(f"{one.rstrip('/')}/") for one in folders)
