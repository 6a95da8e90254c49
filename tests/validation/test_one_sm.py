"""Kernels of the launches on one SM: outputs and counters."""

import numpy as np
import pytest
import simtbed as st
from simtbed.reports.hardware import microbenchmarks, patterns

from tests.validation.launches import one_sm


@pytest.mark.parametrize("n", [2, 9])
def test_each_word_is_stored_once(n: int) -> None:
    out = np.zeros(3 * 128 * n, np.float32)
    result = st.launch(one_sm.words_in_turn, grid=2, block=64, args={"out": out, "turns": 3, "N": n})
    assert (result.out == 1).all()
    assert result.counters.total("global_store_requests") == 3 * 4 * n


def test_delayed_stores() -> None:
    args = {"out": np.full(2 * 64 * 4, -1, np.float32), "turns": 2, "delay": 3, "N": 4}
    stored = st.launch(one_sm.words_apart, grid=1, block=64, args=args).out.reshape(2, 64, 4)
    lanes, power = (
        np.arange(64, dtype=np.float32),
        np.float32(0.5) ** (3 * np.arange(8, dtype=np.float32)).reshape(2, 1, 4),
    )
    assert (stored == lanes[None, :, None] * power).all()


def test_regions_are_filled() -> None:
    args = {"out": np.zeros(3 * 512, np.float32), "turns": 2, "region": 512, "REGIONS": 3}
    stored = st.launch(microbenchmarks.regions_in_turn, grid=2, block=64, args=args).out.reshape(3, 512)
    assert (stored == 1).all()


@pytest.mark.parametrize(("lanes", "stride", "sectors"), [(1, 0, 1), (32, 1, 4), (8, 33, 8), (4, 8, 4)])
def test_sectors_of_a_load(lanes: int, stride: int, sectors: int) -> None:
    words = np.arange(4096, dtype=np.float32)
    args = {"x": words, "out": np.zeros(32, np.float32), "lanes": lanes, "apart": stride, "turns": 1}
    result = st.launch(one_sm.looked_up, grid=1, block=32, args=args)
    first = np.arange(32) % lanes * stride
    assert result.out.tolist() == words[first + 128 * np.arange(16)[:, None]].sum(axis=0).tolist()
    assert result.counters.total("global_load_sectors") == 16 * sectors


def test_groups_read_adjacent_words() -> None:
    args = {"x": np.ones(1 << 12, np.float32), "out": np.zeros(64, np.float32), "mask": 4095, "turns": 2, "GROUP": 32}
    result = st.launch(one_sm.groups_drawn, grid=1, block=64, args=args)
    assert (result.out == 32).all()
    assert result.counters.total("global_load_sectors") == 2 * 32 * 4


def test_straight_code_is_a_chain_of_products() -> None:
    args = {"out": np.zeros(32, np.float32), "x": 1.0, "turns": 2, "N": 8}
    value = np.float32(1)
    for _ in range(16):
        value = value * np.float32(0.5) + np.float32(1)
    assert (st.launch(one_sm.straight, grid=1, block=32, args=args).out == value).all()


def test_warps_read_lines_of_their_own() -> None:
    words = np.arange(32 * (2 * 3 + 18), dtype=np.float32)
    result = st.launch(
        one_sm.own_lines, grid=1, block=64, args={"x": words, "out": np.zeros(64, np.float32), "turns": 2, "lines": 3}
    )
    first = np.arange(64) // 32 * 96 + np.arange(64) % 32
    loaded = [words[first + 32 * (turn + k)] for turn in range(2) for k in range(16)]
    assert result.out.tolist() == np.sum(loaded, axis=0).tolist()


def test_counting_barriers() -> None:
    result = st.launch(one_sm.counts_in_turn, grid=1, block=64, args={"out": np.zeros(64, np.int32), "turns": 1})
    threads = np.arange(64)
    total = threads
    for _ in range(16):
        total = (total & 1 == 0).sum() + threads
    assert result.out.tolist() == total.tolist()
    plain = st.launch(one_sm.barriers_in_turn, grid=1, block=64, args={"out": np.zeros(64, np.int32), "turns": 1})
    total = threads
    for _ in range(16):
        total = total + (total >> 1)
    assert plain.out.tolist() == total.tolist()


@pytest.mark.parametrize("kernel", [one_sm.products_in_turn, one_sm.long_products_in_turn])
def test_chains_are_of_products(kernel: st.Kernel) -> None:
    long = kernel is one_sm.long_products_in_turn
    result = st.launch(kernel, grid=1, block=32, args={"out": np.zeros(32, np.uint32), "x": 3, "turns": 1})
    mask, total = (1 << (64 if long else 32)) - 1, np.zeros(32, object)
    for chain in range(4):
        value = np.arange(32).astype(object) + 3 + chain
        for _ in range(8):
            value = ((value & 0xFFFFFFFF) * 3 + value) & mask
        total = total + value
    assert result.out.tolist() == [int(each) & 0xFFFFFFFF for each in total]


@pytest.mark.parametrize("kernel", [one_sm.mixed_products_in_turn, one_sm.long_mixed_products_in_turn])
def test_mixed_products(kernel: st.Kernel) -> None:
    long = kernel is one_sm.long_mixed_products_in_turn
    result = st.launch(kernel, grid=1, block=32, args={"out": np.zeros(32, np.uint32), "x": 3, "y": 0.5, "turns": 1})
    mask, whole = (1 << (64 if long else 32)) - 1, np.zeros(32, object)
    for chain in range(2):
        value = np.arange(32).astype(object) + 3 + chain
        for _ in range(8):
            value = ((value & 0xFFFFFFFF) * 3 + value) & mask
        whole = whole + value
    first = np.full(32, 3, np.float32) if long else np.arange(32, dtype=np.float32) + np.float32(3)
    floats = np.zeros(32, np.float32)
    for chain in range(2):
        value = first + np.float32(chain)
        for _ in range(8):
            value = (value.astype(np.float64) * 0.5 + value).astype(np.float32)
        floats = floats + value
    expected = [(int(a) + int(b)) & 0xFFFFFFFF for a, b in zip(whole, floats.view(np.uint32), strict=True)]
    assert result.out.tolist() == expected


@pytest.mark.parametrize("size", patterns.WIDTHS)
def test_patterns_read_the_elements_of_their_lanes(size: int) -> None:
    from_l1, from_l2 = patterns.WIDTHS[size]
    for case in [one for one in patterns.cases() if one.kernel in (from_l1, from_l2)][:4]:
        args = dict(case.make())
        result = st.launch(case.kernel, grid=1, block=64, args=args)
        loads = np.where(np.tile(args["at"], 2) >= 0, 16 * args["turns"] * size // 4, 0)
        assert result.out[:64].tolist() == loads.tolist()
