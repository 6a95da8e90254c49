"""Loops of shared-memory atomics: counters of an H200, and the rule in plain form, for one warp."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from simtbed.machine import shared_atomic_loops
from simtbed.machine.banks import LOAD, of_warp
from simtbed.machine.device import H200

with (Path(__file__).parent / "h200_tries.csv").open(encoding="utf-8") as file:
    ROWS = list(csv.DictReader(file))
FIGURES = ("rounds", "lanes", "swaps", "loads", "conflicts")
any_lanes = st.lists(st.integers(-1, 70), min_size=32, max_size=32)


def counted(lanes: list[int], size: int) -> list[int]:
    index, out = np.array([lanes]), np.zeros(5, np.int64)
    shared_atomic_loops.count(index, index >= 0, size, H200, out)
    return [int(n) for n in out]


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row['type']} {row['rounds']} {row['lanes']}")
def test_an_h200_counted_the_same(row: dict[str, str]) -> None:
    size = {"f32": 4, "f64": 8, "u64": 8}[row["type"]]
    assert counted([int(n) for n in row["elements"].split()], size) == [int(row[name]) for name in FIGURES]


@given(any_lanes, st.sampled_from((4, 8)))
def test_the_rule(lanes: list[int], size: int) -> None:
    left = [lane for lane in range(32) if lanes[lane] >= 0]
    rounds = tried = swaps = loads = conflicts = 0
    while left:
        read = of_warp(LOAD, [lanes[lane] if lane in left else -1 for lane in range(32)], size)
        rounds, tried = rounds + 1, tried + len(left)
        loads, conflicts = loads + read.wavefronts, conflicts + read.conflicts
        changed, finished = set[int](), set[int]()
        for half in range(size // 4):
            mine = [lane for lane in left if lane * size // 128 == half]
            firsts = {lanes[lane] % (128 // size): lane for lane in reversed(mine)}
            fresh = {lane for lane in firsts.values() if lanes[lane] not in changed}
            swaps += 2 * bool(mine)
            finished |= fresh
            changed |= {lanes[lane] for lane in fresh}
        left = [lane for lane in left if lane not in finished]
    assert counted(lanes, size) == [rounds, tried, swaps, loads, conflicts]


def test_warps_are_counted_together() -> None:
    index = np.array([[0] * 32, [*range(32)]])
    out = np.zeros(5, np.int64)
    shared_atomic_loops.count(index, index >= 0, 4, H200, out)
    assert out.tolist() == [33, 528 + 32, 66, 33, 0]
