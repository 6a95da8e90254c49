"""Loops that wait: an iteration differs from the last one only by what other threads have written meanwhile."""

from __future__ import annotations

from collections.abc import Iterator

from ..ir import nodes as ir
from ..ir.effects import is_ordered, performed
from ..ir.walk import once_a_node, registers, statements
from .barriers import holds_barrier


@once_a_node
def waits(loop: ir.While | ir.For) -> bool:
    """Whether nothing that the loop does takes it any further: no register is computed from its own earlier value, and no
    memory is changed but by compare-and-swap and exchange, as a lock is taken.

    Such a loop ends soon or never. Any other one may be long and still end.
    """
    return not isinstance(loop, ir.For) and not _furthering(loop)


@once_a_node
def may_stall(loop: ir.While | ir.For) -> frozenset[int]:
    """Of a loop some of whose iterations only wait, such as one that tries a lock and works where it got it: the sites of what takes
    it further. It stalls while none of them is executed. None of another loop.

    Whether it waits for others shows at once: it has a compare-and-swap, an exchange, or a load with an order.
    """
    if isinstance(loop, ir.For) or waits(loop) or holds_barrier(loop):
        return frozenset()
    furthering = _furthering(loop)
    always = {stmt.site for stmt in _always(loop)}
    return frozenset() if furthering & always or not _observes_others(loop) else furthering


def _furthering(loop: ir.While) -> frozenset[int]:
    """The sites of what takes a loop further."""
    sites: set[int] = set()
    sources: dict[str, set[str]] = {}
    for stmt in statements((*loop.setup, *loop.body)):
        match stmt:
            case ir.Store():
                sites.add(stmt.site)
            case ir.Let(value=ir.Atomic() as atomic) if atomic.op != "exchange" and not _changes_nothing(atomic):
                sites.add(stmt.site)
            case ir.Let(target=ir.Reg(name=name)):
                sources.setdefault(name, set()).update(r.name for r in registers(stmt))
            case ir.For(var=ir.Reg(name=name)):
                sources.setdefault(name, set()).update(r.name for r in registers(stmt) if r.name != name)
    own = {name for name in sources if name in _transitive_sources(name, sources)}
    for stmt in statements((*loop.setup, *loop.body)):
        match stmt:
            case ir.Let(target=ir.Reg(name=name)) | ir.For(var=ir.Reg(name=name)) if name in own:
                sites.add(stmt.site)
    return frozenset(sites)


def _always(loop: ir.While) -> Iterator[ir.Stmt]:
    """The statements that each iteration executes, unless lanes leave it: those under no condition."""
    waiting = [*loop.setup, *loop.body]
    while waiting:
        stmt = waiting.pop()
        yield stmt
        if isinstance(stmt, ir.Frame):
            waiting += stmt.body


def _observes_others(loop: ir.While) -> bool:
    """Whether it has an effect that the order of warps shows in, as `passes.barriers` has it."""
    for stmt in statements((*loop.setup, *loop.body)):
        match performed(stmt):
            case ir.CompareSwap() | ir.Atomic(op="exchange"):
                return True
            case ir.Load() as load if is_ordered(load):
                return True
    return False


def _changes_nothing(atomic: ir.Atomic) -> bool:
    """Whether it is an atomic load: `atomicAdd(&x, 0)`."""
    value = atomic.value
    return atomic.op in ("add", "sub", "or", "xor") and isinstance(value, ir.Const) and value.value == 0


@once_a_node
def sees_others(loop: ir.While | ir.For) -> bool:
    """Whether the loop looks at memory in a way that shows what other threads do meanwhile: by atomic operations, or by
    accesses with an order. A compiler may take a plain load out of the loop."""
    inside = map(performed, statements((*getattr(loop, "setup", ()), *loop.body)))
    return any(isinstance(access, ir.Access) and is_ordered(access) for access in inside)


def _transitive_sources(name: str, sources: dict[str, set[str]]) -> set[str]:
    """The registers that a register is computed from, through whatever others."""
    visited: set[str] = set()
    left = [name]
    while left:
        new = sources.get(left.pop(), set()) - visited
        visited |= new
        left += new
    return visited
