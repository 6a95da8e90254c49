"""The claims of Lu 2012 that were open: settled by counts, and held here."""

from pathlib import Path
from typing import Literal

import numpy as np
import pytest
from simtbed import SimtbedError
from simtbed.kernels.sfs.host.generate import generate
from simtbed.kernels.sfs.host.pipeline_plain import normalised_as_printed
from simtbed.kernels.sfs.host.problem import Problem
from simtbed.oracles import sfs, sfs_loop
from simtbed.reports.launchers import Runner
from simtbed.reports.papers import definitions
from simtbed.reports.papers.lu2012 import counting
from simtbed.reports.papers.measured import Machine, Measured
from simtbed.reports.papers.paper import Size


def test_the_loops_give_the_products_of_the_oracle() -> None:
    vectors = generate(2, 5, 45).vectors()[0] / 3
    expected = np.exp(sfs.product(vectors))
    for loop in counting.LOOPS.values():
        np.testing.assert_allclose(loop(vectors), expected, rtol=1e-9)
        np.testing.assert_array_equal(sfs_loop.on_all_cores(loop, vectors), loop(vectors))


def test_scaled_products_of_thousands_do_not_underflow() -> None:
    """They are the products but for a factor."""
    vectors = np.ascontiguousarray(generate(2, 2, 45).likelihoods)
    result = sfs_loop.reduced(vectors, skip=False, scaled=True)
    expected = np.exp(sfs.product(vectors))
    np.testing.assert_allclose(
        result / result.max(axis=1, keepdims=True), expected / expected.max(axis=1, keepdims=True), rtol=1e-9
    )
    many = np.full((1, 4096, 3), 0.1)
    assert not sfs_loop.reduced(many, skip=False).any()
    assert sfs_loop.reduced(many, skip=False, scaled=True).max() == 1.0


def test_three_normalisations_agree() -> None:
    arguments = generate(3, 4, 60, "gama")
    vectors, t = arguments.vectors()
    h, fixed = sfs_loop.iterative(vectors), arguments.fixed()
    expected = sfs.gama(arguments.likelihoods, arguments.frequency, arguments.variable)
    for normalise in counting.NORMALISING.values():
        np.testing.assert_allclose(normalise(h, t, fixed, arguments.variable), expected, atol=1e-12)
    printed, undefined = sfs_loop.normalised_as_printed(h, t, fixed, arguments.variable)
    np.testing.assert_allclose(printed, expected, atol=1e-12)
    assert not undefined.any()


@pytest.mark.parametrize("engine", ["numpy", "jit"])
@pytest.mark.parametrize("extended", [False, True])
def test_algorithm_3_on_the_gpu(extended: bool, engine: Literal["numpy", "jit"]) -> None:
    arguments = generate(3, 4, 60, "gama")
    result, undefined = normalised_as_printed(arguments, *arguments.vectors(), Runner(engine), extended)
    np.testing.assert_allclose(
        result, sfs.gama(arguments.likelihoods, arguments.frequency, arguments.variable), atol=1e-12
    )
    assert undefined == 0


def test_exponents_of_double_doubles_prevent_division_by_zero() -> None:
    """Individuals who are known to be of one homozygote or the other, at likelihoods of 10^-40: e^t is e^-3,000."""
    likelihoods = np.full((3, 60, 3), 1e-40)
    likelihoods[np.arange(3)[:, None], np.arange(60), np.arange(60) % 2 * 2] = 1.0
    arguments = Problem(likelihoods, ["1"] * 3, np.arange(1, 4), "gama", np.full(3, 1e-30))
    vectors, t = arguments.vectors()
    h, fixed = sfs_loop.iterative(vectors), arguments.fixed()
    assert max(t.max(), fixed.max()) < -1500
    printed, undefined = sfs_loop.normalised_as_printed(h, t, fixed, arguments.variable)
    assert undefined.all() and np.isnan(printed).all()
    expected = sfs_loop.normalised(h, t, fixed, arguments.variable)
    np.testing.assert_allclose(
        sfs_loop.normalised_in_long_doubles(h, t, fixed, arguments.variable), expected, atol=1e-12
    )
    _, divided = normalised_as_printed(arguments, vectors, t, Runner("jit"), extended=False)
    result, never = normalised_as_printed(arguments, vectors, t, Runner("jit"), extended=True)
    assert (divided, never) == (3, 0)
    np.testing.assert_allclose(result, expected, atol=1e-12)


def test_likelihoods_of_a_file(tmp_path: Path) -> None:
    """Those up to the threshold are 0; sites repeat, individuals do not."""
    file = tmp_path / "own.beagle"
    file.write_text("marker allele1 allele2 a a a b b b\n1_5 A C 1 0.5 0.001 0.2 1 0.2\n".replace(" ", "\t"))
    values = counting.Genotypes(2, 20.0, 0.01, file).vectors(3)
    assert values.shape == (3, 2, 3) and (values[:, 0, 2] == 0).all() and (values[:, 0, 0] == 1).all()
    with pytest.raises(SimtbedError, match="has 2 individuals: write --individuals N"):
        counting.Genotypes(3, 20.0, 0.01, file).vectors(3)


def test_what_is_timed_runs() -> None:
    setting = definitions.find("lu2012").setting(Size.small, {"individuals": 20, "sites": 4}, "jit", Measured())
    timed = {(one.name, one.machine): one for one in counting.benchmarks(setting)}
    assert {machine for _, machine in timed} == set(Machine)
    for name in ("reduction", "logarithms"):
        milliseconds, work = timed[name, Machine.core].run(2)
        assert len(milliseconds) == 2 and min(milliseconds) > 0 and work == counting.SITES_ON_CPU[Machine.core]
