"""What compiled code and the engine that calls it agree on: the function's arguments and the sizes of its buffers."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from .counters.slots import CONTRIBUTION

ENTRY = "run_blocks"
"""The function's name. It takes the kernel's arrays, lengths and scalars, then ARGUMENTS. It returns an i32: 1 where the
step limit ended a loop and the code for that case must run instead, else 0."""

HOST_CALL = ctypes.CFUNCTYPE(None, ctypes.c_int32, ctypes.c_int64, ctypes.c_int32, ctypes.c_uint32, ctypes.c_void_p)
"""A call from compiled code to Python: number of the request, block, warp, mask of lanes, address of the lanes' data."""


@dataclass(frozen=True)
class Argument:
    """One argument after the kernel's own. `llvm` is its type with attributes, `c` the same for ctypes."""

    name: str
    llvm: str
    c: Any

    @property
    def text(self) -> str:
        return f"{self.llvm} %{self.name}"


ARGUMENTS = (
    Argument(".first", "i64", ctypes.c_int64),  # block, and the block after the last
    Argument(".last", "i64", ctypes.c_int64),
    *(Argument(f"grid_dim.{axis}", "i32", ctypes.c_int32) for axis in "xyz"),
    Argument(".limit", "i64", ctypes.c_int64),  # iterations of one execution of a loop
    Argument(".counts", "ptr noalias", ctypes.c_void_p),
    Argument(".faults", "ptr noalias", ctypes.c_void_p),
    Argument(".shared", "ptr noalias", ctypes.c_void_p),
    Argument(".local", "ptr noalias", ctypes.c_void_p),
    Argument(".workspace", "ptr noalias", ctypes.c_void_p),
    Argument(".shadow", "ptr", ctypes.c_void_p),  # the table of the race state
    Argument(".order", "ptr", ctypes.c_void_p),  # of warps and blocks, where a schedule is given
    Argument(".ask", "ptr", HOST_CALL),
)

SIZES = np.dtype([(name, np.int64) for name in ("counts", "faults", "shared", "local", "workspace")])
"""A thread's own buffers. counts, faults: int64 elements. shared, local, workspace: bytes."""


@dataclass(frozen=True)
class Buffers:
    """What a launch of compiled code gives each thread, and how its counts are read.

    sizes: one SIZES. contributions: CONTRIBUTION[n], for `counters.slots.decode`.
    """

    sizes: np.void
    contributions: npt.NDArray[np.void]

    @staticmethod
    def of(contributions: npt.NDArray[np.void], **sizes: int) -> Buffers:
        assert SIZES.names is not None
        return Buffers(np.array([tuple(sizes[name] for name in SIZES.names)], SIZES)[0], contributions)

    def encode(self) -> bytes:
        return self.sizes.tobytes() + self.contributions.tobytes()

    @staticmethod
    def decode(data: bytes) -> Buffers:
        sizes = np.frombuffer(data, SIZES, 1)[0]
        return Buffers(sizes, np.frombuffer(data, CONTRIBUTION, offset=SIZES.itemsize))
