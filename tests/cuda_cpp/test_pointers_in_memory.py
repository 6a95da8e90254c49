"""Kernels that follow pointers in global memory: the memory of all allocations as one array, in each engine."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import simtbed as st
from simtbed.cuda_cpp.addresses import memory_at
from simtbed.cuda_cpp.kernel import CudaKernel
from simtbed.host_apis.cuda.arena import THE_ARENA
from simtbed.language.types import Array
from simtbed.llvmir.allocations import ARENA, MEMORY, TABLE
from simtbed.runtime.arrays import split

from tests.table_checks import check_each
from tests.texts import texts

SOURCE = st.cuda_source(texts("cuda_cpp/texts.cu")["pointers in memory"])
COUNTED = {
    "warp_instructions": 4, "warp_instructions.fp32": 1, "warp_instructions.memory": 3, "global_load_requests": 2,
    "global_store_requests": 1, "global_load_sectors": 5, "global_store_sectors": 4,
}  # fmt: skip


class Device:
    """Allocations, and launches with addresses."""

    arena = THE_ARENA

    def __init__(self) -> None:
        self.own: list[int] = []

    def new(self, values: Any, dtype: Any) -> int:
        """Return the address of an allocation with these values."""
        array = np.array(values, dtype)
        start = self.arena.allocate(array.nbytes)
        memory_at(start, array.nbytes)[:] = array.view(np.uint8)
        self.own.append(start)
        return start

    def freed(self, start: int) -> int:
        """Free an allocation, and return its address."""
        self.arena.free(start)
        self.own.remove(start)
        return start

    def launch(self, kernel: CudaKernel, *args: int, threads: int = 32, **options: Any) -> Any:
        type = kernel.signature().parameters[MEMORY].type
        assert isinstance(type, Array)
        names = (parameter.name for parameter in kernel.parameters)
        values = dict(zip(names, args, strict=True)) | {TABLE: self.arena.table()}
        memory = self.arena.memory().view(split(type.element)[0].dtype)
        return st.launch(kernel, grid=1, block=threads, args=values | {MEMORY: memory}, **options)

    def read(self, result: Any, address: int, dtype: Any, count: int) -> Any:
        memory = result[MEMORY].view(np.uint8)[address - ARENA :]
        return memory[: count * np.dtype(dtype).itemsize].view(dtype)


@pytest.fixture
def device() -> Any:
    device = Device()
    yield device
    for start in reversed(device.own):
        device.freed(start)


@pytest.mark.parametrize("engine", ["jit", "numpy", "python"])
def test_pointers_are_followed(device: Device, engine: Any) -> None:
    lines = [device.new(np.arange(32) + 100 * row, np.float32) for row in range(2)]
    table, out = device.new(lines, np.uint64), device.new(np.zeros(32), np.float32)
    result = device.launch(SOURCE.rows, table, out, engine=engine, check="all")
    expected = np.arange(32) + 1 + np.where(np.arange(32) < 16, 0, 100)
    np.testing.assert_array_equal(device.read(result, out, np.float32, 32), expected)
    if engine != "python":  # the search for the allocation is not counted
        totals = result.counters.totals()
        assert {name: totals[name] for name in COUNTED} == COUNTED
    head, nodes, total = device.new([0], np.uint64), device.new(np.zeros(64), np.uint64), device.new([0], np.int32)
    result = device.launch(SOURCE.push, head, nodes, engine=engine)
    device.arena.memory()[:] = result[MEMORY].view(np.uint8)
    first = int(device.read(result, head, np.uint64, 1)[0])
    assert nodes <= first < nodes + 512
    result = device.launch(SOURCE.list, first, total, engine=engine, check="all", threads=2)
    assert device.read(result, total, np.int32, 1)[0] == 2 * sum(range(32))
    result = device.launch(SOURCE.wide, table, out, engine=engine, check="all", threads=8)
    np.testing.assert_array_equal(device.read(result, out, np.float32, 8), 8 * np.arange(8) + 3)


def _findings(device: Device, kernel: CudaKernel, *args: int, threads: int = 1, engine: str = "jit") -> str:
    faults = device.launch(kernel, *args, threads=threads, engine=engine, check="all", faults="return").faults
    return "; ".join(fault.message for fault in faults)


FINDINGS: dict[str, tuple[Callable[[Device, int], int], int, str]] = {
    "past the end": (lambda device, row: row, 25, "global write out of bounds: allocation[25], but allocation has 25 elements"),
    "before the start": (lambda device, row: row, -1, "global write out of bounds: allocation[255], but allocation has 2 elements"),
    "null": (lambda device, row: 0, 3, "access through a null pointer"),
    "freed": (
        lambda device, row: device.freed(row), 2,
        "global write after free: byte 8 of a freed allocation",
    ),
    "host memory": (lambda device, row: 0x7FF0_0000_0000, 0, "no allocation has the address 0x7ff000000000"),
    "misaligned": (lambda device, row: row + 2, 0, " of device_memory, not a multiple of 4"),
}  # fmt: skip


@pytest.mark.parametrize("engine", ["jit", "numpy"])
def test_wrong_pointers_are_findings(device: Device, engine: str) -> None:
    def check(name: str) -> None:
        pointer, at, expected = FINDINGS[name]
        table, row = device.new([0], np.uint64), device.new(np.zeros(25), np.float32)
        memory_at(table, 8).view(np.uint64)[0] = pointer(device, row)
        assert expected in _findings(device, SOURCE.store, table, at, engine=engine)

    check_each(FINDINGS, check)
    table = device.new([device.new(np.zeros(8), np.float32)], np.uint64)
    assert _findings(device, SOURCE.store, table, 7, engine=engine) == ""
    assert "race on global memory" in _findings(device, SOURCE.race, table, 0, threads=64, engine=engine)


def test_a_launch_with_arrays_is_refused() -> None:
    with pytest.raises(
        st.LaunchError, match="rows follows pointers in global memory, which are addresses: run its whole program"
    ):
        st.launch(SOURCE.rows, grid=1, block=32, args=(np.zeros(2, np.uint64), st.zeros(32, st.f32)))
