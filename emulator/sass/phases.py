"""A log of the phases of barriers in shared memory at which warps arrive and for which they wait."""

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ..language.hints import Global, i64
from ..language.intrinsics import WARP_SIZE
from ..native import native

Words = npt.NDArray[np.int64]
BEGINS, ARRIVES, WAITS = range(3)
"""What an instruction does: make a barrier, complete a part of a phase, or find that a phase is complete."""
CAPACITY = 1 << 21
"""Events of a batch of blocks that are kept."""


class PhaseLog(NamedTuple):
    """phases: by word of shared memory, the number of the barrier's present phase, whose lowest bit is its parity. events: pairs of words:
    warp << 33 | instruction << 1 | whether it waits, and the word of shared memory << 32 | the phase. size: number of events. capacity:
    events that are kept; 0 for no log."""

    phases: Global[i64]
    events: Global[i64]
    size: Global[i64]
    capacity: i64


def new_log(shared: int, capacity: int) -> Any:
    """Return an empty log. shared: bytes of the memory."""
    fields: Any = np.zeros(shared // 8, np.int64), np.zeros(2 * capacity, np.int64), np.zeros(1, np.int64), capacity
    return PhaseLog(*fields)


def logged(log: Any, first_warp: int) -> Words:
    """Return the events of a log, int64[m, 2], with the numbers of warps in the launch. first_warp: the first one of the batch."""
    events: Words = log.events[: 2 * min(int(log.size[0]), log.capacity)].reshape(-1, 2).copy()
    events[:, 0] += first_warp << 33
    return events


@native
def log_phase(log: PhaseLog, kind: i64, event: i64, words: Global[i64], active: Global[bool]) -> None:
    """Log an instruction of a warp. event: warp << 32 | instruction. words: by lane, the word of the barrier << 1 | its parity before the
    instruction, of active lanes. The event is that of the first one."""
    first = i64(-1)
    for lane in range(i64(WARP_SIZE) if log.capacity > 0 else i64(0)):
        if active[lane]:
            word, parity = words[lane] >> 1, words[lane] & 1
            if kind == BEGINS:
                log.phases[word] += 2 - (log.phases[word] & 1)
            elif log.phases[word] & 1 != parity:
                log.phases[word] += 1
            if first < 0:
                first = word << 32 | (log.phases[word] - i64(kind == WAITS))
    if first >= 0 and kind != BEGINS:
        if log.size[0] < log.capacity:
            log.events[2 * log.size[0]] = event << 1 | i64(kind == WAITS)
            log.events[2 * log.size[0] + 1] = first
        log.size[0] += 1


class PhaseEvents(NamedTuple):
    """The events of the executed warps, in the order of each warp's.

    first: int64[warps + 1], the start of each warp's. instruction, phase: int64[m]; a phase is that of a barrier of the block. starts:
    int64[blocks + 1], the start of each block's phases in `arrivals`. arrivals: int64[phases], events that complete it. complete: whether
    no event is missing.
    """

    first: Words
    instruction: Words
    phase: Words
    starts: Words
    arrivals: Words
    complete: bool


def events_of(events: Words, complete: bool, warps: int, warps_per_block: int) -> PhaseEvents:
    """Return the events of a launch. events: those of its batches, `logged`."""
    events = events[np.argsort(events[:, 0] >> 33, kind="stable")]
    warp, instruction, waits = events[:, 0] >> 33, events[:, 0] >> 1 & 0xFFFFFFFF, events[:, 0] & 1
    first = np.searchsorted(warp, np.arange(warps + 1))
    keys = np.stack([warp // warps_per_block, events[:, 1]], axis=1)
    named, number = np.unique(keys, axis=0, return_inverse=True)
    number = number.reshape(-1)
    starts = np.searchsorted(named[:, 0], np.arange(warps // warps_per_block + 1))
    arrivals = np.bincount(number[waits == 0], minlength=len(named))
    return PhaseEvents(first, instruction, number - starts[keys[:, 0]], starts, arrivals, complete)
