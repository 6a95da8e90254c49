"""Products in plain doubles as in the paper: Algorithm 1, and the reductions without exponents."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from simtbed import DeviceArray, SimtbedError, empty

from ...family import Launcher
from ..algorithm1 import algorithm1
from ..iterative import BLOCK
from ..normalise_printed import BLOCK as NORMALISING
from ..normalise_printed import normalise_printed
from ..plain import merge, merge_shared
from ..plain_block import merge_shared_block
from .layout import interleaved
from .problem import Floats, Problem

TEAMS = 2
"""Warps of a block of the reductions, with one merge each."""
MOST_IN_SAF = 450
"""Maximum number of individuals: `saf` divides by C(2N, j), and for more individuals a coefficient may underflow."""


@dataclass(frozen=True)
class Plain:
    """Products of doubles without exponents; strides as in `Spectra`. scale: logarithm per site of the removed factor."""

    h: DeviceArray
    h_site: int
    h_step: int
    scale: Floats


@dataclass(frozen=True)
class Merges:
    """Parameters of a reduction.

    block: coefficients of b in shared memory, None without shared memory; `skip` needs it. team: threads of a merge with
    explicit synchronization, which has no `skip` and needs `block`; None for one warp.
    """

    block: int | None = None
    skip: bool = False
    team: int | None = None


def require_range(problem: Problem, variant: str) -> None:
    """Raise SimtbedError if the result of a problem may exceed the range of plain doubles."""
    if problem.mode == "saf" and problem.individuals > MOST_IN_SAF:
        raise SimtbedError(
            f"{variant} computes in plain doubles, as the paper does: expected at most {MOST_IN_SAF} individuals in saf mode, "
            f"got {problem.individuals:,}"
        )


def summing_to_one(vectors: Floats) -> tuple[Floats, Floats]:
    """Return the vectors divided by their sums, and the sum of the logarithms of these sums by site. Products then sum to 1 as well."""
    sums = vectors.sum(axis=2, keepdims=True)
    sums[sums == 0] = 1.0
    return vectors / sums, np.log(sums).sum(axis=(1, 2))


def iterated(vectors: Floats, launcher: Launcher) -> DeviceArray:
    """Run Algorithm 1: (sites, individuals, 3) to coefficient j of a site at j sites + site."""
    sites, individuals = vectors.shape[:2]
    h = DeviceArray(empty(sites * (2 * individuals + 1), "f64"))
    args = {"vectors": interleaved(vectors), "h": h, "individuals": individuals, "sites": sites}
    launcher.launch(algorithm1, grid=-(-sites // BLOCK), block=BLOCK, args=args)
    return h


def merged(vectors: Floats, launcher: Launcher, how: Merges) -> DeviceArray:
    """Merge pairs of vectors, level by level, until one is left: coefficient j of a site at 3 individuals site + j."""
    sites, individuals = vectors.shape[:2]
    source, target = DeviceArray(vectors.ravel()), DeviceArray(empty(sites * 3 * individuals, "f64"))
    group = 1
    while group < individuals:
        merges = -(-individuals // (2 * group))
        args = {"source": source, "target": target, "individuals": individuals, "group": group}
        if how.team is not None:
            sizes = {"TEAM": how.team, "B": how.block}
            launcher.launch(merge_shared_block, grid=sites * merges, block=how.team, args=args | sizes)
        else:
            sizes = {
                "sites": sites,
                "TEAMS": TEAMS,
                **({} if how.block is None else {"B": how.block, "SKIP": how.skip}),
            }
            kernel = merge if how.block is None else merge_shared
            launcher.launch(kernel, grid=-(-sites * merges // TEAMS), block=32 * TEAMS, args=args | sizes)
        source, target = target, source
        group *= 2
    return source


def plain(vectors: Floats, launcher: Launcher, how: Merges | None) -> Plain:
    """Return the products of vectors divided by their sums. how: None for Algorithm 1."""
    sites, individuals = vectors.shape[:2]
    divided, scale = summing_to_one(vectors)
    if how is None:
        return Plain(iterated(divided, launcher), 1, sites, scale)
    return Plain(merged(divided, launcher, how), 3 * individuals, 1, scale)


def normalised_as_printed(
    problem: Problem, vectors: Floats, scale: Floats, launcher: Launcher, extended: bool
) -> tuple[Floats, int]:
    """Run Algorithm 3 on the products of `problem.vectors()`: posteriors, and the number of sites with a division by
    zero. extended: in double-doubles. The caller avoids products outside of the range of doubles."""
    alleles = 2 * problem.individuals
    result = launcher.launch(
        normalise_printed,
        grid=problem.sites,
        block=NORMALISING,
        args={
            "h": iterated(vectors, launcher), "t": scale, "fixed": problem.fixed(),
            "out": empty(problem.sites * (alleles + 1), "f64"), "undefined": empty(problem.sites, "i32"), "alleles": alleles,
            "h_site": 1, "h_step": problem.sites, "variable": problem.variable, "EXTENDED": extended, "BLOCK": NORMALISING,
        },
    )  # fmt: skip
    return np.asarray(result["out"]).reshape(problem.sites, alleles + 1), int(np.asarray(result["undefined"]).sum())
