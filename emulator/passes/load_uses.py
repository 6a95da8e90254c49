"""Uses of loaded values: plain loads that only propose the expected value of a compare-and-swap, and volatile loads that poll a flag.

A forward data flow over an inlined kernel: each register has labels, the loads that its value depends on. A choice by a labelled value
labels the registers assigned under it. Known limit: the statements after an early exit of a loop are not labelled.
"""

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum

from ..ir import nodes as ir
from ..ir.effects import performed
from ..ir.exits import exits
from ..ir.walk import children, effect, once_a_node, registers, statements
from ..language.types import Scalar
from .data_flow import DataFlow, Loop
from .waiting import waits


class Form(Enum):
    """Relation of a value to a load: the loaded bits, a value computed from them, a value assigned under a condition with them, the
    result of a compare-and-swap that expects them."""

    EXACT = "exact"
    DERIVED = "derived"
    CHOSEN = "chosen"
    RESULT = "result"


class Use(Enum):
    """Use of a loaded value. ATTEMPT: whether compare-and-swaps on its element are tried. CONDITION: another choice."""

    PROPOSAL = "proposal"
    ATTEMPT = "attempt"
    CONDITION = "condition"
    DATA = "data"


Label = tuple[int, Form]
"""The site of a load, and the form of its value."""
Labels = frozenset[Label]
State = dict[str, Labels]
"""The labels of registers, by name."""
NONE: Labels = frozenset()
BIT_CASTS = {f"as_{type}" for type in ("i16", "u16", "i32", "u32", "i64", "u64", "f16", "bf16", "f32", "f64")}


@dataclass(frozen=True)
class LoadUses:
    """Sites of loads. proposals: plain loads, verified by compare-and-swaps on their elements before another use, or without one.
    polls: volatile loads that only decide branches and loops, that a loop repeats until another thread stores, or whose element is
    subject to compare-and-swaps, such as a lock."""

    proposals: frozenset[int]
    polls: frozenset[int]


@once_a_node
def load_uses(kernel: ir.Function) -> LoadUses:
    """Return the proposals and polls of an inlined kernel with sites."""
    followed = {
        stmt.site: load
        for stmt in statements(kernel.body)
        if isinstance(load := performed(stmt), ir.Load) and load.order in ("weak", "volatile")
    }
    swaps = [swap for stmt in statements(kernel.body) if isinstance(swap := performed(stmt), ir.CompareSwap)]
    swapped = {swap.array for swap in swaps}
    volatile = {site for site, load in followed.items() if load.order == "volatile"}
    if not swapped and not volatile:
        return LoadUses(frozenset(), frozenset())
    analysis = _Uses(kernel, followed)
    analysis.run(NONE)
    uses = analysis.uses
    waited = {
        stmt.site
        for loop in statements(kernel.body)
        if isinstance(loop, ir.While) and waits(loop)
        for stmt in statements((*loop.setup, *loop.body))
    }
    verified = {n for n, load in followed.items() if load.array in swapped and uses[n] <= {Use.PROPOSAL, Use.ATTEMPT}}
    polls = {n for n in volatile if n in waited or Use.DATA not in uses[n]}
    polls |= {n for n in volatile if any(_same_element(followed[n], swap) for swap in swaps)}
    return LoadUses(frozenset(verified - volatile), frozenset(polls))


class _Uses(DataFlow[Labels]):
    """The control of a statement is the labels of the choice whether it runs."""

    state: State

    def __init__(self, kernel: ir.Function, loads: dict[int, ir.Load]) -> None:
        super().__init__(kernel)
        self.loads, self.state = loads, {}
        self.uses: defaultdict[int, set[Use]] = defaultdict(set)

    def copied(self, state: State) -> State:
        return dict(state)

    def joined_states(self, state: State, other: State) -> State:
        return {name: state.get(name, NONE) | other.get(name, NONE) for name in state | other}

    # -------------------------------------------------------------- expressions
    def labels(self, node: ir.Expr) -> Labels:
        """Return the labels of a value. A comparison with the result of a compare-and-swap verifies what it expected."""
        if isinstance(node, ir.Reg):
            return self.state.get(node.name, NONE)
        parts = [self.labels(child) for child in children(node)]
        joined = NONE.union(*parts)
        if isinstance(node, ir.Op) and node.name in ("eq", "ne"):
            verified = {s for s, form in joined if form is Form.RESULT} & _loaded(joined)
            for name, labels in self.state.items():
                self.state[name] = frozenset(one for one in labels if one[0] not in verified)
            joined = frozenset(one for one in joined if one[0] not in verified)
        return joined if _keeps_bits(node) else _derived(joined)

    def use(self, labels: Labels, use: Use) -> None:
        for site in _loaded(labels):
            self.uses[site].add(use)

    def data(self, nodes: Iterator[ir.Expr]) -> None:
        """Record uses of values as data."""
        for node in nodes:
            self.use(self.labels(node), Use.DATA)

    # -------------------------------------------------------------- statements
    def visit(self, stmt: ir.Stmt, control: Labels) -> None:
        match stmt:
            case ir.Let(target=ir.Reg(name=name)):
                self.state[name] = self.assigned(stmt) | control
            case ir.Let() if isinstance(effect(stmt), ir.CompareSwap):
                self.assigned(stmt)
            case ir.Store() if self.is_retried(stmt):
                self.data(iter((stmt.index,)))
            case ir.Check() | ir.If() | ir.While() | ir.For():
                pass  # an observer, or a choice
            case _:
                self.data(children(stmt))

    def arms(self, stmt: ir.If | Loop, control: Labels) -> tuple[Labels, Labels]:
        labels = NONE.union(*(self.choose(child, (stmt,)) for child in children(stmt)))
        if isinstance(stmt, ir.For):
            self.state[stmt.var.name] = _derived(labels)
        inner = control | _chosen(labels)
        return inner, inner

    def choose(self, cond: ir.Expr, region: ir.Body) -> Labels:
        """Record the uses of a condition of statements; return its labels."""
        labels = self.labels(cond)
        for site in _loaded(labels):
            only_swaps = self.only_swaps(region, self.loads[site].array)
            self.uses[site].add(Use.ATTEMPT if only_swaps else Use.CONDITION)
        return labels

    def only_swaps(self, region: ir.Body, array: str) -> bool:
        """Return whether the statements, and those that their early exits skip, have compare-and-swaps on an array as their only writes."""
        stmts, leaving = list(statements(region)), [exit for stmt in region for exit in exits(stmt)]
        if any(isinstance(stmt, ir.Break | ir.Continue) for stmt in leaving):
            loops = (one.node for one in reversed(self.scopes) if isinstance(one.node, Loop))
            stmts += statements((loop,) if (loop := next(loops, None)) else ())
        if any(isinstance(stmt, ir.Return) for stmt in leaving):
            called = next(one.node for one in reversed(self.scopes) if one.kind != "loop")
            stmts += statements(_from(region[0], called.body))
        swaps = [performed(stmt) for stmt in stmts if isinstance(performed(stmt), ir.CompareSwap)]
        return any(swap.array == array for swap in swaps) and all(_changes_only(stmt, array) for stmt in stmts)

    def is_retried(self, stmt: ir.Store) -> bool:
        """Return whether a store's value is only what a later compare-and-swap of its loop expects: the next attempt stores again, as in
        the push on a linked stack."""
        loop = next((scope.node for scope in reversed(self.scopes) if isinstance(scope.node, ir.While | ir.For)), None)
        labels = self.labels(stmt.value)
        if loop is None or not labels or any(form is not Form.EXACT for _, form in labels):
            return False
        body = list(statements(loop.body))
        assigned = {s.target.name for s in body if isinstance(s, ir.Let) and isinstance(s.target, ir.Reg)}
        if assigned & {r.name for r in registers(ir.Let(None, stmt.index, stmt.span))}:
            return False
        later = map(performed, body[next(n for n, one in enumerate(body) if one is stmt) :])
        swaps = [one for one in later if isinstance(one, ir.CompareSwap) and _equal(one.expected, stmt.value)]
        return all(any(_same_element(self.loads[site], swap) for swap in swaps) for site, _ in labels)

    def assigned(self, stmt: ir.Let) -> Labels:
        """Return the labels of the right side of an assignment."""
        match stmt.value:
            case ir.Load():
                self.data(children(stmt.value))
                return frozenset({(stmt.site, Form.EXACT)}) if stmt.site in self.loads else NONE
            case ir.CompareSwap() as swap:
                return self.swapped(swap)
            case ir.Vote() as vote:
                return _derived(NONE.union(*(self.labels(child) for child in children(vote))))
            case value if isinstance(value, ir.Effect):
                self.data(children(value))
                return NONE
        return self.labels(stmt.value)

    def swapped(self, swap: ir.CompareSwap) -> Labels:
        """Return the labels of a compare-and-swap's result."""
        self.data(iter((swap.index,)))
        expected, value = self.labels(swap.expected), self.labels(swap.value)
        proposed = {s for s, form in expected if form is Form.EXACT and _same_element(self.loads[s], swap)}
        for site in proposed:
            self.uses[site].add(Use.PROPOSAL)
        derived = frozenset(one for one in expected if one[1] is Form.DERIVED)
        other = frozenset(one for one in expected | value if one[0] not in proposed)
        self.use(derived | other, Use.DATA)
        again = {s for s, form in expected if form is Form.RESULT}
        return frozenset((site, Form.RESULT) for site in proposed | again)


def _keeps_bits(node: ir.Expr) -> bool:
    """Return whether an operation has the bits of its operand: a bit cast, or a cast between signed and unsigned integers of a size."""
    if not isinstance(node, ir.Op) or node.name in BIT_CASTS:
        return isinstance(node, ir.Op)
    types = [one.type for one in (node, *node.args) if isinstance(one.type, Scalar) and one.type.is_integer]
    return node.name.startswith("cast_") and len(types) == 2 and types[0].bits == types[1].bits


def _from(stmt: ir.Stmt, body: ir.Body) -> ir.Body:
    """Return the statements of a body from the one that holds a statement."""
    first = next(n for n, outer in enumerate(body) if any(one is stmt for one in statements((outer,))))
    return body[first:]


def _loaded(labels: Labels) -> set[int]:
    """Return the sites of loads whose values are not verified."""
    return {site for site, form in labels if form is not Form.RESULT}


def _derived(labels: Labels) -> Labels:
    return frozenset((site, Form.DERIVED if form is Form.EXACT else form) for site, form in labels)


def _chosen(labels: Labels) -> Labels:
    return frozenset((site, Form.CHOSEN) for site in _loaded(labels))


def _changes_only(stmt: ir.Stmt, array: str) -> bool:
    match performed(stmt):
        case None:
            return not isinstance(stmt, ir.Print | ir.Assert | ir.HostCall)
        case ir.CompareSwap() as swap:
            return swap.array == array
        case ir.Load():
            return True
    return False


def _same_element(load: ir.Load, swap: ir.CompareSwap) -> bool:
    """Return whether both access one element, by equal expressions of the index, in units of one size."""
    size = getattr(load.type, "bits", 0)
    return load.array == swap.array and size == swap.type.bits and _equal(load.index, swap.index)


def _equal(a: ir.Expr, b: ir.Expr) -> bool:
    """Return whether two expressions have the same text."""
    if isinstance(a, ir.Within) and isinstance(b, ir.Within):
        return _equal(a.flat, b.flat)
    comparable = ir.Reg | ir.Special | ir.Const | ir.Op
    if type(a) is not type(b) or not isinstance(a, comparable) or _head(a) != _head(b):
        return False
    return all(map(_equal, children(a), children(b)))


def _head(expr: ir.Expr) -> object:
    return expr.value if isinstance(expr, ir.Const) else getattr(expr, "name", None)
