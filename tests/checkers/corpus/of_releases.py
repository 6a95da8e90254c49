"""Releases that order nothing: operations that change nothing, stores that end a release, a node published too early."""

from __future__ import annotations

import numpy as np
import simtbed as st
from simtbed import Const, Global, f32, i32

from .pair import N, X, pair

FLAG = np.zeros(1, np.int32)
CELL = np.zeros(1, np.float32)


@pair("race", grid=2, x=X, cell=CELL, flag=FLAG)
@st.kernel
def release_by_a_failed_swap(
    x: Global[f32], cell: Global[f32], flag: Global[i32], out: Global[f32], FIXED: Const
) -> None:
    """The swap expects 1 and finds 0: it writes nothing, and the reader may run before the data are written."""
    if st.thread.x == 0:
        if st.block.x == 0:
            cell[0] = x[0]
            st.fence()
            st.compare_swap(flag, 0, 0 if FIXED else 1, 1)
        elif st.atomic_add(flag, 0, 0) == (1 if FIXED else 0):
            st.fence()
            out[0] = cell[0]


@pair("race", grid=2, x=X, cell=CELL, flag=FLAG)
@st.kernel
def release_by_a_poll(x: Global[f32], cell: Global[f32], flag: Global[i32], out: Global[f32], FIXED: Const) -> None:
    """The writer polls the flag after its fence: an addition of 0 hands nothing over."""
    if st.thread.x == 0:
        if st.block.x == 0:
            cell[0] = x[0]
            st.fence()
            st.atomic_add(flag, 0, 1 if FIXED else 0)
        elif st.atomic_add(flag, 0, 0) == (1 if FIXED else 0):
            st.fence()
            out[0] = cell[0]


@pair("race", grid=3, x=X, cell=CELL, flag=FLAG)
@st.kernel
def release_that_a_store_ends(
    x: Global[f32], cell: Global[f32], flag: Global[i32], out: Global[f32], FIXED: Const
) -> None:
    """The reader of the second block's store has not read the release of the first block; a read-modify-write continues it."""
    if st.thread.x == 0:
        if st.block.x == 0:
            cell[0] = x[0]
            st.fence()
            st.atomic_add(flag, 0, 1)
        elif st.block.x == 1:
            if FIXED:
                st.atomic_add(flag, 0, 1)
            else:
                st.volatile_store(flag, 0, 2)
        elif st.atomic_add(flag, 0, 0) == 2:
            st.fence()
            out[0] = cell[0]


@pair("race", grid=2, x=X, head=FLAG, below=np.zeros(1 + N, np.int32))
@st.kernel
def node_linked_after_the_push(
    x: Global[f32], head: Global[i32], below: Global[i32], out: Global[f32], FIXED: Const
) -> None:
    """A stack of nodes 1 to 128, each with the node below. Block 1 pops the top of block 0's stack."""
    t = st.thread.x
    top = st.atomic_add(head, 0, 0)
    pushed = st.block.x == 1
    while not pushed:
        if FIXED:
            below[1 + t] = top
        st.fence()
        old = st.compare_swap(head, 0, top, 1 + t)
        pushed = old == top
        if not FIXED and pushed:
            below[1 + t] = top
        top = old
    if st.block.x == 1 and t == 0 and top != 0:
        st.fence()
        out[0] = f32(below[top])
