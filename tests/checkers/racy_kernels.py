"""Racy kernels, each with the number of its findings and the statements of their remedies.

A remedy is written "statement place: line", with the text of the line that it precedes or of the header of its loop. A kernel
without one has a race that no barrier orders.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import simtbed as st
from simtbed import Global, Kernel, Result, Shared, f32, i32
from simtbed.runtime.registry import EngineName


@dataclass(frozen=True)
class Racy:
    """A kernel, its findings, its remedies, and how it is launched."""

    kernel: Kernel
    findings: int
    remedies: Sequence[str]
    block: int
    args: Mapping[str, Any]

    @property
    def name(self) -> str:
        return self.kernel.__name__

    def launch(self, engine: EngineName = "numpy") -> Result:
        return st.launch(
            self.kernel, grid=1, block=self.block, args=self.args, check="all", faults="return", engine=engine
        )


RACY: dict[str, Racy] = {}
VECTORS = {"x": np.arange(1, 129, dtype=np.float32), "out": st.empty(128, "f32")}
MATRICES = {"a": np.ones(1024, np.float32), "b": np.ones(1024, np.float32), "out": st.empty(1024, "f32")}


def racy(
    findings: int, remedies: Sequence[str], block: int, args: Mapping[str, Any] = VECTORS
) -> Callable[[Kernel], Kernel]:
    """Add a kernel to RACY."""

    def add(kernel: Kernel) -> Kernel:
        RACY[kernel.__name__] = Racy(kernel, findings, remedies, block, args)
        return kernel

    return add


@racy(1, ["st.sync() end of loop: while w > 0:"], 128)
@st.kernel
def tree(x: Global[f32], out: Global[f32]) -> None:
    p = st.shared(f32, 128)
    t = st.thread.x
    p[t] = x[t]
    st.sync()
    w = 64
    while w > 0:
        if t < w:
            p[t] += p[t + w]
        w //= 2
    if t == 0:
        out[0] = p[0]


@racy(2, ["st.sync() before: while w > 0:", "st.sync() end of loop: while w > 0:"], 128)
@st.kernel
def tree_without_a_barrier(x: Global[f32], out: Global[f32]) -> None:
    p = st.shared(f32, 128)
    t = st.thread.x
    p[t] = x[t]
    w = 64
    while w > 0:
        if t < w:
            p[t] += p[t + w]
        w //= 2
    if t == 0:
        out[0] = p[0]


@racy(1, [], 128)
@st.kernel
def scan_in_one_statement(x: Global[f32], out: Global[f32]) -> None:
    p = st.shared(f32, 128)
    t = st.thread.x
    p[t] = x[t]
    st.sync()
    d = 1
    while d < 128:
        if t >= d:
            p[t] += p[t - d]
        st.sync()
        d *= 2
    out[t] = p[t]


@racy(1, ["st.sync() before: p[t] += v", "st.sync() end of loop: for k in range(7):"], 128)
@st.kernel
def scan_in_two_statements(x: Global[f32], out: Global[f32]) -> None:
    p = st.shared(f32, 128)
    t = st.thread.x
    p[t] = x[t]
    st.sync()
    for k in range(7):
        v = f32(0)
        if t >= (1 << k):
            v = p[t - (1 << k)]
        p[t] += v
    out[t] = p[t]


@racy(1, ["st.sync() end of loop: for k in range(2):"], 256, MATRICES)
@st.kernel
def tiles_overwritten(a: Global[f32], b: Global[f32], out: Global[f32]) -> None:
    ta = st.shared(f32, 16, 16)
    tb = st.shared(f32, 16, 16)
    c = st.thread.x % 16
    r = st.thread.x // 16
    s = f32(0)
    for k in range(2):
        ta[r, c] = a[r * 32 + k * 16 + c]
        tb[r, c] = b[(k * 16 + r) * 32 + c]
        st.sync()
        for j in range(16):
            s += ta[r, j] * tb[j, c]
    out[r * 32 + c] = s


@racy(1, ["st.sync() before: for j in range(16):"], 256, MATRICES)
@st.kernel
def tiles_read_early(a: Global[f32], b: Global[f32], out: Global[f32]) -> None:
    ta = st.shared(f32, 16, 16)
    tb = st.shared(f32, 16, 16)
    c = st.thread.x % 16
    r = st.thread.x // 16
    s = f32(0)
    for k in range(2):
        ta[r, c] = a[r * 32 + k * 16 + c]
        tb[r, c] = b[(k * 16 + r) * 32 + c]
        for j in range(16):
            s += ta[r, j] * tb[j, c]
        st.sync()
    out[r * 32 + c] = s


@racy(
    1, ["st.sync() before: for j in st.unroll(range(16)):", "st.sync() end of loop: for k in range(2):"], 256, MATRICES
)
@st.kernel
def tiles_without_a_barrier(a: Global[f32], b: Global[f32], out: Global[f32]) -> None:
    ta = st.shared(f32, 16, 16)
    tb = st.shared(f32, 16, 16)
    c = st.thread.x % 16
    r = st.thread.x // 16
    s = f32(0)
    for k in range(2):
        ta[r, c] = a[r * 32 + k * 16 + c]
        tb[r, c] = b[(k * 16 + r) * 32 + c]
        for j in st.unroll(range(16)):
            s += ta[r, j] * tb[j, c]
    out[r * 32 + c] = s


@racy(1, [], 64)
@st.kernel
def in_a_branch(x: Global[f32], out: Global[f32]) -> None:
    p = st.shared(f32, 64)
    t = st.thread.x
    p[t] = 0
    st.sync()
    if t < 40:
        p[t] = x[t]
        out[t] = p[39 - t]


@racy(1, [], 64)
@st.kernel
def in_two_branches(x: Global[f32], out: Global[f32]) -> None:
    p = st.shared(f32, 64)
    t = st.thread.x
    p[t] = 0
    st.sync()
    if t < 32:
        p[t] = x[t]
    else:
        out[t] = p[t - 32]


@racy(1, ["st.sync() end of loop: for a in range(2):"], 64)
@st.kernel
def after_inner_loops(x: Global[f32], out: Global[f32]) -> None:
    p = st.shared(f32, 64)
    t = st.thread.x
    s = f32(0)
    for a in range(2):
        for b in range(t, 64, 64):
            p[b] = x[b] + f32(a)
        st.sync()
        for b in range(64):
            s += p[b]
    out[t] = s


@racy(1, ["st.sync() start of loop: for a in range(4):"], 64)
@st.kernel
def loop_with_continue(x: Global[f32], out: Global[f32]) -> None:
    p = st.shared(f32, 64)
    t = st.thread.x
    s = f32(0)
    for a in range(4):
        p[t] = x[t] + f32(a)
        st.sync()
        s += p[63 - t]
        if a == 1:
            continue
        s += f32(1)
    out[t] = s


@racy(1, [], 64)
@st.kernel
def threads_that_continue(x: Global[f32], out: Global[f32]) -> None:
    p = st.shared(f32, 64)
    t = st.thread.x
    s = f32(0)
    for a in range(4):
        p[t] = x[t] + f32(a)
        st.sync()
        s += p[63 - t]
        if t == 1:
            continue
        s += f32(1)
    out[t] = s


@racy(1, [], 64)
@st.kernel
def loop_by_thread(x: Global[f32], out: Global[f32]) -> None:
    p = st.shared(f32, 64)
    t = st.thread.x
    p[t] = x[t]
    st.sync()
    k = 0
    while k < t:
        p[t] = p[63 - t] + f32(1)
        k += 1
    out[t] = f32(k)


@st.device
def put(cells: Shared[f32], t: i32, v: f32) -> None:
    cells[t] = v


@st.device
def get(cells: Shared[f32], t: i32) -> f32:
    return cells[63 - t]


@racy(1, ["st.sync() before: s += get(p, t)", "st.sync() end of loop: for k in range(3):"], 64)
@st.kernel
def two_device_functions(x: Global[f32], out: Global[f32]) -> None:
    p = st.shared(f32, 64)
    t = st.thread.x
    s = f32(0)
    for k in range(3):
        put(p, t, x[t] + f32(k))
        s += get(p, t)
    out[t] = s


@st.device
def both(cells: Shared[f32], t: i32, v: f32) -> f32:
    cells[t] = v
    w = v * f32(2)
    return cells[63 - t] + w


@racy(1, ["st.sync() before: return cells[63 - t] + w"], 64)
@st.kernel
def inside_a_device_function(x: Global[f32], out: Global[f32]) -> None:
    p = st.shared(f32, 64)
    t = st.thread.x
    out[t] = both(p, t, x[t])


@racy(1, [], 64)
@st.kernel
def device_function_in_a_branch(x: Global[f32], out: Global[f32]) -> None:
    p = st.shared(f32, 64)
    t = st.thread.x
    p[t] = 0
    st.sync()
    if t < 50:
        out[t] = both(p, t, x[t])


@racy(1, ["st.sync() before: a = p[63 - t]"], 64)
@st.kernel
def three_arrays(x: Global[f32], out: Global[f32]) -> None:
    p = st.shared(f32, 64)
    q = st.shared(f32, 64)
    r = st.shared(f32, 64)
    t = st.thread.x
    p[t] = x[t]
    q[t] = x[t]
    r[t] = x[t]
    a = p[63 - t]
    b = q[63 - t]
    c = r[(t + 1) % 64] + r[(t + 33) % 64]
    out[t] = a + b + c


@racy(1, ["st.sync() end of loop: while p[0] > 0:"], 64)
@st.kernel
def condition_of_a_loop(x: Global[f32], out: Global[f32]) -> None:
    p = st.shared(i32, 1)
    t = st.thread.x
    if t == 0:
        p[0] = 3
    st.sync()
    n = 0
    while p[0] > 0:
        st.sync()
        if t == 0:
            p[0] -= 1
        n += 1
    out[t] = f32(n)


@racy(1, ["st.sync() before: out[t] = ("], 64)
@st.kernel
def statements_of_several_lines(x: Global[f32], out: Global[f32]) -> None:
    p = st.shared(f32, 64)
    t = st.thread.x
    # fmt: off
    p[
        t
    ] = x[t]
    out[t] = (
        p[63 - t]
        + p[(t + 1) % 64]
    )
    # fmt: on


@racy(1, ["st.sync() before: out[t] = p[49 - t]"], 64)
@st.kernel
def after_returns(x: Global[f32], out: Global[f32]) -> None:
    p = st.shared(f32, 64)
    t = st.thread.x
    if t >= 50:
        return
    p[t] = x[t]
    out[t] = p[49 - t]


@racy(1, ["st.syncwarp() before: out[t] = p[st.warp]", "st.syncwarp() end of loop: for k in range(3):"], 64)
@st.kernel
def leader_of_a_warp(x: Global[f32], out: Global[f32]) -> None:
    p = st.shared(f32, 2)
    t = st.thread.x
    for k in range(3):
        if st.lane == 0:
            p[st.warp] = x[t] + f32(k)
        out[t] = p[st.warp]


@racy(3, ["st.syncwarp() before: p[t] += p[t + 16]", "st.syncwarp() before: p[t] += p[t + 8]"], 64)
@st.kernel
def last_warp_in_single_statements(x: Global[f32], out: Global[f32]) -> None:
    p = st.shared(f32, 64)
    t = st.thread.x
    p[t] = x[t]
    st.sync()
    if t < 32:
        p[t] += p[t + 32]
        p[t] += p[t + 16]
        p[t] += p[t + 8]
    if t == 0:
        out[0] = p[0]


@racy(1, ["st.sync() end of loop: while True:"], 64)
@st.kernel
def loop_with_break(x: Global[f32], out: Global[f32]) -> None:
    p = st.shared(f32, 64)
    t = st.thread.x
    p[t] = x[t]
    st.sync()
    n = 0
    while True:
        v = p[(t + 40) % 64]
        st.sync()
        p[t] = v + f32(1)
        n += 1
        if n == 4:
            break
    out[t] = p[t]


@racy(
    2,
    [
        "st.sync() before: for _ in range(4):",
        "st.sync() before: p[t + 1] = v",
        "st.sync() end of loop: for _ in range(4):",
    ],
    64,
)
@st.kernel
def stencil_in_place(x: Global[f32], out: Global[f32]) -> None:
    p = st.shared(f32, 66)
    t = st.thread.x
    p[t + 1] = x[t]
    if t == 0:
        p[0] = 0
        p[65] = 0
    for _ in range(4):
        v = p[t] + p[t + 1] + p[t + 2]
        p[t + 1] = v
    out[t] = p[t + 1]


@racy(1, ["st.sync() end of loop: for k in range(4):"], 64)
@st.kernel
def broadcast(x: Global[f32], out: Global[f32]) -> None:
    cell = st.shared(f32, 1)
    t = st.thread.x
    s = f32(0)
    for k in range(4):
        if t == 0:
            cell[0] = x[k]
        st.sync()
        s += cell[0]
    out[t] = s


@racy(1, ["st.sync() end of loop: while j > 0:"], 64)
@st.kernel
def bitonic_sort(x: Global[f32], out: Global[f32]) -> None:
    p = st.shared(f32, 64)
    t = st.thread.x
    p[t] = x[63 - t]
    st.sync()
    k = 2
    while k <= 64:
        j = k // 2
        while j > 0:
            partner = t ^ j
            if partner > t:
                a = p[t]
                b = p[partner]
                if (a > b) == ((t & k) == 0):
                    p[t] = b
                    p[partner] = a
            j //= 2
        k *= 2
    out[t] = p[t]


@racy(2, ["st.sync() before: st.atomic_add(bins, t % 8, x[t])", "st.sync() before: if t < 8:  # result"], 64)
@st.kernel
def histogram(x: Global[f32], out: Global[f32]) -> None:
    bins = st.shared(f32, 8)
    t = st.thread.x
    if t < 8:
        bins[t] = 0
    st.atomic_add(bins, t % 8, x[t])
    if t < 8:  # result
        out[t] = bins[t]


@racy(1, [], 64)
@st.kernel
def in_a_branch_of_lanes(x: Global[f32], out: Global[f32]) -> None:
    p = st.shared(f32, 64)
    t = st.thread.x
    if st.lane < 16:
        p[t] = x[t]
        out[t] = p[t ^ 1]


@racy(1, ["st.syncwarp() before: out[t] = p[95 - t]"], 64)
@st.kernel
def in_a_branch_of_a_warp(x: Global[f32], out: Global[f32]) -> None:
    p = st.shared(f32, 64)
    t = st.thread.x
    if t >= 32:
        p[t] = x[t]
        out[t] = p[95 - t]
