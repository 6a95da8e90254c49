"""Pytest plugin with a simulated GPU: the engine cuda answers as the numpy engine does, without counters."""

from dataclasses import replace

from simtbed.engines.numpy.engine import NumpyEngine
from simtbed.runtime import registry
from simtbed.runtime.engine import Outcome, Request


class PlayedGpu:
    """An engine that returns the arrays of a launch as a GPU does: without device arrays."""

    name = "cuda"

    def run(self, request: Request) -> Outcome:
        outcome = NumpyEngine().run(replace(request, counters=False, detail=False))
        for name in request.device_arrays.keys() & outcome.buffers.keys():
            request.device_arrays[name].replace(outcome.buffers.pop(name))
        return Outcome(outcome.buffers, milliseconds=1.0)


registry.ENGINES["cuda"] = registry.EngineRow("cuda", __name__, "PlayedGpu", emulates=False)
