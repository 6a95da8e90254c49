"""Data flow through an inlined kernel: which registers and arrays depend on certain values, by operands, indices and choices.

An analysis states its sources and how states combine (`thread_order`, `rounded_arrays`). The order of assignments to a register is
ignored. It assumes a program without races: a plain load has no concurrent store.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, Generic, TypeVar

from ..ir import nodes as ir
from ..ir.effects import performed, written_array
from ..ir.walk import bodies, children, statements

State = TypeVar("State")


class ArrayFlow(ABC, Generic[State]):
    """registers, arrays, loops: the states of the dependent ones, by name; loops by identity, of the choice of their iterations."""

    def __init__(self, kernel: ir.Function) -> None:
        self.kernel = kernel
        self.registers: dict[str, State] = {}
        self.arrays: dict[str, State] = {}
        self.loops: dict[int, State] = {}
        self.changed = True

    def dependent_arrays(self) -> dict[str, State]:
        """Return the states of the dependent arrays: the least fixed point."""
        while self.changed:
            self.changed = False
            self._body(self.kernel.body, None)
        return self.arrays

    # -------------------------------------------------------------- the analysis
    @abstractmethod
    def joined(self, a: State, b: State) -> State:
        """Return the state of a value with two sources."""

    @abstractmethod
    def chosen(self, state: State) -> State:
        """Return the state of a value that a dependent condition or index chooses."""

    def computed(self, node: Any, operands: State | None) -> State | None:
        """Return the state of an operation or an effect with operands of a state."""
        return operands

    def stored(self, access: Any) -> State | None:
        """Return the state of the contents that an access writes."""
        value = self.value(access.value) if isinstance(access, ir.Store) else self.operands(access)
        return self.join(value, self.chosen_by(access.index))

    # -------------------------------------------------------------- states
    def join(self, a: State | None, b: State | None) -> State | None:
        if a is None or b is None:
            return b if a is None else a
        return self.joined(a, b)

    def operands(self, node: Any) -> State | None:
        """Return the joined state of the expressions directly under a node."""
        state = None
        for operand in children(node):
            state = self.join(state, self.value(operand))
        return state

    def chosen_by(self, node: Any) -> State | None:
        """Return the state of what an expression chooses."""
        state = self.value(node)
        return None if state is None else self.chosen(state)

    def value(self, node: Any) -> State | None:
        """Return the state of an expression, or of the result of an effect."""
        match node:
            case ir.Reg():
                return self.registers.get(node.name)
            case ir.Item():
                return self.join(self.arrays.get(node.array), self.chosen_by(node.index))
            case ir.Load():
                return self.computed(node, self.join(self.arrays.get(node.array), self.chosen_by(node.index)))
        return self.computed(node, self.operands(node))

    # -------------------------------------------------------------- statements
    def _add(self, table: dict[Any, State], key: Any, state: State | None) -> None:
        new = self.join(table.get(key), state)
        if new is not None and table.get(key) != new:
            table[key], self.changed = new, True

    def _body(self, body: ir.Body, choice: State | None) -> State | None:
        """Pass over statements. choice: state of the choice whether they run. Return that of the statements after them."""
        for stmt in body:
            choice = self.join(choice, self._statement(stmt, choice))
        return choice

    def _statement(self, stmt: ir.Stmt, choice: State | None) -> State | None:
        """Return the state of a choice that ends a block of statements early."""
        match stmt:
            case ir.If():
                inner, end = self.join(choice, self.chosen_by(stmt.cond)), None
                for branch in bodies(stmt):
                    end = self.join(end, self._body(branch, inner))
                return end if _leaves(stmt, ir.Break | ir.Continue | ir.Return) else None
            case ir.While() | ir.For():
                self._loop(stmt, choice)
                return self.loops.get(id(stmt)) if _leaves(stmt, ir.Return) else None
            case ir.Frame():
                self._body(stmt.body, choice)
            case ir.Let(target=ir.Reg() as target):
                self._add(self.registers, target.name, self.join(choice, self.value(stmt.value)))
            case ir.Let(target=ir.Item() as target):
                state = self.join(choice, self.value(stmt.value))
                self._add(self.arrays, target.array, self.join(state, self.chosen_by(target.index)))
        if (array := written_array(stmt)) is not None:
            self._add(self.arrays, array, self.join(choice, self.stored(performed(stmt))))
        return None

    def _loop(self, stmt: ir.While | ir.For, choice: State | None) -> None:
        """Pass over a loop. A body with a dependent early end runs a dependent number of times."""
        limits = self.operands(stmt)
        chosen = self.join(choice, self.join(self.loops.get(id(stmt)), None if limits is None else self.chosen(limits)))
        end = chosen
        for nested in bodies(stmt):
            end = self._body(nested, end)
        self._add(self.loops, id(stmt), end)
        if isinstance(stmt, ir.For):
            self._add(self.registers, stmt.var.name, chosen)


def _leaves(stmt: ir.Stmt, jumps: Any) -> bool:
    return any(isinstance(inner, jumps) for inner in statements((stmt,)))
