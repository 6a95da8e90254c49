"""Declarations of a kernel's shared arrays: separate static arrays, or slices of one dynamic allocation."""

from collections.abc import Iterator, Mapping

from ...ir import nodes as ir
from ...language.types import I32
from .expressions import Expressions
from .names import Names
from .operators import INFIX, type_name

UNIT = 16  # bytes: the alignment of an array, unless an access is wider
MOST_STATIC = 48 * 1024  # bytes


def too_large(shared: tuple[ir.Alloc, ...]) -> bool:
    """Whether the arrays are too large together to be static."""
    return sum(map(_bytes, shared)) > MOST_STATIC


def carved_bytes(shared: tuple[ir.Alloc, ...], unit: int) -> int:
    """Dynamic shared memory that the launch must add for arrays of constant size. unit: their alignment."""
    return sum(_bytes(alloc, unit) for alloc in shared) if too_large(shared) else 0


def alignment(widest: Mapping[str, int]) -> int:
    """Return the alignment of arrays in one allocation. widest: bytes of the widest accesses."""
    return max((UNIT, *widest.values()))


def declarations(shared: tuple[ir.Alloc, ...], expr: Expressions, scope: Names) -> Iterator[tuple[str, ir.Alloc]]:
    """Yield the lines that declare the arrays, each with its array. Arrays of constant size precede the others."""
    fixed = [a for a in shared if a.type.length is not None]
    dynamic = [a for a in shared if a.type.length is None]
    together = too_large(shared)
    if not together:
        for alloc in fixed:
            type = expr.declared(alloc.array, alloc.type.element)
            yield f"__shared__ {type} {expr.names[alloc.array]}[{alloc.type.length}];", alloc
    if not together and len(dynamic) == 1 and dynamic[0].count is None:
        (alloc,) = dynamic
        type = type_name(alloc.type.element)
        yield f"extern __shared__ __align__({alignment(expr.widest)}) {type} {expr.names[alloc.array]}[];", alloc
        return
    if not together and not dynamic:
        return
    memory, start, unit = scope.new("shared_memory"), 0, alignment(expr.widest)
    yield f"extern __shared__ __align__({unit}) unsigned char {memory}[];", shared[0]
    for alloc in fixed if together else ():
        yield f"{_declaration(alloc, expr, memory, start)}  // {alloc.type.length} elements", alloc
        start += _bytes(alloc, unit)
    yield from _dynamic(dynamic, expr, scope, memory, start)


def _dynamic(
    arrays: list[ir.Alloc], expr: Expressions, scope: Names, memory: str, end: int | str
) -> Iterator[tuple[str, ir.Alloc]]:
    """Each array after the one before it, aligned to its type. end: bytes before the first one, or the text of them."""
    aligned = UNIT  # divides the end
    for alloc in arrays:
        size = alloc.type.element.size
        step = max(size, expr.widest.get(alloc.array, 0))
        if isinstance(end, int):
            start: int | str = -(-end // step) * step
        else:
            start = scope.new(f"{expr.names[alloc.array]}_start")
            rounded = end if step <= aligned else f"({end} + {step - 1}) & ~{step - 1}"
            yield f"const int {start} = {rounded};", alloc
        yield _declaration(alloc, expr, memory, start), alloc
        count = alloc.count
        if isinstance(start, int) and isinstance(count, ir.Const):
            end = start + int(count.value) * size
        elif count is not None:
            before = f"{start} + " if start else ""
            end, aligned = f"{before}{_times(size, count, expr)}", size


def _times(size: int, count: ir.Expr, expr: Expressions) -> str:
    """The bytes of so many elements, as int."""
    if isinstance(count, ir.Const):
        return str(size * int(count.value))
    if size == 1:
        return expr(count, INFIX["+"] + 1, "+") if count.type is I32 else f"int({expr(count)})"
    return f"{size} * {expr(count, INFIX['*'] + 1, '*')}" if count.type is I32 else f"{size} * int({expr(count)})"


def _declaration(alloc: ir.Alloc, expr: Expressions, memory: str, start: int | str) -> str:
    name, type = expr.names[alloc.array], type_name(alloc.type.element)
    return f"{type}* {name} = reinterpret_cast<{type}*>({memory} + {start});"


def _bytes(alloc: ir.Alloc, unit: int = UNIT) -> int:
    """Return the bytes of a shared array, rounded up to the alignment of the next; 0 for unknown lengths."""
    size = alloc.type.element.size * (alloc.type.length or 0)
    return -(-size // unit) * unit
