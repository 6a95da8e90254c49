"""A launch of a kernel of a cubin, as an observer records it."""

from dataclasses import dataclass
from typing import Any

from ..machine.device import Device
from .engine import Dim3


@dataclass(frozen=True)
class CubinLaunch:
    """A launch of kernel `name` of a cubin. arguments: arrays before the launch, and the bytes of other arguments. shared: bytes
    of dynamic shared memory of a block. cooperative: whether blocks wait for each other. cluster: blocks by axis."""

    name: str
    content: bytes
    arguments: tuple[Any, ...]
    grid: Dim3
    block: Dim3
    shared: int
    device: Device
    cooperative: bool
    cluster: Dim3 = (1, 1, 1)
