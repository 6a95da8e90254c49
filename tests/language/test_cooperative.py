"""Cooperative launches: what is refused, what the printed kernel is, how it is launched on a GPU."""

import ctypes
from typing import Any

import numpy as np
import pytest
import simtbed as st
from simtbed import Global, LaunchError, devices, i32
from simtbed.engines.cuda import functions, library
from simtbed.engines.cuda.functions import DeviceFunction
from simtbed.engines.cuda.library import DriverError
from simtbed.engines.cuda.printer import cuda_source
from simtbed.runtime.registry import EngineName
from simtbed.runtime.request import prepare_request


@st.kernel
def waits(out: Global[i32]) -> None:
    i = st.block.x * st.block_dim.x + st.thread.x
    out[i] = i
    st.grid_sync()
    last = out[len(out) - 1]
    st.grid_sync()
    out[i] = last


@st.kernel
def does_not_wait(out: Global[i32]) -> None:
    out[st.block.x * st.block_dim.x + st.thread.x] = 1


def test_a_grid_barrier_needs_a_cooperative_launch() -> None:
    with pytest.raises(LaunchError, match=r"waits has st.grid_sync\(\): launch it with cooperative=True"):
        st.launch(waits, grid=2, block=32, args={"out": st.empty(64, "i32")})


def test_all_blocks_must_be_resident() -> None:
    """An H200 has 132 SMs, each with 2048 threads: 264 blocks of 1024."""
    for kernel in (waits, does_not_wait):
        prepare_request(kernel, grid=264, block=1024, args={"out": st.empty(264 * 1024, "i32")}, cooperative=True)
        message = (
            "a cooperative launch of 265 blocks, but H200 holds 264 at once: 2 on each of 132 SMs, limited by warps"
        )
        with pytest.raises(LaunchError, match=message):
            prepare_request(kernel, grid=265, block=1024, args={"out": st.empty(265 * 1024, "i32")}, cooperative=True)


def test_shared_memory_counts() -> None:
    args = {"out": st.empty(64, "i32")}
    with pytest.raises(LaunchError, match="limited by shared memory"):
        prepare_request(waits, grid=133, block=32, args=args, cooperative=True, shared=200 * 1024)


def test_old_devices_have_none() -> None:
    with pytest.raises(LaunchError, match=r"needs compute capability 6\.0"):
        prepare_request(
            waits, grid=2, block=32, args={"out": st.empty(64, "i32")}, cooperative=True, device=devices.K40
        )


def test_the_printed_kernel_waits_by_cooperative_groups() -> None:
    request = prepare_request(waits, grid=2, block=32, args={"out": st.empty(64, "i32")}, cooperative=True)
    text = cuda_source(request.program, request.block).text
    assert "#include <cooperative_groups.h>" in text
    assert text.count("cooperative_groups::this_grid().sync();") == 2


@pytest.mark.parametrize("threads", [1, 3])
def test_blocks_in_several_threads_wait_for_each_other(threads: int) -> None:
    from simtbed.engines.llvm.engine import LlvmEngine

    request = prepare_request(waits, grid=40, block=64, args={"out": st.empty(40 * 64, "i32")}, cooperative=True)
    assert (LlvmEngine(threads).run(request).buffers["out"] == 40 * 64 - 1).all()


@pytest.mark.parametrize("engine", ["numpy", "jit"])
def test_another_order_of_blocks_changes_nothing(engine: EngineName) -> None:
    args = {"out": st.empty(40 * 64, "i32")}
    result = st.launch(waits, grid=40, block=64, args=args, cooperative=True, schedule=4, check="all", engine=engine)
    assert np.unique(result.out).tolist() == [40 * 64 - 1]


class FakeDriver:
    """The calls of the CUDA driver that a launch makes, and its arguments."""

    def __init__(self, status: int = 0) -> None:
        self.status = status
        self.calls: list[str] = []
        self.launched: list[tuple[int, ...]] = []
        self.argument_bytes: list[bytes] = []

    def __getattr__(self, name: str) -> Any:
        def call(*arguments: Any) -> int:
            self.calls.append(name)
            return 0

        return call

    def cuLaunchCooperativeKernel(self, function: Any, *arguments: Any) -> int:
        *sizes, _, pointers = arguments
        self.launched.append(tuple(sizes))
        self.argument_bytes = [ctypes.string_at(pointers[0], 8), ctypes.string_at(pointers[1], 4)]
        return self.status


def install(monkeypatch: pytest.MonkeyPatch, fake: FakeDriver) -> None:
    for module in (functions, library):
        monkeypatch.setattr(module, "cuda_driver", lambda: fake)


def test_the_driver_is_given_sizes_and_arguments(monkeypatch: pytest.MonkeyPatch) -> None:
    fake = FakeDriver()
    install(monkeypatch, fake)
    function = DeviceFunction(b"cubin", "waits", cooperative=True)
    function.allow_shared(60000)
    function(np.uintp(4096), np.int32(-7), grid=(4, 2, 1), block=(64, 1, 1), shared=128)
    assert fake.calls == ["cuModuleLoadData", "cuModuleGetFunction", "cuFuncSetAttribute"]
    assert fake.launched == [(4, 2, 1, 64, 1, 1, 128)]
    assert fake.argument_bytes == [(4096).to_bytes(8, "little"), (-7).to_bytes(4, "little", signed=True)]


def test_what_the_driver_refuses_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    """720 is CUDA's number for a cooperative launch that is too large."""
    install(monkeypatch, FakeDriver(720))
    function = DeviceFunction(b"cubin", "waits", cooperative=True)
    with pytest.raises(DriverError) as error:
        function(np.uintp(4096), np.int32(0), grid=(4, 1, 1), block=(64, 1, 1), shared=0)
    assert error.value.status == 720
