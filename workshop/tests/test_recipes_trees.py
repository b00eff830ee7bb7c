"""`stage` and `clean-stages`: exact trees, and nothing of the learner's lost."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pytest

from workshop.tests.course import SLUGS, Course, add_line, files, git


def head(path: Path) -> str:
    return git(path, "rev-parse", "HEAD")


def branches(course: Course) -> list[str]:
    return git(course.root, "for-each-ref", "--format=%(refname:short)", "refs/heads").split()


@pytest.mark.parametrize("word", ["3", "03", "stage-03-shout", "shout", "03-shout"])
def test_T01_every_name_of_a_stage_means_that_stage(course: Course, word: str) -> None:
    done = course("stage", word)
    assert done.returncode == 0, done.stderr
    assert head(course.tree(3)) == course.line.stages[2].commit
    assert ".stages/03-shout" in done.stdout
    assert "stages/03-shout/lesson.md" in done.stdout


@pytest.mark.parametrize(
    "word", ["010", "4.0", "-1", "0", "99", "", "8x", "8;id", "--", "stage-", "3\n4", "٣", "main"]
)
def test_T01_any_other_word_lists_the_stages_and_exits_2(shared: Course, word: str) -> None:
    done = shared("stage", word)
    assert done.returncode == 2
    assert "Traceback" not in done.stderr
    if word != "--":
        assert all(slug in done.stderr for slug in SLUGS), done.stderr
    assert not (shared.root / ".stages").exists()


def test_T02_a_branch_with_the_name_of_a_tag_does_not_decide(course: Course) -> None:
    git(course.root, "branch", "stage-02-echo")
    git(course.root, "branch", "02-echo")
    assert course("stage", "2").returncode == 0
    assert head(course.tree(2)) == course.line.stages[1].commit
    assert "STAGE = 2" in (course.tree(2) / "agent" / "__init__.py").read_text()
    assert "+STAGE = 2" in course("diff", "2").stdout


def test_a_second_stage_changes_nothing_and_says_the_same(course: Course) -> None:
    first = course("stage", "2")
    again = course("stage", "2")
    assert (again.returncode, again.stdout, again.stderr) == (0, first.stdout, "")


def test_stage_as_json(course: Course) -> None:
    told = json.loads(course("stage", "2", "--json").stdout)
    assert told["stage"] == "02-echo"
    assert Path(told["path"]) == course.tree(2)
    assert told["exact"] is True


def test_T05_a_tree_that_was_deleted_by_hand_is_made_again(course: Course) -> None:
    course("stage", "2")
    shutil.rmtree(course.tree(2))
    done = course("stage", "2")
    assert done.returncode == 0, done.stderr
    assert head(course.tree(2)) == course.line.stages[1].commit


def test_T05_commits_of_a_tree_that_was_deleted_by_hand_stay_on_a_branch(course: Course) -> None:
    course("stage", "2")
    git(course.tree(2), "commit", "--quiet", "--allow-empty", "-m", "mine")
    mine = head(course.tree(2))
    shutil.rmtree(course.tree(2))
    assert course("stage", "2").returncode == 0
    assert git(course.root, "branch", "--list", "rescue/*", "--contains", mine)


def test_T07_a_modified_tree_is_never_called_exact(course: Course) -> None:
    course("stage", "2")
    mine = course.tree(2) / "agent" / "__init__.py"
    mine.write_text("STAGE = 'mine'\n")
    done = course("stage", "2")
    assert done.returncode == 1
    assert "modified" in done.stderr
    assert "agent/__init__.py" in done.stderr
    assert "--reset" in done.stderr
    assert "Stage 2" not in done.stdout
    assert mine.read_text() == "STAGE = 'mine'\n"
    assert json.loads(course("stage", "2", "--json").stdout)["exact"] is False


def test_T07_a_reset_keeps_changes_and_new_files_on_a_branch(course: Course) -> None:
    course("stage", "2")
    (course.tree(2) / "agent" / "__init__.py").write_text("STAGE = 'mine'\n")
    (course.tree(2) / "new.txt").write_text("new\n")
    done = course("stage", "2", "--reset")
    assert done.returncode == 0, done.stderr
    assert "STAGE = 2" in (course.tree(2) / "agent" / "__init__.py").read_text()
    assert not (course.tree(2) / "new.txt").exists()
    (branch,) = [name for name in branches(course) if name.startswith("rescue/02-echo")]
    assert branch in done.stderr
    assert git(course.root, "show", f"{branch}:agent/__init__.py") == "STAGE = 'mine'"
    assert git(course.root, "show", f"{branch}:new.txt") == "new"


def test_T07_a_reset_leaves_ignored_files_alone(course: Course) -> None:
    course("stage", "2")
    (course.tree(2) / ".env").write_text("TINY_API_KEY=mine\n")
    (course.tree(2) / "agent" / "__init__.py").write_text("")
    assert course("stage", "2", "--reset").returncode == 0
    assert (course.tree(2) / ".env").read_text() == "TINY_API_KEY=mine\n"


def test_what_a_file_manager_leaves_is_no_change(course: Course) -> None:
    course("stage", "2")
    (course.tree(2) / ".DS_Store").write_bytes(b"\0")
    assert course("stage", "2").returncode == 0


def new_edition(course: Course, tmp_path: Path) -> str:
    """Write edition 2 of the line, with another stage 2. Returns its old commit."""
    old = course.line.stages[1].commit
    stages = [(slug, files(number)) for number, slug in enumerate(SLUGS, 1)]
    stages[1][1]["agent/__init__.py"] = "STAGE = 2\nEDITION = 2\n"
    add_line(course.root, stages, 2, tmp_path)
    assert course.line.stages[1].commit != old
    return old


def test_T08_a_clean_tree_follows_a_new_edition(course: Course, tmp_path: Path) -> None:
    course("stage", "2")
    new_edition(course, tmp_path)
    done = course("stage", "2")
    assert done.returncode == 0, done.stderr
    assert "EDITION = 2" in (course.tree(2) / "agent" / "__init__.py").read_text()
    assert not [name for name in branches(course) if name.startswith("rescue/")]


def test_T08_a_changed_tree_does_not_follow_a_new_edition(course: Course, tmp_path: Path) -> None:
    course("stage", "2")
    mine = course.tree(2) / "agent" / "__init__.py"
    mine.write_text("STAGE = 'mine'\n")
    old = new_edition(course, tmp_path)
    assert course("stage", "2").returncode == 1
    assert mine.read_text() == "STAGE = 'mine'\n"
    assert head(course.tree(2)) == old


def test_commits_on_the_detached_head_get_a_branch_before_the_tree_moves(course: Course) -> None:
    course("stage", "2")
    (course.tree(2) / "mine.txt").write_text("mine\n")
    git(course.tree(2), "add", "mine.txt")
    git(course.tree(2), "commit", "--quiet", "--amend", "--no-edit")
    mine = head(course.tree(2))
    done = course("stage", "2")
    assert done.returncode == 0, done.stderr
    assert head(course.tree(2)) == course.line.stages[1].commit
    assert git(course.root, "branch", "--list", "rescue/02-echo*", "--contains", mine)


def test_clean_stages_removes_trees_that_hold_nothing(course: Course) -> None:
    course("stage", "1")
    course("stage", "2")
    (course.tree(2) / "agent" / "__pycache__").mkdir()
    (course.tree(2) / "agent" / "__pycache__" / "x.pyc").write_bytes(b"")
    done = course("clean-stages")
    assert done.returncode == 0, done.stderr
    assert "Removed 2" in done.stdout
    assert not any((course.root / ".stages").iterdir())
    assert ".stages" not in git(course.root, "worktree", "list")


@pytest.mark.parametrize("name", ["agent/__init__.py", "new.txt", ".env", "work/notes.txt"])
def test_clean_stages_keeps_changed_new_and_ignored_files(course: Course, name: str) -> None:
    course("stage", "1")
    course("stage", "2")
    (course.tree(2) / name).parent.mkdir(exist_ok=True)
    (course.tree(2) / name).write_text("mine\n")
    done = course("clean-stages")
    assert done.returncode == 0, done.stderr
    assert (course.tree(2) / name).read_text() == "mine\n"
    assert name in done.stdout
    assert not course.tree(1).exists()


def test_clean_stages_keeps_commits_and_names_their_branch(course: Course) -> None:
    course("stage", "2")
    git(course.tree(2), "commit", "--quiet", "--allow-empty", "-m", "mine")
    mine = head(course.tree(2))
    done = course("clean-stages")
    assert course.tree(2).is_dir()
    (branch,) = [name for name in branches(course) if name.startswith("rescue/02-echo")]
    assert branch in done.stdout
    assert git(course.root, "rev-parse", branch) == mine
    assert "Removed 1" in course("clean-stages").stdout
    assert git(course.root, "rev-parse", branch) == mine


def test_clean_stages_keeps_a_tree_with_a_branch_of_the_learners(course: Course) -> None:
    course("stage", "2")
    git(course.tree(2), "switch", "--quiet", "-c", "mine")
    assert "the branch mine" in course("clean-stages").stdout
    assert course.tree(2).is_dir()


def test_clean_stages_keeps_the_tree_that_you_stand_in(course: Course) -> None:
    course("stage", "2")
    done = course("clean-stages", cwd=course.tree(2) / "agent")
    assert done.returncode == 0, done.stderr
    assert "you stand in it" in done.stdout
    assert course.tree(2).is_dir()


def test_clean_stages_without_any_stage_is_no_error(course: Course) -> None:
    assert "Removed 0" in course("clean-stages").stdout


def test_T10_a_locked_tree_is_skipped_and_the_others_go(course: Course) -> None:
    for number in ("1", "2", "3"):
        course("stage", number)
    git(course.root, "worktree", "lock", str(course.tree(2)))
    done = course("clean-stages")
    assert done.returncode == 0, done.stderr
    assert "locked" in done.stdout
    assert [path.name for path in (course.root / ".stages").iterdir()] == ["02-echo"]
    assert course("stage", "2").returncode == 0


def test_T11_other_folders_in_stages_are_left_alone(course: Course, tmp_path: Path) -> None:
    course("stage", "2")
    notes = course.root / ".stages" / "notes"
    notes.mkdir()
    (notes / "a.txt").write_text("mine\n")
    git(tmp_path, "init", "--quiet", str(course.root / ".stages" / "own"))
    (tmp_path / "elsewhere").mkdir()
    (course.root / ".stages" / "link").symlink_to(tmp_path / "elsewhere")
    done = course("clean-stages")
    assert done.returncode == 0, done.stderr
    assert (notes / "a.txt").read_text() == "mine\n"
    assert (course.root / ".stages" / "own" / ".git").is_dir()
    assert (tmp_path / "elsewhere").is_dir()
    assert not course.tree(2).exists()


def test_T11_a_folder_in_the_place_of_a_stage_is_refused(course: Course) -> None:
    course.tree(2).mkdir(parents=True)
    (course.tree(2) / "mine.txt").write_text("mine\n")
    done = course("stage", "2")
    assert done.returncode == 1
    assert "Move it away" in done.stderr
    assert (course.tree(2) / "mine.txt").read_text() == "mine\n"


def test_T13_trees_are_found_again_after_the_project_was_moved(
    course: Course, tmp_path: Path
) -> None:
    course("stage", "2")
    (course.tree(2) / "new.txt").write_text("mine\n")
    course.root.rename(tmp_path / "moved here")
    moved = Course(tmp_path / "moved here", course.home)
    done = moved("stage", "2")
    assert done.returncode == 1, done.stderr
    assert "new.txt" in done.stderr
    (moved.tree(2) / "new.txt").unlink()
    assert moved("stage", "2").returncode == 0
    assert "Removed 1" in moved("clean-stages").stdout


def test_T13_a_copy_of_the_project_takes_nothing_from_the_original(
    course: Course, tmp_path: Path
) -> None:
    course("stage", "2")
    shutil.copytree(course.root, tmp_path / "copy", symlinks=True)
    copy = Course(tmp_path / "copy", course.home)
    assert copy("stage", "2").returncode == 0
    common = git(copy.tree(2), "rev-parse", "--path-format=absolute", "--git-common-dir")
    assert Path(common).resolve() == (copy.root / ".git").resolve()
    assert "Removed 1" in copy("clean-stages").stdout
    assert course.tree(2).is_dir()
    assert head(course.tree(2)) == course.line.stages[1].commit
    assert str(course.tree(2)) in git(course.root, "worktree", "list")


def test_T13_a_copy_of_a_tree_does_not_replace_it(course: Course) -> None:
    course("stage", "2")
    shutil.copytree(course.tree(2), course.root / ".stages" / "mine")
    done = course("clean-stages")
    assert "Removed 1" in done.stdout
    assert not course.tree(2).exists()
    assert (course.root / ".stages" / "mine" / "agent").is_dir()


@pytest.mark.parametrize("where", [".", "agent", ".stages/03-shout", ".stages/03-shout/agent", "/"])
def test_T14_stage_does_the_same_from_anywhere(course: Course, where: str) -> None:
    course("stage", "3")
    done = course("stage", "2", cwd=course.root / where)
    assert done.returncode == 0, done.stderr
    assert head(course.tree(2)) == course.line.stages[1].commit
    assert [str(path) for path in course.root.glob("**/.stages/**/.stages")] == []


def test_T16_nothing_of_ours_is_ever_staged(course: Course) -> None:
    course("stage", "2")
    (course.root / "work").mkdir()
    (course.root / "work" / "mine.txt").write_text("mine\n")
    (course.root / ".gitignore").write_text("__pycache__/\n")
    git(course.root, "add", "--all")
    names = git(course.root, "diff", "--cached", "--name-only").splitlines()
    assert names == [".gitignore"]


def test_T16_the_exclude_file_keeps_what_was_in_it_and_grows_once(course: Course) -> None:
    exclude = course.root / ".git" / "info" / "exclude"
    exclude.parent.mkdir(exist_ok=True)
    exclude.write_bytes(b"mine\xff/")
    course("setup")
    once = exclude.read_bytes()
    course("setup")
    course("stage", "1")
    assert once.startswith(b"mine\xff/\n")
    assert exclude.read_bytes() == once


def test_T17_after_git_clean_the_trees_are_made_again(course: Course) -> None:
    course("stage", "2")
    git(course.root, "clean", "--quiet", "-fdx", "-e", ".venv")
    assert course.tree(2).is_dir()
    git(course.root, "clean", "--quiet", "-ffdx", "-e", ".venv")
    assert not course.tree(2).exists()
    assert course("clean-stages").returncode == 0
    assert course("stage", "2").returncode == 0
    assert head(course.tree(2)) == course.line.stages[1].commit


def test_T19_a_failing_hook_changes_nothing(course: Course, tmp_path: Path) -> None:
    hooks = tmp_path / "hooks"
    hooks.mkdir()
    for name in ("post-checkout", "reference-transaction"):
        (hooks / name).write_text("#!/bin/sh\nexit 3\n")
        (hooks / name).chmod(0o755)
    git(course.root, "config", "core.hooksPath", str(hooks))
    (course.home / ".gitconfig").write_text(f"[core]\n\thooksPath = {hooks}\n")
    assert course("stage", "2").returncode == 0
    assert head(course.tree(2)) == course.line.stages[1].commit
    assert course("stage", "2").returncode == 0


def test_T20_inherited_git_variables_do_not_lead_to_another_repository(
    course: Course, tmp_path: Path
) -> None:
    other = tmp_path / "other"
    git(tmp_path, "init", "--quiet", str(other))
    named = {"GIT_DIR": str(other / ".git"), "GIT_INDEX_FILE": str(other / "index")}
    done = course("stage", "2", env={**named, "GIT_WORK_TREE": str(other)})
    assert done.returncode == 0, done.stderr
    assert head(course.tree(2)) == course.line.stages[1].commit
    assert git(other, "for-each-ref") == ""
    assert not (other / "index").exists()


def test_T31_a_download_without_a_repository_works_as_well(course: Course) -> None:
    shutil.rmtree(course.root / ".git")
    assert course("list").returncode == 0
    done = course("stage", "2")
    assert done.returncode == 0, done.stderr
    assert "STAGE = 2" in (course.tree(2) / "agent" / "__init__.py").read_text()
    assert "+STAGE = 2" in course("diff", "2").stdout
    assert "Removed 1" in course("clean-stages").stdout
    assert not (course.root / ".git").exists()


def test_T32_a_download_inside_another_repository_leaves_that_one_alone(
    course: Course, tmp_path: Path
) -> None:
    shutil.rmtree(course.root / ".git")
    git(tmp_path, "init", "--quiet", ".")
    done = course("stage", "2")
    assert done.returncode == 0, done.stderr
    assert head(course.tree(2)) == course.line.stages[1].commit
    assert git(tmp_path, "for-each-ref") == ""
    assert git(tmp_path, "worktree", "list").count("\n") == 0


def test_T40_stage_touches_neither_index_nor_files_of_main(course: Course) -> None:
    (course.root / "agent" / "__init__.py").write_text("mine\n")
    (course.root / "new.txt").write_text("mine\n")
    before = git(course.root, "status", "--porcelain"), head(course.root)
    course("stage", "2")
    course("clean-stages")
    assert (git(course.root, "status", "--porcelain"), head(course.root)) == before


def test_a_linked_worktree_of_main_has_stages_of_its_own(course: Course, tmp_path: Path) -> None:
    git(course.root, "worktree", "add", "--quiet", str(tmp_path / "second"), "-b", "second")
    shutil.copytree(course.root / ".venv", tmp_path / "second" / ".venv", symlinks=True)
    second = Course(tmp_path / "second", course.home)
    course("stage", "2")
    done = second("stage", "2")
    assert done.returncode == 0, done.stderr
    assert second.tree(2).is_dir()
    assert "Removed 1" in second("clean-stages").stdout
    assert course.tree(2).is_dir()


def test_a_folder_that_is_gone_is_named(course: Course, tmp_path: Path) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    script = f'rmdir "{gone}"; exec sh "{course.root}/workshop/start" list'
    done = course.call(["sh", "-c", script], gone, "", {})
    assert done.returncode == 1
    assert "is gone" in done.stderr
    assert os.fspath(course.root) in done.stderr
