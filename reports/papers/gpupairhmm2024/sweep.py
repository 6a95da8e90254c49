"""Figure 4 of gpuPairHMM 2024: peak performance by length with the best (p, k)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
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
from ..claims import Origin, Source, Value, counted_by, quotient
from ..definitions import printed
from ..measured import Benchmark, Check, Machine
from ..paper import Chart, Figures, Row, Series, Setting, Size, Table, about, emulator, gpu, model, paper
from ..predicted import CAVEAT, Pace, pace
from ..ren2018.throughput import by_loop
from ..values import extreme, predicted, steps, timed

PEAKS: dict[str, float] = printed("gpupairhmm2024")["peaks"]
"""TCUPS of Figure 4."""
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
    return runner.counters_of(wavefront_columns.__name__), problem.cells


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


def _full(setting: Setting, kernel: tuple[int, int], length: int, name: str) -> Value:
    """Predict the TCUPS of a fully occupied device."""
    cells = WARP_SIZE // kernel[0] * length * length
    prediction = _pace(kernel, length, name, setting.engine)
    return predicted(devices.find(name), prediction, lambda microseconds: cells / microseconds / 1e6, name)


def _at_most(setting: Setting, kernel: tuple[int, int], length: int, device: Device) -> float:
    """Return the upper bound of TCUPS by the most used resource: issue, an instruction class, shared memory or L2."""
    counters, cells = sweep_counters(kernel, setting.whole("pairs"), length, setting.engine)
    totals = counters.totals()
    by_class = {name: getattr(device.rates, name, 0) for name in CLASSES}
    cycles = max(
        totals["warp_instructions"] / device.warp_unit,
        *(WARP_SIZE * totals.get(f"warp_instructions.{name}", 0) / rate for name, rate in by_class.items() if rate),
        totals["shared_load_wavefronts"] + totals["shared_store_wavefronts"] + totals["shuffles"],
    )
    moved = device.sector * (totals["global_load_sectors"] + totals["global_store_sectors"])
    seconds = max(cycles / (device.sms * device.clock * 1e6), moved / (device.timing.l2_bandwidth * 1e9))
    return cells / seconds / 1e12


def _rate(value: Value) -> float:
    return value.value or 0.0


def sweep(setting: Setting) -> Figures:
    """Figure 4: count, predict and look up every kernel at every length."""
    rows: list[Row] = []
    bounds: dict[tuple[str, int], float] = {}
    best: dict[tuple[Origin, int], Value] = {}
    for length in LENGTHS:
        for kernel in selected(setting, length):
            row: Row = {about("length"): length, about("(p, k)"): str(kernel)}
            values = timed(setting, timing_name(kernel, length), Machine.gpu, 1e12)
            for name in PEAKS:
                bound = _at_most(setting, kernel, length, devices.find(name))
                bounds[name, length] = max(bounds.get((name, length), 0.0), bound)
                row = {**row, emulator(f"{name} at most, TCUPS"): bound}
                if setting.size is Size.paper or length in MODELLED:
                    values.append(_full(setting, kernel, length, name))
                    low, high = values[-1].interval or (0.0, 0.0)
                    row = {**row, model(f"{name}, TCUPS"): f"{_rate(values[-1]):.2f}, {low:.2f} to {high:.2f}"}
            for value in values:
                if value.origin.source is Source.gpu:
                    row = {**row, gpu(f"{value.origin.device}, TCUPS"): value.value}
                best[value.origin, length] = max(best.get((value.origin, length), value), value, key=_rate)
            rows.append(row)
    origins = list(dict.fromkeys(origin for origin, _ in best))
    lines = {o: [best[o, length] for length in LENGTHS if (o, length) in best] for o in origins}
    named = {o: next((name for name in PEAKS if name in o.device), "") for o in origins}
    peaks = {o: replace(max(line, key=_rate), label=named[o]) for o, line in lines.items()}
    most = {name: max(bounds.get((name, length), 0.0) for length in LENGTHS) for name in PEAKS}
    ranked = [peaks[o] for o in sorted(origins, key=lambda o: -PEAKS.get(named[o], 0)) if o.source is Source.model]
    authors = [Value(AUTHORS, PEER[length]) for length in LENGTHS]
    return Figures(
        {
            "peaks": [peaks[o] for o in origins if named[o]],
            "growth": extreme(step for line in [*lines.values(), authors] for step in steps(line)),
            "share": [
                Value(o, _rate(peaks[o]) / most[named[o]]) for o in origins if named[o] and o.source is Source.gpu
            ],
            "ranks": [
                replace(quotient(a, b, f"{a.label} over {b.label}"), origin=Origin(Source.model, "five GPUs"))
                for a, b in pairwise(ranked)
            ],
            "bounds": [
                Value(counted_by(devices.find(name)), peak / most[name], name)
                for name, peak in PEAKS.items() if most[name]
            ],
        },
        [
            Table("The paper's peaks, and what counted instructions allow", [
                {about("GPU"): name, paper("peak, TCUPS"): peak, emulator("at most, TCUPS"): most[name]}
                for name, peak in PEAKS.items()]),
            Table("All kernels that a length fills; predictions with their intervals", rows),
        ],
        [
            Chart("at most, best kernel of each length", "length", "TCUPS", [
                Series(name, Source.emulator, [(str(n), bounds[name, n]) for n in LENGTHS if (name, n) in bounds])
                for name in PEAKS]),
            Chart("best kernel of each length", "length", "TCUPS", [
                Series(str(o), o.source, [(str(n), _rate(best[o, n])) for n in LENGTHS if (o, n) in best])
                for o in origins]),
            Chart("gpuPairHMM's own benchmark, H200, best kernel of each length", "length", "TCUPS", [
                Series("gpuPairHMM", Source.gpu, list(PEER.items()))]),
        ],
        {"caveat": CAVEAT},
    )  # fmt: skip


AUTHORS = Origin(Source.gpu, "H200, gpuPairHMM's own benchmark", "2026-11")
"""The origin of `PEER`."""
