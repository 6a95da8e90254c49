"""Sites: each statement's number, kind and instruction costs. They are the rows of the counter table."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace

from ..ir import nodes as ir
from ..ir.ops import TABLE
from ..ir.walk import expressions, map_bodies, statements
from ..language.types import Array, Scalar
from ..span import Span


@dataclass(frozen=True)
class Site:
    """One statement of the final program.

    kind: "global_load", "shared_store", "branch", "barrier", "shuffle", "compute" ... (see profiler/events.py)
    size: bytes each lane moves, in memory or by a shuffle. costs: instructions of one execution by issue class.
    Costs are those of the IR: a compiler may need more or fewer.
    """

    kind: str
    span: Span
    size: int
    costs: dict[str, int]


def number(program: ir.Program) -> tuple[ir.Program, tuple[Site, ...]]:
    """The program with each statement's `site` set, and the sites in order."""
    arrays: dict[str, Array] = {p.name: p.type for p in program.kernel.params if isinstance(p.type, Array)}
    arrays |= {s.array: s.type for s in statements(program.kernel.body) if isinstance(s, ir.Alloc)}
    sites: list[Site] = []

    def body(stmts: ir.Body) -> ir.Body:
        return tuple(statement(s) for s in stmts)

    def statement(stmt: ir.Stmt) -> ir.Stmt:
        if isinstance(stmt, ir.Check):
            return stmt  # numbered after the sites that are counted
        at = len(sites)
        sites.append(_site(stmt, arrays))
        return replace(map_bodies(stmt, body), site=at)

    kernel = replace(program.kernel, body=body(program.kernel.body))
    return ir.Program(kernel, ()), tuple(sites)


def _site(stmt: ir.Stmt, arrays: dict[str, Array]) -> Site:
    costs: Counter[str] = Counter()
    for expr in expressions(stmt):
        if isinstance(expr, ir.Op) and isinstance(expr.args[-1].type, Scalar):
            costs[TABLE[expr.name].cost_class(expr.args[-1].type)] += 1
    kind, size, span = "compute", 0, stmt.span
    match stmt:
        case ir.Let(value=ir.Load() as load):
            array = arrays[load.array]
            kind, size = f"{array.space}_load", array.element.size
        case ir.Let(value=ir.Atomic() | ir.CompareSwap() as atomic):
            array = arrays[atomic.array]
            silent = (
                stmt.target is None
                and array.space == "global"
                and isinstance(atomic, ir.Atomic)
                and atomic.op != "exchange"
            )
            kind, size = f"{array.space}_{'reduction' if silent else 'atomic'}", array.element.size
        case ir.Let(value=ir.Shuffle() as shuffle):
            kind, size = "shuffle", shuffle.type.size
        case ir.Let(value=ir.Vote() | ir.Barrier() as effect):
            kind = type(effect).__name__.lower()
        case ir.Store():
            array = arrays[stmt.array]
            kind, size = f"{array.space}_store", array.element.size
        case ir.If() | ir.While() | ir.For():
            kind = "branch"
            if isinstance(stmt, ir.For):
                costs = Counter({"alu": 2})  # the test and the step of each iteration; the bounds are computed once
        case ir.Break() | ir.Continue() | ir.Return():
            kind = "control"
        case ir.WarpBarrier():
            kind = "syncwarp"
        case ir.Fence():
            kind = "fence"
    if isinstance(stmt, ir.Let) and isinstance(stmt.value, ir.EFFECTS):
        span = stmt.value.span
    own = _CLASSES.get(kind.rpartition("_")[2] if "_" in kind else kind)
    if own:
        costs[own] += max(size // 4, 1) if kind == "shuffle" else 1  # a shuffle moves 4 bytes
    return Site(kind, span, size, dict(costs))


_CLASSES = {
    "load": "memory", "store": "memory", "atomic": "atomic", "reduction": "atomic", "shuffle": "shuffle", "vote": "vote",
    "barrier": "barrier", "syncwarp": "barrier", "fence": "memory", "branch": "control", "control": "control",
}  # fmt: skip
