"""Graphs: launches recorded once and replayed together, in the order of their streams."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Protocol

from ..errors import LaunchError, SimtbedError
from .engine import CodePlace, Request
from .streams import RECORDER, Event, Stream


class NativeGraph(Protocol):
    """A graph in the memory of a GPU."""

    def replay(self, stream: Stream | None) -> None:
        """Start all launches. Without a stream, wait for their end."""
        ...


@dataclass(frozen=True)
class RecordedLaunch:
    """A launch of a graph. before: numbers of launches that end before it. place: of the launch in the program."""

    request: Request
    stream: Stream | None
    before: tuple[int, ...]
    place: CodePlace


@dataclass
class Graph:
    """Launches recorded by `capture`. replay() runs all of them.

    Launches of one stream are in order, and so are all with one without a stream. Events that are recorded and waited for
    inside of `capture` order streams. native: the graph by context of a GPU.
    """

    launches: list[RecordedLaunch] = field(default_factory=list)
    native: dict[Any, NativeGraph] = field(default_factory=dict, repr=False)
    _latest: dict[int, int] = field(default_factory=dict, repr=False)
    _events: dict[int, frozenset[int]] = field(default_factory=dict, repr=False)
    _waits: dict[int, set[int]] = field(default_factory=dict, repr=False)
    _run: Any = field(default=None, repr=False)
    _complete: bool = field(default=False, repr=False)

    def replay(self, stream: Stream | None = None) -> None:
        """Run the launches. stream: on a GPU they begin after earlier launches of the stream, and are not waited for.

        Arrays have the contents that earlier launches and replays left. Raises LaunchError for a graph that is not complete,
        FaultError, and the errors of `launch`.
        """
        if not self._complete:
            raise LaunchError("a graph is replayed after its capture: leave the block of st.capture() first")
        if self._run is not None:
            self._run(self, stream)

    def add(self, request: Request, stream: Stream | None, place: CodePlace, run: Any) -> None:
        """Record a launch. run: replays all launches; of one engine. Raises LaunchError for arrays of the host."""
        name = request.specialisation.summary.name
        hosts = [
            n for n, value in request.arguments.items() if getattr(value, "ndim", 0) and n not in request.device_arrays
        ]
        if hosts:
            raise LaunchError(f"{name}: a launch of a graph takes device arrays: give {hosts[0]} as a st.DeviceArray")
        for array in request.device_arrays.values():
            if not array.remains:
                raise LaunchError(
                    f"{name}: a launch of a graph takes device arrays: st.DeviceArray, not a view of the host"
                )
        if self._run is not None and self._run != run:
            raise LaunchError(f"{name}: the launches of a graph have one engine")
        self._run = run
        self.launches.append(RecordedLaunch(request, stream, self._before(stream), place))

    def _before(self, stream: Stream | None) -> tuple[int, ...]:
        number = len(self.launches)
        if stream is None:
            before = {*self._latest.values()}
            self._latest = {0: number}
        else:
            own = self._latest.get(stream.number, self._latest.get(0))
            before = self._waits.pop(stream.number, set()) | ({own} if own is not None else set())
            self._latest[stream.number] = number
        return tuple(sorted(before))

    def record_event(self, event: Event, stream: Stream) -> None:
        """Place an event behind the launches of a stream."""
        latest = self._latest.get(stream.number, self._latest.get(0))
        self._events[id(event)] = frozenset(() if latest is None else (latest,))

    def wait(self, stream: Stream, event: Event) -> None:
        """Have the next launch of a stream wait for an event."""
        self._waits.setdefault(stream.number, set()).update(self._events.get(id(event), ()))


class RecordedResult:
    """The outcome of a launch of a graph: there is none before a replay, and its arrays are device arrays."""

    def finish(self) -> Any:
        raise SimtbedError(
            "a launch of a graph has no result: graph.replay() runs it, and its device arrays have the contents"
        )


def current_graph() -> Graph | None:
    """Return the graph that records the launches of this thread."""
    graph = RECORDER.get()
    assert graph is None or isinstance(graph, Graph)
    return graph


@contextmanager
def capture() -> Iterator[Graph]:
    """Record the launches of the block in a graph, without running them.

        with st.capture() as graph:
            for _ in range(1000):
                st.launch(step, grid=64, block=256, args=(state, n), engine="cuda")
        graph.replay()

    All arrays are device arrays. On a GPU, a replay starts all launches by one call; an emulator runs them one by one. The graph
    keeps its arrays. Raises LaunchError for launches that cannot be recorded.
    """
    graph = Graph()
    before = RECORDER.set(graph)
    try:
        yield graph
    finally:
        RECORDER.reset(before)
    graph._complete = True
