"""Problems of Ren 2019, the counters of each kernel by the rules of the K40, and timed work on a GPU and a CPU."""

from collections.abc import Callable, Iterator
from functools import cache, lru_cache, partial
from time import perf_counter

import numpy as np
import numpy.typing as npt
from simtbed import Counters
from simtbed.kernels import Agreement
from simtbed.kernels.alignment import FAMILY
from simtbed.kernels.alignment.host.generate import generate
from simtbed.kernels.alignment.host.problem import Problem
from simtbed.model.launches import observe
from simtbed.model.time import estimate
from simtbed.oracles.alignment_loop import Integers, align_all
from simtbed.runtime.cores import current_cores
from simtbed.runtime.registry import EngineName

from ...bench.align import DIFFERENT, Stages, repeated
from .. import measured, recorded
from ..claims import Value, predicted_for
from ..measured import Benchmark, Check, Machine
from ..paper import Setting
from ..values import K40, counters_of, launches

LENGTHS = (64, 128, 192, 256, 320, 384, 448, 512, 576)
BATCHES = (25, 100, 1_000)
"""Lengths of both sequences and numbers of pairs of the synthetic sets."""


def sequences(length: int, pairs: int) -> Problem:
    """Return a synthetic set: alternates with substitutions and gaps, as in reads of wgsim."""
    return generate(length, pairs, (length, length), (length, length))


def equal_sequences(length: int, pairs: int, reference: int = 0) -> Problem:
    """Return the set of Figures 9 and 11: alternates are prefixes of their references, so all moves are diagonal."""
    problem = generate(length, pairs, (reference or length, reference or length), (length, length))
    return Problem.from_pairs((r, r[:length] if len(r) >= length else a) for r, a in problem.pairs())


def counters(problem: Problem, variant: str, kernel: str, engine: EngineName) -> Counters:
    """Return the counters of a kernel over the launches of a variant."""
    return counters_of(partial(FAMILY.solve, problem, variant), engine, K40, kernel)


@cache
def of_set(length: int, pairs: int, variant: str, kernel: str, engine: EngineName) -> Counters:
    """Of a synthetic set."""
    return counters(sequences(length, pairs), variant, kernel, engine)


@cache
def predicted(length: int, pairs: int, variant: str, engine: EngineName) -> Value:
    """Predict the GCUPS of the first stage on a K40, with the registers of `registers_of`."""
    problem = sequences(length, pairs)
    requests = (r.request for r in launches(partial(FAMILY.solve, problem, variant), engine, K40, counters=False))
    first = (request for request in requests if request.program.kernel.name != "traceback")
    times = [estimate(observe(request, registers_of(variant), engine), K40) for request in first]
    ends = zip(*((t.time_us, t.high_us, t.low_us) for t in times), strict=True)
    time, low, high = (problem.cells / microseconds / 1e3 for microseconds in map(sum, ends))
    return Value(predicted_for(K40), time, "", (low, high))


def registers_of(variant: str) -> int:
    """Return the registers per thread recorded for sm_90; without a record, the maximum of a fully occupied K40."""
    return recorded.registers(f"alignment {variant}") or 32


WIDE, PASSES, PEER, OURS = "wide-diagonal-major-runs", "passes-diagonal-major-runs", "pairalign", "packed"
TIMED = (WIDE, PASSES, PEER, OURS)
STEPS = "wide-diagonal-major-steps"
SECOND = (WIDE, STEPS, PEER)
LOOP = "plain loop"
LOOP_CELLS = 1 << 24
"""Fraction of the pairs of a length timed with the loop."""
FEW = 3
"""Pairs of the correctness check."""
BLOCK = 128
"""Threads of a block of `passes` and of `pairalign`."""


# ------------------------------------------------------------------ times
def timing_name(what: str, length: int, pairs: int, stage: int) -> str:
    """Return the name of the timing of a variant on a synthetic set."""
    return f"{what}, {length} bases, {pairs} pairs, stage {stage}"


def loop_name(length: int, stage: int) -> str:
    """Return the name of the timing of the loop."""
    return f"{LOOP}, {length} bases, stage {stage}"


def benchmarks(setting: Setting) -> Iterator[Benchmark]:
    """Yield both stages of the loop on a CPU, and of the kernels of Figures 8 to 12 on a GPU."""
    for length in LENGTHS:
        for machine, threads in ((Machine.core, 1), (Machine.cores, current_cores())):
            for stage in (1, 2):
                run = partial(_loop, length, stage, threads)
                yield Benchmark(loop_name(length, stage), machine, run, Check(LOOP, _loop_agrees))
    for length in LENGTHS:
        for variant in sorted({*TIMED, *SECOND}):
            check = measured.on_gpu(FAMILY, variant, partial(sequences, length, FEW), f"{length} bases")
            for pairs in BATCHES if variant in TIMED else ():
                for stage in (1, 2):
                    run = partial(_kernels, variant, length, pairs, stage)
                    yield Benchmark(timing_name(variant, length, pairs, stage), Machine.gpu, run, check)
            if variant in SECOND:
                name = timing_name(f"{variant}, equal sequences", length, 100, 2)
                yield Benchmark(name, Machine.gpu, partial(_second, variant, length), check)


def _kernels(variant: str, length: int, pairs: int, stage: int, repeat: int) -> tuple[list[float], float]:
    return _stages(variant, length, pairs, repeat)[stage - 1], pairs * length * length


@lru_cache(maxsize=1)
def _stages(variant: str, length: int, pairs: int, repeat: int) -> tuple[list[float], list[float]]:
    return _both(repeated(sequences(length, min(pairs, DIFFERENT)), pairs), variant, repeat)


def _second(variant: str, length: int, repeat: int) -> tuple[list[float], float]:
    problem = equal_sequences(length, 100)
    return _both(problem, variant, repeat)[1], len(problem)


def _both(problem: Problem, variant: str, repeat: int) -> tuple[list[float], list[float]]:
    """Return the milliseconds of both stages, after a warm-up run."""
    stage_times: tuple[list[float], list[float]] = [], []
    for _ in range(repeat + 1):
        stages = Stages()
        FAMILY.solve(problem, variant, stages)
        for times, stage in zip(stage_times, ("stage 1", "stage 2"), strict=True):
            times.append(stages.milliseconds[stage])
    return stage_times[0][1:], stage_times[1][1:]


def _loop(length: int, stage: int, threads: int, repeat: int) -> tuple[list[float], float]:
    """Return the times of the first stage, or of both minus the first."""
    return _loops(length, threads, repeat)[stage - 1], _loop_pairs(length) * length * length


def _loop_pairs(length: int) -> int:
    return max(1, LOOP_CELLS // length**2)


@lru_cache(maxsize=1)
def _loops(length: int, threads: int, repeat: int) -> tuple[list[float], list[float]]:
    align = partial(by_loop, sequences(length, _loop_pairs(length)), threads)
    align()
    first, second = [], []
    for _ in range(repeat):
        first.append(_milliseconds(partial(align, trace=False)))
        second.append(max(_milliseconds(align) - first[-1], 0.0))
    return first, second


def by_loop(problem: Problem, threads: int = 1, trace: bool = True) -> tuple[Integers, npt.NDArray[np.uint32]]:
    """Return the result of `align_all` for a problem."""
    sequences = problem.references, problem.reference_offsets, problem.alternates, problem.alternate_offsets
    return align_all(*sequences, problem.parameters, threads, trace)


def _loop_agrees() -> Agreement:
    """Compare scores and positions of the loop with the oracle. Another test covers its operations."""
    problem = sequences(LENGTHS[0], FEW)
    expected, (actual, _) = FAMILY.oracle(problem), by_loop(problem)
    answer = expected.copy()
    answer["offset"], answer["score"] = actual[:, 0], actual[:, 1]
    return FAMILY.compare(answer, expected)


def _milliseconds(work: Callable[[], object]) -> float:
    start = perf_counter()
    work()
    return 1e3 * (perf_counter() - start)
