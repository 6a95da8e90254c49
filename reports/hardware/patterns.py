"""Launches of loads with random lane patterns: L1 cycles of hits, and cycles of the SM port to L2."""

from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
import simtbed as st
from simtbed import Kernel

from .launches import Timed
from .single_accesses import lanes

SMS = 132
SEED, PATTERNS_PER_WIDTH = 7, 60
"""Patterns of each width."""
AROUND = 1024
"""Lines below a pattern."""
FILLED = 1 << 24
"""Bytes of the loads from L2: more than the L1 caches of all SMs without sharing, less than half of L2."""
STEPS = 16
LAST = 16
"""SMs that load from L2 at once: few, so that their ports are the bottleneck, not L2."""


# ------------------------------------------------------------------ kernels
def _from_l1(name: str, type: str, load: str) -> Kernel:
    """Return a kernel with sixteen loads an iteration, from the elements `at` of the lanes (-1: none) and the lines behind."""
    return st.kernel(
        source=f"""def {name}(
    x: st.Global[st.{type}], at: st.Global[st.i32], out: st.Global[st.f32], turns: st.i32, LINE: st.Const
) -> None:
    first = at[st.lane]
    if first < 0:
        return
    total = st.f32(0)
    for turn in range(turns):
        for k in st.unroll(range(16)):
            {load.format(index="first + (turn & 1) * LINE + k * LINE")}
    out[st.block.x * st.block_dim.x + st.thread.x] = total
"""
    )


def _from_l2(name: str, type: str, load: str) -> Kernel:
    """As `_from_l1`; the loads are `apart` lines apart, and warps use different lines."""
    return st.kernel(
        source=f"""def {name}(
    x: st.Global[st.{type}], at: st.Global[st.i32], out: st.Global[st.f32], turns: st.i32, mask: st.i32, apart: st.i32, LINE: st.Const
) -> None:
    first = at[st.lane]
    if first < 0:
        return
    warp = st.block.x * (st.block_dim.x // 32) + st.warp
    total = st.f32(0)
    for turn in range(turns):
        base = first + (warp * turns + turn) * 16 * apart * LINE
        for k in st.unroll(range(16)):
            {load.format(index="(base + k * apart * LINE) & mask")}
    out[st.block.x * st.block_dim.x + st.thread.x] = total
"""
    )


_WORD = "total += x[{index}]"
_PAIR = "found = x[{index}]; total += found.x + found.y"
_FOUR = "found = x[{index}]; total += found.x + found.y + found.z + found.w"
words_from_l1, words_from_l2 = _from_l1("words_from_l1", "f32", _WORD), _from_l2("words_from_l2", "f32", _WORD)
pairs_from_l1, pairs_from_l2 = _from_l1("pairs_from_l1", "float2", _PAIR), _from_l2("pairs_from_l2", "float2", _PAIR)
fours_from_l1, fours_from_l2 = _from_l1("fours_from_l1", "float4", _FOUR), _from_l2("fours_from_l2", "float4", _FOUR)


# ------------------------------------------------------------------ launches
WIDTHS: Mapping[int, tuple[Kernel, Kernel]] = {
    4: (words_from_l1, words_from_l2),
    8: (pairs_from_l1, pairs_from_l2),
    16: (fours_from_l1, fours_from_l2),
}


def random_patterns(size: int) -> list[npt.NDArray[np.int64]]:
    """Return PATTERNS_PER_WIDTH patterns of elements of `size` bytes, -1 for inactive lanes."""
    draw = np.random.default_rng((SEED, size))
    return [lanes(draw, AROUND * 128 // size, size) for _ in range(PATTERNS_PER_WIDTH)]


def _words(size: int, elements: int) -> npt.NDArray[np.float32]:
    return np.ones(elements if size == 4 else (elements, size // 4), np.float32)


def from_l1(size: int, elements: npt.NDArray[np.int64]) -> Mapping[str, Any]:
    """Return the arguments of a pattern of elements of `size` bytes."""
    line = 128 // size
    return {
        "x": _words(size, (AROUND + STEPS + 2) * line), "at": elements.astype(np.int32), "out": np.zeros(SMS * 1024, np.float32),
        "turns": 32, "LINE": line,
    }  # fmt: skip


def from_l2(size: int, elements: npt.NDArray[np.int64]) -> Mapping[str, Any]:
    line, inside = 128 // size, elements[elements >= 0]
    return {
        "x": _words(size, FILLED // size), "at": elements.astype(np.int32), "out": np.zeros(LAST * 1024, np.float32), "turns": 4,
        "mask": FILLED // size - 1, "LINE": line, "apart": int(np.ptp(inside // line)) + 1 | 1,
    }  # fmt: skip


def cases() -> Iterator[Timed]:
    """Yield all launches, named by their number."""
    for size, kernels in WIDTHS.items():
        for number, elements in enumerate(random_patterns(size)):
            for kernel, blocks, make in zip(kernels, (SMS, LAST), (from_l1, from_l2), strict=True):
                yield Timed(f"{kernel.__name__} {number}", kernel, blocks, 1024, partial(make, size, elements))
