"""Bulk copies as loops over 16 bytes, and the completion of their bytes. The emulators copy where the instruction is issued.

A reduction is a loop over elements.
The accesses to shared memory have the order "bulk": the race checker knows the reads that may be pending.
"""

from collections.abc import Iterator

from ..ir import nodes as ir
from ..ir.names import temporary
from ..ir.nodes import UNCOUNTED
from ..language.forms import AccessOrder, BulkReduction
from ..language.types import I32, I64, U64, VECTORS
from .generated import Code, combined, replaced
from .tensor_copies import lower_tensor_copies

UNIT = VECTORS["int4"]


def lower_bulk_copies(program: ir.Program) -> ir.Program:
    """Return the program without bulk copies, also of tensors."""
    return lower_tensor_copies(replaced(program, ir.BulkCopy, _copied))


def _copied(stmt: ir.BulkCopy, numbers: Iterator[int]) -> list[ir.Stmt]:
    code, inner = Code(stmt.span, "bulk@part", numbers), Code(stmt.span, "bulk@part", numbers)
    if stmt.op is not None:
        return _reduced(stmt, stmt.op, code, inner, next(numbers))
    at, index = (code.let(code.cast(own, I32)) for own in (stmt.at, stmt.index))
    units = code.op("shr", stmt.bytes, 4)
    number = ir.Reg(temporary(code.stem, next(numbers)), I32, stmt.span)
    orders: tuple[AccessOrder, AccessOrder] = ("bulk", "weak") if stmt.barrier is None else ("weak", "bulk")
    value = inner.let(ir.Load(stmt.source.name, inner.op("add", index, number), UNIT, stmt.span, orders[0]))
    inner.body.append(ir.Store(stmt.to.name, inner.op("add", at, number), value, stmt.span, UNCOUNTED, orders[1]))
    zero = ir.Const(0, I32, stmt.span)
    code.body.append(ir.For(number, zero, units, 1, False, tuple(inner.body), stmt.span, UNCOUNTED))
    if stmt.barrier is None:
        return code.body
    bytes = code.cast(stmt.bytes, U64)
    complete = ir.Atomic(
        "mbarrier_complete_tx", stmt.barrier.name, stmt.which, bytes, U64, stmt.span, "release", "block"
    )
    code.let(complete, -1)
    return code.body


def _reduced(stmt: ir.BulkCopy, op: BulkReduction, code: Code, inner: Code, name: int) -> list[ir.Stmt]:
    """Return a loop over the elements of a reduction, with one atomic operation each. name: of the register of the loop."""
    ratio, number = UNIT.size // stmt.element.size, ir.Reg(temporary(code.stem, name), I32, stmt.span)
    at, index = (code.op("mul", code.let(code.cast(own, I64)), ratio) for own in (stmt.at, stmt.index))
    count = code.op("shr", stmt.bytes, stmt.element.size.bit_length() - 1)
    own = inner.cast(number, I64)
    value = inner.let(ir.Load(stmt.source.name, inner.op("add", index, own), stmt.element, stmt.span, "bulk"))
    inner.body.append(combined(op, stmt.to.name, inner.op("add", at, own), value))
    code.body.append(
        ir.For(number, ir.Const(0, I32, stmt.span), count, 1, False, tuple(inner.body), stmt.span, UNCOUNTED)
    )
    return code.body
