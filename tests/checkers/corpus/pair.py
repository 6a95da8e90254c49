"""The corpus: kernels with one mistake each. `FIXED` is a constant of every kernel; where it is true the mistake is fixed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from simtbed import Device, Kernel, Result, devices, launch, zeros
from simtbed.runtime.registry import EngineName

N = 128
"""Elements of most arrays."""
X = np.arange(1, N + 1, dtype=np.float32)
I = np.arange(N, dtype=np.int32)  # noqa: E741


@dataclass(frozen=True)
class Pair:
    """A kernel, the kind of fault its mistake is, and how it is launched."""

    kernel: Kernel
    fault: str
    grid: int
    block: int
    shared: int
    device: Device
    schedule: int | None
    cooperative: bool
    cluster: int
    args: dict[str, Any]

    @property
    def name(self) -> str:
        return self.kernel.__name__

    @property
    def shape(self) -> dict[str, Any]:
        """The options of a launch that a GPU needs too."""
        return {name: getattr(self, name) for name in ("grid", "block", "shared", "cooperative", "cluster")}

    def launch(self, fixed: bool, engine: EngineName) -> Result:
        """Run one twin under all checks."""
        return launch(
            self.kernel, args={**self.args, "FIXED": fixed}, device=self.device, schedule=self.schedule, engine=engine,
            check="all", faults="return", step_limit=200, **self.shape,
        )  # fmt: skip


PAIRS: dict[str, Pair] = {}


def pair(
    fault: str, *, grid: int = 1, block: int = 64, shared: int = 0, device: Device = devices.H200,
    schedule: int | None = None, cooperative: bool = False, cluster: int = 1, **args: Any,
) -> Callable[[Kernel], Kernel]:  # fmt: skip
    """Add a kernel to the corpus. args: the kernel's arguments; the default of `out` is an array of N zeros of f32."""

    def add(kernel: Kernel) -> Kernel:
        assert kernel.__name__ not in PAIRS
        arguments = {"out": zeros(N, "f32"), **args}
        PAIRS[kernel.__name__] = Pair(
            kernel, fault, grid, block, shared, device, schedule, cooperative, cluster, arguments
        )
        return kernel

    return add
