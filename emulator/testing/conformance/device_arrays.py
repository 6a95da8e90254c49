"""Two kernels in sequence over arrays that stay with the engine."""

from __future__ import annotations

import numpy as np
import simtbed as st
from simtbed import DeviceArray, Global, i32, int2

from ...runtime.engine import Engine
from ...runtime.registry import EngineName
from .outcomes import launcher

FILL = np.arange(64, dtype=np.int32)


@st.kernel
def doubled(x: Global[i32], between: Global[i32], pairs: Global[int2]) -> None:
    """between gains twice x; pairs gain (1, lane)."""
    i = st.block.x * 32 + st.lane
    between[i] += 2 * x[i]
    pairs[i] = st.int2(pairs[i].x + 1, st.lane)


@st.kernel
def summed(between: Global[i32], pairs: Global[int2], out: Global[i32]) -> None:
    i = st.block.x * 32 + st.lane
    out[i] = between[i] + 100 * pairs[i].x


@st.kernel
def transposed(x: Global[i32], out: Global[i32]) -> None:
    """out = x, transposed."""
    for i in range(out.shape[0]):
        if st.lane < out.shape[1]:
            out[i, st.lane] = x[st.lane, i]


def of_two_dimensions(engine: EngineName | Engine) -> None:
    """An array goes there and back through another one. Raises AssertionError."""
    run, first = launcher(engine), FILL.reshape(4, 16)
    given, between = DeviceArray(first[:, ::3]), DeviceArray(st.empty((6, 4), i32))
    run(transposed, grid=1, block=32, args={"x": given, "out": between}, counters=False)
    back = run(transposed, grid=1, block=32, args={"x": between, "out": st.empty((4, 6), i32)}, counters=False)
    assert np.array_equal(between.numpy(), first[:, ::3].T)
    assert np.array_equal(back.buffers["out"], first[:, ::3])


def in_place(engine: EngineName | Engine) -> None:
    """An array that a kernel changes is not copied: an emulator changes its memory on the host, whatever it held, zeros
    too, and a GPU its own. Raises AssertionError."""
    run = launcher(engine)
    x, between, pairs = DeviceArray(FILL), DeviceArray(st.zeros(64, i32)), DeviceArray(np.full((64, 2), 5, np.int32))
    addresses = [array.host.ctypes.data for array in (between, pairs)]
    for times in (1, 2, 3):
        run(doubled, grid=2, block=32, args={"x": x, "between": between, "pairs": pairs}, counters=False)
        remote = [array.remote is not None for array in (between, pairs)]
        assert all(remote) or addresses == [array.host.ctypes.data for array in (between, pairs)]
        assert not between.all_zero
        if times != 2:  # what stays on a GPU is read now and then
            assert np.array_equal(between.numpy(), 2 * times * FILL)
            assert np.array_equal(pairs.numpy(), np.stack([np.full(64, 5 + times), FILL % 32], axis=1))


def sequence(engine: EngineName | Engine) -> tuple[DeviceArray, DeviceArray, list[int]]:
    """doubled twice, then summed: between and pairs, and what `summed` found in them. Raises AssertionError."""
    run = launcher(engine)
    x, between, pairs = DeviceArray(FILL), DeviceArray(np.full(64, 5, np.int32)), DeviceArray(st.empty(64, "int2"))
    for _ in range(2):
        result = run(doubled, grid=2, block=32, args={"x": x, "between": between, "pairs": pairs}, counters=False)
        assert not result.buffers
    args = {"between": between, "pairs": pairs, "out": st.empty(64, "i32")}
    found = run(summed, grid=2, block=32, args=args, counters=False).buffers["out"]
    assert np.array_equal(between.numpy(), 5 + 4 * FILL)
    assert np.array_equal(pairs.numpy(), np.stack([np.full(64, 2), FILL % 32], axis=1))
    assert np.array_equal(found, 205 + 4 * FILL)
    return between, pairs, found.tolist()
