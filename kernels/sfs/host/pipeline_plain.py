"""Products in plain doubles, as the paper has them: Algorithm 1, and the reductions without exponents."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from simtbed import DeviceArray, SimtbedError, empty

from ...family import Launcher
from ..algorithm1 import algorithm1
from ..iterative import BLOCK
from ..plain import merge, merge_shared
from .layout import interleaved
from .problem import Floats, Problem

TEAMS = 2
"""Warps of a block of the reductions, a merge each."""
MOST_IN_SAF = 450
"""Individuals: beyond them a coefficient that `saf` wants may be below the least double, for it divides by C(2N, j)."""


@dataclass(frozen=True)
class Plain:
    """Products of doubles without exponents. strides: as of `Spectra`. scale: a logarithm a site, divided out before."""

    h: DeviceArray
    h_site: int
    h_step: int
    scale: Floats


@dataclass(frozen=True)
class Merges:
    """How the reductions merge. block: coefficients of b in shared memory, None without shared memory; `skip` needs it."""

    block: int | None = None
    skip: bool = False


def require_range(problem: Problem, variant: str) -> None:
    """Raises SimtbedError where plain doubles may not hold what a problem asks for."""
    if problem.mode == "saf" and problem.individuals > MOST_IN_SAF:
        raise SimtbedError(
            f"{variant} keeps plain doubles, as the paper does: expected at most {MOST_IN_SAF} individuals in saf mode, "
            f"got {problem.individuals:,}"
        )


def summing_to_one(vectors: Floats) -> tuple[Floats, Floats]:
    """The vectors divided by their sums, and the sums' logarithms added up by site: products then sum to 1, too."""
    sums = vectors.sum(axis=2, keepdims=True)
    sums[sums == 0] = 1.0
    return vectors / sums, np.log(sums).sum(axis=(1, 2))


def iterated(vectors: Floats, launcher: Launcher) -> DeviceArray:
    """Algorithm 1: (sites, individuals, 3) to coefficient j of a site at j sites + site."""
    sites, individuals = vectors.shape[:2]
    h = DeviceArray(empty(sites * (2 * individuals + 1), "f64"))
    args = {"vectors": interleaved(vectors), "h": h, "individuals": individuals, "sites": sites}
    launcher.launch(algorithm1, grid=-(-sites // BLOCK), block=BLOCK, args=args)
    return h


def merged(vectors: Floats, launcher: Launcher, how: Merges) -> DeviceArray:
    """Pairs of vectors merged, level by level, until one is left: coefficient j of a site at 3 individuals site + j."""
    sites, individuals = vectors.shape[:2]
    source, target = DeviceArray(vectors.ravel()), DeviceArray(empty(sites * 3 * individuals, "f64"))
    group = 1
    while group < individuals:
        merges = -(-individuals // (2 * group))
        args = {
            "source": source, "target": target, "individuals": individuals, "group": group, "sites": sites, "TEAMS": TEAMS,
            **({} if how.block is None else {"B": how.block, "SKIP": how.skip}),
        }  # fmt: skip
        kernel = merge if how.block is None else merge_shared
        launcher.launch(kernel, grid=-(-sites * merges // TEAMS), block=32 * TEAMS, args=args)
        source, target = target, source
        group *= 2
    return source


def plain(vectors: Floats, launcher: Launcher, how: Merges | None) -> Plain:
    """The products of vectors that are divided by their sums; how: None for Algorithm 1."""
    sites, individuals = vectors.shape[:2]
    divided, scale = summing_to_one(vectors)
    if how is None:
        return Plain(iterated(divided, launcher), 1, sites, scale)
    return Plain(merged(divided, launcher, how), 3 * individuals, 1, scale)
