"""The race rule is stated twice: `sanitizer.races.detect` and the LLVM fast paths. They agree on random sequences of accesses.

The numpy engine calls `detect.access` for each access, the jit engine takes the fast paths first. After each launch, both must
have the same findings and equivalent shadow memory.
"""

from dataclasses import dataclass
from typing import Any

import hypothesis.strategies as strategies
import numpy as np
import pytest
import simtbed as st
from hypothesis import given, settings
from simtbed import Const, Global, i32, launch
from simtbed.runtime.registry import EngineName
from simtbed.sanitizer import repairs
from simtbed.sanitizer.races.shadow import TICK, RaceState
from simtbed.sanitizer.tracking import Plan

BLOCKS, THREADS, WARPS, ELEMENTS, STEPS = 2, 64, 2, 96, 8
READ, WRITE, READ_ROW, WRITE_ROW, READ_ONE, WRITE_ONE, SYNCWARP, FENCE, FLAG = range(9)
"""Operations of a warp: accesses to any elements, to consecutive ones, to one; synchronisation; an atomic operation."""
LANES = np.arange(THREADS)
INDICES = strategies.sampled_from(
    [
        LANES.tolist(),
        (LANES ^ 1).tolist(),
        (LANES ^ 32).tolist(),
        (LANES // 2).tolist(),
        np.where(LANES % 32 < 16, LANES, -1).tolist(),
        np.where(LANES % 32 == 5, 0, -1).tolist(),
        [0] * THREADS,
    ]
) | strategies.lists(strategies.integers(-1, ELEMENTS - 1), min_size=THREADS, max_size=THREADS)
"""Elements by thread; inactive lanes have -1."""


@st.device
def access(array: st.Array[i32], kind: i32, at: i32, shift: i32) -> i32:
    result = 0
    if kind == READ:
        result = array[at]
    elif kind == WRITE:
        array[at] = 1
    elif kind == READ_ROW:
        result = array[shift + st.thread.x]
    elif kind == WRITE_ROW:
        array[shift + st.thread.x] = 1
    elif kind == READ_ONE:
        result = array[shift]
    elif kind == WRITE_ONE:
        array[shift] = 1
    return result


@st.kernel
def interpret(
    kinds: Global[i32], barriers: Global[i32], shifts: Global[i32], index: Global[i32], x: Global[i32], flag: Global[i32],
    FENCES: Const,
) -> None:  # fmt: skip
    """Execute a sequence of operations on a shared and a global array.

    kinds: by step and warp. index: by step and thread; an inactive lane has -1. FENCES: 1 to compile fences and atomic operations.
    """
    own = st.shared(i32, ELEMENTS)
    for step in range(STEPS):
        kind = kinds[WARPS * step + st.warp]
        at = index[THREADS * step + st.thread.x]
        if kind == SYNCWARP:
            st.syncwarp()
        for _ in st.unroll(range(FENCES)):
            if kind == FENCE:
                st.fence()
            if kind == FLAG:
                st.atomic_add(flag, 0, 1)
        if at >= 0:
            access(own, kind, at, shifts[step])
            access(x, kind, at, shifts[step])
        if barriers[step] != 0:
            st.sync()


@dataclass(frozen=True)
class Sequence:
    """Arguments of `interpret`: kinds[step, warp], barriers[step], shifts[step], index[step, thread]."""

    kinds: list[int]
    barriers: list[int]
    shifts: list[int]
    index: list[int]


SEQUENCES = strategies.builds(
    Sequence,
    strategies.lists(strategies.integers(READ, FLAG), min_size=STEPS * WARPS, max_size=STEPS * WARPS),
    strategies.lists(strategies.sampled_from([0, 0, 1]), min_size=STEPS, max_size=STEPS),
    strategies.lists(strategies.sampled_from([0, 0, 1, ELEMENTS - THREADS]), min_size=STEPS, max_size=STEPS),
    strategies.lists(INDICES, min_size=STEPS, max_size=STEPS).map(lambda rows: [at for row in rows for at in row]),
)


def _run(sequence: Sequence, engine: EngineName, device: st.Device, fences: int) -> tuple[list[Any], Any]:
    """Return the findings of a launch, and its shadow memory with timestamps replaced by their ranks and rows of the log."""
    states: list[RaceState] = []
    report = Plan.report

    def spy(self: Plan, recorded_state: RaceState, *rest: Any) -> None:
        copies: list[Any] = [np.array(array) for array in recorded_state]
        states.append(RaceState(*copies))
        report(self, recorded_state, *rest)

    arguments: dict[str, Any] = {name: np.array(value, np.int32) for name, value in vars(sequence).items()}
    arguments |= {"x": np.zeros(ELEMENTS, np.int32), "flag": np.zeros(1, np.int32), "FENCES": fences}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Plan, "report", spy)
        patch.setattr(repairs, "MAX_TRIALS", 0)  # one run
        launch(
            interpret, grid=BLOCKS, block=THREADS, args=arguments, check="races", faults="return", engine=engine, device=device
        )  # fmt: skip
    (state,) = states
    epochs = np.asarray(state.epochs)
    timestamps, ranks = np.unique(epochs // TICK, return_inverse=True)
    rows = np.asarray(state.log).reshape(-1, 4)[timestamps[timestamps > 0]]
    return np.asarray(state.findings).tolist(), [ranks.tolist(), (epochs % TICK).tolist(), rows.tolist()]


@pytest.mark.slow
@pytest.mark.parametrize("fences", [0, 1])
@pytest.mark.parametrize("device", [st.devices.H200, st.devices.K40], ids=["independent lanes", "warp-synchronous"])
@settings(max_examples=25, deadline=None)
@given(sequence=SEQUENCES)
def test_fast_paths_and_the_race_rule_agree(device: st.Device, fences: int, sequence: Sequence) -> None:
    assert _run(sequence, "jit", device, fences) == _run(sequence, "numpy", device, fences)
