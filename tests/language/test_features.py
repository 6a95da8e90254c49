"""Every feature kernel gives its worked-out answer, on each emulator and one thread at a time."""

from __future__ import annotations

import numpy as np
import pytest
from simtbed.emulator import launch

from tests.language.all_features import FEATURES, Feature


@pytest.mark.parametrize("feature", FEATURES, ids=lambda f: f.name)
def test_numpy_engine(feature: Feature) -> None:
    result = feature.launch(launch)
    assert np.asarray(feature.expected).ravel().tolist() == result.out.ravel().tolist()
