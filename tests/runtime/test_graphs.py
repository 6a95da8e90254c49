"""Graphs: recorded launches run at each replay, in the order of their streams."""

from typing import Any

import numpy as np
import pytest
import simtbed as st
from simtbed import DeviceArray, Event, Global, LaunchError, Stream, i32, launch

from tests.language import test_cuda_run
from tests.language.test_cuda_run import Notes

notes = test_cuda_run.notes


@st.kernel
def add(x: Global[i32], out: Global[i32], n: i32) -> None:
    """out += x + n."""
    out[st.thread.x] += x[st.thread.x] + n


def arrays() -> tuple[DeviceArray, DeviceArray]:
    return DeviceArray(np.ones(32, np.int32)), DeviceArray(st.zeros(32, "i32"))


def record(x: Any, out: Any, n: int, engine: Any = "jit", stream: Stream | None = None) -> st.Result:
    return launch(add, grid=1, block=32, args={"x": x, "out": out, "n": n}, engine=engine, stream=stream)


@pytest.mark.parametrize("engine", ["jit", "numpy", "python"])
def test_a_replay_runs_the_launches_in_order(engine: Any) -> None:
    x, out = arrays()
    with st.capture() as graph:
        result = record(x, out, 1, engine)
        record(out, x, 0, engine)
    assert out.numpy()[0] == 0
    for expected in ((2, 3), (6, 9)):
        graph.replay()
        assert (out.numpy()[5], x.numpy()[5]) == expected
    graph.replay(Stream())
    assert out.numpy()[0] == 16
    with pytest.raises(st.SimtbedError, match="a launch of a graph has no result"):
        result.buffers  # noqa: B018 - reading it is an error


@st.kernel
def listed(ends: Global[i32], out: Global[i32]) -> None:
    for k in range(st.lane, ends[st.block.x], 32):
        out[k] = 1


def test_the_code_of_a_recorded_launch_ignores_contents() -> None:
    """A replay has other contents: the counter of the loop has a limit."""
    args = {"ends": DeviceArray(np.ones(1, np.int32)), "out": DeviceArray(np.zeros(32, np.int32))}
    plain = launch(listed, grid=1, block=32, args=args).request.specialisation
    with st.capture() as graph:
        launch(listed, grid=1, block=32, args=args)
    assert graph.launches[0].request.specialisation is not plain


def test_a_fault_of_a_replay_is_raised() -> None:
    x, out = DeviceArray(np.ones(8, np.int32)), DeviceArray(st.zeros(32, "i32"))
    with st.capture() as graph:
        record(x, out, 1)
    with pytest.raises(st.FaultError, match="out of bounds"):
        graph.replay()


def test_launches_that_cannot_be_recorded_are_refused() -> None:
    x, out = arrays()
    with st.capture() as graph:
        with pytest.raises(
            LaunchError, match=r"add: a launch of a graph takes device arrays: give x as a st\.DeviceArray"
        ):
            record(np.ones(32, np.int32), out, 1)
        with pytest.raises(LaunchError, match="not a view of the host"):
            record(st.device_view(np.ones(32, np.int32)), out, 1)
        record(x, out, 1)
        with pytest.raises(LaunchError, match="the launches of a graph have one engine"):
            record(x, out, 1, "numpy")
        with pytest.raises(LaunchError, match=r"leave the block of st\.capture"):
            graph.replay()
    with st.capture() as empty:
        pass
    empty.replay()


def test_streams_and_events_order_the_launches() -> None:
    (x, out), first, second, event = arrays(), Stream(), Stream(), Event()
    with st.capture() as graph:
        record(x, out, 1, stream=first)
        event.record(first)
        record(x, out, 2, stream=first)
        record(x, out, 3, stream=second)
        second.wait(event)
        record(x, out, 4, stream=second)
        record(x, out, 5)
        record(x, out, 6, stream=first)
    assert [launch.before for launch in graph.launches] == [(), (0,), (), (0, 2), (1, 3), (4,)]


def test_a_gpu_has_a_node_for_each_launch(notes: Notes) -> None:
    x, out = arrays()
    stream = Stream()
    with st.capture() as graph:
        for n in range(3):
            record(x, out, n, "cuda")
    assert notes.launches == []
    graph.replay()
    graph.replay(stream)
    assert [values[2] for values, _ in notes.launches] == [0, 1, 2] * 2
    assert [len(before) for before in notes.driver.edges] == [0, 1, 1]
    assert {values[:2] for values, _ in notes.launches} == {(4096, 8192)}
    replays = [on for call, on in notes.driver.calls if call == "graph"]
    assert replays[0] == 0 and replays[1] > 0
    assert [call for call, _ in notes.driver.calls].count("launch") == 0
    out.fetch()  # the graph follows its arrays
    graph.replay()
    assert notes.launches[-1][0][1] not in (8192, 0)


def test_a_failed_replay_is_named(notes: Notes) -> None:
    x, out = arrays()
    with st.capture() as graph:
        record(x, out, 1, "cuda")
    notes.driver.fails_later = True
    with pytest.raises(LaunchError, match=r"add \(.*test_graphs.py:\d+\) failed on the GPU: an illegal memory access"):
        graph.replay()
