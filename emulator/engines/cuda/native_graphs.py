"""Graphs of a GPU: one node for each recorded launch, instantiated at the first replay."""

import weakref
from contextlib import suppress
from typing import Any

from ...errors import LaunchError
from ...runtime.graphs import Graph, RecordedLaunch
from ...runtime.streams import Stream
from . import library
from .driver import Context, launch_error, primary_context
from .launches import Launcher
from .native_streams import GpuStream


class GpuGraph:
    """An executable graph in a context. arrays: of its launches, with their memory at the instantiation."""

    def __init__(self, context: Context, launches: list[RecordedLaunch]) -> None:
        self.context = context
        graph = library.new_graph()
        try:
            nodes: list[int] = []
            for launch in launches:
                nodes.append(self._add(graph, launch, [nodes[number] for number in launch.before]))
            self.executable = library.instantiate(graph)
        finally:
            library.destroy_graph(graph)
        arrays = {id(array): array for launch in launches for array in launch.request.device_arrays.values()}
        self.arrays = [(array, array.remote) for array in arrays.values()]
        weakref.finalize(self, _destroy, context, self.executable)

    @property
    def stale(self) -> bool:
        """Whether an array has moved since the instantiation."""
        return any(array.remote is not memory for array, memory in self.arrays)

    def _add(self, graph: int, launch: RecordedLaunch, before: list[int]) -> int:
        request = launch.request
        try:
            launcher = Launcher.of_request(self.context, request)
            if launcher.interface.cooperative:
                raise LaunchError(f"{request.specialisation.summary.name}: a cooperative launch cannot be in a graph")
            values = launcher.values_of_node(request)
            with launcher.block.lock:
                kernel = launcher.function.node(launcher.block, values, (request.grid, request.block), launcher.shared)
                return library.add_kernel_node(graph, before, kernel)
        except Exception as error:
            raise launch_error(error, request, self.context, launch.place) from None

    def replay(self, stream: Stream | None) -> None:
        with self.context.current():
            handle = 0 if stream is None else GpuStream.handle_of(stream, self.context)
            library.launch_graph(self.executable, handle)
            if stream is None:
                library.synchronize_stream(handle)


def replay(graph: Graph, stream: Stream | None) -> None:
    """Replay a graph on the device of launches. Raises LaunchError."""
    context = primary_context()
    native: Any = graph.native.get(context)
    request = graph.launches[0].request
    try:
        if native is None or native.stale:
            with context.current():
                native = graph.native[context] = GpuGraph(context, graph.launches)
        native.replay(stream)
    except Exception as error:
        raise launch_error(error, request, context, graph.launches[0].place) from None


def _destroy(context: Context, executable: int) -> None:
    with suppress(Exception), context.current():  # at the end of a process there may be no driver any more
        library.destroy_executable(executable)
