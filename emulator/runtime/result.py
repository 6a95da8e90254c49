"""What a launch gives back: the arrays it wrote, its counters, its faults."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from ..errors import Diagnostic, SimtbedError, render
from ..machine.occupancy import Occupancy, occupancy
from ..profiler.counters import Counters
from ..profiler.events import Counts
from .arrays import Buffer
from .engine import Request, Resources
from .registry import cuda_text


@dataclass
class Result:
    """What a launch did. A global array the kernel writes is read as `result["name"]`, or as `result.name` where no
    field or property of this class has that name.

    faults: what the emulator found wrong. remarks: what it found and does not hold against the kernel: writes of the
    same value, findings that a comment allows, and comments that allow nothing. printed: lines of the kernel's own `print`.
    milliseconds, resources: of the kernel on the GPU; None on an emulator.
    counts: None where nothing was counted, else int64[site, column] for the sites of the request's program;
    `profiler.events` names the columns.
    """

    buffers: Mapping[str, Buffer]
    faults: list[Diagnostic]
    remarks: list[Diagnostic]
    printed: list[str]
    milliseconds: float | None
    resources: Resources | None
    request: Request = field(repr=False)
    counts: Counts | None = field(default=None, repr=False)

    def __getitem__(self, name: str) -> Buffer:
        if name not in self.buffers:
            written = ", ".join(self.buffers) or "nothing"
            raise SimtbedError(f"the kernel does not write {name}; it writes {written}")
        return self.buffers[name]

    def __getattr__(self, name: str) -> Buffer:
        if name.startswith("_") or name not in self.buffers:
            raise AttributeError(name)
        return self.buffers[name]

    @cached_property
    def counters(self) -> Counters:
        """What the emulator counted, by source line. Raises SimtbedError where nothing was counted."""
        if self.counts is None:
            raise SimtbedError("nothing was counted: an emulator counts, and only with counters=True")
        sites = ((s.kind, s.span, s.size, s.costs) for s in self.request.prepared.sites)
        return Counters.of(sites, self.counts, self.request.device.sector)

    @property
    def source(self) -> str:
        """The kernel as CUDA C++."""
        return cuda_text(self.request)

    @property
    def occupancy(self) -> Occupancy:
        """Theoretical occupancy on the request's device. Registers are known once a compiler has run (the cuda
        engine's result); before that they are taken not to limit."""
        request = self.request
        registers = self.resources.registers if self.resources else 0
        return occupancy(request.device, int(np.prod(request.block)), registers, self.shared_bytes)

    @property
    def shared_bytes(self) -> int:
        """Shared memory of a block, static and dynamic."""
        return self.request.dynamic_shared + self.request.prepared.shared


class FaultError(SimtbedError):
    """The emulator found faults. `result` is what the launch did all the same."""

    def __init__(self, result: Result) -> None:
        super().__init__("\n".join(render(fault) for fault in result.faults))
        self.result = result
