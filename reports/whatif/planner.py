"""Observer that plans each launch of a target in all configurations of a sweep."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from itertools import count

from simtbed import Device, Launch
from simtbed.model.sweeps import Axes, RepeatableLaunch, SweepTask, host_values, plan
from simtbed.runtime.common_memory import copies_of
from simtbed.runtime.observing import NextLaunch, PendingLaunch
from simtbed.runtime.recording import Recorder
from simtbed.runtime.registry import EngineName
from simtbed.runtime.result import LaunchDetails
from simtbed.runtime.specialisation import Specialisation


@dataclass(frozen=True)
class Planned:
    """The emulation tasks of a launch, and the names of its Const parameters."""

    specialisation: Specialisation
    tasks: Sequence[SweepTask]
    constants: tuple[str, ...]


@dataclass(frozen=True)
class Planner:
    """Plans launches; the program receives the answer of the jit engine.

    kernels: a pattern of kernel names. number: the launch of these kernels to plan, counted in each process; None for all.
    """

    add: Callable[[Launch], object]
    axes: Axes
    devices: tuple[Device, ...]
    kernels: str = "*"
    number: int | None = None
    device: Device | None = None
    engine: EngineName = "jit"
    _numbers: count[int] = field(default_factory=count, repr=False)

    def observe(self, call: PendingLaunch, proceed: NextLaunch) -> LaunchDetails:
        start = time.perf_counter()
        planned = None
        if fnmatchcase(call.kernel.__name__, self.kernels):
            number = next(self._numbers)
            if self.number in (None, number):
                planned = self._plan(call, number)  # before the launch modifies its arguments
        result = proceed(call)
        seconds = time.perf_counter() - start
        launch = Recorder(self.add).launch(call, result, result.faults, result.remarks, seconds)
        self.add(replace(launch, request=planned))
        return result

    def _plan(self, call: PendingLaunch, number: int) -> Planned:
        request = call.request
        arguments = {name: host_values(value) for name, value in call.arguments.items()}
        if request.overlapping:
            arguments |= copies_of(request.arrays, request.arrays)
        launch = RepeatableLaunch(
            call.kernel, request.grid, request.block, arguments, request.dynamic_shared, request.cooperative,
            number=number, device=request.device, overlapping=request.overlapping, cluster=request.cluster,
        )  # fmt: skip
        return Planned(request.specialisation, plan(launch, self.axes, self.devices), tuple(launch.constants))
