"""Building the line: the same ids everywhere, and nothing of the checkout touched."""

from __future__ import annotations

import shutil
import time
from pathlib import Path

import pytest

from workshop.errors import Problem
from workshop.line import build, content_hash, ensure_built, read_line, retag, tag_states
from workshop.repo import open_repo
from workshop.series import commits_of, make_line, write_line
from workshop.tests.lines import BASE, Files, everything, git, ladder, line_of, project, put, show

KINDS: list[tuple[str, Files]] = [
    ("one", {
        **BASE, "agent/gone.py": b"G = 1\n", "agent/old.py": b"N = 1\n" * 9,
        "agent/x.bin": bytes(range(256)), "agent/end": b"no newline", "agent/sh": b"#!/bin/sh\n",
        "agent/crlf.txt": b"a\r\nb\r\n", "agent/trail": b"a  \n\t\n\n\n"}),
    ("two", {
        **BASE, "agent/new.py": b"N = 1\n" * 9, "agent/x.bin": bytes(reversed(range(256))),
        "agent/end": b"still no newline", "agent/sh": ("100755", b"#!/bin/sh\n"),
        "agent/crlf.txt": b"a\r\nB\r\n", "agent/link": ("120000", b"sh"), "agent/.dot": b"d\n",
        "agent/sp ace \xc3\xbc.txt".encode("latin-1").decode(): b"name\n", "agent/empty": b"",
        "agent/trail": b"a  \nb \n\t\n\n\n"}),
]  # fmt: skip


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return project(tmp_path / "course", ladder(4))


def built(root: Path) -> list[str]:
    """The commits of a build from nothing."""
    repo = open_repo(root)
    return [stage.commit for stage in build(repo, read_line(root)).stages]


def locked(root: Path) -> list[str]:
    return [stage.commit for stage in line_of(root).stages]


@pytest.mark.parametrize("word", ["3", "03", "step-c3", "03-step-c3", "stage-03-step-c3", " 3 "])
def test_T1_a_stage_is_found_by_number_slug_folder_and_tag(root: Path, word: str) -> None:
    assert line_of(root).resolve(word).slug == "step-c3"


def test_T1_08_and_09_are_not_octal(tmp_path: Path) -> None:
    line = line_of(project(tmp_path / "course", ladder(9)))
    assert [line.resolve(word).number for word in ("08", "09")] == [8, 9]


@pytest.mark.parametrize("word", ["010", "4.0", "-1", "0", "00", "99", "", "8x", "3;id", "3\n4"])
def test_T1_what_is_no_stage_ends_in_2_with_the_list(root: Path, word: str) -> None:
    with pytest.raises(Problem) as refused:
        line_of(root).resolve(word)
    assert refused.value.exit_code == 2
    assert "01-step-a1" in refused.value.mend
    assert "04-step-d4" in refused.value.mend


def test_T2_a_branch_of_the_tags_name_decides_nothing(root: Path) -> None:
    git(root, "branch", "stage-02-step-b2")
    git(root, "branch", "step-b2")
    repo = open_repo(root)
    line = ensure_built(repo)
    stage = line.resolve("2")
    assert git(root, "rev-parse", stage.ref) == stage.commit
    assert git(root, "rev-parse", f"refs/tags/{stage.tag}") == stage.commit


def test_T20_inherited_git_variables_are_not_obeyed(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = tmp_path / "other"
    other.mkdir()
    git(other, "init", "-q")
    before = everything(other / ".git")
    monkeypatch.setenv("GIT_DIR", str(other / ".git"))
    monkeypatch.setenv("GIT_WORK_TREE", str(other))
    monkeypatch.setenv("GIT_INDEX_FILE", str(other / "index"))
    monkeypatch.setenv("GIT_OBJECT_DIRECTORY", str(other / "objects"))
    monkeypatch.setenv("GIT_CONFIG_COUNT", "1")
    monkeypatch.setenv("GIT_CONFIG_KEY_0", "core.autocrlf")
    monkeypatch.setenv("GIT_CONFIG_VALUE_0", "true")
    assert built(root) == locked(root)
    assert everything(other / ".git") == before
    assert not (other / "index").exists()


HOSTILE = {
    "T22_gpgsign": {"commit.gpgSign": "true", "tag.gpgSign": "true", "gpg.format": "ssh",
                    "user.signingKey": "/nowhere"},
    "T23_whitespace_fix": {"apply.whitespace": "fix", "apply.ignoreWhitespace": "change"},
    "T23_whitespace_error": {"apply.whitespace": "error", "core.whitespace": "trailing-space"},
    "T25_encoding": {"i18n.commitEncoding": "ISO-8859-1", "i18n.logOutputEncoding": "UTF-16"},
    "T26_autocrlf": {"core.autocrlf": "true", "core.eol": "crlf", "core.safecrlf": "true"},
    "T35_diff": {"diff.noprefix": "true", "diff.context": "0", "diff.interHunkContext": "9",
                 "diff.suppressBlankEmpty": "true", "diff.orderFile": "/nowhere",
                 "diff.algorithm": "histogram", "diff.renames": "copies",
                 "diff.mnemonicPrefix": "true", "diff.external": "false",
                 "color.ui": "always", "diff.wsErrorHighlight": "all", "core.quotePath": "true",
                 "core.abbrev": "5", "diff.indentHeuristic": "false", "diff.ignoreSubmodules":
                 "all", "diff.colorMoved": "zebra", "diff.submodule": "log"},
    "T35_format": {"format.signOff": "true", "format.from": "true", "format.subjectPrefix": "X",
                   "format.headers": "X: 1", "format.attach": "true", "format.thread": "true",
                   "format.coverLetter": "true", "format.useAutoBase": "true",
                   "format.pretty": "full", "log.showSignature": "true", "log.date": "relative"},
    "hooks": {"core.hooksPath": "hooks-that-fail", "core.fsmonitor": "false", "gc.auto": "1"},
}  # fmt: skip


@pytest.mark.parametrize("name", HOSTILE)
def test_a_repositorys_settings_change_no_id_and_no_patch(tmp_path: Path, name: str) -> None:
    root = project(tmp_path / "course", KINDS)
    before = everything(root / "stages")
    ids = locked(root)
    put(root / "hooks-that-fail", "reference-transaction", b"#!/bin/sh\nexit 1\n", "100755")
    for key, value in HOSTILE[name].items():
        git(root, "config", key, value)
    assert built(root) == ids
    repo = open_repo(root)
    pairs = commits_of(repo, ids[-1])
    line = make_line(repo, pairs, 1)
    assert write_line(repo, line) == []
    assert everything(root / "stages") == before
    # And written from nothing, since an unchanged file is not touched.
    shutil.rmtree(root / "stages")
    write_line(repo, line)
    written = everything(root / "stages")
    assert written == {name: before[name] for name in written}
    assert len(written) == 3


def test_T25_locale_and_time_zone_change_no_id(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {"LANG": "C", "LC_ALL": "POSIX", "TZ": "Pacific/Chatham",
                        "GIT_AUTHOR_DATE": "1 Jan 1990", "GIT_COMMITTER_NAME": "X",
                        "GIT_DEFAULT_HASH": "sha256"}.items():  # fmt: skip
        monkeypatch.setenv(name, value)
    assert built(root) == locked(root)


def test_T25_a_sha256_repository_has_the_same_content(tmp_path: Path) -> None:
    root = project(tmp_path / "course", KINDS)
    other = tmp_path / "sha256"
    shutil.copytree(root, other, ignore=shutil.ignore_patterns(".git"), symlinks=True)
    git(other, "init", "-q", "--object-format=sha256")
    repo = open_repo(other)
    assert repo.sha256
    line = ensure_built(repo)
    for here, lock in zip(line.stages, line_of(root).stages, strict=True):
        assert len(here.commit) == 64
        assert content_hash(repo.git, here.tree) == lock.content
        assert git(other, "rev-parse", f"refs/tags/{here.tag}") == here.commit
    assert show(other, line.stages[1].commit, "agent/x.bin") == bytes(reversed(range(256)))


def test_T26_a_clone_with_autocrlf_builds_from_its_mangled_patches(
    root: Path, tmp_path: Path
) -> None:
    (root / ".gitattributes").unlink()
    git(root, "commit", "-qam", "without attributes")
    clone = tmp_path / "clone"
    git(tmp_path, "clone", "-q", "-c", "core.autocrlf=true", str(root), str(clone))
    assert b"\r\n" in (clone / "stages/01-step-a1/change.patch").read_bytes()
    assert built(clone) == locked(root)


@pytest.mark.parametrize("words", [("--depth", "1"), ("--no-tags",), ("--single-branch",)])
def test_T28_a_clone_without_tags_builds_them_with_the_locks_ids(
    root: Path, tmp_path: Path, words: tuple[str, ...]
) -> None:
    ensure_built(open_repo(root))
    git(root, "branch", "another")
    git(tmp_path, "clone", "-q", *words, f"file://{root}", "clone")
    clone = tmp_path / "clone"
    for tag in git(clone, "tag").split():
        git(clone, "tag", "-d", tag)
    ensure_built(open_repo(clone))
    assert [git(clone, "rev-parse", f"refs/tags/{s.tag}") for s in line_of(clone).stages] == locked(
        root
    )


def test_T28_a_fork_with_the_default_branch_alone_builds_offline(
    root: Path, tmp_path: Path
) -> None:
    fork = tmp_path / "fork"
    fork.mkdir()
    git(fork, "init", "-q", "-b", "main")
    git(root, "push", "-q", str(fork), "main:refs/heads/copy")
    git(fork, "checkout", "-q", "copy")
    assert built(fork) == locked(root)


def test_T29_a_tag_that_was_moved_is_seen_and_mended(root: Path) -> None:
    repo = open_repo(root)
    line = ensure_built(repo)
    git(root, "tag", "-f", "stage-02-step-b2", "HEAD")
    head = git(root, "rev-parse", "HEAD")
    line = ensure_built(repo)
    assert tag_states(repo, line)["step-b2"] == "differs"
    assert git(root, "rev-parse", "refs/tags/stage-02-step-b2") == head
    assert retag(repo, line) == ["stage-02-step-b2"]
    assert set(tag_states(repo, line).values()) == {"ok"}
    assert head in git(root, "for-each-ref", "refs/tiny/old-tags")


def test_T31_a_zip_without_a_repository_builds_in_one_of_its_own(
    root: Path, tmp_path: Path
) -> None:
    plain = tmp_path / "zip"
    shutil.copytree(root, plain, ignore=shutil.ignore_patterns(".git"))
    assert built(plain) == locked(root)
    assert not (plain / ".git").exists()
    assert open_repo(plain).private


def test_T32_a_zip_inside_another_repository_leaves_that_one_alone(
    root: Path, tmp_path: Path
) -> None:
    outer = tmp_path / "outer"
    outer.mkdir()
    git(outer, "init", "-q")
    before = everything(outer / ".git")
    shutil.copytree(root, outer / "zip", ignore=shutil.ignore_patterns(".git"))
    assert built(outer / "zip") == locked(root)
    assert everything(outer / ".git") == before


def test_T34_the_line_read_back_from_its_commits_is_the_series(tmp_path: Path) -> None:
    root = project(tmp_path / "course", KINDS)
    before = everything(root / "stages")
    repo = open_repo(root)
    line = ensure_built(repo)
    again = make_line(repo, commits_of(repo, line.stages[-1].ref), 1)
    assert again == line
    assert write_line(repo, again) == []
    assert everything(root / "stages") == before


def test_T37_a_patch_that_a_whitespace_fixer_went_through_builds_the_same(tmp_path: Path) -> None:
    root = project(tmp_path / "course", KINDS)
    for patch in root.glob("stages/*/change.patch"):
        lines = [line.rstrip() for line in patch.read_bytes().split(b"\n")]
        patch.write_bytes(b"\n".join(lines).rstrip(b"\n") + b"\n")
    assert git(root, "status", "--porcelain") != ""
    assert built(root) == locked(root)


def test_T37_a_patch_changed_in_main_and_committed_is_named(root: Path) -> None:
    patch = root / "stages/02-step-b2/change.patch"
    patch.write_bytes(patch.read_bytes().replace(b"PART = 2", b"PART = 7"))
    git(root, "commit", "-qam", "changed by hand")
    with pytest.raises(Problem) as refused:
        built(root)
    assert "stages/02-step-b2/change.patch gives tree" in refused.value.message
    assert refused.value.mend
    assert git(root, "for-each-ref", "refs/tiny", "refs/tags") == ""


def test_T38_every_kind_of_file_is_reproduced(tmp_path: Path) -> None:
    root = project(tmp_path / "course", KINDS)
    ensure_built(open_repo(root))
    for stage, (_, files) in zip(line_of(root).stages, KINDS, strict=True):
        listed = {}
        for row in open_repo(root).git("ls-tree", "-r", "-z", stage.commit).split(b"\0"):
            if row:
                meta, found = row.split(b"\t")
                listed[found.decode()] = (meta.decode().split()[0], meta.decode().split()[2])
        assert set(listed) == set(files)
        for path, value in files.items():
            mode, data = value if isinstance(value, tuple) else ("100644", value)
            assert listed[path][0] == mode
            assert show(root, stage.commit, path) == data


def test_T40_a_build_touches_neither_head_nor_index_nor_files(root: Path) -> None:
    put(root, "agent/part1.py", b"dirty\n")
    put(root, "agent/part2.py", b"staged\n")
    git(root, "add", "agent/part2.py")
    put(root, "new.txt", b"untracked\n")
    status, head = git(root, "status", "--porcelain"), git(root, "rev-parse", "HEAD")
    index, files = (root / ".git/index").read_bytes(), everything(root)
    build(open_repo(root), line_of(root))
    assert (root / ".git/index").read_bytes() == index
    assert everything(root) == files
    assert git(root, "status", "--porcelain") == status
    assert git(root, "rev-parse", "HEAD") == head


def test_33_stages_build_in_seconds_and_are_found_built_at_once(tmp_path: Path) -> None:
    root = project(tmp_path / "course", ladder(33))
    repo = open_repo(root)
    began = time.monotonic()
    line = build(repo, line_of(root))
    assert time.monotonic() - began < 20
    assert len(line.stages) == 33
    began = time.monotonic()
    assert ensure_built(repo) == line
    assert time.monotonic() - began < 2


@pytest.mark.parametrize("name", ["with space", 'it\'s "quoted"', "Übung größer", "a$b`c"])
def test_a_root_with_an_odd_name_is_built(tmp_path: Path, name: str) -> None:
    root = project(tmp_path / name, KINDS)
    assert built(root) == locked(root)


def test_a_missing_lock_is_named_with_its_mend(root: Path) -> None:
    (root / "stages/line.lock").unlink()
    with pytest.raises(Problem) as refused:
        read_line(root)
    assert "stages/line.lock is missing" in refused.value.message
    assert "git checkout -- stages/line.lock" in refused.value.mend


@pytest.mark.parametrize(
    ("old", "new"),
    [("edition 1", "edition x"), ("edition 1\n", ""), ("02 step-b2", "03 step-b2"),
     ("02 step-b2", "02 Step_B"), ("02 step-b2 ", "02 step-b2 zz"), ("02 step-b2", "<<<<<<< HEAD"),
     ("edition 1", "edition 0"), ("02 step-b2", "02 ../up")],
)  # fmt: skip
def test_a_malformed_lock_is_a_problem_and_no_traceback(root: Path, old: str, new: str) -> None:
    lock = root / "stages/line.lock"
    text = lock.read_text()
    assert old in text
    lock.write_text(text.replace(old, new))
    with pytest.raises(Problem, match=r"line\.lock"):
        read_line(root)


def test_a_lock_that_is_not_text_is_a_problem(root: Path) -> None:
    (root / "stages/line.lock").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(Problem, match="not text"):
        read_line(root)


def test_a_lock_with_a_wrong_commit_builds_no_ref(root: Path) -> None:
    lock = root / "stages/line.lock"
    lock.write_text(lock.read_text().replace(locked(root)[3], "1" * 40))
    with pytest.raises(Problem, match="04-step-d4"):
        ensure_built(open_repo(root))
    assert git(root, "for-each-ref", "refs/tiny", "refs/tags") == ""
