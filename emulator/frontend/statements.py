"""Reading of Python statements as IR statements. An error is reported, and reading goes on with the next statement."""

from __future__ import annotations

import ast
import builtins
from typing import Any

from ..ir import nodes as ir
from ..ir.walk import expressions
from ..language import intrinsics
from ..language.types import I32, I64, Scalar, Vector
from ..language.types import Value as ValueType
from ..span import Span
from . import calls, typing
from .expressions import BINARY, PARTS, Expressions, construct_name
from .values import AlreadyReported, ArrayValue, Host, Literal, SourceError, Tuple, Value, describe


class Statements(Expressions):
    """Reads the statements of one function."""

    result: ValueType | None = None
    loops = 0

    def read(self, nodes: list[ast.stmt]) -> bool:
        """Emit the statements; whether control may run past their end."""
        falls_through = True
        for node in nodes:
            if not falls_through:
                self.program.report(self.span(node), "this cannot be reached")
                break
            try:
                falls_through = self.statement(node)
            except SourceError as error:
                self.program.report(error.span, error.message, *error.notes)
                self._mark_unresolved(node)
            except AlreadyReported:
                self._mark_unresolved(node)
        return falls_through

    def body_of(self, nodes: list[ast.stmt]) -> tuple[ir.Body, bool]:
        fixed = set(self.fixed)
        with self.block() as body:
            falls_through = self.read(nodes)
        self.fixed &= fixed  # names fixed inside may be unassigned outside
        return tuple(body), falls_through

    def _mark_unresolved(self, node: ast.stmt) -> None:
        """Names that a statement with an error would have assigned: their later uses are not reported."""
        stored = {n.id for n in ast.walk(node) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
        self.unresolved |= stored - self.assigned - set(self.names)

    def statement(self, node: ast.stmt) -> bool:
        method = getattr(self, f"_{type(node).__name__}", None)
        if method is None or not isinstance(node, ast.stmt):
            raise SourceError(
                self.span(node), f"{_STATEMENTS.get(type(node), construct_name(node))} is not in the kernel language"
            )
        return method(node) is not False

    # -------------------------------------------------------------- plain
    def _Pass(self, node: ast.Pass) -> None:
        pass

    def _Expr(self, node: ast.Expr) -> None:
        if isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            return
        before = len(self.body)
        value = self.value(node.value)
        if value is calls.NOTHING:
            return
        last = self.body[-1] if len(self.body) > before else None
        if not (isinstance(last, ir.Let) and last.target is value and isinstance(last.value, ir.EFFECTS)):
            raise SourceError(self.span(node), "this expression has no effect")
        self.body[-1] = ir.Let(None, last.value, last.span)  # the result is not read

    def _Assert(self, node: ast.Assert) -> None:
        message = ""
        if node.msg is not None:
            if not (isinstance(node.msg, ast.Constant) and isinstance(node.msg.value, str)):
                raise SourceError(self.span(node.msg), "an assertion's message is a text literal")
            message = node.msg.value
        condition = self.value(node.test)
        if isinstance(condition, Literal):
            if not condition.value:
                raise SourceError(
                    self.span(node), f"assertion failed at compile time{': ' if message else ''}{message}"
                )
            return
        self.emit(ir.Assert(self.truth(condition, self.span(node.test)), message, self.span(node)))

    def _Return(self, node: ast.Return) -> bool:
        span = self.span(node)
        if self.result is None:
            if node.value is not None:
                raise SourceError(
                    span, "this function returns nothing", "annotate its result, or store the value in an array"
                )
            self.emit(ir.Return(None, span))
            return False
        if node.value is None:
            raise SourceError(span, f"this function returns {self.result}")
        self.emit(ir.Return(self.convert(node.value, self.result, "the result"), span))
        return False

    def _Break(self, node: ast.Break) -> bool:
        return self._leave(node, ir.Break(self.span(node)))

    def _Continue(self, node: ast.Continue) -> bool:
        return self._leave(node, ir.Continue(self.span(node)))

    def _leave(self, node: ast.stmt, stmt: ir.Stmt) -> bool:
        if self.loops < 0:
            word = "break" if isinstance(stmt, ir.Break) else "continue"
            raise SourceError(self.span(node), f"{word} in an unrolled loop", "use a plain range, or an if")
        self.emit(stmt)
        return False

    # -------------------------------------------------------------- assignment
    def _Assign(self, node: ast.Assign) -> None:
        first = node.targets[0]
        if len(node.targets) == 1 and isinstance(first, ast.Name) and self._declares(first, node.value):
            return
        value = self.value(node.value)
        if len(node.targets) > 1 and isinstance(value, ir.EXPRESSIONS):
            value = self.let(value, "value", self.span(node.value))
        for target in node.targets:
            self.assign(target, value, self.span(node))

    def _declares(self, target: ast.Name, value: ast.expr) -> bool:
        if not isinstance(value, ast.Call):
            return False
        called = self.value(value.func)
        array = calls.declared(self, target.id, value, called.object) if isinstance(called, Host) else None
        if array is None:
            return False
        if target.id in self.names or target.id in self.types:
            raise SourceError(self.span(target), f"{target.id} is already in use", "give each array a name of its own")
        self.names[target.id] = array
        return True

    def _AnnAssign(self, node: ast.AnnAssign) -> None:
        if node.value is None:
            raise SourceError(self.span(node), "a variable is declared by its first value", "write: name: type = value")
        if not isinstance(node.target, ast.Name):
            raise SourceError(self.span(node.target), "only a variable can be annotated")
        type = self.type_of(node.annotation)
        self.assign(node.target, self.convert(node.value, type, node.target.id), self.span(node))

    def _AugAssign(self, node: ast.AugAssign) -> None:
        kind, span = type(node.op), self.span(node)
        if kind not in BINARY:
            raise SourceError(span, f"{construct_name(node.op)} is not in the kernel language")
        where, right_span = self.span(node.target), self.span(node.value)
        if isinstance(node.target, ast.Subscript):
            array = self.array(node.target.value)
            index = self.index(array, node.target.slice)
            if not isinstance(index, ir.Const | ir.Reg) and array.type.space != "register":
                index = self.let(index, f"{array.name}_index", where)
            old = self.element(array, index, where)
            right = self.value(node.value)
            self.store(array, index, self.arithmetic(kind, old, right, span, where, right_span), span, where)
            return
        left = self.value(ast.copy_location(_loaded(node.target), node.target))
        self.assign(node.target, self.arithmetic(kind, left, self.value(node.value), span, where, right_span), span)

    def assign(self, target: ast.expr, value: Value, span: Span) -> None:
        """`target = value`."""
        where = self.span(target)
        match target:
            case ast.Name():
                self._assign_name(target, value, span)
            case ast.Subscript():
                owner = self.value(target.value)
                if not isinstance(owner, ArrayValue):
                    raise SourceError(
                        where, f"{describe(owner)} cannot be assigned by index", "write v.x = ... for a vector's part"
                    )
                self.store(owner, self.index(owner, target.slice), value, span, where)
            case ast.Attribute():
                self._assign_part(target, value, span)
            case ast.Tuple():
                if not isinstance(value, Tuple) or len(value.items) != len(target.elts):
                    raise SourceError(span, f"{len(target.elts)} values are expected here, this is {describe(value)}")
                # All right sides are read before any name changes.
                items = [
                    self.let(v, "value", span) if isinstance(v, ir.EXPRESSIONS) and not isinstance(v, ir.Const) else v
                    for v in value.items
                ]
                for name, item in zip(target.elts, items, strict=True):
                    self.assign(name, item, span)
            case _:
                raise SourceError(where, f"{construct_name(target)} cannot be assigned")

    def element(self, array: ArrayValue, index: ir.Expr, span: Span) -> ir.Expr:
        if array.type.space == "register":
            return ir.Item(array.name, index, array.type.element, span)
        return self.let(ir.Load(array.name, index, array.type.element, span), array.name, span)

    def store(self, array: ArrayValue, index: ir.Expr, value: Value, span: Span, where: Span) -> None:
        if array.type.space == "constant":
            raise SourceError(where, f"{array.name} is constant")
        result = typing.converted(value, array.type.element, span, f"{array.name}'s element")
        if array.type.space == "register":
            self.emit(ir.Let(ir.Item(array.name, index, array.type.element, where), result, span))
        else:
            self.emit(ir.Store(array.name, index, result, where))

    def _assign_name(self, target: ast.Name, value: Value, span: Span) -> None:
        name = target.id
        if name in self.looped:
            raise SourceError(
                self.span(target),
                f"{name} is a loop variable: a loop does not see it change",
                "copy it first, or use while",
            )
        if name in self.names and not (isinstance(self.names[name], ir.Reg | Literal | Tuple)):
            raise SourceError(self.span(target), f"{name} is already {describe(self.names[name])}", "use another name")
        if isinstance(value, ArrayValue | Host) or (isinstance(value, Tuple) and name not in self.once):
            raise SourceError(span, f"a variable holds a number or a vector, this is {describe(value)}")
        if isinstance(value, Literal | Tuple) and name in self.once and name not in self.names:
            self.names[name] = value  # never changes: stays known at compile time
            self.assigned.add(name)
            return
        assert not isinstance(value, Tuple)
        known = self.types.get(name)
        parameter = self.names.get(name)
        if known is None and isinstance(parameter, ir.Reg):
            known = parameter.type
        if known is None:
            result = typing.expression(value, span)
        else:
            result = typing.expression(value, span, known)
            if result.type != known:
                advice = f"write {known}(...) here, or start {name} as {result.type}(...)"
                raise SourceError(span, f"{name} is {known}, this is {result.type}", advice)
        if name not in self.names:
            self.types[name] = result.type
            self.assigned.add(name)
            if name in self.once and result.type in (I32, I64) and self.is_fixed(result):
                self.fixed.add(name)
        self.unresolved.discard(name)
        register, last = ir.Reg(name, result.type, self.span(target)), self.body[-1] if self.body else None
        if isinstance(last, ir.Let) and last.target is result:  # an effect straight into its variable
            self.body[-1] = ir.Let(register, last.value, span)
        else:
            self.emit(ir.Let(register, result, span))

    def _assign_part(self, target: ast.Attribute, value: Value, span: Span) -> None:
        where = self.span(target)
        owner = self.value(target.value)
        if not (isinstance(owner, ir.Reg) and isinstance(owner.type, Vector) and isinstance(target.value, ast.Name)):
            raise SourceError(
                where, "only a variable's part can be assigned", "change a copy, then store the whole vector"
            )
        vector, at = owner.type, PARTS.find(target.attr)
        if not (len(target.attr) == 1 and 0 <= at < vector.lanes):
            raise SourceError(where, f"{vector} has the parts {', '.join(PARTS[: vector.lanes])}, not {target.attr}")
        new = typing.converted(value, vector.element, span, f"a part of {vector}")
        parts = tuple(new if i == at else self.part(owner, ir.Const(i, I32, where), where) for i in range(vector.lanes))
        self.emit(ir.Let(ir.Reg(owner.name, vector, where), ir.Pack(parts, vector, where), span))

    # -------------------------------------------------------------- control
    def _If(self, node: ast.If) -> bool:
        condition = self.value(node.test)
        if isinstance(condition, Literal):
            if not isinstance(condition.value, bool):
                raise SourceError(self.span(node.test), "a condition is a bool", "write a comparison, such as x != 0")
            return self.read(node.body if condition.value else node.orelse)
        test = self.truth(condition, self.span(node.test))
        before = set(self.assigned)
        then, then_falls = self.body_of(node.body)
        after_then, self.assigned = self.assigned, set(before)
        orelse, else_falls = self.body_of(node.orelse)
        if not then_falls:
            pass  # only the other branch goes on
        elif not else_falls:
            self.assigned = after_then
        else:
            self.assigned &= after_then
        self.emit(ir.If(test, then, orelse, self.span(node.test)))
        return then_falls or else_falls

    def _While(self, node: ast.While) -> bool:
        self._no_else(node)
        with self.block() as setup:
            test = self.condition(node.test)
        before = set(self.assigned)
        outer, self.loops = self.loops, 1
        body, _ = self.body_of(node.body)
        self.loops = outer
        self.assigned = before
        self.emit(ir.While(tuple(setup), test, body, self.span(node.test)))
        endless = isinstance(test, ir.Const) and bool(test.value)
        return not endless or _breaks(node.body)

    def _For(self, node: ast.For) -> None:
        self._no_else(node)
        if not isinstance(node.target, ast.Name):
            raise SourceError(self.span(node.target), "a loop has one variable")
        call, unroll = self._range_of(node.iter)
        if call.keywords or not 1 <= len(call.args) <= 3:
            raise SourceError(self.span(call), "range takes one to three numbers")
        bounds = [(self.value(a), self.span(a)) for a in call.args]
        step = self.known(call.args[2], "a loop's step") if len(bounds) == 3 else 1
        if step == 0:
            raise SourceError(self.span(call), "a loop's step is not 0")
        if len(bounds) == 1:
            bounds.insert(0, (Literal(0), self.span(call)))
        start, stop = typing.unified(bounds[:2], "range")
        assert isinstance(start.type, Scalar)
        if not start.type.is_integer or start.type.size < 4:
            raise SourceError(
                self.span(call), f"a loop counts in 32 or 64 bits, this is {start.type}", "write i32(...)"
            )
        if unroll and not (self.is_fixed(start) and self.is_fixed(stop)):
            raise SourceError(
                self.span(call), "an unrolled loop's bounds must be known at compile time", "make them Const parameters"
            )
        self._loop(node, start, stop, step, unroll)

    def _range_of(self, node: ast.expr) -> tuple[ast.Call, bool]:
        unroll = False
        if isinstance(node, ast.Call) and self._is(node.func, intrinsics.unroll) and len(node.args) == 1:
            node, unroll = node.args[0], True
        if not (isinstance(node, ast.Call) and self._is(node.func, builtins.range)):
            raise SourceError(
                self.span(node), "a loop runs over range(...)", "write: for i in range(n), or st.unroll(range(K))"
            )
        return node, unroll

    def _is(self, node: ast.expr, target: Any) -> bool:
        value = self.value(node)
        return isinstance(value, Host) and value.object is target

    def _loop(self, node: ast.For, start: ir.Expr, stop: ir.Expr, step: int, unroll: bool) -> None:
        assert isinstance(node.target, ast.Name)
        name, span = node.target.id, self.span(node.target)
        taken = name in self.types and name not in self.looped
        if name in self.names or name in self.loop_variables or name in self.fixed or taken:
            raise SourceError(span, f"{name} is already in use", "give the loop a variable of its own")
        if self.types.setdefault(name, start.type) != start.type:
            raise SourceError(span, f"{name} is {self.types[name]}, this loop counts in {start.type}")
        changed = {
            n.id
            for part in node.body
            for n in ast.walk(part)
            if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)
        }
        if any(
            isinstance(e, ir.Item) or (isinstance(e, ir.Reg) and e.name in changed) for e in (stop, *expressions(stop))
        ):
            stop = self.let(stop, f"{name}_stop", stop.span)  # Python evaluates range() once
        before = set(self.assigned)
        self.looped.add(name)
        kind = self.fixed if unroll else self.loop_variables
        kind.add(name)
        self.assigned.add(name)
        outer, self.loops = self.loops, -1 if unroll else 1
        body, _ = self.body_of(node.body)
        self.loops = outer
        kind.discard(name)
        self.assigned = before - {name}
        variable = ir.Reg(name, start.type, span)
        self.emit(ir.For(variable, start, stop, step, unroll, body, self.span(node.iter)))

    def _no_else(self, node: ast.For | ast.While) -> None:
        if node.orelse:
            raise SourceError(self.span(node.orelse[0]), "a loop's else is not in the kernel language")


def _loaded(target: ast.expr) -> ast.expr:
    """The target of an augmented assignment as an expression to read."""
    if isinstance(target, ast.Name):
        return ast.Name(target.id, ast.Load())
    assert isinstance(target, ast.Attribute)
    return ast.Attribute(target.value, target.attr, ast.Load())


def _breaks(nodes: list[ast.stmt]) -> bool:
    """Whether a loop body holds a break of that loop."""
    for node in nodes:
        if isinstance(node, ast.Break):
            return True
        if isinstance(node, ast.If) and (_breaks(node.body) or _breaks(node.orelse)):
            return True
    return False


_STATEMENTS: dict[type, str] = {
    ast.FunctionDef: "a nested function", ast.ClassDef: "a class", ast.Import: "an import", ast.ImportFrom: "an import",
    ast.Try: "try", ast.With: "with", ast.Raise: "raise", ast.Global: "global", ast.Nonlocal: "nonlocal",
    ast.Delete: "del", ast.Match: "match",
}  # fmt: skip
