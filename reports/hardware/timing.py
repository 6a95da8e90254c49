"""Times of launches on this machine's GPU, warm and cold, and the row of a device that microbenchmarks measure."""

from __future__ import annotations

import json
import statistics
import subprocess
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
import simtbed as st
import tomli_w
from simtbed import Device, DeviceArray, Kernel, SimtbedError
from simtbed.engines.cuda.binary import binary
from simtbed.engines.cuda.driver import primary_context
from simtbed.engines.cuda.engine import CudaEngine
from simtbed.engines.cuda.printer import cuda_source
from simtbed.kernels.files import write
from simtbed.runtime.engine import Request
from simtbed.runtime.registry import EngineName
from simtbed.runtime.request import prepare_request

from .answers import source_digest
from .launches import Timed
from .measuring import Bench, Run, Taken, fields_of, measured
from .microbenchmarks import empty, flush, spin

WARM, COLD = 15, 7
"""Launches whose median is the time."""
_READ_BACK = 1 << 16
_BUSY = 25_000
"""Turns of a chain that a GPU takes about 0.1 milliseconds for: longer than a host takes to send a launch."""
_CLOCKS = ["nvidia-smi", "--query-gpu=name,driver_version,clocks.sm,clocks.mem,clocks.max.sm,power.draw,temperature.gpu",
           "--format=csv,noheader"]  # fmt: skip


def busy() -> Request:
    """A launch that keeps one SM of the GPU busy for a moment."""
    out = DeviceArray(np.zeros(2, np.int64))
    return prepare_request(spin, grid=1, block=1, args={"out": out, "turns": _BUSY}, counters=False)


def emptying(device: Device) -> Request:
    """A launch after which L2 holds nothing that was there."""
    n = device.l2 // 4
    args = {
        "x": DeviceArray(np.zeros((n, 4), np.float32)),
        "out": DeviceArray(np.zeros(device.sms * 1024, np.float32)),
        "n": n,
    }
    return prepare_request(flush, grid=4 * device.sms, block=256, args=args, counters=False)


@dataclass
class Runner:
    """Launches for `measuring`: an array given again is the one that is on the GPU already."""

    engine: EngineName = "cuda"
    _kept: dict[int, tuple[Any, DeviceArray]] = field(default_factory=dict)
    _busy: Request | None = None

    def __call__(self, kernel: Kernel, grid: int, block: int, args: Mapping[str, Any]) -> Taken:
        given = {name: self._stays(value) for name, value in args.items()}
        milliseconds = 0.0
        if self.engine == "cuda":
            self._busy = self._busy or busy()
            request = prepare_request(kernel, grid=grid, block=block, args=given, counters=False)
            (milliseconds,) = CudaEngine().time_behind(self._busy, request, 1)
        else:
            st.launch(kernel, grid=grid, block=block, args=given, engine=self.engine, counters=False)
        written = {
            name: array.numpy()
            for name, array in given.items()
            if isinstance(array, DeviceArray) and np.prod(array.shape) <= _READ_BACK
        }
        return Taken(written, milliseconds)

    def _stays(self, value: Any) -> Any:
        if not isinstance(value, np.ndarray):
            return value
        if id(value) not in self._kept:
            self._kept[id(value)] = (value, DeviceArray(value))
        return self._kept[id(value)][1]


# ------------------------------------------------------------------ a device's row
def device_row(device: Device, run: Run, dated: str, kept: Callable[[str, str], None], scale: int = 1) -> None:
    """Measure a device. kept: given, after each part, a TOML file of the device with what was measured until then, and JSON of
    all figures. What is not measured stays as the device's row has it; what failed is named in both."""
    bench, failed = Bench(device, run, scale), dict[str, str]()

    def done(part: str, trouble: str) -> None:
        if trouble:
            failed[part] = trouble
        timing, rates = fields_of(bench.found, device)
        left = ", ".join(name for name in asdict(device.timing) if name not in {*timing, "dated", "source"})
        source = f"simtbed hardware measure, on this {device.name}; not measured: {left}"
        if failed:
            source += f"; failed: {', '.join(failed)}"
        row = {"like": device.name, "name": f"{device.name} measured", "clock": bench.found.get("clock", device.clock)}
        tables = {"timing": {**timing, "dated": dated, "source": source}} | ({"rates": rates} if rates else {})
        figures = {"device": device.name, "dated": dated, "clocks": clocks(), "figures": bench.found, "failed": failed}
        kept(tomli_w.dumps({**row, **tables}), json.dumps(figures, indent=1) + "\n")

    measured(bench, done)


# ------------------------------------------------------------------ times
@dataclass(frozen=True)
class Times:
    """Of one launch, in microseconds: medians, warm and cold. registers: a thread's."""

    warm_us: float
    cold_us: float
    registers: int


def clocks() -> str:
    """What nvidia-smi says of the GPU, its clocks, power and temperature; empty where it is not there."""
    try:
        done = subprocess.run(_CLOCKS, capture_output=True, text=True, check=False)
    except OSError:
        return ""
    return " ".join(done.stdout.split("\n")[0].split())


def compile_ahead(cases: Sequence[Timed]) -> None:
    """Have the kernels compiled, several at a time; what does not compile says so when it is timed."""
    arch = primary_context().arch

    def compiled(case: Timed) -> None:
        with suppress(SimtbedError):
            binary(case.request(), arch)

    with ThreadPoolExecutor() as pool:
        list(pool.map(compiled, cases))


def times_of(case: Timed, given: Mapping[str, Any], request: Request, before: Request, emptied: Request) -> Times:
    """Hold a launch to its answer, launch it again and again, then with an emptied L2 before each launch. given, request: what
    the case makes. Arrays that are restored are in L2 each time, as the copy to the GPU left them.

    Raises LaunchError where the answer is another one.
    """
    engine = CudaEngine()
    first = engine.run(request)
    if case.answer is not None:
        case.check(
            given, {name: a.numpy() for name, a in request.device_arrays.items()} | request.shaped(first.buffers)
        )

    def milliseconds(behind: Request, repeats: int) -> list[float]:
        if not case.restored:
            return engine.time_behind(behind, request, repeats)
        stays = {**given, **{n: a for n, a in request.device_arrays.items() if n not in case.restored}}
        return [engine.time_behind(behind, case.request(stays), 1)[0] for _ in range(repeats)]

    warm, cold = milliseconds(before, WARM), milliseconds(emptied, COLD)
    return Times(
        1000 * statistics.median(warm),
        1000 * statistics.median(cold),
        first.resources.registers if first.resources else 0,
    )


def take(
    cases: Sequence[Timed],
    device: Device,
    kept: Callable[[Mapping[str, Any]], None],
    done: Callable[[str], None] = print,
    known: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """A record of times: device, clocks before and after, date, the time of a kernel that does nothing, and of each case by name
    its times and the digest of its printed kernel. kept: given the record after each case. known: a record whose launches of
    the same kernels stay as they are. A case that fails is named with its reason and ends no other."""
    launches: dict[str, Any] = dict(known["launches"]) if known else {}
    failed: dict[str, str] = {}
    record: dict[str, Any] = {
        "device": device.name, "clocks": [clocks()], "dated": date.today().isoformat(), "empty_us": 0.0, "launches": launches,
        "failed": failed,
    }  # fmt: skip
    done("compiling")
    compile_ahead(cases)
    before, emptied = busy(), emptying(device)
    nothing = Timed("empty", empty, 1, 32, lambda: {"out": np.zeros(1, np.int32)})
    given = nothing.make()
    record["empty_us"] = times_of(nothing, given, nothing.request(given), before, emptied).warm_us
    for case in cases:
        try:
            given = case.make()
            request = case.request(given)
            source = source_digest(cuda_source(request.program, request.block).text)
            if launches.get(case.name, {}).get("source") == source:
                continue
            launches[case.name] = {**asdict(times_of(case, given, request, before, emptied)), "source": source}
        except (SimtbedError, MemoryError) as error:
            launches.pop(case.name, None)
            failed[case.name] = str(error)
        done(case.name)
        kept(record)
    record["clocks"].append(clocks())
    kept(record)
    return record


def save(record: Mapping[str, Any], path: Path) -> None:
    """Write a record of times, whole or not at all."""
    write(path, [json.dumps(record, indent=1) + "\n"])
