"""Explanations of the correction variants: section of the paper, mapping to threads, memory layout."""

from __future__ import annotations

from ..family import Explained

_FILTER = """\
global memory, all:          keys[]   an exact set of packed k-mers, or    bits[]   a Bloom filter, 64 bits a k-mer"""
_ORIGINAL = f"""\
global memory, a read:       text     read | read | ...      copies   a second copy, which is corrected
                             successor[256]                  the next base of each
local memory, a thread:      votes[4 L]  whole[L]  most_at[4 L]  most_base[4 L]     (whole, most_at, most_base: solid, maxPos, maxMod)
{_FILTER}"""
_DIRECT = f"""\
global memory, a read:       text     read | read | ...      corrected in place
local memory, a thread:      votes[4 L]  whole[L]  most_at[4 L]  most_base[4 L]
{_FILTER}"""
_SHARED = f"""\
shared memory, a block:      row[threads][L]  cells[threads][4 L]      one read and its votes per thread
{_FILTER}"""
_LEAN = f"""\
global memory, a read:       text     read | read | ...      corrected in place
local memory, a thread:      votes[4 L]
{_FILTER}"""
_WARP = """\
window p of the read         base  0   1   2  ...  k - 1
                             lane  0   1   2  ...  k - 1    32 - k lanes have no position
shared memory, a warp:       row[L]  cells[L][4]"""
_THREAD = "One thread corrects one read; its lanes diverge where their reads differ."
_ALONE = "One thread of each warp corrects one read; the other 31 are idle."
_CHOICES = (
    "The paper binds the filter to a texture; the kernel reads it through the read-only cache (`const __restrict__`).",
    "A block has 256 threads: the only size with the paper's occupancies by its registers.",
)
_CHOICES_OF_WARPS = (
    *_CHOICES,
    "Lane v has position v of the k-mer: Algorithm 2 prints `i = 0; i += WARPSIZE`.",
    "The warp synchronises before it reads values of other lanes; the paper relies on lockstep execution.",
    "The first of several largest votes wins unless another base of its position has as many, as in CUDA-EC.",
)

EXPLAINED: dict[str, Explained] = {
    "thread-per-read": Explained("Section 4, Algorithm 1, Table 4 row 1", _THREAD, _ORIGINAL, _CHOICES),
    "one-lane-per-warp": Explained("Table 4 row 2", _ALONE, _ORIGINAL, _CHOICES),
    "thread-per-read-direct": Explained(
        "Section 6.3, Table 4 row 3 (other optimization)",
        f"{_THREAD} No second copy, no checks after the first, no table of bases.",
        _DIRECT,
        _CHOICES,
    ),
    "thread-per-read-unrolled": Explained(
        "Section 6.3, Table 4 row 4 (loop unrolling)",
        f"{_THREAD} The loop over the three mutants of a position is unrolled.",
        _DIRECT,
        _CHOICES,
    ),
    "thread-per-read-shared": Explained(
        "Sections 5.2 and 6.2, Table 4 row 5 (shared memory in place of global memory)",
        f"{_THREAD} Shared memory limits the threads of a block.",
        _SHARED,
        _CHOICES[:1],
    ),
    "thread-per-read-lean": Explained("ours: Algorithm 1 with one buffer", _THREAD, _LEAN),
    "one-lane-per-warp-lean": Explained("ours: the same", _ALONE, _LEAN),
    "warp-per-read": Explained(
        "Sections 6.1 and 6.2, Algorithm 2, Table 4 row 6 (warp divergence)",
        "One warp corrects one read. All lanes query a window; if it is weak, lane v queries the mutants of its position v.",
        f"{_WARP}  box[32]     box: for the maximum of the votes\n{_FILTER}",
        _CHOICES_OF_WARPS,
    ),
    "warp-per-read-shuffle": Explained(
        "Section 9 (future work)",
        "As warp-per-read; the maximum of the votes is found by shuffles.",
        f"{_WARP}                no box\n{_FILTER}",
        _CHOICES_OF_WARPS,
    ),
    "packed": Explained(
        "ours",
        "A thread queries the windows of a read and queues it if one is weak; a thread corrects a single error of a queued read; "
        "a warp corrects the remaining reads, its lanes testing the 3 k mutants of a weak window.",
        """\
global memory, all:          keys[]  packed k-mers      words[3][]  mutants that may be solid, a word for each third of a k-mer
                             queue[]  (read, ...) of weak reads      left[]  those with several errors
shared memory, a warp:       row[L]  cells[L][4]      hashes[96] of the changes, a block""",
    ),
}
