"""The list of feature kernels, and how one is launched and judged."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from simtbed import Kernel, empty
from simtbed.runtime.arrays import NewArray


@dataclass(frozen=True)
class Feature:
    """A kernel, how to launch it, and what `out` holds afterwards."""

    kernel: Kernel
    args: dict[str, Any]
    expected: Any
    grid: int | tuple[int, ...] = 1
    block: int | tuple[int, ...] = 32
    shared: int = 0

    @property
    def name(self) -> str:
        return self.kernel.__name__

    def launch(self, run: Callable[..., Any]) -> Any:
        """Run it with `launch`, or something called like it."""
        return run(self.kernel, grid=self.grid, block=self.block, args=self.args, shared=self.shared)


FEATURES: list[Feature] = []


def feature(
    expected: Any, *, grid: Any = 1, block: Any = 32, shared: int = 0, **args: Any
) -> Callable[[Kernel], Kernel]:
    def add(kernel: Kernel) -> Kernel:
        FEATURES.append(Feature(kernel, args, expected, grid, block, shared))
        return kernel

    return add


def out(length: int = 32, type: str = "i32") -> NewArray:
    return empty(length, type)
