"""Lowering of statements: declarations, branches, loops."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, cast

from ..errors import CompileError, Diagnostic
from ..ir import nodes as ir
from ..language.types import BOOL, I32, Array, Scalar
from .calls import Calls
from .counted import CountedLoop, counted_loop, jumps, whole
from .tree import Node, Variable
from .types import ArrayType, CType, PointerType, RecordType, Refusal, size_of
from .values import Memory, MemoryPlace, Place, Pointer, RegisterPlace


@dataclass
class _Loop:
    """A loop or a switch around the current statement. advance: lowered before a continue."""

    advance: Callable[[], None] | None = None
    is_switch: bool = False


class Statements(Calls):
    def __init__(self, plan: Any) -> None:
        super().__init__(plan)
        self.loops: list[_Loop] = []
        self.loop_counters: set[Variable] = set()  # variables that are only used in loops that assign them first

    def statement(self, node: Node) -> None:
        """Lower a statement, or an expression for its effects."""
        self.at(node)
        method = getattr(self, f"_{node.kind}_statement", None)
        try:
            if method is not None:
                method(node)
            else:
                self.discard(node)
        except Refusal as error:
            raise CompileError([Diagnostic("compile", str(error), self.position)]) from None

    def lowered(self, node: Node | None) -> ir.Body:
        """Return the statements of a body."""
        with self.block() as body:
            if node is not None:
                self.statement(node)
        return tuple(body)

    def _block_statement(self, node: Node) -> None:
        for child in node.present:
            self.statement(child)

    def _empty_statement(self, node: Node) -> None:
        pass

    def _return_statement(self, node: Node) -> None:
        self.returns(node[0] if node.children else None)

    def _break_statement(self, node: Node) -> None:
        self.emit(ir.Break(self.position))

    def _continue_statement(self, node: Node) -> None:
        if self.loops[-1].is_switch:
            raise self.refused(node, "continue in a switch with a break below its top level is not supported")
        if (advance := self.loops[-1].advance) is not None:
            advance()
        self.at(node)
        self.emit(ir.Continue(self.position))

    def _if_statement(self, node: Node) -> None:
        condition = self.condition(node[0])
        self.at(node[0])
        span = self.position
        if isinstance(condition, ir.Const):
            arm = node.children[1 if condition.value else 2]
            if arm is not None:
                self.statement(arm)
            return
        self.emit(ir.If(condition, self.lowered(node.children[1]), self.lowered(node.children[2]), span))

    # -------------------------------------------------------------- loops
    def _in_loop(self, node: Node, loop: _Loop) -> None:
        self.loops.append(loop)
        self.statement(node)
        self.loops.pop()

    def _while_statement(self, node: Node) -> None:
        with self.block() as setup:
            condition = self.condition(node[0])
        self.at(node[0])
        span = self.position
        with self.block() as body:
            self._in_loop(node[1], _Loop())
        self.emit(ir.While(tuple(setup), condition, tuple(body), span))

    def _do_statement(self, node: Node) -> None:
        inner, test = node[0], node[1]
        self.at(test)
        span = self.position
        if whole(test) == 0 and not jumps(inner):  # do { ... } while (0) of a macro
            self.statement(inner)
            return
        if not jumps(inner):
            with self.block() as setup:
                self._in_loop(inner, _Loop())
                condition = self.condition(test)
            self.emit(ir.While(tuple(setup), condition, (), span))
            return

        def leave() -> None:
            condition = self.condition(test)
            self.emit(ir.If(condition, (), (ir.Break(span),), span))

        with self.block() as body:
            self._in_loop(inner, _Loop(leave))
            leave()
        self.emit(ir.While((), self.constant(True, BOOL), tuple(body), span))

    def _for_statement(self, node: Node) -> None:
        first, test, step, inner = node.children
        assert inner is not None
        loop = counted_loop(node)
        if loop is not None and self._counted(node, loop, inner):
            return
        if first is not None:
            self.statement(first)
        with self.block() as setup:
            condition: ir.Expr = self.constant(True, BOOL) if test is None else self.condition(test)
        self.at(node if test is None else test)
        span = self.position

        def advance() -> None:
            if step is not None:
                self.discard(step)

        with self.block() as body:
            self._in_loop(inner, _Loop(advance))
            advance()
        self.emit(ir.While(tuple(setup), condition, tuple(body), span))

    def _counted(self, node: Node, loop: CountedLoop, inner: Node) -> bool:
        """Lower a counted loop as For. Return False, without statements, for a counter whose last value may be used."""
        variable, type = loop.variable, cast(Scalar, loop.variable.type)
        if (not loop.declared and variable not in self.loop_counters) or (loop.sign < 0 and type.kind == "uint"):
            return False
        step: int | ir.Expr | None = loop.constant_step
        if step is None:
            assert loop.step is not None
            if loop.sign < 0:
                return False
            step = self.converted(self.scalar(loop.step), type)
        stop = self.scalar(loop.stop)
        self.at(node)
        if loop.inclusive:
            if type.kind == "uint":
                return False
            # The bound beyond the last number overflows only where C++ leaves the loop undefined.
            stop = self.operation("add", stop, self.constant(loop.sign, type))
        start = self.converted(self.scalar(loop.start), type)
        self.homes[variable] = self.path
        register = self.register(variable.name, type, stable=True)  # in the body
        unroll = (self.path, node) in self.plan.unrolled or (
            node.unroll and loop.trips is not None and not jumps(inner)
        )
        outer = self.places.get(variable)
        self.places[variable] = RegisterPlace(register)
        self.unrolled |= {register.name} if unroll else set()
        self.at(node[1])
        span = self.position
        with self.block() as body:
            self._in_loop(inner, _Loop())
        if outer is not None:
            self.places[variable] = outer
        rises = not isinstance(step, int)
        self.emit(ir.For(register, start, stop, step, unroll, tuple(body), span, rises=rises))
        return True

    # -------------------------------------------------------------- switch
    def _switch_statement(self, node: Node) -> None:
        chosen, labels, body = self.as_register(self.scalar(node[0])), node[1], node[2]
        statements = list(body.present)
        starts: dict[int, list[int]] = {}
        default: int | None = None
        for case in labels.present:
            start = int(case.sign)
            if case.value is None:
                default = start
            else:
                starts.setdefault(start, []).append(int(case.value))
        self.at(node)
        span = self.position
        result: ir.Body = () if default is None else self._arm(statements[default:])
        for start, values in reversed(starts.items()):
            if start == default:
                continue
            test: ir.Expr | None = None
            self.position = span
            for value in values:
                equal = self.operation("eq", chosen, self.constant(value, cast(Scalar, chosen.type)))
                test = equal if test is None else self.operation("either", test, equal)
            assert test is not None
            result = (ir.If(test, self._arm(statements[start:]), result, span),)
        self.body.extend(result)

    def _arm(self, statements: list[Node]) -> ir.Body:
        """Return the statements from a label to the break at the top level, through other labels."""
        flat = [
            entry
            for statement in statements
            for entry in (statement.present if statement.kind == "block" else [statement])
        ]
        reachable = []
        for entry in flat:
            if entry.kind == "break":
                break
            reachable.append(entry)
            if entry.kind in ("return", "continue"):
                break
        nested = any(_breaks(entry) for entry in reachable)
        with self.block() as body:
            if nested:
                self.loops.append(_Loop(is_switch=True))
            for entry in reachable:
                self.statement(entry)
            if nested:
                self.loops.pop()
        if not nested:
            return tuple(body)
        return (ir.While((), self.constant(True, BOOL), (*body, ir.Break(self.position)), self.position),)

    # -------------------------------------------------------------- declarations
    def _declare_statement(self, node: Node) -> None:
        variable = node.variable
        assert variable is not None
        self.homes[variable] = self.path
        if variable.place in ("shared", "constant", "device"):
            self.places[variable] = self.global_place(variable)
            return
        initial = variable.initial
        if self.key(variable) in self.plan.memories:
            self._declare_array(variable, initial)
            return
        if variable.reference:
            assert initial is not None
            self.places[variable] = self._referred(initial)
            return
        if initial is None and isinstance(variable.type, PointerType):
            changed = variable in self.plan.changed
            self.places[variable] = (
                self.place_of_variable(variable, Pointer(None)) if not changed else self.pointer_variable(variable)
            )
            return
        value = self.zero(variable.type) if initial is None else self.value(initial)
        self.at(node)
        self.places[variable] = self.place_of_variable(variable, value)

    def _declare_array(self, variable: Variable, initial: Node | None) -> None:
        """Allocate an array, or a struct with arrays, of one thread."""
        memory = self.plan.memories[self.key(variable)]
        memory.name = self.name(variable.name)
        place = MemoryPlace(Pointer(memory, to=memory.declared), variable.type, variable.volatile)
        self.places[variable] = place
        self.emit(self.allocation(memory))
        if initial is not None and initial.kind != "zero":
            self._initialise(place, variable.type, initial)

    def allocation(self, memory: Memory) -> ir.Alloc:
        """Return the allocation of an array."""
        length = None
        if memory.count is not None:
            length = (memory.count * size_of(memory.declared) // memory.element.size,)
        return ir.Alloc(memory.name, Array(memory.element, length, memory.space), memory.values, self.position)

    def _initialise(self, place: Place, type: CType, initial: Node) -> None:
        if isinstance(type, ArrayType) and initial.kind == "list":
            items, step = list(initial.present), size_of(type.element)
            for number in range(type.count or 0):
                offset = self.constant(number * step, I32)
                pointer = self.moved(cast(MemoryPlace, place).pointer, offset, 1)
                item = MemoryPlace(pointer, type.element)
                if number < len(items):
                    self._initialise(item, type.element, items[number])
                else:
                    self.store(item, self.zero(type.element))
        elif isinstance(type, ArrayType):
            raise Refusal("an array that is not initialised by a list is not supported")
        elif isinstance(type, RecordType) and initial.kind == "list":
            for (name, (kind, _)), item_node in zip(type.fields.items(), initial.present, strict=False):
                self._initialise(self.member(place, name), kind, item_node)
        else:
            value = self.value(initial)
            self.store(place, self.fitted(value, type))


def _breaks(node: Node) -> bool:
    """Return whether a statement has a break of the switch around it."""
    if node.kind == "break":
        return True
    return node.kind in ("block", "if") and any(map(_breaks, node.present))
