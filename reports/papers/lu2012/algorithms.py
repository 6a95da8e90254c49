"""Algorithms and Figures 1 to 6 of Lu 2012, by the shipped kernels."""

import math

import numpy as np
import simtbed as st
from simtbed import Const, Counters, FaultError, Global, f64, launch
from simtbed.kernels.sfs import FAMILY
from simtbed.kernels.sfs.host.generate import generate
from simtbed.kernels.sfs.host.problem import Floats, Problem
from simtbed.kernels.sfs.plain import merge
from simtbed.oracles.sfs import product

from ...explanation import choices
from ...launchers import Runner
from ..claims import Value, counted_by
from ..paper import Figures, Row, Setting, Table
from ..values import differing, solved
from .counting import GPU, Genotypes, counted, divisions_by_zero

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


def as_printed(vectors: Floats) -> Floats:
    """Return h of one site by Algorithm 1 with line 5 as printed: h[0] = p_MM, h[2] = p_mm. vectors: (N, 3), p_mm first."""
    individuals = len(vectors)
    h = np.zeros(2 * individuals + 1)
    h[2], h[1], h[0] = vectors[0]
    for i in range(1, individuals):
        h = np.convolve(h[: 2 * i + 1], vectors[i])
    return h


CHECKED = generate(5, 8, 32)
"""The problem of the comparisons with the oracle."""


def iterative(setting: Setting) -> Figures:
    """Algorithm 1."""
    n, sites = setting.whole("individuals"), setting.whole("sites")
    count = counted("iterative", Genotypes.from_setting(setting), sites, setting.engine)
    # Warps are padded to 32 sites.
    products = round(count.a_site("warp_instructions.fp64") * sites / math.ceil(sites / WARP))
    likelihoods = _likelihoods()
    error = np.abs(as_printed(likelihoods) / np.exp(product(likelihoods[None])[0]) - 1).max()
    return Figures(
        {
            "results": solved(FAMILY, CHECKED, "iterative", setting.engine),
            "products": [Value(counted_by(GPU), products - (3 * n * n - 3), f"N = {n:,}")],
            "line 5": float(error),
        },
        texts={"choices": choices(FAMILY, "iterative")},
    )


def _differing(actual: Floats, expected: Floats) -> int:
    return int((~np.isclose(actual, expected, rtol=1e-13, atol=0)).sum())


def matrices(setting: Setting) -> Figures:
    """Figures 1, 2 and 3."""
    likelihoods = _likelihoods()
    size = 2 * PICTURED + 1
    h = np.zeros(size)
    h[0] = 1.0
    for row in likelihoods:
        h = super_band(row, size) @ h
    worst = float(np.abs(h / np.exp(product(likelihoods[None])[0]) - 1).max())
    first, second, *_ = likelihoods
    of_two = super_band(first, size) @ super_band(second, size)
    draw = np.random.default_rng(2)
    a, b = draw.random(5), draw.random(5)
    column = (super_band(a, 17) @ super_band(b, 17))[:, 0]
    return Figures(
        {
            "update": worst,
            "band": {f"of {size} x {size}": _differing(of_two, super_band(of_two[:, 0], size))},
            "values": int(np.count_nonzero(of_two[:, 0])),
            "column": _differing(column, np.concatenate([np.convolve(a, b), np.zeros(8)])),
        }
    )


def reduction(setting: Setting) -> Figures:
    """Algorithm 2, and the complexities of section 3.3."""
    n, sites = setting.whole("individuals"), setting.whole("sites")
    count = counted("reduction", Genotypes.from_setting(setting), sites, setting.engine)
    merged = count.counters.at("target[c + i + j] = st.fma(").total("global_store_bytes") / 8 / sites
    claimed = 2 * n * n + 2 * n * math.log2(n) - n - 1
    products, share = {f"N = {n:,}": round(merged) - round(claimed)}, merged / (3 * n * n - 3)
    results = solved(FAMILY, CHECKED, "reduction", setting.engine)
    return Figures({"results": results, "products": products, "share": share}, rule=counted_by(GPU))


def binary_merge(setting: Setting) -> Figures:
    """Figure 4."""
    source = np.random.default_rng(3).random(12)
    args = {"source": source, "target": st.zeros(12, "f64"), "individuals": 4, "group": 1, "sites": 1, "TEAMS": 2}
    result = launch(merge, grid=1, block=64, args=args, engine=setting.engine, counters=False)
    expected = np.concatenate([np.convolve(source[0:3], source[3:6]), np.convolve(source[6:9], source[9:12])])
    return Figures({"coefficients": {"of 10": _differing(result["target"][:10], expected)}})


def shared_memory(setting: Setting) -> Figures:
    """Figure 5."""
    n, sites = setting.whole("individuals"), setting.whole("sites")
    blocks = counted("reduction-shared", Genotypes.from_setting(setting), sites, setting.engine)
    loads = _accesses_of_c(blocks.counters) / sites / _visits_of_c(n)
    results, texts = (
        solved(FAMILY, CHECKED, "reduction-shared", setting.engine),
        {"choices": choices(FAMILY, "reduction-shared")},
    )
    return Figures({"results": results, "loads": loads}, texts=texts, rule=counted_by(GPU))


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


def write_conflict(setting: Setting) -> Figures:
    """Figure 6."""
    races = {}
    for name, ordered in (("unordered", False), ("ordered", True)):
        args = {"a": np.ones(WARP), "b": np.ones(4), "c": np.zeros(WARP + 3), "n": 4, "ORDERED": ordered}
        races[name] = 0
        try:
            launch(_unordered, grid=1, block=WARP, args=args, engine=setting.engine, check="races")
        except FaultError as fault:
            races[name] = len(fault.result.faults)
    return Figures(races)


DEPTHS = (3.0, 10.0, 20.0, 40.0)
"""Depths of the table of Algorithm 3."""
ONSET = 400
"""Individuals at which the paper has t of -800."""


def underflow(setting: Setting) -> Figures:
    """Algorithm 3."""
    n, sites, depth = setting.whole("individuals"), min(setting.whole("sites"), 64), float(setting["depth"])
    rows: list[Row] = []
    undefined: dict[tuple[float, int], int] = {}
    lowest: dict[tuple[float, int], float] = {}
    for read_depth in sorted({*DEPTHS, depth}):
        for size in sorted({n // 8, ONSET, n, 2 * n}):
            undefined[read_depth, size], lowest[read_depth, size] = divisions_by_zero(
                size, sites, setting.engine, read_depth
            )
            rows.append({
                "depth": read_depth, "individuals": size, "emulator: lowest t": round(lowest[read_depth, size]), "emulator: sites": sites,
                "emulator: divided by zero": undefined[read_depth, size],
            })  # fmt: skip
    return Figures(
        {
            "many": {f"of {sites}, N = {2 * n:,}": undefined[depth, 2 * n]},
            "few": {f"of {sites}, N = {n // 8:,}": undefined[depth, n // 8]},
            "t": min(t for (_, size), t in lowest.items() if size == ONSET),
        },
        [Table("Algorithm 3 in doubles, a launch a row", rows)],
        texts={"depth": depth, "t": lowest[depth, ONSET]},
    )


def logarithms(setting: Setting) -> Figures:
    """Algorithms 4 and 5."""
    problem = generate(3, 4, setting.whole("individuals"), "gama")
    answer = FAMILY.solve(problem, "iterative", Runner(setting.engine))
    return Figures(
        {
            "results": differing(FAMILY.compare(answer, FAMILY.oracle(problem))),
            "sums": float(np.abs(answer.sum(axis=1) - 1).max()),
        },
        texts={"missing": float(_missing_term(problem).max())},
    )


def _missing_term(problem: Problem) -> Floats:
    """Return (1 - p) g / b of each site, the term of h[0] outside the excerpts of Algorithms 3 and 4."""
    vectors, t = problem.vectors()
    varies = np.log(problem.variable) + np.logaddexp.reduce(product(vectors), axis=1) + t
    fixed = np.log(1 - problem.variable) + problem.fixed()
    return np.asarray(np.exp(fixed - np.logaddexp(varies, fixed)))
