"""Tensor maps of the CUDA driver: the 128 bytes of a CUtensorMap have the address and the form."""

import ctypes
import struct
from typing import get_args

from ...errors import LaunchError, UnavailableError
from ...language.tensor_maps import ELEMENTS, MAX_RANK, SWIZZLES, UNIT, Fill, TensorMapForm
from .arrays import Arrays
from .queues import INVALID_VALUE, SUCCESS

_MAP = struct.Struct("<8sQ5I4Q5H4B46x")
"""_MARK, address, sizes, strides, box, then rank and the numbers of element, swizzle and fill."""
_MARK = b"simtbed\x01"
_TYPES, _MAX_TYPE = 10, 12
"""Types of elements before those of f32 that are flushed or rounded, and the last number of CUtensorMapDataType."""


class TensorMaps(Arrays):
    """The encoding of tensor maps."""

    def simtbedEncodeTensorMap(self, map: int, modes: int, address: int, layout: int) -> int:
        """modes: type, rank, interleave, swizzle, promotion and fill. layout: pointers to sizes, strides, box and strides of elements."""
        type, rank, interleave, swizzle, _, fill = (ctypes.c_int * 6).from_address(modes)
        pointers = (ctypes.c_void_p * 4).from_address(layout)
        limits = 0 <= type <= _MAX_TYPE and 1 <= rank <= MAX_RANK and fill in (0, 1)
        if not (map and address and limits and all(pointers[:1] + pointers[2:])) or (rank > 1 and not pointers[1]):
            return INVALID_VALUE
        counts = (rank, rank - 1, rank, rank)
        kinds = (ctypes.c_uint64, ctypes.c_uint64, ctypes.c_uint32, ctypes.c_uint32)
        rows = zip(kinds, counts, pointers, strict=True)
        sizes, strides, box, steps = (
            tuple((kind * count).from_address(own or 0)) if count else () for kind, count, own in rows
        )
        refused = (
            (type >= _TYPES, "the types FLOAT32_FTZ and TFLOAT32"),
            (interleave, "interleaved layouts"),
            (swizzle >= len(SWIZZLES), "swizzles of atoms other than 16 bytes"),
            (any(step != 1 for step in steps), "element strides other than 1"),
        )
        for is_refused, what in refused:
            if is_refused:
                raise UnavailableError(f"tensor maps with {what} are not emulated")
        if box[0] * ELEMENTS[type].size < SWIZZLES[swizzle]:
            raise UnavailableError("tensor maps with rows shorter than the swizzle are not emulated")
        form = TensorMapForm(ELEMENTS[type], sizes, strides, box, SWIZZLES[swizzle], get_args(Fill)[fill])
        problem = form.problem() or ("" if address % UNIT == 0 else f"the address is a multiple of {UNIT} bytes")
        if problem:
            file, line, _ = self.place
            self.report(f"simtbed: note: {file}:{line}: {problem}")
            return INVALID_VALUE
        absent = (0,) * (MAX_RANK - rank)
        lists = *sizes, *absent, *strides, *absent, *box, *absent
        ctypes.memmove(map, _MAP.pack(_MARK, address, *lists, rank, type, swizzle, fill), _MAP.size)
        return SUCCESS


def decoded(name: str, data: bytes) -> tuple[int, TensorMapForm]:
    """Return the address and the form of a tensor map. Raises LaunchError for other bytes."""
    mark, address, *numbers = _MAP.unpack(data)
    if mark != _MARK:
        raise LaunchError(f"{name} is no tensor map: cuTensorMapEncodeTiled has not written it")
    rank, type, swizzle, fill = numbers[14:]
    fields = tuple(numbers[:rank]), tuple(numbers[5 : 4 + rank]), tuple(numbers[9 : 9 + rank])
    return address, TensorMapForm(ELEMENTS[type], *fields, SWIZZLES[swizzle], get_args(Fill)[fill])
