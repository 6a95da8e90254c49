"""Launches on a GPU from several threads, kernels with 16-bit floats, and messages after a fork and an illegal access."""

import multiprocessing
import subprocess
import sys
import threading
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import simtbed as st
from simtbed import DeviceArray, Global, LaunchError, Stream, f32, i32, launch

from tests.cuda_cpp.test_own_code import HALVES
from tests.gpu.launches import in_threads

pytestmark = pytest.mark.usefixtures("gpu")

COUNT, THREADS, LAUNCHES = 4096, 8, 300
X = np.arange(COUNT, dtype=np.float32)
HOW: dict[str, Any] = {"grid": COUNT // 256, "block": 256, "engine": "cuda"}


@st.kernel
def add(x: Global[f32], y: Global[f32], out: Global[f32], n: i32) -> None:
    i = st.block.x * st.block_dim.x + st.thread.x
    if i < n:
        out[i] = x[i] + y[i]


@pytest.mark.parametrize("memory", ["host", "device"])
@pytest.mark.parametrize("streams", [False, True])
@pytest.mark.parametrize("keep_results", [False, True])
def test_launches_of_several_threads(memory: str, streams: bool, keep_results: bool) -> None:
    errors = Counter[str]()

    def work(thread: int) -> None:
        stream, results, expected = Stream() if streams else None, [], 2 * X + thread
        x, y, out = (DeviceArray(array) for array in (X + thread, X, np.zeros(COUNT, np.float32)))
        for number in range(LAUNCHES):
            try:
                if memory == "host":
                    args = {"x": X + thread, "y": X, "out": st.empty(COUNT, f32), "n": COUNT}
                else:
                    args = {"x": x, "y": y, "out": out, "n": COUNT - number % 2}
                results.append(launch(add, args=args, stream=stream, **HOW))
                if not keep_results:
                    result = results.pop()
                    errors["wrong"] += memory == "host" and not (result.out == expected).all()
            except Exception as error:
                errors[repr(error)] += 1
        for result in results:
            errors["wrong"] += memory == "host" and not (result.wait().out == expected).all()
        errors["wrong"] += memory == "device" and not (out.numpy()[:-1] == expected[:-1]).all()

    threads = [threading.Thread(target=work, args=(number,)) for number in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not +errors


@pytest.mark.parametrize(
    ("name", "count"),
    [("add", 3), ("brain", 2), ("first<__half>", 2), ("first<__nv_bfloat16>", 2), ("named", 2), ("plain", 1)],
)
def test_kernels_with_halves(name: str, count: int) -> None:
    results = []
    for engine in ("jit", "cuda"):
        kernel = st.cuda_source(HALVES, (), ("first<__half>", "first<__nv_bfloat16>"))[name]
        type = "bf16" if "b" in name else "f16"
        arrays = [st.full(64, number + 1, type) for number in range(count)]
        results.append(
            launch(kernel, grid=1, block=1 if name in ("named", "plain") else 32, args=tuple(arrays), engine=engine)
        )
    emulated, compiled = results
    assert emulated.buffers.keys() == compiled.buffers.keys()
    for array, expected in emulated.buffers.items():
        assert compiled.buffers[array].tobytes() == expected.tobytes()


def _in_child(queue: Any) -> None:
    try:
        launch(add, args={"x": X, "y": X, "out": st.empty(COUNT, f32), "n": COUNT}, **HOW)
        queue.put("no error")
    except LaunchError as error:
        queue.put(str(error))


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_the_child_of_a_fork() -> None:
    launch(add, args={"x": X, "y": X, "out": st.empty(COUNT, f32), "n": COUNT}, **HOW)
    context = multiprocessing.get_context("fork")
    queue = context.Queue()
    child = context.Process(target=_in_child, args=(queue,))
    child.start()
    assert "the GPU was used before this process was forked" in queue.get(timeout=60)
    child.join()


ILLEGAL = """
import numpy as np, simtbed as st
@st.kernel
def good(out: st.Global[st.f32]) -> None:
    out[st.thread.x] = 1
bad = st.cuda_source("__global__ void bad(float *x, long long far) { x[far] = 1; }")["bad"]
array, stream = st.DeviceArray(np.zeros(32, np.float32)), st.Stream()
st.launch(good, grid=1, block=32, args=dict(out=array), engine="cuda")
pending = st.launch(bad, grid=1, block=1, args=dict(x=st.DeviceArray(np.zeros(4, np.float32)), far=1 << 40), stream=stream, engine="cuda")
uses = (
    stream.synchronize, array.numpy, pending.wait,
    lambda: st.launch(good, grid=1, block=32, args=dict(out=st.empty(32, "f32")), engine="cuda"),
    lambda: st.launch(good, grid=1, block=32, args=dict(out=st.DeviceArray(np.zeros(32, np.float32))), engine="cuda", stream=stream),
)
for use in uses:
    try:
        use()
        print("no error")
    except st.LaunchError as error:
        print(error)
"""


def test_errors_after_an_illegal_access(tmp_path: Path) -> None:
    script = tmp_path / "illegal.py"
    script.write_text(ILLEGAL)
    completed = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, check=False)
    first, *following = completed.stdout.splitlines()
    assert "bad" in first and "failed on the GPU" in first and len(following) == 4
    assert all("before it, " in line and "bad" in line for line in following), completed.stdout + completed.stderr


def test_many_launches_of_eight_threads() -> None:
    assert in_threads() == []
