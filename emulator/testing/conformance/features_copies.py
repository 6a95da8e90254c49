"""Feature kernels of barriers in shared memory. See features.py."""

from __future__ import annotations

import simtbed as st
from simtbed import Global, i32

from .feature import feature, out


@feature([sum(range(32)) * (k + 1) + x for k in range(4) for x in range(32)], block=64, out=out(128))
@st.kernel
def phases_of_barriers(out: Global[i32]) -> None:
    """Warp 0 fills a buffer four times; warp 1 reads it. No warp waits for a later one."""
    barriers = st.shared(st.u64, 2)
    buffer = st.shared(i32, 32)
    if st.thread.x == 0:
        st.mbarrier_init(barriers, 0, 33)
        st.mbarrier_init(barriers, 1, 32)
    st.sync()
    for k in range(4):
        if st.warp == 0:
            if k > 0:
                while not st.mbarrier_try_wait_parity(barriers, 1, (k + 1) % 2):
                    pass
            buffer[st.lane] = st.lane * (k + 1)
            st.mbarrier_arrive(barriers, 0)
            if st.lane == 0:
                st.mbarrier_expect_tx(barriers, 0, 8)
                st.mbarrier_arrive_expect_tx(barriers, 0, 8)
                st.mbarrier_complete_tx(barriers, 0, 16)
        else:
            while not st.mbarrier_test_wait_parity(barriers, 0, k % 2):
                pass
            total = st.lane
            for i in range(32):
                total += buffer[i]
            out[32 * k + st.lane] = total
            st.mbarrier_arrive(barriers, 1)
        st.sync()
    if st.thread.x == 0:
        st.mbarrier_inval(barriers, 0)
        st.mbarrier_init(barriers, 0, 64)
    st.sync()
    state = st.mbarrier_arrive(barriers, 0)
    st.sync()
    while not st.mbarrier_test_wait(barriers, 0, state):
        pass
