"""Faults that every launch reports, without checks: once, at their line, with the information needed to correct them."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import simtbed as st
from simtbed import FaultError, Global, Kernel, Result, empty, f32, i32, launch

from tests.checkers.corpus import PAIRS


@st.kernel
def tree_over_the_end(out: Global[f32]) -> None:
    partial = st.shared(f32, 64)
    t = st.thread.x
    width = 32
    partial[t] = f32(1)
    st.sync()
    partial[t] += partial[t + width]
    out[t] = partial[t]


@st.kernel
def spin(flag: Global[i32], out: Global[i32]) -> None:
    if st.thread.x == 0:
        while flag[0] == 0:
            out[1] = 7
    out[0] = 5


@st.kernel
def assertion_fails(out: Global[i32]) -> None:
    assert st.thread.x < 70, "only 70 threads"
    out[st.thread.x] = 1


FAULTY: dict[str, tuple[Kernel, dict[str, Any], int, int]] = {
    "tree_over_the_end": (tree_over_the_end, {"out": empty(64, "f32")}, 3, 64),
    "spin": (spin, {"flag": np.zeros(1, np.int32), "out": empty(2, "i32")}, 1, 32),
    "assertion_fails": (assertion_fails, {"out": empty(128, "i32")}, 1, 128),
}
OF_CORPUS = (
    "halo_to_the_right", "halo_to_the_left", "reduction_one_too_wide", "barrier_in_a_divergent_branch", "turns_by_warp",
    "shuffle_in_a_divergent_branch", "shuffle_reads_a_lane_that_left", "syncwarp_of_lanes_elsewhere", "vote_on_a_partial_mask",
)  # fmt: skip


def run(name: str) -> Result:
    if name in FAULTY:
        kernel, args, grid, block = FAULTY[name]
    else:
        pair = PAIRS[name]
        kernel, args, grid, block = pair.kernel, {**pair.args, "FIXED": False}, pair.grid, pair.block
    return launch(kernel, grid=grid, block=block, args=args, faults="return", step_limit=1000)


@pytest.mark.parametrize("name", [*FAULTY, *OF_CORPUS])
def test_the_report(name: str, golden: Callable[[str, str], None]) -> None:
    faults = run(name).faults
    golden(f"fault_{name}.txt", "\n".join(f"{one}\n      ({one.kind}, {one.count} times)" for one in faults) + "\n")


def test_launch_raises_by_default() -> None:
    args = {"x": np.arange(64, dtype=np.float32), "out": empty(64, "f32"), "FIXED": False}
    with pytest.raises(FaultError, match=r"global read out of bounds: x\[64\]") as caught:
        launch(PAIRS["halo_to_the_right"].kernel, grid=1, block=64, args=args)
    assert caught.value.result.out[:63].tolist() == [2 * i + 1 for i in range(63)]
    assert caught.value.result.out[63] == 63  # a load out of bounds gives 0


def test_a_cut_off_loop_ends_its_lanes_only() -> None:
    result = run("spin")
    assert result.out.tolist() == [5, 7]
    assert [fault.kind for fault in result.faults] == ["step limit"]


def test_one_mistake_is_one_report() -> None:
    """Three blocks, 32 lanes each, one site: one diagnostic, counted."""
    (fault,) = run("tree_over_the_end").faults
    assert fault.count == 3 * 32
    assert "31 more lanes of this warp too" in fault.notes[0]
