"""The driver over host memory: allocations, copies, contexts, events, refusals."""

import ctypes
import threading
from typing import Any

import numpy as np
import pytest
import simtbed as st
from simtbed.driver.core import CoreDevice, CoreStream
from simtbed.driver.functions import Driver, functions
from simtbed.driver.memory import UNDEFINED, AddressSpace


@pytest.fixture
def driver() -> Driver:
    return Driver(st.devices.H200)


def result(answer: tuple[Any, ...]) -> Any:
    """Return the results of a successful call."""
    assert answer[0].name == "CUDA_SUCCESS", answer
    return answer[1] if len(answer) == 2 else answer[1:]


def code(answer: tuple[Any, ...]) -> str:
    return str(answer[0].name)


def test_copies_are_checked_against_allocations(driver: Driver) -> None:
    x, y = np.arange(8, dtype=np.int32), np.zeros(8, np.int32)
    memory = int(result(driver.cuMemAlloc(32)))
    assert memory % 512 == 0
    result(driver.cuMemcpyHtoD(memory, x.ctypes.data, 32))
    result(driver.cuMemcpyDtoD(memory + 16, memory, 8))
    result(driver.cuMemcpyDtoHAsync(y.ctypes.data, memory, 32, 0))
    assert y.tolist() == [0, 1, 2, 3, 0, 1, 6, 7]
    assert code(driver.cuMemcpyHtoD(memory + 4, x.ctypes.data, 32)) == "CUDA_ERROR_INVALID_VALUE"
    assert code(driver.cuMemcpyDtoH(y.ctypes.data, x.ctypes.data, 32)) == "CUDA_ERROR_INVALID_VALUE"
    result(driver.cuMemsetD8(memory, 1, 4))
    assert ctypes.c_int.from_address(memory).value == 0x01010101
    assert code(driver.cuMemsetD8(memory, 1, 33)) == "CUDA_ERROR_INVALID_VALUE"
    result(driver.cuMemFree(memory))
    assert code(driver.cuMemFree(memory)) == "CUDA_ERROR_INVALID_VALUE"
    assert code(driver.cuMemcpyDtoH(y.ctypes.data, memory, 4)) == "CUDA_ERROR_INVALID_VALUE"


def test_ranges_and_capacity(driver: Driver) -> None:
    free, total = result(driver.cuMemGetInfo())
    memory = int(result(driver.cuMemAlloc(1000)))
    assert result(driver.cuMemGetInfo()) == (free - 1000, total)
    assert ctypes.c_uint8.from_address(memory + 999).value == UNDEFINED
    start, size = result(driver.cuMemGetAddressRange(memory + 999))
    assert (int(start), size) == (memory, 1000)
    assert code(driver.cuMemGetAddressRange(memory + 1000)) == "CUDA_ERROR_NOT_FOUND"
    assert code(driver.cuMemAlloc(total)) == "CUDA_ERROR_OUT_OF_MEMORY"
    assert code(driver.cuMemAlloc(0)) == "CUDA_ERROR_INVALID_VALUE"


def test_registered_memory_of_the_host(driver: Driver) -> None:
    x = np.arange(8, dtype=np.int32)
    address = x.ctypes.data
    result(driver.cuMemHostRegister(address, x.nbytes, 0))
    assert code(driver.cuMemHostRegister(address + 4, 4, 0)) == "CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED"
    assert int(result(driver.cuMemHostGetDevicePointer(address, 0))) == address
    assert driver.range_of(address + 31) == (address, 32)
    result(driver.cuMemHostUnregister(address))
    assert code(driver.cuMemHostUnregister(address)) == "CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED"


def test_contexts_belong_to_a_thread(driver: Driver) -> None:
    CoreDevice.driver = driver
    device = CoreDevice(0)
    device.set_current()
    device.set_current()
    context = int(result(driver.cuCtxGetCurrent()))
    assert context and len(driver.stack) == 1 and int(result(driver.cuCtxGetDevice())) == 0
    other: list[int] = []
    thread = threading.Thread(target=lambda: other.append(int(result(driver.cuCtxGetCurrent()))))
    thread.start()
    thread.join()
    assert other == [0]
    assert int(result(driver.cuCtxPopCurrent())) == context
    assert code(driver.cuCtxPopCurrent()) == code(driver.cuCtxGetDevice()) == "CUDA_ERROR_INVALID_CONTEXT"
    assert device.compute_capability == (9, 0) and device.name == "simtbed H200"
    with pytest.raises(IndexError, match="one emulated device"):
        CoreDevice(1)


def test_events_and_streams(driver: Driver) -> None:
    start, end, untimed = (result(driver.cuEventCreate(flags)) for flags in (0, 0, 2))
    assert code(driver.cuEventElapsedTime(start, end)) == "CUDA_ERROR_INVALID_HANDLE"
    for event in (start, end, untimed):
        result(driver.cuEventRecord(event, 0))
    assert result(driver.cuEventElapsedTime(start, end)) > 0 > result(driver.cuEventElapsedTime(end, start))
    assert code(driver.cuEventElapsedTime(start, untimed)) == "CUDA_ERROR_INVALID_HANDLE"
    result(driver.cuEventDestroy(start))
    assert code(driver.cuEventDestroy(start)) == "CUDA_ERROR_INVALID_HANDLE"
    stream = result(driver.cuStreamCreate(0))
    assert CoreStream.from_handle(stream).__cuda_stream__() == (0, int(stream))
    result(driver.cuStreamDestroy(stream))
    assert code(driver.cuStreamDestroy(stream)) == "CUDA_ERROR_INVALID_HANDLE"


def test_a_callback_runs_in_another_thread(driver: Driver) -> None:
    calls: list[tuple[Any, ...]] = []
    kind = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int, ctypes.c_void_p)
    callback = kind(lambda stream, status, data: calls.append((threading.get_ident(), stream, status, data)))
    address = ctypes.cast(callback, ctypes.c_void_p).value
    result(driver.cuStreamAddCallback(7, address, 11, 0))
    assert calls[0][1:] == (7, 0, 11) and calls[0][0] != threading.get_ident()


def test_missing_functions_are_refused_by_name(driver: Driver) -> None:
    with pytest.raises(st.LaunchError, match="the driver function cuGraphCreate is not emulated"):
        driver.cuGraphCreate(0)
    assert len(functions()) > 45
    assert driver.CUresult.CUDA_SUCCESS == 0
    assert result(driver.cuDeviceGetAttribute(driver.CUdevice_attribute.CU_DEVICE_ATTRIBUTE_WARP_SIZE, 0)) == 32
    assert result(driver.cuOccupancyMaxActiveBlocksPerMultiprocessor(49152, 256, 0)) == 4


def test_neighbouring_ranges() -> None:
    space = AddressSpace()
    assert space.register(1000, 10) and space.register(1010, 10) and not space.register(1005, 2)
    assert space.range_of(1009) == (1000, 10) and space.range_of(1010) == (1010, 10) and space.range_of(1020) is None
    assert not space.contains(1005, 10) and space.contains(1005, 5)
    assert space.remove(1000) and not space.remove(1000) and space.used == 10
