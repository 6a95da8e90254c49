"""The reference interpreter gives the worked-out answers of the feature kernels."""

from __future__ import annotations

import numpy as np
import pytest
from simtbed.runtime.request import prepare_request
from simtbed.testing import reference_interpreter
from simtbed.testing.conformance import FEATURES, Feature


@pytest.mark.parametrize("feature", FEATURES, ids=lambda feature: feature.name)
def test_features(feature: Feature) -> None:
    request = feature.launch(prepare_request)
    found = request.shaped(reference_interpreter.run(request))
    assert np.asarray(feature.expected).ravel().tolist() == found["out"].ravel().tolist()
