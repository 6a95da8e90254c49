"""Results that CUDA leaves undefined: operands outside the domain of their row in the op table.

The emulator's own answer is total, so a kernel that gets this far looks right; on a GPU it may be anything. Only what
is evaluated counts: the arm of a conditional expression that is taken, the right side of an `and` that is reached.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ..errors import Diagnostic
from ..ir import nodes as ir
from ..ir.ops import TABLE
from ..language.types import BOOL, Scalar

Obligation = tuple[ir.Op, ir.Expr | None]
"""An operation, and the condition under which it is evaluated."""


def obligations(expr: ir.Expr, given: ir.Expr | None = None) -> Iterator[Obligation]:
    """The operations in an expression that may leave their domain, in the order of evaluation."""
    match expr:
        case ir.Op(name="select" | "both" | "either" as name, args=(first, *rest)):
            yield from obligations(first, given)
            without = ir.Op("not", (first,), BOOL, expr.span)
            conditions = {"select": (first, without), "both": (first,), "either": (without,)}[name]
            for condition, arm in zip(conditions, rest, strict=True):
                yield from obligations(arm, _and(given, condition))
        case ir.Op():
            for arg in expr.args:
                yield from obligations(arg, given)
            if _may_leave(expr):
                yield expr, given
        case ir.Pack():
            for arg in expr.args:
                yield from obligations(arg, given)
        case ir.Part():
            yield from obligations(expr.value, given)


def _and(a: ir.Expr | None, b: ir.Expr) -> ir.Expr:
    return b if a is None else ir.Op("both", (a, b), BOOL, b.span)


def _may_leave(op: ir.Op) -> bool:
    """Whether the row has a domain at this type, and no constant operand keeps inside it."""
    type = op.args[0].type
    if TABLE[op.name].domain is None or not isinstance(type, Scalar):
        return False
    last = op.args[-1].value if isinstance(op.args[-1], ir.Const) else None
    match op.name:
        case "add" | "sub" | "mul" | "neg" | "abs" | "viaddmax":
            return type.kind == "int" and type.size >= 4
        case "shl" | "shr":
            return last is None or not 0 <= last < max(32, type.bits)
        case "floordiv" | "mod" | "div" | "rem":
            return last is None or last in (0, -1)
    assert op.name.startswith("cast_"), f"no rule for the domain of {op.name}"
    target = op.type
    return type.is_float and isinstance(target, Scalar) and target.is_integer


def undefined_result(op: ir.Op, values: Sequence[object], where: str) -> Diagnostic:
    """The diagnostic of one operation whose operands had these values."""
    type = op.args[0].type
    shown = [repr(v) if isinstance(v, float) else str(v) for v in values]
    match op.name:
        case "shl" | "shr":
            assert isinstance(type, Scalar)
            what = f"a shift by {shown[1]}, but {type} has {max(32, type.bits)} bits here"
        case "floordiv" | "mod" | "div" | "rem" if values[1] == 0:
            what = "division by zero"
        case "add" | "sub" | "mul" | "neg" | "abs" | "floordiv" | "mod" | "div" | "rem" | "viaddmax":
            what = f"signed overflow: {_WRITTEN[op.name].format(*shown)} does not fit in {type}"
        case _:
            what = f"{shown[0]} does not fit in {op.type}"
    advice = f"wrap on purpose in {str(type).replace('i', 'u')}, or use a wider type" if "overflow" in what else ""
    notes = (where, f"CUDA leaves the result undefined{f'; {advice}' if advice else ''}")
    return Diagnostic("arithmetic", what, op.span, notes)


_WRITTEN = {
    "add": "{0} + {1}", "sub": "{0} - {1}", "mul": "{0} * {1}", "neg": "-({0})", "abs": "abs({0})",
    "viaddmax": "{0} + {1}", "floordiv": "{0} // {1}", "mod": "{0} % {1}", "div": "{0} / {1}", "rem": "{0} rem {1}",
}  # fmt: skip
