"""`just check`: the line's tests on the learner's code, and what they say in the lesson's terms.

The tests run on a copy of the work folder in which `tests/` and the test settings are the line's.
Nothing in the work folder is changed.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import stat
import tempfile
import threading
import warnings
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from workshop.errors import DONE, FAILED, Problem
from workshop.git import Git
from workshop.lesson import Lesson
from workshop.line import Line, Stage, ensure_built
from workshop.progress import set_progress
from workshop.rebuild import begun, named_stage
from workshop.repo import open_repo
from workshop.series import tree_paths
from workshop.show import lesson_path
from workshop.suite import Cut, Outcome, Report, lay_out, own_tests, point_order, run_tests
from workshop.trees import CACHES, shown

EACH = 20.0  # seconds for one test
ALL = 240.0  # seconds for all of them
INTERRUPTED = 2  # pytest's exit code, where it did not run all tests
TIMES = Path(".tiny") / "check-seconds.json"
BYTES_A_SECOND = 20_000  # of a file of tests that was not run yet, roughly
ROWS = 12  # of a message, where not all is asked for
# What is the line's in the copy, and what could bend how the tests run.
OURS = ("tests", "pyproject.toml")
LEFT_OUT = {"conftest.py", "pytest.ini", ".pytest.ini", "tox.ini", "setup.cfg", "pytest.toml"}
CLAIM = re.compile(
    r"(?:(?P<given>given .+?)[:,] )?(?P<expected>expected .+?)[,;:] "
    r"(?:it |but )?(?:(?P<how>came back|came out|came|got|printed) (?P<came>.+)"
    r"|(?P<kind>\w+) came(?: out)?: (?P<text>.+))",
    re.DOTALL,
)


@dataclass(frozen=True)
class Failing:
    """What is said of one failed test. `stops`: no test was run after it."""

    text: str
    stops: bool = False


@dataclass(frozen=True)
class Check:
    """One check: the stage, the learner's folder, and which files of tests are whose."""

    root: Path
    line: Line
    stage: Stage
    folder: Path
    owners: dict[str, Stage]

    def owner(self, test: str) -> Stage:
        return self.owners.get(test.split("::")[0], self.stage)

    def is_own(self, test: str) -> bool:
        return self.owner(test) == self.stage


def check(root: Path, word: str | None, latest_only: bool, verbose: bool) -> int:
    """Run the tests of a stage and of all earlier ones on the learner's code."""
    repo = open_repo(root)
    line = ensure_built(repo)
    stage = named_stage(root, line, word)
    folder = begun(root, stage)
    owners = {
        name: earlier
        for earlier in line.stages[: stage.number]
        for name in own_tests(repo.git, line, earlier)
    }
    present = set(tree_paths(repo, stage.tree))
    tests = [name for name, owner in owners.items() if owner == stage and name in present]
    if not latest_only:
        tests += [name for name in owners if owners[name] != stage and name in present]
    one = Check(root, line, stage, folder, owners)
    for note in edited(one, repo.git):
        print(note)
    with tempfile.TemporaryDirectory(prefix="tiny-check-", ignore_cleanup_errors=True) as scratch:
        copy = Path(scratch).resolve() / "tree"
        lay_copy(one, repo.git, copy)
        if broken := does_not_parse(copy):
            print(f"{title(one)}: not yet.\n\n{broken}")
            return FAILED
        words = ["--tb=no", "--show-capture=no", "--continue-on-collection-errors"]
        try:
            touches = Lesson.read(lesson_path(root, stage)).touches
            report = run_side_by_side(copy, tests, words, known_seconds(root), touches)
        except AssertionError as wrong:
            raise Problem(
                f"the tests ran on another agent than yours: {wrong}.",
                "Is agent/ in your folder a link? Make it a folder of its own.",
            ) from None
        keep_seconds(root, report.seconds)
        problems = failures(one, report, verbose)
        text = verdict(one, report, problems, verbose)
    print(readable(text.replace(f"{copy}/", "").replace(str(copy), ".")))
    if problems:
        return FAILED
    if not latest_only:
        set_progress(root, stage.slug, done=True)
    print(after_success(one, latest_only))
    return DONE


def run_side_by_side(
    copy: Path,
    tests: list[str],
    flags: list[str],
    known: dict[str, float],
    touches: Sequence[str] = (),
) -> Report:
    """Run files of tests, a process for each core, and put together what they say.

    `known` is how many seconds some files took before, so that the cores end together.
    """
    cores = min(os.cpu_count() or 1, 4, len(tests)) or 1
    groups: list[list[str]] = [[] for _ in range(cores)]
    times = [0.0] * cores
    each = {name: known.get(name, (copy / name).stat().st_size / BYTES_A_SECOND) for name in tests}
    for name in sorted(tests, key=lambda name: -each[name]):
        least = times.index(min(times))
        groups[least].append(name)
        times[least] += each[name]
    ordered = [sorted(group, key=tests.index) for group in groups]  # the stage's own come first
    stop = threading.Event()
    with ThreadPoolExecutor(cores) as pool:
        try:
            waiting = [
                pool.submit(
                    run_tests,
                    copy,
                    group,
                    *flags,
                    seconds=ALL,
                    each=EACH,
                    stop=stop,
                    touches=touches,
                )
                for group in ordered
            ]
            reports = [one.result() for one in waiting]
        finally:
            stop.set()  # after Ctrl-C: ends the processes, too
    outcomes = [outcome for one in reports for outcome in one.outcomes]
    outcomes.sort(key=lambda one: tests.index(one.test.split("::")[0]))
    worst = min(
        reports,
        key=lambda one: (
            one.code is not None,
            not one.cuts,
            one.code != INTERRUPTED,
            not one.code,
        ),
    )
    seconds = {name: spent for one in reports for name, spent in one.seconds.items()}
    cuts = [cut for one in reports for cut in one.cuts]
    return Report(worst.code, outcomes, worst.agent, worst.output, cuts, seconds)


def known_seconds(root: Path) -> dict[str, float]:
    """How long each file of tests took in the last check that ran it; what cannot be read: none."""
    try:
        found = json.loads((root / TIMES).read_text(encoding="utf-8"))
        return {str(name): min(float(spent), EACH) for name, spent in found.items()}
    except (OSError, ValueError, TypeError, AttributeError):
        return {}


def keep_seconds(root: Path, seconds: dict[str, float]) -> None:
    """Remember them for the next check. Where that fails, only time is lost."""
    kept = {**known_seconds(root), **{name: round(spent, 3) for name, spent in seconds.items()}}
    with contextlib.suppress(OSError):
        (root / TIMES).parent.mkdir(exist_ok=True)
        temporary = (root / TIMES).with_suffix(f".{os.getpid()}")
        temporary.write_text(json.dumps(kept, indent=1) + "\n", encoding="utf-8")
        temporary.replace(root / TIMES)


def title(check: Check) -> str:
    return f"Stage {check.stage.number}, {check.stage.slug}"


def edited(check: Check, git: Git) -> list[str]:
    """The files that are the line's to give, and that say something else in the work folder."""
    stage = check.stage
    given = Lesson.read(lesson_path(check.root, stage)).given
    listed = git("ls-tree", "-r", "-z", "--full-tree", stage.commit, "--", "tests", *given)
    blobs: dict[str, str] = {}
    for row in os.fsdecode(listed).split("\0")[:-1]:
        meta, path = row.split("\t", 1)
        if meta.startswith("100"):
            blobs[path] = meta.split()[2]
    here = [name for name in blobs if (check.folder / name).is_file()]
    paths = "".join(f"{check.folder / name}\n" for name in here)
    # With the filters of this repository: other line ends alone are no edit.
    done = Git(check.folder).run("hash-object", "--stdin-paths", input=os.fsencode(paths))
    ids = dict(zip(here, done.stdout.decode().split(), strict=False))
    notes = []
    for name, blob in blobs.items():
        if name not in here:
            what = "is not there"
        elif ids.get(name) != blob:
            what = "is edited"
        else:
            continue
        if name.startswith("tests/"):
            notes.append(f"note: {name} {what} in your folder; the line's was used.")
        else:
            notes.append(f"note: {name}, which the lesson gives, {what} in your folder.")
    return [*notes[:5], *([f"note: and {len(notes) - 5} more."] if len(notes) > 5 else [])]


def lay_copy(check: Check, git: Git, copy: Path) -> None:
    """The learner's files, without caches and tests, and over them the line's tests."""

    def left_out(folder: str, names: list[str]) -> set[str]:
        top = Path(folder) == check.folder
        ours = {*OURS, *LEFT_OUT, ".git", ".env"} if top else set()
        odd = {name for name in names if not is_plain(Path(folder) / name)}
        return {name for name in names if name in CACHES or name in ours} | odd

    shutil.copytree(check.folder, copy, symlinks=True, ignore=left_out)
    agent = copy / "agent"
    if not agent.exists() and not agent.is_symlink():
        agent.mkdir()
    if agent.is_dir() and not agent.is_symlink():
        # Without it, an installed `agent` would be what Python imports.
        (agent / "__init__.py").touch()
    lay_out(git, check.stage.commit, copy, *OURS)


def is_plain(path: Path) -> bool:
    mode = path.lstat().st_mode
    return stat.S_ISREG(mode) or stat.S_ISDIR(mode) or stat.S_ISLNK(mode)


def does_not_parse(copy: Path) -> str:
    """The first file of the learner's that is no Python, with its line, or ""."""
    for path in sorted(copy.rglob("*.py")):
        name = path.relative_to(copy)
        if name.parts[0] == "tests" or not path.is_file():
            continue
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                compile(path.read_bytes(), str(name), "exec", dont_inherit=True)
        except SyntaxError as error:
            row = (error.text or "").rstrip("\n")
            at = f", line {error.lineno}" if error.lineno else ""
            return f"{name}{at}: {type(error).__name__}: {error.msg}\n    {row.strip()}".rstrip()
        except (ValueError, RecursionError, MemoryError) as error:
            return f"{name}: Python cannot read it: {error}"
    return ""


def failures(check: Check, report: Report, verbose: bool) -> list[Failing]:
    """What is wrong, the most telling first; nothing where all tests pass."""
    order = sorted(report.failed, key=lambda one: (not check.is_own(one.test), point_order(one)))
    cuts = sorted(report.cuts, key=lambda one: not check.is_own(one.test))
    blocks = [Failing(ended_in(check, one), stops=True) for one in cuts]
    blocks += [Failing(failure(check, one, verbose), one.last) for one in order]
    own = [one for one in report.outcomes if one.outcome == "passed" and check.is_own(one.test)]
    if not blocks and (report.code != 0 or not own):
        tail = "\n".join(report.output.strip().splitlines()[-ROWS:])
        blocks = [Failing(f"The tests could not run:\n{tail}")]
    return blocks


def verdict(check: Check, report: Report, problems: list[Failing], verbose: bool) -> str:
    """What a run says: the first failure in full, also what ended it early, the rest as a count."""
    if not problems:
        own = sum(check.is_own(one.test) for one in report.outcomes)
        rest = len(report.outcomes) - own
        more = f" and {rest} of earlier stages" if rest else ""
        return f"{title(check)}: passed. {count(own, 'test')} of this stage{more}."
    rows = [f"{title(check)}: not yet.", ""]
    told = [one for at, one in enumerate(problems) if verbose or at == 0 or one.stops]
    rows += ["\n\n".join(one.text for one in told), ""]
    stopped = sum(one.stops for one in problems) or int(report.code == INTERRUPTED)
    if report.failed:
        rows.append(tally(check, report, whole=not stopped))
    if stopped:
        rows.append(f"The tests after {'it' if stopped == 1 else 'them'} were not run.")
    if len(problems) > len(told):
        rows.append(f"  all of them  just check {check.stage.number} --verbose")
    rows.append(f"  a hint       just hint {check.stage.number}")
    return "\n".join(rows)


def tally(check: Check, report: Report, whole: bool) -> str:
    """How many tests fail, of this stage and of earlier ones. `whole`: all of them were run."""
    failed = report.failed
    mine = sum(check.is_own(one.test) for one in failed)
    total = sum(check.is_own(one.test) for one in report.outcomes)
    earlier = len(failed) - mine
    rest = f"{earlier} of earlier stages"
    if mine:
        said = f"{mine} of {count(total, 'test')} of this stage {fail(mine)}"
        return f"{said}, and {rest}." if earlier else f"{said}."
    if whole:
        return f"All tests of this stage pass; {rest} {fail(earlier)}."
    ran = f"{count(total, 'test')} of this stage {'passes' if total == 1 else 'pass'}; "
    return f"{ran if total else ''}{rest} {fail(earlier)}."


def fail(number: int) -> str:
    return "fails" if number == 1 else "fail"


def ended_in(check: Check, cut: Cut) -> str:
    """The test in which the process ended, or its time did."""
    if cut.code is None:
        said = "it did not come to an end; the process was stopped"
    elif cut.code < 0:
        said = f"your code crashed the whole process: signal {-cut.code}"
    else:
        how = f"exit code {cut.code} (os._exit or KeyboardInterrupt)"
        said = f"your code ended the whole process, {how}"
    return block(check, cut.test, cut.point, [said])


def failure(check: Check, one: Outcome, verbose: bool) -> str:
    """One failed test: point, sentence, what was claimed, and where the code crashed."""
    rows = claim(one, verbose)
    if one.place:
        place = shown(check.root, check.folder / one.place)
        rows.append(f"in your code: {place}" + (f"  {one.text}" if one.text else ""))
        if one.cause and one.error != "MemoryError" and not repeats(one, rows):
            where = f" (raised in {one.raised})" if one.raised else ""
            rows += clipped(f"there: {one.cause.removesuffix(': ')}{where}", verbose)
    return block(check, one.test, one.point, rows)


def repeats(one: Outcome, rows: list[str]) -> bool:
    """Whether the rows say already what was raised."""
    kind, _, text = one.cause.partition(": ")
    above = "\n".join(rows)
    if text and kind == one.error and kind in ("AssertionError", "Failed"):
        above += one.message or ""  # the rows are made of it
    elif kind not in above:
        return False
    return " ".join(text.split()) in " ".join(above.split())


def block(check: Check, test: str, point: str, rows: list[str]) -> str:
    owner = check.owner(test)
    of = "" if owner == check.stage else f" (stage {owner.number}, {owner.slug})"
    head = " ".join(point.split()) or "While your code was imported"
    name = test.rpartition("::")[2] if "::" in test else test
    sentence = re.sub(r"^test_", "", name).replace("_", " ") if "::" in test else name
    lines = "\n".join(rows).splitlines()
    return "\n".join([f"{head}{of}", f"  test: {sentence}", *(f"  {row}" for row in lines)])


def claim(one: Outcome, verbose: bool) -> list[str]:
    """A failure's message: what was given, what was expected, what came back."""
    message = (one.message or "").strip()
    if one.error == "MemoryError":
        return ["it used more than 2 GB of memory: output or data without an end?"]
    if one.error == "OSError" and "File too large" in message:
        return ["it wrote more than 64 MB to one file or to its output."]
    if one.error == "UnicodeDecodeError":
        return [f"what it printed is not UTF-8: {message}"]
    if one.error == "SystemExit":
        return [f"it called sys.exit({message}) where an answer was expected."]
    if one.error == "CollectError":
        return [] if one.cause else clipped(message, verbose)
    if one.error not in ("AssertionError", "Failed"):
        return [] if one.cause else clipped(f"{one.error}: {message}", verbose)
    # pytest adds how an assertion came out, which the tests' own words say better.
    own, _, more = message.partition("\nassert ")
    text = own if own and not own.startswith("assert ") else message
    text = without_traceback(text)
    found = CLAIM.fullmatch(text.strip())
    rows = []
    if found:
        if found["given"]:
            rows += clipped(f"given:     {found['given'][6:]}", verbose)
        rows += clipped(f"expected:  {found['expected'][9:]}", verbose)
        came = found["came"] or f"{found['kind']}: {found['text']}"
        rows += clipped(f"came back: {came}", verbose)
    else:
        rows += clipped(text, verbose)
    if verbose and more:
        rows += clipped(f"assert {more}", verbose)
    return rows


def without_traceback(text: str) -> str:
    """A traceback that a command printed, cut down to its last place and its error."""

    def short(found: re.Match[str]) -> str:
        places = re.findall(r'File "([^"]+)", line (\d+)', found[0])
        mine = [one for one in places if "/tree/" in one[0] and "/tests/" not in one[0]]
        file, line = (mine or places or [("?", "0")])[-1]
        return f"it crashed in {file}:{line}\n{found[0].rstrip().splitlines()[-1]}\n"

    pattern = r"Traceback \(most recent call last\):\n(?:[ \t].*\n)+.*\n?"
    return re.sub(pattern, short, text)


def clipped(text: str, verbose: bool) -> list[str]:
    """A text's lines, each at most 300 characters, and at most ROWS of them."""
    lines = [row if len(row) <= 300 else f"{row[:300]} …" for row in text.splitlines()]
    if verbose or len(lines) <= ROWS:
        return lines
    return [*lines[:ROWS], f"… {len(lines) - ROWS} more lines"]


def readable(text: str) -> str:
    """Without what would move a terminal's cursor or could not be printed."""
    kept = "".join(c if c.isprintable() or c in "\n\t" else ascii(c)[1:-1] for c in text)
    return kept.encode(errors="backslashreplace").decode()


def count(number: int, noun: str) -> str:
    return f"{number} {noun}" + ("" if number == 1 else "s")


def after_success(check: Check, latest_only: bool) -> str:
    number, line = check.stage.number, check.line
    if latest_only:
        return f"  it counts as done when the earlier ones pass too: just check {number}"
    rows = [
        f"  learned     {Lesson.read(lesson_path(check.root, check.stage)).concept}",
        f"  see it      just prove {number}",
        f"  ours        just solution {number}",
    ]
    if number < len(line.stages):
        rows.append(f"  next        just start {number + 1}")
        rows.append(f"  from yours  just start {number + 1} --from mine")
    else:
        rows.append("  next        that was the last one")
    return "\n".join(rows)
