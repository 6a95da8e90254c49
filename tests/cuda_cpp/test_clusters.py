"""Clusters of blocks in CUDA C++: cooperative groups, `__cluster_dims__`, mapped pointers, and inline PTX."""

from typing import Any

import numpy as np
import pytest
import simtbed as st
from simtbed.runtime.registry import EngineName

from tests.table_checks import each_row
from tests.texts import texts

TEXTS = texts("cuda_cpp/clusters.cu")
ENGINES: list[EngineName] = ["jit", "numpy", "python"]


@pytest.mark.slow
@each_row(ENGINES)
def test_a_histogram_in_distributed_shared_memory(engine: EngineName) -> None:
    x = np.random.default_rng(1).integers(0, 64, 3000).astype(np.int32)
    args = {"bins": np.zeros(64, np.int32), "x": x, "n": 3000, "per": 16}
    kernel = st.cuda_source(TEXTS["histogram"])["hist"]
    shape: dict[str, Any] = {"grid": 8, "block": 64, "cluster": 4, "shared": 64}
    result = st.launch(kernel, args=args, engine=engine, counters=False, check="all", **shape)
    assert np.array_equal(result.bins, np.bincount(x, minlength=64))


@pytest.mark.slow
@each_row(ENGINES)
def test_instructions_of_clusters(engine: EngineName) -> None:
    """Loads, stores, reductions and arrivals at addresses of mapa, which are numbers, in the block with the next rank."""
    kernel, args = st.cuda_source(TEXTS["ptx"])["ptx"], {"out": np.zeros(128, np.int32)}
    result = st.launch(kernel, grid=4, block=32, cluster=2, args=args, engine=engine, counters=False, check="all")
    assert result.out.tolist() == [11001 + t + 100 * (b % 2) for b in range(4) for t in range(32)]


@pytest.mark.slow
@each_row(ENGINES)
def test_pointers_to_one_of_two_blocks(engine: EngineName) -> None:
    kernel = st.cuda_source(TEXTS["pointers"])["loops"]
    for other in (0, 1):
        args = {"out": np.zeros(256, np.int32), "k": other}
        result = st.launch(kernel, grid=4, block=64, cluster=2, args=args, engine=engine, counters=False, check="all")
        first = [64 * 64 * max(other, b % 2) + sum(range(64)) for b in range(4)]
        assert result.out.tolist() == [first[b] + 3 * (2 * t + 64) for b in range(4) for t in range(64)]


def test_dimensions_of_the_text_and_of_the_launch() -> None:
    source = st.cuda_source(TEXTS["dimensions"], instances=["of_a_template<3>"])
    own = st.launch(source["of_a_template<3>"], grid=4, block=8, args=(np.zeros(32, np.int32),), check="all").out
    assert own.tolist() == [
        3 + 20 + 100 * (b % 2) + 16000 + 100000 * (8 * (b % 2) + t) for b in range(4) for t in range(8)
    ]
    assert st.launch(source["of_a_function"], grid=4, block=1, args=(np.zeros(4, np.int32),)).out.tolist() == [2] * 4
    result = st.launch(source["of_the_launch"], grid=(4, 2), block=1, cluster=(2, 2), args=(np.zeros(8, np.int32),))
    assert result.out.tolist() == [10 * (x % 2) + 200 + 2000 for _ in range(2) for x in range(4)]
    with pytest.raises(st.LaunchError, match="declares clusters of"):
        st.launch(source["of_a_function"], grid=4, block=1, cluster=4, args=(np.zeros(4, np.int32),))


def test_what_is_refused() -> None:
    with pytest.raises(st.CompileError, match="a pointer to the memory of another block"):
        st.launch(
            st.cuda_source(TEXTS["in memory"])["stored"], grid=2, block=32, cluster=2, args=(np.zeros(32, np.int32), 1)
        )
    args = np.zeros(32, np.float32), np.zeros(32, np.float32)
    with pytest.raises(st.FaultError, match="a copy to the memory of another block is not supported"):
        st.launch(st.cuda_source(TEXTS["copied"])["copied"], grid=2, block=32, cluster=2, args=args)
