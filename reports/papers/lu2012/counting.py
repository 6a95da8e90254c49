"""Counters of the GAMA kernels by the rules of the C2070, and lower bounds of their times."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
from simtbed import Counters, Kernel, Result, SimtbedError, devices, launch
from simtbed.escaping import printable
from simtbed.kernels import FunctionLauncher, Launcher
from simtbed.kernels.sfs import FAMILY
from simtbed.kernels.sfs.host import pipeline, pipeline_components
from simtbed.kernels.sfs.host.generate import generate, likelihoods
from simtbed.kernels.sfs.host.pipeline_plain import Merges, merged, normalised_as_printed, summing_to_one
from simtbed.kernels.sfs.host.problem import Floats
from simtbed.kernels.sfs.normalise import normalise
from simtbed.kernels.sfs.normalise_printed import normalise_printed
from simtbed.runtime.registry import EngineName
from simtbed.runtime.request import prepare_request

from ...launchers import Runner
from ..claims import Value, predicted_for
from ..paper import Row, Setting, model
from ..predicted import Pace, pace
from ..ren2018.profiled import floors
from ..values import predicted_cells

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

    def microseconds(self) -> dict[str, float]:
        """Lower bound of the time per site for each resource, in microseconds."""
        bounds = {name: ns / 1e3 for name, ns in floors(self.counters, self.sites, GPU).items()}
        cycles = 32 * self.a_site("warp_instructions.fp64") / GPU.rates.fp64
        return {**bounds, "fp64": cycles / (GPU.clock * GPU.sms)}

    @property
    def least(self) -> float:
        """Lower bound of the time per site over all resources, in microseconds."""
        return max(self.microseconds().values())

    @property
    def bound(self) -> str:
        bounds = self.microseconds()
        return max(bounds, key=lambda name: bounds[name])


@dataclass(frozen=True)
class Genotypes:
    """Likelihoods of individuals: simulated at a depth, or the first ones of a file. Those up to a threshold are set to 0."""

    individuals: int
    depth: float = 20.0
    threshold: float = 1e-6
    file: Path | None = None

    @staticmethod
    def of(setting: Setting, individuals: int | None = None) -> Genotypes:
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
    return _count(lambda runner: pipeline.VARIANTS[variant](genotypes.vectors(sites), runner), sites, engine)


@cache
def blocks_of(block: int, genotypes: Genotypes, sites: int, engine: EngineName) -> Count:
    """The reduction with a block of coefficients of b in shared memory."""
    divided, _ = summing_to_one(genotypes.vectors(sites))
    return _count(partial(_merge, divided, Merges(block)), sites, engine)


def _merge(divided: Floats, how: Merges, runner: Runner) -> None:
    merged(divided, runner, how)


def _count(run: Callable[[Runner], object], sites: int, engine: EngineName) -> Count:
    runner = Runner(engine, CACHES_OFF, counting=True)
    run(runner)
    assert runner.counters is not None  # requested above
    return Count(runner.counters, sites)


@dataclass(frozen=True)
class Modelled:
    """Predicted microseconds per site on a fully occupied C2070. bound: limiting resource of the longest launch."""

    value: Value
    bound: str

    def cells(self) -> Row:
        """Return the cells of a row of a table."""
        return {**predicted_cells("C2070, microseconds per site", self.value), model("bound by"): self.bound}


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
    return _modelled(lambda launcher: pipeline.VARIANTS[variant](values, launcher), sites, engine, scale=scale)


@cache
def modelled_blocks(block: int, genotypes: Genotypes, engine: EngineName) -> Modelled:
    """The reduction with a block of coefficients of b in shared memory."""
    divided, _ = summing_to_one(genotypes.vectors(FULL))
    return _modelled(lambda launcher: merged(divided, launcher, Merges(block)), FULL, engine)


def _modelled(
    run: Callable[[Launcher], object], sites: int, engine: EngineName, only: Kernel | None = None, scale: float = 1.0
) -> Modelled:
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
    return _modelled(lambda launcher: pipeline_components.parsed(text, launcher), FULL, engine)


@cache
def modelled_summary(individuals: int, engine: EngineName) -> Modelled:
    """Predict the post-processing."""
    posteriors = np.full((FULL, 2 * individuals + 1), 1 / (2 * individuals + 1))
    return _modelled(lambda launcher: pipeline_components.summarised(posteriors, launcher), FULL, engine)


@cache
def divisions_by_zero(individuals: int, sites: int, engine: EngineName, depth: float) -> tuple[int, float]:
    """Return the number of sites with a division by zero in Algorithm 3, and the lowest t."""
    problem = generate(3, sites, individuals, "gama", depth)
    products, scale = problem.vectors()
    _, undefined = normalised_as_printed(problem, products, scale, Runner(engine), extended=False)
    return undefined, float(scale.min())


@cache
def normalisations(individuals: int, sites: int, engine: EngineName) -> dict[str, Count]:
    """Count the normalisation: in logarithms, in extended precision, and as printed."""
    problem = generate(3, sites, individuals, "gama")
    products, scale = problem.vectors()
    counts = {}
    for name, extended in (("extended precision", True), ("doubles, as printed", False)):
        runner = Runner(engine, GPU, counting=True)
        normalised_as_printed(problem, products, scale, runner, extended)
        counts[name] = Count(runner.counted[-1][1], sites)
    runner = Runner(engine, GPU, counting=True)
    pipeline.normalised(problem, pipeline.VARIANTS["iterative"](products, Runner(engine)), scale, runner)
    counts["logarithms"] = Count(runner.counted[-1][1], sites)
    return counts
