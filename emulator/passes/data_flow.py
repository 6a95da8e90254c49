"""Data flow over structured control flow, for the analyses of inlined kernels.

An analysis collects facts from each statement and its control, until a traversal changes no fact. The control of a statement
decides whether it runs: a choice, a region, a path. Branches, loops and early exits change it. Facts that depend on the order of
statements are the state: it is copied for the arms of a branch, joined after them, and computed for a loop until it does not change.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from ..ir import counting
from ..ir import nodes as ir
from ..ir.exits import ScopeKind, exited

Control = TypeVar("Control")
Key = TypeVar("Key")
Fact = TypeVar("Fact")
Loop = ir.While | ir.For
State = Any
"""The state of an analysis, of a type of its own."""


@dataclass(frozen=True, eq=False)
class Scope(Generic[Control]):
    """A loop, an inlined call or the kernel. control: that of its body."""

    kind: ScopeKind
    node: Loop | ir.Frame | ir.Function
    control: Control


@dataclass(frozen=True, eq=False)
class Exit(Generic[Control]):
    """A break, continue or return with its control and state. scope: what it leaves."""

    stmt: ir.Break | ir.Continue | ir.Return
    scope: Scope[Control]
    control: Control
    state: State


def conditions_of(loop: Loop) -> tuple[ir.Expr, ...]:
    """Return the expressions that decide how often a loop iterates."""
    return (loop.cond,) if isinstance(loop, ir.While) else (loop.start, loop.stop, counting.step_of(loop))


def ends_loop(leaving: Exit[Control]) -> bool:
    """Return whether an exit from the body of a loop ends the loop, and not the kernel."""
    return leaving.scope.kind != "kernel" and not isinstance(leaving.stmt, ir.Continue)


class DataFlow(Generic[Control]):
    """A forward analysis. state: None for facts that do not depend on the order of statements. scopes: around the visited statement,
    outermost first."""

    state: State = None

    def __init__(self, kernel: ir.Function) -> None:
        self.kernel = kernel
        self.scopes: list[Scope[Control]] = []
        self.changed = True

    def run(self, control: Control) -> None:
        """Traverse the kernel, whose body has this control, until no fact changes."""
        while self.changed:
            self.changed = False
            self.traverse(control)

    def traverse(self, control: Control) -> None:
        self._scoped("kernel", self.kernel, control)

    def add(self, facts: set[Key], fact: Key) -> None:
        """Add a fact."""
        self.changed |= fact not in facts
        facts.add(fact)

    def put(self, facts: dict[Key, Fact], key: Key, fact: Fact | None) -> None:
        """Set a fact; None is no fact."""
        if fact is not None and facts.get(key) != fact:
            facts[key], self.changed = fact, True

    # -------------------------------------------------------------- the analysis
    def visit(self, stmt: ir.Stmt, control: Control) -> None:
        """Collect the facts of a statement without its bodies. The condition of a while loop is a part of each iteration, the
        bounds of a for loop are not."""

    def arms(self, stmt: ir.If | Loop, control: Control) -> Sequence[Control]:
        """Return the controls of the arms of a branch, or of the body of a loop after its test."""
        return control, control

    def iteration(self, loop: Loop, control: Control) -> Control:
        """Return the control of an iteration."""
        return control

    def frame(self, frame: ir.Frame, control: Control) -> Control:
        """Return the control of the body of an inlined call."""
        return control

    def leaves(self, leaving: Exit[Control]) -> bool:
        """Return whether an exit changes the control of statements after it."""
        return True

    def after(self, stmt: ir.Stmt, exits: Sequence[Exit[Control]], control: Control) -> Control:
        """Return the control after a statement with exits from a scope around it."""
        return control

    def repeated(self, loop: Loop, exits: Sequence[Exit[Control]]) -> None:
        """Collect the facts of a loop with the exits of its body."""

    def copied(self, state: State) -> State:
        return state

    def joined_states(self, state: State, other: State) -> State:
        return state

    # -------------------------------------------------------------- the traversal
    def _body(self, stmts: ir.Body, control: Control) -> list[Exit[Control]]:
        """Traverse statements; return the exits from scopes around them."""
        exits: list[Exit[Control]] = []
        for stmt in stmts:
            if left := self._statement(stmt, control):
                exits += left
                control = self.after(stmt, left, control)
        return exits

    def _statement(self, stmt: ir.Stmt, control: Control) -> list[Exit[Control]]:
        match stmt:
            case ir.While() | ir.For():
                return self._loop(stmt, control)
            case ir.If():
                self.visit(stmt, control)
                then, orelse = self.arms(stmt, control)
                other = self.copied(self.state)
                exits = self._body(stmt.then, then)
                self.state, other = other, self.state
                exits += self._body(stmt.orelse, orelse)
                self.state = self.joined_states(self.state, other)
                return exits
            case ir.Frame():
                self.visit(stmt, control)
                own, outer = self._scoped("frame", stmt, self.frame(stmt, control))
                self._join(own)
                return outer
        self.visit(stmt, control)
        if isinstance(stmt, ir.Break | ir.Continue | ir.Return):
            leaving = Exit(stmt, exited(stmt, self.scopes), control, self.copied(self.state))
            return [leaving] if self.leaves(leaving) else []
        return []

    def _loop(self, loop: Loop, control: Control) -> list[Exit[Control]]:
        """Traverse a loop until the state at its start does not change. The state becomes that at its exits."""
        while True:
            start, inside = self.copied(self.state), self.iteration(loop, control)
            if isinstance(loop, ir.While):
                self._body(loop.setup, inside)
            self.visit(loop, inside if isinstance(loop, ir.While) else control)
            within, *_ = self.arms(loop, inside)
            end = self.copied(self.state)
            own, outer = self._scoped("loop", loop, within)
            self.repeated(loop, [*own, *outer])
            self.state = self.joined_states(self.state, start)
            self._join([leaving for leaving in own if isinstance(leaving.stmt, ir.Continue)])
            if self.state == start:
                break
        breaks = [leaving for leaving in own if isinstance(leaving.stmt, ir.Break)]
        endless = isinstance(loop, ir.While) and isinstance(loop.cond, ir.Const) and bool(loop.cond.value)
        self.state = breaks[0].state if breaks and endless else end
        self._join(breaks)
        return outer

    def _scoped(
        self, kind: ScopeKind, node: Loop | ir.Frame | ir.Function, control: Control
    ) -> tuple[list[Exit[Control]], list[Exit[Control]]]:
        """Traverse the body of a scope; return the exits from it, and those from scopes around it."""
        scope = Scope(kind, node, control)
        self.scopes.append(scope)
        exits = self._body(node.body, control)
        self.scopes.pop()
        return [one for one in exits if one.scope is scope], [one for one in exits if one.scope is not scope]

    def _join(self, exits: Sequence[Exit[Control]]) -> None:
        for leaving in exits:
            self.state = self.joined_states(self.state, leaving.state)
