"""Stage 26: the artifact store: bytes in, a handle out, and nothing false under any handle."""

import errno
import hashlib
import importlib.util
import os
import random
import re
import resource
import signal
import sys
import warnings
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from helpers import TREE, command, need

LONG = random.Random(26).randbytes(20_000)
SIZES = range(12, 65, 4)  # hex digits of a handle


def store(folder: Path) -> Any:
    return need("agent.store", "Store")(folder)


def put(kept: Any, data: bytes) -> str:
    handle = kept.put(data)
    assert isinstance(handle, str), f"put: expected a handle, a str, came {handle!r}"
    return handle


def refusal(kept: Any, handle: Any) -> str:
    """The message of the StoreError that `get` must raise."""
    error = need("agent.errors", "StoreError")
    try:
        got = kept.get(handle)
    except error as raised:
        return str(raised)
    except Exception as raised:
        pytest.fail(f"get({handle!r}): expected a StoreError, came {raised!r}")
    pytest.fail(f"get({handle!r}): expected a StoreError, came {got!r:.80}")


def fetch(kept: Any, handle: str) -> Any:
    """The bytes, or the StoreError that came."""
    try:
        return kept.get(handle)
    except need("agent.errors", "StoreError") as raised:
        return raised


def handle_of(data: bytes, digits: int = 12) -> str:
    return "art_" + hashlib.sha256(data).hexdigest()[:digits]


def named(folder: Path) -> list[str]:
    """The handles that have a file."""
    names = os.listdir(folder) if folder.exists() else []
    return sorted(name for name in names if re.fullmatch("art_[0-9a-f]+", name))


def check(kept: Any, *contents: bytes) -> None:
    """A failure unless each content has its own handle, and comes back whole from it."""
    handles = [put(kept, data) for data in contents]
    assert len(set(handles)) == len(set(contents)), f"expected a handle each, came {handles}"
    for handle, data in zip(handles, contents, strict=True):
        got = fetch(kept, handle)
        assert got == data, f"get({handle!r}): expected {data!r:.60}, came {got!r:.60}"


def fork(work: Callable[[], Any]) -> tuple[int, int]:
    """Start `work` in a process of its own. Returns its id, and a pipe with what it returns."""
    read, write = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of threads that are not in the child
        child = os.fork()
    if child == 0:
        code = 1
        try:
            os.close(read)
            os.write(write, str(work()).encode())
            code = 0
        except BaseException as error:
            os.write(write, f"{type(error).__name__}: {error}".encode()[:4000])
        finally:
            os._exit(code)
    os.close(write)
    return child, read


def join(child: int, read: int) -> tuple[int, str]:
    """How a process ended (0, 1 if it raised, -9 if it was killed), and what it said."""
    with os.fdopen(read, "rb") as pipe:
        said = pipe.read().decode()
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), said


# Task 1: the same bytes, the same handle


def test_a_handle_is_the_beginning_of_the_hash(tmp_path: Path) -> None:
    """Task 1: `art_` and 12 hex digits of SHA-256, as its standard has them for "abc"."""
    for data, wanted in ((b"abc", "art_ba7816bf8f01"), (b"", "art_e3b0c44298fc")):
        for folder in ("one", "two"):
            got = put(store(tmp_path / folder), data)
            assert got == wanted, f"put({data!r}): expected {wanted}, came {got}"


@pytest.mark.parametrize(
    "data",
    [b"", b"a\r\nb\rc\n", b"\0\0", bytes(range(256)), b"\xff\xfe\x80 no UTF-8", b"1 1\n2\n", LONG],
    ids=["empty", "line ends", "NUL", "all bytes", "no UTF-8", "lines", "long"],
)
def test_S9_bytes_come_back_as_they_were(tmp_path: Path, data: bytes) -> None:
    """Task 1: what was put comes back, byte for byte, also from another Store of the folder."""
    handle = put(store(tmp_path / "new" / "artifacts"), data)
    got = fetch(store(tmp_path / "new" / "artifacts"), handle)
    assert got == data, f"expected {data!r:.60}, came {got!r:.60}"


def test_random_bytes_come_back(tmp_path: Path) -> None:
    """Task 1: 30 contents of any bytes, each under its own handle."""
    chance = random.Random(1)
    check(store(tmp_path), *(chance.randbytes(chance.randrange(200)) for _ in range(30)))


def test_the_same_content_is_kept_once(tmp_path: Path) -> None:
    """Task 1: put again, it has the same handle, and the file that was there is not touched."""
    kept = store(tmp_path)
    handle = put(kept, b"twice")
    before = (tmp_path / handle).stat() if (tmp_path / handle).exists() else None
    assert before, f"Contract: the file is named by the handle; there are {os.listdir(tmp_path)}"
    again = put(kept, b"twice")
    assert again == handle, f"put again: expected {handle}, came {again}"
    after = (tmp_path / handle).stat()
    same = (before.st_ino, before.st_mtime_ns) == (after.st_ino, after.st_mtime_ns)
    assert same, "put again: the file was written again"
    assert os.listdir(tmp_path) == [handle], f"expected one file, there are {os.listdir(tmp_path)}"


def test_the_file_is_a_line_and_the_bytes(tmp_path: Path) -> None:
    """Contract: hash, a blank, length, a line feed, the bytes: other trees read the same store."""
    handle = put(store(tmp_path / "ours"), b"a\nb")
    wanted = f"{hashlib.sha256(b'a' + bytes([10]) + b'b').hexdigest()} 3\na\nb".encode()
    file = tmp_path / "ours" / handle
    got = file.read_bytes() if file.exists() else b"no file"
    assert got == wanted, f"expected {wanted!r}, the file holds {got!r}"
    theirs = tmp_path / "theirs"
    theirs.mkdir()
    (theirs / handle).write_bytes(wanted)
    got = fetch(store(theirs), handle)
    assert got == b"a\nb", f"a file by another program: expected its bytes, came {got!r}"


def test_an_artifact_is_its_owners_alone(tmp_path: Path) -> None:
    """Contract: mode 700 for the folder, 600 for the file, whatever the umask."""
    before = os.umask(0)
    try:
        handle = put(store(tmp_path / "artifacts"), b"private")
    finally:
        os.umask(before)
    for path, wanted in ((tmp_path / "artifacts", 0o700), (tmp_path / "artifacts" / handle, 0o600)):
        mode = path.stat().st_mode & 0o777
        assert mode == wanted, f"{path.name}: expected mode {wanted:o}, came {mode:o}"


# Task 2: whole or not at all


@pytest.mark.parametrize("limit", [10, 5000])
def test_S5_a_kill_in_mid_write_leaves_nothing_under_a_handle(tmp_path: Path, limit: int) -> None:
    """Task 2: a process that is killed after so many bytes of a file leaves no handle."""

    def killed() -> str:
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
        signal.signal(signal.SIGXFSZ, signal.SIG_DFL)  # the system kills it at that byte
        return put(store(tmp_path), LONG)

    code, said = join(*fork(killed))
    assert code == -signal.SIGXFSZ, f"expected 20,000 bytes to be written, came {code} {said}"
    assert not named(tmp_path), f"killed after {limit} bytes: {named(tmp_path)} is there"
    refusal(store(tmp_path), handle_of(LONG))
    handle = put(store(tmp_path), LONG)
    assert handle == handle_of(LONG), f"put again: expected {handle_of(LONG)}, came {handle}"
    assert fetch(store(tmp_path), handle) == LONG, "put again after a kill: other bytes came back"


def test_S5_killed_at_any_step_nothing_false_is_kept(tmp_path: Path) -> None:
    """Task 2: a kill before the first, the second, … thing done in the folder does no harm."""
    for step in range(1, 40):
        folder = tmp_path / str(step)

        def killed(folder: Path = folder, step: int = step) -> str:
            seen = 0

            def hook(event: str, values: tuple[Any, ...]) -> None:
                nonlocal seen
                if any(str(folder) in str(value) for value in values):
                    seen += 1
                    if seen == step:
                        os.kill(os.getpid(), signal.SIGKILL)

            sys.addaudithook(hook)
            return put(store(folder), LONG)

        code, said = join(*fork(killed))
        assert code in (0, -signal.SIGKILL), f"put in a process of its own: {said}"
        for handle in named(folder):
            got = fetch(store(folder), handle)
            assert got == LONG, f"killed at step {step}: {handle} holds {got!r:.60}"
        handle = put(store(folder), LONG)
        assert handle == handle_of(LONG), f"killed at step {step}, put again: came {handle}"
        assert fetch(store(folder), handle) == LONG, (
            f"killed at step {step}, put again: other bytes"
        )
        if code == 0:
            return
    pytest.fail("a put that does 40 things in its folder")


@pytest.mark.parametrize("limit", [0, 5000])
def test_S5_a_full_disk_leaves_nothing(tmp_path: Path, limit: int) -> None:
    """Task 2: a write that fails half way is a StoreError, and no file is left."""
    error = need("agent.errors", "StoreError")

    def full() -> str:
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)  # the system says OSError at that byte
        try:
            return f"no StoreError but {store(tmp_path).put(LONG)!r}"
        except error as raised:
            return f"StoreError {raised}"

    code, said = join(*fork(full))
    assert (code, said[:10]) == (0, "StoreError"), f"expected a StoreError, came {said}"
    assert str(tmp_path) in said, f"expected the folder in the message, came {said!r}"
    assert os.listdir(tmp_path) == [], f"expected no file, there are {os.listdir(tmp_path)}"
    check(store(tmp_path), LONG)


def test_a_folder_that_cannot_be_made(tmp_path: Path) -> None:
    """Task 2: where a file is in the way of the folder, `put` is a StoreError."""
    (tmp_path / "file").write_bytes(b"in the way")
    for folder in (tmp_path / "file", tmp_path / "file" / "artifacts"):
        with pytest.raises(need("agent.errors", "StoreError")):
            store(folder).put(b"abc")
    assert (tmp_path / "file").read_bytes() == b"in the way", "the file was written over"


def test_S5_four_processes_write_at_once(tmp_path: Path) -> None:
    """Task 2: four at once, most of it the same: one handle a content, no file but theirs."""
    shared, kept = [LONG[:size] for size in range(4000, 4012)], store(tmp_path / "new")
    own = [[b"%d %d" % (number, i) for i in range(4)] for number in range(4)]
    wait, start = os.pipe()

    def write(number: int) -> str:
        os.close(start)
        os.read(wait, 1)  # the end of the pipe, for all at once
        return " ".join(put(kept, data) for data in shared + own[number])

    children = [fork(partial(write, number)) for number in range(4)]
    os.close(start)
    os.close(wait)
    for number, (code, said) in enumerate([join(*child) for child in children]):
        wanted = [handle_of(data) for data in shared + own[number]]
        assert code == 0, f"a writer of four: {said}"
        assert said.split() == wanted, f"a writer of four: expected {wanted}, came {said}"
    contents = [*shared, *(data for each in own for data in each)]
    left = sorted(os.listdir(tmp_path / "new"))
    assert left == sorted(map(handle_of, contents)), f"expected a file a content, there are {left}"
    check(kept, *contents)


# Task 3: never an overwrite


def test_S3_a_handle_that_is_taken_is_not_written_over(tmp_path: Path) -> None:
    """Task 3: where something else has the handle, the content gets four digits more, and so on."""
    kept = store(tmp_path)
    for digits in SIZES:
        handle = put(kept, b"abc")
        wanted = handle_of(b"abc", digits)
        assert handle == wanted, f"shorter ones are taken: expected {wanted}, came {handle}"
        assert fetch(kept, handle) == b"abc", f"get({handle!r}): other bytes came back"
        again = put(kept, b"abc")
        assert again == handle, f"put again: expected {handle}, came {again}"
        (tmp_path / handle).write_bytes(b"somebody else's %d" % digits)
    with pytest.raises(need("agent.errors", "StoreError")):
        kept.put(b"abc")
    for digits in SIZES:
        held = (tmp_path / handle_of(b"abc", digits)).read_bytes()
        assert held == b"somebody else's %d" % digits, f"written over: {held!r:.80}"
    left = len(os.listdir(tmp_path))
    assert left == len(SIZES), f"expected {len(SIZES)} files, there are {left}"


class Colliding:
    """A SHA-256 whose first 16 hex digits are the same for everything."""

    name, digest_size, block_size = "sha256", 32, 64

    def __init__(self, data: bytes = b"", **_: Any) -> None:
        self.real = REAL(data)

    def update(self, data: bytes) -> None:
        self.real.update(data)

    def hexdigest(self) -> str:
        return "c0111de5" * 2 + self.real.hexdigest()[16:]

    def digest(self) -> bytes:
        return bytes.fromhex(self.hexdigest())


REAL = hashlib.sha256


def colliding(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A store whose contents all have one handle: a copy of agent/store.py with another hash."""
    need("agent.store", "Store")
    monkeypatch.setattr(hashlib, "sha256", Colliding)
    monkeypatch.setattr(hashlib, "new", lambda _, data=b"", **more: Colliding(data))
    spec = importlib.util.spec_from_file_location("colliding", TREE / "agent" / "store.py")
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.Store(folder)


def test_S3_contents_with_one_handle_are_both_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Task 3: of contents whose hashes begin alike, each has a handle, and none is lost."""
    kept = colliding(tmp_path, monkeypatch)
    for _ in range(2):
        check(kept, b"first", b"second", b"first")
    first = put(kept, b"first")
    assert fetch(kept, first) == b"first", "the second content was written over the first"


def test_S3_two_contents_for_one_handle_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Task 3: the name is taken between the look and the writing: nothing is written over."""
    kept = colliding(tmp_path, monkeypatch)
    told, tell = os.pipe()
    wait, go = os.pipe()

    def slow() -> str:
        os.close(told)
        os.close(go)

        def hook(event: str, _: tuple[Any, ...]) -> None:
            if event in ("os.link", "os.rename"):
                with suppress(OSError):
                    os.write(tell, b".")
                os.read(wait, 1)

        sys.addaudithook(hook)
        return put(kept, b"slow")

    child = fork(slow)
    os.close(tell)
    os.close(wait)
    os.read(told, 1)  # it is about to give the file its name, or has ended
    os.close(told)
    quick = put(kept, b"quick")
    os.close(go)
    code, handle = join(*child)
    assert code == 0, f"the slow one of two: {handle}"
    got = (fetch(kept, quick), fetch(kept, handle))
    assert got == (b"quick", b"slow"), f"expected both contents, came {got}"


@pytest.mark.parametrize("number", ["EPERM", "ENOSYS", "EOPNOTSUPP", "ENOTSUP"])
def test_a_file_system_without_links(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: str
) -> None:
    """Contract: where hard links are not to be had, contents are kept all the same."""

    def link(*_: Any, **__: Any) -> None:
        raise OSError(getattr(errno, number), "no links here")

    monkeypatch.setattr(os, "link", link)
    check(store(tmp_path), b"one", b"two", b"one")
    left = sorted(os.listdir(tmp_path))
    assert left == sorted(map(handle_of, (b"one", b"two"))), f"expected two files, there are {left}"


# Task 4: what is not what was put is an error

DAMAGES: dict[str, Callable[[bytes], bytes]] = {
    "cut": lambda held: held[: len(held) // 2],
    "emptied": lambda held: b"",
    "a bit turned over": lambda held: held[:-1] + bytes([held[-1] ^ 1]),
    "longer": lambda held: held + b"\0",
    "the bytes alone": lambda held: held.partition(b"\n")[2],
    "another artifact": lambda held: f"{REAL(b'other').hexdigest()} 5\nother".encode(),
    "a wrong length": lambda held: held.replace(b" 20000\n", b" 19999\n"),
    "line ends": lambda held: held.replace(b"\n", b"\r\n"),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_S5_a_damaged_artifact_is_not_trusted(tmp_path: Path, damage: str) -> None:
    """Task 4: `get` says so, and a new `put` of the content does not trust the file either."""
    kept = store(tmp_path)
    handle = put(kept, LONG)
    file = tmp_path / handle
    assert file.exists(), f"Contract: the file is named by the handle; there is no {handle}"
    held = file.read_bytes()
    file.write_bytes(DAMAGES[damage](held))
    assert file.read_bytes() != held, "the test has damaged nothing"
    said = refusal(kept, handle)
    assert handle in said, f"expected the handle in the message, came {said!r}"
    check(kept, LONG)


def test_an_artifact_that_is_not_there(tmp_path: Path) -> None:
    """Task 4: an unknown handle is a StoreError that names it, also without a folder."""
    for folder in (tmp_path, tmp_path / "not made"):
        said = refusal(store(folder), "art_0123456789ab")
        assert "art_0123456789ab" in said, f"expected the handle in the message, came {said!r}"
    assert os.listdir(tmp_path) == [], "get has made something"


def test_a_folder_in_place_of_an_artifact(tmp_path: Path) -> None:
    """Task 4: what cannot be read is a StoreError, and is in nobody's way."""
    (tmp_path / handle_of(b"abc")).mkdir()
    refusal(store(tmp_path), handle_of(b"abc"))
    check(store(tmp_path), b"abc")


# Task 5: the form comes before the path


@pytest.mark.parametrize(
    "handle",
    [
        "",
        "../../etc/passwd",
        "..%2f..%2fetc%2fpasswd",
        "/etc/passwd",
        "../other/art_ba7816bf8f01",
        "art_ba7816bf8f01/../art_ba7816bf8f01",
        "./art_ba7816bf8f01",
        "art_ba7816bf8f01\0",
        "\0",
        "art_ba7816bf8f01\n",
        " art_ba7816bf8f01",
        "ART_BA7816BF8F01",
        "art_BA7816BF8F01",
        "art_",
        "art_ba7816bf8f0",
        "art_" + "0" * 65,
        "art_" + "０" * 12,
        "art_\udcff" + "0" * 12,
        "..",
        "notes.txt",
        "a" * 5000,
    ],
    ids=lambda handle: ascii(handle)[1:-1][:24] or "empty",
)
def test_S1_what_is_no_handle_opens_nothing(tmp_path: Path, handle: str) -> None:
    """Task 5: anything but `art_` and 12 to 64 digits is refused, in a short message."""
    for name in ("artifacts", "other"):
        put(store(tmp_path / name), b"abc")
    (tmp_path / "artifacts" / "notes.txt").write_bytes(b"no artifact")
    said = refusal(store(tmp_path / "artifacts"), handle)
    assert len(said) < 300, f"expected a short message, came {len(said)} characters"


def test_handles_are_found_in_a_text(tmp_path: Path) -> None:
    """Contract: `HANDLE` finds whole handles, and none that is a part of a longer word."""
    short, long = "art_ba7816bf8f01", "art_" + "0" * 64
    text = f'"{short}", ({long}). {short}です part_{"0" * 12} {short}f00g {long}0 art_00 {short}_'
    got = need("agent.store", "HANDLE").findall(text)
    assert got == [short, long, short], f"given {text!r}: came {got}"
    paths = [store(tmp_path).path(handle) for handle in got]
    wanted = [tmp_path / handle for handle in got]
    assert paths == wanted, f"expected a path for each of them, came {paths}"


def test_the_path_of_a_handle(tmp_path: Path) -> None:
    """Task 5: `path` is the file in the folder, and for anything else a StoreError."""
    got = store(tmp_path).path("art_ba7816bf8f01")
    assert got == tmp_path / "art_ba7816bf8f01", f"expected a file in the folder, came {got}"
    for handle in ("../art_ba7816bf8f01", "", "art_ba7816bf8f01\0"):
        try:
            got = store(tmp_path).path(handle)
        except need("agent.errors", "StoreError"):
            continue
        pytest.fail(f"path({handle!r}): expected a StoreError, came {got!r}")


# Task 6: the commands


def test_the_commands_keep_and_give_back(tmp_path: Path) -> None:
    """Task 6: `put` prints the handle, of a file or of standard input; `get` writes the bytes."""
    text, env = "a\r\nb\rc\0äöü€😀", {"TINY_HOME": str(tmp_path / "home")}
    (tmp_path / "file").write_bytes(text.encode())
    for file, data in ((tmp_path / "file", text.encode()), ("-", b"\xff\xfe\r\n\0")):
        done = command("put", file, input=data, env=env)
        wanted = handle_of(data) + "\n"
        assert done.returncode == 0, f"put {file}: expected exit code 0, came {done}"
        assert done.stdout == wanted, f"put {file}: expected {wanted!r}, came {done.stdout!r}"
    done = command("get", handle_of(text.encode()), env=env)
    assert done.returncode == 0, f"get: expected exit code 0, came {done}"
    assert done.stdout == text, f"get: expected {text!r}, came {done.stdout!r}"
    kept = fetch(store(tmp_path / "home" / "artifacts"), handle_of(text.encode()))
    assert kept == text.encode(), f"expected it in TINY_HOME/artifacts, came {kept!r}"


@pytest.mark.parametrize(
    "words", [("get", "art_0123456789ab"), ("get", "../x"), ("put", "no/file")]
)
def test_the_commands_say_what_is_wrong(tmp_path: Path, words: tuple[str, str]) -> None:
    """Task 6: no artifact, no handle, no file: a line on stderr, and exit code 1."""
    done = command(*words, env={"TINY_HOME": str(tmp_path)})
    assert done.returncode == 1, f"{words}: expected exit code 1, came {done}"
    assert done.stdout == "", f"{words}: expected nothing on stdout, came {done.stdout!r}"
    lines = done.stderr.splitlines()
    assert len(lines) == 1, f"{words}: expected a line on stderr, came {done.stderr}"
    assert words[1] in lines[0], f"{words}: expected what was given in it, came {lines[0]!r}"
