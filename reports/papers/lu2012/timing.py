"""Timed work of Lu 2012: GAMA-CPU as loops on one and all cores, GAMA kernels and normalisation on a GPU."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
from simtbed import Kernel, Result, launch
from simtbed.kernels import Agreement, Launcher
from simtbed.kernels.sfs import FAMILY
from simtbed.kernels.sfs.host import pipeline, pipeline_components
from simtbed.kernels.sfs.host.generate import generate, likelihoods
from simtbed.kernels.sfs.host.pipeline_plain import normalised_as_printed, summing_to_one
from simtbed.kernels.sfs.host.problem import Floats, Problem
from simtbed.oracles import sfs_loop
from simtbed.oracles.sfs import product

from ...bench.pairhmm import Timer
from ...launchers import Runner, wall_times
from .. import checks
from ..measured import Benchmark, Check, Machine
from ..paper import Setting
from .counting import Genotypes

LOOPS: dict[str, Callable[[Floats], Floats]] = {
    "iterative": sfs_loop.iterative,
    "reduction": partial(sfs_loop.reduced, skip=False),
    "reduction, zeros skipped": partial(sfs_loop.reduced, skip=True),
}
"""GAMA-CPU: plain loops, compiled."""
KERNELS = {
    "iterative": "iterative", "reduction in global memory": "reduction", "reduction": "reduction-shared",
    "reduction, zeros skipped": "reduction-shared-skip", "explicit synchronization": "reduction-shared-block",
}  # fmt: skip
CHECKED = partial(generate, 5, 8, 32, "gama")
"""The problem of the correctness check."""
SITES_ON_CPU, DIFFERENT = {Machine.core: 512, Machine.cores: 4_096}, 256
"""Sites of a loop, so that the fastest one takes a tenth of a second; DIFFERENT of them are distinct."""
SITES_ON_GPU = {"iterative": 131_072} | dict.fromkeys(list(KERNELS.values())[1:], 4_096)
"""Sites that fill a current GPU: Algorithm 1 has a thread per site, the reductions a warp per merge."""
SITES_NORMALISED = 4_096
TIMED_COMPONENTS = {
    "data parsing": "data parsing", "SFS construction": "reduction, zeros skipped", "SFS normalization": "logarithms",
    "post-processing": "post-processing",
}  # fmt: skip
"""The benchmark of each component of Fig. 14."""


# ------------------------------------------------------------------ benchmarks
def benchmarks(setting: Setting) -> Iterator[Benchmark]:
    """Yield GAMA-CPU on one and all cores, GAMA kernels on a GPU, normalisation on one core."""
    n = setting.whole("individuals")
    for name, loop in LOOPS.items():
        check = Check(f"plain loop, {name}", partial(_loop_agrees, loop))
        for machine, run in ((Machine.core, loop), (Machine.cores, partial(sfs_loop.on_all_cores, loop))):
            yield Benchmark(name, machine, partial(_loop, run, n, SITES_ON_CPU[machine]), check)
    for name, normalise in NORMALISING.items():
        check = Check(f"plain loop, {name}", partial(_normalised_agrees, normalise))
        yield Benchmark(name, Machine.core, partial(_normalise, normalise, n, SITES_ON_CPU[Machine.core]), check)
    for name, variant in KERNELS.items():
        check = checks.on_gpu(FAMILY, variant, CHECKED)
        yield Benchmark(name, Machine.gpu, partial(_kernels, variant, n, SITES_ON_GPU[variant]), check)
    for name, normalising in NORMALISING_ON_GPU.items():
        check = Check(f"normalisation, {name}", partial(_normalised_on_gpu_agrees, normalising))
        yield Benchmark(name, Machine.gpu, partial(_normalise_on_gpu, normalising, n), check)
    check = Check("data parsing", _parsed_on_gpu_agrees)
    yield Benchmark("data parsing", Machine.gpu, partial(_parse_on_gpu, n), check)
    check = Check("post-processing", _summarised_on_gpu_agrees)
    yield Benchmark("post-processing", Machine.gpu, partial(_summarise_on_gpu, n), check)


def _loop_agrees(loop: Callable[[Floats], Floats]) -> Agreement:
    vectors = CHECKED().vectors()[0] / 3
    return checks.equal(loop(vectors), np.exp(product(vectors)))


def _normalised_agrees(normalise: Normalise) -> Agreement:
    problem = CHECKED()
    vectors, t = problem.vectors()
    return FAMILY.compare(
        normalise(sfs_loop.iterative(vectors), t, problem.fixed(), problem.variable), FAMILY.oracle(problem)
    )


Normalise = Callable[[Floats, Floats, Floats, float], Floats]
NORMALISING: dict[str, Normalise] = {
    "logarithms": sfs_loop.normalised,
    "long doubles": sfs_loop.normalised_in_long_doubles,
}


NormaliseOnGpu = Callable[[Problem, Launcher], Floats]


def _in_logarithms(problem: Problem, launcher: Launcher) -> Floats:
    products, scale = problem.vectors()
    return pipeline.normalised(problem, pipeline.VARIANTS["iterative"](products, launcher), scale, launcher)


def _in_double_doubles(problem: Problem, launcher: Launcher) -> Floats:
    return normalised_as_printed(problem, *problem.vectors(), launcher, extended=True)[0]


NORMALISING_ON_GPU: dict[str, NormaliseOnGpu] = {
    "logarithms": _in_logarithms, "double-doubles": _in_double_doubles,
}  # fmt: skip


class LastLaunch(Launcher):
    """A launcher for a GPU that records the time of its last launch."""

    milliseconds = 0.0

    def launch(self, kernel: Kernel, **arguments: Any) -> Result:
        result = launch(kernel, engine="cuda", counters=False, **arguments)
        self.milliseconds = result.milliseconds or 0.0
        return result


def _loop(loop: Callable[[Floats], Floats], n: int, sites: int, repeat: int) -> tuple[list[float], float]:
    divided = np.tile(summing_to_one(Genotypes(n).vectors(DIFFERENT))[0], (sites // DIFFERENT, 1, 1))
    return wall_times(lambda: loop(divided), repeat), sites


def _kernels(variant: str, n: int, sites: int, repeat: int) -> tuple[list[float], float]:
    """Return sites that fill a GPU; few of them are distinct, to limit the setup time."""
    timer = Timer(repeat)
    pipeline.VARIANTS[variant](np.tile(Genotypes(n).vectors(DIFFERENT), (sites // DIFFERENT, 1, 1)), timer)
    return [timer.milliseconds], sites


def _timed_launches(action: Callable[[Launcher], object], repeat: int) -> tuple[list[float], float]:
    """Time the last launch of an action on SITES_NORMALISED sites."""
    times = []
    for _ in range(repeat + 1):  # the first one compiles
        launched = LastLaunch()
        action(launched)
        times.append(launched.milliseconds)
    return times[1:], SITES_NORMALISED


def _parse_on_gpu(n: int, repeat: int) -> tuple[list[float], float]:
    text = pipeline_components.printed(np.resize(likelihoods(1, DIFFERENT, n), (SITES_NORMALISED, n, 3)))
    return _timed_launches(lambda launcher: pipeline_components.parsed(text, launcher), repeat)


def _parsed_on_gpu_agrees() -> Agreement:
    values = likelihoods(1, 5, 43)
    expected = np.array([float(f"{value:.6f}") for value in values.ravel()])
    return checks.equal(
        pipeline_components.parsed(pipeline_components.printed(values), Runner("cuda")).ravel(), expected
    )


def _summarise_on_gpu(n: int, repeat: int) -> tuple[list[float], float]:
    posteriors = np.full((SITES_NORMALISED, 2 * n + 1), 1 / (2 * n + 1))
    return _timed_launches(lambda launcher: pipeline_components.summarised(posteriors, launcher), repeat)


def _summarised_on_gpu_agrees() -> Agreement:
    posteriors = np.random.default_rng(1).dirichlet(np.ones(601), 4)
    summary = pipeline_components.summarised(posteriors, Runner("cuda"))
    actual = np.concatenate([summary.expected, summary.variable, summary.most.astype(np.float64)])
    mean = posteriors @ np.arange(601) / 600
    return checks.equal(
        actual, np.concatenate([mean, 1 - posteriors[:, 0], posteriors.argmax(axis=1).astype(np.float64)])
    )


def _normalise_on_gpu(normalise: NormaliseOnGpu, n: int, repeat: int) -> tuple[list[float], float]:
    problem = generate(3, SITES_NORMALISED, n, "gama")
    return _timed_launches(lambda launcher: normalise(problem, launcher), repeat)


def _normalised_on_gpu_agrees(normalise: NormaliseOnGpu) -> Agreement:
    problem = CHECKED()
    return FAMILY.compare(normalise(problem, Runner("cuda")), FAMILY.oracle(problem))


def _normalise(normalise: Normalise, n: int, sites: int, repeat: int) -> tuple[list[float], float]:
    problem = generate(3, sites, n, "gama")
    h, t, fixed = sfs_loop.iterative(problem.vectors()[0]), problem.vectors()[1], problem.fixed()
    return wall_times(lambda: normalise(h, t, fixed, problem.variable), repeat), sites
