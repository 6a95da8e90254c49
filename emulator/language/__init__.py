"""The kernel language: what `simtbed` shows of it, for the package's own functions."""

from .atomics import *  # noqa: F403
from .bits import *  # noqa: F403
from .copies import *  # noqa: F403
from .functions import DeviceFunction, Kernel, SourceFunction, device, kernel
from .hints import *  # noqa: F403
from .intrinsics import *  # noqa: F403
from .warps import *  # noqa: F403

__all__ = ["DeviceFunction", "Kernel", "SourceFunction", "device", "kernel"]
