"""Branches and loops that the threads of a warp, a block or a grid may take differently.

A forward analysis of an inlined, unrolled kernel. A register varies if its value may differ between the threads of the group.
A condition varies if its value does, or if some threads may leave its loop early. A kernel's own `return` is no such exit: a
barrier counts the threads that have not returned.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

from ..ir import nodes as ir
from ..ir.walk import children, statements
from ..language.intrinsics import WARP_SIZE
from .data_flow import DataFlow, Exit, Loop, conditions_of, ends_loop
from .divergence import Divergence, analyse_divergence
from .private_registers import private_registers

Group = Literal["warp", "block", "grid"]
Dim3 = tuple[int, int, int]
Position = tuple[str, int]
"""File and line."""


@dataclass(frozen=True)
class VaryingControl:
    """conditions: of branches and loops that threads of the group may take differently. calls: statements of device functions
    that only some of the threads may call. branches: all conditions of branches that remain in the kernel."""

    conditions: frozenset[Position]
    calls: frozenset[Position]
    branches: frozenset[Position]


def varying_control(kernel: ir.Function, group: Group, grid: Dim3, block: Dim3) -> VaryingControl:
    """Analyse a prepared kernel for a launch."""
    analysis = _OfWarp(kernel, grid, block) if group == "warp" else _OfBlocks(kernel, grid, block, group)
    analysis.run(Reach(varying=False, called=False))
    branches = {_position(s) for s in statements(kernel.body) if isinstance(s, ir.If)}
    return VaryingControl(frozenset(analysis.conditions), frozenset(analysis.calls), frozenset(branches))


def _position(stmt: ir.Stmt) -> Position:
    return stmt.span.file, stmt.span.line


class Reach(NamedTuple):
    """varying: whether only some of the threads of the group reach a statement. called: whether only some of them call its function."""

    varying: bool
    called: bool


class _Analysis(DataFlow[Reach]):
    """conditions, calls: as in `VaryingControl`. loops: sites of loops with varying iterations."""

    def __init__(self, kernel: ir.Function, grid: Dim3, block: Dim3) -> None:
        super().__init__(kernel)
        self.grid, self.block = grid, block
        self.conditions: set[Position] = set()
        self.calls: set[Position] = set()
        self.loops: set[int] = set()

    def varies(self, expr: ir.Expr) -> bool:
        raise NotImplementedError

    def assign(self, let: ir.Let, varying: bool) -> None:
        """Record the value of a register. varying: whether only some threads assign it."""

    def visit(self, stmt: ir.Stmt, control: Reach) -> None:
        if control.called:
            self.calls.add(_position(stmt))
        match stmt:
            case ir.Let():
                self.assign(stmt, control.varying)
            case ir.For():
                self.assign(ir.Let(stmt.var, stmt.start, stmt.span), self.iteration(stmt, control).varying)

    def arms(self, stmt: ir.If | Loop, control: Reach) -> tuple[Reach, Reach]:
        if isinstance(stmt, ir.If) and self.varies(stmt.cond):
            self.conditions.add(_position(stmt))
            control = control._replace(varying=True)
        return control, control

    def iteration(self, loop: Loop, control: Reach) -> Reach:
        return control._replace(varying=control.varying or loop.site in self.loops)

    def frame(self, frame: ir.Frame, control: Reach) -> Reach:
        return control._replace(called=control.varying)

    def leaves(self, leaving: Exit[Reach]) -> bool:
        return leaving.control.varying and leaving.scope.kind != "kernel"

    def after(self, stmt: ir.Stmt, exits: Sequence[Exit[Reach]], control: Reach) -> Reach:
        return control._replace(varying=True)

    def repeated(self, loop: Loop, exits: Sequence[Exit[Reach]]) -> None:
        if any(map(self.varies, conditions_of(loop))) or any(map(ends_loop, exits)):
            self.conditions.add(_position(loop))
            self.add(self.loops, loop.site)


class _OfWarp(_Analysis):
    """Warps: the strides of the divergence analysis, and comparisons with multiples of the warp's size."""

    def __init__(self, kernel: ir.Function, grid: Dim3, block: Dim3) -> None:
        super().__init__(kernel, grid, block)
        self.divergence: Divergence = analyse_divergence(kernel, private_registers(kernel), block)

    def varies(self, expr: ir.Expr) -> bool:
        if self.divergence.stride_of(expr) == 0:
            return False
        if isinstance(expr, ir.Op) and expr.name in ("both", "either", "not", "lt", "ge"):
            left, *right = expr.args
            if expr.name not in ("lt", "ge"):
                return any(self.varies(arg) for arg in expr.args)
            strides = self.divergence.stride_of(left), self.divergence.stride_of(right[0])
            aligned = all(self.divergence.multiple(arg) % WARP_SIZE == 0 for arg in expr.args)
            return strides != (1, 0) or not aligned
        return True


class _OfBlocks(_Analysis):
    """Blocks and the grid: registers that depend on the thread, for the grid also on the block."""

    def __init__(self, kernel: ir.Function, grid: Dim3, block: Dim3, group: Group) -> None:
        super().__init__(kernel, grid, block)
        self.of_grid = group == "grid"
        self.registers: set[str] = set()
        self.local = {s.array for s in statements(kernel.body) if isinstance(s, ir.Alloc) and s.type.space == "local"}
        self.own = {s.array for s in statements(kernel.body) if isinstance(s, ir.Alloc)} if self.of_grid else self.local

    def varies(self, expr: ir.Expr) -> bool:
        match expr:
            case ir.Reg():
                return expr.name in self.registers
            case ir.Special():
                if expr.name not in ir.INDICES:
                    return self.block != (1, 1, 1)
                index, axis = ir.INDICES[expr.name]
                return (index == "thread" and self.block[axis] > 1) or (
                    index == "block" and self.of_grid and self.grid[axis] > 1
                )
        return any(self.varies(child) for child in children(expr))

    def assign(self, let: ir.Let, varying: bool) -> None:
        if isinstance(let.target, ir.Reg) and (varying or self._differs(let.value)):
            self.add(self.registers, let.target.name)

    def _differs(self, value: ir.Expr | ir.Effect) -> bool:
        match value:
            case ir.Load():
                return value.array in self.own or self.varies(value.index)
            case ir.Fetch():
                return any(self.varies(child) for child in children(value))
            case ir.Barrier():
                return self.of_grid
            case (
                ir.Atomic()
                | ir.CompareSwap()
                | ir.Shuffle()
                | ir.Vote()
                | ir.Mma()
                | ir.MoveMatrix()
                | ir.Clock()
                | ir.Call()
            ):
                return True
        return self.varies(value)
