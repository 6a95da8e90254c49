"""Checker of barriers in shared memory: use of an element that is no barrier, arrivals beyond the count of a phase, and deadlocks."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from ..errors import Diagnostic
from ..ir import mbarriers
from ..ir import nodes as ir
from ..ir.effects import MBARRIER_OPS
from ..ir.walk import statements
from ..language.types import BOOL, U64, Array
from . import checker
from .elements import element


class Instrumentation(checker.Instrumentation):
    """A check of the word before each operation, and of its operand."""

    def after(self, stmt: ir.Stmt) -> Iterator[ir.Stmt]:
        match stmt:
            case ir.Let(target=ir.Reg() as old, value=ir.Atomic(op=op, value=operand, span=span)) if op in MBARRIER_OPS:

                def number(value: int) -> ir.Const:
                    return ir.Const(value, U64, span)

                valid = ir.Op("and", (ir.Op("shr", (old, number(mbarriers.VALID)), U64, span), number(1)), U64, span)
                terms = [ir.Op("ne", (valid, number(0)), BOOL, span)]
                if "arrive" in op:
                    arrivals = operand if op == "mbarrier_arrive" else number(1)
                    count = ir.Op("and", (old, number(mbarriers.COUNT)), U64, span)
                    terms.append(ir.Op("ge", (count, arrivals), BOOL, span))
                if op not in mbarriers.WAITS:
                    terms.append(ir.Op("le", (operand, number(mbarriers.COUNT)), BOOL, span))
                holds = terms[0]
                for term in terms[1:]:
                    holds = ir.Op("both", (holds, term), BOOL, span)
                yield ir.Check("mbarrier", holds, old, (old, operand), span)


def polled(body: ir.Body, kernel: ir.Function, inner: bool = True) -> Iterator[tuple[ir.Reg, ir.Atomic, Array]]:
    """Yield the waits for barriers in statements: the register of the word, the operation, and the array. inner: those in branches too."""
    types = {s.array: s.type for s in statements(kernel.body) if isinstance(s, ir.Alloc)}
    for stmt in statements(body) if inner else body:
        match stmt:
            case ir.Let(target=ir.Reg() as word, value=ir.Atomic() as wait) if wait.op in mbarriers.WAITS:
                yield word, wait, types[wait.array]


def deadlock(endless: Diagnostic, wait: ir.Atomic, array: Array, index: int, word: int) -> Diagnostic:
    """Return the diagnostic of an endless loop that waits for a barrier, with the barrier's element and what is pending."""
    name = element(wait.array, array, index, {})
    message = f"deadlock: waits for the barrier {name}: {mbarriers.pending(word)} are pending"
    return replace(endless, message=message, span=wait.span)


def wrong_use(check: ir.Check, kernel: ir.Function, values: Sequence[object], thread: str) -> Diagnostic:
    """Return the diagnostic of an operation on a barrier. values: its word before the operation, and the operand."""
    word, operand = (int(str(value)) for value in values)
    if not word >> mbarriers.VALID & 1:
        message, advice = "this element is no barrier", "write st.mbarrier_init and a barrier of the block before it"
    elif operand > mbarriers.COUNT:
        message, advice = (
            f"{operand:,} arrivals or bytes in one operation",
            f"a barrier counts at most {mbarriers.COUNT:,}",
        )
    else:
        message = f"an arrival beyond the count of the phase: {mbarriers.pending(word)} were pending"
        advice = f"the barrier has {word >> mbarriers.EXPECTED & mbarriers.COUNT:,} arrivals a phase"
    return Diagnostic("mbarrier", message, check.span, (thread, advice))
