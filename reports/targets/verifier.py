"""Observer that repeats every launch on other engines and records differences of the answers."""

import time
from collections.abc import Callable
from dataclasses import dataclass, replace

from simtbed import Device, Launch
from simtbed.runtime.observing import NextLaunch, PendingLaunch
from simtbed.runtime.recording import Recorder
from simtbed.runtime.registry import EngineName
from simtbed.runtime.result import LaunchDetails
from simtbed.testing.comparing import Comparison
from simtbed.testing.filling import find_unwritten
from simtbed.testing.verifying import compare_engines


@dataclass(frozen=True)
class Verifier:
    """Differential testing of launches. The program receives the answer of the jit engine. engines: the other engines."""

    add: Callable[[Launch], object]
    engines: tuple[EngineName, ...]
    comparison: Comparison
    device: Device | None = None
    engine: EngineName = "jit"

    def observe(self, call: PendingLaunch, proceed: NextLaunch) -> LaunchDetails:
        start = time.perf_counter()
        result = proceed(call)
        seconds = time.perf_counter() - start
        launch = Recorder(self.add).launch(call, result, result.faults, result.remarks, seconds)
        differences = compare_engines(call.request, result.buffers, self.engines, self.comparison)
        if not result.faults:
            differences += find_unwritten(call.request, result.buffers, call.engine)
        self.add(replace(launch, disagreements=tuple(differences)))
        return result
