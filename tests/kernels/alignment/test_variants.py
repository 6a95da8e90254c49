"""Every variant returns the oracle's answer on both emulators; counters of each."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import pytest
from hypothesis import given, settings
from simtbed import Counters, Result, SimtbedError, launch
from simtbed.kernels import FunctionLauncher, Launcher
from simtbed.kernels.alignment import FAMILY
from simtbed.kernels.alignment.host import pipeline
from simtbed.kernels.alignment.host.generate import generate
from simtbed.kernels.alignment.host.problem import Parameters, Problem, Strategy
from simtbed.kernels.alignment.packed import packed
from simtbed.runtime.registry import EngineName

from tests.kernels.alignment.conftest import PUBLISHED, problems
from tests.kernels.recorder import Recorder
from tests.table_checks import first_fast

VARIANTS = list(FAMILY.variants)
every_variant = pytest.mark.parametrize("variant", VARIANTS)


def check(problem: Problem, variant: str, launcher: Launcher) -> None:
    assert FAMILY.solve(problem, variant, launcher).tolist() == FAMILY.oracle(problem).tolist()


def counted(problem: Problem, variant: str, engine: EngineName = "jit") -> dict[str, Counters]:
    """Return the counters of each kernel."""
    recorder = Recorder(partial(launch, engine=engine))
    check(problem, variant, recorder)
    return recorder.counters()


@pytest.mark.parametrize("variant", first_fast(VARIANTS))
def test_the_example(variant: str, launcher: Launcher) -> None:
    check(FAMILY.example(), variant, launcher)


def test_numpy_engine() -> None:
    problem = generate(1, 4, (5, 40), (5, 40))
    jit, numpy = counted(problem, "packed"), counted(problem, "packed", "numpy")
    assert {name: c.totals() for name, c in jit.items()} == {name: c.totals() for name, c in numpy.items()}


@pytest.mark.slow
@every_variant
@settings(max_examples=15)
@given(problem=problems())
def test_ties_are_broken_as_they_should_be(variant: str, problem: Problem) -> None:
    check(problem, variant, FunctionLauncher(partial(launch, counters=False)))


@pytest.mark.slow
@settings(max_examples=15)
@given(problem=problems(most=150))
def test_passes_of_any_length(problem: Problem) -> None:
    check(problem, "passes-diagonal-major-runs", FunctionLauncher(partial(launch, counters=False)))
    check(problem, "passes-row-major-steps", FunctionLauncher(partial(launch, counters=False)))


@pytest.mark.slow
@settings(max_examples=15)
@given(problem=problems(most=150))
def test_tiles_of_any_shape(problem: Problem) -> None:
    """Tiles of 128 rows of a warp, several in sequence."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pipeline, "SMALL_PROBLEM_BINS", ((8, 4), (32, 4)))
        check(problem, "packed", FunctionLauncher(partial(launch, counters=False)))


@pytest.mark.slow
def test_tiles_of_a_pair_much_longer_than_one(launcher: Launcher, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pipeline, "SMALL_PROBLEM_BINS", ((32, 4),))
    for strategy in Strategy:
        problem = generate(3, 6, (1, 700), (1, 700))
        check(replace(problem, strategy=strategy), "packed", launcher)


class ChosenError(Exception):
    """Raised in place of a launch, with the chosen kernel's parameters."""


@pytest.mark.parametrize("few", [True, False])
def test_every_bin_holds_alternates_up_to_its_size(few: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    bins = pipeline.SMALL_PROBLEM_BINS if few else pipeline.BINS
    monkeypatch.setattr(pipeline, "SMALL_PROBLEM", 3 if few else 0)

    @FunctionLauncher
    def choose(kernel: Any, **arguments: Any) -> Result:
        if kernel is packed:
            raise ChosenError(arguments["args"]["P"], arguments["args"]["K"], arguments["args"]["TILED"])
        return launch(kernel, counters=False, **arguments)

    sizes = [lanes * rows for lanes, rows in bins]
    assert sizes == sorted(set(sizes))
    for size, below, chosen in zip(sizes, [0, *sizes], bins, strict=False):
        for length in (below + 1, size):
            with pytest.raises(ChosenError) as caught:
                FAMILY.solve(generate(1, 1, (length, length), (40, 40)), "packed", choose)
            assert caught.value.args == (*chosen, False)


@pytest.mark.slow
@pytest.mark.parametrize("bin", [0, len(pipeline.BINS) // 2, len(pipeline.BINS) - 1])
def test_kernels_of_bins(bin: int, launcher: Launcher, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pipeline, "SMALL_PROBLEM", 0)
    sizes = [lanes * problem for lanes, problem in pipeline.BINS]
    least, most = (sizes[bin - 1] if bin else 0) + 1, sizes[bin]
    generated = [generate(bin, 1, (n, n), (40, 40)) for n in (least, most, most - 1)]
    check(Problem.from_pairs(pair for problem in generated for pair in problem.pairs()), "packed", launcher)


@pytest.mark.slow
def test_few_pairs_are_launched_together(launcher: Launcher) -> None:
    problem = Problem.from_pairs(pair for n in (3, 300, 60) for pair in generate(n, 1, (n, n), (20, 20)).pairs())
    recorder = Recorder(launcher.launch)
    check(problem, "packed", recorder)
    assert recorder.kernels == ["packed", "traceback"]
    assert recorder.arguments("P", "K") == [(32, 12)] * 2


@pytest.mark.slow
@every_variant
def test_scores_stop_falling(variant: str, launcher: Launcher) -> None:
    """packed stores 28 bits of a score and refuses larger scores."""
    dear = Parameters(1, -60_000_000, -60_000_000, -60_000_000)
    problem = Problem.from_pairs([(b"AAA", b"CCC"), (b"ACA", b"CAC")], dear, Strategy.INDEL)
    if variant == "packed":
        with pytest.raises(SimtbedError, match=r"^the scores of pair 1 may leave the 28 bits that packed has"):
            FAMILY.solve(problem, variant, launcher)
        return
    assert FAMILY.oracle(problem)["score"].tolist() == [-100_000_000] * 2
    check(problem, variant, launcher)


@every_variant
def test_a_long_cigar_is_traced_again_with_a_larger_capacity(
    variant: str, launcher: Launcher, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pipeline, "OPERATIONS", 2)
    recorder = Recorder(launcher.launch)
    problem = Problem.from_pairs(
        [(b"ACGTACGTACGT", b"ACGTTACGTAGT"), (b"ACG", b"ACG")], PUBLISHED["ORIG"], Strategy.INDEL
    )
    most = max(cigar.count("M") + cigar.count("I") + cigar.count("D") for cigar in FAMILY.oracle(problem)["cigar"])
    check(problem, variant, recorder)
    assert most > 2 and (most,) in recorder.arguments("capacity")


@every_variant
def test_nothing(variant: str, launcher: Launcher) -> None:
    assert FAMILY.solve(Problem.from_pairs([]), variant, launcher).shape == (0,)


@pytest.mark.slow
@every_variant
def test_batches_change_nothing(variant: str, launcher: Launcher) -> None:
    problem = generate(8, 40, (5, 30), (10, 40))
    whole, batches = Recorder(launcher.launch), Recorder(launcher.launch)
    answer = pipeline.solve(problem, variant, whole).tolist()
    assert answer == FAMILY.oracle(problem).tolist()
    assert pipeline.solve(problem, variant, batches, words=1500).tolist() == answer
    assert len(batches.kernels) > len(whole.kernels)


# ------------------------------------------------------------------ refused input
@pytest.mark.parametrize(
    ("variant", "pair", "message"),
    [
        ("wide-row-major-runs", (b"A", b"C" * 1025), "more than 1,024 bases: use passes-row-major-runs"),
        ("passes-row-major-runs", (b"A" * 32768, b"C"), "more than 32,767 bases: use passes-row-major-steps"),
        ("passes-diagonal-major-runs", (b"A", b"C" * 32768), "more than 32,767 bases: use passes-diagonal-major-steps"),
        ("packed", (b"", b"C"), "pair 2 is of an empty sequence"),
        ("pairalign", (b"A", b""), "pair 2 is of an empty sequence"),
    ],
)
def test_what_a_variant_cannot_hold(variant: str, pair: tuple[bytes, bytes], message: str) -> None:
    @FunctionLauncher
    def never(*args: Any, **how: Any) -> Result:
        raise AssertionError("nothing is launched")

    with pytest.raises(SimtbedError, match=f"^pair 2 .*{message.removeprefix('pair 2 ')}$"):
        FAMILY.solve(Problem.from_pairs([(b"A", b"A"), pair]), variant, never)


@pytest.mark.parametrize("parameters", [(-1, -1, -1, -1), (1, 1, -1, -1), (1, -1, 1, -1), (1, -1, -1, 1)])
def test_wrong_signs(parameters: tuple[int, int, int, int], launcher: Launcher) -> None:
    with pytest.raises(SimtbedError, match="the first one is not negative, the others not positive"):
        FAMILY.solve(Problem.from_pairs([(b"A", b"A")], Parameters(*parameters)), "packed", launcher)


def test_long_alternates_need_no_short(launcher: Launcher) -> None:
    problem = Problem.from_pairs([(b"ACGT", b"C" * 100 + b"ACGT" + b"C" * 40_000)])
    check(problem, "packed", launcher)
    check(problem, "passes-row-major-steps", launcher)


# ------------------------------------------------------------------ claims of the paper
PAIRS = 4


@pytest.fixture(scope="module")
def cost() -> Callable[[str, int], dict[str, Counters]]:
    """Counters of a variant on PAIRS pairs of equal sequences of one length."""
    cached: dict[tuple[str, int], dict[str, Counters]] = {}

    def counters_of(variant: str, length: int) -> dict[str, Counters]:
        if (variant, length) not in cached:
            generated = generate(length, PAIRS, (length, length), (length, length))
            equal = replace(generated, alternates=generated.references, alternate_offsets=generated.reference_offsets)
            cached[variant, length] = counted(equal, variant)
        return cached[variant, length]

    return counters_of


Cost = Callable[[str, int], dict[str, Counters]]


@pytest.mark.parametrize(
    ("variant", "kernel", "barriers", "words"),
    [
        ("wide-diagonal-major-runs", "intratask_vectors", 2 * (64 + 40 - 1), 3 * 64 + 2 * 4),
        # a barrier after each step, one before the search for the best end, one for each of its six levels
        ("wide-diagonal-major-runs-double-buffered", "intratask", 64 + 40 - 1 + 1 + 6, (2 * 3 + 2) * 64 + 4),
    ],
)
def test_barriers_and_shared_memory_of_stage_1(variant: str, kernel: str, barriers: int, words: int) -> None:
    """Ren 2019: two vectors and a short2 vector with two barriers per step; ours: two copies of three with one."""
    recorder = Recorder()
    check(generate(1, 1, (40, 40), (64, 64)), variant, recorder)
    first = recorder.results[0]
    assert recorder.kernels[0] == kernel
    assert first.counters.totals()["barriers"] == 2 * barriers  # two warps
    assert first.shared_bytes == 4 * words


@pytest.mark.slow
def test_pairalign_memory_per_row_and_column(cost: Cost) -> None:
    """Per column and strip a score and a deletion are read and written; per cell a score and an insertion."""
    counters = cost("pairalign", 64)["pairalign_strips"]
    columns, cells = PAIRS * 64 * (64 // 8), PAIRS * 64 * 64
    assert counters.at("up = row_above").totals()["global_load_bytes"] == 8 * columns
    assert counters.at("row_above[at + j * 32] = int2(H").totals()["global_store_bytes"] == 8 * columns
    assert counters.at("moves[group.z").totals()["global_store_bytes"] == 4 * columns
    shared_loads = counters.at("left = left_shared").totals()
    assert shared_loads["shared_load_requests"] == cells // PAIRS
    assert shared_loads["shared_load_wavefronts"] == shared_loads["shared_load_requests"]


@pytest.mark.slow
def test_packed_writes_half_a_byte_a_cell_in_whole_sectors(cost: Cost) -> None:
    stores = cost("packed", 512)["packed"].at("moves[at + word").totals()
    assert stores["global_store_bytes"] == PAIRS * 512 * 512 // 2
    assert stores["global_store_sectors"] * 32 < 1.1 * stores["global_store_bytes"]
