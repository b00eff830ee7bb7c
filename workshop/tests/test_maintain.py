"""Editing the line: open, carry, conflict, abort, and never losing a thing."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from workshop import maintain
from workshop.line import ensure_built, read_line
from workshop.repo import open_repo
from workshop.series import make_line, write_line
from workshop.tests.lines import (
    BASE,
    body,
    everything,
    git,
    ladder,
    line_of,
    project,
    put,
    refusal,
    run,
    show,
    tree,
)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return project(tmp_path / "course", ladder(5))


def change(root: Path, name: str, path: str, old: bytes, new: bytes) -> None:
    file = root / ".edit" / name / path
    data = file.read_bytes()
    assert data.count(old) == 1, data
    file.write_bytes(data.replace(old, new))


def slugs(root: Path) -> list[str]:
    return [stage.slug for stage in line_of(root).stages]


def no_edit_is_left(root: Path) -> bool:
    branches = git(root, "for-each-ref", "refs/heads/edit", "refs/tiny/edit")
    trees = git(root, "worktree", "list")
    return not branches and not (root / ".edit/state.json").exists() and trees.count("\n") == 0


def matches_disk(root: Path) -> bool:
    """Whether main's copy is the last stage's tree, and a fresh build agrees with the lock."""
    repo, line = open_repo(root), line_of(root)
    ensure_built(repo, line)
    names = repo.git("ls-tree", "-r", "--name-only", line.stages[-1].tree).decode().split()
    last = line.stages[-1].commit
    return all(stored(root / name) == show(root, last, name) for name in names)


def stored(path: Path) -> bytes:
    return os.fsencode(path.readlink()) if path.is_symlink() else path.read_bytes()


def test_an_edit_reaches_every_later_stage_and_main(root: Path) -> None:
    before = line_of(root)
    assert run(root, "edit", "2") == 0
    change(root, "02-step-b2", "agent/core.py", b"# f1 begins", b"# f1 starts")
    assert run(root, "save") == 0
    after = line_of(root)
    assert after.edition == 2
    assert after.stages[0] == before.stages[0]
    assert b"f1 begins" in show(root, after.stages[0].commit, "agent/core.py")
    for stage in after.stages[1:]:
        assert b"# f1 starts" in show(root, stage.commit, "agent/core.py")
    assert (root / "agent/core.py").read_bytes().count(b"f1 starts") == 1
    assert matches_disk(root)
    assert no_edit_is_left(root)
    assert git(root, "rev-parse", "refs/tags/stage-05-step-e5") == after.stages[4].commit
    assert not (root / ".edit").exists()


def test_same_edition_keeps_the_number(root: Path) -> None:
    run(root, "edit", "2")
    change(root, "02-step-b2", "agent/core.py", b"# f1 begins", b"# f1 starts")
    run(root, "save", "--same-edition")
    assert line_of(root).edition == 1


def test_T34_an_edit_without_a_change_writes_nothing(root: Path) -> None:
    before = everything(root)
    run(root, "edit", "3")
    assert run(root, "save") == 0
    assert everything(root) == before
    assert git(root, "status", "--porcelain") == ""
    assert no_edit_is_left(root)


def test_T34_an_edit_undone_by_a_second_edit_gives_the_same_patches(root: Path) -> None:
    before = everything(root)
    for old, new in ((b"# f1 begins", b"# x"), (b"# x", b"# f1 begins")):
        run(root, "edit", "1")
        change(root, "01-step-a1", "agent/core.py", old, new)
        run(root, "save", "--same-edition")
    assert everything(root) == before


def test_edit_again_says_where_it_is_and_refuses_another(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run(root, "edit", "2")
    capsys.readouterr()
    assert run(root, "edit", "2") == 0
    assert ".edit/02-step-b2" in capsys.readouterr().out
    assert run(root, "edit") == 0
    assert "is open" in refusal(root, "edit", "3").message


def test_an_ambiguous_later_hunk_is_placed_right_by_save_and_refused_as_a_patch(
    tmp_path: Path,
) -> None:
    same = b"    a = 1\n    b = 2\n    c = 3\n    d = 4\n    e = 5\n    f = 6\n"
    marked = same.replace(b"c = 3\n", b"c = 3\n    mark = 1\n")
    first = b"def late():\n" + same
    stages = [("one", {**BASE, "agent/a.py": first}),
              ("two", {**BASE, "agent/a.py": b"def late():\n" + marked})]  # fmt: skip
    root = project(tmp_path / "course", stages)
    run(root, "edit", "1")
    # A twin of the function, where the later hunk's line numbers point.
    edited = b"def early():\n" + same + b"def late():\n" + same
    put(root, ".edit/01-one/agent/a.py", edited)
    stored = (root / "stages/02-two/change.patch").read_bytes()
    run(root, "save")
    right = b"def early():\n" + same + b"def late():\n" + marked
    assert show(root, line_of(root).stages[1].commit, "agent/a.py") == right
    # The stored patch applies too, but to the wrong function: the lock refuses it.
    (root / "stages/02-two/change.patch").write_bytes(stored)
    git(root, "add", "-A")
    git(root, "commit", "-qm", "drifted")
    git(root, "update-ref", "-d", "refs/tiny/line/02-two")
    with pytest.raises(maintain.Problem, match=r"02-two/change\.patch gives tree"):
        ensure_built(open_repo(root))


def conflict(root: Path) -> None:
    """Stop a save at stage 03: it adds to what the edit of stage 02 takes away."""
    run(root, "edit", "2")
    change(root, "02-step-b2", "agent/core.py", b"    # f2 ends\n    return y\n", b"    return 2\n")
    problem = refusal(root, "save")
    assert "stage 03-step-c3 conflicts in: agent/core.py" in problem.message
    assert "resolve in .edit/carry, then just save" in problem.mend
    assert "just save --abort" in problem.mend


def test_a_conflict_writes_nothing_and_is_resumed(root: Path) -> None:
    before = everything(root)
    conflict(root)
    now = {name: data for name, data in everything(root).items() if not name.startswith(".edit/")}
    assert now == before
    assert "still has conflict markers" in refusal(root, "save").message
    fixed = body("f1", "f2", "f3").replace(b"    # f2 ends\n    return y\n", b"    return 2\n")
    put(root, ".edit/carry/agent/core.py", fixed)
    assert run(root, "save") == 0
    line = line_of(root)
    assert line.edition == 2
    assert show(root, line.stages[2].commit, "agent/core.py") == fixed
    assert b"return 2" in (root / "agent/core.py").read_bytes()
    assert no_edit_is_left(root)
    assert matches_disk(root)


def test_an_abort_restores_everything_and_keeps_the_work(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = everything(root)
    conflict(root)
    put(root, ".edit/carry/agent/half.py", b"half resolved\n")
    assert run(root, "save", "--abort") == 0
    assert everything(root) == before
    assert no_edit_is_left(root)
    names = git(root, "for-each-ref", "--format=%(refname:short)", "refs/heads/rescue").split()
    kept = {name.split("/")[1].rsplit("-", 2)[0]: name for name in names}
    assert set(kept) == {"edit-02-step-b2", "carry-02-step-b2"}
    assert b"return 2" in show(root, kept["edit-02-step-b2"], "agent/core.py")
    assert show(root, kept["carry-02-step-b2"], "agent/half.py") == b"half resolved\n"
    assert all(name in capsys.readouterr().out for name in names[:1])


def test_an_edit_changed_at_a_conflict_is_carried_anew(root: Path) -> None:
    conflict(root)
    put(root, ".edit/02-step-b2/agent/core.py", body("f1", "f2").replace(b"f1 ends", b"f1 stops"))
    assert run(root, "save") == 0
    assert b"f1 stops" in (root / "agent/core.py").read_bytes()
    assert b"return 2" not in (root / "agent/core.py").read_bytes()
    assert git(root, "for-each-ref", "refs/heads/rescue/carry*")


def test_an_untouched_binary_conflict_is_not_taken_for_resolved(tmp_path: Path) -> None:
    stages = [(slug, {**BASE, "agent/x.bin": data})
              for slug, data in (("one", b"\0one"), ("two", b"\0two"))]  # fmt: skip
    root = project(tmp_path / "course", stages)
    run(root, "edit", "1")
    put(root, ".edit/01-one/agent/x.bin", b"\0edited")
    assert "02-two conflicts in: agent/x.bin" in refusal(root, "save").message
    assert "is not decided" in refusal(root, "save").message
    git(root / ".edit/carry", "checkout", "--theirs", "agent/x.bin")
    git(root / ".edit/carry", "add", "agent/x.bin")
    assert run(root, "save") == 0
    assert (root / "agent/x.bin").read_bytes() == b"\0two"


def test_a_pick_given_up_by_hand_is_not_an_empty_stage(root: Path) -> None:
    conflict(root)
    git(root / ".edit/carry", "cherry-pick", "--abort")
    assert "03-step-c3 conflicts" in refusal(root, "save").message


def test_a_resolution_committed_by_hand_is_taken(tmp_path: Path) -> None:
    stages = [(slug, {**BASE, "agent/x.py": data})
              for slug, data in (("one", b"a\n"), ("two", b"b\n"))]  # fmt: skip
    root = project(tmp_path / "course", stages)
    run(root, "edit", "1")
    put(root, ".edit/01-one/agent/x.py", b"c\n")
    refusal(root, "save")
    put(root, ".edit/carry/agent/x.py", b"d\n")
    git(root / ".edit/carry", "commit", "-qam", "mine")
    assert run(root, "save") == 0
    assert (root / "agent/x.py").read_bytes() == b"d\n"


@pytest.mark.parametrize("place", [1, 3, 6])
def test_insert_puts_a_new_stage_and_folders_follow(root: Path, place: int) -> None:
    put(root, "stages/04-step-d4/notes/mine.txt", b"untracked\n")
    put(root, "stages/04-step-d4/mutants.yaml", b"a: 1\n")
    before = line_of(root)
    run(root, "edit", "--insert", str(place), "fresh")
    put(root, f".edit/{place:02d}-fresh/agent/fresh.py", b"NEW = 1\n")
    if place == 1:
        for name, data in BASE.items():
            assert isinstance(data, bytes)
            put(root, f".edit/01-fresh/{name}", data)
    assert run(root, "save") == 0
    after = line_of(root)
    assert [s.slug for s in after.stages] == [
        *[s.slug for s in before.stages[: place - 1]], "fresh",
        *[s.slug for s in before.stages[place - 1 :]]]  # fmt: skip
    assert after.edition == (1 if place == 6 else 2)
    folder = root / "stages" / after.resolve("step-d4").folder
    assert (folder / "notes/mine.txt").read_bytes() == b"untracked\n"
    assert (folder / "mutants.yaml").read_bytes() == b"a: 1\n"
    assert (folder / "lesson.md").read_text() == "# step-d4\n"
    assert sorted(path.name for path in (root / "stages").iterdir()) == sorted(
        [*[s.folder for s in after.stages], "line.lock"]
    )
    assert (root / "agent/fresh.py").read_bytes() == b"NEW = 1\n"
    assert matches_disk(root)
    tags = git(root, "tag", "--list", "stage-*").split()
    assert tags == [s.tag for s in after.stages]


def test_the_first_stage_of_all_is_inserted_into_an_empty_line(tmp_path: Path) -> None:
    root = project(tmp_path / "course", [])
    (root / "stages/line.lock").unlink()
    run(root, "edit", "--insert", "1", "begin")
    for name, data in {**BASE, "agent/a.py": b"A = 1\n"}.items():
        assert isinstance(data, bytes)
        put(root, f".edit/01-begin/{name}", data)
    assert run(root, "save") == 0
    assert slugs(root) == ["begin"]
    assert line_of(root).edition == 1
    assert (root / "agent/a.py").read_bytes() == b"A = 1\n"
    assert git(root, "rev-list", "--count", "refs/tags/stage-01-begin") == "1"


def test_split_restores_the_stage_in_its_second_half(root: Path) -> None:
    before = line_of(root)
    run(root, "edit", "3", "--split", "rest")
    (root / ".edit/03-step-c3/agent/part3.py").unlink()
    assert run(root, "save") == 0
    after = line_of(root)
    assert slugs(root) == ["step-a1", "step-b2", "step-c3", "rest", "step-d4", "step-e5"]
    assert [s.tree for s in after.stages[3:]] == [s.tree for s in before.stages[2:]]
    assert after.stages[2].tree not in {s.tree for s in before.stages}
    assert (root / "stages/05-step-d4/lesson.md").read_text() == "# step-d4\n"
    assert matches_disk(root)


def test_drop_takes_a_stage_out_and_keeps_its_folder(tmp_path: Path) -> None:
    stages = ladder(2)
    stages.append(("extra", {**stages[-1][1], "agent/extra.py": b"E = 1\n"}))
    stages.append(("last", {**stages[-1][1], "agent/last.py": b"L = 1\n"}))
    root = project(tmp_path / "course", stages)
    put(root, "stages/03-extra/mine.txt", b"untracked\n")
    run(root, "edit", "--drop", "extra")
    assert (root / "agent/extra.py").exists()
    assert run(root, "save") == 0
    assert slugs(root) == ["step-a1", "step-b2", "last"]
    assert not (root / "agent/extra.py").exists()
    (kept,) = (root / ".edit/dropped").iterdir()
    assert (kept / "mine.txt").read_bytes() == b"untracked\n"
    assert (kept / "lesson.md").exists()
    assert matches_disk(root)
    assert git(root, "tag", "--list", "stage-*").split() == [s.tag for s in line_of(root).stages]
    assert no_edit_is_left(root)


def test_move_changes_the_order(tmp_path: Path) -> None:
    stages = ladder(1)
    for name in ("x", "y", "z"):
        stages.append((name, {**stages[-1][1], f"agent/{name}.py": b"N = 1\n"}))
    root = project(tmp_path / "course", stages)
    trees = line_of(root).stages[-1].tree
    run(root, "edit", "--move", "4", "2")
    assert run(root, "save") == 0
    assert slugs(root) == ["step-a1", "z", "x", "y"]
    assert line_of(root).stages[-1].tree == trees
    assert (root / "stages/02-z/lesson.md").read_text() == "# z\n"
    run(root, "edit", "--move", "z", "1")
    assert run(root, "save") == 0
    first = line_of(root).stages[0]
    names = git(root, "ls-tree", "-r", "--name-only", first.commit).split()
    assert names == ["agent/z.py"]
    assert line_of(root).stages[-1].tree == trees


@pytest.mark.parametrize(
    ("words", "folder"),
    [(("--rename", "4", "better"), "04-better"), (("--insert", "2", "fresh"), "05-step-d4")],
)
def test_a_second_solution_follows_its_stage(
    root: Path, words: tuple[str, ...], folder: str
) -> None:
    second = {"agent/part4.py": b"PART = 2 + 2\n", "agent/own/more.py": b"MORE = 1\n"}
    for name, data in second.items():
        put(root, f"stages/04-step-d4/second/{name}", data)
    git(root, "add", "-A")
    git(root, "commit", "-qm", "second")
    run(root, "edit", *words)
    if words[0] == "--insert":
        put(root, ".edit/02-fresh/agent/fresh.py", b"NEW = 1\n")
    assert run(root, "save") == 0
    found = everything(root / "stages")
    for name, data in second.items():
        assert found[f"{folder}/second/{name}"].startswith(data)
    assert sum("/second/" in name for name in found) == len(second)


def test_a_second_solution_follows_a_stage_that_moves(tmp_path: Path) -> None:
    stages = [(slug, {**BASE, **{f"agent/{s}.py": b"X = 1\n" for s in "abc"[: number + 1]}})
              for number, slug in enumerate(("a", "b", "c"))]  # fmt: skip
    root = project(tmp_path / "course", stages)
    put(root, "stages/03-c/second/agent/c.py", b"X = 2 - 1\n")
    run(root, "edit", "--move", "3", "2")
    assert run(root, "save") == 0
    assert slugs(root) == ["a", "c", "b"]
    assert (root / "stages/02-c/second/agent/c.py").read_bytes() == b"X = 2 - 1\n"
    assert not list((root / "stages/03-b").glob("second"))


def test_rename_gives_a_new_slug_and_keeps_trees(root: Path) -> None:
    before = line_of(root)
    run(root, "edit", "--rename", "3", "better")
    assert run(root, "save") == 0
    after = line_of(root)
    assert slugs(root)[2] == "better"
    assert [s.tree for s in after.stages] == [s.tree for s in before.stages]
    assert (root / "stages/03-better/lesson.md").read_text() == "# step-c3\n"
    assert not (root / "stages/03-step-c3").exists()


@pytest.mark.parametrize(
    "words",
    [
        ("0",), ("99",), ("8x",), ("",), ("-1",), ("1", "--split", "step-b2"),
        ("1", "--split", "A"),
        ("--insert", "7", "new"), ("--insert", "1", "step-a1"), ("--insert", "1", "08"),
        ("--move", "1", "6"), ("--move", "2", "2"), ("--rename", "1", "step-b2"),
        ("--drop", "9"), ("1", "--drop", "2"), (),
    ],
)  # fmt: skip
def test_T1_a_request_that_names_nothing_ends_in_2_and_opens_nothing(
    root: Path, words: tuple[str, ...]
) -> None:
    assert refusal(root, "edit", *words).exit_code == 2
    assert not (root / ".edit").exists()


def test_a_dirty_main_is_refused_before_anything_is_written(root: Path) -> None:
    run(root, "edit", "2")
    change(root, "02-step-b2", "agent/core.py", b"# f1 begins", b"# f1 starts")
    put(root, "agent/part4.py", b"my own work\n")
    before = everything(root)
    problem = refusal(root, "save")
    assert "agent/part4.py" in problem.message
    kept = {name: data for name, data in everything(root).items() if not name.startswith(".edit/")}
    assert kept == {n: d for n, d in before.items() if not n.startswith(".edit/")}
    assert line_of(root).edition == 1
    git(root, "checkout", "--", "agent/part4.py")
    assert run(root, "save") == 0


def test_an_untracked_file_is_neither_deleted_nor_overwritten(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    put(root, "agent/mine.py", b"mine\n")
    put(root, "agent/new.py", b"also mine\n")
    run(root, "edit", "2")
    put(root, ".edit/02-step-b2/agent/new.py", b"the line's\n")
    assert "agent/new.py" in refusal(root, "save").message
    assert (root / "agent/new.py").read_bytes() == b"also mine\n"
    assert line_of(root).edition == 1
    (root / "agent/new.py").rename(root / "elsewhere.py")
    assert run(root, "save") == 0
    assert (root / "agent/new.py").read_bytes() == b"the line's\n"
    assert (root / "agent/mine.py").read_bytes() == b"mine\n"
    assert "left alone, not in the line: agent/mine.py" in capsys.readouterr().err


def test_a_save_on_top_of_a_save_that_is_not_committed_yet_goes_through(root: Path) -> None:
    for word in (b"starts", b"opens"):
        run(root, "edit", "1")
        file = root / ".edit/01-step-a1/agent/core.py"
        file.write_bytes(body("f1").replace(b"begins", word))
        assert run(root, "save") == 0
    assert b"# f1 opens" in (root / "agent/core.py").read_bytes()
    assert line_of(root).edition == 3


def test_ignored_files_stay_out_and_are_kept(root: Path) -> None:
    run(root, "edit", "2")
    change(root, "02-step-b2", "agent/core.py", b"# f1 begins", b"# f1 starts")
    put(root, ".edit/02-step-b2/.env", b"SECRET=1\n")
    put(root, ".edit/02-step-b2/agent/__pycache__/x.pyc", b"x")
    assert run(root, "save") == 0
    assert (root / ".edit/kept/02-step-b2/.env").read_bytes() == b"SECRET=1\n"
    assert not list((root / ".edit").rglob("*.pyc"))
    names = git(root, "ls-tree", "-r", "--name-only", line_of(root).stages[-1].commit)
    assert ".env" not in names.split()


@pytest.mark.parametrize("cut", ["move_folder", "write_line", "write_main", "build", "move_tags",
                                 "report", "close"])  # fmt: skip
@pytest.mark.parametrize("then", ["save", "abort"])
def test_an_interrupted_save_is_run_again_or_undone(
    root: Path, monkeypatch: pytest.MonkeyPatch, cut: str, then: str
) -> None:
    before = everything(root)
    run(root, "edit", "--insert", "2", "fresh")
    put(root, ".edit/02-fresh/agent/fresh.py", b"NEW = 1\n")
    with monkeypatch.context() as patch:

        def killed(*_: object) -> None:
            raise KeyboardInterrupt

        patch.setattr(maintain, cut, killed)
        with pytest.raises(KeyboardInterrupt):
            run(root, "save")
    if then == "save":
        assert run(root, "save") == 0
        assert slugs(root)[1] == "fresh"
        assert line_of(root).edition == 2
        assert (root / "agent/fresh.py").exists()
        assert matches_disk(root)
    else:
        assert run(root, "save", "--abort") == 0
        assert everything(root) == before
        assert git(root, "for-each-ref", "refs/heads/rescue")
    assert git(root, "tag", "--list", "stage-*").split() == [s.tag for s in line_of(root).stages]
    assert no_edit_is_left(root)


def test_a_foreign_tag_is_named_and_stays(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    head = git(root, "rev-parse", "HEAD")
    git(root, "tag", "stage-04-step-d4", head)
    run(root, "edit", "2")
    change(root, "02-step-b2", "agent/core.py", b"# f1 begins", b"# f1 starts")
    run(root, "save")
    assert git(root, "rev-parse", "refs/tags/stage-04-step-d4") == head
    assert "stage-04-step-d4" in capsys.readouterr().err


def test_an_empty_stage_is_warned_about(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run(root, "edit", "--insert", "3", "hollow")
    assert run(root, "save") == 0
    assert "stage 03-hollow changes nothing" in capsys.readouterr().err
    assert matches_disk(root)


def test_what_moved_and_a_range_diff_are_printed(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    old = line_of(root)
    run(root, "edit", "4")
    change(root, "04-step-d4", "agent/core.py", b"# f1 begins", b"# f1 starts")
    capsys.readouterr()
    run(root, "save")
    out, new = capsys.readouterr().out, line_of(root)
    assert f"04-step-d4: {old.stages[3].commit[:12]} -> {new.stages[3].commit[:12]}" in out
    assert "03-step-c3" not in out
    assert "git range-diff" in out
    assert "+    # f1 starts" in out


def test_a_branch_of_stage_commits_is_adopted(root: Path) -> None:
    ensure_built(open_repo(root))
    line = line_of(root)
    git(root, "worktree", "add", "-q", "--detach", str(root.parent / "w"), line.stages[1].commit)
    work = root.parent / "w"
    put(work, "agent/other.py", b"O = 1\n")
    git(work, "add", "-A")
    git(work, "commit", "-qm", "03 other")
    git(work, "branch", "mine")
    assert run(root, "save", "--from", "mine", "--same-edition") == 0
    assert slugs(root) == ["step-a1", "step-b2", "other"]
    assert line_of(root).edition == 1
    assert not (root / "agent/part5.py").exists()
    assert len(list((root / ".edit/dropped").iterdir())) == 3
    assert git(root, "rev-parse", "mine") == git(work, "rev-parse", "HEAD")
    assert matches_disk(root)


@pytest.mark.parametrize("ref", ["nowhere", "--all", "main"])
def test_a_ref_that_is_no_line_is_refused_and_leaves_nothing_open(root: Path, ref: str) -> None:
    before = everything(root)
    refusal(root, "save", f"--from={ref}")
    assert everything(root) == before


def test_a_file_that_no_stage_may_hold_is_refused(root: Path) -> None:
    run(root, "edit", "2")
    put(root, ".edit/02-step-b2/justfile", b"x:\n")
    assert "justfile" in refusal(root, "save").message
    (root / ".edit/02-step-b2/justfile").unlink()
    assert run(root, "save") == 0
    assert line_of(root).edition == 1


def test_a_lock_that_changed_meanwhile_is_refused(root: Path) -> None:
    run(root, "edit", "2")
    lock = root / "stages/line.lock"
    text = lock.read_text()
    lock.write_text(text.replace("edition 1", "edition 7"))
    assert "has changed since" in refusal(root, "save").message
    lock.write_text(text)
    assert run(root, "save") == 0


def test_a_rebase_under_way_in_the_edit_is_refused(root: Path) -> None:
    run(root, "edit", "2")
    work = root / ".edit/02-step-b2"
    change(root, "02-step-b2", "agent/core.py", b"# f1 begins", b"# f1 starts")
    git(work, "commit", "-qam", "mine")
    git(work, "rebase", "-q", "-x", "false", "HEAD~1", check=False)
    assert refusal(root, "save").mend
    git(work, "rebase", "--abort")
    assert run(root, "save") == 0
    assert line_of(root).edition == 2


def test_T5_an_edit_folder_deleted_by_hand_opens_again(root: Path) -> None:
    run(root, "edit", "2")
    shutil.rmtree(root / ".edit/02-step-b2")
    assert run(root, "edit", "2") == 0
    assert (root / ".edit/02-step-b2/agent/core.py").exists()
    assert run(root, "save") == 0


def test_T13_a_project_that_was_moved_goes_on(root: Path, tmp_path: Path) -> None:
    run(root, "edit", "2")
    change(root, "02-step-b2", "agent/core.py", b"# f1 begins", b"# f1 starts")
    moved = root.rename(tmp_path / "moved")
    assert run(moved, "save") == 0
    assert line_of(moved).edition == 2


def test_T16_adding_all_in_main_takes_no_edit_worktree(tmp_path: Path) -> None:
    base = {".gitattributes": b"* text=auto eol=lf\n"}
    root = project(tmp_path / "course", [("one", {**base, "agent/a.py": b"A = 1\n"})])
    run(root, "edit", "1")
    git(root, "add", "-A")
    assert git(root, "status", "--porcelain") == ""


def test_T19_T20_T22_hooks_signing_and_inherited_variables_change_nothing(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    twin = project(tmp_path / "twin", ladder(5))
    hooks = tmp_path / "hooks"
    for name in ("pre-commit", "post-checkout", "commit-msg", "reference-transaction"):
        put(hooks, name, b"#!/bin/sh\nexit 1\n", "100755")
    for name, value in {"core.hooksPath": str(hooks), "commit.gpgSign": "true",
                        "gpg.format": "ssh", "user.signingKey": "/nowhere",
                        "merge.conflictStyle": "diff3", "apply.whitespace": "error",
                        "core.autocrlf": "true"}.items():  # fmt: skip
        git(twin, "config", name, value)
    for where in (root, twin):
        if where == twin:
            monkeypatch.setenv("GIT_DIR", str(root / ".git"))
            monkeypatch.setenv("GIT_INDEX_FILE", str(tmp_path / "no-index"))
        run(where, "edit", "2")
        change(where, "02-step-b2", "agent/core.py", b"# f1 begins", b"# f1 starts")
        assert run(where, "save") == 0
    assert read_line(twin) == read_line(root)


@pytest.mark.parametrize("name", ["with space", 'it\'s "quoted"', "Übung größer", "-dash", "a$b`c"])
def test_a_root_with_an_odd_name_is_edited(tmp_path: Path, name: str) -> None:
    root = project(tmp_path / name, ladder(3))
    run(root, "edit", "1")
    change(root, "01-step-a1", "agent/core.py", b"# f1 begins", b"# f1 starts")
    assert run(root, "save") == 0
    assert matches_disk(root)


def test_main_in_a_linked_worktree_is_edited(root: Path, tmp_path: Path) -> None:
    linked = tmp_path / "linked"
    git(root, "worktree", "add", "-q", "-b", "other", str(linked))
    run(linked, "edit", "1")
    change(linked, "01-step-a1", "agent/core.py", b"# f1 begins", b"# f1 starts")
    assert run(linked, "save") == 0
    assert line_of(linked).edition == 2
    assert git(root, "status", "--porcelain") == ""


def test_T26_a_main_with_crlf_files_is_not_dirty(tmp_path: Path) -> None:
    stages = [("one", {"agent/a.py": b"A = 1\n"}), ("two", {"agent/a.py": b"A = 1\nB = 2\n"})]
    origin = project(tmp_path / "origin", [*stages])
    (origin / ".gitattributes").unlink(missing_ok=True)
    clone = tmp_path / "clone"
    git(tmp_path, "clone", "-q", "-c", "core.autocrlf=true", str(origin), str(clone))
    assert b"\r\n" in (clone / "agent/a.py").read_bytes()
    run(clone, "edit", "1")
    put(clone, ".edit/01-one/agent/c.py", b"C = 1\n")
    assert run(clone, "save") == 0
    assert show(clone, line_of(clone).stages[-1].commit, "agent/a.py") == b"A = 1\nB = 2\n"


def test_T38_a_save_writes_every_kind_of_file_into_main(tmp_path: Path) -> None:
    first = {**BASE, "agent/gone.py": b"G = 1\n", "agent/was": b"file\n", "agent/dir/x": b"x\n"}
    root = project(tmp_path / "course", [("one", first), ("two", {**first, "agent/z": b"z\n"})])
    run(root, "edit", "1")
    work = root / ".edit/01-one"
    (work / "agent/gone.py").unlink()
    (work / "agent/was").unlink()
    put(work, "agent/was/now", b"a folder\n")
    (work / "agent/dir/x").unlink()
    (work / "agent/dir").rmdir()
    put(work, "agent/dir", b"a file\n")
    put(work, "agent/tool.sh", b"#!/bin/sh\n", "100755")
    put(work, "agent/link", b"tool.sh", "120000")
    put(work, "agent/no-newline", b"end")
    put(work, "agent/raw.bin", bytes(range(256)))
    put(work, "agent/.dot", b"dot\n")
    assert run(root, "save") == 0
    assert not (root / "agent/gone.py").exists()
    assert (root / "agent/was/now").read_bytes() == b"a folder\n"
    assert (root / "agent/dir").read_bytes() == b"a file\n"
    assert (root / "agent/tool.sh").stat().st_mode & 0o111
    assert (root / "agent/link").readlink() == Path("tool.sh")
    assert (root / "agent/no-newline").read_bytes() == b"end"
    assert (root / "agent/raw.bin").read_bytes() == bytes(range(256))
    assert (root / "agent/.dot").read_bytes() == b"dot\n"
    assert matches_disk(root)


def test_a_linked_folder_in_main_is_not_written_through(root: Path, tmp_path: Path) -> None:
    (root / "agent").rename(tmp_path / "outside")
    (root / "agent").symlink_to(tmp_path / "outside")
    before = everything(tmp_path / "outside")
    run(root, "edit", "2")
    change(root, "02-step-b2", "agent/core.py", b"# f1 begins", b"# f1 starts")
    refusal(root, "save")
    assert everything(tmp_path / "outside") == before


def test_T31_a_zip_without_a_repository_is_edited(root: Path, tmp_path: Path) -> None:
    bare = tmp_path / "zip"
    shutil.copytree(root, bare, ignore=shutil.ignore_patterns(".git"), symlinks=True)
    run(bare, "edit", "2")
    change(bare, "02-step-b2", "agent/core.py", b"# f1 begins", b"# f1 starts")
    assert run(bare, "save") == 0
    assert b"f1 starts" in (bare / "agent/core.py").read_bytes()
    assert line_of(bare).edition == 2


def test_a_line_written_from_trees_is_the_line_that_is_built(root: Path) -> None:
    repo = open_repo(root)
    line = make_line(repo, [(slug, tree(repo, files)) for slug, files in ladder(5)], 1)
    assert line == line_of(root)
    assert write_line(repo, line) == []


def test_a_drop_that_conflicts_twice_is_resolved_in_turn(root: Path) -> None:
    run(root, "edit", "--drop", "2")
    put(root, "stages/02-step-b2/mine.txt", b"mine\n")
    assert "02-step-c3 conflicts" in refusal(root, "save").message
    put(root, ".edit/carry/agent/core.py", body("f1", "f3")[: -len(b"return y\n")] + b"return 3\n")
    assert "03-step-d4 conflicts" in refusal(root, "save").message
    put(root, ".edit/carry/agent/core.py", body("f1", "f3", "f4"))
    assert run(root, "save") == 0
    assert slugs(root) == ["step-a1", "step-c3", "step-d4", "step-e5"]
    assert (root / "agent/core.py").read_bytes() == body("f1", "f3", "f4", "f5")
    assert not (root / "agent/part2.py").exists()
    assert matches_disk(root)


def test_a_drop_given_up_at_a_conflict_leaves_the_line(root: Path) -> None:
    before = everything(root)
    run(root, "edit", "--drop", "2")
    refusal(root, "save")
    assert run(root, "save", "--abort") == 0
    assert everything(root) == before
    assert no_edit_is_left(root)
