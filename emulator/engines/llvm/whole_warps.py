"""Analysis: every warp of a block has either all 32 lanes or none between barriers."""

from collections.abc import Iterable

from ...ir import nodes as ir
from ...ir.exits import exits
from ...llvm.builder import LANES
from ...passes.barriers import holds_barrier
from .context import CodegenContext


def runs_whole_warps(context: CodegenContext) -> bool:
    """Return whether the kernel needs no masks for partial warps."""
    x, y, z = context.options.block
    return x * y * z % LANES == 0 and not context.options.step_limited and not _splits(context, context.kernel.body)


def _splits(context: CodegenContext, stmts: Iterable[ir.Stmt]) -> bool:
    """Return whether block-wide statements may leave a warp with only some of its lanes."""
    return any(_splits_warp(context, stmt) for stmt in stmts)


def _splits_warp(context: CodegenContext, stmt: ir.Stmt) -> bool:
    if not holds_barrier(stmt):
        return any(found.site not in context.divergence.uniform_exits for found in exits(stmt))
    match stmt:
        case ir.If():
            return context.divergence.stride_of(stmt.cond) != 0 or _splits(context, (*stmt.then, *stmt.orelse))
        case ir.While():
            return stmt.site in context.divergence.divergent_loops or _splits(context, (*stmt.setup, *stmt.body))
        case ir.For():
            return stmt.site in context.divergence.divergent_loops or _splits(context, stmt.body)
        case ir.Frame():
            return _splits(context, stmt.body)
    return False
