"""Reading of Python expressions as IR expressions. Their effects become Lets before the statement."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import Any

from ..ir import nodes as ir
from ..ir.names import temporary
from ..ir.walk import expressions
from ..language import intrinsics
from ..language.types import BOOL, I32, SCALARS, Array, Scalar, Vector
from ..language.types import Value as ValueType
from ..span import Span
from . import calls, typing
from .protocols import ProgramReader
from .source import MISSING, FunctionSource
from .values import AlreadyReported, ArrayValue, Host, Literal, SourceError, Tuple, Value, describe, of_python

BINARY: dict[type, tuple[str, str, Callable[..., Any]]] = {
    ast.Add: ("add", "+", operator.add), ast.Sub: ("sub", "-", operator.sub), ast.Mult: ("mul", "*", operator.mul),
    ast.Div: ("fdiv", "/", operator.truediv), ast.FloorDiv: ("floordiv", "//", operator.floordiv),
    ast.Mod: ("mod", "%", operator.mod), ast.LShift: ("shl", "<<", operator.lshift),
    ast.RShift: ("shr", ">>", operator.rshift), ast.BitAnd: ("and", "&", operator.and_),
    ast.BitOr: ("or", "|", operator.or_), ast.BitXor: ("xor", "^", operator.xor),
}  # fmt: skip
UNARY: dict[type, tuple[str, str, Callable[..., Any]]] = {
    ast.USub: ("neg", "-", operator.neg), ast.Invert: ("invert", "~", operator.invert), ast.Not: ("not", "not", operator.not_),
}  # fmt: skip
COMPARE: dict[type, tuple[str, str, Callable[..., Any]]] = {
    ast.Lt: ("lt", "<", operator.lt), ast.LtE: ("le", "<=", operator.le), ast.Gt: ("gt", ">", operator.gt),
    ast.GtE: ("ge", ">=", operator.ge), ast.Eq: ("eq", "==", operator.eq), ast.NotEq: ("ne", "!=", operator.ne),
}  # fmt: skip
PARTS = "xyzw"


class Expressions:
    """Reads the expressions of one function."""

    def __init__(self, program: ProgramReader, source: FunctionSource) -> None:
        self.program = program
        self.source = source
        self.names: dict[str, Value] = {}  # parameters, arrays and compile-time names
        self.types: dict[str, ValueType] = {}  # registers
        self.assigned: set[str] = set()  # registers that every path has assigned
        self.fixed: set[str] = set()  # loop variables of unrolled loops
        self.loop_variables: set[str] = set()  # of the others
        self.looped: set[str] = set()  # names that are or were loop variables, which exist in their loops only
        self.once = assigned_once(source.tree)
        self.unresolved: set[str] = set()
        self.body: list[ir.Stmt] = []
        self._temporaries = 0

    # -------------------------------------------------------------- emitting
    def span(self, node: ast.AST) -> Span:
        return self.source.span(node)

    def emit(self, stmt: ir.Stmt) -> None:
        self.body.append(stmt)

    @contextmanager
    def block(self) -> Iterator[list[ir.Stmt]]:
        """Collect what is emitted inside."""
        outer, self.body = self.body, []
        try:
            yield self.body
        finally:
            self.body = outer

    def temporary(self, stem: str, type: ValueType, span: Span) -> ir.Reg:
        self._temporaries += 1
        return ir.Reg(temporary(stem, self._temporaries), type, span)

    def let(self, value: ir.Expr | ir.Effect, stem: str, span: Span) -> ir.Reg:
        """Keep a value in a generated register."""
        assert value.type is not None
        target = self.temporary(stem, value.type, span)
        self.emit(ir.Let(target, value, span))
        return target

    # -------------------------------------------------------------- entry points
    def value(self, node: ast.expr) -> Value:
        """The value of an expression, typed or known at compile time."""
        method = getattr(self, f"_{type(node).__name__}", None)
        if method is None:
            raise SourceError(self.span(node), f"{construct_name(node)} is not in the kernel language")
        return method(node)  # type: ignore[no-any-return]

    def expr(self, node: ast.expr, type: ValueType | None = None) -> ir.Expr:
        """The value as a typed expression; literals become `type` or their natural type."""
        return typing.expression(self.value(node), self.span(node), type)

    def convert(self, node: ast.expr, type: ValueType, what: str) -> ir.Expr:
        return typing.converted(self.value(node), type, self.span(node), what)

    def condition(self, node: ast.expr) -> ir.Expr:
        return self.truth(self.value(node), self.span(node))

    def truth(self, value: Value, span: Span) -> ir.Expr:
        """A bool; numbers are not taken for one."""
        result = typing.expression(value, span, BOOL if isinstance(value, Literal) else None)
        if result.type != BOOL:
            raise SourceError(span, f"a condition is bool, this is {result.type}", "write a comparison, such as x != 0")
        return result

    def known(self, node: ast.expr, what: str) -> int:
        """A whole number that is known at compile time."""
        value = self.value(node)
        if not isinstance(value, Literal):
            problem = f"{what} must be known at compile time, this is {describe(value)}"
            raise SourceError(self.span(node), problem, "make it a Const parameter")
        if isinstance(value.value, bool) or not isinstance(value.value, int):
            advice = "divide with //" if isinstance(value.value, float) else ""
            raise SourceError(self.span(node), f"{what} is a whole number, this is {describe(value)}", advice)
        return value.value

    def index(self, array: ArrayValue, node: ast.expr) -> ir.Expr:
        """The flat index of `array[node]`."""
        nodes = node.elts if isinstance(node, ast.Tuple) else [node]
        if len(nodes) != len(array.strides):
            wanted = len(array.strides)
            advice = "st.matrix(array, stride) gives an array a second index" if wanted == 1 else ""
            raise SourceError(
                self.span(node),
                f"{array.name} takes {wanted} ind{'ex' if wanted == 1 else 'ices'}, {len(nodes)} given",
                *filter(None, [advice]),
            )
        total: Value = Literal(0)
        for at, (item, stride) in enumerate(zip(nodes, array.strides, strict=True)):
            span = self.span(item)
            part = self.value(item)
            if isinstance(part, ir.EXPRESSIONS) and part.type in SCALARS.values():
                assert isinstance(part.type, Scalar)
                if not part.type.is_integer:
                    raise SourceError(span, f"an index is an integer, this is {part.type}", "write i32(...)")
                if part.type.size < 4:
                    part = typing.cast(part, I32, span)
            self._check_known_index(array, part, span)
            if at:
                self._stays_in_row(array, at, part, span)
            total = self._add(total, self._multiply(part, stride, span), span)
        result = typing.expression(total, self.span(node), I32)
        if not (isinstance(result.type, Scalar) and result.type.is_integer):
            raise SourceError(self.span(node), f"an index is an integer, this is {result.type}")
        if array.type.space == "register" and not self.is_fixed(result):
            raise SourceError(
                self.span(node),
                f"{array.name} is in registers: its index must be constant once loops are unrolled",
                "use st.unroll(range(...)) for the loop, or st.local(...) for the array",
            )
        return result

    def _check_known_index(self, array: ArrayValue, part: Value, span: Span) -> None:
        value = part.value if isinstance(part, Literal | ir.Const) else None
        if isinstance(value, float):
            raise SourceError(span, f"an index is an integer, this is {value!r}")
        if value is not None and value < 0:
            raise SourceError(span, f"index {value}: arrays do not wrap around in a kernel")
        length = array.type.length
        if value is not None and length is not None and len(array.strides) == 1 and value >= length:
            raise SourceError(span, f"index {value}, but {array.name} has {length} elements")

    def _stays_in_row(self, array: ArrayValue, at: int, part: Value, span: Span) -> None:
        """A check that an index other than the first is within its own extent."""
        extent: Value = array.strides[at - 1]
        if isinstance(extent, Literal):
            inner = array.strides[at]
            assert isinstance(inner, Literal)
            extent = Literal(extent.value // inner.value)
        index = typing.expression(part, span, I32)
        end = typing.expression(extent, span, index.type)
        zero = typing.expression(Literal(0), span, index.type)
        within = ir.Op(
            "both", (ir.Op("ge", (index, zero), BOOL, span), ir.Op("lt", (index, end), BOOL, span)), BOOL, span
        )
        self.emit(ir.Check("bounds", within, index, (index, end), span))

    def is_fixed(self, expr: ir.Expr) -> bool:
        """Whether the expression is a constant once loops are unrolled."""
        leaves = [e for e in (expr, *expressions(expr)) if not isinstance(e, ir.Op)]
        return all(isinstance(e, ir.Const) or (isinstance(e, ir.Reg) and e.name in self.fixed) for e in leaves)

    def _multiply(self, a: Value, b: Value, span: Span) -> Value:
        if isinstance(b, Literal) and b.value == 1:
            return a
        return self.arithmetic(ast.Mult, a, b, span, span, span)

    def _add(self, a: Value, b: Value, span: Span) -> Value:
        if isinstance(a, Literal) and a.value == 0:
            return b
        return self.arithmetic(ast.Add, a, b, span, span, span)

    # -------------------------------------------------------------- leaves
    def _Constant(self, node: ast.Constant) -> Value:
        if isinstance(node.value, bool | int | float):
            return Literal(node.value)
        if isinstance(node.value, str):
            return Host(node.value)
        raise SourceError(self.span(node), f"{node.value!r} is not in the kernel language")

    def _Tuple(self, node: ast.Tuple) -> Value:
        return Tuple(tuple(self.value(e) for e in node.elts))

    def _Name(self, node: ast.Name) -> Value:
        name = node.id
        if name in self.unresolved:
            raise AlreadyReported
        value = self.names.get(name)
        variable = name in self.types or (name in self.once and isinstance(value, Literal | Tuple))
        if variable and name not in self.assigned and name not in self.fixed:
            raise SourceError(
                self.span(node),
                f"{name} may be unassigned here",
                "assign it on every path, for example before the loop or branch",
            )
        if name in self.types:
            return ir.Reg(name, self.types[name], self.span(node))
        if value is not None:
            if isinstance(value, ir.Reg):  # a scalar parameter
                return ir.Reg(value.name, value.type, self.span(node))
            return value
        found = self.program.external(self.source, name)
        if found is MISSING:
            raise SourceError(self.span(node), f"{name} is not defined")
        return of_python(found)

    def _Attribute(self, node: ast.Attribute) -> Value:
        owner, span = self.value(node.value), self.span(node)
        if isinstance(owner, Host):
            target = owner.object
            if isinstance(target, intrinsics.Index3) and node.attr in PARTS[:3]:
                return ir.Special(f"{target._name}.{node.attr}", I32, span)
            if isinstance(target, ModuleType):
                found = self.program.attribute(target, node.attr)
                if found is MISSING:
                    raise SourceError(span, f"{target.__name__} has no {node.attr}")
                return self.special(found, span)
        if isinstance(owner, ir.EXPRESSIONS) and isinstance(owner.type, Vector):
            at = PARTS.find(node.attr)
            if not (len(node.attr) == 1 and 0 <= at < owner.type.lanes):
                raise SourceError(
                    span, f"{owner.type} has the parts {', '.join(PARTS[: owner.type.lanes])}, not {node.attr}"
                )
            return self.part(owner, ir.Const(at, I32, span), span)
        raise SourceError(span, f"{describe(owner)} has no {node.attr} in a kernel")

    def special(self, found: Any, span: Span) -> Value:
        """`st.lane` and `st.warp` are values, everything else stands for itself."""
        if isinstance(found, intrinsics.Index):
            return ir.Special(found.name, I32, span)
        return of_python(found)

    def part(self, vector: ir.Expr, index: ir.Expr, span: Span) -> ir.Expr:
        assert isinstance(vector.type, Vector)
        if isinstance(vector, ir.Pack) and isinstance(index, ir.Const):
            return vector.args[int(index.value)]
        return ir.Part(vector, index, vector.type.element, span)

    def _Subscript(self, node: ast.Subscript) -> Value:
        owner, span = self.value(node.value), self.span(node)
        if isinstance(owner, ArrayValue):
            index = self.index(owner, node.slice)
            if owner.type.space == "register":
                return ir.Item(owner.name, index, owner.type.element, span)
            return self.let(ir.Load(owner.name, index, owner.type.element, span), owner.name, span)
        if isinstance(owner, Tuple):
            at = self.known(node.slice, "a tuple's index")
            if not -len(owner.items) <= at < len(owner.items):
                raise SourceError(span, f"index {at}, but the tuple has {len(owner.items)} items")
            return owner.items[at]  # type: ignore[no-any-return]
        if isinstance(owner, ir.EXPRESSIONS) and isinstance(owner.type, Vector):
            index = self.convert(node.slice, I32, "an index")
            if not self.is_fixed(index):
                raise SourceError(self.span(node.slice), "a vector's index must be constant once loops are unrolled")
            if isinstance(index, ir.Const) and not 0 <= index.value < owner.type.lanes:
                raise SourceError(self.span(node.slice), f"{owner.type} has {owner.type.lanes} parts")
            if not isinstance(owner, ir.Reg):
                owner = self.let(owner, "vector", span)
            return self.part(owner, index, span)
        raise SourceError(span, f"{describe(owner)} cannot be indexed")

    # -------------------------------------------------------------- operators
    def _BinOp(self, node: ast.BinOp) -> Value:
        kind = type(node.op)
        if kind not in BINARY:
            advice = ("write x * x, or st.exp(y * st.log(x))",) if kind is ast.Pow else ()
            raise SourceError(self.span(node), f"{construct_name(node.op)} is not in the kernel language", *advice)
        a, b = self.value(node.left), self.value(node.right)
        return self.arithmetic(kind, a, b, self.span(node), self.span(node.left), self.span(node.right))

    def arithmetic(self, kind: type, a: Value, b: Value, span: Span, left: Span, right: Span) -> Value:
        """A binary operator on two values."""
        name, symbol, python = BINARY[kind]
        if isinstance(a, Literal) and isinstance(b, Literal):
            return typing.fold(python, [a, b], span)
        return typing.operation(name, typing.unified([(a, left), (b, right)], symbol), span, symbol)

    def _UnaryOp(self, node: ast.UnaryOp) -> Value:
        value, span = self.value(node.operand), self.span(node)
        if isinstance(node.op, ast.UAdd):
            return value
        name, symbol, python = UNARY[type(node.op)]
        if isinstance(value, Literal):
            if name == "not" and not isinstance(value.value, bool):
                raise SourceError(span, "`not` takes a bool", "write a comparison, such as x != 0")
            return typing.fold(python, [value], span)
        return typing.operation(name, typing.unified([(value, span)], symbol), span, symbol)

    def _Compare(self, node: ast.Compare) -> Value:
        spans = [self.span(n) for n in (node.left, *node.comparators)]
        left, result = self.value(node.left), None
        for at, (kind, right_node) in enumerate(zip(node.ops, node.comparators, strict=True)):
            if type(kind) not in COMPARE:
                raise SourceError(
                    self.span(node), f"{construct_name(kind)} is not in the kernel language", "write == or !="
                )
            name, symbol, python = COMPARE[type(kind)]
            with self.block() as effects:
                right = self.value(right_node)
            if at > 0 and effects:
                # Python evaluates this operand only where the comparison so far holds.
                raise SourceError(
                    spans[at + 1],
                    "a chained comparison reads memory after its first part",
                    "write two comparisons joined by `and`",
                )
            self.body += effects
            last = at == len(node.ops) - 1
            if not last and isinstance(right, ir.EXPRESSIONS) and not isinstance(right, ir.Reg | ir.Const):
                right = self.let(right, "middle", spans[at + 1])
            if isinstance(left, Literal) and isinstance(right, Literal):
                term: Value = typing.fold(python, [left, right], self.span(node))
            else:
                term = typing.operation(
                    name, typing.unified([(left, spans[at]), (right, spans[at + 1])], symbol), self.span(node), symbol
                )
            result = term if result is None else self._join("both", result, term, self.span(node))
            left = right
        assert result is not None
        return result

    def _join(self, name: str, a: Value, b: Value, span: Span) -> Value:
        """`a and b` ("both") or `a or b` ("either") of two pure bools."""
        for value, other in ((a, b), (b, a)):
            if isinstance(value, Literal):
                if not isinstance(value.value, bool):
                    raise SourceError(span, "`and` and `or` take bools", "write a comparison, such as x != 0")
                return other if value.value == (name == "both") else value
        return typing.operation(name, typing.unified([(a, span), (b, span)], "and/or"), span, "and/or")

    def _BoolOp(self, node: ast.BoolOp) -> Value:
        name = "both" if isinstance(node.op, ast.And) else "either"
        result, span = self.value(node.values[0]), self.span(node)
        for operand in node.values[1:]:
            if isinstance(result, Literal) and result.value == (name == "either"):
                return result  # decided at compile time: the rest is never read
            with self.block() as effects:
                right = self.value(operand)
            if not effects and not (isinstance(right, ir.EXPRESSIONS) and typing.must_be_guarded(right)):
                result = self._join(name, result, right, span)
                continue
            if isinstance(result, Literal):  # the neutral one
                self.body += effects
                result = right
                continue
            kept = self.let(self.truth(result, span), name, span)
            value = self.truth(right, self.span(operand))
            arm = (*effects, ir.Let(kept, value, self.span(operand)))
            self.emit(ir.If(kept, arm, (), span) if name == "both" else ir.If(kept, (), arm, span))
            result = kept
        return result

    def _IfExp(self, node: ast.IfExp) -> Value:
        condition, span = self.value(node.test), self.span(node)
        if isinstance(condition, Literal):
            return self.value(node.body if condition.value else node.orelse)
        condition = self.truth(condition, self.span(node.test))
        with self.block() as then:
            yes = self.value(node.body)
        with self.block() as orelse:
            no = self.value(node.orelse)
        arms = [(yes, self.span(node.body)), (no, self.span(node.orelse))]
        vector = next((v.type for v, _ in arms if isinstance(v, ir.EXPRESSIONS) and isinstance(v.type, Vector)), None)
        if vector is None:
            yes, no = typing.unified(arms, "the two arms")
        else:
            yes, no = (typing.converted(v, vector, s, "the other arm") for v, s in arms)
        pure = not then and not orelse and vector is None
        if pure and not typing.must_be_guarded(yes) and not typing.must_be_guarded(no):
            return typing.operation("select", [condition, yes, no], span, "if else")
        target = self.temporary("choice", yes.type, span)
        self.emit(
            ir.If(condition, (*then, ir.Let(target, yes, arms[0][1])), (*orelse, ir.Let(target, no, arms[1][1])), span)
        )
        return target

    # -------------------------------------------------------------- calls
    def _Call(self, node: ast.Call) -> Value:
        called = self.value(node.func)
        if not isinstance(called, Host):
            raise SourceError(self.span(node), f"{describe(called)} cannot be called")
        return calls.call(self, node, called.object)

    def annotation(self, node: ast.expr) -> Any:
        """The object an annotation names, `Global[f32]` as the pair (Global, element)."""
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            node = ast.copy_location(ast.parse(node.value, mode="eval").body, node)
            ast.fix_missing_locations(node)
        if isinstance(node, ast.Subscript):
            return self.annotation(node.value), self.type_of(node.slice)
        value = self.value(node)
        return value.object if isinstance(value, Host) else value

    def type_of(self, node: ast.expr) -> ValueType:
        """The scalar or vector type an expression names."""
        found = self.annotation(node)
        type = calls.value_type(self.program, found, self.span(node))
        if type is None:
            raise SourceError(
                self.span(node),
                f"a type is expected here, this is {describe(of_python(found))}",
                "write i32, f32, float4 ...",
            )
        return type

    def array(self, node: ast.expr) -> ArrayValue:
        """The array an expression names, in one dimension."""
        value = self.value(node)
        if not isinstance(value, ArrayValue):
            raise SourceError(self.span(node), f"an array is expected here, this is {describe(value)}")
        return value

    def declare(self, name: str, type: Array, values: tuple[Any, ...], span: Span) -> ArrayValue:
        """Allocate an array under a name the function does not use yet."""
        if name in self.names or name in self.types:
            raise SourceError(span, f"{name} is already in use", "give each array a name of its own")
        self.emit(ir.Alloc(name, type, values, span))
        strides: list[ir.Expr | Literal] = [Literal(1)]
        for extent in reversed((type.shape or (1,))[1:]):
            assert isinstance(strides[0], Literal)
            strides.insert(0, Literal(strides[0].value * extent))
        return ArrayValue(name, type, tuple(strides))


def assigned_once(function: ast.FunctionDef) -> frozenset[str]:
    """Names with a single assignment in the function, as a plain `name = value`."""
    stores = [n.id for n in ast.walk(function) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)]
    targets = [t for n in ast.walk(function) if isinstance(n, ast.Assign) for t in n.targets]
    plain = {
        t.id for target in targets for t in ast.walk(target) if isinstance(t, ast.Name) and isinstance(t.ctx, ast.Store)
    }
    return frozenset(n for n in plain if stores.count(n) == 1)


def construct_name(node: ast.AST) -> str:
    """A construct's name for a message."""
    return _NAMES.get(type(node), f"`{type(node).__name__}`")


_NAMES: dict[type, str] = {
    ast.Pow: "`**`", ast.MatMult: "`@`", ast.Is: "`is`", ast.IsNot: "`is not`", ast.In: "`in`", ast.NotIn: "`not in`",
    ast.List: "a list", ast.Dict: "a dict", ast.Set: "a set", ast.ListComp: "a list comprehension",
    ast.GeneratorExp: "a generator expression", ast.Lambda: "a lambda", ast.JoinedStr: "an f-string",
    ast.NamedExpr: "`:=`", ast.Starred: "`*`", ast.Slice: "a slice", ast.Await: "`await`", ast.Yield: "`yield`",
}  # fmt: skip
