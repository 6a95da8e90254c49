"""Expressions of the IR as Python expressions on NumPy scalars.

An operation whose meaning is a ufunc with an operator is that operator; another ufunc is called; any other meaning is applied to arrays
of one element. Vectors are named tuples. `and`, `or` and `if else` evaluate as in Python.
"""

import ast
import re
from collections import namedtuple
from collections.abc import Callable, Collection
from functools import cache, partial
from types import SimpleNamespace
from typing import Any

import numpy as np

from ...ir import nodes as ir
from ...ir.ops import TABLE
from ...language.types import BOOL, F32, F64, Scalar, Vector
from .constants import Constants

BINARY: dict[Any, type[ast.operator]] = {
    np.add: ast.Add, np.subtract: ast.Sub, np.multiply: ast.Mult, np.true_divide: ast.Div, np.floor_divide: ast.FloorDiv,
    np.mod: ast.Mod, np.bitwise_and: ast.BitAnd, np.bitwise_or: ast.BitOr, np.bitwise_xor: ast.BitXor,
}  # fmt: skip
COMPARISONS: dict[Any, type[ast.cmpop]] = {
    np.less: ast.Lt, np.less_equal: ast.LtE, np.greater: ast.Gt, np.greater_equal: ast.GtE, np.equal: ast.Eq,
    np.not_equal: ast.NotEq,
}  # fmt: skip
UNARY: dict[Any, type[ast.unaryop]] = {np.negative: ast.USub, np.bitwise_not: ast.Invert}
THREAD = "@thread"
"""The local variable of the current thread. User names have no `@`."""


def name(text: str) -> ast.Name:
    return ast.Name(text, ast.Load())


def target(text: str) -> ast.Name:
    return ast.Name(text, ast.Store())


def attribute(owner: ast.expr, *path: str) -> ast.expr:
    for key in path:
        owner = ast.Attribute(owner, key, ast.Load())
    return owner


def call(function: ast.expr, *args: ast.expr) -> ast.Call:
    return ast.Call(function, list(args), [])


def item(owner: ast.expr, index: ast.expr) -> ast.Subscript:
    return ast.Subscript(owner, index, ast.Load())


def packed(*items: ast.expr) -> ast.Tuple:
    return ast.Tuple(list(items), ast.Load())


class Record(SimpleNamespace):
    """A tuple or a struct of a kernel in a debugger: its fields as attributes, and by number."""

    def __getitem__(self, index: int) -> Any:
        return list(vars(self).values())[index]


def field_of(register: str) -> tuple[str, list[str]] | None:
    """Return the user's variable and the fields of a register that is a component of a tuple or a struct."""
    match = re.fullmatch(r"([^@\[]+)(?:@other\d+)?((?:@:[^@]+)+)", register)
    return None if match is None else (match[1], match[2][2:].split("@:"))


def flat(array: str) -> str:
    """Return the local variable of an array's memory, of one dimension."""
    return f"{array}@flat"


@cache
def vector_class(type: Vector) -> Any:
    """Return the named tuple of a vector type."""
    return namedtuple(type.name, tuple("xyzw"[: type.lanes]))


@cache
def pack(type: Vector) -> Callable[..., Any]:
    """Return a function from an iterable of components to a vector. It has no Python frame."""
    return partial(tuple.__new__, vector_class(type))


def zero(type: Scalar | Vector) -> Any:
    """Return 0 of a type."""
    return pack(type)([number(0, type.element)] * type.lanes) if isinstance(type, Vector) else number(0, type)


def number(value: Any, type: Scalar) -> Any:
    """Return a NumPy scalar."""
    return np.array(value, type.dtype)[()]


@cache
def applied(operation: str) -> Callable[..., Any]:
    """Return the meaning of a row of the op table as a function of NumPy scalars."""
    meaning = TABLE[operation].meaning

    def apply(*operands: Any) -> Any:
        return meaning(*(np.array([operand]) for operand in operands))[0]

    return apply


@cache
def in_domain(operation: str) -> Callable[..., Any]:
    """Return whether NumPy scalars are in the domain of an operation, as a function."""
    domain = TABLE[operation].domain
    assert domain is not None

    def holds(*operands: Any) -> Any:
        return domain.holds(*(np.array([operand]) for operand in operands))[0]

    return holds


class Expressions:
    """Translator of the expressions of one function. overwritten: parameters whose variables have other values later."""

    def __init__(self) -> None:
        self.constants = Constants()
        self.overwritten: Collection[str] = frozenset()

    def local(self, register: str) -> str:
        """Return the local variable of a register: the user's name, also where the front end renamed its variable."""
        if register in self.overwritten:
            return f"{register}@argument"
        renamed = re.fullmatch(r"([^@]+)@other\d+", register)
        return renamed[1] if renamed else register

    def value(self, expr: ir.Expr) -> ast.expr:
        """Return the Python expression of a value."""
        match expr:
            case ir.Const():
                return self.constants.scalar(number(expr.value, expr.type))
            case ir.Reg():
                return name(self.local(expr.name))
            case ir.Item():
                return item(name(expr.array), self.value(expr.index))
            case ir.Special():
                return attribute(name(THREAD), expr.name.replace(".", "_"))
            case ir.Op():
                return self.operation(expr)
            case ir.Pack():
                args = packed(*map(self.value, expr.args))
                return call(self.constants.node(pack(expr.type)), args) if isinstance(expr.type, Vector) else args
            case ir.Component(index=ir.Const(value=index)):
                return item(self.value(expr.value), ast.Constant(int(index)))
            case ir.Component():
                return item(self.value(expr.value), self.value(expr.index))
            case ir.Extent():
                return call(self.constants.node(np.int32), self.length(expr.array))
            case ir.Defined(value=op):
                return call(self.constants.node(in_domain(op.name)), *map(self.value, op.args))
            case ir.Within():
                return self.value(expr.flat)

    def length(self, array: str) -> ast.expr:
        """Return the number of elements of an array, a Python integer."""
        return call(self.constants.node(len), name(flat(array)))

    def truth(self, expr: ir.Expr) -> ast.expr:
        """Return an expression for a condition; a constant is one of Python, which its compiler may evaluate."""
        match expr:
            case ir.Op(name="both" | "either" as word, args=args):
                return ast.BoolOp(ast.And() if word == "both" else ast.Or(), [self.truth(arg) for arg in args])
            case ir.Op(name="not", args=(arg,)):
                return ast.UnaryOp(ast.Not(), self.truth(arg))
        value = self.value(expr)
        return ast.Constant(bool(self.constants.value(value))) if isinstance(value, ast.Constant) else value

    def operation(self, op: ir.Op) -> ast.expr:
        """Return the expression of an operation."""
        if op.name == "select":
            condition, yes, no = op.args
            return ast.IfExp(self.truth(condition), self.value(yes), self.value(no))
        if op.name in ("both", "either"):
            return call(self.constants.node(np.bool_), self.truth(op))
        meaning: Any = TABLE[op.name].meaning
        args = [self.value(arg) for arg in op.args]
        constants = [arg for arg in args if isinstance(arg, ast.Constant)]
        if len(constants) == len(args):  # Python's compiler would combine their texts
            with np.errstate(all="ignore"):
                return self.constants.scalar(applied(op.name)(*map(self.constants.value, constants)))
        if meaning in BINARY:
            return ast.BinOp(args[0], BINARY[meaning](), args[1])
        if meaning in COMPARISONS:
            return ast.Compare(args[0], [COMPARISONS[meaning]()], [args[1]])
        if meaning in UNARY:
            return ast.UnaryOp(UNARY[meaning](), args[0])
        if isinstance(meaning, np.ufunc):
            return call(self.constants.node(meaning), *args)
        if op.name.startswith("cast_") and _is_plain_cast(op.args[0].type, op.type):
            return call(attribute(args[0], "astype"), self.constants.node(op.type.dtype.type))
        return call(self.constants.node(applied(op.name)), *args)


def _is_plain_cast(source: Any, type: Scalar) -> bool:
    """Return whether NumPy's conversion is that of the language: not to bool, to and from halves, or from a float to an integer."""
    if type is BOOL:
        return False
    if source.is_float:
        return source in (F32, F64) and type in (F32, F64)
    return type.is_integer or type in (F32, F64)
