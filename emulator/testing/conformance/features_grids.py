"""Feature kernels of cooperative launches, in which blocks wait for the grid. See features.py."""

import numpy as np
import simtbed as st
from simtbed import Global, i32

from .feature import feature, out


@feature(
    [sum(range(128)) + t for t in range(128)],
    grid=4,
    cooperative=True,
    partial=np.zeros(4, np.int32),
    out=out(128),
)
@st.kernel
def sum_of_the_grid(partial: Global[i32], out: Global[i32]) -> None:
    own = st.shared(i32, 32)
    t = st.thread.x
    mine = st.block.x * 32 + t
    own[t] = mine
    st.sync()
    if t == 0:
        total = 0
        for k in range(32):
            total += own[k]
        partial[st.block.x] = total
    st.grid_sync()
    whole = 0
    for b in range(4):
        whole += partial[b]
    out[mine] = whole + own[t]


@feature(
    [(t - 5) % 192 for t in range(192)],
    grid=3,
    block=64,
    cooperative=True,
    x=np.arange(192, dtype=np.int32),
    out=np.zeros(192, np.int32),
)
@st.kernel
def turns_in_a_loop(x: Global[i32], out: Global[i32]) -> None:
    """Each iteration moves every element by one, from one array to the other."""
    i = st.block.x * 64 + st.thread.x
    for turn in range(5):
        if turn % 2 == 0:
            out[i] = x[(i + 191) % 192]
        else:
            x[i] = out[(i + 191) % 192]
        st.grid_sync()


@st.device
def neighbour(x: Global[i32], i: i32) -> i32:
    """The value of the thread to the right; -1 for the last thread."""
    x[i] = i * i
    st.grid_sync()
    if i == len(x) - 1:
        return -1
    return x[i + 1]


@feature(
    [(i + 1) ** 2 if i < 79 else -1 for i in range(80)], grid=2, block=40, cooperative=True, x=out(80), out=out(80)
)
@st.kernel
def grid_barrier_in_a_function(x: Global[i32], out: Global[i32]) -> None:
    i = st.block.x * 40 + st.thread.x
    out[i] = neighbour(x, i)


@feature(
    [10 + 6 * k for k in range(6)],
    grid=2,
    block=3,
    cooperative=True,
    go=np.ones(1, np.int32),
    out=np.zeros(6, np.int32),
)
@st.kernel
def grid_barriers_until_it_is_enough(go: Global[i32], out: Global[i32]) -> None:
    i = st.block.x * 3 + st.thread.x
    own = st.local(i32, 2)
    own[0] = i
    own[1] = 10
    turns = 0
    while go[0] != 0 and turns < 100:
        st.grid_sync()
        if turns == 5 and i == 0:
            go[0] = 0
        st.grid_sync()
        out[i] += own[0]
        turns += 1
    out[i] += own[1]
