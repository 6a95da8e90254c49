"""Heat that spreads over a plate: a five-point stencil, one launch per step on device arrays."""

import argparse

import numpy as np
import simtbed as st

BLOCK = (32, 8)


@st.kernel
def spread(old: st.Global[st.f32], new: st.Global[st.f32], width: st.i32, height: st.i32, rate: st.f32) -> None:
    """One step; the border keeps its heat."""
    x = st.block.x * st.block_dim.x + st.thread.x
    y = st.block.y * st.block_dim.y + st.thread.y
    if x < width and y < height:
        i = y * width + x
        heat = old[i]
        if x > 0 and x < width - 1 and y > 0 and y < height - 1:
            around = old[i - 1] + old[i + 1] + old[i - width] + old[i + width]
            heat += rate * (around - 4.0 * heat)
        new[i] = heat


def step(plate: np.ndarray, rate: np.float32) -> np.ndarray:
    new = plate.copy()
    around = plate[1:-1, :-2] + plate[1:-1, 2:] + plate[:-2, 1:-1] + plate[2:, 1:-1]
    new[1:-1, 1:-1] += rate * (around - 4 * plate[1:-1, 1:-1])
    return new


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--width", type=int, default=70)
    parser.add_argument("--height", type=int, default=50)
    parser.add_argument("--steps", type=int, default=4)
    options = parser.parse_args()
    plate = np.zeros((options.height, options.width), np.float32)
    plate[0] = 100
    rate = np.float32(0.2)
    now, then = st.DeviceArray(plate.ravel()), st.DeviceArray(plate.ravel())
    grid = (-(-options.width // BLOCK[0]), -(-options.height // BLOCK[1]))
    for _ in range(options.steps):
        args = dict(old=now, new=then, width=options.width, height=options.height, rate=rate)
        st.launch(spread, grid=grid, block=BLOCK, args=args)
        now, then, plate = then, now, step(plate, rate)
    np.testing.assert_allclose(now.numpy().reshape(plate.shape), plate, rtol=1e-5, atol=1e-5)
    print("after", options.steps, "steps the middle has", f"{plate.mean():.3f}", "on average")


if __name__ == "__main__":
    main()
