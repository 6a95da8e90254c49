"""The kernel language: types, intrinsics, and annotations for editors; the names that `simtbed` exports."""

from .atomics import *  # noqa: F403
from .bits import *  # noqa: F403
from .clusters import *  # noqa: F403
from .copies import *  # noqa: F403
from .functions import DeviceFunction, Kernel, SourceFunction, device, kernel
from .hints import *  # noqa: F403
from .intrinsics import *  # noqa: F403
from .matrices import *  # noqa: F403
from .mbarriers import *  # noqa: F403
from .warps import *  # noqa: F403

__all__ = ["DeviceFunction", "Kernel", "SourceFunction", "device", "kernel"]
