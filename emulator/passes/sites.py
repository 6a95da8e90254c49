"""Sites: each statement's number, kind and instruction costs. They are the rows of the counter table."""

from collections import Counter
from dataclasses import dataclass, replace

from ..ir import nodes as ir
from ..ir.access import AccessKind, Operation
from ..ir.effects import MBARRIER_OPS, REDUCTIONS, performed, row_of
from ..ir.matrices import PARTS
from ..ir.nodes import UNCOUNTED
from ..ir.shifts import cost_class
from ..ir.walk import expressions, flattened, map_bodies, statements
from ..ir.wide import access_type
from ..language.types import I32, U32, Array, Scalar
from ..span import Span


@dataclass(frozen=True)
class Site:
    """One statement of the final program.

    action: an access to memory, or one of "branch", "control", "barrier", "syncwarp", "fence", "shuffle", "vote", "mma_f16" and
    "compute". size: bytes that each lane moves, in memory or by a shuffle. costs: instructions of one execution by
    issue class. Costs are those of the IR: a compiler may need more or fewer. array: the accessed array.
    parent: the site of the innermost if, while or for around the statement. combines: whether one atomic operation could have
    the effect of those of several lanes on one element, and their results could be computed from its result.
    """

    action: AccessKind | str
    span: Span
    size: int
    costs: dict[str, int]
    array: str = ""
    parent: int | None = None
    combines: bool = False

    @property
    def kind(self) -> str:
        """The action as text, as `profiler.events` names it."""
        return str(self.action)

    @property
    def access(self) -> AccessKind:
        """The access, for statements with one."""
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
            return stmt  # numbered after the counted sites
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


def _site(stmt: ir.Stmt, arrays: dict[str, Array], parent: int | None) -> Site:
    costs: Counter[str] = Counter()
    if isinstance(stmt, ir.Assert):  # the values of a finding are computed where it fails
        stmt = replace(stmt, items=(), shown=())
    for expr in expressions(flattened(stmt)):
        if isinstance(expr, ir.Op) and (name := cost_class(expr)) is not None:
            costs[name] += 1
    action: AccessKind | str = "compute"
    issue, size, span, accessed, combines = "", 0, stmt.span, "", False
    row = row_of(stmt)
    if row is not None:
        node = performed(stmt)
        action, issue, span = _action(stmt, node) or row.action or action, row.issue, node.span
        if row.spaces:
            array, accessed = arrays[node.array], node.array
            action, size = (
                AccessKind(array.space, _operation(stmt, array), _uncounted(stmt, node)),
                access_type(node).size,
            )
            combines = _combines(stmt)
            if action.operation is Operation.COPY:
                issue = ""  # the load of the copy is its one instruction
        elif action == "shuffle":
            size = node.type.size
    elif isinstance(stmt, ir.If | ir.While | ir.For):
        action = "branch"
        if isinstance(stmt, ir.For):
            costs = Counter({"alu": 2})  # the test and the step of each iteration; the bounds are computed once
    elif isinstance(stmt, ir.Break | ir.Continue | ir.Return):
        action = "control"
    if action in ("branch", "control"):
        issue = "control"
    if stmt.site == UNCOUNTED:
        costs.clear()
    elif issue:
        costs[issue] += max(size // 4, 1) if action == "shuffle" else 1  # a shuffle moves 4 bytes
    return Site(action, span, size, dict(costs), accessed, parent, combines)


def _action(stmt: ir.Stmt, node: ir.Stmt | ir.Expr) -> str:
    """Return the action of an effect that depends on its fields, or "". A barrier in two halves counts once, at its wait."""
    match node:
        case ir.Mma():
            return f"mma_{PARTS[node.instruction].a}" if stmt.site != UNCOUNTED else "compute"
        case ir.Barrier(mode="cluster_arrive"):
            return "compute"
    return ""


def _uncounted(stmt: ir.Stmt, access: ir.Access) -> str:
    """Return the name of an access that no counter of memory has on an H200: a load of a texture fetch after the first, since the fetch
    is one instruction; an operation on a barrier; a load or a store of the memory of another block, which is a generic one."""
    if stmt.site == UNCOUNTED:
        return "texel"
    if isinstance(access, ir.Store) and access.order == "mbarrier":
        return "mbarrier"
    if isinstance(access, ir.Atomic) and access.op in MBARRIER_OPS:
        return "mbarrier"
    return "remote" if isinstance(access, ir.Load | ir.Store) and access.block is not None else ""


def _operation(stmt: ir.Stmt, array: Array) -> Operation:
    """The operation of an access: that of its effect, or the one that GPUs have a faster or slower instruction for."""
    match stmt:
        case ir.Store(order="async") if access_type(stmt).size < 16:
            return Operation.COPY
        case ir.Let(value=ir.CompareSwap()) if array.space == "shared":
            return Operation.SWAP
        case ir.Let(value=ir.Atomic() as atomic) if stmt.target is None and atomic.op != "exchange":
            if atomic.order != "relaxed":  # CUDA returns the old value of the others, used or not
                return Operation.ATOMIC
            if array.space == "global":
                return Operation.REDUCTION
            return Operation.COUNT if _adds_one(atomic) else Operation.ATOMIC
    row = row_of(stmt)
    assert row is not None
    return Operation(row.action)


def _adds_one(atomic: ir.Atomic) -> bool:
    """Whether the operation adds the constant 1 to an integer of 4 bytes."""
    is_one = isinstance(atomic.value, ir.Const) and atomic.value.value == 1
    return is_one and atomic.op == "add" and isinstance(atomic.type, Scalar) and atomic.type in (I32, U32)


def _combines(stmt: ir.Stmt) -> bool:
    """Return whether lanes could combine their operations on one element; of integer sums also with a used result."""
    if not isinstance(stmt, ir.Let) or not isinstance(stmt.value, ir.Atomic) or stmt.value.order != "relaxed":
        return False
    atomic = stmt.value
    if stmt.target is None:
        return atomic.op.removesuffix("_ftz") in REDUCTIONS
    return atomic.op == "add" and isinstance(atomic.type, Scalar) and atomic.type.is_integer
