"""Loops that wait: an iteration differs from the last one only by what other threads have written meanwhile."""

from __future__ import annotations

from ..ir import nodes as ir
from ..ir.walk import effect, once_a_node, registers, statements


@once_a_node
def waits(loop: ir.While | ir.For) -> bool:
    """Whether nothing that the loop does takes it any further: no register is computed from its own earlier value, and no
    memory is changed but by compare-and-swap and exchange, as a lock is taken.

    Such a loop ends soon or never. Any other one may be long and still end.
    """
    if isinstance(loop, ir.For):
        return False
    sources: dict[str, set[str]] = {}
    for stmt in statements((*loop.setup, *loop.body)):
        match stmt:
            case ir.Store():
                return False
            case ir.Let(value=ir.Atomic() as atomic) if atomic.op != "exchange" and not _changes_nothing(atomic):
                return False
            case ir.Let(target=ir.Reg(name=name)):
                sources.setdefault(name, set()).update(r.name for r in registers(stmt))
            case ir.For(var=ir.Reg(name=name)):
                sources.setdefault(name, set()).update(r.name for r in registers(stmt) if r.name != name)
    return not any(name in _reached(name, sources) for name in sources)


def _changes_nothing(atomic: ir.Atomic) -> bool:
    """Whether it is an atomic load: `atomicAdd(&x, 0)`."""
    value = atomic.value
    return atomic.op in ("add", "sub", "or", "xor") and isinstance(value, ir.Const) and value.value == 0


@once_a_node
def sees_others(loop: ir.While | ir.For) -> bool:
    """Whether the loop looks at memory in a way that shows what other threads do meanwhile: by atomic operations, or by
    accesses with an order. A compiler may take a plain load out of the loop."""
    done = [effect(stmt) or stmt for stmt in statements((*getattr(loop, "setup", ()), *loop.body))]
    return any(getattr(one, "order", "weak") not in ("weak", "async") for one in done)


def _reached(name: str, sources: dict[str, set[str]]) -> set[str]:
    """The registers that a register is computed from, through whatever others."""
    found: set[str] = set()
    left = [name]
    while left:
        new = sources.get(left.pop(), set()) - found
        found |= new
        left += new
    return found
