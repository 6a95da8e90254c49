"""Tables and figures of Lu 2012, compared with counters by the rules of a C2070."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from simtbed.kernels.sfs import LU
from simtbed.kernels.sfs.host import pipeline
from simtbed.kernels.sfs.host.pipeline_plain import Merges, merged, summing_to_one
from simtbed.kernels.sfs.reduction_shared import shared_bytes
from simtbed.machine.occupancy import occupancy
from simtbed.oracles import sfs_loop

from ...launchers import Runner
from ..measured import Machine
from ..paper import (
    Cell,
    Chart,
    Claim,
    Column,
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
from ..predicted import CAVEAT, settled
from . import algorithms
from .counting import GPU, Count, Modelled, blocks_of, counted, modelled, modelled_blocks, normalisations, vectors
from .timing import KERNELS, LOOPS, benchmarks

FEWER = 8
"""Number of sites for kernels with one warp per merge."""
BLOCKS = (16, 64, 128, 256, 736)
"""Coefficients of b in shared memory; 504 to 12,024 bytes per warp in Fig. 10."""
ON_CPU = "needs times of a CPU: simtbed report lu2012 --measure FILE"
MODELLED = 256
"""Largest number of individuals with a prediction for Algorithm 1."""
MODEL = (
    "Lower bound: the time of the most used resource (global memory bandwidth for every access, "
    "shared memory, instruction issue, fp64), from counts by the rules of a C2070 with loads that bypass L1. "
    + CAVEAT
    + f" Algorithm 1 is "
    f"modelled for {MODELLED} individuals, and its time is scaled with their square."
)


def _faster(
    setting: Setting, machine: Machine, slow: str, fast: str, claimed: float, other: Machine | None = None
) -> tuple[bool | None, str]:
    """Whether `fast` is about `claimed` times as fast as `slow` (on `other`), by measured times; with the evidence."""
    baseline, timing = setting.timing(slow, other or machine), setting.timing(fast, machine)
    if baseline is None or timing is None:
        return None, ON_CPU if machine is not Machine.gpu else ""
    ratio = timing.rate / baseline.rate
    return _about(ratio, claimed), f"{ratio:.2f} times: {baseline.machine} and {timing.machine}"


def _on_other_machines(setting: Setting, slow: str, fast: str, on: Machine) -> tuple[bool | None, str]:
    """Whether a GPU is faster than a CPU on today's machines. The speedup on the machines of the paper remains undetermined."""
    holds, evidence = _faster(setting, Machine.gpu, slow, fast, 1.0, on)
    if holds is None:
        return None, "needs times of a GPU and of a CPU"
    cpu, gpu = setting.timing(slow, on), setting.timing(fast, Machine.gpu)
    return None if cpu and gpu and gpu.rate > cpu.rate else False, f"the paper's machines; today's: {evidence}"


def _about(ratio: float, claimed: float) -> bool:
    """Whether a value is within a quarter of the claimed value."""
    return claimed / 1.25 <= ratio <= claimed * 1.25


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
            about("on the GPU"): name, emulator("KB of global memory per site"): _traffic(count),
            emulator("warp instructions per site"): round(count.a_site("warp_instructions")),
            **_predicted(_model(setting, KERNELS[name])), emulator("at least"): round(count.least, 1), emulator("for"): count.bound,
        }  # fmt: skip
        for machine, column in ((Machine.gpu, gpu), (Machine.core, cpu)):
            if timing := setting.timing(name, machine):
                row = {**row, column(f"{timing.machine}, microseconds per site"): round(1e6 / timing.rate, 2)}
        rows.append(row)
    points = [(name, _model(setting, KERNELS[name]).time) for name in names]
    return rows, Chart(
        "SFS construction on the GPU, predicted", "", "microseconds per site", [Series("C2070", Source.model, points)], bars=True
    )  # fmt: skip


def _model(setting: Setting, variant: str) -> Modelled:
    """Predict the time per site. Algorithm 1 is predicted for fewer individuals and scaled: its work is quadratic, and its rows
    exceed every cache."""
    n = setting.whole("individuals")
    if variant != "iterative" or n <= MODELLED:
        return modelled(variant, n, setting.engine)
    small, factor = modelled(variant, MODELLED, setting.engine), (n / MODELLED) ** 2
    return Modelled(small.time * factor, small.low * factor, small.high * factor, small.bound)


def _predicted(prediction: Modelled) -> dict[Column, Cell]:
    return {
        model("C2070, microseconds per site"): round(prediction.time, 1), model("from"): round(prediction.low, 1),
        model("to"): round(prediction.high, 1), model("bound by"): prediction.bound,
    }  # fmt: skip


def _both(setting: Setting, text: str, slow: str, fast: str, claimed: float) -> Claim:
    """Return the claim on the ratio of two kernels, by the time model and by measured times."""
    ratio = _model(setting, KERNELS[slow]).time / _model(setting, KERNELS[fast]).time
    return settled(
        text, (_about(ratio, claimed), f"{ratio:.2f} times"), _faster(setting, Machine.gpu, slow, fast, claimed)
    )


def _first(setting: Setting, slow: str, fast: str) -> tuple[bool, str]:
    """Whether one kernel is faster than another, by the time model and by measured times; with the sources."""
    slower, faster = (setting.timing(name, Machine.gpu) for name in (slow, fast))
    results = [_model(setting, KERNELS[fast]).time < _model(setting, KERNELS[slow]).time]
    if slower and faster:
        results.append(faster.rate > slower.rate)
    return all(results), "by the time model" + (f" and on an {faster.machine}" if faster and slower else "")


def _traffic(count: Count) -> float:
    sectors = count.a_site("global_load_sectors") + count.a_site("global_store_sectors")
    return round(sectors * count.counters.sector / 1e3, 1)


def algorithm_on_both(setting: Setting) -> Shown:
    """Figure 7."""
    names = ("iterative", "reduction in global memory", "reduction")
    rows, plot = _construction(setting, names)
    slow, whole, shared = (_model(setting, KERNELS[name]).time for name in names)
    least = [_count(setting, KERNELS[name]).least for name in names]
    instructions = [_count(setting, KERNELS[name]).a_site("warp_instructions") for name in names]
    return Shown(
        [
            Claim("(a) on the CPU the reduction is slightly faster", *_faster(setting, Machine.core, "iterative", "reduction", 1.2)),
            _both(setting, "(b) on the GPU the reduction is about 3 times as fast", *names[::2], 3),
            _both(setting, "(b) without shared memory it is only 24 % faster", *names[:2], 1.24),
            Claim("shared memory makes the reduction fast", whole / shared > 1.5 and slow / whole < 1.24,
                  f"time model: a factor of {whole / shared:.1f}"),
        ],
        "Algorithm 1 as printed waits for global memory, the reduction for instructions: faster although it has "
        f"{instructions[2] / instructions[0]:.1f} times the instructions. If Algorithm 1 waited for memory only, the ratio would be "
        f"{least[0] / least[2]:.1f} times; without shared memory the reduction is not faster, for each product loads and stores its sum.",
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
    gained = _model(setting, KERNELS[names[0]]).time / _model(setting, KERNELS[names[1]]).time
    return Shown(
        [
            Claim("(a) on the CPU skipping is about 5 times as fast", *_faster(setting, Machine.core, *names, 5)),
            Claim("(a) the speedup equals the saved work", _about(saved, 5), f"{saved:.1f} times fewer products on these data"),
            _both(setting, "(b) on the GPU about twice as fast", *names, 2),
            Claim("the GPU gains less than the saved work", gained < saved, f"time model: {gained:.1f} against {saved:.1f} times"),
        ],
        "The gain on a GPU is that of the paper; the skipped work depends on the zeros of the data, which are simulated here.",
        [Table(_what(setting), rows)],
        [plot],
        MODEL,
    )  # fmt: skip


def _products(count: Count) -> float:
    """Return the thread instructions of the products per site."""
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
                emulator("warp instructions per site"): round(count.a_site("warp_instructions")),
                emulator("divergent branches per site"): round(count.a_site("divergent_branches")),
                emulator("instructions against without"): f"{change[n]:+.0%}" if count is skip else None,
            })  # fmt: skip
    last = change[sizes[-1]]
    return Shown(
        [
            Claim("(a) the nested-loop optimization lowers the instructions significantly", last < -0.3,
                  ", ".join(f"{change[n]:+.0%} at N = {n:,}" for n in sizes)),
            Claim("(b) it adds divergent branches", more, "at each N"),
        ],
        "Both counters change as in the figure; the paper prints no numbers. More products are skipped for more individuals.",
        [Table("The reduction in shared memory", rows)],
        [Chart("instructions", "individuals", "warp instructions per site", [
            Series(name, Source.emulator, [(str(row[about("individuals")]), float(row[emulator("warp instructions per site")] or 0))
                                           for row in rows if row[about("nested-loop optimization")] == name])
            for name in ("without", "with")], bars=True)],
    )  # fmt: skip


def buffers(setting: Setting) -> Shown:
    """Figure 10."""
    n, sites = setting.whole("individuals"), min(4, setting.whole("sites"))
    rows: list[Row] = []
    times: dict[int, tuple[float, float]] = {}
    for block in BLOCKS:
        size = shared_bytes(32, block)
        share = occupancy(GPU, pipeline.THREADS, 0, size * pipeline.THREADS // 32).percent
        count = blocks_of(block, n, sites, setting.engine)
        prediction = modelled_blocks(block, n, setting.engine)
        times[size] = prediction.time, share
        rows.append({
            about("shared bytes per warp"): size, emulator("occupancy, %"): share,
            emulator("KB of global memory per site"): _traffic(count),
            emulator("warp instructions per site"): round(count.a_site("warp_instructions")), **_predicted(prediction),
        })  # fmt: skip
    best = min(times, key=lambda size: times[size][0])
    constant = {share for size, (_, share) in times.items() if size <= 2296}
    falling = [share for size, (_, share) in times.items() if size >= 2296]
    lower = [least for size, (least, _) in times.items() if size <= 2296]
    return Shown(
        [
            Claim("(b) occupancy is unchanged from 504 to 2,296 bytes", len(constant) == 1, f"{constant.pop():.1f} %"),
            Claim("(b) and falls beyond", sorted(falling, reverse=True) == falling and falling[-1] < falling[0],
                  f"to {falling[-1]:.1f} % at {max(times):,} bytes"),
            Claim("(a) a larger buffer is faster up to 2,296 bytes",
                  sorted(lower, reverse=True) == lower, f"time model: {lower[0] / lower[-1]:.2f} times"),
            Claim("(a) the time is least at about 2 KB", 1500 < best < 2500,
                  f"time model: at {best:,} bytes; beyond, occupancy falls, and with it the latency that can be hidden"),
        ],
        "The occupancies are the paper's to the byte where they change; traffic falls as the buffer grows, until too few warps remain.",
        [Table(f"N = {n:,}", rows)],
        [Chart("elapsed time, predicted", "shared bytes per warp", "microseconds per site",
         [Series("C2070", Source.model, [(size, time) for size, (time, _) in times.items()])]),
         Chart("occupancy", "shared bytes per warp", "%",
         [Series("C2070", Source.emulator, [(size, share) for size, (_, share) in times.items()])])],
        MODEL,
    )  # fmt: skip


def order(setting: Setting) -> Shown:
    """Figure 11."""
    n, sites = setting.whole("individuals"), min(4, setting.whole("sites"))
    names = ("reduction-shared", "reduction-shared-skip", "reduction-shared-block", "reduction-shared-skip-block")
    counts = {name: counted(name, n, sites, setting.engine) for name in names}
    times = {name: modelled(name, n, setting.engine) for name in names}
    rows: list[Row] = [
        {
            about("variant"): name, emulator("barriers per site"): round(count.a_site("barriers")),
            emulator("warp instructions per site"): round(count.a_site("warp_instructions")),
            **_predicted(times[name]),
        }
        for name, count in counts.items()
    ]  # fmt: skip
    plain, skip, block, both = (times[name].time for name in names)
    return Shown(
        [
            Claim("warp order is about 2.5 times as fast as explicit synchronization", _about(block / skip, 2.5),
                  f"time model: {block / skip:.1f} times"),
            Claim("explicit synchronization is worse than no nested-loop optimization",
                  block > plain, f"time model: {block:.1f} against {plain:.1f} microseconds"),
            Claim("without warp order there is no benefit from skipping", both > 0.9 * block,
                  f"time model: {block:.1f} to {both:.1f} microseconds: the barrier remains, the products are skipped"),
        ],
        "The cost of the barrier in the inner loop is that of the paper; skipping still saves time under it.",
        [Table(f"N = {n:,}; merges that keep exponents", rows)],
        [Chart("synchronization, predicted", "", "microseconds per site",
         [Series("C2070", Source.model, [(name, one.time) for name, one in times.items()])], bars=True)],
        note=MODEL,
    )  # fmt: skip


def all_constructions(setting: Setting) -> Shown:
    """Figure 12."""
    names = ("iterative", "reduction, zeros skipped")
    rows, plot = _construction(setting, names)
    least = [_count(setting, KERNELS[name]).least for name in names]
    return Shown(
        [
            Claim("the GPU is about 7 times its CPU with the iterative update",
                  *_on_other_machines(setting, "iterative", "iterative", Machine.core)),
            Claim("... and about 10 times with the reduction",
                  *_on_other_machines(setting, "reduction, zeros skipped", "reduction, zeros skipped", Machine.core)),
            Claim("(a) on the CPU the reduction is about 5.7 times as fast", *_faster(setting, Machine.core, *names, 5.7)),
            _both(setting, "(b) on the GPU about 9 times", *names, 9),
            Claim("(b) the reduction is the faster one on the GPU", *_first(setting, *names)),
            Claim("together about 60 times", *_on_other_machines(setting, "iterative", names[1], Machine.core)),
        ],
        f"The best reduction would beat Algorithm 1 by {least[0] / least[1]:.0f} times if each used only its most used resource; speedups "
        "over a CPU are those of the measured machines; their compiler vectorizes the inner loop of the reduction.",
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
        "All three are included, the first two as compiled loops.",
        [Table("Implementations", rows)],
    )  # fmt: skip


def precision(setting: Setting) -> Shown:
    """Figure 13."""
    n = setting.whole("individuals")
    counts = normalisations(n, min(FEWER, setting.whole("sites")), setting.engine)
    rows: list[Row] = [
        {
            about("normalisation"): name, emulator("warp instructions per site"): round(count.a_site("warp_instructions")),
            model("C2070, microseconds per site"): round(count.least, 2), model("bound by"): count.bound,
        }
        for name, count in counts.items()
    ]  # fmt: skip
    ratio = counts["extended precision"].least / counts["logarithms"].least
    return Shown(
        [
            Claim("(a) on the CPU logarithms are about 3 times as fast as extended precision, here long doubles",
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
         model("C2070, microseconds per site"): round(construction, 1)},
        {about("component"): "SFS normalization", emulator("here"): "`normalise`",
         model("C2070, microseconds per site"): round(normalising, 2)},
        {about("component"): "post-processing", emulator("here"): "`kernels/sfs/host/spectrum.py`, on the CPU"},
    ]  # fmt: skip
    return Shown(
        [
            Claim("SFS construction dominates",
                  construction > 5 * normalising, f"{construction / normalising:.0f} times normalisation, predicted"),
            Claim("(a) GAMA is 15 to 60 times realSFS, by component",
                  *_on_other_machines(setting, "iterative", "reduction, zeros skipped", Machine.core)),
            Claim("(b) GAMA is about 3.5 times GAMA-CPU in 16 threads",
                  *_on_other_machines(setting, "reduction, zeros skipped", "reduction, zeros skipped", Machine.cores)),
            Claim("(b) GAMA is about 47 times realSFS", None, "realSFS and the sites of the paper are not available"),
        ],
        "The kernels' components are included, and the dominant one agrees; speedups over the paper's CPU need its machine.",
        [Table(f"N = {n:,}", rows)],
        note=MODEL,
    )  # fmt: skip


PAPER = Paper(
    name="lu2012",
    title="Accelerating minor allele frequency computation (GAMA; Lu, Zhao, Luo, Wang 2012)",
    citation=LU,
    device="C2070",
    parameters=(
        Parameter("individuals", 1024, 1024, "individuals per site"),
        Parameter(
            "sites",
            32,
            256,
            "counted sites; counters per site are independent of their number, 2,674,654 in the paper",
        ),
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
        Item("Figure 10", "Shared memory per warp: time and occupancy", buffers),
        Item("Figure 11", "Warp order and explicit synchronization", order),
        Item("Figure 12", "All constructions on CPU and GPU", all_constructions),
        Item("Figure 13", "Extended precision and logarithms", precision),
        Item("Figure 14", "Components, and the whole", overall),
    ),
    benchmarks=benchmarks,
)
