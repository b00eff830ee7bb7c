"""The artifact store under load: what is put comes back, whatever happens to who puts it."""

from __future__ import annotations

import multiprocessing
import os
import random
import signal
import time
from pathlib import Path

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agent.expand import ROOM, page
from agent.outline import outline
from agent.store import Store

PAGES = settings(deadline=None, suppress_health_check=list(HealthCheck), derandomize=True)


def contents(seed: int, count: int) -> list[bytes]:
    """Random bytes of 0 to 2,000, and now and then of 200,000."""
    rng = random.Random(seed)
    return [
        rng.randbytes(rng.choice([rng.randrange(2_000)] * 99 + [200_000])) for _ in range(count)
    ]


def put_all(folder: Path, seed: int, count: int) -> None:
    store = Store(folder)
    for data in contents(seed, count):
        store.put(data)


def files(folder: Path) -> list[Path]:
    return [path for path in folder.iterdir() if path.name.startswith("art_")]


def test_ten_thousand_random_artifacts_come_back_as_they_were(tmp_path: Path) -> None:
    store, kept = Store(tmp_path), {}
    for data in contents(1, 10_000):
        kept[store.put(data)] = data
    for handle, data in kept.items():
        assert store.get(handle) == data
    assert len(files(tmp_path)) == len(kept) == len(set(kept.values()))


def test_S5_two_hundred_kills_in_mid_write_leave_nothing_false(tmp_path: Path) -> None:
    """Each child writes large artifacts until it is killed, after 0 to 6 ms."""
    rng = random.Random(2)
    for number in range(200):
        if (child := os.fork()) == 0:
            try:
                store, data = Store(tmp_path), random.Random(number).randbytes(400_000)
                for i in range(10_000):
                    store.put(i.to_bytes(4, "big") + data)
            finally:
                os._exit(0)
        time.sleep(rng.random() * 0.006)
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
    store, found = Store(tmp_path), files(tmp_path)
    for path in found:
        assert len(store.get(path.name)) == 400_004, path
    left = [path for path in tmp_path.iterdir() if path not in found]
    assert found, "the kills came too early to tell anything"
    assert left, "the kills came too late to tell anything"
    assert all(path.name.startswith(".tmp-") for path in left)


def test_S3_eight_processes_that_write_the_same_and_others_lose_nothing(tmp_path: Path) -> None:
    spawn = multiprocessing.get_context("fork")
    seeds = [1, 1, 2, 2, 3, 3, 4, 5]
    writers = [spawn.Process(target=put_all, args=(tmp_path, seed, 150)) for seed in seeds]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join(60)
        assert writer.exitcode == 0
    store = Store(tmp_path)
    wanted = {data for seed in seeds for data in contents(seed, 150)}
    assert {store.get(path.name) for path in files(tmp_path)} == wanted
    assert len(list(tmp_path.iterdir())) == len(wanted), "a temporary file was left behind"


@PAGES
@given(st.binary(max_size=3_000) | st.text(max_size=3_000).map(str.encode), st.integers(2, 400))
def test_S7_S9_pages_from_end_to_end_are_the_bytes(data: bytes, room: int) -> None:
    """Any bytes: CR LF, lone CR, NUL, invalid UTF-8, and any size of a page."""
    text, pages, start = data.decode("utf-8", "surrogateescape"), [], 0
    while start < len(text):
        first, start = page(text, (start, len(text)), room)
        pages.append(text[first:start].encode("utf-8", "surrogateescape"))
    assert b"".join(pages) == data


def test_S7_pages_of_accents_and_emoji_are_never_torn() -> None:
    text, pages, start = "äöü€😀\r\n" * 5_000, [], 0
    while start < len(text):
        first, start = page(text, (start, len(text)), ROOM)
        pages.append(text[first:start])
    assert "".join(pages) == text
    assert len(pages) > 10


@PAGES
@given(st.text(max_size=5_000), st.integers(1, 30))
def test_parts_from_end_to_end_are_the_text(text: str, most: int) -> None:
    parts = outline(text, most).parts
    assert "".join(text[part.start : part.end] for part in parts) == text
    assert len(parts) <= most
