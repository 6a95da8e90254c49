"""Arrays of other libraries without copies: memory of the host and of a GPU, in and out, by both protocols."""

from typing import Any

import numpy as np
import pytest
import simtbed as st
from simtbed import DeviceArray, Global, LaunchError, f32, i32, launch
from simtbed.runtime import gpu_memory

from tests.language import test_cuda_run
from tests.language.test_cuda_run import Notes

notes = test_cuda_run.notes


@st.kernel
def doubled(x: Global[f32], out: Global[f32], n: i32) -> None:
    """out[i] = 2 x[i] below n."""
    i = st.thread.x
    if i < n:
        out[i] = x[i] * 2


@st.kernel
def column(x: Global[f32], out: Global[f32]) -> None:
    out[st.thread.x, 1] = x[st.thread.x, 0]


class OnGpu:
    """An array with `__cuda_array_interface__`."""

    def __init__(self, address: int, shape: tuple[int, ...] = (32,), **changes: Any) -> None:
        self.interface = {"shape": shape, "typestr": "<f4", "data": (address, False), "version": 3} | changes

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        return self.interface


class Exported:
    """A tensor with DLPack in the memory of a GPU."""

    def __init__(self, address: int, form: Any, device: int = 0) -> None:
        self.address, self.form, self.device = address, form, device

    def __dlpack_device__(self) -> tuple[int, int]:
        return 2, self.device

    def __dlpack__(self, stream: Any = None) -> Any:
        assert stream == 1
        return gpu_memory.new_capsule(self.address, self.form, self.device, self)


# ------------------------------------------------------------------ the host
@pytest.mark.parametrize("engine", ["jit", "numpy", "python"])
@pytest.mark.parametrize("check", ["", "bounds"])
def test_a_launch_writes_the_memory_of_a_view(engine: Any, check: str) -> None:
    memory = np.full(40, 9, np.float32)
    view = st.device_view(memory[4:36])
    for factor in (1, 2):
        args = {"x": np.arange(32, dtype=np.float32) * factor, "out": view, "n": 30}
        assert not launch(doubled, grid=1, block=32, args=args, engine=engine, check=check).buffers
        assert memory.tolist() == [9] * 4 + [2.0 * factor * n for n in range(30)] + [9] * 6
    assert view.numpy()[1] == 4


@pytest.mark.parametrize("engine", ["jit", "numpy"])
def test_a_view_may_have_strides(engine: Any) -> None:
    table = np.zeros((32, 4), np.float32)
    args = {"x": np.arange(64, dtype=np.float32).reshape(32, 2), "out": st.device_view(table[:, ::2])}
    launch(column, grid=1, block=32, args=args, engine=engine)
    assert table[:, 2].tolist() == list(range(0, 64, 2))
    assert not table[:, [0, 1, 3]].any()


def test_a_device_array_gives_its_contents_by_dlpack() -> None:
    stored = DeviceArray(np.arange(32, dtype=np.float32))
    assert stored.__dlpack_device__() == (1, 0)
    exported = np.from_dlpack(stored)
    assert np.shares_memory(exported, stored.host)
    assert np.from_dlpack(DeviceArray(st.full(3, 7, "i32"))).tolist() == [7] * 3
    with pytest.raises(AttributeError):
        stored.__cuda_array_interface__  # noqa: B018 - it is on the host


def test_tensors_of_torch_on_the_host() -> None:
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    x, out = torch.arange(32, dtype=torch.float32), torch.zeros(32)
    launch(doubled, grid=1, block=32, args={"x": x, "out": st.device_view(out), "n": 32})
    assert out.tolist() == [2.0 * n for n in range(32)]
    assert torch.from_dlpack(DeviceArray(np.ones(3, np.float32))).tolist() == [1, 1, 1]


def test_read_only_memory_and_other_objects_are_refused() -> None:
    memory = np.zeros(3, np.float32)
    memory.flags.writeable = False
    with pytest.raises(LaunchError, match=r"array is numpy.ndarray, which is read only: give a copy"):
        st.device_view(memory)
    with pytest.raises(LaunchError, match="array is a NumPy array"):
        st.device_view([1, 2])
    with pytest.raises(LaunchError, match="a view of an array has its size"):
        st.device_view(np.zeros(3, np.float32)).keep(1)


# ------------------------------------------------------------------ the memory of a GPU
def run_on_gpu(x: Any, out: Any, **options: Any) -> st.Result:
    return launch(doubled, grid=1, block=32, args={"x": x, "out": out, "n": 32}, engine="cuda", **options)


def test_memory_of_other_libraries_is_passed_as_it_is(notes: Notes) -> None:
    exported = Exported(16384, np.zeros(32, np.float32))
    for x, out in ((OnGpu(4096), OnGpu(8192)), (exported, st.device_view(OnGpu(8192)))):
        assert not run_on_gpu(x, out).buffers
    assert [values[:2] for values, _ in notes.launches] == [(4096, 8192), (16384, 8192)]
    assert notes.driver.calls.count(("in", 0)) == notes.driver.calls.count(("out", 0)) == 0
    assert not gpu_memory._exported  # the launch has ended


def test_strides_of_a_gpu_array_are_arguments(notes: Notes) -> None:
    x, out = OnGpu(4096, (32, 2)), OnGpu(8192, (32, 4), strides=(32, 8))
    launch(column, grid=1, block=32, args={"x": x, "out": out}, engine="cuda")
    assert {4096, 8192, 8, 2} <= {*notes.launches[0][0]}  # addresses, and the strides of out in elements


def test_pending_work_of_the_other_library_is_waited_for(notes: Notes) -> None:
    run_on_gpu(OnGpu(4096, stream=1), OnGpu(8192, stream=55))
    assert ("record", 55) in notes.driver.calls
    assert notes.driver.calls.index(("wait", 0)) < notes.driver.calls.index(("launch", 0))


def test_a_device_array_gives_the_memory_of_a_gpu(notes: Notes) -> None:
    x, out = DeviceArray(np.zeros(32, np.float32)), DeviceArray(np.zeros(32, np.float32))
    run_on_gpu(x, out)
    address = notes.launches[0][0][1]
    interface = out.__cuda_array_interface__
    assert (interface["data"], interface["shape"], interface["typestr"]) == ((address, False), (32,), "<f4")
    assert out.__dlpack_device__() == (2, 0)
    memory = gpu_memory.external_memory("out", Capsule(out))
    assert memory is not None and (memory.address, memory.form.shape, memory.form.dtype.name) == (
        address,
        (32,),
        "float32",
    )
    out.fetch()  # the memory remains: other libraries have its address
    assert notes.freed == 0


class Capsule:
    """A library that passes a capsule on."""

    def __init__(self, array: DeviceArray) -> None:
        self.array = array

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.array.__dlpack_device__()

    def __dlpack__(self, stream: Any = None) -> Any:
        return self.array.__dlpack__(stream=stream)


def test_a_view_of_the_host_is_copied_in_and_out(notes: Notes) -> None:
    memory = np.ones(32, np.float32)
    run_on_gpu(np.zeros(32, np.float32), st.device_view(memory))
    assert memory.tobytes()[:1] == b"\x2a"  # written by the recorded launch
    with pytest.raises(LaunchError, match="out is in the memory of the host: a launch on a stream of a GPU"):
        run_on_gpu(np.zeros(32, np.float32), st.device_view(memory), stream=st.Stream())


REFUSED: dict[str, tuple[Any, Any, str]] = {
    "alignment": (OnGpu(4098), OnGpu(8192), "x is not aligned to the 4 bytes of f32"),
    "read only": (OnGpu(4096), OnGpu(8192, data=(8192, True)), "out is read only, and the kernel writes it"),
    "overlap": (OnGpu(4096), OnGpu(4160), "x and out share memory, and the kernel writes out"),
    "type": (OnGpu(4096, typestr="<f8"), OnGpu(65536), r"x is Global\[f32\], the array given is float64"),
    "mask": (OnGpu(4096, mask=OnGpu(1)), OnGpu(8192), "x is masked"),
    "backwards": (OnGpu(4096, strides=(-4,)), OnGpu(8192), "runs backwards: give a contiguous copy"),
}


@pytest.mark.parametrize("case", REFUSED)
@pytest.mark.usefixtures("notes")
def test_unsupported_memory_is_refused(case: str) -> None:
    x, out, message = REFUSED[case]
    run_on_gpu(OnGpu(4096), OnGpu(8192))  # there is a plan
    with pytest.raises(LaunchError, match=message):
        run_on_gpu(x, out)


def test_memory_of_another_gpu_is_refused(notes: Notes) -> None:
    def second(result: Any, attribute: int, address: int) -> int:
        result._obj.value = 1
        return 0

    notes.driver.cuPointerGetAttribute = second  # type: ignore[method-assign]
    with pytest.raises(LaunchError, match=r"CUDA device 1: launch inside st.on_gpu\(1\)"):
        run_on_gpu(OnGpu(4096), OnGpu(8192))


@pytest.mark.parametrize("value", [OnGpu(4096), Exported(4096, np.zeros(32, np.float32))])
def test_an_emulator_does_not_read_it(value: Any) -> None:
    with pytest.raises(LaunchError, match=r"in the memory of a GPU: give np\.asarray of a copy on the host"):
        launch(doubled, grid=1, block=32, args={"x": value, "out": st.empty(32, "f32"), "n": 32})


def test_an_unused_capsule_releases_its_owner() -> None:
    owner = Exported(4096, np.zeros(3, np.float32))
    count = len(gpu_memory._exported)
    capsule = owner.__dlpack__(stream=1)
    assert len(gpu_memory._exported) == count + 1
    del capsule
    assert len(gpu_memory._exported) == count
