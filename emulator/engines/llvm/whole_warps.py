"""Whether each warp of a block is, between barriers, either there with all 32 lanes or not at all."""

from __future__ import annotations

from collections.abc import Iterable

from ...ir import nodes as ir
from ...llvm.builder import LANES
from ...passes.barriers import holds_barrier
from .context import CodegenContext


def runs_whole_warps(context: CodegenContext) -> bool:
    """Whether no code of the kernel needs masks for warps that are only partly there."""
    x, y, z = context.options.block
    return x * y * z % LANES == 0 and not context.options.step_limited and not _splits(context, context.kernel.body)


def _splits(context: CodegenContext, stmts: Iterable[ir.Stmt]) -> bool:
    """Whether statements that all warps of the block take together may leave a warp with some of its lanes."""
    return any(_splits_warp(context, stmt) for stmt in stmts)


def _splits_warp(context: CodegenContext, stmt: ir.Stmt) -> bool:
    if not holds_barrier(stmt):
        return _lanes_leave(context, stmt, False, False)
    match stmt:
        case ir.If():
            return context.shapes.of(stmt.cond) != 0 or _splits(context, (*stmt.then, *stmt.orelse))
        case ir.While():
            return stmt.site in context.shapes.split or _splits(context, (*stmt.setup, *stmt.body))
        case ir.For():
            return stmt.site in context.shapes.split or _splits(context, stmt.body)
        case ir.Frame():
            return _splits(context, stmt.body)
    return False


def _lanes_leave(context: CodegenContext, stmt: ir.Stmt, in_loop: bool, in_frame: bool) -> bool:
    """Whether some lanes of a warp leave a scope around the statement without the others."""
    match stmt:
        case ir.Break() | ir.Continue():
            return not in_loop and stmt.site not in context.shapes.together
        case ir.Return():
            return not in_frame and stmt.site not in context.shapes.together
        case ir.While():
            return any(_lanes_leave(context, s, True, in_frame) for s in (*stmt.setup, *stmt.body))
        case ir.For():
            return any(_lanes_leave(context, s, True, in_frame) for s in stmt.body)
        case ir.Frame():
            return any(_lanes_leave(context, s, True, True) for s in stmt.body)
        case ir.If():
            return any(_lanes_leave(context, s, in_loop, in_frame) for s in (*stmt.then, *stmt.orelse))
    return False
