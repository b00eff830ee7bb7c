"""The gate that every stage passes, whatever it is about. A new stage needs nothing new here."""

from __future__ import annotations

import ast
import functools
import os
import shutil
import subprocess
import sys
import time
import tomllib
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import yaml

from workshop.check import chosen_stages
from workshop.lesson import HEADINGS, Lesson
from workshop.line import Stage, ensure_built, read_line
from workshop.repo import Repo, open_repo
from workshop.series import TREE_PATHS, patch
from workshop.show import added_lines, lesson_path
from workshop.suite import Report, lay_out, own_tests, point_order, run_tests, start_process
from workshop.tests.warm import USABLE, Warm

ROOT = Path(__file__).resolve().parents[2]
LINE = read_line(ROOT)
STAGES = [pytest.param(stage, id=stage.folder) for stage in chosen_stages(LINE)]
ALLOWED = {"httpx", "yaml", "numpy", "dotenv", "agent"} | set(sys.stdlib_module_names)
CONTRACT_ERRORS = {"AssertionError", "Failed"}


@functools.cache
def repo() -> Repo:
    found = open_repo(ROOT)
    ensure_built(found)
    return found


@pytest.fixture(scope="session")
def trees(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("stages")


def tree_of(trees: Path, stage: Stage) -> Path:
    folder = trees / stage.folder
    if not folder.exists():
        lay_out(repo().git, stage.commit, folder)
    return folder


Run = Callable[..., Report]


@pytest.fixture(scope="session")
def run() -> Iterator[Run]:
    """run_tests, without a start of Python for each, and without pytest's own words."""
    warm = Warm()

    def run_warm(
        tree: Path, tests: list[str] | None = None, *flags: str, first: bool = False
    ) -> Report:
        # A test says itself what it found. To rewrite its asserts takes longer than to run most.
        start = warm.start if USABLE else start_process
        return run_tests(tree, tests, "--assert=plain", *flags, start=start, first=first)

    yield run_warm
    warm.close()


def mutants(stage: Stage) -> list[dict[str, str]]:
    path = ROOT / "stages" / stage.folder / "mutants.yaml"
    if not path.exists():
        return []
    found: list[dict[str, str]] = yaml.safe_load(path.read_text(encoding="utf-8"))
    return found


def changed_code(stage: Stage) -> list[str]:
    """The files of `agent/` and `scripts/` that a stage adds or changes."""
    git, before = repo().git, LINE.before(stage)
    base = before.commit if before else git("mktree", input=b"").decode().strip()
    flags = ("--name-only", "--diff-filter=AM")
    found = git("diff", *flags, base, stage.commit, "--", "agent", "scripts").decode().split()
    return [name for name in found if name.endswith(".py")]


def second_files(stage: Stage) -> list[str]:
    """The files of a stage's second solution, as they are named in its tree."""
    folder = ROOT / "stages" / stage.folder / "second"
    found = [path.relative_to(folder) for path in folder.rglob("*") if path.is_file()]
    return sorted(path.as_posix() for path in found if "__pycache__" not in path.parts)


MUTANTS = [
    pytest.param(stage, mutant, id=f"{stage.folder}-{mutant['name']}")
    for stage in chosen_stages(LINE)
    for mutant in mutants(stage)
]
SECONDS = [
    pytest.param(stage, id=stage.folder) for stage in chosen_stages(LINE) if second_files(stage)
]
# How many stages have a second solution at least, and how many chapters. They only rise.
SECOND_STAGES, SECOND_CHAPTERS = 10, 7


# 1: each stage passes all earlier tests. Else only the last one of each chapter does, and the
# others pass those of their chapter: a break is seen some stages later, in half the time.
EVERY = os.environ.get("TINY_TEST_EVERY", "") not in ("", "0")


def chapter(stage: Stage) -> int:
    return Lesson.read(lesson_path(ROOT, stage)).chapter


def files_for(stage: Stage) -> list[str] | None:
    """The test files that a stage has to pass; None for all that it has."""
    after = [other for other in LINE.stages if other.number == stage.number + 1]
    if EVERY or not after or chapter(after[0]) != chapter(stage):
        return None
    until = [other for other in LINE.stages if other.number <= stage.number]
    mine = [other for other in until if chapter(other) == chapter(stage)]
    return sorted({name for other in mine for name in own_tests(repo().git, LINE, other)})


@pytest.mark.parametrize("stage", STAGES)
def test_a_stage_passes_its_own_tests_and_earlier_ones(stage: Stage, trees: Path, run: Run) -> None:
    begun = time.monotonic()
    report = run(tree_of(trees, stage), files_for(stage))
    seconds = time.monotonic() - begun
    assert report.code == 0, report.output[-4000:]
    # `just bench` holds `just check` to 5 s; this is for what no machine explains.
    assert seconds < 60 * float(os.environ.get("TINY_TEST_SCALE") or "1"), f"{seconds:.0f} s"
    assert all(one.outcome == "passed" for one in report.outcomes), report.output[-2000:]
    ran = {one.test.split("::")[0] for one in report.outcomes}
    assert set(own_tests(repo().git, LINE, stage)) <= ran


@pytest.mark.parametrize("stage", STAGES)
def test_T43_the_stage_before_fails_a_stages_tests_by_its_contract(
    stage: Stage, tmp_path: Path, run: Run
) -> None:
    git, before = repo().git, LINE.before(stage)
    own = own_tests(git, LINE, stage)
    assert own, f"{stage.folder} has no tests of its own"
    tree = tmp_path / "tree"
    if before:
        lay_out(git, before.commit, tree)
    else:
        (tree / "agent").mkdir(parents=True)
        (tree / "agent" / "__init__.py").touch()
    shutil.rmtree(tree / "tests", ignore_errors=True)
    given = Lesson.read(lesson_path(ROOT, stage)).given
    lay_out(git, stage.commit, tree, "tests", "pyproject.toml", *given)
    report = run(tree, own, "--tb=no")
    assert report.failed, f"the tests of {stage.folder} pass before it"
    odd = [one for one in report.failed if one.error not in CONTRACT_ERRORS]
    assert not odd, "\n".join(f"{one.test}: {one.error}: {one.message}" for one in odd[:5])


class Hollow(ast.NodeTransformer):
    """Keeps every name, and empties every function."""

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.FunctionDef:
        node.body = [ast.Return(ast.Constant(None))]
        return node


@pytest.mark.parametrize("stage", STAGES)
def test_T43_a_stub_that_satisfies_imports_fails(stage: Stage, tmp_path: Path, run: Run) -> None:
    git = repo().git
    lay_out(git, stage.commit, tmp_path)
    for name in changed_code(stage):
        path = tmp_path / name
        hollow = Hollow().visit(ast.parse(path.read_text(encoding="utf-8")))
        path.write_text(ast.unparse(ast.fix_missing_locations(hollow)), encoding="utf-8")
    report = run(tmp_path, own_tests(git, LINE, stage), "--maxfail=3")
    assert len(report.failed) >= 3, report.output[-2000:]


@pytest.mark.parametrize(("stage", "mutant"), MUTANTS)
def test_a_wrong_solution_is_caught_at_its_point(
    stage: Stage, mutant: dict[str, str], trees: Path, tmp_path: Path, run: Run
) -> None:
    tree = tmp_path / "tree"
    shutil.copytree(tree_of(trees, stage), tree)  # with what was compiled there already
    path = tree / mutant["file"]
    text = path.read_text(encoding="utf-8")
    assert text.count(mutant["find"]) == 1, f"{mutant['find']!r} does not stand there once"
    path.write_text(text.replace(mutant["find"], mutant["replace"]), encoding="utf-8")
    report = run(tree, own_tests(repo().git, LINE, stage), "--tb=no", first=True)
    assert report.failed, "all tests pass"
    first = min(report.failed, key=point_order)
    point = first.point.split(":")[0]
    assert point == mutant["caught_by"], f"caught at {point} by {first.test}: {first.message}"


@pytest.mark.parametrize("stage", STAGES)
def test_a_stage_has_at_least_three_wrong_solutions(stage: Stage) -> None:
    assert len(mutants(stage)) >= 3


def lay_out_second(stage: Stage, tree: Path) -> None:
    """A stage's tree, with the files of its second solution over ours."""
    lay_out(repo().git, stage.commit, tree)
    shutil.copytree(ROOT / "stages" / stage.folder / "second", tree, dirs_exist_ok=True)


@pytest.mark.parametrize("stage", SECONDS)
def test_a_second_solution_passes_the_tests_of_its_stage_and_earlier_ones(
    stage: Stage, tmp_path: Path, run: Run
) -> None:
    tree = tmp_path / "tree"
    lay_out_second(stage, tree)
    report = run(tree, files_for(stage))
    failed = [f"{one.point} {one.test}: {(one.message or '')[:200]}" for one in report.failed[:5]]
    assert report.code == 0, "\n".join(failed) or report.output[-4000:]
    assert all(one.outcome == "passed" for one in report.outcomes), report.output[-2000:]


def code_lines(text: str) -> Counter[str]:
    """A module's lines in one form, without comments, docstrings and imports."""
    tree = ast.parse(text)
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            first = node.body[1:] if ast.get_docstring(node) is not None else node.body
            node.body = [one for one in first if not isinstance(one, ast.Import | ast.ImportFrom)]
    return Counter(line.strip() for line in ast.unparse(tree).splitlines() if line.strip())


def test_a_copy_counts_as_a_copy_whatever_its_comments_and_line_ends() -> None:
    ours = 'def twice(x: int) -> int:\n    """Two of it."""\n    return max(x + x, 2 * x)\n'
    copy = "import re\n\ndef twice(x: int) -> int:  # mine\n    return max(\n        x + x, 2*x)\n"
    other = "def twice(x: int) -> int:\n    return x << 1\n"
    assert code_lines(copy) == code_lines(ours)
    assert (code_lines(other) & code_lines(ours)).total() == 1


@pytest.mark.parametrize("stage", SECONDS)
def test_a_second_solution_is_built_differently_and_replaces_most_of_ours(stage: Stage) -> None:
    git, before = repo().git, LINE.before(stage)
    base = before.commit if before else None
    second = ROOT / "stages" / stage.folder / "second"
    touched, mine = changed_code(stage), second_files(stage)

    def lines(commit: str | None, name: str) -> Counter[str]:
        done = git.run("cat-file", "blob", f"{commit}:{name}") if commit else None
        return code_lines(done.stdout.decode()) if done and not done.returncode else Counter()

    # What the stage before has already is nobody's: neither ours nor the second's.
    had = {name: lines(base, name) for name in {*touched, *mine}}
    ours = {name: lines(stage.commit, name) - had[name] for name in touched}
    replaced = [name for name in mine if name in touched]
    part = sum(ours[name].total() for name in replaced) / sum(one.total() for one in ours.values())
    assert part >= 0.5, f"it replaces {part:.0%} of the lines that {stage.folder} adds"

    own, shared = 0, 0
    for name in replaced:
        theirs = code_lines((second / name).read_text(encoding="utf-8")) - had[name]
        own, shared = own + theirs.total(), shared + (theirs & ours[name]).total()
    assert shared < 0.5 * own, f"{shared} of its {own} lines are ours"


@pytest.mark.parametrize("stage", SECONDS)
def test_a_second_solution_holds_code_of_its_stage_alone(stage: Stage, tmp_path: Path) -> None:
    lay_out(repo().git, stage.commit, tmp_path)
    for name in second_files(stage):
        assert name.startswith(("agent/", "scripts/")), f"second/{name} is not a stage's code"
        assert name.endswith(".py"), f"second/{name} is no Python"
        added = not (tmp_path / name).exists()
        assert added or name in changed_code(stage), f"{stage.folder} does not touch {name}"


# mypy's own run cannot take these files in: each would be a second module of its name.
@pytest.mark.parametrize("stage", SECONDS)
def test_a_second_solution_passes_the_type_checker(
    stage: Stage, trees: Path, tmp_path: Path
) -> None:
    tree = tmp_path / "tree"
    lay_out_second(stage, tree)
    flags = ["--no-error-summary", "--config-file", str(ROOT / "mypy.ini")]
    flags += ["--cache-dir", str(trees / "mypy")]
    command = [sys.executable, "-s", "-m", "mypy", *flags, *second_files(stage)]
    done = subprocess.run(command, cwd=tree, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_stages_across_the_chapters_have_a_second_solution() -> None:
    having = [stage for stage in LINE.stages if second_files(stage)]
    chapters = {Lesson.read(lesson_path(ROOT, stage)).chapter for stage in having}
    assert len(having) >= SECOND_STAGES, f"only {[stage.folder for stage in having]}"
    assert len(chapters) >= SECOND_CHAPTERS, f"only in the chapters {sorted(chapters)}"


@pytest.mark.parametrize("stage", STAGES)
def test_every_test_of_a_stage_names_its_point(stage: Stage, trees: Path) -> None:
    tree = tree_of(trees, stage)
    for name in own_tests(repo().git, LINE, stage):
        for node in ast.walk(ast.parse((tree / name).read_text(encoding="utf-8"))):
            if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
                point = (ast.get_docstring(node) or "").split(":")[0]
                assert point == "Contract" or point.startswith("Task "), f"{name}: {node.name}"


@pytest.mark.parametrize("stage", STAGES)
def test_a_stage_never_adds_more_than_150_lines_to_agent(stage: Stage) -> None:
    assert added_lines(repo(), LINE)[stage.slug] <= 150


@pytest.mark.parametrize("stage", STAGES)
def test_agent_imports_the_four_packages_and_the_standard_library_only(
    stage: Stage, trees: Path
) -> None:
    for path in (tree_of(trees, stage) / "agent").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            names = []
            if isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom):
                assert node.level == 0, f"{path}: a relative import"
                names = [node.module or ""]
            for name in names:
                assert name.split(".")[0] in ALLOWED, f"{path.name} imports {name}"


@pytest.mark.parametrize("stage", STAGES)
def test_a_lesson_has_its_fixed_headings_and_names_what_it_touches(stage: Stage) -> None:
    lesson = Lesson.read(lesson_path(ROOT, stage))
    assert tuple(lesson.sections)[1:] == HEADINGS
    assert lesson.sections[""].strip(), "no hook"
    assert 2 <= lesson.sections["Hints"].count("<details>") <= 3
    assert lesson.concept.endswith(".")
    assert "\n" not in lesson.concept
    for name in lesson.touches:
        assert name in changed_code(stage), f"{name} is not touched"
    added = added_lines(repo(), LINE)[stage.slug]
    assert f"The change, +{added} lines in agent/" in lesson.sections["Solution"]
    assert len(lesson.body.splitlines()) <= 170, "longer than a screen and a half"


def test_the_last_stage_is_what_main_holds(tmp_path: Path) -> None:
    lay_out(repo().git, LINE.stages[-1].commit, tmp_path)
    ours = {p.relative_to(tmp_path) for p in tmp_path.rglob("*") if p.is_file()}
    git = repo().git
    listed = git("ls-files", "-z", "--cached", "--others", "--exclude-standard", "--", *TREE_PATHS)
    if not repo().private:
        main = {Path(name) for name in listed.decode().split("\0") if name}
        assert main == ours
    for name in ours:
        assert (ROOT / name).read_bytes() == (tmp_path / name).read_bytes(), name


def test_T34_the_series_says_what_its_commits_say() -> None:
    before = None
    for stage in LINE.stages:
        path = ROOT / "stages" / stage.folder / "change.patch"
        assert path.read_bytes() == patch(repo(), before.tree if before else None, stage.tree)
        before = stage


def test_the_settings_name_the_four_packages() -> None:
    data = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    names = {word.split(">")[0].lower() for word in data["project"]["dependencies"]}
    assert names == {"httpx", "numpy", "python-dotenv", "pyyaml"}


def test_agent_never_imports_the_workshop() -> None:
    found = subprocess.run(
        ["grep", "-rln", "workshop", ROOT / "agent"], capture_output=True, text=True
    )
    assert not found.stdout, found.stdout
