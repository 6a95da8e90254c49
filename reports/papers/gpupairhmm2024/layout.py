"""Figures 1 to 3 and section III.A of gpuPairHMM 2024: cells, mapping to threads, stages, partition of the reads."""

from __future__ import annotations

from typing import Any

import numpy as np
from simtbed import Kernel, Result, launch
from simtbed.kernels import FunctionLauncher
from simtbed.kernels.pairhmm import FAMILY
from simtbed.kernels.pairhmm.host.generate import equal_lengths, generate
from simtbed.kernels.pairhmm.host.partitioned import KERNELS
from simtbed.kernels.pairhmm.host.partitioned_lists import lists_of
from simtbed.kernels.pairhmm.host.pipeline import wavefront_sums
from simtbed.kernels.pairhmm.wavefront_columns import partition_reads, wavefront_columns
from simtbed.language.intrinsics import WARP_SIZE

from ...explanation import choices
from ...launchers import Runner
from ..claims import Origin, Source, Value
from ..definitions import printed
from ..paper import Figures, Row, Setting, Table, about, emulator
from ..values import computed, differing


def layout(setting: Setting) -> Figures:
    """Figure 1."""
    problem = FAMILY.example()
    runner = Runner(setting.engine, counting=True)
    agreement = FAMILY.compare(FAMILY.solve(problem, "wavefront", runner), FAMILY.oracle(problem))
    stored = runner.counters_of(wavefront_columns.__name__).total("global_store_bytes")
    return Figures({"results": differing(agreement), "stored": computed(stored / problem.cells)})


def mapping(setting: Setting) -> Figures:
    """Figure 2: p = 4 lanes with k = 4 columns each."""
    runner = Runner(setting.engine, counting=True)
    problem = equal_lengths(1, 64, 16, 32)
    wavefront_sums(problem, [(4, 4)], runner)
    counters = runner.counters_of(wavefront_columns.__name__)
    warps = len(problem.pairs[0]) * 4 // WARP_SIZE
    shuffles = counters.at("st.shuffle_up(").total("shuffles") // warps
    loads = counters.at("word = letters[").total("global_load_requests") // warps
    steps = shuffles // 4
    stored = counters.total("local_loads") + counters.total("global_store_bytes") // 4 - len(problem.pairs[0])
    rows: list[Row] = [
        {about("of a sub-warp"): name, emulator("counted"): value}
        for name, value in (("iterations", steps), ("shuffles", shuffles), ("loads of letters", loads),
                            ("values kept outside registers", stored))
    ]  # fmt: skip
    return Figures(
        {
            "steps": computed(steps),
            "shuffles": computed(shuffles / steps),
            "loads": computed(loads / steps),
            "stored": computed(stored),
        },
        [Table("16 bases, 32 letters, p = k = 4", rows)],
        texts={"choices": choices(FAMILY, "wavefront")},
    )


def stages(setting: Setting) -> Figures:
    """Section III.A: a set in four subsets."""
    problem = generate(5, records=8, read_length=(10, 90), haplotype_length=(100, 160))
    reads = len(problem.read_lengths)
    kernels: list[str] = []

    @FunctionLauncher
    def listing(kernel: Kernel, **arguments: Any) -> Result:
        kernels.append(kernel.__name__)
        return launch(kernel, engine=setting.engine, counters=False, **arguments)

    ordered, scores = 0, []
    for first in range(0, reads, -(-reads // 4)):
        kernels.clear()
        scores.append(FAMILY.solve(problem.subset(first, min(reads, first - (-reads // 4))), "wavefront", listing))
        ordered += kernels[0] == partition_reads.__name__ and kernels.count(kernels[0]) == 1 < len(kernels)
    whole = FAMILY.solve(problem, "wavefront", listing)
    program = printed("gpupairhmm2024")["program"]
    difference = float(np.abs(whole - FAMILY.oracle(problem)).max())
    return Figures(
        {
            "order": computed(int(ordered)),
            "subsets": computed(int((np.concatenate(scores) != whole).sum()), f"of {len(whole):,}"),
            "difference": [
                *computed(difference, "the variant"),
                Value(
                    Origin(Source.gpu, program["machine"], program["dated"]),
                    program["difference"],
                    "the authors' program",
                ),
            ],
        }
    )


def partitioning(setting: Setting) -> Figures:
    """Figure 3."""
    simulated = np.random.default_rng(3).integers(10, 152, setting.whole("reads"))
    lengths = FAMILY.read(setting.data).read_lengths if setting.data else simulated
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
    return Figures(
        {
            "wrong": computed(wrong, f"of {len(lengths):,}"),
            "unlisted": computed(len(lengths) - sum(map(len, reads))),
            "kernels": computed(len(KERNELS)),
            "longest": computed(sizes[-1]),
        },
        [Table("Lists", rows)],
        texts={"sizes": len(sizes)},
    )
