"""Barriers in shared memory (SYNCS), and copies in bulk (UBLKCP) and of boxes (UTMALDG) that complete their bytes.

The code of nvcc states the fields of a barrier's word: it writes the word of a new barrier, takes the pending arrivals of a state from
bits 43 to 62, and gives bit 31 of a register as the parity of a phase. A count n of arrivals is 2**20 - n, so that its last arrival
carries into the parity, bit 63. The pending bytes have the bits between.
"""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from ..language.tensor_maps import MAX_RANK
from .access import read_register, reader, write_pair, write_predicate
from .bulk_copy import UNIT
from .counts import Counts
from .integer import u64
from .memory import GLOBAL, SHARED, Execute, addresses, checked_index, in_order, nothing
from .operands import Decoded, Register, UnsupportedInstruction, accept
from .phases import ARRIVES, BEGINS, WAITS
from .state import SHARED_OFFSET, Rows, State

_COUNT = u64((1 << 20) - 1)
_EXPECTED, _BYTES, _PENDING, _PARITY = u64(1), u64(21), u64(43), u64(63)
"""First bits of the fields: arrivals of a phase, pending bytes, pending arrivals, parity of the present phase."""
_BYTE_MASK = u64((1 << 22) - 1)
ARRIVALS: Mapping[str, Callable[[Any], tuple[Any, Any]]] = {
    "": lambda operand: (u64(1), operand), "A1T0": lambda operand: (u64(1), u64(0)), "ART0": lambda operand: (operand, u64(0)),
    "A0TR": lambda operand: (u64(0), operand), "A0TX": lambda operand: (u64(0), u64(0) - operand),
}  # fmt: skip
"""Arrivals and bytes that a form of SYNCS.ARRIVE adds: of PTX arrive.expect_tx, arrive, arrive with a count, expect_tx, complete_tx."""


def _updated(word: Any, arrivals: Any, bytes: Any) -> Any:
    """Return the word after arrivals and bytes; the next phase begins without pending ones."""
    pending = (word >> _PENDING) + arrivals & _COUNT
    pending_bytes = (word >> _BYTES) + bytes & _BYTE_MASK
    complete = (pending | pending_bytes) == u64(0)
    expected, parity = word >> _EXPECTED & _COUNT, word >> _PARITY
    pending, parity = np.where(complete, expected, pending), np.where(complete, parity ^ u64(1), parity)
    return parity << _PARITY | pending << _PENDING | pending_bytes << _BYTES | expected << _EXPECTED


def _log(op: Decoded, kind: int, s: State, r: Rows, index: Any, word: Any, lanes: Any) -> None:
    """Log what lanes do with barriers at some places in shared memory. word: of the barrier before the instruction."""
    s.log_phases(op, kind, r, (index >> 3) * 2 + (word >> _PARITY).astype(np.int64), lanes)


def _arrive(op: Decoded) -> Execute:
    accept(op, " ".join(("ARRIVE", "TRANS64", "RED", *ARRIVALS)))
    to, operand, source = op.operands
    form = next((name for name in op.modifiers if name in ARRIVALS), "")
    address_of, read = addresses(operand, SHARED), reader("i", source, op.immediate)
    write = write_pair(to.number, False)

    def execute(s: State, r: Rows, lanes: Any, counts: Counts) -> None:
        index = checked_index(op, SHARED, s, r, lanes, address_of(s, r, lanes), 8)
        values = [np.broadcast_to(one, lanes.shape) for one in ARRIVALS[form](read(s, r).astype(u64))]
        old = in_order(SHARED.contents(s).view(u64), index >> 3, lanes, _updated, *values)
        _log(op, ARRIVES, s, r, index, old, lanes)
        write(s, r, lanes, old)

    return execute


def check_phase(op: Decoded) -> Callable[[State, Rows, Any], Any]:
    """PHASECHK: write whether the phase is complete of a state, or with a parity. The function returns it, and other lanes."""
    accept(op, "PHASECHK TRANS64 TRYWAIT")
    to, operand, source = op.operands
    address_of, read, write = addresses(operand, SHARED), reader("i", source, op.immediate), write_predicate(to)

    def check(s: State, r: Rows, lanes: Any) -> Any:
        index = checked_index(op, SHARED, s, r, lanes, address_of(s, r, lanes), 8)
        word = SHARED.contents(s).view(u64)[index >> 3]
        complete = word >> _PARITY != (read(s, r) >> np.uint32(31)).astype(u64)
        _log(op, WAITS, s, r, index, word, complete & lanes)
        write(s, r, lanes, complete)
        return complete | ~lanes

    return check


def _test_phase(op: Decoded) -> Execute:
    check = check_phase(op)
    return lambda s, r, lanes, counts: check(s, r, lanes)


def _exchange(op: Decoded) -> Execute:
    accept(op, "EXCH 64")
    to, operand, source = op.operands
    if not (to.uniform and source.uniform):
        raise UnsupportedInstruction(str(op))
    address_of, read, write = addresses(operand, SHARED), reader("l", source, op.immediate), write_pair(to.number, True)

    def execute(s: State, r: Rows, lanes: Any, counts: Counts) -> None:
        warps = lanes.any(1)[:, None]
        index = checked_index(op, SHARED, s, r, warps, address_of(s, r, warps), 8)
        old = in_order(SHARED.contents(s).view(u64), index >> 3, warps, lambda word, value: value, read(s, r))
        _log(op, BEGINS, s, r, index, old, warps)
        write(s, r, lanes, old)

    return execute


_SYNCS = {"ARRIVE": _arrive, "PHASECHK": _test_phase, "EXCH": _exchange, "CCTL": nothing}


def synchronise(op: Decoded) -> Execute:
    """SYNCS: a barrier in shared memory. CCTL.IV ends its use."""
    form = _SYNCS.get(op.modifiers[0])
    if form is None:
        raise UnsupportedInstruction(f"no row of the opcode table is for {op}")
    return form(op)


# ------------------------------------------------------------------ bulk copies
def _complete(op: Decoded, s: State, r: Rows, warps: Any, barrier: Any, bytes: Any) -> None:
    """Complete bytes of the phases of the barriers at some addresses, by warp."""
    at, none = (np.broadcast_to(one.astype(u64), warps.shape) for one in (barrier, u64(0)))
    index = checked_index(op, SHARED, s, r, warps, at, 8)
    old = in_order(SHARED.contents(s).view(u64), index >> 3, warps, _updated, none, u64(0) - bytes.astype(u64))
    _log(op, ARRIVES, s, r, index, old, warps)


def copy_in_bulk(op: Decoded) -> Execute:
    """UBLKCP: a copy at once, by a warp. To shared memory: the register after the address has that of a barrier, whose bytes it
    completes."""
    loads = op.modifiers == ("S", "G")
    to, source, size = op.operands
    has_other_addresses = any(len(one.registers) != 1 or one.offset for one in (to, source))
    if op.modifiers not in (("S", "G"), ("G", "S")) or has_other_addresses:
        raise UnsupportedInstruction(f"no row of the opcode table is for {op}")
    own, other = (to, source) if loads else (source, to)
    place, address = addresses(own, SHARED), addresses(other, GLOBAL)
    units = reader("i", size, op.immediate)
    barrier = read_register(Register(to.registers[0].number + 1, True), False)

    def execute(s: State, r: Rows, lanes: Any, counts: Counts) -> None:
        warps = lanes.any(1)[:, None]
        bytes = np.where(warps, (units(s, r) & np.uint32(0xFFFF)).astype(np.int64) * UNIT, 0)
        at = place(s, r, warps)
        capacity = s.shared_bytes - (at.astype(np.int64) & SHARED_OFFSET)
        s.copy_units(op, SHARED.place(s, r, at), capacity, address(s, r, warps), bytes if loads else -bytes, counts)
        if loads:
            _complete(op, s, r, warps, barrier(s, r), bytes)

    return execute


def copy_box(op: Decoded) -> Execute:
    """UTMALDG, UTMASTG: a copy of a box of a tensor at once, by a warp. Registers from that of the address on have the address in shared
    memory, that of the barrier of a load, and the coordinates from the innermost on; the other operand is the address of the tensor map.
    """
    loads, (rank, *suffixes) = op.opcode == "UTMALDG", op.modifiers
    own, described, *more = op.operands
    if suffixes or more or rank[1:] != "D" or any(len(one.registers) != 1 or one.offset for one in (own, described)):
        raise UnsupportedInstruction(f"no row of the opcode table is for {op}")
    first = own.registers[0].number
    reads = [read_register(Register(first + n, True), False) for n in range(1 + loads + int(rank[0]))]
    map_address = read_register(Register(described.registers[0].number, True), True)
    zero = np.zeros((1, 1), np.int64)

    def execute(s: State, r: Rows, lanes: Any, counts: Counts) -> None:
        warps = lanes.any(1)[:, None]
        at, *values = [read(s, r) for read in reads]
        starts = [one.view(np.int32).astype(np.int64) for one in values[loads:]]
        coordinates = [*starts, *[zero] * (MAX_RANK - len(starts)), zero + (not loads)]
        place = SHARED.place(s, r, np.broadcast_to(at, warps.shape))
        bytes = s.copy_box(
            op, place, at.astype(np.int64) & SHARED_OFFSET, map_address(s, r), coordinates, warps, counts
        )
        if loads:
            _complete(op, s, r, warps, values[0], bytes)

    return execute


_AT_ONCE = ("FENCE", "UTMACMDFLUSH", "UBLKPF", "UTMAPF", "UTMACCTL", "WARPGROUP")
BARRIERS: Mapping[str, Callable[[Decoded], Execute]] = {
    "SYNCS": synchronise, "UBLKCP": copy_in_bulk, "UTMALDG": copy_box, "UTMASTG": copy_box, **dict.fromkeys(_AT_ONCE, nothing),
}  # fmt: skip
"""By opcode. Fences of the asynchronous proxy and groups of bulk copies and WARPGROUP order what is at once here."""
