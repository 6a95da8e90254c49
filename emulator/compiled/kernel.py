"""A compiled kernel as it ran: every SASS instruction with its pipes and its executions by warps and lanes."""

from __future__ import annotations

from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from math import prod

from ..engines.cuda import nvcc
from ..engines.cuda.sass import Instruction, disassemble
from ..machine.occupancy import Occupancy, occupancy
from .executions import Executions, executions_of
from .launched import Launched
from .pipes import PIPES, pipes_of


@dataclass(frozen=True)
class Counted:
    """One SASS instruction over all launches of a kernel.

    instruction: its text, opcode, predicate, targets, and what it tells the scheduler (`control`). place: its line of the
    printed kernel, then those of the calls inlined to reach it; 0 for none. block: the basic block, by number. pipes: of
    an SM that execute it; none for branches. warps, threads: executions by warps, and by their active lanes; lanes that a
    predicate switches off count as active, as the hardware counts them. least, most: between which `warps` lies for
    certain, where it could not be counted; `why` then says so.
    """

    instruction: Instruction
    place: tuple[int, ...]
    block: int
    pipes: tuple[str, ...]
    warps: float
    threads: float
    least: float
    most: float
    why: str = ""


@dataclass(frozen=True)
class CompiledKernel:
    """One printed kernel over all its launches, as nvcc compiled it.

    launched: what was launched; its `source` is the printed kernel, its `warps` and `threads` entered the kernel. arch:
    such as "sm_90". resources: registers, shared memory and spills, as the compiler reports them. instructions: in address
    order, from the kernel's entry; NOPs behind its end are left out.
    """

    launched: Launched
    arch: str
    resources: nvcc.Resources
    instructions: tuple[Counted, ...]

    @property
    def name(self) -> str:
        return self.launched.source.kernel

    @property
    def warp_instructions(self) -> int:
        """Executed by warps."""
        return round(sum(one.warps for one in self.instructions))

    @property
    def thread_instructions(self) -> int:
        """Once for each active lane."""
        return round(sum(one.threads for one in self.instructions))

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
    def shared_bytes(self) -> int:
        """Of a block, with what the launch adds."""
        launched = self.launched
        return self.resources.shared_bytes + launched.source.carved_bytes + launched.request.dynamic_shared

    @property
    def occupancy(self) -> Occupancy:
        """Theoretical."""
        request = self.launched.request
        return occupancy(request.device, prod(request.block), self.resources.registers, self.shared_bytes)


def compiled_kernels(launched: Iterable[Launched], arch: str) -> list[CompiledKernel]:
    """Compile and count each. Raises LaunchError where nvcc or nvdisasm is missing, or nvcc does not know `arch`."""
    with ThreadPoolExecutor() as pool:
        return list(pool.map(partial(compiled_kernel, arch=arch), launched))


def compiled_kernel(launched: Launched, arch: str) -> CompiledKernel:
    """Compile and count one. Raises LaunchError as `compiled_kernels`."""
    source = launched.source
    built = nvcc.build(source.with_lines(), source.kernel, arch)
    placed = launched.placed(without_padding(disassemble(built.cubin, source.kernel)))
    found = executions_of(placed, launched)
    return CompiledKernel(launched, arch, built.resources, tuple(_counted(found)))


def _counted(found: Executions) -> Iterable[Counted]:
    for n, placed in enumerate(found.placed):
        block = found.block_of[n]
        yield Counted(
            placed.instruction,
            placed.place,
            block,
            pipes_of(placed.instruction),
            float(found.warps[block]),
            float(found.threads[block]),
            float(found.least[block]),
            float(found.most[block]),
            found.why.get(block, ""),
        )


def without_padding(sass: tuple[Instruction, ...]) -> tuple[Instruction, ...]:
    """All but the NOPs that fill the section up."""
    used = max(n for n, instruction in enumerate(sass) if instruction.opcode != "NOP")
    return sass[: used + 1]
