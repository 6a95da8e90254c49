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
from simtbed.runtime.registry import EngineName

from ...bench.pairhmm import INTERTASK_SETS, INTRATASK_SETS
from ...launchers import Runner
from ..paper import Cell, Claim, Column, Row, Setting, Shown, Table, about, emulator, paper
from .profiled import K40, launched

ROWS = ("match_row", "insertion_row", "deletion_row")
"""What a cell takes from the row above and leaves for the row below."""
LOADS = {"haplotype letters": "letters = haplotypes", "read letters": "word = reads[", "probabilities": "= error[at]"}
"""Where the naive inter-task kernel loads its input."""
TILES = (2, 4, 6, 8)
PASSES = "intratask-naive"
"""What GATK was given in the end."""
WARPS = THREADS // 32
FILLED = 1e-3
"""Share of the work that the last block of a launch may do again, for it is filled up with its last pair."""


@cache
def counters(variant: str, pairs: int, read: int, haplotype: int, engine: EngineName) -> Counters:
    """Of a variant on pairs of equal lengths, by the rules of the paper's card."""
    return _sum(launched(equal_lengths(1, pairs, read, haplotype), variant, engine=engine))


def _sum(results: Sequence[Result]) -> Counters:
    found = [result.counters for result in results]
    return sum(found[1:], found[0])


def cells(pairs: int, read: int, haplotype: int) -> int:
    """Of a problem that `counters` counts."""
    return equal_lengths(1, pairs, read, haplotype).cells


# ------------------------------------------------------------------ Figures 1 and 2
@st.kernel
def _gather(x: Global[f32], at: Global[i32], out: Global[f32]) -> None:
    """A load of one element a lane."""
    out[st.lane] = x[at[st.lane]]


def memory_hierarchy(setting: Setting) -> Shown:
    """Fig. 1, with the sentences on coalescing."""
    orders = {
        "neighbouring addresses": np.arange(32),
        "32 addresses without order": 32 * np.random.default_rng(1).permutation(32),
    }
    rows: list[Row] = []
    found = {}
    for (name, at), said in zip(orders.items(), (1, 32), strict=True):
        args = {"x": np.zeros(1024, np.float32), "at": at.astype(np.int32), "out": st.empty(32, "f32")}
        result = launch(_gather, grid=1, block=32, args=args, device=K40, engine=setting.engine)
        found[name] = result.counters.at("x[at[st.lane]]").total("global_load_lines") - 1  # `at` is one line itself
        rows.append({about("a warp loads"): name, paper("accesses"): said, emulator("128-byte lines"): found[name]})
    held = [*found.values()] == [1, 32]
    return Shown(
        [Claim("coalesced loads of a warp are one access of 128 bytes, unordered ones up to 32", held, str([*found.values()]))],
        "The emulator's rule of global memory gives the paper's numbers; the picture itself names memories and has no figures.",
        [Table("One load of 4 bytes a lane", rows)],
    )  # fmt: skip


def block_diagram(setting: Setting) -> Shown:
    """Fig. 2: the host prepares a set, a kernel computes it, the likelihoods come back."""
    problem = FAMILY.example()
    agreement = FAMILY.compare(FAMILY.solve(problem, PASSES, Runner(setting.engine)), FAMILY.oracle(problem))
    return Shown(
        [
            Claim("the host prepares the data set, the GPU executes PFA, the results are copied back", agreement.agrees,
                  f"{agreement.compared} likelihoods, {agreement.differing} of them differ from the oracle's"),
            Claim("JCUDA connects it with GATK's Java", None, "no Java here; regions go from file to file"),
        ],
        "The way of the data is that of `simtbed pairhmm`; GATK around it is not here.",
    )  # fmt: skip


# ------------------------------------------------------------------ Figures 3 to 7
def _of_rows(found: Counters) -> int:
    """Loads and stores of single values in the rows that the inter-task variants keep in global memory."""
    stores = (f"{name}[cell] =" for name in ROWS)
    moved = found.at("MU, IU, DU = match_row[cell]").total("global_load_bytes")
    return (moved + sum(found.at(text).total("global_store_bytes") for text in stores)) // 4


def _trace(setting: Setting, variant: str, tile: int) -> tuple[float, Row]:
    """How far the accesses of intermediate results a cell of set 6 are from what is expected, and the row that shows them."""
    m, n = INTERTASK_SETS[6]
    pairs = setting.whole("pairs")
    accesses = _of_rows(counters(variant, pairs, m, n, setting.engine)) / cells(pairs, m, n)
    # The first tile of a column loads nothing: 3 of 6 accesses in one of m / tile passes.
    expected = 6 / tile - 3 / m
    row: Row = {
        about("implementation"): variant,
        paper("accesses a cell, 6 / k"): 6 / tile,
        paper("... less the first pass's loads"): expected,
        emulator("accesses a cell"): accesses,
    }
    return abs(accesses / expected - 1), row


def naive_trace(setting: Setting) -> Shown:
    """Fig. 3: a cell at a time, 6 m n accesses."""
    apart, row = _trace(setting, "intertask-naive", 1)
    return Shown(
        [Claim("6 m n global accesses of intermediate results", apart < FILLED, f"{row[emulator('accesses a cell')]:.4g} a cell")],
        "Every cell loads three values and stores three; the first row has nothing to load.",
        [Table("Intermediate results, set 6", [row])],
    )  # fmt: skip


def tiled_trace(setting: Setting) -> Shown:
    """Fig. 4: k cells of a column at a time, 6 m n / k accesses."""
    found = [_trace(setting, f"intertask-tile{tile}", tile) for tile in TILES]
    return Shown(
        [Claim("6 m n / k global accesses of intermediate results", all(apart < FILLED for apart, _ in found),
               "as said, for k = 2, 4, 6 and 8")],
        "A tile loads three values and stores three, whatever its size.",
        [Table("Intermediate results, set 6", [row for _, row in found])],
    )  # fmt: skip


def interlaced(setting: Setting) -> Shown:
    """Fig. 5, with the data set preparation that it belongs to: words side by side, pairs by length."""
    m, n = INTERTASK_SETS[6]
    found = counters("intertask-naive", setting.whole("pairs"), m, n, setting.engine)
    lines = {
        name: found.at(text).total("global_load_lines") / found.at(text).total("global_load_requests")
        for name, text in LOADS.items()
    }
    rows: list[Row] = [
        {about("a warp loads"): name, paper("accesses of 128 bytes"): 1, emulator("lines a request"): each}
        for name, each in lines.items()
    ]
    mixed = generate(3, records=setting.whole("records"), read_length=(24, 144), haplotype_length=(150, 250))
    by_order = {
        order: _sum(launched(mixed, variant, engine=setting.engine))
        for order, variant in (("sorted by length", "intertask-naive"), ("as they come", "intertask-naive-unsorted"))
    }
    each = {order: one.total("warp_instructions") / mixed.cells for order, one in by_order.items()}
    orders: list[Row] = [
        {
            about("pairs"): order,
            emulator("warp instructions a cell"): each[order],
            emulator("global bytes a cell"): global_bytes(one) / mixed.cells,
        }
        for order, one in by_order.items()
    ]
    gain = 1 - each["sorted by length"] / each["as they come"]
    return Shown(
        [
            Claim("the first 4 letters of 32 sequences are one access of 128 bytes", set(lines.values()) == {1.0},
                  f"{max(lines.values()):g} line a request"),
            Claim("threads of a warp wait for each other unless pairs are sorted by length", gain > 0,
                  f"sorting saves {gain:.0%} of the warp instructions"),
        ],
        "Interlaced letters and numbers cost one line a warp; the paper sorts and gives no figure of what that brings.",
        [Table("One load of a warp, set 6", rows), Table(f"{len(mixed.pairs[0]):,} pairs of mixed lengths", orders)],
    )  # fmt: skip


def global_bytes(found: Counters) -> int:
    """Of the sectors that loads and stores of global memory move."""
    return 32 * (found.total("global_load_sectors") + found.total("global_store_sectors"))


def anti_diagonals(setting: Setting) -> Shown:
    """Fig. 6: a thread a base of the read, m + n - 1 steps, two barriers a step; passes where reads are longer."""
    rows: list[Row] = []
    for m, n in ((4, 6), (64, 96), (THREADS, 256), (2 * THREADS, 256)):
        passes = -(-m // THREADS)
        steps = passes * (min(m, THREADS) + n - 1)
        rows.append(_barriers("intratask-naive", m, n, 2 * steps, setting) | {about("passes"): passes})
    return Shown(
        [_as_said("two barriers a step, m + n - 1 steps a pass", rows)],
        "The barriers are counted; the paper's picture of 4 bases and 6 letters takes the 9 steps that it says.",
        [Table("One pair", rows)],
    )


def two_a_barrier(setting: Setting) -> Shown:
    """Fig. 7: two cells a thread between barriers."""
    rows = [
        _barriers("intratask-tile2", m, n, 2 * (m + -(-n // 2) - 1), setting) for m, n in ((4, 6), (64, 96), (128, 256))
    ]
    return Shown(
        [
            _as_said("2 (m + n / 2) barriers", rows),
            Claim("12 cells' time for 4 bases and 6 letters, where the naive one takes 9", rows[0][emulator("barriers")] == 12,
                  f"{rows[0][emulator('barriers')]} barriers, of two cells a pair of them: 12 cells' time"),
        ],
        "The tile halves the part of the haplotype in the number of steps and makes each step two cells long.",
        [Table("One pair", rows)],
    )  # fmt: skip


def _barriers(variant: str, m: int, n: int, said: int, setting: Setting) -> dict[Column, Cell]:
    """The barriers of the sweep of one pair: the kernel has one before it, after the letters are in shared memory."""
    found = counters(variant, 1, m, n, setting.engine).total("barriers") - WARPS
    return {
        about("implementation"): variant,
        about("read"): m,
        about("haplotype"): n,
        paper("barriers"): said,
        emulator("barriers"): found // WARPS,
    }


def _as_said(text: str, rows: Sequence[Row]) -> Claim:
    same = [row[paper("barriers")] == row[emulator("barriers")] for row in rows]
    return Claim(text, all(same), f"as said for {sum(same)} of {len(same)} sizes")


# ------------------------------------------------------------------ Tables 1 and 3
def intertask_sets(setting: Setting) -> Shown:
    """Table 1."""
    rows: list[Row] = [
        {about("set"): number, paper("read length"): m, paper("haplotype length"): n, emulator("cells a pair"): m * n}
        for number, (m, n) in INTERTASK_SETS.items()
    ]
    whole = all(m % tile == 0 for m, _ in INTERTASK_SETS.values() for tile in TILES)
    return Shown(
        [Claim("lengths of reads are multiples of every tile size", whole, "24 is a multiple of 2, 4, 6 and 8")],
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
    warps = all(m % 32 == 0 for m, _ in INTRATASK_SETS.values())
    blocks = [number for number, (m, _) in INTRATASK_SETS.items() if m % THREADS == 0]
    return Shown(
        [
            Claim("sets 1 to 21 leave no thread of the warp-based implementations idle", warps, "nor do sets 22 to 26"),
            Claim("sets 22 to 26 leave no thread of any implementation idle", blocks == [22, 23, 24, 25, 26], f"sets {blocks}"),
        ],
        "All reads are multiples of 32, and those of the last five sets are as long as a block.",
        [Table("Synthetic sets of the intra-task implementations", rows)],
    )  # fmt: skip
