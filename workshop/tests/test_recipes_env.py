"""`setup`: the environment, made once, whole, and safe to interrupt. No network: uv is a script."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from workshop.tests.course import Course

# It answers as uv does for the two commands that set-up needs, and notes how it was called.
UV = """#!{python} -IS
import os, sys, time, venv, pathlib
words = sys.argv[1:]
with open({log!r}, "a") as log:
    log.write(" ".join(words) + "\\n")
mode = pathlib.Path({mode!r})
how = mode.read_text() if mode.exists() else ""
if how == "fail " + words[0]:
    print("error: something about " + words[-1], file=sys.stderr)
    sys.exit(2)
if words[0] == "venv":
    if how == "hang venv":
        os.mkdir(words[-1])
        time.sleep(60)
    venv.create(words[-1], with_pip=False, symlinks=True, clear="--clear" in words)
else:
    (packages,) = pathlib.Path(".venv").glob("lib/python*/site-packages")
    (packages / "half").touch()
    if how == "hang pip":
        time.sleep(60)
    (packages / "borrowed.pth").write_text({packages!r})
"""


class Bare:
    """A course without an environment, and a uv that is a script."""

    def __init__(self, course: Course, folder: Path) -> None:
        self.course, self.bin = course, folder / "bin"
        self.log, self.mode = folder / "uv.log", folder / "uv.mode"
        self.bin.mkdir()
        shutil.rmtree(course.root / ".venv")
        python = getattr(sys, "_base_executable", sys.executable)
        for name in ("sh", "git", "dirname", "env", "rm"):
            (self.bin / name).symlink_to(shutil.which(name) or f"/bin/{name}")
        (self.bin / "python3").symlink_to(python)
        packages = next(p for p in sys.path if p.endswith("site-packages"))
        self.uv = self.bin / "uv"
        self.uv.write_text(
            UV.format(python=python, log=str(self.log), mode=str(self.mode), packages=packages)
        )
        self.uv.chmod(0o755)

    @property
    def calls(self) -> list[str]:
        return self.log.read_text().splitlines() if self.log.exists() else []

    def __call__(self, *words: str) -> subprocess.CompletedProcess[str]:
        return self.course(*words, env={"PATH": str(self.bin)})

    def started(self, *words: str) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            self.course.start(*words),
            cwd=self.course.root,
            env=self.course.environment({"PATH": str(self.bin)}),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )


@pytest.fixture
def bare(course: Course, tmp_path: Path) -> Bare:
    return Bare(course, tmp_path)


def wait_for(bare: Bare, call: str) -> None:
    for _ in range(200):
        if any(row.startswith(call) for row in bare.calls):
            time.sleep(0.2)
            return
        time.sleep(0.05)
    raise AssertionError(f"uv {call} was not called")


def test_setup_makes_the_environment_and_says_so(bare: Bare) -> None:
    done = bare("setup")
    assert done.returncode == 0, done.stderr
    assert [row.split()[0] for row in bare.calls] == ["venv", "pip"]
    assert "--require-hashes -r requirements.lock" in bare.calls[1]
    assert "making .venv" in done.stderr
    assert "downloads" in done.stderr
    assert done.stdout == ""


def test_a_second_setup_prints_nothing_and_does_not_call_uv(bare: Bare) -> None:
    bare("setup")
    bare.log.unlink()
    bare.uv.unlink()
    done = bare("setup")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert bare.calls == []


def test_any_recipe_sets_up_what_is_missing(bare: Bare) -> None:
    done = bare("list")
    assert done.returncode == 0, done.stderr
    assert "The echo" in done.stdout
    assert len(bare.calls) == 2


def test_an_unknown_command_or_help_sets_up_nothing(bare: Bare) -> None:
    assert bare("no-such").returncode == 2
    assert bare("--help").returncode == 0
    assert not (bare.course.root / ".venv").exists()


def test_a_changed_lock_is_installed(bare: Bare) -> None:
    bare("setup")
    with (bare.course.root / "requirements.lock").open("a") as lock:
        lock.write("# changed\n")
    assert bare("setup").returncode == 0
    assert [row.split()[0] for row in bare.calls] == ["venv", "pip", "pip"]


def test_uv_inside_the_environment_of_a_bare_machine_is_used_and_stays(bare: Bare) -> None:
    subprocess.run(
        [bare.bin / "python3", "-m", "venv", "--without-pip", bare.course.root / ".venv"],
        check=True,
    )
    inside = bare.course.root / ".venv" / "bin"
    bare.uv.rename(inside / "uv")
    (inside / "just").touch()
    done = bare("setup")
    assert done.returncode == 0, done.stderr
    assert [row.split()[:2] for row in bare.calls] == [["pip", "install"]]
    assert (inside / "uv").exists()
    assert (inside / "just").exists()


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT])
@pytest.mark.parametrize("step", ["venv", "pip"])
def test_setup_that_was_cut_off_is_finished_by_the_next(
    bare: Bare, step: str, number: signal.Signals
) -> None:
    bare.mode.write_text(f"hang {step}")
    child = bare.started("setup")
    wait_for(bare, step)
    os.killpg(child.pid, number)
    _, said = child.communicate(timeout=20)
    if number == signal.SIGINT:
        assert child.returncode == 130
        assert b'File "' + os.fsencode(bare.course.root) not in said
    bare.mode.unlink()
    bare.log.unlink()
    done = bare("list")
    assert done.returncode == 0, done.stderr
    if step == "pip":  # what was cut off may look installed
        assert ["--reinstall" in row for row in bare.calls] == [True]
    else:
        assert bare.calls[0].startswith("venv")
        assert "--clear" in bare.calls[0]


def test_two_setups_at_once_install_once(bare: Bare) -> None:
    bare.mode.write_text("hang pip")
    first = bare.started("setup")
    wait_for(bare, "pip")
    bare.mode.unlink()
    second = bare.started("setup")
    time.sleep(0.5)
    os.killpg(first.pid, signal.SIGKILL)
    first.communicate(timeout=20)
    _, said = second.communicate(timeout=20)
    assert second.returncode == 0, said
    assert b"another set-up is running" in said
    assert [row.split()[0] for row in bare.calls] == ["venv", "pip", "pip"]


@pytest.mark.parametrize("step", ["venv", "pip"])
def test_a_failing_uv_is_named_with_its_own_words_and_a_mend(bare: Bare, step: str) -> None:
    bare.mode.write_text(f"fail {step}")
    done = bare("list")
    assert done.returncode == 1
    assert "something about" in done.stderr
    assert f"error: uv {step} failed" in done.stderr
    assert "network" in done.stderr
    assert "Traceback" not in done.stderr
    bare.mode.unlink()
    assert bare("list").returncode == 0


def test_without_uv_the_message_names_the_way_to_it(bare: Bare) -> None:
    bare.uv.unlink()
    done = bare("list")
    assert done.returncode == 1
    assert "uv is not installed" in done.stderr
    assert "python3 -m venv .venv && .venv/bin/pip install uv rust-just" in done.stderr


def test_without_any_python_or_uv_the_message_says_so(bare: Bare) -> None:
    bare.uv.unlink()
    (bare.bin / "python3").unlink()
    done = bare("list")
    assert done.returncode == 1
    assert "Python 3.11" in done.stderr


def test_without_a_new_enough_python_uv_brings_one(bare: Bare) -> None:
    (bare.bin / "python3").unlink()
    (bare.bin / "python3").write_text("#!/bin/sh\nexit 1\n")
    (bare.bin / "python3").chmod(0o755)
    bare("list")
    assert bare.calls[0].startswith("run --no-project")
    assert "--python >=3.11" in bare.calls[0]
    assert bare.calls[0].endswith("__main__.py list")


@pytest.mark.parametrize("fault", ["dead", "old", "a file", "dangling"])
def test_a_broken_environment_is_named_with_its_mend(bare: Bare, fault: str) -> None:
    bare("setup")
    python = bare.course.root / ".venv" / "bin" / "python"
    python.unlink()
    if fault == "dead":
        python.symlink_to("/no/such/python")
    elif fault == "old":
        python.write_text("#!/bin/sh\nexit 1\n")
        python.chmod(0o755)
    else:
        shutil.rmtree(bare.course.root / ".venv")
        if fault == "a file":
            (bare.course.root / ".venv").touch()
        else:
            (bare.course.root / ".venv").symlink_to("/no/such/folder")
    done = bare("list")
    assert done.returncode == 1, done.stdout
    assert ".venv has no working Python 3.11 or newer" in done.stderr
    assert "rm -r .venv" in done.stderr


def test_an_environment_that_lost_its_settings_does_not_start_itself_for_ever(bare: Bare) -> None:
    bare("setup")
    (bare.course.root / ".venv" / "pyvenv.cfg").unlink()
    done = bare("list")
    assert done.returncode == 1
    assert "rm -r .venv" in done.stderr


def test_a_package_that_is_gone_is_installed_again_the_next_time(bare: Bare) -> None:
    bare("setup")
    (packages,) = (bare.course.root / ".venv").glob("lib/python*/site-packages")
    (packages / "borrowed.pth").unlink()
    done = bare("list")
    assert done.returncode == 1
    assert "Run this again" in done.stderr
    assert bare("list").returncode == 0
    assert "--reinstall" in bare.calls[-1]


def test_a_full_disk_is_named(bare: Bare) -> None:
    if not Path("/dev/full").exists():
        pytest.skip("no /dev/full here")
    script = f'exec sh "{bare.course.root}/workshop/start" list >/dev/full'
    bare("setup")
    done = bare.course.call(["sh", "-c", script], None, "", {})
    assert done.returncode == 1
    assert "The disk is full" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_missing_lock_is_named(bare: Bare) -> None:
    (bare.course.root / "requirements.lock").unlink()
    done = bare("list")
    assert done.returncode == 1
    assert "git checkout -- requirements.lock" in done.stderr


def test_uv_gets_no_variable_that_means_another_environment(bare: Bare, tmp_path: Path) -> None:
    (bare.bin / "uv-real").write_bytes(bare.uv.read_bytes())
    (bare.bin / "uv-real").chmod(0o755)
    noted = tmp_path / "noted"
    bare.uv.write_text(f'#!/bin/sh\nenv >> {noted}\nexec "{bare.bin}/uv-real" "$@"\n')
    more = {"VIRTUAL_ENV": "/other", "PYTHONPATH": "/other", "UV_PROJECT_ENVIRONMENT": "/other"}
    done = bare.course("setup", env={"PATH": str(bare.bin), **more})
    assert done.returncode == 0, done.stderr
    assert "/other" not in noted.read_text()


def test_the_env_file_is_made_once_and_never_written_over(bare: Bare) -> None:
    env, example = bare.course.root / ".env", bare.course.root / ".env.example"
    env.unlink()
    assert bare("setup").returncode == 0
    assert env.read_bytes() == example.read_bytes()
    env.write_text("TINY_API_KEY=mine\n")
    bare("setup")
    assert env.read_text() == "TINY_API_KEY=mine\n"
    env.unlink()
    env.symlink_to("/no/such/place")
    assert bare("setup").returncode == 0
    assert env.is_symlink()


def test_python_m_workshop_does_the_same(course: Course) -> None:
    python = str(course.root / ".venv" / "bin" / "python")
    done = course.call([python, "-m", "workshop", "list"], course.root, "", {})
    assert done.returncode == 0, done.stderr
    assert done.stdout == course("list").stdout
