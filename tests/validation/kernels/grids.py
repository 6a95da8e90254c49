"""Grid-stride loops: Jacobi's method until it converges."""

from __future__ import annotations

import numpy as np
import simtbed as st
from simtbed import Global, f64, i32

from .kernel import Args, ValidationKernel, Values, draw, tiles, zeros


@st.kernel
def jacobi_until(old: Global[f64], source: Global[f64], new: Global[f64], moved: Global[i32], tolerance: f64) -> None:
    """new = old after a sweep for Poisson's equation; moved[0] = 1 where any point moved by more than the tolerance."""
    j = st.block.x * st.block_dim.x + st.thread.x
    i = st.block.y * st.block_dim.y + st.thread.y
    rows, columns = old.shape
    changed = False
    if 0 < i < rows - 1 and 0 < j < columns - 1:
        value = 0.25 * (old[i - 1, j] + old[i + 1, j] + old[i, j - 1] + old[i, j + 1] - source[i, j])
        changed = abs(value - old[i, j]) > tolerance
        new[i, j] = value
    elif i < rows and j < columns:
        new[i, j] = old[i, j]
    any_changed = st.sync_or(changed)
    if any_changed and st.thread.x == 0 and st.thread.y == 0:
        st.atomic_or(moved, 0, 1)


# ------------------------------------------------------------------ launches


def _field(n: int, block: object) -> Args:
    """Return a field with its upper half at rest."""
    old = np.broadcast_to(np.linspace(0, 1, n), (n, n)).copy()
    old[n // 2 :] = draw().random((n - n // 2, n))
    source = np.zeros((n, n))
    source[n // 2 :] = 0.01
    return {"old": old, "source": source, "new": np.zeros((n, n)), "moved": zeros(1, np.int32), "tolerance": 1e-6}


def _swept(args: Args) -> dict[str, Values]:
    old = args["old"]
    new = old.copy()
    around = old[:-2, 1:-1] + old[2:, 1:-1] + old[1:-1, :-2] + old[1:-1, 2:]
    new[1:-1, 1:-1] = 0.25 * (around - args["source"][1:-1, 1:-1])
    return {"new": new, "moved": np.array([(abs(new - old) > args["tolerance"]).any()])}


SHAPES = ((32, 8), (16, 16), (32, 4))

KERNELS = (
    ValidationKernel(jacobi_until, tiles, _field, _swept, (150, (16, 16)), (512, 2500), SHAPES),
)  # fmt: skip
