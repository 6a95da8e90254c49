"""Every variant returns the oracle's reads: for CUDA-EC's published reads, for random ones, with every optimisation and filter."""

from dataclasses import replace
from functools import cache, partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from simtbed import Counters, SimtbedError, launch
from simtbed.kernels import FunctionLauncher, Launcher
from simtbed.kernels.correction import FAMILY
from simtbed.kernels.correction.host import pipeline
from simtbed.kernels.correction.host.generate import genome, simulate
from simtbed.kernels.correction.host.layout import arrange_reads
from simtbed.kernels.correction.host.pipeline import Optimisations
from simtbed.kernels.correction.host.problem import FilterName, Parameters, Problem, Reads

from tests.kernels.recorder import Recorder
from tests.table_checks import check_each, first_fast

VARIANTS = list(FAMILY.variants)
FILTERS: tuple[FilterName, ...] = ("exact", "bloom", "split-first", "blocked")


def small(
    seed: int, reads: int = 60, length: tuple[int, int] = (10, 60), rate: float = 0.03, **parameters: int
) -> Problem:
    """Return a short genome with many errors: reads are corrected, trimmed, discarded, or too short."""
    chosen = Parameters(**{"k": 14, "min_multiplicity": 3, **parameters})  # type: ignore[arg-type]
    return Problem(simulate(seed, genome(seed, 150), reads, length, rate, unknown=0.001).reads, chosen)


def check(problem: Problem, variant: str, launcher: Launcher, switches: Optimisations | None = None) -> None:
    answer = pipeline.corrected(problem, variant, launcher, switches).answer()
    np.testing.assert_array_equal(answer, FAMILY.oracle(problem))


@pytest.mark.slow
@pytest.mark.parametrize("filter", FILTERS[1:])
@pytest.mark.parametrize("variant", ["thread-per-read", "warp-per-read", "packed"])
def test_filters(variant: str, filter: FilterName, launcher: Launcher) -> None:
    """The kernels that look up k-mers: one read per thread, one per warp, and both."""
    check(filtered(filter), variant, launcher)


@pytest.mark.slow
@pytest.mark.parametrize("filter", ["bloom", "blocked"])
def test_filters_without_solid_kmers(filter: FilterName, launcher: Launcher) -> None:
    problem = filtered(filter)
    check(replace(problem, parameters=replace(problem.parameters, min_multiplicity=255)), "packed", launcher)


@cache
def filtered(filter: FilterName) -> Problem:
    """Reads as long as the published ones, which select the same kernels."""
    reads = simulate(1, genome(1, 400), 80, (10, 100), 0.03).reads
    assert reads.lengths.max() > 96
    return Problem(reads, Parameters(min_multiplicity=3, filter=filter))


@pytest.mark.parametrize("variant", first_fast(VARIANTS))
def test_the_example(variant: str, launcher: Launcher) -> None:
    problem = FAMILY.example()
    check(problem, variant, launcher)
    flags = {answer[0] for answer in FAMILY.oracle(problem)}
    assert flags == {"F", "D"}  # otherwise the example would show little


@pytest.mark.slow
def test_numpy_engine() -> None:
    numpy_engine = FunctionLauncher(partial(launch, engine="numpy", counters=False))
    check(small(3, reads=8), "packed", numpy_engine)


@pytest.mark.slow
@settings(max_examples=3)
@given(
    st.integers(0, 10_000), st.sampled_from([12, 13, 16, 21, 31]), st.integers(0, 3), st.booleans(), st.integers(0, 25)
)
def test_random_reads(seed: int, k: int, min_votes: int, trim: bool, max_trim: int) -> None:
    launcher = FunctionLauncher(partial(launch, counters=False))
    problem = small(seed, k=k, min_votes=min_votes, max_trim=max_trim)
    problem = replace(problem, parameters=replace(problem.parameters, trim=trim))
    expected = FAMILY.oracle(problem)
    for variant in ("thread-per-read", "thread-per-read-direct", "warp-per-read", "packed"):
        np.testing.assert_array_equal(FAMILY.solve(problem, variant, launcher), expected)


def dense(seed: int) -> Problem:
    """Return reads of two letters: mutants of one window are often windows elsewhere, so that votes tie."""
    draw = np.random.default_rng(seed)
    simulated = ["".join(draw.choice(list("AC"), 30)) for _ in range(6)]
    reads = [simulated[i] for i in draw.integers(0, 6, 60)]
    changed = [
        read[:at] + draw.choice(list("ACG")) + read[at + 1 :]
        for read, at in zip(reads, draw.integers(0, 30, 60), strict=True)
    ]
    return Problem(Reads.from_strings(changed), Parameters(k=12, min_multiplicity=2, min_votes=0))


@pytest.mark.slow
@settings(max_examples=5)
@given(st.integers(0, 10_000))
def test_ties(seed: int) -> None:
    launcher = FunctionLauncher(partial(launch, counters=False))
    problem = dense(seed)
    expected = FAMILY.oracle(problem)
    for variant in ("thread-per-read", "thread-per-read-lean", "warp-per-read-shuffle", "packed"):
        np.testing.assert_array_equal(FAMILY.solve(problem, variant, launcher), expected)


@pytest.mark.slow
@pytest.mark.parametrize("variant", ["thread-per-read-lean", "warp-per-read"])
@pytest.mark.parametrize(
    ("unroll", "reads", "votes"), [(False, True, True), (True, False, True), (True, True, False), (False, False, False)]
)
def test_switches_change_no_answer(variant: str, unroll: bool, reads: bool, votes: bool, launcher: Launcher) -> None:
    check(small(7, reads=40), variant, launcher, Optimisations(unroll, reads, votes))


@pytest.mark.slow
@pytest.mark.parametrize("variant", VARIANTS)
def test_long_reads(variant: str, launcher: Launcher) -> None:
    """Several chunks of 32 windows, and more votes than fit into shared memory."""
    simulated = simulate(5, genome(5, 4000), 16, (300, 3500), 0.004).reads
    problem = Problem(simulated, Parameters(k=15, min_multiplicity=3))
    assert simulated.lengths.max() * 16 > 48 * 1024
    check(problem, variant, launcher)


@pytest.mark.slow
@pytest.mark.parametrize("variant", ["warp-per-read", "packed"])
@pytest.mark.parametrize("votes", [True, False])
def test_warps_take_one_read_after_the_other(
    variant: str, votes: bool, launcher: Launcher, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pipeline, "MOST_BLOCKS", 3)
    warps = pipeline.PACKED_WARPS if variant == "packed" else pipeline.WARPS
    monkeypatch.setattr(pipeline, "SCRATCH", 2 * warps * 4 * 60)
    recorder = Recorder(launcher.launch)
    check(small(7), variant, recorder, Optimisations(votes_in_shared=votes))
    assert recorder.options[-1]["grid"] == (3 if votes else 2)


CORNERS: list[list[str]] = [[], [""], ["ACGT"], ["N" * 30], ["A" * 20]]
CORNERS += [["ACGTTGCATG" * 3, "", "acgttgcatg" * 3, "ACGTTGCATGNNACGTTGCATGACGT"]]


@pytest.mark.slow
@pytest.mark.parametrize("variant", VARIANTS)
def test_corners(variant: str, launcher: Launcher) -> None:
    problems = [Problem(Reads.from_strings(corner), Parameters(min_multiplicity=2)) for corner in CORNERS]
    check_each(problems, lambda problem: check(problem, variant, launcher))


@pytest.mark.slow
@pytest.mark.parametrize("variant", VARIANTS)
def test_without_solid_kmers_all_is_discarded(variant: str, launcher: Launcher) -> None:
    problem = small(9, min_multiplicity=255)
    check(problem, variant, launcher)
    assert {answer[0] for answer in FAMILY.oracle(problem)} == {"D", "S"}


@pytest.mark.slow
def test_a_change_of_the_first_letter_is_the_last(launcher: Launcher) -> None:
    """CUDA-EC's loop ends there, although it could correct another error."""
    sequence = "ACGATTCGGCATTACGGATCGATTACCGGATATTCGAGGCT"
    broken = "C" + sequence[1:-1] + "A"  # one vote each
    problem = Problem(Reads.from_strings([sequence] * 9 + [broken]), Parameters(k=12, min_votes=0, max_trim=0))
    assert FAMILY.oracle(problem)[-1] == f"D {sequence[:-1]}A"
    for variant in VARIANTS:
        check(problem, variant, launcher)


@pytest.mark.parametrize(
    ("field", "value"),
    [("k", 11), ("k", 32), ("min_multiplicity", 0), ("min_multiplicity", 256), ("min_votes", -1), ("max_trim", -1)],
)
def test_parameters_have_ranges(field: str, value: int) -> None:
    with pytest.raises(SimtbedError, match=f"{field} is .*, not {value}"):
        Parameters(**{field: value})  # type: ignore[arg-type]


# ------------------------------------------------------------------ costs
def counted(problem: Problem, variant: str) -> dict[str, Counters]:
    """Return the counters of the variant's kernels, by name."""
    recorder = Recorder()
    pipeline.corrected(problem, variant, recorder)
    return recorder.counters()


@pytest.mark.slow
def test_packed_warps_process_only_reads_with_several_errors() -> None:
    problem = Problem(simulate(1, genome(1, 300), 400, (36, 36), 0.005).reads)
    weak = sum(
        answer != f"F {read}" for answer, read in zip(FAMILY.oracle(problem), problem.reads.strings(), strict=True)
    )
    counters = counted(problem, "packed")

    def queued(kernel: str, line: str) -> int:
        return counters[kernel].at(line).total("global_store_bytes") // 16

    left = queued("mend_one", "left[st.atomic_add(queued, 0, 1)] =")
    assert queued("screen", "queue[st.atomic_add(queued, 0, 1)] =") == weak
    assert 0 < left < 0.6 * weak  # the others have one error
    assert counters["mend"].at("spans[r] = span").total("global_store_requests") == left


@pytest.mark.slow
def test_a_read_with_one_error_takes_the_mutants_of_one_window() -> None:
    """Weak windows determine its position; before that position, all changes that could have as many votes are tested."""
    sequence = "ACGATTCGGCATTACGGATCGATTACCGGATATTCG"
    for at, places in ((4, 1), (15, 1), (17, 4), (20, 5), (31, 16), (33, 18)):
        broken = sequence[:at] + ("A" if sequence[at] != "A" else "G") + sequence[at + 1 :]
        problem = Problem(Reads.from_strings([sequence] * 9 + [broken]))
        assert FAMILY.oracle(problem)[-1] == f"F {sequence}"
        counters = counted(problem, "packed")
        assert "mend" not in counters
        words = counters["mend_one"].at("= words[place_of(words, window,")
        assert words.total("global_load_bytes") == 3 * 8
        queries = counters["mend_one"].at("if likely(a, b, c, hash ^ hashes[task], task, K):")
        assert queries.total("shared_load_requests") == 3 * places


@pytest.mark.slow
def test_each_step_of_table_4_is_a_launch_of_its_own_kind(launcher: Launcher) -> None:
    """The costs that section 6.3 removes occur only in the original; those that 6.2 removes, in the steps before shared memory."""
    last = {}
    for step in ("", "-direct", "-unrolled", "-shared"):
        recorder = Recorder(launcher.launch)
        check(small(7, reads=20), f"thread-per-read{step}", recorder)
        last[step] = recorder.kernels[-1], recorder.options[-1]["args"]
    assert [kernel for kernel, _ in last.values()] == ["cuda_ec", "cuda_ec", "cuda_ec", "thread_per_read"]
    switches = [(args["ORIGINAL"], args["UNROLL"]) for _, args in list(last.values())[:3]]
    assert switches == [(True, False), (False, False), (False, True)]
    assert last["-shared"][1]["VOTES_IN_SHARED"]


@pytest.mark.slow
def test_the_original_works_in_a_second_copy_of_the_reads() -> None:
    """A read is copied there and back; local memory has its votes, flags, and every cell with the most votes."""
    problem = small(7, reads=20)
    original, direct = (counted(problem, name)["cuda_ec"] for name in ("thread-per-read", "thread-per-read-direct"))
    letters = int(problem.reads.lengths[arrange_reads(problem.reads, problem.parameters.k).chosen].sum())
    for line in ("copies[first + i] = text[first + i]", "text[first + j] = copies[first + j]"):
        assert original.at(line).total("global_store_bytes") == letters
    assert direct.total("global_store_bytes") <= original.total("global_store_bytes") - 2 * letters
    assert original.at("successor[i32(base)]").total("global_load_bytes") > 0
    for counters in (original, direct):
        for line in ("most_at[found] = at", "most_base[found] = base", "whole[p] = 1"):
            assert counters.at(line).total("local_stores") > 0
    assert direct.total("global_load_requests") < original.total("global_load_requests")
