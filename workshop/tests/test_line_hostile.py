"""The line under settings, attributes and repositories that would change or misplace it."""

from __future__ import annotations

import os
import subprocess
import threading
from pathlib import Path

import pytest

from workshop.errors import Problem
from workshop.line import LOCK, ensure_built, read_line, retag
from workshop.repo import open_repo
from workshop.series import patch
from workshop.tests.lines import (
    ATTRIBUTES,
    BASE,
    everything,
    git,
    ladder,
    line_of,
    project,
    put,
    refusal,
    run,
)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return project(tmp_path / "course", ladder(4))


def exported(root: Path) -> dict[str, bytes]:
    """Every patch as a save would write it now."""
    repo, found, before = open_repo(root), {}, None
    for stage in ensure_built(repo).stages:
        found[stage.folder] = patch(repo, before, stage.tree)
        before = stage.tree
    return found


def stored(root: Path) -> dict[str, bytes]:
    return {path.parent.name: path.read_bytes() for path in root.glob("stages/*/change.patch")}


def test_T35_attributes_of_the_repository_change_no_patch(root: Path) -> None:
    (root / ".git" / "info").mkdir(exist_ok=True)
    (root / ".git" / "info" / "attributes").write_text("* -diff eol=crlf\n*.py binary\n")
    assert exported(root) == stored(root)


def test_T35_attributes_of_the_checkout_change_no_patch(root: Path) -> None:
    (root / ".gitattributes").write_text("*.py binary\n* -diff\n")
    assert exported(root) == stored(root)


def test_T35_attributes_that_a_late_stage_brings_change_no_early_patch(tmp_path: Path) -> None:
    stages = ladder(3)
    last = {**stages[-1][1], ".gitattributes": ATTRIBUTES + b"*.py -diff\n"}
    root = project(tmp_path / "course", [*stages, ("attributes", last)])
    early = {name: data for name, data in stored(root).items() if name[:2] != "04"}
    put(root / "x", "y", b"")  # an untracked file of the maintainer's
    run(root, "edit", "4")
    put(root / ".edit/04-attributes", "agent/more.py", b"M = 1\n")
    run(root, "save")
    assert {name: data for name, data in stored(root).items() if name[:2] != "04"} == early


@pytest.mark.parametrize(
    ("key", "value"),
    [("core.bigFileThreshold", "1"), ("core.compression", "0"), ("core.sparseCheckout", "true")],
)
def test_T35_repository_settings_change_no_patch(tmp_path: Path, key: str, value: str) -> None:
    files = {**BASE, "agent/x.bin": bytes(range(256)) * 9, "agent/x.py": b"X = 1\n" * 200}
    root = project(tmp_path / "course", [("one", files)])
    git(root, "config", key, value)
    assert exported(root) == stored(root)


def test_T32_a_repository_that_git_cannot_use_is_a_problem_not_a_private_one(root: Path) -> None:
    (root / ".git").rename(root / ".git-away")
    (root / ".git").write_text("gitdir: /nowhere/worktrees/course\n")
    with pytest.raises(Problem, match="git worktree repair"):
        open_repo(root)
    assert not (root / ".stages").exists()


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="needs to be root")
def test_T32_a_checkout_of_another_owner_is_used_all_the_same(root: Path) -> None:
    for path in [root, root / ".git"]:
        os.chown(path, 12345, 12345)
    env = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull}
    plain = subprocess.run(
        ["git", "status"], cwd=root, env={**os.environ, **env}, capture_output=True, check=False
    )
    assert b"dubious ownership" in plain.stderr
    assert not open_repo(root).private


def test_T29_retag_keeps_an_annotated_tag_with_its_message(root: Path) -> None:
    repo = open_repo(root)
    line = ensure_built(repo)
    tag = line.stages[1].tag
    git(root, "tag", "-f", "-a", "-m", "my words", tag, "HEAD")
    own = git(root, "rev-parse", f"refs/tags/{tag}")
    retag(repo, line)
    assert own in git(root, "for-each-ref", "--format=%(objectname)", "refs/tiny/old-tags")
    assert git(root, "rev-parse", f"refs/tags/{tag}") == line.stages[1].commit


def test_a_stage_that_the_lock_has_no_more_leaves_no_ref(root: Path) -> None:
    repo = open_repo(root)
    gone = ensure_built(repo).stages[-1]
    text = (root / LOCK).read_text()
    (root / LOCK).write_text(text[: text.index(f"{gone.number:02d} {gone.slug}")])
    ensure_built(repo)
    assert gone.ref not in git(root, "for-each-ref", "refs/tiny/line")


@pytest.mark.parametrize("what", ["slug", "edition"])
def test_a_lock_that_says_a_thing_twice_is_named_with_its_line(root: Path, what: str) -> None:
    rows = (root / LOCK).read_text().splitlines()
    if what == "slug":
        words = rows[-1].split()
        words[1] = line_of(root).stages[0].slug
        rows[-1] = " ".join(words)
    else:
        rows.append("edition 7")
    (root / LOCK).write_text("\n".join(rows) + "\n")
    with pytest.raises(Problem, match=rf"line\.lock, line {len(rows)}:"):
        read_line(root)


def test_builds_at_the_same_time_all_succeed(root: Path) -> None:
    failed: list[BaseException] = []

    def work() -> None:
        try:
            ensure_built(open_repo(root))
        except BaseException as error:
            failed.append(error)

    for _ in range(3):
        for ref in git(
            root, "for-each-ref", "--format=%(refname)", "refs/tiny", "refs/tags"
        ).split():
            git(root, "update-ref", "-d", ref)
        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert failed == []


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("agent/a\nb.py", "control character"),
        (os.fsdecode(b"agent/\xff.py"), "not UTF-8"),
        ("agent/CORE.py", "one file on some machines"),
    ],
)
def test_a_file_name_that_some_machine_cannot_hold_is_refused(
    root: Path, name: str, says: str
) -> None:
    before = everything(root)
    run(root, "edit", "2")
    try:
        put(root / ".edit/02-step-b2", name, b"x\n")
    except OSError:
        pytest.skip("this file system has no such names")
    if not (root / ".edit/02-step-b2" / name).is_file():
        pytest.skip("this file system has no such names")
    assert says in str(refusal(root, "save"))
    (root / ".edit/02-step-b2" / name).unlink()
    run(root, "save", "--abort")
    assert everything(root) == before


def test_what_the_user_ignores_everywhere_is_kept_and_not_committed(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(tmp_path, "home/.config/git/ignore", b"*.swp\n")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", os.devnull)
    before = stored(root)
    run(root, "edit", "4")
    put(root / ".edit/04-step-d4", "agent/x.swp", b"unsaved words")
    run(root, "save")
    assert stored(root) == before
    assert (root / ".edit/kept/04-step-d4/agent/x.swp").read_bytes() == b"unsaved words"


def test_conflict_markers_that_git_add_took_still_stop_a_save(tmp_path: Path) -> None:
    one: dict[str, bytes | tuple[str, bytes]] = {**BASE, "agent/a.py": b"A = 1\n"}
    stages = [("one", one), ("two", {**one, "agent/a.py": b"A = 2\n"})]
    root = project(tmp_path / "course", stages)
    run(root, "edit", "1")
    put(root / ".edit/01-one", "agent/a.py", b"A = 3\n")
    assert "conflicts" in str(refusal(root, "save"))
    git(root / ".edit/carry", "add", "-A")
    assert "conflict markers" in str(refusal(root, "save"))
    put(root / ".edit/carry", "agent/a.py", b"A = 4\n")
    run(root, "save")
    assert (root / "agent/a.py").read_bytes() == b"A = 4\n"


def test_a_patch_changed_by_hand_is_not_written_over(root: Path) -> None:
    mine = root / "stages/03-step-c3/change.patch"
    mine.write_bytes(mine.read_bytes() + b"my own words\n")
    before = everything(root)
    run(root, "edit", "2")
    put(root / ".edit/02-step-b2", "agent/more.py", b"M = 1\n")
    assert "03-step-c3/change.patch was changed by hand" in str(refusal(root, "save"))
    assert {n: d for n, d in everything(root).items() if not n.startswith(".edit/")} == before
    git(root, "checkout", "--", "stages")
    run(root, "save")
    assert (root / "agent/more.py").is_file()


def test_patches_with_turned_line_ends_do_not_hinder_a_save(root: Path) -> None:
    for path in root.glob("stages/*/change.patch"):
        path.write_bytes(path.read_bytes().replace(b"\n", b"\r\n"))
    run(root, "edit", "2")
    put(root / ".edit/02-step-b2", "agent/more.py", b"M = 1\n")
    run(root, "save")
    assert not any(b"\r" in data for data in stored(root).values())


def test_two_saves_at_once_are_refused(root: Path) -> None:
    fcntl = pytest.importorskip("fcntl")
    run(root, "edit", "2")
    with (root / ".git" / "tiny-edit.lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        assert "another edit or save" in str(refusal(root, "save"))
    run(root, "save", "--abort")
