"""Streams and events: order on the emulators, races between streams, and queued launches on a recording driver."""

import pickle
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import simtbed as st
from simtbed import DeviceArray, Event, Global, LaunchError, Stream, i32, launch
from simtbed.runtime import streams
from simtbed.runtime.observing import observing

from tests.language import test_cuda_run
from tests.language.test_cuda_run import Notes

notes = test_cuda_run.notes


@st.kernel
def fill_section(out: Global[i32], first: i32, value: i32) -> None:
    """out[first + thread] = value."""
    out[first + st.thread.x] = value


@st.kernel
def counted(out: Global[i32]) -> None:
    st.atomic_add(out, 0, 1)


@st.kernel
def copied(x: Global[i32], out: Global[i32]) -> None:
    out[st.thread.x] = x[st.thread.x]


@pytest.fixture(autouse=True)
def no_earlier_launches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streams, "_host", {})
    monkeypatch.setattr(streams, "_latest", {})


def section(out: DeviceArray, first: int, stream: Stream | None, engine: Any = "jit") -> st.Result:
    args = {"out": out, "first": first, "value": first + 1}
    return launch(
        fill_section, grid=1, block=32, args=args, stream=stream, engine=engine, check="races", faults="return"
    )


# ------------------------------------------------------------------ emulators
@pytest.mark.parametrize("engine", ["jit", "numpy"])
def test_a_launch_on_a_stream_has_its_result(engine: Any) -> None:
    stream, start, end = Stream(), Event(), Event()
    args = {"out": np.zeros(40, np.int32), "first": 4, "value": 3}
    start.record(stream)
    result = launch(fill_section, grid=1, block=32, args=args, stream=stream, engine=engine)
    end.record(stream)
    assert result.wait() is result
    assert result.out.tolist() == [0] * 4 + [3] * 32 + [0] * 4
    assert 0 < start.elapsed(end) < 1e5
    stream.synchronize()
    assert repr(stream) == f"<Stream {stream.number}>"


@pytest.mark.parametrize("engine", ["jit", "numpy"])
def test_a_race_between_streams_is_a_finding(engine: Any) -> None:
    first, second, out = Stream(), Stream(), DeviceArray(np.zeros(80, np.int32))
    assert section(out, 0, first, engine).faults == []
    assert section(out, 32, second, engine).faults == []  # other elements
    (fault,) = section(out, 16, second, engine).faults
    message = (
        f"out[16] is accessed by fill_section on stream {second.number} and by fill_section on stream {first.number}"
    )
    assert (fault.kind, fault.count, fault.array) == ("race", 16, "out")
    assert fault.message == f"{message} without an order"
    assert "b.wait(event)" in fault.notes[1]


def test_a_race_between_streams_is_a_finding_under_an_observer() -> None:
    first, second, out = Stream(), Stream(), DeviceArray(np.zeros(80, np.int32))
    observer = SimpleNamespace(engine=None, device=None, observe=lambda call, proceed: proceed(call))
    with observing(observer):
        assert section(out, 0, first).faults == []
        assert [fault.count for fault in section(out, 16, second).faults] == [16]


@pytest.mark.parametrize("order", ["event", "stream", "host", "default launch", "read", "result"])
def test_ordered_launches_do_not_race(order: str) -> None:
    first, second, event = Stream(), Stream(), Event()
    out = DeviceArray(np.zeros(32, np.int32))
    result = section(out, 0, first)
    assert result.faults == []
    event.record(first)
    if order == "event":
        second.wait(event)
    elif order == "host":
        event.synchronize()
    elif order == "stream":
        first.synchronize()
    elif order == "result":
        result.wait()
    elif order == "read":
        out.numpy()
    else:
        assert section(DeviceArray(np.zeros(64, np.int32)), 0, None).faults == []
    assert section(out, 0, second).faults == []


def test_an_event_orders_only_the_launches_before_it() -> None:
    first, second, event = Stream(), Stream(), Event()
    out = DeviceArray(np.zeros(32, np.int32))
    event.record(first)
    second.wait(event)
    section(out, 0, first)
    assert len(section(out, 0, second).faults) == 1


def test_readers_or_atomic_operations_do_not_race() -> None:
    first, second = Stream(), Stream()
    common: dict[str, Any] = {"check": "races", "faults": "return", "grid": 1, "block": 32}
    x, total = DeviceArray(np.zeros(32, np.int32)), DeviceArray(np.zeros(1, np.int32))
    for stream in (first, second):
        own = DeviceArray(np.zeros(32, np.int32))
        assert launch(copied, args={"x": x, "out": own}, stream=stream, **common).faults == []
        assert launch(counted, args={"out": total}, stream=stream, **common).faults == []
    (fault,) = section(x, 0, Stream()).faults[:1]
    assert "accessed by fill_section" in fault.message and "by copied" in fault.message


def test_other_objects_are_refused() -> None:
    args = {"out": np.zeros(40, np.int32), "first": 4, "value": 3}
    other: Any = 7
    with pytest.raises(LaunchError, match=r"stream is a st.Stream, or st.Stream\(s\)"):
        launch(fill_section, grid=1, block=32, args=args, stream=other)
    for call in (Stream().wait, Event().record, Event().elapsed):
        with pytest.raises(LaunchError):
            call(other)
    with pytest.raises(LaunchError, match="both events are recorded"):
        Event().elapsed(Event())
    with pytest.raises(LaunchError, match="external is a stream of another library"):
        Stream("s")


def test_streams_of_other_libraries_have_handles() -> None:
    torch, numba, cupy = (
        type("S", (), {name: value}) for name, value in (("cuda_stream", 5), ("handle", Number), ("ptr", 7))
    )
    protocol = type("S", (), {"__cuda_stream__": lambda self: (0, 8)})
    assert [Stream(kind()).handle for kind in (torch, numba, cupy, protocol)] == [5, 6, 7, 8]
    assert Stream(9).handle == 9


class Number:
    """A number of ctypes."""

    value = 6


# ------------------------------------------------------------------ a recording driver
def queued(out: Any, stream: Stream) -> st.Result:
    return launch(
        fill_section, grid=1, block=32, args={"out": out, "first": 4, "value": 3}, engine="cuda", stream=stream
    )


def test_a_queued_launch_is_not_waited_for(notes: Notes, monkeypatch: pytest.MonkeyPatch) -> None:
    waits: list[int] = []

    def wait(self: Any, event: int) -> int:
        waits.append(event)
        return 0

    monkeypatch.setattr(type(notes.driver), "cuEventSynchronize", wait)
    stream = Stream()
    result = queued(np.zeros(40, np.int32), stream)
    (handle,) = {options["stream"] for _, options in notes.launches}
    assert handle and waits == []
    assert [call for call, on in notes.driver.calls if on == handle] == ["in", "launch", "out", "record"]
    assert (result.milliseconds, len(result.out), len(waits)) == (None, 40, 1)
    assert pickle.loads(pickle.dumps(queued(np.zeros(40, np.int32), stream).wait().buffers))["out"].shape == (40,)


def test_streams_wait_for_events_on_the_gpu(notes: Notes) -> None:
    first, second, event, end = Stream(), Stream(), Event(), Event()
    event.record(first)  # before its first launch
    out = DeviceArray(np.zeros(40, np.int32))
    queued(out, first)
    second.wait(event)
    queued(out, second)
    end.record(second)
    handles = [options["stream"] for _, options in notes.launches]
    assert len({*handles}) == 2
    assert ("wait", handles[1]) in notes.driver.calls
    assert event.elapsed(end) == 0.25
    second.synchronize()
    assert queued(out, Stream(77)).buffers == {}
    assert notes.launches[-1][1]["stream"] == 77


def test_a_failed_launch_is_named_with_its_place(notes: Notes) -> None:
    stream = Stream()
    results = [queued(DeviceArray(np.zeros(40, np.int32)), stream) for _ in range(2)]
    notes.driver.fails_later = True
    place = r"fill_section \(.*test_streams.py:\d+\)"
    for read in (lambda: results[1].buffers, stream.synchronize):
        with pytest.raises(LaunchError, match=rf"{place} failed on the GPU: an illegal memory access"):
            read()
    notes.driver.fails_later = False


def test_a_compiled_launch_takes_a_stream(notes: Notes) -> None:
    out, stream = DeviceArray(np.zeros(40, np.int32)), Stream()
    step = st.compile(fill_section, args=(out, 4, 3), grid=1, block=32, engine="cuda")
    assert notes.launches == []
    for value in range(3):
        step(value=value, stream=stream)
    assert [values[2] for values, _ in notes.launches] == [0, 1, 2]
    assert len({options["stream"] for _, options in notes.launches}) == 1
