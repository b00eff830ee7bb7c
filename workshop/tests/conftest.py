"""Fixtures that several test files use."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from workshop.tests.course import Course, make


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
