"""Pair-HMM variants: the oracle's values, equal bits of all variants, and their counters."""

from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from simtbed import Counters, Kernel, OutOfMemory, Result, devices, launch, launch_concurrent
from simtbed.kernels import FunctionLauncher, Launcher
from simtbed.kernels.pairhmm import FAMILY
from simtbed.kernels.pairhmm.host import pipeline
from simtbed.kernels.pairhmm.host.generate import generate
from simtbed.kernels.pairhmm.host.layout import interleaved, sub_warps
from simtbed.kernels.pairhmm.host.problem import Problem

from tests.kernels.recorder import Recorder
from tests.table_checks import first_fast

VARIANTS = sorted(FAMILY.variants)
EXACT = [v for v in VARIANTS if v != "wavefront-rescaled"]
"""Variants that compute the recurrences of the paper unmodified."""
ROWS = ("match", "insertion", "deletion")
LETTERS = np.frombuffer(b"ACGTN", np.uint8)


def random_problem(
    seed: int,
    lengths: list[tuple[int, int]],
    quality: tuple[int, int] = (1, 60),
    continuation: tuple[int, int] = (1, 60),
    errors: float = 0.05,
) -> Problem:
    """One pair per record, of reads and haplotypes of these lengths; a read resembles its haplotype up to the shorter length."""
    draw = np.random.default_rng(seed)
    records = []
    for m, n in lengths:
        haplotype = draw.choice(LETTERS, n, p=[0.24] * 4 + [0.04])
        read = np.where(draw.random(m) < errors, draw.choice(LETTERS, m), np.resize(haplotype, m))
        ranges = (quality, quality, quality, continuation)
        qualities = (draw.integers(*span, m, endpoint=True) for span in ranges)
        records.append(([(read, *qualities)], [haplotype]))
    return Problem.from_records(records)


def check(problem: Problem, variant: str, launcher: Launcher) -> None:
    expected = FAMILY.oracle(problem)
    assert np.isfinite(expected).all()  # comparing infinities would test little
    agreement = FAMILY.compare(FAMILY.solve(problem, variant, launcher), expected)
    assert agreement.compared == len(problem.pairs[0])
    assert agreement.agrees, agreement


@pytest.mark.parametrize("variant", first_fast(VARIANTS))
def test_the_example(variant: str, launcher: Launcher) -> None:
    problem = FAMILY.example()
    assert len(problem.pairs[0]) > 100
    check(problem, variant, launcher)


SHAPES = [(1, 1), (1, 70), (70, 1), (4, 4), (17, 16), (16, 17), (33, 130), (128, 3)]


@pytest.mark.slow
@pytest.mark.parametrize("variant", VARIANTS)
def test_shapes(variant: str, launcher: Launcher) -> None:
    check(random_problem(1, SHAPES), variant, launcher)


@pytest.mark.slow
@settings(max_examples=15)
@given(st.lists(st.tuples(st.integers(1, 40), st.integers(1, 40)), min_size=1, max_size=40), st.integers(0, 1000))
def test_any_mixture_and_all_variants_give_the_same_bits(lengths: list[tuple[int, int]], seed: int) -> None:
    """All variants add and multiply in the same order, for any division of the work; only the rescaled form differs."""
    problem = random_problem(seed, lengths)
    run = FunctionLauncher(partial(launch, counters=False))
    first, expected = FAMILY.solve(problem, EXACT[0], run), FAMILY.oracle(problem)
    assert FAMILY.compare(first, expected).agrees
    for variant in EXACT[1:]:
        np.testing.assert_array_equal(FAMILY.solve(problem, variant, run), first, variant)
    together = FAMILY.solve(problem, "wavefront-rescaled", run)
    assert FAMILY.compare(together, expected).agrees
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(pipeline, "CELLS_A_LAUNCH", 0)
        np.testing.assert_array_equal(FAMILY.solve(problem, "wavefront-rescaled", run), together)


@given(
    st.lists(st.tuples(st.integers(1, 64), st.booleans(), st.integers(1, 50)), max_size=30),
    st.sampled_from([0, 100, 1000, 10**9]),
)
def test_reads_share_a_launch_where_their_own_would_save_little(reads: list[tuple[int, bool, int]], worth: int) -> None:
    sizes = np.array([16, 32, 48, 64])
    m, uniform, letters = (np.array([read[at] for read in reads], np.int64) for at in range(3))
    bins = np.searchsorted(sizes, m)
    full = uniform.astype(bool) & (m == sizes[bins])
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(pipeline, "CELLS_A_LAUNCH", worth)
        launches = list(pipeline._merge_small_bins(bins, full, letters, sizes))
    assert sorted(at for _, _, members in launches for at in members.tolist()) == list(range(len(reads)))
    assert [-number for number, _, _ in launches] == sorted(-number for number, _, _ in launches)
    for number, one_continuation, members in launches:
        assert (bins[members] <= number).all()
        assert one_continuation == (full[members] & (bins[members] == number)).all()
        wasted = (letters[members] * (sizes[number] - sizes[bins[members]])).sum()
        assert wasted < len(sizes) * max(worth, 1)
    if worth == 0:
        assert len(launches) == len(set(zip(bins.tolist(), full.tolist(), strict=True)))
    if worth == 10**9:
        assert len(launches) <= 1


@pytest.mark.parametrize("letters", [1, 16, 1 << 10])
def test_streams_of_any_length(letters: int, launcher: Launcher, monkeypatch: pytest.MonkeyPatch) -> None:
    """One haplotype per item, a few, all; some of one letter, so that a lane reads several BLANKs before its first letter."""
    monkeypatch.setattr(pipeline, "LETTERS_AT_ONCE", letters)
    draw = np.random.default_rng(4)
    haplotypes = [draw.choice(LETTERS[:4], n) for n in (1, 1, 2, 1, 9, 30, 1, 1, 1, 17, 4, 1)]
    likely = [np.full(20, q) for q in (30, 2, 2, 1)]
    reads = [(np.resize(haplotypes[at], m), *(q[:m] for q in likely)) for at, m in ((5, 20), (9, 16), (4, 3), (0, 1))]
    problem = Problem.from_records([(reads, haplotypes), (reads[:1], haplotypes[:2]), (reads, haplotypes[::-1])])
    check(problem, "wavefront-rescaled", launcher)


@pytest.mark.parametrize(
    ("length", "continuation", "uniform"), [(16, (5, 5), True), (16, (5, 6), False), (15, (5, 5), False)]
)
def test_one_continuation_and_no_row_before_the_read(
    length: int, continuation: tuple[int, int], uniform: bool, launcher: Launcher
) -> None:
    recorder = Recorder(launcher.launch)
    check(random_problem(3, [(length, 20)] * 9, (20, 40), continuation), "wavefront-rescaled", recorder)
    assert recorder.arguments("UNIFORM") == [(uniform,)]


@pytest.mark.slow
def test_full_reads_of_one_continuation_launch_separately(launcher: Launcher, monkeypatch: pytest.MonkeyPatch) -> None:
    """Such reads have their own launch if it saves enough; the bits equal those of a shared launch."""
    full, other = random_problem(4, [(32, 30)] * 5, (20, 40), (5, 5)), random_problem(5, [(32, 30), (31, 9)], (20, 40))
    problem = Problem.from_records([*full.records(), *other.records()])
    recorder = Recorder(launcher.launch)
    together = FAMILY.solve(problem, "wavefront-loaded", recorder)
    FAMILY.solve(full, "wavefront-loaded", recorder)
    assert recorder.arguments("UNIFORM") == [(False,), (True,)]
    monkeypatch.setattr(pipeline, "CELLS_A_LAUNCH", 5 * 32 * 30)
    check(problem, "wavefront-loaded", recorder)
    assert recorder.arguments("UNIFORM")[2:] == [(False,), (True,)]
    np.testing.assert_array_equal(FAMILY.solve(problem, "wavefront-loaded", launcher), together)


@pytest.mark.slow
def test_what_the_rescaled_form_cannot_hold_is_computed_plainly(launcher: Launcher) -> None:
    lanes, rows = pipeline.RESCALED_BINS[-1]
    clamped = random_problem(3, [(20, 20)], quality=(1, 2))
    for problem in (clamped, random_problem(2, [(lanes * rows + 1, 6)], (30, 40), (1, 1))):
        recorder = Recorder(launcher.launch)
        check(problem, "wavefront-rescaled", recorder)
        assert set(recorder.kernels) == {"wavefront"}


@pytest.mark.parametrize("variant", [v for v in VARIANTS if v.startswith("intratask")])
def test_passes(variant: str, launcher: Launcher) -> None:
    """Reads of several passes of 128 and of 32 rows, with lengths just below and above; more pairs than warps of a block."""
    lengths = [(128, 9), (129, 30), (256, 7), (257, 33), (300, 140), (33, 1), (64, 300), (65, 5), (1, 9), (97, 64)]
    problem = random_problem(2, lengths, (30, 40), (1, 1))
    check(problem, variant, launcher)
    np.testing.assert_array_equal(
        FAMILY.solve(problem, variant, launcher), FAMILY.solve(problem, "intertask-naive", launcher)
    )


def test_edges_that_shared_memory_cannot_hold(launcher: Launcher, monkeypatch: pytest.MonkeyPatch) -> None:
    problem = random_problem(2, [(70, 30), (40, 300)], (30, 40), (1, 1))
    within = FAMILY.solve(problem, "intratask-warp", launcher)
    recorder = Recorder(launcher.launch)
    monkeypatch.setattr(pipeline, "EDGES_IN_SHARED", 3 * 256 * 4)
    np.testing.assert_array_equal(FAMILY.solve(problem, "intratask-warp", recorder), within)
    assert recorder.arguments("SHARED") == [(False,)]


BINS = {"wavefront-loaded": pipeline.BINS, "wavefront-rescaled": pipeline.RESCALED_BINS}


class ChosenError(Exception):
    """Raised in place of a launch, with the chosen kernel's parameters."""


@pytest.mark.parametrize("variant", BINS)
def test_every_bin_holds_reads_up_to_its_size(variant: str) -> None:
    """The kernel of a bin computes the smallest and the largest read of the bin. Cheaper gaps need f64 (`rounding`)."""

    @FunctionLauncher
    def choose(kernel: Any, **arguments: Any) -> Result:
        if kernel is FAMILY.variants[variant].kernel:
            raise ChosenError(arguments["args"]["P"], arguments["args"]["K"])
        return launch(kernel, counters=False, **arguments)

    sizes = [lanes * rows for lanes, rows in BINS[variant]]
    assert sizes == sorted(set(sizes))
    for size, below, chosen in zip(sizes, [0, *sizes], BINS[variant], strict=False):
        for length in (below + 1, size):
            with pytest.raises(ChosenError) as caught:
                FAMILY.solve(random_problem(1, [(length, length)], (20, 40), (10, 10)), variant, choose)
            assert caught.value.args == chosen


@pytest.mark.slow
@pytest.mark.parametrize(
    ("variant", "bins", "bin"),
    [(variant, bins, bin) for variant, bins in BINS.items() for bin in (0, len(bins) // 2, len(bins) - 1)],
)
def test_kernels_of_bins(variant: str, bins: tuple[tuple[int, int], ...], bin: int, launcher: Launcher) -> None:
    sizes = [lanes * rows for lanes, rows in bins]
    least, most = (sizes[bin - 1] if bin else 0) + 1, sizes[bin]
    problem = random_problem(bin, [(least, least), (most, most - 3), (most - 1, most)], (20, 40), (10, 10), errors=0.01)
    check(problem, variant, launcher)
    assert FAMILY.solve(problem, variant, launcher).min() > -40  # all in f32


@pytest.mark.slow
def test_reads_longer_than_every_bin_are_computed_in_tiles(launcher: Launcher) -> None:
    """Long gaps must be likely: a read much longer than its haplotype is mostly insertion."""
    lanes, rows = pipeline.BINS[-1]
    problem = random_problem(2, [(lanes * rows + 1, 1000), (1537, 1500)], (30, 40), (10, 10), errors=0.01)
    check(problem, "wavefront-loaded", launcher)
    naive, wavefront = (FAMILY.solve(problem, variant, launcher) for variant in ("intertask-naive", "wavefront-loaded"))
    np.testing.assert_array_equal(naive, wavefront)


@pytest.mark.slow
def test_tiles_of_any_shape(launcher: Launcher, monkeypatch: pytest.MonkeyPatch) -> None:
    """Tiles of 128 rows: haplotypes longer than the width of a tile, several tiles in sequence."""
    monkeypatch.setattr(pipeline, "BINS", ((4, 4),))
    monkeypatch.setattr(pipeline, "TILE", (32, 4))
    lengths = [(20, 30), (128, 50), (129, 40), (300, 7), (256, 1), (257, 33), (130, 140)]
    check(random_problem(2, lengths, (30, 40), (1, 1)), "wavefront-loaded", launcher)
    check(random_problem(3, lengths, (30, 40), (10, 10)), "wavefront-loaded", launcher)


@pytest.mark.parametrize("variant", VARIANTS)
def test_alpha_is_clamped(variant: str, launcher: Launcher) -> None:
    check(random_problem(3, [(20, 20)], quality=(1, 2)), variant, launcher)


@pytest.mark.slow
@pytest.mark.parametrize("variant", VARIANTS)
def test_faint_pairs_and_only_they_are_computed_again_in_double(variant: str, launcher: Launcher) -> None:
    close = ([(b"A" * 60, *([np.full(60, 40)] * 4))], [b"A" * 60])
    far = ([(b"A" * 60, *([np.full(60, 40)] * 4))], [b"C" * 60])
    problem = Problem.from_records([close, far, close])
    recorder = Recorder(launcher.launch)
    (alone,) = FAMILY.solve(Problem.from_records([close]), variant, recorder)
    scores = FAMILY.solve(problem, variant, recorder)
    arguments = [result.request.arguments for result in recorder.results]
    types = [args["sums"].dtype for args in arguments if "sums" in args]  # the partitioning kernel has none
    assert types == [np.float32, np.float32, np.float64]
    assert scores[1] < -148 < -2 < scores[0] == scores[2] == alone
    assert FAMILY.compare(scores, FAMILY.oracle(problem)).agrees


@pytest.mark.slow
@pytest.mark.parametrize("variant", VARIANTS)
def test_what_even_double_cannot_hold(variant: str, launcher: Launcher) -> None:
    """M, I and D all require a matched first base; a base with a certain error (quality 0) never matches."""
    problem = Problem.from_records([([(b"A", [0], [40], [40], [10])], [b"A"])])
    assert FAMILY.solve(problem, variant, launcher).tolist() == [-np.inf]


@pytest.mark.parametrize("variant", VARIANTS)
def test_nothing(variant: str, launcher: Launcher) -> None:
    assert FAMILY.solve(Problem.from_records([]), variant, launcher).shape == (0,)


@pytest.mark.parametrize("variant", first_fast(VARIANTS))
def test_batches_change_nothing(variant: str, launcher: Launcher, monkeypatch: pytest.MonkeyPatch) -> None:
    problem = generate(8, records=2, reads=(3, 3), haplotypes=(4, 4), read_length=(5, 30), haplotype_length=(10, 40))
    whole = FAMILY.solve(problem, variant, launcher)
    monkeypatch.setattr(pipeline, "PAIRS_AT_ONCE", 10)
    monkeypatch.setattr(pipeline, "PAIRS_PER_CHUNK", 5)
    monkeypatch.setattr(pipeline, "BASES_AT_ONCE", 300)
    recorder = Recorder(launcher.launch)
    np.testing.assert_array_equal(FAMILY.solve(problem, variant, recorder), whole)
    assert len(recorder.kernels) >= 24 // 6


@pytest.mark.parametrize("variant", ["wavefront-loaded", "wavefront-rescaled"])
def test_what_does_not_fit_is_halved_until_it_does(
    variant: str, launcher: Launcher, caplog: pytest.LogCaptureFixture
) -> None:
    problem = generate(8, records=3, reads=(3, 5), haplotypes=(2, 4), read_length=(5, 30), haplotype_length=(10, 40))
    whole = FAMILY.solve(problem, variant, launcher)
    sizes: list[int] = []

    class Small(Launcher):
        """A GPU with memory for 15 sums at a time."""

        def launch_concurrent(self, launches: Iterable[tuple[Kernel, Mapping[str, Any]]]) -> Iterator[Result]:
            requested = list(launches)
            sizes.append(sum(how["args"]["sums"].shape[0] for _, how in requested))
            if sizes[-1] > 15:
                raise OutOfMemory("too much")
            return launch_concurrent(requested, counters=False)

        def launch(self, kernel: Kernel, **arguments: Any) -> Result:
            raise AssertionError("all launches are concurrent")

    np.testing.assert_array_equal(FAMILY.solve(problem, variant, Small()), whole)
    assert max(sizes) > 15 >= min(sizes)
    assert "the GPU's memory is full" in caplog.text


# ------------------------------------------------------------------ layout and cost
def test_letters_are_interleaved_as_in_figure_5() -> None:
    """Byte p of word l of request w is letter 4 w + p of sequence l."""
    problem = random_problem(4, [(10, 9)] * 40)
    _, args = interleaved(problem, *problem.pairs, np.float32)
    sets = {ord("A"): 1, ord("C"): 2, ord("G"): 4, ord("T"): 8, ord("N"): 15}
    words = args["reads"].view(np.uint8).reshape(-1, 32, 4)
    for pair in range(40):
        group, lane = divmod(pair, 32)
        letters = words[3 * group : 3 * group + 3, lane].ravel()[:10]
        assert letters.tolist() == [sets[b] for b in problem.bases[10 * pair : 10 * pair + 10]]
    assert args["haplotypes"].shape == (2 * 3 * 32, 4)


def noted_launches(problem: Problem, variant: str, device: devices.Device = devices.H200) -> list[Result]:
    """Return the results of the launches of a variant."""
    recorder = Recorder(partial(launch, device=device))
    FAMILY.solve(problem, variant, recorder)
    return recorder.results


def counted(problem: Problem, variant: str, device: devices.Device) -> Counters:
    (result,) = noted_launches(problem, variant, device)
    return result.counters


def test_the_naive_variant_moves_six_coalesced_values_a_cell() -> None:
    m, n, pairs = 6, 8, 128
    counters = counted(random_problem(5, [(m, n)] * pairs, quality=(30, 40)), "intertask-naive", devices.K40)
    loads, stores = counters.at("MU, IU, DU = match_row"), counters.at("_row[cell] = ")
    warps = pairs // 32
    assert loads.total("global_load_requests") == 3 * (m - 1) * n * warps  # the first row reads no row above it
    assert sum(stores.by_line()[line].get("global_store_requests", 0) for line in stores.by_line()) == 3 * m * n * warps
    for kind, rows in (("global_load", loads), ("global_store", stores)):
        assert rows.derived()[f"{kind}_efficiency"] == 1.0
        assert rows.derived()[f"{kind}_sectors_per_request"] == 4.0
    assert counters.derived()["warp_execution_efficiency"] == 1.0


@pytest.mark.slow
@pytest.mark.parametrize("k", pipeline.TILES)
def test_tiles_move_six_values_for_k_cells(k: int) -> None:
    m, n, pairs = 24, 8, 128
    counters = counted(random_problem(5, [(m, n)] * pairs, quality=(30, 40)), f"intertask-tile{k}", devices.K40)
    loads = counters.at("MU, IU, DU = match_row").total("global_load_requests")
    stores = sum(counters.at(f"{name}_row[cell] =").total("global_store_requests") for name in ROWS)
    warps = pairs // 32
    assert loads == 3 * (m // k - 1) * n * warps
    assert stores == 3 * (m // k) * n * warps
    assert counters.total("shared_load_requests") == 3 * m * n * warps  # M, D and MID from the left
    assert counters.total("shared_store_requests") == 4 * m * (n + 1) * warps
    assert counters.total("shared_load_conflicts") == counters.total("shared_store_conflicts") == 0


@pytest.mark.parametrize("variant", [v for v in VARIANTS if v.startswith("intratask-warp")])
def test_warps_need_no_barrier(variant: str) -> None:
    """The paper has one copy of the vectors of a pass's last row; with two, a warp synchronises once a pass."""
    problem, two = random_problem(5, [(70, 75)] * 8, quality=(30, 40)), variant.endswith("two-copies")
    counters = counted(problem, variant, devices.K40)
    assert counters.total("barriers") == 0
    assert counters.total("shuffles") > 0
    steps = 2 * (75 + 31) + 75 + 5
    assert counters.total("syncwarps") == 8 * (3 + (0 if two else steps))
    (result,) = noted_launches(problem, variant)
    copies = 2 if two else 1
    if variant.startswith("intratask-warps"):
        assert np.size(result.request.arguments["match_edge"]) == 8 * 75 * copies  # of eight pairs
    else:
        assert result.shared_bytes == 4 * (64 + 3 * 256 * copies)  # words of letters; three vectors


def test_wavefront_emissions_have_no_bank_conflicts() -> None:
    counters = counted(random_problem(6, [(16, 20)] * 16, quality=(30, 40)), "wavefront-loaded", devices.H200)
    assert counters.total("shared_load_requests") == (20 + 4) * 2  # steps of four rows, warps
    assert counters.total("shared_load_conflicts") == counters.total("shared_store_conflicts") == 0
    assert counters.total("shuffles") == (20 + 4) * 3 * 2  # M, I and D in each step
    assert (
        counters.total("divergent_branches") == 2
    )  # the last lane of a pair alone writes its sum: one branch per warp


def test_a_block_computes_for_the_longest_haplotype_it_holds() -> None:
    problem = random_problem(7, [(4, n) for n in (3, 9, 5)])
    grid, args = sub_warps(problem, *problem.pairs, np.float32, 16, 4)
    assert grid == 2
    assert args["columns"].tolist() == [9, 5]
    assert args["pairs"][:, 3].tolist() == [3, 9, 5, 5]
