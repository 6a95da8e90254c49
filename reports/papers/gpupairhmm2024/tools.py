"""Tables I and II and the headline claims of gpuPairHMM 2024: comparison of tools, with transfers."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import numpy as np
from simtbed import SimtbedError
from simtbed.kernels.pairhmm import FAMILY
from simtbed.kernels.pairhmm.host.generate import generate
from simtbed.kernels.pairhmm.host.partitioned import KERNELS
from simtbed.kernels.pairhmm.host.pipeline import wavefront_sums
from simtbed.kernels.pairhmm.host.problem import Problem

from ...launchers import Runner
from .. import checks, recorded
from ..claims import PRINTED, Claim, Comparison, Origin, at_most, less_than, near
from ..measured import Benchmark, Machine, shipped
from ..paper import Row, Setting, Shown, Table, about, cpu, gpu, paper
from ..ratios import speedups
from ..ren2018.items import CELLS_OF_10S
from ..ren2018.throughput import DATA, LOOP
from .sweep import PEAKS, timing_name

NA12878 = (
    ("gpuPairHMM", "L40S", 0.69), ("Pair-HMM-PP", "L40S", 120.0), ("GATK (original)", "CPU, 1 thread", 65_387.0),
    ("GATK (caching)", "CPU, 1 thread", 6_017.0), ("PairHMM", "CPU, AVX2, 1 thread", 2_008.0), ("Intel GKL",
        "CPU, AVX2, 128 threads", 30.0),
    ("Intel GKL", "CPU, AVX512, 88 threads", 37.0),
)  # fmt: skip
"""Table I: tool, hardware, seconds."""
TEN_SECONDS = (
    ("Java baseline", "CPU", 10_800.0), ("GKL, AVX2, 128 threads", "CPU", 1.58), ("GKL, AVX512, 88 threads", "CPU", 1.74),
    ("Intel Stratix V [11]", "FPGA", 8.3), ("Intel Stratix V [12]", "FPGA", 5.3), ("AMD Xilinx KU3 [13]", "FPGA", 5.0),
    ("Intel Arria 10 [11]", "FPGA", 2.8), ("Intel Arria 10 [12]", "FPGA", 2.6), ("Intel Arria 10 [14]", "FPGA", 2.2),
    ("K40 [10]", "GPU", 24.9), ("V100 [8]", "GPU", 13.8), ("V100 [9]", "GPU", 1.3), ("gpuPairHMM, V100", "GPU", 0.152),
    ("gpuPairHMM, L4", "GPU", 0.118), ("gpuPairHMM, A100", "GPU", 0.096), ("gpuPairHMM, H100", "GPU", 0.050), ("gpuPairHMM, L40S",
        "GPU", 0.039),
)  # fmt: skip
"""Table II in milliseconds. The printed "1,580" is 1.58: its speedup is 6,837."""


TEN_SECONDS_TIMED, MIXED_TIMED = 'the "10s" set, with transfers', "mixed lengths, with transfers"
"""Names of benchmarks."""
EARLIER = 12
"""Designs of TEN_SECONDS before gpuPairHMM."""
NEAREST = ((2, 32), (4, 16), (8, 8), (16, 4))
"""Kernels for 64 bases, the length closest to the average of NA12878."""
WATTS = {"L4": (72, 11.9), "L40S": (350, 7.8)}
"""Thermal design power, and the paper's GCUPS per watt."""


def benchmarks() -> Iterator[Benchmark]:
    """Yield whole workflows on a GPU: partition, transfers and kernels."""
    check = checks.on_gpu(FAMILY, "wavefront", FAMILY.example)
    yield Benchmark(TEN_SECONDS_TIMED, Machine.gpu, partial(_workflow, "10s"), check)
    yield Benchmark(MIXED_TIMED, Machine.gpu, partial(_workflow, "mixed"), check)


def _problem(name: str) -> Problem:
    """Return a set: "10s" is published, "mixed" has the lengths and pairs per batch of NA12878. Raises SimtbedError without data."""
    if name == "mixed":
        return generate(
            7, records=20_000, reads=(5, 15), haplotypes=(3, 8), read_length=(10, 106), haplotype_length=(265, 521)
        )
    if "SIMTBED_DATA" not in os.environ:
        raise SimtbedError(f"{DATA} is needed: SIMTBED_DATA names the folder of published data sets")
    return FAMILY.read(Path(os.environ["SIMTBED_DATA"]) / DATA)


def _workflow(name: str, repeat: int) -> tuple[list[float], float]:
    """Time the partition, the transfers and the kernels of a set, after a warm-up run."""
    problem = _problem(name)
    times = []
    for _ in range(repeat + 1):
        start = time.perf_counter()
        sums = wavefront_sums(problem, KERNELS, Runner("cuda"))
        times.append(1e3 * (time.perf_counter() - start))
        assert np.isfinite(sums).all()
    return times[1:], problem.cells


def variant_calling(setting: Setting) -> Shown:
    """Table I."""
    rows: list[Row] = [
        {about("tool"): tool, about("hardware"): where, paper("s"): seconds, paper("times gpuPairHMM's"): seconds / NA12878[0][2]}
        for tool, where, seconds in NA12878
    ]  # fmt: skip
    return Shown(
        [
            Claim("44 times as fast as Intel GKL with 128 threads on NA12878", [], main=True,
                  remark="The set and an L40S are needed; Intel GKL is not included."),
            Claim("83 % of the kernels' peak for 64 bases, with transfers and mixed lengths", _share_of_peak(setting),
                  remark="On generated pairs with the lengths of NA12878."),
            Claim("the speedups are those of the printed times", [
                near(PRINTED, f"speedup over {tool}, {where}", seconds / NA12878[0][2], speedup, 0.02)
                for (tool, where, seconds), speedup in zip(NA12878[1:], (174, 94_764, 8_720, 2_910, 44, 54), strict=True)]),
        ],
        "The set of 55 million pairs and the other tools are not included.",
        [Table("NA12878, 55,125,211 pairs", rows)],
    )  # fmt: skip


def _share_of_peak(setting: Setting) -> list[Comparison]:
    """Compare the throughput of the whole workflow with the best kernel for 64 bases, on each GPU."""
    compared: dict[Origin, float] = {}
    for kernel in NEAREST:
        for origin, ratio in speedups(setting, Machine.gpu, timing_name(kernel, 64), MIXED_TIMED):
            compared[origin] = min(ratio, compared.get(origin, ratio))
    return [
        near(origin, "share of the best kernel for 64 bases", ratio, 0.83, 0.25) for origin, ratio in compared.items()
    ]


def ten_seconds(setting: Setting) -> Shown:
    """Table II."""
    ours = {
        name: recorded.milliseconds(f"pairhmm {name}", DATA)
        for name in ("wavefront", "wavefront-row-end", "wavefront-loaded", "wavefront-rescaled")
    }
    rows: list[Row] = [
        {about("design"): design, about("on"): where, paper("ms"): each, paper("speedup to Java"): TEN_SECONDS[0][2] / each}
        for design, where, each in TEN_SECONDS
    ]  # fmt: skip
    rows += [
        {about("design"): name, about("on"): "GPU", gpu(f"{recorded.DEVICES[0]}, kernels, ms"): each}
        for name, each in ours.items()
    ]
    timed = [timings[TEN_SECONDS_TIMED] for timings in setting.by_machine([TEN_SECONDS_TIMED], Machine.gpu)]
    rows += [
        {about("design"): "wavefront", about("on"): "GPU", gpu(f"{timing.machine}, with transfers, ms"): timing.milliseconds}
        for timing in timed
    ]  # fmt: skip
    for machine in (Machine.core, Machine.cores):
        if timing := shipped("ren2018").timing(LOOP, machine):
            rows.append({
                about("design"): f"{LOOP}, {machine}: {timing.machine}", about("on"): "CPU",
                cpu("ms"): 1e3 * CELLS_OF_10S / timing.rate,
            })  # fmt: skip
    earlier = min(each for _, _, each in TEN_SECONDS[:EARLIER])
    return Shown(
        [
            Claim("gpuPairHMM outperforms all previous approaches",
                  [less_than(timing.origin, "ms, with transfers", timing.milliseconds, earlier) for timing in timed], main=True,
                  remark=("The host of the workflow is Python here, C++ in the paper." if timed
                          else f"Not measured with transfers; the fastest earlier design has {earlier} ms.")),
            Claim("0.050 ms on an H100, with transfers", [
                *(near(timing.origin, "ms, with transfers", timing.milliseconds, 0.050, 0.25) for timing in timed),
                at_most(recorded.origin(), "ms of the kernels alone, a lower bound", ours["wavefront"], 0.050 * 1.25)],
                remark="The kernels run one after the other here, in distinct streams in the paper."),
            Claim("the speedups over Java are those of the printed times", [
                near(PRINTED, f"speedup, {each} ms", 10_800 / each, speedup, 0.02)
                for each, speedup in ((1.58, 6837), (8.3, 1301), (1.3, 8154), (0.039, 276_923))],
                remark="Commas are read as decimal points; as printed, CPU, FPGA and earlier GPU rows are 1,000 times too large."),
        ],
        "The table's arithmetic holds once its commas are read as decimal points.",
        [Table('The "10s" set, 3,550 pairs', rows)],
        note="The paper's times of gpuPairHMM include transfers.",
    )  # fmt: skip


def headlines(setting: Setting) -> Shown:
    """Abstract and conclusion."""
    on_v100 = next(each for design, _, each in TEN_SECONDS if design == "gpuPairHMM, V100")
    return Shown(
        [
            Claim("at least 8.6, 10.4 and 14.5 times as fast as prior GPU, CPU and FPGA implementations", [], main=True,
                  remark="A V100 and the prior implementations are needed. See Table II."),
            Claim("they are the quotients of Table II on a V100", [
                near(PRINTED, "1.3 ms [9] over 0.152 ms", 1.3 / on_v100, 8.6, 0.01),
                near(PRINTED, "1.58 ms (GKL) over 0.152 ms", 1.58 / on_v100, 10.4, 0.01),
                near(PRINTED, "2.2 ms [14] over 0.152 ms", 2.2 / on_v100, 14.5, 0.01)]),
            Claim("close-to-peak performance on several generations of GPUs", [], remark="See Figure 4."),
            Claim("11.9 GCUPS per watt for an L4, 7.8 for an L40S", [
                near(PRINTED, f"peak of Figure 4 per watt, {name}", 1e3 * PEAKS[name] / watts, claimed, 0.01)
                for name, (watts, claimed) in WATTS.items()]),
        ],
        "The speedups follow from the printed times; the figures per watt do not follow from the printed peaks.",
    )  # fmt: skip
