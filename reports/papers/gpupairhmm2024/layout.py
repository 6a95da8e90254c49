"""Figures 1 to 3 and section III.A of gpuPairHMM 2024: cells, mapping to threads, stages, partition of the reads."""

from functools import partial

import numpy as np
from simtbed.kernels import Launcher
from simtbed.kernels.pairhmm import FAMILY
from simtbed.kernels.pairhmm.host.generate import equal_lengths, generate
from simtbed.kernels.pairhmm.host.partitioned import KERNELS
from simtbed.kernels.pairhmm.host.partitioned_lists import lists_of
from simtbed.kernels.pairhmm.host.pipeline import wavefront_sums
from simtbed.kernels.pairhmm.host.problem import Problem
from simtbed.kernels.pairhmm.wavefront_columns import partition_reads, wavefront_columns
from simtbed.language.intrinsics import WARP_SIZE

from ...explanation import choices
from ...launchers import Runner
from ..claims import Origin, Source, Value
from ..definitions import printed
from ..paper import Figures, Row, Setting, Table
from ..values import computed, counters_of, differing, launches

KERNEL = wavefront_columns.__name__


def layout(setting: Setting) -> Figures:
    """Figure 1."""
    problem = FAMILY.example()
    runner = Runner(setting.engine, counting=True)
    agreement = FAMILY.compare(FAMILY.solve(problem, "wavefront", runner), FAMILY.oracle(problem))
    stored = runner.counters_of(KERNEL).total("global_store_bytes")
    return Figures({"results": differing(agreement), "stored": stored / problem.cells})


def mapping(setting: Setting) -> Figures:
    """Figure 2: p = 4 lanes with k = 4 columns each."""
    problem = equal_lengths(1, 64, 16, 32)
    counters = counters_of(partial(wavefront_sums, problem, [(4, 4)]), setting.engine, kernel=KERNEL)
    warps = len(problem.pairs[0]) * 4 // WARP_SIZE
    shuffles = counters.at("st.shuffle_up(").total("shuffles") // warps
    loads = counters.at("word = letters[").total("global_load_requests") // warps
    steps = shuffles // 4
    stored = counters.total("local_loads") + counters.total("global_store_bytes") // 4 - len(problem.pairs[0])
    counted = {
        "iterations": steps,
        "shuffles": shuffles,
        "loads of letters": loads,
        "values kept outside registers": stored,
    }
    rows: list[Row] = [{"of a sub-warp": name, "emulator: counted": value} for name, value in counted.items()]
    values = {"steps": steps, "shuffles": shuffles / steps, "loads": loads / steps, "stored": stored}
    return Figures(
        values, [Table("16 bases, 32 letters, p = k = 4", rows)], texts={"choices": choices(FAMILY, "wavefront")}
    )


def stages(setting: Setting) -> Figures:
    """Section III.A: a set in four subsets."""
    problem = generate(5, records=8, read_length=(10, 90), haplotype_length=(100, 160))
    reads = len(problem.read_lengths)
    ordered, scores = 0, []
    for first in range(0, reads, -(-reads // 4)):
        subset = problem.subset(first, min(reads, first - (-reads // 4)))

        def solve(launcher: Launcher, subset: Problem = subset) -> None:
            scores.append(FAMILY.solve(subset, "wavefront", launcher))

        kernels = [result.request.program.kernel.name for result in launches(solve, setting.engine, counters=False)]
        ordered += kernels[0] == partition_reads.__name__ and kernels.count(kernels[0]) == 1 < len(kernels)
    whole = FAMILY.solve(problem, "wavefront", Runner(setting.engine))
    program = printed("gpupairhmm2024")["program"]
    difference = float(np.abs(whole - FAMILY.oracle(problem)).max())
    return Figures(
        {
            "order": int(ordered),
            "subsets": {f"of {len(whole):,}": int((np.concatenate(scores) != whole).sum())},
            "difference": [
                *computed(difference, "the variant"),
                Value(Origin(Source.gpu, program["machine"], program["dated"]), program["difference"], "the authors' program"),
            ],
        }
    )  # fmt: skip


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
        {"kernel (p, k)": str(kernel), "longest read": size, "emulator: reads in its list": len(members)}
        for kernel, size, members in zip(lists.kernels, sizes, reads, strict=True)
        if len(members)
    ]
    values = {"unlisted": len(lengths) - sum(map(len, reads)), "kernels": len(KERNELS), "longest": sizes[-1]}
    return Figures(
        {"wrong": {f"of {len(lengths):,}": wrong}, **values}, [Table("Lists", rows)], texts={"sizes": len(sizes)}
    )
