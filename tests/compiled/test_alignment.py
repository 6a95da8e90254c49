"""Alignment of instructions with source accesses."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as some
from simtbed.compiled import alignment
from simtbed.compiled.alignment import (
    Accesses,
    ArrangementCache,
    SiteAccesses,
    SiteAssigner,
    Visit,
    address_of,
    align_visits,
    arrange_by_address,
)
from simtbed.compiled.sequence_alignment import LOOP_EXIT, NOT_PERFORMED


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


def test_a_remainder_loop_may_precede_the_unrolled_loop() -> None:
    """Four iterations and two: one instruction of the first execution is off, though three iterations follow."""
    first, main = [visit(0), visit(1, predicated=True)], [visit(2), visit(3), visit(4)]
    sequence, visited = [4, 5, 6, 7, LOOP_EXIT, 8, 9], [*first, *main, *first]
    assert align_visits(sequence, visited, entries=[0, 5]) == [(4,), (), (5,), (6,), (7,), (8,), (9,)]
    assert align_visits(sequence, visited) == [(4,), (5,), (6,), (7,), (8,), (9,), ()]


def test_lanes_reach_all_executions_of_a_loop_with_iterations() -> None:
    """Or those with accesses, if a branch skips the others."""
    predicated_visit = visit(0, predicated=True)
    assert align_visits([NOT_PERFORMED, LOOP_EXIT, 4, NOT_PERFORMED], [predicated_visit] * 3, entries=[0, 1]) == [
        (),
        (4,),
        (),
    ]
    assert align_visits([NOT_PERFORMED, LOOP_EXIT, 4, NOT_PERFORMED], [predicated_visit] * 2, entries=[0]) == [(4,), ()]


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


def test_sites_are_distinguished_by_address() -> None:
    """One site reads a row, the other a column; loads of the row are merged."""
    rows, columns = [*range(8)], [*range(8, 16)]
    address = {n: 4 * n for n in rows} | {n: 1000 + 128 * n for n in columns}
    block = [
        *(visit(n, registers="R6", offset=128 * n) for n in range(4)),
        visit(4, 4, registers="R20", offset=16),
    ]
    assigner = SiteAssigner([SiteAccesses(rows, True), SiteAccesses(columns, True)], 4, address.__getitem__)
    assigned = assigner.assign([block, block], {})
    assert assigned == {(0, "R6"): 1, (0, "R20"): 0}
    assert assigner.accesses_of_visits([block, block], assigned) == [
        [(8,), (9,), (10,), (11,), (0, 1, 2, 3)],
        [(12,), (13,), (14,), (15,), (4, 5, 6, 7)],
    ]


def test_values_in_registers_are_loaded_with_the_others() -> None:
    """A sum in shared memory is read before a loop, and added to in each iteration."""
    sums, added = [0, 2, 4, 6], [1, 3, 5, 7]
    assigner = SiteAssigner([SiteAccesses(sums, True), SiteAccesses(added, True)], 4, four_bytes)
    before, iteration = [visit(0, block=0, registers="R1")], [visit(1, block=1, registers="R3")]
    visited = [before, iteration, iteration, before, iteration, iteration]
    assigned = assigner.assign(visited, {})
    assert assigned == {(0, "R1"): 0, (1, "R3"): 1}
    assert assigner.accesses_of_visits(visited, assigned) == [[(0,)], [(1,)], [(3,)], [(4,)], [(5,)], [(7,)]]


def test_the_trial_of_a_key_is_memoized(monkeypatch: pytest.MonkeyPatch) -> None:
    """The number of assignments of other keys does not matter."""
    calls = list[object]()
    plain = alignment._consume

    def consume(*what: Any) -> Any:
        calls.append(what)
        return plain(*what)

    monkeypatch.setattr(alignment, "_consume", consume)
    sites, blocks = 3, 12
    site_accesses = [SiteAccesses([*range(n, 3 * blocks, sites)], True) for n in range(sites)]
    assigner = SiteAssigner(site_accesses, 4, lambda number: 4 * (number * 7 % 5))
    visited = [[visit(n, block=n, registers=f"R{n}")] for n in range(blocks)]
    assigner.assign(visited, {})
    assert len(calls) <= sites * blocks * (blocks + 1) // 2


def test_blocks_with_assigned_keys_are_skipped(monkeypatch: pytest.MonkeyPatch) -> None:
    """Blocks without choices outnumber the others: the error shows only after the loop."""
    tried = list[object]()
    plain = SiteAssigner._trial

    def trying(self: SiteAssigner, *what: Any) -> Any:
        tried.append(what)
        return plain(self, *what)

    monkeypatch.setattr(SiteAssigner, "_trial", trying)
    trips = 1000
    row, column = [*range(0, 4 * trips, 2)], [*range(1, 2 * trips, 2)]
    trip = [visit(0, block=0, registers="R1"), visit(1, block=0, registers="R2"), visit(2, block=0, registers="R3")]
    assigner = SiteAssigner(
        [SiteAccesses(row, False), SiteAccesses(column, False)], 4, lambda number: 4 * (number * 7 % 5)
    )
    assigned = assigner.assign([trip] * trips, {})
    assert assigned is not None and sorted(assigned.values()) == [0, 0, 1]
    assert len(tried) < 50


def test_stores_are_never_left_out() -> None:
    assigner = SiteAssigner([SiteAccesses([0, 2], False), SiteAccesses([1, 3], False)], 4, four_bytes)
    assert assigner.assign([[visit(0)], [visit(1)]], {}) is None
