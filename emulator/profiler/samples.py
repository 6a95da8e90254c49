"""Samples of a detailed launch: histograms of the costs of accesses, with an example of each, and of loop iterations.

A sample table belongs to one site. For an access it has a row for each cost: the number of executions with that cost, and
the first of them in the order of execution. For a loop it has a row for some iterations: the lanes and warps that began it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from .remedies import Remedy, merge_remedies

COSTS = 129
"""Rows of an access: sectors of global memory, or wavefronts of shared memory, from 0. No access costs more."""
ACCESS = np.dtype(
    [("count", np.int64), ("block", np.int64), ("phase", np.int32), ("warp", np.int32), ("mask", np.uint32),
     ("unused", np.uint32), ("index", np.int64, (32,))]
)  # fmt: skip
"""count: executions. The other fields are of the first: its block, the barriers passed, its warp, its active lanes, and the
element accessed by each lane."""

EXACT = 128
"""Iterations with a row each. Of later iterations only powers of two have a row."""
ITERATIONS = EXACT + 64 - EXACT.bit_length() + 1
LOOP = np.dtype([("lanes", np.int64), ("warps", np.int64)])
"""lanes, warps: executions of the loop in which a lane, a warp began the iteration."""

Table = npt.NDArray[np.void]


def iteration(row: int) -> int:
    """Return the number, from 0, of the iteration of a row."""
    return row if row < EXACT else 1 << (row - EXACT + EXACT.bit_length() - 1)


def row_of(iteration: int) -> int | None:
    """Return the row of an iteration, or None."""
    if iteration < EXACT:
        return iteration
    return EXACT + (iteration // EXACT).bit_length() - 1 if iteration & (iteration - 1) == 0 else None


@dataclass(frozen=True)
class Samples:
    """Samples of one launch, by site: accesses as ACCESS[COSTS], loops as LOOP[ITERATIONS]. remedies: changes of its accesses."""

    accesses: dict[int, Table]
    loops: dict[int, Table]
    remedies: tuple[Remedy, ...] = ()

    def of_access(self, site: int) -> Table:
        """Return the table of an access; create it if absent."""
        return self.accesses.setdefault(site, np.zeros(COSTS, ACCESS))

    def of_loop(self, site: int) -> Table:
        """Return the table of a loop; create it if absent."""
        return self.loops.setdefault(site, np.zeros(ITERATIONS, LOOP))


@dataclass(frozen=True)
class Packed:
    """Samples of one launch without empty rows: by site, the numbers of the other rows, and their contents."""

    accesses: dict[int, tuple[list[int], Table]]
    loops: dict[int, tuple[list[int], Table]]
    remedies: tuple[Remedy, ...]

    @staticmethod
    def pack(samples: Samples) -> Packed:
        accesses, loops = (
            {site: (rows := nonempty_rows(table), table[rows]) for site, table in tables.items()}
            for tables in (samples.accesses, samples.loops)
        )
        return Packed(accesses, loops, samples.remedies)

    def unpacked(self) -> Samples:
        samples = Samples({}, {}, self.remedies)
        for empty, tables in ((samples.of_access, self.accesses), (samples.of_loop, self.loops)):
            for site, (rows, values) in tables.items():
                empty(site)[rows] = values
        return samples


def merge_samples(several: Iterable[Samples]) -> Samples:
    """Merge the samples of several launches of one kernel."""
    several = list(several)
    total = Samples({}, {}, merge_remedies([samples.remedies for samples in several]))
    for samples in several:
        for into, tables in ((total.accesses, samples.accesses), (total.loops, samples.loops)):
            for site, table in tables.items():
                into[site] = merge_tables([into[site], table]) if site in into else table
    return total


def merge_tables(tables: Iterable[Table]) -> Table:
    """Merge the tables of one site from several threads, or of several sites of one place."""
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


def nonempty_rows(table: Table) -> list[int]:
    """Return the rows of a table with counts."""
    counts: npt.NDArray[np.int64] = table["count" if table.dtype == ACCESS else "lanes"]
    return [int(row) for row in np.flatnonzero(counts)]


def costliest_row(table: Table) -> int:
    """Return the row of an access with most transactions."""
    return int(np.argmax(table["count"] * np.arange(len(table))))


def _order(table: Table) -> npt.NDArray[np.int64]:
    """Return block, phase and warp as one number."""
    return np.asarray((table["block"] << 24) + (table["phase"].astype(np.int64) << 10) + table["warp"])


def lanes_by_iterations(table: Table) -> list[tuple[int, int, int]]:
    """Return (fewest iterations, most iterations, lanes) of each group of lanes of a loop, without empty groups.

    Lanes with no iteration are not included: they did not begin the first one.
    """
    starts = [*(int(n) for n in table["lanes"]), 0]
    groups = []
    for row in range(ITERATIONS):
        lanes = starts[row] - starts[row + 1]
        if lanes:
            groups.append(
                (iteration(row) + 1, iteration(row + 1) if row + 1 < ITERATIONS else iteration(row) + 1, lanes)
            )
    return groups
