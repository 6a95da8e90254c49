"""Signals: a filter with memory, packed speech, resampling."""

from __future__ import annotations

import numpy as np
import simtbed as st
from simtbed import Const, Constant, Global, f32, f64, i16, i32, u32

from .kernel import Args, ValidationKernel, Values, cover, draw, words, zeros

STEPS = (
    7, 8, 9, 10, 11, 12, 13, 14, 16, 17, 19, 21, 23, 25, 28, 31, 34, 37, 41, 45, 50, 55, 60, 66, 73, 80, 88, 97, 107, 118, 130,
    143, 157, 173, 190, 209, 230, 253, 279, 307, 337, 371, 408, 449, 494, 544, 598, 658, 724, 796, 876, 963, 1060, 1166, 1282,
    1411, 1552, 1707, 1878, 2066, 2272, 2499, 2749, 3024, 3327, 3660, 4026, 4428, 4871, 5358, 5894, 6484, 7132, 7845, 8630,
    9493, 10442, 11487, 12635, 13899, 15289, 16818, 18500, 20350, 22385, 24623, 27086, 29794, 32767,
)  # fmt: skip


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
    ValidationKernel(adpcm_decode, cover, _speech, _spoken, (1000, 64), (1 << 13, 1 << 16), (64, 256)),
    ValidationKernel(
        resample_cubic, lambda n, b: min(cover(n, b), 528), _slower, _resampled, (6000, 128), (1 << 18, 1 << 22), (128, 512),
    ),
)  # fmt: skip
