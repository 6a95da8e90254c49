"""What compiled code and the engine that calls it agree on: its options, the function's arguments, its buffers."""

from __future__ import annotations

import ctypes
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from ...machine.device import Device
from ...runtime.engine import Dim3
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
    Argument(".host_call", "ptr", HOST_CALL),
)

SIZES = np.dtype([(name, np.int64) for name in ("counts", "faults", "shared", "local", "workspace")])
"""A thread's own buffers. counts, faults: int64 elements. shared, local, workspace: bytes."""


@dataclass(frozen=True)
class Options:
    """What the code depends on besides the program.

    step_limited: the step limit may take lanes out of any loop, so no code may count on full warps.
    atomic: blocks run in several threads, so global atomic operations must be atomic.
    checks: what is looked for. unwritten: the global arrays that begin uninitialised. scheduled: the order of blocks and
    warps is given at launch.
    """

    block: Dim3
    device: Device
    dynamic_shared: int
    counters: bool
    step_limited: bool
    atomic: bool
    checks: tuple[str, ...] = ()
    unwritten: tuple[str, ...] = ()
    scheduled: bool = False


@dataclass(frozen=True)
class Buffers:
    """What a launch of compiled code gives each thread, and how its counts and its calls of Python are read.

    sizes: one SIZES. sites: rows of the counter table. operations: rows of the op table that compiled code has Python
    evaluate, by the number of the call: their names and their operands' types. contributions: CONTRIBUTION[n], for
    `counters.slots.decode`.
    """

    sizes: np.void
    sites: int
    operations: Mapping[int, tuple[str, str]]
    contributions: npt.NDArray[np.void]

    @staticmethod
    def of(
        contributions: npt.NDArray[np.void], sites: int, operations: Mapping[int, tuple[str, str]], **sizes: int
    ) -> Buffers:
        assert SIZES.names is not None
        found = np.array([tuple(sizes[name] for name in SIZES.names)], SIZES)[0]
        return Buffers(found, sites, operations, contributions)

    def encode(self) -> bytes:
        """A line of JSON, then the two tables."""
        header = json.dumps([self.sites, list(self.operations.items())]).encode()
        return header + b"\n" + self.sizes.tobytes() + self.contributions.tobytes()

    @staticmethod
    def decode(data: bytes) -> Buffers:
        """What `encode` wrote."""
        header, _, tables = data.partition(b"\n")
        sites, operations = json.loads(header)
        named = {number: (op, type) for number, (op, type) in operations}
        sizes = np.frombuffer(tables, SIZES, 1)[0]
        return Buffers(sizes, sites, named, np.frombuffer(tables, CONTRIBUTION, offset=SIZES.itemsize))
