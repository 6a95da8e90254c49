"""Memory counters of an executed kernel, and its differences from the source."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from ..profiler.events import GLOBAL, SHARED, WARPS
from .instruction_counts import InstructionCount, Place
from .kernel_launches import KernelLaunches
from .opcode_classes import EFFECTS

_EXECUTIONS = {"barriers": "barrier", "shuffles": "shuffle"}
_WINDOW = {"global_load": "shared_load", "global_store": "shared_store", "global_atomic": "shared_atomic"}
"""Kinds of generic accesses of shared memory."""
_LOCAL = {"local_loads": "local_load", "local_stores": "local_store"}


@dataclass(frozen=True)
class AccessDifference:
    """A line whose memory accesses differ from the source's. place: its location. source, compiled: executions by warps."""

    place: Place
    kind: str
    source: int
    compiled: int

    @property
    def what(self) -> str:
        """The difference as text."""
        kind = self.kind.replace("_", " ")
        if not self.compiled:
            return f"nvcc keeps in registers what {self.source:,} {kind}s would access"
        return f"{self.compiled:,} {kind}s are executed, {self.source:,} in the source"


def memory_counters(instructions: Sequence[InstructionCount]) -> dict[str, int]:
    """Return the counters of `profiler.events` of global, shared and local memory, barriers and shuffles."""
    sums: dict[tuple[str, str], float] = defaultdict(float)
    for counted in instructions:
        kind = EFFECTS.get(counted.instruction.opcode, "")
        sums[kind, "warps"] += counted.warps
        sums[kind, "requests"] += counted.requests
        sums[kind, "transactions"] += counted.transactions
        sums[kind, "conflicts"] += counted.extra
        if kind in ("global_load", "global_store"):
            sums[_WINDOW[kind], "transactions"] += counted.window_transactions
            sums[_WINDOW[kind], "conflicts"] += counted.window_extra
        sums["shared_atomic", "transactions"] += _other_wavefronts(counted)
    result = {}
    for kind in GLOBAL:
        result[f"{kind}_requests"], result[f"{kind}_sectors"] = sums[kind, "requests"], sums[kind, "transactions"]
    for kind in SHARED:
        result[f"{kind}_wavefronts"], result[f"{kind}_conflicts"] = sums[kind, "transactions"], sums[kind, "conflicts"]
    result |= {name: sums[kind, "warps"] for name, kind in _EXECUTIONS.items()}
    result |= {name: sums[kind, "requests"] for name, kind in _LOCAL.items()}
    return {name: round(value) for name, value in result.items()}


def _other_wavefronts(counted: InstructionCount) -> float:
    """Return wavefronts that Nsight Compute counts beyond those of banks: one of a generic atomic (ATOM), whatever memory it
    addresses, and two of its compare-and-swap; a second one of a compare-and-swap of nvcc's loops (CAST)."""
    instruction = counted.instruction
    if instruction.opcode == "ATOM":
        executed = counted.all_requests if instruction.predicate else counted.warps
        return executed * (2 if ".CAS" in instruction.operation else 1)
    return counted.transactions if instruction.operation.startswith("ATOMS.CAST") else 0


def access_differences(
    launched: KernelLaunches, instructions: Sequence[InstructionCount]
) -> tuple[AccessDifference, ...]:
    """Return the lines where the kernel makes more or fewer accesses than the source, in the order of the lines."""
    assert launched.counts is not None
    inlining_known = any(len(counted.place) > 1 for counted in instructions)
    source: dict[tuple[Place, str], float] = defaultdict(float)
    for number, place, kind in launched.executed:
        source[place if inlining_known else place[:1], kind] += int(launched.counts[number, WARPS])
    compiled: dict[tuple[Place, str], float] = defaultdict(float)
    for counted in instructions:
        kind = EFFECTS.get(counted.instruction.opcode, "")
        compiled[counted.place, kind] += counted.requests
        compiled[counted.place, _WINDOW.get(kind, "")] += counted.window_requests
    kinds = {*GLOBAL, *SHARED, *_LOCAL.values()}
    return tuple(
        AccessDifference(place, kind, round(source[place, kind]), round(compiled[place, kind]))
        for place, kind in sorted({*source, *compiled})
        if kind in kinds and round(source[place, kind]) != round(compiled[place, kind])
    )
