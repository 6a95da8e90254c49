"""Rows x types x edge values x engines: a program's results are the table's."""

from __future__ import annotations

import numpy as np
import pytest
from simtbed.engines.numpy.engine import NumpyEngine
from simtbed.testing.conformance.operations import Group, group_id, groups, request


@pytest.mark.parametrize("group", list(groups()), ids=group_id)
def test_numpy_engine(group: Group) -> None:
    launch, given = request(group)
    outcome = NumpyEngine().run(launch)
    for row in group[1]:
        with np.errstate(all="ignore"):
            expected = row.meaning(*given)
        assert outcome.buffers[f"out_{row.name}"].tobytes() == expected.tobytes(), row.name
