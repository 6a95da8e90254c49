"""Spectrum-based error correction of short reads: rare k-mers are errors, and one change often makes them frequent.

A k-mer is solid if it occurs at least min_multiplicity times in the reads and their reverse complements. For a read with
k-mers (windows) that are not solid, from `start` = 0:

    for each weak window p >= start, each position v in it and each other base b: votes[p + v][b] += 1 if that change
        makes the window solid
    make the change with the most votes if it has more than min_votes, and if no other base of the first such position
        has as many; `start` = its position; repeat while that is above 0 and a window is weak

If all windows of a read are solid then, it is retained (F). Otherwise its first run of solid windows is retained if at most
max_trim bases are removed at either end; else it is discarded (D). A read with letters other than A, C, G, T is discarded.
A read shorter than k is retained unchanged (S).

Reference: CUDA-EC 1.0.2, kernel fix_errors1 (Shi, Schmidt, Liu, Mueller-Wittig 2010).
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from ..family import Answer, Family, Variant, by_name, deferred, load

if TYPE_CHECKING:
    from simtbed import Kernel

    from .host.problem import Problem

MANGAL = "Mangal, Jain 2014, Error correction in high-throughput short-read data on GPU"
SHI = "Shi, Schmidt, Liu, Mueller-Wittig 2010, Journal of Computational Biology 17(4), CUDA-EC"
OURS = "ours"


def _oracle(problem: Problem) -> Answer:
    from simtbed.oracles.correction import corrected

    from .host.problem import strings

    p = problem.parameters
    layout = {"exact": None, "bloom": "standard", "split-first": "split-first", "blocked": "blocked"}[p.filter]
    reads = corrected(
        problem.reads.strings(), p.k, p.min_multiplicity, p.min_votes, p.max_trim, p.trim, layout, p.split
    )
    return strings(f"{read.flag} {read.sequence}" for read in reads)


def _setup_kernels() -> frozenset[Kernel]:
    from .spectrum import KERNELS

    return KERNELS


def _variant(name: str, kernel: str, description: str, paper: str) -> Variant:
    return Variant(name, f"{__name__}.{kernel}", description, paper)


_ORIGINAL, _BY_THREAD, _BY_WARP = (
    "cuda_ec:cuda_ec",
    "thread_per_read:thread_per_read",
    "warp_per_read:warp_per_read",
)

FAMILY: Family[Problem] = Family(
    name="correction",
    title="Spectrum-based error correction of reads",
    papers=(MANGAL, SHI),
    variants=by_name(
        (
            _variant(
                "thread-per-read",
                _ORIGINAL,
                "CUDA-EC's kernel: one thread per read, a copy of it in global memory, four buffers in local memory",
                SHI,
            ),
            _variant("one-lane-per-warp", _ORIGINAL, "the same, only by the first lane of each warp", MANGAL),
            _variant(
                "thread-per-read-direct",
                _ORIGINAL,
                "Table 4's other optimization: thread-per-read without the copy, checks and the table",
                MANGAL,
            ),
            _variant("thread-per-read-unrolled", _ORIGINAL, "the same, mutants unrolled", MANGAL),
            _variant(
                "thread-per-read-shared",
                _BY_THREAD,
                "the same, read and votes in shared memory, without the other three buffers",
                MANGAL,
            ),
            _variant(
                "thread-per-read-lean",
                _BY_THREAD,
                "one thread per read, votes in local memory, no other buffer (formerly thread-per-read)",
                OURS,
            ),
            _variant(
                "one-lane-per-warp-lean",
                _BY_THREAD,
                "the same, only by the first lane of each warp (formerly one-lane-per-warp)",
                OURS,
            ),
            _variant(
                "warp-per-read",
                _BY_WARP,
                "one warp per read, one lane per position of the k-mer, read and votes in shared memory",
                MANGAL,
            ),
            _variant("warp-per-read-shuffle", _BY_WARP, "the same, the largest vote by shuffles", MANGAL),
            _variant(
                "packed",
                "packed:mend",
                "threads correct single errors, full warps the others; packed k-mers, a blocked filter",
                OURS,
            ),
        )
    ),
    example=deferred(f"{__name__}.host.generate:example"),
    read=deferred(f"{__name__}.host.files:read"),
    solve=deferred(f"{__name__}.host.pipeline:solve"),
    oracle=_oracle,
    compare=deferred(f"{__name__}.host.compare:compare"),
    setup_kernels=_setup_kernels,
    explained=partial(load, f"{__name__}.explained:EXPLAINED"),
)
