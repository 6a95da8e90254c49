"""Tables I and II of gpuPairHMM 2024: whole workflows with transfers, here and by the authors' program."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import numpy as np
from simtbed import SimtbedError
from simtbed.kernels.pairhmm import FAMILY
from simtbed.kernels.pairhmm.host.generate import generate, repeated
from simtbed.kernels.pairhmm.host.partitioned import KERNELS
from simtbed.kernels.pairhmm.host.pipeline import wavefront_sums
from simtbed.kernels.pairhmm.host.problem import Problem

from ...launchers import new_runner
from .. import checks, recorded
from ..claims import Origin, Source, Value
from ..definitions import printed
from ..measured import Benchmark, Machine, shipped
from ..paper import Column, Figures, Row, Setting, Table, about, cpu, gpu
from ..ren2018.throughput import CELLS_OF_10S, DATA, LOOP
from ..values import speedups
from . import sweep

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
    yield from sweep.benchmarks(setting)
    check = checks.on_gpu(FAMILY, "wavefront", FAMILY.example)
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
        for value in speedups(setting, Machine.gpu, sweep.timing_name(kernel, 64), MIXED):
            shares[value.origin] = min(value, shares.get(value.origin, value), key=lambda share: share.value or 0.0)
    return Figures({"share": list(shares.values())})


def ten_seconds(setting: Setting) -> Figures:
    """Table II: times here."""
    rows: list[Row] = []

    def add(design: str, column: Column, milliseconds: float | None) -> None:
        rows.append({about("design"): design, column: milliseconds})

    for name in ("wavefront", "wavefront-row-end", "wavefront-loaded", "wavefront-rescaled"):
        add(
            f"{name}, kernels one by one",
            gpu(f"{recorded.DEVICES[0]}, ms"),
            recorded.milliseconds(f"pairhmm {name}", DATA),
        )
    times: list[Value] = []
    for name, label in ((ONCE, "once"), (REPEATED, "per copy")):
        for measured in setting.timings(name, Machine.gpu):
            times.append(Value(measured.origin, measured.milliseconds, label))
            add(f"wavefront, {name}", gpu(f"{measured.machine}, ms"), measured.milliseconds)
    program = printed("gpupairhmm2024")["program"]
    origin = Origin(Source.gpu, f"{program['machine']}, the authors' program", program["dated"])
    for label, milliseconds in program["milliseconds"].items():
        times.append(Value(origin, milliseconds, label))
        add(f"the authors' program, {label}", gpu(f"{program['machine']}, ms"), milliseconds)
    for machine in (Machine.core, Machine.cores):
        if one := shipped("ren2018").timing(LOOP, machine):
            add(f"{LOOP}, {machine}: {one.machine}", cpu("ms"), 1e3 * CELLS_OF_10S / one.rate)
    once = "; ".join(f"{value.value:.3g} ms ({value.origin})" for value in times if value.label == "once")
    return Figures(
        {"times": [value for value in times if value.label != "once"]}, [Table("Here", rows)], texts={"once": once}
    )
