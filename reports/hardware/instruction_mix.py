"""What compiled kernels execute, predicted without a GPU: instructions, lanes active in them, the pipes they go to."""

from __future__ import annotations

from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from math import prod
from typing import Any

from simtbed.engines.cuda import nvcc
from simtbed.engines.cuda.sass import disassemble
from simtbed.machine.occupancy import occupancy

from .estimate import estimate_executions
from .launched import Launched
from .pipes import PIPES, pipes_of


@dataclass(frozen=True)
class Mix:
    """One printed kernel over all its launches.

    warp_instructions: executed by warps, of the compiled kernel; from_ir: as the emulator's costs have them.
    efficiency: lanes active in an instruction, of 32. pipes: shares of the instructions; some go to two pipes, and
    branches to none. occupancy: theoretical, per cent.
    """

    kernel: str
    launches: int
    registers: int
    occupancy: float
    warp_instructions: int
    from_ir: int
    efficiency: float
    pipes: dict[str, float]

    def content(self) -> dict[str, Any]:
        return asdict(self)

    def row(self) -> dict[str, object]:
        """As a row of the table."""
        return {
            "kernel": self.kernel,
            "launches": self.launches,
            "registers": self.registers,
            "occupancy": f"{self.occupancy:g} %",
            "warp instructions": self.warp_instructions,
            "(of the IR)": self.from_ir,
            "efficiency": f"{100 * self.efficiency:.1f} %",
            **{pipe: f"{100 * share:.0f} %" for pipe, share in self.pipes.items()},
        }


def mixes(kernels: Iterable[Launched], arch: str) -> list[Mix]:
    """One a kernel. Raises LaunchError where nvcc, nvdisasm or SciPy is missing, or nvcc does not know `arch`."""
    with ThreadPoolExecutor() as pool:
        return list(pool.map(lambda launched: _mix(launched, arch), kernels))


def _mix(launched: Launched, arch: str) -> Mix:
    source, request = launched.source, launched.request
    built = nvcc.build(source.with_lines(), source.kernel, arch)
    estimate = estimate_executions(
        launched.placed(disassemble(built.cubin, source.kernel)), launched.executed, launched.threads, launched.warps
    )
    shared = built.resources.shared_bytes + source.carved_bytes + request.dynamic_shared
    pipes = dict.fromkeys(PIPES, 0.0)
    for instruction, warps in zip(estimate.instructions, estimate.warps, strict=True):
        for pipe in pipes_of(instruction):
            pipes[pipe] += float(warps) / estimate.warp_instructions
    return Mix(
        source.kernel,
        launched.launches,
        max(built.resources.registers, request.device.register_least),
        occupancy(request.device, prod(request.block), built.resources.registers, shared).percent,
        estimate.warp_instructions,
        launched.counters.total("warp_instructions"),
        estimate.thread_instructions / (32 * estimate.warp_instructions),
        pipes,
    )
