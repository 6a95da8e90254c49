"""What every engine is given and must give back, and the order of execution that all of them keep.

Order. Blocks run in ascending order. Inside a block, control structures that hold a barrier are taken by
all its warps together; the statements between barriers form a phase, and in a phase each warp runs to the
end before the next one starts, in ascending order. Inside a statement, lanes act in ascending order. An
engine may run warps or blocks side by side wherever no program without races can tell.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from math import prod
from typing import TYPE_CHECKING, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

from ..errors import Diagnostic
from ..language.intrinsics import WARP_SIZE
from ..machine.device import Device
from ..profiler.decisions import Decisions
from ..profiler.samples import Samples
from ..profiler.trace import Tracer
from .arrays import Buffer, DeviceArray, filled_as, is_zero
from .dynamic_shared import Carved, carve
from .forms import Form
from .specialisation import Specialisation

if TYPE_CHECKING:
    from ..ir import nodes as ir
    from .prepared import Prepared

Dim3 = tuple[int, int, int]
WAITING, LONGEST = 10_000, 1 << 32
"""Iterations that a loop may take: one that only waits, and any other, which has counted through 32 bits by then."""
ASTRAY = WAITING
"""Accesses out of bounds that a warp may make in one loop: one that looks for something beyond an array ends there, and what it has
found wrong says so."""


@dataclass(frozen=True)
class Request:
    """One launch, checked by the caller: every argument is there and has its parameter's type.

    arguments: by parameter name; a global array is its flat memory of its element's dtype, one-dimensional, or
    two-dimensional (elements, lanes) for vectors; a scalar is a NumPy scalar. Engines do not change them.
    forms: how the global arrays lie in that memory. structs: the arrays of structs as they were given; owners: of each array
    that is a field of one, its name and the field.
    detail: whether to keep samples too (`profiler.samples`). decisions: whether to keep those of branches and loops
    (`profiler.decisions`). trace: what an emulator that counts hands accesses to; None for nothing.
    dynamic_shared: bytes. step_limit: iterations that one execution of a loop may take; None for WAITING where nothing
    that the loop does takes it further (`passes.waiting`), and LONGEST elsewhere: long work is no mistake.
    device_arrays: arrays that outlive the launch; of those in a device's memory, `arguments` has the shape and type
    only. An emulator gives them back like others. filled: arrays all of whose elements are the one given (of vectors,
    its parts), which need not be copied. unwritten: arrays that the kernel must not read
    before it has written them; written: of those that earlier launches have written in part, bool by element, which may be read.
    in_place: device arrays that nobody needs as they were: an emulator may change their memory itself.
    checks: what an emulator looks for beyond what it always does (`sanitizer.checkers`). schedule: the seed of another
    order of blocks, and of warps between barriers (`sanitizer.schedules`). show_prints: whether an emulator writes what
    the kernel prints to stdout, as it comes. turns: whether the warps of a block, which else run one after another between
    barriers, take turns in loops that see what others do; the numpy engine can.
    """

    specialisation: Specialisation
    grid: Dim3
    block: Dim3
    arguments: Mapping[str, Buffer | np.generic]
    dynamic_shared: int
    device: Device
    counters: bool
    step_limit: int | None
    forms: Mapping[str, Form] = field(default_factory=dict)
    structs: Mapping[str, Buffer] = field(default_factory=dict)
    owners: Mapping[str, tuple[str, tuple[str, ...]]] = field(default_factory=dict)
    device_arrays: Mapping[str, DeviceArray] = field(default_factory=dict)
    filled: Mapping[str, Buffer] = field(default_factory=dict)
    unwritten: frozenset[str] = frozenset()
    written: Mapping[str, Buffer] = field(default_factory=dict)
    in_place: frozenset[str] = frozenset()
    detail: bool = False
    decisions: bool = False
    trace: Tracer | None = None
    checks: frozenset[str] = frozenset()
    schedule: int | None = None
    cooperative: bool = False
    show_prints: bool = False
    turns: bool = False

    @property
    def most_iterations(self) -> tuple[int, int]:
        """Of a loop that only waits, and of any other."""
        return self.step_limit or WAITING, self.step_limit or LONGEST

    @property
    def warps(self) -> int:
        """Of all blocks."""
        return prod(self.grid) * -(-prod(self.block) // WARP_SIZE)

    @property
    def program(self) -> ir.Program:
        """The kernel as the front end reads it."""
        return self.specialisation.program

    def memory(self, name: str, changes: bool) -> Buffer:
        """A global array for an emulator, which works on the host: memory of its own where the kernel changes it."""
        given, element = np.asarray(self.arguments[name]), self.filled.get(name)
        as_it_is = not changes or name in self.in_place
        if element is None:
            return given if as_it_is else given.copy()
        return given if as_it_is and is_zero(element) else filled_as(given, element)

    def shaped(self, buffers: Mapping[str, Buffer]) -> dict[str, Buffer]:
        """Global arrays that an engine gives back, in the shapes and strides of the arrays given."""
        found: dict[str, Buffer] = {}
        for name, buffer in buffers.items():
            shaped = self.forms[name].shaped(buffer)
            if name not in self.owners:
                found[name] = shaped
                continue
            owner, path = self.owners[name]
            part = found.setdefault(owner, self.structs[owner].copy())
            for key in path:
                part = part[key]
            part[...] = shaped
        return found

    @cached_property
    def carved(self) -> Mapping[str, Carved]:
        """Its arrays in dynamic shared memory. Raises LaunchError where they do not fit."""
        summary = self.specialisation.summary
        sizes = {
            f"{of}.{axis}": n
            for of, extents in (("block_dim", self.block), ("grid_dim", self.grid))
            for axis, n in zip("xyz", extents, strict=True)
        }
        return carve(summary.name, summary.dynamic, self.dynamic_shared, sizes, self.arguments)

    @cached_property
    def prepared(self) -> Prepared:
        """The program without calls and unrolled loops, with the checks asked for."""
        from .prepared import prepare  # late, as in `specialisation`

        return prepare(self.program, self.checks, self.decisions)


@dataclass(frozen=True)
class Resources:
    """What the compiler gave a kernel: registers a thread; bytes of shared, local and constant memory; spills."""

    registers: int
    shared_bytes: int
    local_bytes: int
    constant_bytes: int
    spill_stores: int
    spill_loads: int


@dataclass
class Outcome:
    """What a launch did.

    buffers: the final memory of each global array the kernel writes, by parameter name, flat as in the request.
    counts: int64[site, event] as `profiler.events` defines them, or None where nothing was counted.
    samples, decisions: what `profiler.samples` and `profiler.decisions` keep, where it was asked for.
    milliseconds: time of the kernel alone, where an engine runs on real hardware.
    written: of device arrays where uninitialised reads were looked for, bool by element, flat: what was written by now.
    """

    buffers: dict[str, Buffer]
    counts: npt.NDArray[np.int64] | None = None
    faults: list[Diagnostic] = field(default_factory=list)
    printed: list[str] = field(default_factory=list)
    milliseconds: float | None = None
    resources: Resources | None = None
    samples: Samples | None = None
    decisions: Decisions | None = None
    written: dict[str, Buffer] = field(default_factory=dict)


class Engine(Protocol):
    """A way to run programs."""

    name: str

    def run(self, request: Request) -> Outcome:
        """Run one launch. Raises LaunchError where this engine cannot run here, with what to do about it."""
        ...


@runtime_checkable
class ConcurrentEngine(Protocol):
    """An engine on which launches that do not depend on each other run side by side."""

    def run_concurrently(self, requests: Iterable[Request]) -> Iterator[Outcome]:
        """Their outcomes in order; a launch begins as soon as `requests` gives it."""
        ...
