"""CUDA C++ kernels in the habits of their users: NumPy's answers on the emulators, with equal counters and without findings."""

import numpy as np
import pytest
import simtbed as st

from tests.cuda_cpp.habits import HABITS


@pytest.mark.slow
@pytest.mark.parametrize("name", HABITS)
def test_the_answer_is_right(name: str) -> None:
    habit = HABITS[name]
    results = []
    for engine in ("jit", "numpy", "python"):
        source = st.cuda_source(habit.text, instances=habit.instances)
        kernel = source[habit.kernel or next(iter(source))]
        inputs = habit.args(np.random.default_rng(1))
        results.append(
            st.launch(
                kernel, grid=habit.grid, block=habit.block, args=inputs, shared=habit.shared, engine=engine,
                check="bounds" if engine == "python" else "all", cooperative=habit.cooperative,
            )
        )  # fmt: skip
    jit, numpy, python = results
    for array, expected in habit.expected(inputs).items():
        actual = jit.buffers[array] if array in jit.buffers else source.variables[array].numpy()
        np.testing.assert_allclose(actual, np.asarray(expected), rtol=habit.rtol, atol=habit.rtol)
    for other in (numpy, python):
        assert all(values.tobytes() == other.buffers[array].tobytes() for array, values in jit.buffers.items())
    np.testing.assert_array_equal(jit.launch.counts, numpy.launch.counts)
