"""Loads, stores and atomics of global, shared, local and constant memory.

A function of this module returns the execution of one instruction. Addresses are uint64[warps, 32], in bytes.
"""

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from ..ir.updates import UPDATES
from .access import read_predicate, read_register, reader, write_pair, write_predicate, write_register
from .counts import Counts
from .half import add as add_pairs
from .integer import i32, i64, u32, u64
from .operands import Decoded, Operand, UnsupportedInstruction, accept
from .state import GLOBAL_BASE, LOCAL_BYTES, RANK_SHIFT, SHARED_OFFSET, SHARED_WINDOW, Rows, State
from .traced import Pointer, contiguous

Execute = Callable[[State, Rows, Any, Counts], None]
"""Arguments: state, warps, lanes (bool[warps, 32]), counts."""
_IGNORED = "E CONSTANT STRONG GPU SYS SM CTA WEAK LU EF EL NA RN FTZ PRIVATE LTC64B LTC128B LTC256B"
_SIZES = {"U8": 1, "S8": 1, "U16": 2, "S16": 2, "32": 4, "64": 8, "128": 16}


class Space(NamedTuple):
    """A memory. name: as of `Counts.add_access`. contents: its bytes in the state. place: of addresses in these. counted: of the lanes that
    load or store, those that are counted."""

    name: str
    contents: Callable[[State], Any]
    place: Callable[[State, Rows, Any], Any]
    counted: Callable[[State, Rows, Any, Any], Any] = lambda s, r, address, lanes: lanes


def _is_own(s: State, r: Rows, address: Any) -> Any:
    """Return whether a shared address is of the own block."""
    return (address >> u64(RANK_SHIFT)).astype(i64) == (s.block_of_warp[r] - s.first_of_cluster[r])[:, None]


def _shared_index(s: State, r: Rows, address: Any) -> Any:
    """Return the place of addresses with the rank of a block of the cluster; -1 for no block, or outside of its memory."""
    address = address.astype(i64)
    rank, offset = address >> RANK_SHIFT, address & SHARED_OFFSET
    base = (s.first_of_cluster[r][:, None] + rank) * s.shared_bytes
    return np.where((rank < s.cluster_blocks) & (offset < s.shared_bytes), base + offset, -1)


def _local_index(s: State, r: Rows, address: Any) -> Any:
    offset = address.astype(i64) - (LOCAL_BYTES - s.local_stride)
    return np.where((offset >= 0) & (offset < s.local_stride), s.threads_of(r) * s.local_stride + offset, -1)


GLOBAL = Space("global", lambda s: s.memory.contents, lambda s, r, a: (a - u64(GLOBAL_BASE)).view(i64))
SHARED = Space("shared", lambda s: s.shared, _shared_index)
WINDOW = Space("window", SHARED.contents, _shared_index, lambda s, r, address, lanes: lanes & _is_own(s, r, address))
"""Shared memory by generic addresses. Loads and stores in other blocks are not counted, as on an H200."""
LOCAL = Space("local", lambda s: s.local, _local_index)


def _size(op: Decoded) -> tuple[int, bool]:
    """Return the bytes of a lane's access, and whether the value is signed."""
    name = next((name for name in op.modifiers if name in _SIZES), "32")
    return _SIZES[name], name.startswith("S")


def addresses(operand: Operand, space: Space) -> Callable[[State, Rows, Any], Any]:
    """Return the address of an operand. In global memory, a register without a type is a pair outside of a descriptor."""
    is_generic = space in (GLOBAL, WINDOW)
    terms = []
    for number, register in enumerate(operand.registers):
        plain = not number and operand.text.startswith("[") and register.scale == 1
        wide = is_generic and (register.wide or register.uniform or plain)
        terms.append((read_register(register, wide), u64(register.scale)))
    offset, limit = u64(operand.offset % (1 << 64)), u64((1 << 64) - 1 if space is GLOBAL else (1 << 32) - 1)

    def address(s: State, r: Rows, lanes: Any) -> Any:
        result = np.full((1, 1), offset, u64)
        for read, scale in terms:
            result = result + read(s, r).astype(u64) * scale
        return np.broadcast_to(result & limit, lanes.shape)

    return address


def checked_index(op: Decoded, space: Space, s: State, r: Rows, lanes: Any, address: Any, size: int) -> Any:
    """Return the bytes that active lanes access, others 0. Raises ExecutionError for a wild or misaligned address."""
    index = s.checked(op, space.place(s, r, address), lanes, address, size, space.contents(s).size)
    if space is GLOBAL:
        s.check_owned(op, index, lanes, address, size)
    return index


def registers_of(operand: Operand, count: int) -> Iterable[int]:
    """Return the numbers of consecutive registers."""
    if operand.kind != "register" or operand.uniform:
        raise UnsupportedInstruction(f"the operand {operand.text}")
    return [operand.number + n if operand.number >= 0 else -1 for n in range(count)]


def read_words(memory: Any, index: Any, size: int, is_signed: bool) -> list[Any]:
    """Return the words of a load, uint32 each."""
    if size >= 4:
        words = memory.view(u32)
        return [words[(index >> 2) + n] for n in range(size // 4)]
    value = memory[index] if size == 1 else memory.view(np.uint16)[index >> 1]
    if is_signed:
        return [value.view(np.int8 if size == 1 else np.int16).astype(i32).view(u32)]
    return [value.astype(u32)]


def write_words(memory: Any, index: Any, lanes: Any, size: int, values: Iterable[Any]) -> None:
    """Write words, uint32 each; of lanes with one address the last one wins."""
    elements = memory.view({1: np.uint8, 2: np.uint16}.get(size, u32))
    at = index >> {1: 0, 2: 1}.get(size, 2)
    for n, value in enumerate(values):
        value = value.astype(elements.dtype)
        if isinstance(elements, Pointer):
            elements.store(at + n, lanes, value)
        else:
            elements[(at + n)[lanes]] = np.broadcast_to(value, lanes.shape)[lanes]


# ------------------------------------------------------------------ instructions
def load(op: Decoded, space: Space) -> Execute:
    accept(op, f"{_IGNORED} {' '.join(_SIZES)}")
    to, operand = op.operands[-2:]
    if len(op.operands) != 2 or operand.kind != "memory":
        raise UnsupportedInstruction(str(op))
    size, is_signed = _size(op)
    writes = [write_register(n, False) for n in registers_of(to, max(1, size // 4))]
    address_of = addresses(operand, space)

    def execute(s: State, r: Rows, lanes: Any, counts: Counts) -> None:
        address, memory = address_of(s, r, lanes), space.contents(s)
        index = checked_index(op, space, s, r, lanes, address, size)
        values = read_words(memory, index, size, is_signed)
        counts.add_access(op, space.name, "load", address, space.counted(s, r, address, lanes), size)
        for write, value in zip(writes, values, strict=True):
            write(s, r, lanes, value)

    return execute


def store(op: Decoded, space: Space) -> Execute:
    accept(op, f"{_IGNORED} {' '.join(_SIZES)}")
    operand, value = op.operands
    if operand.kind != "memory":
        raise UnsupportedInstruction(str(op))
    size, _ = _size(op)
    reads = [write_source(value, n) for n in range(max(1, size // 4))]
    address_of = addresses(operand, space)

    def execute(s: State, r: Rows, lanes: Any, counts: Counts) -> None:
        address, memory = address_of(s, r, lanes), space.contents(s)
        index = checked_index(op, space, s, r, lanes, address, size)
        counts.add_access(op, space.name, "store", address, space.counted(s, r, address, lanes), size)
        write_words(memory, index, lanes, size, [read(s, r) for read in reads])

    return execute


def write_source(operand: Operand, n: int) -> Any:
    """Return the read of the n-th register of a stored value."""
    (*_, last) = registers_of(operand, n + 1)
    return reader("i", Operand("register", operand.text, last), 0)


def copy_to_shared(op: Decoded) -> Execute:
    """LDGSTS: a copy from global to shared memory; of zeros, without a read, where its predicate does not hold."""
    accept(op, f"{_IGNORED} 32 64 128 BYPASS")
    size, _ = _size(op)
    to, source = addresses(op.operands[0], SHARED), addresses(op.operands[1], GLOBAL)
    if [one.kind for one in op.operands[2:]] not in ([], ["predicate"]):
        raise UnsupportedInstruction(str(op))
    holds = read_predicate(op.operands[2]) if len(op.operands) > 2 else None

    def execute(s: State, r: Rows, lanes: Any, counts: Counts) -> None:
        address, target = source(s, r, lanes), to(s, r, lanes)
        reading = lanes if holds is None else lanes & holds(s, r)
        index = checked_index(op, GLOBAL, s, r, reading, address, size)
        shared_index = checked_index(op, SHARED, s, r, lanes, target, size)
        counts.add_access(op, "global", "load", address, reading, size)
        words = read_words(GLOBAL.contents(s), index, size, False)
        write_words(s.shared, shared_index, lanes, size, [np.where(reading, word, u32(0)) for word in words])

    return execute


def load_constant(op: Decoded) -> Execute:
    """LDC, ULDC: a constant at a fixed address, or at one of a register."""
    accept(op, f"{_IGNORED} U8 S8 U16 S16 64 128")
    to, operand = op.operands
    if operand.kind != "constant" or len(operand.registers) > 1:
        raise UnsupportedInstruction(str(op))
    size, is_signed = _size(op)
    numbers = [to.number + n if to.number >= 0 else -1 for n in range(max(1, size // 4))]
    writes = [write_register(number, to.uniform) for number in numbers]
    registers = [read_register(one, False) for one in operand.registers]

    def execute(s: State, r: Rows, lanes: Any, counts: Counts) -> None:
        bank = s.bank(operand.number)
        index = np.full((1, 1), operand.offset, i64)
        for read in registers:
            index = index + contiguous(read(s, r)).view(i32)
        used = lanes.any(1)[:, None] if index.shape[1] == 1 else lanes
        index = np.broadcast_to(index, used.shape)
        index = s.checked(op, index, used, index, size, bank.size)
        if registers and not to.uniform:
            counts.add_access(op, "constant", "load", index, lanes, size)
        for write, value in zip(writes, read_words(bank, index, size, is_signed), strict=True):
            write(s, r, lanes, value)

    return execute


# ------------------------------------------------------------------ atomics
_FOLDS: dict[str, Any] = {
    "ADD": np.add, "MIN": np.minimum, "MAX": np.maximum, "AND": np.bitwise_and, "OR": np.bitwise_or,
    "XOR": np.bitwise_xor,
}  # fmt: skip
_ATOMIC_OPERATIONS = (*_FOLDS, "EXCH", "INC", "DEC", "CAS", "CAST", "POPC")
_SWAPS = ("CAS", "CAST")
_PAIRS = {"F16x2", "BF16x2"}
_FLOATS = {"F32": np.float32, "F64": np.float64}


def _atomic_type(op: Decoded) -> Any:
    if floats := op.flags & _FLOATS.keys():
        return _FLOATS[min(floats)]
    if {"64", "S64", "U64"} & op.flags:
        return i64 if "S64" in op.flags else u64
    return i32 if "S32" in op.flags else u32


def _updated(name: str, old: Any, value: Any, new: Any = None) -> Any:
    """Return the new value of an element. value: the operand, or the compared one; new: of a compare-and-swap."""
    if name in _FOLDS:
        return _FOLDS[name](old, value)
    if name == "EXCH":
        return value
    if name == "INC":
        return np.where(old >= value, 0, old + old.dtype.type(1)).astype(old.dtype)
    if name == "DEC":
        return np.where((old == 0) | (old > value), value, old - old.dtype.type(1)).astype(old.dtype)
    return np.where(old == value, new, old)


def in_order(elements: Any, at: Any, lanes: Any, update: Callable[..., Any], *values: Any) -> Any:
    """Update elements lane after lane; return the old values, 0 of other lanes. Lanes with different elements are updated
    together."""
    if isinstance(elements, Pointer):
        return elements.update(at, lanes, update, *values)
    result = np.zeros(lanes.shape, elements.dtype)
    at, values = at[lanes], tuple(np.broadcast_to(value, lanes.shape)[lanes] for value in values)
    old = np.empty(len(at), elements.dtype)
    pending = np.arange(len(at))
    while len(pending):
        _, first = np.unique(at[pending], return_index=True)
        distinct = pending[first]
        old[distinct] = elements[at[distinct]]
        elements[at[distinct]] = update(old[distinct], *(value[distinct] for value in values))
        pending = np.delete(pending, first)
    result[lanes] = old
    return result


def atomic(op: Decoded, space: Space, returns: bool) -> Execute:
    accept(op, f"{_IGNORED} {' '.join((*_ATOMIC_OPERATIONS, *_PAIRS, *_FLOATS))} 32 64 S32 S64 U64 SPIN")
    name = next(one for one in op.modifiers if one in _ATOMIC_OPERATIONS)
    dtype = np.dtype(_atomic_type(op))
    operands = list(op.operands)
    success = write_predicate(operands.pop(0)) if operands[0].kind == "predicate" else None
    if name not in _SWAPS:  # the predicate is whether the operation is done: written by `_generic`
        success = None
    wide = dtype.itemsize == 8
    to = operands.pop(0).number if returns else -1
    result = (write_pair if wide else write_register)(to, False)
    if operands[0].kind != "memory":
        raise UnsupportedInstruction(str(op))
    address_of = addresses(operands.pop(0), space)
    reads = [reader("l" if wide else "i", one, op.immediate) for one in operands]
    kinds = {"POPC": "count", "CAST": "count", "CAS": "swap"} if space is SHARED else {}
    operation = "reduction" if space is GLOBAL and not returns else kinds.get(name, "atomic")
    update = "ADD" if name == "POPC" else name
    updated: Callable[..., Any] = partial(add_pairs, op) if _PAIRS & op.flags else partial(_updated, update)
    if "FTZ" in op.flags:
        updated = UPDATES["add_ftz"].meaning
    is_integer = update in _FOLDS and not op.flags & (_PAIRS | _FLOATS.keys())

    def execute(s: State, r: Rows, lanes: Any, counts: Counts) -> None:
        address, memory = address_of(s, r, lanes), space.contents(s)
        index = checked_index(op, space, s, r, lanes, address, dtype.itemsize)
        counts.add_access(op, space.name, operation, address, lanes, dtype.itemsize)
        values = [contiguous(read(s, r)).view(dtype) for read in reads] or [np.ones((1, 1), dtype)]
        at, elements = index >> (3 if wide else 2), memory.view(dtype)
        if is_integer and to < 0 and isinstance(elements, np.ndarray):
            _FOLDS[update].at(elements, at[lanes], np.broadcast_to(values[0], lanes.shape)[lanes])
            return
        with np.errstate(all="ignore"):
            old = in_order(elements, at, lanes, updated, *values)
        swapped = old == values[0]
        if success is not None:
            success(s, r, lanes, swapped)
        word = u64 if wide else u32
        result(s, r, lanes, swapped.astype(word) if name == "CAST" else contiguous(old).view(word))

    return execute


def _in_shared_window(address: Any) -> Any:
    return address >> u64(32) == u64(SHARED_WINDOW)


def query_space(op: Decoded) -> Execute:
    """QSPC.S: whether a generic address is one of the block's shared memory. QSPC.D: of another block's."""
    accept(op, f"{_IGNORED} S D")
    to, _, operand = op.operands
    of_others = "D" in op.flags
    if not {"S", "D"} & op.flags or operand.kind != "memory":
        raise UnsupportedInstruction(str(op))
    write, address_of = write_predicate(to), addresses(operand, GLOBAL)

    def execute(s: State, r: Rows, lanes: Any, counts: Counts) -> None:
        address = address_of(s, r, lanes)
        is_own = _is_own(s, r, address & u64(0xFFFFFFFF))
        write(s, r, lanes, _in_shared_window(address) & (~is_own if of_others else is_own))

    return execute


def nothing(op: Decoded) -> Execute:
    """Fences and cache control: they order accesses, which are in order here."""
    return lambda s, r, lanes, counts: None


def read_barrier(op: Decoded) -> Execute:
    """B2R.RESULT: the result of the last barrier with a reduction."""
    accept(op, f"{_IGNORED} RESULT")
    to, *rest = op.operands
    write = write_register(to.number, False)
    holds = [write_predicate(one) for one in rest]

    def execute(s: State, r: Rows, lanes: Any, counts: Counts) -> None:
        value = s.barrier_results[s.block_of_warp[r]][:, None]
        write(s, r, lanes, value)
        for write_holds in holds:
            write_holds(s, r, lanes, value != 0)

    return execute


SPACES = {
    **dict.fromkeys(("LDG", "LD", "STG", "ST", "RED", "REDG", "ATOMG", "ATOM"), GLOBAL),
    **dict.fromkeys(("LDS", "STS", "ATOMS"), SHARED),
    **dict.fromkeys(("LDL", "STL"), LOCAL),
}
"""The memory of each opcode that accesses one."""
GENERIC = ("LD", "ST", "ATOM")
"""Accesses of global or shared memory, by the address of each lane. Other addresses end the execution."""


def _access(op: Decoded) -> Execute:
    return _generic(op) if op.opcode in GENERIC else _of_space(op, SPACES[op.opcode])


def _of_space(op: Decoded, space: Space) -> Execute:
    if op.opcode.startswith("LD"):
        return load(op, space)
    return store(op, space) if op.opcode.startswith("ST") else atomic(op, space, not op.opcode.startswith("RED"))


def _generic(op: Decoded) -> Execute:
    """An access of global memory by some lanes, then of shared memory by others. An atomic operation with a predicate writes in which
    lanes it is done: not in the own block and, of single floats, in no block. There nvcc's code makes it by other instructions."""
    address_of = addresses(next(one for one in op.operands if one.kind == "memory"), GLOBAL)
    to_global, to_shared, first = _of_space(op, GLOBAL), _of_space(op, WINDOW), op.operands[0]
    is_partial = first.kind == "predicate" and first.number >= 0 and not set(_SWAPS) & op.flags
    write, is_single = write_predicate(first) if is_partial else None, bool(op.flags & _FLOATS.keys())

    def execute(s: State, r: Rows, lanes: Any, counts: Counts) -> None:
        address = address_of(s, r, lanes)
        is_shared = _in_shared_window(address)
        left = np.zeros((1, 1), np.bool_)
        if write is not None:
            left = is_shared if is_single else is_shared & _is_own(s, r, address & u64(0xFFFFFFFF))
        to_global(s, r, lanes & ~is_shared, counts)
        to_shared(s, r, lanes & is_shared & ~left, counts)
        if write is not None:
            write(s, r, lanes, ~left)

    return execute


def spaces_of(op: Decoded) -> list[tuple[str, bool]]:
    """Return the memories that an instruction accesses, each with whether it writes."""
    if op.opcode == "LDGSTS":
        return [("global", False), ("shared", True)]
    if op.opcode == "SYNCS":
        return {"ARRIVE": [("shared", True)], "PHASECHK": [("shared", False)]}.get(op.modifiers[0], [])
    space, writes = SPACES.get(op.opcode), not op.opcode.startswith("LD")
    names = ("global", "shared") if op.opcode in GENERIC else (space.name,) if space is not None else ()
    return [(name, writes) for name in names]


MEMORY: dict[str, Callable[[Decoded], Execute]] = {
    **dict.fromkeys(SPACES, _access), "LDGSTS": copy_to_shared, "LDC": load_constant, "ULDC": load_constant, "B2R": read_barrier,
    "QSPC": query_space,
    **dict.fromkeys(("NOP", "MEMBAR", "ERRBAR", "CGAERRBAR", "CCTL", "DEPBAR", "LDGDEPBAR"), nothing),
}  # fmt: skip
"""By opcode."""
