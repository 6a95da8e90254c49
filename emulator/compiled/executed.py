"""Execution of a kernel's SASS for its launches: counts by instruction, and a comparison of the outputs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil, prod

import numpy as np
import numpy.typing as npt

from ..engines.cuda.sass import Instruction
from ..passes.work_queues import uses_dynamic_work
from ..profiler.block_sampling import sampled_blocks
from ..profiler.launch_memory import digest
from ..runtime.engine import Request
from ..sass.counts import Counts
from ..sass.cubin import Sections
from ..sass.execution import Launch, Program, execute
from ..sass.state import SHARED_RESERVED, ExecutionError, GlobalMemory, parameter_bank
from .kernel_launches import KernelLaunches, LaunchInputs

Floats = npt.NDArray[np.float64]

MAX_INSTRUCTIONS = 5_000_000
"""Warp instructions of the source, in all launches of a kernel, up to which all blocks are executed: half a second on one
core. Beyond, one of so many blocks is, as `profiler.block_sampling` samples them."""


@dataclass(frozen=True)
class Executed:
    """Counts of a kernel, over all its launches.

    warps, threads: float64[n], executions of each instruction. traffic: float64[n, 3], as `sass.counts.Counts`. sampled:
    one of so many blocks was executed, in the launch with fewest. differing: written arrays whose bits differ from the
    launch's, of launches that were executed completely. first: counts of the first launch, of its executed blocks.
    """

    warps: Floats
    threads: Floats
    traffic: Floats
    sampled: int
    differing: tuple[str, ...]
    first: Counts
    first_blocks: npt.NDArray[np.int64]


def execute_launches(
    launched: KernelLaunches, cubin: bytes, instructions: Sequence[Instruction], limit: int = MAX_INSTRUCTIONS
) -> Executed:
    """Execute the launches of a kernel on copies of their arrays. limit: as MAX_INSTRUCTIONS.

    Raises UnsupportedInstruction, or ExecutionError for a kernel that cannot be run to its end.
    """
    program, sections = Program.from_listing(instructions), Sections.read(cubin)
    total = sum(one.instructions for one in launched.inputs)
    interval = max(1, ceil(total / limit)) if _may_sample(launched.request) else 1
    warps, threads = np.zeros(len(instructions)), np.zeros(len(instructions))
    traffic = np.zeros((len(instructions), 3))
    differing, first, most = dict[str, None](), None, 1
    for inputs in launched.inputs:
        blocks = _blocks(prod(inputs.request.grid), interval)
        counts, memory = _execute(launched, sections, program, inputs, blocks)
        scale = prod(inputs.request.grid) / len(blocks)
        by_warps, by_lanes = counts.totals()
        warps, threads, traffic = warps + scale * by_warps, threads + scale * by_lanes, traffic + scale * counts.traffic
        most = max(most, round(scale))
        if scale == 1:
            differing |= dict.fromkeys(_differences(memory, inputs))
        first = first or (counts, blocks)
    if first is None:
        raise ExecutionError("no launch of the kernel kept its arrays")
    return Executed(warps, threads, traffic, most, tuple(differing), *first)


def _may_sample(request: Request) -> bool:
    """Return whether blocks can be executed without the others: they neither wait for them nor share work with them."""
    kernel = request.prepared.program.kernel
    return not (request.cooperative or request.specialisation.summary.waits or uses_dynamic_work(kernel))


def _blocks(count: int, interval: int) -> npt.NDArray[np.int64]:
    """Return the numbers of the executed blocks; at least one."""
    blocks = np.arange(count)
    chosen = blocks[sampled_blocks(blocks, interval)]
    return chosen if len(chosen) else blocks[count // 2 : count // 2 + 1]


def _execute(
    launched: KernelLaunches, sections: Sections, program: Program, inputs: LaunchInputs, blocks: npt.NDArray[np.int64]
) -> tuple[Counts, GlobalMemory]:
    """Execute blocks of a launch. Return the counts and the memory after it."""
    request, arrays, source = inputs.request, inputs.memory.before, launched.source
    if request.overlapping and any(
        np.may_share_memory(a, b) for n, a in request.arrays.items() for m, b in request.arrays.items() if n < m
    ):
        raise ExecutionError("the arrays of the launch share memory")
    memory = GlobalMemory.allocate(arrays, sections.initial_globals)
    parameters = [
        np.uint64(memory.address(name)) if name in arrays else request.numbers[name] for name in source.arguments
    ]
    dynamic = request.dynamic_arrays
    parameters += [np.int32(len(arrays[n]) if n in arrays else dynamic[n].length) for n in source.lengths]
    workspace = memory.workspace_address if request.cooperative else 0
    banks = {0: parameter_bank(request.block, request.grid, parameters, workspace=workspace)}
    banks |= sections.constant_banks(source.kernel, memory.module_address)
    shared = sections.static_shared(source.kernel) + source.carved_bytes + request.dynamic_shared + SHARED_RESERVED
    counts = Counts(request.device, program.ends_run, len(blocks) * -(-prod(request.block) // 32))
    together = request.cooperative or request.specialisation.summary.waits
    execute(program, Launch(request.grid, request.block, blocks, shared, memory, banks, together), counts)
    return counts, memory


def _differences(memory: GlobalMemory, inputs: LaunchInputs) -> list[str]:
    """Return the written arrays whose bits are not those of the launch."""
    return [name for name, known in inputs.memory.after.items() if digest(memory.array(name)) != known]
