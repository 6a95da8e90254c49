"""Execution of a kernel's SASS for its launches: counts by instruction, and a comparison of the outputs."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import ceil, prod
from typing import Any

import numpy as np
import numpy.typing as npt

from ..cubin_sections import Sections
from ..engines.cuda.binary import Binary
from ..engines.cuda.interface import Interface
from ..engines.cuda.own_code import packed as packed_own
from ..engines.cuda.sass import Instruction
from ..language.tensor_maps import TensorMapForm
from ..passes.work_queues import uses_dynamic_work
from ..profiler.block_sampling import sampled_blocks
from ..profiler.launch_memory import digest
from ..runtime.engine import Request
from ..sass.bulk_copy import encoded
from ..sass.counts import COLUMNS, AccessTrace, Counts
from ..sass.execution import Program
from ..sass.state import GLOBAL_BASE, ExecutionError, GlobalMemory
from .device_launch import DeviceLaunch, Dim3, execute_on_device
from .kernel_launches import KernelLaunches, LaunchInputs
from .opcode_classes import Access, access_of

Floats = npt.NDArray[np.float64]

MAX_INSTRUCTIONS = 5_000_000
"""Warp instructions of the source, in all launches of a kernel, up to which all blocks are executed: half a second on one
core. Beyond, one of so many blocks is, as `profiler.block_sampling` samples them."""

CHUNKS = 8
"""Executed parts of a launch whose accesses are traced."""
Tracer = Callable[[Sequence[Access], int], AccessTrace]
"""Returns the trace of a kernel, given the accesses of its instructions and the number of executed blocks."""


@dataclass(frozen=True)
class Executed:
    """Counts of a kernel, over all its launches.

    warps, threads: float64[n], executions of each instruction. traffic: float64[n, COLUMNS], as `sass.counts.Counts`. sampled:
    one of so many blocks was executed, in the launch with fewest. differing: written arrays whose bits differ from the
    launch's, of launches that were executed completely. first: counts of the first launch, of its executed blocks. grid,
    block, cluster: of that launch.
    """

    warps: Floats
    threads: Floats
    traffic: Floats
    sampled: int
    differing: tuple[str, ...]
    first: Counts
    first_blocks: npt.NDArray[np.int64]
    grid: Dim3
    block: Dim3
    cluster: Dim3


def execute_launches(
    launched: KernelLaunches, binary: Binary, instructions: Sequence[Instruction], limit: int = MAX_INSTRUCTIONS,
    tracer: Tracer | None = None,
) -> Executed:  # fmt: skip
    """Execute the launches of a kernel on copies of their arrays. limit: as MAX_INSTRUCTIONS. tracer: for the accesses of the
    first launch; blocks are then sampled in CHUNKS of neighbors.

    Raises UnsupportedInstruction, or ExecutionError for a kernel that cannot be run to its end.
    """
    program, sections = Program.from_listing(instructions), Sections.read(binary.built.cubin)
    total = sum(one.instructions for one in launched.inputs)
    interval = max(1, ceil(total / limit)) if may_sample(launched.request) else 1
    warps, threads = np.zeros(len(instructions)), np.zeros(len(instructions))
    traffic = np.zeros((len(instructions), COLUMNS))
    differing, first, most = dict[str, None](), None, 1
    for inputs in launched.inputs:
        clusters, count = inputs.request.clusters, prod(inputs.request.grid)
        chunk = 1 if tracer is None else max(1, len(clusters) // (CHUNKS * interval))
        blocks = clusters[_sampled(len(clusters), interval, chunk)].reshape(-1)
        trace = None if tracer is None or first is not None else tracer([*map(access_of, instructions)], len(blocks))
        on_device = device_launch(binary.interface, inputs.request, inputs.memory.before)
        counts, memory = execute_on_device(on_device, sections, program, blocks, trace)
        scale = count / len(blocks)
        by_warps, by_lanes = counts.totals()
        warps, threads, traffic = warps + scale * by_warps, threads + scale * by_lanes, traffic + scale * counts.traffic
        most = max(most, round(scale))
        if scale == 1:
            differing |= dict.fromkeys(_differences(memory, inputs))
        first = first or (counts, blocks)
    if first is None:
        raise ExecutionError("no launch of the kernel kept its arrays")
    request = launched.inputs[0].request
    dimensions = (request.grid, request.block, request.cluster)
    return Executed(warps, threads, traffic, most, tuple(differing), *first, *dimensions)


def may_sample(request: Request) -> bool:
    """Return whether clusters can be executed without the others: they neither wait for them nor share work with them."""
    kernel = request.prepared.program.kernel
    return not (request.cooperative or request.specialisation.summary.waits or uses_dynamic_work(kernel))


def _sampled(count: int, interval: int, chunk: int) -> npt.NDArray[np.int64]:
    """Return the numbers of the executed clusters, in chunks of neighbors; at least one."""
    clusters = np.arange(count)
    chosen = clusters[sampled_blocks(clusters // chunk, interval)]
    return chosen if len(chosen) else clusters[count // 2 :][:chunk]


def device_launch(interface: Interface, request: Request, arrays: Mapping[str, npt.NDArray[Any]]) -> DeviceLaunch:
    """Return what a launch of a kernel passes to the device. arrays: their contents, flat.

    Raises ExecutionError for arrays that overlap.
    """
    if request.overlapping and any(
        np.may_share_memory(a, b) for n, a in request.arrays.items() for m, b in request.arrays.items() if n < m
    ):
        raise ExecutionError("the arrays of the launch share memory")
    dynamic, packing, own = request.dynamic_arrays, interface.packing, request.specialisation.own_code

    def parameters(address: Callable[[str], int]) -> list[bytes]:
        places = {name: address(name) for name in arrays}
        addresses = {name: np.uint64(place) for name, place in places.items()}
        if packing is not None:
            values: Sequence[np.generic] = packed_own(packing, {**request.numbers, **arrays}, addresses)
            forms = ((n, one.contents, one.form) for n, one in enumerate(packing))
            tensors = {n: (own[0][1], form) for n, own, form in forms if isinstance(form, TensorMapForm)}
        else:
            lengths = [np.int32(len(arrays[n]) if n in arrays else dynamic[n].length) for n in interface.lengths]
            numbers = {**request.numbers, **addresses}
            values = [*(numbers[name] for name in interface.arguments), *lengths]
            tensors = {interface.arguments.index(name): (name, form) for name, form in interface.tensors}
        result = [value.tobytes() for value in values]
        for number, (name, form) in tensors.items():
            result[number] = encoded(form, places[name] - GLOBAL_BASE)
        return result

    together = request.cooperative or request.specialisation.summary.waits
    return DeviceLaunch(
        interface.kernel, request.device, request.grid, request.block, interface.carved_bytes + request.dynamic_shared,
        arrays, parameters, request.cooperative, together, dict(own.constants if own is not None else ()),
        request.cluster,
    )  # fmt: skip


def _differences(memory: GlobalMemory, inputs: LaunchInputs) -> list[str]:
    """Return the written arrays whose bits are not those of the launch."""
    return [name for name, known in inputs.memory.after.items() if digest(memory.array(name)) != known]
