"""Trace of a launch: the memory accesses of warps, element by element."""

from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from ..language.intrinsics import WARP_SIZE

ENTRY = np.dtype(
    [("block", np.int64), ("site", np.int32), ("phase", np.int32), ("warp", np.int32), ("mask", np.uint32),
     ("index", np.int64, (WARP_SIZE,))]
)  # fmt: skip
"""One access of one warp: its block and the barriers that the block has passed, its site, the active lanes, and the
element accessed by each active lane; 0 for other lanes. The site determines the array."""

TRACED = ("global", "local", "constant", "shared")
"""Memories whose accesses can be traced. An index into local memory is relative to the lane's own array."""
CACHED = ("global", "local", "constant")
"""The cached ones."""

Entries = npt.NDArray[Any]


class Tracer(Protocol):
    """Receiver of the accesses of a traced launch.

    spaces: memories traced. blocks: only blocks below this number are traced. interval: one of so many blocks is traced
    (`block_sampling`). Accesses with a lane out of bounds are not traced.
    """

    @property
    def spaces(self) -> tuple[str, ...]: ...

    @property
    def blocks(self) -> int: ...

    @property
    def interval(self) -> int: ...

    def take(self, entries: Entries) -> None:
        """Receive ENTRY[n]: the accesses of one warp in the order of execution, those of different warps in any order.

        Called from several threads. The engine reuses the array afterwards.
        """
        ...

    def begin_again(self) -> None:
        """Discard all accesses received: the launch restarts."""
        ...
