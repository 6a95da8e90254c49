"""Counts of an execution by instruction: warps, lanes, memory transactions; the paths of warps."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from ..language.intrinsics import WARP_SIZE
from ..machine import transactions
from ..machine.device import Device
from .groups import MAX_PATH
from .operands import Decoded
from .phases import PhaseEvents, events_of, logged

Words = npt.NDArray[np.int64]
REQUESTS, TRANSACTIONS, EXTRA, WINDOW, COLUMNS = 0, 1, 2, 3, 6
"""Columns of `Counts.traffic`: requests; sectors of global memory or wavefronts of shared memory; lines or conflicts. From WINDOW on, those
of generic accesses of shared memory."""


TRACE_ARGUMENTS = 26


class AccessTrace(Protocol):
    """Receiver of the accesses of executed warps to global, local and constant memory."""

    def begin_batch(self, first_warp: int, phases: Words) -> None:
        """Begin a batch of blocks. first_warp: among those counted. phases: int64[blocks], barriers that each has passed."""
        ...

    def add(self, instruction: int, warps: Words, index: Words, active: npt.NDArray[np.bool_]) -> None:
        """Add accesses of an instruction. warps: of the batch, int64[n]. index: int64[n, 32], addresses in units of the
        access's bytes. active: lanes with an access, bool[n, 32]."""
        ...

    @property
    def function(self) -> tuple[int, Words]:
        """The address of a native `add`, and its first arguments, int64[TRACE_ARGUMENTS]. The others are those of `add`, with
        the number of warps before the index."""
        ...


@dataclass
class Counts:
    """Counts of a launch, by instruction.

    starts: int64[n, warps], runs of straight-line code that start there, by warp of the executed blocks. lanes: int64[n],
    active lanes of these. traffic: int64[n, COLUMNS]. active: int64[n], lanes with an access.
    ends_run: bool[n], whether the next instruction starts another run. trace: receives accesses. running: the warps of the
    batch that execute, int64[n].
    """

    device: Device
    ends_run: npt.NDArray[np.bool_]
    warps: int
    trace: AccessTrace | None = None
    starts: dict[int, Words] = field(default_factory=dict)
    _paths: list[Words] = field(default_factory=list, repr=False)
    _phases: list[Words] = field(default_factory=list, repr=False)
    _all_phases: bool = True

    def __post_init__(self) -> None:
        n = len(self.ends_run)
        self.lanes, self.active = np.zeros(n, np.int64), np.zeros(n, np.int64)
        self.traffic, self.running = np.zeros((n, COLUMNS), np.int64), np.zeros(0, np.int64)

    def add_batch(self, groups: Any, paths: Sequence[Words], phases: Any, first_warp: int) -> None:
        """Add the runs of a batch. groups: `groups.Groups`. paths: emptied ones. phases: a `PhaseLog`. first_warp: its first warp."""
        n, warps = len(self.ends_run), slice(first_warp, first_warp + groups.warps)
        self.lanes += groups.start_lanes
        if sum(map(len, self._paths)) < MAX_PATH:
            self._paths += [path + (first_warp << 32) for path in paths]
        self._phases.append(logged(phases, first_warp))
        self._all_phases &= int(phases.size[0]) <= phases.capacity
        starts = groups.starts.reshape(n, -1)
        for number in np.flatnonzero(groups.start_lanes).tolist():
            self.starts.setdefault(number, np.zeros(self.warps, np.int64))[warps] += starts[number]

    def add_access(self, op: Decoded, space: str, operation: str, address: Any, lanes: Any, size: int) -> None:
        """Count the transactions of an access. address: uint64[warps, 32]. space: a memory of `machine.transactions`, "local", "constant",
        or "window" for generic accesses of shared memory. operation: of `machine.transactions`."""
        count = np.count_nonzero(lanes)
        if not count:
            return
        self.active[op.number] += count
        row, lanes = self.traffic[op.number], np.ascontiguousarray(lanes)
        index = np.where(lanes, address, address[lanes][0]).astype(np.int64) // size
        if space in ("local", "constant"):
            row[REQUESTS] += np.count_nonzero(lanes.any(1))
        elif space == "window":
            transactions.count("shared", operation, index, lanes, size, self.device, row[WINDOW:])
        else:
            transactions.count(space, operation, index, lanes, size, self.device, row[:WINDOW])
        if self.trace is not None and space not in ("shared", "window"):
            self.trace.add(op.number, self.running, index, lanes)

    def add_units(self, op: Decoded, row: int, units: Words) -> None:
        """Trace a bulk copy of a running warp. units: their number, and their numbers in global memory."""
        if self.trace is not None and (count := int(units[0])):
            index = np.zeros((-(-count // WARP_SIZE), WARP_SIZE), np.int64)
            index.reshape(-1)[:count] = units[1 : 1 + count]
            active = np.arange(index.size).reshape(index.shape) < count
            self.trace.add(op.number, np.repeat(self.running[row], len(index)), index, active)

    def phase_events(self, warps_per_block: int) -> PhaseEvents:
        """Return what the warps do with barriers in shared memory."""
        events = np.concatenate([np.zeros((0, 2), np.int64), *self._phases])
        return events_of(events, self._all_phases, self.warps, warps_per_block)

    def executions(self) -> Words:
        """Return int64[basic block, warps], executions by warp."""
        block_of = self.basic_blocks()
        result = np.zeros((block_of[-1] + 1, self.warps), np.int64)
        for block, n in enumerate(np.unique(block_of, return_index=True)[1].tolist()):
            if n and not self.ends_run[n - 1]:
                result[block] += result[block - 1]
            if n in self.starts:
                result[block] += self.starts[n]
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
