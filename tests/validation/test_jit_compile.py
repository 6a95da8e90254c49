"""Compiled code: disk cache, older processors, several threads."""

import gc
import math
import multiprocessing
import subprocess
import sys
import threading
import time
import tracemalloc
import weakref
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import simtbed as st
from simtbed import Global, LaunchError, f32, i32, i64
from simtbed.engines.llvm import engine, workers
from simtbed.engines.llvm.engine import LlvmEngine
from simtbed.engines.llvm.layout import Options
from simtbed.engines.numpy.engine import NumpyEngine
from simtbed.llvm.compiler import Target
from simtbed.machine.device import H200
from simtbed.runtime.engine import Request
from simtbed.runtime.registry import engine_named
from simtbed.runtime.request import prepare_request
from simtbed.testing.conformance import FEATURES, Feature, assert_same
from simtbed.testing.conformance.operations import Group, group_id, groups
from simtbed.testing.conformance.operations import request as op_request

from tests.table_checks import check_each

CHANGED = ("f32-1", "f32-2", "f32-3", "f64-3", "i32-2")
"""Operations with other instructions on older processors."""
LESSER = {"x86-64-v2": Target("x86-64-v2", ""), "x86-64-v3": Target("x86-64-v3", "")}


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("SIMTBED_CACHE", str(tmp_path))
    return tmp_path


@st.kernel
def doubled(x: Global[i32], out: Global[i32]) -> None:
    i = st.block.x * 32 + st.thread.x
    out[i] = x[i] * 2


@st.kernel
def through_dynamic_shared(x: Global[i32], out: Global[i32]) -> None:
    i = st.block.x * 32 + st.thread.x
    buffer = st.dynamic_shared(i32)
    buffer[st.thread.x] = x[i]
    out[i] = buffer[st.thread.x]


def request() -> Request:
    args = {"x": np.arange(320, dtype=np.int32), "out": st.empty(320, "i32")}
    return prepare_request(doubled, grid=10, block=32, args=args)


OPTIONS = Options((32, 1, 1), H200, (), True, False, step_limited=False, atomic=True)


def two_workers() -> list[workers.Worker]:
    kernel = LlvmEngine()._kernel(request(), OPTIONS)
    return [workers.Worker.with_buffers(kernel.buffers) for _ in range(2)]


def run() -> bool:
    return bool((LlvmEngine().run(request()).buffers["out"] == 2 * np.arange(320)).all())


# ------------------------------------------------------------------ on disk
@st.kernel
def beyond(x: Global[i32], out: Global[i32]) -> None:
    print("element", x[st.lane + 300])
    out[st.lane] = 1


def test_cached_code_reports_faults_and_prints_as_fresh_code(cache: Path) -> None:
    args = {"x": np.arange(310, dtype=np.int32), "out": st.empty(32, "i32")}
    launch = prepare_request(beyond, grid=1, block=32, args=args)
    fresh, stored = (LlvmEngine().run(launch) for _ in range(2))
    assert len(list(cache.glob("*.o"))) == 1
    assert stored.faults == fresh.faults != []
    assert stored.printed == fresh.printed
    assert [line.partition(": ")[2] for line in stored.printed] == [
        f"element {n}" for n in [*range(300, 310), *[0] * 22]
    ]
    assert fresh.counts is not None and stored.counts is not None
    assert np.array_equal(stored.counts, fresh.counts)


def test_the_key_holds_what_the_text_depends_on(cache: Path) -> None:
    launch = request()
    variants = [{"block": (64, 1, 1)}, {"counters": False}, {"device": replace(H200, banks=16)}]
    for changed in ({}, *variants):
        LlvmEngine().run(replace(launch, **changed))  # type: ignore[arg-type]
    assert len(list(cache.glob("*.o"))) == 4
    args = {"x": np.arange(320, dtype=np.int32), "out": st.empty(320, "i32")}
    for size in (128, 256):
        LlvmEngine().run(prepare_request(through_dynamic_shared, grid=10, block=32, args=args, shared=size))
    assert len(list(cache.glob("*.o"))) == 6


def test_the_key_holds_the_processor(cache: Path) -> None:
    LlvmEngine(target=LESSER["x86-64-v2"]).run(request())
    LlvmEngine(target=LESSER["x86-64-v3"]).run(request())
    assert len(list(cache.glob("*.o"))) == 2


def _run_in_child(_: int) -> bool:
    return run()


def test_processes_share_the_cache(cache: Path) -> None:
    with multiprocessing.get_context("spawn").Pool(2) as pool:
        assert all(pool.map(_run_in_child, range(4)))
    assert len(list(cache.glob("*.o"))) == 1


# ------------------------------------------------------------------ lesser processors
@pytest.mark.parametrize("target", LESSER)
def test_features(target: str) -> None:
    def check(feature: Feature) -> None:
        request = feature.launch(prepare_request)
        assert_same(LlvmEngine(target=LESSER[target]).run(request), NumpyEngine().run(request), request)

    check_each(FEATURES[::3] if target == "x86-64-v2" else FEATURES[1::9], check, lambda feature: feature.name)


@pytest.mark.parametrize("group", [g for g in groups() if group_id(g) in CHANGED], ids=group_id)
def test_operations(group: Group) -> None:
    """Without FMA and vector conversions in hardware the bits are the same."""
    launch, _ = op_request(group)
    full, lesser = LlvmEngine().run(launch), LlvmEngine(target=LESSER["x86-64-v2"]).run(launch)
    for name, values in full.buffers.items():
        same = (values == lesser.buffers[name]) | ((values != values) & (lesser.buffers[name] != lesser.buffers[name]))
        assert same.all(), name


# ------------------------------------------------------------------ threads
@st.kernel
def rendezvous(x: Global[f32], out: Global[f32], bins: Global[i32], wide: Global[i64]) -> None:
    cell = st.shared(f32, 64)
    own = st.local(f32, 2)
    t = st.thread.x
    i = st.block.x * 64 + t
    cell[t] = x[i]
    own[t % 2] = x[(i * 7) % len(x)]
    st.sync()
    if t % 3 < 2:
        st.atomic_add(bins, i32(cell[63 - t]) % 5, t)
        st.atomic_max(wide, t % 4, i64(i))
    out[i] = cell[(t * 5) % 64] + own[t % 2] + x[i + 32 * (t % 3)]


@pytest.mark.parametrize("threads", [1, 2, 3, 8])
def test_threads_do_not_show(threads: int) -> None:
    """Outputs, counts and faults; the last blocks read beyond the array."""
    x = np.arange(64 * 13, dtype=np.float32)
    args = {"x": x, "out": st.empty(64 * 13, "f32"), "bins": st.empty(5, "i32"), "wide": st.empty(4, "i64")}
    request = prepare_request(rendezvous, grid=13, block=64, args=args)
    actual = LlvmEngine(threads=threads).run(request)
    assert len(actual.faults) == 1 and actual.faults[0].count > 0
    assert_same(actual, NumpyEngine().run(request), request)


@st.device
def ticket(counter: Global[i32]) -> i32:
    return st.atomic_add(counter, 0, 1)


@st.kernel
def numbered(counter: Global[i32], out: Global[i32]) -> None:
    out[st.block.x * 32 + st.lane] = ticket(counter)


@pytest.mark.parametrize("threads", [1, 4])
def test_who_sees_an_order_runs_in_order(threads: int) -> None:
    """Also if the atomic operation is in a device function."""
    args = {"counter": st.zeros(1, "i32"), "out": st.empty(32 * 999, "i32")}
    actual = LlvmEngine(threads=threads).run(prepare_request(numbered, grid=999, block=32, args=args))
    assert (actual.buffers["out"] == np.arange(32 * 999)).all()


@st.kernel
def much_of_everything(out: Global[i32]) -> None:
    cells = st.shared(i32, 256)
    own = st.local(i32, 4)
    own[st.lane % 4] = st.block.x
    cells[st.thread.x] = own[st.lane % 4]
    st.sync()
    if st.thread.x == 0:
        out[0] = cells[255]


def test_memory_does_not_grow_with_the_grid() -> None:
    engine, peaks = LlvmEngine(threads=1, optimise=True), []
    for grid in (1, 1, 50_000):
        request = prepare_request(much_of_everything, grid=grid, block=256, args={"out": st.empty(1, "i32")})
        tracemalloc.start()
        engine.run(request)
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert abs(peaks[2] - peaks[1]) < 4096 < peaks[2]


def test_threads_are_requested(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SIMTBED_THREADS", "3")
    assert run()
    for wrong in ("many", "0", "-1", "65537", "9" * 5000, "\xb2"):
        monkeypatch.setenv("SIMTBED_THREADS", wrong)
        with pytest.raises(LaunchError, match="SIMTBED_THREADS is a positive number of threads, not '") as refused:
            run()
        assert len(str(refused.value)) < 200


def test_an_interrupt_ends_all_threads() -> None:
    two = two_workers()
    interrupted = threading.Event()
    iterations = []

    def record(worker: workers.Worker, first: int, last: int) -> bool:
        iterations.append(first)
        if worker is two[0]:
            interrupted.set()
            raise KeyboardInterrupt
        interrupted.wait()
        time.sleep(workers.LONGEST)
        return True

    with pytest.raises(KeyboardInterrupt):
        workers.distribute(10**9, two, record)
    assert len(iterations) < 1000


@pytest.mark.parametrize(("seconds", "threads"), [(0.0, 1), (math.inf, 2)])
def test_a_short_launch_starts_no_threads(seconds: float, threads: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workers, "WORTH_THREADS", 60)
    two = two_workers()
    started = threading.Barrier(threads)
    used = set()

    def record(worker: workers.Worker, first: int, last: int) -> bool:
        if id(worker) not in used:
            used.add(id(worker))
            started.wait(60)
        return True

    assert workers.distribute(100, two, record, seconds)
    assert len(used) == threads


def test_threads_start_when_the_rest_takes_longer_than_expected() -> None:
    two = two_workers()
    both = threading.Barrier(2)
    used = set()

    def record(worker: workers.Worker, first: int, last: int) -> bool:
        if first == 0:
            end = time.thread_time() + workers.WORTH_THREADS
            while time.thread_time() < end:
                pass
        elif id(worker) not in used:
            used.add(id(worker))
            both.wait(60)
        return True

    assert workers.distribute(100, two, record, 0.0)
    assert len(used) == 2


@st.kernel
def printing(out: Global[i32]) -> None:
    print("here")
    out[st.thread.x] = 1


@pytest.mark.parametrize("threads", [1, 3])
def test_an_interrupt_while_printing_is_not_lost(threads: int, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*arguments: object) -> None:
        raise KeyboardInterrupt

    args = {"out": st.empty(32, "i32")}
    with monkeypatch.context() as patched:
        patched.setattr(engine, "_print", interrupted)
        monkeypatch.setenv("SIMTBED_THREADS", str(threads))
        with pytest.raises(KeyboardInterrupt):
            st.launch(printing, grid=9, block=32, args=args)
    assert st.launch(printing, grid=1, block=32, args=args).out.tolist() == [1] * 32


def test_small_launches_are_optimised_after_a_long_time(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The cache entry applies to other processes too; kernels of many threads are optimised at once."""
    assert not LlvmEngine()._kernel(request(), OPTIONS).optimised
    engine_ = LlvmEngine()
    launch = request()
    kernel = engine_._kernel(launch, OPTIONS)
    kernel.record_runtime(engine.WORTH_OPTIMISING / 2)
    assert engine_._kernel(launch, OPTIONS) is kernel
    kernel.record_runtime(engine.WORTH_OPTIMISING)
    assert engine_._kernel(launch, OPTIONS).optimised
    (optimised, *_) = sorted(cache.glob("*.o"), key=lambda path: path.stat().st_mtime_ns, reverse=True)
    optimised.unlink()
    assert LlvmEngine()._kernel(request(), OPTIONS).optimised
    with monkeypatch.context() as patched:
        patched.setattr(engine, "MANY_THREADS", 1)
        for note in cache.glob("*.slow"):
            note.unlink()
        assert LlvmEngine()._kernel(request(), OPTIONS).optimised
        checked, options = replace(request(), checks=frozenset({"bounds"})), replace(OPTIONS, checks=("bounds",))
        assert not LlvmEngine()._kernel(checked, options).optimised
        patched.setattr(engine, "MANY_CHECKED", 1)
        assert LlvmEngine()._kernel(checked, options).optimised


def test_larger_kernels_are_optimised_later(cache: Path) -> None:
    kernel = LlvmEngine()._kernel(request(), OPTIONS)
    assert kernel.tier_up_after == engine.WORTH_OPTIMISING
    kernel.buffers = replace(kernel.buffers, sites=400)
    kernel.record_runtime(3.9)
    assert not [*cache.glob("*.slow")]
    kernel.record_runtime(0.2)
    assert [*cache.glob("*.slow")]


FORGETFUL = """
import gc
import math
import numpy as np, simtbed as st
from simtbed import maths
from simtbed.llvm import compiler

@st.kernel
def powers(x: st.Global[st.i32], out: st.Global[st.f64]) -> None:
    out[st.thread.x] = st.exp(st.f64(x[st.thread.x] // x[st.thread.x + 1]))

def run():
    return st.launch(powers, grid=1, block=32, args=[np.arange(1, 34, dtype=np.int32), st.empty(32, "f64")])["out"].tolist()

before = run()
assert maths._compiled and compiler._HELPERS
maths._compiled.clear(), compiler._HELPERS.clear(), gc.collect()
assert run() == before
print("the same")
"""


def test_code_keeps_what_it_calls(tmp_path: Path) -> None:
    """Also after other references are dropped: a call of freed code ends the process."""
    script = tmp_path / "forgetful.py"
    script.write_text(FORGETFUL)
    finished = subprocess.run([sys.executable, str(script)], capture_output=True, text=True)
    assert (finished.stdout, finished.stderr, finished.returncode) == ("the same\n", "", 0)


def test_kernels_and_their_code_are_freed_with_their_last_user() -> None:
    def make() -> st.Kernel:
        @st.kernel
        def short_lived(out: Global[i32]) -> None:
            out[st.thread.x] = st.thread.x

        return short_lived

    kernel = make()
    st.launch(kernel, grid=1, block=32, args={"out": st.empty(32, "i32")})
    freed = weakref.ref(kernel)
    cached = len(engine_named("jit")._kernels)  # type: ignore[attr-defined]
    del kernel
    gc.collect()
    assert freed() is None
    assert len(engine_named("jit")._kernels) < cached  # type: ignore[attr-defined]


def test_launch_memory_is_freed_without_garbage_collection() -> None:
    class Memory:
        """The arrays of a launch."""

    memory = Memory()
    freed = weakref.ref(memory)

    def run(worker: Any, start: int, stop: int, memory: Memory = memory) -> bool:
        return True

    gc.disable()
    try:
        two: Any = [object(), object()]
        assert workers.distribute(8, two, run, 0.0) and workers.distribute(8, two, run)
        del run, memory
        assert freed() is None
    finally:
        gc.enable()
