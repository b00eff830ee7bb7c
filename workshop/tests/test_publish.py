"""Publishing the line: all or nothing, and no tag that is there ever moves."""

from __future__ import annotations

from pathlib import Path

import pytest

from workshop.tests.lines import git, ladder, line_of, project, put, refusal, run


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return project(tmp_path / "course", ladder(3))


@pytest.fixture
def remote(tmp_path: Path, root: Path) -> Path:
    path = tmp_path / "remote.git"
    git(tmp_path, "init", "-q", "--bare", str(path))
    git(root, "remote", "add", "origin", str(path))
    return path


def refs(remote: Path) -> dict[str, str]:
    rows = git(remote, "for-each-ref", "--format=%(refname) %(objectname)").splitlines()
    return dict(row.split() for row in rows)


def new_edition(root: Path) -> None:
    run(root, "edit", "2")
    put(root, ".edit/02-step-b2/agent/more.py", b"M = 1\n")
    run(root, "save")


def test_the_tags_and_the_branch_arrive_with_the_locks_ids(root: Path, remote: Path) -> None:
    assert run(root, "publish", "origin") == 0
    stages = line_of(root).stages
    wanted = {f"refs/tags/{stage.tag}": stage.commit for stage in stages}
    assert refs(remote) == {**wanted, "refs/heads/line": stages[-1].commit}


def test_a_second_publish_pushes_nothing(
    root: Path, remote: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run(root, "publish", str(remote))
    assert run(root, "publish", "origin") == 0
    assert "nothing to push" in capsys.readouterr().out


def test_a_dry_run_says_what_it_would_push_and_pushes_nothing(
    root: Path, remote: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(root, "publish", "origin", "--dry-run") == 0
    assert refs(remote) == {}
    assert "would push" in capsys.readouterr().out


def test_T29_a_new_edition_never_moves_a_published_tag(root: Path, remote: Path) -> None:
    run(root, "publish", "origin")
    before = refs(remote)
    new_edition(root)
    problem = refusal(root, "publish", "origin")
    assert "stage-02-step-b2" in problem.message
    assert "stage-01-step-a1" not in problem.message
    assert "--as edition-2" in problem.mend
    assert refs(remote) == before
    assert run(root, "publish", "origin", "--as", "edition-2") == 0
    stages = line_of(root).stages
    added = {f"refs/tags/edition-2/{stage.tag}": stage.commit for stage in stages}
    assert refs(remote) == {**before, **added, "refs/heads/line-edition-2": stages[-1].commit}


def test_an_appended_stage_moves_the_branch_forward(root: Path, remote: Path) -> None:
    run(root, "publish", "origin")
    run(root, "edit", "--insert", "4", "more")
    put(root, ".edit/04-more/agent/more.py", b"M = 1\n")
    run(root, "save")
    assert run(root, "publish", "origin") == 0
    assert refs(remote)["refs/heads/line"] == line_of(root).stages[-1].commit
    assert len(refs(remote)) == 5


def test_a_branch_that_would_go_back_is_refused_before_the_push(root: Path, remote: Path) -> None:
    git(root, "push", "-q", "origin", "HEAD:refs/heads/line")
    before = refs(remote)
    assert "the branch line" in refusal(root, "publish", "origin").message
    assert refs(remote) == before


def test_the_locks_ids_are_pushed_whatever_a_local_tag_says(root: Path, remote: Path) -> None:
    git(root, "tag", "stage-02-step-b2", "HEAD")
    run(root, "publish", "origin")
    assert refs(remote)["refs/tags/stage-02-step-b2"] == line_of(root).stages[1].commit


def test_what_the_remote_refuses_is_refused_whole(root: Path, remote: Path) -> None:
    put(remote, "hooks/update", b'#!/bin/sh\ncase "$1" in *step-c3) exit 1;; esac\n', "100755")
    assert "failed" in refusal(root, "publish", "origin").message
    assert refs(remote) == {}


def test_a_pre_push_hook_is_not_run_and_other_tags_stay_home(
    root: Path, remote: Path, tmp_path: Path
) -> None:
    put(root, ".git/hooks/pre-push", b"#!/bin/sh\nexit 1\n", "100755")
    git(root, "config", "push.followTags", "true")
    git(root, "tag", "-a", "mine", "-m", "mine")
    assert run(root, "publish", "origin") == 0
    assert "refs/tags/mine" not in refs(remote)


def test_the_users_own_settings_are_used(
    root: Path, remote: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = tmp_path / "gitconfig"
    settings.write_text(f'[url "{remote}"]\n\tinsteadOf = short:line\n')
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(settings))
    assert run(root, "publish", "short:line") == 0
    assert len(refs(remote)) == 4


def test_T20_an_inherited_git_dir_is_not_published_from(
    root: Path, remote: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "nowhere"))
    assert run(root, "publish", "origin") == 0
    assert len(refs(remote)) == 4


@pytest.mark.parametrize("name", ["edition-2", "edition-x", "", "v1"])
def test_another_edition_than_the_locks_ends_in_2(root: Path, remote: Path, name: str) -> None:
    assert refusal(root, "publish", "origin", "--as", name).exit_code == 2


def test_a_remote_that_cannot_be_read_is_named_without_its_password(
    root: Path, tmp_path: Path
) -> None:
    problem = refusal(root, "publish", f"file://me:hidden@{tmp_path}/nowhere")
    assert "cannot be read" in problem.message
    assert "hidden" not in str(problem)


def test_an_annotated_tag_on_the_right_commit_is_left_as_it_is(root: Path, remote: Path) -> None:
    commit = line_of(root).stages[0].commit
    run(root, "publish", "origin", "--dry-run")
    git(root, "tag", "-d", "stage-01-step-a1")
    git(root, "tag", "-a", "stage-01-step-a1", "-m", "signed", commit)
    git(root, "push", "-q", "origin", "refs/tags/stage-01-step-a1")
    before = refs(remote)
    assert run(root, "publish", "origin") == 0
    assert before.items() <= refs(remote).items()
