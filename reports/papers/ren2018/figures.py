"""Figures 1 to 7 and Tables 1 and 3 of Ren 2018: accesses and barriers, counted step by step."""

from functools import cache, partial

import numpy as np
import simtbed as st
from simtbed import Counters, Global, Result, f32, i32, launch
from simtbed.kernels.pairhmm import FAMILY
from simtbed.kernels.pairhmm.host.generate import equal_lengths, generate
from simtbed.kernels.pairhmm.intratask_block import THREADS
from simtbed.language.intrinsics import WARP_SIZE
from simtbed.runtime.registry import EngineName

from ...bench.pairhmm import INTERTASK_SETS, INTRATASK_SETS
from ..claims import PRINTED, Number, counted_by
from ..paper import Figures, Row, Setting, Table
from ..values import K40, counters_of, launches, solved

ROWS = ("match_row", "insertion_row", "deletion_row")
"""Values that a cell reads from the row above and writes for the row below."""
LOADS = {"haplotype letters": "letters = haplotypes", "read letters": "word = reads[", "probabilities": "= error[at]"}
"""Source lines of the input loads of the naive inter-task kernel."""
TILES = (2, 4, 6, 8)
WARPS = THREADS // WARP_SIZE
RULE = counted_by(K40)


def launched(variant: str, pairs: int, read: int, haplotype: int, engine: EngineName) -> list[Result]:
    """Return the counted launches of a variant on pairs of equal lengths."""
    problem = equal_lengths(1, pairs, read, haplotype)
    return launches(partial(FAMILY.solve, problem, variant), engine, K40)


@cache
def counters(variant: str, pairs: int, read: int, haplotype: int, engine: EngineName) -> Counters:
    """Count a variant on pairs of equal lengths, by the rules of the K40."""
    problem = equal_lengths(1, pairs, read, haplotype)
    return counters_of(partial(FAMILY.solve, problem, variant), engine, K40)


@cache
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
    lines = {}
    for name, at in orders.items():
        args = {"x": np.zeros(1024, np.float32), "at": at.astype(np.int32), "out": st.empty(32, "f32")}
        result = launch(_gather, grid=1, block=32, args=args, device=K40, engine=setting.engine)
        # `at` is one line itself
        lines[name] = result.counters.at("x[at[st.lane]]").total("global_load_lines") - 1
    return Figures({"lines": lines}, rule=RULE)


def block_diagram(setting: Setting) -> Figures:
    """Figure 2: the host prepares a set, a kernel computes it, the likelihoods are copied back. The variant is GATK's."""
    return Figures({"results": solved(FAMILY, FAMILY.example(), "intratask-naive", setting.engine)})


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
    values: dict[str, Number] = {}
    rows: list[Row] = []
    for tile in (1, *TILES):
        variant = "intertask-naive" if tile == 1 else f"intertask-tile{tile}"
        accesses = _of_rows(counters(variant, pairs, m, n, setting.engine)) / cells(pairs, m, n)
        values[f"k = {tile}"] = accesses
        # The first tile of a column loads nothing: 3 of 6 accesses in one of m / tile passes.
        expected = 6 / tile - 3 / m
        rows.append(
            {
                "implementation": variant,
                "6 / k less the first pass's loads": expected,
                "emulator: accesses per cell": accesses,
            }
        )
    naive = {"k = 1": values.pop("k = 1")}
    return Figures({"naive": naive, "tiled": values}, [Table("Intermediate results, set 6", rows)], rule=RULE)


def interlaced(setting: Setting) -> Figures:
    """Fig. 5, with the data set preparation that it belongs to: words side by side, pairs by length."""
    counted = counters("intertask-naive", setting.whole("pairs"), *INTERTASK_SETS[6], setting.engine)
    lines = {
        name: counted.at(text).total("global_load_lines") / counted.at(text).total("global_load_requests")
        for name, text in LOADS.items()
    }
    if setting.data:
        mixed = FAMILY.read(setting.data)
    else:
        mixed = generate(3, records=setting.whole("records"), read_length=(24, 144), haplotype_length=(150, 250))
    orders: list[Row] = []
    per_cell = []
    for order, variant in (("sorted by length", "intertask-naive"), ("unsorted", "intertask-naive-unsorted")):
        totals = counters_of(partial(FAMILY.solve, mixed, variant), setting.engine, K40)
        per_cell.append(totals.total("warp_instructions") / mixed.cells)
        orders.append({
            "pairs": order, "emulator: warp instructions per cell": per_cell[-1],
            "emulator: global bytes per cell": global_bytes(totals) / mixed.cells,
        })  # fmt: skip
    return Figures(
        {
            "lines": lines,
            "unsorted": per_cell[1] / per_cell[0],
        },
        [
            Table("One load of a warp, set 6", [{"a warp loads": n, "emulator: lines a request": c} for n, c in lines.items()]),
            Table(f"{len(mixed.pairs[0]):,} pairs of mixed lengths", orders),
        ],
        rule=RULE,
    )  # fmt: skip


def global_bytes(counters: Counters) -> int:
    """Return the bytes that global loads and stores move, in sectors."""
    return 32 * (counters.total("global_load_sectors") + counters.total("global_store_sectors"))


SIZES = ((4, 6), (64, 96), (THREADS, 256), (2 * THREADS, 256))
"""Read and haplotype of Figures 6 and 7, and longer ones; the last one takes two passes."""


def barriers(setting: Setting) -> Figures:
    """Figures 6 and 7: barriers of the sweep of one pair, without the barrier after loading the letters."""
    values: dict[str, dict[str, Number]] = {"intratask-naive": {}, "intratask-tile2": {}, "cells": {}}
    rows: list[Row] = []
    for variant, cells_of_step in (("intratask-naive", 1), ("intratask-tile2", 2)):
        for m, n in SIZES:
            count = (counters(variant, 1, m, n, setting.engine).total("barriers") - WARPS) // WARPS
            values[variant][f"{m} x {n}"] = count
            if (m, n) == SIZES[0]:
                values["cells"][f"{variant}, {m} x {n}"] = count // 2 * cells_of_step
            rows.append({"implementation": variant, "read": m, "haplotype": n, "emulator: barriers": count})
    return Figures(values, [Table("One pair", rows)], rule=RULE)


# ------------------------------------------------------------------ Tables 1 and 3
def intertask_sets(setting: Setting) -> Figures:
    """Table 1."""
    rows: list[Row] = [{"set": k, "read length": m, "haplotype length": n} for k, (m, n) in INTERTASK_SETS.items()]
    remainders = sum(m % tile != 0 for m, _ in INTERTASK_SETS.values() for tile in TILES)
    return Figures({"remainders": remainders}, [Table("Sets as printed", rows)], rule=PRINTED)


def intratask_sets(setting: Setting) -> Figures:
    """Table 3."""
    rows: list[Row] = [
        {"set": number, "read length": m, "haplotype length": n,
         "idle lanes of a warp's passes": -m % 32, "idle threads of a block's passes": -m % THREADS}
        for number, (m, n) in INTRATASK_SETS.items()
    ]  # fmt: skip
    idle = sum(m % WARP_SIZE != 0 for number, (m, _) in INTRATASK_SETS.items() if number <= 21)
    blocks = [number for number, (m, _) in INTRATASK_SETS.items() if m % THREADS == 0]
    values = {"idle": idle, "first": blocks[0], "number": len(blocks)}
    return Figures(values, [Table("Sets as printed", rows)], rule=PRINTED)
