"""Checker of products of warpgroups: registers of D that are read before a wait, and registers without a `wgmma_fence`.

Each register with a value of D, also after copies, has the number of the group of its product. A wait completes all groups but the last
few. The race checker finds operands in shared memory that are written before the wait, and a missing `fence_async`. Known limit: D is not
followed into local memory, where compiled code has arrays of loops that are not unrolled.
"""

from collections.abc import Iterator, Sequence

from ..errors import Diagnostic
from ..ir import nodes as ir
from ..ir.matrices import PARTS
from ..ir.names import Name, temporary, variable_of_value
from ..ir.walk import registers, statements
from ..language.types import BOOL, I32, Scalar
from ..span import Span
from . import checker

KIND = "wgmma"


def _product(stmt: ir.Stmt) -> ir.Mma | None:
    """Return a part of an instruction of a warpgroup."""
    if isinstance(stmt, ir.Let) and isinstance(stmt.value, ir.Mma) and PARTS[stmt.value.instruction].warpgroup:
        return stmt.value
    return None


def _copied(stmt: ir.Stmt) -> ir.Reg | None:
    """Return the register of which a statement copies the bits or a component."""
    if not (isinstance(stmt, ir.Let) and isinstance(stmt.target, ir.Reg)):
        return None
    value = stmt.value
    if (
        isinstance(value, ir.Op)
        and value.name.startswith(("cast_", "as_"))
        and value.args[0].type.size == value.type.size
    ):
        value = value.args[0]
    if isinstance(value, ir.Component):
        value = value.value
    return value if isinstance(value, ir.Reg) else None


class Instrumentation(checker.Instrumentation):
    """Numbers of groups, committed and complete, and the number of each register with a value of D."""

    def __init__(self, kernel: ir.Function) -> None:
        super().__init__(kernel)
        products = [(stmt, own) for stmt in statements(kernel.body) if (own := _product(stmt)) is not None]
        names = {
            stmt.target.name for stmt, _ in products if isinstance(stmt, ir.Let) and isinstance(stmt.target, ir.Reg)
        }
        copies = [(s.target.name, source.name) for s in statements(kernel.body) if isinstance(s, ir.Let)
                  and isinstance(s.target, ir.Reg) and (source := _copied(s)) is not None]  # fmt: skip
        size = -1
        while len(names) != size:
            size = len(names)
            names |= {target for target, source in copies if source in names}
        self.groups = {
            name: ir.Reg(temporary("wgmma@group", n), I32, kernel.span) for n, name in enumerate(sorted(names))
        }
        moved = {
            s.target.name
            for s in statements(kernel.body)
            if isinstance(s, ir.Let) and isinstance(s.target, ir.Reg) and isinstance(s.value, ir.MoveMatrix)
        }
        of_a = {own.name for _, product in products for own in (product.a, *registers(ir.Let(None, product.a, product.span)))
                if isinstance(own, ir.Reg)}  # fmt: skip
        variables = (name for name in names | (of_a - moved) if variable_of_value(name) is None)
        self.fenced = {
            name for name in variables if not Name.parse(name).temporary
        }  # of compiled code, the order is the compiler's
        self.committed, self.complete = (
            ir.Reg(temporary(f"wgmma@{name}", 0), I32, kernel.span) for name in ("committed", "complete")
        )
        self.local = {s.array for s in statements(kernel.body) if isinstance(s, ir.Alloc) and s.type.space == "local"}
        self.ready = ir.Reg(temporary("wgmma@ready", 0), BOOL, kernel.span)
        self.last: Span | None = None

    def before(self, stmt: ir.Stmt) -> Iterator[ir.Stmt]:
        if not self.groups:
            return
        if stmt is self.kernel.body[0]:
            zero = ir.Const(0, I32, stmt.span)
            yield from (ir.Let(own, zero, stmt.span) for own in (self.committed, self.complete, *self.groups.values()))
            yield ir.Let(self.ready, ir.Const(False, BOOL, stmt.span), stmt.span)
        product, read = _product(stmt), list(registers(stmt))
        if product is not None:
            read = list(registers(ir.Let(None, product.a, product.span)))
            if product.span is not self.last:
                yield ir.Check(KIND, self.ready, self.ready, (), product.span)
            self.last = product.span
        elif _copied(stmt) is not None or (isinstance(stmt, ir.Store) and stmt.array in self.local):
            return
        for register in {own.name: own for own in read if own.name in self.groups}.values():
            waited = ir.Op("le", (self.groups[register.name], self.complete), BOOL, register.span)
            yield ir.Check(KIND, waited, register, (), stmt.span)

    def after(self, stmt: ir.Stmt) -> Iterator[ir.Stmt]:
        span = stmt.span
        match stmt:
            case ir.AsyncOrder(mode="fence"):
                yield ir.Let(self.ready, ir.Const(True, BOOL, span), span)
            case ir.AsyncOrder(mode="commit"):
                yield ir.Let(self.committed, _sum(self.committed, 1), span)
            case ir.AsyncOrder(mode="wait", pending=pending):
                reached = ir.Op("max", (self.complete, _sum(self.committed, -pending)), I32, span)
                yield ir.Let(self.complete, reached, span)
            case ir.Let(target=ir.Reg(name=name)) if self.groups:
                source = _copied(stmt)
                number: ir.Expr = ir.Const(0, I32, span)
                if _product(stmt) is not None:
                    number = _sum(self.committed, 1)
                elif source is not None and source.name in self.groups:
                    number = self.groups[source.name]
                elif name in self.fenced:
                    yield ir.Let(self.ready, ir.Const(False, BOOL, span), span)
                if name in self.groups:
                    yield ir.Let(self.groups[name], number, span)


def _sum(value: ir.Reg, addend: int) -> ir.Expr:
    assert isinstance(value.type, Scalar)
    return ir.Op("add", (value, ir.Const(addend, value.type, value.span)), value.type, value.span)


def unordered(check: ir.Check, kernel: ir.Function, values: Sequence[object], thread: str) -> Diagnostic:
    """Return the diagnostic of a register that is read before a wait, or of a product without a fence."""
    assert isinstance(check.subject, ir.Reg)
    name = Name.parse(check.subject.name)
    if check.subject.type is BOOL:
        message = "wgmma without a wgmma_fence after the last write of its registers"
        return Diagnostic(KIND, message, check.span, (thread, "write st.wgmma_fence() before it"))
    shown = "a register of D" if name.element is None or name.temporary else f"{name.user}[{name.element}]"
    message = f"{shown} is read before its wgmma is waited for"
    return Diagnostic(KIND, message, check.span, (thread, "write st.wgmma_commit() and st.wgmma_wait() before it"))
