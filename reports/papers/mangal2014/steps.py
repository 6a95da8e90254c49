"""Table 4, section 5.2 and the algorithms of Mangal and Jain 2014: speedups of its steps, and answers."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache, partial

from simtbed.kernels.correction import FAMILY
from simtbed.kernels.correction.host import pipeline
from simtbed.kernels.correction.host.problem import Parameters, Problem
from simtbed.language.intrinsics import WARP_SIZE
from simtbed.oracles.correction import Bloom, correct, solid_kmers

from ...explanation import choices
from ...launchers import Runner, kernel_times
from .. import checks
from ..claims import Source, Value, quotient
from ..definitions import printed
from ..measured import Benchmark, Machine
from ..paper import Chart, Figures, Row, Series, Setting, Table, about, emulator, gpu, model, paper
from ..values import computed, predicted_cells, speedups
from .counting import ALL_READS, MIN_MULTIPLICITY, TIMED, Data, Work, corrected, least, throughput
from .profiled import K
from .profiles import AFTER, BEFORE, TEXTS, efficiency, traffic, work

STEPS: list[tuple[str, float, str]] = printed("mangal2014")["steps"]
"""Table 4: step, seconds, variant."""
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
    solve = partial(pipeline.correct, problem.reads, filter, problem.parameters, variant)
    return kernel_times(solve, repeat), data.reads


# ------------------------------------------------------------------ Table 4 and section 5.2
def _seconds(setting: Setting, variant: str) -> Value:
    return throughput(work(setting, variant), TIMED).seconds


def _speedup(setting: Setting, before: str, after: str) -> list[Value]:
    """Return the speedup of a step, by the time model and on each GPU."""
    return [
        quotient(_seconds(setting, before), _seconds(setting, after)),
        *speedups(setting, Machine.gpu, before, after),
    ]


def steps(setting: Setting) -> Figures:
    """Table 4."""
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
            **predicted_cells("M2090, seconds of 1.7 million reads", prediction.seconds), model("bound by"): prediction.bound,
            emulator("seconds by counts"): round(ALL_READS * nanoseconds / 1e9, 2), emulator("for"): bound,
        }  # fmt: skip
        for timing in setting.timings(variant, Machine.gpu):
            row = {**row, gpu(f"{timing.machine}, seconds of 1.7 million reads"): ALL_READS / timing.rate}
        rows.append(row)
    first, alone, direct, unrolled, shared, warp = (variant for _, _, variant in STEPS)
    pairs = {
        "whole": (first, warp), "alone": (alone, first), "direct": (first, direct), "unrolled": (direct, unrolled),
        "in shared": (unrolled, shared), "warp": (shared, warp),
    }  # fmt: skip
    times = [(variant, _seconds(setting, variant).value or 0.0) for _, _, variant in STEPS]
    return Figures(
        {name: _speedup(setting, *pair) for name, pair in pairs.items()},
        [Table("Steps, each with those before it", rows)],
        [Chart("Table 4", "", "seconds of 1.7 million reads", [
            Series("paper, M2090", Source.paper, [(variant, seconds) for _, seconds, variant in STEPS]),
            Series("time model, M2090", Source.model, times),
        ], bars=True)],
        TEXTS,
    )  # fmt: skip


def reads_in_shared(setting: Setting) -> Figures:
    """Section 5.2."""
    data, engine = work(setting, BEFORE).data, setting.engine
    slow, fast = (
        throughput(Work("thread-per-read-lean", data, engine, switches=switches), TIMED).seconds
        for switches in (READS_IN_GLOBAL, READS_IN_SHARED)
    )
    rows: list[Row] = [
        {about("reads"): where, paper("seconds"): seconds, model("M2090, seconds of 1.7 million reads"): time.value}
        for where, seconds, time in (("in global memory", 5.6, slow), ("in shared memory", 5.11, fast))
    ]
    return Figures({"speedup": [quotient(slow, fast)]}, [Table("Reads of 36 bases", rows)], texts=TEXTS)


# ------------------------------------------------------------------ the algorithms
FEW = 64
"""Reads for the oracle, which is slow."""


def differing(setting: Setting, variant: str) -> int:
    """Return how many of the first reads differ from the oracle's, with a filter of the reads' own k-mers."""
    data = work(setting, variant).data
    problem = Problem(data.simulated(), Work(variant, data, setting.engine).parameters)
    runner = Runner(setting.engine)
    filter = pipeline.filter_of(problem, runner, words=False)
    corrected_reads = pipeline.correct(problem.reads, filter, problem.parameters, variant, runner)
    reads = problem.reads.strings()
    bloom = Bloom(solid_kmers(reads, K, MIN_MULTIPLICITY), "standard", 16)
    expected = [correct(read, bloom, K, 2, 20, True) for read in reads[:FEW]]
    actual = [(chr(corrected_reads.flags[r]), corrected_reads.sequence(r)) for r in range(len(expected))]
    return sum(one != (e.flag, e.sequence) for one, e in zip(actual, expected, strict=True))


def original_algorithm(setting: Setting) -> Figures:
    """Algorithm 1."""
    texts = {**TEXTS, "choices": choices(FAMILY, BEFORE)}
    return Figures({"differing": computed(differing(setting, BEFORE), f"of {FEW}")}, texts=texts)


def new_algorithm(setting: Setting) -> Figures:
    """Algorithm 2."""
    before, after = (
        [str(answer) for answer in corrected(work(setting, variant))[0].answer()] for variant in (BEFORE, AFTER)
    )
    changed = sum(old != new for old, new in zip(before, after, strict=True))
    return Figures(
        {
            "differing": computed(differing(setting, AFTER), f"of {FEW}"),
            "changed": computed(changed, f"of {len(before):,}"),
            "visited": computed(len(range(0, K, WARP_SIZE))),
        },
        texts={**TEXTS, "choices": choices(FAMILY, AFTER)},
    )
