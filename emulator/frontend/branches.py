"""Reading of branches: `if`, chains of `elif`, and chains of conditional expressions."""

import ast
from dataclasses import dataclass, field

from ..ir import nodes as ir
from ..ir.names import temporary
from ..language.types import BOOL
from ..span import Span
from .constants import Literal
from .expressions import MAX_DEPTH
from .loops import LoopReader
from .values import AlreadyReported, SourceError, Value

MAX_ARMS = 32
"""Maximum arms of a chain that are nested in the IR; a longer chain continues after them, under a flag."""
_MAX_COLUMNS = 1 << 16
_INSIDE = 8
"""Levels that remain below the limit of nesting for the statements in the arms of a chain."""


@dataclass
class _Arm:
    """An arm with a run-time condition. around: the statements in which its branch is emitted."""

    around: list[ir.Stmt]
    test: ir.Expr
    then: ir.Body
    span: Span


@dataclass
class _Chain:
    """The arms of a chain, in segments, and the variables assigned at the end of each arm that continues after the chain."""

    segments: list[list[_Arm]] = field(default_factory=lambda: [[]])
    assigned: list[set[str]] = field(default_factory=list)


class BranchReader(LoopReader):
    """Reader of the branches of one function."""

    def _If(self, node: ast.If) -> bool:
        """Read a chain arm by arm: Python's stack does not grow with its length."""
        outer, depth, fixed = self.body, self.program.depth, set(self.fixed)
        chain = _Chain()
        try:
            falls = self._arms(node, chain)
            if not chain.segments[0]:  # decided at compile time
                return falls
            orelse, self.body = tuple(self.body), outer
        finally:
            self.body, self.program.depth = outer, depth
        self.fixed &= fixed  # names fixed inside may be unassigned outside
        if chain.assigned:
            self.assigned = set.intersection(*chain.assigned)
        self._close(chain, orelse)
        return bool(chain.assigned)

    def _arms(self, node: ast.If, chain: _Chain) -> bool:
        """Read the arms of a chain. Return whether control may run past the last one."""
        outer, depth = self.body, self.program.depth
        most = max(1, min(MAX_ARMS, MAX_DEPTH - _INSIDE - depth))
        nodes: list[ast.stmt] = [node]
        while len(nodes) == 1 and isinstance(branch := nodes[0], ast.If):
            if branch is not node:
                self.program.count(self.span(branch))
            try:
                condition = self.value(branch.test)
                decided = self._decided(branch, condition)
                if decided is None:
                    test = self.truth(condition, self.span(branch.test))
            except (SourceError, AlreadyReported) as error:
                if self.body is outer:
                    raise
                if isinstance(error, SourceError):
                    self.refuse(error)
                self._mark_unresolved(branch)
                nodes = []
                break
            if decided is not None:
                nodes = decided
                continue
            before = set(self.assigned)
            then, then_falls = self.body_of(branch.body)
            if then_falls:
                chain.assigned.append(self.assigned)
            self.assigned = before
            chain.segments[-1].append(_Arm(self.body, test, then, self.span(branch.test)))
            self.program.depth, self.body, nodes = depth + len(chain.segments[-1]), [], branch.orelse
            if len(chain.segments[-1]) == most and len(nodes) == 1 and isinstance(nodes[0], ast.If):
                chain.segments.append([])
                self.program.depth = depth
        falls = self.read(nodes)
        if falls:
            chain.assigned.append(self.assigned)
        return falls

    def _decided(self, branch: ast.If, condition: Value) -> list[ast.stmt] | None:
        """Return the statements of the arm that a constant condition selects; None for a run-time condition."""
        if not isinstance(condition, Literal):
            return None
        if not isinstance(condition.value, bool):
            raise SourceError(self.span(branch.test), "a condition is a bool", "write a comparison, such as x != 0")
        return branch.body if condition.value else branch.orelse

    def _close(self, chain: _Chain, orelse: ir.Body) -> None:
        """Emit the branches of a chain. orelse: the statements of the last else."""
        rest: ir.Body = ()
        for segment in reversed([segment for segment in chain.segments if segment]):
            first, flag = segment[0], None
            if rest:
                flag = self.temporary("rest", BOOL, first.span)
                orelse = (ir.Let(flag, ir.Const(True, BOOL, first.span), first.span),)
            for arm in reversed(segment):
                branch = ir.If(arm.test, arm.then, orelse, arm.span)
                if arm is first and flag is not None:
                    first.around.append(ir.Let(flag, ir.Const(False, BOOL, first.span), first.span))
                arm.around.append(branch)
                orelse = tuple(arm.around)
            if flag is not None:
                first.around.append(ir.If(flag, rest, (), first.span))
            rest = tuple(first.around)

    def _IfExp(self, node: ast.IfExp) -> Value:
        """Read a conditional expression; a long chain of them as a chain of `elif` that assigns a variable."""
        arms, last = [node], node.orelse
        while isinstance(last, ast.IfExp):
            arms.append(last)
            last = last.orelse
        if len(arms) <= MAX_ARMS:
            return super()._IfExp(node)
        # The same name in each reading of the function: its type may be decided by a later use.
        name = temporary("chosen", node.lineno * _MAX_COLUMNS + node.col_offset)

        def assignment(value: ast.expr) -> list[ast.stmt]:
            target = ast.copy_location(ast.Name(name, ast.Store()), value)
            return [ast.copy_location(ast.Assign([target], value), value)]

        statements = assignment(last)
        for arm in reversed(arms):
            statements = [ast.copy_location(ast.If(arm.test, assignment(arm.body), statements), arm)]
        self.statement(statements[0])
        return self.value(ast.copy_location(ast.Name(name, ast.Load()), node))
