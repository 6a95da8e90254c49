"""Record of one launch: arguments, counters, findings."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ..errors import Diagnostic, SimtbedError
from ..escaping import printable
from ..machine.device import Device
from .events import Counts
from .launch_memory import LaunchMemory
from .profile import CountedKernel, Profile
from .samples import Packed, Samples

Dim3 = tuple[int, int, int]


def extents(dim3: Dim3) -> str:
    """Return the text of a grid or a block without trailing ones: 64, or 8 x 8."""
    x, y, z = dim3
    return f"{x} x {y} x {z}" if z > 1 else f"{x} x {y}" if y > 1 else str(x)


@dataclass(frozen=True)
class Argument:
    """An argument of a launch.

    type: "Global[f32]", "i32", or "Const". shape: of an array; None for a number. value: of a number or a constant.
    """

    name: str
    type: str
    shape: tuple[int, ...] | None = None
    value: Any = None


@dataclass(frozen=True, eq=False, repr=False)
class Launch:
    """One launch.

    shared_bytes: per block, static and dynamic. engine: the engine that gave the result. seconds: wall time on the host;
    milliseconds: of the kernel alone, on a GPU. registers: per thread, if a compiler reported them.
    counts: int64[site, column] for the sites of the kernel; None if not counted. packed: samples of a launch with detail.
    memory: the arrays before the launch, if requested.
    faults, remarks: as in `Result`. disagreements: differences from the results of other engines, if compared.
    request: the launch itself, if recorded; with the values of its arguments for `keep_arguments`.
    """

    kernel: CountedKernel
    grid: Dim3
    block: Dim3
    arguments: tuple[Argument, ...]
    shared_bytes: int
    device: Device
    engine: str
    seconds: float
    milliseconds: float | None = None
    registers: int | None = None
    counts: Counts | None = None
    packed: Packed | None = None
    memory: LaunchMemory | None = None
    faults: tuple[Diagnostic, ...] = ()
    remarks: tuple[Diagnostic, ...] = ()
    disagreements: tuple[Diagnostic, ...] = ()
    request: Any = None

    def __repr__(self) -> str:
        shape = f"grid {extents(self.grid)}, block {extents(self.block)}"
        facts = f"{shape}; {self.engine}, {self.device.name}; faults {len(self.faults)}"
        return printable(f"<Launch of {self.kernel.name}: {facts}>")

    @property
    def constants(self) -> dict[str, Any]:
        """The values of its Const parameters."""
        return {one.name: one.value for one in self.arguments if one.type == "Const"}

    @property
    def samples(self) -> Samples | None:
        """Samples of accesses and loops, of a launch with detail."""
        return self.packed.unpacked() if self.packed else None

    @property
    def profile(self) -> Profile:
        """The profile of the launch. Raises SimtbedError if nothing was counted."""
        if self.counts is None:
            raise SimtbedError(f"nothing was counted in a launch of {self.kernel.name}: an emulator counts")
        return self.kernel.profile(self.counts, self.device, samples=self.samples)
