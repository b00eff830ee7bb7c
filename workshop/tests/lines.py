"""A small project with a line of its own, made in a test's folder."""

from __future__ import annotations

import argparse
import os
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from workshop import maintain, publish
from workshop.errors import Problem
from workshop.line import Line, read_line
from workshop.repo import Repo, open_repo
from workshop.series import make_line, write_line

Files = Mapping[str, bytes | tuple[str, bytes]]  # path -> bytes, or mode and bytes

ATTRIBUTES = b"* text=auto eol=lf\n*.patch -text\n"
IGNORE = b"__pycache__/\n.stages/\n.edit/\nwork/\n.env\n"
BASE: Files = {".gitattributes": ATTRIBUTES, ".gitignore": IGNORE}


def body(*names: str) -> bytes:
    """A module with a function a name, each of several lines."""
    return "\n\n".join(
        f"def {name}(x):\n    # {name} begins\n    y = x\n    # {name} ends\n    return y\n"
        for name in names
    ).encode()


def ladder(count: int) -> list[tuple[str, Files]]:
    """`count` stages: each adds a file, and a function to agent/core.py."""
    stages: list[tuple[str, Files]] = []
    for number in range(1, count + 1):
        files = dict(stages[-1][1]) if stages else dict(BASE)
        files[f"agent/part{number}.py"] = f"PART = {number}\n".encode()
        files["agent/core.py"] = body(*(f"f{i}" for i in range(1, number + 1)))
        stages.append((f"step-{'abcdefghijklmnopqrstuvwxyz'[(number - 1) % 26]}{number}", files))
    return stages


def git(root: Path, *args: str, check: bool = True, env: dict[str, str] | None = None) -> str:
    """Git as a user runs it, whatever the machine's own configuration is."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    clean |= {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull, **(env or {})}
    who = ("-c", "user.name=Someone", "-c", "user.email=someone@example.invalid")
    done = subprocess.run(
        ["git", *who, *args], cwd=root, env=clean, capture_output=True, check=False
    )
    assert not check or done.returncode == 0, done.stderr.decode()
    return done.stdout.decode(errors="surrogateescape").rstrip("\n")


def tree(repo: Repo, files: Files) -> str:
    """The tree that holds these files."""
    rows = []
    for path, value in files.items():
        mode, data = value if isinstance(value, tuple) else ("100644", value)
        blob = repo.git("hash-object", "-w", "--stdin", input=data).decode().strip()
        rows.append(f"{mode} {blob}\t{path}\0")
    with tempfile.TemporaryDirectory() as scratch:
        env = {"GIT_INDEX_FILE": f"{scratch}/index"}
        repo.git("update-index", "-z", "--index-info", input="".join(rows).encode(), env=env)
        return repo.git("write-tree", env=env).decode().strip()


def project(root: Path, stages: Sequence[tuple[str, Files]]) -> Path:
    """A checkout of main with this line: lessons, patches, lock, and the last stage's tree."""
    root.mkdir(parents=True)
    git(root, "init", "-q", "-b", "main")
    repo = open_repo(root)
    line = make_line(repo, [(slug, tree(repo, files)) for slug, files in stages], 1)
    write_line(repo, line)
    for stage in line.stages:
        lesson = root / "stages" / stage.folder / "lesson.md"
        lesson.write_text(f"# {stage.slug}\n")
    (root / "README.md").write_text("A project.\n")
    for path, value in (stages[-1][1] if stages else BASE).items():
        mode, data = value if isinstance(value, tuple) else ("100644", value)
        put(root, path, data, mode)
    git(root, "add", "-A")
    git(root, "commit", "-q", "-m", "main")
    return root


def put(root: Path, path: str, data: bytes, mode: str = "100644") -> None:
    target = root / path
    target.parent.mkdir(parents=True, exist_ok=True)
    if mode == "120000":
        target.symlink_to(os.fsdecode(data))
    else:
        target.write_bytes(data)
        target.chmod(0o755 if mode == "100755" else 0o644)


def run(root: Path, *words: str) -> int:
    """A command of the workshop, as its command line has it."""
    parser = argparse.ArgumentParser()
    subparsers = parser.add_subparsers()
    maintain.add_parsers(subparsers)
    publish.add_parsers(subparsers)
    args = parser.parse_args(words)
    args.root = root
    code = args.run(args)
    assert isinstance(code, int)
    return code


def refusal(root: Path, *words: str) -> Problem:
    """The Problem that a command ends with."""
    try:
        code = run(root, *words)
    except Problem as problem:
        return problem
    raise AssertionError(f"{words} was not refused, but gave {code}")


def line_of(root: Path) -> Line:
    return read_line(root)


def show(root: Path, commit: str, path: str) -> bytes:
    """A file of a commit, exactly."""
    return open_repo(root).git("cat-file", "blob", f"{commit}:{path}")


def everything(root: Path) -> dict[str, bytes]:
    """Every file of a checkout but git's own, with its bytes or its link's target."""
    found = {}
    for path in sorted(root.rglob("*")):
        name = path.relative_to(root).as_posix()
        if name.split("/")[0] == ".git":
            continue
        if path.is_symlink():
            found[name] = b"-> " + os.fsencode(os.readlink(path))
        elif path.is_file():
            found[name] = path.read_bytes() + bytes([path.stat().st_mode & 0o100])
    return found
