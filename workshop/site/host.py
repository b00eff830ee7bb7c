"""Links to the code host that the repository lives on, where it lives on one that is known."""

from __future__ import annotations

import re
from dataclasses import dataclass

from workshop.errors import USAGE, Problem
from workshop.repo import Repo

# How each host spells the page of a tag's tree, and of a file on a branch.
HOSTS = {
    "github.com": ("tree/{}", "blob/main/{}"),
    "gitlab.com": ("-/tree/{}", "-/blob/main/{}"),
    "codeberg.org": ("src/tag/{}", "src/branch/main/{}"),
    "bitbucket.org": ("src/{}", "src/main/{}"),
}


@dataclass(frozen=True)
class Host:
    """A repository's page on a code host."""

    url: str
    tree: str
    file: str

    def tag(self, name: str) -> str:
        return f"{self.url}/{self.tree.format(name)}"

    def path(self, name: str) -> str:
        return f"{self.url}/{self.file.format(name)}"


def find_host(repo: Repo, given: str | None = None) -> Host | None:
    """The host that was named, or that of the remote `origin`. None where that is on no host."""
    if given:
        found = read_url(given)
        if not found:
            raise Problem(
                f"{given} is no repository on a code host that is known.",
                f"Known are {', '.join(HOSTS)}, as https://HOST/OWNER/NAME.",
                USAGE,
            )
        return found
    if repo.private:
        return None
    asked = repo.git.run("remote", "get-url", "origin")
    return None if asked.returncode else read_url(asked.stdout.decode(errors="replace").strip())


def read_url(url: str) -> Host | None:
    """The host of a remote's address, in any of git's forms. A name or key in it is dropped."""
    found = re.fullmatch(
        r"(?:(?:https?|ssh|git)://)?(?:[^@/]*@)?([\w.-]+)(?::\d+)?[:/]"
        r"([\w.~-]+(?:/[\w.~-]+)+)",
        url.rstrip("/").removesuffix(".git"),
    )
    if not found or found[1].lower() not in HOSTS:
        return None
    name = found[1].lower()
    return Host(f"https://{name}/{found[2]}", *HOSTS[name])
