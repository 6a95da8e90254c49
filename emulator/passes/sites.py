"""Sites: each statement's number, kind and instruction costs. They are the rows of the counter table."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace

from ..ir import nodes as ir
from ..ir.access import AccessKind, Operation
from ..ir.shifts import cost_class
from ..ir.walk import expressions, flattened, map_bodies, statements
from ..language.types import I32, U32, Array, Scalar
from ..span import Span


@dataclass(frozen=True)
class Site:
    """One statement of the final program.

    action: an access to memory, or one of "branch", "control", "barrier", "syncwarp", "fence", "shuffle", "vote" and
    "compute". size: bytes that each lane moves, in memory or by a shuffle. costs: instructions of one execution by
    issue class. Costs are those of the IR: a compiler may need more or fewer. array: what an access accesses.
    parent: the site of the innermost if, while or for around the statement.
    """

    action: AccessKind | str
    span: Span
    size: int
    costs: dict[str, int]
    array: str = ""
    parent: int | None = None

    @property
    def kind(self) -> str:
        """The action as text, as `profiler.events` names it."""
        return str(self.action)

    @property
    def access(self) -> AccessKind:
        """The access of a statement that is one."""
        assert isinstance(self.action, AccessKind)
        return self.action


def number(program: ir.Program) -> tuple[ir.Program, tuple[Site, ...]]:
    """The program with each statement's `site` set, and the sites in order."""
    arrays: dict[str, Array] = {p.name: p.type for p in program.kernel.params if isinstance(p.type, Array)}
    arrays |= {s.array: s.type for s in statements(program.kernel.body) if isinstance(s, ir.Alloc)}
    sites: list[Site] = []
    around: list[int] = []

    def body(stmts: ir.Body) -> ir.Body:
        return tuple(statement(s) for s in stmts)

    def statement(stmt: ir.Stmt) -> ir.Stmt:
        if isinstance(stmt, ir.Check):
            return stmt  # numbered after the sites that are counted
        at = len(sites)
        sites.append(_site(stmt, arrays, around[-1] if around else None))
        if sites[at].action != "branch":
            return replace(map_bodies(stmt, body), site=at)
        around.append(at)
        numbered = replace(map_bodies(stmt, body), site=at)
        around.pop()
        return numbered

    kernel = replace(program.kernel, body=body(program.kernel.body))
    return ir.Program(kernel, ()), tuple(sites)


def _counts(atomic: ir.Atomic) -> bool:
    """Whether it adds the constant 1 to an integer of 4 bytes."""
    one = isinstance(atomic.value, ir.Const) and atomic.value.value == 1
    return one and atomic.op == "add" and isinstance(atomic.type, Scalar) and atomic.type in (I32, U32)


def _site(stmt: ir.Stmt, arrays: dict[str, Array], parent: int | None) -> Site:
    costs: Counter[str] = Counter()
    for expr in expressions(flattened(stmt)):
        if isinstance(expr, ir.Op) and (name := cost_class(expr)) is not None:
            costs[name] += 1
    action: AccessKind | str = "compute"
    size, span, accessed = 0, stmt.span, ""
    match stmt:
        case ir.Let(value=ir.Load() as load):
            array, accessed = arrays[load.array], load.array
            action, size = AccessKind(array.space, Operation.LOAD), array.element.size
        case ir.Let(value=ir.Atomic() | ir.CompareSwap() as atomic):
            array, accessed = arrays[atomic.array], atomic.array
            silent = stmt.target is None and isinstance(atomic, ir.Atomic) and atomic.op != "exchange"
            silent &= atomic.order == "relaxed"  # CUDA gives back the old value of the others, used or not
            operation = Operation.ATOMIC
            if silent and array.space == "global":
                operation = Operation.REDUCTION
            elif array.space == "shared" and isinstance(atomic, ir.CompareSwap):
                operation = Operation.SWAP
            elif silent and isinstance(atomic, ir.Atomic) and _counts(atomic):
                operation = Operation.COUNT
            action, size = AccessKind(array.space, operation), array.element.size
        case ir.Let(value=ir.Shuffle() as shuffle):
            action, size = "shuffle", shuffle.type.size
        case ir.Let(value=ir.Vote() | ir.Barrier() as effect):
            action = type(effect).__name__.lower()
        case ir.Store():
            array, accessed = arrays[stmt.array], stmt.array
            operation = Operation.COPY if stmt.order == "async" and array.element.size < 16 else Operation.STORE
            action, size = AccessKind(array.space, operation), array.element.size
        case ir.If() | ir.While() | ir.For():
            action = "branch"
            if isinstance(stmt, ir.For):
                costs = Counter({"alu": 2})  # the test and the step of each iteration; the bounds are computed once
        case ir.Break() | ir.Continue() | ir.Return():
            action = "control"
        case ir.WarpBarrier():
            action = "syncwarp"
        case ir.Fence():
            action = "fence"
    if isinstance(stmt, ir.Let) and isinstance(stmt.value, ir.EFFECTS):
        span = stmt.value.span
    own = _CLASSES.get(action.operation if isinstance(action, AccessKind) else action)
    if own:
        costs[own] += max(size // 4, 1) if action == "shuffle" else 1  # a shuffle moves 4 bytes
    return Site(action, span, size, dict(costs), accessed, parent)


_CLASSES = {
    "load": "memory", "store": "memory", "atomic": "atomic", "reduction": "atomic", "count": "atomic",
    "swap": "atomic", "shuffle": "shuffle", "vote": "vote",
    "barrier": "barrier", "syncwarp": "barrier", "fence": "memory", "branch": "control", "control": "control",
}  # fmt: skip
