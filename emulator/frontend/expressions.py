"""Reading of Python expressions as IR expressions. Effects become Lets before the statement."""

import ast
import operator
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import is_dataclass
from functools import partial
from types import ModuleType
from typing import Any, get_args, get_origin

from ..checked import closest, shown
from ..ir import nodes as ir
from ..language import hints, intrinsics
from ..language.types import BOOL, F32, I32, Array, Vector
from ..language.types import Value as ValueType
from ..source_text import parsed_expression
from ..span import Span
from . import arrays, calls, complex_numbers, maths, records, struct_arrays, typing
from .advice import ARRAY_FIRST, LISTED, PYTHON_BUILTINS, advice_for, no_attribute, type_advice
from .constants import Literal, Tuple, field_annotations, is_record, is_struct
from .constructs import not_a_bool, refused
from .foreign import PYTHON, dotted, similar_name
from .logic import BooleanReader, is_bool
from .source import MISSING
from .values import (
    NO_ACCESS,
    AlreadyReported,
    ArrayValue,
    Choice,
    Host,
    NeedsConstants,
    SourceError,
    Struct,
    StructArray,
    StructElement,
    Tensor,
    Value,
    describe,
    of_python,
)

BINARY: dict[type, tuple[str, str, Callable[..., Any]]] = {
    ast.Add: ("add", "+", operator.add), ast.Sub: ("sub", "-", operator.sub), ast.Mult: ("mul", "*", operator.mul),
    ast.Div: ("fdiv", "/", operator.truediv), ast.FloorDiv: ("floordiv", "//", operator.floordiv),
    ast.Mod: ("mod", "%", operator.mod), ast.LShift: ("shl", "<<", operator.lshift),
    ast.RShift: ("shr", ">>", operator.rshift), ast.BitAnd: ("and", "&", operator.and_),
    ast.Pow: ("pow", "**", maths.folded_power), ast.BitOr: ("or", "|", operator.or_), ast.BitXor: ("xor", "^", operator.xor),
}  # fmt: skip
UNARY: dict[type, tuple[str, str, Callable[..., Any]]] = {
    ast.USub: ("neg", "-", operator.neg), ast.Invert: ("invert", "~", operator.invert), ast.Not: ("not", "not", operator.not_),
}  # fmt: skip
COMPONENTS = "xyzw"
MAX_DEPTH = 100
"""Maximum nesting of statements, calls and expressions; each level uses a few Python calls."""
_TABLES = "use st.constant(...) for a table of constants, or st.local(...): both are indexed at run time"
_ONE_TYPE = "leave out the rest: an array has the dimensions of the one that is given"
_WRITE_TYPES = "write st.Global[st.f32], st.i32, st.Const ..."


class ExpressionReader(BooleanReader):
    """Reader of the expressions of one function."""

    # -------------------------------------------------------------- entry points
    def value(self, node: ast.expr) -> Value:
        """Return the value of an expression, typed or known at compile time."""
        method = getattr(self, f"_{type(node).__name__}", None)
        if method is None:
            raise refused(node, self.span(node))
        with self.nested(node):
            return method(node)  # type: ignore[no-any-return]

    @contextmanager
    def nested(self, node: ast.AST) -> Iterator[None]:
        """Count one level of nesting. Raises SourceError above MAX_DEPTH."""
        if self.program.depth == MAX_DEPTH:
            raise SourceError(
                self.span(node),
                f"this is nested more than {MAX_DEPTH} deep: loops, branches, calls and expressions together",
                "assign subexpressions to variables, or move a branch into a device function",
            )
        self.program.depth += 1
        try:
            yield
        finally:
            self.program.depth -= 1

    def expr(self, node: ast.expr, type: ValueType | None = None) -> ir.Expr:
        """Return the value as a typed expression; literals get `type` or their natural type."""
        return typing.expression(self.value(node), self.span(node), type)

    def convert(self, node: ast.expr, type: ValueType, what: str) -> ir.Expr:
        return typing.converted(self.value(node), type, self.span(node), what)

    def condition(self, node: ast.expr) -> ir.Expr:
        return self.truth(self.value(node), self.span(node))

    def constant_int(self, node: ast.expr, what: str, advice: str = "make it a Const parameter") -> int:
        """Return an integer known at compile time."""
        return self.constant_value(self.value(node), self.span(node), what, advice)

    def constant_value(self, value: Value, span: Span, what: str, advice: str = "make it a Const parameter") -> int:
        """Return the integer of a value known at compile time."""
        if isinstance(value, ir.Expr):
            if self.waits_for_unrolling(value):
                raise NeedsConstants
            number = self.number_of(value)
            value = value if number is None else Literal(number.value)
        if not isinstance(value, Literal):
            problem = f"{what} must be known at compile time, this is {describe(value)}"
            raise SourceError(span, problem, advice)
        if isinstance(value.value, bool) or not isinstance(value.value, int):
            advice = "divide with //" if isinstance(value.value, float) else ""
            raise SourceError(span, f"{what} is a whole number, this is {describe(value)}", advice)
        return value.value

    def index(self, array: ArrayValue, node: ast.expr) -> ir.Expr:
        """Return the index of the element `array[node]` in the IR's array."""
        result = arrays.index(self, array, node)
        if array.type.space == "register":
            result = self.number_of(result) or result
        if array.type.space == "register" and not self.is_fixed(result):
            raise SourceError(
                self.span(node),
                f"{array.name} is in registers: its index must be constant once loops are unrolled",
                "use st.unroll(range(...)) for the loop, or st.local(...) for the array",
            )
        return result

    # -------------------------------------------------------------- leaves
    def _Constant(self, node: ast.Constant) -> Value:
        if isinstance(node.value, bool | int | float | complex):
            return Literal(node.value)
        if isinstance(node.value, str):
            return Host(node.value)
        if isinstance(node.value, bytes):
            return of_python(node.value)
        if node.value is None:
            raise SourceError(
                self.span(node), "None is not in the kernel language", "write a number, such as -1 or 0.0"
            )
        raise refused(node, self.span(node))

    def _Tuple(self, node: ast.Tuple) -> Value:
        return Tuple(tuple(self.values(*node.elts)))

    def _List(self, node: ast.List | ast.Set) -> Value:
        typed: list[ValueType] = []  # types of the numeric items
        literal: list[ValueType] = []
        for item in node.elts:
            with suppress(SourceError, AlreadyReported):
                value = self.value(item)
                (literal if isinstance(value, Literal) else typed).append(
                    typing.expression(value, self.span(item)).type
                )
        natural = F32 if F32 in literal or not literal else literal[0]
        raise refused(node, self.span(node), typed[0] if typed else natural)

    _Set = _List

    def _Attribute(self, node: ast.Attribute) -> Value:
        element, span = self.struct_element(node), self.span(node)
        if isinstance(element, StructElement):
            return struct_arrays.load(self, element, span)
        if element is not None:
            array, index = element
            return self.let(
                ir.Load(array.name, arrays.index(self, array, index), array.type.element, span), array.shown, span
            )
        elsewhere = self.names_elsewhere(node)
        if elsewhere and elsewhere[0] not in PYTHON:  # names of Python's modules may be supported
            self.refuse_foreign(elsewhere, span)
        owner = self.value(node.value)
        if isinstance(owner, StructArray):
            return struct_arrays.attribute(owner, node.attr, span)
        if isinstance(owner, Host) and (value := self._host_attribute(owner, node, span)) is not None:
            return value
        if complex_numbers.is_complex(owner):
            return complex_numbers.attribute(owner, node.attr, span)
        if isinstance(owner, ir.Expr) and isinstance(owner.type, Vector):
            components = tuple(COMPONENTS[: owner.type.lanes])
            if node.attr not in components:
                raise SourceError(span, f"{owner.type} has no component {node.attr}", f"write {', '.join(components)}")
            return typing.component(owner, components.index(node.attr), span)
        if isinstance(owner, ArrayValue):
            return arrays.attribute(owner, node.attr, span)
        if isinstance(owner, Struct):
            return records.field(owner, node.attr, span)
        if isinstance(owner, Tensor) and node.attr == "shape":
            return Tuple(tuple(map(Literal, reversed(owner.form.sizes))))
        raise SourceError(span, f"{describe(owner)} has no {node.attr} in a kernel", *no_attribute(owner, node.attr))

    def _host_attribute(self, owner: Host, node: ast.Attribute, span: Span) -> Value | None:
        """Return an attribute of a module, an index or a constant object; None for other objects."""
        target, name = owner.object, node.attr
        if isinstance(target, intrinsics.Index3) and name in COMPONENTS[:3]:
            return ir.Special(f"{target._name}.{name}", I32, span)
        if is_dataclass(target) and not isinstance(target, type) and not is_record(target):
            kind = type(target).__name__
            raise SourceError(span, f"a field of {kind} may change", f"write @dataclass(frozen=True) for {kind}")
        if not (is_module := isinstance(target, ModuleType)) and not is_record(target):
            return None
        value = self.program.attribute(target, name)
        if value is not MISSING:
            return self.special(value, span) if is_module else of_python(value)
        if not is_module:
            raise SourceError(span, f"{describe(owner)} has no {name}", *no_attribute(owner, name))
        for names in ([name], ["cuda", name], similar_name(name)):
            self.refuse_foreign(names, span)
        near = closest(name, [n for n in dir(target) if not isinstance(getattr(target, n, None), ModuleType)])
        advice = f"do you mean {'.'.join([*dotted(node.value), near])}?" if near else LISTED
        if name in PYTHON_BUILTINS:
            advice = f"write {name}(...), which is Python's own"
        raise SourceError(span, f"{target.__name__} has no {name}", advice)

    def component(self, vector: ir.Expr, index: ir.Expr, span: Span) -> ir.Expr:
        assert isinstance(vector.type, Vector)
        if isinstance(vector, ir.Pack) and isinstance(index, ir.Const):
            return vector.args[int(index.value)]
        return ir.Component(vector, index, vector.type.element, span)

    def struct_element(self, node: ast.expr) -> StructElement | tuple[ArrayValue, arrays.EvaluatedIndex] | None:
        """Return the element of an array of structs named by an expression, or a field of it; None for any other expression."""
        if isinstance(node, ast.Subscript) and isinstance(node.value, ast.Name):
            array = self.names.get(node.value.id)
            if isinstance(array, StructArray):
                item = struct_arrays.subscript(self, array, node.slice)
                return item if isinstance(item, StructElement) else None
        if isinstance(node, ast.Attribute):
            element = self.struct_element(node.value)
            if isinstance(element, StructElement):
                return struct_arrays.field(element, node.attr, self.span(node))
        return None

    def element(self, array: ArrayValue, index: ir.Expr, span: Span) -> ir.Expr:
        if array.type.space == "register":
            return ir.Item(array.name, index, array.type.element, span)
        return self.let(ir.Load(array.name, index, array.type.element, span, block=array.block), array.name, span)

    def _Subscript(self, node: ast.Subscript) -> Value:
        owner, span = self.value(node.value), self.span(node)
        if isinstance(owner, StructArray):
            element = struct_arrays.subscript(self, owner, node.slice)
            return struct_arrays.load(self, element, span) if isinstance(element, StructElement) else element
        if isinstance(owner, ArrayValue):
            if not arrays.is_element(self, owner, node.slice):
                return arrays.view(self, owner, node.slice)
            return self.element(owner, self.index(owner, node.slice), span)
        complex_numbers.refuse_components(owner, span)
        if isinstance(owner, Struct):
            owner = records.as_tuple(owner, span)
        if isinstance(owner, Tuple):
            at = self.constant_int(node.slice, "a tuple's index", _TABLES)
            if not -len(owner.items) <= at < len(owner.items):
                advice = f"its last index is {len(owner.items) - 1}"
                raise SourceError(span, f"index {at}, but the tuple has {len(owner.items)} items", advice)
            return owner.items[at]  # type: ignore[no-any-return]
        if isinstance(owner, ir.Expr) and isinstance(owner.type, Vector):
            index = self.convert(node.slice, I32, "an index")
            index = self.number_of(index) or index
            if not self.is_fixed(index):
                advice = "use st.unroll(range(...)) for the loop, or a chain of if"
                raise SourceError(
                    self.span(node.slice), "a vector's index must be constant once loops are unrolled", advice
                )
            if isinstance(index, ir.Const) and not 0 <= index.value < owner.type.lanes:
                advice = f"its last index is {owner.type.lanes - 1}"
                raise SourceError(self.span(node.slice), f"{owner.type} has {owner.type.lanes} components", advice)
            if not isinstance(owner, ir.Reg):
                owner = self.let(owner, "vector", span)
            return self.component(owner, index, span)
        raise SourceError(span, f"{describe(owner)} cannot be indexed", advice_for(owner))

    # -------------------------------------------------------------- operators
    def _BinOp(self, node: ast.BinOp) -> Value:
        row = [node]  # a + b + c is ((a + b) + c)
        while isinstance(row[-1].left, ast.BinOp):
            row.append(row[-1].left)
        for step in row:
            if type(step.op) not in BINARY:
                raise refused(step.op, self.span(step))
        operands = [self.reported(partial(self.value, n)) for n in (row[-1].left, *(s.right for s in reversed(row)))]
        value = operands[0]
        for number, (step, right) in enumerate(zip(reversed(row), operands[1:], strict=True), 1):
            spans = [self.span(n) for n in (step, step.left, step.right)]
            if value is None or right is None:
                value = None  # the other operands may have errors too
                continue
            value = self.reported(partial(self.arithmetic, type(step.op), value, right, *spans))
            value = None if value is None else self.shallow(value, number, spans[0])
        if value is None:
            raise AlreadyReported
        return value

    def arithmetic(self, kind: type, a: Value, b: Value, span: Span, left: Span, right: Span) -> Value:
        """Return the value of a binary operator."""
        name, symbol, python = BINARY[kind]
        if isinstance(a, Literal) and isinstance(b, Literal):
            return typing.fold(python, [a, b], span)
        if complex_numbers.is_complex(a) or complex_numbers.is_complex(b):
            return complex_numbers.arithmetic(self, kind, symbol, (a, left), (b, right), span)
        if kind is ast.Pow:
            return maths.power(self, a, b, span, left, right)
        if name in ("shl", "shr") and (count := typing.shift_count(a, b, right, symbol)) is not None:
            return typing.operation(name, [typing.expression(a, left), count], span, symbol)
        return typing.operation(name, typing.unified([(a, left), (b, right)], symbol), span, symbol)

    def _UnaryOp(self, node: ast.UnaryOp) -> Value:
        value, span = self.value(node.operand), self.span(node)
        if isinstance(node.op, ast.UAdd):
            return value
        name, symbol, python = UNARY[type(node.op)]
        if name == "not" and not is_bool(value):
            raise not_a_bool(f"`not` takes a bool, this is {describe(value)}", self.span(node.operand), "==")
        if isinstance(value, Literal):
            return typing.fold(python, [value], span)
        if complex_numbers.is_complex(value) and name == "neg":
            return complex_numbers.negative(self, value, span)
        return typing.operation(name, typing.unified([(value, span)], symbol), span, symbol)

    def _IfExp(self, node: ast.IfExp) -> Value:
        condition, span = self.value(node.test), self.span(node)
        if isinstance(condition, Literal):
            return self.value(node.body if condition.value else node.orelse)
        (condition,) = self.together(lambda: self.truth(condition, self.span(node.test)))
        (yes, then), (no, orelse) = self.together(lambda: self.in_arm(node.body), lambda: self.in_arm(node.orelse))
        arms = [(yes, self.span(node.body)), (no, self.span(node.orelse))]
        if isinstance(yes, Literal | Choice) and isinstance(no, Literal | Choice):
            if then or orelse:
                condition = self.let(condition, "choice", span)
                yes, no = self._decide_arm(yes, then, orelse, span), self._decide_arm(no, orelse, then, span)
                self.emit(ir.If(condition, tuple(then), tuple(orelse), span))
            return Choice(condition, yes, no)
        if isinstance(yes, ArrayValue | StructArray) or isinstance(no, ArrayValue | StructArray):
            advice = [
                f"choose the element: {_element(arms[0])} if {self.span(node.test).text} else {_element(arms[1])}"
            ]
            if (
                isinstance(yes, ArrayValue)
                and isinstance(no, ArrayValue)
                and yes.type == no.type
                and yes.shown != no.shown
            ):
                pair = f"{yes.shown}, {no.shown} = {no.shown}, {yes.shown}"
                advice.append(f"or let the arrays change places after each iteration: {pair}")
            raise SourceError(span, "an array cannot be chosen at run time", *advice)
        if isinstance(yes, Tuple | Struct) or isinstance(no, Tuple | Struct):
            return self._chosen_record(condition, arms, (then, orelse), span)
        vector = next((v.type for v, _ in arms if isinstance(v, ir.Expr) and isinstance(v.type, Vector)), None)
        if vector is None:
            yes, no = typing.unified(arms, "a conditional expression")
        else:
            yes, no = (typing.converted(v, vector, s, "the other arm") for v, s in arms)
        pure = not then and not orelse and vector is None
        if pure and not typing.must_be_guarded(yes) and not typing.must_be_guarded(no):
            return typing.operation("select", [condition, yes, no], span, "if else")
        target = self.temporary("choice", yes.type, span)
        bodies = (*then, ir.Let(target, yes, arms[0][1])), (*orelse, ir.Let(target, no, arms[1][1]))
        self.emit(ir.If(condition, *bodies, span))
        return target

    def _decide_arm(
        self, arm: Literal | Choice, taken_body: list[ir.Stmt], other_body: list[ir.Stmt], span: Span
    ) -> Literal | Choice:
        """Return the arm with its conditions stored in both branches: computed in its own, false in the other."""
        if isinstance(arm, Literal):
            return arm
        yes, no = (self._decide_arm(branch, taken_body, other_body, span) for branch in (arm.yes, arm.no))
        target = self.temporary("choice", BOOL, span)
        taken_body.append(ir.Let(target, arm.condition, span))
        other_body.append(ir.Let(target, ir.Const(False, BOOL, span), span))
        return Choice(target, yes, no)

    def _chosen_record(
        self,
        condition: ir.Expr,
        arms: list[tuple[Value, Span]],
        effects: tuple[list[ir.Stmt], list[ir.Stmt]],
        span: Span,
    ) -> Value:
        """Return one of two tuples or structs, chosen leaf by leaf."""
        type = records.type_of(*next(arm for arm in arms if isinstance(arm[0], Tuple | Struct)))
        records.refuse_arrays(type, span)
        targets = [self.temporary("choice", leaf, span) for leaf in records.leaf_types(type)]
        bodies: list[ir.Body] = []
        for (value, arm_span), before in zip(arms, effects, strict=True):
            values = records.leaves(records.converted(value, type, arm_span, "the other arm"))
            lets = [ir.Let(t, typing.expression(v, arm_span), arm_span) for t, v in zip(targets, values, strict=True)]
            bodies.append((*before, *lets))
        self.emit(ir.If(condition, bodies[0], bodies[1], span))
        return records.filled(type, iter(targets))

    def in_arm(self, node: ast.expr) -> tuple[Value, list[ir.Stmt]]:
        """Return a conditional value and the statements it needs."""
        with self.arm() as effects:
            value = self.value(node)
        return value, effects

    def _NamedExpr(self, node: ast.NamedExpr) -> Value:
        self.assign(node.target, self.value(node.value), self.span(node))
        return self.value(ast.copy_location(ast.Name(node.target.id, ast.Load()), node.target))

    def assign(self, target: ast.expr, value: Value, span: Span) -> None:
        """`target = value`."""
        raise NotImplementedError

    # -------------------------------------------------------------- calls
    def _Call(self, node: ast.Call) -> Value:
        called = self.value(node.func)
        if not isinstance(called, Host):
            advice = "write x[...] for an element" if isinstance(called, ArrayValue) else "write * for a product"
            raise SourceError(self.span(node), f"{describe(called)} cannot be called", advice)
        return calls.call(self, node, called.object)

    def annotation(self, node: ast.expr) -> Any:
        """Return the object named by an annotation; `Global[f32]` is the pair (Global, element)."""
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            try:
                read = parsed_expression(node.value)
            except (SyntaxError, ValueError, RecursionError, MemoryError):
                raise SourceError(self.span(node), f"{shown(node.value)} is not a type", _WRITE_TYPES) from None
            for child in ast.walk(read):  # errors point at the annotation
                ast.copy_location(child, node)
            node = read
        if isinstance(node, ast.Subscript):
            generic = self.annotation(node.value)
            if generic is tuple:
                items = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
                return records.TupleType(tuple(self.any_type_of(item) for item in items))
            if isinstance(node.slice, ast.Tuple):
                raise SourceError(self.span(node.slice), "one type is expected here: that of an element", _ONE_TYPE)
            return generic, self.any_type_of(node.slice)
        value = self.value(node)
        return value.object if isinstance(value, Host) else value

    def type_of(self, node: ast.expr) -> ValueType:
        """Return the scalar or vector type named by an expression."""
        target = self.annotation(node)
        type = calls.value_type(self.program, target, self.span(node))
        if type is None:
            raise SourceError(
                self.span(node),
                f"a type is expected here, this is {describe(of_python(target))}",
                type_advice(target, "write st.i32, st.f32, st.float4 ..."),
            )
        return type

    def any_type_of(self, node: ast.expr) -> ValueType | records.RecordType:
        """Return the type named by an expression, including tuples and structs."""
        target = self.annotation(node)
        if isinstance(target, records.RecordType):
            return target
        return self.struct(target, self.span(node)) if is_struct(target) else self.type_of(node)

    def struct(self, record: type, span: Span, arrays: bool = False) -> records.StructType:
        """Return the struct type of a class. arrays: whether fields may be `Global[...]` arrays."""
        fields: list[tuple[str, Any]] = []
        for name, annotation in field_annotations(record, self.source.function.__globals__).items():
            if is_struct(annotation):
                fields.append((name, self.struct(annotation, span, arrays)))
                continue
            if arrays and get_origin(annotation) is hints.Global:
                element = calls.value_type(self.program, get_args(annotation)[0], span)
                if element is not None:
                    fields.append((name, Array(element, None, "global")))
                    continue
            type = calls.value_type(self.program, annotation, span)
            if type is None:
                actual = describe(of_python(annotation))
                raise SourceError(span, f"{record.__name__}.{name} is {actual}", "write st.i32, st.f32, st.float4 ...")
            fields.append((name, type))
        return records.StructType(record, tuple(fields))

    def array(self, node: ast.expr, of_cluster: bool = False) -> ArrayValue:
        """Return the array named by an expression. of_cluster: whether another block of the cluster may have it."""
        value = self.value(node)
        if not isinstance(value, ArrayValue):
            raise SourceError(self.span(node), f"an array is expected here, this is {describe(value)}", ARRAY_FIRST)
        if value.block is not None and not of_cluster:
            raise SourceError(self.span(node), *NO_ACCESS)
        return value

    def declare(
        self, name: str, type: Array, values: tuple[Any, ...], span: Span, count: ir.Expr | None = None
    ) -> ArrayValue:
        """Allocate an array under an unused name."""
        if name in self.names or name in self.types:
            raise SourceError(span, f"{name} is already in use", "give each array a name of its own")
        own = self.new_register(name, "plain", None)
        self.registers[own] = "plain", type.element
        self.emit(ir.Alloc(own, type, values, span, count=count))
        return arrays.whole(own, type, span)


def _element(arm: tuple[Value, Span]) -> str:
    """Return the text of an arm of a conditional expression; an element for an array."""
    value, text = arm[0], arm[1].text
    if not isinstance(value, ArrayValue | StructArray):
        return text
    return f"{text}[{', '.join('ijkmn'[: len(struct_arrays.leaves(value)[0].extents)])}]"
