"""Spin loops: consecutive iterations differ only by the writes of other threads."""

from collections.abc import Iterator

from ..ir import nodes as ir
from ..ir.effects import is_ordered, performed
from ..ir.mbarriers import WAITS
from ..ir.walk import once_a_node, registers, statements
from .barriers import holds_barrier


@once_a_node
def waits(loop: ir.While | ir.For) -> bool:
    """Return whether a loop makes no progress of its own: no register is computed from its own earlier value, and only compare-and-swap
    and exchange change memory, as in taking a lock.

    Such a loop ends soon or never. Any other loop may be long and still end.
    """
    return not isinstance(loop, ir.For) and not _progress_sites(loop)


@once_a_node
def may_stall(loop: ir.While | ir.For) -> frozenset[int]:
    """Return the sites that make progress in a loop with iterations that only wait, such as one that tries a lock and works if it holds
    the lock. The loop stalls while none of these sites is executed. Empty for other loops.

    A loop observes other threads if it has a compare-and-swap, an exchange, an atomic addition of 0, or an ordered load.
    """
    if isinstance(loop, ir.For) or waits(loop) or holds_barrier(loop):
        return frozenset()
    progress = _progress_sites(loop)
    always = {stmt.site for stmt in _always(loop)}
    return frozenset() if progress & always or not _observes_others(loop) else progress


def _progress_sites(loop: ir.While) -> frozenset[int]:
    """Return the sites that make progress in a loop."""
    sites: set[int] = set()
    sources: dict[str, set[str]] = {}
    for stmt in statements((*loop.setup, *loop.body)):
        match stmt:
            case ir.Store():
                sites.add(stmt.site)
            case ir.Let(value=ir.Atomic() as atomic) if atomic.op != "exchange" and not changes_nothing(atomic):
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
    """Yield the unconditional statements of each iteration."""
    waiting = [*loop.setup, *loop.body]
    while waiting:
        stmt = waiting.pop()
        yield stmt
        if isinstance(stmt, ir.Frame):
            waiting += stmt.body


def _observes_others(loop: ir.While) -> bool:
    """Return whether the loop has an effect that depends on the order of warps (`passes.barriers`)."""
    for stmt in statements((*loop.setup, *loop.body)):
        match performed(stmt):
            case ir.CompareSwap() | ir.Atomic(op="exchange"):
                return True
            case ir.Atomic() as atomic if changes_nothing(atomic):
                return True
            case ir.Load() as load if is_ordered(load):
                return True
    return False


def changes_nothing(atomic: ir.Atomic) -> bool:
    """Return whether an operation is an atomic load: `atomicAdd(&x, 0)`, or a wait for a barrier."""
    value = atomic.value
    adds = atomic.op in ("add", "sub", "or", "xor")
    return atomic.op in WAITS or (adds and isinstance(value, ir.Const) and value.value == 0)


@once_a_node
def sees_others(loop: ir.While | ir.For) -> bool:
    """Return whether the loop observes other threads, by atomic operations, ordered accesses or a `syncwarp`. A compiler may move a
    plain load out of the loop."""
    inside = list(map(performed, statements((*getattr(loop, "setup", ()), *loop.body))))
    return any(
        isinstance(node, ir.WarpBarrier) or (isinstance(node, ir.Access) and is_ordered(node)) for node in inside
    )


def _transitive_sources(name: str, sources: dict[str, set[str]]) -> set[str]:
    """Return the registers that a register is computed from, directly or indirectly."""
    visited: set[str] = set()
    left = [name]
    while left:
        new = sources.get(left.pop(), set()) - visited
        visited |= new
        left += new
    return visited
