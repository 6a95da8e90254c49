"""The PTX instructions `wmma`: loads, stores and products of whole matrices, as nvcc compiles them for compute capability 8.0 and 9.0.

A matrix is a sequence of blocks of 16 or 8 rows, each with the fragment of an `mma` (`ir.matrices`). B is laid out by its columns. A
product of 8 x 32 elements is that of the transposed matrices: the blocks of 16 rows are B's. The registers are those of PTX: halves of
A and B repeat to 8 registers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from ..ir import nodes as ir
from ..ir.matrices import BITS, INSTRUCTIONS, ROW_BYTES, Instruction
from ..language.intrinsics import WARP_SIZE
from ..language.types import F32, F64, I8, I32, I64, U32, VECTORS, Scalar, Vector
from .arithmetic import cast, constant, operation, unsigned
from .assembly import Registers
from .pointers import Pointer
from .ptx_matrices import ELEMENTS, load_matrices, move_matrix, multiply, names
from .ptx_table import row
from .types import UnsupportedError

_HALVES = ("f16", "bf16")
_PAIRS = {F32: VECTORS["float2"], I32: VECTORS["int2"], F64: VECTORS["double2"]}


@dataclass(frozen=True)
class Product:
    """A product [m, k] x [k, n]. instruction: that computes its parts."""

    m: int
    n: int
    k: int
    instruction: Instruction

    @property
    def is_transposed(self) -> bool:
        return self.m < self.n

    def rows(self, matrix: str) -> tuple[int, int]:
        """Return the rows of A or C, or the columns of B, and those of a block. Of C, the blocks of A and B follow each other."""
        is_a = (matrix == "a") != self.is_transposed
        return (self.m if matrix == "a" else self.n), (self.instruction.m if is_a else 8)


_INSTRUCTIONS = {
    "f16": "m16n8k16.{0}.f16.f16.{0}", "bf16": "m16n8k16.{0}.bf16.bf16.{0}", "tf32": "m16n8k4.{0}.tf32.tf32.{0}",
    "f64": "m8n8k4.{0}.f64.f64.{0}", "s8": "m16n8k16.{0}.s8.s8.{0}", "u8": "m16n8k16.{0}.u8.u8.{0}",
}  # fmt: skip
_SHAPES = {(16, 16, 16), (32, 8, 16), (8, 32, 16)}


def product(shape: str, type: str, total: str) -> Product:
    """Return a product by the words of PTX. Raises UnsupportedError."""
    m, n, k = map(int, shape.lstrip("m").replace("n", "k").split("k"))
    instruction = INSTRUCTIONS.get(_INSTRUCTIONS.get(type, "").format(total))
    if instruction is None or (m, n, k) not in {"tf32": {(16, 16, 8)}, "f64": {(8, 8, 4)}}.get(type, _SHAPES):
        raise UnsupportedError(
            f"the matrix multiply-accumulate wmma {shape} of {type} with sums of {total} is not supported"
        )
    return Product(m, n, k, instruction)


# ------------------------------------------------------------------ places
@dataclass(frozen=True)
class Place:
    """Rows of a matrix in memory. by_rows: whether the elements of a row follow each other. step: elements from row to row, else from
    column to column."""

    r: Registers
    base: Pointer
    size: int
    step: ir.Expr
    by_rows: bool

    def at(self, row: tuple[ir.Expr, int], column: tuple[ir.Expr, int]) -> Pointer:
        """Return the pointer to an element. row, column: a variable part and a constant."""
        (major, far), (minor, near) = (row, column) if self.by_rows else (column, row)
        offset, terms = self.base.constant + near * self.size, [*self.base.terms, (minor, self.size)]
        if isinstance(self.step, ir.Const):
            step = int(self.step.value) * self.size
            offset, terms = offset + far * step, [*terms, (major, step)]
        else:
            rows = operation("add", cast(major, I64), constant(far, I64, self.r.span))
            terms.append((self.r.let(operation("mul", rows, cast(self.step, I64))), self.size))
        return replace(self.base, constant=offset, terms=tuple(terms))

    def transposed(self) -> Place:
        return replace(self, by_rows=not self.by_rows)


def _lane(r: Registers, op: str, number: int) -> ir.Expr:
    return r.let(operation(op, ir.Special("lane", I32, r.span), r.number(number)))


def _element(r: Registers, place: Place, row: int, column: int, width: int) -> Pointer:
    """Return the pointer to the first element of each lane in the 8 rows from `row` on, of `width` elements a lane from `column` on."""
    columns = operation("mul", _lane(r, "and", 3), r.number(width))
    return place.at((_lane(r, "shr", 2), row), (r.let(columns), column))


def _blocks(p: Product, matrix: str) -> list[tuple[int, int]]:
    """Return the first row and column of the 8 rows in each register of A or B."""
    (rows, block), bits = p.rows(matrix), BITS[p.instruction.a]
    width = 4 * max(32 // bits, 1)
    return [(b + r, c) for b in range(0, rows, block) for c in range(0, p.k, width) for r in range(0, block, 8)]


def _sums(p: Product) -> list[tuple[int, int]]:
    """Return the first row and column of the 8 rows in each pair of elements of C; of its transposed matrix for a transposed product."""
    rows, columns = (p.n, p.m) if p.is_transposed else (p.m, p.n)
    block = p.instruction.m
    return [(b + r, c) for b in range(0, rows, block) for c in range(0, columns, 8) for r in range(0, block, 8)]


def _place(r: Registers, operand: str, step: str, size: int, by_rows: bool) -> Place:
    """Return the place of a matrix; the pointer must be to one memory."""
    pointer = r.address(operand)
    if pointer.which is not None:
        raise UnsupportedError("a matrix of wmma in memory that is chosen at run time is not supported")
    return Place(r, pointer, size, r.let(r.read(step, I32)), by_rows)


# ------------------------------------------------------------------ A and B
_ADDRESS = r"(?:\.(?:shared|global))?(?:::cta)?"


@row(rf"wmma\.load\.([ab])\.sync\.aligned\.(row|col)\.(m\d+n\d+k\d+){_ADDRESS}\.(\w+)")
def _load_operand(r: Registers, matrix: str, layout: str, shape: str, type: str, d: str, place: str, step: str) -> None:
    p = product(shape, type, {"f64": "f64", "s8": "s32", "u8": "s32"}.get(type, "f32"))
    bits = BITS[p.instruction.a]
    own = _place(r, place, step, bits // 8, (layout == "row") == (matrix == "a"))
    registers = names(d)
    values = _operand(r, p, matrix, own)
    for number, name in enumerate(registers):
        r.write(name, values[number % len(values)])


def _operand(r: Registers, p: Product, matrix: str, place: Place) -> list[ir.Expr]:
    type, tiles = p.instruction.a, _blocks(p, matrix)
    if type == "f64":
        return [r.scope.arrays.load(_element(r, place, *tiles[0], 1), F64, "weak", "element")]
    if type == "tf32":
        return [r.scope.arrays.load(_element(r, place, *tile, 1), U32, "weak", "element") for tile in tiles]
    is_shared = place.base.memories[0].space == "shared"
    if type != "bf16" and is_shared and (place.by_rows or type == "f16"):
        count = min(len(tiles), 4 if type == "f16" else 2)
        groups = [tiles[first : first + count] for first in range(0, len(tiles), count)]
        return [value for group in groups for value in _matrices(r, place, group)]
    if place.by_rows:
        width = ROW_BYTES // 4 // place.size
        return [r.scope.arrays.load(_element(r, place, *tile, width), U32, "weak", "elements") for tile in tiles]
    if type in _HALVES:
        return [_moved(r, place, tile) for tile in tiles]
    return [_packed_bytes(r, place, tile) for tile in tiles]


def _moved(r: Registers, place: Place, tile: tuple[int, int]) -> ir.Expr:
    """Load an 8x8 matrix of halves by the elements that follow each other, and transpose it."""
    word = r.scope.arrays.load(_element(r, place.transposed(), *tile[::-1], 2), U32, "weak", "elements")
    return move_matrix(r, word)


def _packed_bytes(r: Registers, place: Place, tile: tuple[int, int]) -> ir.Expr:
    total: ir.Expr = r.number(0, U32)
    for byte in range(4):
        own = r.scope.arrays.load(_element(r, place, tile[0], tile[1] + byte, 4), I8, "weak", "element")
        total = operation("or", total, operation("shl", cast(unsigned(own), U32), r.number(8 * byte)))
    return r.let(total)


def _matrices(r: Registers, place: Place, tiles: Sequence[tuple[int, int]]) -> list[ir.Expr]:
    """Load by `ldmatrix`: lane 8 i + j gives row j of matrix i."""
    own, group = (place, list(tiles)) if place.by_rows else (place.transposed(), [tile[::-1] for tile in tiles])
    start = list(group[0])
    varying: list[ir.Expr] = [_lane(r, "and", 7), r.number(0)]
    for bit in range(len(tiles).bit_length() - 1):
        chosen = operation("and", _lane(r, "shr", 3 + bit), r.number(1))
        for axis in range(2):
            stride = group[1 << bit][axis] - start[axis]
            varying[axis] = operation("add", varying[axis], operation("mul", chosen, r.number(stride)))
    row, column = (r.let(own_axis) for own_axis in varying)
    return load_matrices(r, own.at((row, start[0]), (column, start[1])), len(tiles), not place.by_rows)


# ------------------------------------------------------------------ C and D
@row(rf"wmma\.load\.c\.sync\.aligned\.(row|col)\.(m\d+n\d+k\d+){_ADDRESS}\.(\w+)")
def _load_sums(r: Registers, layout: str, shape: str, total: str, d: str, place: str, step: str) -> None:
    p, own, element = _sums_place(r, layout, shape, total, place, step)
    arrays, values = r.scope.arrays, list[ir.Expr]()
    for tile in _sums(p):
        if total == "f16":
            first = (
                arrays.load(_element(r, own, *tile, 2), U32, "weak", "elements")
                if own.by_rows
                else _moved(r, own, tile)
            )
            values.append(first)
        elif own.by_rows:
            values += arrays.load_vector(_element(r, own, *tile, 2), _PAIRS[element], "weak", "elements")
        else:
            pair = [_element(r, own, tile[0], tile[1] + n, 2) for n in (0, 1)]
            values += [arrays.load(pointer, element, "weak", "element") for pointer in pair]
    for name, value in zip(names(d), values, strict=True):
        r.write(name, value)


@row(rf"wmma\.store\.d\.sync\.aligned\.(row|col)\.(m\d+n\d+k\d+){_ADDRESS}\.(\w+)")
def _store_sums(r: Registers, layout: str, shape: str, total: str, place: str, source: str, step: str) -> None:
    p, own, element = _sums_place(r, layout, shape, total, place, step)
    arrays, values = r.scope.arrays, [r.read(name, element) for name in names(source)]
    width = 1 if total == "f16" else 2
    for tile, first in zip(_sums(p), range(0, len(values), width), strict=True):
        if total == "f16" and own.by_rows:
            arrays.store(_element(r, own, *tile, 2), values[first], "weak")
        elif total == "f16":
            arrays.store(_element(r, own.transposed(), *tile[::-1], 2), move_matrix(r, values[first]), "weak")
        elif own.by_rows:
            arrays.store_vector(_element(r, own, *tile, 2), values[first : first + 2], _PAIRS[element], "weak")
        else:
            for n in (0, 1):
                arrays.store(_element(r, own, tile[0], tile[1] + n, 2), values[first + n], "weak")


def _sums_place(
    r: Registers, layout: str, shape: str, total: str, place: str, step: str
) -> tuple[Product, Place, Scalar]:
    """Return the product of C or D, its place, and the type of its registers."""
    types = {"f64": "f64", "s32": "s8"}
    type = "tf32" if shape.endswith("k8") else types.get(total, "f16")
    p = product(shape, type, total)
    return p, _place(r, place, step, BITS[total] // 8, (layout == "row") != p.is_transposed), ELEMENTS[total]


@row(r"wmma\.mma\.sync\.aligned\.(row|col)\.(row|col)\.(m\d+n\d+k\d+)(?:\.rn)?((?:\.\w+){2,4})")
def _multiply_matrices(
    r: Registers, layout_a: str, layout_b: str, shape: str, types: str, d: str, *operands: str
) -> None:
    words = types[1:].split(".")
    if len(words) == 3 or words[0] != words[-1] or words[1:-1] != words[1:2] * (len(words) - 2):
        raise UnsupportedError(f"the matrix multiply-accumulate wmma {shape}{types} is not supported")
    total, type = words[0], words[1] if len(words) == 4 else "f16"
    p = product(shape, type, total)
    registers = [names(own) for own in operands]
    element = F64 if type == "f64" else U32
    a, b = (
        [r.read(name, element) for name in own[: len(_blocks(p, m))]] for own, m in zip(registers, "ab", strict=False)
    )
    c = [r.read(name, ELEMENTS[total]) for name in registers[2]]
    result = _products(r, p, (b, a) if p.is_transposed else (a, b), c)
    for name, value in zip(names(d), result, strict=True):
        r.write(name, value)


def _products(
    r: Registers, p: Product, operands: tuple[list[ir.Expr], list[ir.Expr]], c: list[ir.Expr]
) -> list[ir.Expr]:
    """Return D. operands: with the blocks of `instruction.m` rows first."""
    sizes = p.instruction.m * p.k // WARP_SIZE, 8 * p.k // WARP_SIZE
    a, b = (
        _split(own, max(size * BITS[p.instruction.a] // 32, 1) if p.instruction.a != "f64" else 1)
        for own, size in zip(operands, sizes, strict=True)
    )
    parts, count = p.k // p.instruction.k, len(c) // (len(a) * len(b))
    results = list[ir.Expr]()
    for number, (left, right) in enumerate((left, right) for left in a for right in b):
        total = c[count * number : count * (number + 1)]
        for x, y in zip(_split(left, len(left) // parts), _split(right, len(right) // parts), strict=True):
            total = multiply(r, p.instruction, x, y, total)
        results += total
    return results


def _split(values: list[ir.Expr], size: int) -> list[list[ir.Expr]]:
    return [values[first : first + size] for first in range(0, len(values), size)]


def accessed(name: str) -> list[Scalar | Vector]:
    """Return the types of the elements that an instruction may access."""
    words = name.split(".")
    if words[:2] not in (["wmma", "load"], ["wmma", "store"]):
        return []
    type = words[-1]
    if type in ("s8", "u8"):
        return [I8] if (words[2] == "a") == ("col" in words) else [U32]
    return [ELEMENTS.get(type, U32)]
