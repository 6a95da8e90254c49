"""A compiled kernel with its executions: every SASS instruction with pipes and executions by warps and lanes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace

from ..engines.cuda import nvcc
from ..engines.cuda.binary import Binary
from ..engines.cuda.sass import Instruction, disassemble
from ..errors import LaunchError
from ..machine.device import Device
from ..machine.occupancy import Occupancy, occupancy
from ..passes.work_queues import uses_dynamic_work
from ..runtime.engine import Resources
from .executed import MAX_INSTRUCTIONS, Executed, Tracer, execute_launches
from .instruction_counts import InstructionCount, counted
from .kernel_launches import KernelLaunches
from .line_table_fixes import with_fixed_lines
from .memory import AccessDifference, access_differences, memory_counters
from .pipes import PIPES, TENSOR


@dataclass(frozen=True)
class ExecutedKernel:
    """The machine code of a kernel with its executions, over all its launches.

    arch: such as "sm_90". device: of the launches. registers: allocated per thread. shared_bytes: of a block, static and
    dynamic. claims_work: whether warps claim work dynamically. instructions: in address order from the entry, without
    trailing NOPs. executed: their counts.
    """

    name: str
    arch: str
    device: Device
    registers: int
    shared_bytes: int
    claims_work: bool
    instructions: tuple[InstructionCount, ...]
    executed: Executed

    @property
    def first_launch(self) -> ExecutedKernel:
        """The kernel with the counts of its first launch alone."""
        first, scale = self.executed.first, math.prod(self.executed.grid) / len(self.executed.first_blocks)
        warps, threads = first.totals()
        rows = zip(self.instructions, scale * warps, scale * threads, scale * first.traffic, strict=True)
        instructions = tuple(
            InstructionCount(one.instruction, one.place, float(executions), float(lanes), *map(float, traffic))
            for one, executions, lanes, traffic in rows
        )
        return replace(self, instructions=instructions)

    @property
    def memory(self) -> dict[str, int]:
        """Counters of its accesses, barriers and shuffles, by name."""
        return memory_counters(self.instructions)

    @property
    def warp_instructions(self) -> int:
        """Instructions executed by warps."""
        return round(math.fsum(one.warps for one in self.instructions))

    @property
    def thread_instructions(self) -> int:
        """Instructions executed by active lanes."""
        return round(math.fsum(one.threads for one in self.instructions))

    @property
    def efficiency(self) -> float:
        """Average active lanes per instruction, as a fraction of 32."""
        return self.thread_instructions / (32 * self.warp_instructions)

    @property
    def pipes(self) -> dict[str, float]:
        """Warp instructions by pipe. Some instructions use two pipes, branches none."""
        result = dict.fromkeys((*PIPES, TENSOR), 0.0)
        for instruction in self.instructions:
            for pipe in instruction.pipes:
                result[pipe] += instruction.warps
        return result

    @property
    def occupancy(self) -> Occupancy:
        """Theoretical occupancy."""
        return occupancy(self.device, math.prod(self.executed.block), self.registers, self.shared_bytes)


@dataclass(frozen=True)
class CompiledKernel(ExecutedKernel):
    """A kernel compiled from a source that an emulator executed too. launched: the launches. resources: registers, shared
    memory and spills reported by the compiler."""

    launched: KernelLaunches
    resources: Resources

    @property
    def differences(self) -> tuple[AccessDifference, ...]:
        """Lines with other accesses than in the source."""
        return access_differences(self.launched, self.instructions)

    @property
    def output_differences(self) -> dict[str, str]:
        """Written arrays whose bits differ from the launch's, each with the reason."""
        return {name: _reason(self.launched, name) for name in self.executed.differing}


def _reason(launched: KernelLaunches, name: str) -> str:
    """Return why the contents of an array differ from the emulator's."""
    prepared = launched.request.prepared
    if name in prepared.order_dependent:
        return f"it depends on the order of threads: {prepared.order_dependent[name].place}"
    if name in prepared.rounded:
        return "CUDA's own mathematical functions round differently"
    return "not explained: please report it"


def tools() -> tuple[str, ...]:
    """Return the versions of nvcc and nvdisasm, empty if missing or broken. Compiled results depend on them."""
    compiler, disassembler = nvcc.find_tool("nvcc"), nvcc.find_tool("nvdisasm")
    try:
        compiler_version = nvcc.version(compiler) if compiler else ""
    except LaunchError:
        compiler_version = ""
    return compiler_version, nvcc.identity(disassembler) if disassembler else ""


def compiled_kernels(
    launched: Sequence[KernelLaunches], arch: str, tracers: Sequence[Tracer | None]
) -> list[CompiledKernel]:
    """Compile and execute kernels. tracers: of each one. Raises the errors of `compiled_kernel`."""
    with ThreadPoolExecutor() as pool:
        results = [
            pool.submit(compiled_kernel, one, arch, tracer=own) for one, own in zip(launched, tracers, strict=True)
        ]
        return [one.result() for one in results]


def compiled_kernel(
    launched: KernelLaunches, arch: str, limit: int = MAX_INSTRUCTIONS, tracer: Tracer | None = None
) -> CompiledKernel:
    """Compile and execute a kernel. limit, tracer: as of `execute_launches`.

    Raises LaunchError if nvcc or nvdisasm is missing, if nvcc does not know `arch`, or if the SASS of `arch` is not
    emulated; UnsupportedInstruction and ExecutionError as `execute_launches`.
    """
    if arch not in EMULATED:
        raise LaunchError(f"SASS of {arch} is not emulated: choose a device of {' or '.join(EMULATED)}")
    return executed_binary(launched, launched.binary(arch), arch, limit, tracer)


EMULATED = ("sm_90",)
"""Architectures whose SASS is emulated."""


def executed_binary(
    launched: KernelLaunches, binary: Binary, arch: str, limit: int = MAX_INSTRUCTIONS, tracer: Tracer | None = None
) -> CompiledKernel:
    """Execute a compiled kernel. Raises the errors of `execute_launches`."""
    request, resources = launched.request, binary.built.resources
    sass = without_padding(disassemble(binary.built.cubin, binary.interface.kernel))
    executed = execute_launches(launched, binary, sass, limit, tracer)
    placed = with_fixed_lines(launched.placed(sass), [(place, kind) for _, place, kind in launched.executed])
    return CompiledKernel(
        launched.name, arch, request.device, max(resources.registers, request.device.register_least),
        resources.shared_bytes + binary.interface.carved_bytes + request.dynamic_shared,
        uses_dynamic_work(request.prepared.program.kernel),
        counted(placed, executed.warps, executed.threads, executed.traffic), executed, launched, resources,
    )  # fmt: skip


def without_padding(sass: Sequence[Instruction]) -> tuple[Instruction, ...]:
    """Remove the NOPs that pad the section."""
    used = max(n for n, instruction in enumerate(sass) if instruction.opcode != "NOP")
    return tuple(sass[: used + 1])
