"""Where the arrays of a launch's dynamic shared memory lie."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import LaunchError

if TYPE_CHECKING:
    from ..ir import nodes as ir


@dataclass(frozen=True)
class Declared:
    """An array of dynamic shared memory. size: bytes of an element.

    count: its elements as `Counts.of` writes them; None for the array that takes the rest.
    """

    name: str
    size: int
    count: Any


@dataclass(frozen=True)
class Carved:
    """An array of one launch. offset: bytes from the start of dynamic shared memory."""

    offset: int
    length: int

    def shift(self, size: int, unit: int) -> int:
        """The elements of `size` bytes between the unit in which the array starts and its start."""
        return self.offset % unit // size if size < unit else 0


def declared(kernel: ir.Function) -> tuple[Declared, ...]:
    """The arrays of dynamic shared memory of a kernel, in the order of the text."""
    from ..ir import nodes as ir
    from ..ir.walk import statements

    found = {s.array: s for s in statements(kernel.body) if isinstance(s, ir.Alloc) and s.type.space == "shared"}
    return tuple(
        Declared(name, s.type.element.size, None if s.count is None else _written(s.count))
        for name, s in found.items()
        if s.type.length is None
    )


def carve(
    kernel: str, arrays: Sequence[Declared], given: int, sizes: Mapping[str, Any], arguments: Mapping[str, Any]
) -> dict[str, Carved]:
    """The arrays in `given` bytes. sizes: of blocks and grid, as specials are named.

    Raises LaunchError where they do not fit.
    """
    found: dict[str, Carved] = {}
    end, parts = 0, []
    for array in arrays:
        offset = -(-end // array.size) * array.size
        length = max(given - offset, 0) // array.size if array.count is None else _value(array.count, sizes, arguments)
        if length < 0:
            raise LaunchError(f"{kernel}: {array.name} in dynamic shared memory has the count {length}")
        found[array.name] = Carved(offset, length)
        end = offset + (0 if array.count is None else length * array.size)
        parts.append(f"{array.name} {'takes the rest' if array.count is None else f'{length} x {array.size}'}")
    if end > given:
        raise LaunchError(
            f"{kernel} lays out {end} bytes of dynamic shared memory ({', '.join(parts)}), the launch gives {given}: "
            f"pass shared={end}"
        )
    return found


# ------------------------------------------------------------------ counts as data, which the disk keeps
def _written(expr: ir.Expr) -> Any:
    """[type, value], the name of a parameter or size, or [type, operation, operands]."""
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

    def number(part: Any) -> Any:
        match part:
            case str():
                return np.array([arguments[part]]) if part in arguments else np.array([sizes[part]], np.int32)
            case "length", str() as array:
                return np.array([len(arguments[array])], np.int32)
            case type, value:
                return np.array([value], SCALARS[type].dtype)
            case _, operation, operands:
                return TABLE[operation].meaning(*(number(o) for o in operands))
        raise TypeError(part)

    with np.errstate(all="ignore"):
        return int(number(count)[0])
