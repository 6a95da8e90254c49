"""Tables 2 and 4 of Ren 2018, compared with the occupancy by rule and the limiting resource by counters."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from simtbed import Counters, Device, LaunchError, devices, launch
from simtbed.engines.cuda import nvcc
from simtbed.engines.cuda.printer import cuda_source
from simtbed.kernels import FunctionLauncher
from simtbed.kernels.pairhmm import FAMILY
from simtbed.kernels.pairhmm.host.generate import equal_lengths
from simtbed.kernels.pairhmm.host.problem import Problem
from simtbed.machine.occupancy import occupancy
from simtbed.runtime.engine import Request
from simtbed.runtime.registry import EngineName
from simtbed.runtime.result import Result

from ..definitions import printed as printed_figures

K40 = replace(devices.find("K40"), clock=745)
"""The GPU of the paper, at its clock."""
PAIRS = 128


@dataclass(frozen=True)
class Printed:
    """A row of the paper. limitation: memory, latency or compute. registers of a thread; shared bytes of a block.
    occupancy: theoretical, per cent. bandwidth: GB/s, of global memory in Table 2, of shared memory in Table 4."""

    table: int
    variant: str
    limitation: str
    bandwidth: int
    registers: int
    shared: int
    occupancy: float
    block: int


PAPER = tuple(Printed(**row) for row in printed_figures("ren2018")["profiles"])
LENGTHS = {2: (144, 144), 4: (128, 256)}
"""Read and haplotype of the set that was profiled: Table 1's sixth (the caption says 8), Table 3's last."""

Row = dict[str, Any]


def rows(arch: str = "sm_90") -> list[Row]:
    """Return a row per variant with values of the paper and of the emulator. Registers are those of nvcc for `arch`, not the GPU of
    the paper; without nvcc, registers and occupancy are None."""
    return [_row(printed, arch) for printed in PAPER]


def _row(printed: Printed, arch: str) -> Row:
    result = counted(printed)
    counters, request = result.counters, result.request
    block = request.block[0]
    registers = _registers(request, arch)
    shared = result.shared_bytes
    ours = None if registers is None else occupancy(K40, block, registers, shared)
    return {
        "table": printed.table,
        "variant": printed.variant,
        "registers, paper": printed.registers,
        "registers": registers,
        "shared bytes, paper": printed.shared,
        "shared bytes": shared,
        "occupancy %, paper": printed.occupancy,
        "occupancy %, by rule from the paper's": by_rule(printed),
        "occupancy %": None if ours is None else ours.percent,
        "limited by": None if ours is None else ours.limiter,
        "bound, paper": printed.limitation,
        **{f"K40 ns per cell, {what}": ns for what, ns in floors(counters, cells(printed), K40).items()},
        "bound": bound(counters, K40),
    }


def by_rule(printed: Printed) -> float:
    """Return the occupancy in percent by the registers and shared memory of the paper."""
    return occupancy(K40, printed.block, printed.registers, printed.shared).percent


def counted(printed: Printed) -> Result:
    """Return the counted launch of a variant on the profiled set, by the rules of the K40."""
    (result,) = launched(equal_lengths(1, PAIRS, *LENGTHS[printed.table]), printed.variant)
    return result


def launched(problem: Problem, variant: str, engine: EngineName = "jit") -> list[Result]:
    """Return the counted launches of a problem."""
    results: list[Result] = []

    @FunctionLauncher
    def noted(*args: Any, **how: Any) -> Result:
        results.append(launch(*args, device=K40, engine=engine, **how))
        return results[-1]

    FAMILY.solve(problem, variant, noted)
    return results


def cells(printed: Printed) -> int:
    return equal_lengths(1, PAIRS, *LENGTHS[printed.table]).cells


def floors(counters: Counters, cells: int, device: Device) -> dict[str, float]:
    """Return the lower bound of nanoseconds per cell for each resource: global memory at its bandwidth, shared memory at a
    wavefront per cycle and SM, instructions at the issue rate of the ALUs."""
    totals = counters.totals()
    cycles = 1e3 / (device.clock * device.sms)  # ns of one SM-cycle, shared out over the device
    sectors = totals["global_load_sectors"] + totals["global_store_sectors"]
    wavefronts = totals["shared_load_wavefronts"] + totals["shared_store_wavefronts"] + totals["shuffles"]
    return {
        "global memory": sectors * device.sector / device.bandwidth / cells,
        "shared memory": wavefronts * cycles / cells,
        "instructions": 32 * totals["warp_instructions"] * cycles / device.rates.alu / cells,
    }


def bound(counters: Counters, device: Device) -> str:
    """Return the resource with the highest lower bound."""
    bounds = floors(counters, 1, device)
    return max(bounds, key=lambda name: bounds[name])


def _registers(request: Request, arch: str) -> int | None:
    source = cuda_source(request.program, request.block)
    try:
        return nvcc.build(source.with_lines(), source.kernel, arch).resources.registers
    except LaunchError:
        return None
