"""Fixtures that several test files use."""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from workshop.tests.course import HERE, Course, make


@pytest.fixture(scope="session")
def template(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A course that is never run, to be copied."""
    base = tmp_path_factory.mktemp("template")
    yield make(base)
    shutil.rmtree(base)


@pytest.fixture
def course(template: Path, tmp_path: Path) -> Course:
    """A course of the test's own, set up, with nothing laid out yet."""
    (tmp_path / "home").mkdir()
    shutil.copytree(template, tmp_path / "course", symlinks=True)
    return Course(tmp_path / "course", tmp_path / "home")


@pytest.fixture(scope="session")
def shared(template: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Course]:
    """One course for all tests that only look: no stage is laid out, no file is changed."""
    base = tmp_path_factory.mktemp("shared")
    (base / "home").mkdir()
    shutil.copytree(template, base / "course", symlinks=True)
    yield Course(base / "course", base / "home")
    shutil.rmtree(base)


@dataclass(frozen=True)
class Site:
    """The site as it was built once for all tests, what was said, and the seconds of one core."""

    folder: Path
    said: list[str]
    seconds: float


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """The site of this checkout, from nothing. Tests that use it share a process."""
    from workshop.site.build import build

    base = tmp_path_factory.mktemp("site")
    begun = time.process_time()
    said = build(HERE, base / "site", base / "scratch")
    yield Site(base / "site", said, time.process_time() - begun)
    shutil.rmtree(base)
