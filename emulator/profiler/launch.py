"""One launch as data: what it was given, what it counted, what was found in it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from ..errors import Diagnostic, SimtbedError
from ..machine.device import Device
from .decisions import Decisions
from .events import Counts
from .profile import CountedKernel, Profile
from .samples import Packed, Samples

Dim3 = tuple[int, int, int]


@dataclass(frozen=True)
class Argument:
    """What a launch was given for one parameter.

    type: "Global[f32]", "i32", or "Const". shape: of an array; None for a number. value: of a number or a constant.
    """

    name: str
    type: str
    shape: tuple[int, ...] | None = None
    value: Any = None


@dataclass(frozen=True, eq=False)
class Launch:
    """One launch.

    shared_bytes: of a block, static and dynamic. engine: the one whose result the program got. seconds: that it took
    here, of which `milliseconds` are the kernel alone on a GPU. registers: a thread's, where a compiler told.
    counts: int64[site, column] for the sites of the kernel; None where nothing was counted. packed: samples, where
    detail was asked for. decisions: of branches and loops, where they were.
    faults, remarks: as in `Result`. disagreements: what other engines answered otherwise, where they were asked.
    request: the launch itself, where it was kept; with its arguments' values, where `keep_arguments` was asked for.
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
    decisions: Decisions | None = field(default=None, repr=False)
    faults: tuple[Diagnostic, ...] = ()
    remarks: tuple[Diagnostic, ...] = ()
    disagreements: tuple[Diagnostic, ...] = ()
    request: Any = field(default=None, repr=False)

    @property
    def constants(self) -> dict[str, Any]:
        """The values of its Const parameters."""
        return {one.name: one.value for one in self.arguments if one.type == "Const"}

    @property
    def samples(self) -> Samples | None:
        """Of its accesses and loops, where detail was asked for."""
        return self.packed.unpacked() if self.packed else None

    @property
    def profile(self) -> Profile:
        """What it cost. Raises SimtbedError where nothing was counted."""
        if self.counts is None:
            raise SimtbedError(f"nothing was counted in a launch of {self.kernel.name}: an emulator counts")
        return self.kernel.profile(self.counts, self.device, samples=self.samples)
