"""Critical path of a warp: dependent latencies through branches and loops.

Statements between branches are scheduled by their operands, as a compiler does; a run of statements ends when its last
operation is issued. Short loops without barriers are unrolled by four, as nvcc does.
"""

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
"""Unroll factor of nvcc."""
_MAX_PREDICATED_STATEMENTS = 4
"""Statements of an arm up to which predication replaces the branch."""

EXPANDED: Mapping[str, Mapping[str, int]] = {
    "fdiv": {"fp32": 8, "sfu": 1, "alu": 1}, "idiv": {"alu": 8, "imul": 6, "convert": 2, "sfu": 1},
    "memory": {"alu": 1, "lsu": 1}, "atomic": {"alu": 1, "lsu": 1}, "vote": {"alu": 1}, "barrier": {"barrier": 1},
    "control": {"control": 1}, "tensor": {},
}  # fmt: skip
"""SASS instructions by pipe of one operation of a cost class, if not one of its own name. An access includes one
address instruction."""


def expanded(costs: Mapping[str, int]) -> dict[str, int]:
    """Return SASS instructions by pipe."""
    result: dict[str, int] = {}
    for name, count in costs.items():
        for pipe, per_operation in EXPANDED.get(name, {name: 1}).items():
            result[pipe] = result.get(pipe, 0) + count * per_operation
    return result


def latency_of(name: str, device: Device) -> int:
    """Return the latency of an operation of a cost class, in cycles."""
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
    """Critical path of one warp on a device. memory: latency by site, in cycles."""

    prepared: PreparedProgram
    counts: Counts
    device: Device
    memory: Callable[[int], float]
    ready: dict[str, float] = field(default_factory=dict)
    start: float = 0.0
    issued: float = 0.0
    latest: float = 0.0

    def cycles(self, warps: int) -> float:
        """Return the cycles of the average of `warps` warps."""
        end = self._body_end(self.prepared.program.kernel.body, float(warps), 0.0)
        return max([end, *self.ready.values()])

    # -------------------------------------------------------------- control
    def _body_end(self, body: ir.Body, executions: float, now: float) -> float:
        """Return the end of a statement list that starts at `now`. executions: by warps."""
        self._begin_run(now)
        for stmt in body:
            if not isinstance(stmt, ir.If | ir.While | ir.For | ir.Frame):
                self._schedule_statement(stmt)
                continue
            now = self._run_end()
            match stmt:
                case ir.Frame():
                    now = self._body_end(stmt.body, executions, now)
                case ir.If():
                    now = self._branch_end(stmt, now)
                case ir.While() | ir.For():
                    now = self._loop_end(stmt, executions, now)
            self._begin_run(now)
        return self._run_end()

    def _begin_run(self, now: float) -> None:
        self.start = self.latest = now
        self.issued = 0.0

    def _run_end(self) -> float:
        """Return the end of the run: all operations issued."""
        return max(self.latest, self.start + self.issued)

    def _branch_end(self, stmt: ir.If, now: float) -> float:
        self._begin_run(now)
        self.latest = max(self.latest, self._value_time(stmt.cond))
        now, times = self._run_end(), float(self.counts[stmt.site, WARPS])
        cycles = 0.0
        for arm in (stmt.then, stmt.orelse):
            share = self._executions(arm) / times if times else 0.0
            if share:
                jump = self.device.timing.branch if sum(1 for _ in statements(arm)) > _MAX_PREDICATED_STATEMENTS else 0
                cycles += min(1.0, share) * (self._body_end(arm, share * times, now) - now + jump)
        return now + cycles

    def _loop_end(self, stmt: ir.While | ir.For, executions: float, now: float) -> float:
        tests = float(self.counts[stmt.site, WARPS])
        iterations = min(tests, self._executions(stmt.body) or tests)
        trips = iterations / executions if executions else 0.0
        is_outer = any(isinstance(s, ir.While | ir.For) for s in statements(stmt.body)) or holds_barrier(stmt)
        unroll = 1 if is_outer else max(1, min(UNROLLED, int(trips)))
        if trips <= 0:
            return now
        ends: list[float] = []
        for _ in range(2):  # the second trip is in steady state: loop-carried values arrive late
            begin = now if not ends else ends[-1]
            ends.append(self._iterations_end(stmt, iterations, unroll, begin))
        rest = max(0.0, trips / unroll - 2)
        per_iteration = ends[1] - ends[0]
        if trips / unroll <= 1:
            return now + (ends[0] - now) * trips / unroll
        shift = rest * per_iteration
        self.ready = {name: time + shift for name, time in self.ready.items()}
        return ends[1] - (per_iteration * (2 - trips / unroll) if trips / unroll < 2 else 0.0) + shift

    def _iterations_end(self, stmt: ir.While | ir.For, iterations: float, together: int, now: float) -> float:
        body: ir.Body = (*stmt.setup, *stmt.body) if isinstance(stmt, ir.While) else stmt.body
        now = (
            self._body_end(body, iterations, now) if together == 1 else self._body_end(body * together, iterations, now)
        )
        self._begin_run(now)
        if isinstance(stmt, ir.While):
            self.latest = max(self.latest, self._value_time(stmt.cond))
        self.issued += 2
        return self._run_end() + self.device.timing.branch

    def _executions(self, body: ir.Body) -> float:
        """Return executions of a statement list by warps."""
        for stmt in body:
            inside = stmt.body if isinstance(stmt, ir.Frame) else ()
            if isinstance(stmt, ir.Frame):
                if executions := self._executions(inside):
                    return executions
            elif self.prepared.counts(stmt) and not isinstance(stmt, ir.While | ir.For):
                return float(self.counts[stmt.site, WARPS])
        return 0.0

    # -------------------------------------------------------------- plain statements
    def _schedule_statement(self, stmt: ir.Stmt) -> None:
        if not self.prepared.counts(stmt) or isinstance(stmt, ir.Alloc):
            return
        stmt = flattened(stmt)
        site = self.prepared.sites[stmt.site]
        match stmt:
            case ir.Let(target=target, value=value):
                finish = (
                    self._effect_time(value, stmt.site) if isinstance(value, ir.Effect) else self._value_time(value)
                )
                if isinstance(target, ir.Reg):
                    self.ready[target.name] = finish
            case _:
                operands = max([self.start, *(self._value_time(child) for child in children(stmt))])
                self.latest = max(self.latest, operands)
        self.issued += sum(expanded(site.costs).values()) * 100 / self.device.timing.issue

    def _effect_time(self, effect: ir.Effect, site: int) -> float:
        """Return the time of an effect's result."""
        timing = self.device.timing
        begin = max([self.start, *(self._value_time(child) for child in children(effect))])
        row = TABLE[type(effect)]
        if row.scope == "block":
            self.latest = max(self.latest, begin)
            begin = self._run_end() + timing.barrier
            self._begin_run(begin)
            return begin
        self.latest = max(self.latest, begin)
        if row.spaces:
            return begin + timing.alu + self.memory(site)
        return begin + {"shuffle": timing.shuffle, "vote": timing.vote}.get(row.action, timing.alu)

    def _value_time(self, expr: ir.Expr) -> float:
        """Return the time of an expression's value."""
        if isinstance(expr, ir.Reg):
            return max(self.start, self.ready.get(expr.name, 0.0))
        if not isinstance(expr, ir.Op | ir.Pack | ir.Component | ir.Within):
            return self.start
        operands = max([self.start, *(self._value_time(child) for child in children(expr))])
        if not isinstance(expr, ir.Op):
            return operands
        self.latest = max(self.latest, operands)
        name = cost_class(expr)
        return operands if name is None else operands + latency_of(name, self.device)
