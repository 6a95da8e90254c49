"""Placement of C++ declarations: at the first assignment if its scope contains all uses, else in the innermost block
with all uses."""

from collections import defaultdict
from dataclasses import dataclass, field
from typing import Any

from ...ir import nodes as ir
from ...ir.walk import bodies, once_a_node
from .fold import Update, reads


@dataclass
class Places:
    """By id of a statement: the variables declared before it; whether its own assignment declares."""

    before: dict[int, list[str]] = field(default_factory=lambda: defaultdict(list))
    at_assignment: set[int] = field(default_factory=set)


def places(body: ir.Body, variables: list[str]) -> Places:
    """Where to declare each of the variables: registers, register arrays and local arrays."""
    result = Places()
    for name in variables:
        _place(body, name, result)
    return result


def _place(body: ir.Body, name: str, result: Places) -> None:
    touching = [s for s in body if _occurs(s, name)]
    if not touching:
        return
    first = touching[0]
    if _defines(first, name) and not _reads(first, name):
        result.at_assignment.add(id(first))
        return
    inner = [b for s in touching for b in _blocks(s, name)]
    direct = any(_defines(s, name) or _reads(s, name) for s in touching)
    if direct or any(_flow(b, name, False)[1] for b in inner):
        result.before[id(first)].append(name)
        return
    for block in inner:
        _place(block, name, result)


@once_a_node
def _names(node: Any) -> set[str]:
    """Registers and arrays a statement reads or, for arrays, writes (bodies left out)."""
    result = {n.name for n in reads(node) if isinstance(n, ir.Reg | ir.ArrayRef)}
    result |= {n.array for n in reads(node) if isinstance(n, ir.Item | ir.Access)}
    return result | ({node.array} if isinstance(node, ir.Store | Update) else set())


def _reads(stmt: Any, name: str) -> bool:
    return name in _names(stmt)


def _defines(stmt: Any, name: str) -> bool:
    if isinstance(stmt, ir.Alloc):
        return stmt.array == name
    return isinstance(stmt, ir.Let) and isinstance(stmt.target, ir.Reg) and stmt.target.name == name


def _blocks(stmt: Any, name: str) -> tuple[ir.Body, ...]:
    """The bodies under a statement where the name means the same as outside."""
    return () if isinstance(stmt, ir.For) and stmt.var.name == name else bodies(stmt)


def _occurs(stmt: Any, name: str) -> bool:
    return _defines(stmt, name) or _reads(stmt, name) or any(_occurs(s, name) for b in _blocks(stmt, name) for s in b)


def _flow(body: ir.Body, name: str, defined: bool) -> tuple[bool, bool]:
    """Return whether the variable has a value after the body, given whether before; and whether it may be read without one."""
    bare = False
    for stmt in body:
        bare |= not defined and _reads(stmt, name)
        inner = [_flow(b, name, defined) for b in _blocks(stmt, name)]
        bare |= any(exposed for _, exposed in inner)
        if isinstance(stmt, ir.If):
            defined = all(after for after, _ in inner)
        elif _defines(stmt, name) or isinstance(stmt, ir.Break | ir.Continue | ir.Return):
            defined = True
    return defined, bare
