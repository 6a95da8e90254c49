"""Uses of loaded values: proposals of compare-and-swaps, and polls of flags."""

from __future__ import annotations

import numpy as np
import pytest
import simtbed as st
from simtbed import Global, i32
from simtbed.ir import nodes as ir
from simtbed.ir.effects import accesses
from simtbed.passes.load_uses import load_uses
from simtbed.runtime.request import prepare_request

from tests.checkers.test_idioms import SWAPS, Idiom
from tests.passes.bodies import kernels_of
from tests.table_checks import check_each


@pytest.mark.slow
def test_proposals_of_compare_and_swap_loops() -> None:
    """Each load of an idiom with a benign race proposes a swap, none of the others does."""

    def check(row: tuple[Idiom, ir.Function]) -> None:
        loads = [stmt.site for stmt, access in accesses(row[1]) if isinstance(access, ir.Load)]
        assert sorted(load_uses(row[1]).proposals) == loads * bool(row[0].remarks)

    rows = [row for row in SWAPS if row.name != "volatile"]
    for before in {row.before for row in rows}:
        own = [row for row in rows if row.before == before]
        check_each(zip(own, kernels_of([row.body for row in own], before), strict=True), check, lambda row: row[0].name)


@st.kernel
def volatile_loads(x: Global[i32], flag: Global[i32], out: Global[i32]) -> None:
    t = st.thread.x
    if st.volatile_load(flag, 0) > 0:  # a poll
        out[t] = 1
    while True:
        value = st.volatile_load(flag, t)  # a poll: its loop waits
        if value > 0:
            break
    out[t] += value
    if st.any(st.volatile_load(flag, 1) > 0):  # a poll
        out[t] = 2
    other = st.volatile_load(x, t ^ 1)  # data
    st.volatile_store(x, t, other)
    index = st.volatile_load(flag, 2)  # data: an index
    out[index] = 1
    for k in range(4):
        out[t] += st.volatile_load(x, k)  # data
    count = 0
    for k in range(st.volatile_load(flag, 3)):  # data: the sum of k
        count += k
    out[t] = count


def test_polls_of_volatile_loads() -> None:
    arguments = tuple(np.zeros(64, np.int32) for _ in range(3))
    kernel = prepare_request(volatile_loads, grid=1, block=64, args=arguments).prepared.program.kernel
    volatile = [s for s, access in accesses(kernel) if isinstance(access, ir.Load) and access.order == "volatile"]
    polls = [stmt.site in load_uses(kernel).polls for stmt in volatile]
    assert polls == [True, True, True, False, False, False, False]
    assert not load_uses(kernel).proposals
