"""Bulk copies between global and shared memory, also of boxes of tensors: functions of interpreted and of compiled code.

NVIDIA does not document the bytes of a tensor map. Those in the memory of the emulator are `encoded` here.
"""

from typing import NamedTuple

import numpy as np

from .. import language as st
from ..language.hints import Global, i64, u8, u32
from ..language.tensor_maps import MAP_BYTES, MAX_RANK, OOB_NAN, SHARED_ALIGNMENT, TensorMapForm
from ..native import native

UNIT = 16
"""Bytes of a unit of a bulk copy."""
MAX_UNITS = 1 << 14
"""Units of a copy: shared memory has fewer."""
_BASE, _SIZES, _STEPS, _EXTENTS, _FILL, _SWIZZLE = 0, 8, 48, 88, 108, 116
"""Offsets in a tensor map: the place of the tensor in global memory (i64); by dimension its elements and the bytes from one index to the
next (i64 each), and the elements of a box (i32); the bits of an element beyond the tensor (i64); the bytes of a swizzle (i32)."""


def encoded(form: TensorMapForm, place: int) -> bytes:
    """Return a tensor map. place: of the tensor, in bytes from the start of global memory."""
    more = MAX_RANK - len(form.sizes)
    steps = form.element.size, *form.strides
    fill = OOB_NAN[form.element] if form.fill == "nan" else 0
    fields = (
        ((place,), "i8"),
        (form.sizes + (1,) * more, "i8"),
        (steps + (0,) * more, "i8"),
        (form.box + (1,) * more, "i4"),
    )
    data = b"".join(
        np.array(values, dtype).tobytes() for values, dtype in (*fields, ((fill,), "u8"), ((form.swizzle,), "i4"))
    )
    return data.ljust(MAP_BYTES, b"\0")


class OwnedMemory(NamedTuple):
    """Global memory of so many bytes, and whether each belongs to an array."""

    contents: Global[u32]
    owned: Global[u8]
    size: i64


class MapMemory(NamedTuple):
    """A tensor map at a place in global memory of so many bytes."""

    contents: Global[u8]
    size: i64
    tensor: i64


@native
def copy_units(
    shared: Global[u32], index: i64, capacity: i64, memory: OwnedMemory, offset: i64, bytes: i64, units: Global[i64]
) -> i64:
    """Copy bytes from global to shared memory; to global memory if they are negative.

    index: in the shared memory of all blocks, -1 for a wild address; capacity: bytes of the block from there. offset: in global memory.
    units: receives the number of units of global memory, then their numbers. Return -1; of a wild or misaligned address 0 in shared, 1 in
    global memory.
    """
    count = abs(bytes)
    units[0] = i64(0)
    if count == 0:
        return i64(-1)
    if index < 0 or capacity % UNIT != 0 or capacity < count:
        return i64(0)
    if offset < 0 or offset % UNIT != 0 or offset + count > memory.size:
        return i64(1)
    for n in range(count):
        if memory.owned[offset + n] == u8(0):
            return i64(1)
    units[0] = count // UNIT
    for n in range(count // UNIT):
        units[1 + n] = offset // UNIT + n
    for n in range(count // 4):
        if bytes > 0:
            shared[index // 4 + n] = memory.contents[offset // 4 + n]
        else:
            memory.contents[offset // 4 + n] = shared[index // 4 + n]
    return i64(-1)


@st.device
def _number(memory: Global[u8], at: i64, size: i64) -> i64:
    """Return the number of so many bytes."""
    result = i64(0)
    for n in range(size):
        result |= i64(memory[at + n]) << (8 * n)
    return result


@native
def copy_box(
    shared: Global[u8],
    index: i64,
    address: i64,
    capacity: i64,
    memory: MapMemory,
    coordinates: Global[i64],
    units: Global[i64],
) -> i64:
    """Copy a box of a tensor to shared memory, or from it.

    index, capacity, units: as in `copy_units`. address: in the shared memory of the block. coordinates: i64[6], of the first element,
    from the innermost on, and whether the box is stored. Return the bytes of the box; -1 for a wild or misaligned address in shared, -2
    in global memory.
    """
    units[0] = i64(0)
    if memory.tensor < 0 or memory.tensor + MAP_BYTES > memory.size:
        return i64(-2)
    sizes = st.local(i64, MAX_RANK)
    steps = st.local(i64, MAX_RANK)
    extents = st.local(i64, MAX_RANK)
    count = i64(1)
    for d in range(i64(MAX_RANK)):
        sizes[d] = _number(memory.contents, memory.tensor + _SIZES + 8 * d, i64(8))
        steps[d] = _number(memory.contents, memory.tensor + _STEPS + 8 * d, i64(8))
        extents[d] = _number(memory.contents, memory.tensor + _EXTENTS + 4 * d, i64(4))
        count *= extents[d]
    base = _number(memory.contents, memory.tensor + _BASE, i64(8))
    element, fill = steps[0], _number(memory.contents, memory.tensor + _FILL, i64(8))
    permuted = max(i64(0), _number(memory.contents, memory.tensor + _SWIZZLE, i64(4)) // UNIT - 1)
    if index < 0 or address % SHARED_ALIGNMENT != 0 or capacity < count * element:
        return i64(-1)
    for n in range(count):
        rest, place, inside = n, base, True
        for d in range(i64(MAX_RANK)):
            at = coordinates[d] + rest % extents[d]
            rest //= extents[d]
            inside &= at >= 0 and at < sizes[d]
            place += at * steps[d]
        if inside and (place < 0 or place + element > memory.size):
            return i64(-2)
        if inside and place % UNIT == 0:
            units[0] += 1
            units[units[0]] = place // UNIT
        unit = (address + n * element) // UNIT
        to = index + ((unit ^ (unit >> 3 & permuted)) - address // UNIT) * UNIT + n * element % UNIT
        for k in range(element):
            if coordinates[MAX_RANK] != 0:
                if inside:
                    memory.contents[place + k] = shared[to + k]
            elif inside:
                shared[to + k] = memory.contents[place + k]
            else:
                shared[to + k] = u8(fill >> (8 * k) & 255)
    return count * element
