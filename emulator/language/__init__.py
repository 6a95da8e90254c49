"""The kernel language: what `simtbed` shows of it, for the package's own functions."""

from .functions import DeviceFunction, Kernel, SourceFunction, device, kernel
from .hints import *  # noqa: F403
from .intrinsics import *  # noqa: F403

__all__ = ["DeviceFunction", "Kernel", "SourceFunction", "device", "kernel"]
