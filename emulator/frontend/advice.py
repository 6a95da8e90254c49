"""Hints of compile errors: replacements for values of the wrong kind, and casts."""

import ast
from collections import defaultdict
from collections.abc import Collection, Iterator
from dataclasses import fields, is_dataclass

import numpy as np

from ..checked import closest
from ..language.types import SIGNED, Scalar, from_numpy
from ..language.types import Value as ValueType
from ..source_text import parsed_expression
from ..span import Span
from .constants import Tuple
from .values import ArrayValue, Host, Tensor, Value, written

LISTED = "docs/language.md lists every word"
PYTHON_BUILTINS = frozenset({"abs", "float", "int", "len", "max", "min", "ord", "pow", "print", "range"})
"""Python functions callable in kernels."""
ARRAY_FIRST = "pass the array and the index separately: x, i"
MAX_SHOWN, MAX_WIDENED = 40, 80
"""Maximum characters of an expression quoted inside a cast, and of one with its operands cast."""
_GROWING = (ast.Add, ast.Sub, ast.Mult, ast.LShift, ast.Pow, ast.USub)
"""Operators whose result may have more bits than their operands."""
_SIGN_DEPENDENT = (ast.FloorDiv, ast.Mod, ast.RShift)
"""Operators whose result depends on the sign of their operands."""


def advice_for(value: Value) -> str:
    """Return the hint for a value used where a number or an indexable value is expected."""
    match value:
        case ArrayValue():
            return f"write an element: {value.shown}[i]"
        case Tuple():
            return "write an item: t[0]"
        case Host(object=list() | set() | dict()):
            return "make it a tuple, which cannot change"
        case Host(object=np.ndarray()):
            return "give it to the launch as a Global array, or make it a tuple"
        case Host(object=str() as text) if len(text) == 1:
            return f"write ord({text!r})"
        case Host(object=str()):
            return "texts are allowed only in print(...), assert and ord(...)"
        case Host(object=None):
            return "what is called gives nothing: write it as a statement of its own"
        case Host():
            return f"write {value.name}.x, {value.name}.y or {value.name}.z" if value.is_index else "write a number"
    return "write a number, or an array's element"


def exchange(function: ast.FunctionDef, arrays: Collection[str], first: str) -> str:
    """Return the hint for an array assigned to a name: an element, or where arrays change places, as in `t = a; a = b; b = t`, the
    exchange with the next array that the function assigns."""
    values: dict[str, list[str]] = defaultdict(list)
    for node in ast.walk(function):
        if isinstance(node, ast.Assign):
            for target, value in _assigned_pairs(node.targets[0], node.value):
                values[target].append(value)
    candidates = (value for names in values.values() for value in names if value in arrays and value != first)
    other = next(candidates, None)
    if other is None or not any(target in arrays or len(names) > 1 for target, names in values.items()):
        return f"write an element: {first}[i]"
    return f"two arrays change places by one statement: {first}, {other} = {other}, {first}"


def _assigned_pairs(target: ast.expr, value: ast.expr) -> Iterator[tuple[str, str]]:
    """Yield the names that are assigned to names."""
    if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple):
        for inner in zip(target.elts, value.elts, strict=False):
            yield from _assigned_pairs(*inner)
    elif isinstance(target, ast.Name) and isinstance(value, ast.Name):
        yield target.id, value.id


def no_attribute(value: Value, name: str) -> tuple[str, ...]:
    """Return the hints for a missing attribute of a value."""
    if isinstance(value, Host):
        target = value.object
        if isinstance(target, type) and hasattr(target, name):
            return (f"write a constant of the module: {name} = {target.__name__}.{name}",)
        candidates = [f.name for f in fields(target)] if is_dataclass(target) else list(getattr(target, "_fields", ()))
        near = closest(name, candidates or [n for n in dir(target) if not n.startswith("_")])
        return (f"do you mean {near}?" if near else "write a constant of the module",)
    if isinstance(value, Tensor):
        return (f"write {value.name}.shape, or copy a box of it",)
    return ("a number has no attributes: write an operation of it",)


def type_advice(target: object, other: str) -> str:
    """Return the hint for an object that is not a type of the language. other: for an object of no known type."""
    if target in (int, float):
        return "write st.i32 or st.i64" if target is int else "write st.f32 or st.f64"
    kind = from_numpy(target)
    return f"write {written(kind)}" if kind is not None else other


# ------------------------------------------------------------------ casts
def cast_of(type: ValueType, source: ValueType, place: Span | None) -> str:
    """Return the text of a cast from type `source` to `type`, with the source text where it is short.

    Widening integer arithmetic casts the operands: the result has already lost its upper bits.
    """
    text = place.text if place is not None else ""
    node = _expression(text)
    if node is not None and _is_wider(type, source) and _uses_operator(node, _GROWING):
        return _widened(type, source, text, node)
    return f"{written(type)}({text if node is not None and len(text) <= MAX_SHOWN else '...'})"


def _expression(text: str) -> ast.expr | None:
    try:
        return parsed_expression(text)
    except SyntaxError:
        return None


def _is_wider(type: ValueType, source: ValueType) -> bool:
    both = isinstance(type, Scalar) and isinstance(source, Scalar) and type.is_integer and source.is_integer
    return both and type.size > source.size


def _widened(type: ValueType, source: ValueType, text: str, node: ast.expr) -> str:
    """Return the expression with cast operands; signed operands get a signed cast, and the result its own."""
    assert isinstance(type, Scalar) and isinstance(source, Scalar)
    signed = source in SIGNED and type not in SIGNED and _uses_operator(node, _SIGN_DEPENDENT)
    inner = next(t for t in SIGNED if t.size == type.size) if signed else type
    new = text.encode()
    for leaf in reversed(_cast_leaves(node)):
        begin, end = leaf.col_offset, leaf.end_col_offset
        new = b"%s%s(%s)%s" % (new[:begin], written(inner).encode(), new[begin:end], new[end:])
    result = f"{written(type)}({new.decode()})" if signed else new.decode()
    short = len(text) <= MAX_SHOWN and len(result) <= MAX_WIDENED
    return result if short else f"{written(inner)}(...) of each operand"


def _operands(node: ast.expr) -> list[ast.expr]:
    """Return the operands of the result's type; none for other nodes than operators."""
    match node:
        case ast.BinOp(op=ast.LShift() | ast.RShift() | ast.Pow()):
            return [node.left]
        case ast.BinOp():
            return [node.left, node.right]
        case ast.UnaryOp(op=ast.USub() | ast.UAdd() | ast.Invert()):
            return [node.operand]
        case ast.IfExp():
            return [node.body, node.orelse]
    return []


def _uses_operator(node: ast.expr, operators: tuple[type[ast.AST], ...]) -> bool:
    """Return whether one of the operators computes the result or one of its operands."""
    own = isinstance(node, ast.BinOp | ast.UnaryOp) and isinstance(node.op, operators)
    return own or any(_uses_operator(operand, operators) for operand in _operands(node))


def _cast_leaves(node: ast.expr) -> list[ast.expr]:
    """Return the operands to cast, in order; literals adapt to the other operand."""
    if isinstance(node, ast.Constant):
        return []
    operands = _operands(node)
    if not operands:
        return [node]
    leaves = [leaf for operand in operands for leaf in _cast_leaves(operand)]
    if not leaves and isinstance(node, ast.BinOp) and not isinstance(node.right, ast.Constant):
        return [node.left]  # the literal of 1 << n
    return leaves
