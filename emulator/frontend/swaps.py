"""Arrays swapped at run time: `a, b = b, a` of two names, as in double buffering.

A swapped name refers to a variable array, and a register selects one of the declared arrays. After reading, each
access to a variable array becomes a branch over the candidates, so every engine and checker sees an access to the
real array.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from ..ir import nodes as ir
from ..ir.names import variable_array, which_array
from ..ir.walk import map_bodies, rewrite_operands
from ..language.types import BOOL, I32
from ..span import Span
from .values import ArrayValue, SourceError

_ACCESSES = (ir.Load, ir.Store, ir.Atomic, ir.CompareSwap)


@dataclass
class Swaps:
    """The variable arrays of one function.

    partners: by name, the names it is permuted with, itself included. arrays: by name, its declared array.
    """

    partners: dict[str, list[str]]
    arrays: dict[str, ArrayValue] = field(default_factory=dict)
    copies: int = 0

    @staticmethod
    def find(function: ast.FunctionDef) -> Swaps:
        """Return the groups of names permuted by assignments such as `a, b = b, a`."""
        partners: dict[str, list[str]] = {}
        for node in ast.walk(function):
            names = _permuted(node)
            if names:
                group = list(dict.fromkeys(n for name in names for n in partners.get(name, [name])))
                partners |= dict.fromkeys(group, group)
        return Swaps(partners)

    def declared(self, name: str, array: ArrayValue, emit: Callable[[ir.Stmt], None], span: Span) -> ArrayValue:
        """Return the array of a declared name: a variable array if the name is swapped."""
        plain = array.is_whole or all(
            array.extents[n].__class__.__name__ == "Literal" for n in range(len(array.extents))
        )
        if name not in self.partners or array.type.space not in ("global", "shared", "local") or not plain:
            return array
        self.arrays[name] = array
        number = ir.Const(self.partners[name].index(name), I32, span)
        emit(ir.Let(_which(name, span), number, span))
        virtual = variable_array(name)
        if array.is_whole and array.type.length is None:
            return replace(array, name=virtual, extents=(ir.Extent(virtual, I32, span),))
        return replace(array, name=virtual)

    def swap(self, node: ast.Assign, emit: Callable[[ir.Stmt], None], span: Span) -> bool:
        """Read `a, b = b, a` of variable arrays. Return whether the statement is one. Raises SourceError if the arrays differ."""
        if not (set(_permuted(node)) & self.arrays.keys()):
            return False
        names, targets = _names(node.value), _names(node.targets[0])
        missing = [name for name in self.partners[names[0]] if name not in self.arrays]
        if missing:
            raise SourceError(
                span, f"{missing[0]} is no array of one dimension, or of a constant shape, declared before"
            )
        first, *rest = (self.arrays[name] for name in self.partners[names[0]])
        for other in rest:
            own, expected = (
                (a.type.element, a.type.space, a.type.shape, len(a.extents), a.type.length is None)
                for a in (first, other)
            )
            if own != expected:
                message = f"{first.shown} is {first.type}, {other.shown} is {other.type}"
                raise SourceError(span, message, "only arrays of one type, space and shape change places")
        saved = [ir.Reg(f"{which_array(name)}@{number}", I32, span) for number, name in enumerate(names)]
        for register, name in zip(saved, names, strict=True):
            emit(ir.Let(register, _which(name, span), span))
        for target, register in zip(targets, saved, strict=True):
            emit(ir.Let(_which(target, span), register, span))
        return True

    def expanded(self, body: ir.Body) -> ir.Body:
        """Return the statements with each variable array replaced by its candidates."""
        if not self.arrays:
            return body
        return tuple(new for unit in _units(body) for new in self._unit(unit))

    def _unit(self, stmts: ir.Body) -> ir.Body:
        """Return the replacement of statements that must not be separated."""
        stmts = tuple(map_bodies(rewrite_operands(stmt, self._extent), self.expanded) for stmt in stmts)
        accessed = {array for stmt in stmts for array in _accessed(stmt)}
        name = next((n for n in self.arrays if variable_array(n) in accessed), None)
        return stmts if name is None else self._choice(stmts, name, self.partners[name])

    def _choice(self, stmts: ir.Body, name: str, candidates: list[str]) -> ir.Body:
        """Return the statements on the first candidate, else on one of the others."""
        first, *rest = candidates
        real = tuple(_retarget(stmt, variable_array(name), self.arrays[first].name) for stmt in stmts)
        selected = self._unit(real if len(real) == 1 else self._own_register(real))
        if not rest:
            return selected
        span = stmts[-1].span
        number = ir.Const(self.partners[name].index(first), I32, span)
        test = ir.Op("eq", (_which(name, span), number), BOOL, span)
        return (ir.If(test, selected, self._choice(stmts, name, rest), span),)

    def _own_register(self, stmts: ir.Body) -> ir.Body:
        """Return a copy with its own register: each temporary has one assignment."""
        load, store = stmts
        assert isinstance(load, ir.Let) and isinstance(load.target, ir.Reg) and isinstance(store, ir.Store)
        self.copies += 1
        register = replace(load.target, name=f"{load.target.name}@{self.copies}")
        return replace(load, target=register), replace(store, value=register)

    def _extent(self, node: Any) -> Any:
        """Return the length of a variable array; only global arrays differ in length."""
        if not isinstance(node, ir.Extent):
            return node
        name = next((n for n in self.arrays if variable_array(n) == node.array), None)
        if name is None:
            return node
        first, *rest = self.partners[name]
        length: ir.Expr = replace(node, array=self.arrays[first].name)
        for other in rest:
            number = ir.Const(self.partners[name].index(other), I32, node.span)
            test = ir.Op("eq", (_which(name, node.span), number), BOOL, node.span)
            length = ir.Op("select", (test, replace(node, array=self.arrays[other].name), length), I32, node.span)
        return length


def _which(name: str, span: Span) -> ir.Reg:
    """Return the register that selects the array of a swapped name."""
    return ir.Reg(which_array(name), I32, span)


def _names(node: ast.expr) -> list[str]:
    elements = node.elts if isinstance(node, ast.Tuple) else []
    names = [element.id for element in elements if isinstance(element, ast.Name)]
    return names if len(names) == len(elements) else []


def _permuted(node: ast.AST) -> list[str]:
    """Return the targets of an assignment that permutes names; empty for any other."""
    if not (isinstance(node, ast.Assign) and len(node.targets) == 1):
        return []
    targets, sources = _names(node.targets[0]), _names(node.value)
    return targets if len(set(targets)) == len(targets) > 1 and set(targets) == set(sources) else []


def _units(body: ir.Body) -> Iterator[ir.Body]:
    """Yield the statements, with the two of an asynchronous copy in one unit."""
    rest = list(body)
    while rest:
        match rest:
            case [ir.Let(target=ir.Reg() as copied), ir.Store(order="async", value=ir.Reg() as value), *_] if (
                copied.name == value.name
            ):
                yield tuple(rest[:2])
                del rest[:2]
            case _:
                yield (rest.pop(0),)


def _accessed(stmt: ir.Stmt) -> set[str]:
    """Return the arrays that a statement accesses or passes, without its bodies."""
    value = stmt.value if isinstance(stmt, ir.Let) else stmt
    if isinstance(value, _ACCESSES):
        return {value.array}
    if isinstance(value, ir.Call):
        return {arg.name for arg in value.args if isinstance(arg, ir.ArrayRef)}
    return set()


def _retarget(stmt: Any, virtual: str, real: str) -> Any:
    """Return the statement on another array."""
    node = stmt.value if isinstance(stmt, ir.Let) else stmt
    if isinstance(node, ir.Call):
        args = tuple(
            replace(arg, name=real) if isinstance(arg, ir.ArrayRef) and arg.name == virtual else arg
            for arg in node.args
        )
        return replace(stmt, value=replace(node, args=args))
    if virtual not in _accessed(stmt):
        return stmt
    changed = replace(node, array=real)
    return changed if node is stmt else replace(stmt, value=changed)
