"""Which loads of compiled kernels end a run of stores."""

from __future__ import annotations

import numpy as np
import pytest
from simtbed import Kernel, devices
from simtbed.model.lines import LOAD
from simtbed.model.stores import between_stores

from tests.model.launches import observed, rows, rows_moved, rows_one_by_one

H200 = devices.H200


def ends(kernel: Kernel, **given: object) -> set[float]:
    """What the loads of a kernel that writes four numbers a thread add to a run of stores."""
    launch = observed(kernel, 4, 256, 4 * 256 * 4, H200, False, outputs=4, **given)  # type: ignore[arg-type]
    if isinstance(compiled := launch.compiled(H200), str):
        pytest.skip(compiled)
    found = between_stores(compiled)
    assert not found[launch.lines.kinds != LOAD].any()
    return set(np.unique(found[launch.lines.kinds == LOAD]).tolist())


def test_loads_that_a_compiler_makes_first_end_no_run() -> None:
    assert ends(rows_moved, WORDS=4) == {0.0}
    assert ends(rows, READ=0, WORDS=4) == {0.0}


def test_a_load_between_two_stores_ends_a_run() -> None:
    assert max(ends(rows_one_by_one, n=4)) == 1.0
