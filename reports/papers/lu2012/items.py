"""Lu 2012, item by item: its tables and figures beside what the emulator counts by the rules of its card."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial

import numpy as np
from simtbed.kernels.sfs import LU
from simtbed.kernels.sfs.host import pipeline
from simtbed.kernels.sfs.host.generate import generate
from simtbed.kernels.sfs.host.pipeline_plain import Merges, merged, summing_to_one
from simtbed.kernels.sfs.host.problem import Floats
from simtbed.kernels.sfs.reduction_shared import shared_bytes
from simtbed.machine.occupancy import occupancy
from simtbed.oracles import sfs_loop

from ...launchers import Runner
from ..measured import Machine, Timed
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
    Source,
    Table,
    about,
    cpu,
    emulator,
    gpu,
    model,
    paper,
)  # fmt: skip
from . import algorithms
from .counting import CARD, Count, blocks_of, counted, normalisations, vectors

FEWER = 8
"""Of the sites, where a kernel has a warp a merge and need not fill a warp with sites."""
BLOCKS = (16, 64, 128, 256, 736)
"""Coefficients of b in shared memory: Fig. 10's 504 bytes a warp to 12,024."""
LOOPS: dict[str, Callable[[Floats], Floats]] = {
    "iterative": sfs_loop.iterative,
    "reduction": partial(sfs_loop.reduced, skip=False),
    "reduction, zeros skipped": partial(sfs_loop.reduced, skip=True),
}
"""GAMA-CPU: plain loops, compiled."""
KERNELS = {
    "iterative": "iterative", "reduction in global memory": "reduction-plain", "reduction": "reduction-shared-plain",
    "reduction, zeros skipped": "reduction-shared-skip-plain",
}  # fmt: skip
ON_CPU = "needs times of a CPU: simtbed report lu2012 --measure FILE"
MODEL = (
    "Predicted: the least time of the resource that is used most (bandwidth of global memory with every access going there, "
    "shared memory, instruction issue, fp64), from counts by the rules of a C2070 whose loads go past L1. Latency and the "
    "chip's L2 cache are not in it."
)


# ------------------------------------------------------------------ what is timed
def timed(setting: Setting) -> Iterator[Timed]:
    """GAMA-CPU on one core and on all; GAMA's kernels on a GPU; normalisation on one core."""
    n, sites = setting.whole("individuals"), setting.whole("sites")
    for name, loop in LOOPS.items():
        yield Timed(name, Machine.core, partial(_loop, loop, n, sites))
        yield Timed(name, Machine.cores, partial(_loop, partial(sfs_loop.on_all_cores, loop), n, sites))
    for name, variant in KERNELS.items():
        yield Timed(name, Machine.gpu, partial(_kernels, variant, n, sites))
    for name, normalise in NORMALISING.items():
        yield Timed(name, Machine.core, partial(_normalise, normalise, n, sites))


Normalise = Callable[[Floats, Floats, Floats, float], Floats]
NORMALISING: dict[str, Normalise] = {
    "logarithms": sfs_loop.normalised,
    "long doubles": sfs_loop.normalised_in_long_doubles,
}


def _rounds(action: Callable[[], object], repeat: int) -> list[float]:
    action()  # compiles
    taken = []
    for _ in range(repeat):
        begin = time.perf_counter()
        action()
        taken.append(1e3 * (time.perf_counter() - begin))
    return taken


def _loop(loop: Callable[[Floats], Floats], n: int, sites: int, repeat: int) -> tuple[list[float], float]:
    divided = np.ascontiguousarray(summing_to_one(vectors(n, sites))[0])
    return _rounds(lambda: loop(divided), repeat), sites


def _kernels(variant: str, n: int, sites: int, repeat: int) -> tuple[list[float], float]:
    taken = []
    for _ in range(repeat + 1):
        runner = Runner("cuda")
        pipeline.VARIANTS[variant](vectors(n, sites), runner)
        taken.append(runner.milliseconds or 0.0)
    return taken[1:], sites


def _normalise(normalise: Normalise, n: int, sites: int, repeat: int) -> tuple[list[float], float]:
    problem = generate(3, sites, n, "gama")
    h, t, fixed = sfs_loop.iterative(problem.vectors()[0]), problem.vectors()[1], problem.fixed()
    return _rounds(lambda: normalise(h, t, fixed, problem.variable), repeat), sites


def _faster(
    setting: Setting, machine: Machine, slow: str, fast: str, said: float, other: Machine | None = None
) -> tuple[bool | None, str]:
    """Whether `fast` is about `said` times as fast as `slow` (on `other`), by what machines measured."""
    one, two = setting.timing(slow, other or machine), setting.timing(fast, machine)
    if one is None or two is None:
        return None, ON_CPU if machine is not Machine.gpu else "needs times of a GPU"
    ratio = two.rate / one.rate
    return _about(ratio, said), f"{ratio:.2f} times: {one.machine} and {two.machine}"


def _about(found: float, said: float) -> bool:
    """Within a quarter of what the paper says."""
    return said / 1.25 <= found <= said * 1.25


# ------------------------------------------------------------------ Figures 7, 8 and 12
def _sites(setting: Setting, variant: str) -> int:
    return setting.whole("sites") if variant == "iterative" else min(FEWER, setting.whole("sites"))


def _count(setting: Setting, variant: str) -> Count:
    return counted(variant, setting.whole("individuals"), _sites(setting, variant), setting.engine)


def _construction(setting: Setting, names: Sequence[str]) -> tuple[list[Row], Chart]:
    rows: list[Row] = []
    for name in names:
        count = _count(setting, KERNELS[name])
        row: Row = {
            about("on the GPU"): name, emulator("KB of global memory a site"): _traffic(count),
            emulator("warp instructions a site"): round(count.a_site("warp_instructions")),
            model("C2070, microseconds a site"): round(count.least, 1), model("bound by"): count.bound,
        }  # fmt: skip
        for machine, column in ((Machine.gpu, gpu), (Machine.core, cpu)):
            if timing := setting.timing(name, machine):
                row = {**row, column(f"{timing.machine}, microseconds a site"): round(1e6 / timing.rate, 2)}
        rows.append(row)
    points = [(name, _count(setting, KERNELS[name]).least) for name in names]
    return rows, Chart(
        "SFS construction on the GPU, predicted", "", "microseconds a site", [Series("C2070", Source.model, points)], bars=True
    )  # fmt: skip


def _traffic(count: Count) -> float:
    sectors = count.a_site("global_load_sectors") + count.a_site("global_store_sectors")
    return round(sectors * count.counters.sector / 1e3, 1)


def algorithm_on_both(setting: Setting) -> Shown:
    """Figure 7."""
    names = ("iterative", "reduction in global memory", "reduction")
    rows, plot = _construction(setting, names)
    slow, whole, shared = (_count(setting, KERNELS[name]).least for name in names)
    instructions = [_count(setting, KERNELS[name]).a_site("warp_instructions") for name in names]
    return Shown(
        [
            Claim("(a) on the CPU the reduction is slightly faster", *_faster(setting, Machine.core, "iterative", "reduction", 1.2)),
            Claim("(b) on the GPU the reduction is about 3 times as fast",
                  _about(slow / shared, 3), f"{slow / shared:.1f} times, predicted"),
            Claim("(b) without shared memory it is only 24 % faster", _about(slow / whole, 1.24),
                  f"{slow / whole:.2f} times, predicted: each product loads and stores its sum, where Algorithm 1 does so for three"),
            Claim("it is shared memory that makes the reduction fast", whole / shared > 2, f"it alone brings {whole / shared:.1f} times"),
        ],
        "Algorithm 1 as printed waits for global memory, the reduction for instructions: three times as fast although it has "
        f"{instructions[2] / instructions[0]:.1f} times the instructions; without shared memory it is not faster by these counts.",
        [Table(_what(setting), rows)],
        [plot],
        MODEL,
    )  # fmt: skip


def _what(setting: Setting) -> str:
    return f"N = {setting.whole('individuals'):,}, deep sequencing"


def nested_loop(setting: Setting) -> Shown:
    """Figure 8."""
    names = ("reduction", "reduction, zeros skipped")
    rows, plot = _construction(setting, names)
    plain, skip = (_count(setting, KERNELS[name]) for name in names)
    saved = _products(plain) / _products(skip)
    return Shown(
        [
            Claim("(a) on the CPU skipping is about 5 times as fast", *_faster(setting, Machine.core, *names, 5)),
            Claim("(a) which is the work that is saved", _about(saved, 5), f"{saved:.1f} times fewer products on these data"),
            Claim("(b) on the GPU about twice as fast",
                  _about(plain.least / skip.least, 2), f"{plain.least / skip.least:.1f} times, predicted"),
            Claim("the GPU gains less than the work that is saved", plain.least / skip.least < saved,
                  f"{plain.least / skip.least:.1f} against {saved:.1f} times"),
        ],
        "What a GPU gains is the paper's; how much work can be left out hangs on the zeros of the data, which are simulated here.",
        [Table(_what(setting), rows)],
        [plot],
        MODEL,
    )  # fmt: skip


def _products(count: Count) -> float:
    """Instructions of lanes that add products, a site: as many a product."""
    return count.counters.at("window[at + t] = st.fma(").total("thread_instructions") / count.sites


def counters_of_skipping(setting: Setting) -> Shown:
    """Figure 9."""
    rows: list[Row] = []
    change: dict[int, float] = {}
    more = True
    sizes = sorted({max(2, setting.whole("individuals") // 8), setting.whole("individuals")})
    for n in sizes:
        sites = min(FEWER, setting.whole("sites"))
        plain, skip = (
            counted(KERNELS[name], n, sites, setting.engine) for name in ("reduction", "reduction, zeros skipped")
        )
        change[n] = skip.a_site("warp_instructions") / plain.a_site("warp_instructions") - 1
        more = more and skip.a_site("divergent_branches") > plain.a_site("divergent_branches")
        for name, count in (("without", plain), ("with", skip)):
            rows.append({
                about("individuals"): n, about("nested-loop optimization"): name,
                emulator("warp instructions a site"): round(count.a_site("warp_instructions")),
                emulator("divergent branches a site"): round(count.a_site("divergent_branches")),
                emulator("instructions against without"): f"{change[n]:+.0%}" if count is skip else None,
            })  # fmt: skip
    last = change[sizes[-1]]
    return Shown(
        [
            Claim("(a) the nested-loop optimization lowers the instructions significantly", last < -0.3,
                  ", ".join(f"{change[n]:+.0%} at N = {n:,}" for n in sizes)),
            Claim("(b) it adds divergent branches", more, "at each N"),
        ],
        "Both counters move as the figure says; the paper prints no numbers. The more individuals, the more is left out.",
        [Table("The reduction in shared memory", rows)],
        [Chart("instructions", "individuals", "warp instructions a site", [
            Series(name, Source.emulator, [(str(row[about("individuals")]), float(row[emulator("warp instructions a site")] or 0))
                                           for row in rows if row[about("nested-loop optimization")] == name])
            for name in ("without", "with")], bars=True)],
    )  # fmt: skip


def buffers(setting: Setting) -> Shown:
    """Figure 10."""
    n, sites = setting.whole("individuals"), min(4, setting.whole("sites"))
    rows: list[Row] = []
    found: dict[int, tuple[float, float]] = {}
    for block in BLOCKS:
        size = shared_bytes(32, block)
        share = occupancy(CARD, pipeline.THREADS, 0, size * pipeline.THREADS // 32).percent
        count = blocks_of(block, n, sites, setting.engine)
        found[size] = count.least, share
        rows.append({
            about("shared bytes a warp"): size, emulator("occupancy, %"): share, emulator("KB of global memory a site"): _traffic(count),
            emulator("warp instructions a site"): round(count.a_site("warp_instructions")),
            model("C2070, microseconds a site"): round(count.least, 1),
        })  # fmt: skip
    kept = {share for size, (_, share) in found.items() if size <= 2296}
    falling = [share for size, (_, share) in found.items() if size >= 2296]
    lower = [least for size, (least, _) in found.items() if size <= 2296]
    return Shown(
        [
            Claim("(b) occupancy is unchanged from 504 to 2,296 bytes", len(kept) == 1, f"{kept.pop():.1f} %"),
            Claim("(b) and falls beyond", sorted(falling, reverse=True) == falling and falling[-1] < falling[0],
                  f"to {falling[-1]:.1f} % at {max(found):,} bytes"),
            Claim("(a) up to there a larger buffer is faster",
                  sorted(lower, reverse=True) == lower, f"{lower[0] / lower[-1]:.2f} times, predicted"),
            Claim("(a) the time is least at about 2 KB",
                  None, "beyond, what falls is occupancy, and with it the latency that can be hidden"),
        ],
        "The occupancies are the paper's to the byte where they change, and the traffic falls as the buffer grows.",
        [Table(f"N = {n:,}", rows)],
        [Chart("occupancy", "shared bytes a warp", "%",
         [Series("C2070", Source.emulator, [(size, share) for size, (_, share) in found.items()])])],
        MODEL,
    )  # fmt: skip


def order(setting: Setting) -> Shown:
    """Figure 11."""
    n, sites = setting.whole("individuals"), min(4, setting.whole("sites"))
    names = ("reduction-shared", "reduction-shared-skip", "reduction-shared-block", "reduction-shared-skip-block")
    counts = {name: counted(name, n, sites, setting.engine) for name in names}
    rows: list[Row] = [
        {
            about("variant"): name, emulator("barriers a site"): round(count.a_site("barriers")),
            emulator("warp instructions a site"): round(count.a_site("warp_instructions")),
            model("C2070, microseconds a site"): round(count.least, 1),
        }
        for name, count in counts.items()
    ]  # fmt: skip
    plain, skip, block, _ = (counts[name].least for name in names)
    return Shown(
        [
            Claim("warp order is about 2.5 times as fast as explicit synchronization", _about(block / skip, 2.5),
                  f"{block / skip:.1f} times, predicted, what a barrier waits for not counted"),
            Claim("explicit synchronization is worse than no nested-loop optimization",
                  block > plain, f"{block:.1f} against {plain:.1f} microseconds"),
            Claim("without warp order there is no benefit from skipping", counts[names[3]].least > 0.9 * block,
                  f"{block:.1f} to {counts[names[3]].least:.1f} microseconds: the barrier stays, the products are left out"),
        ],
        "The barrier in the inner loop costs what the paper says; what skipping still saves under it is not nothing.",
        [Table(f"N = {n:,}; merges that keep exponents", rows)],
        note=MODEL,
    )  # fmt: skip


def all_constructions(setting: Setting) -> Shown:
    """Figure 12."""
    names = ("iterative", "reduction, zeros skipped")
    rows, plot = _construction(setting, names)
    slow, fast = (_count(setting, KERNELS[name]).least for name in names)
    return Shown(
        [
            Claim("the GPU is about 7 times its CPU with the iterative update",
                  *_faster(setting, Machine.gpu, "iterative", "iterative", 7, Machine.core)),
            Claim("... and about 10 times with the reduction",
                  *_faster(setting, Machine.gpu, "reduction, zeros skipped", "reduction, zeros skipped", 10, Machine.core)),
            Claim("(a) on the CPU the reduction is about 5.7 times as fast", *_faster(setting, Machine.core, *names, 5.7)),
            Claim("(b) on the GPU about 9 times", _about(slow / fast, 9), f"{slow / fast:.1f} times, predicted"),
            Claim("together about 60 times", *_faster(setting, Machine.gpu, "iterative", names[1], 60, Machine.core)),
        ],
        "On the paper's card the best reduction beats Algorithm 1 by about what the paper says; other speedups are of its machines.",
        [Table(_what(setting), rows)],
        [plot],
        MODEL,
    )  # fmt: skip


# ------------------------------------------------------------------ Table 1, Figures 13 and 14
def implementations(setting: Setting) -> Shown:
    """Table 1."""
    names = ("realSFS (improved)", "GAMA-CPU", "GAMA")
    ours = ("sfs_loop.iterative", "sfs_loop.reduced, one core or all", "reduction-shared-skip-plain")
    kinds = (("CPU", "no", "iterative"), ("CPU", "yes", "reduction"), ("GPU", "", "reduction"))
    rows: list[Row] = [
        {about("implementation"): name, paper("runs on"): where, paper("multi-threaded"): threads, paper("SFS construction"): how,
         emulator("here"): here}
        for name, here, (where, threads, how) in zip(names, ours, kinds, strict=True)
    ]  # fmt: skip
    divided = summing_to_one(vectors(64, 4))[0]
    same = all(np.allclose(loop(divided), sfs_loop.iterative(divided), rtol=1e-9, atol=0) for loop in LOOPS.values())
    kernel = merged(divided, Runner(setting.engine), Merges(128, skip=True)).numpy().reshape(4, -1)[:, :129]
    return Shown(
        [Claim("three implementations of one computation", same and np.allclose(kernel, sfs_loop.iterative(divided), rtol=1e-9, atol=0),
               "the loops and the kernel give the same products to 1e-9")],
        "All three are here, the first two as compiled plain loops.",
        [Table("Implementations", rows)],
    )  # fmt: skip


def precision(setting: Setting) -> Shown:
    """Figure 13."""
    n = setting.whole("individuals")
    counts = normalisations(n, min(FEWER, setting.whole("sites")), setting.engine)
    rows: list[Row] = [
        {
            about("normalisation"): name, emulator("warp instructions a site"): round(count.a_site("warp_instructions")),
            model("C2070, microseconds a site"): round(count.least, 2), model("bound by"): count.bound,
        }
        for name, count in counts.items()
    ]  # fmt: skip
    ratio = counts["extended precision"].least / counts["logarithms"].least
    return Shown(
        [
            Claim("(a) on the CPU logarithms are about 3 times as fast as extended precision",
                  *_faster(setting, Machine.core, "long doubles", "logarithms", 3)),
            Claim("(b) on the GPU about 4.6 times",
                  _about(ratio, 4.6), f"{ratio:.1f} times, predicted, against double-doubles with an exponent"),
        ],
        "Double-doubles are bound by fp64, logarithms by global memory. The paper's CPU has a library of arbitrary precision (ARPREC) "
        "where long doubles of 80 bits hold the range, too.",
        [Table(f"N = {n:,}", rows)],
        note=MODEL + " A logarithm or exponential counts as one instruction.",
    )  # fmt: skip


def overall(setting: Setting) -> Shown:
    """Figure 14."""
    n = setting.whole("individuals")
    count, normal = (
        _count(setting, "reduction-shared-skip-plain"),
        normalisations(n, min(FEWER, setting.whole("sites")), setting.engine),
    )
    construction, normalising = count.least, normal["logarithms"].least
    rows: list[Row] = [
        {about("component"): "data parsing", emulator("here"): "`kernels/sfs/host/files*.py`, on the CPU"},
        {about("component"): "SFS construction", emulator("here"): "`reduction-shared-skip-plain`",
         model("C2070, microseconds a site"): round(construction, 1)},
        {about("component"): "SFS normalization", emulator("here"): "`normalise`",
         model("C2070, microseconds a site"): round(normalising, 2)},
        {about("component"): "post-processing", emulator("here"): "`kernels/sfs/host/spectrum.py`, on the CPU"},
    ]  # fmt: skip
    return Shown(
        [
            Claim("SFS construction dominates",
                  construction > 5 * normalising, f"{construction / normalising:.0f} times normalisation, predicted"),
            Claim("(a) GAMA is 15 to 60 times realSFS, by component",
                  *_faster(setting, Machine.gpu, "iterative", "reduction, zeros skipped", 60, Machine.core)),
            Claim("(b) GAMA is about 3.5 times GAMA-CPU in 16 threads",
                  *_faster(setting, Machine.gpu, "reduction, zeros skipped", "reduction, zeros skipped", 3.5, Machine.cores)),
            Claim("(b) GAMA is about 47 times realSFS", None, "realSFS as a whole, and the paper's sites, are not here"),
        ],
        "The kernels' components are here and what dominates is; speedups over the paper's CPU need its machine.",
        [Table(f"N = {n:,}", rows)],
        note=MODEL,
    )  # fmt: skip


PAPER = Paper(
    name="lu2012",
    title="Accelerating minor allele frequency computation (GAMA; Lu, Zhao, Luo, Wang 2012)",
    citation=LU,
    device="C2070",
    parameters=(
        Parameter("individuals", 1024, 1024, "individuals a site"),
        Parameter("sites", 32, 2_674_654, "sites that are counted"),
    ),
    items=(
        Item("Algorithm 1", "The iterative-update SFS construction", algorithms.iterative),
        Item("Figure 1", "The super-band matrix of an individual", algorithms.matrix),
        Item("Figure 2", "Multiplication of two super-band matrices", algorithms.multiplication),
        Item("Figure 3", "The first column of a product", algorithms.first_column),
        Item("Algorithm 2", "The operator of the reduction, and its complexity", algorithms.reduction),
        Item("Figure 4", "The primitive binaryMerge", algorithms.binary_merge),
        Item("Figure 5", "Shared memory of one operator", algorithms.shared_memory),
        Item("Figure 6", "Write conflict without synchronization", algorithms.write_conflict),
        Item("Algorithm 3", "SFS normalization, and its underflow", algorithms.underflow),
        Item("Algorithms 4 and 5", "Normalization with logarithms", algorithms.logarithms),
        Item("Table 1", "The implementations", implementations),
        Item("Figure 7", "Iterative update and reduction, without the nested-loop optimization", algorithm_on_both),
        Item("Figure 8", "With and without the nested-loop optimization", nested_loop),
        Item("Figure 9", "Instructions and divergent branches", counters_of_skipping),
        Item("Figure 10", "Shared memory a warp: time and occupancy", buffers),
        Item("Figure 11", "Warp order and explicit synchronization", order),
        Item("Figure 12", "All constructions on CPU and GPU", all_constructions),
        Item("Figure 13", "Extended precision and logarithms", precision),
        Item("Figure 14", "Components, and the whole", overall),
    ),
    timed=timed,
)
