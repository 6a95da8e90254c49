"""Kernels that measure one figure of a GPU each, and how the figure follows from what they took.

Chains are of operations that wait for each other, timed with the SM's own counter by one warp. Rates are of launches that
fill the GPU, timed as a whole. Each kernel's outputs are known, so that an emulator can hold it to them.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import simtbed as st
from simtbed import Const, Device, Global, Kernel, f32, f64, i32, i64

TURNS, STEPS = 64, 16
"""Iterations of a chain, and operations that each of them has."""
HOPS = 4096
LINES = 64
SEED = 20

Values = npt.NDArray[Any]


@dataclass(frozen=True)
class Taken:
    """What a launch gave: its written arrays, and milliseconds, 0 where nobody measured them."""

    arrays: Mapping[str, Values]
    milliseconds: float


Run = Callable[[Kernel, int, int, Mapping[str, Any]], Taken]
"""Launches a kernel on a grid of blocks: (kernel, grid, block, arguments). Arrays stay from launch to launch on the GPU."""


# ------------------------------------------------------------------ kernels
@st.kernel
def empty(out: Global[i32]) -> None:
    """Nothing but one store."""
    if st.block.x == 0 and st.thread.x == 0:
        out[0] = 1


@st.kernel
def spin(out: Global[i64], TURNS: Const) -> None:
    """A long chain: cycles for comparison with the time of the launch."""
    start = st.clock64()
    x = f32(1)
    for _ in range(TURNS):
        x = x * f32(0.5) + f32(1)
    end = st.clock64()
    out[0] = end - start
    out[1] = i64(x)


@st.kernel
def float_chain(out: Global[i64], x: f32, TURNS: Const, STEPS: Const) -> None:
    """STEPS sums a turn. x is 0."""
    y = x
    start = st.clock64()
    for _ in range(TURNS):
        for _step in st.unroll(range(STEPS)):
            y = y + x
    end = st.clock64()
    if st.thread.x == 0:
        out[0] = end - start
        out[1] = i64(y)


@st.kernel
def double_chain(out: Global[i64], x: f64, TURNS: Const, STEPS: Const) -> None:
    """STEPS sums a turn. x is 0."""
    y = x
    start = st.clock64()
    for _ in range(TURNS):
        for _step in st.unroll(range(STEPS)):
            y = y + x
    end = st.clock64()
    if st.thread.x == 0:
        out[0] = end - start
        out[1] = i64(y)


@st.kernel
def shuffle_chain(out: Global[i64], TURNS: Const, STEPS: Const) -> None:
    """STEPS shuffles a turn."""
    y = st.thread.x
    start = st.clock64()
    for _ in range(TURNS):
        for _step in st.unroll(range(STEPS)):
            y = st.shuffle_xor(y, 1)
    end = st.clock64()
    if st.thread.x == 0:
        out[0] = end - start
        out[1] = i64(y)


@st.kernel
def barriers(out: Global[i64], TURNS: Const) -> None:
    """Nothing but barriers."""
    start = st.clock64()
    for _ in range(TURNS):
        st.sync()
    end = st.clock64()
    if st.thread.x == 0:
        out[0] = end - start


@st.kernel
def shared_chase(next: Global[i32], out: Global[i64], HOPS: Const) -> None:
    """A cycle of 32 words in shared memory."""
    held = st.shared(i32, 32)
    held[st.thread.x] = next[st.thread.x]
    st.sync()
    if st.thread.x == 0:
        at = 0
        start = st.clock64()
        for _ in range(HOPS):
            at = held[at]
        end = st.clock64()
        out[0] = end - start
        out[1] = i64(at)


@st.kernel
def chase(next: Global[i32], out: Global[i64], WARM: Const, HOPS: Const) -> None:
    """A cycle through global memory by one thread: WARM hops that are not timed, then HOPS."""
    at = 0
    for _ in range(WARM):
        at = next[at]
    start = st.clock64()
    for _ in range(HOPS):
        at = next[at]
    end = st.clock64()
    out[0] = end - start
    out[1] = i64(at)


@st.kernel
def atomic_lines(x: Global[i32], out: Global[i64], LINES: Const, HOPS: Const) -> None:
    """Of each line a chain of atomic operations, which L1 does not answer. x[32 * line] is 32 * line."""
    for line in range(LINES):
        at = 32 * line
        start = st.clock64()
        for _ in range(HOPS):
            at = st.atomic_add(x, at, 0)
        end = st.clock64()
        out[line] = end - start
        out[LINES] = i64(at)


@st.kernel
def copy(x: Global[f32], out: Global[f32]) -> None:
    """out = x."""
    i = st.block.x * st.block_dim.x + st.thread.x
    out[i] = x[i]


@st.kernel
def read_again(x: Global[f32], out: Global[f32], N: Const, TIMES: Const) -> None:
    """Every block reads the N numbers TIMES times, each from a place of its own on; out holds the sums of each thread.
    N is a power of two."""
    total = f32(0)
    first = st.block.x * 4096
    for _ in range(TIMES):
        for i in range(st.thread.x, N, st.block_dim.x):
            total += x[(first + i) & (N - 1)]
    out[st.block.x * st.block_dim.x + st.thread.x] = total


@st.kernel
def one_address(out: Global[i32]) -> None:
    """All lanes of all blocks add 1 to one number."""
    st.atomic_add(out, 0, 1)


# ------------------------------------------------------------------ figures
def cycle(words: int, stride: int) -> npt.NDArray[np.int32]:
    """An array of which every `stride`-th element names the next of one cycle through all of them, in an order as drawn."""
    order = np.random.default_rng(SEED).permutation(words // stride) * stride
    next = np.zeros(words, np.int32)
    next[order] = np.roll(order, -1)
    return next


def _chain(run: Run, kernel: Kernel, **args: Any) -> float:
    taken = run(kernel, 1, 32, {"out": np.zeros(2, np.int64), **args, "TURNS": TURNS, "STEPS": STEPS})
    return float(taken.arrays["out"][0]) / (TURNS * STEPS)


def _chased(run: Run, words: int, warm: int, hops: int = HOPS) -> float:
    args = {"next": cycle(words, 32), "out": np.zeros(2, np.int64), "WARM": warm, "HOPS": hops}
    return float(run(chase, 1, 1, args).arrays["out"][0]) / hops


def _halves(run: Run) -> tuple[float, float]:
    """Cycles of an atomic operation on lines of the nearer and of the farther half of L2."""
    x = np.zeros(32 * LINES, np.int32)
    x[::32] = 32 * np.arange(LINES)
    args = {"x": x, "out": np.zeros(LINES + 1, np.int64), "LINES": LINES, "HOPS": 64}
    found = np.sort(run(atomic_lines, 1, 1, args).arrays["out"][:LINES]) / 64
    return float(np.median(found[: LINES // 2])), float(np.median(found[LINES // 2 :]))


def _median(run: Run, kernel: Kernel, grid: int, block: int, args: Mapping[str, Any], times: int = 9) -> float:
    """Milliseconds of a launch after one that is not counted."""
    run(kernel, grid, block, args)
    return statistics.median(run(kernel, grid, block, args).milliseconds for _ in range(times))


def measure(device: Device, run: Run, scale: int = 1) -> dict[str, int | float]:
    """Fields of the device's timing, each measured; clock: MHz. scale: what sizes of launches are divided by, for emulators.

    The others keep their figures: estimates of instructions that no kernel here measures.
    """
    spun = run(spin, 1, 1, {"out": np.zeros(2, np.int64), "TURNS": 1_000_000 // scale})
    clock = float(spun.arrays["out"][0]) / max(spun.milliseconds, 1e-9) / 1000
    cycles = clock * 1000  # a millisecond's
    nothing = _median(run, empty, 1, 32, {"out": np.zeros(1, np.int32)}, 25)
    alu = round(_chain(run, float_chain, x=0.0))  # of an address too, which every hop computes
    near, far = _halves(run)
    between = _chased(run, device.l2 // 16 // 4 // scale, warm=device.l2 // 16 // 128 // scale)
    beyond = _chased(run, 4 * device.l2 // 4 // scale, warm=0)
    turned = run(barriers, 1, 256, {"out": np.zeros(1, np.int64), "TURNS": TURNS}).arrays["out"][0] / TURNS
    held = {"next": cycle(32, 1), "out": np.zeros(2, np.int64), "HOPS": HOPS}
    n = (1 << 28) // scale
    big = {"x": np.ones(n, np.float32), "out": np.zeros(n, np.float32)}
    copied = _median(run, copy, n // 256, 256, big) - nothing
    blocks = device.sms * 8
    small: dict[str, Any] = {
        "x": np.ones(1 << 12, np.float32),
        "out": np.zeros(blocks * 256, np.float32),
        "N": 1 << 12,
        "TIMES": max(1, 256 // scale),
    }
    middle: dict[str, Any] = {**small, "x": np.ones(1 << 22, np.float32), "N": (1 << 22) // scale, "TIMES": 1}
    from_l1 = _median(run, read_again, blocks, 256, small) - nothing
    from_l2 = _median(run, read_again, blocks, 256, middle) - nothing
    lone = _median(run, read_again, 8, 256, middle) - nothing
    operations = (1 << 22) // scale
    added = _median(run, one_address, operations // 256, 256, {"out": np.zeros(1, np.int32)}) - nothing
    l1_bytes = blocks * 4.0 * small["N"] * small["TIMES"]
    l2_bytes = blocks * 4.0 * middle["N"]
    return {
        "clock": round(clock),
        "alu": alu,
        "fp64": round(_chain(run, double_chain, x=0.0)),
        "shuffle": round(_chain(run, shuffle_chain)),
        "barrier": round(float(turned)),
        "shared": round(float(run(shared_chase, 1, 32, held).arrays["out"][0]) / HOPS) - alu,
        "l1": round(_chased(run, 1 << 12, warm=128)) - alu,
        "l2": round(between - (far - near) / 2) - alu,
        "l2_far": round(between + (far - near) / 2) - alu,
        "dram": round(beyond) - alu,
        "atomic": round((near + far) / 2) - alu,
        "atomic_interval": max(1, round(added * cycles / operations)),
        "l1_width": max(1, round(l1_bytes / device.sms / (from_l1 * cycles)))
        if from_l1 > 0
        else device.timing.l1_width,
        "l2_width": max(1, round(4.0 * middle["N"] / (lone * cycles))) if lone > 0 else device.timing.l2_width,
        "l2_bandwidth": round(l2_bytes / from_l2 / 1e6, 1) if from_l2 > 0 else device.timing.l2_bandwidth,
        "dram_share": min(1000, round(8.0 * n / copied / 1e6 / device.bandwidth * 1000))
        if copied > 0
        else device.timing.dram_share,
        "launch": max(1, round(1e6 * nothing)),
    }
