"""What costs most in a profile and why: a sentence for each, computed from counters, addresses and iterations.

Costs are compared in cycles of one SM at its throughput, as if nothing else limited it: a quarter for a warp
instruction (four schedulers), one for a wavefront of shared memory, a half for a sector (64 bytes a cycle), one for each
sector of an atomic operation. What is explained is the part that another order of data or work would save.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from .costs import Costs, Place
from .counters import Row
from .pattern import Pattern
from .samples import Table, iteration, lanes_by_iterations, taken

INSTRUCTION, WAVEFRONT, SECTOR, ATOMIC = 0.25, 1.0, 0.5, 1.0
"""Cycles of an SM."""
WORTH_A_SENTENCE = 0.01
"""Of all cycles: what is less is left out."""
OFTEN = 64
"""A barrier after so few instructions of a warp is worth a sentence."""


@dataclass(frozen=True)
class Explanation:
    """What one place costs beyond what it had to.

    what: in a word. sentence: what happens, and why. remedy: what is commonly done about it. cycles: of an SM, that the
    remedy could save. share: of the cycles of the profile, and of those that warps wait at barriers.
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
class _Found:
    what: str
    cycles: float
    sentence: str
    remedy: str
    waiting: bool = False
    """Whether no counter holds these cycles: warps wait in them."""


def cycles(row: Row) -> float:
    """What a row of counters costs, in cycles of an SM at its throughput."""
    sectors = sum(row.get(f"{kind}_sectors", 0) for kind in ("global_load", "global_store"))
    atomics = sum(row.get(f"{kind}_sectors", 0) for kind in ("global_atomic", "global_reduction"))
    wavefronts = sum(row.get(f"{kind}_wavefronts", 0) for kind in ("shared_load", "shared_store", "shared_atomic"))
    return INSTRUCTION * row.get("warp_instructions", 0) + WAVEFRONT * wavefronts + SECTOR * sectors + ATOMIC * atomics


def explanations(profile: Costs) -> list[Explanation]:
    """What costs at least a hundredth of all cycles more than it had to, the most first."""
    each = [(place, one) for place, row in profile.rows.items() for one in _of_place(profile, place, row)]
    total = sum(cycles(row) for row in profile.rows.values()) + sum(one.cycles for _, one in each if one.waiting)
    found = [
        Explanation(place, one.what, one.sentence, one.remedy, one.cycles, one.cycles / total)
        for place, one in each
        if one.cycles >= WORTH_A_SENTENCE * total > 0
    ]
    return sorted(found, key=lambda one: (-one.cycles, one.place.span.file, one.place.span.line))


def _of_place(profile: Costs, place: Place, row: Row) -> Iterator[_Found]:
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
    """The cost that most of the transactions of an access come from: the row to show."""
    return int(np.argmax(table["count"] * np.arange(len(table))))


def _uncoalesced(place: Place, table: Table, sector: int) -> _Found:
    def ideal(row: int) -> int:
        return -(-_pattern(table, row).distinct * place.size // sector)

    spare = sum(int(table["count"][row]) * (row - ideal(row)) for row in taken(table))
    row = worst(table)
    pattern, needed = _pattern(table, row), ideal(row)
    verb = "load" if place.kind == "global_load" else "store"
    happens = f"a warp's {verb} of {place.array} touches {row} sectors where {needed} would hold what it asks for"
    why, remedy = _spread(pattern, place.size, sector)
    return _Found("uncoalesced access", SECTOR * spare, f"{happens}: {why}.", remedy)


def _spread(pattern: Pattern, size: int, sector: int) -> tuple[str, str]:
    """Why the lanes touch more sectors than they need, and what is done about it."""
    stride = abs(pattern.stride)
    if (pattern.kind, stride) in (("stride", 1), ("runs", 0)):
        return (
            "its lanes take neighbouring elements, of which the first does not begin a sector",
            f"Begin rows at a multiple of {sector // size} elements: pad them, or shift the work of each warp.",
        )
    if pattern.kind == "stride":
        why = f"neighbouring lanes are {stride:,} elements, {stride * size:,} bytes, apart"
        if stride * size < sector:
            return why, "Load the neighbours as one vector, or keep each field in an array of its own."
        return (
            why,
            "Let neighbouring lanes take neighbouring elements: exchange the indices, or go through a shared tile.",
        )
    if pattern.kind == "runs":
        why = f"the lanes take runs of {pattern.run} neighbours, {pattern.stride:,} elements apart"
        return why, f"Let runs have a multiple of {sector // size} elements: widen the block along the array."
    return (
        f"{pattern.lanes} lanes take {pattern.distinct} elements in no order",
        "Order the work by address, or bring what a block needs into shared memory by neighbouring lanes.",
    )


def _contended(place: Place, table: Table, sector: int) -> _Found:
    def ideal(row: int) -> int:
        return min(row, -(-_pattern(table, row).distinct * place.size // sector))

    spare = sum(int(table["count"][row]) * (row - ideal(row)) for row in taken(table))
    pattern = _pattern(table, worst(table))
    same = "one element" if pattern.distinct == 1 else f"{pattern.distinct} elements"
    return _Found(
        "contended atomic",
        ATOMIC * spare,
        f"{pattern.lanes} lanes of a warp change {same} of {place.array}, one after another.",
        "Combine within the warp (shuffles) or the block (shared memory) first, so that one lane adds for all.",
    )


def _conflicts(place: Place, table: Table, banks: int, width: int) -> _Found:
    phases = max(1, 32 * place.size // (banks * width))
    spare = sum(int(table["count"][row]) * max(0, row - phases) for row in taken(table))
    row = worst(table)
    pattern = _pattern(table, row)
    words = abs(pattern.stride) * place.size // width
    verb = place.kind.removeprefix("shared_")
    happens = f"a warp's {verb} of {place.array} takes {row} passes through the banks instead of {phases}"
    if pattern.kind == "stride" and words and place.kind != "shared_atomic":
        used = banks // int(np.gcd(words, banks))
        why = f"neighbouring lanes are {words:,} words apart, so that they share {used} of {banks} banks"
        remedy = f"Pad the row by one element, to a pitch of {abs(pattern.stride) + 1:,}, so that lanes fall into different banks."
    elif place.kind == "shared_atomic":
        why = f"{pattern.lanes} lanes change {pattern.distinct} elements"
        remedy = "Give each warp, or each few lanes, a copy of the table and add the copies at the end."
    elif pattern.kind == "runs":
        why = f"the lanes take runs of {pattern.run} elements, {pattern.stride:,} apart, which meet in the same banks"
        remedy = "Choose a pitch that is not a multiple of the banks: pad the row."
    else:
        why = f"{pattern.lanes} lanes take {pattern.distinct} elements, of which some lie in the same bank"
        remedy = "Order the elements so that the lanes of a warp take different banks."
    return _Found("bank conflicts", WAVEFRONT * spare, f"{happens}: {why}.", remedy)


def _pattern(table: Table, row: int) -> Pattern:
    """Of the first execution that cost so much."""
    return Pattern.of(int(table["mask"][row]), table["index"][row])


# ------------------------------------------------------------------ control
def _uneven(profile: Costs, place: Place, table: Table) -> _Found:
    """A loop that some lanes leave before others of their warp."""
    spans = np.diff([iteration(row) for row in range(len(table) + 1)])
    lanes, warps = (int((table[name] * spans).sum()) for name in ("lanes", "warps"))
    idle = 1 - lanes / (32 * warps) if warps else 0.0
    groups = lanes_by_iterations(table)
    few, most = (f"{groups[0][0]:,}", _most(groups[-1])) if groups else ("0", "0")
    inside = INSTRUCTION * profile.under.get(place, {}).get("warp_instructions", 0)
    return _Found(
        "uneven loop",
        idle * inside,
        f"lanes take {few} to {most} iterations, and a warp goes on until its last lane is done: "
        f"{100 * idle:.0f} % of its lanes' iterations are idle.",
        "Give the lanes of a warp equal work: sort the items by length, or let all lanes share one item.",
    )


def _most(last: tuple[int, int, int]) -> str:
    low, high, _ = last
    return f"{low:,}" if low == high else f"more than {low - 1:,}"


def _divergent(profile: Costs, place: Place, row: Row) -> _Found:
    """An `if` on which lanes of a warp disagree: the lanes of the other arm wait."""
    branches, divergent = row.get("branches", 0), row.get("divergent_branches", 0)
    inside = profile.under.get(place, {})
    instructions, threads = inside.get("warp_instructions", 0), inside.get("thread_instructions", 0)
    idle = 1 - threads / (32 * instructions) if instructions else 0.0
    return _Found(
        "divergent branch",
        INSTRUCTION * idle * instructions * divergent / max(branches, 1),
        f"in {divergent:,} of {branches:,} executions the lanes of a warp disagree, and under it "
        f"{100 * (1 - idle):.0f} % of the lanes are active.",
        "Let whole warps take one way: arrange the work so that neighbouring lanes decide alike.",
    )


def _frequent(profile: Costs, row: Row) -> _Found:
    barriers = row.get("barriers", 0)
    instructions = sum(r.get("warp_instructions", 0) for r in profile.rows.values())
    between = instructions / barriers if barriers else 0.0
    return _Found(
        "frequent barrier",
        INSTRUCTION * barriers * max(0.0, OFTEN - between) if barriers else 0.0,
        f"a warp meets this barrier every {between:.0f} instructions.",
        "Let a thread do more between barriers, or let one warp do the last steps alone (st.syncwarp).",
        waiting=True,
    )
