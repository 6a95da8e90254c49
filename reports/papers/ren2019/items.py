"""Tables and figures of Ren 2019, compared with counters, predictions and measured times."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence

from simtbed.kernels.alignment import REN
from simtbed.machine.occupancy import occupancy

from ..claims import PRINTED, Claim, Origin, Source, at_least, counted_by, less_than, more_than, near, predicted_for
from ..measured import Machine
from ..numbers import Number
from ..paper import (
    Chart,
    Item,
    Paper,
    Parameter,
    Row,
    Series,
    Setting,
    Shown,
    Table,
    about,
    cpu,
    emulator,
    gpu,
    model,
    paper,
)
from . import figures
from .counted import (
    BATCHES,
    K40,
    LENGTHS,
    of_equal,
    of_set,
    predicted,
    registers_of,
)
from .timing import BLOCK, PASSES, PEER, STEPS, WIDE, benchmarks, loop_name, timing_name

STRIPS = 8
"""Rows of a strip of `pairalign`."""
MUCH = 2
"""Smallest speedup that is "much faster"."""
SHORT, INTEGER = 2, 4
"""Bytes of an intermediate result in gpu-pairAlign, original and modified."""


def rates(setting: Setting, variant: str, pairs: int) -> dict[Origin, dict[int, float]]:
    """Return GCUPS of the first stage on each GPU, by length."""
    by_gpu: dict[Origin, dict[int, float]] = defaultdict(dict)
    for length in LENGTHS:
        name = timing_name(variant, length, pairs, 1)
        for timings in setting.by_machine([name], Machine.gpu):
            by_gpu[timings[name].origin][length] = timings[name].rate / 1e9
    return by_gpu


# ------------------------------------------------------------------ Figure 8
def _lengths(setting: Setting) -> Sequence[int]:
    """Return every Nth length of the paper."""
    return LENGTHS[:: setting.whole("every")]


def resident(variant: str, length: int) -> int:
    """Return the resident blocks of a variant on a K40, with the registers recorded for sm_90, and in shared memory two
    vectors, a short2 vector and two best cells, 16 bytes each."""
    threads = -(-length // 32) * 32 if variant == WIDE else BLOCK
    shared = threads * 3 * 4 + 2 * 16
    return occupancy(K40, threads, registers_of(variant), shared).active_blocks * K40.sms


def two_solutions(setting: Setting) -> Shown:
    """Figure 8: larger blocks, or passes over the columns."""
    rows: list[Row] = []
    steps: dict[tuple[str, int], float] = {}
    work: dict[tuple[str, int], float] = {}
    in_a_row: dict[tuple[str, int, int], float] = {}
    modelled: dict[tuple[str, int, int], float] = {}
    pairs = setting.whole("pairs")
    for length in _lengths(setting):
        for variant, warps in ((WIDE, -(-length // 32)), (PASSES, BLOCK // 32)):
            totals = of_set(length, pairs, variant, figures.KERNEL, setting.engine).totals()
            steps[variant, length] = totals["barriers"] / (figures.BARRIERS * pairs * warps)
            work[variant, length] = totals["warp_instructions"] / pairs
            row: Row = {
                about("bases"): length, about("solution"): "larger block" if variant == WIDE else "passes",
                emulator("steps of a block"): steps[variant, length], emulator("warp instructions per pair"): work[variant, length],
                emulator("blocks that a K40 holds"): resident(variant, length),
            }  # fmt: skip
            for batch in BATCHES:
                in_a_row[variant, length, batch] = steps[variant, length] * -(-batch // resident(variant, length))
                row = {**row, emulator(f"steps in a row, {batch} pairs"): in_a_row[variant, length, batch]}
                if batch <= setting.whole("batch"):
                    modelled[variant, length, batch] = predicted(length, batch, variant, setting.engine)
                    row = {**row, model(f"GCUPS, {batch} pairs"): modelled[variant, length, batch]}
                for origin, by_length in rates(setting, variant, batch).items():
                    if length in by_length:
                        row = {**row, gpu(f"GCUPS, {batch} pairs, {origin.device}"): by_length[length]}
            rows.append(row)
    longer = [length for length in _lengths(setting) if length > BLOCK]
    batches = [batch for batch in BATCHES if batch <= setting.whole("batch")]
    predictions = {b: {n: modelled[WIDE, n, b] / modelled[PASSES, n, b] for n in longer} for b in batches}
    measured = [length for length in LENGTHS if length > BLOCK]
    speedups = {batch: _speedups_by_gpu(setting, batch, measured) for batch in BATCHES}
    for batch, by_length in predictions.items():
        speedups[batch] = {predicted_for(K40): by_length, **speedups[batch]}
    fewer, cheaper = (
        sum(values[less, n] < values[more, n] for n in longer) / len(longer)
        for values, less, more in ((steps, WIDE, PASSES), (work, PASSES, WIDE))
    )
    return Shown(
        [
            Claim("25 and 100 pairs: the larger block is faster",
                  [at_least(origin, f"share of {len(ratios)} lengths, {batch} pairs", _share_above_one(ratios), 1)
                   for batch in (25, 100) for origin, ratios in speedups[batch].items()], main=True),
            Claim("1,000 pairs: passes are faster in most cases",
                  [less_than(origin, f"share of {len(ratios)} lengths with the larger block faster", _share_above_one(ratios), 0.5)
                   for origin, ratios in speedups[1_000].items()], main=True,
                  remark="" if speedups[1_000] else "Not measured, and not predicted: --batch is below 1,000."),
            Claim("the first solution has fewer steps of a block",
                  [at_least(counted_by(K40), f"share of {len(longer)} lengths above {BLOCK}", fewer, 1)],
                  remark=f"{_ratio(steps, longer, WIDE, PASSES)} at most."),
            Claim("the second one is more efficient in most cases",
                  [more_than(counted_by(K40), f"share of {len(longer)} lengths with fewer warp instructions", cheaper, 0.5)],
                  remark=f"{_ratio(work, longer, PASSES, WIDE)}."),
        ],
        "If all blocks are resident, the number of steps decides, and the larger block has fewer; otherwise smaller blocks "
        "fill it better, and passes issue fewer instructions.",
        [Table("Equal lengths of both sequences", rows)],
        [*_plots(setting, (WIDE, PASSES)), _crossover(in_a_row)],
        note="The paper prints no numbers of this figure. Steps in a row: those of a block, times the number of waves of "
        "blocks; registers are those of sm_90.",
    )  # fmt: skip


def _speedups_by_gpu(setting: Setting, batch: int, lengths: Sequence[int]) -> dict[Origin, dict[int, float]]:
    """Return the speedup of the larger block over passes on each GPU, by length."""
    wide, passes = (rates(setting, variant, batch) for variant in (WIDE, PASSES))
    result = {}
    for origin in wide.keys() & passes.keys():
        common = wide[origin].keys() & passes[origin].keys() & set(lengths)
        if common:
            result[origin] = {length: wide[origin][length] / passes[origin][length] for length in common}
    return result


def _share_above_one(ratios: Mapping[int, float]) -> float:
    return sum(ratio > 1 for ratio in ratios.values()) / len(ratios)


def _crossover(in_a_row: Mapping[tuple[str, int, int], float]) -> Chart:
    """Return a plot of the steps of both solutions by length, for each number of pairs."""
    named = {WIDE: "larger block", PASSES: "passes"}
    return Chart("Steps in a row", "bases of R1 and R2", "steps", [
        Series(f"{name}, {batch} pairs", Source.emulator,
               [(length, steps) for (v, length, b), steps in in_a_row.items() if (v, b) == (variant, batch)])
        for batch in BATCHES
        for variant, name in named.items()
    ], logarithmic=True)  # fmt: skip


def _ratio(values: Mapping[tuple[str, int], float], lengths: Sequence[int], less: str, more: str) -> str:
    last = lengths[-1]
    return f"{values[more, last] / values[less, last]:.2f} times at {last} bases"


def _plots(setting: Setting, variants: Sequence[str]) -> list[Chart]:
    """Return a plot of measured values for each measured number of pairs."""
    charts = []
    for batch in BATCHES:
        series = [
            Series(f"{variant}, {origin.device}", Source.gpu, list(by_length.items()))
            for variant in variants
            for origin, by_length in rates(setting, variant, batch).items()
        ]
        if series:
            charts.append(Chart(f"First stage, {batch:,} pairs", "bases of R1 and R2", "GCUPS", series))
    return charts


# ------------------------------------------------------------------ Figures 9 and 11: the second stage
def loads_per_pair(setting: Setting, variant: str, length: int) -> float:
    """Return the loads of moves per pair of equal sequences in the second stage."""
    pairs = setting.whole("pairs")
    counters = of_equal(length, pairs, variant, "traceback", setting.engine)
    text = "moves[place.x" if variant != PEER else "strip_word = moves"
    return counters.at(text).totals()["global_load_bytes"] / 4 / pairs


def _second_stage(setting: Setting, variants: Mapping[str, str], claims: Sequence[str], reason: str) -> Shown:
    """Show the loads of two variants by length; constant for the first, growing for the second."""
    rows: list[Row] = []
    counted: dict[str, list[tuple[Number | str, float]]] = {name: [] for name in variants.values()}
    lengths = _lengths(setting)
    grown: dict[str, list[float]] = {variant: [] for variant in variants}
    times: dict[Origin, dict[str, dict[int, float]]] = defaultdict(lambda: defaultdict(dict))
    for length in lengths:
        row: Row = {about("bases"): length}
        for variant, name in variants.items():
            loads = loads_per_pair(setting, variant, length)
            grown[variant].append(loads)
            counted[name].append((length, loads))
            row = {**row, emulator(f"loads per pair, {name}"): loads}
            timed = timing_name(f"{variant}, equal sequences", length, 100, 2)
            for timings in setting.by_machine([timed], Machine.gpu):
                timing = timings[timed]
                times[timing.origin][variant][length] = timing.milliseconds
                row = {**row, gpu(f"ms, {name}, {timing.machine}"): timing.milliseconds}
        rows.append(row)
    constant, growing = variants
    first, last = lengths[0], lengths[-1]
    rule = counted_by(K40)
    growth = {
        variant: [(rule, grown[variant][-1] / grown[variant][0])]
        + [
            (origin, of[variant][last] / of[variant][first])
            for origin, of in times.items()
            if {first, last} <= of[variant].keys()
        ]
        for variant in variants
    }
    quantity = f"loads or time at {last} bases, in those at {first}"
    return Shown(
        [
            Claim(claims[0], [near(origin, quantity, ratio, 1, 0.25) for origin, ratio in growth[constant]], main=True),
            Claim(claims[1], [near(origin, quantity, ratio, last / first, 0.25) for origin, ratio in growth[growing]], main=True),
        ],
        reason,
        [Table(f"Equal sequences, {setting.whole('pairs')} pairs", rows)],
        [Chart("Loads of the backtracking matrix", "bases of R1 and R2", "loads per pair",
               [Series(name, Source.emulator, points) for name, points in counted.items()])],
        note="The paper prints no numbers of this figure.",
    )  # fmt: skip


def lengths_of_matches(setting: Setting) -> Shown:
    """Fig. 9."""
    return _second_stage(
        setting,
        {WIDE: "lengths recorded", STEPS: "not recorded"},
        ("with recorded lengths the time is constant", "without them it grows linearly"),
        "For a pair of equal sequences, stage 2 loads one move with recorded lengths, one move per base without them.",
    )


def second_stage_of_peer(setting: Setting) -> Shown:
    """Fig. 11."""
    return _second_stage(
        setting,
        {WIDE: "ours", PEER: "gpu-pairAlign"},
        (
            "the time of the second stage is constant for the implementation of the paper",
            "gpu-pairAlign's grows linearly",
        ),
        "Four Boolean matrices take a quarter of the memory of a short2 matrix and encode one move per element.",
    )


# ------------------------------------------------------------------ Figure 10: the first stage
def first_stage_of_peer(setting: Setting) -> Shown:
    """Fig. 10."""
    rows: list[Row] = []
    peers = 32
    traffic: dict[str, float] = {}
    modelled: dict[tuple[str, int, int], float] = {}
    for length in _lengths(setting):
        cells = length * length
        for variant, kernel, pairs in (
            (WIDE, figures.KERNEL, setting.whole("pairs")),
            (PEER, "pairalign_strips", peers),
        ):
            totals = of_set(length, pairs, variant, kernel, setting.engine).totals()
            sectors = totals["global_load_sectors"] + totals["global_store_sectors"]
            traffic[variant] = 32 * sectors / (pairs * cells)
            row: Row = {
                about("bases"): length, about("implementation"): "the paper's" if variant == WIDE else "gpu-pairAlign",
                emulator("steps one after the other"): totals["barriers"] / (figures.BARRIERS * pairs * -(-length // 32))
                if variant == WIDE else cells,
                emulator("global bytes per cell"): traffic[variant],
                emulator("warp instructions per cell"): totals["warp_instructions"] / (pairs * cells),
            }  # fmt: skip
            for batch in BATCHES:
                if batch <= setting.whole("batch"):
                    modelled[variant, length, batch] = predicted(length, batch, variant, setting.engine)
                    row = {**row, model(f"GCUPS, {batch} pairs"): modelled[variant, length, batch]}
                row = {
                    **row,
                    emulator(f"SMs busy, {batch} pairs"): min(K40.sms, -(-batch // (BLOCK if variant == PEER else 1))),
                }
                for origin, by_length in rates(setting, variant, batch).items():
                    if length in by_length:
                        row = {**row, gpu(f"GCUPS, {batch} pairs, {origin.device}"): by_length[length]}
            rows.append(row)
    predictions = [rate / modelled[PEER, n, b] for (v, n, b), rate in modelled.items() if v == WIDE]
    slowest = [(predicted_for(K40), min(predictions))] if predictions else []
    slowest += [(origin, min(ratios)) for origin, ratios in _over_peer(setting).items()]
    shared = {size: 2 * STRIPS * BLOCK * size + STRIPS * BLOCK for size in (SHORT, INTEGER)}
    rule = counted_by(K40)
    return Shown(
        [
            Claim("gpu-pairAlign is much slower at all sizes",
                  [at_least(origin, "smallest speedup over it", ratio, MUCH) for origin, ratio in slowest], main=True),
            Claim("it cannot fill the GPU with small sets",
                  [less_than(rule, f"blocks per SM, {batch} pairs", -(-batch // BLOCK) / K40.sms, 1) for batch in BATCHES]),
            Claim("integers instead of shorts make its shared memory larger",
                  [more_than(rule, f"ratio of bytes of a block of {BLOCK} threads", shared[INTEGER] / shared[SHORT], 1)]),
            Claim("... and its global memory accesses more", [],
                  remark="Two integers of a row are one access of 8 bytes, as two shorts are one of 4: bytes double, requests do not."),
        ],
        "A thread per pair leaves most of the GPU idle and computes all cells in sequence. By instructions and bytes per cell "
        "it is the cheaper one; a larger number of pairs would show it.",
        [Table("First stage, equal lengths of both sequences", rows)],
        _plots(setting, (WIDE, PEER)),
        note=f"Counted for {setting.whole('pairs')} pairs of the paper's implementation and for a warp of {peers} of "
        f"gpu-pairAlign, by strips of {STRIPS} rows with its integers in shared memory.",
    )  # fmt: skip


def _over_peer(setting: Setting) -> dict[Origin, list[float]]:
    """Return the speedups over gpu-pairAlign on each GPU, over lengths and numbers of pairs."""
    ratios: dict[Origin, list[float]] = defaultdict(list)
    for batch in BATCHES:
        ours, peer = (rates(setting, variant, batch) for variant in (WIDE, PEER))
        for origin in ours.keys() & peer.keys():
            common = ours[origin].keys() & peer[origin].keys()
            ratios[origin] += [ours[origin][length] / peer[origin][length] for length in common]
    return ratios


# ------------------------------------------------------------------ Figure 12 and Table 3: against a CPU
def _speedups(setting: Setting) -> dict[str, dict[tuple[int, int], float]]:
    """Return the speedups of both stages on each GPU over the loop on one core, by length and pairs, by the two machines."""
    result: dict[str, dict[tuple[int, int], float]] = defaultdict(dict)
    for length in LENGTHS:
        stages = [loop_name(length, stage) for stage in (1, 2)]
        for loops in setting.by_machine(stages, Machine.core):
            alone = sum(loop.milliseconds / loop.work for loop in loops.values())
            for pairs in BATCHES:
                names = [timing_name(WIDE, length, pairs, stage) for stage in (1, 2)]
                for kernels in setting.by_machine(names, Machine.gpu):
                    together = sum(kernel.milliseconds for kernel in kernels.values())
                    machines = f"{kernels[names[0]].machine} over {loops[stages[0]].machine}"
                    result[machines][length, pairs] = alone * length * length * pairs / together
    return result


def speedups(setting: Setting) -> Shown:
    """Fig. 12."""
    by_machines = _speedups(setting)
    rows: list[Row] = []
    for length in LENGTHS:
        row: Row = {about("bases"): length}
        for machine in (Machine.core, Machine.cores):
            for timings in setting.by_machine([loop_name(length, 1)], machine):
                timing = timings[loop_name(length, 1)]
                row = {**row, cpu(f"GCUPS of the first stage, {machine}: {timing.machine}"): timing.rate / 1e9}
        for machines, ratios in by_machines.items():
            for pairs in BATCHES:
                if (length, pairs) in ratios:
                    row = {**row, gpu(f"speedup, {pairs} pairs, {machines}"): ratios[length, pairs]}
        rows.append(row)
    today = "; ".join(f"{machines}: up to {max(ratios.values()):.3g} times" for machines, ratios in by_machines.items())
    return Shown(
        [
            Claim("up to 80 times as fast as one core", [], main=True,
                  remark=f"A K40 and a Power8 are needed.{today and f' On machines of today: {today}.'}"),
            Claim("the speedup is larger with 1,000 pairs than with 25 and 100", [
                more_than(origin, f"smallest ratio of the throughputs of 1,000 and {pairs} pairs", ratio, 1)
                for pairs in (25, 100) for origin, ratio in _gain_of_pairs(setting, pairs)]),
        ],
        "The speedups are of a K40 over a Power8 core in the paper; current machines have other ratios.",
        [Table("Both stages against the plain loop", rows)] if by_machines else [],
        [Chart(f"Speedup over one core: {machines}", "bases of R1 and R2", "times", [
            Series(f"{pairs:,} pairs", Source.gpu, [(length, ratios[length, pairs]) for length in LENGTHS if (length, pairs) in ratios])
            for pairs in BATCHES
        ]) for machines, ratios in by_machines.items()],
        note="The paper's baseline is C++ on one core of a Power8; the plain loop is compiled Python with the same two stages.",
    )  # fmt: skip


def _gain_of_pairs(setting: Setting, pairs: int) -> list[tuple[Origin, float]]:
    """Return the smallest ratio of the throughputs with 1,000 pairs and with `pairs`, over the lengths, on each GPU."""
    many, few = (rates(setting, WIDE, batch) for batch in (1_000, pairs))
    gains = []
    for origin in many.keys() & few.keys():
        common = many[origin].keys() & few[origin].keys()
        gains.append((origin, min(many[origin][length] / few[origin][length] for length in common)))
    return gains


REAL = (
    ("stage 1, situation 2", 1.86, 2.32, 43.93, 18.94), ("stage 2, situation 2", None, 0.14, 0.62, 4.43),
    ("overall, situation 2", None, 3.15, 44.55, 14.14), ("stage 1, situation 3", 0.64, 10.20, 53.29, 5.22),
    ("stage 2, situation 3", None, 0.09, 0.17, 1.89), ("overall, situation 3", None, 10.93, 53.46, 4.89),
)  # fmt: skip
"""Table 3: GCUPS, seconds on the GPU and on the CPU, speedup."""


def real_data(setting: Setting) -> Shown:
    """Table 3."""
    rows: list[Row] = []
    for name, rate, seconds, on_cpu, claimed in REAL:
        row: Row = {
            about("stage"): name, paper("GCUPS"): rate, paper("GPU, s"): seconds, paper("CPU, s"): on_cpu, paper("speedup"): claimed,
            emulator("speedup, of the two times"): on_cpu / seconds,
        }  # fmt: skip
        if rate:
            alignments = next(number for situation, number, _ in figures.SITUATIONS if situation == name[-1])
            row = {**row, emulator("cells per pair, of GCUPS, time and Table 2"): rate * seconds * 1e9 / alignments}
        rows.append(row)
    cells = [row.get(emulator("cells per pair, of GCUPS, time and Table 2")) for row in rows]
    return Shown(
        [
            Claim("situation 2 is 14.14 times and situation 3 4.89 times as fast as on one core", [], main=True,
                  remark="The alignments of GATK on G15512.HCC1954.1 are not published."),
            Claim("the speedups are those of the printed times", [
                near(PRINTED, f"speedup, {name}", on_cpu / seconds, claimed, 0.01) for name, _, seconds, on_cpu, claimed in REAL]),
            Claim("throughput falls with small batches: 0.64 GCUPS in situation 3", [], remark="See Figure 8 for batches of 25."),
        ],
        "Of the printed numbers, times give the printed speedups, and a pair of situation 2 has "
        f"{cells[0]:,.0f} cells by them, fewer than 40 to 120 bases on haplotypes of up to 350 suggest.",
        [Table("Chromosome 10 of G15512.HCC1954.1", rows)],
    )  # fmt: skip


WHOLE = (("baseline", 8034.05), ("GPU, pair-HMM", 4687.08), ("GPU, pair-HMM and alignment", 3490.70))
"""Table 4, seconds."""


def whole_program(setting: Setting) -> Shown:
    """Table 4."""
    rows: list[Row] = [
        {about("GATK HC"): name, paper("seconds"): seconds, paper("speedup"): WHOLE[0][1] / seconds}
        for name, seconds in WHOLE
    ]
    return Shown(
        [Claim("GATK with both on the GPU is 2.30 times as fast as the baseline", [], main=True, remark="GATK is not included."),
         Claim("the speedups are those of the printed times", [
             near(PRINTED, f"speedup, {name}", WHOLE[0][1] / seconds, claimed, 0.005)
             for (name, seconds), claimed in zip(WHOLE[1:], (1.71, 2.30), strict=True)])],
        "GATK HaplotypeCaller is not included, only its alignments and likelihoods.",
        [Table("Whole runs of GATK HaplotypeCaller", rows)],
    )  # fmt: skip


def headlines(setting: Setting) -> Shown:
    """Abstract and conclusion."""
    return Shown(
        [
            Claim("up to 80 times its CPU counterpart with synthetic data", [], main=True, remark="See Figure 12."),
            Claim("14.14 times with real data", [], main=True, remark="See Table 3."),
            Claim("GATK is 2.3 times as fast, 1.34 times with the likelihoods on the GPU in both", [
                near(PRINTED, "baseline over both", WHOLE[0][1] / WHOLE[2][1], 2.3, 0.005),
                near(PRINTED, "likelihoods alone over both", WHOLE[1][1] / WHOLE[2][1], 1.34, 0.005)],
                remark="By the printed times."),
        ],
        "The headlines need the machines and the data of the paper.",
    )  # fmt: skip


PAPER = Paper(
    name="ren2019",
    title="Sequence alignment with traceback on GPUs (Ren, Ahmed, Bertels, Al-Ars 2019)",
    citation=REN,
    device="K40",
    parameters=(
        Parameter("pairs", 2, 25, "pairs of a synthetic set that are counted; blocks do not depend on each other"),
        Parameter("batch", 100, 1_000, "largest number of pairs with a prediction"),
        Parameter("every", 4, 1, "every so many of the nine lengths"),
        Parameter("regions", 2, 100, "regions made for Figures 3 and 4"),
    ),
    items=(
        Item("Figure 1", "A semi-global alignment, its CIGAR and its POS", figures.example),
        Item("Figure 2", "Backtracking an alignment through score matrices", figures.backtracking),
        Item("Table 1", "Operations of a CIGAR", figures.operations),
        Item("Table 2", "Execution time of the alignments in GATK", figures.execution_time),
        Item("Figure 3", "Lengths of sequence pairs", figures.lengths),
        Item("Figure 4", "Numbers of M, I, D and S", figures.share_of_matches),
        Item("Figure 5", "Numbers of pairs in a batch", figures.batches),
        Item("Figure 6", "Calculation of matrix M by anti-diagonals", figures.anti_diagonals),
        Item("Figure 7", "Layouts of the backtracking matrix", figures.layouts),
        Item("Figure 8", "A larger block or several passes", two_solutions),
        Item("Figure 9", "Second stage, with and without lengths of matches", lengths_of_matches),
        Item("Figure 10", "First stage compared with gpu-pairAlign", first_stage_of_peer),
        Item("Figure 11", "Second stage compared with gpu-pairAlign", second_stage_of_peer),
        Item("Figure 12", "Speedup over one core", speedups),
        Item("Table 3", "Real data sets", real_data),
        Item("Table 4", "GATK HaplotypeCaller as a whole", whole_program),
        Item("Algorithm 1", "Retrieval of the optimal alignment", figures.retrieval),
        Item("Headlines", "Claims of the abstract", headlines),
    ),
    benchmarks=benchmarks,
)
