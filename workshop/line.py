"""The line: the stages as commits, built from `stages/` and verified against `line.lock`.

A patch is how a stage is stored. A fix is never carried forward as one: see maintain.py.
Building touches no file, no index and no HEAD of the checkout.
"""

from __future__ import annotations

import hashlib
import re
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from workshop.errors import USAGE, Problem
from workshop.git import Git
from workshop.repo import Repo

LOCK = Path("stages") / "line.lock"
EMPTY_TREE = "4b825dc642cb6eb9a060e54bf8d69288fbee4904"
FIRST_SECOND = 1767225600  # 2026-01-01T00:00:00Z; a stage comes an hour after the one before
HEADER = (
    "# The line of stages. Written by `just save`; builds are verified against it.\n"
    "# number slug commit tree content\n"
)
SLUG = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")


@dataclass(frozen=True)
class Stage:
    """One stage. `commit` and `tree` are git's ids, `content` a SHA-256 of all its files."""

    number: int
    slug: str
    commit: str
    tree: str
    content: str

    @property
    def folder(self) -> str:
        return f"{self.number:02d}-{self.slug}"

    @property
    def tag(self) -> str:
        return f"stage-{self.folder}"

    @property
    def ref(self) -> str:
        """The ref that is ours alone: a tag may have been moved, this one has not."""
        return f"refs/tiny/line/{self.folder}"


@dataclass(frozen=True)
class Line:
    """The stages in their order, and which edition of the line they are."""

    edition: int
    stages: tuple[Stage, ...]

    def resolve(self, word: str) -> Stage:
        """The stage that a learner means: 8, 08, its slug, 08-slug or its tag. Problem if none."""
        name = word.strip().removeprefix("stage-")
        for stage in self.stages:
            if name in (stage.slug, stage.folder):
                return stage
            if re.fullmatch(r"0?[1-9]|[1-9][0-9]", name) and int(name) == stage.number:
                return stage
        names = ", ".join(stage.folder for stage in self.stages) or "none yet"
        raise Problem(f"no stage is called {word!r}.", f"There are: {names}.", USAGE)

    def before(self, stage: Stage) -> Stage | None:
        return self.stages[stage.number - 2] if stage.number > 1 else None


def read_line(root: Path) -> Line:
    """The line as line.lock says it. Problem names the file and the line of a fault."""
    path = root / LOCK
    mend = f"Restore it: git checkout -- {LOCK.as_posix()}"
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except FileNotFoundError:
        raise Problem(f"{LOCK.as_posix()} is missing.", mend) from None
    except UnicodeDecodeError:
        raise Problem(f"{LOCK.as_posix()} is not text.", mend) from None
    edition = 0
    stages: list[Stage] = []
    for number, line in enumerate(lines, 1):
        words = line.split()
        if not words or words[0].startswith("#"):
            continue
        try:
            if words[0] == "edition" and not edition and not stages and len(words) == 2:
                edition = int(words[1])
                continue
            stage_number, slug, commit, tree, content = words
            hexes = re.fullmatch(
                r"([0-9a-f]{40}) ([0-9a-f]{40}) ([0-9a-f]{64})", " ".join(words[2:])
            )
            if int(stage_number) != len(stages) + 1 or not SLUG.fullmatch(slug) or not hexes:
                raise ValueError
            if slug in [stage.slug for stage in stages]:
                raise ValueError
            stages.append(Stage(int(stage_number), slug, commit, tree, content))
        except (ValueError, IndexError):
            raise Problem(
                f"{LOCK.as_posix()}, line {number}: {line[:60]!r} is not a stage.", mend
            ) from None
    if edition < 1:
        raise Problem(f"{LOCK.as_posix()} names no edition.", mend)
    return Line(edition, tuple(stages))


def lock_text(line: Line) -> str:
    """What line.lock holds for a line."""
    rows = [f"{s.number:02d} {s.slug} {s.commit} {s.tree} {s.content}\n" for s in line.stages]
    return HEADER + f"edition {line.edition}\n" + "".join(rows)


def commit_tree(git: Git, number: int, slug: str, tree: str, parent: str | None) -> str:
    """The commit of a stage: everything in it is fixed, so its id is always the same."""
    date = f"{FIRST_SECOND + 3600 * number} +0000"
    who = {"NAME": "the tiny-agents authors", "EMAIL": "authors@tiny-agents.invalid", "DATE": date}
    env = {
        f"GIT_{role}_{key}": value for role in ("AUTHOR", "COMMITTER") for key, value in who.items()
    }
    parents = ["-p", parent] if parent else []
    message = f"{number:02d} {slug}\n".encode()
    return git("commit-tree", tree, *parents, input=message, env=env).decode().strip()


def content_hash(git: Git, tree: str) -> str:
    """A SHA-256 of a tree's modes, paths and bytes: the same in every kind of repository."""
    listed = git("ls-tree", "-r", "-z", "--full-tree", tree).split(b"\0")
    rows = []
    for row in filter(None, listed):
        meta, path = row.split(b"\t", 1)
        mode, _, blob = meta.split()
        rows.append((path, mode, blob))
    sums = blob_hashes(git, [blob.decode() for _, _, blob in rows])
    whole = hashlib.sha256()
    for path, mode, blob in sorted(rows):
        whole.update(mode + b" " + sums[blob.decode()].encode() + b" " + path + b"\0")
    return whole.hexdigest()


def blob_hashes(git: Git, blobs: list[str]) -> dict[str, str]:
    """The SHA-256 of each blob's bytes, read in one process."""
    wanted = sorted(set(blobs))
    out = git("cat-file", "--batch", input="".join(f"{blob}\n" for blob in wanted).encode())
    sums, at = {}, 0
    for blob in wanted:
        end = out.index(b"\n", at)
        size = int(out[at:end].split()[2])
        sums[blob] = hashlib.sha256(out[end + 1 : end + 1 + size]).hexdigest()
        at = end + 1 + size + 1
    return sums


def ensure_built(repo: Repo, line: Line | None = None) -> Line:
    """Build the line where its refs are not all there. A few milliseconds where they are."""
    line = line or read_line(repo.root)
    have = refs(repo, "refs/tiny/line/", "refs/tags/stage-")
    ours = {ref: commit for ref, commit in have.items() if ref.startswith("refs/tiny/line/")}
    if not repo.sha256 and ours == {stage.ref: stage.commit for stage in line.stages}:
        missing = [stage for stage in line.stages if f"refs/tags/{stage.tag}" not in have]
        if missing:
            update_refs(repo, line, tag_updates(missing))
        return line
    return build(repo, line)


def build(repo: Repo, line: Line) -> Line:
    """Build every stage, verify it, then write all refs in one transaction.

    In a SHA-256 repository no commit id can equal the lock's: the content is compared instead,
    and the line that is returned has that repository's ids.
    """
    built: list[Stage] = []
    parent: Stage | None = None
    with tempfile.TemporaryDirectory(prefix="tiny-line-") as scratch:
        index = {"GIT_INDEX_FILE": str(Path(scratch) / "index")}
        git = sha1_git(repo, Path(scratch)) if repo.sha256 else repo.git
        for stage in line.stages:
            parent = build_stage(repo, git, stage, parent, index)
            built.append(parent)
        if repo.sha256:
            built = carry_over(git, repo.git, built, Path(scratch))
    here = Line(line.edition, tuple(built))
    have = refs(repo, "refs/tiny/line/", "refs/tags/stage-")
    keep = {stage.ref for stage in here.stages}
    updates = [f"update {stage.ref} {stage.commit}\n" for stage in here.stages]
    updates += [
        f"delete {ref}\n" for ref in have if ref.startswith("refs/tiny/line/") and ref not in keep
    ]
    missing = [stage for stage in here.stages if f"refs/tags/{stage.tag}" not in have]
    update_refs(repo, here, "".join(updates) + tag_updates(missing))
    return here


def update_refs(repo: Repo, line: Line, updates: str) -> None:
    """One transaction. Where another build was faster, what it wrote is as good."""
    try:
        repo.git("update-ref", "--stdin", input=updates.encode())
    except Problem:
        for _ in range(50):
            have = refs(repo, "refs/tiny/line/", "refs/tags/stage-")
            if all(
                have.get(stage.ref) == stage.commit and f"refs/tags/{stage.tag}" in have
                for stage in line.stages
            ):
                return
            time.sleep(0.02)
        raise


def tag_updates(stages: list[Stage]) -> str:
    return "".join(f"create refs/tags/{stage.tag} {stage.commit}\n" for stage in stages)


def build_stage(
    repo: Repo, git: Git, stage: Stage, parent: Stage | None, index: dict[str, str]
) -> Stage:
    """One stage on top of the one before, verified. Problem names the patch that does not fit."""
    name = f"stages/{stage.folder}/change.patch"
    base = parent.tree if parent else git("mktree", input=b"").decode().strip()
    wrong = "is missing"
    for patch in patches(repo, name):
        git("read-tree", base, env=index)
        if patch:
            words = ("apply", "--cached", "--whitespace=nowarn", "--unidiff-zero", "-")
            done = git.run(*words, input=patch, env=index)
            if done.returncode:
                wrong = "does not apply: " + done.stderr.decode(errors="replace").strip()
                continue
        tree = git("write-tree", env=index).decode().strip()
        if tree != stage.tree:
            wrong = f"gives tree {tree[:12]}, line.lock says {stage.tree[:12]}"
            continue
        commit = commit_tree(git, stage.number, stage.slug, tree, parent.commit if parent else None)
        if commit != stage.commit:
            wrong = f"gives commit {commit[:12]}, line.lock says {stage.commit[:12]}"
            continue
        return stage
    raise Problem(
        f"{name} {wrong}.",
        f"Restore it: git checkout -- {name}. To change a stage: just edit {stage.number}.",
    )


def sha1_git(repo: Repo, scratch: Path) -> Git:
    """A throwaway repository with the lock's kind of ids: a binary patch names SHA-1 blobs."""
    bare = scratch / "sha1.git"
    repo.git("init", "--quiet", "--bare", "--object-format=sha1", "--template=", str(bare))
    return Git(repo.root, bare)


def carry_over(source: Git, target: Git, stages: list[Stage], scratch: Path) -> list[Stage]:
    """The same commits in a SHA-256 repository, their content compared with the lock's."""
    if not stages:
        return []
    here, there = scratch / "exported", scratch / "imported"
    name = "refs/tiny/import"
    source("update-ref", name, stages[-1].commit)
    words = ("--reencode=no", "--use-done-feature", f"--export-marks={here}", name)
    stream = source("fast-export", *words)
    target("fast-import", "--quiet", "--force", f"--export-marks={there}", input=stream)
    target("update-ref", "-d", name)
    old, new = (
        dict(row.split() for row in path.read_text().splitlines()) for path in (here, there)
    )
    ids = {commit: new[mark] for mark, commit in old.items()}
    carried = []
    for stage in stages:
        commit = ids[stage.commit]
        tree = target("rev-parse", f"{commit}^{{tree}}").decode().strip()
        if content_hash(target, tree) != stage.content:
            raise Problem(
                f"stage {stage.folder} has another content than line.lock says.",
                f"Restore it: git checkout -- {LOCK.as_posix()}",
            )
        carried.append(Stage(stage.number, stage.slug, commit, tree, stage.content))
    return carried


def patches(repo: Repo, name: str) -> list[bytes]:
    """The patch as it stands, then as HEAD has it: a checkout may have changed line ends (T26)."""
    found = []
    path = repo.root / name
    if path.is_file():
        found.append(path.read_bytes())
    if not repo.private:
        done = repo.git.run("show", f"HEAD:./{name}")
        if not done.returncode and done.stdout not in found:
            found.append(done.stdout)
    return found


def refs(repo: Repo, *prefixes: str) -> dict[str, str]:
    """The refs that start with a prefix, and the commits that they point at."""
    out = repo.git("for-each-ref", "--format=%(refname) %(objectname) %(*objectname)")
    found = {}
    for row in out.decode(errors="replace").splitlines():
        name, *ids = row.split()
        if name.startswith(prefixes):
            found[name] = ids[-1]
    return found


def tag_states(repo: Repo, line: Line) -> dict[str, str]:
    """For each slug: ok, missing, or differs, where the local tag is not what line.lock says."""
    have = refs(repo, "refs/tags/stage-")
    states = {}
    for stage in line.stages:
        found = have.get(f"refs/tags/{stage.tag}")
        states[stage.slug] = (
            "missing" if found is None else "ok" if found == stage.commit else "differs"
        )
    return states


def retag(repo: Repo, line: Line) -> list[str]:
    """Move the tags that differ to the line. Each old one is kept under refs/tiny/old-tags/."""
    have = refs(repo, "refs/tags/stage-")
    moved, updates = [], []
    for stage in line.stages:
        old = have.get(f"refs/tags/{stage.tag}")
        if old and old != stage.commit:
            # The tag itself, so that an annotated one keeps its message.
            old = repo.git.line("rev-parse", f"refs/tags/{stage.tag}")
            updates.append(f"update refs/tiny/old-tags/{stage.tag}-{old[:12]} {old}\n")
            updates.append(f"update refs/tags/{stage.tag} {stage.commit}\n")
            moved.append(stage.tag)
    repo.git("update-ref", "--stdin", input="".join(updates).encode())
    return moved
