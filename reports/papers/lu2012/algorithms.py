"""Algorithms and Figures 1 to 6 of Lu 2012, compared with the shipped kernels."""

from __future__ import annotations

import math

import numpy as np
import simtbed as st
from simtbed import Const, Counters, FaultError, Global, f64, launch
from simtbed.kernels.sfs import FAMILY
from simtbed.kernels.sfs.host.generate import generate
from simtbed.kernels.sfs.host.problem import Floats, Problem
from simtbed.kernels.sfs.plain import merge, merge_shared
from simtbed.kernels.sfs.reduction_shared import shared_bytes
from simtbed.oracles.sfs import product

from ...explanation import choices
from ...launchers import Runner
from ..claims import COMPUTED, Claim, at_least, at_most, counted_by, exactly, less_than, near, same_results
from ..paper import Row, Setting, Shown, Table, about, emulator, paper
from .counting import GPU, counted, divisions_by_zero

WARP = 32
PICTURED = 4
"""Individuals in Figures 1 and 2."""


def super_band(column: Floats, size: int) -> Floats:
    """Return the matrix of Definition 1 with the given first column."""
    padded = np.concatenate([column, np.zeros(size - len(column))])
    rows, columns = np.indices((size, size))
    return np.where(rows >= columns, padded[rows - columns], 0.0)


def _likelihoods() -> Floats:
    return np.asarray(np.random.default_rng(1).random((PICTURED, 3)))


def _agreement(setting: Setting, variant: str) -> Claim:
    """Return the main claim that a variant agrees with the oracle."""
    problem = generate(5, 8, 32)
    answer = FAMILY.solve(problem, variant, Runner(setting.engine))
    agreement = FAMILY.compare(answer, FAMILY.oracle(problem))
    text = "it computes the site frequency spectrum"
    return Claim(text, [same_results(COMPUTED, agreement)], main=True, remark=f"The variant is `{variant}`.")


def as_printed(vectors: Floats) -> Floats:
    """Return h of one site by Algorithm 1 with line 5 as printed: h[0] = p_MM, h[2] = p_mm. vectors: (N, 3), p_mm first."""
    individuals = len(vectors)
    h = np.zeros(2 * individuals + 1)
    h[2], h[1], h[0] = vectors[0]
    for i in range(1, individuals):
        h = np.convolve(h[: 2 * i + 1], vectors[i])
    return h


def iterative(setting: Setting) -> Shown:
    """Algorithm 1."""
    n, sites = setting.whole("individuals"), setting.whole("sites")
    count = counted("iterative", n, sites, setting.engine)
    products = count.a_site("warp_instructions.fp64") * WARP / _blocks_share(sites)
    claimed = 3 * n * n - 3
    rows: list[Row] = [
        {about("a site"): "multiplications", paper("3 N^2 - 3"): claimed, emulator("counted"): round(products)}
    ]
    return Shown(
        [
            _agreement(setting, "iterative"),
            Claim("3 N^2 - 3 multiplications per site",
                  [exactly(counted_by(GPU), f"multiplications per site, N = {n:,}", round(products), claimed)]),
            Claim("line 5 stores the first individual as lines 7 to 12 need it",
                  [at_most(COMPUTED, f"relative error of h with line 5 as printed, N = {PICTURED}", _error_of_line_5(), 1e-12)],
                  remark="The order is reversed: h[0] must be p_mm, h[2] p_MM."),
        ],
        "The algorithm and its operation count are correct, except for the order of its first step.",
        [Table(f"N = {n:,}", rows)],
        note=choices(FAMILY, "iterative"),
    )  # fmt: skip


def _error_of_line_5() -> float:
    likelihoods = _likelihoods()
    return float(np.abs(as_printed(likelihoods) / np.exp(product(likelihoods[None])[0]) - 1).max())


def _blocks_share(sites: int) -> float:
    """Return allocated lanes per site: warps are padded to 32 sites."""
    return WARP * math.ceil(sites / WARP) / sites


def matrix(setting: Setting) -> Shown:
    """Figure 1."""
    likelihoods = _likelihoods()
    h = np.zeros(2 * PICTURED + 1)
    h[0] = 1.0
    for row in likelihoods:
        h = super_band(row, len(h)) @ h
    expected = np.exp(product(likelihoods[None])[0])
    worst = float(np.abs(h / expected - 1).max())
    return Shown(
        [Claim("the update by an individual is the product of its matrix with h",
               [at_most(COMPUTED, f"relative error of the product of {PICTURED} matrices", worst, 1e-12)], main=True)],
        "The matrices of Figure 1, multiplied, give the same spectrum as the oracle.",
    )  # fmt: skip


def multiplication(setting: Setting) -> Shown:
    """Figure 2."""
    a, b, *_ = _likelihoods()
    size = 2 * PICTURED + 1
    matrix_product = super_band(a, size) @ super_band(b, size)
    band = super_band(matrix_product[:, 0], size)
    differing = int((~np.isclose(matrix_product, band, rtol=1e-13, atol=0)).sum())
    return Shown(
        [
            Claim("the product of two super-band matrices is one",
                  [exactly(COMPUTED, f"elements that differ, of {size} x {size}", differing, 0)], main=True),
            Claim("it has 2 C - 1 = 5 different values",
                  [exactly(COMPUTED, "values in its first column", int(np.count_nonzero(matrix_product[:, 0])), 5)]),
        ],
        "Both observations hold for the matrices of N = 4.",
    )  # fmt: skip


def first_column(setting: Setting) -> Shown:
    """Figure 3."""
    draw = np.random.default_rng(2)
    a, b = draw.random(5), draw.random(5)
    column = (super_band(a, 17) @ super_band(b, 17))[:, 0]
    expected = np.concatenate([np.convolve(a, b), np.zeros(8)])
    differing = int((~np.isclose(column, expected, rtol=1e-13, atol=0)).sum())
    return Shown(
        [
            Claim(
                "the first column is the sums of a[i] b[k - i]",
                [exactly(COMPUTED, "elements that differ from the convolution, C = 5", differing, 0)],
                main=True,
            )
        ],
        "The column is the convolution of the two first columns.",
    )


def reduction(setting: Setting) -> Shown:
    """Algorithm 2, and the complexities of section 3.3."""
    n, sites = setting.whole("individuals"), setting.whole("sites")
    count = counted("reduction", n, sites, setting.engine)
    merged = count.counters.at("target[c + i + j] = st.fma(").total("global_store_bytes") / 8 / sites
    claimed = 2 * n * n + 2 * n * math.log2(n) - n - 1
    rows: list[Row] = [
        {about("a site"): "multiplications", paper("2 N^2 + 2 N log2 N - N - 1"): round(claimed), emulator("counted"): round(merged)}
    ]  # fmt: skip
    share = merged / (3 * n * n - 3)
    return Shown(
        [
            _agreement(setting, "reduction"),
            Claim("2 N^2 + 2 N log2 N - N - 1 multiplications per site",
                  [exactly(counted_by(GPU), f"multiplications per site, N = {n:,}", round(merged), round(claimed))]),
            Claim("about 67 % of the iterative algorithm's", [near(counted_by(GPU), "ratio of multiplications", share, 0.67, 0.02)]),
        ],
        "Counted to the multiplication where N is a power of two, as the formula supposes.",
        [Table(f"N = {n:,}", rows)],
    )  # fmt: skip


def binary_merge(setting: Setting) -> Shown:
    """Figure 4."""
    source = np.random.default_rng(3).random(12)
    args = {"source": source, "target": st.zeros(12, "f64"), "individuals": 4, "group": 1, "sites": 1, "TEAMS": 2}
    result = launch(merge, grid=1, block=64, args=args, engine=setting.engine, counters=False)
    expected = np.concatenate([np.convolve(source[0:3], source[3:6]), np.convolve(source[6:9], source[9:12])])
    differing = int((~np.isclose(result["target"][:10], expected, rtol=1e-13, atol=0)).sum())
    return Shown(
        [Claim("two successive vectors of length L become one of 2 L - 1",
               [exactly(COMPUTED, "coefficients that differ from the products, of 10", differing, 0)], main=True,
               remark="L = 3: two merges of one launch, a warp each.")],
        "One launch of `merge` is the primitive.",
    )  # fmt: skip


def shared_memory(setting: Setting) -> Shown:
    """Figure 5."""
    n, sites = setting.whole("individuals"), setting.whole("sites")
    blocks = counted("reduction-shared", n, sites, setting.engine)
    loads, visits = _accesses_of_c(blocks.counters), _visits_of_c(n)
    window = shared_bytes(WARP, 3) // 8 - 3
    return Shown(
        [
            _agreement(setting, "reduction-shared"),
            Claim("n_c - n_b + 1 elements of a a stage",
                  [exactly(COMPUTED, "elements of a per stage, n_b = 3", window - 3 + 1, WARP)]),
            Claim("overlapping elements of c are not transferred between stages",
                  [at_most(counted_by(GPU), "loads of c per element of c and block of b", loads / sites / visits, 1.0)]),
        ],
        f"`{merge_shared.__name__}` moves its window as the picture does.",
        note=choices(FAMILY, "reduction-shared"),
    )  # fmt: skip


def _accesses_of_c(counters: Counters) -> float:
    """Return the elements of c that all sites load from global memory."""
    lines = (
        "windows[window + t] = target[c + start + t]",
        "windows[window + held - 1 + st.lane] = target[c + arriving]",
    )
    return sum(counters.at(line).total("global_load_bytes") for line in lines) / 8


def _visits_of_c(individuals: int, block: int = 128) -> int:
    """Return the elements of c in the windows of all blocks of b, summed over the merges of a site.

    individuals: a power of two. The stages of a block have whole warps of a.
    """
    visits, group = 0, 1
    while group < individuals:
        length = 2 * group + 1
        whole = (length + WARP - 1) // WARP * WARP
        windows = [
            min(whole + min(block, length - start) - 1, 2 * length - 1 - start) for start in range(0, length, block)
        ]
        visits += individuals // (2 * group) * sum(windows)
        group *= 2
    return visits


@st.kernel
def _unordered(a: Global[f64], b: Global[f64], c: Global[f64], n: st.i32, ORDERED: Const) -> None:
    """c += a (x) b, one element of a per lane. ORDERED: synchronise the warp after each step."""
    mine = a[st.lane]
    for j in range(n):
        c[st.lane + j] += mine * b[j]
        if ORDERED:
            st.syncwarp()


def write_conflict(setting: Setting) -> Shown:
    """Figure 6."""
    races = {}
    for ordered in (False, True):
        args = {"a": np.ones(WARP), "b": np.ones(4), "c": np.zeros(WARP + 3), "n": 4, "ORDERED": ordered}
        try:
            launch(_unordered, grid=1, block=WARP, args=args, engine=setting.engine, check="races")
            races[ordered] = 0
        except FaultError as fault:
            races[ordered] = len(fault.result.faults)
    return Shown(
        [
            Claim("without synchronization two threads may write to one position",
                  [at_least(COMPUTED, "races found", races[False], 1)], main=True),
            Claim("with one before each write there is no conflict",
                  [exactly(COMPUTED, "races found with a synchronization per step", races[True], 0)], main=True),
            Claim("threads of a warp are synchronized by themselves",
                  [less_than(counted_by(GPU), "compute capability", float("{}.{}".format(*GPU.compute_capability)), 7.0)],
                  remark="Warps do not execute in lockstep since compute capability 7.0; the kernels call syncwarp."),
        ],
        "The race checker finds the conflict, and is silent with a synchronization before each step.",
    )  # fmt: skip


def underflow(setting: Setting) -> Shown:
    """Algorithm 3."""
    n, sites = setting.whole("individuals"), min(setting.whole("sites"), 64)
    rows: list[Row] = []
    for size in sorted({n // 8, n // 4, n // 2, n, 2 * n}):
        undefined, lowest = divisions_by_zero(size, sites, setting.engine)
        rows.append({
            about("individuals"): size, emulator("lowest t"): round(lowest), emulator("sites"): sites,
            emulator("divided by zero"): undefined,
        })  # fmt: skip
    counts = [int(row[emulator("divided by zero")] or 0) for row in rows]
    first = next((row[about("individuals")] for row, count in zip(rows, counts, strict=True) if count), None)
    return Shown(
        [
            Claim("with many individuals e^t is 0 in doubles, and the program divides by zero",
                  [at_least(COMPUTED, f"sites divided by zero, of {sites}, N = {2 * n:,}", counts[-1], 1)], main=True,
                  remark=f"The first is at N = {first:,} of those tried." if first else ""),
            Claim("with few individuals it does not",
                  [exactly(COMPUTED, f"sites divided by zero, of {sites}, N = {n // 8:,}", counts[0], 0)]),
            Claim("t is below about -800 from about 400 individuals on", [],
                  remark="t depends on the depth of sequencing, which the paper does not state; it is "
                  f"{rows[-1][emulator('lowest t')]:,} at N = {2 * n:,} here, at a depth of 3."),
        ],
        "The underflow is reproduced and counted; the number of individuals at its onset depends on the depth of sequencing.",
        [Table("Algorithm 3 in doubles, a launch a row", rows)],
    )  # fmt: skip


def logarithms(setting: Setting) -> Shown:
    """Algorithms 4 and 5."""
    n = setting.whole("individuals")
    problem = generate(3, 4, n, "gama")
    answer = FAMILY.solve(problem, "iterative", Runner(setting.engine))
    agreement = FAMILY.compare(answer, FAMILY.oracle(problem))
    sums = float(np.abs(answer.sum(axis=1) - 1).max())
    missing = float(_missing_term(problem).max())
    return Shown(
        [
            Claim("very small numbers are represented correctly", [same_results(COMPUTED, agreement)], main=True),
            Claim("line 13 is the posterior",
                  [at_most(COMPUTED, "largest difference of a site's sum of h from 1, as printed", missing, 1e-9)],
                  remark=f"h[0] lacks (1 - p) g / b; with it the sums differ from 1 by at most {sums:.0e}."),
        ],
        "Logarithms work as claimed; Algorithms 3 and 4 lack one term of h[0].",
    )  # fmt: skip


def _missing_term(problem: Problem) -> Floats:
    """Return (1 - p) g / b of each site, the term of h[0] that Algorithms 3 and 4 lack."""
    vectors, t = problem.vectors()
    varies = np.log(problem.variable) + np.logaddexp.reduce(product(vectors), axis=1) + t
    fixed = np.log(1 - problem.variable) + problem.fixed()
    return np.asarray(np.exp(fixed - np.logaddexp(varies, fixed)))
