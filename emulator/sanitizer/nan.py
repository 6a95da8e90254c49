"""NaN checker: operations that make a NaN or an infinity from finite operands.

An operation with a NaN or an infinity among its operands is silent, so that a finding names the origin. Known limits: atomic
operations and warp reductions are not checked, and loads of a NaN are not findings.
"""

from collections.abc import Iterator, Sequence

import numpy as np

from ..errors import Diagnostic
from ..ir import nodes as ir
from ..ir.ops import TABLE
from ..language.types import BOOL, F32, Scalar
from . import checker
from .arithmetic import evaluated_operations, guarded


class Instrumentation(checker.Instrumentation):
    """Adds a check before each statement for the operations with a float result that it evaluates."""

    def before(self, stmt: ir.Stmt) -> Iterator[ir.Stmt]:
        for op, guard in evaluated_operations(stmt):
            floats = [arg for arg in op.args if _is_float(arg.type)]
            if op.type.is_float and (floats or op.name.startswith("cast_")):
                holds = _is_finite(op)
                for operand in floats:
                    special = ir.Op("not", (_is_finite(operand),), BOOL, op.span)
                    holds = ir.Op("either", (special, holds), BOOL, op.span)
                yield ir.Check("nan", guarded(holds, guard), op, op.args, op.span)


def _is_float(type: object) -> bool:
    return isinstance(type, Scalar) and type.is_float


def _is_finite(value: ir.Expr) -> ir.Op:
    if value.type not in TABLE["isfinite"].types:  # of 16 bits
        value = ir.Op("cast_f32", (value,), F32, value.span)
    return ir.Op("isfinite", (value,), BOOL, value.span)


def special_result(check: ir.Check, kernel: ir.Function, values: Sequence[object], thread: str) -> Diagnostic:
    """Return the diagnostic of an operation with these operands."""
    op = check.subject
    assert isinstance(op, ir.Op)
    operands = [np.array([value], _dtype(arg)) for value, arg in zip(values, op.args, strict=True)]
    with np.errstate(all="ignore"):
        result = TABLE[op.name].meaning(*operands)[0]
    word = "NaN" if np.isnan(result) else "an infinity"
    shown = ", ".join(map(str, values))
    return Diagnostic("nan", f"{word} from finite operands: {op.name}({shown}) is {result}", op.span, (thread,))


def _dtype(value: ir.Expr) -> np.dtype[np.generic]:
    assert isinstance(value.type, Scalar)
    return value.type.dtype
