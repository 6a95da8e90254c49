"""A pytest plugin that plays a GPU: the engine cuda answers as the numpy engine does, and counts nothing."""

from __future__ import annotations

from dataclasses import replace

from simtbed.engines.numpy.engine import NumpyEngine
from simtbed.runtime import registry
from simtbed.runtime.engine import Outcome, Request


class PlayedGpu:
    """What a GPU gives of a launch: the arrays, but those that stay with it."""

    name = "cuda"

    def run(self, request: Request) -> Outcome:
        outcome = NumpyEngine().run(replace(request, counters=False, detail=False))
        for name in request.device_arrays.keys() & outcome.buffers.keys():
            request.device_arrays[name].replace(outcome.buffers.pop(name))
        return Outcome(outcome.buffers, milliseconds=1.0)


registry.ENGINES["cuda"] = registry.EngineRow("cuda", __name__, "PlayedGpu", emulates=False)
