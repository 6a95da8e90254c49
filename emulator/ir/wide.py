"""Accesses of another type than their array's element.

Such an access reads or writes the bits of `type.size // element.size` consecutive elements. Its index counts in units of its own type:
it is aligned by construction, and the front end checks an offset that it divides.
"""

from __future__ import annotations

from ..language.tensor_maps import SHARED_ALIGNMENT, UNIT
from ..language.types import BOOL, I32, I64, Array, Scalar, Value
from ..span import Span
from . import nodes as ir
from .effects import accesses
from .walk import statements

SWIZZLED_BYTES = 1024


def access_type(access: ir.Access) -> Value:
    """Return the type of the value that an access reads or writes."""
    type = access.value.type if isinstance(access, ir.Store) else access.type
    assert type is not None
    return type


def width(access: ir.Access, array: Array) -> int:
    """Return the number of elements of the array that an access reads or writes."""
    return access_type(access).size // array.element.size


def accessed_array(access: ir.Access, array: Array) -> Array:
    """Return the array type of the memory in units of an access."""
    type = access_type(access)
    if type == array.element:
        return array
    length = array.length
    shape = None if length is None else (length // width(access, array),)
    return Array(type, shape, array.space)


def widest_accesses(kernel: ir.Function) -> dict[str, int]:
    """Return the bytes of the widest access of each array, of those with an access wider than an element.

    A matrix of `wgmma`, and a swizzled box of a tensor, is one access of the bytes after which its swizzle repeats.
    """
    types = array_types(kernel)
    results: dict[str, int] = {}
    for stmt in statements(kernel.body):
        if isinstance(stmt, ir.BulkCopy):
            results |= {array.name: max(16, results.get(array.name, 0)) for array in (stmt.to, stmt.source)}
        if isinstance(stmt, ir.TensorCopy):
            size = SWIZZLED_BYTES if stmt.form.swizzle else SHARED_ALIGNMENT
            results[stmt.shared.name] = max(size, results.get(stmt.shared.name, 0))
            results[stmt.tensor.name] = max(UNIT, results.get(stmt.tensor.name, 0))
        if isinstance(stmt, ir.Wgmma):
            results |= {array.name: SWIZZLED_BYTES for array in (stmt.in_a, stmt.in_b) if array is not None}
    for _, access in accesses(kernel):
        size = access_type(access).size
        if size > max(types[access.array].element.size, results.get(access.array, 0)):
            results[access.array] = size
    return results


def array_types(function: ir.Function) -> dict[str, Array]:
    """Return the arrays of a function, by name."""
    types = {param.name: param.type for param in function.params if isinstance(param.type, Array)}
    return types | {s.array: s.type for s in statements(function.body) if isinstance(s, ir.Alloc)}


def aligned_index(offset: ir.Expr, unit: int, size: int) -> tuple[ir.Expr, ir.Expr | None]:
    """Return the index of an access of `size` bytes, and the condition that it is aligned; None where it always is.

    offset: from the start of the array, in units of `unit` bytes. Sizes are powers of two, and `size` is not below `unit`. An offset
    is divided as a number without overflow, as an address has 64 bits.
    """
    ratio = size // unit
    exact = _quotient(offset, ratio)
    if exact is not None:
        return exact, None
    type = offset.type
    assert isinstance(type, Scalar)
    rest = ir.Op("and", (offset, ir.Const(ratio - 1, type, offset.span)), type, offset.span)
    index = ir.Op("shr", (offset, ir.Const(ratio.bit_length() - 1, type, offset.span)), type, offset.span)
    return index, ir.Op("eq", (rest, ir.Const(0, type, offset.span)), BOOL, offset.span)


def alignment_check(array: str, offset: ir.Expr, unit: int, size: int, aligned: ir.Expr, span: Span) -> ir.Check:
    """Return the check of an access for which `aligned_index` has a condition."""
    shown = (offset, ir.Const(unit, I32, span), ir.Const(size, I32, span))
    return ir.Check("alignment", aligned, ir.Extent(array, I32, span), shown, span)


def null_check(span: Span) -> ir.Check:
    """Return the check of an access through a null pointer, which fails."""
    return ir.Check("bounds", ir.Const(False, BOOL, span), ir.Const(0, I64, span), (), span)


def _quotient(offset: ir.Expr, ratio: int) -> ir.Expr | None:
    """Return an offset divided by a power of two if its form shows that nothing remains."""
    if ratio == 1:
        return offset
    match offset:
        case ir.Const(value=value) if value % ratio == 0:
            return ir.Const(int(value) // ratio, offset.type, offset.span)
        case ir.Op(name="mul", args=(factor, ir.Const(value=value) as constant)) if value % ratio == 0:
            return _product(factor, int(value) // ratio, constant, offset)
        case ir.Op(name="mul", args=(ir.Const(value=value) as constant, factor)) if value % ratio == 0:
            return _product(factor, int(value) // ratio, constant, offset)
        case ir.Op(name="shl", args=(shifted, ir.Const(value=count) as constant)) if (1 << int(count)) % ratio == 0:
            rest = int(count) - (ratio.bit_length() - 1)
            return ir.Op("shl", (shifted, ir.Const(rest, constant.type, offset.span)), offset.type, offset.span)
        case ir.Op(name="add" | "sub", args=(first, second)):
            terms = _quotient(first, ratio), _quotient(second, ratio)
            if terms[0] is not None and terms[1] is not None:
                return ir.Op(offset.name, (terms[0], terms[1]), offset.type, offset.span)
        case ir.Op(name="neg" | "cast_i64" | "cast_u64" | "cast_i32" | "cast_u32", args=(inner,)):
            whole = isinstance(inner.type, Scalar) and inner.type.is_integer and inner.type.size >= 4
            quotient = _quotient(inner, ratio) if whole else None
            if quotient is not None:
                return ir.Op(offset.name, (quotient,), offset.type, offset.span)
    return None


def _product(factor: ir.Expr, value: int, constant: ir.Const, product: ir.Op) -> ir.Expr:
    if value == 1:
        return factor
    return ir.Op("mul", (factor, ir.Const(value, constant.type, constant.span)), product.type, product.span)
