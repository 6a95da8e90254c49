"""Counts of an execution by instruction: warps, lanes, memory transactions; the paths of warps."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from ..language.hints import Global, i64
from ..machine import transactions
from ..machine.device import Device
from ..native import native
from .groups import MAX_PATH
from .operands import Decoded
from .state import GLOBAL_BASE, GlobalMemory


@native
def note_array(
    address: i64, access: i64, arrays: i64, ranges: Global[i64], latest: Global[i64], noted_arrays: Global[bool]
) -> None:
    """Note the array of an access. ranges: the first and the past address of each array. latest: int64[accesses], the array
    array last. noted_arrays: bool[accesses, arrays + 1], the last one for addresses outside of arrays."""
    array = latest[access]
    if array < 0 or address < ranges[2 * array] or address >= ranges[2 * array + 1]:
        array = arrays
        for n in range(arrays):
            if ranges[2 * n] <= address and address < ranges[2 * n + 1]:
                array = n
        noted_arrays[access * (arrays + 1) + array] = True
        latest[access] = array if array < arrays else i64(-1)


Words = npt.NDArray[np.int64]
REQUESTS, TRANSACTIONS, EXTRA = range(3)
"""Columns of `Counts.traffic`: requests; sectors of global memory or wavefronts of shared memory; lines or conflicts."""


@dataclass
class Counts:
    """Counts of a launch, by instruction.

    starts: int64[n, warps], runs of straight-line code that start there, by warp of the executed blocks. lanes: int64[n],
    active lanes of these. traffic: int64[n, 3]. active: int64[n], lanes with an access.
    ends_run: bool[n], whether the next instruction starts another run. arrays: names of the arrays accessed.
    first_addresses: of the first access of each instruction.
    """

    device: Device
    ends_run: npt.NDArray[np.bool_]
    warps: int
    starts: dict[int, Words] = field(default_factory=dict)
    arrays: dict[int, set[str]] = field(default_factory=dict)
    first_addresses: dict[int, int] = field(default_factory=dict)
    _paths: list[Words] = field(default_factory=list, repr=False)

    def __post_init__(self) -> None:
        n = len(self.ends_run)
        self.lanes, self.active = np.zeros(n, np.int64), np.zeros(n, np.int64)
        self.traffic = np.zeros((n, 3), np.int64)

    def add_batch(self, groups: Any, paths: Sequence[Words], first_warp: int) -> None:
        """Add the runs of a batch. groups: `groups.Groups`. paths: emptied ones. first_warp: its first warp."""
        n, warps = len(self.ends_run), slice(first_warp, first_warp + groups.warps)
        self.lanes += groups.start_lanes
        if sum(map(len, self._paths)) < MAX_PATH:
            self._paths += [path + (first_warp << 32) for path in paths]
        starts = groups.starts.reshape(n, -1)
        for number in np.flatnonzero(groups.start_lanes).tolist():
            self.starts.setdefault(number, np.zeros(self.warps, np.int64))[warps] += starts[number]

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

    def add_compiled(self, first_addresses: Words, noted_arrays: npt.NDArray[np.bool_], names: Sequence[str]) -> None:
        """Add what compiled code recorded of accesses. first_addresses: int64[n], -1 for none. noted_arrays: bool[n, names]."""
        for n in np.flatnonzero(first_addresses != -1).tolist():
            self.first_addresses.setdefault(n, int(first_addresses[n]))
        for n, name in zip(*(axis.tolist() for axis in np.nonzero(noted_arrays)), strict=True):
            self.arrays.setdefault(n, set()).add(names[name])

    def executions(self) -> Words:
        """Return int64[n, warps], executions of each instruction by warp."""
        result = np.zeros((len(self.ends_run), self.warps), np.int64)
        for n, row in enumerate(result):
            if n and not self.ends_run[n - 1]:
                row += result[n - 1]
            if n in self.starts:
                row += self.starts[n]
        return result

    def basic_blocks(self) -> Words:
        """Return int64[n], the number of the basic block of each instruction: executed code with one entry and one exit."""
        begins = np.append(np.zeros(1, np.bool_), self.ends_run[:-1])
        begins[[n for n in self.starts if n]] = True
        return np.cumsum(begins)

    def paths(self) -> tuple[Words, Words]:
        """Return the first instructions of all runs, by warp and in order, and the start of each warp's, int64[warps + 1].
        Beyond MAX_PATH runs, those of later batches are left out."""
        log = np.concatenate([np.zeros(0, np.int64), *self._paths])
        warp, first = log >> 32, np.zeros(self.warps + 1, np.int64)
        np.cumsum(np.bincount(warp, minlength=self.warps), out=first[1:])
        return log[np.argsort(warp, kind="stable")] & 0xFFFFFFFF, first

    def totals(self) -> tuple[Words, Words]:
        """Return executions of each instruction by warps and by lanes, int64[n] each."""
        warps, lanes = np.zeros(len(self.ends_run), np.int64), self.lanes.copy()
        for n in range(len(warps)):
            warps[n] = self.starts[n].sum() if n in self.starts else 0
            if n and not self.ends_run[n - 1]:
                warps[n] += warps[n - 1]
                lanes[n] += lanes[n - 1]
        return warps, lanes
