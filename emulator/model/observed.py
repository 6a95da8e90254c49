"""Launches whose time is predicted: emulated from their source, with their machine code executed where it is available."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from math import prod

from ..compiled.executed import Tracer
from ..compiled.kernel import ExecutedKernel, compiled_kernel
from ..compiled.kernel_launches import launches_by_kernel
from ..errors import LaunchError
from ..ir.access import AccessKind
from ..language.intrinsics import WARP_SIZE
from ..machine.device import MIN_NVCC_CAPABILITY, Device
from ..machine.occupancy import Occupancy, occupancy
from ..passes.work_queues import uses_dynamic_work
from ..profiler import events
from ..profiler.events import Counts
from ..profiler.launch_memory import LaunchMemory
from ..runtime.arrays import Buffer
from ..runtime.engine import Request
from ..runtime.registry import engine_named
from ..runtime.running import run_once
from ..sass.operands import UnsupportedInstruction
from ..sass.state import ExecutionError
from .access_sites import sites_of_sass
from .critical_path import expanded
from .line_trace import MAX_LINES, LineTrace, SourceTracer

MAX_TRACED_INSTRUCTIONS = 20_000_000
"""Warp instructions of the source up to which all blocks are executed: about three seconds on one core. Beyond, parts of the launch
are."""
_CLUSTERS = "the time of clusters of blocks is not predicted"


@dataclass(frozen=True)
class ExecutedLaunch:
    """A launch whose machine code was executed with a trace (`tracer_of`). kernel: with this launch alone."""

    kernel: ExecutedKernel

    @property
    def registers(self) -> int:
        return self.kernel.registers

    @property
    def shared_bytes(self) -> int:
        return self.kernel.shared_bytes

    @property
    def blocks(self) -> int:
        return prod(self.kernel.executed.grid)

    @property
    def warps(self) -> int:
        """Warps per block."""
        return -(-prod(self.kernel.executed.block) // WARP_SIZE)

    @property
    def claims_work(self) -> bool:
        return self.kernel.claims_work

    @property
    def lines(self) -> LineTrace:
        return trace_of(self.kernel)

    def compiled(self, device: Device) -> ExecutedKernel:
        """Return the kernel. Raises LaunchError for clusters of blocks."""
        if prod(self.kernel.executed.cluster) > 1:
            raise LaunchError(_CLUSTERS)
        return self.kernel

    def occupancy(self, device: Device) -> Occupancy:
        """Return the occupancy."""
        return occupancy(device, prod(self.kernel.executed.block), self.registers, self.shared_bytes)


@dataclass(frozen=True)
class ObservedLaunch:
    """An emulated launch. registers: per thread, 0 if unknown. max_lines: in a trace.

    memory: the arrays before the launch; without them only the source is counted. outputs: the written arrays, flat. written:
    their written elements (`writes.WriteTrace`), if requested. kernels: compiled and executed, by architecture, or the reason
    of failure. traces: the trace of the source, once it was needed.
    """

    request: Request
    counts: Counts
    max_lines: int
    registers: int = 0
    memory: LaunchMemory | None = field(default=None, repr=False)
    outputs: Mapping[str, Buffer] = field(default_factory=dict, repr=False)
    written: Mapping[str, Buffer] = field(default_factory=dict, repr=False)
    kernels: dict[str, ExecutedKernel | str] = field(default_factory=dict, repr=False)
    traces: list[LineTrace] = field(default_factory=list, repr=False)

    @property
    def lines(self) -> LineTrace:
        """The cache lines that the source accesses, from another emulation."""
        if not self.traces:
            tracer = SourceTracer(self.request, self.max_lines)
            run_once(engine_named("jit"), replace(self.request, counters=False, trace=tracer))
            self.traces.append(tracer.lines)
        return self.traces[0]

    def compiled(self, device: Device) -> ExecutedKernel | str:
        """Return the compiled kernel for a device with its executions, or the reason it is unavailable.

        Raises LaunchError for clusters of blocks.
        """
        if prod(self.request.cluster) > 1:
            raise LaunchError(_CLUSTERS)
        if self.memory is None:
            return "only the source was counted"
        if device.compute_capability < MIN_NVCC_CAPABILITY:
            return f"today's nvcc does not compile for {device.name}"
        arch = "sm_{}{}".format(*device.compute_capability)
        if arch not in self.kernels:
            tracer = tracer_of(self.request.device, self.blocks, self.warps, self.max_lines)
            (launched,) = launches_by_kernel([(self.request, self.counts, self.memory)])
            try:
                self.kernels[arch] = compiled_kernel(launched, arch, MAX_TRACED_INSTRUCTIONS, tracer)
            except (LaunchError, UnsupportedInstruction, ExecutionError) as error:
                self.kernels[arch] = str(error).splitlines()[0]
        return self.kernels[arch]

    @property
    def shared_bytes(self) -> int:
        """Shared memory per block in bytes, static and dynamic."""
        return self.request.dynamic_shared + self.request.prepared.shared

    @property
    def blocks(self) -> int:
        return prod(self.request.grid)

    @property
    def warps(self) -> int:
        """Warps per block."""
        return -(-prod(self.request.block) // WARP_SIZE)

    def occupancy(self, device: Device) -> Occupancy:
        """Return the occupancy; registers do not limit it if unknown."""
        return occupancy(device, prod(self.request.block), self.registers, self.shared_bytes)

    @property
    def instructions(self) -> dict[str, int]:
        """Warp instructions by pipe."""
        result: dict[str, int] = {}
        for site, row in zip(self.request.prepared.sites, self.counts, strict=True):
            for pipe, count in expanded(site.costs).items():
                result[pipe] = result.get(pipe, 0) + count * int(row[events.WARPS])
        return result

    @property
    def claims_work(self) -> bool:
        """Whether warps claim work dynamically."""
        return uses_dynamic_work(self.request.prepared.program.kernel)

    @property
    def multiplies_matrices(self) -> bool:
        """Whether tensor cores were used."""
        rows = zip(self.request.prepared.sites, self.counts, strict=True)
        return any("tensor" in site.costs and row[events.WARPS] for site, row in rows)

    def column(self, column: int, space: str) -> int:
        """Return the sum of a counter over all accesses to a memory."""
        rows = zip(self.request.prepared.sites, self.counts, strict=True)
        return sum(int(r[column]) for s, r in rows if isinstance(s.action, AccessKind) and s.action.space == space)


def tracer_of(device: Device, grid: int, warps: int, max_lines: int = MAX_LINES) -> Tracer:
    """Return a function that returns the trace of a launch of SASS. grid: blocks of the launch. warps: of a block."""
    return lambda accesses, blocks: LineTrace(sites_of_sass(accesses), device, grid, blocks, warps, max_lines)


def trace_of(kernel: ExecutedKernel) -> LineTrace:
    """Return the trace of the SASS of a kernel."""
    trace = kernel.executed.first.trace
    assert isinstance(trace, LineTrace)
    return trace
