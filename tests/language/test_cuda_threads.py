"""Launches on a GPU from several threads, after a fork, and after an error that lasts, against a recording driver."""

import os
import sys
import threading
from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import simtbed as st
from simtbed import DeviceArray, Global, LaunchError, Stream, f32, i32, launch
from simtbed.engines.cuda import driver, launches, library
from simtbed.engines.cuda.launches import Queue

from tests.language import test_cuda_run
from tests.language.test_cuda_run import Error, Notes
from tests.table_checks import check_each

notes = test_cuda_run.notes


@st.kernel
def scaled(x: Global[f32], out: Global[f32]) -> None:
    out[st.thread.x] = 2 * x[st.thread.x]


def run(stream: Stream | None = None, **args: Any) -> st.Result:
    named = {"x": np.ones(4, np.float32), "out": st.empty(4, f32), **args}
    return launch(scaled, grid=1, block=4, args=named, engine="cuda", stream=stream)


def device() -> DeviceArray:
    return DeviceArray(np.zeros(4, np.float32))


def queue() -> Queue:
    return Queue.of_context(driver.primary_context())


@pytest.fixture
def running(monkeypatch: pytest.MonkeyPatch) -> set[int]:
    """Events whose launches have not ended. Queries of events let other threads run."""
    events = set[int]()

    def has_ended(event: int) -> bool:
        threading.Event().wait(0.001)
        return event not in events

    monkeypatch.setattr(library, "has_ended", has_ended)
    return events


def in_threads(count: int, work: Callable[[], object]) -> list[BaseException]:
    errors = []

    def guarded() -> None:
        try:
            work()
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=guarded) for _ in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return errors


def started(count: int) -> list[launches.StartedLaunch]:
    stream, own = Stream(), [device() for _ in range(count)]
    results = [run(stream, out=array, x=np.ones(4, np.float32)) for array in own]
    assert all(results)
    return list(queue().pending)


def test_only_ended_launches_release_their_memory(notes: Notes, running: set[int]) -> None:
    first, *others = started(4)
    running |= {launch.end_event for launch in others}

    def discard() -> None:
        with driver.primary_context().current():
            queue().discard_ended()

    assert in_threads(8, discard) == []
    assert first.ended and not first.retained and not any(launch.ended for launch in others)
    assert list(queue().pending) == others and all(launch.retained for launch in others)
    running.clear()


def test_an_event_has_one_launch_while_a_thread_waits_for_it(
    notes: Notes, running: set[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    (launch,) = started(1)
    event, waits, ends = launch.end_event, threading.Event(), threading.Event()

    def synchronize(event: int) -> None:
        waits.set()
        assert ends.wait(10)

    monkeypatch.setattr(library, "synchronize_event", synchronize)
    waiter = threading.Thread(target=launch.finish)
    waiter.start()
    assert waits.wait(10)
    with driver.primary_context().current():
        queue().discard_ended()
        assert launch.ended and queue().take_events(timed=False)[1] != event
    ends.set()
    waiter.join()
    assert queue().events.count(event) == 1


def test_threads_share_the_objects_of_a_context(notes: Notes, monkeypatch: pytest.MonkeyPatch) -> None:
    """They are created slowly, by the first thread that needs them."""
    contexts, queues, created = [], [], []
    fake = sys.modules["pycuda.driver"]

    def slow(name: str, create: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any) -> Any:
            created.append(name)
            threading.Event().wait(0.01)
            return create(*arguments)

        return call

    monkeypatch.setattr(fake, "DeviceMemoryPool", slow("pool", fake.DeviceMemoryPool))
    monkeypatch.setattr(fake.Device, "retain_primary_context", slow("context", fake.Device.retain_primary_context))

    def work() -> None:
        contexts.append(driver.primary_context())
        queues.append(queue())

    assert in_threads(6, work) == []
    assert len({*map(id, contexts)}) == len({*map(id, queues)}) == 1 and sorted(created) == ["context", "pool"]


def test_threads_share_a_plan(notes: Notes) -> None:
    """Each launch has the address and the number of its own thread, and no launch is lost."""
    threads, count = 8, 40
    arrays = [DeviceArray(np.zeros(4, np.float32)) for _ in range(threads)]

    def work(thread: int) -> None:
        stream = Stream() if thread % 2 else None
        for _ in range(count):
            launch(shifted, grid=1, block=4, args=(arrays[thread], thread), engine="cuda", stream=stream)
        queue().unfinished()
        if stream is not None:
            stream.synchronize()

    for thread in range(threads):
        work(thread)  # plans and streams exist
    notes.launches.clear()
    numbers = iter(range(threads))
    assert in_threads(threads, lambda: work(next(numbers))) == []
    launched = Counter(values[:2] for values, _ in notes.launches)
    assert launched == {(arrays[thread].remote.address, thread): count for thread in range(threads)}  # type: ignore[union-attr]
    assert queue().unfinished() == []


@st.kernel
def shifted(x: Global[f32], n: i32) -> None:
    x[n] = 1


# ------------------------------------------------------------------ causes
def test_the_child_of_a_fork_has_no_gpu(notes: Notes, monkeypatch: pytest.MonkeyPatch) -> None:
    array, stream = device(), Stream()
    run(stream, out=array).wait()
    held = driver.primary_context().context
    together = {"grid": 1, "block": 4, "args": {"x": np.ones(4, np.float32), "out": st.empty(4, f32)}}
    uses: dict[str, Callable[[], object]] = {
        "launch": run,
        "stream": lambda: run(Stream(), out=device()),
        "repetition": lambda: run(stream, out=array),
        "contents": array.numpy,
        "wait": stream.synchronize,
        "together": lambda: list(st.launch_concurrent([(scaled, together)], engine="cuda")),
    }  # fmt: skip

    def check(name: str) -> None:
        with pytest.raises(
            LaunchError, match=r'the GPU was used before this process was forked.*"spawn" of multiprocessing$'
        ):
            uses[name]()
        assert array.lock.acquire(blocking=False)
        array.lock.release()

    driver._lose_contexts()
    try:
        check_each(uses, check)
        driver._forget(driver.primary_context())  # at the end of the child
    finally:
        driver.primary_context().context = held
    assert run().out.shape == (4,)


def test_a_process_forked_after_another_library_used_the_gpu(notes: Notes, monkeypatch: pytest.MonkeyPatch) -> None:
    def init() -> None:
        raise Error("cuInit failed: initialization error")

    monkeypatch.setattr(sys.modules["pycuda.driver"], "init", init)
    with pytest.raises(
        LaunchError, match="no CUDA device can be used: the GPU was used before this process was forked"
    ):
        run()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_forks_are_seen(notes: Notes) -> None:
    run()
    child = os.fork()
    if not child:
        try:
            run()
        except LaunchError as error:
            os._exit(7 if "forked" in str(error) else 8)
        os._exit(9)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7


def test_the_cause_of_later_errors_is_the_first_one(notes: Notes, monkeypatch: pytest.MonkeyPatch) -> None:
    """After an illegal access every call fails; the errors name the launch that made it."""
    stream, array, other = Stream(), device(), device()
    run(out=other)
    result = run(stream, out=array)
    notes.driver.fails_later = True
    cause = r"scaled \([^)]*test_cuda_threads.py:\d+\).* failed on the GPU: an illegal memory access was encountered"
    with pytest.raises(LaunchError, match=f"^{cause}$"):
        stream.synchronize()
    notes.driver.fails_later, notes.fails = False, True

    def broken(*arguments: object) -> None:
        raise Error("cuMemcpyDtoH failed: an illegal memory access was encountered")

    for name in ("memcpy_dtoh", "mem_alloc"):
        monkeypatch.setattr(sys.modules["pycuda.driver"], name, broken)
    uses: dict[str, Callable[[], object]] = {
        "scaled": run,
        "the copy of an array to the host": other.numpy,
        r"scaled \(.*\)": result.wait,
        "the operation": stream.synchronize,
    }

    def check(name: str) -> None:
        with pytest.raises(
            LaunchError, match=f"^{name} does not run on the GPU: before it, {cause}; start a new process$"
        ):
            uses[name]()

    check_each(uses, check)
    notes.fails = False
