"""Shared accesses: the compiled rules against their plain form, and textbook patterns."""

from itertools import product
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st
from simtbed.machine import banks
from simtbed.machine.banks import ATOMIC, LOAD, STORE, of_warp
from simtbed.machine.device import DEVICES

LANES = range(32)
any_lanes = st.one_of(
    st.lists(st.integers(-1, 70), min_size=32, max_size=32),
    st.builds(lambda first, step: [first + step * i for i in LANES], st.integers(0, 9), st.sampled_from((0, 1, 2, 33))),
    st.builds(lambda half: [half[i // 2] for i in LANES], st.lists(st.integers(-1, 99), min_size=16, max_size=16)),
)


def counted(kind: int, lanes: list[int], size: int, number: int, width: int) -> tuple[int, ...]:
    """Return the result of the compiled rule for one warp."""
    index, out = np.array([lanes]), np.zeros(3, np.int64)
    banks.count(kind, index, index >= 0, size, number, width, out)
    return tuple(out.tolist())


@given(
    st.sampled_from((LOAD, STORE, ATOMIC)),
    any_lanes,
    st.sampled_from((1, 2, 4, 8, 16)),
    st.sampled_from(((32, 4), (32, 8), (16, 4), (4, 4))),
)
def test_the_rule(kind: int, lanes: list[int], size: int, shape: tuple[int, int]) -> None:
    assert of_warp(kind, lanes, size, *shape) == counted(kind, lanes, size, *shape)


def test_consecutive_elements_from_any_start() -> None:
    for size, shape, first in product((1, 2, 4, 8), ((32, 4), (32, 8), (16, 4), (4, 4)), range(5)):
        lanes = [first + lane for lane in LANES]
        assert of_warp(LOAD, lanes, size, *shape) == counted(LOAD, lanes, size, *shape), (size, shape, first)


def test_textbook_patterns() -> None:
    assert of_warp(LOAD, [*LANES], 4) == (1, 1, 0)
    assert of_warp(LOAD, [2 * i for i in LANES], 4) == (1, 2, 1)
    assert of_warp(LOAD, [32 * i for i in LANES], 4) == (1, 32, 31)  # a column of a 32 x 32 tile
    assert of_warp(LOAD, [33 * i for i in LANES], 4) == (1, 1, 0)  # the same, padded
    assert of_warp(LOAD, [9] * 32, 4) == (1, 1, 0)
    assert of_warp(LOAD, [*LANES], 8) == (1, 2, 0)
    assert of_warp(LOAD, [i // 2 for i in LANES], 8) == (1, 1, 0)
    assert of_warp(STORE, [i // 2 for i in LANES], 8) == (1, 2, 0)
    assert of_warp(ATOMIC, [9] * 32, 4) == (1, 32, 31)
    assert of_warp(STORE, [-1] * 32, 4) == (0, 0, 0)


def test_kepler_and_fermi_as_documented() -> None:
    doubles = [i // 2 for i in LANES]
    assert of_warp(STORE, [*LANES], 8, width=8) == (1, 1, 0)  # Kepler, 8-byte mode: a double a lane at once
    assert of_warp(STORE, [2 * i for i in LANES], 4, width=8) == (1, 1, 0)  # stride 2 of floats is free there
    fermi, modern = (banks.kind_of("load", DEVICES[name]) for name in ("C2070", "H200"))
    assert of_warp(fermi, doubles, 8) == (1, 2, 0)  # always in two halves
    assert of_warp(modern, doubles, 8) == (1, 1, 0)


@pytest.mark.parametrize("kind", [LOAD, STORE, ATOMIC])
@pytest.mark.parametrize("index_type", [np.int32, np.int64])
def test_many_warps_add_up(kind: int, index_type: Any) -> None:
    random = np.random.default_rng(7)
    index: npt.NDArray[Any] = random.integers(0, 200, (40, 32)).astype(index_type)
    index[:20] = random.integers(0, 99, (20, 1)) + np.arange(32)
    active = random.random((40, 32)) < 0.8
    active[:10] = True
    active[30] = False
    out = np.array([1, 2, 3])  # counts are added to the previous values
    banks.count(kind, index, active, 8, 32, 4, out)
    warps = [of_warp(kind, np.where(a, i, -1).tolist(), 8) for i, a in zip(index, active, strict=True)]
    assert out.tolist() == [1 + 39, 2 + sum(w.wavefronts for w in warps), 3 + sum(w.conflicts for w in warps)]
