"""Layout of a launch's dynamic shared memory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import LaunchError

if TYPE_CHECKING:
    from ..ir import nodes as ir


@dataclass(frozen=True)
class DeclaredArray:
    """A declared array of dynamic shared memory. size: bytes of an element. alignment: of the array, in bytes.

    count: elements, encoded as data; None for the array of all remaining bytes.
    """

    name: str
    size: int
    count: Any
    alignment: int


@dataclass(frozen=True)
class PlacedArray:
    """A placed array of one launch. offset: bytes from the start of dynamic shared memory."""

    offset: int
    length: int

    def shift(self, size: int, unit: int) -> int:
        """Return the elements of `size` bytes between the start of the enclosing unit and the array."""
        return self.offset % unit // size if size < unit else 0


def declared_arrays(kernel: ir.Function) -> tuple[DeclaredArray, ...]:
    """Return the arrays of dynamic shared memory of a kernel, in source order."""
    from ..ir import nodes as ir
    from ..ir.walk import statements
    from ..ir.wide import widest_accesses

    widest = widest_accesses(kernel)
    allocations = {s.array: s for s in statements(kernel.body) if isinstance(s, ir.Alloc) and s.type.space == "shared"}
    return tuple(
        DeclaredArray(
            name,
            s.type.element.size,
            None if s.count is None else _written(s.count),
            max(s.type.element.size, widest.get(name, 0)),
        )
        for name, s in allocations.items()
        if s.type.length is None
    )


def place_arrays(
    kernel: str, arrays: Sequence[DeclaredArray], available: int, sizes: Mapping[str, Any], arguments: Mapping[str, Any]
) -> dict[str, PlacedArray]:
    """Place the arrays in `available` bytes. sizes: of block and grid, by the names of specials.

    Raises LaunchError if they do not fit.
    """
    placed: dict[str, PlacedArray] = {}
    end, sizes_text = 0, []
    for array in arrays:
        offset = -(-end // array.alignment) * array.alignment
        length = (
            max(available - offset, 0) // array.size if array.count is None else _value(array.count, sizes, arguments)
        )
        if length < 0:
            raise LaunchError(f"{kernel}: {array.name} in dynamic shared memory has the count {length}")
        placed[array.name] = PlacedArray(offset, length)
        end = offset + (0 if array.count is None else length * array.size)
        sizes_text.append(f"{array.name} {'takes the rest' if array.count is None else f'{length} x {array.size}'}")
    if end > available:
        raise LaunchError(
            f"{kernel} needs {end} bytes of dynamic shared memory ({', '.join(sizes_text)}), the launch gives {available}: "
            f"pass shared={end}"
        )
    return placed


# ------------------------------------------------------------------ counts as data, which the disk keeps
def _written(expr: ir.Expr) -> Any:
    """Encode a count: [type, value], the name of a parameter or size, or [type, operation, operands]."""
    from ..ir import nodes as ir

    match expr:
        case ir.Const():
            return [expr.type.name, expr.value]
        case ir.Reg() | ir.Special():
            return expr.name
        case ir.Extent():
            return ["length", expr.array]
        case ir.Op():
            return [expr.type.name, expr.name, [_written(a) for a in expr.args]]
    raise TypeError(type(expr))


def _value(count: Any, sizes: Mapping[str, Any], arguments: Mapping[str, Any]) -> int:
    from ..ir.ops import TABLE
    from ..language.types import SCALARS

    def number(term: Any) -> Any:
        match term:
            case str():
                return np.array([arguments[term]]) if term in arguments else np.array([sizes[term]], np.int32)
            case "length", str() as array:
                return np.array([len(arguments[array])], np.int32)
            case type, value:
                return np.array([value], SCALARS[type].dtype)
            case _, operation, operands:
                return TABLE[operation].meaning(*(number(o) for o in operands))
        raise TypeError(term)

    with np.errstate(all="ignore"):
        return int(number(count)[0])
