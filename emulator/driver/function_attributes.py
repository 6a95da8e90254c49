"""Attributes of a kernel that a program sets: the dynamic shared memory and the clusters that its launches may have.

Source: results of CUDA 13 on an H200. Without a request, a block has `Device.shared_per_block` bytes with those that the kernel declares.
"""

from dataclasses import dataclass

from ..errors import LaunchError
from ..machine.device import Device
from ..runtime.request import MAX_CLUSTER_BLOCKS

MAX_DYNAMIC_SHARED, CARVEOUT, ANY_CLUSTER_SIZE = 8, 9, 14
"""Numbers of CUfunction_attribute and of cudaFuncAttribute."""
PORTABLE_BLOCKS = 8
"""Blocks of a cluster without the attribute for other sizes."""


@dataclass
class FunctionAttributes:
    """Attributes of a kernel. declared: bytes of shared memory that a block has without the launch's. carveout: percent, -1 without one."""

    declared: int
    carveout: int = -1
    cluster_blocks: int = PORTABLE_BLOCKS
    _requested: int | None = None

    def set(self, device: Device, attribute: int, value: int) -> bool:
        """Set an attribute. Return whether the device accepts it."""
        if attribute == MAX_DYNAMIC_SHARED and 0 <= value <= device.shared_per_block_optin - self.declared:
            self._requested = value
        elif attribute == CARVEOUT and -1 <= value <= 100:
            self.carveout = value
        elif attribute == ANY_CLUSTER_SIZE:
            self.cluster_blocks = MAX_CLUSTER_BLOCKS if value else PORTABLE_BLOCKS
        else:
            return False
        return True

    def dynamic_shared(self, device: Device) -> int:
        """Return the bytes of dynamic shared memory that a launch may have."""
        return self._requested if self._requested is not None else max(0, device.shared_per_block - self.declared)

    def too_much_shared(self, device: Device, shared: int, setting: str) -> str:
        """Return why a launch with so much dynamic shared memory is refused, or "". setting: a call that allows it."""
        most, largest = self.dynamic_shared(device), device.shared_per_block_optin - self.declared
        if shared <= most:
            return ""
        advice = setting if shared <= largest else f"a block of the {device.name} has up to {largest:,}"
        return f"{shared:,} bytes of dynamic shared memory, more than {most:,}: {advice}"

    def require_shared(self, device: Device, name: str, shared: int, setting: str) -> None:
        """Raise LaunchError for a launch of kernel `name` with too much dynamic shared memory. setting: as in `too_much_shared`."""
        if excess := self.too_much_shared(device, shared, setting):
            raise LaunchError(f"{name}: {excess}")
