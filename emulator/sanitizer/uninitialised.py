"""Elements that are read before anything was written to them: of shared, local and register memory, and of global
arrays that the launch was given as `empty`.

A kernel writes whole elements, vectors included, so an element is either written or not; the shadow is the WRITTEN
plane of its array's `history`. Shared and local memory begin anew with every block. An atomic operation reads what it
changes: an array that a kernel counts in is given as `zeros`.
"""

from __future__ import annotations

from ..errors import Diagnostic
from ..ir import nodes as ir
from ..ir.walk import effect, statements
from ..language.types import Array
from ..span import Span
from .bounds import user_name

KIND = "uninitialised"


def read(kernel: ir.Function, span: Span, array: str, type: Array, index: int, where: str) -> Diagnostic:
    """The diagnostic of a read of memory."""
    element = f"{user_name(array)}[{index}]"
    return _told(kernel, span, array, type, f"{type.space} read of {element}, which nobody has written", where)


def read_register(kernel: ir.Function, register: ir.Reg, where: str) -> Diagnostic:
    """The diagnostic of a read of an element of a register array."""
    array = register.name.partition("[")[0]
    type = next(s.type for s in statements(kernel.body) if isinstance(s, ir.Alloc) and s.array == array)
    name = user_name(array) + "[" + register.name.partition("[")[2]
    return _told(kernel, register.span, array, type, f"read of register {name}, which was not assigned", where)


def _told(kernel: ir.Function, span: Span, array: str, type: Array, message: str, where: str) -> Diagnostic:
    name = user_name(array)
    allocated = next((s.span for s in statements(kernel.body) if isinstance(s, ir.Alloc) and s.array == array), None)
    if allocated is None:
        allocated = next(p.span for p in kernel.params if p.name == array)
    writers = dict.fromkeys(s.span.line for s in statements(kernel.body) if array in _writes(s))
    lines = ", ".join(str(line) for line in sorted(writers))
    by = f"line{'s' if len(writers) > 1 else ''} {lines} should have written it, and did not" if writers else ""
    verb = "given as empty" if type.space == "global" else "allocated"
    notes = (where, f"{name}: {type}, {verb} at {allocated.place}", by or f"nothing in the kernel writes {name}")
    return Diagnostic(KIND, message, span, notes)


def _writes(stmt: ir.Stmt) -> tuple[str, ...]:
    """The array a statement writes to."""
    found = effect(stmt)
    if isinstance(stmt, ir.Store) or isinstance(found, ir.Atomic | ir.CompareSwap):
        return ((stmt if isinstance(stmt, ir.Store) else found).array,)  # type: ignore[union-attr]
    if isinstance(stmt, ir.Let) and isinstance(stmt.target, ir.Reg):
        return (stmt.target.name.partition("[")[0],) if "[" in stmt.target.name else ()
    return ()
