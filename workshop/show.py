"""What there is, and what changed: `just list` and `just diff`."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from fnmatch import fnmatch
from pathlib import Path

from workshop.errors import DONE, USAGE, Problem
from workshop.lesson import CHAPTERS, Lesson
from workshop.line import Line, Stage, ensure_built, tag_states
from workshop.repo import Repo, open_repo
from workshop.series import tree_paths
from workshop.trees import STAGES, WORK, work_folder

ORDER = (
    "agent/*",
    "scripts/*",
    "tests/*",
    "*.toml",
    ".*",
    "registry/*",
)  # code before tests before data
BIG = 60  # a file of the registry with more added lines than this is shown as a count


def lesson_path(root: Path, stage: Stage) -> Path:
    return root / "stages" / stage.folder / "lesson.md"


def added_lines(repo: Repo, line: Line, folder: str = "agent") -> dict[str, int]:
    """The lines that each stage adds in a folder, by slug."""
    last = line.stages[-1].commit
    out = repo.git(
        "log",
        "--reverse",
        "--root",
        "--no-renames",
        "--format=%x00%s",
        "--numstat",
        last,
        "--",
        folder,
    )
    added = {stage.slug: 0 for stage in line.stages}
    for block in out.decode(errors="replace").split("\0")[1:]:
        subject, *rows = [row for row in block.splitlines() if row]
        counts = [row.split("\t")[0] for row in rows]
        added[subject.split(" ", 1)[1]] = sum(int(count) for count in counts if count.isdigit())
    return added


def progress(root: Path) -> set[str]:
    """The slugs of the stages that the learner has finished. Kept by slug, so numbers may move."""
    try:
        found = json.loads((root / ".tiny" / "progress.json").read_text(encoding="utf-8"))
        return {slug for slug, state in found.items() if state.get("done")}
    except (OSError, ValueError, AttributeError):
        return set()


def show_list(root: Path, as_json: bool) -> int:
    """Chapters and stages in their order."""
    repo = open_repo(root)
    line = ensure_built(repo)
    added, states, done = added_lines(repo, line), tag_states(repo, line), progress(root)
    lessons = {stage.slug: Lesson.read(lesson_path(root, stage)) for stage in line.stages}
    if as_json:
        rows = [
            {
                "number": stage.number,
                "slug": stage.slug,
                "title": lessons[stage.slug].title,
                "chapter": lessons[stage.slug].chapter,
                "concept": lessons[stage.slug].concept,
                "added": added[stage.slug],
                "done": stage.slug in done,
                "in_stages": (root / STAGES / stage.folder).is_dir(),
                "in_work": work_folder(root, stage).is_dir(),
                "tag": stage.tag,
                "tag_state": states[stage.slug],
                "commit": stage.commit,
            }
            for stage in line.stages
        ]
        print(json.dumps({"edition": line.edition, "stages": rows}, ensure_ascii=False))
        return DONE
    chapter = 0
    for stage in line.stages:
        lesson = lessons[stage.slug]
        if lesson.chapter != chapter:
            chapter = lesson.chapter
            gap = "\n" if stage.number > 1 else ""
            print(f"{gap}{chapter:02d} {CHAPTERS.get(chapter, '')}".rstrip())
        mark = "done" if stage.slug in done else ""
        odd = "  tag differs" if states[stage.slug] == "differs" else ""
        homes = [STAGES] if (root / STAGES / stage.folder).is_dir() else []
        homes += [WORK] if work_folder(root, stage).is_dir() else []
        here = f"  in {' and '.join(homes)}" if homes else ""
        size = f"+{added[stage.slug]}"
        row = f"  {stage.number:02d} {stage.slug:14} {lesson.title:34} {size:>5} {mark:4}"
        print((row + here + odd).rstrip())
    name_differing(line, states)
    return DONE


def name_differing(line: Line, states: dict[str, str]) -> None:
    """Say which local tags are not what line.lock says. Nothing of ours uses them."""
    odd = [stage.tag for stage in line.stages if states[stage.slug] == "differs"]
    if odd:
        print(
            f"\nwarning: {', '.join(odd)}: "
            f"your tag is not at the commit of edition {line.edition}.\n"
            "  The recipes use the edition's. To move your tags and keep the old ones:"
            " just setup --retag",
            file=sys.stderr,
        )


def show_diff(root: Path, words: list[str]) -> int:
    """What changed between two stages, or from the stage before to one; then paths."""
    flags = {"--stat": False, "--all": False}
    names: list[str] = []
    rest = iter(words)
    paths: list[str] = []
    for word in rest:
        if word == "--":
            paths += rest
        elif word in flags:
            flags[word] = True
        elif word.startswith("--"):
            raise Problem(f"diff knows no {word}.", "It knows --stat and --all.", USAGE)
        else:
            names.append(word)
    if not names:
        raise Problem(
            "diff of which stage?", "just diff 6, just diff 3 6, just diff 6 agent/", USAGE
        )
    repo = open_repo(root)
    line = ensure_built(repo)
    after = line.resolve(names[0])
    before = line.before(after)
    if len(names) > 1:
        try:
            before, after = after, line.resolve(names[1])
            paths = names[2:] + paths
        except Problem:
            if names[1].isdigit():
                raise
            paths = names[1:] + paths
    base = before.commit if before else repo.git("mktree", input=b"").decode().strip()
    known = {name for tree in (base, after.commit) for name in tree_paths(repo, tree)}
    for path in paths:
        whole = path.removeprefix("./").rstrip("/")
        if whole not in ("", ".") and not any(
            n.startswith(f"{whole}/") or fnmatch(n, whole) for n in known
        ):
            about = f"neither stage has {path!r}, and no stage is called so."
            raise Problem(about, "just diff 6, just diff 3 6, just diff 6 agent/", USAGE)
    print_diff(repo, base, after.commit, paths, **{k.strip("-"): v for k, v in flags.items()})
    return DONE


def print_diff(repo: Repo, base: str, after: str, paths: list[str], stat: bool, all: bool) -> None:
    colour = sys.stdout.isatty() and not os.environ.get("NO_COLOR")
    where = [f":(top){path.removeprefix('./') or '.'}" for path in paths] or ["."]
    with tempfile.TemporaryDirectory(prefix="tiny-diff-") as scratch:
        order = Path(scratch) / "order"
        order.write_text("".join(f"{glob}\n" for glob in ORDER))
        flags = [
            "--no-ext-diff",
            "--no-textconv",
            "--find-renames",
            f"-O{order}",
            f"--color={'always' if colour else 'never'}",
        ]
        big: list[tuple[str, str]] = []
        if not paths and not all and not stat:
            rows = (
                repo.git("diff", "--numstat", "--no-renames", "-z", base, after)
                .decode(errors="replace")
                .split("\0")
            )
            for row in filter(None, rows):
                count, _, name = row.split("\t", 2)
                if name.startswith("registry/") and (not count.isdigit() or int(count) > BIG):
                    big.append((count, name))
        without = [f":(top,exclude,literal){name}" for _, name in big]
        text = repo.git(
            "diff", *flags, *(["--stat=100"] if stat else []), base, after, "--", *where, *without
        )
    if big:
        rows_text = "".join(f"  +{count:5} {name}\n" for count, name in big)
        text += f"\nData, as counts only; name a path or --all to see it:\n{rows_text}".encode()
    page(text)


def page(text: bytes) -> None:
    """Write to a terminal through the user's pager, to anything else as it is."""
    if sys.stdout.isatty():
        # With the user's own configuration, unlike every other call of git.
        asked = subprocess.run(["git", "var", "GIT_PAGER"], capture_output=True, check=False)
        pager = asked.stdout.decode(errors="replace").strip() or "less"
        if pager != "cat" and shutil.which(pager.split()[0]):
            environment = {"LESS": "FRX", **os.environ}
            subprocess.run(pager, shell=True, input=text, env=environment, check=False)
            return
    sys.stdout.buffer.write(text)
    sys.stdout.buffer.flush()
