"""The verifier of the IR. It runs after the front end and after every pass."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..errors import VerifyError
from ..language.types import BOOL, Array, Results, Scalar, Type, Value, Vector
from . import nodes as ir
from .effects import Effect, performed, row_of
from .names import elements
from .ops import TABLE
from .walk import bodies, children
from .wide import access_type


def verify(program: ir.Program) -> None:
    """Raise VerifyError at the first node that breaks a rule."""
    functions: dict[str, ir.Function] = {}
    for function in (*program.functions, program.kernel):
        _Checker(function, functions, function is program.kernel).run()
        functions[function.name] = function


class _Checker:
    def __init__(self, function: ir.Function, functions: Mapping[str, ir.Function], is_kernel: bool) -> None:
        self.function, self.functions, self.is_kernel = function, functions, is_kernel
        self.registers: dict[str, Value] = {}
        self.arrays: dict[str, Array] = {}

    def run(self) -> None:
        for param in self.function.params:
            if isinstance(param.type, Array):
                self.arrays[param.name] = param.type
            else:
                self.registers[param.name] = param.type
        self.body(self.function.body, loops=0, frames=0)

    def require(self, holds: bool, node: object, rule: str) -> None:
        if not holds:
            raise VerifyError(f"{self.function.name}: {rule}: {node}")

    def same(self, expr: ir.Expr, type: Type, node: object) -> None:
        self.require(expr.type == type, node, f"expected {type}, found {expr.type}")

    # -------------------------------------------------------------- statements
    def body(self, body: ir.Body, loops: int, frames: int) -> None:
        for stmt in body:
            if not isinstance(stmt, ir.While):  # its condition may read what its setup assigns
                self.operands(stmt)
            self.statement(stmt, loops, frames)
            inside = loops + isinstance(stmt, ir.While | ir.For)
            for inner in bodies(stmt):
                self.body(inner, inside, frames + isinstance(stmt, ir.Frame))
            if isinstance(stmt, ir.While):
                self.operands(stmt)
                self.same(stmt.cond, BOOL, stmt)

    def operands(self, stmt: ir.Stmt) -> None:
        for child in children(stmt):
            self.expr(child)

    def statement(self, stmt: ir.Stmt, loops: int, frames: int) -> None:
        if (row := row_of(stmt)) is not None:
            self.effect(performed(stmt), row)
        match stmt:
            case ir.Let():
                self.let(stmt)
            case ir.Alloc():
                self.allocation(stmt)
            case ir.If() | ir.Assert() | ir.Check():
                self.same(stmt.cond, BOOL, stmt)
            case ir.For():
                self.define(stmt.var, stmt)
                self.same(stmt.start, stmt.var.type, stmt)
                self.same(stmt.stop, stmt.var.type, stmt)
                if isinstance(stmt.step, int):
                    self.require(stmt.step != 0, stmt, "a loop moves")
                else:
                    self.same(stmt.step, stmt.var.type, stmt)
                if stmt.limit is not None:
                    self.same(stmt.limit, stmt.var.type, stmt)
            case ir.Break() | ir.Continue():
                self.require(loops > 0, stmt, "only a loop can be left")
            case ir.Return():
                returned = stmt.value.type if stmt.value is not None else None
                self.require(returned == (None if frames else self.function.result), stmt, "the result's type")

    def let(self, stmt: ir.Let) -> None:
        target, value = stmt.target, stmt.value
        if not isinstance(value, ir.Effect):
            self.require(target is not None, stmt, "a pure Let needs a target")
        if isinstance(target, ir.Reg):
            self.define(target, stmt)
        elif isinstance(target, ir.Item):
            self.expr(target)
        if target is not None:
            assert value.type is not None
            self.require(value.type == target.type, stmt, f"{target.type} is given {value.type}")

    def allocation(self, stmt: ir.Alloc) -> None:
        declared = self.arrays.setdefault(stmt.array, stmt.type)
        self.require(declared == stmt.type, stmt, "one name, one array")
        if stmt.count is not None:
            self.require(stmt.type.shape is None, stmt, "a count or a shape")
            self.index(stmt.count, stmt)
        if stmt.type.space == "register":
            names = elements(stmt.array, stmt.type.length)
            self.registers |= dict.fromkeys(names, stmt.type.element)

    def define(self, target: ir.Reg, stmt: ir.Stmt) -> None:
        declared = self.registers.setdefault(target.name, target.type)
        self.require(declared == target.type, stmt, f"{target.name} is {declared}")

    def array(self, name: str, node: object) -> Array:
        self.require(name in self.arrays, node, f"no array {name}")
        return self.arrays[name]

    def index(self, expr: ir.Expr, node: object) -> None:
        type = expr.type
        self.require(
            isinstance(type, Scalar) and type.is_integer and type.size >= 4, node, "an index has 32 or 64 bits"
        )

    # -------------------------------------------------------------- effects and expressions
    def effect(self, effect: Any, row: Effect) -> None:
        element: Type | None = None
        if row.spaces:
            array = self.array(effect.array, effect)
            spaces = " or ".join(row.spaces)
            self.require(array.space in row.spaces, effect, f"{row.node.__name__} accesses {spaces} memory")
            element = self.accessed(effect, array)
            self.index(effect.index, effect)
        for name, operand in row.operands.items():
            match operand.type:
                case "element":
                    assert element is not None
                    self.same(getattr(effect, name), element, effect)
                case "result":
                    self.same(getattr(effect, name), effect.type, effect)
                case Scalar() as type:
                    self.same(getattr(effect, name), type, effect)
        for holds, message in row.rules:
            self.require(holds(effect), effect, message)
        if isinstance(effect, ir.Call):
            self.call(effect)

    def accessed(self, access: ir.Access, array: Array) -> Value:
        """Return the type of an access: the element, or another one in the kernel itself (`wide`)."""
        type, element = access_type(access), array.element
        if type == element:
            return type
        rule = "an access of another type than its array's element has whole elements, and is in the kernel"
        whole = type.size >= element.size and BOOL not in (type, element)
        self.require(whole and array.space != "register" and self.is_kernel, access, rule)
        return type

    def call(self, call: ir.Call) -> None:
        self.require(call.function in self.functions, call, "callees precede callers")
        callee = self.functions[call.function]
        self.require(len(call.args) == len(callee.params), call, "one argument a parameter")
        for arg, param in zip(call.args, callee.params, strict=True):
            if isinstance(arg, ir.ArrayRef):
                actual = self.array(arg.name, call)
                assert isinstance(param.type, Array)
                same = (actual.element, actual.space, actual.length) == (
                    param.type.element,
                    param.type.space,
                    param.type.length,
                )
                self.require(same, call, f"{param.name} is {param.type}, not {actual}")
            else:
                self.same(arg, param.type, call)
        self.require(call.type == callee.result, call, "a call has its function's type")

    def expr(self, expr: ir.Expr) -> None:
        for child in children(expr):
            self.expr(child)
        match expr:
            case ir.Reg():
                self.require(
                    self.registers.get(expr.name) == expr.type, expr, "a register is read with its type, after a Let"
                )
            case ir.Special():
                self.require(expr.name in ir.SPECIALS, expr, "a known index")
            case ir.Item():
                array = self.array(expr.array, expr)
                self.require(
                    array.space == "register" and array.element == expr.type, expr, "an Item of a register array"
                )
            case ir.Extent():
                self.array(expr.array, expr)
            case ir.Op() | ir.Defined(value=ir.Op()):
                self.operation(expr.value if isinstance(expr, ir.Defined) else expr)
            case ir.Within():
                self.same(expr.flat, expr.type, expr)
                self.require(len(expr.index) == len(expr.extents), expr, "one extent an index")
                for term in (*expr.index, *expr.extents):
                    if term is not None:
                        self.index(term, expr)
            case ir.Pack(type=type):
                if isinstance(type, Results):
                    types = type.items
                else:
                    assert isinstance(type, Vector)
                    types = (type.element,) * type.lanes
                self.require(tuple(a.type for a in expr.args) == types, expr, "a Pack fills its vector or its results")
            case ir.Component():
                whole = expr.value.type
                if isinstance(whole, Results):
                    own = whole.items[int(expr.index.value)] if isinstance(expr.index, ir.Const) else None
                else:
                    own = whole.element if isinstance(whole, Vector) else None
                self.require(own == expr.type, expr, "a Component of a vector or of results")

    def operation(self, expr: ir.Op) -> None:
        self.require(expr.name in TABLE, expr, "no such operation")
        row, args = TABLE[expr.name], expr.args
        self.require(len(args) == row.operands, expr, f"{row.operands} operands")
        kind = row.deciding(args).type
        self.require(kind in row.types, expr, f"not defined for {kind}")
        assert isinstance(kind, Scalar)
        for arg, required in zip(args, row.operand_types(kind), strict=True):
            if row.count and arg is args[-1]:
                self.require(isinstance(arg.type, Scalar) and arg.type.is_integer, expr, "a count is an integer")
            else:
                self.same(arg, required, expr)
        self.require(expr.type == row.result_type(kind), expr, "the row's result type")
