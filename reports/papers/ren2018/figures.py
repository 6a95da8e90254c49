"""Figures 1 to 7 and Table 1 and 3 of Ren 2018: what its implementations do, counted step by step."""

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
from ...launchers import Runner
from ..claims import (
    COMPUTED,
    PRINTED,
    Claim,
    Comparison,
    counted_by,
    exactly,
    more_than,
    near,
    same_results,
)
from ..paper import Cell, Column, Row, Setting, Shown, Table, about, emulator, paper
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


def memory_hierarchy(setting: Setting) -> Shown:
    """Figure 1 and the claims on coalescing."""
    orders = {
        "neighbouring addresses": np.arange(32),
        "32 addresses without order": 32 * np.random.default_rng(1).permutation(32),
    }
    rows: list[Row] = []
    lines = {}
    for (name, at), claimed in zip(orders.items(), (1, 32), strict=True):
        args = {"x": np.zeros(1024, np.float32), "at": at.astype(np.int32), "out": st.empty(32, "f32")}
        result = launch(_gather, grid=1, block=32, args=args, device=K40, engine=setting.engine)
        lines[name] = result.counters.at("x[at[st.lane]]").total("global_load_lines") - 1  # `at` is one line itself
        rows.append({about("a warp loads"): name, paper("accesses"): claimed, emulator("128-byte lines"): lines[name]})
    coalesced, unordered = lines.values()
    return Shown(
        [Claim("coalesced loads of a warp are one access of 128 bytes, unordered ones up to 32",
               [exactly(counted_by(K40), "lines of a coalesced load", coalesced, 1),
                exactly(counted_by(K40), "lines of an unordered load", unordered, 32)], main=True)],
        "The emulator's rule of global memory gives the paper's numbers; the picture itself names memories and has no figures.",
        [Table("One load of 4 bytes a lane", rows)],
    )  # fmt: skip


def block_diagram(setting: Setting) -> Shown:
    """Figure 2: the host prepares a set, a kernel computes it, the likelihoods are copied back."""
    problem = FAMILY.example()
    agreement = FAMILY.compare(FAMILY.solve(problem, PASSES, Runner(setting.engine)), FAMILY.oracle(problem))
    return Shown(
        [
            Claim("the host prepares the data set, the GPU executes PFA, the results are copied back",
                  [same_results(COMPUTED, agreement)], main=True),
            Claim("JCUDA connects it with GATK's Java", [], remark="Java is not included; regions are read from and written to files."),
        ],
        "The data flow is that of `simtbed pairhmm`; GATK is not included.",
    )  # fmt: skip


# ------------------------------------------------------------------ Figures 3 to 7
def _of_rows(counters: Counters) -> int:
    """Return loads and stores of single values in the rows of the inter-task variants in global memory."""
    stores = (f"{name}[cell] =" for name in ROWS)
    moved = counters.at("MU, IU, DU = match_row[cell]").total("global_load_bytes")
    return (moved + sum(counters.at(text).total("global_store_bytes") for text in stores)) // 4


def _trace(setting: Setting, variant: str, tile: int) -> tuple[Comparison, Row]:
    """Compare the accesses of intermediate results per cell of set 6 with 6 / k; with the row of the table."""
    m, n = INTERTASK_SETS[6]
    pairs = setting.whole("pairs")
    accesses = _of_rows(counters(variant, pairs, m, n, setting.engine)) / cells(pairs, m, n)
    # The first tile of a column loads nothing: 3 of 6 accesses in one of m / tile passes.
    row: Row = {
        about("implementation"): variant,
        paper("accesses per cell, 6 / k"): 6 / tile,
        paper("... less the first pass's loads"): 6 / tile - 3 / m,
        emulator("accesses per cell"): accesses,
    }
    return near(counted_by(K40), f"accesses per cell, k = {tile}", accesses, 6 / tile, 0.05), row


def naive_trace(setting: Setting) -> Shown:
    """Fig. 3: a cell at a time, 6 m n accesses."""
    comparison, row = _trace(setting, "intertask-naive", 1)
    return Shown(
        [Claim("6 m n global accesses of intermediate results", [comparison], main=True)],
        "Every cell loads three values and stores three; the first row has nothing to load.",
        [Table("Intermediate results, set 6", [row])],
    )


def tiled_trace(setting: Setting) -> Shown:
    """Fig. 4: k cells of a column at a time, 6 m n / k accesses."""
    traces = [_trace(setting, f"intertask-tile{tile}", tile) for tile in TILES]
    return Shown(
        [
            Claim(
                "6 m n / k global accesses of intermediate results", [comparison for comparison, _ in traces], main=True
            )
        ],
        "A tile of any size loads three values and stores three.",
        [Table("Intermediate results, set 6", [row for _, row in traces])],
    )


def interlaced(setting: Setting) -> Shown:
    """Fig. 5, with the data set preparation that it belongs to: words side by side, pairs by length."""
    m, n = INTERTASK_SETS[6]
    counted = counters("intertask-naive", setting.whole("pairs"), m, n, setting.engine)
    lines = {
        name: counted.at(text).total("global_load_lines") / counted.at(text).total("global_load_requests")
        for name, text in LOADS.items()
    }
    rows: list[Row] = [
        {about("a warp loads"): name, paper("accesses of 128 bytes"): 1, emulator("lines a request"): per_cell}
        for name, per_cell in lines.items()
    ]
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
    return Shown(
        [
            Claim("the first 4 letters of 32 sequences are one access of 128 bytes",
                  [exactly(counted_by(K40), f"lines per request, {name}", count, 1) for name, count in lines.items()], main=True),
            Claim("threads of a warp wait for each other unless pairs are sorted by length",
                  [more_than(counted_by(K40), "ratio of warp instructions, unsorted to sorted",
                             per_cell["unsorted"] / per_cell["sorted by length"], 1)]),
        ],
        "Interleaved letters and numbers cost one line per warp; the paper reports no gain of the sorting.",
        [Table("One load of a warp, set 6", rows), Table(f"{len(mixed.pairs[0]):,} pairs of mixed lengths", orders)],
    )  # fmt: skip


def global_bytes(counters: Counters) -> int:
    """Return the efficiency of global loads and stores."""
    return 32 * (counters.total("global_load_sectors") + counters.total("global_store_sectors"))


def anti_diagonals(setting: Setting) -> Shown:
    """Fig. 6: a thread a base of the read, m + n - 1 steps, two barriers a step; passes where reads are longer."""
    rows: list[Row] = []
    for m, n in ((4, 6), (64, 96), (THREADS, 256), (2 * THREADS, 256)):
        passes = -(-m // THREADS)
        steps = passes * (min(m, THREADS) + n - 1)
        rows.append(_barriers("intratask-naive", m, n, 2 * steps, setting) | {about("passes"): passes})
    return Shown(
        [_as_printed("two barriers a step, m + n - 1 steps a pass", rows)],
        "The barriers are counted; the paper's picture of 4 bases and 6 letters takes its stated 9 steps.",
        [Table("One pair", rows)],
    )


def two_a_barrier(setting: Setting) -> Shown:
    """Fig. 7: two cells a thread between barriers."""
    rows = [
        _barriers("intratask-tile2", m, n, 2 * (m + -(-n // 2) - 1), setting) for m, n in ((4, 6), (64, 96), (128, 256))
    ]
    return Shown(
        [
            _as_printed("2 (m + n / 2) barriers", rows),
            Claim("12 cells' time for 4 bases and 6 letters, 9 for the naive one",
                  [exactly(counted_by(K40), "barriers, of two cells per pair of them", int(rows[0][emulator("barriers")] or 0), 12)]),
        ],
        "The tile halves the contribution of the haplotype to the number of steps; each step has two cells.",
        [Table("One pair", rows)],
    )  # fmt: skip


def _barriers(variant: str, m: int, n: int, claimed: int, setting: Setting) -> dict[Column, Cell]:
    """Return the barriers of the sweep of one pair, without the barrier after loading the letters."""
    barriers = counters(variant, 1, m, n, setting.engine).total("barriers") - WARPS
    return {
        about("implementation"): variant,
        about("read"): m,
        about("haplotype"): n,
        paper("barriers"): claimed,
        emulator("barriers"): barriers // WARPS,
    }


def _as_printed(text: str, rows: Sequence[Row]) -> Claim:
    """Return the main claim that the barriers of all sizes are the paper's."""
    compared = [
        exactly(counted_by(K40), f"barriers, {row[about('read')]} x {row[about('haplotype')]}",
                int(row[emulator("barriers")] or 0), int(row[paper("barriers")] or 0))
        for row in rows
    ]  # fmt: skip
    return Claim(text, compared, main=True)


# ------------------------------------------------------------------ Tables 1 and 3
def intertask_sets(setting: Setting) -> Shown:
    """Table 1."""
    rows: list[Row] = [
        {about("set"): number, paper("read length"): m, paper("haplotype length"): n, emulator("cells per pair"): m * n}
        for number, (m, n) in INTERTASK_SETS.items()
    ]
    remainders = sum(m % tile != 0 for m, _ in INTERTASK_SETS.values() for tile in TILES)
    return Shown(
        [
            Claim(
                "lengths of reads are multiples of every tile size",
                [exactly(PRINTED, "sets and tile sizes with a remainder", remainders, 0)],
                main=True,
            )
        ],
        "The sets are generated with these lengths, and reports and benchmarks use them.",
        [Table("Synthetic sets of the inter-task implementations", rows)],
    )


def intratask_sets(setting: Setting) -> Shown:
    """Table 3."""
    rows: list[Row] = [
        {
            about("set"): number,
            paper("read length"): m,
            paper("haplotype length"): n,
            emulator("idle lanes of a warp's passes"): f"{-m % 32}",
            emulator("idle threads of a block's passes"): f"{-m % THREADS}",
        }
        for number, (m, n) in INTRATASK_SETS.items()
    ]
    idle = sum(m % WARP_SIZE != 0 for number, (m, _) in INTRATASK_SETS.items() if number <= 21)
    blocks = [number for number, (m, _) in INTRATASK_SETS.items() if m % THREADS == 0]
    return Shown(
        [
            Claim("sets 1 to 21 leave no thread of the warp-based implementations idle",
                  [exactly(PRINTED, "sets with idle lanes", idle, 0)], main=True),
            Claim("sets 22 to 26 leave no thread of any implementation idle", [
                exactly(PRINTED, "first set with reads as long as a block", blocks[0], 22),
                exactly(PRINTED, "number of such sets", len(blocks), 5)], main=True),
        ],
        "All reads are multiples of 32, and those of the last five sets are as long as a block.",
        [Table("Synthetic sets of the intra-task implementations", rows)],
    )  # fmt: skip
