"""A compiled kernel with its executions: every SASS instruction with pipes and executions by warps and lanes."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial

from ..engines.cuda import nvcc
from ..engines.cuda.sass import Instruction, disassemble
from ..errors import LaunchError
from ..machine.occupancy import Occupancy, occupancy
from ..runtime.engine import Resources
from .executed import MAX_INSTRUCTIONS, Executed, Tracer, execute_launches
from .instruction_counts import InstructionCount, counted
from .kernel_launches import KernelLaunches
from .line_table_fixes import with_fixed_lines
from .memory import AccessDifference, access_differences, memory_counters
from .pipes import PIPES


@dataclass(frozen=True)
class CompiledKernel:
    """A printed kernel as nvcc compiled it, over all its launches.

    launched: the launches; its `source` is the printed kernel. arch: such as "sm_90". resources: registers, shared
    memory and spills reported by the compiler. instructions: in address order from the entry, without trailing NOPs.
    executed: their counts. memory: counters of its accesses by name.
    """

    launched: KernelLaunches
    arch: str
    resources: Resources
    instructions: tuple[InstructionCount, ...]
    executed: Executed

    @property
    def name(self) -> str:
        return self.launched.source.kernel

    @property
    def memory(self) -> dict[str, int]:
        """Counters of its accesses, barriers and shuffles, by name."""
        return memory_counters(self.instructions)

    @property
    def differences(self) -> tuple[AccessDifference, ...]:
        """Lines with other accesses than in the source."""
        return access_differences(self.launched, self.instructions)

    @property
    def output_differences(self) -> dict[str, str]:
        """Written arrays whose bits differ from the launch's, each with the reason."""
        return {name: _reason(self.launched, name) for name in self.executed.differing}

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
        result = dict.fromkeys(PIPES, 0.0)
        for instruction in self.instructions:
            for pipe in instruction.pipes:
                result[pipe] += instruction.warps
        return result

    @property
    def registers(self) -> int:
        """Registers allocated per thread."""
        return max(self.resources.registers, self.launched.request.device.register_least)

    @property
    def shared_bytes(self) -> int:
        """Shared memory per block in bytes, static and dynamic."""
        launched = self.launched
        return self.resources.shared_bytes + launched.source.carved_bytes + launched.request.dynamic_shared

    @property
    def occupancy(self) -> Occupancy:
        """Theoretical occupancy."""
        request = self.launched.request
        return occupancy(request.device, math.prod(request.block), self.resources.registers, self.shared_bytes)


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


def compiled_kernels(launched: Iterable[KernelLaunches], arch: str) -> list[CompiledKernel]:
    """Compile and execute kernels. Raises the errors of `compiled_kernel`."""
    with ThreadPoolExecutor() as pool:
        return list(pool.map(partial(compiled_kernel, arch=arch), launched))


def compiled_kernel(
    launched: KernelLaunches, arch: str, limit: int = MAX_INSTRUCTIONS, tracer: Tracer | None = None
) -> CompiledKernel:
    """Compile and execute a kernel. limit, tracer: as of `execute_launches`.

    Raises LaunchError if nvcc or nvdisasm is missing, if nvcc does not know `arch`, or if the SASS of `arch` is not
    emulated; UnsupportedInstruction and ExecutionError as `execute_launches`.
    """
    if arch not in EMULATED:
        raise LaunchError(f"SASS of {arch} is not emulated: choose a device of {' or '.join(EMULATED)}")
    source = launched.source
    built = nvcc.build(source.with_lines(), source.kernel, arch)
    return executed_cubin(launched, built.cubin, arch, built.resources, limit, tracer)


EMULATED = ("sm_90",)
"""Architectures whose SASS is emulated."""


def executed_cubin(
    launched: KernelLaunches, cubin: bytes, arch: str, resources: Resources, limit: int = MAX_INSTRUCTIONS,
    tracer: Tracer | None = None,
) -> CompiledKernel:  # fmt: skip
    """Execute the cubin of a kernel. Raises the errors of `execute_launches`."""
    sass = without_padding(disassemble(cubin, launched.source.kernel))
    executed = execute_launches(launched, cubin, sass, limit, tracer)
    placed = with_fixed_lines(launched.placed(sass), [(place, kind) for _, place, kind in launched.executed])
    instructions = counted(placed, executed.warps, executed.threads, executed.traffic)
    return CompiledKernel(launched, arch, resources, instructions, executed)


def without_padding(sass: Sequence[Instruction]) -> tuple[Instruction, ...]:
    """Remove the NOPs that pad the section."""
    used = max(n for n, instruction in enumerate(sass) if instruction.opcode != "NOP")
    return tuple(sass[: used + 1])
