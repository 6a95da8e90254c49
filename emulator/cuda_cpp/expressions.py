"""Lowering of expressions: values and objects."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import replace
from typing import Any, cast

from ..errors import CompileError, Diagnostic
from ..ir import nodes as ir
from ..language.types import BOOL, I32, I64, Scalar, Vector
from .accesses import Accesses, typed, unit_of
from .planning import Key, Path, Plan
from .tree import Node, Variable, assigned, is_place
from .types import ArrayType, CType, PointerType, RecordType, Refusal, size_of
from .values import (
    AnyPointer,
    Choice,
    LambdaValue,
    Memory,
    MemoryPlace,
    Place,
    Pointer,
    PointerPlace,
    RegisterPlace,
    StructPlace,
    StructValue,
    Value,
    ValuePlace,
    is_null,
    pointee,
)

ARITHMETIC = {"+": "add", "-": "sub", "*": "mul", "&": "and", "|": "or", "^": "xor", "<<": "shl", ">>": "shr"}
COMPARISONS = {"<": "lt", "<=": "le", ">": "gt", ">=": "ge", "==": "eq", "!=": "ne"}
INDICES = {"threadIdx": "thread", "blockIdx": "block", "blockDim": "block_dim", "gridDim": "grid_dim"}


class Expressions(Accesses):
    """places: objects of variables by now. this: the object of a method."""

    def __init__(self, plan: Plan) -> None:
        super().__init__()
        self.plan = plan
        self.path: Path = ()
        self.places: dict[Variable, Place] = {}
        self.homes: dict[Variable, Path] = {}
        self.this: Place | None = None

    @abstractmethod
    def call(self, node: Node, needs_value: bool) -> Any:
        """Lower a call. Return its value, or the object that it returns a reference to."""

    @abstractmethod
    def global_place(self, variable: Variable) -> Place:
        """Return the object of a variable in shared, constant or global memory."""

    def at(self, node: Node) -> None:
        """Create the following nodes at the position of a node."""
        span = node.span
        for _, _, call in reversed(self.calls):
            span = span.inside(call)
        self.position = span

    def refused(self, node: Node, message: str) -> CompileError:
        self.at(node)
        return CompileError([Diagnostic("compile", message, self.position)])

    # -------------------------------------------------------------- values
    def value(self, node: Node) -> Any:
        """Return the value of an expression."""
        self.at(node)
        method = getattr(self, f"_{node.kind}_value", None)
        try:
            if method is not None:
                return method(node)
            if is_place(node):
                place = self.place(node)
                self.at(node)
                return self.load(place)
        except Refusal as error:
            raise CompileError([Diagnostic("compile", str(error), self.position)]) from None
        raise self.refused(node, "this expression is not supported here")

    def scalar(self, node: Node) -> ir.Expr:
        """Return the value of an expression of a scalar or vector type."""
        value = self.value(node)
        if not isinstance(value, ir.Expr):
            raise self.refused(node, "a number is expected here")
        return value

    def condition(self, node: Node) -> ir.Expr:
        """Return whether a value is not zero or null."""
        if node.kind == "text":  # assert(condition && "message")
            return self.constant(True, BOOL)
        value = self.value(node)
        self.at(node)
        if isinstance(value, Pointer | Choice):
            return self.operation("not", self.is_null(value))
        return self.truth(value)

    def _constant_value(self, node: Node) -> ir.Expr:
        return self.constant(node.value, cast(Scalar, node.type))

    def _null_value(self, node: Node) -> Pointer:
        return Pointer(None)

    def _text_value(self, node: Node) -> Value:
        raise self.refused(node, "a text is only supported as the format of printf")

    def _zero_value(self, node: Node) -> Any:
        return self.zero(cast(CType, node.type))

    def zero(self, type: CType) -> Any:
        """Return the value of a type without an initialiser in a list."""
        if isinstance(type, RecordType):
            return StructValue(type, {name: self.zero(kind) for name, (kind, _) in type.fields.items()})
        if isinstance(type, Vector):
            return ir.Pack((self.constant(0, type.element),) * type.lanes, type, self.position)
        if isinstance(type, ArrayType):
            return [self.zero(type.element) for _ in range(type.count or 0)]
        return Pointer(None, to=type.to) if isinstance(type, PointerType) else self.constant(0, type)

    def _lambda_value(self, node: Node) -> LambdaValue:
        function = node.function
        assert function is not None and function.body is not None
        if function.copies:
            names = [entry.variable for entry in function.body.walk() if entry.kind == "name"]
            for variable in names:
                if (
                    variable in self.plan.changed
                    and variable in self.places
                    and variable.place in ("local", "parameter")
                ):
                    raise self.refused(
                        node, f"a lambda with a copy of {variable.name}, which is assigned: capture it with &"
                    )
        return LambdaValue(function)

    def _this_value(self, node: Node) -> Any:
        assert self.this is not None
        return self.address(self.this, cast(PointerType, node.type).to)

    def _cast_value(self, node: Node) -> Any:
        inner, type = node[0], node.type
        if type is None:
            self.discard(inner)
            return None
        if node.sign == "decay":
            return self.pointer(inner)
        value = self.value(inner)
        self.at(node)
        if isinstance(type, PointerType):
            if isinstance(value, ir.Const) and not value.value:
                return Pointer(None, to=type.to)
            if not isinstance(value, Pointer | Choice):
                raise self.refused(node, "a number as a pointer is not supported")
            return typed(value, type.to)
        if isinstance(value, Pointer | Choice):
            if type is BOOL:
                return self.operation("not", self.is_null(value))
            if isinstance(value, Pointer) and value.memory is None and not value.terms:  # as in offsetof
                return self.constant(value.constant, cast(Scalar, type))
            raise self.refused(node, "a pointer as a number is not supported")
        return self.fitted(value, type)

    def fitted(self, value: Any, type: CType) -> Any:
        """Return a value converted to a scalar type; other values as they are."""
        return self.converted(value, type) if isinstance(value, ir.Expr) and isinstance(type, Scalar) else value

    # -------------------------------------------------------------- operators
    def _unary_value(self, node: Node) -> Any:
        sign, inner = node.sign, node[0]
        if sign in ("x++", "x--", "++x", "--x"):
            return self.increment(node, True)
        if sign == "&":
            return self.address(self.place(inner), inner.type)
        if sign == "*":
            return self.load(self.place(node))
        if sign == "!":
            return self.operation("not", self.condition(inner))
        value = self.scalar(inner)
        self.at(node)
        if sign == "+":
            return value
        return self.operation("neg" if sign == "-" else "invert", self.converted(value, cast(CType, node.type)))

    def increment(self, node: Node, needs_value: bool) -> Any:
        """Lower `x++`, `++x`, `x--` or `--x`."""
        place = self._kept_place(node[0])
        before = self.load(place)
        self.at(node)
        step, after = (1 if "+" in node.sign else -1), node.sign[0] != "x"
        if isinstance(before, Pointer | Choice):
            before = self.as_register(before) if needs_value and not after else before
            to = cast(PointerType, node.type).to
            self.store(place, self.moved(before, self.constant(step, I32), size_of(to)))
        else:
            value = cast(ir.Expr, before)
            if needs_value and not after:
                value = self.as_register(value)
            common = I32 if cast(Scalar, value.type).size < 4 else cast(Scalar, value.type)
            entry = self.constant(1, common)
            result = self.operation("add" if step > 0 else "sub", self.converted(value, common), entry)
            self.store(place, self.converted(result, cast(CType, node.type)))
            before = value
        if not needs_value:
            return None
        return self.load(place) if after else before

    def _binary_value(self, node: Node) -> Any:
        sign, (left, right) = node.sign, (node[0], node[1])
        if sign == ",":
            self.discard(left)
            return self.value(right)
        if sign in ("&&", "||"):
            return self._short_circuit(node, left, right)
        a = self.value(left)
        if any(True for _ in assigned(right)):  # C++ leaves the order open; the left operand is read first here
            a = self.as_register(a)
        b = self.value(right)
        self.at(node)
        return self.binary(sign, a, b)

    def binary(self, sign: str, a: Any, b: Any) -> Any:
        """Return an operator applied to converted operands."""
        if isinstance(a, Pointer | Choice) or isinstance(b, Pointer | Choice):
            return self._pointer_operator(sign, a, b)
        if not isinstance(a, ir.Expr) or not isinstance(b, ir.Expr):
            raise Refusal(f"the operator {sign} of these operands is not supported")
        if sign in COMPARISONS:
            if a.type is BOOL and sign not in ("==", "!="):
                a, b = self.converted(a, I32), self.converted(b, I32)
            return self.operation(COMPARISONS[sign], a, b)
        if a.type != b.type and sign not in ("<<", ">>"):
            raise Refusal(f"{a.type} {sign} {b.type} is not supported")
        type = cast(Scalar, a.type)
        if sign in ("/", "%"):
            if type.is_float:
                return self.operation("fdiv", a, b)
            # Without a sign, truncation is floor, for which powers of two need no division.
            names = ("floordiv", "mod") if type.kind == "uint" else ("div", "rem")
            return self.operation(names[sign == "%"], a, b)
        return self.operation(ARITHMETIC[sign], a, b)

    def _pointer_operator(self, sign: str, a: Any, b: Any) -> Any:
        if sign in ("+", "-") and isinstance(b, ir.Expr):
            wide = I64 if cast(Scalar, b.type).size > 4 else I32
            index = b if sign == "+" else self.operation("neg", self.converted(b, wide))
            return self.moved(a, index, size_of(pointee(a)))
        if sign == "+":
            return self.moved(b, a, size_of(pointee(b)))
        if sign in ("==", "!=") and (null := next((p for p in (a, b) if is_null(p)), None)) is not None:
            result = self.is_null(b if null is a else a)
            return result if sign == "==" else self.operation("not", result)
        if isinstance(a, Choice) or isinstance(b, Choice):
            raise Refusal("a comparison of pointers into several memories is not supported")
        if a.memory is b.memory and isinstance(a.memory, Memory):
            unit = unit_of(size_of(a.to), a, b)
            first, second = (self.converted(self.offset(p, unit), I64) for p in (a, b))
            if sign != "-":
                return self.operation(COMPARISONS[sign], first, second)
            difference = self.operation("sub", first, second)
            ratio = size_of(a.to) // unit
            return difference if ratio == 1 else self.operation("div", difference, self.constant(ratio, I64))
        if sign in ("==", "!="):
            return self.constant((a.memory is b.memory) == (sign == "=="), BOOL)
        raise Refusal(f"the operator {sign} of pointers into different memory is not supported")

    def _short_circuit(self, node: Node, left: Node, right: Node) -> ir.Expr:
        both = node.sign == "&&"
        a = self.condition(left)
        if isinstance(a, ir.Const):
            return self.condition(right) if bool(a.value) == both else a
        if any(True for _ in assigned(right)):
            a = self.as_register(a)
        with self.block() as effects:
            b = self.condition(right)
        self.at(node)
        if not effects and not self.must_be_guarded(b):
            return self.operation("both" if both else "either", a, b)
        result = self.register("both" if both else "either", BOOL)
        self.emit(ir.Let(result, a, self.position))
        arm = (*effects, ir.Let(result, b, self.position))
        self.emit(ir.If(result, arm if both else (), () if both else arm, self.position))
        return self.read(result)

    def _conditional_value(self, node: Node) -> Any:
        condition = self.condition(node[0])
        if isinstance(condition, ir.Const):
            return self.value(node[1] if condition.value else node[2])
        with self.block() as then:
            a = self.value(node[1])
        with self.block() as orelse:
            b = self.value(node[2])
        self.at(node)
        type = node.type
        if isinstance(a, Pointer | Choice):
            chosen = self.as_register(condition)
            if then or orelse:
                self.emit(ir.If(chosen, tuple(then), tuple(orelse), self.position))
            return Choice(chosen, a, b)
        if type is None:
            self.emit(ir.If(condition, tuple(then), tuple(orelse), self.position))
            return None
        guarded = then or orelse or self.must_be_guarded(a) or self.must_be_guarded(b)
        if not guarded and isinstance(type, Scalar):
            return self.operation("select", condition, self.converted(a, type), self.converted(b, type))
        target = self.new_variable("chosen", type)
        arms = []
        for statements, value in ((then, a), (orelse, b)):
            with self.block() as arm:
                self.body.extend(statements)
                self.store(target, self.fitted(value, type))
            arms.append(tuple(arm))
        self.emit(ir.If(condition, arms[0], arms[1], self.position))
        return self.load(target)

    def _assign_value(self, node: Node) -> Any:
        place = self.assignment(node)
        self.at(node)
        return self.load(place)

    def assignment(self, node: Node) -> Place:
        """Lower an assignment. Return the object."""
        left, right = node[0], node[1]
        value = self.value(right)
        if node.sign:
            place = self._kept_place(left)
            value = self._compound(node, place, value)
        else:
            place = self.place(left)
        self.at(node)
        self.store(place, self.fitted(value, cast(CType, left.type)))
        return place

    def _compound(self, node: Node, place: Place, operand: Any) -> Any:
        before = self.load(place)
        self.at(node)
        if isinstance(before, Pointer | Choice):
            return self._pointer_operator(node.sign, before, operand)
        if not isinstance(before, ir.Expr) or not isinstance(before.type, Scalar):
            raise Refusal(f"{node.sign}= of this type is not supported")
        # The right operand has the common type; a shift has the promoted type of the left one.
        shift = node.sign in ("<<", ">>")
        common = (I32 if before.type.size < 4 else before.type) if shift else cast(Scalar, operand.type)
        return self.binary(node.sign, self.converted(before, common), operand)

    def _kept_place(self, node: Node) -> Place:
        """Return an object that is read and then assigned: its index is computed once."""
        place = self.place(node)
        if not isinstance(place, MemoryPlace):
            return place
        terms = place.pointer.terms if isinstance(place.pointer, Pointer) else ()
        if len(terms) == 1 and isinstance(terms[0][0], ir.Reg):
            return place
        return replace(place, pointer=self.as_register(place.pointer))

    def _list_value(self, node: Node) -> Any:
        type, items = node.type, [self.value(item) for item in node.present]
        self.at(node)
        if isinstance(type, Vector):
            pieces = [self.converted(item, type.element) for item in items]
            pieces += [self.constant(0, type.element)] * (type.lanes - len(pieces))
            return ir.Pack(tuple(pieces), type, self.position)
        if isinstance(type, RecordType):
            fields = {}
            for number, (name, (kind, _)) in enumerate(type.fields.items()):
                fields[name] = self.fitted(items[number], kind) if number < len(items) else self.zero(kind)
            return StructValue(type, fields)
        if isinstance(type, ArrayType):
            missing = [self.zero(type.element) for _ in range((type.count or 0) - len(items))]
            return [*(self.fitted(item, type.element) for item in items), *missing]
        assert type is not None
        return self.fitted(items[0], type) if items else self.zero(type)

    def _call_value(self, node: Node) -> Any:
        result = self.call(node, True)
        return self.load(result) if isinstance(result, Place) else result

    def discard(self, node: Node) -> None:
        """Lower an expression for its effects."""
        self.at(node)
        if node.kind == "unary" and node.sign in ("x++", "x--", "++x", "--x"):
            self.increment(node, False)
        elif node.kind == "assign":
            self.assignment(node)
        elif node.kind == "call":
            self.call(node, False)
        elif node.kind == "binary" and node.sign == ",":
            self.discard(node[0])
            self.discard(node[1])
        elif node.kind == "cast" and node.sign != "decay":
            self.discard(node[0])
        elif node.kind not in ("name", "constant", "zero", "null"):
            self.value(node)

    # -------------------------------------------------------------- objects
    def place(self, node: Node) -> Place:
        """Return the object that an expression denotes; for other expressions, their value."""
        self.at(node)
        kind, sign = node.kind, node.sign
        if kind == "name":
            return self._named(node)
        if kind == "field":
            return self._field(node)
        if kind == "index":
            pointer = self.pointer(node[0])
            index = self.scalar(node[1])
            self.at(node)
            type = cast(CType, node.type)
            return MemoryPlace(typed(self.moved(pointer, index, size_of(type)), type), type, node.volatile)
        if kind == "unary" and sign == "*":
            return MemoryPlace(self.pointer(node[0]), cast(CType, node.type), node.volatile)
        if kind == "unary" and sign in ("++x", "--x"):
            self.increment(node, False)
            return self.place(node[0])
        if kind == "assign":
            return self.assignment(node)
        if kind == "view":
            return self._view(node)
        if kind == "binary" and sign == ",":
            self.discard(node[0])
            return self.place(node[1])
        if kind == "call":
            result = self.call(node, True)
            return result if isinstance(result, Place) else ValuePlace(result)
        return ValuePlace(self.value(node))

    def _named(self, node: Node) -> Place:
        variable = node.variable
        assert variable is not None
        if variable in self.places:
            return self.places[variable]
        if variable.place == "index":
            axes = {axis: self._index_axis(variable.name, axis) for axis in "xyz"}
            return ValuePlace(StructValue(cast(RecordType, variable.type), axes))
        if variable.place in ("shared", "constant", "device"):
            return self.global_place(variable)
        raise self.refused(node, f"{variable.name} is not known here")

    def _index_axis(self, name: str, axis: str) -> ir.Expr:
        return self.operation("cast_u32", ir.Special(f"{INDICES[name]}.{axis}", I32, self.position))

    def _field(self, node: Node) -> Place:
        owner, name = node.children[0], str(node.value)
        if owner is None:
            assert self.this is not None
            return self.member(self.this, name)
        if owner.kind == "name" and (variable := owner.variable) is not None and variable.place == "index":
            return ValuePlace(self._index_axis(variable.name, name))
        if node.sign == "->":
            if owner.kind == "this":
                assert self.this is not None
                return self.member(self.this, name)
            pointer = self.pointer(owner)
            self.at(node)
            to = cast(PointerType, owner.type).to
            if to is None:
                raise Refusal(f"the field {name} of a pointer to void")
            return self.member(MemoryPlace(pointer, to, node.volatile), name)
        place = self.place(owner)
        self.at(node)
        return self.member(place, name)

    def _view(self, node: Node) -> Place:
        place, type = self.place(node[0]), cast(CType, node.type)
        pointer = self.address(place, type)
        return MemoryPlace(pointer, type, node.volatile)

    def pointer(self, node: Node) -> AnyPointer:
        """Return an expression as a pointer; an array is a pointer to its first element."""
        if isinstance(node.type, ArrayType):
            place = self.place(node)
            if not isinstance(place, MemoryPlace):
                raise self.refused(node, "this array is not in memory: not supported")
            return typed(place.pointer, node.type.element)
        value = self.value(node)
        if not isinstance(value, Pointer | Choice):
            raise self.refused(node, "the pointer is not known at compile time: not supported")
        return value

    # -------------------------------------------------------------- variables
    def key(self, variable: Variable) -> Key:
        return self.homes.get(variable, ()), variable

    def new_variable(self, name: str, type: CType, stable: bool = False) -> Place:
        """Return a new object in registers. stable: whether it is assigned once."""
        if isinstance(type, RecordType):
            fields = {f: self.new_variable(f"{name}@:{f}", kind, stable) for f, (kind, _) in type.fields.items()}
            return StructPlace(type, fields)
        if isinstance(type, Scalar | Vector):
            return RegisterPlace(self.register(name, type, stable))
        raise Refusal(f"{name.replace('@:', '.')} is {type}: not supported in registers")

    def pointer_variable(self, variable: Variable) -> PointerPlace:
        """Return the object of an assigned pointer variable."""
        key = self.key(variable)
        to = cast(PointerType, variable.type).to
        return PointerPlace(self.name(variable.name), to, self.plan.pointees.get(key, []), key in self.plan.wide)
