"""What a detailed launch keeps beside its counters: accesses by what they cost, with an example of each, and iterations.

A sample table belongs to one site. Of an access it has a row for each cost: how many executions cost that, and the first
of them in the order of execution. Of a loop it has a row for each of some iterations: how many lanes and warps began it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

COSTS = 129
"""Rows of an access: sectors of global memory, or wavefronts of shared memory, from 0. No access costs more."""
ACCESS = np.dtype(
    [("count", np.int64), ("block", np.int64), ("phase", np.int32), ("warp", np.int32), ("mask", np.uint32),
     ("unused", np.uint32), ("index", np.int64, (32,))]
)  # fmt: skip
"""count: executions. The rest is of the first: its block, the barriers passed, its warp, its active lanes, and the
element that each lane accessed."""

EXACT = 128
"""Iterations that have a row each; after them only those whose number is a power of two have one."""
ITERATIONS = EXACT + 64 - EXACT.bit_length() + 1
LOOP = np.dtype([("lanes", np.int64), ("warps", np.int64)])
"""lanes, warps: executions of the loop in which a lane, a warp began the iteration."""

Table = npt.NDArray[np.void]


def iteration(row: int) -> int:
    """The number, from 0, of the iteration that a row of a loop counts."""
    return row if row < EXACT else 1 << (row - EXACT + EXACT.bit_length() - 1)


def row_of(iteration: int) -> int | None:
    """The row of a loop that counts an iteration, if there is one."""
    if iteration < EXACT:
        return iteration
    return EXACT + (iteration // EXACT).bit_length() - 1 if iteration & (iteration - 1) == 0 else None


@dataclass(frozen=True)
class Samples:
    """Of one launch, by site: accesses as ACCESS[COSTS], loops as LOOP[ITERATIONS]."""

    accesses: dict[int, Table]
    loops: dict[int, Table]

    def of_access(self, site: int) -> Table:
        """The table of an access, empty when first asked for."""
        return self.accesses.setdefault(site, np.zeros(COSTS, ACCESS))

    def of_loop(self, site: int) -> Table:
        """The table of a loop, empty when first asked for."""
        return self.loops.setdefault(site, np.zeros(ITERATIONS, LOOP))


@dataclass(frozen=True)
class Packed:
    """Samples of one launch without the rows that nothing was counted in: by site, the numbers of the others, and they."""

    accesses: dict[int, tuple[list[int], Table]]
    loops: dict[int, tuple[list[int], Table]]

    @staticmethod
    def of(samples: Samples) -> Packed:
        return Packed(*({site: (rows := taken(table), table[rows]) for site, table in tables.items()}
                        for tables in (samples.accesses, samples.loops)))  # fmt: skip

    def unpacked(self) -> Samples:
        samples = Samples({}, {})
        for empty, tables in ((samples.of_access, self.accesses), (samples.of_loop, self.loops)):
            for site, (rows, kept) in tables.items():
                empty(site)[rows] = kept
        return samples


def merge_samples(several: Iterable[Samples]) -> Samples:
    """Those of several launches of one kernel, as if of one."""
    total = Samples({}, {})
    for samples in several:
        for into, tables in ((total.accesses, samples.accesses), (total.loops, samples.loops)):
            for site, table in tables.items():
                into[site] = merge_tables([into[site], table]) if site in into else table
    return total


def merge_tables(tables: Iterable[Table]) -> Table:
    """One table of a site from those of several threads, or of several sites that come from one place."""
    first, *rest = tables
    total = first.copy()
    for table in rest:
        if total.dtype == LOOP:
            for name in LOOP.names or ():
                total[name] += table[name]
            continue
        earlier = (table["count"] > 0) & ((total["count"] == 0) | (_order(table) < _order(total)))
        counts = total["count"] + table["count"]
        total = np.where(earlier, table, total)
        total["count"] = counts
    return total


def taken(table: Table) -> list[int]:
    """The rows of a table that count something."""
    counts: npt.NDArray[np.int64] = table["count" if table.dtype == ACCESS else "lanes"]
    return [int(row) for row in np.flatnonzero(counts)]


def _order(table: Table) -> npt.NDArray[np.int64]:
    """Block, phase and warp as one number."""
    return np.asarray((table["block"] << 24) + (table["phase"].astype(np.int64) << 10) + table["warp"])


def lanes_by_iterations(table: Table) -> list[tuple[int, int, int]]:
    """Of a loop, (fewest iterations, most iterations, lanes that took so many), without those that nobody took. Lanes that took none
    are not known here: they did not begin the first iteration."""
    begun = [*(int(n) for n in table["lanes"]), 0]
    found = []
    for row in range(ITERATIONS):
        lanes = begun[row] - begun[row + 1]
        if lanes:
            found.append(
                (iteration(row) + 1, iteration(row + 1) if row + 1 < ITERATIONS else iteration(row) + 1, lanes)
            )
    return found
