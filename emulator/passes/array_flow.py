"""Data flow through an inlined kernel: which registers and arrays depend on certain values, by operands, indices and choices.

An analysis states its sources and how states combine (`thread_order`, `rounded_arrays`). The order of assignments to a register is
ignored. It assumes a program without races: a plain load has no concurrent store.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from functools import reduce
from typing import Any, Generic, TypeVar

from ..ir import nodes as ir
from ..ir.effects import performed, written_array
from ..ir.walk import children
from .data_flow import DataFlow, Exit, Loop

State = TypeVar("State")


class ArrayFlow(DataFlow[State | None], ABC, Generic[State]):
    """The control of a statement is the state of the choice whether it runs; None without a dependent one.

    registers, arrays, loops: the states of the dependent ones, by name; loops by identity, of the exits from their iterations.
    """

    def __init__(self, kernel: ir.Function) -> None:
        super().__init__(kernel)
        self.registers: dict[str, State] = {}
        self.arrays: dict[str, State] = {}
        self.loops: dict[int, State] = {}

    def dependent_arrays(self) -> dict[str, State]:
        """Return the states of the dependent arrays: the least fixed point."""
        self.run(None)
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
    def visit(self, stmt: ir.Stmt, control: State | None) -> None:
        match stmt:
            case ir.Let(target=ir.Reg() as target):
                self._record(self.registers, target.name, control, self.value(stmt.value))
            case ir.Let(target=ir.Item() as target):
                self._record(self.arrays, target.array, control, self.value(stmt.value), self.chosen_by(target.index))
            case ir.For():
                self._record(self.registers, stmt.var.name, self.iteration(stmt, control))
        if (array := written_array(stmt)) is not None:
            self._record(self.arrays, array, control, self.stored(performed(stmt)))

    def _record(self, table: dict[str, State], name: str, *states: State | None) -> None:
        self.put(table, name, reduce(self.join, states, table.get(name)))

    def arms(self, stmt: ir.If | Loop, control: State | None) -> Sequence[State | None]:
        inner = self.join(control, self.chosen_by(stmt.cond)) if isinstance(stmt, ir.If) else control
        return inner, inner

    def iteration(self, loop: Loop, control: State | None) -> State | None:
        limits = self.operands(loop)
        choice = self.join(control, self.loops.get(id(loop)))
        return self.join(choice, None if limits is None else self.chosen(limits))

    def after(self, stmt: ir.Stmt, exits: Sequence[Exit[State | None]], control: State | None) -> State | None:
        return reduce(self.join, (leaving.control for leaving in exits), control)

    def repeated(self, loop: Loop, exits: Sequence[Exit[State | None]]) -> None:
        """A body with a dependent early end runs a dependent number of times."""
        self.put(self.loops, id(loop), self.after(loop, exits, self.loops.get(id(loop))))
