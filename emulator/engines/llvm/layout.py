"""Interface between compiled code and the engine: options, arguments of the function, buffers."""

from __future__ import annotations

import ctypes
import json
from dataclasses import dataclass, fields
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from ...machine.device import Device
from ...profiler import events
from ...profiler.events import Counts
from ...runtime.dynamic_shared import PlacedArray
from ...runtime.engine import Dim3
from .counters.slots import CONTRIBUTION, SampleSlots

if TYPE_CHECKING:
    from ...sanitizer.tracking import Overlap

ENTRY = "run_blocks"
"""Name of the function. Its parameters are the kernel's arrays, lengths and scalars, then ARGUMENTS. It returns an i32: 1 if the step
limit ended a loop and the code for this case must run instead, or after an interrupt, else 0."""

HOST_CALL = ctypes.CFUNCTYPE(None, ctypes.c_int32, ctypes.c_int64, ctypes.c_int32, ctypes.c_uint32, ctypes.c_void_p)
"""A call from compiled code to Python: number of the request, block, warp, mask of lanes, address of the lanes' data."""
NO_CALL = HOST_CALL()
"""For code that makes none."""


@dataclass(frozen=True)
class Argument:
    """An argument after the kernel's own. `llvm` is its type with attributes, `c` the same for ctypes."""

    name: str
    llvm: str
    c: Any

    @property
    def text(self) -> str:
        return f"{self.llvm} %{self.name}"


ARGUMENTS = (
    Argument(".first", "i64", ctypes.c_int64),  # first block, and last block + 1
    Argument(".last", "i64", ctypes.c_int64),
    *(Argument(f"grid_dim.{axis}", "i32", ctypes.c_int32) for axis in "xyz"),
    Argument(".waiting", "i64", ctypes.c_int64),  # limit of the iterations of a loop that only waits
    Argument(".limit", "i64", ctypes.c_int64),  # limit of the iterations of other loops
    Argument(".allowance", "ptr noalias", ctypes.c_void_p),  # see `interrupts`
    Argument(".counts", "ptr noalias", ctypes.c_void_p),
    Argument(".samples", "ptr noalias", ctypes.c_void_p),
    Argument(".faults", "ptr noalias", ctypes.c_void_p),
    Argument(".shared", "ptr noalias", ctypes.c_void_p),
    Argument(".local", "ptr noalias", ctypes.c_void_p),
    Argument(".workspace", "ptr noalias", ctypes.c_void_p),
    Argument(".frame", "ptr noalias", ctypes.c_void_p),
    Argument(".trace", "ptr", ctypes.c_void_p),  # head of the thread's trace buffer, if accesses are traced
    Argument(".shadow", "ptr", ctypes.c_void_p),  # table of the race state
    Argument(".order", "ptr", ctypes.c_void_p),  # order of warps and blocks, with a schedule or clusters
    Argument(".host_call", "ptr", HOST_CALL),
)

_NAMES = [argument.name for argument in ARGUMENTS]
OWN_ARGUMENTS = tuple(_NAMES[_NAMES.index(".allowance") : _NAMES.index(".trace")])
"""The arguments with memory of a thread: behind the size of the grid and the limits of iterations, before those of the launch."""

SIZES = np.dtype(
    [(name, np.int64) for name in ("counts", "faults", "samples", "shared", "local", "workspace", "frame")]
)
"""Buffers of one thread. counts, faults: int64 elements; the others: bytes. frame: not 0 if blocks wait for others; each block
then has its own memory from `shared` on."""


@dataclass(frozen=True)
class Options:
    """Options of the generated code.

    step_limited: the step limit may remove lanes from any loop, so that no code may assume full warps. atomic: blocks run in several
    threads, so that global atomics must be atomic. carved: the arrays in dynamic shared memory. checks: enabled checkers. unwritten:
    global arrays that are uninitialised at the start. scheduled: the launch has an order of blocks and warps. traced: memories with
    traced accesses (`profiler.trace`). overlapping: whether arrays may share memory; overlap: those that do, for checkers.
    cluster: blocks of a cluster by axis.
    """

    block: Dim3
    device: Device
    carved: tuple[tuple[str, PlacedArray], ...]
    counters: bool
    detail: bool
    step_limited: bool
    atomic: bool
    checks: tuple[str, ...] = ()
    unwritten: tuple[str, ...] = ()
    scheduled: bool = False
    traced: tuple[str, ...] = ()
    overlapping: bool = False
    overlap: Overlap = ()
    cluster: Dim3 = (1, 1, 1)

    def __hash__(self) -> int:
        return self._hash

    @cached_property
    def _hash(self) -> int:  # the hash of a device is that of all its fields
        return hash(tuple(vars(self)[one.name] for one in fields(self)))


@dataclass(frozen=True)
class Buffers:
    """Buffers of a launch for each thread, and the decoding of its counts.

    sizes: one SIZES. sites: rows of the counter table. samples: offset of the sample table of each site, in bytes. contributions:
    CONTRIBUTION[n], for `counters.slots.decode`. calls: whether the code calls Python.
    """

    sizes: np.void
    sites: int
    samples: SampleSlots
    contributions: npt.NDArray[np.void]
    calls: bool

    @staticmethod
    def with_sizes(
        contributions: npt.NDArray[np.void], sites: int, samples: SampleSlots, calls: bool, **sizes: int
    ) -> Buffers:
        assert SIZES.names is not None
        sizes["samples"] = samples.size
        row = np.array([tuple(sizes[name] for name in SIZES.names)], SIZES)[0]
        return Buffers(row, sites, samples, contributions, calls)

    @cached_property
    def _targets(self) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """Element of the flat counts, slot and amount of each contribution."""
        table = self.contributions
        amount, slot = (np.ascontiguousarray(table[name]) for name in ("amount", "slot"))
        return table["site"] * events.COLUMNS + table["column"], slot, amount

    def decode_counts(self, buffer: npt.NDArray[np.int64]) -> Counts:
        """Return int64[site, column] of the counter buffer."""
        elements, slots, amounts = self._targets
        counts = np.zeros(self.sites * events.COLUMNS, np.int64)
        np.add.at(counts, elements, amounts * buffer[slots])
        return counts.reshape(self.sites, events.COLUMNS)

    def encode(self) -> bytes:
        """Return a line of JSON, then the two tables."""
        samples = [list(tables.items()) for tables in (self.samples.accesses, self.samples.loops)]
        header = json.dumps([self.sites, *samples, self.calls]).encode()
        return header + b"\n" + self.sizes.tobytes() + self.contributions.tobytes()

    @staticmethod
    def decode(data: bytes) -> Buffers:
        """Decode the result of `encode`."""
        header, _, tables = data.partition(b"\n")
        sites, accesses, loops, calls = json.loads(header)
        sizes = np.frombuffer(tables, SIZES, 1)[0]
        samples = SampleSlots(dict(accesses), dict(loops))
        return Buffers(sizes, sites, samples, np.frombuffer(tables, CONTRIBUTION, offset=SIZES.itemsize), calls)
