"""A traced launch: accesses to memory, those of a warp in order, the same from every engine and any threads."""

from dataclasses import replace

import numpy as np
import pytest
import simtbed as st
from simtbed.engines.llvm.engine import LlvmEngine
from simtbed.engines.llvm.tracing import ENTRIES
from simtbed.engines.numpy.engine import NumpyEngine
from simtbed.profiler.block_sampling import sampled_blocks
from simtbed.profiler.trace import ENTRY, Entries
from simtbed.runtime.engine import Engine, Request
from simtbed.runtime.request import prepare_request
from simtbed.testing.conformance.outcomes import Accesses

ENGINES: list[Engine] = [NumpyEngine(), LlvmEngine(1), LlvmEngine(3)]


@st.kernel
def halves(x: st.Global[st.f32], out: st.Global[st.f32]) -> None:
    """out = x in the lower half of each block, then twice that; the other half reads what the first one wrote."""
    t = st.thread.x
    i = st.block.x * st.block_dim.x + t
    if t < st.block_dim.x // 2:
        out[i] = x[i]
    st.sync()
    if t >= st.block_dim.x // 2:
        out[i] = out[i - st.block_dim.x // 2] * st.f32(2)


def request(blocks: int = 3, block: int = 64) -> Request:
    n = blocks * block
    return prepare_request(
        halves, grid=blocks, block=block, args={"x": np.arange(n, dtype=np.float32), "out": st.empty(n, st.f32)}
    )


def traced(engine: Engine, launch: Request, blocks: int = 1 << 40) -> Entries:
    tracer = Accesses(blocks)
    engine.run(replace(launch, trace=tracer))
    return tracer.by_warp


@pytest.mark.parametrize("engine", ENGINES)
def test_each_access_of_each_warp_is_there(engine: Engine) -> None:
    launch = request()
    entries = traced(engine, launch)
    kinds = {n: site.kind for n, site in enumerate(launch.prepared.sites)}
    expected = [
        (int(e["block"]), int(e["warp"]), int(e["phase"]), kinds[int(e["site"])], e["index"].tolist()) for e in entries
    ]
    assert expected == [
        entry
        for block in range(3)
        for entry in [
            (block, 0, 0, "global_load", [*range(64 * block, 64 * block + 32)]),
            (block, 0, 0, "global_store", [*range(64 * block, 64 * block + 32)]),
            (block, 1, 1, "global_load", [*range(64 * block, 64 * block + 32)]),
            (block, 1, 1, "global_store", [*range(64 * block + 32, 64 * block + 64)]),
        ]
    ]
    assert set(entries["mask"].tolist()) == {0xFFFFFFFF}


@pytest.mark.parametrize("engine", ENGINES)
def test_lanes_that_are_not_active_have_no_element(engine: Engine) -> None:
    entries = traced(engine, request(block=20))
    assert entries["mask"].tolist() == [0x3FF, 0x3FF, 0xFFC00, 0xFFC00] * 3
    assert entries["index"][2].tolist() == [0] * 10 + [*range(10)] + [0] * 12


@pytest.mark.parametrize("engine", ENGINES)
def test_only_the_first_blocks_are_traced(engine: Engine) -> None:
    assert set(traced(engine, request(blocks=9), blocks=4)["block"].tolist()) == {0, 1, 2, 3}
    assert len(traced(engine, request(), blocks=0)) == 0


@pytest.mark.parametrize("interval", [2, 3, 64])
@pytest.mark.parametrize("engine", ENGINES)
def test_only_sampled_blocks_are_traced(engine: Engine, interval: int) -> None:
    tracer = Accesses(interval=interval)
    engine.run(replace(request(blocks=100), trace=tracer))
    numbers = np.arange(100)
    assert sorted(set(tracer.by_warp["block"].tolist())) == numbers[sampled_blocks(numbers, interval)].tolist()


@pytest.mark.parametrize("engine", ENGINES)
def test_only_requested_memories_are_traced(engine: Engine) -> None:
    for spaces in (("global",), ("shared",), ("shared", "global"), ()):
        launch = request()
        tracer = Accesses(spaces=spaces)
        engine.run(replace(launch, trace=tracer))
        kinds = {launch.prepared.sites[int(site)].kind.partition("_")[0] for site in tracer.by_warp["site"]}
        assert kinds == {*spaces} - {"shared"}  # the kernel has none


def test_more_accesses_than_a_buffer_holds() -> None:
    launch = request(blocks=ENTRIES)
    reference = traced(NumpyEngine(), launch)
    assert len(reference) == 4 * ENTRIES
    for engine in ENGINES[1:]:
        assert (traced(engine, launch) == reference).all()


@pytest.mark.parametrize("engine", ENGINES)
def test_an_access_out_of_bounds_is_not_traced(engine: Engine) -> None:
    launch = request(blocks=2)
    launch = replace(launch, arguments={**launch.arguments, "x": np.zeros(100, np.float32)})
    kinds = [launch.prepared.sites[site].kind for site in traced(engine, launch)["site"].tolist()]
    assert kinds.count("global_load") == 4 and kinds.count("global_store") == 4
    launch = replace(launch, arguments={**launch.arguments, "x": np.zeros(80, np.float32)})
    kinds = [launch.prepared.sites[site].kind for site in traced(engine, launch)["site"].tolist()]
    assert kinds.count("global_load") == 3 and kinds.count("global_store") == 4


def test_what_a_tracer_raises_ends_the_launch() -> None:
    class Refusing(Accesses):
        def take(self, entries: Entries) -> None:
            raise KeyError("no room")

    for engine in ENGINES:
        with pytest.raises(KeyError, match="no room"):
            engine.run(replace(request(), trace=Refusing()))


def test_a_repeated_launch_traces_its_second_run() -> None:
    """Code without a step limit gives up at the limit, and code with one runs the whole launch."""

    @st.kernel
    def counts(out: st.Global[st.i32]) -> None:
        n = 0
        while n < 100:
            n += 1
            out[st.thread.x] = n

    launch = prepare_request(counts, grid=1, block=32, args={"out": st.empty(32, st.i32)}, step_limit=10)
    entries = [traced(engine, launch).tobytes() for engine in ENGINES]
    assert len(entries[0]) == 10 * ENTRY.itemsize
    assert len({*entries}) == 1
