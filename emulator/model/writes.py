"""Elements of global arrays that a launch writes, from the trace of its accesses."""

from dataclasses import dataclass, field

import numpy as np

from ..ir.access import AccessKind, Operation
from ..language.intrinsics import WARP_SIZE
from ..profiler.trace import Entries
from ..runtime.arrays import Buffer
from ..runtime.engine import Request

_LANES = np.arange(WARP_SIZE, dtype=np.uint32)


@dataclass
class WriteTrace:
    """A tracer of the written elements of a launch. An atomic operation writes its element, whatever its result.

    flags: of each written array of the request, memory of its type and shape, of which written elements have all bits set.
    """

    request: Request
    spaces: tuple[str, ...] = ("global",)
    blocks: int = 1 << 62
    interval: int = 1
    flags: dict[str, Buffer] = field(init=False)
    _rows: dict[int, Buffer] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        summary, arguments = self.request.specialisation.summary, self.request.arguments
        self.flags = {name: np.zeros_like(arguments[name], subok=False, order="C") for name in summary.changed}
        self._rows = {}
        for number, site in enumerate(self.request.prepared.sites):
            writes = isinstance(site.action, AccessKind) and site.action.operation is not Operation.LOAD
            if writes and site.array in self.flags:
                memory = self.flags[site.array].reshape(-1).view(np.uint8)
                self._rows[number] = memory[: memory.size // site.size * site.size].reshape(-1, site.size)

    def take(self, entries: Entries) -> None:
        sites = entries["site"]
        for number in np.unique(sites).tolist():
            if number in self._rows:
                accesses = entries[sites == number]
                active = (accesses["mask"][:, None] >> _LANES & 1).astype(np.bool_)
                self._rows[number][accesses["index"][active]] = 0xFF  # all threads store the same value

    def begin_again(self) -> None:
        for memory in self.flags.values():
            memory.reshape(-1).view(np.uint8)[:] = 0
