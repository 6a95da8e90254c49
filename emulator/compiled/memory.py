"""What the accesses of a compiled kernel move: those of the source, as far as the compiler kept, merged or dropped them.

The emulator knows what each access of the source costs. An access that the compiler merged with others at its line into a
wider one touches the sectors, and takes the wavefronts, that each of them would alone: they lie side by side in each lane.
One that it keeps in a register, or takes out of a loop, is executed less often, and costs as much each time.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from ..profiler.events import CONFLICTS, GLOBAL, REQUESTS, SECTORS, SHARED, WAVEFRONTS
from .classes import EFFECTS, width_of
from .counted import Counted
from .launched import Launched
from .source import Place, Statement

_COLUMNS = {"requests": REQUESTS, "sectors": SECTORS, "wavefronts": WAVEFRONTS, "conflicts": CONFLICTS}
_SAME = 0.005
"""How near executions must be to those of the source to be the same: what a solver's tolerance may leave."""


@dataclass(frozen=True)
class Difference:
    """Where the compiled kernel accesses memory otherwise than the source does. place: in the printed kernel."""

    place: Place
    kind: str
    accesses: int
    compiled: int
    what: str

    def __str__(self) -> str:
        return f"line {self.place[0]}: {self.what}"


@dataclass(frozen=True)
class Memory:
    """figures: requests and sectors of global memory, wavefronts and conflicts of shared memory, by the names of the
    counters; shuffles where all their executions are certain. differences: why they are not the source's."""

    figures: dict[str, int]
    differences: tuple[Difference, ...]


def memory_of(launched: Launched, instructions: Sequence[Counted]) -> Memory:
    """Scale what each access of the source costs to its executions in the compiled kernel."""
    accesses = _accesses(launched, any(len(one.place) > 1 for one in instructions))
    compiled: dict[tuple[Place, str], list[Counted]] = defaultdict(list)
    lost: set[str] = set()
    for one in instructions:
        kind = EFFECTS.get(one.instruction.opcode)
        if kind is not None:
            key = (one.place, kind)
            compiled[key].append(one)
            if key not in accesses:
                lost.add(kind)
    figures = {f"{kind}_{what}": 0.0 for kind in GLOBAL for what in ("requests", "sectors")}
    figures |= {f"{kind}_{what}": 0.0 for kind in SHARED for what in ("wavefronts", "conflicts")}
    differences = []
    assert launched.counts is not None
    for (place, kind), statements in accesses.items():
        scale, difference = _scale(place, kind, statements, compiled.get((place, kind), []), kind in lost)
        if difference is not None:
            differences.append(difference)
        for what, column in _COLUMNS.items():
            if f"{kind}_{what}" in figures:
                each = sum(int(launched.counts[one.number, column]) for one in statements)
                figures[f"{kind}_{what}"] += scale * each
    shuffles = [one for one in instructions if one.instruction.opcode == "SHFL"]
    if not any(one.why for one in shuffles):
        figures["shuffles"] = sum(one.warps for one in shuffles)
    return Memory({name: round(value) for name, value in figures.items()}, tuple(differences))


def _accesses(launched: Launched, calls: bool) -> dict[tuple[Place, str], list[Statement]]:
    """Executed accesses of the source, by place and kind. calls: whether the compiler tells them."""
    source = launched.statements if calls else launched.statements.without_calls()
    found: dict[tuple[Place, str], list[Statement]] = defaultdict(list)
    for statement in source.statements.values():
        if statement.site.kind in (*GLOBAL, *SHARED) and statement.lanes:
            found[statement.place, statement.site.kind].append(statement)
    return dict(found)


def _scale(
    place: Place, kind: str, statements: list[Statement], compiled: list[Counted], lost: bool
) -> tuple[float, Difference | None]:
    """What part of the source's accesses at a place the compiled kernel makes. lost: accesses of the kind stand at places
    where the source has none, so that one that is missing here may be there."""
    warps = sum(one.warps for one in statements)
    if not compiled:
        if lost:
            return 1.0, None
        what = f"nvcc keeps in registers what {_times(len(statements), kind)} would access"
        return 0.0, Difference(place, kind, len(statements), 0, what)
    if any(one.why for one in compiled):
        return 1.0, None  # executions are not known better than the source's
    if any(one.instruction.predicate for one in compiled):
        return 1.0, None  # how many lanes' predicates hold is the source's to tell
    executed = sum(one.warps for one in compiled)
    if abs(executed - warps) <= _SAME * warps:
        return 1.0, None
    size = max(one.site.size for one in statements)
    wide = max(width_of(one.instruction) for one in compiled)
    if wide > size:
        what = f"nvcc merges {wide // size} of {size} bytes into one of {wide}: {_times(len(compiled), kind)}"
    elif executed < warps:
        what = f"nvcc makes {_times(len(statements), kind)} {executed / warps:.0%} as often, the rest from registers"
    else:
        return 1.0, None  # executions are not known better than the source's
    return executed / warps, Difference(place, kind, len(statements), len(compiled), what)


def _times(n: int, kind: str) -> str:
    name = kind.replace("_", " ")
    return f"a {name}" if n == 1 else f"{n} {name}s"
