"""Independent progress of the lanes of a warp: a state machine in place of structured control.

From compute capability 7.0 on, a lane that spins lets the other lanes of its warp run, and a `syncwarp` waits for the lanes of its mask
wherever they call it. An engine runs a warp in lockstep, where a spinning lane holds up the others until its loop ends. So a region
without barriers of the block becomes one loop: each lane has a state, the segment of straight code that it runs next, and a round runs
every segment for the lanes in its state, in the order of the source. A lane that spins stays in the state of its test, and a lane at a
`syncwarp` or a collective stays in a waiting state, until the lanes of its mask are there too.

A statement keeps its site, and the added ones have sites beyond those of the kernel, so the counters are those of the source.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import count
from typing import Literal

from ..ir import counting
from ..ir import nodes as ir
from ..ir.effects import performed, row_of
from ..ir.exits import exits
from ..ir.walk import map_bodies, statements
from ..language.types import BOOL, I32, U32
from ..span import Span
from .barriers import holds_barrier
from .varying_control import varying_control
from .waiting import may_stall, sees_others, waits

END, SYNCED = 0, -1
"""The states of a lane behind the region, and at a `syncwarp`."""
_ANY = (3, 5, 7)
"""Extents of a block with lanes of a warp that differ on each axis, as they may in some launch."""


def with_lane_progress(kernel: ir.Function, sites: int) -> ir.Function | None:
    """Return a prepared kernel in which spinning and waiting lanes let the others run; None if it has no such lanes.

    sites: number of its counted sites.
    """
    rewriter = _Rewriter(max((sites, *(1 + stmt.site for stmt in statements(kernel.body)))))
    body = rewriter.body(kernel.body, framed=False)
    return replace(kernel, body=body) if rewriter.regions else None


def lanes_wait(kernel: ir.Function) -> bool:
    """Return whether lanes of a warp may wait for each other in a prepared kernel: in a loop that spins, or at a `syncwarp` that is in a
    branch or loop that they may take differently."""
    if any(map(_spins, statements(kernel.body))):
        return True
    around = [
        stmt
        for stmt in statements(kernel.body)
        if isinstance(stmt, ir.If | ir.While | ir.For)
        and any(isinstance(inner, ir.WarpBarrier) for inner in statements((stmt,)))
    ]
    if not around:
        return False
    varying = varying_control(kernel, "warp", _ANY, _ANY).conditions
    return any((stmt.span.file, stmt.span.line) in varying for stmt in around)


def _spins(stmt: ir.Stmt) -> bool:
    return isinstance(stmt, ir.While) and sees_others(stmt) and bool(waits(stmt) or may_stall(stmt))


def _is_collective(stmt: ir.Stmt) -> bool:
    """Return whether a statement waits for the lanes of its mask."""
    row, node = row_of(stmt), performed(stmt)
    return row is not None and row.scope == "warp" and not (isinstance(node, ir.Vote) and node.mode == "active")


class _Rewriter:
    """Rewrites the regions of a kernel. regions: number of those with a state machine."""

    def __init__(self, first_site: int) -> None:
        self.sites, self.regions = count(first_site), 0

    def body(self, stmts: ir.Body, framed: bool) -> ir.Body:
        """Return a statement list that whole blocks execute, with its regions rewritten. framed: whether it is of an inlined call."""
        result: list[ir.Stmt] = []
        region: list[ir.Stmt] = []
        for stmt in stmts:
            leaves = any(framed or not isinstance(one, ir.Return) for one in exits(stmt))
            if not holds_barrier(stmt) and not leaves:
                region.append(stmt)
                continue
            result += self.region(region)
            region = []
            inner = framed or isinstance(stmt, ir.Frame)
            result.append(map_bodies(stmt, lambda body, inner=inner: self.body(body, inner)))  # type: ignore[misc]
        return (*result, *self.region(region))

    def region(self, stmts: Sequence[ir.Stmt]) -> Sequence[ir.Stmt]:
        """Return a state machine for statements if lanes may wait for other lanes in them."""
        nested = (inner for stmt in stmts for inner in statements((stmt,)) if inner is not stmt)
        synced = any(isinstance(stmt, ir.WarpBarrier) for stmt in nested)
        if not synced and not any(map(_spins, statements(tuple(stmts)))):
            return stmts
        self.regions += 1
        return _StateMachine(self.sites, self.regions, stmts[0].span).of_region(stmts)


class _StateMachine:
    """The segments of a region, by state, in the order of the source. Registers: the lane's state, the mask for which it waits, the
    lanes that have not returned, those that have arrived, whether any is still inside, and the state behind a `syncwarp`."""

    def __init__(self, sites: Iterator[int], number: int, span: Span) -> None:
        self.sites, self.span, self.states = sites, span, count(1)
        self.state, self.mask = ir.Reg(f"state@{number}", I32, span), ir.Reg(f"mask@{number}", U32, span)
        self.alive, self.arrived = ir.Reg(f"alive@{number}", U32, span), ir.Reg(f"arrived@{number}", U32, span)
        self.inside, self.following = ir.Reg(f"inside@{number}", BOOL, span), ir.Reg(f"following@{number}", I32, span)
        self.segments: list[tuple[int, list[ir.Stmt]]] = []

    # -------------------------------------------------------------- statements of the machine
    def op(self, name: str, a: ir.Expr, b: ir.Expr) -> ir.Op:
        return ir.Op(name, (a, b), a.type if name == "and" else BOOL, self.span)  # type: ignore[arg-type]

    def let(self, target: ir.Reg, value: ir.Expr | ir.Effect) -> ir.Let:
        return ir.Let(target, value, self.span, next(self.sites))

    def number(self, value: int) -> ir.Const:
        return ir.Const(value, I32, self.span)

    def goto(self, state: int) -> ir.Let:
        return self.let(self.state, self.number(state))

    def choose(
        self, cond: ir.Expr, then: Sequence[ir.Stmt], orelse: Sequence[ir.Stmt] = (), site: int | None = None
    ) -> ir.If:
        return ir.If(cond, tuple(then), tuple(orelse), self.span, next(self.sites) if site is None else site)

    def vote(self, mode: Literal["active", "any"], value: ir.Expr) -> ir.Vote:
        type = U32 if mode == "active" else BOOL
        return ir.Vote(mode, value, self.alive if mode != "active" else ir.Const(0, U32, self.span), type, self.span)

    def when_arrived(self, stmts: Sequence[ir.Stmt]) -> list[ir.Stmt]:
        """Return statements for the active lanes if they include the lanes of their masks that have not returned."""
        present = self.let(self.arrived, self.vote("active", ir.Const(True, BOOL, self.span)))
        named = self.op("and", self.mask, self.alive)
        return [present, self.choose(self.op("eq", self.op("and", named, self.arrived), named), stmts)]

    # -------------------------------------------------------------- the region
    def of_region(self, stmts: Sequence[ir.Stmt]) -> list[ir.Stmt]:
        """Return the statements of a region as a loop over its segments."""
        start = next(self.states)
        self.begin(start)
        self.lower(stmts, {})
        self.emit(self.goto(END))
        rounds = [self.choose(self.op("eq", self.state, self.number(state)), code) for state, code in self.segments]
        synced = ir.WarpBarrier(self.mask, self.span, next(self.sites))
        leave = self.let(self.state, self.following)
        waiting = self.op("eq", self.state, self.number(SYNCED))
        rounds.append(self.choose(waiting, self.when_arrived([synced, leave])))
        setup = (
            self.let(self.alive, self.vote("active", ir.Const(True, BOOL, self.span))),
            self.let(self.inside, self.vote("any", self.op("ne", self.state, self.number(END)))),
        )
        return [self.goto(start), ir.While(setup, self.inside, tuple(rounds), self.span, next(self.sites))]

    def begin(self, state: int) -> None:
        """Begin the segment of a state; the previous one continues in it or has ended."""
        self.segments.append((state, []))

    def emit(self, *stmts: ir.Stmt) -> None:
        self.segments[-1][1].extend(stmts)

    def join(self, state: int, reachable: bool = True) -> None:
        """End the segment with a transition to the state of the next one, if control reaches its end."""
        if reachable:
            self.emit(self.goto(state))
        self.begin(state)

    # -------------------------------------------------------------- lowering
    def lower(self, stmts: Sequence[ir.Stmt], targets: dict[type, int]) -> bool:
        """Append statements to the segments. targets: the states to which `break`, `continue` and `return` lead.

        Return whether control reaches the end.
        """
        for stmt in stmts:
            if type(stmt) in targets:
                self.emit(ir.Let(self.state, self.number(targets[type(stmt)]), stmt.span, stmt.site))
                return False
            if not self.splits(stmt, targets):
                self.emit(stmt)
                continue
            self.split(stmt, targets)
        return True

    def splits(self, stmt: ir.Stmt, targets: dict[type, int]) -> bool:
        """Return whether a statement contains a state in which lanes wait, or leaves a statement that does."""
        waiting = any(_spins(one) or _is_collective(one) for one in statements((stmt,)))
        return waiting or any(type(one) in targets for one in exits(stmt))

    def split(self, stmt: ir.Stmt, targets: dict[type, int]) -> None:
        match stmt:
            case ir.If():
                then, orelse, end = (next(self.states) for _ in range(3))
                self.emit(self.choose(stmt.cond, [self.goto(then)], [self.goto(orelse)], stmt.site))
                for state, body in ((then, stmt.then), (orelse, stmt.orelse)):
                    self.begin(state)
                    if self.lower(body, targets):
                        self.emit(self.goto(end))
                self.begin(end)
            case ir.While() | ir.For():
                self.loop(stmt, targets)
            case ir.Frame():
                end = next(self.states)
                self.join(end, self.lower(stmt.body, {ir.Return: end}))
            case _:
                self.wait(stmt)

    def loop(self, stmt: ir.While | ir.For, targets: dict[type, int]) -> None:
        head, inside, following, end = (next(self.states) for _ in range(4))
        returns: dict[type, int] = {ir.Return: targets[ir.Return]} if ir.Return in targets else {}
        if isinstance(stmt, ir.For):
            self.emit(self.let(stmt.var, stmt.start))
        self.join(head)
        if isinstance(stmt, ir.While):
            self.lower(stmt.setup, returns)
        cond = stmt.cond if isinstance(stmt, ir.While) else counting.test(stmt)
        self.emit(self.choose(cond, [self.goto(inside)], [self.goto(end)], stmt.site))
        self.begin(inside)
        self.join(following, self.lower(stmt.body, {**returns, ir.Break: end, ir.Continue: following}))
        if isinstance(stmt, ir.For):
            self.emit(self.let(stmt.var, counting.moved(stmt)))
        self.emit(self.goto(head))
        self.begin(end)

    def wait(self, stmt: ir.Stmt) -> None:
        """Append a state in which lanes wait for those of the mask: at any `syncwarp`, or at this collective."""
        node, end = performed(stmt), next(self.states)
        if isinstance(stmt, ir.WarpBarrier):
            self.emit(ir.Let(self.mask, stmt.mask, stmt.span, stmt.site), self.let(self.following, self.number(end)))
            self.emit(self.goto(SYNCED))
            self.begin(end)
            return
        self.emit(self.let(self.mask, node.mask))
        self.join(next(self.states))
        self.emit(*self.when_arrived([stmt, self.goto(end)]))
        self.begin(end)
