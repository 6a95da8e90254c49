"""Small projects for runs of pytest within pytest: a kernel, and tests of it with budgets, with races or without faults."""

from importlib import import_module
from pathlib import Path
from pkgutil import walk_packages

import pytest
import simtbed

for _module in walk_packages(simtbed.__path__, "simtbed."):
    # pytester removes the modules that a run imports; removing only some of several dependent modules breaks the others
    if not _module.name.startswith(
        tuple(f"simtbed.{name}" for name in ("__main__", "kernels", "oracles", "reports", "triton"))
    ):
        import_module(_module.name)

TRANSPOSE = '''
import numpy as np
import pytest
import simtbed as st
from simtbed import Global, f32, i32

@st.kernel
def transpose(x: Global[f32], out: Global[f32]) -> None:
    """A tile, padded against bank conflicts."""
    tile = st.shared(f32, 32, 33)
    for row in range(4):
        tile[st.thread.y + 8 * row, st.thread.x] = x[(st.thread.y + 8 * row) * 32 + st.thread.x]
    st.sync()
    for row in range(4):
        out[(st.thread.y + 8 * row) * 32 + st.thread.x] = tile[st.thread.x, st.thread.y + 8 * row]

X = np.arange(1024, dtype=np.float32)
HOW = dict(grid=1, block=(32, 8), args=dict(x=X, out=st.empty(1024, f32)))
'''
PLAIN = (
    TRANSPOSE
    + """
def test_transposes(launch, engine):
    result = launch(transpose, **HOW)
    assert (result.out.reshape(32, 32) == X.reshape(32, 32).T).all()
"""
)
COSTS = (
    TRANSPOSE
    + """
def test_costs(launch, budget):
    budget("whole").expect(launch(transpose, **HOW))
"""
)
RACE = (
    TRANSPOSE.replace("    st.sync()\n", "")
    + """
def test_races(launch):
    launch(transpose, **HOW)
"""
)


def run(pytester: pytest.Pytester, *options: str) -> pytest.RunResult:
    return pytester.runpytest_inprocess("-p", "no:cacheprovider", *options)


def baseline(pytester: pytest.Pytester) -> Path:
    """Return the file of its budgets."""
    return pytester.path / ".simtbed" / "budgets.toml"
