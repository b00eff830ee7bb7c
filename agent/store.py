"""The artifact store: bytes in, a short handle out. It changes nothing and writes over nothing.

Guarded: a kill or a full disk in mid-write, two processes at once, two contents for one handle,
and bytes that are no longer what was put. Not guarded: somebody who may write in the folder.
"""

import os
import re
from contextlib import suppress
from errno import ENOSYS, ENOTSUP, EOPNOTSUPP, EPERM
from hashlib import sha256
from pathlib import Path
from tempfile import mkstemp

from agent.errors import StoreError

HANDLE = re.compile(r"(?<![0-9A-Za-z_])art_[0-9a-f]{12,64}(?![0-9A-Za-z_])")
SIZES = range(12, 65, 4)  # hex digits of a handle: more where the first are taken


class Store:
    """A folder with a file for each artifact: a line with its hash and length, then its bytes."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def put(self, data: bytes) -> str:
        """Keep the bytes. Returns their handle: for the same bytes always the same.

        StoreError if they cannot be written; then nothing of them is kept.
        """
        head = head_of(data)
        for handle in (f"art_{head[:size].decode()}" for size in SIZES):
            if self.write(handle, head, data) or self.holds(handle, data):
                return handle  # if not, other bytes have this handle, or damaged ones
        raise StoreError(f"{self.folder}: each handle of this content is taken. Clear it out.")

    def holds(self, handle: str, data: bytes) -> bool:
        try:
            return self.get(handle) == data
        except StoreError:
            return False

    def write(self, handle: str, head: bytes, data: bytes) -> bool:
        """Make the file, whole or not at all. False if the name is taken."""
        path, temporary = self.path(handle), ""
        try:
            if path.exists():
                return False
            self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            number, temporary = mkstemp(prefix=".tmp-", dir=self.folder)  # for its owner alone
            with open(number, "wb") as file:
                file.writelines([head, b"\n", data])
            return claim(temporary, path)
        except OSError as error:
            raise StoreError(
                f"{self.folder}: nothing was kept, {error.strerror or error}."
            ) from None
        finally:
            with suppress(OSError):
                os.unlink(temporary)

    def get(self, handle: str) -> bytes:
        """The bytes that were put. StoreError if there are none, or if they are not those."""
        path = self.path(handle)
        try:
            if path.exists() and not path.is_file():  # a pipe would never end
                raise StoreError(f"{handle} is no file.")
            head, _, data = path.read_bytes().partition(b"\n")
        except FileNotFoundError:
            raise StoreError(f"there is no artifact {handle}.") from None
        except OSError as error:
            raise StoreError(f"{handle} cannot be read: {error.strerror or error}.") from None
        if head != head_of(data) or not head.startswith(handle[4:].encode()):
            raise StoreError(f"{handle} is damaged: it is not what was put. Fetch it again.")
        return data

    def text(self, handle: str) -> str:
        """The artifact as text. Bytes that are no UTF-8 become half characters, and come back."""
        return self.get(handle).decode("utf-8", "surrogateescape")

    def path(self, handle: str) -> Path:
        """Where an artifact stands. The form comes first: a handle may be anything a model says."""
        if not HANDLE.fullmatch(handle):
            raise StoreError(f"{handle[:80]!r} is no handle: art_ and 12 to 64 of 0-9 and a-f.")
        return self.folder / handle


def head_of(data: bytes) -> bytes:
    """Example: b"" -> b"e3b0c442… 0" (64 hex digits of SHA-256, and the length)"""
    return f"{sha256(data).hexdigest()} {len(data)}".encode()


def claim(temporary: str, path: Path) -> bool:
    """Give a file its name, unless that is taken: a rename would write over it."""
    try:
        os.link(temporary, path)
    except FileExistsError:
        return False
    except OSError as error:
        if error.errno not in (EPERM, ENOSYS, ENOTSUP, EOPNOTSUPP):  # a file system without links
            raise
        os.rename(temporary, path)
    return True
