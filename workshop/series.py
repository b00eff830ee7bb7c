"""From commits to text: writes a line's patches and its lock. The way back is line.build."""

from __future__ import annotations

import os
import re
import tempfile
from pathlib import Path

from workshop.errors import Problem
from workshop.git import Git
from workshop.line import LOCK, SLUG, Line, Stage, commit_tree, content_hash, lock_text
from workshop.repo import Repo

# What belongs to a stage's tree, and so to the last stage's copy in main. The rest is main's.
TREE_PATHS = (
    "agent",
    "registry",
    "scripts",
    "tests",
    "pyproject.toml",
    ".env.example",
    ".gitignore",
    ".gitattributes",
)


def make_line(repo: Repo, trees: list[tuple[str, str]], edition: int) -> Line:
    """The line of (slug, tree) pairs, with its commits made."""
    stages: list[Stage] = []
    for number, (slug, tree) in enumerate(trees, 1):
        if not SLUG.fullmatch(slug):
            raise Problem(f"{slug!r} is no slug.", "Use a-z, 0-9 and single hyphens.")
        foreign = sorted({name.split("/")[0] for name in tree_paths(repo, tree)} - set(TREE_PATHS))
        if foreign:
            raise Problem(
                f"stage {number:02d} {slug} holds {', '.join(foreign)}, which is not a stage's.",
                f"A stage holds only {', '.join(TREE_PATHS)}.",
            )
        refuse_names(f"{number:02d} {slug}", tree_paths(repo, tree))
        parent = stages[-1].commit if stages else None
        commit = commit_tree(repo.git, number, slug, tree, parent)
        stages.append(Stage(number, slug, commit, tree, content_hash(repo.git, tree)))
    if len({stage.slug for stage in stages}) < len(stages):
        raise Problem("two stages have the same slug.", "Rename one.")
    return Line(edition, tuple(stages))


def refuse_names(stage: str, names: list[str]) -> None:
    """Problem for a file name that some machine or a patch could not hold."""
    seen: dict[str, str] = {}
    for name in names:
        why = ""
        if name.encode(errors="surrogateescape") != name.encode(errors="replace"):
            why = "is not UTF-8"
        elif any(ord(letter) < 32 for letter in name):
            why = "has a control character in it"
        elif seen.setdefault(name.casefold(), name) != name:
            why = f"and {seen[name.casefold()]!r} are one file on some machines"
        if why:
            raise Problem(f"stage {stage}: the file name {name!r} {why}.", "Rename it.")


def tree_paths(repo: Repo, tree: str) -> list[str]:
    out = repo.git("ls-tree", "-r", "-z", "--name-only", "--full-tree", tree)
    return [os.fsdecode(name) for name in out.split(b"\0") if name]


def patch(repo: Repo, before: str | None, after: str) -> bytes:
    """The change between two trees, as it is stored: exact, and the same under any settings.

    Made in a bare directory on the repository's objects: attributes, of the checkout and of the
    repository, decide what git takes for binary, and here there are none.
    """
    base = before or repo.git("mktree", input=b"").decode().strip()
    with tempfile.TemporaryDirectory(prefix="tiny-patch-") as scratch:
        bare = Path(scratch)
        for name in ("objects", "refs"):
            (bare / name).mkdir()
        (bare / "HEAD").write_text("ref: refs/heads/none\n")
        config = "[core]\n\tbare = true\n\trepositoryformatversion = "
        kind = "1\n[extensions]\n\tobjectFormat = sha256\n" if repo.sha256 else "0\n"
        (bare / "config").write_text(config + kind)
        return diff_tree(Git(bare, bare), repo.common_dir / "objects", base, after)


def diff_tree(git: Git, objects: Path, base: str, after: str) -> bytes:
    """Git's diff with everything said that a setting could say."""
    return git(
        "diff-tree", "-p", "-r", "--binary", "--full-index", "--no-renames", "--no-color",
        "--no-ext-diff", "--no-textconv", "--src-prefix=a/", "--dst-prefix=b/", "-U3",
        "--inter-hunk-context=0", "--diff-algorithm=myers", base, after,
        env={"GIT_OBJECT_DIRECTORY": str(objects)},
    )  # fmt: skip


def write_line(repo: Repo, line: Line) -> list[Path]:
    """Write patches and lock; the lock last, so that a write that was cut off is noticed.

    Returns the files that changed. Files that say the same already are not touched.
    """
    changed = []
    before: Stage | None = None
    for stage in line.stages:
        data = patch(repo, before.tree if before else None, stage.tree)
        changed += write(repo.root / "stages" / stage.folder / "change.patch", data)
        before = stage
    changed += write(repo.root / LOCK, lock_text(line).encode())
    return changed


def write(path: Path, data: bytes) -> list[Path]:
    """Put `data` in a file in one step. Returns the path, if that changed it."""
    if path.is_file() and path.read_bytes() == data:
        return []
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    temporary.write_bytes(data)
    temporary.replace(path)
    return [path]


def commits_of(repo: Repo, ref: str) -> list[tuple[str, str]]:
    """The (slug, tree) pairs of a branch of commits whose subjects are `NN slug`."""
    out = repo.git("log", "--reverse", "--format=%T %P%x09%s", ref, "--").decode()
    pairs = []
    for number, row in enumerate(out.splitlines(), 1):
        ids, subject = row.split("\t", 1)
        found = re.fullmatch(r"(\d\d) (\S+)", subject)
        if not found or int(found[1]) != number or len(ids.split()) > 2:
            raise Problem(
                f"commit {number} of {ref} is {subject!r}.",
                f"Give the commits of a line the subjects '{number:02d} slug', in a row.",
            )
        pairs.append((found[2], ids.split()[0]))
    return pairs
