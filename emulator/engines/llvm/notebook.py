"""The buffers of notes: `profiler.decisions` says what is noted, `notes` generates the code that does so.

A thread's buffer holds the number of its notes, then the notes, then for each branch and loop the last of them that
concerns it, so that equal ones in a row are one. A full buffer is taken in by Python, and begun again.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from ...profiler.decisions import NOTE, Decisions

REQUEST = -3
"""The number by which compiled code has its notes taken in; the data is the address of the buffer."""
NOTES = 1 << 13
"""Notes of a buffer."""
HEAD = 64
LASTS = HEAD + NOTES * NOTE.itemsize


def size(slots: Mapping[int, int]) -> int:
    """Bytes of a thread's buffer."""
    return LASTS + 8 * len(slots) if slots else 0


class Notebook:
    """The buffers of all threads of a launch, and what was taken in."""

    def __init__(self, buffers: Sequence[npt.NDArray[Any]], warps: int) -> None:
        """warps: of the launch."""
        self.buffers = {buffer.ctypes.data: buffer for buffer in buffers}
        self.decisions = Decisions.for_warps(warps)
        self.turn = threading.Lock()

    def take_in(self, address: int) -> None:
        """Take the notes of a buffer in, and begin it again."""
        buffer = self.buffers[address]
        count = int(buffer[:8].view(np.int64)[0])
        with self.turn:
            self.decisions.add(buffer[HEAD : HEAD + count * NOTE.itemsize].view(NOTE))
        buffer[:8] = 0
        buffer[LASTS:] = 0

    def finish(self) -> Decisions:
        """When all blocks have run."""
        for address, buffer in self.buffers.items():
            if len(buffer) >= LASTS:
                self.take_in(address)
        return self.decisions.finish()
