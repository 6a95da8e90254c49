"""The Mandelbrot set as text: launches in methods of a class, and settings from stdin by default."""

import sys

import numpy as np
import simtbed as st


@st.kernel
def escape(out: st.Global[st.i32], width: st.i32, height: st.i32, most: st.i32, scale: st.f32) -> None:
    """out[pixel] = steps until the orbit of its point leaves the disc of radius 2, at most `most`."""
    x = st.block.x * st.block_dim.x + st.thread.x
    y = st.block.y * st.block_dim.y + st.thread.y
    if x >= width or y >= height:
        return
    cr = scale * (st.f32(x) / st.f32(width) - 0.75)
    ci = scale * (st.f32(y) / st.f32(height) - 0.5)
    zr, zi = st.f32(0), st.f32(0)
    steps = 0
    while steps < most and zr * zr + zi * zi <= 4.0:
        zr, zi = zr * zr - zi * zi + cr, 2.0 * zr * zi + ci
        steps += 1
    out[y * width + x] = steps


class Picture:
    """The set at one size."""

    def __init__(self, width: int, height: int, most: int) -> None:
        grid = (-(-width // 16), -(-height // 16))
        args = dict(out=st.empty(width * height, st.i32), width=width, height=height, most=most, scale=3.0)
        self.steps = st.launch(escape, grid=grid, block=(16, 16), args=args).out.reshape(height, width)
        self.most = most

    def __str__(self) -> str:
        shades = np.array(list(" .:-=+*#%@"))
        return "\n".join("".join(row) for row in shades[self.steps * 9 // self.most])


def main() -> None:
    words = sys.argv[1:] or ([] if sys.stdin.isatty() else sys.stdin.read().split())
    width, height, most = map(int, words) if words else (64, 24, 50)
    picture = Picture(width, height, most)
    assert (picture.steps[height // 2, width // 2 : 3 * width // 4] == most).all()
    print(picture)


if __name__ == "__main__":
    main()
