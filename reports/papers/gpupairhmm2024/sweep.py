"""Figure 4 of gpuPairHMM 2024: peak performance by length with the best (p, k)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache, partial
from itertools import pairwise

import numpy as np
from simtbed import Counters, Device, devices
from simtbed.kernels import Agreement
from simtbed.kernels.pairhmm import FAMILY
from simtbed.kernels.pairhmm.host.generate import equal_lengths
from simtbed.kernels.pairhmm.host.partitioned import SELECTABLE
from simtbed.kernels.pairhmm.host.pipeline import MIN_ACCEPTED, SCALE, wavefront_sums
from simtbed.kernels.pairhmm.wavefront_columns import wavefront_columns
from simtbed.language.intrinsics import WARP_SIZE
from simtbed.profiler.events import CLASSES
from simtbed.runtime.engine import Request
from simtbed.runtime.registry import EngineName

from ...bench.pairhmm import PEER, Timer
from ...launchers import Runner
from ...requests import only_request
from ..claims import Claim, Comparison, Origin, Source, at_least, at_most, counted_by, more_than, near, predicted_for
from ..measured import Benchmark, Check, Machine
from ..paper import Chart, Row, Series, Setting, Shown, Size, Table, about, emulator, gpu, model, paper
from ..predicted import CAVEAT, Pace, pace
from ..ren2018.throughput import by_loop

PEAKS = {"L40S": 2.62, "H100": 2.37, "A100": 0.86, "V100": 0.59, "L4": 0.84}
"""TCUPS of Fig. 4, from the text."""
LENGTHS = (32, 64, 128, 256, 512, 1024)
"""Lengths of Fig. 4 with printed numbers."""
MODELLED = (32, 128, 512)
"""Lengths with predictions at the small size."""
FEW = 16
"""Pairs of the correctness check."""


@cache
def sweep_counters(kernel: tuple[int, int], pairs: int, length: int, engine: EngineName) -> tuple[Counters, int]:
    """Return the counters of kernel (P, K) on reads and haplotypes of a length, and the number of cells."""
    runner = Runner(engine, devices.H100, counting=True)
    problem = equal_lengths(1, pairs, length, length)
    wavefront_sums(problem, [kernel], runner)
    (selected,) = (
        counters for program, counters in runner.counted if program.kernel.name == wavefront_columns.__name__
    )
    return selected, problem.cells


def selected(setting: Setting, length: int) -> list[tuple[int, int]]:
    """Return the kernels filled by a length, restricted by --lanes and --rows."""
    selected = setting.whole("lanes"), setting.whole("rows")
    return [
        kernel
        for kernel in SELECTABLE
        if kernel[0] * kernel[1] == length
        and all(not want or want == has for want, has in zip(selected, kernel, strict=True))
    ]


def timing_name(kernel: tuple[int, int], length: int) -> str:
    """Return the name of the timing of a kernel at a length."""
    return f"P = {kernel[0]}, K = {kernel[1]}, {length} bases"


def benchmarks(setting: Setting) -> Iterator[Benchmark]:
    """Yield every kernel at the length that fills it, on a GPU."""
    for length in LENGTHS:
        for kernel in selected(setting, length):
            check = Check(timing_name(kernel, length), partial(_same_sums, kernel, length))
            yield Benchmark(timing_name(kernel, length), Machine.gpu, partial(_sweep, kernel, length), check)


def _same_sums(kernel: tuple[int, int], length: int) -> Agreement:
    """Compare the likelihoods of a kernel on the GPU with the plain loop, within the range of floats."""
    problem = equal_lengths(length, FEW, length, length)
    sums, expected = wavefront_sums(problem, [kernel], Runner("cuda")), by_loop(problem)
    accepted = sums > MIN_ACCEPTED
    return FAMILY.compare(np.log10(sums[accepted] / SCALE[np.float32]), expected[accepted])


def _sweep(kernel: tuple[int, int], length: int, repeat: int) -> tuple[list[float], float]:
    problem = equal_lengths(length, max(1, min(20_000_000_000 // length**2, 1_500_000)), length, length)
    timer = Timer(repeat)
    wavefront_sums(problem, [kernel], timer)
    return [timer.milliseconds], problem.cells


CLOSE = 0.8
"""Smallest share of a bound that is close to it."""
BLOCKS = 32
"""Maximum per SM."""
REGISTERS = {
    (2, 4): 63, (4, 4): 60, (8, 4): 60, (16, 4): 60, (32, 4): 64,
    (2, 8): 78, (4, 8): 79, (8, 8): 79, (16, 8): 79, (32, 8): 80,
    (2, 16): 126, (4, 16): 128, (8, 16): 127, (16, 16): 127, (32, 16): 146,
    (2, 32): 247, (4, 32): 245, (8, 32): 245, (16, 32): 245, (32, 32): 254,
}  # fmt: skip
"""Registers per thread by (P, K): nvcc 13.0 for sm_90."""


@cache
def _request(kernel: tuple[int, int], length: int) -> Request:
    """Return a launch of one kernel that fills an SM."""
    problem = equal_lengths(1, BLOCKS * (WARP_SIZE // kernel[0]), length, length)
    return only_request(lambda launcher: wavefront_sums(problem, [kernel], launcher), wavefront_columns)


@cache
def _pace(kernel: tuple[int, int], length: int, name: str, engine: EngineName) -> Pace:
    return pace(_request(kernel, length), devices.find(name), REGISTERS[kernel], engine)


def _full(setting: Setting, kernel: tuple[int, int], length: int, name: str) -> float:
    """Predict the TCUPS of a fully occupied device."""
    prediction = _pace(kernel, length, name, setting.engine)
    return WARP_SIZE // kernel[0] * length * length / prediction.microseconds / 1e6


def _at_most(setting: Setting, kernel: tuple[int, int], length: int, device: Device) -> float:
    """Return the upper bound of TCUPS by the most used resource: issue, an instruction class, shared or global memory."""
    counters, cells = sweep_counters(kernel, setting.whole("pairs"), length, setting.engine)
    totals = counters.totals()
    by_class = {name: getattr(device.rates, name, 0) for name in CLASSES}
    cycles = max(
        totals["warp_instructions"] / device.warp_unit,
        *(WARP_SIZE * totals.get(f"warp_instructions.{name}", 0) / rate for name, rate in by_class.items() if rate),
        totals["shared_load_wavefronts"] + totals["shared_store_wavefronts"] + totals["shuffles"],
    )
    moved = device.sector * (totals["global_load_sectors"] + totals["global_store_sectors"])
    seconds = max(cycles / (device.sms * device.clock * 1e6), moved / (device.bandwidth * 1e9))
    return cells / seconds / 1e12


@dataclass
class Sweep:
    """TCUPS of all kernels. bounds, predicted: the best kernel by GPU and length. measured: by measured GPU and length."""

    rows: list[Row] = field(default_factory=list)
    bounds: dict[tuple[str, int], float] = field(default_factory=dict)
    predicted: dict[tuple[str, int], float] = field(default_factory=dict)
    measured: dict[Origin, dict[int, float]] = field(default_factory=lambda: defaultdict(dict))


def _run_sweep(setting: Setting) -> Sweep:
    """Count, predict and look up every kernel at every length."""
    result = Sweep()
    best, modelled, times = result.bounds, result.predicted, result.measured
    for length in LENGTHS:
        for kernel in selected(setting, length):
            row: Row = {about("length"): length, about("(p, k)"): str(kernel)}
            for name in PEAKS:
                bound = _at_most(setting, kernel, length, devices.find(name))
                row = {**row, emulator(f"{name} at most, TCUPS"): bound}
                best[name, length] = max(best.get((name, length), 0.0), bound)
                if setting.size is Size.paper or length in MODELLED:
                    tera = _full(setting, kernel, length, name)
                    row = {**row, model(f"{name}, TCUPS"): tera}
                    modelled[name, length] = max(modelled.get((name, length), 0.0), tera)
            name = timing_name(kernel, length)
            for timings in setting.by_machine([name], Machine.gpu):
                origin, tera = timings[name].origin, timings[name].rate / 1e12
                row = {**row, gpu(f"{origin.device}, TCUPS"): tera}
                times[origin][length] = max(times[origin].get(length, 0.0), tera)
            result.rows.append(row)
    return result


def sweep(setting: Setting) -> Shown:
    """Fig. 4."""
    swept = _run_sweep(setting)
    rows, best, modelled = swept.rows, swept.bounds, swept.predicted
    lengths = sorted({length for _, length in best})
    most = {name: max((best[name, length] for length in lengths), default=0.0) for name in PEAKS}
    peaked = {name: max((tera for (of, _), tera in modelled.items() if of == name), default=0.0) for name in PEAKS}
    peaks: list[Row] = [
        {
            about("GPU"): name,
            paper("peak, TCUPS"): peak,
            model("peak, TCUPS"): peaked[name],
            emulator("at most, TCUPS"): most[name],
        }
        for name, peak in PEAKS.items()
    ]
    ranked = sorted(PEAKS, key=lambda name: -peaked[name])
    in_place = sum(a == b for a, b in zip(ranked, sorted(PEAKS, key=lambda name: -PEAKS[name]), strict=True))
    return Shown(
        [
            Claim("peaks of 2.62, 2.37, 0.86, 0.59 and 0.84 TCUPS", [
                *(near(predicted_for(devices.find(name)), "TCUPS", peaked[name], peak, 0.25)
                  for name, peak in PEAKS.items() if peaked[name]),
                *_measured_peaks(swept)], main=True),
            Claim("performance generally grows with length", _growth(swept)),
            Claim("close to the peak of the GPU", [
                at_least(origin, f"share of what a {name} can issue", max(times.values()) / most[name], CLOSE)
                for origin, times in swept.measured.items() for name in PEAKS if name in origin.device]),
            Claim("L40S is the fastest, then H100, A100, L4 and V100",
                  [at_least(Origin(Source.model, "five GPUs"), "GPUs in this place", in_place, len(PEAKS))] if any(peaked.values()) else [],
                  remark="By predictions for each GPU: " + ", ".join(f"{name} {peaked[name]:.2f}" for name in ranked) + "."),
            Claim("the peaks are within what the GPUs can issue", [
                at_most(counted_by(devices.find(name)), "share of the bound", peak / most[name], 1)
                for name, peak in PEAKS.items() if most[name]],
                remark="The bound is of the kernel here, whose instructions are not those of the authors' compiled kernel."),
        ],
        "The cost per cell falls with length, because more columns share the fill and drain of the lanes; the best (p, k) needs a GPU.",
        [Table("The paper's peaks, and what counted instructions allow", peaks), Table("All kernels that a length fills", rows)],
        [
            Chart("at most, best kernel of each length", "length", "TCUPS", [
                Series(name, Source.emulator, [(str(length), best[name, length]) for length in lengths]) for name in PEAKS
            ]),
            Chart("time model, best kernel of each length", "length", "TCUPS", [
                Series(name, Source.model, [(str(length), modelled[name, length]) for length in lengths if (name, length) in modelled])
                for name in PEAKS
            ]),
            Chart("gpuPairHMM's own benchmark, H200, best kernel of each length", "length", "TCUPS", [
                Series("gpuPairHMM", Source.gpu, [(length, tera) for length, tera in PEER.items()])
            ]),
        ],
        note="Upper bound: the slowest of issue, instruction classes, shared and global memory at the rates of the GPU, without caches, "
        "unlike the time model. Instructions are those of the source; a compiler folds some. " + CAVEAT,
    )  # fmt: skip


def _measured_peaks(swept: Sweep) -> list[Comparison]:
    """Compare the peak on each measured GPU of the paper."""
    return [
        near(origin, "TCUPS", max(times.values()), peak, 0.25)
        for origin, times in swept.measured.items()
        for name, peak in PEAKS.items()
        if name in origin.device
    ]


def _growth(swept: Sweep) -> list[Comparison]:
    """Compare the share of steps to the next length with more throughput, for the prediction of each GPU and each measured GPU."""
    by_origin = {
        predicted_for(devices.find(name)): {n: tera for (of, n), tera in swept.predicted.items() if of == name}
        for name in PEAKS
    }
    compared = []
    for origin, times in {**by_origin, **swept.measured}.items():
        steps = [times[a] < times[b] for a, b in pairwise(sorted(times))]
        if steps:
            compared.append(more_than(origin, f"share of {len(steps)} steps", sum(steps) / len(steps), 0.5))
    return compared
