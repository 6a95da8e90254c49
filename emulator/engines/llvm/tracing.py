"""Buffers of a traced launch, filled by compiled code (`counters.trace`), and their transfer to the tracer."""

import ctypes
from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from ...profiler.trace import ENTRY, Entries, Tracer

REQUEST = -2
"""Number of the host call that transfers a full buffer; its data is the address of the buffer's head."""
ENTRIES = 2048
"""Entries of a thread's buffer."""
NEXT, END, BLOCKS, INTERVAL = range(4)
"""Head of a buffer, int64 each: address of the next entry, address of the end, and `blocks` and `interval` of the tracer."""


@dataclass
class Buffer:
    """A thread's buffer: its head and its entries."""

    head: npt.NDArray[np.int64]
    entries: Entries


@dataclass
class Buffers:
    """Trace buffers of the threads of one launch; none if it is not traced."""

    tracer: Tracer | None
    by_address: dict[int, Buffer] = field(default_factory=dict)

    def new(self) -> int:
        """Return the address of the head of a new buffer."""
        if self.tracer is None:
            return 0
        buffer = Buffer(np.zeros(4, np.int64), np.zeros(ENTRIES, ENTRY))
        start = buffer.entries.ctypes.data
        buffer.head[:] = (start, start + buffer.entries.nbytes, self.tracer.blocks, self.tracer.interval)
        self.by_address[buffer.head.ctypes.data] = buffer
        return buffer.head.ctypes.data

    def transfer(self, addresses: Iterable[int] | None = None) -> None:
        """Transfer the entries of the buffers at these addresses, or of all buffers."""
        for address in list(self.by_address) if addresses is None else addresses:
            buffer = self.by_address[address]
            start = buffer.entries.ctypes.data
            used = (ctypes.c_int64.from_address(address).value - start) // ENTRY.itemsize
            if used:
                assert self.tracer is not None
                self.tracer.take(buffer.entries[:used])
                buffer.head[BLOCKS], buffer.head[INTERVAL] = (
                    self.tracer.blocks,
                    self.tracer.interval,
                )  # the tracer may sample fewer blocks
            buffer.head[NEXT] = start
