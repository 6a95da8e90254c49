"""The bounds checker: diagnostics of accesses outside an array, and of indices that leave their row of a matrix."""

from __future__ import annotations

from collections.abc import Sequence

from ..errors import Diagnostic
from ..ir import nodes as ir
from ..ir.access import Operation
from ..ir.names import Name
from ..ir.walk import expressions
from ..language.types import Array
from ..span import Span


def user_name(name: str) -> str:
    """A register or array as the user wrote it."""
    return Name.of(name).user


_DONE = {Operation.LOAD: "read", Operation.STORE: "write", Operation.ATOMIC: "atomic", Operation.REDUCTION: "atomic"}


def out_of_bounds(
    operation: Operation,
    span: Span,
    array: str,
    type: Array,
    length: int,
    index: int,
    where: str,
    values: dict[str, object],
    allocated: Span,
) -> Diagnostic:
    """The diagnostic of one access. `values` are the registers of the index."""
    name = user_name(array)
    elements = f"{length} element{'' if length == 1 else 's'}"
    message = f"{type.space} {_DONE[operation]} out of bounds: {name}[{index}], but {name} has {elements}"
    notes = [where]
    if values:
        notes.append(", ".join(f"{n} = {v}" for n, v in values.items()))
    verb = "a parameter" if type.space == "global" else "allocated"
    notes.append(f"{name}: {type.space} {type.element}[{length}], {verb} at {allocated.place}")
    return Diagnostic("bounds", message, span, tuple(notes))


def index_registers(index: ir.Expr) -> list[str]:
    """Registers an index is made of, named by the user, in order of appearance."""
    names = [e.name for e in (index, *expressions(index)) if isinstance(e, ir.Reg)]
    return list(dict.fromkeys(n for n in names if not Name.of(n).temporary))


def row_overrun(check: ir.Check, kernel: ir.Function, values: Sequence[object], where: str) -> Diagnostic:
    """The diagnostic of one index of several that leaves its own extent; `values` are the index and the extent."""
    index, extent = values
    message = f"index {index} leaves its row of {extent}: the access is to another row of the array"
    return Diagnostic("bounds", message, check.span, (where, "each index of a matrix has a range of its own"))
