"""Loops that wait: an iteration differs from the last one only by what other threads have written meanwhile."""

from __future__ import annotations

from ..ir import nodes as ir
from ..ir.walk import once_a_node, registers, statements


@once_a_node
def waits(loop: ir.While | ir.For) -> bool:
    """Whether nothing that the loop does takes it any further: no register is computed from its own earlier value, and no
    memory is written but by compare-and-swap and exchange, as a lock is taken.

    Such a loop ends soon or never. Any other one may be long and still end.
    """
    if isinstance(loop, ir.For):
        return False
    sources: dict[str, set[str]] = {}
    for stmt in statements((*loop.setup, *loop.body)):
        match stmt:
            case ir.Store():
                return False
            case ir.Let(value=ir.Atomic(op=op)) if op != "exchange":
                return False
            case ir.Let(target=ir.Reg(name=name)):
                sources.setdefault(name, set()).update(r.name for r in registers(stmt))
            case ir.For(var=ir.Reg(name=name)):
                sources.setdefault(name, set()).update(r.name for r in registers(stmt) if r.name != name)
    return not any(name in _reached(name, sources) for name in sources)


def _reached(name: str, sources: dict[str, set[str]]) -> set[str]:
    """The registers that a register is computed from, through whatever others."""
    found: set[str] = set()
    left = [name]
    while left:
        new = sources.get(left.pop(), set()) - found
        found |= new
        left += new
    return found
