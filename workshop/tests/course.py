"""A small course in a test's folder: main, four stages, an environment without a network."""

from __future__ import annotations

import compileall
import os
import shutil
import subprocess
import sys
import sysconfig
import venv
from dataclasses import dataclass
from pathlib import Path

from workshop import env
from workshop.line import Line, read_line
from workshop.repo import Repo, open_repo
from workshop.series import make_line, write_line

Env = dict[str, str]
HERE = Path(__file__).resolve().parent.parent.parent
OURS = ("justfile", ".gitignore", ".gitattributes", "requirements.lock")
SLUGS = ("count", "echo", "shout", "last")
MAIN = """import json, os, signal, sys, time
import agent
words = sys.argv[1:]
kept = {k: v for k, v in os.environ.items() if k.startswith(("TINY_", "PYTHON", "VIRTUAL_ENV"))}
told = {"stage": agent.STAGE, "words": words, "file": agent.__file__, "cwd": os.getcwd()}
told |= {"python": sys.prefix, "pid": os.getpid(), "env": kept}
if "--input" in words:
    told["input"] = sys.stdin.read()
print(json.dumps(told), flush=True)
if "--sleep" in words:
    time.sleep(60)
if "--exit" in words:
    sys.exit(int(words[-1]))
"""


def files(number: int) -> dict[str, str]:
    """What the tree of a stage holds."""
    found = {
        ".gitattributes": "* text=auto eol=lf\n*.patch -text\n",
        ".gitignore": (HERE / ".gitignore").read_text(encoding="utf-8"),
        ".env.example": "# TINY_BASE_URL=http://127.0.0.1:1/v1\n",
        "pyproject.toml": "[project]\nname = 'course'\nversion = '1'\n",
        "agent/__init__.py": f"STAGE = {number}\n",
        "scripts/count.py": "print('counted')\n",
        "tests/test_count.py": f"def test_count() -> None:\n    assert {number}\n",
        "registry/rows.jsonl": '{"row": 1}\n' * (100 * number),
    }
    if number > 1:
        found["agent/__main__.py"] = MAIN
    if number > 2:
        found["agent/shout.py"] = "def shout(text: str) -> str:\n    return text.upper()\n"
    return found


def lesson(number: int, slug: str) -> str:
    run = "run: python -m agent route\n" if slug == "echo" else ""
    return (
        f"---\ntitle: The {slug}\nchapter: {min(number, 2)}\nconcept: It does {slug}.\n"
        f"touches: [agent/__init__.py]\nproof: python scripts/count.py\n{run}---\n\nA page.\n"
    )


def git(root: Path, *args: str, check: bool = True) -> str:
    """Git as a user runs it, whatever this machine's configuration is."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    clean |= {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull}
    who = ("-c", "user.name=Someone", "-c", "user.email=someone@example.invalid")
    done = subprocess.run(
        ["git", *who, *args], cwd=root, env=clean, capture_output=True, check=False
    )
    assert not check or done.returncode == 0, done.stderr.decode()
    return done.stdout.decode(errors="surrogateescape").rstrip("\n")


def write_tree(repo: Repo, folder: Path, wanted: dict[str, str]) -> str:
    """The tree of these files, by way of a folder."""
    for name, text in wanted.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8", newline="")
    index = {"GIT_INDEX_FILE": str(folder.with_suffix(".index"))}
    repo.git("--work-tree", str(folder), "add", "--force", "--all", ".", env=index)
    return repo.git("write-tree", env=index).decode().strip()


def make(base: Path) -> Path:
    """A checkout of main, committed, with the line in `stages/` and nothing built or laid out."""
    root = base / "course"
    root.mkdir()
    git(root, "init", "--quiet", "-b", "main")
    add_line(root, [(slug, files(number)) for number, slug in enumerate(SLUGS, 1)], 1, base)
    ignored = shutil.ignore_patterns("tests", "__pycache__", "measure")
    shutil.copytree(HERE / "workshop", root / "workshop", ignore=ignored)
    for name in OURS:
        shutil.copy2(HERE / name, root / name)
    git(root, "add", "--all")
    git(root, "commit", "--quiet", "-m", "Course")
    make_environment(root)
    shutil.copy2(root / ".env.example", root / ".env")
    compileall.compile_dir(root / "workshop", quiet=1)
    return root


def add_line(
    root: Path, stages: list[tuple[str, dict[str, str]]], edition: int, scratch: Path
) -> Line:
    """Write `stages/`, with a lesson each, and the last stage's files in main."""
    repo = open_repo(root)
    trees = []
    for number, (slug, wanted) in enumerate(stages, 1):
        folder = scratch / f"tree-{edition}-{number}"
        trees.append((slug, write_tree(repo, folder, wanted)))
    line = make_line(repo, trees, edition)
    write_line(repo, line)
    for stage in line.stages:
        page = root / "stages" / stage.folder / "lesson.md"
        page.write_text(lesson(stage.number, stage.slug), encoding="utf-8")
    for name, text in stages[-1][1].items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text, encoding="utf-8")
    return line


def make_environment(root: Path) -> None:
    """A `.venv` that set-up takes for done: it borrows the packages of the one that runs this."""
    venv.create(root / ".venv", with_pip=False, symlinks=True)
    borrow(root / ".venv")
    for lock in (env.RUN_LOCK,):
        env.marker(root, lock).write_text(env.digest(root, lock), encoding="utf-8")


def borrow(folder: Path) -> None:
    (packages,) = folder.glob("lib/python*/site-packages")
    (packages / "borrowed.pth").write_text(sysconfig.get_path("purelib") + "\n")


def find_just() -> str | None:
    beside = Path(sys.prefix) / "bin" / "just"
    return (
        os.environ.get("JUST") or shutil.which("just") or (str(beside) if beside.exists() else None)
    )


@dataclass(frozen=True)
class Course:
    """A course in a folder, and its commands."""

    root: Path
    home: Path

    @property
    def line(self) -> Line:
        return read_line(self.root)

    def tree(self, number: int) -> Path:
        return self.root / ".stages" / self.line.stages[number - 1].folder

    def environment(self, more: dict[str, str] | None = None) -> dict[str, str]:
        """A user's, without what this machine sets. An endpoint is set, so that none is started."""
        dropped = ("TINY_", "GIT_", "PYTHON", "PYTEST", "VIRTUAL_ENV", "COV_", "UV_", "JUST")
        kept = {k: v for k, v in os.environ.items() if not k.startswith(dropped)}
        mine = {"HOME": str(self.home), "TINY_BASE_URL": "http://127.0.0.1:9/v1"}
        return {k: v for k, v in {**kept, **mine, **(more or {})}.items() if v != "-"}

    def start(self, *words: str) -> list[str]:
        return ["sh", str(self.root / "workshop" / "start"), *words]

    def __call__(
        self,
        *words: str,
        cwd: Path | None = None,
        input: str = "",
        env: dict[str, str] | None = None,
    ) -> subprocess.CompletedProcess[str]:
        """Run a command of the workshop. A variable that is given as "-" is not set."""
        return self.call(self.start(*words), cwd, input, env or {})

    def just(
        self,
        *words: str,
        cwd: Path | None = None,
        input: str = "",
        env: dict[str, str] | None = None,
    ) -> subprocess.CompletedProcess[str]:
        """Run a recipe."""
        return self.call([find_just() or "just", *words], cwd, input, env or {})

    def call(
        self, words: list[str], cwd: Path | None, input: str, more: dict[str, str]
    ) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            words,
            cwd=cwd or self.root,
            env=self.environment(more),
            input=input,
            capture_output=True,
            encoding="utf-8",
            errors="surrogateescape",
            timeout=60,
            check=False,
        )
