"""Set-up: the environment from requirements.lock, `.env` from the example, what git must ignore.

It imports the standard library only: it runs before there is an environment. Every step can be
interrupted and run again, and one that is done costs no network and no process.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from workshop.errors import Problem
from workshop.repo import Repo

IGNORED = (".venv/", ".stages/", ".tiny/", ".edit/", "site/", "work/", ".env")
RUN_LOCK = "requirements.lock"
TEST_LOCK = "workshop/requirements-test.lock"
MEASURE_LOCK = "workshop/requirements-measure.lock"
MODEL_LOCK = "workshop/requirements-model.lock"
SITE_LOCK = "workshop/requirements-site.lock"
BROWSER_LOCK = "workshop/requirements-browser.lock"
LOCKS = (RUN_LOCK, TEST_LOCK, MEASURE_LOCK, MODEL_LOCK, SITE_LOCK, BROWSER_LOCK)
SYSTEM_CERTIFICATES = (
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/cert.pem",
)
BARE = "python3 -m venv .venv && .venv/bin/pip install uv rust-just"


def python(root: Path) -> Path:
    return root / ".venv" / "bin" / "python"


def is_ready(root: Path, lock: str = RUN_LOCK) -> bool:
    """Whether the environment holds what the lock file says, as far as a marker can tell."""
    try:
        return marker(root, lock).read_text(encoding="utf-8") == digest(root, lock)
    except OSError:
        return False


def marker(root: Path, lock: str) -> Path:
    return root / ".venv" / f".tiny-{Path(lock).stem}"


def begun(root: Path, lock: str) -> Path:
    """Stands while an installation runs. One that was cut off left it behind."""
    return marker(root, lock).with_suffix(".begun")


def digest(root: Path, lock: str) -> str:
    try:
        return hashlib.sha256((root / lock).read_bytes()).hexdigest()
    except FileNotFoundError:
        raise Problem(f"{lock} is missing.", f"Restore it: git checkout -- {lock}") from None


def prepare(root: Path, *locks: str) -> bool:
    """Make `.venv` hold what the lock files say. Whether there was anything to do."""
    if all(is_ready(root, lock) for lock in locks) and python(root).exists():
        return False
    with one_at_a_time(root):
        make_venv(root)
        for lock in locks:
            if not is_ready(root, lock):
                install(root, find_uv(root), lock)
    return True


def forget(root: Path) -> None:
    """Have the next set-up install everything again."""
    for lock in LOCKS:
        if (root / ".venv").is_dir():
            begun(root, lock).touch()
            marker(root, lock).unlink(missing_ok=True)


@contextlib.contextmanager
def one_at_a_time(root: Path) -> Iterator[None]:
    """Two set-ups at once would write over each other: the second waits."""
    (root / ".tiny").mkdir(exist_ok=True)
    with (root / ".tiny" / "setup.lock").open("a") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say("another set-up is running; waiting for it")
            fcntl.flock(file, fcntl.LOCK_EX)
        yield


def say(text: str) -> None:
    print(f"[setup] {text}", file=sys.stderr, flush=True)


def find_uv(root: Path) -> str:
    """uv on the path, or the one that a bare machine's single line put into `.venv`."""
    inside = root / ".venv" / "bin" / "uv"
    found = shutil.which("uv") or (str(inside) if os.access(inside, os.X_OK) else None)
    if not found:
        raise Problem("uv is not installed.", f"Install it, or run: {BARE}")
    return found


def make_venv(root: Path) -> None:
    """Make `.venv`, or keep the one that is there. A half-made one of ours is made again."""
    venv, started = root / ".venv", root / ".tiny" / "venv-started"
    ours = started.exists() and not (venv / "bin" / "uv").exists()
    if os.path.lexists(venv) and not ours:
        started.unlink(missing_ok=True)
        if not works(root):
            raise Problem(
                ".venv has no working Python 3.11 or newer.",
                "Remove it, and set-up makes a new one: rm -r .venv",
            )
        return
    uv = find_uv(root)
    say("making .venv")
    started.touch()
    clear = ["--clear"] if venv.exists() else []
    run_uv(root, uv, "venv", "--quiet", "--no-project", *clear, "--python", ">=3.11", ".venv")
    started.unlink()


def works(root: Path) -> bool:
    """Whether `.venv` has a Python that runs, is new enough and takes `.venv` for its own."""
    check = "import sys; print(sys.version_info >= (3, 11) and sys.prefix)"
    try:
        done = subprocess.run(
            [str(python(root)), "-E", "-c", check], capture_output=True, check=False
        )
    except OSError:
        return False
    return os.fsdecode(done.stdout.rstrip(b"\n")) not in ("", "False") and os.path.samefile(
        os.fsdecode(done.stdout.rstrip(b"\n")), root / ".venv"
    )


def install(root: Path, uv: str, lock: str) -> None:
    say(f"installing what {lock} lists; the first time this downloads it")
    # Not `uv pip sync`: that would remove uv and just from the environment of a bare machine.
    # A package that was cut off half way looks installed to uv: after a stop, all come anew.
    again = ["--reinstall"] if begun(root, lock).exists() else []
    begun(root, lock).touch()
    where = ["--python", str(python(root))]
    # The lock files name everything, so nothing is added: one of them leaves things out on purpose.
    run_uv(root, uv, "pip", "install", *where, *again, "--no-deps", "--require-hashes", "-r", lock)
    temporary = marker(root, lock).with_suffix(f".{os.getpid()}")
    temporary.write_text(digest(root, lock), encoding="utf-8")
    temporary.replace(marker(root, lock))
    begun(root, lock).unlink(missing_ok=True)


def run_uv(root: Path, uv: str, *args: str) -> None:
    """Run uv with its progress on stderr, where the user can see it."""
    dropped = ("VIRTUAL_ENV", "CONDA_PREFIX", "PYTHONPATH", "PYTHONHOME", "UV_PROJECT_ENVIRONMENT")
    env = {name: value for name, value in os.environ.items() if name not in dropped}
    # Behind a proxy that signs its own certificates, only the machine's store knows them. Two
    # names for one setting: uv renamed it.
    if any(Path(store).exists() for store in SYSTEM_CERTIFICATES):
        env = {"UV_SYSTEM_CERTS": "1", "UV_NATIVE_TLS": "1", **env}
    done = subprocess.run([uv, *args], cwd=root, env=env, stdout=sys.stderr, check=False)
    if done.returncode:
        raise Problem(
            f"uv {args[0]} failed, exit code {done.returncode}; what it said stands above.",
            "It needs a network, disk space and an unchanged lock file "
            f"(git checkout -- {RUN_LOCK}). Then run this again.",
        )


def make_env_file(root: Path) -> None:
    """`.env` from `.env.example`, where there is none. Never overwritten."""
    example, ours = root / ".env.example", root / ".env"
    if not os.path.lexists(ours) and example.exists():
        temporary = root / ".tiny" / f"env.{os.getpid()}"
        temporary.parent.mkdir(exist_ok=True)
        temporary.write_bytes(example.read_bytes())
        with contextlib.suppress(FileExistsError):
            try:
                os.link(temporary, ours)  # whole or not at all, and never over one that is there
            except PermissionError:  # a file system without hard links
                temporary.rename(ours)
            say("made .env from .env.example: set an endpoint of your own there, if you have one")
        temporary.unlink(missing_ok=True)


def exclude(repo: Repo) -> None:
    """Keep our folders out of `git add -A`, also on a branch without our .gitignore (T16)."""
    if repo.private:
        return
    path = repo.common_dir / "info" / "exclude"
    try:
        text = path.read_text(encoding="utf-8", errors="surrogateescape") if path.exists() else ""
        missing = [f"/{name}" for name in IGNORED if f"/{name}" not in text.split("\n")]
        if missing:
            path.parent.mkdir(exist_ok=True)
            gap = "" if not text or text.endswith("\n") else "\n"
            with path.open("a", encoding="utf-8") as file:
                file.write(gap + "".join(f"{name}\n" for name in missing))
    except OSError as error:
        say(f"cannot write {path}: {error.strerror}")
