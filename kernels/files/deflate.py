"""ISA-L's deflate of many pieces of data in one go: the interpreter's lock is let go once for all of them, not for each."""

from __future__ import annotations

import ctypes
import threading
from functools import cache
from typing import Any, NamedTuple, TypeAlias, cast

import numpy as np
import numpy.typing as npt
from isal import isal_zlib
from simtbed.native.foreign import COLUMNS, RESULT, call_all

Buffer: TypeAlias = "bytes | memoryview"

LEVEL = 2
SYNC_FLUSH = 1
"""What is packed ends at a whole byte, and another part can follow."""

_STREAM, _LEVEL_BUFFER = 1 << 18, 4 * 1024 + 2 * 32 * 1024 + 4 * 64 * 1024
"""Bytes of `isal_zstream`, a third of these, and of its buffer at this level: ISAL_DEF_LVL2_DEFAULT."""
_HISTORY = 15
"""The binary logarithm of how far back a repetition may be: ISAL_DEF_MAX_HIST_BITS."""
_ENDS = np.dtype(
    [("next_in", "u8"), ("avail_in", "u4"), ("total_in", "u4"), ("next_out", "u8"), ("avail_out", "u4"), ("total_out", "u4")]
)  # fmt: skip
"""How `isal_zstream` of igzip_lib.h begins."""
_SETTINGS = np.dtype(
    [("hufftables", "u8"), ("level", "u4"), ("level_buf_size", "u4"), ("level_buf", "u8"), ("end_of_stream", "u2"),
     ("flush", "u2"), ("gzip_flag", "u2"), ("hist_bits", "u2")]
)  # fmt: skip
"""How it goes on; the rest is ISA-L's own."""
_RESET, _SET_ENDS, _SET_FIRST, _DEFLATE, _GET_ENDS, _CHECKSUM = range(6)
"""The calls that pack a piece."""
_FUNCTIONS = (
    "isal_deflate_init", "isal_deflate_reset", "isal_deflate_set_dict", "isal_deflate", "crc32_gzip_refl", "memcpy",
)  # fmt: skip
_MEANINGFUL = (1 << 32) - 1
"""The bits of an int or an uint32_t that a call gives back."""


class Packed(NamedTuple):
    """A piece as it is packed, without its first byte and without an end. checksum: CRC-32 of all of it."""

    data: Buffer
    checksum: int


def pack_each(view: memoryview, size: int, most: int) -> list[Packed]:
    """Pieces of `size` bytes, and a last one that may be shorter. most: bytes that one is packed to. The data of what comes
    back are there until this thread calls again. Raises RuntimeError where ISA-L fails.

    The first byte of a piece is not packed, and stands before the others as what they may repeat: where nothing stands
    before them, ISA-L's loop at this level takes the hash of the third byte from the address of its own state, and what is
    packed depends, now and then, on where that lies.
    """
    if not _packs_at_once():
        return _one_by_one(view, size, most)
    pieces = -(-len(view) // size)
    packer: _Packer | None = getattr(_OF_THREAD, "packer", None)
    if packer is None or packer.form != (size, most) or packer.pieces < pieces:
        _OF_THREAD.packer = packer = _Packer(size, most, pieces)
    return packer.pack(view)


_OF_THREAD = threading.local()


@cache
def _packs_at_once() -> bool:
    """Whether ISA-L's own functions are there, and pack as they do when isal calls them."""
    if _functions() is None:
        return False
    sample = memoryview(b"".join(b"%d, %d\n" % (n, n * n) for n in range(40)))
    try:
        return _Packer(100, 1 << 10, len(sample) // 100 + 1).pack(sample) == _one_by_one(sample, 100, 1 << 10)
    except RuntimeError:
        return False


def _one_by_one(view: memoryview, size: int, most: int) -> list[Packed]:
    packer, found = isal_zlib._ParallelCompress(most, LEVEL), []
    for at in range(0, len(view), size):
        first, others = view[at : at + 1], view[at + 1 : at + size]
        packed, checksum = packer.compress_and_crc(others, first)
        found.append(Packed(packed, isal_zlib.crc32_combine(isal_zlib.crc32(first), checksum, len(others))))
    return found


class _Packer:
    """One state for so many pieces, in the hands of one thread. form: (size, most)."""

    def __init__(self, size: int, most: int, pieces: int) -> None:
        self.form, self.pieces = (size, most), pieces
        self._stream, self._level = np.zeros(_STREAM, np.uint8), np.zeros(_LEVEL_BUFFER, np.uint8)
        self._room = np.empty((pieces, most), np.uint8)
        self._before, self._after = np.zeros(pieces, _ENDS), np.zeros(pieces, _ENDS)
        self._before["next_out"] = _address(self._room) + most * np.arange(pieces)
        self._before["avail_out"] = most
        self._calls = np.zeros((pieces, 6, COLUMNS), np.int64)
        functions = _functions()
        assert functions is not None
        functions.isal_deflate_init(ctypes.c_void_p(_address(self._stream)))
        settings = self._stream[_ENDS.itemsize :][: _SETTINGS.itemsize].view(_SETTINGS)[0]
        settings["level"], settings["flush"], settings["hist_bits"] = LEVEL, SYNC_FLUSH, _HISTORY
        settings["level_buf_size"], settings["level_buf"] = _LEVEL_BUFFER, _address(self._level)
        stream, ends = _address(self._stream), _ENDS.itemsize
        before, after = (_address(a) + ends * np.arange(pieces) for a in (self._before, self._after))
        given: dict[int, tuple[str, list[Any]]] = {
            _RESET: ("isal_deflate_reset", [stream]),
            _SET_ENDS: ("memcpy", [stream, before, ends]),
            _SET_FIRST: ("isal_deflate_set_dict", [stream, 0, 1]),
            _DEFLATE: ("isal_deflate", [stream]),
            _GET_ENDS: ("memcpy", [after, stream, ends]),
            _CHECKSUM: ("crc32_gzip_refl", [0]),
        }
        for call, (name, arguments) in given.items():
            self._calls[:, call, 0] = ctypes.cast(getattr(functions, name), ctypes.c_void_p).value or 0
            for place, argument in enumerate(arguments, 1):
                self._calls[:, call, place] = argument

    def pack(self, view: memoryview) -> list[Packed]:
        """As `pack_each`, of no more pieces than there is room for."""
        size = self.form[0]
        number, data = -(-len(view) // size), np.frombuffer(view, np.uint8)
        lengths = np.minimum(size, len(view) - size * np.arange(number))
        first = _address(data) + size * np.arange(number)
        self._before["next_in"][:number], self._before["avail_in"][:number] = first + 1, lengths - 1
        calls, after = self._calls[:number], self._after[:number]
        calls[:, _SET_FIRST, 2] = calls[:, _CHECKSUM, 2] = first
        calls[:, _CHECKSUM, 3] = lengths
        call_all(calls.reshape(-1, COLUMNS))
        results = calls[:, :, RESULT] & _MEANINGFUL
        if results[:, [_SET_FIRST, _DEFLATE]].any() or after["avail_in"].any() or not after["avail_out"].all():
            raise RuntimeError("ISA-L cannot pack a block")
        found = zip(self._room, after["total_out"].tolist(), results[:, _CHECKSUM].tolist(), strict=False)
        return [Packed(room.data[:packed], checksum) for room, packed, checksum in found]


def _address(array: npt.NDArray[Any]) -> int:
    return cast(int, array.__array_interface__["data"][0])


@cache
def _functions() -> Any:
    """A library with ISA-L's functions and those of C; None where the module of isal does not show them."""
    try:
        library = ctypes.CDLL(isal_zlib.__file__)
        for name in _FUNCTIONS:
            getattr(library, name)
    except (OSError, AttributeError):
        return None
    return library
