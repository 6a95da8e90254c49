"""Placement of a missing barrier: the statement levels that all threads of a group reach, between two accesses.

Two accesses of a thread are ordered forward, within an iteration of their common loops, and around the innermost common loop,
from one iteration to the next. A path without a barrier is open. A barrier before the later access closes the forward path, a
barrier at the end of the loop closes the other one. A barrier is legal where no enclosing branch or loop varies.
"""

import ast
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from ...errors import Insertion
from ...passes.varying_control import VaryingControl
from ...span import Span
from .source_paths import Loop, Step, bodies, path_to


@dataclass(frozen=True)
class Gap:
    """An open forward path: a barrier fits before each statement of `body` from index `first` to `last`.

    illegal: the line of the branch or loop that varies there, 0 if a barrier is legal. together: whether one statement has both
    accesses. branches: whether they are in the two branches of an `if` that varies, in line `illegal`. loops: around the earlier
    access alone; a barrier at the end of one closes the path too.
    """

    body: Sequence[ast.stmt]
    first: int
    last: int
    file: str
    illegal: int = 0
    together: bool = False
    branches: bool = False
    loops: tuple[Loop, ...] = ()

    @property
    def possible(self) -> bool:
        return not (self.illegal or self.together)


@dataclass(frozen=True)
class Around:
    """The open path around a loop. illegal: as in `Gap`, at the end of the loop's body."""

    loop: Loop
    file: str
    illegal: int = 0

    def insertion(self, statement: str) -> Insertion:
        """Return the barrier that closes the path. A `continue` would pass one at the end of the loop."""
        continues = any(isinstance(node, ast.Continue) for node in _inside(self.loop))
        return Insertion(statement, self.file, self.loop.lineno, "start of loop" if continues else "end of loop")


@dataclass(frozen=True)
class Placement:
    """The open paths between two accesses; None for a closed path."""

    gap: Gap | None
    around: Around | None


def before(gap: Gap, index: int, statement: str) -> Insertion:
    """Return a barrier before a statement of a gap."""
    return Insertion(statement, gap.file, gap.body[index].lineno, "before")


class Placer:
    """Finds the open paths of a kernel. barriers: spans of those that order the group. control: of the group."""

    def __init__(self, barriers: Iterable[Span], control: VaryingControl) -> None:
        self.barriers, self.control = tuple(barriers), control

    def place(self, first: Span, second: Span) -> Placement | None:
        """Return the open paths between two accesses, None without their source."""
        paths = sorted((path_to(first), path_to(second)), key=lambda path: [step.node.lineno for step in path])
        if not all(paths):
            return None
        earlier, later = paths
        depth = next((n for n, (a, b) in enumerate(zip(earlier, later, strict=False)) if not a.same(b)), None)
        depth = min(len(earlier), len(later)) if depth is None else depth
        around = self._around(earlier, later, depth)
        return Placement(self._gap(earlier, later, depth), around)

    def at(self, access: Span) -> Gap | None:
        """Return the place before the statement of an access, None without its source."""
        path = path_to(access)
        if not path:
            return None
        last = path[-1]
        return Gap(last.body, last.index, last.index, last.file, self._illegal(path, len(path)))

    # -------------------------------------------------------------- forward
    def _gap(self, earlier: tuple[Step, ...], later: tuple[Step, ...], depth: int) -> Gap | None:
        """Return the open forward path. depth: of the first step that differs."""
        if depth == len(earlier) == len(later):
            last = earlier[-1]
            return Gap(last.body, last.index, last.index, last.file, self._illegal(earlier, depth), together=True)
        if depth == min(
            len(earlier), len(later)
        ):  # one access is in the header of a statement, the other one in its body
            path = later if depth == len(earlier) else earlier
            inner = path[depth]
            if self._leads(path, depth, inner.body, 0):
                return None
            illegal = self._illegal((*path[:depth], inner), depth + 1)
            return Gap(inner.body, 0, inner.index, inner.file, illegal)
        before_gap, after_gap = earlier[depth], later[depth]
        if before_gap.body is not after_gap.body:
            branch = earlier[depth - 1].node
            varying = (before_gap.file, _header(branch).lineno) in self.control.conditions
            return Gap(before_gap.body, 0, 0, before_gap.file, branch.lineno, branches=True) if varying else None
        if self._trails(earlier, depth + 1) or self._leads(later, depth, before_gap.body, before_gap.index + 1):
            return None
        start, end, illegal = before_gap.index + 1, after_gap.index, self._illegal(earlier, depth + 1)
        return Gap(before_gap.body, start, end, before_gap.file, illegal, loops=self._loops(earlier, depth))

    def _loops(self, path: tuple[Step, ...], depth: int) -> tuple[Loop, ...]:
        """Return the loops around an access, from a depth on, with an end that all threads reach in every iteration."""
        loops = ((n, step.node) for n, step in enumerate(path) if n >= depth)
        return tuple(
            node
            for n, node in loops
            if isinstance(node, ast.For | ast.While) and _repeats(node, path, n) and not self._illegal_end(path, n)
            and not any(isinstance(inner, ast.Continue) for inner in _inside(node))
        )  # fmt: skip

    def _trails(self, path: tuple[Step, ...], depth: int) -> bool:
        """Return whether a barrier follows an access in the bodies of its path from a depth on."""
        return any(self._blocks(stmt, step) for step in path[depth:] for stmt in step.body[step.index + 1 :])

    def _leads(self, path: tuple[Step, ...], depth: int, body: Sequence[ast.stmt], start: int) -> bool:
        """Return whether a barrier precedes an access: in a body from a statement on, or in the bodies inside."""
        step = path[depth]
        inner = any(self._blocks(stmt, deep) for deep in path[depth + 1 :] for stmt in deep.body[: deep.index])
        return inner or any(self._blocks(stmt, step) for stmt in body[start : step.index])

    def _blocks(self, stmt: ast.stmt, at: Step) -> bool:
        """Return whether every thread that executes a statement passes a barrier. at: a statement of the same body."""
        match stmt:
            case ast.If():
                arms = [any(self._blocks(inner, at) for inner in arm) for arm in (stmt.body, stmt.orelse)]
                decided = (at.file, _header(stmt).lineno) not in self.control.branches
                return any(arms) if decided else all(arms)
            case ast.For() | ast.While():
                return any(self._blocks(inner, at) for inner in stmt.body) or self._has(_header(stmt), at)
        return self._has(stmt, at)

    def _has(self, node: ast.stmt | ast.expr, at: Step) -> bool:
        """Return whether a barrier is in a node, or in a function that it calls."""
        level = len(at.calls)
        for span in self.barriers:
            chain = (*span.calls, span)
            inside = chain[:level] == at.calls and len(chain) > level and chain[level].file == at.file
            if inside and node.lineno <= chain[level].line <= (node.end_lineno or node.lineno):
                return True
        return False

    # -------------------------------------------------------------- around
    def _around(self, earlier: tuple[Step, ...], later: tuple[Step, ...], depth: int) -> Around | None:
        """Return the open path around the innermost common loop."""
        for n in range(depth - 1, -1, -1):
            loop = earlier[n].node
            if isinstance(loop, ast.For | ast.While) and all(_repeats(loop, path, n) for path in (earlier, later)):
                if self._trails(later, n + 1) or self._leads_in(earlier, n + 1):
                    return None
                return Around(loop, earlier[n].file, self._illegal_end(earlier, n))
        return None

    def _leads_in(self, path: tuple[Step, ...], depth: int) -> bool:
        return any(self._blocks(stmt, step) for step in path[depth:] for stmt in step.body[: step.index])

    # -------------------------------------------------------------- legality
    def _illegal(self, path: tuple[Step, ...], depth: int) -> int:
        """Return the line of the innermost branch or loop around the body of step `depth - 1` that varies; 0 without any."""
        step = path[depth - 1]
        lines = range(step.node.lineno, (step.node.end_lineno or step.node.lineno) + 1)
        if step.calls and any((step.file, line) in self.control.calls for line in lines):
            return step.calls[-1].line
        return next((line for n in range(depth - 2, -1, -1) if (line := self._varying(path[n]))), 0)

    def _illegal_end(self, path: tuple[Step, ...], depth: int) -> int:
        """Return the line of a branch or loop that varies around the end of the loop at a depth; 0 without any."""
        if line := self._varying(path[depth]):
            return line
        return self._illegal(path, depth + 1)

    def _varying(self, step: Step) -> int:
        """Return the line of a branch or loop that varies, or that some threads leave early; else 0."""
        node, positions = step.node, self.control.conditions
        if not isinstance(node, ast.If | ast.For | ast.While):
            return 0
        if (step.file, _header(node).lineno) in positions:
            return node.lineno
        if isinstance(node, ast.If):
            return 0
        for inner in _inside(node):
            varies = isinstance(inner, ast.If) and (step.file, _header(inner).lineno) in positions
            if varies and any(isinstance(exit, ast.Continue) for exit in _inside(inner)):
                return inner.lineno
        return 0


def _header(node: ast.stmt) -> ast.stmt | ast.expr:
    """Return the expression that decides a branch or a loop."""
    match node:
        case ast.If() | ast.While():
            return node.test
        case ast.For():
            return node.iter
    return node


def _inside(node: ast.stmt) -> Iterator[ast.stmt]:
    """Yield the statements of a branch or a loop, without those of inner loops."""
    for body in bodies(node):
        for stmt in body:
            yield stmt
            if not isinstance(stmt, ast.For | ast.While):
                yield from _inside(stmt)


def _repeats(loop: Loop, path: tuple[Step, ...], depth: int) -> bool:
    """Return whether each iteration of the loop at a depth may execute the access: it is in the body or the condition."""
    if len(path) == depth + 1:
        return isinstance(loop, ast.While)
    return path[depth + 1].body is loop.body
