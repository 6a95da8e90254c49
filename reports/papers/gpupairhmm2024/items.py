"""gpuPairHMM 2024: thread mapping, partitioning, kernel sweep, comparison of tools, headline claims."""

from __future__ import annotations

from collections.abc import Iterator

from simtbed.kernels.pairhmm import SCHMIDT

from ..measured import Benchmark
from ..paper import Item, Paper, Parameter, Setting
from . import layout, sweep, tools


def benchmarks(setting: Setting) -> Iterator[Benchmark]:
    """Yield the kernels of Figure 4 and whole workflows."""
    yield from sweep.benchmarks(setting)
    yield from tools.benchmarks()


PAPER = Paper(
    name="gpupairhmm2024",
    title="gpuPairHMM (Schmidt, Kallenborn, Wichmann, Chacon, Hundt 2024)",
    citation=SCHMIDT,
    device="V100, A100, L4, L40S and H100",
    parameters=(
        Parameter("pairs", 64, 1_500_000, "pairs of a length that are counted"),
        Parameter("reads", 2_000, 1_000_000, "reads that are put into lists"),
        Parameter("lanes", 0, 0, "of the kernels of Figure 4, all of them if 0"),
        Parameter("rows", 0, 0, "the same, rows a lane"),
    ),
    items=(
        Item("Figure 1", "Conceptual layout of the matrix", layout.layout),
        Item("Figure 2", "Mapping of the matrix to a group of threads", layout.mapping),
        Item("Figure 3", "Partitioning of batches by read length", layout.partitioning),
        Item("Figure 4", "Peak performance by length, with the best (p, k)", sweep.sweep),
        Item("Table I", "Runtimes on NA12878", tools.variant_calling),
        Item("Table II", 'Runtimes on the "10s" data set', tools.ten_seconds),
        Item("Headlines", "Claims of the abstract and the conclusion", tools.headlines),
    ),
    benchmarks=benchmarks,
)
