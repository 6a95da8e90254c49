"""Loop counters: steps per trip, exhausted edges, remainder loops."""

from __future__ import annotations

import numpy as np
import pytest
import simtbed as st
from simtbed.compiled.control_flow import Graph, graph
from simtbed.compiled.executions import executions_of
from simtbed.compiled.expanded_cfg import ExpandedCfg
from simtbed.compiled.loop_counters import bounded_loops, exhausted_loop_edges, iterations, source_step
from simtbed.engines.cuda.sass import Instruction
from simtbed.language.hints import Global, i32, u32

from tests.compiled.listings import launched, placed


def counting(test: str, jump: str = "@!P0 BRA 0x30", step: str = "-0x4") -> Graph:
    """Return a graph with a loop that counts down, after a test with two blocks in between."""
    texts = (
        test,
        jump,
        "MOV R9, R8",
        f"IADD3 R3, R3, {step}, RZ",
        "ISETP.NE.AND P0, PT, R3, RZ, PT",
        "@P0 BRA 0x30",
        "EXIT",
    )
    return graph(tuple(Instruction(16 * n, text) for n, text in enumerate(texts)))


@pytest.mark.parametrize(
    ("test", "jump", "step", "result"),
    [
        ("ISETP.GT.AND P0, PT, R3, RZ, PT", "@!P0 BRA 0x30", "-0x4", {(0, 2)}),
        ("ISETP.GT.AND P0, PT, R3.reuse, RZ, PT", "@!P0 BRA 0x30", "0xfffffffc", {(0, 2)}),
        ("ISETP.LT.AND P0, PT, RZ, R3, PT", "@!P0 BRA 0x30", "-0x4", {(0, 2)}),
        ("ISETP.GE.AND P0, PT, R3, 0x1, PT", "@!P0 BRA 0x30", "-0x4", {(0, 2)}),
        ("ISETP.GT.AND P0, PT, R3, RZ, PT", "@P0 BRA 0x30", "-0x4", set()),
        ("ISETP.GT.AND P0, PT, R4, RZ, PT", "@!P0 BRA 0x30", "-0x4", set()),
        ("ISETP.GT.AND P0, PT, R3, 0xc, PT", "@!P0 BRA 0x30", "-0x4", set()),
        ("ISETP.GT.AND P1, PT, R3, RZ, PT", "@!P0 BRA 0x30", "-0x4", set()),
        ("ISETP.GT.AND P0, PT, R3, RZ, PT", "@!P0 BRA 0x30", "0x4", set()),
    ],
)
def test_no_lane_continues_with_an_exhausted_count(
    test: str, jump: str, step: str, result: set[tuple[int, int]]
) -> None:
    assert exhausted_loop_edges(counting(test, jump, step)) == result


def test_a_count_may_end_below_zero_after_reconvergence() -> None:
    texts = (
        "ISETP.GT.AND P0, PT, R8, -0x1, PT",
        "@!P0 BRA 0x30",
        "MOV R9, R8",
        "BSYNC B1",
        "BSSY B1, 0x90",
        "IADD3 R8, R8, -0x4, RZ",
        "ISETP.NE.AND P0, PT, R8, {}, PT",
        "@P0 BRA 0x50",
        "EXIT",
    )
    result = [
        exhausted_loop_edges(graph(tuple(Instruction(16 * n, text.format(end)) for n, text in enumerate(texts))))
        for end in ("-0x1", "RZ")
    ]
    assert result == [{(0, 2)}, set()]


@st.kernel
def adding(x: Global[i32], out: Global[i32]) -> None:
    t = st.thread.x
    total = 0
    for k in range(4 * (t % 4 + 1)):
        total += x[k]
    out[t] = total


def test_lanes_pass_the_tests_for_larger_bodies() -> None:
    """Bodies of eight and four iterations; the latter is also reachable with an exhausted count."""
    launches = launched(adding, x=np.arange(16, dtype=np.int32), out=st.zeros(32, st.i32))
    line, loop = "x[", "for ("
    rows = [
        ("ISETP.GT.AND P0, PT, R3, RZ, PT", loop),
        ("@!P0 BRA 0x110", loop),
        ("ISETP.GT.AND P1, PT, R3, 0x4, PT", loop),
        ("@!P1 BRA 0x100", loop),
        *[("LDG.E R4, [R6]", line)] * 8,
        ("IADD3 R3, R3, -0x8, RZ", loop),
        ("ISETP.GT.AND P1, PT, R3, 0x4, PT", loop),
        ("@P1 BRA 0x40", loop),
        ("MOV R9, R8", loop),
        ("@!P0 BRA 0x180", loop),
        *[("LDG.E R4, [R6]", line)] * 4,
        ("IADD3 R3, R3, -0x4, RZ", loop),
        ("ISETP.NE.AND P0, PT, R3, RZ, PT", loop),
        ("@P0 BRA 0x110", loop),
        ("STG.E [R6], R4", "out["),
        ("EXIT", ""),
    ]
    result = executions_of(placed(launches, *rows), launches)
    assert [result.threads[n] for n in (0, 2, 4, 16, 17, 24)] == [32, 32, 32, 32, 16, 32]


# ------------------------------------------------------------------ steps of the source
@st.kernel
def counting_loops(out: Global[i32], n: i32, by: i32) -> None:
    k = n
    while k > 0:
        k -= 3
    total = u32(n) * u32(2654435769)
    while total != u32(0):
        total = total - u32(2654435769)
        k += 1
    while k < n:
        if k > 7:
            k += 2
        k += 1
    while k > 1:
        k = k // 2
    for each in range(n, 0, -4):
        k += each
    for each in range(0, n, by):
        k += each
    out[0] = k


def test_a_loop_is_stepped_by_what_alone_changes_what_it_tests() -> None:
    launches = launched(counting_loops, out=st.zeros(1, st.i32), n=5, by=2)
    loops = launches.statements.loops
    assert [source_step(loops[site]) for site in sorted(loops)] == [3, 2654435769, 1, 1, -4, 1]


@pytest.mark.parametrize(
    ("amount", "step", "result"),
    [
        (12, 3, 4),
        (12, -3, 4),
        (4, 128, 4),  # counts iterations, not the source's variable
        (0xE443238, 2654435769, 8),  # wraps around 32 bits
        (8, 2654435769, 8),
        (1, 1, 1),
    ],
)
def test_iterations_are_inferred_from_steps(amount: int, step: int, result: int) -> None:
    assert iterations(amount, step) == result


@pytest.mark.parametrize(
    ("before", "decrement", "end", "most"),
    [
        (["LOP3.LUT P0, R3, R8, 0x3, RZ, 0xc0, !PT"], "IADD3 R3, R3, -0x1, RZ", "NE.AND P0, PT, R3, RZ", 3),
        (["LOP3.LUT R4, R8, 0x7, RZ, 0xc0, !PT", "MOV R3, R4"], "VIADD R3, R3, 0xffffffff", "NE.AND P0, PT, R3, RZ", 7),
        (["LOP3.LUT R3, R8, 0x3, RZ, 0xc0, !PT"], "IADD3 R3, R3, -0x4, RZ", "NE.AND P0, PT, R3, RZ", None),
        (["LOP3.LUT R3, R8, 0x3, RZ, 0xc0, !PT"], "IADD3 R3, R3, -0x1, RZ", "NE.AND P0, PT, R3, 0x1", None),
        (["LOP3.LUT R3, R8, 0x3, RZ, 0xfc, !PT"], "IADD3 R3, R3, -0x1, RZ", "NE.AND P0, PT, R3, RZ", None),
        (["LOP3.LUT R3, R8, 0x3, RZ, 0xc0, !PT", "MOV R3, R9"], "IADD3 R3, R3, -0x1, RZ", "NE.AND P0, PT, R3, RZ", None),
    ],
)  # fmt: skip
def test_remainder_loops_are_bounded(before: list[str], decrement: str, end: str, most: int | None) -> None:
    first = 16 * (len(before) + 1)
    texts = (*before, "BRA " + hex(first), decrement, f"ISETP.{end}, PT", f"@P0 BRA {hex(first)}", "EXIT")
    whole = graph(tuple(Instruction(16 * n, text) for n, text in enumerate(texts)))
    assert [(sorted(loop.body), few) for loop, few in bounded_loops(whole)] == ([([1], most)] if most else [])


def test_a_bounded_loop_has_a_node_per_iteration() -> None:
    """Only the last one leads out."""
    texts = (
        "LOP3.LUT R3, R8, 0x3, RZ, 0xc0, !PT", "NOP", "BSSY B0, 0x60", "@P1 BRA 0x50", "NOP", "BSYNC B0", "IADD3 R3, R3, -0x1, RZ",
        "ISETP.NE.AND P0, PT, R3, RZ, PT", "@P0 BRA 0x20", "EXIT",
    )  # fmt: skip
    nodes = ExpandedCfg(graph(tuple(Instruction(16 * n, text) for n, text in enumerate(texts))))
    named = list(zip(nodes.blocks, nodes.iterations, strict=True))
    successors = {named[n]: [named[k] for k in onward] for n, onward in enumerate(nodes.successors)}
    assert sorted(successors) == [
        (0, 0),
        *((block, iteration) for block in (1, 2, 3, 4) for iteration in range(3)),
        (5, 0),
    ]
    assert [successors[4, iteration] for iteration in range(3)] == [[(5, 0), (1, 1)], [(5, 0), (1, 2)], [(5, 0)]]
    reconvergence = {
        nodes.iterations[maker]: [nodes.iterations[n] for n in found]
        for maker, found in nodes.convergence_nodes.items()
    }
    assert reconvergence == {0: [0], 1: [1], 2: [2]}
