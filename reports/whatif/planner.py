"""The observer that plans, for each launch of a target, the same launch in other configurations."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from itertools import count

from simtbed import Device, Launch, Result
from simtbed.model.sweeps import Axes, RepeatableLaunch, SweepTask, host_values, plan
from simtbed.runtime.observing import NextLaunch, PendingLaunch
from simtbed.runtime.recording import Recorder
from simtbed.runtime.registry import EngineName
from simtbed.runtime.specialisation import Specialisation


@dataclass(frozen=True)
class Planned:
    """What is kept of a launch: what there is to emulate, and the Const parameters that it has."""

    specialisation: Specialisation
    tasks: Sequence[SweepTask]
    constants: tuple[str, ...]


@dataclass(frozen=True)
class Planner:
    """The program gets what the jit engine answers. kernels: a pattern of names; number: only that launch of those, in each
    process."""

    add: Callable[[Launch], object]
    axes: Axes
    devices: tuple[Device, ...]
    kernels: str = "*"
    number: int | None = None
    device: Device | None = None
    engine: EngineName = "jit"
    _numbers: count[int] = field(default_factory=count, repr=False)

    def observe(self, call: PendingLaunch, proceed: NextLaunch) -> Result:
        start = time.perf_counter()
        planned = None
        if fnmatchcase(call.kernel.__name__, self.kernels):
            number = next(self._numbers)
            if self.number in (None, number):
                planned = self._planned(call, number)  # before the launch changes what it was given
        result = proceed(call)
        seconds = time.perf_counter() - start
        made = Recorder(self.add).launch(call, result, result.faults, result.remarks, seconds)
        self.add(replace(made, request=planned))
        return result

    def _planned(self, call: PendingLaunch, number: int) -> Planned:
        request = call.request
        launch = RepeatableLaunch(
            call.kernel, request.grid, request.block, {name: host_values(v) for name, v in call.arguments.items()},
            request.dynamic_shared, request.cooperative, number=number,
        )  # fmt: skip
        return Planned(request.specialisation, plan(launch, self.axes, self.devices), tuple(launch.constants))
