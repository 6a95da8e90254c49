"""Counts of an execution by instruction: warps, lanes, branches, and memory transactions."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from ..machine import transactions
from ..machine.device import Device
from .operands import Decoded
from .state import GLOBAL_BASE, GlobalMemory, Rows

Words = npt.NDArray[np.int64]
REQUESTS, TRANSACTIONS, EXTRA = range(3)
"""Columns of `Counts.traffic`: requests; sectors of global memory or wavefronts of shared memory; lines or conflicts."""
ALL_TAKEN, NONE_TAKEN, DIVERGENT = range(3)
"""Columns of `Counts.branches`."""


@dataclass
class Counts:
    """Counts of a launch, by instruction.

    starts: int64[n, warps], runs of straight-line code that start there, by warp of the executed blocks. lanes: int64[n],
    active lanes of these. branches: int64[n, 3, warps]. traffic: int64[n, 3]. active: int64[n], lanes with an access.
    ends_run: bool[n], whether the next instruction starts another run. arrays: names of the arrays accessed.
    first_addresses: of the first access of each instruction.
    """

    device: Device
    ends_run: npt.NDArray[np.bool_]
    warps: int
    starts: dict[int, Words] = field(default_factory=dict)
    branches: dict[int, Words] = field(default_factory=dict)
    arrays: dict[int, set[str]] = field(default_factory=dict)
    first_addresses: dict[int, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        n = len(self.ends_run)
        self.lanes, self.active = np.zeros(n, np.int64), np.zeros(n, np.int64)
        self.traffic = np.zeros((n, 3), np.int64)
        self.first_warp = 0  # of the batch that executes

    def add_run(self, first: int, rows: Rows, lanes: int) -> None:
        """Count the start of a run of straight-line code by warps of the batch. lanes: active ones, of all warps."""
        if first not in self.starts:
            self.starts[first] = np.zeros(self.warps, np.int64)
        self.starts[first][rows + self.first_warp] += 1
        self.lanes[first] += lanes

    def add_branch(self, number: int, rows: Rows, any_jumps: Any, all_jumps: Any) -> None:
        """Count a branch by warps of the batch. any_jumps, all_jumps: bool[warps], among the active lanes."""
        if number not in self.branches:
            self.branches[number] = np.zeros((3, self.warps), np.int64)
        counts, rows = self.branches[number], rows + self.first_warp
        counts[ALL_TAKEN][rows[all_jumps]] += 1
        counts[NONE_TAKEN][rows[~any_jumps]] += 1
        counts[DIVERGENT][rows[any_jumps & ~all_jumps]] += 1

    def add_access(
        self, op: Decoded, space: str, operation: str, address: Any, lanes: Any, size: int, memory: GlobalMemory
    ) -> None:
        """Count the transactions of an access. address: uint64[warps, 32]. operation: of `machine.transactions`."""
        count = np.count_nonzero(lanes)
        if not count:
            return
        self.active[op.number] += count
        self.first_addresses.setdefault(op.number, int(address[lanes][0]))
        row = self.traffic[op.number]
        if space == "local":
            row[REQUESTS] += np.count_nonzero(lanes.any(1))
            return
        index = np.where(lanes, address, address[lanes][0]).astype(np.int64) // size
        transactions.count(space, operation, index, np.ascontiguousarray(lanes), size, self.device, row)
        if space == "global":
            name = memory.array_at(int(address[lanes][0]) - GLOBAL_BASE)
            self.arrays.setdefault(op.number, set()).add(name)

    def executions(self) -> Words:
        """Return int64[n, warps], executions of each instruction by warp."""
        result = np.zeros((len(self.ends_run), self.warps), np.int64)
        for n, row in enumerate(result):
            if n and not self.ends_run[n - 1]:
                row += result[n - 1]
            if n in self.starts:
                row += self.starts[n]
        return result

    def totals(self) -> tuple[Words, Words]:
        """Return executions of each instruction by warps and by lanes, int64[n] each."""
        warps, lanes = np.zeros(len(self.ends_run), np.int64), self.lanes.copy()
        for n in range(len(warps)):
            warps[n] = self.starts[n].sum() if n in self.starts else 0
            if n and not self.ends_run[n - 1]:
                warps[n] += warps[n - 1]
                lanes[n] += lanes[n - 1]
        return warps, lanes
