"""A trace of a launch: the accesses to memory that warps make, element by element, as an engine hands them on."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

ENTRY = np.dtype(
    [("block", np.int64), ("site", np.int32), ("phase", np.int32), ("warp", np.int32), ("mask", np.uint32),
     ("index", np.int64, (32,))]
)  # fmt: skip
"""One access of one warp: its block and the barriers that the block has passed, its site, the active lanes, and the
element of the array that each of them accesses; 0 of the others. The array is that of the site."""

TRACED = ("global", "local", "constant", "shared")
"""The memories whose accesses can be handed on. Of local memory the index is that in the lane's own array."""
CACHED = ("global", "local", "constant")
"""Those of them behind a cache."""

Entries = npt.NDArray[Any]


class Tracer(Protocol):
    """What a traced launch hands its accesses to.

    spaces: only accesses to these memories are handed on. blocks: only those of blocks below this number. interval: only those of one
    of so many blocks, drawn by its number (`profiler.drawing`). Accesses of which a lane is out of bounds are not handed on.
    """

    @property
    def spaces(self) -> tuple[str, ...]: ...

    @property
    def blocks(self) -> int: ...

    @property
    def interval(self) -> int: ...

    def take(self, entries: Entries) -> None:
        """ENTRY[n]. Those of one warp come in the order in which it makes them, those of different warps in any order.
        Called from several threads; the array is used again afterwards."""
        ...

    def begin_again(self) -> None:
        """What was taken is of no use: the launch is made again from its beginning."""
        ...
