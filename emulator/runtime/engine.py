"""Engine interface: the launch request, the outcome, and the common order of execution.

Order. Blocks run in ascending order. Inside a block, all warps execute control structures with barriers together;
the statements between barriers form a phase. In a phase each warp runs to the end before the next one starts, in
ascending order. Inside a statement, lanes act in ascending order. An engine may run warps or blocks concurrently if
race-free programs cannot observe it.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from math import prod
from types import FrameType, TracebackType
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Protocol, get_args, runtime_checkable

import numpy as np
import numpy.typing as npt

from ..errors import Diagnostic
from ..language.intrinsics import WARP_SIZE
from ..machine.device import Device
from ..machine.occupancy import Occupancy, occupancy
from ..profiler.launch_memory import LaunchMemory
from ..profiler.samples import Samples
from ..profiler.trace import Tracer
from ..span import name_of
from .array_forms import ArrayForm
from .arrays import Buffer, DeviceArray, filled_as, is_zero
from .common_memory import copies_of, overlapping_arrays
from .dynamic_shared import PlacedArray, place_arrays
from .specialisation import Specialisation

if TYPE_CHECKING:
    from ..ir import nodes as ir
    from ..sanitizer.races.shadow import OverlappingArrays
    from ..sanitizer.tracking import AccessedElements
    from .prepared import PreparedProgram
    from .streams import Stream

Dim3 = tuple[int, int, int]
Maths = Literal["portable", "native"]
"""Mathematical functions of the cuda engine: those of the emulators, or CUDA's own."""
MATHS: tuple[Maths, ...] = get_args(Maths)
MAX_SPIN_ITERATIONS, MAX_ITERATIONS = 10_000, 1 << 32
"""Iteration limits: of a loop that only waits, and of any other loop (a full 32-bit counter)."""
MAX_FAULTS_PER_LOOP = MAX_SPIN_ITERATIONS
"""Limit of out-of-bounds accesses of a warp in one loop. A search beyond an array ends there; its faults are reported."""


def clusters_of(grid: Dim3, cluster: Dim3) -> npt.NDArray[np.int64]:
    """Return the linear numbers of blocks by cluster and rank, int64[clusters, blocks of a cluster]."""
    (x, y, z), (cx, cy, cz) = grid, cluster
    blocks = np.arange(prod(grid)).reshape(z // cz, cz, y // cy, cy, x // cx, cx)
    return np.ascontiguousarray(blocks.transpose(0, 2, 4, 1, 3, 5)).reshape(-1, prod(cluster))


class Derived(dict[Any, Any]):
    """Objects by name. They do not leave the process: another one derives its own."""

    def __reduce__(self) -> tuple[Any, ...]:
        return Derived, ()


@dataclass(frozen=True)
class Request:
    """A validated launch: every argument is present and has its parameter's type.

    arguments: by parameter name. A global array is flat memory of its element's dtype, one-dimensional, or
    (elements, lanes) for vectors; a scalar is a NumPy scalar. Engines do not modify them. forms: layouts of the
    global arrays in that memory. structs: the arrays of structs passed by the caller; owners: for each field array,
    its struct array and path.
    detail: whether to record samples (`profiler.samples`). compiled: whether to copy the arrays before the launch, for the compiled view.
    trace: receives the accesses of a counting emulator; None for no trace.
    dynamic_shared: bytes. step_limit: iterations of one execution of a loop; None for MAX_SPIN_ITERATIONS of a loop
    without progress (`passes.waiting`), and MAX_ITERATIONS of other loops.
    device_arrays: arrays that outlive the launch; for those in device memory, `arguments` has only shape and type.
    An emulator returns them like others. allocations: the objects that identify the memory of other arrays that outlive the launch.
    filled: arrays with one value in all elements (of vectors, its components), not copied. unwritten: arrays whose elements must be
    written before they are read; written: their elements written by earlier launches, bool by element. in_place: arrays that an
    emulator may modify in place.
    overlapping: whether arrays may share memory; an engine that does not modify them in place copies the memory, not the arrays.
    checks: additional checks of an emulator (`sanitizer.checkers`). schedule: number of another order of blocks
    and warps (`sanitizer.schedules`); schedules: the orders from 1 on that are tried until one differs.
    cluster: the blocks of a cluster by axis, which divide the grid.
    show_prints: whether an emulator writes the kernel's prints to stdout immediately. plain_prints: whether its
    lines are those of `printf`, without block and thread. interleave: whether the warps of a block are
    interleaved in loops that observe other warps; numpy engine only. maths: cuda engine only.
    """

    specialisation: Specialisation
    grid: Dim3
    block: Dim3
    arguments: Mapping[str, Buffer | np.generic]
    dynamic_shared: int
    device: Device
    counters: bool
    step_limit: int | None
    forms: Mapping[str, ArrayForm] = field(default_factory=dict)
    structs: Mapping[str, Buffer] = field(default_factory=dict)
    owners: Mapping[str, tuple[str, tuple[str, ...]]] = field(default_factory=dict)
    device_arrays: Mapping[str, DeviceArray] = field(default_factory=dict)
    allocations: Mapping[str, Hashable] = field(default_factory=dict)
    filled: Mapping[str, Buffer] = field(default_factory=dict)
    unwritten: frozenset[str] = frozenset()
    written: Mapping[str, Buffer] = field(default_factory=dict)
    in_place: frozenset[str] = frozenset()
    overlapping: bool = False
    detail: bool = False
    compiled: bool = False
    trace: Tracer | None = None
    checks: frozenset[str] = frozenset()
    schedule: int | None = None
    schedules: int = 0
    cooperative: bool = False
    cluster: Dim3 = (1, 1, 1)
    show_prints: bool = False
    plain_prints: bool = False
    interleave: bool = False
    maths: Maths = "portable"

    @property
    def iteration_limits(self) -> tuple[int, int]:
        """Limits of a waiting loop, and of any other."""
        return self.step_limit or MAX_SPIN_ITERATIONS, self.step_limit or MAX_ITERATIONS

    @property
    def arrays(self) -> dict[str, Buffer]:
        """The global arrays of the arguments."""
        return {name: value for name, value in self.arguments.items() if isinstance(value, np.ndarray)}

    @property
    def numbers(self) -> dict[str, np.generic]:
        """The arguments other than arrays."""
        return {name: value for name, value in self.arguments.items() if isinstance(value, np.generic)}

    @property
    def resident_blocks(self) -> int:
        """Blocks that the device holds at the same time."""
        return self.occupancy.active_blocks * self.device.sms

    @property
    def occupancy(self) -> Occupancy:
        """The occupancy of the launch, without a limit by registers."""
        return occupancy(self.device, prod(self.block), 0, self.specialisation.summary.shared + self.dynamic_shared)

    @cached_property
    def clusters(self) -> npt.NDArray[np.int64]:
        """The linear numbers of blocks by cluster and rank, int64[clusters, blocks of a cluster]."""
        return clusters_of(self.grid, self.cluster)

    @property
    def warps(self) -> int:
        """Warps of all blocks."""
        return prod(self.grid) * -(-prod(self.block) // WARP_SIZE)

    @property
    def program(self) -> ir.Program:
        """The kernel's program from the front end."""
        return self.specialisation.program

    @cached_property
    def derived(self) -> Derived:
        """Objects that an engine derives from a request, common to all launches of a plan (`plans.LaunchPlan`)."""
        return Derived()

    def without_arguments(self) -> Request:
        """Return the request for `with_arguments`: it keeps no memory of the caller alive."""
        request = replace(self, arguments={}, device_arrays={}, written={}, show_prints=True)
        if not self.specialisation.summary.dynamic:
            vars(request)["dynamic_arrays"] = {}
        vars(request)["derived"] = Derived()
        return request

    def with_arguments(
        self, arguments: Mapping[str, Buffer | np.generic], device_arrays: Mapping[str, DeviceArray]
    ) -> Request:
        """Return the launch with other arguments of the same types and shapes. Derived objects are shared."""
        return self._with(arguments=arguments, device_arrays=device_arrays)

    def with_contents(self) -> Request:
        """Return the launch with the present memory of its device arrays on the host."""
        memory = {name: self.forms[name].flat(array.host) for name, array in self.device_arrays.items()}
        return self._with(arguments={**self.arguments, **memory})

    def with_changes_in_place(self, names: frozenset[str], plain_prints: bool = False) -> Request:
        """Return the launch with permission to modify these arrays in place."""
        return self._with(in_place=names, plain_prints=plain_prints or self.plain_prints)

    def _with(self, **fields: Any) -> Request:
        """Return the launch with other fields, on which no cached property depends."""
        request = object.__new__(Request)
        vars(request).update(vars(self), **fields)  # not `replace`: it passes all fields through the constructor
        return request

    @property
    def persistent(self) -> Mapping[str, Any]:
        """The arrays of other launches too, and what identifies their memory."""
        return {**self.device_arrays, **self.allocations}

    def is_persistent(self, array: str) -> bool:
        """Return whether earlier launches may have written an array, which the caller has not filled."""
        return array in self.device_arrays or (array in self.unwritten and array not in self.filled)

    def limited(self, loops: tuple[int, ...]) -> Request:
        """Return the launch with a limit for the counters of these loops (`counter_limits`)."""
        return replace(self, specialisation=self.specialisation.limited(loops)) if loops else self

    def memory(self, changed: Collection[str]) -> dict[str, Buffer]:
        """Return the global arrays for an emulator, in host memory; the changed ones are copies, unless they are changed in place."""
        if self.overlapping and not self.in_place.issuperset(changed):
            return copies_of(self.arrays, changed)
        return {name: self._memory(name, name in changed) for name in self.specialisation.summary.arrays}

    def copied_memory(self) -> LaunchMemory:
        """Return copies of the global arrays."""
        return LaunchMemory({name: np.array(array) for name, array in self.memory(()).items()})

    def _memory(self, name: str, changes: bool) -> Buffer:
        argument, element = np.asarray(self.arguments[name]), self.filled.get(name)
        as_it_is = not changes or name in self.in_place
        if element is None:
            return argument if as_it_is else argument.copy()
        return argument if as_it_is and is_zero(element) else filled_as(argument, element)

    def shaped(self, buffers: Mapping[str, Buffer]) -> dict[str, Buffer]:
        """Return an engine's global arrays in the shapes and strides of the arguments."""
        result: dict[str, Buffer] = {}
        for name, buffer in buffers.items():
            shaped = self.forms[name].shaped(buffer)
            if name not in self.owners:
                result[name] = shaped
                continue
            owner, path = self.owners[name]
            target = result.setdefault(owner, self.structs[owner].copy())
            for key in path:
                target = target[key]
            target[...] = shaped
        return result

    @cached_property
    def dynamic_arrays(self) -> Mapping[str, PlacedArray]:
        """Its arrays in dynamic shared memory. Raises LaunchError if they do not fit."""
        summary = self.specialisation.summary
        sizes = {
            f"{name}.{axis}": n
            for name, extents in (("block_dim", self.block), ("grid_dim", self.grid))
            for axis, n in zip("xyz", extents, strict=True)
        }
        return place_arrays(summary.name, summary.dynamic, self.dynamic_shared, sizes, self.arguments)

    @property
    def overlapping_arrays(self) -> list[OverlappingArrays]:
        """For checkers, the memory of arrays that overlap another one."""
        return overlapping_arrays(self.arrays) if self.overlapping and self.checks else []

    @cached_property
    def prepared(self) -> PreparedProgram:
        """The program without calls and unrolled loops, with the requested checks."""
        from .prepared import prepare  # late, as in `specialisation`

        return prepare(self.program, self.checks)


@dataclass(frozen=True)
class Resources:
    """Compiler statistics of a kernel: registers a thread; bytes of shared, local and constant memory; spills."""

    registers: int
    shared_bytes: int
    local_bytes: int
    constant_bytes: int
    spill_stores: int
    spill_loads: int


class Deferred:
    """A field of a dataclass, by default None, that may be given as a function: it is called at the first use of the value."""

    def __set_name__(self, owner: type, name: str) -> None:
        self.slot = f"_{name}"

    def __get__(self, instance: Any, owner: type) -> Any:
        if instance is None:
            return None
        try:
            value = vars(instance)[self.slot]
        except KeyError:
            raise AttributeError(self.slot) from None
        if callable(value):
            value = vars(instance)[self.slot] = value()
        return value

    def __set__(self, instance: Any, value: Any) -> None:
        vars(instance)[self.slot] = value


@dataclass
class Outcome:
    """The outcome of a launch.

    buffers: the final memory of each written global array, by parameter name, flat as in the request. counts:
    int64[site, event] as `profiler.events` defines them; None without counters. samples: of
    `profiler.samples`, if requested. milliseconds: kernel time on real hardware. written:
    under the uninitialised check, for arrays in `unwritten`: bool by element, flat. accessed: under the race check, the
    elements of device arrays that the launch accessed. waits: of interleaved blocks, `engines.numpy.warp_interleaving.Waits`.
    trace: the frames of the kernel at a
    fault, of an engine that has them.
    """

    buffers: dict[str, Buffer]
    counts: npt.NDArray[np.int64] | None = Deferred()  # type: ignore[assignment]
    faults: list[Diagnostic] = field(default_factory=list)
    printed: list[str] = field(default_factory=list)
    milliseconds: float | None = None
    resources: Resources | None = None
    samples: Samples | None = None
    written: dict[str, Buffer] = field(default_factory=dict)
    accessed: Mapping[str, AccessedElements] = field(default_factory=dict)
    waits: Any = None
    trace: TracebackType | None = None


class Engine(Protocol):
    """An executor of programs."""

    name: str

    def run(self, request: Request) -> Outcome:
        """Run one launch. Raises LaunchError, with a remedy, if this engine cannot run here."""
        ...


class CodePlace(NamedTuple):
    """File and line of a launch; no file if it is unknown."""

    file: str
    line: int

    def __str__(self) -> str:
        return f" ({name_of(self.file)}:{self.line})" if self.file else ""


def user_place(frame: FrameType | None, libraries: tuple[str, ...] = ()) -> tuple[str, int]:
    """Return file and line of the innermost frame outside of this package, from this one on; no file without one.

    libraries: prefixes of the names of other modules that are passed over.
    """
    while frame is not None and frame.f_globals.get("__name__", "").startswith((_PACKAGE, *libraries)):
        frame = frame.f_back
    return ("", 0) if frame is None else (frame.f_code.co_filename, frame.f_lineno)


_PACKAGE = __name__.partition(".")[0] + "."


class PendingOutcome(Protocol):
    """A launch in progress."""

    def finish(self) -> Outcome:
        """Wait for its end. Raises LaunchError, which names the launch, if it failed."""
        ...


@runtime_checkable
class CompilingEngine(Protocol):
    """An engine with compiled kernels."""

    def compile(self, request: Request) -> None:
        """Compile and load the kernel of a launch."""
        ...


@runtime_checkable
class GpuEngine(Protocol):
    """An engine on a GPU."""

    def architecture(self) -> str:
        """Return the architecture of the GPU, such as "sm_90"."""
        ...


@runtime_checkable
class StreamEngine(Protocol):
    """An engine that queues launches on streams."""

    def start(self, request: Request, stream: Stream, place: CodePlace) -> PendingOutcome:
        """Launch without a wait. place: of the launch in the program, for messages."""
        ...

    def replay(self, graph: Any, stream: Stream | None) -> None:
        """Start all launches of a graph (`graphs.Graph`). Without a stream, wait for their end."""
        ...


class DirectLaunch(Protocol):
    """A launch of a plan for any arguments of its types and shapes."""

    def run(self, args: Mapping[str, Any], stream: Stream | None) -> Any:
        """Launch, and return a `result.StartedLaunch`; None for arguments that need the complete validation."""
        ...


class DirectEngine(Protocol):
    """An engine with direct launches."""

    def direct(self, request: Request, plan: Any) -> DirectLaunch | None:
        """Return the direct launch of a plan after its first launch, with that request; None for a plan without one."""
        ...


@runtime_checkable
class ConcurrentEngine(Protocol):
    """An engine that runs independent launches concurrently."""

    def run_concurrently(self, requests: Iterable[Request]) -> Iterator[Outcome]:
        """Yield the outcomes in order; a launch starts as soon as `requests` yields it."""
        ...
