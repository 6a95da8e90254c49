"""Algorithms and Figures 1 to 6 of Lu 2012, compared with the shipped kernels."""

from __future__ import annotations

import math

import numpy as np
import simtbed as st
from simtbed import Const, FaultError, Global, f64, launch
from simtbed.kernels.sfs import FAMILY
from simtbed.kernels.sfs.host.generate import generate
from simtbed.kernels.sfs.host.problem import Floats
from simtbed.kernels.sfs.plain import merge, merge_shared
from simtbed.kernels.sfs.reduction_shared import shared_bytes
from simtbed.oracles.sfs import product

from ...launchers import Runner
from ..paper import Claim, Row, Setting, Shown, Table, about, emulator, paper
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
    """Return the claim that a variant agrees with the oracle."""
    problem = generate(5, 8, 32)
    answer = FAMILY.solve(problem, variant, Runner(setting.engine))
    agreement = FAMILY.compare(answer, FAMILY.oracle(problem))
    text = f"`{variant}`: {agreement.compared:,} values, {agreement.differing} differ from the oracle's"
    return Claim("it computes the site frequency spectrum", agreement.agrees, text)


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
            Claim("3 N^2 - 3 multiplications per site", round(products) == claimed, f"{products:,.0f} for N = {n:,}"),
            Claim("line 5 stores the first individual as lines 7 to 12 need it", False, "reversed: h[0] must be p_mm, h[2] p_MM"),
        ],
        "The algorithm and its operation count are correct, except for the order of its first step.",
        [Table(f"N = {n:,}", rows)],
    )  # fmt: skip


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
        [Claim("the update by an individual is the product of its matrix with h", worst < 1e-12,
               f"N = {PICTURED}: matrices, one after the other, give the oracle's spectrum to {worst:.0e}")],
        "The matrices of Figure 1, multiplied, give the same spectrum as the oracle.",
    )  # fmt: skip


def multiplication(setting: Setting) -> Shown:
    """Figure 2."""
    a, b, *_ = _likelihoods()
    size = 2 * PICTURED + 1
    matrix_product = super_band(a, size) @ super_band(b, size)
    same = np.allclose(matrix_product, super_band(matrix_product[:, 0], size), rtol=1e-13, atol=0)
    return Shown(
        [
            Claim("the product of two super-band matrices is one", same, f"{size} x {size}, element by element"),
            Claim("it has 2 C - 1 = 5 different values", np.count_nonzero(matrix_product[:, 0]) == 5,
                  f"{np.count_nonzero(matrix_product[:, 0])} in its first column"),
        ],
        "Both observations hold for the matrices of N = 4.",
    )  # fmt: skip


def first_column(setting: Setting) -> Shown:
    """Figure 3."""
    draw = np.random.default_rng(2)
    a, b = draw.random(5), draw.random(5)
    column = (super_band(a, 17) @ super_band(b, 17))[:, 0]
    same = np.allclose(column[:9], np.convolve(a, b), rtol=1e-13) and not column[9:].any()
    return Shown(
        [Claim("the first column is the sums of a[i] b[k - i]", same, "C = 5: equal to the convolution of the two")],
        "The column is the convolution of the two first columns.",
    )


def reduction(setting: Setting) -> Shown:
    """Algorithm 2, and the complexities of section 3.3."""
    n, sites = setting.whole("individuals"), setting.whole("sites")
    count = counted("reduction-plain", n, sites, setting.engine)
    merged = count.counters.at("target[c + i + j] = st.fma(").total("global_store_bytes") / 8 / sites
    claimed = 2 * n * n + 2 * n * math.log2(n) - n - 1
    rows: list[Row] = [
        {about("a site"): "multiplications", paper("2 N^2 + 2 N log2 N - N - 1"): round(claimed), emulator("counted"): round(merged)}
    ]  # fmt: skip
    share = merged / (3 * n * n - 3)
    return Shown(
        [
            _agreement(setting, "reduction-plain"),
            Claim("2 N^2 + 2 N log2 N - N - 1 multiplications per site", round(claimed) == round(merged), f"{merged:,.0f} for N = {n:,}"),
            Claim("about 67 % of the iterative algorithm's", abs(share - 0.67) < 0.015, f"{share:.1%}"),
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
    same = np.allclose(result["target"][:10], expected, rtol=1e-13)
    return Shown(
        [Claim("two successive vectors of length L become one of 2 L - 1", same, "L = 3: two merges of one launch, a warp each")],
        "One launch of `merge` is the primitive.",
    )  # fmt: skip


def shared_memory(setting: Setting) -> Shown:
    """Figure 5."""
    n, sites = setting.whole("individuals"), setting.whole("sites")
    whole, blocks = (counted(name, n, sites, setting.engine) for name in ("reduction-plain", "reduction-shared-plain"))
    window = shared_bytes(WARP, 3) // 8 - 3
    loads = whole.a_site("global_load_requests") / blocks.a_site("global_load_requests")
    return Shown(
        [
            _agreement(setting, "reduction-shared-plain"),
            Claim("n_c - n_b + 1 elements of a a stage", window - 3 + 1 == WARP,
                  f"a window of n_b + {WARP - 1} of c for the {WARP} elements of a warp"),
            Claim("the shared values of c are not moved through global memory", loads > 5,
                  f"{loads:.0f} times fewer requests of global loads than without shared memory"),
        ],
        f"`{merge_shared.__name__}` moves its window as the picture does.",
    )  # fmt: skip


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
    raised = {}
    for ordered in (False, True):
        args = {"a": np.ones(WARP), "b": np.ones(4), "c": np.zeros(WARP + 3), "n": 4, "ORDERED": ordered}
        try:
            launch(_unordered, grid=1, block=WARP, args=args, engine=setting.engine, check="races")
            raised[ordered] = ""
        except FaultError as fault:
            raised[ordered] = str(fault).splitlines()[0].partition(": ")[2]
    return Shown(
        [
            Claim("without synchronization two threads may write to one position", bool(raised[False]),
                  raised[False] or "no race was found"),
            Claim("with one before each write there is no conflict", not raised[True], raised[True] or "no race was found"),
            Claim("threads of a warp are synchronized by themselves", GPU.warp_synchronous,
                  "true of the C2070; not since compute capability 7.0, and the kernels call syncwarp"),
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
            Claim("with many individuals e^t is 0 in doubles, and the program divides by zero", any(counts),
                  f"first at N = {first:,} of those tried" if first else f"not up to N = {2 * n:,}"),
            Claim("with few it does not", counts[0] == 0, f"{counts[0]} sites at N = {n // 8:,}"),
            Claim("t is below about -800 from about 400 individuals on", None, "t depends on the depth of sequencing, "
                  f"not stated in the paper; {rows[-1][emulator('lowest t')]:,} at N = {2 * n:,} here, sequenced three times"),
        ],
        "The underflow is reproduced and counted; the number of individuals of its onset depends on data that are not public.",
        [Table("Algorithm 3 in doubles, a launch a row", rows)],
    )  # fmt: skip


def logarithms(setting: Setting) -> Shown:
    """Algorithms 4 and 5."""
    n = setting.whole("individuals")
    problem = generate(3, 4, n, "gama")
    answer = FAMILY.solve(problem, "iterative", Runner(setting.engine))
    agreement = FAMILY.compare(answer, FAMILY.oracle(problem))
    sums = float(np.abs(answer.sum(axis=1) - 1).max())
    return Shown(
        [
            Claim("very small numbers are represented correctly", agreement.agrees and bool(np.isfinite(answer).all()),
                  f"N = {n:,}: {agreement.compared:,} values, {agreement.differing} differ from the oracle's"),
            Claim("line 13 is the posterior", False, f"h[0] lacks (1 - p) g / b; with it a site's posteriors sum to 1 within {sums:.0e}"),
        ],
        "Logarithms work as claimed; Algorithms 3 and 4 lack one term of h[0].",
    )  # fmt: skip
