"""Each mistake is reported once, at its line, with the information needed to fix it; the fixed twin has no report."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from simtbed import FaultError, Kernel, Result, empty, launch

from tests.checkers import faulty as f

X = np.arange(256, dtype=np.float32)
BUGGY: dict[str, tuple[Kernel, dict[str, Any], int, int]] = {
    "halo_too_far": (f.halo_too_far, {"x": X[:64], "out": empty(64, "f32")}, 1, 64),
    "tree_too_wide": (f.tree_too_wide, {"x": X, "out": empty(4, "f32")}, 4, 64),
    "tree_over_the_end": (f.tree_over_the_end, {"out": empty(64, "f32")}, 3, 64),
    "negative_index": (f.negative_index, {"x": X[:32], "out": empty(32, "f32")}, 1, 32),
    "barrier_in_a_branch": (f.barrier_in_a_branch, {"out": empty(64, "i32")}, 2, 64),
    "barrier_by_warp": (f.barrier_by_warp, {"out": empty(64, "i32")}, 1, 64),
    "spin": (f.spin, {"flag": np.zeros(1, np.int32), "out": empty(2, "i32")}, 1, 32),
    "shuffle_in_a_branch": (f.shuffle_in_a_branch, {"out": empty(32, "i32")}, 1, 32),
    "reads_an_inactive_lane": (f.reads_an_inactive_lane, {"out": empty(32, "i32")}, 1, 32),
    "syncwarp_of_others": (f.syncwarp_of_others, {"out": empty(32, "i32")}, 1, 32),
    "outside_its_own_mask": (f.outside_its_own_mask, {"out": empty(32, "i32")}, 1, 32),
    "assertion_fails": (f.assertion_fails, {"out": empty(128, "i32")}, 1, 128),
}
FIXED: dict[str, tuple[Kernel, dict[str, Any], int, int]] = {
    "halo": (f.halo, {"x": X[:64], "out": empty(64, "f32")}, 1, 64),
    "barrier_beside_a_branch": (f.barrier_beside_a_branch, {"out": empty(64, "i32")}, 2, 64),
    "shuffle_beside_a_branch": (f.shuffle_beside_a_branch, {"out": empty(32, "i32")}, 1, 32),
}


def run(kernel: Kernel, args: dict[str, Any], grid: int, block: int) -> Result:
    return launch(kernel, grid=grid, block=block, args=args, faults="return", step_limit=1000)


@pytest.mark.parametrize("name", BUGGY)
def test_the_report(name: str, golden: Callable[[str, str], None]) -> None:
    result = run(*BUGGY[name])
    golden(
        f"fault_{name}.txt",
        "\n".join(f"{fault}\n      ({fault.kind}, {fault.count} times)" for fault in result.faults) + "\n",
    )


@pytest.mark.parametrize("name", FIXED)
def test_the_fixed_twin_is_silent(name: str) -> None:
    assert run(*FIXED[name]).faults == []


def test_launch_raises_by_default() -> None:
    kernel, args, grid, block = BUGGY["halo_too_far"]
    with pytest.raises(FaultError, match=r"global read out of bounds: x\[64\]") as caught:
        launch(kernel, grid=grid, block=block, args=args)
    assert caught.value.result.out[:63].tolist() == [2 * i + 1 for i in range(63)]


def test_a_bad_access_does_no_harm() -> None:
    """Out of bounds, a load gives 0 and a store is dropped."""
    result = run(*BUGGY["halo_too_far"])
    assert result.out[63] == 63
    result = run(*BUGGY["negative_index"])
    assert result.out[0] == 0 and result.out[1] == 0


def test_a_cut_off_loop_ends_its_lanes_only() -> None:
    result = run(*BUGGY["spin"])
    assert result.out.tolist() == [5, 7]
    assert [fault.kind for fault in result.faults] == ["step limit"]


def test_one_mistake_is_one_report() -> None:
    """Three blocks, 32 lanes each, one site: one diagnostic, counted."""
    result = run(*BUGGY["tree_over_the_end"])
    (fault,) = result.faults
    assert fault.count == 3 * 32
    assert "31 more lanes of this warp too" in fault.notes[0]
