"""Tables and figures of gpuPairHMM 2024: thread mapping, partitioning, kernel sweep, comparison of tools."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cache, partial
from itertools import pairwise

import numpy as np
from simtbed import Counters, Device, devices
from simtbed.kernels import Agreement
from simtbed.kernels.pairhmm import FAMILY, SCHMIDT
from simtbed.kernels.pairhmm.host.generate import equal_lengths
from simtbed.kernels.pairhmm.host.listed import lists_of
from simtbed.kernels.pairhmm.host.partitioned import KERNELS, SELECTABLE
from simtbed.kernels.pairhmm.host.pipeline import MIN_ACCEPTED, SCALE, wavefront_sums
from simtbed.kernels.pairhmm.wavefront_columns import wavefront_columns
from simtbed.language.intrinsics import WARP_SIZE
from simtbed.profiler.events import CLASSES
from simtbed.runtime.engine import Request
from simtbed.runtime.registry import EngineName

from ...bench.pairhmm import PEER, Timer
from ...explanation import choices
from ...launchers import Runner
from ...requests import only_request
from .. import recorded
from ..measured import Benchmark, Check, Machine, shipped
from ..paper import (
    Chart,
    Claim,
    Item,
    Paper,
    Parameter,
    Row,
    Series,
    Setting,
    Shown,
    Size,
    Source,
    Table,
    about,
    cpu,
    emulator,
    gpu,
    model,
    paper,
)
from ..predicted import CAVEAT, Pace, pace
from ..ren2018.items import CELLS_OF_10S
from ..ren2018.throughput import DATA, LOOP, by_loop

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


# ------------------------------------------------------------------ Figures 1 to 3
def layout(setting: Setting) -> Shown:
    """Fig. 1."""
    problem = FAMILY.example()
    runner = Runner(setting.engine, counting=True)
    agreement = FAMILY.compare(FAMILY.solve(problem, "wavefront", runner), FAMILY.oracle(problem))
    stored = sum(
        counters.total("global_store_bytes")
        for program, counters in runner.counted
        if program.kernel.name == wavefront_columns.__name__
    )
    return Shown(
        [
            Claim("a cell depends on its left, upper and upper-left neighbours", agreement.agrees,
                  f"{agreement.compared} likelihoods so computed, {agreement.differing} of them differ from the oracle's"),
            Claim("linear space is enough for scores", stored < 8 * agreement.compared,
                  f"{stored:,} bytes are stored in global memory for {problem.cells:,} cells"),
        ],
        "The recurrences are computed from these neighbours alone; the matrix is not stored.",
    )  # fmt: skip


def mapping(setting: Setting) -> Shown:
    """Figure 2: p = 4 lanes with k = 4 columns each."""
    n = 32
    runner = Runner(setting.engine, counting=True)
    problem = equal_lengths(1, 64, 16, n)
    wavefront_sums(problem, [(4, 4)], runner)
    (counters,) = (c for program, c in runner.counted if program.kernel.name == wavefront_columns.__name__)
    warps = len(problem.pairs[0]) * 4 // 32
    shuffles, loads = (
        counters.at("st.shuffle_up(").total("shuffles") // warps,
        counters.at("word = letters[").total("global_load_requests") // warps,
    )
    steps = shuffles // 4
    memory = counters.total("local_loads") + counters.total("global_store_bytes") // 4 - len(problem.pairs[0])
    rows: list[Row] = [
        {about("of a sub-warp"): "iterations", paper("figure"): n + 4, emulator("counted"): steps},
        {about("of a sub-warp"): "shuffles an iteration: M, I, D and a letter", paper("figure"): 4,
            emulator("counted"): shuffles / steps},
        {about("of a sub-warp"): "loads of letters", paper("figure"): (n + 4) // 4, emulator("counted"): loads},
        {about("of a sub-warp"): "values kept outside registers", paper("figure"): 0, emulator("counted"): memory},
    ]  # fmt: skip
    return Shown(
        [Claim("iterations: a sequence's length and p", steps == n + 4,
            f"{steps} for 16 bases and {n} letters; the paper's text calls it m + p"),
         Claim("edges and letters are passed by shuffles only", shuffles == 4 * steps and memory == 0,
             f"{shuffles / steps:g} an iteration"),
         Claim("char4 loads cut loads of letters to a fourth", loads == (n + 4) // 4, f"{loads} loads for {steps} iterations")],
        "The variant `wavefront` executes the steps of the picture.",
        [Table("16 bases, 32 letters, p = k = 4", rows)],
        note=choices(FAMILY, "wavefront"),
    )  # fmt: skip


def partitioning(setting: Setting) -> Shown:
    """Fig. 3."""
    lengths = np.random.default_rng(3).integers(10, 152, setting.whole("reads"))
    lists = lists_of(lengths, np.ones_like(lengths), KERNELS, Runner(setting.engine))
    entries = lists.entries.numpy()[:, 0].reshape(len(lists.kernels), -1)
    reads = [row[:listed] for row, (listed, _) in zip(entries, lists.totals, strict=True)]
    sizes = [lanes * each for lanes, each in lists.kernels]
    smallest = all(
        (lengths[members] <= size).all() and (lengths[members] > below).all()
        for members, size, below in zip(reads, sizes, [0, *sizes], strict=False)
    )
    rows: list[Row] = [
        {about("kernel (p, k)"): str(kernel), about("longest read"): size, emulator("reads in its list"): len(members)}
        for kernel, size, members in zip(lists.kernels, sizes, reads, strict=True)
        if len(members)
    ]
    return Shown(
        [Claim("for each read the smallest p k is selected", smallest and sum(map(len, reads)) == len(lengths),
            f"true of {len(lengths):,} reads of 10 to 151 bases"),
         Claim("one kernel for each of the 32 combinations reaches 1,024 bases", sizes[-1] == 1024 and len(KERNELS) == 32,
               f"{len(KERNELS)} kernels have {len(sizes)} different sizes, up to {sizes[-1]:,}")],
        "A kernel writes lists of reads, and each kernel with reads receives its list in the GPU's memory; one kernel of each size is "
        "selected.",
        [Table("Lists", rows)],
    )  # fmt: skip


# ------------------------------------------------------------------ Figure 4
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


def _within(ratios: Iterable[float], factor: float) -> bool | None:
    """Whether all ratios differ from 1 by at most the tolerance."""
    values = list(ratios)
    return all(1 / factor <= ratio <= factor for ratio in values) if values else None


@dataclass
class Sweep:
    """TCUPS of all kernels. bounds, predicted: the best kernel by GPU and length. measured: by length."""

    rows: list[Row] = field(default_factory=list)
    bounds: dict[tuple[str, int], float] = field(default_factory=dict)
    predicted: dict[tuple[str, int], float] = field(default_factory=dict)
    measured: dict[int, float] = field(default_factory=dict)


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
            if timing := setting.timing(timing_name(kernel, length), Machine.gpu):
                row = {**row, gpu(f"{timing.machine}, TCUPS"): timing.rate / 1e12}
                times[length] = max(times.get(length, 0.0), timing.rate / 1e12)
            result.rows.append(row)
    return result


def sweep(setting: Setting) -> Shown:
    """Fig. 4."""
    swept = _run_sweep(setting)
    rows, best, modelled, times = swept.rows, swept.bounds, swept.predicted, swept.measured
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
    near = {name: peaked[name] / peak for name, peak in PEAKS.items() if peaked[name]}
    order, ranked = sorted(PEAKS, key=lambda name: -PEAKS[name]), sorted(near, key=lambda name: -peaked[name])
    grows = [best["H100", a] <= 1.02 * best["H100", b] for a, b in pairwise(lengths)]
    within = all(peak <= most[name] for name, peak in PEAKS.items())
    return Shown(
        [
            Claim("performance generally grows with length", sum(grows) > len(grows) / 2 if grows else None,
                  f"the best kernel's counted work per cell shrinks or is unchanged at {sum(grows)} of {len(grows)} steps"),
            Claim("close to the peak of the GPU", None if not times else max(times.values()) > 0.6 * best["H100", max(times)],
                  "needs times of a GPU" if not times else f"{max(times.values()):.2f} TCUPS measured"),
            Claim("peaks of 2.62, 2.37, 0.86, 0.59 and 0.84 TCUPS", _within(near.values(), 3 / 2),
                  "time model: " + ", ".join(f"{name} {ratio:.2f} times" for name, ratio in near.items())),
            Claim("L40S is the fastest, then H100, A100, L4 and V100", ranked == order if near else None,
                  "time model: " + ", ".join(f"{name} {peaked[name]:.2f}" for name in ranked)),
            Claim("the peaks are within what the GPUs can issue", within,
                  ", ".join(f"{name} {peak / most[name]:.0%}" for name, peak in PEAKS.items() if most[name])),
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


# ------------------------------------------------------------------ Tables I and II
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


def variant_calling(setting: Setting) -> Shown:
    """Table I."""
    rows: list[Row] = [
        {about("tool"): tool, about("hardware"): where, paper("s"): seconds, paper("times gpuPairHMM's"): seconds / NA12878[0][2]}
        for tool, where, seconds in NA12878
    ]  # fmt: skip
    return Shown(
        [Claim("44 times as fast as Intel GKL with 128 threads on NA12878", None, "its 55 million pairs and the tools are not available")],
        "The data set is not public, and the other tools are not included.",
        [Table("NA12878, 55,125,211 pairs", rows)],
    )  # fmt: skip


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
        {about("design"): name, about("on"): "GPU", gpu("H200, kernels, ms"): found} for name, found in ours.items()
    ]
    for machine in (Machine.core, Machine.cores):
        if timing := shipped("ren2018").timing(LOOP, machine):
            rows.append({
                about("design"): f"{LOOP}, {machine}: {timing.machine}", about("on"): "CPU",
                cpu("ms"): 1e3 * CELLS_OF_10S / timing.rate,
            })  # fmt: skip
    measured = ours["wavefront"]
    best = min(each for _, where, each in TEN_SECONDS[:12] if where != "")
    return Shown(
        [
            Claim("faster than every earlier design on this set", measured < best if measured else None,
                  f"{measured:.3f} ms of kernels alone, against {best} ms" if measured else "`wavefront` waits for its run on the GPU"),
            Claim("the speedups over Java are those of the printed times", all(
                abs(10_800 / each / said - 1) < 0.02 for each, said in ((1.58, 6837), (8.3, 1301), (1.3, 8154), (0.039, 276_923))),
                  "if decimal commas and points are read as one; as printed, CPU, FPGA and earlier GPU rows are 1,000 times too large"),
        ],
        "The table's arithmetic holds once its commas are read as decimal points; the times need the GPU's run of this variant.",
        [Table('The "10s" set, 3,550 pairs', rows)],
        note="The paper's times of gpuPairHMM include transfers; ours are sums of kernels alone, which here run one after the other.",
    )  # fmt: skip


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
        Item("Figure 1", "Conceptual layout of the matrix", layout),
        Item("Figure 2", "Mapping of the matrix to a group of threads", mapping),
        Item("Figure 3", "Partitioning of batches by read length", partitioning),
        Item("Figure 4", "Peak performance by length, with the best (p, k)", sweep),
        Item("Table I", "Runtimes on NA12878", variant_calling),
        Item("Table II", 'Runtimes on the "10s" data set', ten_seconds),
    ),
    benchmarks=benchmarks,
)
