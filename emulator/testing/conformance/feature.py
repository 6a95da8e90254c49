"""A feature kernel: its launch and its expected output."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ...language.functions import Kernel
from ...runtime.arrays import NewArray, empty


@dataclass(frozen=True)
class Feature:
    """A kernel, its launch, and the expected contents of `out`."""

    kernel: Kernel
    args: dict[str, Any]
    expected: Any
    grid: int | tuple[int, ...] = 1
    block: int | tuple[int, ...] = 32
    shared: int = 0
    cooperative: bool = False
    cluster: int | tuple[int, ...] = 1

    @property
    def name(self) -> str:
        return self.kernel.__name__

    def launch(self, run: Callable[..., Any]) -> Any:
        """Run it with `launch`, or a function with the same parameters."""
        how: dict[str, Any] = {"cooperative": True} if self.cooperative else {}
        how |= {"cluster": self.cluster} if self.cluster != 1 else {}
        return run(self.kernel, grid=self.grid, block=self.block, args=self.args, shared=self.shared, **how)


FEATURES: list[Feature] = []


def feature(
    expected: Any,
    *,
    grid: Any = 1,
    block: Any = 32,
    shared: int = 0,
    cooperative: bool = False,
    cluster: Any = 1,
    **args: Any,
) -> Callable[[Kernel], Kernel]:
    """Add the decorated kernel to FEATURES with the expected contents of `out`, and its launch."""

    def add(kernel: Kernel) -> Kernel:
        FEATURES.append(Feature(kernel, args, expected, grid, block, shared, cooperative, cluster))
        return kernel

    return add


def out(length: int = 32, type: str = "i32") -> NewArray:
    """Return the output array of most features."""
    return empty(length, type)
