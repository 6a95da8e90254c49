"""What compiled code and the engine that calls it agree on: its options, the function's arguments, its buffers."""

from __future__ import annotations

import ctypes
import json
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from ...machine.device import Device
from ...runtime.dynamic_shared import PlacedArray
from ...runtime.engine import Dim3
from .counters.slots import CONTRIBUTION, SampleSlots

ENTRY = "run_blocks"
"""The function's name. It takes the kernel's arrays, lengths and scalars, then ARGUMENTS. It returns an i32: 1 where the
step limit ended a loop and the code for that case must run instead, or where it was interrupted, else 0."""

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
    Argument(".waiting", "i64", ctypes.c_int64),  # iterations of one execution of a loop that only waits
    Argument(".limit", "i64", ctypes.c_int64),  # of any other
    Argument(".allowance", "ptr noalias", ctypes.c_void_p),  # see `interrupts`
    Argument(".counts", "ptr noalias", ctypes.c_void_p),
    Argument(".samples", "ptr noalias", ctypes.c_void_p),
    Argument(".notes", "ptr noalias", ctypes.c_void_p),
    Argument(".faults", "ptr noalias", ctypes.c_void_p),
    Argument(".shared", "ptr noalias", ctypes.c_void_p),
    Argument(".local", "ptr noalias", ctypes.c_void_p),
    Argument(".workspace", "ptr noalias", ctypes.c_void_p),
    Argument(".frame", "ptr noalias", ctypes.c_void_p),
    Argument(".trace", "ptr", ctypes.c_void_p),  # the head of the thread's buffer, where accesses are handed on
    Argument(".shadow", "ptr", ctypes.c_void_p),  # the table of the race state
    Argument(".order", "ptr", ctypes.c_void_p),  # of warps and blocks, where a schedule is given
    Argument(".host_call", "ptr", HOST_CALL),
)

SIZES = np.dtype(
    [(name, np.int64) for name in ("counts", "faults", "samples", "notes", "shared", "local", "workspace", "frame")]
)
"""A thread's own buffers. counts, faults: int64 elements. The others: bytes. frame: not 0 where blocks wait for the grid;
then each block has the memory from `shared` on."""


@dataclass(frozen=True)
class Options:
    """What the code depends on besides the program.

    step_limited: the step limit may take lanes out of any loop, so no code may count on full warps.
    atomic: blocks run in several threads, so global atomic operations must be atomic.
    carved: the arrays in dynamic shared memory. checks: what is looked for. unwritten: the global arrays that begin
    uninitialised. scheduled: the order of blocks and warps is given at launch. traced: the memories whose accesses
    (`profiler.trace`) are handed on.
    """

    block: Dim3
    device: Device
    carved: tuple[tuple[str, PlacedArray], ...]
    counters: bool
    detail: bool
    decisions: bool
    step_limited: bool
    atomic: bool
    checks: tuple[str, ...] = ()
    unwritten: tuple[str, ...] = ()
    scheduled: bool = False
    traced: tuple[str, ...] = ()


@dataclass(frozen=True)
class Buffers:
    """What a launch of compiled code gives each thread, and how its counts are read.

    sizes: one SIZES. sites: rows of the counter table. samples: where the sample table of a site begins, in bytes.
    contributions: CONTRIBUTION[n], for `counters.slots.decode`.
    """

    sizes: np.void
    sites: int
    samples: SampleSlots
    contributions: npt.NDArray[np.void]

    @staticmethod
    def of(contributions: npt.NDArray[np.void], sites: int, samples: SampleSlots, **sizes: int) -> Buffers:
        assert SIZES.names is not None
        sizes["samples"] = samples.size
        found = np.array([tuple(sizes[name] for name in SIZES.names)], SIZES)[0]
        return Buffers(found, sites, samples, contributions)

    def encode(self) -> bytes:
        """A line of JSON, then the two tables."""
        samples = [list(tables.items()) for tables in (self.samples.accesses, self.samples.loops)]
        header = json.dumps([self.sites, *samples]).encode()
        return header + b"\n" + self.sizes.tobytes() + self.contributions.tobytes()

    @staticmethod
    def decode(data: bytes) -> Buffers:
        """What `encode` wrote."""
        header, _, tables = data.partition(b"\n")
        sites, accesses, loops = json.loads(header)
        sizes = np.frombuffer(tables, SIZES, 1)[0]
        samples = SampleSlots(dict(accesses), dict(loops))
        return Buffers(sizes, sites, samples, np.frombuffer(tables, CONTRIBUTION, offset=SIZES.itemsize))
