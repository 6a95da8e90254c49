"""Arrays of other libraries on a GPU: CuPy, PyTorch, Numba and JAX, in and out, with streams, events and graphs.

A library that is not installed skips its tests.
"""

from typing import Any

import numpy as np
import pytest
import simtbed as st
from simtbed import DeviceArray, Event, Global, LaunchError, Stream, f32, i32, launch

pytestmark = pytest.mark.usefixtures("gpu")

COUNT = 10_000
X = np.arange(COUNT, dtype=np.float32)
HOW: dict[str, Any] = {"grid": -(-COUNT // 256), "block": 256, "engine": "cuda"}


@st.kernel
def doubled(x: Global[f32], out: Global[f32], n: i32) -> None:
    """out = 2 x."""
    i = st.block.x * st.block_dim.x + st.thread.x
    if i < n:
        out[i] = x[i] * 2


@st.kernel
def second_column(x: Global[f32], out: Global[f32]) -> None:
    """out[:, 1] = x[:, 0]."""
    i = st.block.x * st.block_dim.x + st.thread.x
    if i < out.shape[0]:
        out[i, 1] = x[i, 0]


def library(name: str) -> Any:
    return pytest.importorskip(name, reason=f"{name} is not installed")


def test_arrays_of_cupy() -> None:
    cupy = library("cupy")
    x, out = cupy.asarray(X), cupy.zeros(COUNT, cupy.float32)
    assert not launch(doubled, args=(x, out, COUNT), **HOW).buffers
    assert (out.get() == 2 * X).all()
    table = cupy.zeros((COUNT, 4), cupy.float32)
    launch(second_column, args=(x.reshape(-1, 1), table[:, ::2]), **HOW)
    assert (table.get()[:, 2] == X).all() and not table.get()[:, [0, 1, 3]].any()
    with cupy.cuda.Stream(non_blocking=True) as stream:
        y = cupy.sqrt(x * x)
        launch(doubled, args=(y, out, COUNT), stream=Stream(stream), **HOW)
        assert float(out.sum()) == float((2 * X.astype(np.float64)).sum())
    stored = DeviceArray(X)
    launch(doubled, args=(stored, out, COUNT), **HOW)
    assert (cupy.asarray(stored) == x).all() and (cupy.from_dlpack(stored) == x).all()


def test_tensors_of_pytorch() -> None:
    torch = library("torch")
    x, out = torch.from_numpy(X).cuda(), torch.zeros(COUNT, device="cuda")
    launch(doubled, args=(x, out, COUNT), **HOW)
    assert (out.cpu().numpy() == 2 * X).all()
    launch(doubled, args=(X, st.device_view(out), COUNT), **HOW)
    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        y = x * 3
        launch(doubled, args=(y, out, COUNT), stream=Stream(side), **HOW)
        assert torch.equal(out, x * 6)
    stored = DeviceArray(X)
    launch(doubled, args=(stored, out, COUNT), **HOW)
    tensor = torch.from_dlpack(stored)
    assert tensor.is_cuda and torch.equal(tensor, x) and torch.equal(torch.as_tensor(stored, device="cuda"), x)
    del stored
    assert torch.equal(tensor, x)  # it keeps the memory
    half = torch.ones(COUNT, device="cuda", dtype=torch.bfloat16)
    with pytest.raises(LaunchError, match="x is Global"):
        launch(doubled, args=(half, out, COUNT), **HOW)
    with pytest.raises(LaunchError, match=r"x is torch\.Tensor"):
        launch(doubled, args=(x.requires_grad_(), out, COUNT), **HOW)


def test_the_operator_of_pytorch() -> None:
    torch = library("torch")
    from examples.libraries.torch_operator import scaled_sum

    x = torch.from_numpy(X)
    for device in ("cpu", "cuda"):
        result = scaled_sum(x.to(device), torch.ones(COUNT, device=device), 0.5)
        assert result.device.type == device and torch.equal(result.cpu(), x + 0.5)


def test_arrays_of_numba() -> None:
    cuda = pytest.importorskip("numba.cuda", reason="numba.cuda is not installed")
    if not cuda.is_available():
        pytest.skip("numba.cuda has no driver")
    x, out = cuda.to_device(X), cuda.device_array(COUNT, np.float32)
    launch(doubled, args=(x, out, COUNT), **HOW)
    assert (out.copy_to_host() == 2 * X).all()
    stored = DeviceArray(X)
    launch(doubled, args=(stored, out, COUNT), **HOW)
    assert (cuda.as_cuda_array(stored).copy_to_host() == X).all()


def test_arrays_of_jax() -> None:
    jax = library("jax")
    if jax.default_backend() != "gpu":
        pytest.skip("jax has no GPU")
    x, out = jax.numpy.asarray(X), DeviceArray(st.empty(COUNT, "f32"))
    launch(doubled, args=(x, out, COUNT), **HOW)
    assert (np.asarray(jax.dlpack.from_dlpack(out)) == 2 * X).all()


# ------------------------------------------------------------------ streams and graphs
def test_streams_and_events() -> None:
    x, middle, out = DeviceArray(X), DeviceArray(st.zeros(COUNT, "f32")), DeviceArray(st.zeros(COUNT, "f32"))
    first, second, start, ready, end = Stream(), Stream(), Event(), Event(), Event()
    start.record(first)
    launch(doubled, args=(x, middle, COUNT), stream=first, **HOW)
    ready.record(first)
    second.wait(ready)
    result = launch(doubled, args=(middle, out, COUNT), stream=second, **HOW)
    end.record(second)
    assert 0 < start.elapsed(end) < 1000
    result.wait()
    assert (out.numpy() == 4 * X).all()
    results = [launch(doubled, args=(X + k, st.empty(COUNT, "f32"), COUNT), stream=first, **HOW) for k in range(20)]
    assert all((result.out == 2 * (X + k)).all() for k, result in enumerate(results))
    pinned = st.pinned(X)
    assert (launch(doubled, args=(pinned, st.empty(COUNT, "f32"), COUNT), stream=second, **HOW).out == 2 * X).all()


def test_compiled_launches() -> None:
    old, new = DeviceArray(X), DeviceArray(st.zeros(COUNT, "f32"))
    step = st.compile(doubled, args=(old, new, COUNT), **HOW)
    for _ in range(4):
        step(old, new)
        old, new = new, old
    assert (old.numpy() == 16 * X).all()


def test_graphs() -> None:
    x, out = DeviceArray(X), DeviceArray(st.zeros(COUNT, "f32"))
    with st.capture() as graph:
        for _ in range(50):
            launch(doubled, args=(x, out, COUNT), **HOW)
            launch(doubled, args=(out, x, 3), **HOW)
    stream = Stream()
    graph.replay(stream)
    stream.synchronize()
    assert out.numpy()[1] == 2 * 4.0**49
    assert (out.numpy()[3:] == 2 * X[3:]).all()


def test_views_of_the_host_are_copied_back() -> None:
    memory = np.zeros(COUNT, np.float32)
    launch(doubled, args=(X, st.device_view(memory), COUNT), **HOW)
    assert (memory == 2 * X).all()
