"""`just test --changed` tests what a change touches."""

from __future__ import annotations

from workshop.check import what_changed
from workshop.tests.course import Course


def test_a_lesson_asks_for_its_stage_alone(course: Course) -> None:
    lesson = next((course.root / "stages").glob("02-*/lesson.md"))
    lesson.write_text(lesson.read_text(encoding="utf-8") + "\nMore.\n", encoding="utf-8")
    found = what_changed(course.root)
    assert found.stages == [2]
    assert "workshop/tests/test_lessons.py" in found.tests


def test_a_second_solution_asks_for_its_stage_alone(course: Course) -> None:
    folder = next((course.root / "stages").glob("02-*"))
    (folder / "second" / "agent").mkdir(parents=True)
    (folder / "second" / "agent" / "echo.py").write_text("x = 1\n", encoding="utf-8")
    found = what_changed(course.root)
    assert found.stages == [2]
    assert "workshop/tests/test_stages.py" in found.tests


def test_a_patch_asks_for_all_later_stages(course: Course) -> None:
    patch = next((course.root / "stages").glob("02-*/change.patch"))
    patch.write_bytes(patch.read_bytes() + b"\n")
    stages = what_changed(course.root).stages
    assert stages
    assert stages == list(range(2, stages[-1] + 1))
    assert len(stages) > 1


def test_a_page_asks_for_the_tests_of_pages(course: Course) -> None:
    (course.root / "docs").mkdir()
    (course.root / "docs" / "page.md").write_text("A page.\n", encoding="utf-8")
    found = what_changed(course.root)
    names = ("test_docs", "test_lessons", "test_site", "test_site_browser")
    assert found.tests == [f"workshop/tests/{name}.py" for name in names]
    assert found.stages == []


def test_the_workshop_asks_for_everything(course: Course) -> None:
    (course.root / "workshop" / "new.py").write_text("x = 1\n")
    found = what_changed(course.root)
    assert (found.tests, found.stages) == ([], None)


def test_a_new_test_file_asks_for_itself(course: Course) -> None:
    (course.root / "workshop" / "tests" / "test_new.py").parent.mkdir(exist_ok=True)
    (course.root / "workshop" / "tests" / "test_new.py").write_text("")
    assert what_changed(course.root).tests == ["workshop/tests/test_new.py"]


def test_no_change_asks_for_everything(course: Course) -> None:
    assert what_changed(course.root).stages is None
