"""Buffers of recorded decisions, in the layout of `profiler.decisions`; `decision_recording` generates the code that fills them.

The buffer of a thread has the number of its records, the records, and for each branch and loop its last record, so that equal
consecutive records are merged. Python reads and clears a full buffer.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from ...profiler.decisions import NOTE, Decisions

REQUEST = -3
"""Number of the host call that reads the decisions; its data is the address of the buffer."""
NOTES = 1 << 13
"""Capacity of a buffer in records."""
HEAD = 64
LASTS = HEAD + NOTES * NOTE.itemsize


def size(slots: Mapping[int, int]) -> int:
    """Return the bytes of a thread's buffer."""
    return LASTS + 8 * len(slots) if slots else 0


class DecisionBuffers:
    """Decision buffers of all threads of a launch, and the decisions read from them."""

    def __init__(self, buffers: Sequence[npt.NDArray[Any]], warps: int) -> None:
        """warps: of the launch."""
        self.buffers = {buffer.ctypes.data: buffer for buffer in buffers}
        self.decisions = Decisions.for_warps(warps)
        self.lock = threading.Lock()

    def take_in(self, address: int) -> None:
        """Read and clear a buffer."""
        buffer = self.buffers[address]
        count = int(buffer[:8].view(np.int64)[0])
        with self.lock:
            self.decisions.add(buffer[HEAD : HEAD + count * NOTE.itemsize].view(NOTE))
        buffer[:8] = 0
        buffer[LASTS:] = 0

    def finish(self) -> Decisions:
        """Return the decisions after all blocks have run."""
        for address, buffer in self.buffers.items():
            if len(buffer) >= LASTS:
                self.take_in(address)
        return self.decisions.finish()
