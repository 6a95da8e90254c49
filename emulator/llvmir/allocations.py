"""Pointers that memory has as addresses of a device: the memory of all allocations is one array, and a table has the allocation of each
granule of addresses."""

from ..ir import nodes as ir
from ..ir.nodes import UNCOUNTED
from ..language.types import I32, I64, U64, Array
from .arithmetic import cast, constant, operation, selected
from .emitting import Emitter

ARENA = 0x7D00_0000_0000
"""The address of the first byte of the memory of all allocations."""
GRANULE = 512
"""Bytes of a row of the table: an allocation begins with a row."""
MEMORY, TABLE = "device_memory@", "allocations@"
"""Arrays of the program: the memory, and start and size of the allocation of each granule, zeros outside of allocations."""
TABLE_TYPE = Array(I64, None, "texture")


def element_of(emitter: Emitter, address: ir.Expr, size: int) -> ir.Expr:
    """Return the index of an element of `size` bytes in the memory of all allocations, with its index and the elements of its
    allocation. These operations are not counted: a GPU has the address."""
    span, shift = emitter.span, constant(size.bit_length() - 1, I32, emitter.span)

    def let(value: ir.Expr | ir.Effect) -> ir.Expr:
        register = emitter.register("allocation", I64)
        emitter.emit(ir.Let(register, value, span, UNCOUNTED))
        return register

    def number(value: int) -> ir.Expr:
        return constant(value, I64, span)

    inside = let(operation("sub", address, number(ARENA)))
    row = let(operation("shr", inside, constant(GRANULE.bit_length() - 1, I32, span)))
    last = let(operation("sub", cast(ir.Extent(TABLE, I32, span), I64), number(2)))
    is_inside = operation("lt", cast(operation("mul", row, number(2)), U64), cast(last, U64))
    first = let(selected(is_inside, operation("mul", row, number(2)), last))
    start = let(ir.Load(TABLE, first, I64, span))
    whole = let(ir.Load(TABLE, operation("add", first, number(1)), I64, span))
    index = let(operation("shr", operation("sub", address, start), shift))
    flat = let(operation("shr", inside, shift))
    extent = let(operation("shr", whole, shift))
    return ir.Within(flat, "allocation", (index,), (extent,), I64, span)
