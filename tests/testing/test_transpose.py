"""The example of docs/ci.md: a kernel with tests of its answer, its findings and its budget."""

from typing import Any

import numpy as np
import pytest
import simtbed as st
from simtbed import Global, f32


@st.kernel
def transpose(x: Global[f32], out: Global[f32]) -> None:
    """A tile of 32 x 32, padded against bank conflicts."""
    tile = st.shared(f32, 32, 33)
    for row in range(4):
        tile[st.thread.y + 8 * row, st.thread.x] = x[(st.thread.y + 8 * row) * 32 + st.thread.x]
    st.sync()
    for row in range(4):
        out[(st.thread.y + 8 * row) * 32 + st.thread.x] = tile[st.thread.x, st.thread.y + 8 * row]


@pytest.mark.simtbed(check="all", schedules=1)
def test_transpose(launch: Any, budget: Any) -> None:
    x = np.arange(1024, dtype=np.float32)
    result = launch(transpose, grid=1, block=(32, 8), args={"x": x, "out": st.empty(1024, f32)})
    assert (result.out.reshape(32, 32) == x.reshape(32, 32).T).all()
    budget("one tile").expect(result)
