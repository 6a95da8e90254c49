"""Times of launches on this machine's GPU, warm and cold, and the device row measured by microbenchmarks."""

import json
import statistics
import subprocess
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
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
from .measuring import Bench, LaunchResult, Run, fields_of, measure_all
from .microbenchmarks import empty, flush, spin
from .record import as_lines

WARM, COLD = 15, 7
"""Numbers of launches for the medians."""
_READ_BACK = 1 << 16
_BUSY = 25_000
"""Iterations of a chain of about 0.1 milliseconds: longer than the host needs to submit a launch."""
_CLOCKS = ["nvidia-smi", "--query-gpu=name,driver_version,clocks.sm,clocks.mem,clocks.max.sm,power.draw,temperature.gpu",
           "--format=csv,noheader"]  # fmt: skip


def busy() -> Request:
    """Return a launch that occupies one SM during the submission of the next launch."""
    out = DeviceArray(np.zeros(2, np.int64))
    return prepare_request(spin, grid=1, block=1, args={"out": out, "turns": _BUSY}, counters=False)


def emptying(device: Device) -> Request:
    """Return a launch that evicts all data from L2."""
    n = device.l2 // 4
    args = {
        "x": DeviceArray(np.zeros((n, 4), np.float32)),
        "out": DeviceArray(np.zeros(device.sms * 1024, np.float32)),
        "n": n,
    }
    return prepare_request(flush, grid=4 * device.sms, block=256, args=args, counters=False)


@dataclass
class Runner:
    """Launches for `measuring`; arrays are copied to the GPU once."""

    engine: EngineName = "cuda"
    _arrays: dict[int, tuple[Any, DeviceArray]] = field(default_factory=dict)
    _busy: Request | None = None

    def __call__(self, kernel: Kernel, grid: int, block: int, args: Mapping[str, Any]) -> LaunchResult:
        resident = {name: self._resident(value) for name, value in args.items()}
        milliseconds = 0.0
        if self.engine == "cuda":
            self._busy = self._busy or busy()
            request = prepare_request(kernel, grid=grid, block=block, args=resident, counters=False)
            (milliseconds,) = CudaEngine().time_behind(self._busy, request, 1)
        else:
            st.launch(kernel, grid=grid, block=block, args=resident, engine=self.engine, counters=False)
        written = {
            name: array.numpy()
            for name, array in resident.items()
            if isinstance(array, DeviceArray) and np.prod(array.shape) <= _READ_BACK
        }
        return LaunchResult(written, milliseconds)

    def _resident(self, value: Any) -> Any:
        if not isinstance(value, np.ndarray):
            return value
        if id(value) not in self._arrays:
            self._arrays[id(value)] = (value, DeviceArray(value))
        return self._arrays[id(value)][1]


# ------------------------------------------------------------------ a device's row
def device_row(device: Device, run: Run, dated: str, save_texts: Callable[[str, str], None], scale: int = 1) -> None:
    """Measure a device. kept: called after each section with the TOML text of the device and the JSON text of all
    values. Unmeasured fields are those of the device's row; failures are named in both texts."""
    bench, failed = Bench(device, run, scale), dict[str, str]()

    def report(section: str, trouble: str) -> None:
        if trouble:
            failed[section] = trouble
        timing, rates = fields_of(bench.values, device)
        left = ", ".join(name for name in asdict(device.timing) if name not in {*timing, "dated", "source"})
        source = f"simtbed hardware measure, on this {device.name}; not measured: {left}"
        if failed:
            source += f"; failed: {', '.join(failed)}"
        row = {"like": device.name, "name": f"{device.name} measured", "clock": bench.values.get("clock", device.clock)}
        tables = {"timing": {**timing, "dated": dated, "source": source}} | ({"rates": rates} if rates else {})
        figures = {"device": device.name, "dated": dated, "clocks": clocks(), "figures": bench.values, "failed": failed}
        save_texts(tomli_w.dumps({**row, **tables}), json.dumps(figures, indent=1) + "\n")

    measure_all(bench, report)


# ------------------------------------------------------------------ times
@dataclass(frozen=True)
class Times:
    """Times of one launch in microseconds: medians, warm and cold. registers: of a thread."""

    warm_us: float
    cold_us: float
    registers: int


def clocks() -> str:
    """Return name, clocks, power and temperature by nvidia-smi; empty without it."""
    try:
        process = subprocess.run(_CLOCKS, capture_output=True, text=True, check=False)
    except OSError:
        return ""
    return " ".join(process.stdout.split("\n")[0].split())


def compile_ahead(cases: Sequence[Timed]) -> None:
    """Compile the kernels in parallel; errors are reported when the kernel is timed."""
    arch = primary_context().arch

    def compiled(case: Timed) -> None:
        with suppress(SimtbedError):
            binary(case.request(), arch)

    with ThreadPoolExecutor() as pool:
        list(pool.map(compiled, cases))


def times_of(case: Timed, arguments: Mapping[str, Any], request: Request, before: Request, emptied: Request) -> Times:
    """Check the output of a launch, time repeated launches, then launches after an evicted L2. given, request:
    arguments and request of the case. Restored arrays are in L2 each time, because they are copied before each
    launch.

    Raises LaunchError for a wrong output.
    """
    engine, request = CudaEngine(), replace(request, maths="native")
    first = engine.run(request)
    if case.answer is not None:
        case.check(
            arguments, {name: a.numpy() for name, a in request.device_arrays.items()} | request.shaped(first.buffers)
        )

    def milliseconds(behind: Request, repeats: int) -> list[float]:
        if not case.restored:
            return engine.time_behind(behind, request, repeats)
        resident = {**arguments, **{n: a for n, a in request.device_arrays.items() if n not in case.restored}}
        return [
            engine.time_behind(behind, replace(case.request(resident), maths="native"), 1)[0] for _ in range(repeats)
        ]

    warm, cold = milliseconds(before, WARM), milliseconds(emptied, COLD)
    return Times(
        1000 * statistics.median(warm),
        1000 * statistics.median(cold),
        first.resources.registers if first.resources else 0,
    )


def take(
    cases: Sequence[Timed],
    device: Device,
    save_record: Callable[[Mapping[str, Any]], None],
    progress: Callable[[str], None] = print,
    reused: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Return a record of times: device, clocks before and after, date, the time of an empty kernel, and by case its
    times and the digest of its printed kernel. kept: called with the record after each case. known: a record with
    launches to reuse if the kernel is the same. The record names failed cases with their errors."""
    launches: dict[str, Any] = dict(reused["launches"]) if reused else {}
    failed: dict[str, str] = {}
    record: dict[str, Any] = {
        "device": device.name, "clocks": [clocks()], "dated": date.today().isoformat(), "empty_us": 0.0, "launches": launches,
        "failed": failed,
    }  # fmt: skip
    progress("compiling")
    compile_ahead(cases)
    before, emptied = busy(), emptying(device)
    nothing = Timed("empty", empty, 1, 32, lambda: {"out": np.zeros(1, np.int32)})
    arguments = nothing.make()
    record["empty_us"] = times_of(nothing, arguments, nothing.request(arguments), before, emptied).warm_us
    for case in cases:
        try:
            arguments = case.make()
            request = case.request(arguments)
            source = source_digest(cuda_source(request.program, request.block, cluster=request.cluster).text)
            if launches.get(case.name, {}).get("source") == source:
                continue
            launches[case.name] = {**asdict(times_of(case, arguments, request, before, emptied)), "source": source}
        except (SimtbedError, MemoryError) as error:
            launches.pop(case.name, None)
            failed[case.name] = str(error)
        progress(case.name)
        save_record(record)
    record["clocks"].append(clocks())
    save_record(record)
    return record


def save(record: Mapping[str, Any], path: Path) -> None:
    """Write a record of times atomically."""
    write(path, [as_lines(record)])
