"""The repository that the line is built in.

Mostly the checkout's own. A zip download has none, and one that was unpacked inside somebody's
repository must not touch that one: both get a private repository in `.stages/`.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from workshop.errors import Problem
from workshop.git import Git

PRIVATE = Path(".stages") / ".line.git"


@dataclass(frozen=True)
class Repo:
    """`root` is the folder of the justfile; `git` acts on the repository that holds the line."""

    root: Path
    git: Git
    private: bool

    @property
    def common_dir(self) -> Path:
        """Where the repository keeps what all its worktrees share."""
        found = self.git.line("rev-parse", "--git-common-dir")
        return (self.root / found).resolve()

    @property
    def sha256(self) -> bool:
        """Whether its object ids are SHA-256, so that no commit id equals the lock's."""
        return self.git.line("rev-parse", "--show-object-format") == "sha256"


def open_repo(root: Path) -> Repo:
    """The repository for `root`; made, where the download has none of its own.

    Problem where there is one that git cannot use: the line must not go somewhere else unseen.
    """
    root = root.resolve()
    git = Git(root)
    found = git.run("rev-parse", "--show-toplevel")
    top = found.stdout.decode(errors="surrogateescape").removesuffix("\n")
    if found.returncode == 0 and top and os.path.samefile(top, root):
        return Repo(root, git, private=False)
    if os.path.lexists(root / ".git"):
        said = found.stderr.decode(errors="replace").strip() or "it is not a checkout"
        raise Problem(
            f"git cannot use {root / '.git'}: {said}",
            "Where the folder was moved: git worktree repair. Where it is a download with a stray "
            ".git: remove that.",
        )
    private = root / PRIVATE
    if not (private / "HEAD").exists():
        private.parent.mkdir(exist_ok=True)
        Git(root)("init", "--quiet", "--bare", "--object-format=sha1", "--template=", str(private))
    return Repo(root, Git(root, private), private=True)
