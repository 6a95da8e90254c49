"""Reading of boolean expressions: comparisons, `in`, `and`, `or`."""

import ast
import operator
from collections.abc import Callable
from typing import Any

from ..ir import nodes as ir
from ..language.types import BOOL
from ..span import Span
from . import complex_numbers, typing
from .advice import advice_for
from .constants import Literal, Tuple
from .constructs import not_a_bool, refused
from .foreign import dotted
from .values import ArrayValue, Choice, SourceError, Value, describe
from .variables import FunctionScope

COMPARE: dict[type, tuple[str, str, Callable[..., Any]]] = {
    ast.Lt: ("lt", "<", operator.lt), ast.LtE: ("le", "<=", operator.le), ast.Gt: ("gt", ">", operator.gt),
    ast.GtE: ("ge", ">=", operator.ge), ast.Eq: ("eq", "==", operator.eq), ast.NotEq: ("ne", "!=", operator.ne),
}  # fmt: skip
MEMBERSHIP: dict[type, tuple[type, str, str]] = {
    ast.In: (ast.Eq, "either", "in"),
    ast.NotIn: (ast.NotEq, "both", "not in"),
}
MAX_MEMBERS = 4096
"""Maximum operands of `in`."""
MAX_OPERANDS = 32
"""Maximum operands of one chained expression; longer chains use registers."""


class BooleanReader(FunctionScope):
    """Reader of the boolean expressions of one function."""

    def shallow(self, value: Value, operands: int, span: Span) -> Value:
        """Return the value of a chain of operands; every MAX_OPERANDS operands it is stored in a register, which bounds
        the expression's depth."""
        if operands % MAX_OPERANDS == 0 and isinstance(value, ir.Expr):
            return self.let(value, "part", span)
        return value

    def truth(self, value: Value, span: Span) -> ir.Expr:
        """Return a bool. Numbers are not converted."""
        result = typing.expression(value, span, BOOL if isinstance(value, Literal) else None)
        if result.type != BOOL:
            raise not_a_bool(f"a condition is bool, this is {result.type}", span)
        return result

    def _Compare(self, node: ast.Compare) -> Value:
        for kind in node.ops:
            if type(kind) not in COMPARE and type(kind) not in MEMBERSHIP:
                raise refused(kind, self.span(node))
        if len(node.ops) == 1:
            left, right = self.together(lambda: self.left(node), lambda: self.right(node, 0))
            return self.compared(node, 0, left, right)
        left = self.left(node)
        right = self.right(node, 0)
        result = self.compared(node, 0, left, right)
        for at in range(1, len(node.ops)):
            if isinstance(result, Literal) and not result.value:
                return result
            with self.arm() as effects:  # evaluated only if the comparisons so far hold
                left, last = right, node.comparators[at]
                right = self.right(node, at)
                term = self.compared(node, at, left, right)
            result = self.also("both", result, term, effects, self.span(node), self.span(last))
            result = self.shallow(result, at, self.span(node))
        return result

    def left(self, node: ast.Compare) -> Value:
        """Return the first operand; `in` compares it more than once."""
        return self.middle(node.left) if type(node.ops[0]) in MEMBERSHIP else self.value(node.left)

    def right(self, node: ast.Compare, at: int) -> Value:
        """Return the right operand of comparison `at` of a chain."""
        operand = node.comparators[at]
        if type(node.ops[at]) in MEMBERSHIP:
            return self.members(node, at)
        return self.value(operand) if at == len(node.ops) - 1 else self.middle(operand)

    def members(self, node: ast.Compare, at: int) -> Tuple:
        """Return the members of `in`: numbers of a tuple, a list or a set, evaluated first, as in Python."""
        operand, span = node.comparators[at], self.span(node.comparators[at])
        word = f"`{MEMBERSHIP[type(node.ops[at])][2]}` takes a tuple of numbers"
        if isinstance(operand, ast.List | ast.Set):
            return Tuple(tuple(self.values(*operand.elts)))
        if isinstance(operand, ast.Call) and dotted(operand.func) == ["range"]:
            bounds = [self.span(n).text for n in operand.args]
            low, high = (["0", *bounds] if len(bounds) == 1 else [*bounds, "a", "b"])[:2]
            left = self.span(node.left if at == 0 else node.comparators[at - 1]).text
            opposite = "not " if isinstance(node.ops[at], ast.NotIn) else ""
            raise SourceError(span, f"{word}, this is a range", f"write {opposite}{low} <= {left} < {high}")
        value = self.value(operand)
        if not isinstance(value, Tuple):
            advice = "write a loop over its elements" if isinstance(value, ArrayValue) else advice_for(value)
            raise SourceError(span, f"{word}, this is {describe(value)}", advice)
        if len(value.items) > MAX_MEMBERS:
            message = f"this tuple has {len(value.items)} numbers, `in` compares with {MAX_MEMBERS} at most"
            raise SourceError(span, message, "look for the number in a st.constant table, in a loop")
        return value

    def middle(self, node: ast.expr) -> Value:
        """Return an operand evaluated once and compared twice."""
        value = self.value(node)
        if isinstance(value, ir.Expr) and not isinstance(value, ir.Reg | ir.Const):
            return self.let(value, "middle", self.span(node))
        return value

    def compared(self, node: ast.Compare, at: int, left: Value, right: Value) -> Value:
        """Return comparison `at` of a chain."""
        operands, span = (node.left, *node.comparators), self.span(node)
        kind, sides = type(node.ops[at]), [(left, self.span(operands[at])), (right, self.span(operands[at + 1]))]
        if kind not in MEMBERSHIP:
            return self.related(kind, COMPARE[kind][1], sides, span)
        assert isinstance(right, Tuple)
        equal, join, word = MEMBERSHIP[kind]
        result: Value = Literal(join == "both")
        for number, item in enumerate(right.items, 1):
            item_span = item.span if isinstance(item, ir.Expr) else sides[1][1]
            term = self.related(equal, word, [sides[0], (item, item_span)], span)
            result = self.shallow(self._join(join, result, term, span), number, span)
        return result

    def related(self, kind: type, symbol: str, sides: list[tuple[Value, Span]], span: Span) -> Value:
        """Return the comparison of two values."""
        name, _, python = COMPARE[kind]
        (left, _), (right, _) = sides
        if isinstance(left, Literal) and isinstance(right, Literal):
            return typing.fold(python, [left, right], span)
        if complex_numbers.is_complex(left) or complex_numbers.is_complex(right):
            return complex_numbers.compared(self, name, symbol, sides[0], sides[1], span)
        return typing.operation(name, typing.unified(sides, symbol), span, symbol)

    def _join(self, name: str, a: Value, b: Value, span: Span) -> Value:
        """Return `a and b` ("both") or `a or b` ("either") of two pure bools."""
        for value, other in ((a, b), (b, a)):
            if isinstance(value, Literal):
                return other if value.value == (name == "both") else value
        return typing.operation(name, typing.unified([(a, span), (b, span)], "and/or"), span, "and/or")

    def _BoolOp(self, node: ast.BoolOp) -> Value:
        name = "both" if isinstance(node.op, ast.And) else "either"
        result, span = self.operand(node, node.values[0]), self.span(node)
        for number, operand in enumerate(node.values[1:], 1):
            if isinstance(result, Literal) and result.value == (name == "either"):
                return result  # decided at compile time: the rest is not read
            with self.arm() as effects:
                right = self.operand(node, operand)
            result = self.also(name, result, right, effects, span, self.span(operand))
            result = self.shallow(result, number, span)
        return result

    def operand(self, node: ast.BoolOp, operand: ast.expr) -> Value:
        """Return an operand of `and` or `or`, a bool."""
        value = self.value(operand)
        if not is_bool(value):
            word = "and" if isinstance(node.op, ast.And) else "or"
            raise not_a_bool(f"`{word}` takes bools, this is {describe(value)}", self.span(operand))
        return value

    def also(
        self, name: str, result: Value, right: Value, effects: list[ir.Stmt], span: Span, right_span: Span
    ) -> Value:
        """Return `result and right` ("both") or `result or right`; the effects belong to `right`."""
        if not effects and not (isinstance(right, ir.Expr) and typing.must_be_guarded(right)):
            return self._join(name, result, right, span)
        if isinstance(result, Literal):  # the neutral operand
            self.body += effects
            return right
        flag = self.let(self.truth(result, span), name, span)
        arm = (*effects, ir.Let(flag, self.truth(right, right_span), right_span))
        self.emit(ir.If(flag, arm, (), span) if name == "both" else ir.If(flag, (), arm, span))
        return flag


def is_bool(value: Value) -> bool:
    """Return whether a value is a bool."""
    if isinstance(value, Literal | Choice):
        return value.natural == BOOL
    return isinstance(value, ir.Expr) and value.type == BOOL
