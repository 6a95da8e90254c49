"""Variants: the oracle's values, equal bits on all engines, and numbers of individuals beyond the range of doubles."""

from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from simtbed import DeviceArray, SimtbedError, launch
from simtbed.kernels import FunctionLauncher, Launcher
from simtbed.kernels.sfs import FAMILY
from simtbed.kernels.sfs import tiled as tiling
from simtbed.kernels.sfs.host import pipeline
from simtbed.kernels.sfs.host.generate import generate
from simtbed.kernels.sfs.host.pipeline import PLAIN, THREADS, Merging
from simtbed.kernels.sfs.host.pipeline_plain import MOST_IN_SAF, Merges, merged, plain
from simtbed.kernels.sfs.host.problem import Floats, Mode, Problem
from simtbed.kernels.sfs.wide import WARP

from tests.kernels.recorder import Recorder
from tests.table_checks import check_each, first_fast

VARIANTS = sorted(FAMILY.variants)
SCALED = sorted(FAMILY.variants.keys() - PLAIN)
"""Variants without a limit on the number of individuals."""
MODES: tuple[Mode, ...] = ("product", "saf", "gama")


def problem_of(likelihoods: Floats, mode: Mode = "saf", frequency: float = 0.1) -> Problem:
    sites = len(likelihoods)
    return Problem(likelihoods, ["1"] * sites, np.arange(1, sites + 1), mode, np.full(sites, frequency))


def mixed(seed: int, individuals: int, sites: int = 4) -> Floats:
    """Return sites of every kind: random, without information, certain genotypes, small likelihoods."""
    draw = np.random.default_rng(seed)
    values = draw.random((sites, individuals, 3)) ** 4
    values[1 % sites] = 1
    values[2 % sites] = np.eye(3)[draw.integers(0, 3, individuals)]
    values[3 % sites] = 10.0 ** -draw.integers(0, 26, (individuals, 3)).astype(np.float64)
    return values


def check(problem: Problem, variant: str, launcher: Launcher) -> Floats:
    answer = FAMILY.solve(problem, variant, launcher)
    agreement = FAMILY.compare(answer, FAMILY.oracle(problem))
    assert agreement.compared > 0 and agreement.agrees, agreement
    assert agreement.worst < 1e-8
    return answer


@pytest.mark.slow
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("variant", VARIANTS)
def test_modes(variant: str, mode: Mode, launcher: Launcher) -> None:
    check(generate(1, 9, 21, mode), variant, launcher)


@pytest.mark.slow
@pytest.mark.parametrize("variant", VARIANTS)
def test_sizes(variant: str, launcher: Launcher) -> None:
    """Around the limits of segments, warps, tiles, groups and powers of two."""
    sizes = [1, 2, 3, 8, 9, 31, 32, 33, 65, 129]
    check_each(sizes, lambda individuals: check(problem_of(mixed(individuals, individuals)), variant, launcher))


@pytest.mark.slow
@settings(max_examples=25)
@given(st.integers(1, 70), st.integers(1, 5), st.integers(0, 1000), st.sampled_from(VARIANTS), st.sampled_from(MODES))
def test_anything(individuals: int, sites: int, seed: int, variant: str, mode: Mode) -> None:
    check(problem_of(mixed(seed, individuals, sites), mode), variant, FunctionLauncher(partial(launch, counters=False)))


@pytest.mark.slow
@pytest.mark.parametrize("variant", VARIANTS)
def test_sites_fill_no_block(variant: str, launcher: Launcher) -> None:
    check(generate(2, 131, 10), variant, launcher)


@pytest.mark.parametrize("variant", first_fast(VARIANTS))
def test_engines_give_the_same_bits(variant: str) -> None:
    """Compare the products, before any logarithm."""
    vectors, _ = problem_of(mixed(5, 50)).vectors()
    spectra = [
        pipeline.VARIANTS[variant](vectors, FunctionLauncher(partial(launch, engine=engine, counters=False)))
        for engine in ("jit", "numpy")
    ]
    for name in ("h", "exponents"):
        first, other = (getattr(s, name).numpy() for s in spectra)
        np.testing.assert_array_equal(first, other)
        assert first.any() or (name == "exponents" and variant in PLAIN)


# ------------------------------------------------------------------ range
@pytest.mark.slow
@pytest.mark.parametrize("variant", SCALED)
def test_sites_without_information_are_flat(variant: str, launcher: Launcher) -> None:
    """h is C(2N, j), from 1 to e^1660, beyond the range of doubles; 1,200 individuals, no power of two."""
    answer = FAMILY.solve(problem_of(np.ones((1, 1200, 3))), variant, launcher)
    np.testing.assert_allclose(answer, 0.0, atol=1e-8)


@pytest.mark.parametrize("variant", sorted(PLAIN))
def test_plain_doubles_refuse_too_many_individuals(variant: str, launcher: Launcher) -> None:
    """Flat sites have coefficients with the largest ratio: the maximum number of individuals is correct, one more is refused."""
    answer = FAMILY.solve(problem_of(np.ones((1, MOST_IN_SAF, 3))), variant, launcher)
    np.testing.assert_allclose(answer, 0.0, atol=1e-8)
    with pytest.raises(SimtbedError, match=f"{variant} .* at most {MOST_IN_SAF} individuals in saf mode, got 451"):
        FAMILY.solve(problem_of(np.ones((1, MOST_IN_SAF + 1, 3))), variant, launcher)


@pytest.mark.slow
@pytest.mark.parametrize("variant", sorted(PLAIN))
def test_plain_doubles_support_the_individuals_of_the_paper(variant: str, launcher: Launcher) -> None:
    check(generate(4, 2, 1024, "gama"), variant, launcher)


@pytest.mark.slow
@pytest.mark.parametrize("variant", ["iterative-carried", "reduction-scaled", "reduction-shared-scaled", "tiled"])
def test_a_binomial_distribution(variant: str, launcher: Launcher) -> None:
    """The same vector 2,100 times: coefficients of a power of a squared polynomial."""
    n, p = 2100, 0.3
    vectors = np.broadcast_to([(1 - p) ** 2, 2 * p * (1 - p), p**2], (1, n, 3))
    answer = FAMILY.solve(problem_of(np.array(vectors), "product"), variant, launcher)[0]
    j = np.arange(2 * n + 1)
    np.testing.assert_allclose(answer, pipeline.choices(2 * n) + j * np.log(p) + (2 * n - j) * np.log(1 - p), atol=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("variant", VARIANTS)
def test_deep_data(variant: str, launcher: Launcher) -> None:
    """Likelihoods of 10^-25: the smallest coefficients are e^-11000 of the maximum, beyond the range of any single merge."""
    genotype = np.random.default_rng(0).choice(3, 200, p=[0.9, 0.09, 0.01])
    likelihoods = np.where(np.arange(3) == genotype[:, None], 1.0, 1e-25)[None]
    check(problem_of(likelihoods), variant, launcher)


@pytest.mark.slow
def test_vectors_larger_than_a_block(launcher: Launcher, monkeypatch: pytest.MonkeyPatch) -> None:
    """`tiled_merge`, on 1, 2 and 3 levels of it, with the last vectors short or empty."""
    monkeypatch.setattr(tiling, "FUSED", 128)
    for individuals, merges in ((1025, 1), (2048, 1), (2049, 2), (2900, 2), (5000, 3)):
        problem, recorder = problem_of(mixed(1, individuals, 1)), Recorder(launcher.launch)
        answer = FAMILY.solve(problem, "tiled", recorder)
        assert recorder.kernels == ["tiled", *["tiled_merge"] * merges, "normalise"]
        assert FAMILY.compare(answer, FAMILY.solve(problem, "reduction-scaled", launcher)).worst < 1e-8


@pytest.mark.slow
@pytest.mark.parametrize("variant", VARIANTS)
def test_no_races(variant: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """No races and no reads of uninitialised memory on a GPU without lockstep warps. With several levels, odd vectors,
    and for `tiled` products larger than a block."""
    monkeypatch.setattr(tiling, "FUSED", 128)
    problem = problem_of(mixed(6, 1030 if variant == "tiled" else 77, 1))
    FAMILY.solve(problem, variant, FunctionLauncher(partial(launch, check="all")))  # raises for any finding


@pytest.mark.slow
@pytest.mark.parametrize("variant", VARIANTS)
def test_an_impossible_site_is_minus_infinity(variant: str, launcher: Launcher) -> None:
    """A frequency of 0 and an individual certainly homozygous for the minor allele: both hypotheses are impossible."""
    likelihoods = np.ones((2, 5, 3))
    likelihoods[0, 2] = (0, 0, 1)
    problem = problem_of(likelihoods, "gama", frequency=0.0)
    answer = FAMILY.solve(problem, variant, launcher)
    assert answer[0].tolist() == [0.0] * 11
    assert answer[1].tolist() == pytest.approx([1.0] + [0.0] * 10)
    np.testing.assert_allclose(answer, FAMILY.oracle(problem), atol=1e-12)


# ------------------------------------------------------------------ batches and buffers
@pytest.mark.slow
@pytest.mark.parametrize("variant", VARIANTS)
def test_batches_change_nothing(variant: str, launcher: Launcher, monkeypatch: pytest.MonkeyPatch) -> None:
    problem = generate(8, 7, 12)
    whole = FAMILY.solve(problem, variant, launcher)
    monkeypatch.setattr(pipeline, "BYTES_AT_ONCE", 3 * 8 * 3 * 8 * 2)
    np.testing.assert_array_equal(FAMILY.solve(problem, variant, launcher), whole)


@pytest.mark.parametrize("variant", VARIANTS)
def test_no_sites(variant: str, launcher: Launcher) -> None:
    assert FAMILY.solve(problem_of(np.ones((0, 4, 3))), variant, launcher).shape == (0, 9)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("block", "team", "skip"), [(16, WARP, False), (32, WARP, True), (64, THREADS, False), (256, THREADS, True)]
)
def test_blocks_of_any_size(block: int, team: int, skip: bool) -> None:
    problem = problem_of(mixed(3, 150))
    vectors, scale = problem.vectors()
    launcher = FunctionLauncher(partial(launch, engine="numpy", counters=False))  # compiling each would take longer
    spectra = pipeline.reduced(vectors, launcher, Merging(team, block, skip))
    answer = pipeline.normalised(problem, spectra, scale, launcher)
    assert FAMILY.compare(answer, FAMILY.oracle(problem)).agrees


@pytest.mark.slow
@pytest.mark.parametrize(("block", "skip"), [(16, False), (200, True)])
def test_plain_blocks_of_any_size(block: int, skip: bool) -> None:
    vectors, _ = problem_of(mixed(3, 150)).vectors()
    vectors /= 3
    launcher = FunctionLauncher(partial(launch, engine="numpy", counters=False))
    whole, blocks = (merged(vectors, launcher, how).numpy() for how in (Merges(), Merges(block, skip)))
    np.testing.assert_allclose(blocks, whole, rtol=1e-12)


def test_algorithm_1_loads_three_coefficients_a_step() -> None:
    """For a warp's 32 sites: 3 N^2 - 3 multiplications, and three loads and one store for nearly each of N^2 new coefficients."""
    n, recorder = 16, Recorder(partial(launch, engine="numpy"))
    plain(generate(1, 32, n).vectors()[0], recorder, None)
    (counters,) = recorder.counters().values()
    step = counters.at("p2, h[(j - 2) * sites + site]")
    steps = sum(2 * i - 3 for i in range(2, n + 1))
    assert step.total("global_load_requests") == 3 * steps
    assert counters.at("h[j * sites + site] = st.fma(").total("global_store_requests") == steps
    assert counters.total("warp_instructions.fp64") == 3 * n * n - 3


@pytest.mark.slow
def test_mantissas_are_normalised(launcher: Launcher) -> None:
    """The largest mantissa of each segment is in [1, 2): scaling neither loses bits nor drifts."""
    vectors, _ = problem_of(mixed(4, 120)).vectors()
    for variant, segment in (("reduction-scaled", 32), ("tiled", tiling.R)):
        spectra = pipeline.VARIANTS[variant](vectors, launcher)
        assert isinstance(spectra.h, DeviceArray)
        mantissas = spectra.h.numpy()[: spectra.h_site][:241]
        largest = [mantissas[at : at + segment].max() for at in range(0, 241, segment)]
        assert all(value == 0 or 1 <= value < 2 for value in largest) and any(largest)
