"""Tables and figures of Ren 2019, compared with counters, predictions and measured times."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from simtbed.kernels.alignment import REN
from simtbed.machine.occupancy import occupancy

from ..measured import Machine, Timing
from ..paper import (
    Chart,
    Claim,
    Item,
    Number,
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
SHORT, INTEGER = 2, 4
"""Bytes of an intermediate result in gpu-pairAlign, original and modified."""


def rates(setting: Setting, variant: str, pairs: int) -> dict[int, Timing]:
    """Return measured values of the first stage on a GPU, by length."""
    timings = {length: setting.timing(timing_name(variant, length, pairs, 1), Machine.gpu) for length in LENGTHS}
    return {length: timing for length, timing in timings.items() if timing}


# ------------------------------------------------------------------ Figure 8
def _lengths(setting: Setting) -> Sequence[int]:
    """Return every Nth length of the paper."""
    return LENGTHS[:: setting.whole("every")]


def resident(variant: str, length: int) -> int:
    """Return the resident blocks of a variant on a K40, with the registers in the record of the H200, and in shared memory two
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
                if timing := rates(setting, variant, batch).get(length):
                    row = {**row, gpu(f"GCUPS, {batch} pairs, {timing.machine}"): timing.rate / 1e9}
            rows.append(row)
    longer = [length for length in _lengths(setting) if length > BLOCK]
    fewer = [steps[WIDE, length] < steps[PASSES, length] for length in longer]
    cheaper = [work[PASSES, length] < work[WIDE, length] for length in longer]
    ahead = {b: sum(in_a_row[WIDE, n, b] < in_a_row[PASSES, n, b] for n in longer) for b in BATCHES}
    measured = {batch: _faster(setting, batch, longer) for batch in BATCHES}
    batches = [batch for batch in BATCHES if batch <= setting.whole("batch")]
    by_model = {b: sum(modelled[WIDE, n, b] > modelled[PASSES, n, b] for n in longer) for b in batches}
    return Shown(
        [
            Claim("25 and 100 pairs: the larger block is faster", _all(measured[25] + measured[100]), _evidence(measured, (25, 100))),
            Claim("1,000 pairs: passes are faster in most cases", _few(measured[1_000]), _evidence(measured, (1_000,))),
            Claim("so the number of pairs decides", ahead[25] == len(longer) and ahead[1_000] < len(longer) / 2,
                  "the larger block has fewer steps in a row at "
                  + ", ".join(f"{count} of {len(longer)} lengths with {batch} pairs" for batch, count in ahead.items())
                  + "".join(f"; the time model has it ahead at {count} with {batch}" for batch, count in by_model.items())),
            Claim("the first solution has less to wait for", all(fewer),
                  f"fewer steps of a block at {sum(fewer)} of {len(fewer)} lengths above {BLOCK}: {_ratio(steps, longer, WIDE, PASSES)}"),
            Claim("the second one is more efficient in most cases", sum(cheaper) > len(cheaper) / 2,
                  f"fewer warp instructions per pair at {sum(cheaper)} of {len(cheaper)} lengths: {_ratio(work, longer, PASSES, WIDE)}"),
        ],
        "If all blocks are resident, the number of steps decides, and the larger block has fewer; otherwise smaller blocks "
        "fill it better, and passes issue fewer instructions.",
        [Table("Equal lengths of both sequences", rows)],
        [*_plots(setting, (WIDE, PASSES)), _crossover(in_a_row)],
        note="The paper prints no numbers of this figure. Steps in a row: those of a block, times the number of waves of "
        "blocks; registers are those of sm_90.",
    )  # fmt: skip


def _crossover(in_a_row: Mapping[tuple[str, int, int], float]) -> Chart:
    """Return a plot of the steps of both solutions by length, for each number of pairs."""
    named = {WIDE: "larger block", PASSES: "passes"}
    return Chart("Steps in a row", "bases of R1 and R2", "steps", [
        Series(f"{name}, {batch} pairs", Source.emulator,
               [(length, steps) for (v, length, b), steps in in_a_row.items() if (v, b) == (variant, batch)])
        for batch in BATCHES
        for variant, name in named.items()
    ], logarithmic=True)  # fmt: skip


def _faster(setting: Setting, batch: int, lengths: Sequence[int]) -> list[bool]:
    """Return the lengths with the larger block faster."""
    wide, passes = (rates(setting, variant, batch) for variant in (WIDE, PASSES))
    return [wide[length].rate > passes[length].rate for length in lengths if length in wide and length in passes]


def _all(results: list[bool]) -> bool | None:
    return all(results) if results else None


def _few(results: list[bool]) -> bool | None:
    return sum(results) < len(results) / 2 if results else None


def _evidence(measured: Mapping[int, list[bool]], batches: Sequence[int]) -> str:
    if not all(measured[batch] for batch in batches):
        return "needs times of a GPU"
    return "; ".join(
        f"{batch} pairs: it is at {sum(measured[batch])} of {len(measured[batch])} lengths" for batch in batches
    )


def _ratio(values: Mapping[tuple[str, int], float], lengths: Sequence[int], less: str, more: str) -> str:
    last = lengths[-1]
    return f"{values[more, last] / values[less, last]:.2f} times at {last} bases"


def _plots(setting: Setting, variants: Sequence[str]) -> list[Chart]:
    """Return a plot of measured values for each measured number of pairs."""
    charts = []
    for batch in BATCHES:
        series = [
            Series(variant, Source.gpu, [(length, timing.rate / 1e9) for length, timing in rates(setting, variant, batch).items()])
            for variant in variants
        ]  # fmt: skip
        if any(one.points for one in series):
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
    for length in lengths:
        row: Row = {about("bases"): length}
        for variant, name in variants.items():
            loads = loads_per_pair(setting, variant, length)
            grown[variant].append(loads)
            counted[name].append((length, loads))
            row = {**row, emulator(f"loads per pair, {name}"): loads}
            if timing := setting.timing(timing_name(f"{variant}, equal sequences", length, 100, 2), Machine.gpu):
                row = {**row, gpu(f"ms, {name}, {timing.machine}"): timing.milliseconds}
        rows.append(row)
    constant, growing = variants
    linear = all(loads == length for loads, length in zip(grown[growing], lengths, strict=True))
    return Shown(
        [
            Claim(claims[0], len(set(grown[constant])) == 1, f"{grown[constant][0]:.0f} load per pair at every length"),
            Claim(claims[1], linear, f"{grown[growing][0]:.0f} loads at {lengths[0]} bases, {grown[growing][-1]:.0f} at {lengths[-1]}"),
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
                if timing := rates(setting, variant, batch).get(length):
                    row = {**row, gpu(f"GCUPS, {batch} pairs, {timing.machine}"): timing.rate / 1e9}
            rows.append(row)
    ratios = [rate / modelled[PEER, n, b] for (v, n, b), rate in modelled.items() if v == WIDE]
    shared = {size: 2 * STRIPS * BLOCK * size + STRIPS * BLOCK for size in (SHORT, INTEGER)}
    busy = {batch: -(-batch // BLOCK) for batch in BATCHES}
    slower = [
        rates(setting, WIDE, batch)[length].rate > timing.rate
        for batch in BATCHES
        for length, timing in rates(setting, PEER, batch).items()
        if length in rates(setting, WIDE, batch)
    ]
    return Shown(
        [
            Claim("gpu-pairAlign is much slower at all sizes", all(slower) if slower else None,
                  f"at {sum(slower)} of {len(slower)} sizes on the GPU" if slower else "needs times of a GPU"),
            Claim("... also on a K40, by the time model", min(ratios) > 1 if ratios else None,
                  f"{min(ratios):.1f} to {max(ratios):.0f} times as slow" if ratios else "not predicted: --batch is below 25"),
            Claim("it cannot fill the GPU with small sets", all(blocks < K40.sms for blocks in busy.values()),
                  ", ".join(f"{batch} pairs: {blocks} of {K40.sms} SMs" for batch, blocks in busy.items())),
            Claim("integers instead of shorts make its shared memory larger", shared[INTEGER] > shared[SHORT],
                  f"{shared[INTEGER]:,} bytes a block of {BLOCK} threads instead of {shared[SHORT]:,}"),
            Claim("... and its global memory accesses more", None,
                  "a row's two integers are one access of 8 bytes as two shorts are one of 4: bytes double, requests do not"),
        ],
        "A thread per pair leaves most of the GPU idle and computes all cells in sequence. By instructions and bytes per cell "
        "it is the cheaper one; a larger number of pairs would show it.",
        [Table("First stage, equal lengths of both sequences", rows)],
        _plots(setting, (WIDE, PEER)),
        note=f"Counted for {setting.whole('pairs')} pairs of the paper's implementation and for a warp of {peers} of "
        f"gpu-pairAlign, by strips of {STRIPS} rows with its integers in shared memory.",
    )  # fmt: skip


# ------------------------------------------------------------------ Figure 12 and Table 3: against a CPU
def _speedups(setting: Setting) -> dict[tuple[int, int], float]:
    """Return the measured speedups of both stages over the loop on one core, by length and pairs."""
    ratios = {}
    for length in LENGTHS:
        loops = [setting.timing(loop_name(length, stage), Machine.core) for stage in (1, 2)]
        for pairs in BATCHES:
            kernels = [setting.timing(timing_name(WIDE, length, pairs, stage), Machine.gpu) for stage in (1, 2)]
            if all(loops) and all(kernels):
                alone = sum(loop.milliseconds / loop.work for loop in loops if loop)
                ratios[length, pairs] = alone * length * length * pairs / sum(k.milliseconds for k in kernels if k)
    return ratios


def speedups(setting: Setting) -> Shown:
    """Fig. 12."""
    ratios = _speedups(setting)
    rows: list[Row] = []
    for length in LENGTHS if setting.measured.timings else ():
        row: Row = {about("bases"): length}
        for machine in (Machine.core, Machine.cores):
            if timing := setting.timing(loop_name(length, 1), machine):
                row = {**row, cpu(f"GCUPS of the first stage, {machine}: {timing.machine}"): timing.rate / 1e9}
        for pairs in BATCHES:
            if (length, pairs) in ratios:
                row = {**row, gpu(f"speedup, {pairs} pairs"): ratios[length, pairs]}
        rows.append(row)
    larger = [
        ratios[length, 1_000] > max(ratios[length, 25], ratios[length, 100])
        for length in LENGTHS
        if (length, 1_000) in ratios
    ]
    return Shown(
        [
            Claim("up to 80 times as fast as one core", max(ratios.values()) >= 80 if ratios else None,
                  f"up to {max(ratios.values()):.0f} times" if ratios else "needs times of a GPU and of a CPU"),
            Claim("the speedup is larger with 1,000 pairs than with 25 and 100", all(larger) if larger else None,
                  f"at {sum(larger)} of {len(larger)} lengths" if larger else "needs times of a GPU and of a CPU"),
        ],
        "The speedups are of a K40 over a Power8 core in the paper, and of current machines here.",
        [Table("Both stages against the plain loop", rows)] if rows else [],
        [Chart("Speedup over one core", "bases of R1 and R2", "times", [
            Series(f"{pairs:,} pairs", Source.gpu, [(length, ratios[length, pairs]) for length in LENGTHS if (length, pairs) in ratios])
            for pairs in BATCHES
        ])] if ratios else [],
        note="The paper's baseline is C++ on one core of a Power8; the plain loop is compiled Python with the same two stages.",
    )  # fmt: skip


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
            Claim("situation 2 is 14.14 times and situation 3 4.89 times as fast as on one core", None, "the data set is not public"),
            Claim("throughput falls with small batches: 0.64 GCUPS in situation 3", None, "see Fig. 8 for batches of 25"),
        ],
        "The input is not public; of the printed numbers, times give the printed speedups, and a pair of situation 2 has "
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
        [Claim("GATK with both on the GPU is 2.30 times as fast as the baseline", None, "GATK is not included")],
        "GATK HaplotypeCaller is not included, only its alignments and likelihoods.",
        [Table("Whole runs of GATK HaplotypeCaller", rows)],
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
    ),
    benchmarks=benchmarks,
)
