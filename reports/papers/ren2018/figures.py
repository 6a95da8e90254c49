"""Figures 1 to 7 and Tables 1 and 3 of Ren 2018: accesses and barriers, counted step by step."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

import numpy as np
import simtbed as st
from simtbed import Counters, Global, Result, f32, i32, launch
from simtbed.kernels.pairhmm import FAMILY
from simtbed.kernels.pairhmm.host.generate import equal_lengths, generate
from simtbed.kernels.pairhmm.intratask_block import THREADS
from simtbed.language.intrinsics import WARP_SIZE
from simtbed.runtime.registry import EngineName

from ...bench.pairhmm import INTERTASK_SETS, INTRATASK_SETS
from ..claims import PRINTED, Value, counted_by
from ..paper import Figures, Row, Setting, Table, about, emulator
from ..values import solved
from .profiled import K40, launched

ROWS = ("match_row", "insertion_row", "deletion_row")
"""Values that a cell reads from the row above and writes for the row below."""
LOADS = {"haplotype letters": "letters = haplotypes", "read letters": "word = reads[", "probabilities": "= error[at]"}
"""Source lines of the input loads of the naive inter-task kernel."""
TILES = (2, 4, 6, 8)
PASSES = "intratask-naive"
"""The implementations used in GATK."""
WARPS = THREADS // WARP_SIZE


@cache
def counters(variant: str, pairs: int, read: int, haplotype: int, engine: EngineName) -> Counters:
    """Count a variant on pairs of equal lengths, by the rules of the K40."""
    return _sum(launched(equal_lengths(1, pairs, read, haplotype), variant, engine=engine))


def _sum(results: Sequence[Result]) -> Counters:
    counters_of_launches = [result.counters for result in results]
    return sum(counters_of_launches[1:], counters_of_launches[0])


def cells(pairs: int, read: int, haplotype: int) -> int:
    """Return the number of cells of the problem of `counters`."""
    return equal_lengths(1, pairs, read, haplotype).cells


# ------------------------------------------------------------------ Figures 1 and 2
@st.kernel
def _gather(x: Global[f32], at: Global[i32], out: Global[f32]) -> None:
    """Return the lines of a load of one element per lane."""
    out[st.lane] = x[at[st.lane]]


def memory_hierarchy(setting: Setting) -> Figures:
    """Figure 1 and the claims on coalescing."""
    orders = {
        "neighbouring addresses": np.arange(32),
        "32 addresses without order": 32 * np.random.default_rng(1).permutation(32),
    }
    lines = []
    for name, at in orders.items():
        args = {"x": np.zeros(1024, np.float32), "at": at.astype(np.int32), "out": st.empty(32, "f32")}
        result = launch(_gather, grid=1, block=32, args=args, device=K40, engine=setting.engine)
        count = result.counters.at("x[at[st.lane]]").total("global_load_lines") - 1  # `at` is one line itself
        lines.append(Value(counted_by(K40), count, name))
    return Figures({"lines": lines})


def block_diagram(setting: Setting) -> Figures:
    """Figure 2: the host prepares a set, a kernel computes it, the likelihoods are copied back."""
    return Figures({"results": solved(FAMILY, FAMILY.example(), PASSES, setting.engine)})


# ------------------------------------------------------------------ Figures 3 to 7
def _of_rows(counters: Counters) -> int:
    """Return loads and stores of single values in the rows of the inter-task variants in global memory."""
    stores = (f"{name}[cell] =" for name in ROWS)
    moved = counters.at("MU, IU, DU = match_row[cell]").total("global_load_bytes")
    return (moved + sum(counters.at(text).total("global_store_bytes") for text in stores)) // 4


def traces(setting: Setting) -> Figures:
    """Figures 3 and 4: accesses of intermediate results per cell of set 6."""
    m, n = INTERTASK_SETS[6]
    pairs = setting.whole("pairs")
    values, rows = [], []
    for tile in (1, *TILES):
        variant = "intertask-naive" if tile == 1 else f"intertask-tile{tile}"
        accesses = _of_rows(counters(variant, pairs, m, n, setting.engine)) / cells(pairs, m, n)
        values.append(Value(counted_by(K40), accesses, f"k = {tile}"))
        # The first tile of a column loads nothing: 3 of 6 accesses in one of m / tile passes.
        row: Row = {
            about("implementation"): variant,
            about("6 / k less the first pass's loads"): 6 / tile - 3 / m,
            emulator("accesses per cell"): accesses,
        }
        rows.append(row)
    return Figures({"naive": values[:1], "tiled": values[1:]}, [Table("Intermediate results, set 6", rows)])


def interlaced(setting: Setting) -> Figures:
    """Fig. 5, with the data set preparation that it belongs to: words side by side, pairs by length."""
    m, n = INTERTASK_SETS[6]
    counted = counters("intertask-naive", setting.whole("pairs"), m, n, setting.engine)
    lines = {
        name: counted.at(text).total("global_load_lines") / counted.at(text).total("global_load_requests")
        for name, text in LOADS.items()
    }
    rows: list[Row] = [
        {about("a warp loads"): name, emulator("lines a request"): per_cell} for name, per_cell in lines.items()
    ]
    if setting.data:
        mixed = FAMILY.read(setting.data)
    else:
        mixed = generate(3, records=setting.whole("records"), read_length=(24, 144), haplotype_length=(150, 250))
    by_order = {
        order: _sum(launched(mixed, variant, engine=setting.engine))
        for order, variant in (("sorted by length", "intertask-naive"), ("unsorted", "intertask-naive-unsorted"))
    }
    per_cell = {order: one.total("warp_instructions") / mixed.cells for order, one in by_order.items()}
    orders: list[Row] = [
        {
            about("pairs"): order,
            emulator("warp instructions per cell"): per_cell[order],
            emulator("global bytes per cell"): global_bytes(one) / mixed.cells,
        }
        for order, one in by_order.items()
    ]
    rule = counted_by(K40)
    return Figures(
        {
            "lines": [Value(rule, count, name) for name, count in lines.items()],
            "unsorted": [Value(rule, per_cell["unsorted"] / per_cell["sorted by length"])],
        },
        [Table("One load of a warp, set 6", rows), Table(f"{len(mixed.pairs[0]):,} pairs of mixed lengths", orders)],
    )


def global_bytes(counters: Counters) -> int:
    """Return the efficiency of global loads and stores."""
    return 32 * (counters.total("global_load_sectors") + counters.total("global_store_sectors"))


SIZES = ((4, 6), (64, 96), (THREADS, 256), (2 * THREADS, 256))
"""Read and haplotype of Figures 6 and 7, and longer ones; the last one takes two passes."""


def barriers(setting: Setting) -> Figures:
    """Figures 6 and 7: barriers of the sweep of one pair, without the barrier after loading the letters."""
    values: dict[str, list[Value]] = {"intratask-naive": [], "intratask-tile2": [], "cells": []}
    rows: list[Row] = []
    for variant, cells_of_step in (("intratask-naive", 1), ("intratask-tile2", 2)):
        for m, n in SIZES:
            count = (counters(variant, 1, m, n, setting.engine).total("barriers") - WARPS) // WARPS
            values[variant].append(Value(counted_by(K40), count, f"{m} x {n}"))
            values["cells"].append(Value(counted_by(K40), count // 2 * cells_of_step, f"{variant}, {m} x {n}"))
            rows.append(
                {about("implementation"): variant, about("read"): m, about("haplotype"): n, emulator("barriers"): count}
            )
    values["cells"] = [value for value in values["cells"] if value.label.endswith("4 x 6")]
    return Figures(values, [Table("One pair", rows)])


# ------------------------------------------------------------------ Tables 1 and 3
def intertask_sets(setting: Setting) -> Figures:
    """Table 1."""
    rows: list[Row] = [
        {about("set"): number, about("read length"): m, about("haplotype length"): n}
        for number, (m, n) in INTERTASK_SETS.items()
    ]
    remainders = sum(m % tile != 0 for m, _ in INTERTASK_SETS.values() for tile in TILES)
    return Figures({"remainders": [Value(PRINTED, remainders)]}, [Table("Sets as printed", rows)])


def intratask_sets(setting: Setting) -> Figures:
    """Table 3."""
    rows: list[Row] = [
        {about("set"): number, about("read length"): m, about("haplotype length"): n,
         about("idle lanes of a warp's passes"): -m % 32, about("idle threads of a block's passes"): -m % THREADS}
        for number, (m, n) in INTRATASK_SETS.items()
    ]  # fmt: skip
    idle = sum(m % WARP_SIZE != 0 for number, (m, _) in INTRATASK_SETS.items() if number <= 21)
    blocks = [number for number, (m, _) in INTRATASK_SETS.items() if m % THREADS == 0]
    return Figures(
        {"idle": [Value(PRINTED, idle)], "first": [Value(PRINTED, blocks[0])], "number": [Value(PRINTED, len(blocks))]},
        [Table("Sets as printed", rows)],
    )
