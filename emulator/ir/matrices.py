"""Instructions of the tensor cores: their shapes, the types of their fragments, and the lane that holds each element.

A fragment of a matrix is a vector of registers in each of the 32 lanes. `places` has the layout of all fragments.
An instruction has the name of PTX after `mma.sync.aligned.`, without `.row.col`: its shape and the types of D, A, B and C; one of a
warpgroup has that after `wgmma.mma_async.sync.aligned.`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ..language.intrinsics import WARP_SIZE
from ..language.types import F32, F64, I32, U32, VECTORS, Scalar, Value, Vector

Values = npt.NDArray[Any]
Capability = tuple[int, int]


class Format(NamedTuple):
    """A number format of operands: bits, bits of the fraction and of the exponent, and unused low bits of its register."""

    bits: int
    fraction: int
    exponent: int
    unused: int = 0

    @property
    def lowest(self) -> int:
        """The smallest exponent, of subnormal and of the smallest normal numbers."""
        return 2 - (1 << (self.exponent - 1))


FLOATS = {
    "f16": Format(16, 10, 5), "bf16": Format(16, 7, 8), "tf32": Format(32, 10, 8, unused=13), "f32": Format(32, 23, 8),
    "e4m3": Format(8, 3, 4), "e5m2": Format(8, 2, 5),
}  # fmt: skip
"""Formats of floating-point operands. e4m3 has no infinities, and one NaN of each sign."""
BITS = {name: format.bits for name, format in FLOATS.items()} | {"s8": 8, "u8": 8, "s32": 32, "f64": 64}
ROW_BYTES = 16
"""Bytes of a row of an 8x8 matrix of 16-bit elements."""
_VECTORS = {(v.element, v.lanes): v for v in VECTORS.values() if v.name.startswith(("uint", "int", "float", "double"))}


def registers(element: Scalar, count: int) -> Value:
    """Return the type of a fragment of `count` registers."""
    return element if count == 1 else _VECTORS[element, count]


@dataclass(frozen=True)
class Instruction:
    """A matrix multiply-accumulate D = A B + C of a warp. A is [m, k], B is [k, n], C and D are [m, n].

    total: type of C and D. a, b: types of the elements of A and B. needs: the lowest compute capability. warpgroup: whether it is a
    part of a `GroupInstruction`.
    """

    m: int
    n: int
    k: int
    total: str
    a: str
    b: str
    needs: Capability
    warpgroup: bool = False

    @cached_property
    def name(self) -> str:
        return f"{'wgmma.' * self.warpgroup}m{self.m}n{self.n}k{self.k}.{self.total}.{self.a}.{self.b}.{self.total}"

    @cached_property
    def types(self) -> tuple[Value, Value, Value]:
        """Types of the fragments of A, B, and of C and D."""
        if self.a == "f64":
            return F64, F64, registers(F64, 2)
        words = [rows * self.k * BITS[self.a] // (32 * WARP_SIZE) for rows in (self.m, self.n)]
        sums = self.m * self.n // WARP_SIZE
        total = (
            registers(U32, sums // 2) if self.total == "f16" else registers(F32 if self.total == "f32" else I32, sums)
        )
        return registers(U32, words[0]), registers(U32, words[1]), total


def _instructions() -> list[Instruction]:
    half, ampere = (7, 5), (8, 0)
    rows = [
        Instruction(16, 8, k, total, "f16", "f16", need)
        for k, need in ((8, half), (16, ampere))
        for total in ("f32", "f16")
    ]
    rows += [Instruction(16, 8, k, "f32", "bf16", "bf16", ampere) for k in (8, 16)]
    rows += [Instruction(16, 8, k, "f32", "tf32", "tf32", ampere) for k in (4, 8)]
    rows += [Instruction(8, 8, 4, "f64", "f64", "f64", ampere)]
    rows += [
        Instruction(m, 8, k, "s32", a, b, need)
        for m, k, need in ((8, 16, half), (16, 16, ampere), (16, 32, ampere))
        for a in ("s8", "u8")
        for b in ("s8", "u8")
    ]
    return rows + [Instruction(16, 8, 32, "f32", own, own, (8, 9)) for own in ("e4m3", "e5m2")]


INSTRUCTIONS = {row.name: row for row in _instructions()}


@dataclass(frozen=True)
class GroupInstruction:
    """A matrix multiply-accumulate of a warpgroup, four warps: D = A B + D, or A B. A is [64, k], B is [k, n], D is [64, n].

    Warp w computes the rows 16 w ... 16 w + 15, with the fragments of `part` for A, and for D one for each 8 columns.
    """

    n: int
    part: Instruction

    @cached_property
    def name(self) -> str:
        return f"m64n{self.n}k{self.part.k}.{self.part.total}.{self.part.a}.{self.part.b}"

    @property
    def element(self) -> Scalar:
        """The type of the registers of D."""
        total = self.part.types[2]
        return total.element if isinstance(total, Vector) else total

    @property
    def registers(self) -> int:
        """Registers of D in each lane."""
        total = self.part.types[2]
        return self.n // 8 * (total.lanes if isinstance(total, Vector) else 1)


def _group_instructions() -> list[GroupInstruction]:
    def step(k: int, total: str, a: str, b: str) -> Instruction:
        return Instruction(16, 8, k, total, a, b, (9, 0), warpgroup=True)

    floats = [step(16, "f32", "f16", "f16"), step(16, "f16", "f16", "f16"), step(16, "f32", "bf16", "bf16")]
    floats.append(step(8, "f32", "tf32", "tf32"))
    narrow = ("e4m3", "e5m2")
    floats += [step(32, total, a, b) for total in ("f32", "f16") for a in narrow for b in narrow]
    integers = [step(32, "s32", a, b) for a in ("s8", "u8") for b in ("s8", "u8")]
    rows = [GroupInstruction(n, own) for own in floats for n in range(8, 257, 8)]
    return rows + [GroupInstruction(n, own) for own in integers for n in (8, 24, *range(16, 257, 16))]


GROUP_INSTRUCTIONS = {row.name: row for row in _group_instructions()}
PARTS = INSTRUCTIONS | {row.part.name: row.part for row in GROUP_INSTRUCTIONS.values()}
"""Instructions of a warp, and those that a warp executes of an instruction of its warpgroup."""


SIGNS = {"f16": 0x80008000, "bf16": 0x80008000, "tf32": 0x80000000, "e4m3": 0x80808080, "e5m2": 0x80808080}
"""Sign bits of the elements in a register."""
WITH_BASE = "a descriptor with a base offset is not supported"
INCOMPLETE = "wgmma needs the four warps of a warpgroup"


class DescribedRows:
    """Places of the rows of 16 bytes of a matrix in shared memory: blocks of 8 rows, the 8x8 matrices of `moved`.

    op: an operation by name, of expressions or of arrays. narrow: converts a field of the descriptor. without_base: whether the
    descriptor has no base offset.
    """

    def __init__(self, op: Callable[..., Any], narrow: Callable[[Any], Any], descriptor: Any, transposed: bool) -> None:
        def field(shift: int, bits: int) -> Any:
            return op("and", op("shr", descriptor, shift), (1 << bits) - 1)

        self.op, self.transposed = op, transposed
        self.start, self.leading, self.stride = (narrow(field(shift, 14)) for shift in (0, 16, 32))
        self.without_base = op("eq", field(49, 3), 0)
        mode = narrow(field(62, 2))
        self.plain = op("eq", mode, 0)
        self.width_bits = op("select", self.plain, 0, op("sub", 4, mode))
        self.width = op("shl", 1, self.width_bits)
        self.swizzled = op("sub", self.width, 1)

    def at(self, block: Any, half: Any, row: Any) -> Any:
        """Return the place of a row, in units of 16 bytes. block: of 8 rows of the matrix, or columns of B. half: of K."""
        op = self.op
        if self.transposed:
            across = op("and", block, self.swizzled)
            down = op("mul", op("shr", block, self.width_bits), self.leading)
            swizzled = op("add", op("add", across, down), op("mul", half, self.stride))
            plain = op("add", op("mul", block, self.stride), op("mul", half, self.leading))
            offset = op("select", self.plain, plain, swizzled)
        else:
            adjacent = op("mul", half, op("select", self.plain, self.leading, 1))
            offset = op("add", op("mul", block, self.stride), adjacent)
        index = op("add", op("add", self.start, op("mul", row, self.width)), offset)
        return op("xor", index, op("and", op("shr", index, 3), self.swizzled))


# ------------------------------------------------------------------ layout of fragments
def places(rows: int, columns: int, width: int) -> tuple[Values, Values]:
    """Return the lane of each element of a fragment, and the number of the element in the lane: i64[rows, columns].

    width: elements of a row in one register of 32 bits; of C and D, always 2. B is laid out by its columns: as the fragment of
    its transposed matrix. Four lanes hold 8 rows of `width` elements each; registers go through the 8-row blocks first.
    """
    row, column = np.arange(rows)[:, None], np.arange(columns)[None, :]
    lane = 4 * (row % 8) + column % (4 * width) // width
    register = row // 8 + rows // 8 * (column // (4 * width))
    return lane, register * width + column % width


def _elements(fragment: Sequence[Values], bits: int) -> Values:
    """Return the elements of each lane, as numbers without sign [..., 32, elements]."""
    words = np.stack([np.ascontiguousarray(register) for register in fragment], axis=-1)
    return words.view(f"u{bits // 8}")


def matrix(fragment: Sequence[Values], rows: int, columns: int, bits: int, width: int) -> Values:
    """Return the bits of a matrix [..., rows, columns]. fragment: registers [..., 32]."""
    lane, element = places(rows, columns, width)
    return _elements(fragment, bits)[..., lane, element]


def fragment(values: Values, like: Sequence[Values], width: int) -> tuple[Values, ...]:
    """Return the registers of a matrix [..., rows, columns], of the number and the types of `like`."""
    rows, columns = values.shape[-2:]
    lane, element = places(rows, columns, width)
    elements = np.empty((*values.shape[:-2], WARP_SIZE, rows * columns // WARP_SIZE), values.dtype)
    elements[..., lane, element] = values
    words = elements.view(like[0].dtype)
    return tuple(np.ascontiguousarray(words[..., n]) for n in range(len(like)))


# ------------------------------------------------------------------ 8x8 matrices of 16-bit elements
def moved(mode: str, transposed: bool, values: Sequence[Values]) -> tuple[Values, ...]:
    """Return the registers after a move of 8x8 matrices of 16-bit elements.

    "load": values are rows, u32[..., 32] of 4 words; lane 8 i + r holds row r of matrix i. The results are the fragments of `places`,
    one register a matrix: lane 4 r + c holds the elements 2 c and 2 c + 1 of row r; of column r with `transposed`.
    "store": the inverse. "move": from fragment to fragment.
    """
    if mode == "load":
        rows = _elements(values, 16).reshape(*values[0].shape[:-1], 4, 8, 8)
    else:
        own = np.stack([_elements((register,), 16).reshape(*register.shape[:-1], 8, 8) for register in values], axis=-3)
        blank = np.zeros((*own.shape[:-3], 4 - len(values), 8, 8), own.dtype)
        rows = np.concatenate([own, blank], axis=-3)
    rows = np.ascontiguousarray(rows.swapaxes(-1, -2) if transposed else rows)
    words = rows.view(np.uint32)  # [..., matrix, row, 4]
    if mode == "store":
        lanes = words.reshape(*words.shape[:-3], WARP_SIZE, 4)
        return tuple(np.ascontiguousarray(lanes[..., n]) for n in range(4))
    registers = words.reshape(*words.shape[:-2], WARP_SIZE)
    return tuple(np.ascontiguousarray(registers[..., n, :]) for n in range(4))


def moved_elements(mode: str, transposed: bool, registers: int) -> tuple[Values, ...]:
    """Return the numbers of the two elements of each word of the result of `moved`, low | high << 16. Elements are numbered through the
    words of the values, [registers, 32]."""
    words = np.arange(registers * WARP_SIZE, dtype=np.uint32)
    return moved(mode, transposed, list((2 * words | (2 * words + 1) << 16).reshape(-1, WARP_SIZE)))
