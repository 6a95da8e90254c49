"""The price of an option by Monte Carlo: each thread samples paths from its own random numbers and averages their payoffs."""

import math
from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import simtbed as st
from scipy.stats import norm

BLOCKS, THREADS, PATHS = 8, 128, 64
SPOT, STRIKE, RATE, VOLATILITY = 100.0, 105.0, 0.05, 0.2


@st.device
def mixed(x: st.u32) -> st.u32:
    """A hash of 32 bits: multiplications and shifts."""
    x = (x ^ (x >> 16)) * 0x7FEB352D
    x = (x ^ (x >> 15)) * 0x846CA68B
    return x ^ (x >> 16)


@st.device
def uniform(x: st.u32) -> st.f32:
    """The upper 24 bits as a number above 0, up to 1."""
    return (st.f32(x >> 8) + 1.0) / 16777216.0


@st.device
def payoff(normal: st.f32) -> st.f32:
    """Return the payoff of a call after a year, for a change of the log price by `normal` standard deviations."""
    price = SPOT * st.exp(RATE - VOLATILITY**2 / 2 + VOLATILITY * normal)
    return max(price - STRIKE, 0.0)


@st.kernel
def mean_payoffs(out: st.Global[st.f32], seed: st.u32) -> None:
    """out[i] = the mean over 2 PATHS paths of thread i, two from each pair of random numbers (Box and Muller)."""
    i = st.block.x * THREADS + st.thread.x
    total = 0.0
    for path in range(PATHS):
        counter = st.u32(2 * (i * PATHS + path))
        radius = st.sqrt(-2.0 * st.log(uniform(mixed(counter ^ seed))))
        sine, cosine = st.sincos(2.0 * math.pi * uniform(mixed((counter + 1) ^ seed)))
        total += payoff(radius * sine) + payoff(radius * cosine)
    out[i] = total / (2.0 * PATHS)


def call_price(seed: int, launch: Callable[..., st.Result] = st.launch) -> float:
    """The discounted mean over all threads."""
    args = dict(out=st.empty(BLOCKS * THREADS, st.f32), seed=seed)
    means: npt.NDArray[np.float32] = launch(mean_payoffs, grid=BLOCKS, block=THREADS, args=args).out
    return math.exp(-RATE) * float(means.mean(dtype=np.float64))


def check(launch: Callable[..., st.Result] = st.launch) -> None:
    """Raise AssertionError if the result is far from the formula of Black and Scholes."""
    first = (math.log(SPOT / STRIKE) + RATE + VOLATILITY**2 / 2) / VOLATILITY
    expected = SPOT * norm.cdf(first) - STRIKE * math.exp(-RATE) * norm.cdf(first - VOLATILITY)
    np.testing.assert_allclose(call_price(1, launch), expected, rtol=0.02)


if __name__ == "__main__":
    check()
