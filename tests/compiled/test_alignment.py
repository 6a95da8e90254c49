"""Alignment of instructions with source accesses."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as some
from simtbed.compiled.lane_accesses import (
    LOOP_EXIT,
    NOT_PERFORMED,
    Accesses,
    ArrangementCache,
    Visit,
    address_of,
    align_visits,
    arrange_by_address,
)


def visit(
    n: int, accesses: int = 1, predicated: bool = False, block: int = 0, registers: str = "R2", offset: int = 0
) -> Visit:
    return Visit(n, accesses, predicated, (block, registers), offset)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("LDS R7, [R21]", ("R21", 0)),
        ("@!P0 STS [R22+0x10], R3", ("R22", 16)),
        ("LDS.128 R12, [R17+-0x20]", ("R17", -32)),
        ("STG.E desc[UR4][R2.64+0xf80], R12", ("R2.64", 0xF80)),
        ("LDS R3, [R4+UR5+0x8]", ("R4+UR5", 8)),
        ("STS [UR4+0x3fc], RZ", ("UR4", 0x3FC)),
        ("ATOMS.ADD RZ, [0x40], R1", ("", 0x40)),
    ],
)
def test_an_address_has_registers_and_an_offset(text: str, expected: tuple[str, int]) -> None:
    assert address_of(text) == expected


@pytest.mark.parametrize(
    ("sequence", "visited", "expected"),
    [
        ([4, 5, 6], [visit(0), visit(1), visit(0)], [(4,), (5,), (6,)]),
        ([4, 5, 6, 7], [visit(0, 2), visit(1, 2)], [(4, 5), (6, 7)]),
        ([4, 5], [visit(0), visit(0), visit(0)], None),  # one too many without a predicate
        ([4, 5, 6], [visit(0), visit(0)], None),
        ([4, NOT_PERFORMED, 6], [visit(0, predicated=True)] * 3, [(4,), (), (6,)]),
        ([4, NOT_PERFORMED, 6], [visit(0), visit(0)], [(4,), (6,)]),  # skipped by a branch
        ([4, NOT_PERFORMED, 6], [visit(0), visit(0), visit(0, predicated=True)], None),  # not skipped by a branch
        # the second instruction is off for an odd number of iterations
        ([4, LOOP_EXIT, 5, 6, LOOP_EXIT, 7], [visit(0), visit(1, predicated=True)] * 3, [(4,), (), (5,), (6,), (7,), ()]),
        ([4, NOT_PERFORMED], [visit(0, 2, predicated=True)], None),  # half of it
        ([4, 5, 6], [visit(0, 2), visit(1, 2)], None),
        ([], [], []),
        ([NOT_PERFORMED, LOOP_EXIT], [], []),
        ([4], [], None),
    ],
)  # fmt: skip
def test_instructions_match_accesses_in_order(
    sequence: Sequence[int], visited: Sequence[Visit], expected: list[Accesses] | None
) -> None:
    assert align_visits(sequence, visited) == expected


def four_bytes(number: int) -> int:
    return 4 * number


@given(some.lists(some.tuples(some.integers(0, 3), some.permutations(range(5))), min_size=1, max_size=8))
def test_what_was_arranged_once_is_arranged_so_again(rows: list[tuple[int, list[int]]]) -> None:
    """Equal relative addresses are arranged equally at any aligned base."""
    block = [visit(0, registers="R8"), visit(1, 2, registers="R29"), visit(2, 2, registers="R29", offset=8)]
    arranging = ArrangementCache(4)
    for n, (first, order) in enumerate(rows):
        numbers = [100 * n + 10 * first + place for place in order]
        accesses = [(numbers[0],), tuple(numbers[1:3]), tuple(numbers[3:])]
        assert arranging.arrange(block, accesses, four_bytes) == arrange_by_address(block, accesses, 4, four_bytes)


def test_a_block_is_arranged_by_addresses() -> None:
    """The compiler loads the last of three first, and the other two together."""
    block = [visit(0, registers="R8"), visit(1, 2, registers="R29")]
    assert arrange_by_address(block, [(5,), (4, 6)], 4, {4: 24, 5: 20, 6: 16}.__getitem__) == [(4,), (6, 5)]
    assert arrange_by_address(block, [(5,), (4, 6)], 4, {4: 24, 5: 40, 6: 60}.__getitem__) is None
    assert arrange_by_address([visit(0, offset=0), visit(1, offset=64)], [(1,), (17,)], 4, four_bytes) == [(1,), (17,)]
    assert arrange_by_address([visit(0, offset=64), visit(1, offset=0)], [(1,), (17,)], 4, four_bytes) == [(17,), (1,)]
