"""Every feature kernel gives its worked-out answer, on each emulator and one thread at a time."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
from simtbed import launch
from simtbed.runtime.registry import EngineName

from tests.language.all_features import FEATURES, Feature


@pytest.mark.parametrize("engine", ["jit", "numpy"])
@pytest.mark.parametrize("feature", FEATURES, ids=lambda f: f.name)
def test_the_answer(feature: Feature, engine: EngineName) -> None:
    result = feature.launch(partial(launch, engine=engine))
    assert np.asarray(feature.expected).ravel().tolist() == result.out.ravel().tolist()
