"""gpuPairHMM as published: lists of reads, shuffles of a step, sums of columns."""

import numpy as np
import pytest
from simtbed.kernels import Launcher
from simtbed.kernels.pairhmm import FAMILY
from simtbed.kernels.pairhmm.host import partitioned, partitioned_lists, pipeline
from simtbed.kernels.pairhmm.host.problem import Problem

from tests.kernels.pairhmm.test_variants import LETTERS, check, noted_launches, random_problem
from tests.kernels.recorder import Recorder


@pytest.mark.parametrize(
    ("variant", "loads"), [("wavefront", "word = letters["), ("wavefront-row-end", "letters = haplotypes[")]
)
def test_each_step_passes_three_edges_and_a_letter(variant: str, loads: str) -> None:
    _, swept = noted_launches(random_problem(6, [(16, 20)] * 16, quality=(30, 40)), variant)
    counters = swept.counters
    steps = (20 + 4) * 2  # P = 4 lanes per pair, two warps
    assert counters.at("st.shuffle_up(").total("shuffles") == 4 * steps
    assert counters.at(loads).total("global_load_requests") == steps // 4  # four letters per load


def test_each_column_has_a_sum() -> None:
    """Two additions a cell: of M and I, and to the sum of the column."""
    _, swept = noted_launches(random_problem(6, [(16, 20)] * 16, quality=(30, 40)), "wavefront")
    cells = 4 * (20 + 4) * 2  # K = 4 columns per lane, two warps
    assert swept.counters.at("accumulator[k] +=").total("warp_instructions") == 2 * cells


@pytest.mark.slow
def test_kernels_read_their_lists_on_the_gpu() -> None:
    """III.C: lists and sums remain on the device, and all kernels read the same arrays, in the order of the input."""
    problem = random_problem(6, [(70, 20), (3, 9), (40, 7), (16, 20), (9, 9)], quality=(30, 40))
    launched = noted_launches(problem, "wavefront")
    requests = [r.request for r in launched if r.request.program.kernel.name == "wavefront_columns"]
    arguments = [{name: np.asarray(value) for name, value in request.arguments.items()} for request in requests]
    assert [(int(a["listed"]), int(a["alignments"])) for a in arguments] == [(3, 3), (1, 1), (1, 1)]
    for name in ("lists", "sums"):
        assert len({id(request.device_arrays[name]) for request in requests}) == 1
    for name in ("bases", "base_quality", "insertion", "deletion", "continuation", "letters", "reads", "haplotypes"):
        assert len({a[name].ctypes.data for a in arguments}) == 1
    assert np.shares_memory(arguments[0]["base_quality"], problem.base_quality)
    assert LETTERS[arguments[0]["bases"]].tobytes() == problem.bases.tobytes()


@pytest.mark.slow
@pytest.mark.parametrize("kernel", [(2, 4), (8, 20)])
def test_every_kernel_can_be_chosen(kernel: tuple[int, int], launcher: Launcher) -> None:
    longest = min(kernel[0] * kernel[1], 40)
    problem = random_problem(4, [(longest, 30), (1, 9), (max(1, longest - 3), 31)] * 7, quality=(30, 40))
    recorder = Recorder(launcher.launch)
    log10_likelihoods = np.log10(pipeline.wavefront_sums(problem, [kernel], recorder)) - np.log10(2.0**120)
    np.testing.assert_allclose(log10_likelihoods, FAMILY.oracle(problem), atol=1e-5)
    assert set(recorder.arguments("P", "K")) == {kernel}


def test_reads_go_to_the_smallest_sufficient_kernel(launcher: Launcher) -> None:
    """Fig. 3: the lists of the GPU equal a binary search of the sizes, in the order of the reads."""
    kernels = partitioned.by_size([(8, 32), (4, 8), (8, 8), (16, 4), (4, 24)])
    assert kernels == [(4, 8), (8, 8), (4, 24), (8, 32)]  # of (8, 8) and (16, 4) the kernel with more rows per lane
    draw = np.random.default_rng(1)
    lengths, alignments = draw.integers(1, 300, 1100), draw.integers(0, 9, 1100)  # more than two blocks of threads
    host_lists, rest = partitioned.partitioned(lengths, kernels, launcher)
    lists = partitioned_lists.lists_of(lengths, alignments, kernels, launcher)
    entries = lists.entries.numpy().reshape(len(kernels), -1, 2)
    at = np.searchsorted([32, 64, 96, 256], lengths)
    for number, indices in enumerate([*host_lists, rest]):
        members = np.flatnonzero(at == number)
        np.testing.assert_array_equal(indices, members)
        if number < len(kernels):
            ends = np.cumsum(alignments[members])
            assert lists.totals[number] == (len(members), ends[-1])
            expected = np.stack([members, ends - alignments[members]], axis=1)
            np.testing.assert_array_equal(entries[number, : len(members)], expected)


def test_reads_without_haplotypes_are_skipped(launcher: Launcher) -> None:
    """Their list entries have the number of the next alignment, or of none."""
    (paired, haplotypes), (alone, _) = random_problem(4, [(20, 30), (20, 9)], (20, 40)).records()
    records = [(alone, []), (paired, haplotypes), (alone, []), (alone + paired, haplotypes * 2), (alone, [])]
    problem = Problem.from_records(records)
    for variant in ("wavefront", "wavefront-row-end"):
        check(problem, variant, launcher)


def test_the_papers_kernels_reach_1024_bases() -> None:
    assert len(partitioned.KERNELS) == 32 and len(partitioned.SELECTABLE) == 40
    assert partitioned.by_size(partitioned.KERNELS)[-1] == (32, 32)
