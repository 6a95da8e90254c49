"""Paths through unrolled loops by number of iterations."""

from __future__ import annotations

import numpy as np
import pytest
from simtbed.compiled.control_flow import Graph, graph
from simtbed.compiled.source_statements import LoopExecutions
from simtbed.compiled.unrolled_loops import LoopRegion, UnrollingPaths, executions, region

from tests.hardware.listing import instructions

UNROLLED = """
    2 | @!P0 BRA `(end)
    2 | @!P1 BRA `(four)
    one:
    3 | LDG.E R0, [R0]
    2 | @P1 BRA `(one)
    four:
    2 | @P2 BRA `(end)
    body:
    3 | LDG.E R1, [R1]
    3 | LDG.E R2, [R2]
    3 | LDG.E R3, [R3]
    3 | LDG.E R4, [R4]
    2 | @P2 BRA `(body)
    end:
    4 | EXIT
"""
"""A loop for what remains (block 2), then one that is unrolled four times (block 4)."""
REMAINDER_LOOP, MAIN_LOOP = 2, 4


@pytest.fixture(scope="module")
def unrolled() -> tuple[Graph, LoopRegion]:
    whole = graph(instructions(UNROLLED))
    return whole, region(whole, {REMAINDER_LOOP: 1, MAIN_LOOP: 4}, whole.loops, None, frozenset({0, 1, 3}))


def loop_executions(*patterns: tuple[int, list[int]], unrecorded: tuple[int, int, int] = (0, 0, 0)) -> LoopExecutions:
    """Return executions by warps with their first lanes active, and the iterations of these."""
    iterations, lanes = np.zeros((len(patterns), 32), np.int32), np.zeros((len(patterns), 32), np.bool_)
    for row, (_, lane_iterations) in enumerate(patterns):
        iterations[row, : len(lane_iterations)], lanes[row, : len(lane_iterations)] = lane_iterations, True
    return LoopExecutions(np.array([count for count, _ in patterns]), lanes, iterations, unrecorded)


def test_a_region_ends_at_reconvergence(
    unrolled: tuple[Graph, LoopRegion],
) -> None:
    _, result = unrolled
    assert (result.entry, result.past, sorted(result.blocks)) == (0, 5, [0, 1, 2, 3, 4])


@pytest.mark.parametrize("iterations", [0, 1, 3, 4, 7, 8, 100, 1_000_003])
def test_the_largest_body_takes_what_it_can(unrolled: tuple[Graph, LoopRegion], iterations: int) -> None:
    result = UnrollingPaths(*unrolled).executions(iterations)
    assert result is not None
    assert (result[REMAINDER_LOOP], result[MAIN_LOOP]) == (iterations % 4, iterations // 4)


def test_warps_iterate_as_often_as_their_longest_lane(unrolled: tuple[Graph, LoopRegion]) -> None:
    result = executions(UnrollingPaths(*unrolled), [loop_executions((10, [4, 3]), (1, [8, 8]))], 1.0)
    assert result is not None
    assert (result.threads[REMAINDER_LOOP], result.warps[REMAINDER_LOOP]) == (30, 30)
    assert (result.threads[MAIN_LOOP], result.warps[MAIN_LOOP]) == (10 + 4, 10 + 2)
    assert result.entries == {REMAINDER_LOOP: 10, MAIN_LOOP: 10 + 2}


def test_lanes_with_more_iterations_diverge(unrolled: tuple[Graph, LoopRegion]) -> None:
    result = executions(UnrollingPaths(*unrolled), [loop_executions((2, [1, 2, 3, 3]))], 1.0)
    assert result is not None
    assert result.divergences == {REMAINDER_LOOP: 2 * 2, MAIN_LOOP: 0}


def test_unrecorded_executions_are_scaled(unrolled: tuple[Graph, LoopRegion]) -> None:
    result = executions(UnrollingPaths(*unrolled), [loop_executions((10, [4]), unrecorded=(5, 20, 20))], 1.0)
    assert result is not None
    assert result.threads[MAIN_LOOP] == 15


def test_predicated_iterations_keep_the_counts_of_bodies() -> None:
    """Without a remainder loop, up to three iterations are predicated after the body."""
    code = "2 | @!P0 BRA `(end)\n body:\n 3 | IADD3 R7, R7, R0, RZ\n 2 | @P1 BRA `(body)\n end:\n 3 | @P2 IADD3 R7, R7, R1, RZ\n 4 | EXIT"
    whole = graph(instructions(code))
    paths = UnrollingPaths(whole, region(whole, {1: 4}, whole.loops, None, frozenset({0})))
    assert [paths.executions(n)[1] for n in (0, 3, 4, 11)] == [0, 0, 1, 2]  # type: ignore[index]


def test_dominators_and_natural_loops() -> None:
    whole = graph(instructions(UNROLLED))
    assert whole.dominators == (None, 0, 1, 1, 3, 0)
    assert whole.postdominators == (5, 3, 3, 5, 5, None)
    assert [(loop.header, loop.latches) for loop in whole.loops] == [
        (REMAINDER_LOOP, (REMAINDER_LOOP,)),
        (MAIN_LOOP, (MAIN_LOOP,)),
    ]


REST = """
    2 | @!P0 BRA `(end)
    2 | @!P1 BRA `(main)
    3 | LDG.E R0, [R0]
    2 | @!P2 BRA `(main)
    3 | LDG.E R1, [R1]
    3 | @P3 LDG.E R2, [R2]
    main:
    2 | @!P4 BRA `(end)
    2 | MOV R9, R8
    body:
    3 | LDG.E R4, [R4]
    4 | @P5 BRA `(skip)
    5 | FADD R6, R6, R6
    skip:
    2 | @P6 BRA `(body)
    end:
    6 | BSYNC B0
    7 | EXIT
"""
"""One, two or three iterations first, written out (blocks 2 and 3), then a loop of four (blocks 6 to 8)."""


@pytest.fixture(scope="module")
def rest() -> UnrollingPaths:
    whole = graph(instructions(REST))
    result = region(whole, {2: 1, 3: 1, 6: 4}, whole.loops, None, frozenset({0}), {3: (1,)})
    return UnrollingPaths(whole, result)


@pytest.mark.parametrize("iterations", range(13))
def test_predicated_iterations_complete_the_count(rest: UnrollingPaths, iterations: int) -> None:
    result = rest.executions(iterations)
    assert result is not None
    assert (result[2], result[3], result[6]) == (iterations % 4 > 0, iterations % 4 > 1, iterations // 4)


def test_lanes_without_iterations_skip_the_bodies(rest: UnrollingPaths) -> None:
    """Block 5 prepares the loop only."""
    assert [rest.executions(n)[5] for n in (0, 3, 4, 7)] == [0, 0, 1, 1]  # type: ignore[index]


def test_what_another_branch_decides_is_not_certain(rest: UnrollingPaths) -> None:
    path = rest.path_of(9)
    assert path is not None
    assert 7 not in path.certain
    assert {1, 2, 3, 4, 5, 6, 8} <= path.certain


def test_groups_leaving_in_different_trips_arrive_separately(rest: UnrollingPaths) -> None:
    result = executions(rest, [loop_executions((1, [4, 4, 8, 12]))], 1.0)
    assert result is not None
    assert (result.threads[9], result.warps[9]) == (4, 3)
    assert 9 in result.certain


def test_a_trip_has_the_iterations_of_all_its_blocks() -> None:
    """Two iterations per trip, in two blocks, and one after the loop."""
    code = "body:\n 3 | LDG.E R0, [R0]\n 4 | BAR.ARV 0x1, 0x40\n 5 | @P1 BRA `(on)\n on:\n 3 | LDG.E R1, [R1]\n 2 | @P0 BRA `(body)\n"
    code += "2 | @!P2 BRA `(end)\n 3 | LDG.E R2, [R2]\n end:\n 6 | EXIT"
    whole = graph(instructions(code))
    (loop,) = whole.loops
    first, second = sorted(loop.body)
    paths = UnrollingPaths(whole, region(whole, {first: 1, second: 1, 3: 1}, whole.loops, None, frozenset()))
    result = paths.executions(71)
    assert result is not None
    assert (result[first], result[second], result[3]) == (35, 35, 1)


def test_a_final_test_in_the_body_is_an_iteration() -> None:
    assert loop_executions((2, [0, 3])).with_final_test.iterations[0, :3].tolist() == [1, 4, 0]
    assert loop_executions((2, [1, 3])).with_final_test.iterations[0, :3].tolist() == [1, 3, 0]
