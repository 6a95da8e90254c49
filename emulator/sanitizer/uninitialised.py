"""Checker of uninitialised reads: of shared and local memory, of registers, and of arrays given as `empty`.

A kernel writes whole elements, vectors included, so an element is either written or not. Shadow memory has an epoch in
the WRITTEN plane of each element. Shared and local memory are uninitialised at the start of every block. An atomic
operation reads its element: an array of counters is given as `zeros`.
"""

from collections.abc import Iterator, Sequence

from ..errors import Diagnostic
from ..ir import nodes as ir
from ..ir.effects import written_array
from ..ir.names import Name, assigned_flag
from ..ir.names import elements as registers_of
from ..ir.walk import bodies, effect, registers, statements
from ..language.types import BOOL, Array
from ..span import Span
from . import checker, elements
from .bounds import user_name

KIND = "uninitialised"


def tracks(type: Array, written: bool, empty: bool) -> bool:
    """Return whether an array is uninitialised at the start."""
    return type.space in ("shared", "local") or empty


class Instrumentation(checker.Instrumentation):
    """A flag for each register of an array, set when the register is assigned and checked when it is read."""

    def __init__(self, kernel: ir.Function) -> None:
        super().__init__(kernel)
        self.lengths = {
            s.array: s.type.length or 0
            for s in statements(kernel.body)
            if isinstance(s, ir.Alloc) and s.type.space == "register"
        }

    def before(self, stmt: ir.Stmt) -> Iterator[ir.Stmt]:
        first: dict[str, ir.Reg] = {}
        for register in registers(stmt):
            if self._is_element(register):
                first.setdefault(register.name, register)
        for register in first.values():
            yield ir.Check("uninitialised", _flag(register), register, (), register.span)

    def after(self, stmt: ir.Stmt) -> Iterator[ir.Stmt]:
        match stmt:
            case ir.Let(target=ir.Reg() as target) if self._is_element(target):
                yield _set_flag(target, True)
            case ir.Alloc(type=Array(space="register")):
                for name in registers_of(stmt.array, self.lengths.get(stmt.array)):
                    yield _set_flag(ir.Reg(name, BOOL, stmt.span), False)

    def _is_element(self, register: ir.Reg) -> bool:
        name = Name.parse(register.name)
        return name.element is not None and name.array in self.lengths


def _flag(register: ir.Reg) -> ir.Reg:
    """Return the flag that the register was assigned."""
    return ir.Reg(assigned_flag(register.name), BOOL, register.span)


def _set_flag(register: ir.Reg, value: bool) -> ir.Let:
    return ir.Let(_flag(register), ir.Const(value, BOOL, register.span), register.span)


def read(
    kernel: ir.Function,
    span: Span,
    array: str,
    type: Array,
    index: int,
    thread: str,
    forms: elements.Forms,
    persistent: bool,
) -> Diagnostic:
    """Return the diagnostic of a read of memory. persistent: whether the array belongs to earlier launches too."""
    what = elements.element(array, type, index, forms)
    message = f"{type.space} read of {what}, which was never written"
    return _diagnostic(kernel, span, array, type, message, thread, index, persistent)


def unassigned_register(check: ir.Check, kernel: ir.Function, values: Sequence[object], thread: str) -> Diagnostic:
    """Return the diagnostic of a read of an element of a register array."""
    register = check.subject
    assert isinstance(register, ir.Reg)
    name = Name.parse(register.name)
    array = name.array
    type = next(s.type for s in statements(kernel.body) if isinstance(s, ir.Alloc) and s.array == array)
    message = f"read of register {name.user}[{name.element}], which was not assigned"
    return _diagnostic(kernel, register.span, array, type, message, thread, int(name.element or 0))


def _diagnostic(
    kernel: ir.Function, span: Span, array: str, type: Array, message: str, thread: str, index: int, persistent: bool = False
) -> Diagnostic:  # fmt: skip
    name = user_name(array)
    allocated = next((s.span for s in statements(kernel.body) if isinstance(s, ir.Alloc) and s.array == array), None)
    if allocated is None:
        allocated = next(p.span for p in kernel.params if p.name == array)
    writers = sorted({(one.file, one.line): one for one in _earlier_writers(kernel, span, array, index)}.items())
    places = [str(one.line) if one.file == span.file else one.place for _, one in writers]
    cause = f"line{'s' * (len(places) > 1)} {', '.join(places)} should have written it, and did not" if places else ""
    verb = "allocated" if type.space != "global" else "a parameter" if persistent else "given as empty"
    written = any(array in _writes(stmt) for stmt in statements(kernel.body))
    cause = cause or f"nothing in the kernel writes {name}{' before this read' * written}"
    if persistent:
        cause += "; nor did a launch before this one"
    notes = (thread, f"{name}: {type}, {verb} at {allocated.place}", cause)
    return Diagnostic(KIND, message, span, notes)


def _earlier_writers(kernel: ir.Function, read: Span, array: str, index: int) -> list[Span]:
    """Return the statements that may write an element of an array before a read: those that precede it, else those of a common loop.

    A statement of the read's own line, and an atomic operation, which reads its element, do not initialise it. Nor do a store to
    another constant element and a statement of the other arm of a branch.
    """
    order = {id(stmt): n for n, stmt in enumerate(statements(kernel.body))}
    readers = {id(s) for s in statements(kernel.body) if (s.span.file, s.span.line) == (read.file, read.line)}
    last = max((order[reader] for reader in readers), default=len(order))
    repeated: set[int] = set()
    exclusive: set[int] = set()
    for stmt in statements(kernel.body):
        parts = [{id(inner) for inner in statements(body)} for body in bodies(stmt)]
        if isinstance(stmt, ir.For | ir.While) and any(part & readers for part in parts):
            repeated = repeated.union(*parts)
        if isinstance(stmt, ir.If) and sum(bool(part & readers) for part in parts) == 1:
            exclusive = exclusive.union(*(part for part in parts if not part & readers))
    writers = [
        stmt
        for stmt in statements(kernel.body)
        if array in _writes(stmt) and not isinstance(effect(stmt), ir.Atomic | ir.CompareSwap)
        and (stmt.span.file, stmt.span.line) != (read.file, read.line) and _may_write(stmt, index)
    ]  # fmt: skip
    preceding = [stmt.span for stmt in writers if order[id(stmt)] < last and id(stmt) not in exclusive]
    return preceding or [stmt.span for stmt in writers if id(stmt) in repeated]


def _may_write(stmt: ir.Stmt, index: int) -> bool:
    """Return whether a statement may write an element: its index is no other constant."""
    if isinstance(stmt, ir.Let) and isinstance(stmt.target, ir.Reg) and not isinstance(stmt.value, ir.Effect):
        element = Name.parse(stmt.target.name).element
        return element is None or int(element) == index
    at = getattr(stmt, "index", None)
    at = at.flat if isinstance(at, ir.Within) else at
    return not isinstance(at, ir.Const) or at.value == index


def _writes(stmt: ir.Stmt) -> tuple[str, ...]:
    """Return the array that a statement writes to."""
    if (array := written_array(stmt)) is not None:
        return (array,)
    if isinstance(stmt, ir.Let) and isinstance(stmt.target, ir.Reg):
        name = Name.parse(stmt.target.name)
        return () if name.element is None else (name.array,)
    return ()
