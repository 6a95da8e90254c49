"""Times of launches on this machine's GPU, warm and cold, and the row of a device that microbenchmarks measure."""

from __future__ import annotations

import statistics
import subprocess
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, field
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
import simtbed as st
import tomli_w
from simtbed import Const, Device, DeviceArray, Global, Kernel, SimtbedError, f32
from simtbed.kernels.files import write
from simtbed.runtime.registry import EngineName

from .microbenchmarks import Run, Taken, measure

WARM, COLD = 15, 7
"""Launches whose median is the time."""
_READ_BACK = 1 << 16
_CLOCKS = ["nvidia-smi", "--query-gpu=name,clocks.sm,clocks.mem,clocks.max.sm", "--format=csv,noheader"]


@dataclass
class Runner:
    """Launches for `microbenchmarks`: an array given again is the one that is on the GPU already."""

    engine: EngineName = "cuda"
    _kept: dict[int, tuple[Any, DeviceArray]] = field(default_factory=dict)

    def __call__(self, kernel: Kernel, grid: int, block: int, args: Mapping[str, Any]) -> Taken:
        given = {name: self._stays(value) for name, value in args.items()}
        result = st.launch(kernel, grid=grid, block=block, args=given, engine=self.engine, counters=False)
        written = {
            name: array.numpy()
            for name, array in given.items()
            if isinstance(array, DeviceArray) and np.prod(array.shape) <= _READ_BACK
        }
        return Taken(written, result.milliseconds or 0.0)

    def _stays(self, value: Any) -> Any:
        if not isinstance(value, np.ndarray):
            return value
        if id(value) not in self._kept:
            self._kept[id(value)] = (value, DeviceArray(value))
        return self._kept[id(value)][1]


@st.kernel
def flush(out: Global[f32], N: Const) -> None:
    """Write an array larger than L2, so that nothing else is left in it."""
    for i in range(st.block.x * st.block_dim.x + st.thread.x, N, st.grid_dim.x * st.block_dim.x):
        out[i] = f32(1)


# ------------------------------------------------------------------ a device's row
def device_row(device: Device, run: Run, dated: str, scale: int = 1) -> str:
    """A TOML file of the device with what was measured; what is not measured stays as the device's row has it."""
    found = measure(device, run, scale)
    clock = found.pop("clock")
    source = f"simtbed hardware measure, on this {device.name}; not measured: {_left(device, found)}"
    timing = {**found, "dated": dated, "source": source}
    return tomli_w.dumps({"like": device.name, "name": f"{device.name} measured", "clock": clock, "timing": timing})


def _left(device: Device, found: Mapping[str, Any]) -> str:
    return ", ".join(name for name in asdict(device.timing) if name not in {*found, "dated", "source"})


# ------------------------------------------------------------------ times
@dataclass(frozen=True)
class Timed:
    """One launch to be timed. make: its arguments. shared: bytes of dynamic shared memory."""

    name: str
    kernel: Kernel
    grid: int | tuple[int, ...]
    block: int | tuple[int, ...]
    make: Callable[[], Mapping[str, Any]]
    shared: int = 0


@dataclass(frozen=True)
class Times:
    """Of one launch, in microseconds: medians, warm and cold. registers: a thread's."""

    warm_us: float
    cold_us: float
    registers: int


def clocks() -> str:
    """What nvidia-smi says of the GPU's clocks; empty where it is not there."""
    try:
        done = subprocess.run(_CLOCKS, capture_output=True, text=True, check=False)
    except OSError:
        return ""
    return " ".join(done.stdout.split("\n")[0].split())


def times_of(case: Timed, device: Device, engine: EngineName = "cuda") -> Times:
    """Launch it again and again, then with an emptied L2 before each launch."""
    args = {name: DeviceArray(v) if isinstance(v, np.ndarray) else v for name, v in case.make().items()}
    emptied = DeviceArray(np.zeros(device.l2, np.float32))  # four times L2

    def once() -> Any:
        return st.launch(
            case.kernel, grid=case.grid, block=case.block, args=args, shared=case.shared, engine=engine, counters=False
        )  # fmt: skip

    first = once()
    warm = [_microseconds(once()) for _ in range(WARM)]
    cold = []
    for _ in range(COLD):
        st.launch(
            flush, grid=4 * device.sms, block=256, args={"out": emptied, "N": device.l2}, engine=engine, counters=False
        )
        cold.append(_microseconds(once()))
    registers = first.resources.registers if first.resources else 0
    return Times(statistics.median(warm), statistics.median(cold), registers)


def _microseconds(result: Any) -> float:
    return 1000 * (result.milliseconds or 0.0)


def take(
    cases: Iterable[Timed], device: Device, engine: EngineName = "cuda", done: Callable[[str], None] = print
) -> dict[str, Any]:
    """A record of times: device, clocks before and after, date, and the times of each case by name."""
    before, found = clocks(), {}
    for case in cases:
        found[case.name] = asdict(times_of(case, device, engine))
        done(case.name)
    return {
        "device": device.name, "clocks": [before, clocks()], "dated": date.today().isoformat(), "launches": found,
    }  # fmt: skip


def save(record: Mapping[str, Any], path: Path) -> None:
    """Write a record of times, whole or not at all."""
    import json

    write(path, [json.dumps(record, indent=1) + "\n"])


def chosen(cases: Iterable[Timed], pattern: str) -> list[Timed]:
    """The cases that a pattern fits. Raises SimtbedError where there is none."""
    from fnmatch import fnmatchcase

    found = [case for case in cases if fnmatchcase(case.name, pattern)]
    if not found:
        raise SimtbedError(f"no case fits {pattern!r}")
    return found
