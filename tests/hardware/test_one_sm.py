"""Launches that tell what the warps of one SM take from each other: they do what they say."""

from __future__ import annotations

import numpy as np
import pytest
import simtbed as st
from simtbed.reports.hardware import one_sm


@pytest.mark.parametrize("n", [2, 9])
def test_each_word_is_stored_once(n: int) -> None:
    out = np.zeros(3 * 128 * n, np.float32)
    found = st.launch(one_sm.words_in_turn, grid=2, block=64, args={"out": out, "turns": 3, "N": n})
    assert (found.out == 1).all()
    assert found.counters.total("global_store_requests") == 3 * 4 * n


def test_stores_come_apart_by_products() -> None:
    args = {"out": np.full(2 * 64 * 4, -1, np.float32), "turns": 2, "delay": 3, "N": 4}
    found = st.launch(one_sm.words_apart, grid=1, block=64, args=args).out.reshape(2, 64, 4)
    lanes, power = (
        np.arange(64, dtype=np.float32),
        np.float32(0.5) ** (3 * np.arange(8, dtype=np.float32)).reshape(2, 1, 4),
    )
    assert (found == lanes[None, :, None] * power).all()


def test_regions_are_filled_in_turn() -> None:
    args = {"out": np.zeros(3 * 512, np.float32), "turns": 2, "region": 512, "REGIONS": 3}
    found = st.launch(one_sm.regions_in_turn, grid=2, block=64, args=args).out.reshape(3, 512)
    assert (found == 1).all()


@pytest.mark.parametrize(("lanes", "apart", "sectors"), [(1, 0, 1), (32, 1, 4), (8, 33, 8), (4, 8, 4)])
def test_a_load_looks_up_what_its_name_says(lanes: int, apart: int, sectors: int) -> None:
    words = np.arange(4096, dtype=np.float32)
    args = {"x": words, "out": np.zeros(32, np.float32), "lanes": lanes, "apart": apart, "turns": 1}
    found = st.launch(one_sm.looked_up, grid=1, block=32, args=args)
    first = np.arange(32) % lanes * apart
    assert found.out.tolist() == words[first + 128 * np.arange(16)[:, None]].sum(axis=0).tolist()
    assert found.counters.total("global_load_sectors") == 16 * sectors


def test_groups_read_words_side_by_side() -> None:
    args = {"x": np.ones(1 << 12, np.float32), "out": np.zeros(64, np.float32), "mask": 4095, "turns": 2, "GROUP": 32}
    found = st.launch(one_sm.groups_drawn, grid=1, block=64, args=args)
    assert (found.out == 32).all()
    assert found.counters.total("global_load_sectors") == 2 * 32 * 4


def test_straight_code_is_a_chain_of_products() -> None:
    args = {"out": np.zeros(32, np.float32), "x": 1.0, "turns": 2, "N": 8}
    value = np.float32(1)
    for _ in range(16):
        value = value * np.float32(0.5) + np.float32(1)
    assert (st.launch(one_sm.straight, grid=1, block=32, args=args).out == value).all()
