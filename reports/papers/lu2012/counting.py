"""What the emulator counts of GAMA's kernels on the paper's card, and the least time that takes there."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache, partial
from typing import Any

from simtbed import Counters, Kernel, Result, devices, launch
from simtbed.kernels import FunctionLauncher, Launcher
from simtbed.kernels.sfs.host import pipeline
from simtbed.kernels.sfs.host.generate import generate, likelihoods
from simtbed.kernels.sfs.host.pipeline_plain import Merges, merged, normalised_as_printed, summing_to_one
from simtbed.kernels.sfs.host.problem import Floats
from simtbed.runtime.engine import Request
from simtbed.runtime.registry import EngineName
from simtbed.runtime.request import prepare_request

from ...launchers import Runner
from ..predicted import pace
from ..ren2018.profiled import floors
from .profiled import DEPTH, IMPOSSIBLE

CARD = devices.C2070
CACHES_OFF = replace(CARD, name="C2070, caches off", loads_cached=False, load_sector=32)
"""Global loads past L1: what is not used from shared memory comes from global memory each time."""


@dataclass(frozen=True)
class Count:
    """Counters of a variant's products of so many sites."""

    counters: Counters
    sites: int

    def a_site(self, event: str) -> float:
        return self.counters.total(event) / self.sites

    def microseconds(self) -> dict[str, float]:
        """A site's least time on a C2070 for each resource, if the others were free."""
        found = {name: ns / 1e3 for name, ns in floors(self.counters, self.sites, CARD).items()}
        cycles = 32 * self.a_site("warp_instructions.fp64") / CARD.rates.fp64
        return {**found, "fp64": cycles / (CARD.clock * CARD.sms)}

    @property
    def least(self) -> float:
        """Microseconds a site, by the resource that is used most."""
        return max(self.microseconds().values())

    @property
    def bound(self) -> str:
        found = self.microseconds()
        return max(found, key=lambda name: found[name])


@cache
def vectors(individuals: int, sites: int) -> Floats:
    """Of deep sequencing, the most unlikely genotypes 0: what zeros can be skipped of."""
    found = likelihoods(1, sites, individuals, DEPTH)
    found[found <= IMPOSSIBLE] = 0.0
    return found


@cache
def counted(variant: str, individuals: int, sites: int, engine: EngineName, cached: bool = False) -> Count:
    """Of a shipped variant; cached: with global loads through L1."""
    return _count(lambda runner: pipeline.VARIANTS[variant](vectors(individuals, sites), runner), sites, engine, cached)


@cache
def blocks_of(block: int, individuals: int, sites: int, engine: EngineName) -> Count:
    """Of the reduction in shared memory with so many coefficients of b there."""
    divided, _ = summing_to_one(vectors(individuals, sites))
    return _count(partial(_merge, divided, Merges(block)), sites, engine, False)


def _merge(divided: Floats, how: Merges, runner: Runner) -> None:
    merged(divided, runner, how)


def _count(run: Callable[[Runner], object], sites: int, engine: EngineName, cached: bool) -> Count:
    runner = Runner(engine, CARD if cached else CACHES_OFF, counting=True)
    run(runner)
    assert runner.counters is not None  # it was asked for
    return Count(runner.counters, sites)


@dataclass(frozen=True)
class Modelled:
    """A site's microseconds on a C2070 full of sites. bound: what the launch that takes longest waits for."""

    time: float
    low: float
    high: float
    bound: str


FULL = 16
"""Sites of which every level of a reduction has merges enough for an SM; Algorithm 1 needs a thread each."""
MODELLED_IN_FULL = 1536
"""Threads of an SM of a C2070."""


@cache
def modelled(variant: str, individuals: int, engine: EngineName) -> Modelled:
    """By the time model, with caches off. Registers are taken not to limit."""
    sites = MODELLED_IN_FULL if variant == "iterative" else FULL
    return _modelled(lambda launcher: pipeline.VARIANTS[variant](vectors(individuals, sites), launcher), sites, engine)


@cache
def modelled_blocks(block: int, individuals: int, engine: EngineName) -> Modelled:
    """Of the reduction in shared memory with so many coefficients of b there."""
    divided, _ = summing_to_one(vectors(individuals, FULL))
    return _modelled(lambda launcher: merged(divided, launcher, Merges(block)), FULL, engine)


def _modelled(run: Callable[[Launcher], object], sites: int, engine: EngineName) -> Modelled:
    requests: list[Request] = []

    @FunctionLauncher
    def noted(kernel: Kernel, **how: Any) -> Result:
        requests.append(prepare_request(kernel, **{**how, "device": CACHES_OFF}))
        return launch(kernel, engine=engine, counters=False, **how)

    run(noted)
    found = [(request.grid[0] / sites, pace(request, CACHES_OFF, 0, engine)) for request in requests]
    longest = max(found, key=lambda one: one[0] * one[1].microseconds)[1].estimate.bound
    time = sum(blocks * one.microseconds for blocks, one in found)
    low, high = (sum(blocks * one.interval[end] for blocks, one in found) for end in (0, 1))
    return Modelled(time, low, high, longest)


@cache
def divisions_by_zero(individuals: int, sites: int, engine: EngineName) -> tuple[int, float]:
    """(sites at which Algorithm 3 divides by zero, the lowest t) of sites of a population, sequenced three times."""
    problem = generate(3, sites, individuals, "gama")
    found, scale = problem.vectors()
    _, undefined = normalised_as_printed(problem, found, scale, Runner(engine), extended=False)
    return undefined, float(scale.min())


@cache
def normalisations(individuals: int, sites: int, engine: EngineName) -> dict[str, Count]:
    """Of normalising products: in logarithms, in extended precision, and as printed."""
    problem = generate(3, sites, individuals, "gama")
    found, scale = problem.vectors()
    counts = {}
    for name, extended in (("extended precision", True), ("doubles, as printed", False)):
        runner = Runner(engine, CARD, counting=True)
        normalised_as_printed(problem, found, scale, runner, extended)
        counts[name] = Count(runner.counted[-1][1], sites)
    runner = Runner(engine, CARD, counting=True)
    pipeline.normalised(problem, pipeline.VARIANTS["iterative"](found, Runner(engine)), scale, runner)
    counts["logarithms"] = Count(runner.counted[-1][1], sites)
    return counts
