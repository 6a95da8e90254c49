"""Clusters of blocks: launches, printed CUDA C++, orders, and memory of a launch."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import simtbed as st
from simtbed.compiled.kernel import compiled_kernel
from simtbed.engines.cuda.printer import cuda_source
from simtbed.testing.conformance import FEATURES, Feature

from tests.compilers import needs_nvcc, needs_sass
from tests.table_checks import each_row

CLUSTERS = [feature for feature in FEATURES if feature.cluster != 1]


@st.kernel
def ranks(out: st.Global[st.i32]) -> None:
    own = st.shared(st.i32, 1)
    if st.thread.x == 0:
        own[0] = st.cluster_rank
    st.cluster_sync()
    if st.thread.x == 0:
        out[st.block.x] = st.map_shared_rank(own, st.cluster_size - 1)[0]
    st.cluster_sync()


@st.kernel
def of_the_grid(out: st.Global[st.i32]) -> None:
    out[st.block.x] = st.cluster_rank
    st.grid_sync()


@st.kernel
def chain_of_later_blocks(out: st.Global[st.i32]) -> None:
    """Each block waits for data and an arrival of the block with the next rank."""
    bar = st.shared(st.u64, 1)
    data = st.shared(st.i32, 32)
    t = st.thread.x
    rank = st.cluster_rank
    if t == 0:
        st.mbarrier_init(bar, 0, 1)
    st.cluster_sync()
    if rank == st.cluster_size - 1:
        data[t] = 100
    else:
        while not st.mbarrier_try_wait_parity(bar, 0, 0):
            pass
    v = data[t]
    if rank > 0:
        st.map_shared_rank(data, rank - 1)[t] = v + t
        st.syncwarp()
        if t == 0:
            st.mbarrier_arrive(st.map_shared_rank(bar, rank - 1), 0)
    st.cluster_sync()
    out[st.block.x * 32 + t] = v


def launched(cluster: Any, grid: Any = 8, kernel: Any = ranks, length: int = 64, **how: Any) -> list[int]:
    result = st.launch(kernel, grid=grid, block=32, cluster=cluster, args={"out": st.zeros(length, "i32")}, **how)
    values: list[int] = result.out.tolist()
    return values


REFUSED: tuple[tuple[Any, dict[str, Any], str], ...] = (
    (3, {}, "a grid of (8, 1, 1) blocks is not divisible into clusters of (3, 1, 1)"),
    (32, {"grid": 64}, "cluster is 32 blocks: the H200 takes at most 16"),
    (2, {"device": "A100"}, "a cluster of blocks needs compute capability 9.0"),
    (1, {"device": "A100"}, "st.cluster_sync needs compute capability 9.0"),
    ("two", {}, "cluster is one to three positive integers"),
    (
        2,
        {"kernel": of_the_grid, "cooperative": True},
        "a kernel with st.grid_sync() in clusters of blocks does not run",
    ),
)


@each_row(REFUSED)
def test_what_is_refused(row: tuple[Any, dict[str, Any], str]) -> None:
    cluster, how, message = row
    with pytest.raises(st.LaunchError) as error:
        launched(cluster, **how)
    assert message in str(error.value)


def test_uses_that_are_refused() -> None:
    @st.kernel
    def views(out: st.Global[st.i32], x: st.Global[st.f16]) -> None:
        tile = st.shared(st.f16, 256)
        out[0] = st.map_shared_rank(out, 1)[0]  # type: ignore[arg-type]
        out[1] = st.i32(st.load_matrix(st.map_shared_rank(tile, 1), 0))
        st.map_shared_rank(st.map_shared_rank(tile, 1), 0)[0] = x[0]

    with pytest.raises(st.CompileError) as error:
        st.launch(views, grid=1, block=32, args={"out": st.zeros(64, "i32"), "x": st.zeros(8, "f16")})
    text = str(error.value)
    assert "takes a shared array, out is global" in text and text.count("the array of another block takes loads") == 2


def test_clusters_of_sixteen_blocks_and_of_one() -> None:
    assert launched(16, 32)[:32] == [15] * 32 and launched((8, 1, 1))[:8] == [7] * 8 and launched(1) == [0] * 64


@pytest.mark.slow
@each_row(CLUSTERS, lambda feature: feature.name)
def test_other_orders_find_no_difference(feature: Feature) -> None:
    def run(kernel: Any, **how: Any) -> Any:
        return st.launch(kernel, schedules=5, check="all", **how)

    assert np.array_equal(feature.launch(run).out, feature.expected)


def test_printed_kernels_have_the_cluster() -> None:
    (feature,) = (one for one in CLUSTERS if one.name == "histogram_of_a_cluster")
    text = printed(feature)
    assert "__global__ void __cluster_dims__(4, 1, 1) __launch_bounds__(64)" in text
    assert "atomicAdd(&static_cast<int*>(__cluster_map_shared_rank(bins, " in text
    assert "__cluster_barrier_arrive(), __cluster_barrier_wait();" in text


def printed(feature: Feature) -> str:
    request = feature.launch(lambda kernel, **how: st.launch(kernel, **how).request)
    return cuda_source(request.program, request.block, cluster=request.cluster).text


@pytest.mark.slow
@needs_nvcc
def test_nvcc_compiles_printed_kernels(tmp_path: Any) -> None:
    from simtbed.engines.cuda import nvcc

    for feature in CLUSTERS:
        file = tmp_path / "kernel.cu"
        file.write_text(printed(feature), encoding="utf-8")
        command = [str(nvcc.find_nvcc()), "-arch=sm_90", "-cubin", "-o", os.devnull, str(file)]
        completed = subprocess.run(command, capture_output=True, text=True, check=False)
        assert completed.returncode == 0, completed.stderr


@pytest.mark.slow
@pytest.mark.parametrize("engine", ["jit", "numpy", "python"])
def test_blocks_that_wait_for_later_ones_alternate(engine: Any) -> None:
    for check in ((), "all"):
        out = launched(4, kernel=chain_of_later_blocks, engine=engine, counters=False, check=check, length=256)
        assert out == [100 + t * (3 - b % 4) for b in range(8) for t in range(32)]


@pytest.mark.slow
def test_debuggers_and_predictions() -> None:
    args = {"out": st.zeros(8, "i32")}
    with st.debugging(block=1), pytest.raises(st.LaunchError, match="waits for the others"):
        st.launch(ranks, grid=8, block=32, cluster=2, args=args)
    with pytest.raises(st.LaunchError, match="the time of clusters of blocks is not predicted"):
        st.whatif(ranks, grid=8, block=32, cluster=2, args=args, device="H200", source_only=True)


@needs_sass
def test_compiled_code() -> None:
    result = st.launch(ranks, grid=8, block=32, cluster=2, args={"out": st.zeros(8, "i32")}, compiled=True)
    assert result.compiled().output_differences == {}


@needs_sass
@pytest.mark.slow
def test_clusters_of_large_launches_are_sampled() -> None:
    """The executed blocks are whole clusters, here of blocks that are no neighbors in the grid."""
    grid = (32, 32)
    result = st.launch(ranks, grid=grid, block=32, cluster=(2, 4), args={"out": st.zeros(32, "i32")}, compiled=True)
    view = result.compiled()
    sampled = compiled_kernel(view.launched, "sm_90", limit=2000)
    assert view.executed.sampled == 1 and 4 < sampled.executed.sampled < 40
    assert (sampled.warp_instructions, sampled.memory) == (view.warp_instructions, view.memory)


LARGE = """
import numpy as np, simtbed as st
@st.kernel
def sums(out: st.Global[st.i32]) -> None:
    own = st.shared(st.i32, 25600)
    own[st.thread.x] = st.block.x
    st.cluster_sync()
    out[st.block.x] = st.map_shared_rank(own, 1 - st.cluster_rank)[0]
    st.cluster_sync()
out = st.launch(sums, grid=10000, block=32, cluster=2, args={"out": st.zeros(10000, "i32")}).out
assert (out == np.arange(10000) ^ 1).all()
print(next(line.split()[1] for line in open("/proc/self/status") if line.startswith("VmHWM")))
"""


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="needs the file system of processes of Linux")
def test_memory_of_clusters_in_flight_alone(tmp_path: Any) -> None:
    """10,000 blocks of 100 KiB would take 1 GB."""
    script = tmp_path / "sums.py"
    script.write_text(LARGE, encoding="utf-8")
    completed = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, check=True)
    assert int(completed.stdout) < 400_000, completed.stdout


@each_row(["jit", "numpy"])
def test_remote_accesses_and_barriers_are_in_no_counter(engine: Any) -> None:
    """As Nsight Compute on an H200: remote accesses are generic ones, operations on barriers have their own instructions."""

    @st.kernel
    def exchange(out: st.Global[st.i32]) -> None:
        own = st.shared(st.i32, 32)
        full = st.shared(st.u64, 1)
        if st.thread.x == 0:
            st.mbarrier_init(full, 0, 32)
        own[st.lane] = st.lane
        st.cluster_sync()
        st.mbarrier_arrive(full, 0)
        while not st.mbarrier_try_wait_parity(full, 0, 0):
            pass
        out[st.block.x * 32 + st.lane] = own[st.lane] + st.map_shared_rank(own, 1 - st.cluster_rank)[st.lane]
        st.cluster_sync()
        st.map_shared_rank(own, 1 - st.cluster_rank)[st.lane] = 7
        st.cluster_sync()

    args = {"out": st.zeros(64, "i32")}
    counters = st.launch(exchange, grid=2, block=32, cluster=2, args=args, engine=engine).counters
    shared = {name: value for name, value in counters.totals().items() if name.startswith("shared") and value}
    names = ("load_requests", "load_wavefronts", "store_requests", "store_wavefronts")
    assert shared == dict.fromkeys((f"shared_{name}" for name in names), 2)
