"""Fields: reactions with diffusion."""

from __future__ import annotations

import numpy as np
import simtbed as st
from simtbed import Global, double2, f64

from .kernel import Args, ValidationKernel, Values, cover, draw


@st.kernel
def reaction_diffusion(u: Global[f64], v: Global[f64], out: Global[double2], feed: f64, kill: f64) -> None:
    """out = both substances of Gray and Scott's model after a step on a torus; five points each."""
    x = st.block.x * st.block_dim.x + st.thread.x
    y = st.block.y * st.block_dim.y + st.thread.y
    high, wide = u.shape
    if x >= wide or y >= high:
        return
    west, east, north, south = (x + wide - 1) % wide, (x + 1) % wide, (y + high - 1) % high, (y + 1) % high
    a, b = u[y, x], v[y, x]
    spread_a = u[y, west] + u[y, east] + u[north, x] + u[south, x] - 4.0 * a
    spread_b = v[y, west] + v[y, east] + v[north, x] + v[south, x] - 4.0 * b
    both = a * b * b
    out[y, x] = double2(a + 0.16 * spread_a - both + feed * (1.0 - a), b + 0.08 * spread_b + both - (feed + kill) * b)


# ------------------------------------------------------------------ launches


def _substances(n: int, block: object) -> Args:
    u, v = draw().random((2, n, n + 16))
    return {"u": u.copy(), "v": v.copy(), "out": np.zeros((n, n + 16, 2)), "feed": 0.035, "kill": 0.065}


def _reacted(args: Args) -> dict[str, Values]:
    u, v = args["u"], args["v"]
    spread = [sum(np.roll(x, by, axis) for by in (1, -1) for axis in (0, 1)) - 4 * x for x in (u, v)]
    both, feed, kill = u * v * v, args["feed"], args["kill"]
    return {
        "out": np.stack([u + 0.16 * spread[0] - both + feed * (1 - u), v + 0.08 * spread[1] + both - (feed + kill) * v], axis=2)
    }  # fmt: skip


KERNELS = (
    ValidationKernel(
        reaction_diffusion, lambda n, b: (cover(n + 16, b[0]), cover(n, b[1])), _substances, _reacted, (48, (16, 8)), (256, 1024),
        ((16, 8), (32, 8), (64, 4)),
    ),
)  # fmt: skip
