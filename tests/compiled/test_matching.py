"""Matching of source loops with synthetic listings."""

from __future__ import annotations

import numpy as np
import pytest
import simtbed as st
from simtbed.compiled import correspondence
from simtbed.compiled.executions import executions_of
from simtbed.compiled.kernel_launches import KernelLaunches
from simtbed.compiled.path_estimator import PathEstimator
from simtbed.language.hints import Global, f32, float4, i32

from tests.compiled.listings import launched, matched, placed, walked


@st.kernel
def stepping(code: Global[i32], out: Global[i32]) -> None:
    at = st.thread.x
    total = 0
    while at < 64:
        word = code[at]
        at += 8
        if word == 0:
            out[total] = 5
        elif word == 1:
            out[total + 1] = 6
            total += 1
    out[63] = total


def steps() -> KernelLaunches:
    return launched(stepping, code=np.arange(64, dtype=np.int32) % 3, out=st.zeros(64, st.i32))


LOOP, WORD, FIVE, SIX, END = "while (at", "= code[at]", "= 5", "= 6", "out[63]"
IS_ZERO, IS_ONE = "word == 0", "word == 1"
TURNING = [
    ("MOV R1, RZ", LOOP),
    ("BSSY B1, 0x90", SIX),
    ("LDG.E R2, [R4]", WORD),
    ("@P0 BRA 0x60", IS_ZERO),
    ("STG.E [R6], R5", FIVE),
    ("@P1 BRA 0x20", LOOP),
    ("@P2 BRA 0x80", IS_ONE),
    ("STG.E [R6+0x4], R5", SIX),
    ("BSYNC B1", SIX),
    ("@P1 BRA 0x10", LOOP),
    ("STG.E [R8], R1", END),
    ("EXIT", ""),
]
"""A loop to whose second block an arm jumps back by itself."""


def test_separate_back_edges_belong_to_one_loop() -> None:
    (loop,) = matched(steps(), *TURNING).graph.loops
    assert (loop.header, len(loop.latches)) == (1, 2)


def test_a_loop_in_another_is_one_of_its_own() -> None:
    """The outer loop has code of its own in every iteration."""
    rows = [("MOV R3, RZ", WORD) if text.startswith("BSSY") else (text, part) for text, part in TURNING]
    assert len(matched(steps(), *rows).graph.loops) == 2


def test_iterations_of_all_back_edges_are_summed() -> None:
    result = walked(steps(), *TURNING)
    executed_lanes = [one.lanes for one in steps().executed if one.kind in ("global_load", "global_store")]
    assert [result[block][1] for block in (2, 3, 5, 8)] == executed_lanes


@st.kernel
def marking(out: Global[i32]) -> None:
    at = st.thread.x
    seen = 0
    while at < 64:
        seen += at
        at += 8
        if at % 3 == 0:
            out[at] = 5
    out[63] = seen


PREDICATED_COST_SHARE = [
    ("MOV R1, RZ", LOOP),
    ("IADD3 R1, R1, R2, RZ", "seen +="),
    ("@P0 BRA 0x40", "if ("),
    ("STG.E [R6], R5", FIVE),
    ("@P1 BRA 0x10", LOOP),
    ("@P2 IADD3 R1, R1, R2, RZ", "seen +="),
    ("STG.E [R8], R1", END),
    ("EXIT", ""),
]


def test_possibly_predicated_iterations_are_not_walked() -> None:
    """Unless an inner arm has an effect, which would be visible."""
    launches = launched(marking, out=st.zeros(80, st.i32))
    shown = matched(launches, *PREDICATED_COST_SHARE)
    assert not PathEstimator(shown, launches).correspondence.has_silent_iterations
    hidden = matched(launches, *((text, part) for text, part in PREDICATED_COST_SHARE if part != FIVE))
    assert PathEstimator(hidden, launches).correspondence.has_silent_iterations


@st.kernel
def skipping(x: Global[i32], out: Global[i32]) -> None:
    t = st.thread.x
    at = t
    while x[at] == 0:
        at += 1
    out[t] = at


def test_a_test_as_loop_body_has_an_additional_execution() -> None:
    launches = launched(skipping, x=np.arange(64, dtype=np.int32) % 3, out=st.zeros(32, st.i32))
    result = walked(
        launches,
        ("MOV R1, RZ", "int t"),
        ("LDG.E R2, [R4]", "while (x"),
        ("VIADD R1, R1, 0x1", "at += 1"),
        ("@P0 BRA 0x10", "while (x"),
        ("STG.E [R6], R1", "out["),
        ("EXIT", ""),
    )
    assert result == {0: (1, 32), 1: (2, 32 + 11), 2: (2, 32)}


@st.kernel
def summing(x: Global[i32], out: Global[i32]) -> None:
    row = 7 * st.thread.x
    if row < 250:
        total = 0
        for k in range(st.thread.x):
            total += x[k]
        out[row] = total


LENGTHENED = 12
"""Additional instructions of a loop with four iterations per trip over one with single iterations."""


def summed() -> list[int]:
    """Return lanes at two loops, of four iterations per trip and of one. `row` is computed once in the source, before
    both loops in the
    listing."""
    launches = launched(summing, x=np.arange(64, dtype=np.int32), out=st.zeros(256, st.i32))
    result = walked(
        launches,
        *[("IMAD R1, R0, 0x7, RZ", "int row")] * 4,
        ("@P0 BRA 0x1a0", "for ("),
        *[("MOV R8, R1", "int row")] * 4,
        *[("LDG.E R2, [R4]", "total +=")] * 4,
        *[("IADD3 R9, R9, R2, RZ", "total +=")] * LENGTHENED,
        ("@P1 BRA 0x90", "for ("),
        ("@P2 BRA 0x210", "for ("),
        *[("MOV R8, R1", "int row")] * 4,
        ("LDG.E R2, [R4]", "total +="),
        ("@P3 BRA 0x1f0", "for ("),
        ("STG.E [R6], R1", "out["),
        ("EXIT", ""),
    )
    return [result.get(block, (0, 0))[1] for block in (2, 5)]


FEWEST_ROUNDS = [sum(t // 4 for t in range(32)), sum(t % 4 for t in range(32))]


def test_recomputation_before_a_loop_does_not_skip_it() -> None:
    assert summed() == FEWEST_ROUNDS


def test_rounds_cost_more_than_instructions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(correspondence, "COST_TRIP", 0.0)
    assert summed() != FEWEST_ROUNDS


@st.kernel
def parting(out: Global[i32]) -> None:
    t = st.thread.x
    seen = t
    if t % 2 == 0:
        out[t] = 5
    if t % 3 == 0:
        seen = 7 * t
    out[63] = seen


def stored() -> int:
    """Return lanes at a store merged with code of another arm."""
    result = walked(
        launched(parting, out=st.zeros(64, st.i32)),
        ("MOV R1, R0", "int seen"),
        ("@P0 BRA 0xf0", "if ("),
        ("STG.E [R6], R5", FIVE),
        *[("IMAD R2, R0, 0x7, RZ", "seen = 7")] * 12,
        ("STG.E [R8], R1", END),
        ("EXIT", ""),
    )
    return result[1][1]


def test_code_counts_less_than_an_effect(monkeypatch: pytest.MonkeyPatch) -> None:
    assert stored() == 16
    monkeypatch.setattr(correspondence, "COST_MISSING_INSTRUCTION", 0.1)
    assert stored() < 16


@st.kernel
def nesting(x: Global[i32], out: Global[i32]) -> None:
    t = st.thread.x
    seen = t
    if t % 2 == 0:
        if t > 5:
            seen = min(seen, x[t])
        if t < 20:
            seen = min(seen, x[t + 1])
    out[t] = seen


def test_an_arm_may_have_nothing_but_what_is_left_of_arms_inside() -> None:
    """Only predicated code of two inner arms, and code on the test's line, identify the block."""
    launches = launched(nesting, x=np.arange(64, dtype=np.int32), out=st.zeros(32, st.i32))
    rows = [
        ("MOV R1, R0", "int t"),
        ("@P0 BRA 0xa0", "& 1) == 0"),
        *[("ISETP.GT.AND P1, PT, R0, 0x5, PT", "& 1) == 0")] * 4,
        ("@P1 LDG.E R2, [R4]", "x[t])"),
        ("@P1 VIMNMX R1, R1, R2, PT", "x[t])"),
        ("@P2 LDG.E R3, [R4+0x4]", "x[t + 1]"),
        ("@P2 VIMNMX R1, R1, R3, PT", "x[t + 1]"),
        ("STG.E [R6], R1", "out["),
        ("EXIT", ""),
    ]
    ((block, (place, arm)),) = matched(launches, *rows).arms.heads.items()
    assert (block, place[0], arm) == (1, placed(launches, *rows)[1].line, "then")
    result = executions_of(placed(launches, *rows), launches)
    assert [result.threads[n] for n in (0, 2, 10)] == [32, 16, 32]


@st.kernel
def gathering(value: Global[float4], column: Global[i32], x: Global[float4], out: Global[f32]) -> None:
    t = st.thread.x
    total = st.f32(0)
    for k in range(t % 8):
        total += value[k].x * x[column[k]].x
    out[t] = total


def test_iterations_are_counted_by_accesses_of_several_sizes() -> None:
    """An iteration has 16, 4 and 16 bytes on one line; four of them are unrolled."""
    arrays = {"value": st.zeros(8, float4), "x": st.zeros(8, float4)}
    launches = launched(gathering, column=np.arange(8, dtype=np.int32), out=st.zeros(32, st.f32), **arrays)
    line = "column["
    matcher = matched(
        launches,
        ("@P0 BRA 0x60", "for ("),
        ("LDG.E R2, [R4]", line),
        ("LDG.E.128 R8, [R6]", line),
        ("LDG.E.128 R12, [R6]", line),
        ("@P1 BRA 0x10", "for ("),
        ("@P2 BRA 0x120", "for ("),
        *[("LDG.E R2, [R4]", line)] * 4,
        *[("LDG.E.128 R8, [R6]", line)] * 8,
        ("STG.E [R6], R1", "out["),
        ("EXIT", ""),
    )
    ((place, sites),) = matcher.sites_by_place.items()
    assert matcher.copies(sites, matcher.natural_loops(place))[0] == {1: 1, 3: 4}


@st.kernel
def guarded(keys: Global[i32], out: Global[i32]) -> None:
    t = st.thread.x
    st.sync()
    if keys[t] < 8 and keys[t + 1] > 3:
        out[t] = 5


def test_a_load_may_be_hoisted_over_a_barrier() -> None:
    """It is the first of two on its line: lanes that fail its test skip the second."""
    launches = launched(guarded, keys=np.arange(40, dtype=np.int32), out=st.zeros(32, st.i32))
    result = walked(
        launches,
        ("MOV R1, R0", "int t"),
        ("LDG.E R2, [R4]", "&&"),
        ("BAR.SYNC.DEFER_BLOCKING 0x0", "syncthreads"),
        ("@P0 BRA 0x70", "&&"),
        ("LDG.E R2, [R4+0x4]", "&&"),
        ("@P1 BRA 0x70", "&&"),
        ("STG.E [R6], R5", FIVE),
        ("EXIT", ""),
    )
    assert result == {0: (1, 32), 1: (1, 32), 2: (1, 32), 3: (1, 8), 4: (1, 5), 5: (3, 32)}


@st.kernel
def leaving(x: Global[i32], out: Global[i32]) -> None:
    t = st.thread.x
    for k in range(t):
        value = x[k]
        out[t] = value


def test_what_was_moved_behind_a_loop_is_no_iteration() -> None:
    launches = launched(leaving, x=np.arange(32, dtype=np.int32), out=st.zeros(32, st.i32))
    matcher = matched(
        launches,
        ("@P0 BRA 0x40", "for ("),
        ("LDG.E R2, [R4]", "= x["),
        ("@P1 BRA 0x10", "for ("),
        ("STG.E [R6], R2", "out["),
        ("EXIT", ""),
    )
    ((place, sites),) = matcher.sites_by_place.items()
    assert matcher.copies(sites, matcher.natural_loops(place))[0] == {1: 1}


@st.kernel
def searching(x: Global[i32], out: Global[i32]) -> None:
    t = st.thread.x
    result = 0
    for k in range(8):
        result = k
        if x[8 * (t % 2) + k] == 3:
            break
    out[t] = result


def test_code_after_a_loop_exit_test_belongs_to_remaining_lanes() -> None:
    """Only the loop's end remains there."""
    x = np.array([0, 1, 2, 4, 5, 6, 7, 3, *[0] * 8], np.int32)
    launches = launched(searching, x=x, out=st.zeros(32, st.i32))
    rows = [
        ("MOV R6, RZ", "for ("),
        ("LDG.E R2, [R4]", "if ("),
        ("ISETP.NE.AND P0, PT, R2, 0x3, PT", "if ("),
        ("@!P0 BRA 0x70", "if ("),
        ("VIADD R6, R6, 0x1", "for ("),
        ("@P1 BRA 0x10", "for ("),
        ("MOV R7, R6", "out["),
        ("STG.E [R8], R6", "out["),
        ("EXIT", ""),
    ]
    assert matched(launches, *rows).arms.heads[2] == ((placed(launches, *rows)[1].line,), "else")
    result = {block: threads for block, (_, threads) in walked(launches, *rows).items()}
    assert result == {0: 32, 1: 256, 2: 240, 3: 16, 4: 32}
    assert executions_of(placed(launches, *rows), launches).threads[4] == 240


@st.kernel
def folding(x: Global[i32], out: Global[i32], rounds: i32) -> None:
    t = st.thread.x
    total = 0
    for _ in range(rounds):
        value = x[t]
        total = total * 3 ^ value
    out[t] = total


def test_a_load_that_was_taken_out_of_a_loop_is_no_iteration() -> None:
    launches = launched(folding, x=np.arange(32, dtype=np.int32), out=st.zeros(32, st.i32), rounds=np.int32(6))
    rows = [
        ("LDG.E R2, [R4]", "= x["),
        ("IMAD R3, R3, 0x3, R2", "* 3"),
        ("@P1 BRA 0x10", "for ("),
        ("STG.E [R6], R3", "out["),
        ("EXIT", ""),
    ]
    matcher = matched(launches, *rows)
    ((place, sites),) = matcher.sites_by_place.items()
    assert matcher.copies(sites, matcher.natural_loops(place))[0] == {1: 1}
    assert executions_of(placed(launches, *rows), launches).threads.tolist() == [32, 192, 192, 32, 32]


def test_a_load_before_a_loop_may_be_a_peeled_iteration() -> None:
    launches = launched(folding, x=np.arange(32, dtype=np.int32), out=st.zeros(32, st.i32), rounds=np.int32(6))
    rows = [
        ("LDG.E R2, [R4]", "= x["),
        ("IMAD R3, R3, 0x3, R2", "* 3"),
        ("LDG.E R2, [R4]", "= x["),
        ("IMAD R3, R3, 0x3, R2", "* 3"),
        ("@P1 BRA 0x20", "for ("),
        ("STG.E [R6], R3", "out["),
        ("EXIT", ""),
    ]
    assert executions_of(placed(launches, *rows), launches).threads[2] == 5 * 32


@st.kernel
def exchanging(x: Global[i32], out: Global[i32], n: i32) -> None:
    own = x[st.lane]
    for k in range(n):
        before = st.shuffle_up(own, 1)
        own += st.shuffle_down(before, 1)
        out[k * 32 + st.lane] = own


def test_where_lines_disagree_the_step_of_the_loop_decides() -> None:
    """Two iterations per trip: nvcc gives merged code the following line."""
    up, down, store = "__shfl_up", "__shfl_down", "out[k"
    launches = launched(exchanging, x=np.arange(32, dtype=np.int32), out=st.zeros(8 * 32, st.i32), n=8)
    rows = [
        ("LDG.E R2, [R4]", "own = x["),
        ("SHFL.UP P0, R3, R2, 0x1, RZ", up),
        ("SHFL.DOWN P0, R3, R3, 0x1, 0x1f", down),
        ("STG.E [R6], R2", store),
        ("SHFL.UP P0, R3, R2, 0x1, RZ", down),
        ("SHFL.DOWN P0, R3, R3, 0x1, 0x1f", down),
        ("STG.E [R6+0x80], R2", store),
        ("VIADD R8, R8, 0xfffffffe", "for"),
        ("ISETP.NE.AND P1, PT, R8, RZ, PT", "for"),
        ("@P1 BRA 0x10", "for"),
        ("EXIT", ""),
    ]
    assert executions_of(placed(launches, *rows), launches).threads[1] == 4 * 32


@st.kernel
def screening(x: Global[i32], out: Global[i32], n: i32) -> None:
    t = st.thread.x
    if t < n:
        holds = x[t] % 3 == 0 and x[t + 32] % 2 == 0
        if not holds and x[t] > 5:
            out[t] = x[t + 64]


def test_an_address_that_was_computed_before_makes_no_arm() -> None:
    """Most of the block is on a line outside of the arm."""
    launches = launched(screening, x=np.arange(96, dtype=np.int32), out=st.zeros(32, st.i32), n=np.int32(30))
    rows = [
        ("@P0 BRA 0x80", "t < n"),
        ("IMAD.WIDE R4, R0, 0x4, R2", "out[t] = x"),
        ("LDG.E R2, [R4]", "bool"),
        ("LDG.E R3, [R4+0x80]", "bool"),
        ("IMAD.HI R6, R2, 0x55555556, RZ", "bool"),
        ("@P1 BRA 0x80", "> 5"),
        ("LDG.E R7, [R4+0x100]", "out[t] = x"),
        ("STG.E [R8], R7", "out[t] = x"),
        ("EXIT", ""),
    ]
    assert 1 not in matched(launches, *rows).arms.heads
