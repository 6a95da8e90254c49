"""The domains of the op table's rows as LLVM instructions: where CUDA defines a result.

The table says it in NumPy; `tests/ops` holds one to the other on the edges of every type.
"""

from __future__ import annotations

from collections.abc import Sequence

from ...ir import nodes as ir
from ...language.types import BOOL, Scalar
from ...llvm.builder import LANES, FunctionBuilder
from ...llvm.operations import Shape
from ...llvm.values import Value


def defined(builder: FunctionBuilder, op: ir.Op, args: Sequence[Value]) -> Value:
    """Whether the operands lie in the operation's domain."""
    kind = args[-1].type
    shape = Shape(kind, all(a.uniform for a in args))
    x, *rest = shape.refs(builder, *args)

    def both(a: str, b: str) -> str:
        return builder.let(f"and {shape.bool} {a}, {b}", "defined")

    match op.name:
        case "add" | "sub" | "mul" | "viaddmax":
            word = "add" if op.name == "viaddmax" else op.name
            width = shape.element if shape.uniform else f"v{LANES}{shape.element}"
            pair = f"{{ {shape.type}, {shape.bool} }}"
            function, given = f"llvm.s{word}.with.overflow.{width}", ((shape.type, x), (shape.type, rest[0]))
            found = builder.call(pair, function, *given, hint="exact")
            over = builder.let(f"extractvalue {pair} {found}, 1", "over")
            result = builder.let(f"xor {shape.bool} {over}, {shape.of(BOOL).constant(True)}", "defined")
        case "neg" | "abs":
            result = builder.let(f"icmp ne {shape.type} {x}, {shape.constant(kind.range[0])}", "defined")
        case "floordiv" | "mod" | "div" | "rem":
            result = builder.let(f"icmp ne {shape.type} {rest[0]}, {shape.constant(0)}", "defined")
            if kind.kind == "int":
                lowest = builder.let(f"icmp ne {shape.type} {x}, {shape.constant(kind.range[0])}", "fits")
                minus = builder.let(f"icmp ne {shape.type} {rest[0]}, {shape.constant(-1)}", "fits")
                result = both(result, builder.let(f"or {shape.bool} {lowest}, {minus}", "fits"))
        case "shl" | "shr":
            bits = shape.constant(max(32, kind.bits))
            result = builder.let(f"icmp ult {shape.type} {rest[0]}, {bits}", "defined")
        case _:
            assert isinstance(op.type, Scalar)
            low, high = op.type.range
            # Truncated, it is at least `low` if it is above `low - 1`, where that is a number of this type.
            exact = int(kind.dtype.type(low - 1)) == low - 1
            test, least = ("ogt", low - 1) if exact else ("oge", low)
            above = builder.let(f"fcmp {test} {shape.type} {x}, {shape.constant(float(least))}", "defined")
            result = both(
                above, builder.let(f"fcmp olt {shape.type} {x}, {shape.constant(float(high + 1))}", "defined")
            )
    return shape.value(BOOL, result)
