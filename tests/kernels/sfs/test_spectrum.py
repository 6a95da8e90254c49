"""Spectrum over sites: counts of known genotypes, and maximum likelihood."""

from xml.etree import ElementTree

import numpy as np
import pytest
from simtbed.kernels import Launcher
from simtbed.kernels.sfs import FAMILY
from simtbed.kernels.sfs.host import files_spectrum, spectrum
from simtbed.kernels.sfs.host.generate import generate, likelihoods
from simtbed.kernels.sfs.host.problem import Floats, Mode
from simtbed.kernels.sfs.host.spectrum import Spectrum


def distribution(answer: Floats, mode: Mode, pieces: int = 3) -> Floats:
    with Spectrum(mode) as total:
        for piece in np.array_split(answer, pieces):
            total.add(piece)
        return total.result()


@pytest.mark.parametrize("mode", ["product", "saf", "gama"])
def test_known_genotypes_are_counted(mode: Mode) -> None:
    """Rows with certain counts of 0, 3, 3 and 6 minor alleles."""
    certain = np.eye(7)[[0, 3, 3, 6]]
    with np.errstate(divide="ignore"):
        answer = certain if mode == "gama" else np.log(certain) + (5.0 if mode == "product" else 0.0)
    np.testing.assert_allclose(distribution(answer, mode), [1, 0, 0, 2, 0, 0, 1], atol=1e-6)


def test_distributions_add_up() -> None:
    np.testing.assert_allclose(
        distribution(np.log([[1.0, 3.0, 0.5], [2.0, 2.0, 4.0]]), "product"), [2 / 9 + 0.25, 6 / 9 + 0.25, 1 / 9 + 0.5]
    )


@pytest.mark.slow
def test_it_has_the_maximum_likelihood(launcher: Launcher) -> None:
    """No mixture with another spectrum has a higher likelihood."""
    answer = FAMILY.solve(generate(3, 400, 10), "tiled", launcher)
    result = distribution(answer, "saf") / len(answer)

    def likelihood(share: Floats) -> float:
        return float(np.log(np.exp(answer) @ share).sum())

    draw = np.random.default_rng(0)
    for other in (np.full(21, 1 / 21), *draw.dirichlet(np.ones(21), 20), *np.eye(21)):
        assert likelihood(0.99 * result + 0.01 * other) <= likelihood(result) + 1e-4


def test_it_recovers_the_genotypes_of_deep_data(launcher: Launcher) -> None:
    """Deep data determine the genotypes, so the spectrum is their count."""
    values = likelihoods(4, 300, 8, depth=60.0)
    problem = generate(4, 300, 8, depth=60.0)
    counts = np.bincount(values.argmax(axis=2).sum(axis=1), minlength=17)
    np.testing.assert_allclose(distribution(FAMILY.solve(problem, "tiled", launcher), "saf"), counts, atol=0.05)


@pytest.mark.slow
def test_slices_change_nothing(monkeypatch: pytest.MonkeyPatch, launcher: Launcher) -> None:
    answer = FAMILY.solve(generate(3, 50, 10), "tiled", launcher)
    whole = distribution(answer, "saf", 1)
    monkeypatch.setattr(spectrum, "ROWS_AT_ONCE", 21 * 7)
    np.testing.assert_allclose(distribution(answer, "saf", 6), whole, rtol=1e-9)


@pytest.mark.parametrize("mode", ["product", "saf", "gama"])
def test_impossible_and_missing_sites(mode: Mode) -> None:
    assert distribution(np.empty((0, 5)), mode, 1).tolist() == [0.0] * 5
    assert distribution(np.zeros((2, 5)) if mode == "gama" else np.full((2, 5), -np.inf), mode, 1).tolist() == [0.0] * 5


def test_the_picture_has_a_bar_for_each_count_that_varies() -> None:
    counts = np.array([1000.0, 40.0, 20.0, 10.0, 3.0])
    drawing = ElementTree.fromstring(files_spectrum.picture(counts, "a < b & c"))
    bars = drawing.findall("{*}g/{*}rect")
    heights = [float(bar.attrib["height"]) for bar in bars]
    assert heights == pytest.approx([heights[0] * share for share in (1, 0.5, 0.25)], abs=0.02)
    text = "".join(drawing.itertext())
    assert "a < b & c" in text and "none 1000, all 3" in text


def test_a_picture_of_nothing() -> None:
    for counts in (np.zeros(3), np.zeros(7)):
        ElementTree.fromstring(files_spectrum.picture(counts, ""))
