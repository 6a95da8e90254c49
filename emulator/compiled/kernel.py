"""A compiled kernel with its executions: every SASS instruction with pipes and executions by warps and lanes."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import cache, partial
from importlib.metadata import PackageNotFoundError, version

from ..engines.cuda import nvcc
from ..engines.cuda.sass import Instruction, disassemble
from ..errors import LaunchError
from ..machine.occupancy import Occupancy, occupancy
from ..runtime.engine import Resources
from .access_attribution import AccessAttribution
from .coefficient_tables import coefficient_loads
from .executions import Executions, executions_of
from .flow_records import LocatedInstruction
from .instruction_counts import InstructionCount
from .kernel_launches import KernelLaunches
from .memory import MemoryTraffic, memory_of
from .pipes import PIPES, pipes_of
from .shared_cas_loops import expand_cas_loops
from .source_statements import Place, SourceStatements


@dataclass(frozen=True)
class CompiledKernel:
    """A printed kernel as nvcc compiled it, over all its launches.

    launched: the launches; its `source` is the printed kernel. arch: such as "sm_90". resources: registers, shared
    memory and spills reported by the compiler. instructions: in address order from the entry, without trailing NOPs.
    memory: traffic of its accesses.
    """

    launched: KernelLaunches
    arch: str
    resources: Resources
    instructions: tuple[InstructionCount, ...]
    memory: MemoryTraffic

    @property
    def name(self) -> str:
        return self.launched.source.kernel

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
    def source(self) -> SourceStatements:
        """Statements of the source, by inlined call if the line table distinguishes calls."""
        statements = self.launched.statements
        inlining_known = any(len(one.place) > 1 for one in self.instructions)
        return statements if inlining_known else statements.without_inlining()

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


def tools() -> tuple[str, ...]:
    """Return the versions of nvcc, nvdisasm and HiGHS, empty if missing or broken. Compiled results depend on them."""
    compiler, disassembler = nvcc.find_tool("nvcc"), nvcc.find_tool("nvdisasm")
    try:
        compiler_version = nvcc.version(compiler) if compiler else ""
    except LaunchError:
        compiler_version = ""
    return compiler_version, nvcc.identity(disassembler) if disassembler else "", _highs()


@cache
def _highs() -> str:
    try:
        return version("highspy")
    except PackageNotFoundError:
        return ""


def compiled_kernels(launched: Iterable[KernelLaunches], arch: str) -> list[CompiledKernel]:
    """Compile and count kernels. Raises LaunchError if nvcc or nvdisasm is missing, or nvcc does not know `arch`."""
    with ThreadPoolExecutor() as pool:
        return list(pool.map(partial(compiled_kernel, arch=arch), launched))


def compiled_kernel(launched: KernelLaunches, arch: str, match_arrays: bool = False) -> CompiledKernel:
    """Compile and count a kernel. match_arrays: see `memory_of`. Raises LaunchError as `compiled_kernels`."""
    source = launched.source
    built = nvcc.build(source.with_lines(), source.kernel, arch)
    placed = launched.placed(without_padding(disassemble(built.cubin, source.kernel)))
    return CompiledKernel(launched, arch, built.resources, *counted(launched, placed, match_arrays))


def counted(
    launched: KernelLaunches, placed: Sequence[LocatedInstruction], match_arrays: bool = False
) -> tuple[tuple[InstructionCount, ...], MemoryTraffic]:
    """Return the instructions with their executions, and the memory traffic. Raises LaunchError without highspy."""
    coefficient_loads_at = coefficient_loads([one.instruction for one in placed])
    load_lines = {one.place[0] for one in launched.statements.statements.values() if one.site.kind == "global_load"}
    relocated = {
        n for n in coefficient_loads_at if placed[n].line in load_lines
    }  # tables share lines with source loads
    executions = executions_of(
        [replace(one, line=0, calls=()) if n in relocated else one for n, one in enumerate(placed)], launched
    )
    source = executions.walk.matcher.source
    instructions, retry_costs = expand_cas_loops(
        tuple(_counted(executions, {n: placed[n].place for n in coefficient_loads_at})), source.by_place, launched
    )
    return instructions, memory_of(
        launched, instructions, AccessAttribution(executions.walk, instructions), match_arrays, retry_costs
    )


def _counted(executions: Executions, coefficient_places: Mapping[int, Place]) -> Iterator[InstructionCount]:
    """Yield every instruction with its place and its executions.

    coefficient_places: source locations of coefficient-table loads, by instruction.
    """
    for n, placed in enumerate(executions.placed):
        block = executions.block_of[n]
        yield InstructionCount(
            placed.instruction,
            coefficient_places.get(n, placed.place),
            block,
            pipes_of(placed.instruction),
            float(executions.warps[n]),
            float(executions.threads[n]),
            float(executions.least[n]),
            float(executions.most[n]),
            executions.uncertainty.get(block, ""),
            n in coefficient_places,
        )


def without_padding(sass: tuple[Instruction, ...]) -> tuple[Instruction, ...]:
    """Remove the NOPs that pad the section."""
    used = max(n for n, instruction in enumerate(sass) if instruction.opcode != "NOP")
    return sass[: used + 1]
