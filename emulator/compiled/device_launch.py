"""A launch of machine code: grid, block, arrays and parameters, and its execution."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt

from ..cubin_sections import Sections
from ..machine.device import Device
from ..sass.counts import AccessTrace, Counts
from ..sass.execution import Launch, Program, execute
from ..sass.state import ARCHITECTURES, GLOBAL_BASE, GlobalMemory, parameter_bank

Dim3 = tuple[int, int, int]


@dataclass(frozen=True)
class DeviceLaunch:
    """The input of a launch. dynamic_shared: bytes of a block. arrays: by name, copied to the device. parameters: returns
    the bytes of each, given the address of each array. together: whether blocks of other clusters wait for each other.
    constants: contents of variables in constant memory, by symbol. cluster: its blocks by axis."""

    kernel: str
    device: Device
    grid: Dim3
    block: Dim3
    dynamic_shared: int
    arrays: Mapping[str, npt.NDArray[Any]]
    parameters: Callable[[Callable[[str], int]], Sequence[bytes]]
    cooperative: bool = False
    together: bool = False
    constants: Mapping[str, bytes] = field(default_factory=dict)
    cluster: Dim3 = (1, 1, 1)


def shared_bytes(sections: Sections, kernel: str) -> int:
    """Return the shared memory of a block without dynamic one, with the bytes that the system reserves."""
    return max(sections.static_shared(kernel), ARCHITECTURES[sections.architecture].shared_reserved)


def execute_on_device(
    launch: DeviceLaunch,
    sections: Sections,
    program: Program,
    blocks: npt.NDArray[np.int64],
    trace: AccessTrace | None = None,
) -> tuple[Counts, GlobalMemory]:
    """Execute blocks of a launch, by cluster and rank. Return the counts and the memory after it.

    Raises the errors of `sass.execution.execute`.
    """
    places = sections.parameters(launch.kernel)
    parameters = bytearray(max((one.offset + one.size for one in places), default=0))
    memory = GlobalMemory.allocate(launch.arrays, sections.initial_globals, len(parameters))
    for (offset, size), value in zip(places, launch.parameters(memory.address), strict=True):
        parameters[offset : offset + size] = value.ljust(size, b"\0")[:size]
    copied = memory.parameter_address - GLOBAL_BASE
    memory.contents[copied : copied + len(parameters)] = np.frombuffer(parameters, np.uint8)
    first = ARCHITECTURES[sections.architecture].parameters
    workspace = memory.workspace_address if launch.cooperative else 0
    banks = {0: parameter_bank(launch.block, launch.grid, bytes(parameters), first, memory, workspace, launch.cluster)}
    banks |= sections.constant_banks(launch.kernel, memory.module_address, launch.constants)
    shared = shared_bytes(sections, launch.kernel) + launch.dynamic_shared
    counts = Counts(launch.device, program.ends_run, len(blocks) * -(-prod(launch.block) // 32), trace)
    on_device = Launch(launch.grid, launch.block, blocks, shared, memory, banks, launch.together, launch.cluster)
    execute(program, on_device, counts)
    return counts, memory
