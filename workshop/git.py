"""Git, cut off from the user's configuration, hooks, signing and inherited variables.

Nothing that a user or a hook has set may change what is built, and nothing that we run may act
on another repository than the one that is named.
"""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from workshop.errors import Problem

# A repository's own configuration still counts, so what could change bytes or run something is
# set again on the command line, which wins.
PINNED = {
    "core.autocrlf": "false",
    "core.eol": "lf",
    "core.safecrlf": "false",
    "core.hooksPath": "/dev/null",
    "core.fsmonitor": "false",
    "core.ignoreStat": "false",
    "core.checkStat": "default",
    "core.trustctime": "true",
    "core.attributesFile": "/dev/null",
    "core.excludesFile": "/dev/null",
    "core.quotePath": "false",
    "core.commentChar": "#",
    "core.editor": "true",
    "core.pager": "cat",
    "core.whitespace": "",
    "core.bigFileThreshold": "512m",
    "core.sparseCheckout": "false",
    # A checkout mounted into a container is somebody else's; its recipes are run already.
    "safe.directory": "*",
    "core.abbrev": "auto",
    "core.notesRef": "refs/notes/none",
    "commit.gpgSign": "false",
    "tag.gpgSign": "false",
    "gpg.format": "openpgp",
    "commit.template": "/dev/null",
    "commit.cleanup": "verbatim",
    "i18n.commitEncoding": "UTF-8",
    "i18n.logOutputEncoding": "UTF-8",
    "apply.whitespace": "nowarn",
    "apply.ignoreWhitespace": "no",
    "color.ui": "false",
    "diff.noprefix": "false",
    "diff.mnemonicPrefix": "false",
    "diff.srcPrefix": "a/",
    "diff.dstPrefix": "b/",
    "diff.context": "3",
    "diff.interHunkContext": "0",
    "diff.suppressBlankEmpty": "false",
    "diff.orderFile": "/dev/null",
    "diff.algorithm": "myers",
    "diff.indentHeuristic": "true",
    "diff.renames": "false",
    "diff.external": "",
    "diff.ignoreSubmodules": "none",
    "diff.submodule": "short",
    "diff.wsErrorHighlight": "none",
    "diff.colorMoved": "no",
    "diff.relative": "false",
    "merge.conflictStyle": "merge",
    "merge.renames": "true",
    "merge.directoryRenames": "conflict",
    "rerere.enabled": "false",
    "rebase.autoStash": "false",
    "rebase.updateRefs": "false",
    "gc.auto": "0",
    "maintenance.auto": "false",
    "advice.detachedHead": "false",
    "user.name": "the tiny-agents authors",
    "user.email": "authors@tiny-agents.invalid",
    "user.useConfigOnly": "false",
    "submodule.recurse": "false",
    "status.showUntrackedFiles": "normal",
    "worktree.guessRemote": "false",
    "checkout.defaultRemote": "",
    "log.showSignature": "false",
    "protocol.allow": "user",
}
# Empty values that git would take for something else than "not set".
for _name in ("diff.external", "checkout.defaultRemote", "diff.orderFile"):
    PINNED.pop(_name)

KEPT_GIT_VARIABLES = ("GIT_EXEC_PATH", "GIT_SSL_CAINFO", "GIT_TRACE")


def environment(extra: dict[str, str] | None = None) -> dict[str, str]:
    """The process's environment without what git would listen to, and with a fixed locale."""
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith("GIT_") or name in KEPT_GIT_VARIABLES
    }
    return {
        **kept,
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_CONFIG_SYSTEM": os.devnull,
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_ATTR_NOSYSTEM": "1",
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_OPTIONAL_LOCKS": "0",
        "GIT_NO_REPLACE_OBJECTS": "1",
        "GIT_EDITOR": "true",
        "LC_ALL": "C",
        "TZ": "UTC",
        **(extra or {}),
    }


class Git:
    """Runs git in `root`, on the repository in `git_dir` where one is named."""

    def __init__(self, root: Path, git_dir: Path | None = None) -> None:
        self.root, self.git_dir = root, git_dir

    def run(
        self,
        *args: str,
        input: bytes | None = None,
        env: dict[str, str] | None = None,
    ) -> subprocess.CompletedProcess[bytes]:
        """Run git and give its result, whatever it is."""
        pinned = [word for name, value in PINNED.items() for word in ("-c", f"{name}={value}")]
        where = ["--git-dir", str(self.git_dir)] if self.git_dir else []
        try:
            return subprocess.run(
                ["git", *where, *pinned, *args],
                cwd=self.root,
                input=b"" if input is None else input,
                capture_output=True,
                env=environment(env),
                check=False,
            )
        except FileNotFoundError:
            if self.root.is_dir():
                raise Problem("git is not installed.", "Install it, then run this again.") from None
            raise

    def __call__(
        self,
        *args: str,
        input: bytes | None = None,
        env: dict[str, str] | None = None,
    ) -> bytes:
        """Run git and give what it prints. Problem with git's own words where it fails."""
        done = self.run(*args, input=input, env=env)
        if done.returncode:
            said = done.stderr.decode(errors="replace").strip() or f"exit code {done.returncode}"
            raise Problem(f"git {args[0]} failed: {said}")
        return done.stdout

    def line(self, *args: str, env: dict[str, str] | None = None) -> str:
        """Run git and give the one line that it prints, or "" where it fails."""
        done = self.run(*args, env=env)
        return "" if done.returncode else done.stdout.decode(errors="replace").rstrip("\n")
