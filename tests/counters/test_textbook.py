"""Counters of textbook kernels, derived manually. H200: 32-byte sectors, 32 banks of 4 bytes."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import simtbed as st
from simtbed import Const, Counters, Global, Kernel, SimtbedError, devices, empty, f32, i32, launch
from simtbed.runtime.registry import EngineName

from tests.validation.kernels import graphs, reductions, texts

N = 64
WARPS_A_PASS = N * N // 32  # every element of the matrix is moved once, a warp moves 32


@st.kernel
def grouped_copy(x: Global[f32], out: Global[f32], GROUP: Const) -> None:
    """GROUP neighbouring threads load the same element."""
    i = st.block.x * st.block_dim.x + st.thread.x
    out[i] = x[i // GROUP]


def transposed(kernel: Kernel, rows: int, **consts: int) -> Counters:
    """Return the counters of a transposition by blocks of 32 columns and `rows` rows."""
    x = np.random.default_rng(1).random(N * N).astype(np.float32)
    result = launch(
        kernel, grid=(N // 32, N // rows), block=(32, 8), args={"x": x, "out": empty(N * N, "f32"), "n": N, **consts}
    )
    assert (result.out.reshape(N, N) == x.reshape(N, N).T).all()
    return result.counters


def test_naive_transpose_scatters_its_stores() -> None:
    c = transposed(texts.transpose_naive, 8)
    assert c.total("global_load_requests") == WARPS_A_PASS
    assert c.total("global_load_sectors") == 4 * WARPS_A_PASS  # 32 neighbouring floats are four sectors
    assert c.total("global_store_sectors") == 32 * WARPS_A_PASS  # a stride of 32 rows: a sector for each lane
    assert c.derived()["global_store_efficiency"] == 4 / 32


def test_shared_transpose_conflicts_at_its_loads() -> None:
    c = transposed(texts.transpose_tiled, 32, ROWS=8, PITCH=32)
    assert c.total("global_store_sectors") == 4 * WARPS_A_PASS
    assert c.total("shared_store_wavefronts") == WARPS_A_PASS
    assert c.total("shared_load_wavefronts") == 32 * WARPS_A_PASS  # a column of 32-wide rows is one bank
    assert c.total("shared_load_conflicts") == 31 * WARPS_A_PASS


def test_padding_removes_the_conflicts() -> None:
    c = transposed(texts.transpose_tiled, 32, ROWS=8, PITCH=33)
    assert c.total("shared_load_wavefronts") == WARPS_A_PASS
    assert c.total("shared_load_conflicts") == 0
    assert c.derived()["shared_efficiency"] == 1.0


def test_conflicts_follow_the_device() -> None:
    """With half the banks a conflict-free access costs two passes."""
    x = np.zeros(32, np.float32)
    args: dict[str, Any] = {"x": x, "out": empty(1, "f32"), "BLOCK": 32}
    half = launch(
        reductions.reduce_sequential, grid=1, block=32, args=args, device=replace(devices.H200, banks=16)
    ).counters
    whole = launch(reductions.reduce_sequential, grid=1, block=32, args=args).counters
    assert whole is not None and half is not None
    assert half.at("partial[t] = x[").total("shared_store_wavefronts") == 2
    assert whole.at("partial[t] = x[").total("shared_store_wavefronts") == 1


BLOCK = 128
STEPS = 7
WARPS = BLOCK // 32


def reduced(kernel: Kernel) -> Counters:
    x = np.arange(2 * BLOCK, dtype=np.float32)
    result = launch(kernel, grid=2, block=BLOCK, args={"x": x, "out": empty(2, "f32"), "BLOCK": BLOCK})
    assert result.out.tolist() == [x[:BLOCK].sum(), x[BLOCK:].sum()]
    return result.counters


def test_interleaved_reduction_diverges() -> None:
    c = reduced(reductions.reduce_interleaved)
    test = c.at("if t % (2 * width) == 0")
    assert test.total("branches") == 2 * STEPS * WARPS
    # Widths 1 to 16 split every warp. At width 32 two warps have one working lane, at 64 one warp.
    assert test.total("divergent_branches") == 2 * (5 * WARPS + 2 + 1)
    assert c.total("shared_load_conflicts") == 0


def test_strided_reduction_conflicts() -> None:
    c = reduced(reductions.reduce_strided)
    loads = c.at("partial[at] += partial[at + width]")
    # Width w: 128 / 2w working threads, a stride of 2w words: min(2w, lanes of the warp) lanes share a bank.
    passes = 0
    for width in (1, 2, 4, 8, 16, 32, 64):
        working = BLOCK // (2 * width)
        for warp in range(WARPS):
            lanes = min(max(working - 32 * warp, 0), 32)
            if lanes:
                banks = {2 * width * lane % 32 for lane in range(lanes)}
                passes += max(sum(2 * width * lane % 32 == b for lane in range(lanes)) for b in banks)
    assert loads.total("shared_load_wavefronts") == 2 * 2 * passes  # two blocks, two loads
    assert loads.total("shared_store_wavefronts") == 2 * passes
    assert c.total("shared_load_conflicts") > 0


def test_sequential_reduction_does_neither() -> None:
    c = reduced(reductions.reduce_sequential)
    assert c.total("shared_load_conflicts") == 0
    # Widths 64 and 32 keep or drop whole warps; 16, 8, 4, 2, 1 split the first one.
    assert c.at("if t < width").total("divergent_branches") == 2 * 5
    assert c.at("st.sync()").total("barriers") == 2 * WARPS * (1 + STEPS)
    assert c.total("branches") == 2 * WARPS * ((STEPS + 1) + STEPS + 1)  # while tests, ifs, the last if


@pytest.mark.parametrize(("group", "sectors"), [(1, 4), (2, 2), (4, 1), (8, 1), (32, 1)])
def test_broadcast_loads_share_sectors(group: int, sectors: int) -> None:
    n = 256
    result = launch(
        grouped_copy,
        grid=2,
        block=128,
        args={"x": np.arange(n, dtype=np.float32), "out": empty(n, "f32"), "GROUP": group},
    )
    assert result.counters.total("global_load_sectors") == sectors * n // 32
    assert result.counters.total("global_load_bytes") == 4 * n


def test_random_gather_touches_what_it_says() -> None:
    rng = np.random.default_rng(7)
    index = rng.integers(0, 5000, 512).astype(np.int32)
    x = rng.random(5000).astype(np.float32)
    result = launch(graphs.gather, grid=4, block=128, args={"x": x, "index": index, "out": empty(512, "f32")})
    assert (result.out == x[index]).all()
    warps = index.reshape(-1, 32)
    at = result.counters.at("x[index[i]]")
    expected = sum(len({i * 4 // 32 for i in w}) for w in warps.tolist())
    lines = sum(len({i * 4 // 128 for i in w}) for w in warps.tolist())
    assert at.total("global_load_sectors") == expected + 4 * len(warps)
    assert at.total("global_load_lines") == lines + len(warps)


@st.kernel
def added(out: Global[i32], WHAT: Const) -> None:
    """Each pair of lanes adds to its own word: 1; 1 with the old value used; 2; 1 to a wider word; or a swap."""
    table = st.shared(i32, 32)
    wide = st.shared(st.i64, 32)
    table[st.lane] = 0
    wide[st.lane] = st.i64(0)
    st.syncwarp()
    if WHAT == 0:
        st.atomic_add(table, st.lane // 2, 1)
    if WHAT == 1:
        out[st.lane] = st.atomic_add(table, st.lane // 2, 1)
    if WHAT == 2:
        st.atomic_add(table, st.lane // 2, 2)
    if WHAT == 4:
        st.compare_swap(table, st.lane // 2, 0, 1)
    if WHAT == 3:
        st.atomic_add(wide, st.lane // 2, st.i64(1))
    st.syncwarp()
    out[st.lane] = table[st.lane] + i32(wide[st.lane])


@pytest.mark.parametrize("engine", ["jit", "numpy"])
@pytest.mark.parametrize(("what", "wavefronts"), [(0, 1), (1, 2), (2, 2), (3, 4), (4, 4)])
def test_lanes_that_count_in_one_word_are_no_conflict(engine: EngineName, what: int, wavefronts: int) -> None:
    """An addition of 1 with an unused old value has an instruction of its own, for 4 bytes only. A compare-and-swap takes two
    passes."""
    counters = launch(added, grid=1, block=32, args={"out": empty(32, "i32"), "WHAT": what}, engine=engine).counters
    assert counters.total("shared_atomic_wavefronts") == wavefronts
    assert counters.total("shared_atomic_requests") == 1


COPIED = """
def copied(x: st.Global[st.{0}], at: st.Global[st.i32], out: st.Global[st.{0}]) -> None:
    held = st.shared(st.{0}, 64)
    st.async_copy(held, at[st.lane], x, st.lane)
    st.async_commit()
    st.async_wait(0)
    st.syncwarp()
    out[st.lane] = held[at[st.lane]]
"""


@pytest.mark.parametrize("engine", ["jit", "numpy"])
@pytest.mark.parametrize(("kind", "size", "in_pairs"), [("f32", 4, 2), ("f64", 8, 4), ("c128", 16, 4)])
def test_lanes_of_a_narrow_copy_are_not_merged(engine: EngineName, kind: str, size: int, in_pairs: int) -> None:
    """Pairs of lanes store to one element. A copy of 16 bytes is a store: four quarters of a warp."""
    x = np.ones(32, {"f32": np.float32, "f64": np.float64, "c128": np.complex128}[kind])
    lanes, phases = np.arange(32, dtype=np.int32), size // 4
    for at, wavefronts in ((lanes, phases), (lanes // 2, in_pairs)):
        args = {"x": x, "at": at, "out": np.zeros_like(x)}
        total = launch(st.kernel(source=COPIED.format(kind)), grid=1, block=32, args=args, engine=engine).counters.total
        assert total("shared_store_wavefronts") == wavefronts
        assert total("shared_store_conflicts") == wavefronts - phases


def test_counters_add_up() -> None:
    c = reduced(reductions.reduce_sequential)
    both = c + c
    assert both.totals() == {name: 2 * n for name, n in c.totals().items()}
    by_line = c.by_line()
    assert sum(row.get("warp_instructions", 0) for row in by_line.values()) == c.total("warp_instructions")


def test_instructions_are_weighed_by_class() -> None:
    totals = reduced(reductions.reduce_sequential).totals()
    assert totals["warp_instructions"] == sum(n for name, n in totals.items() if name.startswith("warp_instructions."))
    # One f32 addition a working warp and step: widths 64 (2 warps), 32, 16, 8, 4, 2, 1.
    assert totals["warp_instructions.fp32"] == 2 * (2 + 1 + 5)


def test_counting_can_be_left_out() -> None:
    x = np.arange(32, dtype=np.float32)
    result = launch(
        reductions.reduce_sequential,
        grid=1,
        block=32,
        args={"x": x, "out": empty(1, "f32"), "BLOCK": 32},
        counters=False,
    )
    assert result.counts is None and result.out[0] == x.sum()
    with pytest.raises(SimtbedError, match="nothing was counted"):
        _ = result.counters
