"""Signals: filters with and without memory, tones, wavelets, packed speech, prediction, least values of windows, resampling."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import simtbed as st
from simtbed import Const, Constant, Global, f32, f64, float2, i16, i32, u32

from .kernel import Args, ValidationKernel, Values, cover, draw, floats, ints, words, zeros

STEPS = (
    7, 8, 9, 10, 11, 12, 13, 14, 16, 17, 19, 21, 23, 25, 28, 31, 34, 37, 41, 45, 50, 55, 60, 66, 73, 80, 88, 97, 107, 118, 130,
    143, 157, 173, 190, 209, 230, 253, 279, 307, 337, 371, 408, 449, 494, 544, 598, 658, 724, 796, 876, 963, 1060, 1166, 1282,
    1411, 1552, 1707, 1878, 2066, 2272, 2499, 2749, 3024, 3327, 3660, 4026, 4428, 4871, 5358, 5894, 6484, 7132, 7845, 8630,
    9493, 10442, 11487, 12635, 13899, 15289, 16818, 18500, 20350, 22385, 24623, 27086, 29794, 32767,
)  # fmt: skip
HALF = math.sqrt(0.5)


class Section(NamedTuple):
    """Coefficients of a filter of second order: of inputs, then of outputs."""

    b0: f32
    b1: f32
    b2: f32
    a1: f32
    a2: f32


@st.kernel
def fir_decimate(x: Global[f32], taps: Constant[f32], out: Global[f32], n: i32, FACTOR: Const) -> None:
    """out = every FACTOR-th value of a filtered signal; the inputs of a block are copied to shared memory asynchronously."""
    count = len(taps)
    tile = st.dynamic_shared(f32)
    first = st.block.x * st.block_dim.x * FACTOR
    held = st.block_dim.x * FACTOR + count - FACTOR
    for k in range(st.thread.x, held, st.block_dim.x):
        if first + k < len(x):
            st.async_copy(tile, k, x, first + k)
        else:
            tile[k] = 0.0
    st.async_commit()
    st.async_wait(0)
    st.sync()
    i = st.block.x * st.block_dim.x + st.thread.x
    if i < n:
        total = 0.0
        for k in range(count):
            total += taps[k] * tile[st.thread.x * FACTOR + k]
        out[i] = total


@st.kernel
def iir_cascades(
    x: Global[f32], section: Global[Section], state: Global[float2], out: Global[f32], n: i32, length: i32, ORDER: Const
) -> None:
    """out = channels through ORDER filters one after another, a thread a channel; state = the filters' state."""
    channel = st.block.x * st.block_dim.x + st.thread.x
    if channel >= n:
        return
    one = st.registers(f32, ORDER)
    two = st.registers(f32, ORDER)
    for s in st.unroll(range(ORDER)):
        one[s], two[s] = state[s * n + channel]
    for k in range(length):
        value = x[k * n + channel]
        for s in st.unroll(range(ORDER)):
            by = section[s]
            filtered = by.b0 * value + one[s]
            one[s] = by.b1 * value - by.a1 * filtered + two[s]
            two[s] = by.b2 * value - by.a2 * filtered
            value = filtered
        out[k * n + channel] = value
    for s in st.unroll(range(ORDER)):
        state[s * n + channel] = float2(one[s], two[s])


@st.kernel
def goertzel_tones(x: Global[f32], turn: Global[f32], out: Global[f32], frames: i32, tones: i32, length: i32) -> None:
    """out = power of tones in frames, by Goertzel's recurrence; tones along x, frames along y."""
    tone = st.block.x * st.block_dim.x + st.thread.x
    frame = st.block.y * st.block_dim.y + st.thread.y
    if tone < tones and frame < frames:
        by = 2.0 * st.cos(turn[tone])
        before, last = 0.0, 0.0
        for k in range(length):
            before, last = last, x[frame * length + k] + by * last - before
        out[frame * tones + tone] = before * before + last * last - by * before * last


@st.kernel
def haar_levels(x: Global[f32], out: Global[f32], BLOCK: Const) -> None:
    """out = Haar's transform of signals of two values a thread, a block a signal: the mean first, the finest level last."""
    a = st.shared(f32, 2 * BLOCK)
    b = st.shared(f32, 2 * BLOCK)
    t = st.thread.x
    base = 2 * BLOCK * st.block.x
    a[t] = x[base + t]
    a[BLOCK + t] = x[base + BLOCK + t]
    st.sync()
    half = BLOCK
    while half >= 1:
        if t < half:
            left, right = a[2 * t], a[2 * t + 1]
            b[t] = (left + right) * HALF
            out[base + half + t] = (left - right) * HALF
        st.sync()
        a, b = b, a
        half //= 2
    if t == 0:
        out[base] = a[0]


@st.kernel
def adpcm_decode(packed: Global[u32], out: Global[i16], n: i32, length: i32) -> None:
    """out = speech of four bits a sample, the number of steps to the next value; a thread a channel."""
    steps = st.constant(i32, STEPS)
    change = st.constant(i32, (-1, -1, -1, -1, 2, 4, 6, 8))
    channel = st.block.x * st.block_dim.x + st.thread.x
    if channel >= n:
        return
    level, place = 0, 0
    for w in range(length):
        word = packed[w * n + channel]
        for k in range(8):
            code = i32(word >> (4 * k)) & 15
            step = steps[place]
            by = step >> 3
            if code & 4 != 0:
                by += step
            if code & 2 != 0:
                by += step >> 1
            if code & 1 != 0:
                by += step >> 2
            level = level - by if code & 8 != 0 else level + by
            level = max(-32768, min(32767, level))
            place = max(0, min(88, place + change[code & 7]))
            out[(8 * w + k) * n + channel] = i16(level)


@st.kernel
def predict_frames(x: Global[f32], out: Global[f32], LENGTH: Const, ORDER: Const) -> None:
    """out = coefficients that predict each frame: its products with itself, a warp a lag, then Levinson's recursion."""
    frame = st.shared(f32, LENGTH)
    r = st.shared(f32, ORDER + 1)
    for k in range(st.thread.x, LENGTH, st.block_dim.x):
        frame[k] = x[st.block.x * LENGTH + k]
    st.sync()
    for lag in range(st.warp, ORDER + 1, st.block_dim.x // 32):
        total = 0.0
        for k in range(lag + st.lane, LENGTH, 32):
            total += frame[k] * frame[k - lag]
        for step in (16, 8, 4, 2, 1):
            total += st.shuffle_xor(total, step)
        if st.lane == 0:
            r[lag] = total
    st.sync()
    if st.thread.x > 0:
        return
    a = st.local(f32, ORDER)
    error = r[0]
    for i in range(ORDER):
        rest = r[i + 1]
        for j in range(i):
            rest -= a[j] * r[i - j]
        part = rest / error
        for j in range(i // 2):
            a[j], a[i - 1 - j] = a[j] - part * a[i - 1 - j], a[i - 1 - j] - part * a[j]
        if i % 2 == 1:
            a[i // 2] -= part * a[i // 2]
        a[i] = part
        error *= 1.0 - part * part
    for i in range(ORDER):
        out[st.block.x * ORDER + i] = a[i]


@st.kernel
def window_minima(x: Global[i32], out: Global[i32], n: i32, WINDOW: Const, EACH: Const) -> None:
    """out = the least of the WINDOW values from each place on; a thread EACH places, with a queue of values that rise."""
    first = (st.block.x * st.block_dim.x + st.thread.x) * EACH
    if first >= n:
        return
    place = st.local(i32, WINDOW)
    value = st.local(i32, WINDOW)
    head, tail = 0, 0
    for i in range(first, min(first + EACH + WINDOW - 1, n)):
        own = x[i]
        while tail > head and value[(tail - 1) % WINDOW] >= own:
            tail -= 1
        place[tail % WINDOW] = i
        value[tail % WINDOW] = own
        tail += 1
        begin = i - WINDOW + 1
        if place[head % WINDOW] < begin:
            head += 1
        if begin >= first:
            out[begin] = value[head % WINDOW]


@st.kernel
def resample_cubic(x: Global[f32], out: Global[f32], n: i32, ratio: f64) -> None:
    """out = a signal at multiples of `ratio`, by cubics through four values; the ends are constant."""
    last = len(x) - 1
    for i in range(st.block.x * st.block_dim.x + st.thread.x, n, st.grid_dim.x * st.block_dim.x):
        where = f64(i) * ratio
        k = i32(st.floor(where))
        t = f32(where - f64(k))
        if k >= 1 and k + 2 <= last:
            a, b, c, d = x[k - 1], x[k], x[k + 1], x[k + 2]
        else:
            a, b, c, d = x[max(k - 1, 0)], x[min(k, last)], x[min(k + 1, last)], x[min(k + 2, last)]
        out[i] = b + 0.5 * t * (c - a + t * (2.0 * a - 5.0 * b + 4.0 * c - d + t * (3.0 * (b - c) + d - a)))


# ------------------------------------------------------------------ launches
TAPS, FACTOR = 60, 4


def _noise(n: int) -> Values:
    return draw().normal(0, 1, n).astype(np.float32)


def _decimated_input(n: int, block: int) -> Args:
    taps = (np.hanning(TAPS) / TAPS).astype(np.float32)
    return {"x": _noise(FACTOR * n), "taps": taps, "out": zeros(n), "n": n, "FACTOR": FACTOR}


def _decimated(args: Args) -> dict[str, Values]:
    padded = np.concatenate([args["x"], np.zeros(TAPS)])
    return {"out": np.correlate(padded, args["taps"].astype(float), "valid")[: len(args["x"]) : FACTOR]}


LENGTH, ORDER = 128, 4


def _channels(n: int, block: int) -> Args:
    section = np.zeros(ORDER, [(name, np.float32) for name in Section._fields])
    for k in range(ORDER):
        radius, angle = 0.7 + 0.05 * k, 0.4 + 0.5 * k
        section[k] = (0.5, 0.3 - 0.2 * k, 0.1, -2 * radius * math.cos(angle), radius * radius)
    return {
        "x": _noise(LENGTH * n), "section": section, "state": floats(ORDER * n, 2), "out": zeros(LENGTH * n), "n": n,
        "length": LENGTH, "ORDER": ORDER,
    }  # fmt: skip


def _filtered(args: Args) -> dict[str, Values]:
    out = args["x"].reshape(LENGTH, -1).astype(float)
    state = args["state"].reshape(ORDER, -1, 2).astype(float)
    for s, (b0, b1, b2, a1, a2) in enumerate(args["section"].tolist()):
        for k in range(LENGTH):
            value = out[k].copy()
            out[k] = b0 * value + state[s, :, 0]
            state[s, :, 0] = b1 * value - a1 * out[k] + state[s, :, 1]
            state[s, :, 1] = b2 * value - a2 * out[k]
    return {"out": out, "state": state}


TONES, SPAN = 24, 200


def _frames(n: int, block: object) -> Args:
    frequency = np.linspace(0.3, 2.8, TONES).astype(np.float32)
    x = _noise(n * SPAN) + np.sin(1.1 * np.arange(n * SPAN)).astype(np.float32)
    return {"x": x, "turn": frequency, "out": zeros(n * TONES), "frames": n, "tones": TONES, "length": SPAN}


def _powers(args: Args) -> dict[str, Values]:
    waves = np.exp(-1j * args["turn"].astype(float) * np.arange(SPAN)[:, None])
    return {"out": abs(args["x"].reshape(-1, SPAN) @ waves) ** 2}


def _haar(args: Args) -> dict[str, Values]:
    low, details = args["x"].reshape(-1, 2 * args["BLOCK"]).astype(float), []
    while low.shape[1] > 1:
        details.append((low[:, ::2] - low[:, 1::2]) * HALF)
        low = (low[:, ::2] + low[:, 1::2]) * HALF
    return {"out": np.concatenate([low, *details[::-1]], axis=1)}


SPEECH = 40


def _speech(n: int, block: int) -> Args:
    return {"packed": words(SPEECH * n), "out": zeros(8 * SPEECH * n, np.int16), "n": n, "length": SPEECH}


def _spoken(args: Args) -> dict[str, Values]:
    steps, change = np.array(STEPS), np.array([-1, -1, -1, -1, 2, 4, 6, 8])
    level, place = np.zeros((2, args["n"]), int)
    out = []
    for word in args["packed"].reshape(SPEECH, -1).astype(int):
        for k in range(8):
            code = word >> 4 * k & 15
            step = steps[place]
            difference = (step >> 3) + (code >> 2 & 1) * step + (code >> 1 & 1) * (step >> 1) + (code & 1) * (step >> 2)
            level = np.clip(level + np.where(code & 8, -difference, difference), -32768, 32767)
            place = np.clip(place + change[code & 7], 0, 88)
            out.append(level)
    return {"out": np.array(out, np.int16)}


VOICE, COEFFICIENTS = 240, 10


def _voice(n: int, block: int) -> Args:
    smooth = np.convolve(_noise(n * VOICE + 8), np.hanning(9), "valid").reshape(n, VOICE) * np.hamming(VOICE)
    noisy = smooth.astype(np.float32) + 0.3 * floats(n, VOICE)
    return {"x": noisy.ravel(), "out": zeros(n * COEFFICIENTS), "LENGTH": VOICE, "ORDER": COEFFICIENTS}


def _predicted(args: Args) -> dict[str, Values]:
    x = args["x"].reshape(-1, VOICE).astype(float)
    r = np.stack([(x[:, lag:] * x[:, : VOICE - lag]).sum(axis=1) for lag in range(COEFFICIENTS + 1)], axis=1)
    lags = abs(np.arange(COEFFICIENTS)[:, None] - np.arange(COEFFICIENTS))
    return {"out": np.linalg.solve(r[:, lags], r[:, 1:, None])}


WINDOW, PLACES_PER_THREAD = 16, 32


def _sliding(n: int, block: int) -> Args:
    return {
        "x": ints(n, 1000),
        "out": zeros(n - WINDOW + 1, np.int32),
        "n": n,
        "WINDOW": WINDOW,
        "EACH": PLACES_PER_THREAD,
    }


def _least(args: Args) -> dict[str, Values]:
    return {"out": np.lib.stride_tricks.sliding_window_view(args["x"], WINDOW).min(axis=1)}


def _slower(n: int, block: int) -> Args:
    return {"x": np.cumsum(_noise(n // 3)) / np.float32(100), "out": zeros(n), "n": n, "ratio": 0.31831}


def _resampled(args: Args) -> dict[str, Values]:
    x, position = args["x"].astype(float), np.arange(args["n"]) * args["ratio"]
    k = np.floor(position).astype(int)
    a, b, c, d = (x[np.clip(k + shift, 0, len(x) - 1)] for shift in (-1, 0, 1, 2))
    t = position - k
    return {"out": b + t / 2 * (c - a + t * (2 * a - 5 * b + 4 * c - d + t * (3 * (b - c) + d - a)))}


KERNELS = (
    ValidationKernel(
        fir_decimate, cover, _decimated_input, _decimated, (3000, 128), (1 << 16, 1 << 20), (64, 128, 512),
        shared=lambda n, b: 4 * (b * FACTOR + TAPS - FACTOR),
    ),
    ValidationKernel(iir_cascades, cover, _channels, _filtered, (1000, 64), (1 << 12, 1 << 16), (32, 64, 128), restored=("state",)),
    ValidationKernel(
        goertzel_tones, lambda n, b: (cover(TONES, b[0]), cover(n, b[1])), _frames, _powers, (200, (8, 16)), (1 << 11, 1 << 14),
        ((8, 8), (8, 32), (32, 4)),
    ),
    ValidationKernel(
        haar_levels, lambda n, b: n // (2 * b), lambda n, b: {"x": _noise(n), "out": zeros(n), "BLOCK": b}, _haar, (4096, 128),
        (1 << 18, 1 << 22), (64, 256, 1024),
    ),
    ValidationKernel(adpcm_decode, cover, _speech, _spoken, (1000, 64), (1 << 13, 1 << 16), (64, 256)),
    ValidationKernel(predict_frames, lambda n, b: n, _voice, _predicted, (32, 64), (1024, 8192), (32, 128, 256)),
    ValidationKernel(
        window_minima, lambda n, b: cover(n, PLACES_PER_THREAD * b), _sliding, _least, (1 << 16, 128), (1 << 18, 1 << 21), (64, 128),
    ),
    ValidationKernel(
        resample_cubic, lambda n, b: min(cover(n, b), 528), _slower, _resampled, (6000, 128), (1 << 18, 1 << 22), (128, 512),
    ),
)  # fmt: skip
