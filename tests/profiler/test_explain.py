"""Explanations of costly lines: a mistake is named with its numbers, its fixed twin is not."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import simtbed as st
from simtbed.profiler.explain import Explanation, explanations
from simtbed.profiler.pattern import Pattern
from simtbed.runtime.arrays import NewArray

N = 128


@st.kernel
def strided(x: st.Global[st.f32], out: st.Global[st.f32], S: st.Const, OFFSET: st.Const) -> None:
    """out[i] = x[S i + OFFSET]."""
    i = st.block.x * st.block_dim.x + st.thread.x
    out[i] = x[S * i + OFFSET]


@st.kernel
def gathered(x: st.Global[st.f32], at: st.Global[st.i32], out: st.Global[st.f32]) -> None:
    """out[i] = x[at[i]]."""
    i = st.block.x * st.block_dim.x + st.thread.x
    out[i] = x[at[i]]


@st.kernel
def turned(x: st.Global[st.f32], out: st.Global[st.f32], PITCH: st.Const) -> None:
    """A tile of 32 x 32 is written by rows and read by columns."""
    tile = st.shared(st.f32, 32 * PITCH)
    for k in range(32):
        tile[k * PITCH + st.lane] = x[k * 32 + st.lane]
    st.sync()
    for k in range(32):
        out[k * 32 + st.lane] = tile[st.lane * PITCH + k]


@st.kernel
def looped(out: st.Global[st.i32], MOST: st.Const, EACH: st.Const) -> None:
    """Lane n executes EACH iterations, and n of MOST more."""
    total = 0
    turns = 0
    while turns < EACH + st.lane * MOST // 31:
        total += turns * turns
        turns += 1
    out[st.block.x * 32 + st.lane] = total


@st.kernel
def chosen(out: st.Global[st.i32], PART: st.Const) -> None:
    """The first lanes execute the loop."""
    total = 0
    if st.lane < PART:
        for k in range(100):
            total += k * st.lane
    out[st.lane] = total


@st.kernel
def counted(out: st.Global[st.i32], BINS: st.Const) -> None:
    """Each lane adds to one of BINS bins."""
    st.atomic_add(out, st.lane % BINS, 1)


@st.kernel
def synchronised(out: st.Global[st.i32], WORK: st.Const) -> None:
    """WORK additions after each barrier."""
    total = 0
    for k in range(16):
        st.sync()
        for j in st.unroll(range(WORK)):
            total += k * j
    out[st.thread.x] = total


def explanations_of(kernel: st.Kernel, block: int = 32, grid: int = 1, **args: Any) -> list[Explanation]:
    return explanations(st.launch(kernel, grid=grid, block=block, args=args, detail=True).profile())


def floats(n: int) -> np.ndarray[Any, np.dtype[np.float32]]:
    return np.ones(n, np.float32)


def ints(n: int) -> NewArray:
    return st.empty(n, st.i32)


SHUFFLED = np.random.default_rng(3).permutation(N * 32).astype(np.int32)[:N]
NEIGHBOURS = np.arange(N, dtype=np.int32)


def of_stride(stride: int, offset: int = 0) -> list[Explanation]:
    return explanations_of(strided, grid=4, x=floats(N * stride + 8), out=st.empty(N, st.f32), S=stride, OFFSET=offset)


def of_gather(at: np.ndarray[Any, np.dtype[np.int32]]) -> list[Explanation]:
    return explanations_of(gathered, grid=4, x=floats(N * 32), at=at, out=st.empty(N, st.f32))


def of_tile(pitch: int) -> list[Explanation]:
    return explanations_of(turned, x=floats(1024), out=st.empty(1024, st.f32), PITCH=pitch)


Try = Callable[[], list[Explanation]]
MISTAKES: dict[str, tuple[Try, Try, str, str]] = {
    "stride": (
        lambda: of_stride(2), lambda: of_stride(1),
        "uncoalesced access", "touches 8 sectors; its bytes fit into 4: .* 2 elements, 8 bytes.* vector",
    ),
    "column": (
        lambda: of_stride(64), lambda: of_stride(1),
        "uncoalesced access", "touches 32 sectors; its bytes fit into 4: .* 64 elements, 256 bytes.* tile",
    ),
    "misaligned": (
        lambda: of_stride(1, 1), lambda: of_stride(1, 8),
        "uncoalesced access", "touches 5 sectors; its bytes fit into 4: .* not at the start of a sector.* multiple of 8",
    ),
    "column of half a warp": (
        lambda: of_gather(NEIGHBOURS % 16 * 64), lambda: of_gather(NEIGHBOURS % 16),
        "uncoalesced access", "touches 16 sectors; its bytes fit into 2: .* 64 elements, 256 bytes.* tile",
    ),
    "scattered": (
        lambda: of_gather(SHUFFLED), lambda: of_gather(NEIGHBOURS),
        "uncoalesced access", "32 lanes access 32 elements in no order",
    ),
    "pitch": (
        lambda: of_tile(32), lambda: of_tile(33),
        "bank conflicts", "takes 32 wavefronts instead of 1: .* 32 words, .*share 1 of 32 banks.* pitch of 33",
    ),
    "even pitch": (
        lambda: of_tile(34), lambda: of_tile(35),
        "bank conflicts", "takes 2 wavefronts .* share 16 of 32 banks",
    ),
    "uneven": (
        lambda: explanations_of(looped, out=ints(32), MOST=31, EACH=1), lambda: explanations_of(looped, out=ints(32), MOST=0, EACH=32),
        "uneven loop", "1 to 32 iterations.*48 % of its lanes' iterations are idle",
    ),
    "few lanes": (
        lambda: explanations_of(chosen, out=ints(32), PART=4), lambda: explanations_of(chosen, out=ints(32), PART=32),
        "divergent branch", "in 1 of 1 executions .* 12 % of the lanes",
    ),
    "contended": (
        lambda: explanations_of(counted, out=st.zeros(32, st.i32), BINS=1),
        lambda: explanations_of(counted, out=st.zeros(32, st.i32), BINS=32),
        "contended atomic", "32 lanes of a warp change one element of out",
    ),
    "barriers": (
        lambda: explanations_of(synchronised, 64, out=ints(64), WORK=2), lambda: explanations_of(synchronised, 64, out=ints(64), WORK=64),
        "frequent barrier", "every 8 instructions",
    ),
}  # fmt: skip
"""By mistake: the costly kernel, its fixed twin, the kind of explanation, and the expected numbers."""


@pytest.mark.parametrize("name", MISTAKES)
def test_a_costly_line_is_named_with_what_happens(name: str) -> None:
    costly, fixed, what, text = MISTAKES[name]
    (explanation,) = [e for e in costly() if e.what == what]
    assert re.search(text, f"{explanation.sentence} {explanation.remedy}"), str(explanation)
    assert [e for e in fixed() if e.what == what] == []


def test_explanations_are_in_order_of_cost() -> None:
    shares = [e.share for e in of_gather(SHUFFLED)]
    assert shares == sorted(shares, reverse=True) and 0 < shares[0] < 1


@pytest.mark.parametrize("name", MISTAKES)
def test_no_remedy_saves_more_than_all(name: str) -> None:
    """Waits at barriers are in no counter, but are included in the total."""
    shares = [one.share for one in MISTAKES[name][0]()]
    assert all(0 < share <= 1 for share in shares)


@pytest.mark.parametrize(
    ("elements", "kind", "stride", "run"),
    [
        ([7] * 32, "one", 0, 1),
        (range(5, 37), "stride", 1, 1),
        (range(99, 3, -3), "stride", -3, 1),
        ([64 * (n // 8) + n % 8 for n in range(32)], "runs", 64, 8),
        ([n % 5 for n in range(32)], "stride", 1, 1),
        ([64 * (n % 16) for n in range(32)], "stride", 64, 1),
        ([n // 2 for n in range(32)], "runs", 0, 16),
        ([n * n for n in range(32)], "scattered", 0, 1),
    ],
)
def test_patterns(elements: Any, kind: str, stride: int, run: int) -> None:
    pattern = Pattern.classify(0xFFFFFFFF, np.array(elements))
    assert (pattern.kind, pattern.stride, pattern.run) == (kind, stride, run)


def test_a_pattern_is_of_the_active_lanes() -> None:
    index = np.arange(32)
    index[1::2] = 1000
    assert Pattern.classify(0x55555555, index) == Pattern("stride", 16, 16, 1)


def test_a_saved_run_explains_the_same(tmp_path: Path) -> None:
    with st.profiling(detail=True) as run:
        of_gather(SHUFFLED)
        of_stride(64)
    run.save(tmp_path / "run.json")
    loaded = st.Run.load(tmp_path / "run.json")
    texts = [str(one) for one in explanations(run.profile)]
    assert texts and texts == [str(one) for one in explanations(loaded.profile)]
