"""Figure 4 and Tables I and II of gpuPairHMM 2024: peak performance by length, and whole workflows with transfers."""

import os
import time
from collections.abc import Iterator
from dataclasses import replace
from functools import cache, partial
from itertools import pairwise
from operator import attrgetter
from pathlib import Path

import numpy as np
from simtbed import Counters, Device, SimtbedError, devices
from simtbed.kernels import Agreement
from simtbed.kernels.pairhmm import FAMILY
from simtbed.kernels.pairhmm.host.generate import equal_lengths, generate, repeated
from simtbed.kernels.pairhmm.host.partitioned import KERNELS, SELECTABLE
from simtbed.kernels.pairhmm.host.pipeline import MIN_ACCEPTED, SCALE, wavefront_sums
from simtbed.kernels.pairhmm.host.problem import Problem
from simtbed.kernels.pairhmm.wavefront_columns import wavefront_columns
from simtbed.language.intrinsics import WARP_SIZE
from simtbed.profiler.events import CLASSES
from simtbed.runtime.registry import EngineName

from ...bench.pairhmm import PEER, Timer
from ...launchers import Runner, new_runner
from ...requests import only_request
from .. import measured, recorded
from ..claims import Origin, Source, Value, counted_by, quotient
from ..definitions import printed
from ..measured import Benchmark, Check, Machine, shipped
from ..paper import Chart, Figures, Row, Series, Setting, Size, Table
from ..predicted import pace
from ..ren2018.throughput import CELLS_OF_10S, DATA, LOOP, by_loop
from ..values import counters_of, extreme, predicted, shared_cycles, speedups, steps, timed
from .layout import KERNEL

Kernel = tuple[int, int]
"""Lanes and columns of a lane, (P, K)."""
PEAKS: dict[str, float] = printed("gpupairhmm2024")["peaks"]
"""TCUPS of Figure 4."""
LENGTHS = (32, 64, 128, 256, 512, 1024)
"""Lengths of Fig. 4 with printed numbers."""
MODELLED = (32, 128, 512)
"""Lengths with predictions at the small size."""
RATE = attrgetter("amount")
FEW = 16
"""Pairs of the correctness check."""


@cache
def sweep_counters(kernel: Kernel, pairs: int, length: int, engine: EngineName) -> tuple[Counters, int]:
    """Return the counters of a kernel on reads and haplotypes of a length, and the number of cells."""
    problem = equal_lengths(1, pairs, length, length)
    return counters_of(partial(wavefront_sums, problem, [kernel]), engine, devices.H100, KERNEL), problem.cells


def selected(setting: Setting, length: int) -> list[Kernel]:
    """Return the kernels filled by a length, restricted by --lanes and --rows."""
    lanes, rows = setting.whole("lanes"), setting.whole("rows")
    return [(p, k) for p, k in SELECTABLE if p * k == length and lanes in (0, p) and rows in (0, k)]


def timing_name(kernel: Kernel, length: int) -> str:
    """Return the name of the timing of a kernel at a length."""
    return f"P = {kernel[0]}, K = {kernel[1]}, {length} bases"


def _benchmarks_of_kernels(setting: Setting) -> Iterator[Benchmark]:
    """Yield every kernel at the length that fills it, on a GPU."""
    for length in LENGTHS:
        for kernel in selected(setting, length):
            check = Check(timing_name(kernel, length), partial(_same_sums, kernel, length))
            yield Benchmark(timing_name(kernel, length), Machine.gpu, partial(_sweep, kernel, length), check)


def _same_sums(kernel: Kernel, length: int) -> Agreement:
    """Compare the likelihoods of a kernel on the GPU with the plain loop, within the range of floats."""
    problem = equal_lengths(length, FEW, length, length)
    sums, expected = wavefront_sums(problem, [kernel], Runner("cuda")), by_loop(problem)
    accepted = sums > MIN_ACCEPTED
    return FAMILY.compare(np.log10(sums[accepted] / SCALE[np.float32]), expected[accepted])


def _sweep(kernel: Kernel, length: int, repeat: int) -> tuple[list[float], float]:
    problem = equal_lengths(length, max(1, min(20_000_000_000 // length**2, 1_500_000)), length, length)
    timer = Timer(repeat)
    wavefront_sums(problem, [kernel], timer)
    return [timer.milliseconds], problem.cells


BLOCKS = 32
"""Maximum per SM."""
REGISTERS = {
    (2, 4): 63, (4, 4): 60, (8, 4): 60, (16, 4): 60, (32, 4): 64,
    (2, 8): 78, (4, 8): 79, (8, 8): 79, (16, 8): 79, (32, 8): 80,
    (2, 16): 126, (4, 16): 128, (8, 16): 127, (16, 16): 127, (32, 16): 146,
    (2, 32): 247, (4, 32): 245, (8, 32): 245, (16, 32): 245, (32, 32): 254,
}  # fmt: skip
"""Registers per thread by (P, K): nvcc 13.0 for sm_90."""


def _full(setting: Setting, kernel: Kernel, length: int, name: str) -> Value:
    """Predict the TCUPS of a fully occupied device from a launch of one kernel that fills an SM."""
    pairs, device = WARP_SIZE // kernel[0], devices.find(name)
    problem = equal_lengths(1, BLOCKS * pairs, length, length)
    request = only_request(partial(wavefront_sums, problem, [kernel]), wavefront_columns)
    prediction = pace(request, device, REGISTERS[kernel], setting.engine)
    return predicted(device, prediction, lambda microseconds: pairs * length * length / microseconds / 1e6, name)


def _at_most(setting: Setting, kernel: Kernel, length: int, device: Device) -> float:
    """Return the upper bound of TCUPS by the most used resource: issue, an instruction class, shared memory or L2."""
    counters, cells = sweep_counters(kernel, setting.whole("pairs"), length, setting.engine)
    totals = counters.totals()
    by_class = {name: getattr(device.rates, name, 0) for name in CLASSES}
    cycles = max(
        totals["warp_instructions"] / device.warp_unit,
        *(WARP_SIZE * totals.get(f"warp_instructions.{name}", 0) / rate for name, rate in by_class.items() if rate),
        shared_cycles(counters),
    )
    moved = device.sector * (totals["global_load_sectors"] + totals["global_store_sectors"])
    seconds = max(cycles / (device.sms * device.clock * 1e6), moved / (device.timing.l2_bandwidth * 1e9))
    return cells / seconds / 1e12


def _lookups(setting: Setting, kernel: Kernel, length: int) -> Value:
    """Return the cycles of shared memory over those of issue."""
    counters, _ = sweep_counters(kernel, setting.whole("pairs"), length, setting.engine)
    issue = counters.total("warp_instructions") / devices.H100.warp_unit
    return Value(counted_by(devices.H100), shared_cycles(counters) / issue)


def sweep(setting: Setting) -> Figures:
    """Figure 4: count, predict and look up every kernel at every length."""
    rows: list[Row] = []
    lookups: list[Value] = []
    bounds: dict[tuple[str, int], float] = {}
    best: dict[tuple[Origin, int], Value] = {}
    for length in LENGTHS:
        for kernel in selected(setting, length):
            row: Row = {"length": length, "(p, k)": str(kernel)}
            lookups.append(_lookups(setting, kernel, length))
            values = timed(setting, timing_name(kernel, length), Machine.gpu, 1e12)
            for name in PEAKS:
                bound = _at_most(setting, kernel, length, devices.find(name))
                bounds[name, length] = max(bounds.get((name, length), 0.0), bound)
                row[f"emulator: {name} at most, TCUPS"] = bound
                if setting.size is Size.paper or length in MODELLED:
                    values.append(_full(setting, kernel, length, name))
                    low, high = values[-1].interval or (0.0, 0.0)
                    row[f"time model: {name}, TCUPS"] = f"{values[-1].amount:.2f}, {low:.2f} to {high:.2f}"
            for value in values:
                if value.origin.source is Source.gpu:
                    row[f"GPU: {value.origin.device}, TCUPS"] = value.value
                best[value.origin, length] = max(best.get((value.origin, length), value), value, key=RATE)
            rows.append(row)
    origins = list(dict.fromkeys(origin for origin, _ in best))
    lines = {o: [best[o, length] for length in LENGTHS if (o, length) in best] for o in origins}
    named = {o: next((name for name in PEAKS if name in o.device), "") for o in origins}
    peaks = {o: replace(max(line, key=RATE), label=named[o]) for o, line in lines.items()}
    most = {name: max(bounds.get((name, length), 0.0) for length in LENGTHS) for name in PEAKS}
    ranked = [peaks[o] for o in sorted(origins, key=lambda o: -PEAKS.get(named[o], 0)) if o.source is Source.model]
    authors = [Value(AUTHORS, PEER[length]) for length in LENGTHS]
    return Figures(
        {
            "peak": [peaks[o] for o in origins if named[o] == "H100"],
            "other peaks": [peaks[o] for o in origins if named[o] not in ("", "H100")],
            "lookups": extreme(lookups, least=False),
            "growth": extreme(step for line in [*lines.values(), authors] for step in steps(line)),
            "share": [Value(o, peaks[o].amount / most[named[o]]) for o in origins if named[o] and o.source is Source.gpu],
            "ranks": [
                replace(quotient(a, b, f"{a.label} over {b.label}"), origin=Origin(Source.model, "five GPUs"))
                for a, b in pairwise(ranked)
            ],
            "bounds": [Value(counted_by(devices.find(name)), peak / most[name], name) for name, peak in PEAKS.items() if most[name]],
        },
        [
            Table("The paper's peaks, and what counted instructions allow", [
                {"GPU": name, "paper: peak, TCUPS": peak, "emulator: at most, TCUPS": most[name]}
                for name, peak in PEAKS.items()]),
            Table("All kernels that a length fills; predictions with their intervals", rows),
        ],
        [
            Chart("at most, best kernel of each length", "length", "TCUPS", [
                Series(name, Source.emulator, [(str(n), bounds[name, n]) for n in LENGTHS if (name, n) in bounds])
                for name in PEAKS]),
            Chart("best kernel of each length", "length", "TCUPS", [
                Series(str(o), o.source, [(str(n), best[o, n].amount) for n in LENGTHS if (o, n) in best])
                for o in origins]),
            Chart("gpuPairHMM's own benchmark, H200, best kernel of each length", "length", "TCUPS", [
                Series("gpuPairHMM", Source.gpu, list(PEER.items()))]),
        ],
    )  # fmt: skip


AUTHORS = Origin(Source.gpu, "H200, gpuPairHMM's own benchmark", "2026-11")
"""The origin of `PEER`."""


COPIES = 817
"""Copies of the "10s" set: 2.9 million pairs."""
ONCE, REPEATED, MIXED = (
    'the "10s" set, with transfers', f'{COPIES} copies of the "10s" set, with transfers, per copy', "mixed lengths, with transfers"
)  # fmt: skip
"""Names of benchmarks."""
NEAREST = ((2, 32), (4, 16), (8, 8), (16, 4))
"""Kernels for 64 bases, the length closest to the average of NA12878."""


def benchmarks(setting: Setting) -> Iterator[Benchmark]:
    """Yield the kernels of Figure 4, and whole workflows on a GPU: partition, transfers and kernels."""
    yield from _benchmarks_of_kernels(setting)
    check = measured.on_gpu(FAMILY, "wavefront", FAMILY.example)
    for name, copies in ((ONCE, 1), (REPEATED, COPIES), (MIXED, 1)):
        yield Benchmark(name, Machine.gpu, partial(_workflow, setting, name, copies), check)


def _problem(setting: Setting, name: str) -> Problem:
    """Return a set: "10s" is published, MIXED has the lengths and pairs per batch of NA12878. Raises SimtbedError without data."""
    if name == MIXED:
        return generate(
            7, records=20_000, reads=(5, 15), haplotypes=(3, 8), read_length=(10, 106), haplotype_length=(265, 521)
        )
    if setting.data is None and "SIMTBED_DATA" not in os.environ:
        raise SimtbedError(
            f"{DATA} is needed: SIMTBED_DATA names the folder of published data sets, --data that of its file"
        )
    return FAMILY.read(setting.data or Path(os.environ["SIMTBED_DATA"]) / DATA)


def _workflow(setting: Setting, name: str, copies: int, repeat: int) -> tuple[list[float], float]:
    """Time the partition, the transfers and the kernels of a set per copy, launched concurrently, after a warm-up run."""
    problem = repeated(_problem(setting, name), copies)
    times = []
    for _ in range(repeat + 1):
        start = time.perf_counter()
        sums = wavefront_sums(problem, KERNELS, new_runner("cuda"))
        times.append(1e3 * (time.perf_counter() - start) / copies)
        assert np.isfinite(sums).all()
    return times[1:], problem.cells / copies


def share_of_peak(setting: Setting) -> Figures:
    """Table I: the throughput of the whole workflow and of the best kernel for 64 bases, on each GPU."""
    shares: dict[Origin, Value] = {}
    for kernel in NEAREST:
        for value in speedups(setting, Machine.gpu, timing_name(kernel, 64), MIXED):
            shares[value.origin] = min(value, shares.get(value.origin, value), key=lambda share: share.value or 0.0)
    return Figures({"share": list(shares.values())})


def ten_seconds(setting: Setting) -> Figures:
    """Table II: times here."""
    program = printed("gpupairhmm2024")["program"]
    origin = Origin(Source.gpu, f"{program['machine']}, the authors' program", program["dated"])
    rows: list[Row] = [
        {"design": f"{name}, kernels one by one", f"GPU: {recorded.DEVICES[0]}, ms": recorded.milliseconds(f"pairhmm {name}", DATA)}
        for name in ("wavefront", "wavefront-row-end", "wavefront-loaded", "wavefront-rescaled")
    ]  # fmt: skip
    times: list[Value] = []
    for name, label in ((ONCE, "once"), (REPEATED, "per copy")):
        for timing in setting.timings(name, Machine.gpu):
            times.append(Value(timing.origin, timing.milliseconds, label))
            rows.append({"design": f"wavefront, {name}", f"GPU: {timing.machine}, ms": timing.milliseconds})
    for label, milliseconds in program["milliseconds"].items():
        times.append(Value(origin, milliseconds, label))
        rows.append({"design": f"the authors' program, {label}", f"GPU: {program['machine']}, ms": milliseconds})
    for machine in (Machine.core, Machine.cores):
        if timed := shipped("ren2018").timing(LOOP, machine):
            rows.append({"design": f"{LOOP}, {machine}: {timed.machine}", "CPU: ms": 1e3 * CELLS_OF_10S / timed.rate})
    once = "; ".join(f"{value.value:.3g} ms ({value.origin})" for value in times if value.label == "once")
    copies = [value for value in times if value.label != "once"]
    return Figures({"times": copies}, [Table("Here", rows)], texts={"once": once})
