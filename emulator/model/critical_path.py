"""How long one warp would take alone: the chain of operations that wait for each other, through branches and loops.

Statements of a run are taken in the order of their operands, as a compiler orders them, but no operation begins before the
run does, and a run ends when its last operation has begun. Short loops without barriers are taken four iterations at a time, as
nvcc unrolls them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from ..ir import nodes as ir
from ..ir.effects import TABLE
from ..ir.shifts import cost_class
from ..ir.walk import children, flattened, statements
from ..machine.device import Device
from ..passes.barriers import holds_barrier
from ..profiler.events import WARPS, Counts
from ..runtime.prepared import PreparedProgram

UNROLLED = 4
"""Iterations of a loop that nvcc puts side by side."""
_PREDICATED = 4
"""Statements of a branch up to which it is no jump."""

EXPANDED: Mapping[str, Mapping[str, int]] = {
    "fdiv": {"fp32": 8, "sfu": 1, "alu": 1}, "idiv": {"alu": 8, "imul": 6, "convert": 2, "sfu": 1},
    "memory": {"alu": 1, "lsu": 1}, "atomic": {"alu": 1, "lsu": 1}, "vote": {"alu": 1}, "barrier": {"barrier": 1},
    "control": {"control": 1},
}  # fmt: skip
"""Machine instructions by pipe that one of a cost class is made of, where it is not one of its own name. An access has an
instruction for its address: a product and a sum of 64 bits at most."""


def expanded(costs: Mapping[str, int]) -> dict[str, int]:
    """Machine instructions by pipe."""
    found: dict[str, int] = {}
    for name, count in costs.items():
        for pipe, each in EXPANDED.get(name, {name: 1}).items():
            found[pipe] = found.get(pipe, 0) + count * each
    return found


def latency_of(name: str, device: Device) -> int:
    """Cycles from the issue of an operation of a cost class to its result."""
    timing = device.timing
    single = {
        "fp64": timing.fp64,
        "sfu": timing.sfu,
        "convert": timing.sfu,
        "shuffle": timing.shuffle,
        "vote": timing.vote,
    }
    if name in ("fdiv", "idiv"):
        return sum(EXPANDED[name].values()) * timing.alu + timing.sfu
    return single.get(name, timing.alu)


@dataclass
class CriticalPath:
    """One warp on a device. memory: the latency of an access, by its site."""

    prepared: PreparedProgram
    counts: Counts
    device: Device
    memory: Callable[[int], float]
    ready: dict[str, float] = field(default_factory=dict)
    start: float = 0.0
    issued: float = 0.0
    latest: float = 0.0

    def cycles(self, warps: int) -> float:
        """Of the average warp, of as many as were launched."""
        end = self._body(self.prepared.program.kernel.body, float(warps), 0.0)
        return max([end, *self.ready.values()])

    # -------------------------------------------------------------- control
    def _body(self, body: ir.Body, executions: float, now: float) -> float:
        """The time after a statement list that begins at `now`. executions: of it, by warps."""
        self._begin(now)
        for stmt in body:
            if not isinstance(stmt, ir.If | ir.While | ir.For | ir.Frame):
                self._plain(stmt)
                continue
            now = self._end()
            match stmt:
                case ir.Frame():
                    now = self._body(stmt.body, executions, now)
                case ir.If():
                    now = self._branch(stmt, now)
                case ir.While() | ir.For():
                    now = self._loop(stmt, executions, now)
            self._begin(now)
        return self._end()

    def _begin(self, now: float) -> None:
        self.start = self.latest = now
        self.issued = 0.0

    def _end(self) -> float:
        """When the last operation of the run has begun, and all have been issued."""
        return max(self.latest, self.start + self.issued)

    def _branch(self, stmt: ir.If, now: float) -> float:
        self._begin(now)
        self.latest = max(self.latest, self._value(stmt.cond))
        now, times = self._end(), float(self.counts[stmt.site, WARPS])
        taken = 0.0
        for arm in (stmt.then, stmt.orelse):
            share = self._executions(arm) / times if times else 0.0
            if share:
                jump = self.device.timing.branch if sum(1 for _ in statements(arm)) > _PREDICATED else 0
                taken += min(1.0, share) * (self._body(arm, share * times, now) - now + jump)
        return now + taken

    def _loop(self, stmt: ir.While | ir.For, executions: float, now: float) -> float:
        tests = float(self.counts[stmt.site, WARPS])
        iterations = min(tests, self._executions(stmt.body) or tests)
        trips = iterations / executions if executions else 0.0
        inner = any(isinstance(s, ir.While | ir.For) for s in statements(stmt.body)) or holds_barrier(stmt)
        together = 1 if inner else max(1, min(UNROLLED, int(trips)))
        if trips <= 0:
            return now
        ends: list[float] = []
        for _ in range(2):  # the second time as all later ones: what the iterations hand on is ready late
            begun = now if not ends else ends[-1]
            ends.append(self._iterations(stmt, iterations, together, begun))
        rest = max(0.0, trips / together - 2)
        each = ends[1] - ends[0]
        if trips / together <= 1:
            return now + (ends[0] - now) * trips / together
        shift = rest * each
        self.ready = {name: time + shift for name, time in self.ready.items()}
        return ends[1] - (each * (2 - trips / together) if trips / together < 2 else 0.0) + shift

    def _iterations(self, stmt: ir.While | ir.For, iterations: float, together: int, now: float) -> float:
        body: ir.Body = (*stmt.setup, *stmt.body) if isinstance(stmt, ir.While) else stmt.body
        now = self._body(body, iterations, now) if together == 1 else self._body(body * together, iterations, now)
        self._begin(now)
        if isinstance(stmt, ir.While):
            self.latest = max(self.latest, self._value(stmt.cond))
        self.issued += 2
        return self._end() + self.device.timing.branch

    def _executions(self, body: ir.Body) -> float:
        """Of a statement list, by warps."""
        for stmt in body:
            inside = stmt.body if isinstance(stmt, ir.Frame) else ()
            if isinstance(stmt, ir.Frame):
                if found := self._executions(inside):
                    return found
            elif self.prepared.counts(stmt) and not isinstance(stmt, ir.While | ir.For):
                return float(self.counts[stmt.site, WARPS])
        return 0.0

    # -------------------------------------------------------------- plain statements
    def _plain(self, stmt: ir.Stmt) -> None:
        if not self.prepared.counts(stmt) or isinstance(stmt, ir.Alloc):
            return
        stmt = flattened(stmt)
        site = self.prepared.sites[stmt.site]
        match stmt:
            case ir.Let(target=target, value=value):
                done = self._effect(value, stmt.site) if isinstance(value, ir.Effect) else self._value(value)
                if isinstance(target, ir.Reg):
                    self.ready[target.name] = done
            case _:
                operands = max([self.start, *(self._value(child) for child in children(stmt))])
                self.latest = max(self.latest, operands)
        self.issued += sum(expanded(site.costs).values()) * 100 / self.device.timing.issue

    def _effect(self, effect: ir.Effect, site: int) -> float:
        """When its result is there."""
        timing = self.device.timing
        begun = max([self.start, *(self._value(child) for child in children(effect))])
        row = TABLE[type(effect)]
        if row.scope == "block":
            self.latest = max(self.latest, begun)
            begun = self._end() + timing.barrier
            self._begin(begun)
            return begun
        self.latest = max(self.latest, begun)
        if row.spaces:
            return begun + timing.alu + self.memory(site)
        return begun + {"shuffle": timing.shuffle, "vote": timing.vote}.get(row.action, timing.alu)

    def _value(self, expr: ir.Expr) -> float:
        """When an expression's value is there."""
        if isinstance(expr, ir.Reg):
            return max(self.start, self.ready.get(expr.name, 0.0))
        if not isinstance(expr, ir.Op | ir.Pack | ir.Component | ir.Within):
            return self.start
        operands = max([self.start, *(self._value(child) for child in children(expr))])
        if not isinstance(expr, ir.Op):
            return operands
        self.latest = max(self.latest, operands)
        name = cost_class(expr)
        return operands if name is None else operands + latency_of(name, self.device)
