"""Forces between bodies: each block iterates over all bodies, one tile in shared memory at a time."""

from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import simtbed as st

Floats = npt.NDArray[np.float32]
THREADS = 64
SOFTENING = 0.01


@st.device
def attraction(here: st.float4, there: st.float4) -> tuple[st.f32, st.f32, st.f32]:
    """The acceleration of one body towards another of mass w."""
    x, y, z = there.x - here.x, there.y - here.y, there.z - here.z
    inverse = st.rsqrt(x * x + y * y + z * z + SOFTENING)
    pull = there.w * inverse**3
    return x * pull, y * pull, z * pull


@st.kernel
def accelerate(bodies: st.Global[st.float4], out: st.Global[st.f32]) -> None:
    """out[i] = the acceleration of body i, which is at x, y, z with the mass w."""
    tile = st.shared(st.float4, THREADS)
    i = st.block.x * THREADS + st.thread.x
    here = bodies[min(i, len(bodies) - 1)]
    x, y, z = 0.0, 0.0, 0.0
    for start in range(0, len(bodies), THREADS):
        if start + st.thread.x < len(bodies):
            tile[st.thread.x] = bodies[start + st.thread.x]
        st.sync()
        for k in range(min(THREADS, len(bodies) - start)):
            dx, dy, dz = attraction(here, tile[k])
            x += dx
            y += dy
            z += dz
        st.sync()
    if i < len(bodies):
        out[i, 0], out[i, 1], out[i, 2] = x, y, z


def accelerations(bodies: Floats, launch: Callable[..., st.Result] = st.launch) -> Floats:
    """The acceleration of each body. bodies: rows of x, y, z, mass."""
    args = dict(bodies=bodies, out=st.empty((len(bodies), 3), st.f32))
    output: Floats = launch(accelerate, grid=-(-len(bodies) // THREADS), block=THREADS, args=args).out
    return output


def check(launch: Callable[..., st.Result] = st.launch) -> None:
    """Raise AssertionError if the result differs from NumPy."""
    bodies = np.random.default_rng(14).random((150, 4), np.float32)
    offsets = bodies[None, :, :3] - bodies[:, None, :3]
    pull = bodies[:, 3] / ((offsets**2).sum(2) + SOFTENING) ** 1.5
    np.testing.assert_allclose(accelerations(bodies, launch), (offsets * pull[:, :, None]).sum(1), rtol=1e-3, atol=1e-2)


if __name__ == "__main__":
    check()
