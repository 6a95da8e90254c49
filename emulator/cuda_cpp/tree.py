"""The syntax tree of a kernel: nodes of C++ with types, constants and positions, independent of libclang."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal

from ..span import Span
from .types import CType, RecordType

Kind = Literal[
    # expressions
    "constant", "null", "text", "name", "field", "index", "unary", "binary", "assign", "conditional", "call", "cast", "view",
    "list", "lambda", "this", "zero",
    # statements
    "block", "declare", "if", "while", "do", "for", "switch", "case", "break", "continue", "return", "empty",
]  # fmt: skip


@dataclass(eq=False, slots=True)
class Variable:
    """A variable, a parameter or a field of a class.

    type: of the object, also for a reference. initial: its initialiser. places: "parameter" and "local" of a function; others are
    memory. fixed: whether it is const, with its elements. symbol: in compiled code, of a variable outside of functions.
    """

    name: str
    type: CType
    span: Span
    place: Literal["local", "parameter", "shared", "constant", "device", "index"]
    reference: bool = False
    fixed: bool = False
    volatile: bool = False
    dynamic: bool = False
    symbol: str = ""
    initial: Node | None = None


@dataclass(eq=False, slots=True)
class Function:
    """A function, a method or a lambda.

    body: None for an intrinsic. owner: the struct of a method. members: initialisers of a constructor. generated: a constructor or an
    assignment that the compiler writes. symbol: in compiled code.
    """

    name: str
    span: Span
    result: CType | None
    returns_reference: bool = False
    parameters: list[Variable] = field(default_factory=list)
    body: Node | None = None
    owner: RecordType | None = None
    constructor: bool = False
    generated: bool = False
    constant_method: bool = False
    members: list[tuple[str, Node]] = field(default_factory=list)
    copies: bool = False
    symbol: str = ""


@dataclass(eq=False, slots=True)
class Node:
    """One statement or expression.

    type: of an expression, None for void. sign: of an operator; the name of a field. children: operands, or parts of a statement;
    None for a missing part of `for` and of `if`. value: of a constant or a text; labels of a case, None for default.
    variable: of a name or a declaration. function: of a call, a lambda. volatile: of the accessed object.
    unroll: whether `#pragma unroll` precedes a loop.
    """

    kind: Kind
    span: Span
    type: CType | None = None
    children: tuple[Node | None, ...] = ()
    sign: str = ""
    value: int | float | str | None = None
    variable: Variable | None = None
    function: Function | None = None
    volatile: bool = False
    unroll: bool = False

    def __getitem__(self, number: int) -> Node:
        """Return a child that is present."""
        child = self.children[number]
        assert child is not None
        return child

    @property
    def present(self) -> Iterator[Node]:
        """The children that are present."""
        return (child for child in self.children if child is not None)

    def walk(self) -> Iterator[Node]:
        """Yield the node and all nodes below it, initialisers included, without bodies of called functions and lambdas."""
        yield self
        if self.kind == "declare" and self.variable is not None and self.variable.initial is not None:
            yield from self.variable.initial.walk()
        for child in self.present:
            yield from child.walk()


PLACES = ("name", "field", "index", "view", "this")
"""Expressions that denote objects, besides `*p`, `++x`, assignments and calls that return a reference."""


def is_place(node: Node) -> bool:
    """Return whether an expression denotes an object."""
    if node.kind == "unary":
        return node.sign in ("*", "++x", "--x")
    if node.kind == "call":
        return node.function is not None and node.function.returns_reference
    if node.kind == "binary" and node.sign == ",":
        return is_place(node[1])
    return node.kind in PLACES or node.kind == "assign"


def assigned(node: Node) -> Iterator[Variable]:
    """Yield the variables that a statement may assign, also through references, addresses and lambdas."""
    for entry in node.walk():
        if entry.kind == "assign" or (entry.kind == "unary" and entry.sign in ("x++", "x--", "++x", "--x", "&")):
            yield from root(entry[0])
        elif entry.kind == "declare" and (variable := entry.variable) is not None:
            if variable.reference and not variable.fixed and variable.initial is not None:
                yield from root(variable.initial)
        elif entry.kind == "lambda" and entry.function is not None and entry.function.body is not None:
            yield from assigned(entry.function.body)
        elif entry.kind == "call" and entry.function is not None:
            yield from _assigned_by_call(entry, entry.function)


def _assigned_by_call(call: Node, function: Function) -> Iterator[Variable]:
    owner, *arguments = call.children
    if owner is not None and function.owner is not None and not function.constant_method:
        yield from root(owner)
    for argument, parameter in zip(arguments, function.parameters, strict=False):
        if parameter.reference and not parameter.fixed and argument is not None:
            yield from root(argument)


def root(place: Node) -> Iterator[Variable]:
    """Yield the variable of which an object is a part; nothing for an object behind a pointer."""
    node = place
    while True:
        if node.kind in ("field", "view") and node.children[0] is not None and node.sign != "->":
            node = node[0]
        elif node.kind == "index" and node[0].kind == "cast" and node[0].sign == "decay":
            node = node[0][0]
        elif node.kind == "assign" or (node.kind == "unary" and node.sign in ("++x", "--x")):
            node = node[0]
        else:
            break
    if node.kind == "name" and node.variable is not None:
        yield node.variable
    elif node.kind == "conditional":
        yield from root(node[1])
        yield from root(node[2])
