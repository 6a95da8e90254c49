"""Data parsing and post-processing on the GPU, compared with Python's conversion and NumPy."""

from functools import partial
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from simtbed import launch
from simtbed.kernels import FunctionLauncher, Launcher
from simtbed.kernels.sfs import FAMILY
from simtbed.kernels.sfs.host.generate import likelihoods
from simtbed.kernels.sfs.host.pipeline_components import parsed, printed, summarised


def test_parsed_doubles_are_those_of_the_reader(launcher: Launcher, tmp_path: Path) -> None:
    """43 individuals: 129 values, one more than a block has threads."""
    text = printed(likelihoods(1, 5, 43))
    header = "marker\tallele1\tallele2" + "\tsample" * 129 + "\n"
    (tmp_path / "likelihoods.beagle").write_bytes(header.encode() + text.letters.tobytes())
    read = FAMILY.read(tmp_path / "likelihoods.beagle").likelihoods
    np.testing.assert_array_equal(parsed(text, launcher), read)


@settings(max_examples=20)
@given(st.lists(st.floats(0, 9.999999), min_size=3, max_size=3))
def test_parsing_rounds_correctly(values: list[float]) -> None:
    text = printed(np.array(values).reshape(1, 1, 3))
    expected = [float(f"{value:.6f}") for value in values]
    np.testing.assert_array_equal(parsed(text, FunctionLauncher(partial(launch, counters=False))).ravel(), expected)


@pytest.mark.slow
@pytest.mark.parametrize("individuals", [1, 63, 64, 300])
def test_summaries(individuals: int, launcher: Launcher) -> None:
    draw = np.random.default_rng(individuals)
    posteriors = draw.dirichlet(np.ones(2 * individuals + 1), 4)
    posteriors[3] = 1 / (2 * individuals + 1)  # all equally likely: the lowest number
    summary = summarised(posteriors, launcher)
    j = np.arange(2 * individuals + 1)
    np.testing.assert_allclose(summary.expected, posteriors @ j / (2 * individuals), rtol=1e-12)
    np.testing.assert_array_equal(summary.variable, 1 - posteriors[:, 0])
    np.testing.assert_array_equal(summary.most, posteriors.argmax(axis=1))
