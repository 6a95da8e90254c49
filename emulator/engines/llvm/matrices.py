"""Code generation for the tensor cores: matrix multiply-accumulates by functions of the library, and moves of 8x8 matrices."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy.typing as npt

from ...ir import nodes as ir
from ...ir.library import PREFIX
from ...ir.matrices import PARTS, moved_elements
from ...ir.tensor_cores import parameters
from ...language.intrinsics import WARP_SIZE
from ...language.types import U32, Scalar, Vector
from ...llvm.builder import many, scalar_type, splat, vector
from ...llvm.values import Value, Values, lanes
from .context import CodegenContext
from .warp import V, participants


@contextmanager
def first_lanes(context: CodegenContext, count: int) -> Iterator[None]:
    """Generate code for the first active lanes of the warp."""
    outer = context.mask
    if count < WARP_SIZE:
        context.mask = context.builder.let(f"and i32 {context.active()}, {(1 << count) - 1}", "first")
    yield
    context.mask = outer


def _in_memory(context: CodegenContext, expr: ir.Expr, name: str) -> tuple[str, str]:
    """Store the registers of a fragment in a buffer, one after the other. Return its type of an argument and its address."""
    builder, values = context.builder, context.values(expr)
    element = many(scalar_type(values[0].type))
    buffer = context.scratch(name, f"[4 x {many('i64')}]")
    for number, value in enumerate(values):
        builder.store(element, lanes(builder, value), builder.element(element, buffer, number))
    return "ptr", buffer


def _registers(context: CodegenContext, type: Scalar | Vector, buffer: str) -> Values:
    """Return the registers of a fragment in a buffer."""
    scalar, count = (type.element, type.lanes) if isinstance(type, Vector) else (type, 1)
    builder, element = context.builder, many(scalar_type(scalar))
    loaded = [builder.load(element, builder.element(element, buffer, number), "d") for number in range(count)]
    values = tuple(Value(scalar, ref, None) for ref in loaded)
    return values if count > 1 else values[0]


def mma(context: CodegenContext, node: ir.Mma, site: int) -> Values:
    """Return the registers of D, by a function of `maths.tensor_cores`."""
    participants(context, node, site)
    name, numbers = parameters(PARTS[node.instruction], context.options.device.compute_capability)
    cells = ", ".join(f"i64 {int(number)}" for number in numbers)
    table = context.table(node.instruction, f"internal constant [{len(numbers)} x i64] [{cells}], align 64")
    operands = [
        _in_memory(context, expr, f"matrix.{letter}")
        for letter, expr in zip("abc", (node.a, node.b, node.c), strict=True)
    ]
    result = context.scratch("matrix.d", f"[4 x {many('i64')}]")
    context.builder.call("void", PREFIX + name, *operands, ("ptr", result), ("ptr", table))
    return _registers(context, node.type, result)


def move_matrix(context: CodegenContext, node: ir.MoveMatrix, site: int) -> Values:
    """Return the registers of a move of 8x8 matrices: each 16-bit element from the word that holds it."""
    participants(context, node, site)
    builder = context.builder
    _, buffer = _in_memory(context, node.value, "matrix.a")
    count = node.type.lanes if isinstance(node.type, Vector) else 1
    registers = node.value.type.lanes if isinstance(node.value.type, Vector) else 1
    results = []
    for register in moved_elements(node.mode, node.transposed, registers)[:count]:
        low, high = register & 0xFFFF, register >> 16
        if (high == low + 1).all():
            results.append(_gather(context, buffer, low // 2))
            continue
        halves = []
        for element in (low, high):
            shift = vector("i32", (16 * (element & 1)).tolist())
            half = builder.let(f"lshr {V} {_gather(context, buffer, element // 2)}, {shift}", "element")
            halves.append(builder.let(f"and {V} {half}, {splat('i32', 0xFFFF)}", "element"))
        above = builder.let(f"shl {V} {halves[1]}, {splat('i32', 16)}", "high")
        results.append(builder.let(f"or {V} {halves[0]}, {above}", "moved"))
    values = tuple(Value(U32, ref, None) for ref in results)
    return values if count > 1 else values[0]


def _gather(context: CodegenContext, buffer: str, words: npt.NDArray[Any]) -> str:
    """Return the words of a buffer with constant numbers."""
    builder = context.builder
    pointers = builder.let(f"getelementptr i32, ptr {buffer}, {V} {vector('i32', words.tolist())}", "words")
    arguments = ((many("ptr"), pointers), (many("i1"), splat("i1", "true")), (V, "zeroinitializer"))
    return builder.call(V, "llvm.masked.gather.v32i32.v32p0", *arguments, hint="words")
