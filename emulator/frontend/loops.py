"""Reading of loops: counted, unrolled, over constants; their else, break and continue."""

import ast
import builtins
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any
from typing import Literal as Word

from ..ir import nodes as ir
from ..ir.walk import expressions
from ..language import intrinsics
from ..language.types import BOOL, Scalar
from ..span import Span
from . import typing
from .blocks import BlockReader, stored
from .constants import Literal, Tuple
from .values import ArrayValue, Host, NeedsConstants, SourceError, Value, describe

MAX_UNROLLED_ITERATIONS = 4096
"""Maximum iterations of a loop expanded by the reader."""


@dataclass
class _LoopContext:
    """The innermost loop around a statement.

    kind: "written out" for a loop read once per item. broke: register set by break, if later statements need it.
    left: whether a statement leaves an expanded iteration. at_break, at_continue: variables assigned at every break
    and every continue; None without any.
    """

    kind: Word["plain", "unrolled", "written out"]
    broke: ir.Reg | None = None
    left: bool = False
    at_break: set[str] | None = None
    at_continue: set[str] | None = None


class LoopReader(BlockReader):
    """Reader of the loops of one function."""

    loops: tuple[_LoopContext, ...] = ()

    # -------------------------------------------------------------- break and continue
    def _Break(self, node: ast.Break) -> bool:
        iteration = self._current_iteration()
        if iteration.broke is not None:
            self.emit(ir.Let(iteration.broke, ir.Const(True, BOOL, self.span(node)), self.span(node)))
        iteration.left = True
        iteration.at_break = _both(iteration.at_break, self.assigned)
        self.emit(ir.Break(self.span(node)))
        return False

    def _Continue(self, node: ast.Continue) -> bool:
        iteration = self._current_iteration()
        iteration.left = True
        iteration.at_continue = _both(iteration.at_continue, self.assigned)
        # An expanded iteration is a loop of one iteration.
        leave = ir.Break if iteration.kind == "written out" else ir.Continue
        self.emit(leave(self.span(node)))
        return False

    def _current_iteration(self) -> _LoopContext:
        if self.loops[-1].kind == "unrolled":
            raise NeedsConstants  # an unrolled loop has no jump target
        return self.loops[-1]

    def _read_iteration(self, iteration: _LoopContext, nodes: list[ast.stmt]) -> tuple[ir.Body, bool]:
        outer, self.loops = self.loops, (*self.loops, iteration)
        try:
            return self.body_of(nodes)
        finally:
            self.loops = outer

    def _flag(self, node: ast.While | ast.For, needed: bool) -> ir.Reg | None:
        """Return a register for whether the loop ended by break; None if no statement needs it."""
        if not (needed and _breaks(node.body)):
            return None
        span = self.span(node.orelse[0]) if node.orelse else self.span(node.body[0])
        return self.let(ir.Const(False, BOOL, span), "broke", span)

    def _otherwise(self, node: ast.While | ast.For, broke: ir.Reg | None) -> None:
        """Read the else of a loop, executed unless the loop ended by break."""
        if not node.orelse:
            return
        if broke is None:
            self.read(node.orelse)
            return
        before = set(self.assigned)
        body, _ = self.body_of(node.orelse)
        self.assigned &= before
        self.emit(ir.If(_negate(broke), body, (), self.span(node.orelse[0])))

    def _assigned_after(self, assigned: set[str], before: set[str]) -> set[str]:
        """Return the variables of `assigned` that remain valid after the loop: registers and numbers. Views and tuples
        may depend on the iteration."""
        return {
            name
            for name in assigned
            if name in before or name in self.types or isinstance(self.names.get(name), Literal)
        }

    def _enter(self, node: ast.While | ast.For) -> None:
        """Invalidate the loop variables of inner loops: the next iteration must not read them."""
        inner = {name for name in _loop_variables(node.body) if name not in self.active}
        self.ended |= inner
        self.assigned -= inner

    # -------------------------------------------------------------- while
    def _While(self, node: ast.While) -> bool:
        self._enter(node)
        with self.block() as setup:
            test = self.condition(node.test)
        if isinstance(test, ir.Const) and not test.value:  # the body is not read, as in an if
            self.body += setup
            return self.read(node.orelse)
        before = set(self.assigned)
        broke = self._flag(node, bool(node.orelse))
        iteration = _LoopContext("plain", broke)
        body, _ = self._read_iteration(iteration, node.body)
        endless = isinstance(test, ir.Const) and bool(test.value)
        self.assigned = (
            self._assigned_after(iteration.at_break, before) if endless and iteration.at_break is not None else before
        )
        self.emit(ir.While(tuple(setup), test, body, self.span(node.test)))
        if endless and not _breaks(node.body):
            return False
        if not endless:
            self._otherwise(node, broke)
        return True

    # -------------------------------------------------------------- for
    def _For(self, node: ast.For) -> bool:
        iterable, unroll = self._unrolled(node.iter)
        counted = isinstance(iterable, ast.Call) and self._is(iterable.func, builtins.range)
        if not counted:
            return self._written_out(node, self._items(iterable, unrolled=unroll))
        assert isinstance(iterable, ast.Call)
        if not isinstance(node.target, ast.Name):
            raise SourceError(self.span(node.target), "a loop over range has one variable", "write: for i in range(n)")
        self._check_target(node.target)
        if not unroll:
            return self._counted(node, iterable, False)
        before = self.state()
        try:
            falls = self._counted(node, iterable, True)
        except NeedsConstants:
            self.restore(before)
            return self._written_out(node, [Literal(i) for i in self._numbers(iterable)])
        if node.orelse and falls:
            return self.read(node.orelse)
        return falls

    def _unrolled(self, node: ast.expr) -> tuple[ast.expr, bool]:
        """Return the iterable of a loop, and whether the loop is unrolled."""
        if isinstance(node, ast.Call) and self._is(node.func, intrinsics.unroll) and len(node.args) == 1:
            return node.args[0], True
        return node, False

    def _is(self, node: ast.expr, target: Any) -> bool:
        value = self.value(node)
        return isinstance(value, Host) and value.object is target

    def _check_target(self, target: ast.Name) -> None:
        if target.id in self.active:
            raise SourceError(
                self.span(target), f"{target.id} is the variable of a loop around this one", "use another name"
            )

    def _bounds(self, call: ast.Call) -> list[tuple[Value, Span]]:
        """Return start, stop and, if present, step of a range."""
        if call.keywords or not 1 <= len(call.args) <= 3 or any(isinstance(a, ast.Starred) for a in call.args):
            raise SourceError(self.span(call), "range takes one to three numbers", "write range(start, stop, step)")
        bounds = list(zip(self.values(*call.args), map(self.span, call.args), strict=True))
        return bounds if len(bounds) > 1 else [(Literal(0), self.span(call)), *bounds]

    def _counted(self, node: ast.For, call: ast.Call, unroll: bool) -> bool:
        bounds = self._bounds(call)
        step: int | ir.Expr = 1
        step_span = bounds[-1][1]
        step_value = bounds[2][0] if len(bounds) == 3 else Literal(1)
        if isinstance(step_value, Literal):
            step = _whole(step_value, "a loop's step", step_span)
            del bounds[2:]
        unified = typing.unified(bounds, "range")
        start, stop = unified[:2]
        if len(unified) == 3:
            step = unified[2]
        assert isinstance(start.type, Scalar)
        if not start.type.is_integer or start.type.size < 4:
            raise SourceError(
                self.span(call), f"a loop counts in 32 or 64 bits, this is {start.type}", "write st.i32(...)"
            )
        if step == 0:
            raise SourceError(self.span(call), "a loop's step is not 0", "write a step, such as 1 or -1")
        if isinstance(step, int) and not unroll:
            typing.constant(Literal(abs(step)), start.type, step_span)
        if unroll and not all(self.is_fixed(e) for e in unified):
            raise SourceError(
                self.span(call), "an unrolled loop's bounds must be known at compile time", "make them Const parameters"
            )
        if unroll and not isinstance(step, int):
            raise NeedsConstants
        return self._loop(node, start, stop, step, unroll)

    def _loop(self, node: ast.For, start: ir.Expr, stop: ir.Expr, step: int | ir.Expr, unroll: bool) -> bool:
        """Emit a loop over numbers. Return whether control may run past it: not if its first iteration always returns."""
        assert isinstance(node.target, ast.Name) and isinstance(start.type, Scalar)
        name, span = node.target.id, self.span(node.target)
        changed = {self.register(n) for n in stored(node.body)}
        stop = self._snapshot(stop, changed, f"{name}_stop")  # Python evaluates range() once
        rises = False
        if not isinstance(step, int):
            step = self._snapshot(step, changed, f"{name}_step")
            rises = self._rises(step)
        broke = None if unroll else self._flag(node, bool(node.orelse))
        outer = self._bind_loop(name, start.type)
        self._enter(node)
        before = set(self.assigned) - {name}
        self.fixed |= {name} if unroll else set()
        variable = ir.Reg(self.register(name), start.type, span)
        iteration = _LoopContext("unrolled" if unroll else "plain", broke)
        body, falls = self._read_iteration(iteration, node.body)
        self.fixed.discard(name)
        ends = [iteration.at_break, iteration.at_continue, self.assigned if falls else None]
        paths = [names for names in ends if names is not None]
        runs = _trip_count(start, stop, step) > 0
        self.assigned = self._assigned_after(set.intersection(*paths) - {name}, before) if runs and paths else before
        self._unbind(name, outer)
        self.emit(ir.For(variable, start, stop, step, unroll, body, self.span(node.iter), rises=rises))
        if runs and not paths:
            return False
        if not unroll:
            self._otherwise(node, broke)
        return True

    def _snapshot(self, bound: ir.Expr, changed: set[str], stem: str) -> ir.Expr:
        """Return a bound with its value before the loop."""
        inside = (bound, *expressions(bound))
        if any(isinstance(e, ir.Item) or (isinstance(e, ir.Reg) and e.name in changed) for e in inside):
            return self.let(bound, stem, bound.span)
        return bound

    def _rises(self, step: ir.Expr) -> bool:
        """Return whether a loop with this step counts up; a zero step is a fault."""
        assert isinstance(step.type, Scalar)
        if self.is_positive(step):
            return True
        if not isinstance(step, ir.Const):
            zero = ir.Const(0, step.type, step.span)
            moves = ir.Op("ne", (step, zero), BOOL, step.span)
            self.emit(ir.Assert(moves, "a range's step is not 0", step.span))
        return step.type.kind == "uint"

    def _bind_loop(self, name: str, type: Scalar) -> tuple[Any, Any]:
        """Make a name a loop variable. Return its previous type and register."""
        outer = self.types.pop(name, None), self.renamed.pop(name, None)
        own = self.new_register(name, "loop", type)
        self.registers[own] = "loop", type
        self.types[name] = type
        if own != name:
            self.renamed[name] = own
        self.active.add(name)
        self.assigned.add(name)
        self.unresolved.discard(name)
        return outer

    def _unbind(self, name: str, outer: tuple[Any, Any]) -> None:
        """End a loop variable. An outer variable of that name is valid again, without a value."""
        self.active.discard(name)
        self.ended.add(name)
        type, register = outer
        self.types.pop(name, None)
        self.renamed.pop(name, None)
        if type is not None:
            self.types[name] = type
        if register is not None:
            self.renamed[name] = register

    # -------------------------------------------------------------- loops over constants
    def _numbers(self, call: ast.Call) -> range:
        """Return the numbers of a constant range."""
        if call.keywords or not 1 <= len(call.args) <= 3:
            raise SourceError(self.span(call), "range takes one to three numbers", "write range(start, stop, step)")
        bounds = [self.constant_int(a, "an unrolled loop's bound") for a in call.args]
        if len(bounds) == 3 and bounds[2] == 0:
            raise SourceError(self.span(call), "a loop's step is not 0", "write a step, such as 1 or -1")
        return range(*bounds)

    def _items(self, node: ast.expr, unrolled: bool = False) -> list[Value]:
        """Return the items of a loop over a tuple, a list, range, enumerate, zip or reversed. unrolled: by st.unroll."""
        if isinstance(node, ast.List | ast.Tuple):
            return self.values(*node.elts)
        if isinstance(node, ast.Call) and isinstance(called := self.value(node.func), Host):
            if called.object is builtins.range:
                return [Literal(i) for i in self._numbers(node)]
            if called.object in (enumerate, zip, reversed):
                return self._combined(node, called.object)
        value, span = self.value(node), self.span(node)
        if isinstance(value, Tuple):
            return list(value.items)
        if isinstance(value, ArrayValue):
            raise SourceError(span, "a loop runs over indices", f"write: for i in range(len({value.name}))")
        if isinstance(value, Host) and isinstance(value.object, list):
            raise SourceError(span, "a list may change", "make it a tuple")
        is_count = isinstance(value, Literal | ir.Expr)
        text = f"range({ast.unparse(node)})" if is_count else "range(n)"
        advice = f"write: for i in {f'st.unroll({text})' if unrolled else text}, or for w in a tuple of constants"
        raise SourceError(span, f"a loop runs over range(...) or a tuple, this is {describe(value)}", advice)

    def _combined(self, node: ast.Call, function: Any) -> list[Value]:
        keywords = {k.arg: k.value for k in node.keywords}
        if function is enumerate and set(keywords) <= {"start"} and 1 <= len(node.args) <= 2 - len(keywords):
            first = next((self.constant_int(n, "start") for n in (*node.args[1:], *keywords.values())), 0)
            return [Tuple((Literal(i), item)) for i, item in enumerate(self._items(node.args[0]), first)]
        if function is reversed and len(node.args) == 1 and not keywords:
            return self._items(node.args[0])[::-1]
        if function is zip and node.args and not set(keywords) - {"strict"}:
            columns = [self._items(n) for n in node.args]
            if len({len(c) for c in columns}) > 1:
                lengths = ", ".join(str(len(c)) for c in columns)
                raise SourceError(self.span(node), f"zip of different lengths: {lengths}", "make them equally long")
            return [Tuple(row) for row in zip(*columns, strict=True)]
        raise SourceError(
            self.span(node), f"{function.__name__} does not take this", "write enumerate(T), zip(A, B) or reversed(T)"
        )

    def _written_out(self, node: ast.For, items: list[Value]) -> bool:
        """Read the body once for each item, a constant there. Return whether control continues after the loop."""
        targets = [n for n in ast.walk(node.target) if isinstance(n, ast.Name)]
        for target in targets:
            self._check_target(target)
        if len(items) > MAX_UNROLLED_ITERATIONS:
            message = f"this loop would be written out {len(items)} times, at most {MAX_UNROLLED_ITERATIONS} are"
            raise SourceError(self.span(node.iter), message, "write a plain range, without st.unroll")
        items = [self.snapshot(item, self.span(node.iter), "item") for item in items]
        broke = self._flag(node, True)
        names = {target.id for target in targets}
        outer = {
            name: (self.names.get(name), self.types.pop(name, None), self.renamed.pop(name, None)) for name in names
        }
        self.active |= names
        falls = True
        for at, item in enumerate(items):
            falls = self._unrolled_iteration(node, item, broke, at)
            if not falls:
                break
        self.active -= names
        for name, (value, *rest) in outer.items():
            self.names.pop(name, None)
            if value is not None:
                self.names[name] = value
            self._unbind(name, (rest[0], rest[1]))
            self.assigned.discard(name)
        if falls:
            self._otherwise(node, broke)
        return falls

    def _unrolled_iteration(self, node: ast.For, item: Value, broke: ir.Reg | None, at: int) -> bool:
        """Read one expanded iteration. Return whether control continues after it."""
        span = self.span(node.iter)
        own = stored(node.body)
        constants = {n for n in own & self.once if isinstance(self.names.get(n), Literal | Tuple | ArrayValue)}
        for name in constants:  # reassigned in each iteration
            del self.names[name]
        self.assigned -= constants
        self._enter(node)
        before = set(self.assigned)
        iteration = _LoopContext("written out", broke)
        with self.block() as whole:
            self._bind(node.target, item, self.span(node.target))
            inner, falls = self._read_iteration(iteration, node.body)
            if iteration.left:
                end = (ir.Break(span),) if falls else ()
                self.emit(ir.While((), ir.Const(True, BOOL, span), (*inner, *end), span))
                falls = True
            else:
                self.body += inner
        guarded = broke is not None and at > 0
        if iteration.left or guarded:
            self.assigned &= before
        if guarded and broke is not None:
            self.emit(ir.If(_negate(broke), tuple(whole), (), span))
            return True
        self.body += whole
        return falls

    def _bind(self, target: ast.expr, item: Value, span: Span) -> None:
        """Assign the variables of an expanded loop for one iteration."""
        if isinstance(target, ast.Name):
            self.types.pop(target.id, None)
            self.names[target.id] = item
            self.assigned.add(target.id)
            self.unresolved.discard(target.id)
            return
        if not isinstance(target, ast.Tuple | ast.List):
            raise SourceError(span, "a loop gives its values to variables", "write: for i in range(n)")
        if not isinstance(item, Tuple) or len(item.items) != len(target.elts):
            message = f"{len(target.elts)} values are expected here, this is {describe(item)}"
            raise SourceError(span, message, "write as many values as names")
        for element, value in zip(target.elts, item.items, strict=True):
            self._bind(element, value, self.span(element))


def _both(before: set[str] | None, now: set[str]) -> set[str]:
    """Return the variables assigned in both sets."""
    return set(now) if before is None else before & now


def _trip_count(start: ir.Expr, stop: ir.Expr, step: int | ir.Expr) -> int:
    """Return the iterations of a counted loop with constant bounds; 0 if they are unknown."""
    if not (isinstance(start, ir.Const) and isinstance(stop, ir.Const) and isinstance(step, int)):
        return 0
    return len(range(int(start.value), int(stop.value), step))


def _negate(flag: ir.Reg) -> ir.Expr:
    return ir.Op("not", (flag,), BOOL, flag.span)


def _whole(literal: Literal, what: str, span: Span) -> int:
    if isinstance(literal.value, bool) or not isinstance(literal.value, int):
        raise SourceError(span, f"{what} is a whole number, this is {describe(literal)}", "write a whole number")
    return literal.value


def _breaks(nodes: list[ast.stmt]) -> bool:
    """Return whether a loop body contains a break of that loop."""
    for node in nodes:
        if isinstance(node, ast.Break):
            return True
        if isinstance(node, ast.If) and (_breaks(node.body) or _breaks(node.orelse)):
            return True
        if isinstance(node, ast.For | ast.While) and _breaks(node.orelse):
            return True
    return False


def _loop_variables(nodes: list[ast.stmt]) -> Iterator[str]:
    """Yield the variables of loops inside statements."""
    for node in nodes:
        for inner in ast.walk(node):
            if isinstance(inner, ast.For):
                yield from (n.id for n in ast.walk(inner.target) if isinstance(n, ast.Name))
