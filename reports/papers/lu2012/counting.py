"""Counters, predictions and timed work of Lu 2012: GAMA kernels by the rules of the C2070 and on a GPU, GAMA-CPU as loops."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
from simtbed import Counters, Kernel, Result, SimtbedError, devices, launch
from simtbed.escaping import printable
from simtbed.kernels import Agreement, FunctionLauncher, Launcher
from simtbed.kernels.sfs import FAMILY
from simtbed.kernels.sfs.host import pipeline, pipeline_components
from simtbed.kernels.sfs.host.generate import generate, likelihoods
from simtbed.kernels.sfs.host.pipeline_plain import Merges, merged, normalised_as_printed, summing_to_one
from simtbed.kernels.sfs.host.problem import Floats, Problem
from simtbed.kernels.sfs.normalise import normalise
from simtbed.kernels.sfs.normalise_printed import normalise_printed
from simtbed.oracles import sfs_loop
from simtbed.oracles.sfs import product
from simtbed.runtime.registry import EngineName
from simtbed.runtime.request import prepare_request

from ...bench.pairhmm import Timer
from ...launchers import Runner, wall_times
from .. import measured
from ..claims import Value, predicted_for
from ..measured import Benchmark, Check, Machine
from ..paper import Row, Setting
from ..predicted import Pace, pace
from ..values import Solve, counters_of, floors, launches, limit, predicted_cells

GPU = devices.C2070
CACHES_OFF = replace(GPU, name="C2070, caches off", loads_cached=False, load_sector=32)
"""The device with global loads that bypass L1."""


@dataclass(frozen=True)
class Count:
    """Counters of the products of a variant over a number of sites."""

    counters: Counters
    sites: int

    def a_site(self, event: str) -> float:
        return self.counters.total(event) / self.sites

    @property
    def limit(self) -> tuple[str, float]:
        """The most used resource, and the lower bound of the time per site that follows from it, in microseconds."""
        bounds = {name: ns / 1e3 for name, ns in floors(self.counters, self.sites, GPU).items()}
        cycles = 32 * self.a_site("warp_instructions.fp64") / GPU.rates.fp64
        return limit({**bounds, "fp64": cycles / (GPU.clock * GPU.sms)})


@dataclass(frozen=True)
class Genotypes:
    """Likelihoods of individuals: simulated at a depth, or the first ones of a file. Those up to a threshold are set to 0."""

    individuals: int
    depth: float = 20.0
    threshold: float = 1e-6
    file: Path | None = None

    @staticmethod
    def from_setting(setting: Setting, individuals: int | None = None) -> Genotypes:
        """Return those of a report. Raises SimtbedError if a file has fewer individuals."""
        n = individuals or setting.whole("individuals")
        return Genotypes(n, float(setting["depth"]), float(setting["threshold"]), setting.data)

    @cache  # noqa: B019 -- few objects, as long as a report
    def vectors(self, sites: int) -> Floats:
        """Return likelihoods, (sites, individuals, 3)."""
        if self.file:
            values = FAMILY.read(self.file).likelihoods
            if values.shape[1] < self.individuals:
                raise SimtbedError(f"{printable(self.file)} has {values.shape[1]} individuals: write --individuals N")
            values = np.resize(values[:, : self.individuals], (sites, self.individuals, 3))
        else:
            values = likelihoods(1, sites, self.individuals, self.depth)
        values[values <= self.threshold] = 0.0
        return values


@cache
def counted(variant: str, genotypes: Genotypes, sites: int, engine: EngineName) -> Count:
    """Count a shipped variant, with loads that bypass L1."""
    return _count(partial(pipeline.VARIANTS[variant], genotypes.vectors(sites)), sites, engine)


@cache
def blocks_of(block: int, genotypes: Genotypes, sites: int, engine: EngineName) -> Count:
    """The reduction with a block of coefficients of b in shared memory."""
    divided, _ = summing_to_one(genotypes.vectors(sites))
    return _count(lambda launcher: merged(divided, launcher, Merges(block)), sites, engine)


def _count(run: Solve, sites: int, engine: EngineName) -> Count:
    return Count(counters_of(run, engine, CACHES_OFF), sites)


@dataclass(frozen=True)
class Modelled:
    """Predicted microseconds per site on a fully occupied C2070. bound: limiting resource of the longest launch."""

    value: Value
    bound: str

    def cells(self) -> Row:
        """Return the cells of a row of a table."""
        return {**predicted_cells("C2070, microseconds per site", self.value), "time model: bound by": self.bound}


FULL = 16
"""Sites that fill an SM at every level of the reduction; Algorithm 1 needs one thread per site."""
MODELLED_IN_FULL = 1536
"""Threads per SM of a C2070."""
MODELLED = 256
"""Largest number of individuals with a prediction for Algorithm 1: its work is quadratic, and its rows exceed every cache."""


@cache
def modelled(variant: str, genotypes: Genotypes, engine: EngineName) -> Modelled:
    """Predict with the time model, without caches. Registers are assumed not to limit the occupancy."""
    sites = MODELLED_IN_FULL if variant == "iterative" else FULL
    n = min(genotypes.individuals, MODELLED) if variant == "iterative" else genotypes.individuals
    values = replace(genotypes, individuals=n).vectors(sites)
    scale = (genotypes.individuals / n) ** 2
    return _modelled(partial(pipeline.VARIANTS[variant], values), sites, engine, scale=scale)


@cache
def modelled_blocks(block: int, genotypes: Genotypes, engine: EngineName) -> Modelled:
    """The reduction with a block of coefficients of b in shared memory."""
    divided, _ = summing_to_one(genotypes.vectors(FULL))
    return _modelled(lambda launcher: merged(divided, launcher, Merges(block)), FULL, engine)


def _modelled(run: Solve, sites: int, engine: EngineName, only: Kernel | None = None, scale: float = 1.0) -> Modelled:
    """Predict the sum of the launches of a run. only: of one kernel. scale: of the times."""
    paces: list[tuple[float, Pace]] = []

    @FunctionLauncher
    def noted(kernel: Kernel, **how: Any) -> Result:
        if only is None or kernel is only:  # before the launch, which changes its arrays
            request = prepare_request(kernel, **{**how, "device": CACHES_OFF})
            paces.append((request.grid[0] / sites, pace(request, CACHES_OFF, 0, engine)))
        return launch(kernel, engine=engine, counters=False, **how)

    run(noted)
    longest = max(paces, key=lambda one: one[0] * one[1].microseconds)[1].estimate.bound
    time = sum(blocks * one.microseconds for blocks, one in paces)
    low, high = (scale * sum(blocks * one.interval[end] for blocks, one in paces) for end in (0, 1))
    return Modelled(Value(predicted_for(GPU), scale * time, "", (low, high)), longest)


@cache
def modelled_normalisation(individuals: int, extended: bool, engine: EngineName) -> Modelled:
    """Predict the normalisation in logarithms or, if `extended`, in double-doubles."""
    problem = generate(3, FULL, individuals, "gama")
    vectors, scale = problem.vectors()

    def run(launcher: Launcher) -> None:
        if extended:
            normalised_as_printed(problem, vectors, scale, launcher, extended=True)
        else:
            pipeline.normalised(problem, pipeline.VARIANTS["iterative"](vectors, launcher), scale, launcher)

    return _modelled(run, FULL, engine, normalise_printed if extended else normalise)


@cache
def modelled_parsing(individuals: int, engine: EngineName) -> Modelled:
    """Predict the parsing of printed likelihoods."""
    text = pipeline_components.printed(likelihoods(1, FULL, individuals, 20.0))
    return _modelled(partial(pipeline_components.parsed, text), FULL, engine)


@cache
def modelled_summary(individuals: int, engine: EngineName) -> Modelled:
    """Predict the post-processing."""
    posteriors = np.full((FULL, 2 * individuals + 1), 1 / (2 * individuals + 1))
    return _modelled(partial(pipeline_components.summarised, posteriors), FULL, engine)


@cache
def divisions_by_zero(individuals: int, sites: int, engine: EngineName, depth: float) -> tuple[int, float]:
    """Return the number of sites with a division by zero in Algorithm 3, and the lowest t."""
    problem = generate(3, sites, individuals, "gama", depth)
    products, scale = problem.vectors()
    _, undefined = normalised_as_printed(problem, products, scale, Runner(engine), extended=False)
    return undefined, float(scale.min())


@cache
def normalisations(individuals: int, sites: int, engine: EngineName) -> dict[str, Count]:
    """Count the normalisation: in extended precision, as printed, and in logarithms."""
    problem = generate(3, sites, individuals, "gama")
    products, scale = problem.vectors()
    h = pipeline.VARIANTS["iterative"](products, Runner(engine))
    runs: dict[str, Solve] = {
        "extended precision": lambda launcher: normalised_as_printed(problem, products, scale, launcher, True),
        "doubles, as printed": lambda launcher: normalised_as_printed(problem, products, scale, launcher, False),
        "logarithms": lambda launcher: pipeline.normalised(problem, h, scale, launcher),
    }
    return {name: Count(launches(run, engine, GPU)[-1].counters, sites) for name, run in runs.items()}


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
    for name, normalising in NORMALISING.items():
        check = Check(f"plain loop, {name}", partial(_normalised_agrees, normalising))
        yield Benchmark(name, Machine.core, partial(_normalise, normalising, n, SITES_ON_CPU[Machine.core]), check)
    for name, variant in KERNELS.items():
        check = measured.on_gpu(FAMILY, variant, CHECKED)
        yield Benchmark(name, Machine.gpu, partial(_kernels, variant, n, SITES_ON_GPU[variant]), check)
    for name, on_gpu in NORMALISING_ON_GPU.items():
        check = Check(f"normalisation, {name}", partial(_normalised_on_gpu_agrees, on_gpu))
        yield Benchmark(name, Machine.gpu, partial(_normalise_on_gpu, on_gpu, n), check)
    check = Check("data parsing", _parsed_on_gpu_agrees)
    yield Benchmark("data parsing", Machine.gpu, partial(_parse_on_gpu, n), check)
    check = Check("post-processing", _summarised_on_gpu_agrees)
    yield Benchmark("post-processing", Machine.gpu, partial(_summarise_on_gpu, n), check)


def _loop_agrees(loop: Callable[[Floats], Floats]) -> Agreement:
    vectors = CHECKED().vectors()[0] / 3
    return measured.equal(loop(vectors), np.exp(product(vectors)))


def _normalised_agrees(normalise: Normalise) -> Agreement:
    problem = CHECKED()
    vectors, t = problem.vectors()
    return FAMILY.compare(
        normalise(sfs_loop.iterative(vectors), t, problem.fixed(), problem.variable), FAMILY.oracle(problem)
    )


Normalise = Callable[[Floats, Floats, Floats, float], Floats]
NORMALISING: dict[str, Normalise] = {
    "logarithms": sfs_loop.normalised, "long doubles": sfs_loop.normalised_in_long_doubles,
}  # fmt: skip
NormaliseOnGpu = Callable[[Problem, Launcher], Floats]


def _in_logarithms(problem: Problem, launcher: Launcher) -> Floats:
    products, scale = problem.vectors()
    return pipeline.normalised(problem, pipeline.VARIANTS["iterative"](products, launcher), scale, launcher)


def _in_double_doubles(problem: Problem, launcher: Launcher) -> Floats:
    return normalised_as_printed(problem, *problem.vectors(), launcher, extended=True)[0]


NORMALISING_ON_GPU: dict[str, NormaliseOnGpu] = {"logarithms": _in_logarithms, "double-doubles": _in_double_doubles}


def _loop(loop: Callable[[Floats], Floats], n: int, sites: int, repeat: int) -> tuple[list[float], float]:
    divided = np.tile(summing_to_one(Genotypes(n).vectors(DIFFERENT))[0], (sites // DIFFERENT, 1, 1))
    return wall_times(lambda: loop(divided), repeat), sites


def _kernels(variant: str, n: int, sites: int, repeat: int) -> tuple[list[float], float]:
    """Return sites that fill a GPU; few of them are distinct, to limit the setup time."""
    timer = Timer(repeat)
    pipeline.VARIANTS[variant](np.tile(Genotypes(n).vectors(DIFFERENT), (sites // DIFFERENT, 1, 1)), timer)
    return [timer.milliseconds], sites


def _timed_launches(action: Solve, repeat: int) -> tuple[list[float], float]:
    """Time the last launch of an action on SITES_NORMALISED sites."""
    times = [launches(action, "cuda", counters=False)[-1].milliseconds or 0.0 for _ in range(repeat + 1)]
    return times[1:], SITES_NORMALISED  # the first one compiles


def _parse_on_gpu(n: int, repeat: int) -> tuple[list[float], float]:
    text = pipeline_components.printed(np.resize(likelihoods(1, DIFFERENT, n), (SITES_NORMALISED, n, 3)))
    return _timed_launches(partial(pipeline_components.parsed, text), repeat)


def _parsed_on_gpu_agrees() -> Agreement:
    values = likelihoods(1, 5, 43)
    expected = np.array([float(f"{value:.6f}") for value in values.ravel()])
    return measured.equal(
        pipeline_components.parsed(pipeline_components.printed(values), Runner("cuda")).ravel(), expected
    )


def _summarise_on_gpu(n: int, repeat: int) -> tuple[list[float], float]:
    posteriors = np.full((SITES_NORMALISED, 2 * n + 1), 1 / (2 * n + 1))
    return _timed_launches(partial(pipeline_components.summarised, posteriors), repeat)


def _summarised_on_gpu_agrees() -> Agreement:
    posteriors = np.random.default_rng(1).dirichlet(np.ones(601), 4)
    summary = pipeline_components.summarised(posteriors, Runner("cuda"))
    actual = np.concatenate([summary.expected, summary.variable, summary.most.astype(np.float64)])
    mean = posteriors @ np.arange(601) / 600
    return measured.equal(
        actual, np.concatenate([mean, 1 - posteriors[:, 0], posteriors.argmax(axis=1).astype(np.float64)])
    )


def _normalise_on_gpu(normalise: NormaliseOnGpu, n: int, repeat: int) -> tuple[list[float], float]:
    problem = generate(3, SITES_NORMALISED, n, "gama")
    return _timed_launches(partial(normalise, problem), repeat)


def _normalised_on_gpu_agrees(normalise: NormaliseOnGpu) -> Agreement:
    problem = CHECKED()
    return FAMILY.compare(normalise(problem, Runner("cuda")), FAMILY.oracle(problem))


def _normalise(normalise: Normalise, n: int, sites: int, repeat: int) -> tuple[list[float], float]:
    problem = generate(3, sites, n, "gama")
    h, t, fixed = sfs_loop.iterative(problem.vectors()[0]), problem.vectors()[1], problem.fixed()
    return wall_times(lambda: normalise(h, t, fixed, problem.variable), repeat), sites
