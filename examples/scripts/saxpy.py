"""y = a * x + y, with a grid-stride loop."""

import argparse

import numpy as np
import simtbed as st


@st.kernel
def saxpy(a: st.f32, x: st.Global[st.f32], y: st.Global[st.f32], n: st.i32) -> None:
    """y[i] += a * x[i], for elements with the stride of the grid."""
    i = st.block.x * st.block_dim.x + st.thread.x
    while i < n:
        y[i] = st.fma(a, x[i], y[i])
        i += st.grid_dim.x * st.block_dim.x


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--n", type=int, default=1 << 14)
    parser.add_argument("--a", type=float, default=2.0)
    parser.add_argument("--repeat", type=int, default=1)
    options = parser.parse_args()
    x = np.arange(options.n, dtype=np.float32)
    y = np.ones(options.n, np.float32)
    for _ in range(options.repeat):
        result = st.launch(saxpy, grid=32, block=128, args=dict(a=options.a, x=x, y=y, n=options.n))
    assert np.allclose(result.y, np.float32(options.a) * x + y)
    print("saxpy of", options.n, "elements is right")


if __name__ == "__main__":
    main()
