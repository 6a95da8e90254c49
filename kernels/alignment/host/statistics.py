"""Statistics of Ren 2019 on the input of an alignment: lengths, operations, and consecutive pairs with one reference."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

import numpy as np

from .answer import Alignments
from .problem import Bytes, Problem


@dataclass
class Statistics:
    """Statistics of the added pairs, in order.

    references, alternates: number of pairs by length. bases: number of bases by operation. runs: number of operations by kind.
    batches: number of batches by size; a batch is a maximal series of pairs with one reference. `finish` adds the last batch.
    """

    references: Counter[int] = field(default_factory=Counter)
    alternates: Counter[int] = field(default_factory=Counter)
    bases: Counter[str] = field(default_factory=Counter)
    runs: Counter[str] = field(default_factory=Counter)
    batches: Counter[int] = field(default_factory=Counter)
    _reference: bytes = b""
    _together: int = 0

    @property
    def pairs(self) -> int:
        return self.references.total()

    def add(self, problem: Problem, statistics: Alignments) -> None:
        """Add pairs with their alignments."""
        self.references.update(problem.rows.tolist())
        self.alternates.update(problem.columns.tolist())
        kinds, lengths = statistics.operations & 15, (statistics.operations >> 4).astype(np.int64)
        for kind in np.unique(kinds).tolist():
            own = lengths[kinds == kind]
            self.bases["MIDNS"[kind]] += int(own.sum())
            self.runs["MIDNS"[kind]] += len(own)
        for pair in range(len(problem)):
            self._add_reference(problem.reference(pair))

    def _add_reference(self, reference: Bytes) -> None:
        letters = reference.tobytes()
        if letters == self._reference and self._together:
            self._together += 1
            return
        self.finish()
        self._reference, self._together = letters, 1

    def finish(self) -> None:
        """Add the last batch."""
        if self._together:
            self.batches[self._together] += 1
        self._reference, self._together = b"", 0

    def share(self, operation: str) -> float:
        """Return the fraction of an operation among all bases, 0 without bases."""
        return self.bases[operation] / max(self.bases.total(), 1)

    @property
    def accesses_saved(self) -> float:
        """Return the fraction of traceback accesses saved by stored run lengths of matches.

        The saved accesses are bases of M minus runs of M; the total is that of a traceback cell by cell, with one access per gap.
        """
        steps = self.bases["M"] + self.runs["I"] + self.runs["D"]
        return (self.bases["M"] - self.runs["M"]) / max(steps, 1)


def spread(counts: Counter[int]) -> tuple[int, int, int]:
    """Return (minimum, median, maximum) of a counter's keys, weighted by its counts; zeros if it is empty."""
    if not counts:
        return 0, 0, 0
    values, often = np.array(sorted(counts.items())).T
    return int(values[0]), int(values[np.searchsorted(often.cumsum(), (often.sum() + 1) // 2)]), int(values[-1])


def content(statistics: Statistics) -> dict[str, object]:
    """Return all statistics as JSON data: lengths and batches as [minimum, median, maximum], bases and runs by operation."""
    return {
        "pairs": statistics.pairs,
        "reference_bases": spread(statistics.references),
        "alternate_bases": spread(statistics.alternates),
        "bases": dict(statistics.bases),
        "runs": dict(statistics.runs),
        "pairs_in_a_row_with_one_reference": spread(statistics.batches),
        "steps_saved_by_lengths_of_matches": statistics.accesses_saved,
    }


def rows(statistics: Statistics) -> list[tuple[str, str]]:
    """Return the statistics as table rows (name, value)."""
    table = [("pairs", f"{statistics.pairs:,}")]
    for name, counts in (("references", statistics.references), ("alternates", statistics.alternates)):
        least, median, most = spread(counts)
        table.append((f"bases of {name}: least, median, most", f"{least:,}, {median:,}, {most:,}"))
    table += [
        (
            f"{operation}: bases, share, runs",
            f"{count:,}, {100 * statistics.share(operation):.2f} %, {statistics.runs[operation]:,}",
        )
        for operation, count in sorted(statistics.bases.items(), key=lambda one: -one[1])
    ]
    least, median, most = spread(statistics.batches)
    table.append(("pairs in a row with one reference: least, median, most", f"{least:,}, {median:,}, {most:,}"))
    table.append(("steps of a traceback that lengths of matches save", f"{100 * statistics.accesses_saved:.2f} %"))
    return table
