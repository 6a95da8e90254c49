"""Traversal of the tree: children, bodies, all statements, and rebuilding from the leaves up."""

from __future__ import annotations

import re
import weakref
from collections.abc import Callable, Iterator
from dataclasses import fields, replace
from functools import wraps
from typing import Any, TypeVar, get_args

from . import nodes as ir

N = TypeVar("N")
R = TypeVar("R")


def once_a_node(property: Callable[[Any], R]) -> Callable[[Any], R]:
    """Cache a property of nodes for as long as they live."""
    cache: weakref.WeakKeyDictionary[Any, R] = weakref.WeakKeyDictionary()

    @wraps(property)
    def remembered(node: Any) -> R:
        value = cache.get(node, cache)
        if value is cache:
            value = cache[node] = property(node)
        return value  # type: ignore[return-value]

    return remembered


_EXPRESSIONS, _EFFECTS = frozenset(get_args(ir.Expr)), frozenset(get_args(ir.Effect))
_NODES = {name for name, value in vars(ir).items() if getattr(value, "__module__", "") == ir.__name__}
_NODES |= {"Expr", "Effect", "Stmt", "Body"}


_FIELDS: dict[type, tuple[str, ...]] = {}


def _fields(cls: type[Any]) -> tuple[str, ...]:
    """Fields of a node class that may hold nodes, by their annotations."""
    if cls not in _FIELDS:
        words = {f.name: re.findall(r"\w+", str(f.type)) for f in fields(cls)}
        _FIELDS[cls] = tuple(name for name in words if not _NODES.isdisjoint(words[name]))
    return _FIELDS[cls]


def children(node: Any) -> Iterator[ir.Expr]:
    """The expressions read directly under an expression, an effect or a statement (bodies left out)."""
    for name in _fields(type(node)):
        value = getattr(node, name)
        if name in ("target", "var"):  # written, not read; but an Item's index is read
            if isinstance(value, ir.Item):
                yield value.index
        elif type(value) in _EXPRESSIONS:
            yield value
        elif type(value) in _EFFECTS:
            yield from children(value)
        elif isinstance(value, tuple):
            yield from (v for v in value if type(v) in _EXPRESSIONS)


_BODIES: dict[type, tuple[str, ...]] = {
    ir.If: ("then", "orelse"),
    ir.While: ("setup", "body"),
    ir.For: ("body",),
    ir.Frame: ("body",),
}


def bodies(stmt: ir.Stmt) -> tuple[ir.Body, ...]:
    """The statement lists directly under a statement, in the order they run."""
    return tuple(getattr(stmt, name) for name in _BODIES.get(type(stmt), ()))


def _operands(cls: type[Any]) -> tuple[str, ...]:
    """Fields of a statement's class that may hold nodes, without its bodies."""
    return tuple(name for name in _fields(cls) if name not in _BODIES.get(cls, ()))


def map_bodies(stmt: N, change: Callable[[ir.Body], ir.Body]) -> N:
    """The statement with each statement list directly under it changed, in the order they run."""
    names = _BODIES.get(type(stmt), ())
    return replace(stmt, **{name: change(getattr(stmt, name)) for name in names}) if names else stmt  # type: ignore[type-var]


def statements(body: ir.Body) -> Iterator[ir.Stmt]:
    """Every statement of a body, outer before inner."""
    for stmt in body:
        yield stmt
        for inner in bodies(stmt):
            yield from statements(inner)


def expressions(node: Any) -> Iterator[ir.Expr]:
    """Every expression under a node (bodies left out), outer before inner."""
    for child in children(node):
        yield child
        yield from expressions(child)


def registers(node: Any) -> Iterator[ir.Reg]:
    """Every register read under a node (bodies left out)."""
    return (e for e in expressions(node) if isinstance(e, ir.Reg))


def effect(stmt: ir.Stmt) -> ir.Effect | None:
    """The effect a Let performs."""
    return stmt.value if isinstance(stmt, ir.Let) and isinstance(stmt.value, ir.Effect) else None


def rewrite(node: N, change: Callable[[Any], Any]) -> N:
    """Rebuild an expression, effect or statement bottom up; `change` sees each node under it, and itself.

    Bodies are rewritten too. Unchanged nodes are reused.
    """
    return _rewrite(node, change, _fields(type(node)))


def rewrite_operands(stmt: N, change: Callable[[Any], Any]) -> N:
    """`rewrite` of a statement without its bodies."""
    return _rewrite(stmt, change, _operands(type(stmt)))


def rebuild(node: N, visit: Callable[[Any], Any]) -> N:
    """Return an expression or effect with each node directly under it replaced; the same node if none changes."""
    return _rebuilt(node, visit, _fields(type(node)))


def rebuild_operands(stmt: N, visit: Callable[[Any], Any]) -> N:
    """`rebuild` of a statement without its bodies."""
    return _rebuilt(stmt, visit, _operands(type(stmt)))


def flattened(stmt: N) -> N:
    """Return the statement with accesses by their flat indices alone; its bodies are unchanged."""
    return rewrite_operands(stmt, lambda node: node.flat if isinstance(node, ir.Within) else node)


def _rewrite(node: N, change: Callable[[Any], Any], names: tuple[str, ...]) -> N:
    return change(_rebuilt(node, lambda inner: rewrite(inner, change), names))  # type: ignore[no-any-return]


def _rebuilt(node: N, visit: Callable[[Any], Any], names: tuple[str, ...]) -> N:
    """Return a node with the nodes in these fields replaced; the same node if none changes."""
    updates = {}
    for name in names:
        value = getattr(node, name)
        if isinstance(value, tuple):
            new: Any = tuple(visit(v) if _is_node(v) else v for v in value)
            if any(a is not b for a, b in zip(new, value, strict=True)):
                updates[name] = new
        elif _is_node(value):
            new = visit(value)
            if new is not value:
                updates[name] = new
    return replace(node, **updates) if updates else node  # type: ignore[type-var]


def _is_node(value: object) -> bool:
    return type(value).__module__ == ir.__name__


def declared_bytes(program: ir.Program, space: str) -> int:
    """Return the bytes of the arrays that a kernel declares in shared, local or constant memory, each aligned to its elements."""
    end = 0
    for statement in statements(program.kernel.body):
        if isinstance(statement, ir.Alloc) and statement.type.space == space:
            size = statement.type.element.size
            end = -(-end // size) * size + size * (statement.type.length or 0)
    return end


def same(a: Any, b: Any) -> bool:
    """Return whether two nodes are equal, spans ignored."""
    if isinstance(a, tuple):
        return isinstance(b, tuple) and len(a) == len(b) and all(map(same, a, b))
    if not isinstance(a, ir.Expr | ir.Effect):
        return type(a) is type(b) and bool(a == b)
    if type(a) is not type(b):
        return False
    return all(same(getattr(a, f.name), getattr(b, f.name)) for f in fields(a) if f.name != "span")
