"""The prices of European options by the formula of Black and Scholes, a thread for each option."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import simtbed as st
from scipy.stats import norm

Floats = npt.NDArray[np.float32]
THREADS = 128


class Market(NamedTuple):
    """What all options share, for a year."""

    rate: st.f32
    volatility: st.f32


@st.kernel
def prices(
    spot: st.Global[st.f32],
    strike: st.Global[st.f32],
    years: st.Global[st.f32],
    calls: st.Global[st.f32],
    puts: st.Global[st.f32],
    market: Market,
) -> None:
    """The price of a call and of a put for each option."""
    i = st.block.x * THREADS + st.thread.x
    if i >= len(spot):
        return
    spread = market.volatility * st.sqrt(years[i])
    first = (st.log(spot[i] / strike[i]) + (market.rate + market.volatility**2 / 2) * years[i]) / spread
    second = first - spread
    discounted = strike[i] * st.exp(-market.rate * years[i])
    calls[i] = spot[i] * st.normcdf(first) - discounted * st.normcdf(second)
    puts[i] = discounted * st.normcdf(-second) - spot[i] * st.normcdf(-first)


def black_scholes(
    spot: Floats, strike: Floats, years: Floats, market: Market, launch: Callable[..., st.Result] = st.launch
) -> tuple[Floats, Floats]:
    """The prices of calls and puts."""
    count = len(spot)
    calls, puts = st.empty(count, st.f32), st.empty(count, st.f32)
    args = dict(spot=spot, strike=strike, years=years, calls=calls, puts=puts, market=market)
    result = launch(prices, grid=-(-count // THREADS), block=THREADS, args=args)
    return result.calls, result.puts


def check(launch: Callable[..., st.Result] = st.launch) -> None:
    """Raise AssertionError if the result differs from SciPy."""
    random = np.random.default_rng(20)
    ranges = ((5.0, 30.0), (1.0, 100.0), (0.25, 10.0))
    spot, strike, years = (random.uniform(low, high, 300).astype(np.float32) for low, high in ranges)
    market = Market(0.02, 0.3)
    calls, puts = black_scholes(spot, strike, years, market, launch)
    spread = 0.3 * np.sqrt(years)
    first = (np.log(spot / strike) + (0.02 + 0.045) * years) / spread
    discounted = strike * np.exp(-0.02 * years)
    expected = spot * norm.cdf(first) - discounted * norm.cdf(first - spread)
    np.testing.assert_allclose(calls, expected, rtol=1e-3, atol=1e-4)
    np.testing.assert_allclose(puts, expected + discounted - spot, rtol=1e-3, atol=1e-4)


if __name__ == "__main__":
    check()
