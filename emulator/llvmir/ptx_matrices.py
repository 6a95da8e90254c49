"""The PTX instructions of the tensor cores: rows as in `ptx_table`.

A register of 32 bits is a register of a fragment of `ir.matrices`.
"""

import re
from collections.abc import Sequence

from ..ir import nodes as ir
from ..ir.matrices import INSTRUCTIONS, Instruction, registers
from ..language.intrinsics import FULL_MASK
from ..language.types import F32, F64, I32, I64, U32, VECTORS, Scalar, Value, Vector
from .arithmetic import cast, constant, operation
from .assembly import Registers
from .pointers import Pointer
from .ptx_table import row
from .types import UnsupportedError

ELEMENTS = {"f32": F32, "f64": F64, "s32": I32, "f16": U32}
"""Types of the registers of C and D."""


def names(operand: str) -> list[str]:
    """Return the registers of an operand such as {%0, %1}."""
    return [name.strip() for name in operand.strip("{} ").split(",")]


def _full(r: Registers) -> ir.Expr:
    return r.number(FULL_MASK, U32)


def fragment(r: Registers, values: Sequence[ir.Expr], element: Scalar) -> ir.Expr:
    """Return registers as a fragment."""
    type = registers(element, len(values))
    return ir.Pack(tuple(values), type, r.span) if isinstance(type, Vector) else values[0]


def components(r: Registers, effect: ir.Effect, type: Value) -> list[ir.Expr]:
    """Perform an effect; return the registers of its result."""
    emitter = r.scope.emitter
    if not isinstance(type, Vector):
        return [emitter.effect(effect, "fragment")]
    whole = emitter.vector("fragment", type)
    emitter.emit(ir.Let(whole, effect, r.span))
    return [r.let(ir.Component(whole, r.number(n), type.element, r.span)) for n in range(type.lanes)]


def multiply(
    r: Registers, instruction: Instruction, a: Sequence[ir.Expr], b: Sequence[ir.Expr], c: Sequence[ir.Expr]
) -> list[ir.Expr]:
    """Return the registers of D = A B + C."""
    element = F64 if instruction.total == "f64" else U32
    own = [fragment(r, a, element), fragment(r, b, element), fragment(r, c, ELEMENTS[instruction.total])]
    if tuple(value.type for value in own) != instruction.types:
        raise UnsupportedError(f"the fragments of mma {instruction.name} have other numbers of registers")
    d = instruction.types[2]
    return components(r, ir.Mma(instruction.name, own[0], own[1], own[2], _full(r), d, r.span), d)


@row(r"mma\.sync\.aligned\.(m\d+n\d+k\d+)\.row\.col(\.satfinite)?(?:\.kind::f8f6f4)?((?:\.\w+){4})")
def _multiply_add(r: Registers, shape: str, limited: str | None, types: str, d: str, a: str, b: str, c: str) -> None:
    instruction = INSTRUCTIONS.get(shape + types)
    if instruction is None:
        raise UnsupportedError(f"the matrix multiply-accumulate mma {shape}{types} is not supported")
    operand, total = F64 if instruction.total == "f64" else U32, ELEMENTS[instruction.total]
    values = [[r.read(name, type) for name in names(own)] for own, type in ((a, operand), (b, operand), (c, total))]
    if limited:  # the sum with C is limited: the product alone does not overflow
        added, values[2] = values[2], [r.number(0) for _ in values[2]]
        results = [_limited_sum(r, *pair) for pair in zip(multiply(r, instruction, *values), added, strict=True)]
    else:
        results = multiply(r, instruction, *values)
    for name, value in zip(names(d), results, strict=True):
        r.write(name, value)


def _limited_sum(r: Registers, x: ir.Expr, y: ir.Expr) -> ir.Expr:
    """Return the sum of two i32, limited to the range of the type."""
    total = operation("add", cast(x, I64), cast(y, I64))
    low, high = (constant(bound, I64, r.span) for bound in I32.range)
    return r.let(cast(operation("min", operation("max", total, low), high), I32))


_MATRICES = r"\.sync\.aligned(?:\.m8n8)?\.x([124])(\.trans)?(?:\.m8n8)?(?:\.shared)?(?:::cta)?\.b16"
"""The shape is before or after the count."""


@row(rf"ldmatrix{_MATRICES}")
def _load_matrix(r: Registers, count: str, transposed: str | None, d: str, place: str) -> None:
    loaded = load_matrices(r, r.address(place), int(count), bool(transposed))
    for name, value in zip(names(d), loaded, strict=True):
        r.write(name, value)


def load_matrices(r: Registers, pointer: Pointer, count: int, transposed: bool) -> list[ir.Expr]:
    """Load 8x8 matrices of 16-bit elements from shared memory. pointer: to a row in each of the first 8 lanes of a matrix."""
    four = VECTORS["uint4"]
    rows = fragment(r, r.scope.arrays.load_vector(_shared(pointer), four, "weak", "rows", 8 * count), U32)
    type = registers(U32, count)
    return components(r, ir.MoveMatrix("load", transposed, rows, _full(r), type, r.span), type)


def _shared(pointer: Pointer) -> Pointer:
    if any(memory.space != "shared" for memory in pointer.memories):
        raise UnsupportedError(f"{pointer.memories[0].name} is not in shared memory: ldmatrix and stmatrix access it")
    return pointer


@row(rf"stmatrix{_MATRICES}")
def _store_matrix(r: Registers, count: str, transposed: str | None, place: str, source: str) -> None:
    four, pointer = VECTORS["uint4"], _shared(r.address(place))
    value = fragment(r, [r.read(name, U32) for name in names(source)], U32)
    rows = components(r, ir.MoveMatrix("store", bool(transposed), value, _full(r), four, r.span), four)
    r.scope.arrays.store_vector(pointer, rows, four, "weak", 8 * int(count))


@row(r"movmatrix\.sync\.aligned\.m8n8\.trans\.b16")
def _move_matrix(r: Registers, d: str, a: str) -> None:
    r.write(d, move_matrix(r, r.read(a, U32)))


def move_matrix(r: Registers, value: ir.Expr) -> ir.Expr:
    """Return the register of the transposed 8x8 matrix."""
    return r.scope.emitter.effect(ir.MoveMatrix("move", True, value, _full(r), U32, r.span), "moved")


def accessed(name: str) -> list[Scalar]:
    """Return the types of the elements that an instruction accesses."""
    return [U32] if re.match(r"(?:ld|st)matrix\.", name) else []
