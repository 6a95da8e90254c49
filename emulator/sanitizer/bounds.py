"""Bounds checker: diagnostics of accesses outside an array, of misaligned ones, and of views that begin outside theirs."""

from collections.abc import Sequence

from ..errors import Diagnostic
from ..ir import nodes as ir
from ..ir.access import FREED, OUTSIDE, Operation
from ..ir.names import Name
from ..ir.walk import expressions
from ..ir.wide import access_type, width
from ..language.types import Array
from ..span import Span

_NULL = "access through a null pointer"
_NULL_BYTES = 4096
"""Bytes from the address 0 on that an offset from a null pointer reaches."""


def user_name(name: str) -> str:
    """Return the name of a register or array in the source."""
    return Name.parse(name).user


_VERBS = {
    Operation.LOAD: "read",
    Operation.STORE: "write",
    Operation.ATOMIC: "atomic",
    Operation.REDUCTION: "atomic",
    Operation.COUNT: "atomic",
    Operation.SWAP: "atomic",
    Operation.COPY: "write",
}


def out_of_bounds(
    operation: Operation,
    node: ir.Access,
    type: Array,
    numbers: Sequence[int],
    thread: str,
    values: dict[str, object],
    allocated: Span,
) -> Diagnostic:
    """Return the diagnostic of one access.

    numbers: its flat index in units of its own type, the elements of the array, and `shown_dimensions`. values: the registers of the
    index.
    """
    name, shown = user_name(node.array), user_name(node.array)
    if node.block is not None:
        *numbers, rank, blocks = numbers
        if not 0 <= rank < blocks:
            message = f"{type.space} {_VERBS[operation]} in block {rank} of the cluster, which has {blocks} blocks"
            return Diagnostic("bounds", message, node.span, (thread,))
    index, length, *dimensions = numbers
    first = index * width(node, type)
    what = f"{name}[{max(first, length) if first >= 0 else first}], but {name} has {_elements(length)}"
    extents = [length]
    notes = [thread]
    if isinstance(node.index, ir.Within) and (left := _dimension_out_of_bounds(node.index, dimensions)):
        what, shown = left, node.index.shown
        extents = dimensions[len(dimensions) // 2 :]
        if extents == [0] and (offset := dimensions[0] * access_type(node).size) < -FREED // 2:
            message = _released(f"{type.space} {_VERBS[operation]}", offset)
            return Diagnostic("bounds", message, node.span, tuple(notes))
    if values:
        notes.append(", ".join(f"{n} = {v}" for n, v in values.items()))
    verb = "a parameter" if type.space == "global" else "allocated"
    form = f"{type.space} {type.element}[{', '.join(map(str, extents))}]"
    notes.append(
        f"{name}: {form}, {verb} at {allocated.place}"
        if shown == name
        else f"{shown}: {form}, a view of {name}, {verb} at {allocated.place}"
    )
    return Diagnostic("bounds", f"{type.space} {_VERBS[operation]} out of bounds: {what}", node.span, tuple(notes))


def _released(access: str, offset: int) -> str:
    """Return the message of an access outside of allocations. offset: in bytes, as `access.OUTSIDE` and `FREED` have it."""
    if offset >= -FREED:
        return f"{access} after free: byte {offset + FREED} of a freed allocation"
    if abs(address := offset + OUTSIDE) < _NULL_BYTES:
        return _NULL
    return f"{access} outside of allocations: no allocation has the address {address:#x}"


def _elements(count: int) -> str:
    return f"{count} element{'' if count == 1 else 's'}"


def _dimension_out_of_bounds(within: ir.Within, numbers: Sequence[int]) -> str | None:
    """Return a text about the first dimension out of bounds. numbers: `shown_dimensions`."""
    values = iter(numbers)
    indices = [None if index is None else next(values) for index in within.index]
    extents = list(values)
    for dimension, (index, extent) in enumerate(zip(indices, extents, strict=True)):
        if index is not None and not 0 <= index < extent:
            place = ", ".join(":" if p is None else str(p) for p in indices)
            return f"{within.shown}[{place}], but {within.shown} has {_extent(extent, dimension, len(indices))}"
    return None


def _extent(extent: int, dimension: int, dimensions: int) -> str:
    """Return `4 columns (dimension 1)`."""
    if dimensions == 1:
        return _elements(extent)
    if dimensions == 2:
        word = ("row", "column")[dimension]
        return f"{extent} {word}{'' if extent == 1 else 's'} (dimension {dimension})"
    return f"{_elements(extent)} in dimension {dimension}"


def index_registers(index: ir.Expr) -> list[str]:
    """Return the named registers of an index, in order of appearance."""
    names = [e.name for e in (index, *expressions(index)) if isinstance(e, ir.Reg)]
    return list(dict.fromkeys(n for n in names if not Name.parse(n).temporary))


def bad_view(check: ir.Check, kernel: ir.Function, values: Sequence[object], thread: str) -> Diagnostic:
    """Return the diagnostic of a view. values: `shown_dimensions` of the Within that is checked; for a slice, or a box of a tensor that
    is written, its start; none for an access through a null pointer."""
    numbers = [int(str(value)) for value in values]
    if not numbers:
        return Diagnostic("bounds", _NULL, check.span, (thread,))
    if isinstance(check.subject, ir.Within):
        return Diagnostic(
            "bounds", f"view out of bounds: {_dimension_out_of_bounds(check.subject, numbers)}", check.span, (thread,)
        )
    if isinstance(check.subject, ir.Extent):
        message = f"a box of {user_name(check.subject.array)} that is written begins at coordinate {numbers[0]}"
        return Diagnostic(
            "bounds", message, check.span, (thread, "only boxes that are read may begin before the tensor")
        )
    advice = "arrays do not wrap around in a kernel"
    return Diagnostic("bounds", f"a slice begins at {numbers[0]}, before the array", check.span, (thread, advice))


def misaligned(check: ir.Check, kernel: ir.Function, values: Sequence[object], thread: str) -> Diagnostic:
    """Return the diagnostic of a misaligned access. values: of `wide.alignment_check`."""
    assert isinstance(check.subject, ir.Extent)
    offset, unit, size = (int(str(value)) for value in values)
    name = user_name(check.subject.array)
    message = f"misaligned access: {size} bytes from byte {offset * unit} of {name}, not a multiple of {size}"
    return Diagnostic("alignment", message, check.span, (thread,))
