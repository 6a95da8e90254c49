"""The classes `Device` and `Stream` of `cuda.core`, for programs that create them over the emulated driver."""

from __future__ import annotations

import math
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any, ClassVar, NamedTuple

from cuda.bindings import driver as bindings
from cuda.core._utils.cuda_utils import CUDAError

from .functions import CONTEXT, Driver


class ComputeCapability(NamedTuple):
    """A compute capability."""

    major: int
    minor: int


class CoreDevice:
    """`cuda.core.Device`: the emulated device."""

    driver: ClassVar[Driver]

    def __init__(self, device_id: int = 0) -> None:
        if device_id:
            raise IndexError(f"device {device_id}: there is one emulated device, 0")
        self.device_id = device_id
        self.compute_capability = ComputeCapability(*self.driver.device.compute_capability)
        self.name = f"simtbed {self.driver.device.name}"
        self.uuid = "00000000-0000-0000-0000-000000000000"
        context = bindings.CUcontext(CONTEXT)
        self.context = SimpleNamespace(handle=context, _handle=context)  # the latter in versions before 0.6

    def set_current(self) -> None:
        stack = self.driver.stack
        if stack[-1:] != [CONTEXT]:
            stack.append(CONTEXT)


class CoreStream:
    """`cuda.core.Stream`: a handle. Work is complete when it is submitted."""

    def __init__(self, handle: Any) -> None:
        self.handle = bindings.CUstream(int(handle))

    @staticmethod
    def from_handle(handle: Any) -> CoreStream:
        return CoreStream(handle)

    def __cuda_stream__(self) -> tuple[int, int]:
        return 0, int(self.handle)

    def sync(self) -> None:
        """Return at once."""


def require_threads(name: str, block: Sequence[int], most: int) -> None:
    """Raise the error of a driver for a launch of a kernel with too many threads in a block."""
    if math.prod(block) > most:
        raise CUDAError(f"CUDA_ERROR_INVALID_VALUE: a block of {block} threads, a launch of {name} has at most {most}")
