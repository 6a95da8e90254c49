"""Textbook kernels: their launches by size and block, and NumPy's answers."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from simtbed import Kernel
from simtbed.reports.hardware.launches import Timed

SEED = 20
INPUTS = Path(__file__).parents[1] / "records/inputs.npz"
Values = npt.NDArray[Any]
Args = Mapping[str, Any]
Block = int | tuple[int, ...]


@dataclass(frozen=True)
class ValidationKernel:
    """A kernel with its launches. A size is an argument of `grid` and `make`: elements, rows or a side.

    grid: blocks, from size and block. make: arguments, from size and block, the same at each call. answer: expected
    arrays by name, from the arguments. counted: the size and block with recorded counters. sizes, blocks: the timed
    launches, their product. unordered: arrays with an order, or sums in an order, of threads; they remain on the
    device. restored: arrays that a launch changes, so that another launch would differ. shared: bytes of dynamic
    shared memory, from size and block.
    """

    kernel: Kernel
    grid: Callable[[int, Any], Any]
    make: Callable[[int, Any], Args]
    answer: Callable[[Any], Mapping[str, Values]]
    counted: tuple[int, Block]
    sizes: tuple[int, ...] = ()
    blocks: tuple[Block, ...] = ()
    unordered: tuple[str, ...] = ()
    restored: tuple[str, ...] = ()
    shared: Callable[[int, Any], int] = lambda size, block: 0

    @property
    def name(self) -> str:
        return self.kernel.__name__

    def at(self, size: int, block: Block) -> Timed:
        """The launch of a size and a block: "KERNEL SIZE BLOCK"."""
        shape = block if isinstance(block, int) else "x".join(map(str, block))
        make, grid = partial(self.make, size, block), self.grid(size, block)
        return Timed(
            f"{self.name} {size} {shape}", self.kernel, grid, block, make, self.shared(size, block),
            answer=self.answer, unordered=self.unordered, restored=self.restored,
        )  # fmt: skip

    @property
    def small(self) -> Timed:
        """Return the launch with recorded counters."""
        return self.at(*self.counted)

    def timed(self) -> Iterator[Timed]:
        """Return the launches with recorded times."""
        return (self.at(size, block) for size in self.sizes for block in self.blocks)


# ------------------------------------------------------------------ grids
def cover(n: int, block: int) -> int:
    """Return the number of blocks with a thread per element."""
    return -(-n // block)


def tiles(n: int, block: tuple[int, int]) -> tuple[int, int]:
    """Return the number of blocks with a thread per element of a square."""
    return -(-n // block[0]), -(-n // block[1])


def warps(n: int, block: int) -> int:
    """Return the number of blocks with a warp per element."""
    return -(-n // (block // 32))


# ------------------------------------------------------------------ inputs
def draw() -> np.random.Generator:
    """Return the generator of random inputs."""
    return np.random.default_rng(SEED)


def floats(*shape: int) -> npt.NDArray[np.float32]:
    """Return random numbers from 0 to 1."""
    return draw().random(shape, dtype=np.float32)


def ints(n: int, most: int, type: Any = np.int32) -> Values:
    """Return random integers below `most`."""
    return draw().integers(0, most, n, dtype=type)


def words(n: int) -> npt.NDArray[np.uint32]:
    """Return random 32-bit words."""
    return draw().integers(0, 2**32, n, dtype=np.uint32)


def stored(name: str, size: int) -> Values | None:
    """Return the recorded input of a name if it has `size` elements: values that NumPy computes differently on other processors."""
    with np.load(INPUTS) as arrays:
        values: Values = arrays[name]
    return values if values.size == size else None


def round_off(x: Values) -> Values:
    """Return values of about 1 rounded to 9 decimals: independent of the last bits, and so of the processor."""
    return np.round(x, 9)


def zeros(n: int, type: Any = np.float32) -> Values:
    """Return the initial contents of an output."""
    return np.zeros(n, type)
