"""The cuda engine against a recording driver: transfers, allocations, frees and reports of a launch."""

from __future__ import annotations

import gc
import runpy
import subprocess
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any
from weakref import WeakSet

import numpy as np
import pytest
import simtbed as st
from simtbed import DeviceArray, Global, LaunchError, f32, i32, launch, on_gpu
from simtbed.engines.cuda import binary, driver, filling, functions, launches, library, nvcc, printer, startup
from simtbed.engines.cuda.driver import DeviceLaunch
from simtbed.engines.cuda.engine import CudaEngine, describe
from simtbed.engines.cuda.nvcc import Built
from simtbed.errors import UnavailableError
from simtbed.frontend import reader
from simtbed.runtime.engine import Resources
from simtbed.runtime.request import prepare_request

from tests.language.played_driver import PlayedDriver


class Error(Exception):
    """PyCUDA's base of all errors."""


class MemoryError(Error):
    """PyCUDA's own."""


class Allocation:
    def __init__(self, notes: Notes, size: int) -> None:
        if size > 1 << 20:
            raise MemoryError("out of memory")
        self.data, self.notes, self.address = bytearray(size), notes, 4096 * (1 + len(notes.allocations))
        notes.allocations.append(self)
        notes.memory.add(self)

    def __int__(self) -> int:
        return self.address

    def free(self) -> None:
        assert self.notes.depth, "freed in no context: PyCUDA loses the memory"
        self.notes.freed += 1


class Pooled(Allocation):
    """An allocation of a pool: in PyCUDA, its last reference must be dropped within a current context."""

    def __del__(self) -> None:
        if hasattr(self, "notes") and not self.notes.depth:
            self.notes.lost += 1


class Pool:
    """Device memory not counted as allocated: it remains in the pool. addresses: of all allocations."""

    def __init__(self, notes: Notes) -> None:
        self.notes, self.addresses = notes, list[int]()

    def allocate(self, size: int) -> Allocation:
        created = Pooled(self.notes, size)
        self.addresses.append((1 << 20) + 4096 * (1 + len(self.addresses)))
        created.address = self.addresses[-1]
        self.notes.allocations.pop()
        return created

    def free_held(self) -> None: ...

    def stop_holding(self) -> None: ...


class PageLocked:
    def allocate(self, shape: tuple[int, ...], dtype: Any) -> np.ndarray[Any, Any]:
        return np.empty(shape, dtype)

    def stop_holding(self) -> None: ...


class Notes:
    """Record of the engine's driver calls. fails: whether a launch does."""

    def __init__(self) -> None:
        self.allocations: list[Allocation] = []
        self.memory = WeakSet[Allocation]()  # of pools too
        self.freed = 0
        self.unloaded: list[bool] = []
        self.depth = 0
        self.launches: list[tuple[tuple[int, ...], dict[str, Any]]] = []
        self.attributes: list[tuple[Any, int]] = []
        self.fails = False
        self.devices: list[int] = []
        self.lost = 0
        self.pool: Pool
        self.driver: PlayedDriver

    def at(self, address: int, size: int) -> memoryview:
        """Return the bytes of an allocation from an address."""
        (actual,) = [a for a in self.memory if a.address <= address and address + size <= a.address + len(a.data)]
        return memoryview(actual.data)[address - actual.address :][:size]

    def memset(self, period: int, address: int, value: int, count: int, stream: object = None) -> None:
        self.at(address, period * count)[:] = value.to_bytes(period, sys.byteorder) * count

    def copy(self, to: int, source: int, size: int, stream: object = None) -> None:
        assert source + size <= to
        self.at(to, size)[:] = self.at(source, size)

    def copy_in(self, to: Allocation | int, array: Any) -> None:
        self.at(int(to), array.nbytes)[:] = array.tobytes()

    # a context
    def push(self) -> None:
        self.depth += 1

    def pop(self) -> None:
        self.depth -= 1

    def run(self, values: tuple[int, ...], options: dict[str, Any]) -> None:
        self.launches.append((values, options))
        for allocation in self.memory:
            allocation.data[:1] = b"\x2a"  # every array changes, also read-only ones


class Event:
    def record(self) -> None: ...

    def synchronize(self) -> None: ...

    def time_till(self, other: Event) -> float:
        return 0.25


def _out(array: Any, allocation: Allocation) -> None:
    array.view(np.uint8)[:] = np.frombuffer(bytes(allocation.data), np.uint8)


@pytest.fixture
def notes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Notes]:
    notes, pycuda_driver, package = Notes(), ModuleType("pycuda.driver"), ModuleType("pycuda")

    class Device:
        def __init__(self, number: int) -> None:
            notes.devices.append(number)

        @staticmethod
        def count() -> int:
            return 2

        def retain_primary_context(self) -> Notes:
            return notes

        def compute_capability(self) -> tuple[int, int]:
            return 9, 0

    pool = Pool(notes)
    notes.pool, notes.driver = pool, PlayedDriver(notes)
    vars(pycuda_driver).update(
        Error=Error, MemoryError=MemoryError, Event=Event, init=lambda: None, Device=Device,
        mem_alloc=lambda size: Allocation(notes, size), memcpy_htod=notes.copy_in, memcpy_dtoh=_out,
        memset_d8_async=partial(notes.memset, 1), memset_d16_async=partial(notes.memset, 2),
        memset_d32_async=partial(notes.memset, 4), memcpy_dtod_async=notes.copy,
        DeviceMemoryPool=lambda: pool, PageLockedMemoryPool=PageLocked,
    )  # fmt: skip
    vars(package)["driver"] = pycuda_driver
    monkeypatch.setitem(sys.modules, "pycuda", package)
    monkeypatch.setitem(sys.modules, "pycuda.driver", pycuda_driver)
    monkeypatch.setenv("SIMTBED_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(nvcc, "find_nvcc", lambda: Path("nvcc"))
    monkeypatch.setattr(nvcc, "version", lambda nvcc: "release 1")
    monkeypatch.setattr(nvcc, "build", lambda text, kernel, arch: Built(b"", Resources(7, 128, 0, 0, 0, 0), arch))
    ends: list[tuple[Any, ...]] = []
    monkeypatch.setattr("atexit.register", lambda *call: ends.append(call))
    for module in (library, functions):
        monkeypatch.setattr(module, "cuda_driver", lambda: notes.driver)
    _forgotten()
    yield notes
    for function, *arguments in ends:
        if function is driver._forget:  # weakref registers its own
            function(*arguments)
    _forgotten()
    assert notes.depth == 0
    assert notes.lost == 0
    assert notes.freed == len(notes.allocations)


@st.kernel
def measured(x: Global[f32], out: Global[i32], n: i32, yes: bool) -> None:
    buffer = st.dynamic_shared(f32)
    buffer[0] = x[0] if yes else 0.0
    out[0] = len(x) + len(buffer) + n


ARGUMENTS = {"x": np.zeros(1, np.float32), "out": st.empty(1, "i32"), "n": 3, "yes": True}
ARGUMENTS_OF_FIVE = {**ARGUMENTS, "x": np.zeros(5, np.float32), "out": st.empty(2, "i32")}


def test_a_launch_passes_addresses_scalars_and_lengths(notes: Notes) -> None:
    x = np.zeros(5, np.float32)
    args = {"x": x, "out": st.zeros(2, "i32"), "n": 3, "yes": True}
    result = launch(measured, grid=(2, 3), block=64, args=args, engine="cuda", shared=400)
    ((arguments, options),) = notes.launches
    assert arguments == (*notes.pool.addresses, 3, 1, 5, 100)
    assert options == {"grid": (2, 3, 1), "block": (64, 1, 1), "shared": 400, "stream": 0}
    assert list(result.buffers) == ["out"]  # x is read only: it is not in the result
    assert result.out.tolist() == [42, 0]
    assert not x.any()
    assert (result.milliseconds, result.counts) == (0.25, None)
    assert result.resources is not None
    assert result.resources.registers == 7
    assert notes.attributes == []


@st.kernel
def shifted(x: Global[i32], y: Global[i32]) -> None:
    y[st.thread.x] = x[st.thread.x] + 1


def test_arrays_that_share_memory_are_copied_once(notes: Notes) -> None:
    memory = np.arange(10, dtype=np.int32)
    result = launch(shifted, grid=1, block=8, args=(memory[:8], memory[2:]), engine="cuda", in_place=True)
    ((arguments, _),) = notes.launches
    assert len(notes.pool.addresses) == 1 and arguments[1] - arguments[0] == 8
    assert (arguments[0] - notes.pool.addresses[0]) % 256 == memory.ctypes.data % 256
    assert list(result.buffers) == ["y"] and memory.tolist() == list(range(10))
    with DeviceLaunch(result.request) as timed:
        timed.run(1)
    assert int(timed.addresses["y"]) - int(timed.addresses["x"]) == 8


def _forgotten() -> None:
    """Forget the process's knowledge of the kernel and its device, as in a new process."""
    vars(measured).pop("_facts", None)
    driver._CONTEXTS.clear()


def test_another_process_finds_the_kernel_by_its_digest(notes: Notes, monkeypatch: pytest.MonkeyPatch) -> None:
    _forgotten()  # other tests use other caches
    first = launch(measured, grid=1, block=64, args=ARGUMENTS_OF_FIVE, engine="cuda", shared=400)
    _forgotten()
    for module, name in ((reader, "specialise"), (reader, "signature"), (printer, "cuda_source"), (nvcc, "build")):
        monkeypatch.setattr(module, name, lambda *arguments: pytest.fail("made again"))
    second = launch(measured, grid=1, block=64, args=ARGUMENTS_OF_FIVE, engine="cuda", shared=400)
    assert (second.resources, second.out.tolist()) == (first.resources, first.out.tolist())
    (a, first_call), (b, second_call) = notes.launches
    assert first_call == second_call
    assert a[2:] == b[2:]


FILLING = """
import simtbed as st
from simtbed import Global, i32

@st.kernel
def filling(out: Global[i32]) -> None:
    out[st.thread.x] = 1
"""


@pytest.mark.usefixtures("notes")
def test_a_moved_kernel_is_recompiled(tmp_path: Path) -> None:
    """Its source lines are in the compiled code, for profilers."""
    names = []
    for number, text in enumerate((FILLING, FILLING, f"\n{FILLING}")):
        (tmp_path / f"filling{number == 2}.py").write_text(text)
        space = runpy.run_path(str(tmp_path / f"filling{number == 2}.py"))
        request = prepare_request(space["filling"], grid=1, block=64, args={"out": st.empty(64, "i32")})
        names.append(binary._name(request, "sm_90"))
    assert names[0] == names[1] != names[2]


def test_the_interface_of_a_kernel_outlives_its_process(notes: Notes) -> None:
    actual = binary.binary(prepare_request(measured, grid=1, block=64, args=ARGUMENTS_OF_FIVE, shared=400), "sm_90")
    assert binary._decode(binary._encode(actual)) == actual
    assert actual.interface.written == {"out"}


def test_a_context_is_created_on_a_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[str] = []

    class Driver:
        def __getattr__(self, name: str) -> Any:
            def call(*arguments: Any) -> int:
                calls.append(name)
                return 0

            return call

    monkeypatch.setattr(startup, "cuda_driver", Driver)
    startup.begin_context(1).join()
    assert calls == ["cuInit", "cuDeviceGet", "cuDevicePrimaryCtxRetain"]


def test_what_begins_a_context_imports_no_arrays() -> None:
    """The context is created before the import of NumPy, and concurrently with it."""
    code = "import sys, simtbed.engines.cuda.startup; sys.exit('numpy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_a_failed_context_is_reported_at_its_use(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing() -> Any:
        raise UnavailableError("the CUDA driver does not load")

    monkeypatch.setattr(startup, "cuda_driver", missing)
    startup.begin_context().join()


def test_an_array_without_elements_has_no_memory(notes: Notes) -> None:
    args = {"x": np.zeros(0, np.float32), "out": st.empty(0, "i32"), "n": 3, "yes": False}
    result = launch(measured, grid=1, block=64, args=args, engine="cuda", shared=400)
    assert [int(a) for a in notes.launches[0][0]][:2] == [0, 0]
    assert len(result.out) == 0
    assert notes.allocations == []


def test_more_than_48_kib_are_requested(notes: Notes) -> None:
    launch(measured, grid=1, block=64, args=ARGUMENTS, engine="cuda", shared=60000)
    assert notes.attributes == [(functions.MAX_DYNAMIC_SHARED, 60000)]


@pytest.mark.slow
def test_a_kernel_is_unloaded_in_its_context(notes: Notes) -> None:
    """Otherwise it remains in the GPU's memory: threads of kernels are short-lived."""
    gc.collect()  # kernels of other tests
    notes.unloaded.clear()

    @st.kernel
    def short_lived(out: Global[i32]) -> None:
        out[0] = 1

    launch(short_lived, grid=1, block=1, args={"out": np.zeros(1, np.int32)}, engine="cuda")
    del short_lived
    driver.primary_context().loaded.clear()
    gc.collect()  # a kernel and its facts refer to each other
    assert notes.unloaded == [True]


def test_timing_copies_the_inputs_once(notes: Notes) -> None:
    request = prepare_request(measured, grid=1, block=64, args=ARGUMENTS, shared=400)
    assert CudaEngine().time(request, 3) == [0.25] * 3
    assert len(notes.launches) == 4
    assert len(notes.allocations) == 2


def test_what_a_launch_is_timed_behind_is_not_timed(notes: Notes) -> None:
    before, timed = (prepare_request(measured, grid=n, block=64, args=ARGUMENTS, shared=400) for n in (1, 2))
    assert CudaEngine().time_behind(before, timed, 2) == [0.25] * 2
    assert [options["grid"][0] for _, options in notes.launches] == [1, 2, 1, 2]


def test_device_arrays_are_copied_once_and_remain(notes: Notes) -> None:
    x, stored = DeviceArray(np.zeros(1, np.float32)), DeviceArray(st.zeros(1, "i32"))
    for _ in range(2):
        result = launch(
            measured, grid=1, block=64, args={"x": x, "out": stored, "n": 3, "yes": True}, engine="cuda", shared=400
        )
        assert not result.buffers
    assert [[int(a) for a in arguments[:2]] for arguments, _ in notes.launches] == [[4096, 8192]] * 2
    assert stored.numpy().tolist() == [42]
    assert notes.freed == 0
    stored.fetch()
    assert notes.freed == 1
    assert stored.remote is None
    assert stored.numpy().tolist() == [42]


def test_launches_run_on_the_selected_gpu(notes: Notes) -> None:
    x, stored = DeviceArray(np.zeros(1, np.float32)), DeviceArray(st.zeros(1, "i32"))
    args = {"x": x, "out": stored, "n": 3, "yes": True}
    launch(measured, grid=1, block=64, args=args, engine="cuda", shared=400)
    with on_gpu(1):
        launch(measured, grid=1, block=64, args=args, engine="cuda", shared=400)
        assert notes.devices == [0, 1]
        assert bytes(notes.allocations[3].data) == np.int32(42).tobytes()  # the array has moved from the first device
    with on_gpu(2), pytest.raises(LaunchError, match="there is no CUDA device 2: the driver counts 2, from 0"):
        launch(measured, grid=1, block=64, args=args, engine="cuda", shared=400)


def test_a_failed_launch_names_the_kernel(notes: Notes) -> None:
    notes.fails = True
    with pytest.raises(LaunchError, match=r"measured failed on the GPU: .*illegal memory access"):
        launch(measured, grid=1, block=64, args=ARGUMENTS, engine="cuda", shared=400)


def test_arrays_that_do_not_fit_are_measured(notes: Notes) -> None:
    args = {"x": np.zeros(1 << 20, np.float32), "out": st.empty(1, "i32"), "n": 3, "yes": True}
    with pytest.raises(LaunchError, match=r"41943.. bytes, do not fit"):
        launch(measured, grid=1, block=64, args=args, engine="cuda", shared=400)


def test_without_pycuda_one_line_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pycuda", None)
    monkeypatch.setitem(sys.modules, "pycuda.driver", None)
    driver._CONTEXTS.clear()
    with pytest.raises(LaunchError) as error:
        launch(measured, grid=1, block=64, args=ARGUMENTS, engine="cuda", shared=400)
    assert str(error.value) == 'PyCUDA is not installed: pip install "simtbed[cuda]"'


def test_without_a_device_one_line_says_so(notes: Notes, monkeypatch: pytest.MonkeyPatch) -> None:
    def init() -> None:
        raise Error("cuInit failed: no CUDA-capable device is detected")

    monkeypatch.setattr(sys.modules["pycuda.driver"], "init", init)
    with pytest.raises(LaunchError, match=r"no CUDA device can be used: .*no CUDA-capable device"):
        describe()


FILLED = {
    "u64 of ones": (st.full(5, (1 << 64) - 1, "u64"), ["memset 1"]),
    "u8": (st.full(5, 7, "u8"), ["memset 1"]),
    "i16": (st.full(5, 258, "i16"), ["memset 2"]),
    "f32": (st.full(5, 1.5, "f32"), ["memset 4"]),
    "u64": (st.full(5, 3 << 33 | 1, "u64"), ["memset 4"] * 2 + ["copy 8", "copy 16", "copy 8"]),
    "float4": (st.full(3, (1.0, 2.0, 3.0, -0.0), "float4"), ["memset 4"] * 4 + ["copy 16", "copy 16"]),
    "c64": (st.full(2, 1j, "c64"), ["memset 4"] * 2 + ["copy 8"]),
    "empty": (st.empty(3, "f64"), ["memset 1"]),
    "empty u8": (st.empty(5, "u8"), ["memset 1"]),
    "-0.0": (st.full(3, -0.0, "f64"), ["memset 4"] * 2 + ["copy 8", "copy 8"]),
}


@pytest.mark.parametrize("kind", FILLED)
def test_a_value_is_written_on_the_device(kind: str, notes: Notes, monkeypatch: pytest.MonkeyPatch) -> None:
    new, expected = FILLED[kind]
    created, calls = Allocation(notes, new.initial().nbytes), list[str]()

    def memset(period: int) -> Any:
        def noted(*arguments: Any) -> None:
            calls.append(f"memset {period}")
            notes.memset(period, *arguments)

        return noted

    def copy(to: int, source: int, size: int, stream: object = None) -> None:
        calls.append(f"copy {size}")
        notes.copy(to, source, size)

    played = SimpleNamespace(
        memset_d8_async=memset(1), memset_d16_async=memset(2), memset_d32_async=memset(4), memcpy_dtod_async=copy
    )
    filling.fill(played, created, len(created.data), new.fill)
    assert (bytes(created.data), calls) == (new.initial().tobytes(), expected)
    monkeypatch.setattr(filling, "MOST", 16)  # of a call; most elements have more bytes
    created.data[:] = bytes(len(created.data))
    filling.fill(played, created, len(created.data), new.fill)
    assert bytes(created.data) == new.initial().tobytes()
    notes.allocations.remove(created)


def test_nothing_is_copied_of_what_is_full_of_a_value(notes: Notes, monkeypatch: pytest.MonkeyPatch) -> None:
    vars(sys.modules["pycuda.driver"])["memcpy_htod"] = lambda *arguments: pytest.fail("copied")
    monkeypatch.setattr(
        np, "full", lambda *arguments: np.broadcast_to(np.asarray(arguments[1], arguments[2]), arguments[0])
    )
    x, stored = DeviceArray(st.full(4, 1.25, "f32")), DeviceArray(st.full(3, 7, "i32"))
    launch(measured, grid=1, block=64, args={"x": x, "out": stored, "n": 3, "yes": True}, engine="cuda", shared=400)
    assert stored.numpy().tolist() == [0x2A, 7, 7]
    assert x.numpy()[1:].tolist() == [1.25] * 3


@pytest.mark.parametrize("lanes", [(), (2,), (4,)])
@pytest.mark.usefixtures("notes")
def test_results_of_filled_arrays_are_in_c_order(lanes: tuple[int, ...]) -> None:
    """An argument filled by the launch repeats one element: its strides are 0."""
    form = np.broadcast_to(np.zeros(lanes, np.float32), (5, *lanes))
    result = launches.Queue.of_context(driver.primary_context()).new_result(form)
    assert (result.shape, result.dtype) == (form.shape, form.dtype)
    assert result.flags.c_contiguous
