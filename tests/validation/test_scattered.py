"""Launches of scattered accesses: outputs, and the sources of the records."""

import numpy as np
import pytest
import simtbed as st
from simtbed.engines.cuda.printer import cuda_source
from simtbed.reports.hardware import patterns
from simtbed.reports.hardware.answers import source_digest
from simtbed.runtime.request import prepare_request

from tests.validation import launches
from tests.validation.launches import one_sm, scattered_accesses
from tests.validation.recorded import load_times

H100_ONLY = {
    *(kernel for kernels in patterns.WIDTHS.values() for kernel in kernels),
    one_sm.own_lines, one_sm.barriers_in_turn, one_sm.counts_in_turn, one_sm.products_in_turn, one_sm.long_products_in_turn,
    one_sm.mixed_products_in_turn, one_sm.long_mixed_products_in_turn,
}  # fmt: skip
"""Kernels with times of an H100 only."""
LCG = [np.uint64(1664525), np.uint64(1013904223)]


def random_indices(threads: int, iterations: int, mask: int, group: int = 1) -> np.ndarray:
    """Return int64[iteration, thread], the random indices."""
    state = (np.arange(threads, dtype=np.uint64) // group * 2654435761 + 12345) & 0xFFFFFFFF
    indices = []
    for _ in range(iterations):
        state = (state * LCG[0] + LCG[1]) & np.uint64(0xFFFFFFFF)
        indices.append((state >> np.uint64(8)).astype(np.int64) * group & mask)
    return np.array(indices)


@pytest.mark.parametrize("device", ["H200", "H100"])
def test_the_record_is_of_these_kernels(device: str) -> None:
    times = load_times(f"scattered_{device.lower()}")
    assert times["device"] == device and not times["failed"]
    cases = list(launches.scattered())
    names = {case.name for case in cases if device == "H100" or case.kernel not in H100_ONLY}
    assert names == times["launches"].keys()
    first = {case.kernel: case for case in cases if "2^26" not in case.name and case.name in names}
    for case in first.values():
        request = prepare_request(case.kernel, grid=case.grid, block=case.block, args=dict(case.make()))
        text = cuda_source(request.program, request.block).text
        assert times["launches"][case.name]["source"] == source_digest(text), case.name


@pytest.mark.parametrize("kernel", [scattered_accesses.adds_drawn, scattered_accesses.float_adds_drawn])
def test_sums_at_random_indices(kernel: st.Kernel) -> None:
    dtype = np.int32 if kernel is scattered_accesses.adds_drawn else np.float32
    sums = st.launch(kernel, grid=2, block=64, args={"out": np.zeros(256, dtype), "mask": 255}).out
    assert sums.tolist() == np.bincount(random_indices(128, 8, 255).reshape(-1), minlength=256).tolist()


def test_fetched_values_are_summed() -> None:
    args = {"out": np.zeros(256, np.int32), "sums": np.zeros(128, np.int32), "mask": 255}
    result = st.launch(scattered_accesses.fetched_drawn, grid=2, block=64, args=args)
    counts = np.bincount(random_indices(128, 8, 255).reshape(-1), minlength=256)
    assert result.out.tolist() == counts.tolist()
    assert int(result.sums.sum()) == int((counts * (counts - 1) // 2).sum())
    swapped = st.launch(scattered_accesses.swaps_drawn, grid=2, block=64, args=args)
    assert swapped.out.tolist() == (counts > 0).astype(int).tolist()
    assert int(swapped.sums.sum()) == int((counts - (counts > 0)).sum())


def test_bits_are_set() -> None:
    bits = st.launch(
        scattered_accesses.ors_drawn, grid=1, block=32, args={"out": np.zeros(64, np.uint32), "mask": 63}
    ).out
    assert {*np.flatnonzero(bits).tolist()} == {*random_indices(32, 8, 63).reshape(-1).tolist()}


@pytest.mark.parametrize("group", [1, 4])
def test_random_gathers(group: int) -> None:
    x = np.arange(1024, dtype=np.float32)
    args = {"x": x, "out": np.zeros(128, np.float32), "mask": 1023}
    kernel = scattered_accesses.gathers_drawn if group == 1 else scattered_accesses.grouped_gathers
    sums = st.launch(kernel, grid=2, block=64, args=args if group == 1 else args | {"GROUP": group}).out
    places = random_indices(128, 16, 1023, group) + np.arange(128) % group
    assert sums.tolist() == x[places].sum(axis=0).tolist()


def test_random_scatters() -> None:
    stored = st.launch(
        scattered_accesses.scatters_drawn, grid=2, block=64, args={"out": np.zeros(4096, np.float32), "mask": 4095}
    ).out
    assert np.flatnonzero(stored).tolist() == sorted({*random_indices(128, 16, 4095).reshape(-1).tolist()})


def test_strides_and_rows() -> None:
    x = np.arange(512, dtype=np.float32)
    loads = st.launch(
        scattered_accesses.strided_loads, grid=2, block=64, args={"x": x, "out": np.zeros(128, np.float32), "S": 4}
    )
    assert loads.out.tolist() == x[::4].tolist()
    stores = {"x": x[:128], "out": np.zeros(512, np.float32), "S": 4}
    assert (
        st.launch(scattered_accesses.strided_stores, grid=2, block=64, args=stores).out[::4].tolist()
        == x[:128].tolist()
    )
    rows = {"x": x, "out": np.zeros(512, np.float32), "N": 4}
    assert st.launch(scattered_accesses.rows_each, grid=2, block=64, args=rows).out.tolist() == (2 * x).tolist()


def test_local_walk() -> None:
    x, n = np.arange(64, dtype=np.int32) % 97, 8
    sums = st.launch(
        scattered_accesses.local_walk, grid=1, block=64, args={"x": x, "out": np.zeros(64, np.int32), "N": n}
    ).out
    own = np.zeros((64, n), int)
    for k in range(n):
        own[np.arange(64), (7 * k + x) % n] = k
    assert sums.tolist() == [sum(own[i, (5 * k + x[i]) % n] for k in range(n)) for i in range(64)]
