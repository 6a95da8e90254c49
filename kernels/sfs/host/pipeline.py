"""Solver: batches of sites, product of their vectors by one of the algorithms, normalisation."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
from simtbed import DeviceArray, empty, zeros

from ...family import Launcher
from .. import iterative as one_thread
from .. import normalise as last
from .. import tiled as tiling
from .. import tiled_merge as merging
from ..reduction import reduction
from ..reduction_shared import reduction_shared
from ..wide import SEGMENT, WARP
from .layout import by_tiles, interleaved, tiles
from .pipeline_plain import Merges, plain, require_range
from .problem import Floats, Problem

BYTES_AT_ONCE = 1 << 28
"""Maximum size of a batch's largest array, in bytes."""


@dataclass(frozen=True)
class Merging:
    """Parameters of a reduction.

    team: threads of a merge, a warp or a block. block: coefficients of b in shared memory, None without shared memory; 128 use
    2,296 bytes per warp, the maximum without loss of occupancy on a C2070 (Fig. 10, with THREADS per block).
    """

    team: int
    block: int | None = None
    skip: bool = False


THREADS = 64
"""Threads of a block of the reductions: two warps with one merge each, or one team."""


@dataclass(frozen=True)
class Spectra:
    """Products in device memory; strides as in `normalise`. scale: logarithm per site to add to the result, None for 0."""

    h: DeviceArray
    exponents: DeviceArray
    h_site: int
    h_step: int
    exponent_site: int
    exponent_step: int
    segment: int
    scale: Floats | None = None


def solve(problem: Problem, variant: str, launcher: Launcher) -> Floats:
    """Return (sites, 2 individuals + 1) values in the problem's mode. Raise SimtbedError if they may exceed the range
    of a variant in plain doubles."""
    if variant in PLAIN:
        require_range(problem, variant)
    answer = np.empty((problem.sites, 2 * problem.individuals + 1))
    at_once = max(1, BYTES_AT_ONCE // (8 * 3 * tiling.GROUP * tiles(problem.individuals)))
    for start in range(0, problem.sites, at_once):
        batch = problem.subset(slice(start, start + at_once))
        vectors, scale = batch.vectors()
        spectra = VARIANTS[variant](vectors, launcher)
        answer[start : start + at_once] = normalised(batch, spectra, scale, launcher)
    return answer


def choices(alleles: int) -> Floats:
    """Return log C(alleles, j) for j = 0..alleles."""
    factorial = np.array([math.lgamma(j + 1) for j in range(alleles + 1)])
    return np.asarray(factorial[-1] - factorial - factorial[::-1])


def normalised(problem: Problem, spectra: Spectra, scale: Floats, launcher: Launcher) -> Floats:
    """Return the result of `solve` from the products of `problem.vectors`."""
    alleles = 2 * problem.individuals
    none = np.zeros(0)
    scale = scale if spectra.scale is None else scale + spectra.scale
    with np.errstate(divide="ignore"):
        log_variable, log_fixed = np.log([problem.variable, 1 - problem.variable])
    result = launcher.launch(
        last.normalise,
        grid=problem.sites,
        block=last.BLOCK,
        args={
            "h": spectra.h,
            "exponents": spectra.exponents,
            "scale": scale,
            "choices": choices(alleles) if problem.mode == "saf" else none,
            "fixed": problem.fixed() if problem.mode == "gama" else none,
            "out": empty(problem.sites * (alleles + 1), "f64"),
            "alleles": alleles,
            "h_site": spectra.h_site,
            "h_step": spectra.h_step,
            "exponent_site": spectra.exponent_site,
            "exponent_step": spectra.exponent_step,
            "varies": log_variable,
            "stays": log_fixed,
            "MODE": last.MODES[problem.mode],
            "SEGMENT": spectra.segment,
            "BLOCK": last.BLOCK,
        },
    )
    return np.asarray(result["out"]).reshape(problem.sites, alleles + 1)


# ------------------------------------------------------------------ products
def _iterative(vectors: Floats, launcher: Launcher) -> Spectra:
    sites, individuals = vectors.shape[:2]
    segments = 2 * individuals // SEGMENT + 1
    h, exponents = DeviceArray(empty(sites * (2 * individuals + 1), "f64")), DeviceArray(zeros(sites * segments, "i32"))
    launcher.launch(
        one_thread.iterative,
        grid=-(-sites // one_thread.BLOCK),
        block=one_thread.BLOCK,
        args={
            "vectors": interleaved(vectors),
            "h": h,
            "exponents": exponents,
            "peaks": DeviceArray(zeros(sites * segments, "i32")),
            "individuals": individuals,
            "sites": sites,
        },
    )
    return Spectra(h, exponents, 1, sites, 1, sites, SEGMENT)


def reduced(vectors: Floats, launcher: Launcher, how: Merging) -> Spectra:
    """Merge pairs of vectors, level by level, until one is left. vectors: as returned by `Problem.vectors`."""
    sites, individuals = vectors.shape[:2]
    source, source_exponents = DeviceArray(vectors.ravel()), DeviceArray(zeros(sites * (individuals + 1), "i32"))
    target, target_exponents = (
        DeviceArray(empty(sites * 3 * individuals, "f64")),
        DeviceArray(empty(sites * (individuals + 1), "i32")),
    )
    teams = THREADS // how.team
    group = 1
    while group < individuals:
        merges = -(-individuals // (2 * group))
        launcher.launch(
            reduction if how.block is None else reduction_shared,
            grid=-(-sites * merges // teams),
            block=THREADS,
            args={
                "source": source,
                "source_exponents": source_exponents,
                "target": target,
                "target_exponents": target_exponents,
                "individuals": individuals,
                "group": group,
                "sites": sites,
                "TEAM": how.team,
                "TEAMS": teams,
                **({} if how.block is None else {"B": how.block, "SKIP": how.skip}),
            },
        )
        source, source_exponents, target, target_exponents = target, target_exponents, source, source_exponents
        group *= 2
    return Spectra(source, source_exponents, 3 * individuals, 1, individuals + 1, 1, SEGMENT)


def _tiled(vectors: Floats, launcher: Launcher) -> Spectra:
    sites, individuals = vectors.shape[:2]
    whole = tiles(individuals)
    leaves = min(whole, tiling.FUSED)
    sections, sections_per_block = whole // leaves, max(1, tiling.SLOTS // leaves)
    R, GROUP = tiling.R, tiling.GROUP
    h, exponents = (DeviceArray(empty(sites * whole * R, "f64")), DeviceArray(empty(sites * whole, "i32")))
    launcher.launch(
        tiling.tiled,
        grid=-(-sites * sections // sections_per_block),
        block=sections_per_block * leaves // 2,
        args={
            "vectors": by_tiles(vectors, leaves),
            "h": h,
            "exponents": exponents,
            "individuals": individuals,
            "parts": sections,
            "sites": sites,
            "LEAVES": leaves,
            "HELD": sections_per_block,
            "R": R,
            "GROUP": GROUP,
        },
    )
    while leaves < whole:
        target, target_exponents = (
            DeviceArray(empty(sites * whole * R, "f64")),
            DeviceArray(empty(sites * whole, "i32")),
        )
        launcher.launch(
            merging.tiled_merge,
            grid=sites * (whole // 2) // merging.BLOCK,
            block=merging.BLOCK,
            args={
                "source": h,
                "source_exponents": exponents,
                "target": target,
                "target_exponents": target_exponents,
                "individuals": individuals,
                "width": leaves,
                "vectors": whole // leaves,
                "R": R,
                "GROUP": GROUP,
                "BLOCK": merging.BLOCK,
                "STAGE": merging.STAGE,
            },
        )
        h, exponents = target, target_exponents
        leaves *= 2
    return Spectra(h, exponents, whole * R, 1, whole, 1, R)


def _plain(vectors: Floats, launcher: Launcher, how: Merges | None) -> Spectra:
    products = plain(vectors, launcher, how)
    zero_exponent = DeviceArray(zeros(1, "i32"))  # shared by all coefficients
    return Spectra(products.h, zero_exponent, products.h_site, products.h_step, 0, 0, SEGMENT, products.scale)


PLAIN: dict[str, Callable[[Floats, Launcher], Spectra]] = {
    "iterative": partial(_plain, how=None),
    "reduction": partial(_plain, how=Merges()),
    "reduction-shared": partial(_plain, how=Merges(128)),
    "reduction-shared-skip": partial(_plain, how=Merges(128, skip=True)),
    "reduction-shared-block": partial(_plain, how=Merges(128, team=THREADS)),
}
"""Variants in plain doubles."""

VARIANTS: dict[str, Callable[[Floats, Launcher], Spectra]] = {
    **PLAIN,
    "iterative-carried": _iterative,
    "reduction-scaled": partial(reduced, how=Merging(WARP)),
    "reduction-block-scaled": partial(reduced, how=Merging(THREADS)),
    "reduction-shared-scaled": partial(reduced, how=Merging(WARP, 128)),
    "reduction-shared-block-scaled": partial(reduced, how=Merging(THREADS, 128)),
    "reduction-shared-skip-scaled": partial(reduced, how=Merging(WARP, 128, skip=True)),
    "reduction-shared-skip-block-scaled": partial(reduced, how=Merging(THREADS, 128, skip=True)),
    "tiled": _tiled,
}
"""Function of each variant for vectors of shape (sites, individuals, 3)."""
