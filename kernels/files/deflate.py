"""Compression of many pieces by ISA-L's DEFLATE in one call: the interpreter's lock is released once for all pieces."""

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
"""Output ends at a whole byte, and another DEFLATE block can follow."""

_STREAM, _LEVEL_BUFFER = 1 << 18, 4 * 1024 + 2 * 32 * 1024 + 4 * 64 * 1024
"""Sizes in bytes: three times `isal_zstream`, and its level buffer (ISAL_DEF_LVL2_DEFAULT)."""
_HISTORY = 15
"""Binary logarithm of the maximum match distance: ISAL_DEF_MAX_HIST_BITS."""
_ENDS = np.dtype(
    [("next_in", "u8"), ("avail_in", "u4"), ("total_in", "u4"), ("next_out", "u8"), ("avail_out", "u4"), ("total_out", "u4")]
)  # fmt: skip
"""First fields of `isal_zstream` in igzip_lib.h."""
_SETTINGS = np.dtype(
    [("hufftables", "u8"), ("level", "u4"), ("level_buf_size", "u4"), ("level_buf", "u8"), ("end_of_stream", "u2"),
     ("flush", "u2"), ("gzip_flag", "u2"), ("hist_bits", "u2")]
)  # fmt: skip
"""The next fields. The remaining ones are internal to ISA-L."""
_RESET, _SET_ENDS, _SET_FIRST, _DEFLATE, _GET_ENDS, _CHECKSUM = range(6)
"""The calls for one piece."""
_FUNCTIONS = (
    "isal_deflate_init", "isal_deflate_reset", "isal_deflate_set_dict", "isal_deflate", "crc32_gzip_refl", "memcpy",
)  # fmt: skip
_LOW_32_BITS = (1 << 32) - 1
"""Mask for results of type int or uint32_t."""


class Packed(NamedTuple):
    """A compressed piece without its first byte and without an end marker. checksum: CRC-32 of the whole piece."""

    data: Buffer
    checksum: int


def pack_each(view: memoryview, size: int, max_packed: int) -> list[Packed]:
    """Compress pieces of `size` bytes; the last piece may be shorter. max_packed: maximum compressed size of a piece, in bytes. The
    returned data are valid until the next call of the same thread. Raise RuntimeError if ISA-L fails.

    The first byte of a piece is not compressed; it is the dictionary of the others. Without a dictionary, ISA-L's loop at this
    level hashes the third byte from the address of its own state, and the output sometimes depends on that address.
    """
    if not _can_call_isal():
        return _pack_one_by_one(view, size, max_packed)
    pieces = -(-len(view) // size)
    packer: _Packer | None = getattr(_LOCAL, "packer", None)
    if packer is None or packer.sizes != (size, max_packed) or packer.pieces < pieces:
        _LOCAL.packer = packer = _Packer(size, max_packed, pieces)
    return packer.pack(view)


_LOCAL = threading.local()


@cache
def _can_call_isal() -> bool:
    """Return whether ISA-L's own functions are exported and compress like calls through isal."""
    if _functions() is None:
        return False
    sample = memoryview(b"".join(b"%d, %d\n" % (n, n * n) for n in range(40)))
    try:
        return _Packer(100, 1 << 10, len(sample) // 100 + 1).pack(sample) == _pack_one_by_one(sample, 100, 1 << 10)
    except RuntimeError:
        return False


def _pack_one_by_one(view: memoryview, size: int, max_packed: int) -> list[Packed]:
    packer, pieces = isal_zlib._ParallelCompress(max_packed, LEVEL), []
    for at in range(0, len(view), size):
        first, rest = view[at : at + 1], view[at + 1 : at + size]
        packed, checksum = packer.compress_and_crc(rest, first)
        pieces.append(Packed(packed, isal_zlib.crc32_combine(isal_zlib.crc32(first), checksum, len(rest))))
    return pieces


class _Packer:
    """One compression state for a number of pieces, used by one thread. sizes: (size, max_packed)."""

    def __init__(self, size: int, max_packed: int, pieces: int) -> None:
        self.sizes, self.pieces = (size, max_packed), pieces
        self._stream, self._level = np.zeros(_STREAM, np.uint8), np.zeros(_LEVEL_BUFFER, np.uint8)
        self._packed = np.empty((pieces, max_packed), np.uint8)
        self._before, self._after = np.zeros(pieces, _ENDS), np.zeros(pieces, _ENDS)
        self._before["next_out"] = _address(self._packed) + max_packed * np.arange(pieces)
        self._before["avail_out"] = max_packed
        self._calls = np.zeros((pieces, 6, COLUMNS), np.int64)
        functions = _functions()
        assert functions is not None
        functions.isal_deflate_init(ctypes.c_void_p(_address(self._stream)))
        settings = self._stream[_ENDS.itemsize :][: _SETTINGS.itemsize].view(_SETTINGS)[0]
        settings["level"], settings["flush"], settings["hist_bits"] = LEVEL, SYNC_FLUSH, _HISTORY
        settings["level_buf_size"], settings["level_buf"] = _LEVEL_BUFFER, _address(self._level)
        stream, ends = _address(self._stream), _ENDS.itemsize
        before, after = (_address(a) + ends * np.arange(pieces) for a in (self._before, self._after))
        functions_of_calls: dict[int, tuple[str, list[Any]]] = {
            _RESET: ("isal_deflate_reset", [stream]),
            _SET_ENDS: ("memcpy", [stream, before, ends]),
            _SET_FIRST: ("isal_deflate_set_dict", [stream, 0, 1]),
            _DEFLATE: ("isal_deflate", [stream]),
            _GET_ENDS: ("memcpy", [after, stream, ends]),
            _CHECKSUM: ("crc32_gzip_refl", [0]),
        }
        for call, (name, arguments) in functions_of_calls.items():
            self._calls[:, call, 0] = ctypes.cast(getattr(functions, name), ctypes.c_void_p).value or 0
            for place, argument in enumerate(arguments, 1):
                self._calls[:, call, place] = argument

    def pack(self, view: memoryview) -> list[Packed]:
        """Compress as `pack_each` does, up to `pieces` pieces."""
        size = self.sizes[0]
        number, data = -(-len(view) // size), np.frombuffer(view, np.uint8)
        lengths = np.minimum(size, len(view) - size * np.arange(number))
        first = _address(data) + size * np.arange(number)
        self._before["next_in"][:number], self._before["avail_in"][:number] = first + 1, lengths - 1
        calls, after = self._calls[:number], self._after[:number]
        calls[:, _SET_FIRST, 2] = calls[:, _CHECKSUM, 2] = first
        calls[:, _CHECKSUM, 3] = lengths
        call_all(calls.reshape(-1, COLUMNS))
        results = calls[:, :, RESULT] & _LOW_32_BITS
        if results[:, [_SET_FIRST, _DEFLATE]].any() or after["avail_in"].any() or not after["avail_out"].all():
            raise RuntimeError("ISA-L cannot pack a block")
        pieces = zip(self._packed, after["total_out"].tolist(), results[:, _CHECKSUM].tolist(), strict=False)
        return [Packed(buffer.data[:packed], checksum) for buffer, packed, checksum in pieces]


def _address(array: npt.NDArray[Any]) -> int:
    return cast(int, array.__array_interface__["data"][0])


@cache
def _functions() -> Any:
    """Return a library with the functions of ISA-L and of C, None if the isal module does not export them."""
    try:
        library = ctypes.CDLL(isal_zlib.__file__)
        for name in _FUNCTIONS:
            getattr(library, name)
    except (OSError, AttributeError):
        return None
    return library
