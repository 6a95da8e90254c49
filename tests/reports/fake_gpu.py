"""A fake GPU: small launches are emulated, larger ones return zeros, and every launch reports one millisecond."""

from dataclasses import replace
from math import prod

import numpy as np
import pytest
from simtbed.engines.cuda import engine as cuda
from simtbed.engines.cuda import startup
from simtbed.engines.llvm.engine import LlvmEngine
from simtbed.ir.access import AccessKind
from simtbed.runtime.engine import Outcome, Request

NAME = "a GPU"
SMALL = 1 << 17
"""Threads of a launch that is emulated."""


class FakeGpu:
    """The cuda engine's methods. wrong: names of kernels that answer zeros."""

    def __init__(self, wrong: frozenset[str] = frozenset()) -> None:
        self.wrong, self.emulator = wrong, LlvmEngine()

    def run(self, request: Request) -> Outcome:
        remaining = {}
        for name, array in request.device_arrays.items():
            array.fetch()
            remaining[name] = array.host.reshape(np.shape(request.arguments[name]))
        filled = {name: element for name, element in request.filled.items() if name not in remaining}
        request = replace(request, arguments={**request.arguments, **remaining}, filled=filled)
        if prod(request.grid) * prod(request.block) > SMALL or request.program.kernel.name in self.wrong:
            arrays = {name: value for name, value in request.arguments.items() if isinstance(value, np.ndarray)}
            nothing = {
                name: np.zeros_like(value) for name, value in arrays.items() if name not in request.device_arrays
            }
            return Outcome(nothing, milliseconds=1.0)
        result = self.emulator.run(request).buffers
        for name in request.device_arrays.keys() & result.keys():
            request.device_arrays[name].replace(result.pop(name))
        return Outcome(result, milliseconds=1.0)

    def time(self, request: Request, repeats: int) -> list[float]:
        kinds = [site.action for site in request.prepared.sites]
        counts = any(isinstance(kind, AccessKind) and kind.atomic and kind.space == "global" for kind in kinds)
        assert not counts, "a launch that counts in memory finds what the one before counted"
        return [1.0] * repeats


def install(monkeypatch: pytest.MonkeyPatch, wrong: frozenset[str] = frozenset()) -> None:
    """Have launches with engine="cuda" run on it."""
    fake = FakeGpu(wrong)
    monkeypatch.setattr(cuda.CudaEngine, "run", lambda self, request: fake.run(request))
    monkeypatch.setattr(cuda.CudaEngine, "time", lambda self, request, repeats: fake.time(request, repeats))
    monkeypatch.setattr(cuda.CudaEngine, "direct", lambda self, request, plan: None)
    monkeypatch.setattr(cuda, "describe", lambda: {"device": NAME})
    monkeypatch.setattr(startup, "begin_context", lambda number=0: None)
