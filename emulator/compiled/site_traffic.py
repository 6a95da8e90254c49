"""Memory traffic of the accesses at a source location, and sums over locations."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from ..profiler.events import GLOBAL, SHARED
from .instruction_counts import InstructionCount
from .opcode_classes import access_width, phases_of
from .shared_cas_loops import RetryCost
from .source_statements import Place, Statement
from .tolerances import TOLERANCES

_SECTOR_BYTES, _MIN_SECTOR_EFFICIENCY = 32, 0.9
"""Bytes of a sector; minimal used fraction of sectors from which lanes are assumed not to share any."""


@dataclass(frozen=True)
class AccessDifference:
    """A difference of memory accesses from the source. place: source location."""

    place: Place
    kind: str
    accesses: int
    compiled: int
    what: str


@dataclass(frozen=True)
class SiteAccesses:
    """Accesses of a location. cost: of all source executions. compiled: None for no instruction, empty if unassigned.
    one_for_all: warp aggregation. exact_traffic: by recorded accesses, if known."""

    place: Place
    kind: str
    statements: list[Statement]
    compiled: list[InstructionCount] | None
    cost: dict[str, float]
    one_for_all: bool
    exact_traffic: dict[str, float] | None

    @property
    def warps(self) -> float:
        """Executions of the source by warps."""
        return sum(one.warps for one in self.statements)

    @property
    def size(self) -> int:
        return max(one.site.size for one in self.statements)

    def difference(self, what: str) -> AccessDifference:
        return AccessDifference(self.place, self.kind, len(self.statements), len(self.compiled or ()), what)

    @property
    def differs_from_source(self) -> bool:
        """Whether the traffic may differ from the source's."""
        widths = {access_width(one.instruction) for one in self.compiled or ()}
        differs = bool(widths - {self.statements[0].site.size})
        return self.one_for_all or self.exact_traffic is not None or differs

    def traffic(self) -> tuple[dict[str, float], AccessDifference | None]:
        """Return the traffic, and the difference from the source."""
        if self.compiled == []:
            return self.exact_traffic or self.cost, None
        if self.compiled is None:
            accesses = access_text(len(self.statements), self.kind)
            what = f"nvcc keeps in registers what {accesses} would access"
            return dict.fromkeys(self.cost, 0.0), self.difference(what)
        executed = sum(one.warps for one in self.compiled)
        if self.one_for_all:
            n = min(executed, self.warps)
            accesses = access_text(len(self.compiled), self.kind)
            what = f"nvcc has one lane execute {accesses} for all lanes with the same address"
            return {"requests": n, "sectors": n, "wavefronts": n, "conflicts": 0.0}, self.difference(what)
        if self.exact_traffic is None and self._has_unknown_lanes(self.compiled, executed):
            return self.cost, None  # active lanes are known from the source only
        moved, warps = self.exact_traffic or dict.fromkeys(self.cost, 0.0), self.warps
        lanes = sum(one.lanes for one in self.statements) / warps
        for instruction in self.compiled if self.exact_traffic is None else ():
            cost = {what: n / warps for what, n in self.cost.items()}
            for what, n in _traffic_per_execution(self.kind, self.size, instruction, lanes, cost).items():
                moved[what] += instruction.warps * n
        text = self._change(self.compiled, executed / warps if executed < warps - 0.5 else 1.0)
        return moved, self.difference(text) if text else None

    def _has_unknown_lanes(self, compiled: Sequence[InstructionCount], executed: float) -> bool:
        """Return whether predicated or uncertain instructions access more bytes than the source."""
        predicated, is_load = any(one.instruction.predicate for one in compiled), self.kind.endswith("load")
        source_bytes = sum(one.lanes for one in self.statements) * self.size
        moved_bytes = sum(one.threads * access_width(one.instruction) for one in compiled)
        excess = moved_bytes > (1 + TOLERANCES.executions) * source_bytes and (predicated or not is_load)
        uncertain = any(one.uncertainty for one in compiled) and not (is_load and moved_bytes < source_bytes / 2)
        return excess or (predicated and executed >= self.warps) or uncertain

    def _change(self, compiled: Sequence[InstructionCount], share: float) -> str:
        """Return the change by nvcc; empty for none. share: of the source executions."""
        times, wide = access_text(len(compiled), self.kind), max(access_width(one.instruction) for one in compiled)
        if wide > self.size:
            return f"nvcc merges {wide // self.size} of {self.size} bytes into one of {wide}: {times}"
        if wide < self.size:
            return f"nvcc accesses {wide} of {self.size} bytes: {times}"
        if share == 1.0:
            return ""
        otherwise = "and uses registers otherwise"
        if not self.kind.endswith("load"):
            otherwise = "with lanes converged that diverge in the source"
        return f"nvcc executes {access_text(len(self.statements), self.kind)} {share:.0%} as often, {otherwise}"


@dataclass
class TrafficSums:
    """Sums of the compiled kernel and of the source by kind and counter. differs: kinds that may differ."""

    sums: dict[str, dict[str, float]] = field(default_factory=lambda: defaultdict(lambda: defaultdict(float)))
    source: dict[str, dict[str, float]] = field(default_factory=lambda: defaultdict(lambda: defaultdict(float)))
    differs: dict[str, bool] = field(default_factory=lambda: defaultdict(bool))

    def add(self, site: SiteAccesses, traffic: Mapping[str, float]) -> None:
        """Add the traffic of a location."""
        self.differs[site.kind] |= site.differs_from_source
        for what, n in traffic.items():
            self.sums[site.kind][what] += n
            self.source[site.kind][what] += site.cost[what]

    def add_retries(self, place: Place, statements: Sequence[Statement], retries: RetryCost) -> AccessDifference:
        """Add the traffic of a compare-and-swap loop of shared memory."""
        warps = sum(one.warps for one in statements)
        self.differs["shared_atomic"] = self.differs["shared_load"] = True
        self.sums["shared_atomic"]["wavefronts"] += retries.swaps * warps
        self.sums["shared_load"]["wavefronts"] += retries.loads * warps
        self.sums["shared_load"]["conflicts"] += retries.conflicts * warps
        what = (
            f"nvcc compiles a shared atomic to a loop: {retries.rounds:.1f} trips per warp, by equal elements or banks"
        )
        return AccessDifference(place, "shared_atomic", len(statements), 1, what)

    def totals(self) -> dict[str, float]:
        """Return all counters. Equal executions have the source's cost."""
        result = {f"{kind}_{what}": 0.0 for kind in GLOBAL for what in ("requests", "sectors")}
        result |= {f"{kind}_{what}": 0.0 for kind in SHARED for what in ("wavefronts", "conflicts")}
        for kind, sites in self.sums.items():
            if not self.differs[kind] and is_close(sites["requests"], self.source[kind]["requests"]):
                sites = self.source[kind]
            result |= {f"{kind}_{what}": n for what, n in sites.items() if f"{kind}_{what}" in result}
        return result


def _traffic_per_execution(
    kind: str, size: int, instruction: InstructionCount, lanes: float, cost: dict[str, float]
) -> dict[str, float]:
    """Return the traffic of an instruction's execution, from the source's. lanes: active in the source."""
    if kind not in SHARED:
        is_scattered = (
            kind in GLOBAL
            and _SECTOR_BYTES * cost["sectors"] >= _MIN_SECTOR_EFFICIENCY * lanes * size
            and instruction.warps
        )
        return (
            cost | {"sectors": cost["sectors"] * instruction.threads / instruction.warps / lanes}
            if is_scattered
            else cost
        )
    width = access_width(instruction.instruction)
    if width == size:
        return cost
    phases = phases_of(kind, width, lanes)
    wavefronts = max(cost["wavefronts"], phases) if width > size else cost["wavefronts"]
    return cost | {"wavefronts": wavefronts, "conflicts": wavefronts - phases if width < size else 0.0}


def access_text(n: int, kind: str) -> str:
    name = kind.replace("_", " ")
    return f"a {name}" if n == 1 else f"{n} {name}s"


def is_close(a: float, b: float, tolerance: float = TOLERANCES.executions) -> bool:
    return abs(a - b) <= tolerance * b
