"""Stages of a loop: which blocks a lane goes through, by the number of its iterations."""

from __future__ import annotations

import numpy as np
import pytest
from simtbed.compiled.control_flow import Graph, graph
from simtbed.compiled.source import Turns
from simtbed.compiled.stages import Region, Ways, executions, region

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
ONE, FOUR = 2, 4


@pytest.fixture(scope="module")
def unrolled() -> tuple[Graph, Region]:
    whole = graph(instructions(UNROLLED))
    return whole, region(whole, {ONE: 1, FOUR: 4}, whole.loops, None, frozenset({0, 1, 3}))


def turns(*patterns: tuple[int, list[int]], others: tuple[int, int, int] = (0, 0, 0)) -> Turns:
    """Executions by warps whose first lanes came, with their iterations."""
    iterations, lanes = np.zeros((len(patterns), 32), np.int32), np.zeros((len(patterns), 32), np.bool_)
    for row, (_, each) in enumerate(patterns):
        iterations[row, : len(each)], lanes[row, : len(each)] = each, True
    return Turns(np.array([count for count, _ in patterns]), lanes, iterations, others)


def test_a_region_reaches_from_the_first_test_to_where_lanes_are_together_again(unrolled: tuple[Graph, Region]) -> None:
    _, found = unrolled
    assert (found.entry, found.past, sorted(found.blocks)) == (0, 5, [0, 1, 2, 3, 4])


@pytest.mark.parametrize("iterations", [0, 1, 3, 4, 7, 8, 100, 1_000_003])
def test_the_largest_body_takes_what_it_can(unrolled: tuple[Graph, Region], iterations: int) -> None:
    found = Ways(*unrolled).executions(iterations)
    assert found is not None
    assert (found[ONE], found[FOUR]) == (iterations % 4, iterations // 4)


def test_warps_turn_as_often_as_their_longest_lane_stage_by_stage(unrolled: tuple[Graph, Region]) -> None:
    found = executions(Ways(*unrolled), [turns((10, [4, 3]), (1, [8, 8]))], 1.0)
    assert found is not None
    assert (found.threads[ONE], found.warps[ONE]) == (30, 30)
    assert (found.threads[FOUR], found.warps[FOUR]) == (10 + 4, 10 + 2)
    assert found.entries == {ONE: 10, FOUR: 10 + 2}


def test_lanes_that_turn_longer_part_from_the_others(unrolled: tuple[Graph, Region]) -> None:
    found = executions(Ways(*unrolled), [turns((2, [1, 2, 3, 3]))], 1.0)
    assert found is not None
    assert found.parted == {ONE: 2 * 2, FOUR: 0}


def test_executions_that_are_not_told_apart_are_as_the_others(unrolled: tuple[Graph, Region]) -> None:
    found = executions(Ways(*unrolled), [turns((10, [4]), others=(5, 20, 20))], 1.0)
    assert found is not None
    assert found.threads[FOUR] == 15


def test_predicated_iterations_leave_the_bodies_what_they_would_have() -> None:
    """Without a loop for what remains, up to three iterations are predicated instructions behind the body."""
    code = "2 | @!P0 BRA `(end)\n body:\n 3 | IADD3 R7, R7, R0, RZ\n 2 | @P1 BRA `(body)\n end:\n 3 | @P2 IADD3 R7, R7, R1, RZ\n 4 | EXIT"
    whole = graph(instructions(code))
    ways = Ways(whole, region(whole, {1: 4}, whole.loops, None, frozenset({0})))
    assert [ways.executions(n)[1] for n in (0, 3, 4, 11)] == [0, 0, 1, 2]  # type: ignore[index]


def test_dominators_and_natural_loops() -> None:
    whole = graph(instructions(UNROLLED))
    assert whole.dominators == (None, 0, 1, 1, 3, 0)
    assert whole.postdominators == (5, 3, 3, 5, 5, None)
    assert [(loop.header, loop.latches) for loop in whole.loops] == [(ONE, (ONE,)), (FOUR, (FOUR,))]
