"""CUDA C++ kernels in the habits of their users: NumPy's answers on both emulators, with equal counters and without findings."""

from __future__ import annotations

import numpy as np
import pytest
import simtbed as st

from tests.cuda_cpp.habits_cpp import HABITS


@pytest.mark.parametrize("name", HABITS)
def test_the_answer_is_right(name: str) -> None:
    habit = HABITS[name]
    results = []
    for engine in ("jit", "numpy"):
        source = st.cuda_source(habit.text, instances=habit.instances)
        kernel = source[habit.kernel or next(iter(source))]
        inputs = habit.args(np.random.default_rng(1))
        results.append(
            st.launch(
                kernel, grid=habit.grid, block=habit.block, args=inputs, shared=habit.shared, engine=engine, check="all",
                cooperative=habit.cooperative,
            )
        )  # fmt: skip
    jit, numpy = results
    for array, expected in habit.expected(inputs).items():
        actual = jit.buffers[array] if array in jit.buffers else source.variables[array].numpy()
        np.testing.assert_allclose(actual, np.asarray(expected), rtol=habit.rtol, atol=habit.rtol)
    assert {array: values.tobytes() for array, values in jit.buffers.items()} == {
        array: values.tobytes() for array, values in numpy.buffers.items()
    }
    np.testing.assert_array_equal(jit.counts, numpy.counts)
