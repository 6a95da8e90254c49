"""Dynamic work distribution: warps claim work at run time."""

import numpy as np
import pytest
import simtbed as st
from simtbed.language.hints import Global, f32, i32
from simtbed.model.launches import observe
from simtbed.model.time import estimate
from simtbed.passes.work_queues import uses_dynamic_work
from simtbed.runtime.request import prepare_request

H200 = st.devices.H200


@st.kernel
def by_shuffle(ticket: Global[i32], x: Global[f32], out: Global[f32], n: i32) -> None:
    while True:
        row = 0
        if st.lane == 0:
            row = st.atomic_add(ticket, 0, 1)
        row = st.shuffle(row, 0)
        if row >= n:
            break
        total = f32(0)
        for k in range(64):
            total += x[(row * 64 + k) * 32 + st.lane]
        out[row * 32 + st.lane] = total


@st.kernel
def by_shared(ticket: Global[i32], x: Global[f32], out: Global[f32], n: i32) -> None:
    drawn = st.shared(i32, 1)
    going = True
    while going:
        if st.thread.x == 0:
            drawn[0] = st.atomic_add(ticket, 0, 1)
        st.sync()
        row = drawn[0]
        st.sync()
        if row < n:
            out[row * 32 + st.lane] = x[row * 32 + st.lane]
        else:
            going = False


@st.kernel
def by_stride(ticket: Global[i32], x: Global[f32], out: Global[f32], n: i32) -> None:
    """Rows by a stride, without claims."""
    for row in range(st.block.x, n, st.grid_dim.x):
        place = st.atomic_add(ticket, 0, 1)
        if place < n:
            out[place * 32 + st.lane] = x[row * 32 + st.lane]


@st.kernel
def in_shared(ticket: Global[i32], x: Global[f32], out: Global[f32], n: i32) -> None:
    """Warps of a block claim from a shared counter: the block's work is fixed."""
    drawn = st.shared(i32, 1)
    if st.thread.x == 0:
        drawn[0] = 0
    st.sync()
    row = st.atomic_add(drawn, 0, 1)
    while row < n:
        out[row] = x[row]
        row = st.atomic_add(drawn, 0, 1)


@pytest.mark.parametrize(
    ("kernel", "takes"), [(by_shuffle, True), (by_shared, True), (by_stride, False), (in_shared, False)]
)
def test_a_global_counter_as_loop_bound_is_a_work_queue(kernel: st.Kernel, takes: bool) -> None:
    args = {"ticket": np.zeros(1, np.int32), "x": np.zeros(1024, np.float32), "out": np.zeros(1024, np.float32), "n": 4}
    request = prepare_request(kernel, grid=1, block=32, args=args)
    assert uses_dynamic_work(request.prepared.program.kernel) is takes


@st.kernel
def a_row_each(ticket: Global[i32], x: Global[f32], out: Global[f32], n: i32) -> None:
    """A counter with an unused result."""
    st.atomic_add(ticket, 0, i32(st.lane == 0))
    row = st.block.x * (st.block_dim.x // 32) + st.warp
    total = f32(0)
    for k in range(64):
        total += x[(row * 64 + k) * 32 + st.lane]
    out[row * 32 + st.lane] = total


def test_work_is_taken_to_be_shared_as_evenly_as_rows_are() -> None:
    """On the emulator the first warp claims every row."""
    n = 132 * 8 * 8
    arrays = {"x": np.zeros(n * 64 * 32, np.float32), "out": np.zeros(n * 32, np.float32)}
    args = {"ticket": np.zeros(1, np.int32), **arrays, "n": n}
    times = []
    for kernel in (by_shuffle, a_row_each):
        result = observe(prepare_request(kernel, grid=132 * 8, block=256, args=args, device=H200))
        if isinstance(compiled := result.compiled(H200), str):
            pytest.skip(compiled)
        times.append(estimate(result, H200))
    assert times[0].time_us == pytest.approx(times[1].time_us, rel=0.5)
    assert any("claim work dynamically" in remark for remark in times[0].remarks)
    assert not any("claim work dynamically" in remark for remark in times[1].remarks)
