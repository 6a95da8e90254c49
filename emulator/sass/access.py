"""Reads and writes of operands, as functions of the machine's state and of the warps that execute."""

from collections.abc import Callable
from typing import Any

import numpy as np

from .integer import i32, u32, u64
from .operands import Operand, Register, UnsupportedInstruction
from .state import SPECIAL_NAMES, Rows, State
from .traced import contiguous

Read = Callable[[State, Rows], Any]
Write = Callable[[State, Rows, Any, Any], None]
"""Arguments: state, warps, lanes that write (bool[warps, 32]), value."""
_ZERO32, _ZERO64 = np.zeros((1, 1), u32), np.zeros((1, 1), u64)
_SIGN32, _SIGN64 = u32(1 << 31), u64(1 << 63)
_MASK32 = u64(0xFFFFFFFF)


def _constant(value: Any) -> Read:
    return lambda s, r: value


def _raw(operand: Operand, wide: bool, immediate: int) -> Read:
    """Return the bits of an operand without its sign: uint32, or uint64 with `wide`."""
    number, bank, offset = operand.number, operand.number, operand.offset
    if operand.kind == "integer":
        mask = (1 << 64) - 1 if wide else 0xFFFFFFFF
        return _constant(np.array([[number & mask]], u64 if wide else u32))
    if operand.kind == "float":
        return _constant(np.array([[immediate << 32]], u64) if wide else np.array([[immediate]], u32))
    if operand.kind == "constant":
        if operand.registers:
            raise UnsupportedInstruction(f"the operand {operand.text}")
        return lambda s, r: s.constant(bank, offset, 8 if wide else 4)
    if number < 0:
        return _constant(_ZERO64 if wide else _ZERO32)
    file = "uniform_registers" if operand.uniform else "registers"

    def read(s: State, r: Rows) -> Any:
        registers = getattr(s, file)
        low = registers[number][r]
        return low.astype(u64) | registers[number + 1][r].astype(u64) << u64(32) if wide else low

    return read


def read_register(register: Register, wide: bool) -> Read:
    """Return a register of an address, uint32 or uint64."""
    return _raw(Operand("register", "", register.number, register.uniform), wide, 0)


def _integer(operand: Operand, wide: bool, immediate: int) -> Read:
    raw, zero = _raw(operand, wide, immediate), u64(0) if wide else u32(0)
    if operand.absolute:
        if wide or operand.negative:
            raise UnsupportedInstruction(f"the operand {operand.text}")
        return lambda s, r: np.abs(contiguous(raw(s, r)).view(i32)).view(u32)
    if operand.negative:
        return lambda s, r: zero - raw(s, r)
    if operand.inverted:
        return lambda s, r: ~raw(s, r)
    return raw


def _addend(operand: Operand, immediate: int) -> Read:
    """Return an addend with its carry: a negated one is 2**32 - x."""
    if operand.negative:
        raw = _raw(operand, False, immediate)
        return lambda s, r: u64(1 << 32) - raw(s, r).astype(u64)
    value = _integer(operand, False, immediate)
    return lambda s, r: value(s, r).astype(u64)


def _float(operand: Operand, wide: bool, immediate: int) -> Read:
    if operand.kind == "integer":  # printed as bits
        raw = _constant(np.array([[immediate << 32]], u64) if wide else np.array([[immediate]], u32))
    else:
        raw = _raw(operand, wide, immediate)
    sign, dtype = (_SIGN64, np.float64) if wide else (_SIGN32, np.float32)
    negative, absolute = operand.negative, operand.absolute

    def read(s: State, r: Rows) -> Any:
        bits = contiguous(raw(s, r))
        if absolute:
            bits = bits & ~sign
        if negative:
            bits = bits ^ sign
        return bits.view(dtype)

    return read


def _halves(operand: Operand, immediate: int) -> Read:
    raw, selector, negative = _raw(operand, False, immediate), operand.selector, operand.negative
    if selector not in ("", "H0_H0", "H1_H1", "H1_H0"):
        raise UnsupportedInstruction(f"the operand {operand.text}")

    def read(s: State, r: Rows) -> Any:
        bits = raw(s, r)
        if selector in ("H0_H0", "H1_H1"):
            bits = (bits & u32(0xFFFF) if selector == "H0_H0" else bits >> u32(16)) * u32(0x10001)
        if operand.absolute:
            bits = bits & u32(0x7FFF7FFF)
        return bits ^ u32(0x80008000) if negative else bits

    return read


def read_predicate(operand: Operand) -> Read:
    """Return a predicate, bool[warps, 32 or 1]."""
    number, uniform = operand.number, operand.uniform
    if number < 0:
        return _constant(np.array([[not operand.inverted]]))
    if operand.inverted:
        return lambda s, r: ~(s.uniform_predicates if uniform else s.predicates)[number][r]
    return lambda s, r: (s.uniform_predicates if uniform else s.predicates)[number][r]


def _all_predicates(operand: Operand) -> Read:
    if operand.text not in ("PR", "UPR"):
        raise UnsupportedInstruction(f"the operand {operand.text}")

    def read(s: State, r: Rows) -> Any:
        predicates = s.uniform_predicates if operand.text == "UPR" else s.predicates
        return sum((predicates[n][r].astype(u32) << u32(n) for n in range(7)), _ZERO32)

    return read


def _special(operand: Operand) -> Read:
    name = operand.text
    if name not in SPECIAL_NAMES:
        raise UnsupportedInstruction(f"the special register {name}")
    return lambda s, r: s.special[name][r]


def reader(letter: str, operand: Operand, immediate: int) -> Read:
    """Return the read of a source operand. letter: of `rows.Row`. Raises UnsupportedInstruction."""
    if letter in "iwxlfd" and operand.selector:
        raise UnsupportedInstruction(f"the operand {operand.text}")
    match letter:
        case "i":
            return _integer(operand, False, immediate)
        case "l":
            return _integer(operand, True, immediate)
        case "x":
            return _raw(operand, False, immediate)
        case "w":
            return _addend(operand, immediate)
        case "f":
            return _float(operand, False, immediate)
        case "d":
            return _float(operand, True, immediate)
        case "h":
            return _halves(operand, immediate)
        case "p":
            return read_predicate(operand)
        case "n":
            return _constant(operand.number)
        case "s":
            return _special(operand)
        case _:
            return _all_predicates(operand)


# ------------------------------------------------------------------ destinations
def _store(array: Any, r: Rows, lanes: Any, value: Any) -> None:
    if isinstance(r, slice):
        np.copyto(array, value, where=lanes)
    else:
        array[r] = np.where(lanes, value, array[r])


def _write(file: str, number: int, uniform: bool) -> Write:
    """Return the write of a register or predicate. file: of the state."""
    if number < 0:
        return lambda s, r, lanes, value: None
    if not uniform:
        return lambda s, r, lanes, value: _store(getattr(s, file)[number], r, lanes, value)
    file = f"uniform_{file}"
    return lambda s, r, lanes, value: _store(getattr(s, file)[number], r, lanes.any(1)[:, None], value[:, :1])


def write_register(number: int, uniform: bool) -> Write:
    """Return the write of a 32-bit register. number: -1 for none."""
    return _write("registers", number, uniform)


def write_pair(number: int, uniform: bool) -> Write:
    """Return the write of a 64-bit register pair."""
    low, high = write_register(number, uniform), write_register(number + 1 if number >= 0 else -1, uniform)

    def write(s: State, r: Rows, lanes: Any, value: Any) -> None:
        low(s, r, lanes, (value & _MASK32).astype(u32))
        high(s, r, lanes, (value >> u64(32)).astype(u32))

    return write


def write_predicate(operand: Operand) -> Write:
    """Return the write of a predicate."""
    return _write("predicates", operand.number, operand.uniform)


def _write_all_predicates(s: State, r: Rows, lanes: Any, value: Any) -> None:
    bits, mask = value
    for n in range(7):
        if mask >> n & 1:
            _store(s.predicates[n], r, lanes, (bits >> u32(n) & u32(1)).astype(np.bool_))


def writer(letter: str, operand: Operand) -> Write:
    """Return the write of a destination operand. letter: of `rows.Row`. Raises UnsupportedInstruction."""
    if operand.negative or operand.inverted or operand.selector not in ("", "64"):
        raise UnsupportedInstruction(f"the destination {operand.text}")
    match letter:
        case "R":
            return write_register(operand.number, operand.uniform)
        case "D":
            return write_pair(operand.number, operand.uniform)
        case "P":
            return write_predicate(operand)
        case _:
            return _write_all_predicates
