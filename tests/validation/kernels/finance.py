"""Finance: options by simulation and by lattices, yields of bonds."""

from __future__ import annotations

import math

import numpy as np
import simtbed as st
from simtbed import Const, Global, f32, f64, i32, u32

from .kernel import Args, ValidationKernel, Values, cover, draw, floats, round_off, zeros

PHILOX_A, PHILOX_B = 0xD2511F53, 0xCD9E8D57
WEYL_A, WEYL_B = 0x9E3779B9, 0xBB67AE85
CALL, PUT = 0, 1


@st.device
def philox(a: u32, b: u32, c: u32, key: u32) -> tuple[u32, u32, u32, u32]:
    """Four random words from a counter and a key, by the ten rounds of Philox 4x32."""
    d = u32(0)
    first, second = key, u32(0)
    for _ in st.unroll(range(10)):
        high_a, low_a = st.mulhi(u32(PHILOX_A), a), u32(PHILOX_A) * a
        high_b, low_b = st.mulhi(u32(PHILOX_B), c), u32(PHILOX_B) * c
        a, b, c, d = high_b ^ b ^ first, low_b, high_a ^ d ^ second, low_a
        first += u32(WEYL_A)
        second += u32(WEYL_B)
    return a, b, c, d


@st.device
def box_muller(a: u32, b: u32) -> tuple[f32, f32]:
    """Two normal numbers from two random words."""
    u = (f32(a >> 9) + 0.5) * (1.0 / 8388608.0)
    v = (f32(b >> 9) + 0.5) * (1.0 / 8388608.0)
    radius = st.sqrt(-2.0 * st.log(u))
    s, c = st.sincos(2.0 * math.pi * v)
    return radius * c, radius * s


@st.device
def block_total(value: f32, partial: st.Shared[f32]) -> f32:
    """The sum over the block, in thread 0; partial has an element for each warp."""
    for step in (16, 8, 4, 2, 1):
        value += st.shuffle_down(value, step)
    if st.lane == 0:
        partial[st.warp] = value
    st.sync()
    if st.warp == 0:
        value = partial[st.lane] if st.lane < st.block_dim.x // 32 else 0.0
        for step in (16, 8, 4, 2, 1):
            value += st.shuffle_down(value, step)
    st.sync()
    return value


@st.kernel
def barrier_options(
    spot: Global[f32], strike: Global[f32], barrier: Global[f32], mean: Global[f32], error: Global[f32], paths: i32,
    STEPS: Const, rate: f32, volatility: f32, years: f32, seed: u32,
) -> None:  # fmt: skip
    """mean and error = value of down-and-out calls by simulation, a block an option; w is the surviving weight between steps."""
    partial = st.shared(f32, 32)
    option = st.block.x
    low, goal = barrier[option], strike[option]
    begin = st.log(spot[option] / low)
    dt = years / STEPS
    drift = (rate - 0.5 * volatility * volatility) * dt
    spread = volatility * st.sqrt(dt)
    across = -2.0 / (volatility * volatility * dt)
    total, squares = 0.0, 0.0
    z = st.registers(f32, 4)
    for path in range(st.thread.x, paths, st.block_dim.x):
        x, alive = begin, 1.0
        for quarter in range(STEPS // 4):
            r0, r1, r2, r3 = philox(u32(path), u32(quarter), u32(option), seed)
            z[0], z[1] = box_muller(r0, r1)
            z[2], z[3] = box_muller(r2, r3)
            for k in st.unroll(range(4)):
                new = x + drift + spread * z[k]
                alive = alive * (1.0 - st.exp(across * x * new)) if x > 0.0 and new > 0.0 else 0.0
                x = new
            if alive == 0.0:
                break
        pays = alive * max(low * st.exp(x) - goal, 0.0) if alive > 0.0 else 0.0
        total += pays
        squares += pays * pays
    total = block_total(total, partial)
    squares = block_total(squares, partial)
    if st.thread.x == 0:
        discount = st.exp(-rate * years)
        average = total / f32(paths)
        mean[option] = discount * average
        error[option] = discount * st.sqrt(max(squares / f32(paths) - average * average, 0.0) / f32(paths))


@st.kernel
def trinomial_options(
    spot: Global[f32],
    strike: Global[f32],
    kind: Global[i32],
    out: Global[f32],
    STEPS: Const,
    rate: f32,
    volatility: f32,
    years: f32,
) -> None:
    """out = American calls and puts, a block an option: a trinomial lattice from the leaves to the root, in two buffers."""
    exercise = st.shared(f32, 2 * STEPS + 1)
    old = st.shared(f32, 2 * STEPS + 1)
    new = st.shared(f32, 2 * STEPS + 1)
    option = st.block.x
    dt = years / STEPS
    move = volatility * st.sqrt(2.0 * dt)
    grow, rise, fall = st.exp(0.5 * rate * dt), st.exp(0.5 * move), st.exp(-0.5 * move)
    chance_up = ((grow - fall) / (rise - fall)) ** 2
    chance_down = ((rise - grow) / (rise - fall)) ** 2
    discount = st.exp(-rate * dt)
    up, down = discount * chance_up, discount * chance_down
    stay = discount * (1.0 - chance_up - chance_down)
    s, x = spot[option], strike[option]
    for k in range(st.thread.x, 2 * STEPS + 1, st.block_dim.x):
        price = s * st.exp(move * f32(k - STEPS))
        pays = price - x if kind[option] == CALL else x - price
        exercise[k] = pays
        old[k] = max(pays, 0.0)
    st.sync()
    for step in range(1, STEPS + 1):
        for k in range(step + st.thread.x, 2 * STEPS + 1 - step, st.block_dim.x):
            kept = down * old[k - 1] + stay * old[k] + up * old[k + 1]
            new[k] = max(kept, exercise[k])
        st.sync()
        old, new = new, old
    if st.thread.x == 0:
        out[option] = old[STEPS]


@st.kernel
def bond_yields(
    price: Global[f64], coupon: Global[f64], wait: Global[f64], payments: Global[i32], yields: Global[f64],
    duration: Global[f64], n: i32, most: i32, close: f64,
) -> None:  # fmt: skip
    """yields and duration of bonds by Newton's method, a thread a bond; wait is the fraction of a period until the next coupon."""
    i = st.block.x * st.block_dim.x + st.thread.x
    if i >= n:
        return
    paid, first, count = coupon[i], wait[i], payments[i]
    worth_now = price[i]
    rate = paid / 100.0
    turn, sensitive = 0, 0.0
    step = 1.0
    while abs(step) > close and turn < most:
        factor = 1.0 / (1.0 + rate)
        discount = st.pow(factor, first)
        worth, slope = 0.0, 0.0
        time = first
        for k in range(count):
            flow = paid + 100.0 if k == count - 1 else paid
            worth += flow * discount
            slope -= time * flow * discount
            discount *= factor
            time += 1.0
        slope *= factor
        step = (worth - worth_now) / slope
        rate -= step
        sensitive = -slope / worth
        turn += 1
    yields[i] = rate
    duration[i] = sensitive


# ------------------------------------------------------------------ launches
def _barriers(n: int, block: int) -> Args:
    spot, strike, barrier = floats(3, n)
    return {
        "spot": 95 + 10 * spot, "strike": 90 + 20 * strike, "barrier": 75 + 15 * barrier, "mean": zeros(n), "error": zeros(n),
        "paths": 1024, "STEPS": 32, "rate": 0.03, "volatility": 0.25, "years": 1.0, "seed": 2024,
    }  # fmt: skip


def _words(a: Values, b: Values, c: Values, key: int) -> list[Values]:
    """Philox's four words."""
    a, b, c = (np.broadcast_to(x, np.broadcast_shapes(a.shape, b.shape, c.shape)).astype(np.uint64) for x in (a, b, c))
    d = np.zeros_like(a)
    first, second, low = key, 0, np.uint64(0xFFFFFFFF)
    for _ in range(10):
        left, right = a * np.uint64(PHILOX_A), c * np.uint64(PHILOX_B)
        a, b, c, d = (
            (right >> np.uint64(32)) ^ b ^ np.uint64(first),
            right & low,
            (left >> np.uint64(32)) ^ d ^ np.uint64(second),
            left & low,
        )
        first, second = (first + WEYL_A) % 2**32, (second + WEYL_B) % 2**32
    return [a, b, c, d]


def _survived(args: Args) -> dict[str, Values]:
    n, paths, steps = len(args["spot"]), args["paths"], args["STEPS"]
    dt, volatility, rate = args["years"] / args["STEPS"], args["volatility"], args["rate"]
    drift, spread, across = (rate - volatility**2 / 2) * dt, volatility * dt**0.5, -2 / (volatility**2 * dt)
    low, goal = (args[name][:, None].astype(np.float64) for name in ("barrier", "strike"))
    x = np.repeat(np.log(args["spot"][:, None] / low), paths, axis=1)
    alive = np.ones_like(x)
    for quarter in range(steps // 4):
        got = _words(np.arange(paths)[None, :], np.array([[quarter]]), np.arange(n)[:, None], args["seed"])
        uniform = [((word >> np.uint64(9)) + 0.5) / 2**23 for word in got]
        for u, v in (uniform[:2], uniform[2:]):
            radius = np.sqrt(-2 * np.log(u))
            for z in (radius * np.cos(2 * np.pi * v), radius * np.sin(2 * np.pi * v)):
                new = x + drift + spread * z
                alive *= 1 - np.exp(across * np.maximum(x, 0) * np.maximum(new, 0))
                x = new
    pays = alive * np.maximum(low * np.exp(x) - goal, 0)
    discount = np.exp(-rate * args["years"])
    return {"mean": discount * pays.mean(axis=1), "error": discount * pays.std(axis=1) / paths**0.5}


def _american(n: int, block: int) -> Args:
    spot, strike = floats(2, n) * 40 + 80
    return {
        "spot": spot, "strike": strike, "kind": draw().integers(0, 2, n, dtype=np.int32), "out": zeros(n), "STEPS": 200,
        "rate": 0.05, "volatility": 0.3, "years": 1.0,
    }  # fmt: skip


def _folded(args: Args) -> dict[str, Values]:
    steps, rate = args["STEPS"], args["rate"]
    dt = args["years"] / steps
    move = args["volatility"] * math.sqrt(2 * dt)
    grow, rise, fall = math.exp(rate * dt / 2), math.exp(move / 2), math.exp(-move / 2)
    up, down = ((grow - fall) / (rise - fall)) ** 2, ((rise - grow) / (rise - fall)) ** 2
    sign = np.where(args["kind"] == CALL, 1, -1)[:, None]
    spot, strike = args["spot"][:, None].astype(np.float64), args["strike"][:, None].astype(np.float64)
    exercise = sign * (spot * np.exp(move * np.arange(-steps, steps + 1)) - strike)
    values = np.maximum(exercise, 0)
    for step in range(1, steps + 1):
        continuation = down * values[:, :-2] + (1 - up - down) * values[:, 1:-1] + up * values[:, 2:]
        values = np.maximum(math.exp(-rate * dt) * continuation, exercise[:, step : 2 * steps + 1 - step])
    return {"out": values.ravel()}


def _worth(rate: Values, args: Args) -> tuple[Values, Values]:
    """Prices of the bonds at a rate, and their slopes."""
    worth, slope = np.zeros_like(rate), np.zeros_like(rate)
    for k in range(int(args["payments"].max())):
        flow = (args["coupon"] + np.where(k == args["payments"] - 1, 100, 0)) * (k < args["payments"])
        time = args["wait"] + k
        worth += flow * (1 + rate) ** -time
        slope -= time * flow * (1 + rate) ** (-time - 1)
    return worth, slope


def _bonds(n: int, block: int) -> Args:
    random = draw()
    args = {
        "coupon": random.integers(1, 9, n) / 2, "wait": random.random(n), "payments": random.integers(1, 41, n).astype(np.int32),
        "yields": zeros(n, np.float64), "duration": zeros(n, np.float64), "n": n, "most": 50, "close": 1e-9,
    }  # fmt: skip
    return {"price": round_off(_worth(0.005 + 0.04 * random.random(n), args)[0]), **args}


def _yielded(args: Args) -> dict[str, Values]:
    rate = args["coupon"] / 100
    for _ in range(8):
        worth, slope = _worth(rate, args)
        rate = rate - (worth - args["price"]) / slope
    worth, slope = _worth(rate, args)
    return {"yields": rate, "duration": -slope / worth}


KERNELS = (
    ValidationKernel(barrier_options, lambda n, b: n, _barriers, _survived, (64, 128), (132, 528), (64, 128, 256)),
    ValidationKernel(trinomial_options, lambda n, b: n, _american, _folded, (64, 128), (264, 2112), (64, 128, 256)),
    ValidationKernel(bond_yields, cover, _bonds, _yielded, (8000, 128), (1 << 15, 1 << 18), (64, 128, 512)),
)  # fmt: skip
