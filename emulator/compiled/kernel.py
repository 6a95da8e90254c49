"""A compiled kernel as it ran: every SASS instruction with its pipes and its executions by warps and lanes."""

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
from .flow import LocatedInstruction
from .instruction_counts import InstructionCount
from .kernel_launches import KernelLaunches
from .memory import MemoryTraffic, memory_of
from .pipes import PIPES, pipes_of
from .shared_cas_loops import expand_cas_loops
from .source_statements import Place, SourceStatements


@dataclass(frozen=True)
class CompiledKernel:
    """One printed kernel over all its launches, as nvcc compiled it.

    launched: what was launched; its `source` is the printed kernel, its `warps` and `threads` entered the kernel. arch:
    such as "sm_90". resources: registers, shared memory and spills, as the compiler reports them. instructions: in address
    order, from the kernel's entry; NOPs behind its end are left out. memory: what its accesses move.
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
        """Executed by warps."""
        return round(math.fsum(one.warps for one in self.instructions))

    @property
    def thread_instructions(self) -> int:
        """Once for each active lane."""
        return round(math.fsum(one.threads for one in self.instructions))

    @property
    def efficiency(self) -> float:
        """Active lanes of an instruction, of 32, as a part of one."""
        return self.thread_instructions / (32 * self.warp_instructions)

    @property
    def pipes(self) -> dict[str, float]:
        """Warp instructions by pipe. Some go to two pipes, and branches to none."""
        found = dict.fromkeys(PIPES, 0.0)
        for one in self.instructions:
            for pipe in one.pipes:
                found[pipe] += one.warps
        return found

    @property
    def registers(self) -> int:
        """Allocated to a thread."""
        return max(self.resources.registers, self.launched.request.device.register_least)

    @property
    def source(self) -> SourceStatements:
        """The statements of the source, told apart as the compiled kernel does."""
        statements = self.launched.statements
        apart = any(len(one.place) > 1 for one in self.instructions)
        return statements if apart else statements.without_inlining()

    @property
    def shared_bytes(self) -> int:
        """Of a block, with what the launch adds."""
        launched = self.launched
        return self.resources.shared_bytes + launched.source.carved_bytes + launched.request.dynamic_shared

    @property
    def occupancy(self) -> Occupancy:
        """Theoretical."""
        request = self.launched.request
        return occupancy(request.device, math.prod(request.block), self.resources.registers, self.shared_bytes)


def tools() -> tuple[str, ...]:
    """What decides a compiled kernel and its executions beside this package: nvcc and nvdisasm as they are found, and HiGHS; each
    empty where it is not there, or cannot run."""
    compiler, disassembler = nvcc.find_tool("nvcc"), nvcc.find_tool("nvdisasm")
    try:
        told = nvcc.version(compiler) if compiler else ""
    except LaunchError:
        told = ""
    return told, nvcc.identity(disassembler) if disassembler else "", _highs()


@cache
def _highs() -> str:
    try:
        return version("highspy")
    except PackageNotFoundError:
        return ""


def compiled_kernels(launched: Iterable[KernelLaunches], arch: str) -> list[CompiledKernel]:
    """Compile and count each. Raises LaunchError where nvcc or nvdisasm is missing, or nvcc does not know `arch`."""
    with ThreadPoolExecutor() as pool:
        return list(pool.map(partial(compiled_kernel, arch=arch), launched))


def compiled_kernel(launched: KernelLaunches, arch: str, apart: bool = False) -> CompiledKernel:
    """Compile and count one. apart: as of `memory_of`. Raises LaunchError as `compiled_kernels`."""
    source = launched.source
    built = nvcc.build(source.with_lines(), source.kernel, arch)
    placed = launched.placed(without_padding(disassemble(built.cubin, source.kernel)))
    return CompiledKernel(launched, arch, built.resources, *counted(launched, placed, apart))


def counted(
    launched: KernelLaunches, placed: Sequence[LocatedInstruction], apart: bool = False
) -> tuple[tuple[InstructionCount, ...], MemoryTraffic]:
    """The instructions of a kernel as they ran, and what its accesses moved. Raises LaunchError without highspy."""
    tables = coefficient_loads([one.instruction for one in placed])
    loading = {one.place[0] for one in launched.statements.statements.values() if one.site.kind == "global_load"}
    elsewhere = {n for n in tables if placed[n].line in loading}  # than the loads of the source at their line
    executions = executions_of(
        [replace(one, line=0, calls=()) if n in elsewhere else one for n, one in enumerate(placed)], launched
    )
    source = executions.walk.matcher.source
    found, tries = expand_cas_loops(
        tuple(_counted(executions, {n: placed[n].place for n in tables})), source.by_place, launched
    )
    return found, memory_of(launched, found, AccessAttribution(executions.walk, found), apart, tries)


def _counted(found: Executions, tables: Mapping[int, Place]) -> Iterator[InstructionCount]:
    """tables: the instructions, by number, that load from tables, and their own places."""
    for n, placed in enumerate(found.placed):
        block = found.block_of[n]
        yield InstructionCount(
            placed.instruction,
            tables.get(n, placed.place),
            block,
            pipes_of(placed.instruction),
            float(found.warps[n]),
            float(found.threads[n]),
            float(found.least[n]),
            float(found.most[n]),
            found.why.get(block, ""),
            n in tables,
        )


def without_padding(sass: tuple[Instruction, ...]) -> tuple[Instruction, ...]:
    """All but the NOPs that fill the section up."""
    used = max(n for n, instruction in enumerate(sass) if instruction.opcode != "NOP")
    return sass[: used + 1]
