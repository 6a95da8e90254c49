"""Global accesses: the counting rules against plain sets, one warp at a time and many at once."""

from collections import Counter
from itertools import permutations
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st
from simtbed.machine import coalescing
from simtbed.machine.coalescing import Traffic, atomic_key, count, count_atomic, of_warp

LANES = range(32)
SIZES = (1, 2, 4, 8, 16)
# Close together, so that lanes share sectors and addresses; scattered; and the patterns with a fast path.
lane = st.one_of(st.integers(-1, 40), st.integers(-1, 20_000))
steps = st.tuples(st.integers(0, 99), st.sampled_from((0, 1, 2, 8)), st.integers(0, 32))
any_lanes = st.one_of(
    st.lists(lane, min_size=32, max_size=32),
    st.builds(lambda s: [s[0] + s[1] * i for i in LANES], steps),
    st.builds(lambda s: [s[0] + s[1] * i if i < s[2] else -1 for i in LANES], steps),
)


def plain(lanes: list[int], size: int, sector: int, line: int) -> Traffic:
    addresses = [i * size for i in lanes if i >= 0]
    return Traffic(int(bool(addresses)), len({a // sector for a in addresses}), len({a // line for a in addresses}))


def plain_atomic(lanes: list[int], size: int) -> Traffic:
    most: Counter[int] = Counter()
    for element, occurrences in Counter(i for i in lanes if i >= 0).items():
        most[element * size // 32] = max(most[element * size // 32], occurrences)
    return plain(lanes, size, 32, 128)._replace(sectors=most.total())


@given(any_lanes, st.sampled_from(SIZES), st.sampled_from(((32, 128), (128, 128), (64, 256))))
def test_a_warp_touches_distinct_sectors_and_lines(lanes: list[int], size: int, cache: tuple[int, int]) -> None:
    assert of_warp(count, lanes, size, *cache) == plain(lanes, size, *cache)


def plain_packets(lanes: list[int], size: int) -> int:
    """Packets, each a set of keys; a lane may join a packet of its sector that is newer than all packets with its key."""
    opened: list[tuple[int, set[int]]] = []
    for lane in lanes:
        if lane >= 0:
            sector, key = lane * size // 32, atomic_key(lane * size // 4)
            after = max((n for n, (_, keys) in enumerate(opened) if key in keys), default=-1) + 1
            packet = next((keys for other, keys in opened[after:] if other == sector), None)
            if packet is None:
                opened.append((sector, {key}))
            else:
                packet.add(key)
    return len(opened)


@given(any_lanes, st.sampled_from((4, 8)))
def test_an_atomic_opens_packets(lanes: list[int], size: int) -> None:
    counted = of_warp(count_atomic, lanes, size)
    assert counted == plain(lanes, size, 32, 128)._replace(sectors=plain_packets(lanes, size))
    assert counted.sectors >= plain_atomic(lanes, size).sectors


@given(any_lanes, st.sampled_from((4, 8)))
def test_an_atomic_repeats_a_sector_by_its_hottest_address(lanes: list[int], size: int) -> None:
    near = [i % (128 // size) if i >= 0 else i for i in lanes]
    assert of_warp(count_atomic, near, size) == plain_atomic(near, size)


def test_lanes_with_equal_keys_preserve_their_order() -> None:
    """Words at a distance of 5 lines have one key. For lanes of two sectors, the order of their sectors decides."""
    a, twin = 0, 5 * 32
    assert atomic_key(a) == atomic_key(twin)
    cost = {
        order: of_warp(count_atomic, [*order, *[-1] * 28], 4).sectors for order in permutations((a, 1, twin, twin + 1))
    }
    assert cost[a, 1, twin, twin + 1] == 2
    assert cost[1, twin, a, twin + 1] == 3  # the packet of 1 is older than that of the twin: a cannot join it
    assert cost[1, a, twin, twin + 1] == 2
    assert set(cost.values()) == {2, 3}


@pytest.mark.parametrize("counter", [count, count_atomic])
@pytest.mark.parametrize("index_type", [np.int32, np.int64])
def test_many_warps_add_up(counter: coalescing.Counter, index_type: Any) -> None:
    random = np.random.default_rng(7)
    index: npt.NDArray[Any] = random.integers(0, 600, (50, 32)).astype(index_type)
    index[:20] = random.integers(0, 99, (20, 1)) + np.arange(32)
    active = random.random((50, 32)) < 0.8
    active[:10] = True
    active[30] = False
    out = np.array([1, 2, 3])  # counts are added to the previous values
    counter(index, active, 4, 32, 128, out)
    warps = [of_warp(counter, np.where(a, i, -1).tolist(), 4) for i, a in zip(index, active, strict=True)]
    assert out.tolist() == [1 + 49, 2 + sum(w.sectors for w in warps), 3 + sum(w.lines for w in warps)]


def test_textbook_shapes() -> None:
    assert of_warp(count, [*LANES], 4) == (1, 4, 1)
    assert of_warp(count, [i + 1 for i in LANES], 4) == (1, 5, 2)
    assert of_warp(count, [2 * i for i in LANES], 4) == (1, 8, 2)
    assert of_warp(count, [32 * i for i in LANES], 4) == (1, 32, 32)
    assert of_warp(count, [5] * 32, 4) == (1, 1, 1)
    assert of_warp(count, [*LANES], 16) == (1, 16, 4)
    assert of_warp(count, [-1] * 32, 4) == (0, 0, 0)
