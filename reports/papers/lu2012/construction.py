"""Figures 7 to 12 of Lu 2012: times, counters and occupancy of the SFS construction."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from simtbed.kernels.sfs.host import pipeline
from simtbed.kernels.sfs.reduction_shared import shared_bytes
from simtbed.language.intrinsics import WARP_SIZE
from simtbed.machine.occupancy import occupancy

from ..claims import (
    Claim,
    Comparison,
    Source,
    at_most,
    counted_by,
    exactly,
    less_than,
    more_than,
    near,
    predicted_for,
)
from ..measured import Machine
from ..paper import Cell, Chart, Column, Row, Series, Setting, Shown, Table, about, cpu, emulator, gpu, model
from ..predicted import CAVEAT
from ..ratios import across, near_speedups, speedups
from .counting import GPU, Count, Modelled, blocks_of, counted, modelled, modelled_blocks
from .timing import KERNELS

FEWER = 8
"""Number of sites for kernels with one warp per merge."""
BLOCKS = (16, 64, 128, 256, 736)
"""Coefficients of b in shared memory; 504 to 12,024 bytes per warp in Fig. 10."""
LARGEST_CONSTANT = 2296
"""Bytes per warp up to which the occupancy of Fig. 10 is unchanged."""
MODELLED = 256
"""Largest number of individuals with a prediction for Algorithm 1."""
MODEL = (
    "Lower bound: the time of the most used resource (global memory bandwidth for every access, "
    "shared memory, instruction issue, fp64), from counts by the rules of a C2070 with loads that bypass L1. "
    + CAVEAT
    + f" Algorithm 1 is "
    f"modelled for {MODELLED} individuals, and its time is scaled with their square."
)
TOLERANCE = 0.25
"""Relative tolerance of the ratios that the paper rounds: "around three times"."""


# ------------------------------------------------------------------ Figures 7, 8 and 12
def _sites(setting: Setting, variant: str) -> int:
    return setting.whole("sites") if variant == "iterative" else min(FEWER, setting.whole("sites"))


def count_of(setting: Setting, variant: str) -> Count:
    return counted(variant, setting.whole("individuals"), _sites(setting, variant), setting.engine)


def construction(setting: Setting, names: Sequence[str]) -> tuple[list[Row], Chart]:
    rows: list[Row] = []
    for name in names:
        count = count_of(setting, KERNELS[name])
        row: Row = {
            about("on the GPU"): name, emulator("KB of global memory per site"): _traffic(count),
            emulator("warp instructions per site"): round(count.a_site("warp_instructions")),
            **_predicted(model_of(setting, KERNELS[name])), emulator("at least"): round(count.least, 1), emulator("for"): count.bound,
        }  # fmt: skip
        for machine, column in ((Machine.gpu, gpu), (Machine.core, cpu)):
            for timings in setting.by_machine([name], machine):
                timing = timings[name]
                row = {**row, column(f"{timing.machine}, microseconds per site"): round(1e6 / timing.rate, 2)}
        rows.append(row)
    points = [(name, model_of(setting, KERNELS[name]).time) for name in names]
    return rows, Chart(
        "SFS construction on the GPU, predicted", "", "microseconds per site", [Series("C2070", Source.model, points)], bars=True
    )  # fmt: skip


def model_of(setting: Setting, variant: str) -> Modelled:
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


def _near_ratio(setting: Setting, slow: str, fast: str, expected: float) -> list[Comparison]:
    """Compare the ratio of two kernels' times with the paper's, by the time model and on each GPU."""
    ratio = model_of(setting, KERNELS[slow]).time / model_of(setting, KERNELS[fast]).time
    return [
        near(predicted_for(GPU), f"speedup over {slow}", ratio, expected, TOLERANCE),
        *near_speedups(setting, Machine.gpu, slow, fast, expected, TOLERANCE),
    ]


def _traffic(count: Count) -> float:
    sectors = count.a_site("global_load_sectors") + count.a_site("global_store_sectors")
    return round(sectors * count.counters.sector / 1e3, 1)


def algorithm_on_both(setting: Setting) -> Shown:
    """Figure 7."""
    names = ("iterative", "reduction in global memory", "reduction")
    rows, plot = construction(setting, names)
    slow, whole = (model_of(setting, KERNELS[name]).time for name in names[:2])
    least = [count_of(setting, KERNELS[name]).least for name in names]
    instructions = [count_of(setting, KERNELS[name]).a_site("warp_instructions") for name in names]
    return Shown(
        [
            Claim("(b) on the GPU the reduction is about 3 times as fast", _near_ratio(setting, *names[::2], 3), main=True),
            Claim("(b) without shared memory it is only 24 % faster", [
                near(predicted_for(GPU), f"speedup over {names[0]}", slow / whole, 1.24, 0.15),
                *near_speedups(setting, Machine.gpu, *names[:2], 1.24, 0.15),
            ]),
            Claim("(b) shared memory makes the reduction fast: a factor of 3 / 1.24",
                  _near_ratio(setting, *names[1:], 3 / 1.24)),
            Claim("(a) on the CPU the reduction is slightly faster",
                  near_speedups(setting, Machine.core, "iterative", "reduction", 1.25, 0.2)),
        ],
        "Algorithm 1 as printed waits for global memory, the reduction for instructions: faster although it has "
        f"{instructions[2] / instructions[0]:.1f} times the instructions. If Algorithm 1 waited for memory only, the ratio would be "
        f"{least[0] / least[2]:.1f} times; without shared memory the reduction is not faster, for each product loads and stores its sum.",
        [Table(title(setting), rows)],
        [plot],
        MODEL,
    )  # fmt: skip


def title(setting: Setting) -> str:
    return f"N = {setting.whole('individuals'):,}, deep sequencing"


def nested_loop(setting: Setting) -> Shown:
    """Figure 8."""
    names = ("reduction", "reduction, zeros skipped")
    rows, plot = construction(setting, names)
    plain, skip = (count_of(setting, KERNELS[name]) for name in names)
    saved = _products(plain) / _products(skip)
    gained = model_of(setting, KERNELS[names[0]]).time / model_of(setting, KERNELS[names[1]]).time
    return Shown(
        [
            Claim("(b) on the GPU skipping is about twice as fast", _near_ratio(setting, *names, 2), main=True),
            Claim("(a) on the CPU skipping is about 5 times as fast",
                  near_speedups(setting, Machine.core, *names, 5, TOLERANCE)),
            Claim("(a) the speedup equals the saved work", [near(counted_by(GPU), "ratio of products", saved, 5, TOLERANCE)]),
            Claim("the GPU gains less than the saved work", [
                less_than(predicted_for(GPU), "speedup per saved work", gained / saved, 1),
                *(less_than(origin, "speedup per saved work", ratio / saved, 1)
                  for origin, ratio in speedups(setting, Machine.gpu, *names)),
            ]),
        ],
        "The gain on a GPU is that of the paper; the skipped work depends on the zeros of the data, which are simulated here.",
        [Table(title(setting), rows)],
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
    more: dict[int, float] = {}
    sizes = sorted({max(2, setting.whole("individuals") // 8), setting.whole("individuals")})
    for n in sizes:
        sites = min(FEWER, setting.whole("sites"))
        plain, skip = (
            counted(KERNELS[name], n, sites, setting.engine) for name in ("reduction", "reduction, zeros skipped")
        )
        change[n] = skip.a_site("warp_instructions") / plain.a_site("warp_instructions") - 1
        more[n] = skip.a_site("divergent_branches") / plain.a_site("divergent_branches")
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
            Claim("(a) the nested-loop optimization lowers the instructions significantly",
                  [at_most(counted_by(GPU), f"change of instructions, N = {sizes[-1]:,}", last, -0.3)], main=True),
            Claim("(b) it adds divergent branches",
                  [more_than(counted_by(GPU), f"ratio of divergent branches, N = {n:,}", more[n], 1) for n in sizes], main=True),
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
        size = shared_bytes(WARP_SIZE, block)
        share = _occupancy(size)
        count = blocks_of(block, n, sites, setting.engine)
        prediction = modelled_blocks(block, n, setting.engine)
        times[size] = prediction.time, share
        rows.append({
            about("shared bytes per warp"): size, emulator("occupancy, %"): share,
            emulator("KB of global memory per site"): _traffic(count),
            emulator("warp instructions per site"): round(count.a_site("warp_instructions")), **_predicted(prediction),
        })  # fmt: skip
    best = min(times, key=lambda size: times[size][0])
    constant = {share for size, (_, share) in times.items() if size <= LARGEST_CONSTANT}
    least = [time for size, (time, _) in times.items() if size <= LARGEST_CONSTANT]
    rule, predicted = counted_by(GPU), predicted_for(GPU)
    return Shown(
        [
            Claim("(a) the time is least at about 2 KB", [near(predicted, "bytes per warp", best, 2048, TOLERANCE)], main=True),
            Claim("(a) a larger buffer is faster up to 2,296 bytes",
                  [more_than(predicted, "smallest ratio of a time to that of the next larger buffer",
                             min(slow / fast for slow, fast in pairwise(least)), 1)]),
            Claim("(b) occupancy is unchanged from 504 to 2,296 bytes",
                  [exactly(rule, "different occupancies", len(constant), 1)]),
            Claim("(b) it falls beyond 2,296 bytes",
                  [near(rule, "largest bytes per warp without loss", _largest_without_loss(), LARGEST_CONSTANT, 0.05)]),
        ],
        "Traffic falls as the buffer grows, until too few warps remain. By rule the occupancy falls beyond "
        f"{_largest_without_loss():,} bytes: with {pipeline.THREADS} threads per block, {GPU.blocks_per_sm} blocks per SM limit it up to "
        "there. The paper does not state the threads per block.",
        [Table(f"N = {n:,}", rows)],
        [Chart("elapsed time, predicted", "shared bytes per warp", "microseconds per site",
         [Series("C2070", Source.model, [(size, time) for size, (time, _) in times.items()])]),
         Chart("occupancy", "shared bytes per warp", "%",
         [Series("C2070", Source.emulator, [(size, share) for size, (_, share) in times.items()])])],
        MODEL,
    )  # fmt: skip


def _occupancy(size: int) -> float:
    """Return the occupancy in percent. size: shared bytes per warp."""
    return occupancy(GPU, pipeline.THREADS, 0, size * pipeline.THREADS // WARP_SIZE).percent


def _largest_without_loss() -> int:
    """Return the shared bytes per warp, a multiple of 8, beyond which the occupancy falls."""
    most = _occupancy(8)
    return next(size - 8 for size in range(16, GPU.shared_per_sm, 8) if _occupancy(size) < most)


def order(setting: Setting) -> Shown:
    """Figure 11."""
    n, sites = setting.whole("individuals"), min(4, setting.whole("sites"))
    names = ("reduction", "reduction, zeros skipped", "explicit synchronization")
    rows: list[Row] = []
    for name in names:
        count, prediction = counted(KERNELS[name], n, sites, setting.engine), model_of(setting, KERNELS[name])
        rows.append({
            about("kernel"): name, about("variant"): KERNELS[name], emulator("barriers per site"): round(count.a_site("barriers")),
            emulator("warp instructions per site"): round(count.a_site("warp_instructions")), **_predicted(prediction),
        })  # fmt: skip
    plain, skip, block = (model_of(setting, KERNELS[name]).time for name in names)
    like = [(predicted_for(GPU), block / plain), *speedups(setting, Machine.gpu, names[2], names[0])]
    return Shown(
        [
            Claim("warp order is about 2.5 times as fast as explicit synchronization",
                  _near_ratio(setting, names[2], names[1], 2.5), main=True,
                  remark="The paper's warp order skips zeros, its explicit synchronization cannot. Both without skipping: "
                  + ", ".join(f"{ratio:.2f} times ({origin})" for origin, ratio in like) + "."),
            Claim("explicit synchronization is worse than no nested-loop optimization",
                  [more_than(origin, f"speedup of {names[0]}", ratio, 1) for origin, ratio in like]),
        ],
        "The barrier of a block is in the inner loop: each of its two warps waits there in every step.",
        [Table(f"N = {n:,}", rows)],
        [Chart("synchronization, predicted", "", "microseconds per site",
         [Series("C2070", Source.model, [("warp, zeros skipped", skip), ("warp", plain), ("explicit", block)])], bars=True)],
        note=MODEL,
    )  # fmt: skip


def today(setting: Setting, slow: str, fast: str, on: Machine = Machine.core) -> str:
    """Return a remark on a speedup of a GPU over a CPU."""
    ratios = across(setting, slow, on, fast, Machine.gpu)
    return f"A C2070 and a Xeon E5520 are needed. {ratios and f'On machines of today, {ratios}.'}".strip()


def all_constructions(setting: Setting) -> Shown:
    """Figure 12."""
    names = ("iterative", "reduction, zeros skipped")
    rows, plot = construction(setting, names)
    least = [count_of(setting, KERNELS[name]).least for name in names]
    return Shown(
        [
            Claim("(b) on the GPU the reduction is about 9 times as fast", _near_ratio(setting, *names, 9), main=True),
            Claim("(a) on the CPU it is about 5.7 times as fast", near_speedups(setting, Machine.core, *names, 5.7, TOLERANCE)),
            Claim("the GPU is about 7 times its CPU with the iterative update", [],
                  remark=today(setting, "iterative", "iterative")),
            Claim("... and about 10 times with the reduction", [], remark=today(setting, names[1], names[1])),
            Claim("together about 60 times", [], remark=today(setting, "iterative", names[1])),
        ],
        f"The best reduction would beat Algorithm 1 by {least[0] / least[1]:.0f} times if each used only its most used resource; speedups "
        "over a CPU are those of the measured machines; their compiler vectorizes the inner loop of the reduction.",
        [Table(title(setting), rows)],
        [plot],
        MODEL,
    )  # fmt: skip
