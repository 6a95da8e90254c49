"""Concurrent launches against a recording driver: shared copies and dependencies."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any, ClassVar

import numpy as np
import pytest
import simtbed as st
from simtbed import DeviceArray, LaunchError, OutOfMemory, launch_concurrent, zeros
from simtbed.engines.cuda import streams

from tests.language import test_cuda_run
from tests.language.test_cuda_run import Allocation, Notes, Pool, measured

notes = test_cuda_run.notes


class Stream:
    """Counts the events of its waits."""

    by_handle: ClassVar[dict[int, Stream]] = {}

    def __init__(self) -> None:
        self.waits, self.handle = 0, 1 + len(self.by_handle)
        self.by_handle[self.handle] = self

    def wait_for_event(self, event: Any) -> None:
        assert event.recorded
        self.waits += 1

    def synchronize(self) -> None: ...


class Event:
    """As with memory: PyCUDA cannot free it in another context."""

    def __init__(self, notes: Notes) -> None:
        self.notes, self.recorded = notes, False

    def __del__(self) -> None:
        if not self.notes.depth:
            self.notes.lost += 1

    def record(self, stream: Stream) -> None:
        self.recorded = True

    def synchronize(self) -> None:
        assert self.recorded


@pytest.fixture
def pool(notes: Notes) -> Iterator[Pool]:
    driver = sys.modules["pycuda.driver"]
    synchronised = type("Context", (), {"synchronize": staticmethod(lambda: None)})

    def copied(allocation: Allocation, array: Any, stream: Stream) -> None:
        allocation.data[:] = array.tobytes()

    def back(array: Any, allocation: Allocation, stream: Stream) -> None:
        array.view(np.uint8)[:] = np.frombuffer(bytes(allocation.data), np.uint8)

    vars(driver).update(
        Stream=Stream, Event=lambda flags: Event(notes), Context=synchronised, memcpy_htod_async=copied, memcpy_dtoh_async=back,
        event_flags=type("event_flags", (), {"DISABLE_TIMING": 2}),
    )  # fmt: skip
    yield notes.pool
    streams._streams_of.cache_clear()
    Stream.by_handle.clear()


def _launches(count: int, x: Any, size: int = 2) -> Any:
    args = {"x": x, "out": zeros(size, "i32"), "n": 3, "yes": True}
    return [(measured, {"grid": 1, "block": 64, "shared": 400, "args": args}) for _ in range(count)]


def test_what_launches_share_is_copied_once(notes: Notes, pool: Pool) -> None:
    results = list(launch_concurrent(_launches(11, np.zeros(5, np.float32)), engine="cuda"))
    addresses = [[int(a) for a in arguments[:2]] for arguments, _ in notes.launches]
    assert len({x for x, _ in addresses}) == 1
    assert len({out for _, out in addresses}) == 11
    assert len(pool.addresses) == 12
    used = [Stream.by_handle[options["stream"]] for _, options in notes.launches]
    assert len(set(map(id, used))) == streams.STREAMS
    assert all(stream.waits for stream in used)
    assert len(results) == 11
    assert results[0].milliseconds is None


def test_results_are_those_of_each_launch(notes: Notes, pool: Pool) -> None:
    pool.addresses.clear()
    actual = list(launch_concurrent(_launches(1, np.zeros(5, np.float32)), engine="cuda"))
    assert actual[0].out.tolist() == [0x2A, 0]
    nothing = list(launch_concurrent(_launches(1, np.zeros(0, np.float32), size=0), engine="cuda"))
    assert len(nothing[0].out) == 0


def test_memory_that_launches_copy_from(pool: Pool) -> None:
    created = streams.empty((3, 4), np.uint8)
    assert (created.shape, created.dtype.name, created.flags.c_contiguous) == ((3, 4), "uint8", True)
    created[...] = 1
    assert streams.empty(0, np.uint32).shape == (0,)


def test_out_of_memory_is_distinguished(pool: Pool) -> None:
    with pytest.raises(OutOfMemory, match="do not fit"):
        list(launch_concurrent(_launches(2, np.zeros(1 << 20, np.float32)), engine="cuda"))


@pytest.mark.usefixtures("pool")
def test_no_arrays_are_modified_in_place() -> None:
    args = {"x": np.zeros(5, np.float32), "out": np.zeros(2, np.int32), "n": 1, "yes": True}
    launches = [(measured, {"grid": 1, "block": 64, "args": args, "shared": 400})]
    with pytest.raises(LaunchError, match="concurrent launches do not modify arrays in place"):
        list(launch_concurrent(launches, engine="cuda", in_place=True))


def test_a_failed_launch_names_the_kernel(notes: Notes, pool: Pool) -> None:
    notes.fails = True
    with pytest.raises(LaunchError, match="measured failed on the GPU"):
        list(launch_concurrent(_launches(2, np.zeros(1, np.float32)), engine="cuda"))


def test_launches_share_device_arrays(notes: Notes, pool: Pool) -> None:
    """A DeviceArray is copied once, before the first launch that uses it, and its changes remain in it."""
    x, stored = DeviceArray(np.full(1, 2, np.float32)), DeviceArray(st.full(1, 7, "i32"))
    launches = [(kernel, {**how, "args": {**how["args"], "out": stored}}) for kernel, how in _launches(2, x)]
    for expected in (2, 4):
        results = list(launch_concurrent(launches, engine="cuda"))
        assert [result.buffers for result in results] == [{}, {}]
        assert len(notes.launches) == expected
    assert {tuple(int(a) for a in arguments[:2]) for arguments, _ in notes.launches} == {(4096, 8192)}
    waits = [Stream.by_handle[options["stream"]].waits for _, options in notes.launches]
    assert waits == [2, 2, 2, 2]  # for both copies; the second round copies nothing, and its streams are the same
    assert stored.numpy().tolist() == [0x2A]
    assert pool.addresses == []
    stored.fetch()
    assert stored.remote is None and notes.freed == 1


def test_a_launch_begins_when_it_is_given(notes: Notes, pool: Pool) -> None:
    """Compiled launches do not wait for later ones, and the first results are available before the last launch."""
    list(launch_concurrent(_launches(1, np.zeros(5, np.float32)), engine="cuda"))
    launched: list[int] = []

    def one_by_one() -> Iterator[Any]:
        for launch in _launches(3, np.zeros(5, np.float32)):
            launched.append(len(notes.launches))
            yield launch

    results = launch_concurrent(one_by_one(), engine="cuda")
    assert launched == []
    next(results)
    assert launched == [1, 2, 3]
    assert notes.depth == 0  # each user of a result has its own context
    assert len(list(results)) == 2


@pytest.mark.parametrize("engine", ["jit", "numpy"])
def test_an_emulator_takes_them_one_by_one(engine: Any) -> None:
    x = DeviceArray(np.zeros(5, np.float32))
    first, second = launch_concurrent(_launches(2, x), engine=engine)
    assert first.out.tolist() == second.out.tolist() == [108, 0]
