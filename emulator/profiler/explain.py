"""Explanations of the largest avoidable costs in a profile, computed from counters, addresses and iterations.

Costs are compared in cycles of one SM at its throughput, without other limits: 0.25 for a warp instruction (four
schedulers), 1 for a wavefront of shared memory, 0.5 for a sector (64 bytes per cycle), 1 for each sector of an atomic
operation. An explanation covers the cycles that another order of data or work would save.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from ..language.intrinsics import WARP_SIZE
from .costs import Costs, Place
from .counters import Row
from .pattern import Pattern
from .samples import Table, iteration, lanes_by_iterations, nonempty_rows

INSTRUCTION, WAVEFRONT, SECTOR, ATOMIC = 0.25, 1.0, 0.5, 1.0
"""Cycles of an SM."""
MIN_FRACTION = 0.01
"""Minimum fraction of all cycles for an explanation."""
FREQUENT = 64
"""Instructions of a warp per barrier below which a barrier is frequent."""


@dataclass(frozen=True)
class Explanation:
    """The avoidable cost of one place.

    what: its kind. sentence: the cause. remedy: the usual change. cycles: of an SM, saved by the remedy. share: fraction
    of the cycles of the profile, waiting at barriers included.
    """

    place: Place
    what: str
    sentence: str
    remedy: str
    cycles: float
    share: float

    def __str__(self) -> str:
        return f"{self.place.span.place}: {self.sentence} {self.remedy} ({100 * self.share:.0f} % of the cycles)"


@dataclass(frozen=True)
class _Candidate:
    what: str
    cycles: float
    sentence: str
    remedy: str
    waiting: bool = False
    """Whether warps wait in these cycles, so that no counter includes them."""


def cycles(row: Row) -> float:
    """Return the cost of a row of counters, in cycles of an SM at its throughput."""
    sectors = sum(row.get(f"{kind}_sectors", 0) for kind in ("global_load", "global_store"))
    atomics = sum(row.get(f"{kind}_sectors", 0) for kind in ("global_atomic", "global_reduction"))
    wavefronts = sum(row.get(f"{kind}_wavefronts", 0) for kind in ("shared_load", "shared_store", "shared_atomic"))
    return INSTRUCTION * row.get("warp_instructions", 0) + WAVEFRONT * wavefronts + SECTOR * sectors + ATOMIC * atomics


def explanations(profile: Costs) -> list[Explanation]:
    """Return the avoidable costs of at least 1 % of all cycles, the largest first."""
    candidates = [(place, one) for place, row in profile.rows.items() for one in _of_place(profile, place, row)]
    total = sum(cycles(row) for row in profile.rows.values()) + sum(one.cycles for _, one in candidates if one.waiting)
    result = [
        Explanation(place, one.what, one.sentence, one.remedy, one.cycles, one.cycles / total)
        for place, one in candidates
        if one.cycles >= MIN_FRACTION * total > 0
    ]
    return sorted(result, key=lambda one: (-one.cycles, one.place.span.file, one.place.span.line))


def _of_place(profile: Costs, place: Place, row: Row) -> Iterator[_Candidate]:
    accesses, loops = profile.accesses.get(place), profile.loops.get(place)
    if accesses is not None and accesses["count"].any():
        if place.kind.startswith("global"):
            contended = place.kind in ("global_atomic", "global_reduction")
            yield (_contended if contended else _uncoalesced)(place, accesses, profile.device.sector)
        else:
            yield _conflicts(place, accesses, profile.device.banks, profile.device.bank_width)
    if loops is not None:
        yield _uneven(profile, place, loops)
    elif place.kind == "branch":
        yield _divergent(profile, place, row)
    elif place.kind == "barrier":
        yield _frequent(profile, row)


# ------------------------------------------------------------------ memory
def worst(table: Table) -> int:
    """Return the row of a sample table with most transactions."""
    return int(np.argmax(table["count"] * np.arange(len(table))))


def _uncoalesced(place: Place, table: Table, sector: int) -> _Candidate:
    def ideal(row: int) -> int:
        return -(-_pattern(table, row).distinct * place.size // sector)

    spare = sum(int(table["count"][row]) * (row - ideal(row)) for row in nonempty_rows(table))
    row = worst(table)
    pattern, needed = _pattern(table, row), ideal(row)
    verb = "load" if place.kind == "global_load" else "store"
    happens = f"a warp's {verb} of {place.array} touches {row} sectors; its bytes fit into {needed}"
    reason, remedy = _spread(pattern, place.size, sector)
    return _Candidate("uncoalesced access", SECTOR * spare, f"{happens}: {reason}.", remedy)


def _spread(pattern: Pattern, size: int, sector: int) -> tuple[str, str]:
    """Return the reason for the excess sectors of an access, and the remedy."""
    stride = abs(pattern.stride)
    if (pattern.kind, stride) in (("stride", 1), ("runs", 0)):
        return (
            "its lanes access neighbouring elements, and the first is not at the start of a sector",
            f"Begin rows at a multiple of {sector // size} elements: pad them, or shift the work of each warp.",
        )
    if pattern.kind == "stride":
        reason = f"the stride between lanes is {stride:,} elements, {stride * size:,} bytes"
        if stride * size < sector:
            return reason, "Load the neighbours as one vector, or store each field in an array of its own."
        return (
            reason,
            "Let neighbouring lanes access neighbouring elements: exchange the indices, or use a shared tile.",
        )
    if pattern.kind == "runs":
        reason = f"the lanes access runs of {pattern.run} neighbours at a stride of {pattern.stride:,} elements"
        return reason, f"Let runs have a multiple of {sector // size} elements: widen the block along the array."
    return (
        f"{pattern.lanes} lanes access {pattern.distinct} elements in no order",
        "Order the work by address, or load the elements of a block into shared memory with neighbouring lanes.",
    )


def _contended(place: Place, table: Table, sector: int) -> _Candidate:
    def ideal(row: int) -> int:
        return min(row, -(-_pattern(table, row).distinct * place.size // sector))

    spare = sum(int(table["count"][row]) * (row - ideal(row)) for row in nonempty_rows(table))
    pattern = _pattern(table, worst(table))
    same = "one element" if pattern.distinct == 1 else f"{pattern.distinct} elements"
    return _Candidate(
        "contended atomic",
        ATOMIC * spare,
        f"{pattern.lanes} lanes of a warp change {same} of {place.array}, one after another.",
        "Combine within the warp (shuffles) or the block (shared memory) first, so that one lane adds for all.",
    )


def _conflicts(place: Place, table: Table, banks: int, width: int) -> _Candidate:
    phases = max(1, WARP_SIZE * place.size // (banks * width))
    spare = sum(int(table["count"][row]) * max(0, row - phases) for row in nonempty_rows(table))
    row = worst(table)
    pattern = _pattern(table, row)
    words = abs(pattern.stride) * place.size // width
    verb = place.kind.removeprefix("shared_")
    happens = f"a warp's {verb} of {place.array} takes {row} wavefronts instead of {phases}"
    if pattern.kind == "stride" and words and place.kind != "shared_atomic":
        used = banks // int(np.gcd(words, banks))
        reason = f"the stride between lanes is {words:,} words, so that they share {used} of {banks} banks"
        remedy = f"Pad the row by one element, to a pitch of {abs(pattern.stride) + 1:,}, so that lanes access different banks."
    elif place.kind == "shared_atomic":
        reason = f"{pattern.lanes} lanes change {pattern.distinct} elements"
        remedy = "Give each warp, or each few lanes, a copy of the table and add the copies at the end."
    elif pattern.kind == "runs":
        reason = f"the lanes access runs of {pattern.run} elements at a stride of {pattern.stride:,}, which share banks"
        remedy = "Choose a pitch that is not a multiple of the banks: pad the row."
    else:
        reason = f"{pattern.lanes} lanes access {pattern.distinct} elements, some of them in the same bank"
        remedy = "Order the elements so that the lanes of a warp access different banks."
    return _Candidate("bank conflicts", WAVEFRONT * spare, f"{happens}: {reason}.", remedy)


def _pattern(table: Table, row: int) -> Pattern:
    """Return the pattern of the first execution of a row."""
    return Pattern.classify(int(table["mask"][row]), table["index"][row])


# ------------------------------------------------------------------ control
def _uneven(profile: Costs, place: Place, table: Table) -> _Candidate:
    """Explain a loop whose lanes have different numbers of iterations."""
    spans = np.diff([iteration(row) for row in range(len(table) + 1)])
    lanes, warps = (int((table[name] * spans).sum()) for name in ("lanes", "warps"))
    idle = 1 - lanes / (WARP_SIZE * warps) if warps else 0.0
    groups = lanes_by_iterations(table)
    few, most = (f"{groups[0][0]:,}", _most(groups[-1])) if groups else ("0", "0")
    inside = INSTRUCTION * profile.under.get(place, {}).get("warp_instructions", 0)
    return _Candidate(
        "uneven loop",
        idle * inside,
        f"lanes execute {few} to {most} iterations, and a warp continues until its last lane is done: "
        f"{100 * idle:.0f} % of its lanes' iterations are idle.",
        "Give the lanes of a warp equal work: sort the items by length, or let all lanes share one item.",
    )


def _most(last: tuple[int, int, int]) -> str:
    low, high, _ = last
    return f"{low:,}" if low == high else f"more than {low - 1:,}"


def _divergent(profile: Costs, place: Place, row: Row) -> _Candidate:
    """Explain an `if` whose lanes diverge: the lanes of the other arm wait."""
    branches, divergent = row.get("branches", 0), row.get("divergent_branches", 0)
    inside = profile.under.get(place, {})
    instructions, threads = inside.get("warp_instructions", 0), inside.get("thread_instructions", 0)
    idle = 1 - threads / (WARP_SIZE * instructions) if instructions else 0.0
    return _Candidate(
        "divergent branch",
        INSTRUCTION * idle * instructions * divergent / max(branches, 1),
        f"in {divergent:,} of {branches:,} executions the lanes of a warp disagree, and under it "
        f"{100 * (1 - idle):.0f} % of the lanes are active.",
        "Arrange the work so that all lanes of a warp take the same branch.",
    )


def _frequent(profile: Costs, row: Row) -> _Candidate:
    barriers = row.get("barriers", 0)
    instructions = sum(r.get("warp_instructions", 0) for r in profile.rows.values())
    interval = instructions / barriers if barriers else 0.0
    return _Candidate(
        "frequent barrier",
        INSTRUCTION * barriers * max(0.0, FREQUENT - interval) if barriers else 0.0,
        f"a warp reaches this barrier every {interval:.0f} instructions.",
        "Let a thread do more between barriers, or let one warp do the last steps alone (st.syncwarp).",
        waiting=True,
    )
