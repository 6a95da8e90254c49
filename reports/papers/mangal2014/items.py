"""Tables, figure, algorithms and headline claims of Mangal and Jain 2014, compared with counters and predictions."""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import lru_cache, partial

from simtbed.kernels.correction import FAMILY, MANGAL
from simtbed.kernels.correction.host import pipeline
from simtbed.kernels.correction.host.problem import Parameters, Problem
from simtbed.oracles.correction import Bloom, correct, solid_kmers

from ...explanation import choices
from ...launchers import Runner
from .. import checks
from ..claims import COMPUTED, PRINTED, Claim, Comparison, Source, exactly, more_than, near, predicted_for
from ..measured import Benchmark, Machine
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
    emulator,
    gpu,
    model,
    paper,
)
from ..predicted import CAVEAT
from ..ratios import near_speedups, speedups
from . import profiles
from .counting import ALL_READS, ALONE, MIN_MULTIPLICITY, TIMED, Data, Work, corrected, counted, least, throughput
from .profiled import K
from .profiles import AFTER, BEFORE, DATA, efficiency, traffic, work

STEPS = (
    ("original code", 5.67, BEFORE),
    ("only one thread executing per warp", 26.17, ALONE),
    ("other optimization", 5.85, "thread-per-read-direct"),
    ("loop unrolling", 5.78, "thread-per-read-unrolled"),
    ("shared memory in place of global memory", 5.94, "thread-per-read-shared"),
    ("warp divergence", 4.94, AFTER),
)
"""Table 4: step, seconds, variant."""
SECONDS = {variant: seconds for _, seconds, variant in STEPS}
CHECKED = Data(600, 300, 0.02)
"""Reads of the correctness check."""
READS_IN_GLOBAL, READS_IN_SHARED = (
    pipeline.Optimisations(unroll=False, reads_in_shared=shared, votes_in_shared=False) for shared in (False, True)
)
"""The step of section 5.2, by `thread-per-read-lean`."""


def benchmarks(setting: Setting) -> Iterator[Benchmark]:
    """Yield the kernel of each step on a GPU."""
    for _, _, variant in STEPS:
        check = checks.on_gpu(FAMILY, variant, partial(_problem, CHECKED))
        yield Benchmark(variant, Machine.gpu, partial(_kernel, setting, variant), check)


def _problem(data: Data) -> Problem:
    return Problem(data.simulated(), Parameters(K, MIN_MULTIPLICITY, filter="bloom"))


@lru_cache(maxsize=1)
def _prepared(data: Data) -> tuple[Problem, pipeline.Filter]:
    problem = _problem(data)
    return problem, pipeline.filter_of(problem, Runner("cuda"), words=False)


def _kernel(setting: Setting, variant: str, repeat: int) -> tuple[list[float], float]:
    data = work(setting, variant).data
    problem, filter = _prepared(data)
    times = []
    for _ in range(repeat + 1):  # the first one compiles
        runner = Runner("cuda")
        pipeline.correct(problem.reads, filter, problem.parameters, variant, runner)
        times.append(runner.milliseconds or math.nan)
    return times[1:], data.reads


# ------------------------------------------------------------------ Table 4
def _step_rows(setting: Setting) -> list[Row]:
    """Return the rows of Table 4."""
    rows: list[Row] = []
    for step, seconds, variant in STEPS:
        corrected_reads, counters = corrected(work(setting, variant))
        reads = len(corrected_reads.reads)
        nanoseconds, bound = least(counters, reads)
        prediction = throughput(work(setting, variant), TIMED)
        row: Row = {
            about("step"): step, about("variant"): variant, paper("seconds"): seconds,
            emulator("warp instructions per read"): round(counters.total("warp_instructions") / reads),
            emulator("efficiency, %"): round(efficiency(counters), 1), **traffic(counters, reads),
            model("M2090, seconds of 1.7 million reads"): round(prediction.seconds, 2),
            model("from"): round(ALL_READS * prediction.low / 1e9, 2), model("to"): round(ALL_READS * prediction.high / 1e9, 2),
            model("bound by"): prediction.bound, model("at least"): round(ALL_READS * nanoseconds / 1e9, 2), model("for"): bound,
        }  # fmt: skip
        for timings in setting.by_machine([variant], Machine.gpu):
            timing = timings[variant]
            row = {**row, gpu(f"{timing.machine}, seconds of 1.7 million reads"): ALL_READS / timing.rate}
        rows.append(row)
    return rows


def _near_step(setting: Setting, before: str, after: str, tolerance: float) -> list[Comparison]:
    """Compare the speedup of a step with the paper's, by the time model and on each GPU."""
    ratio = throughput(work(setting, before), TIMED).seconds / throughput(work(setting, after), TIMED).seconds
    expected = SECONDS[before] / SECONDS[after]
    return [
        near(predicted_for(TIMED), f"speedup over {before}", ratio, expected, tolerance),
        *near_speedups(setting, Machine.gpu, before, after, expected, tolerance),
    ]


def _faster(setting: Setting, before: str, after: str) -> list[Comparison]:
    """Compare two variants, by the time model and on each GPU: the second one is faster."""
    ratio = throughput(work(setting, before), TIMED).seconds / throughput(work(setting, after), TIMED).seconds
    ratios = [(predicted_for(TIMED), ratio), *speedups(setting, Machine.gpu, before, after)]
    return [more_than(origin, f"speedup over {before}", value, 1) for origin, value in ratios]


def steps(setting: Setting) -> Shown:
    """Table 4."""
    _, _, direct, unrolled, shared, warp = (variant for _, _, variant in STEPS)
    times = [(variant, throughput(work(setting, variant), TIMED).seconds) for variant in SECONDS]
    return Shown(
        [
            Claim("a warp per read is faster than the original code", _faster(setting, BEFORE, warp), main=True),
            Claim("with one thread per warp it takes 4.6 times as long", _near_step(setting, ALONE, BEFORE, 0.25)),
            Claim("other optimization alone: 5.67 to 5.85 s", _near_step(setting, BEFORE, direct, 0.1)),
            Claim("loop unrolling: 5.85 to 5.78 s", _near_step(setting, direct, unrolled, 0.1)),
            Claim("shared memory in place of global memory: 5.78 to 5.94 s", _near_step(setting, unrolled, shared, 0.1)),
            Claim("warp divergence: 5.94 to 4.94 s", _near_step(setting, shared, warp, 0.1)),
        ],
        "The warp's kernel waits for its own chain of votes. The thesis of the paper, that a warp per read is faster, fails in the "
        "time model and on the measured GPUs.",
        [Table("Steps, each with those before it", _step_rows(setting))],
        [Chart("Table 4", "", "seconds of 1.7 million reads", [
            Series("paper, M2090", Source.paper, list(SECONDS.items())), Series("time model, M2090", Source.model, times),
        ], bars=True)],
        DATA + " Lower bound: the time of the most used resource; every global access is a DRAM access. " + CAVEAT
        + " L2 is whole.",
    )  # fmt: skip


def reads_in_shared(setting: Setting) -> Shown:
    """Section 5.2."""
    data, engine = work(setting, BEFORE).data, setting.engine
    slow, fast = (
        throughput(Work("thread-per-read-lean", data, engine, switches=switches), TIMED).seconds
        for switches in (READS_IN_GLOBAL, READS_IN_SHARED)
    )
    rows: list[Row] = [
        {about("reads"): where, paper("seconds"): seconds, model("M2090, seconds of 1.7 million reads"): round(time, 2)}
        for where, seconds, time in (("in global memory", 5.6, slow), ("in shared memory", 5.11, fast))
    ]
    return Shown(
        [Claim("copying the reads to shared memory reduces the time from 5.6 to 5.11 seconds",
               [near(predicted_for(TIMED), "speedup", slow / fast, 5.6 / 5.11, 0.05)], main=True)],
        "The step is predicted for `thread-per-read-lean`, which has it as an option; the paper's kernel is the original one.",
        [Table("Reads of 36 bases", rows)],
        note=DATA + " " + CAVEAT,
    )  # fmt: skip


# ------------------------------------------------------------------ the algorithms
FEW = 64
"""Reads for the oracle, which is slow."""


def differing(setting: Setting, variant: str, split: int | None = None) -> int:
    """Return how many of the first reads differ from the oracle's, with a filter of the reads' own k-mers."""
    data = work(setting, variant).data
    problem = Problem(data.simulated(), Work(variant, data, setting.engine, split).parameters)
    runner = Runner(setting.engine)
    filter = pipeline.filter_of(problem, runner, words=False)
    corrected_reads = pipeline.correct(problem.reads, filter, problem.parameters, variant, runner)
    reads = problem.reads.strings()
    bloom = Bloom(solid_kmers(reads, K, MIN_MULTIPLICITY), "split-first" if split else "standard", split or 16)
    expected = [correct(read, bloom, K, 2, 20, True) for read in reads[:FEW]]
    actual = [(chr(corrected_reads.flags[r]), corrected_reads.sequence(r)) for r in range(FEW)]
    return sum(one != (e.flag, e.sequence) for one, e in zip(actual, expected, strict=True))


def _agrees(setting: Setting, variant: str, text: str) -> Claim:
    compared = exactly(COMPUTED, f"reads that differ from the oracle's, of {FEW}", differing(setting, variant), 0)
    return Claim(text, [compared], main=True, remark=f"The variant is `{variant}`.")


def original_algorithm(setting: Setting) -> Shown:
    """Algorithm 1."""
    return Shown(
        [_agrees(setting, BEFORE, "one thread corrects a read by votes in local memory")],
        "The variant has the paper's loops, with the buffers of section 6.2 and the copy of section 6.3.",
        note=f"{DATA} {choices(FAMILY, BEFORE)}",
    )


def new_algorithm(setting: Setting) -> Shown:
    """Algorithm 2."""
    before, after = (
        [str(answer) for answer in corrected(work(setting, variant))[0].answer()] for variant in (BEFORE, AFTER)
    )
    changed = sum(old != new for old, new in zip(before, after, strict=True))
    return Shown(
        [
            _agrees(setting, AFTER, "one warp corrects a read, a lane per position of the k-mer"),
            Claim("the output is precisely the original's",
                  [exactly(COMPUTED, f"reads with another output, of {len(before):,}", changed, 0)], main=True),
            Claim("the loop over positions is i = 0; i += WARPSIZE",
                  [exactly(COMPUTED, f"positions of a {K}-mer that the loop as printed visits", len(range(0, K, 32)), K)],
                  remark="Every lane takes position 0: the loop must begin at the lane."),
            Claim("a read is finished when no lane has found a solid mutant", [],
                  remark="As printed the loop ends for reads that are not corrected, and repeats for corrected ones."),
        ],
        "The kernel gives the original's reads; the loop and the end of Algorithm 2 are wrong as printed.",
        note=f"{DATA} {choices(FAMILY, AFTER)}",
    )  # fmt: skip


# ------------------------------------------------------------------ the abstract
def headlines(setting: Setting) -> Shown:
    """Abstract and conclusion."""
    counters = counted(work(setting, AFTER))
    return Shown(
        [
            Claim("the new implementation reduces the time of the kernel", _faster(setting, BEFORE, AFTER), main=True),
            Claim("... by 14.81 %", [
                near(PRINTED, "5.67 s / 4.94 s - 1, %", 100 * (5.67 / 4.94 - 1), 14.81, 0.005),
                near(predicted_for(TIMED), "speedup - 1, %", 100 * (_speedup(setting) - 1), 14.81, 0.25),
                *(near(origin, "speedup - 1, %", 100 * (ratio - 1), 14.81, 0.25)
                  for origin, ratio in speedups(setting, Machine.gpu, BEFORE, AFTER)),
            ], remark="The quotient of the printed times gives 14.78 %; as a reduction of time it is 12.87 %."),
            Claim("warp efficiency rises from 3.5 % to 64.6 %", [near(PRINTED, "efficiency of Table 3, %", 65.7, 64.6, 0.005)],
                  remark=f"See Tables 1 and 3; the kernel has {efficiency(counters):.1f} % here."),
        ],
        "The kernel with a warp per read is slower here; the abstract's efficiency is not that of Table 3.",
        note=DATA,
    )  # fmt: skip


def _speedup(setting: Setting) -> float:
    before, after = (throughput(work(setting, variant), TIMED).seconds for variant in (BEFORE, AFTER))
    return before / after


PAPER = Paper(
    name="mangal2014",
    title="Error correction in high-throughput short-read data on GPU (Mangal, Jain 2014)",
    citation=MANGAL,
    device="K20m",
    parameters=(
        Parameter("genome", 2_400, 3_598_621, "bases of the genome"),
        Parameter("reads", 1_134, 1_700_000, "reads of 36 bases"),
        Parameter("error_rate", 0.015, 0.015, "substitutions per base; the paper: 0.5 % to 2.5 %"),
        Parameter(
            "split", 0.0625, 0.0625, "share of the filter for its first hash function; the paper does not state it"
        ),
    ),
    items=(
        Item("Table 1", "Profile of the original code", profiles.before),
        Item("Figure 1", "Modified bloom filter architecture", profiles.modified_filter),
        Item("Table 2", "Effect of the modified bloom filter", profiles.filter_accesses),
        Item("Section 5.2", "Reads in shared memory", reads_in_shared),
        Item("Table 3", "Profile of the new implementation", profiles.after),
        Item("Table 4", "Time after every modification", steps),
        Item("Algorithm 1", "Original CUDA-EC algorithm", original_algorithm),
        Item("Algorithm 2", "New CUDA-EC execution flow", new_algorithm),
        Item("Headlines", "Claims of the abstract", headlines),
    ),
    benchmarks=benchmarks,
)
