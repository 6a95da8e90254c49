"""The reference interpreter gives the worked-out answers of the feature kernels."""

from __future__ import annotations

import numpy as np
from simtbed.runtime.request import prepare_request
from simtbed.testing import reference_interpreter
from simtbed.testing.conformance import FEATURES, Feature

from tests.table_checks import check_each


def check(feature: Feature) -> None:
    request = feature.launch(prepare_request)
    actual = request.shaped(reference_interpreter.run(request))
    assert np.asarray(feature.expected).ravel().tolist() == actual["out"].ravel().tolist()


def test_features() -> None:
    check_each(FEATURES, check, lambda feature: feature.name)
