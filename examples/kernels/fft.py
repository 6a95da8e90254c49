"""The fast Fourier transform of rows, by Stockham passes between two buffers in shared memory."""

import math
from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import simtbed as st

Complex = npt.NDArray[np.complex64]


@st.kernel
def transform(x: st.Global[st.float2], out: st.Global[st.float2], WIDTH: st.Const) -> None:
    """out = the Fourier transform of each row of x. WIDTH: elements of a row, a power of two; a block has WIDTH / 2 threads."""
    source = st.shared(st.float2, WIDTH)
    target = st.shared(st.float2, WIDTH)
    t = st.thread.x
    source[t] = x[st.block.x, t]
    source[t + WIDTH // 2] = x[st.block.x, t + WIDTH // 2]
    done = 1
    while done < WIDTH:
        st.sync()
        k = t & (done - 1)
        a, b = source[t], source[t + WIDTH // 2]
        sine, cosine = st.sincos(-math.pi * st.f32(k) / st.f32(done))
        real, imaginary = b.x * cosine - b.y * sine, b.x * sine + b.y * cosine
        place = 2 * t - k
        target[place] = st.float2(a.x + real, a.y + imaginary)
        target[place + done] = st.float2(a.x - real, a.y - imaginary)
        source, target = target, source
        done *= 2
    st.sync()
    out[st.block.x, t] = source[t]
    out[st.block.x, t + WIDTH // 2] = source[t + WIDTH // 2]


def transformed(x: Complex, launch: Callable[..., st.Result] = st.launch) -> Complex:
    """The Fourier transform of each row."""
    rows, width = x.shape
    components = x.view(np.float32).reshape(rows, width, 2)
    args = dict(x=components, out=st.empty((rows, width), st.float2), WIDTH=width)
    out: npt.NDArray[np.float32] = launch(transform, grid=rows, block=width // 2, args=args).out
    return out.view(np.complex64)[:, :, 0]


def check(launch: Callable[..., st.Result] = st.launch) -> None:
    """Raise AssertionError if the result differs from NumPy."""
    real, imaginary = np.random.default_rng(13).standard_normal((2, 3, 256))
    x = (real + 1j * imaginary).astype(np.complex64)
    np.testing.assert_allclose(transformed(x, launch), np.fft.fft(x), rtol=1e-4, atol=1e-4)


if __name__ == "__main__":
    check()
