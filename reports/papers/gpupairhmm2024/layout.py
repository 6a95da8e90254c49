"""Figures 1 to 3 of gpuPairHMM 2024: cells, mapping of the matrix to threads, partition of the reads."""

from __future__ import annotations

import numpy as np
from simtbed.kernels.pairhmm import FAMILY
from simtbed.kernels.pairhmm.host.generate import equal_lengths
from simtbed.kernels.pairhmm.host.partitioned import KERNELS
from simtbed.kernels.pairhmm.host.partitioned_lists import lists_of
from simtbed.kernels.pairhmm.host.pipeline import wavefront_sums
from simtbed.kernels.pairhmm.wavefront_columns import wavefront_columns
from simtbed.language.intrinsics import WARP_SIZE

from ...explanation import choices
from ...launchers import Runner
from ..claims import COMPUTED, Claim, exactly, less_than, same_results
from ..paper import Row, Setting, Shown, Table, about, emulator, paper


def layout(setting: Setting) -> Shown:
    """Fig. 1."""
    problem = FAMILY.example()
    runner = Runner(setting.engine, counting=True)
    agreement = FAMILY.compare(FAMILY.solve(problem, "wavefront", runner), FAMILY.oracle(problem))
    stored = sum(
        counters.total("global_store_bytes")
        for program, counters in runner.counted
        if program.kernel.name == wavefront_columns.__name__
    )
    return Shown(
        [
            Claim("a cell depends on its left, upper and upper-left neighbours", [same_results(COMPUTED, agreement)], main=True),
            Claim("linear space is enough for scores",
                  [less_than(COMPUTED, "bytes stored in global memory per cell", stored / problem.cells, 0.1)]),
        ],
        "The recurrences are computed from these neighbours alone; the matrix is not stored.",
    )  # fmt: skip


def mapping(setting: Setting) -> Shown:
    """Figure 2: p = 4 lanes with k = 4 columns each."""
    n = 32
    runner = Runner(setting.engine, counting=True)
    problem = equal_lengths(1, 64, 16, n)
    wavefront_sums(problem, [(4, 4)], runner)
    (counters,) = (c for program, c in runner.counted if program.kernel.name == wavefront_columns.__name__)
    warps = len(problem.pairs[0]) * 4 // WARP_SIZE
    shuffles, loads = (
        counters.at("st.shuffle_up(").total("shuffles") // warps,
        counters.at("word = letters[").total("global_load_requests") // warps,
    )
    steps = shuffles // 4
    memory = counters.total("local_loads") + counters.total("global_store_bytes") // 4 - len(problem.pairs[0])
    rows: list[Row] = [
        {about("of a sub-warp"): "iterations", paper("figure"): n + 4, emulator("counted"): steps},
        {about("of a sub-warp"): "shuffles an iteration: M, I, D and a letter", paper("figure"): 4,
            emulator("counted"): shuffles / steps},
        {about("of a sub-warp"): "loads of letters", paper("figure"): (n + 4) // 4, emulator("counted"): loads},
        {about("of a sub-warp"): "values kept outside registers", paper("figure"): 0, emulator("counted"): memory},
    ]  # fmt: skip
    return Shown(
        [Claim("iterations: a sequence's length and p", [exactly(COMPUTED, "iterations, 32 letters, p = 4", steps, n + 4)], main=True,
               remark="The paper's text calls it m + p."),
         Claim("edges and letters are passed by shuffles only", [
             exactly(COMPUTED, "shuffles per iteration", shuffles / steps, 4), exactly(COMPUTED, "other values stored", memory, 0)],
             main=True),
         Claim("char4 loads cut loads of letters to a fourth",
               [exactly(COMPUTED, f"loads of letters for {steps} iterations", loads, (n + 4) // 4)])],
        "The variant `wavefront` executes the steps of the picture.",
        [Table("16 bases, 32 letters, p = k = 4", rows)],
        note=choices(FAMILY, "wavefront"),
    )  # fmt: skip


def partitioning(setting: Setting) -> Shown:
    """Fig. 3."""
    lengths = np.random.default_rng(3).integers(10, 152, setting.whole("reads"))
    lists = lists_of(lengths, np.ones_like(lengths), KERNELS, Runner(setting.engine))
    entries = lists.entries.numpy()[:, 0].reshape(len(lists.kernels), -1)
    reads = [row[:listed] for row, (listed, _) in zip(entries, lists.totals, strict=True)]
    sizes = [lanes * each for lanes, each in lists.kernels]
    wrong = sum(
        int(((lengths[members] > size) | (lengths[members] <= below)).sum())
        for members, size, below in zip(reads, sizes, [0, *sizes], strict=False)
    )
    rows: list[Row] = [
        {about("kernel (p, k)"): str(kernel), about("longest read"): size, emulator("reads in its list"): len(members)}
        for kernel, size, members in zip(lists.kernels, sizes, reads, strict=True)
        if len(members)
    ]
    return Shown(
        [Claim("for each read the smallest p k is selected", [
             exactly(COMPUTED, f"reads in the list of another kernel, of {len(lengths):,}", wrong, 0),
             exactly(COMPUTED, "reads in no list", len(lengths) - sum(map(len, reads)), 0)], main=True),
         Claim("one kernel for each of the 32 combinations reaches 1,024 bases", [
             exactly(COMPUTED, "kernels", len(KERNELS), 32), exactly(COMPUTED, "longest read", sizes[-1], 1024)],
             remark=f"They have {len(sizes)} different sizes.")],
        "A kernel writes lists of reads, and each kernel with reads receives its list in the GPU's memory; one kernel of each size is "
        "selected.",
        [Table("Lists", rows)],
    )  # fmt: skip
