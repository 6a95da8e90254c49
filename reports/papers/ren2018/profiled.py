"""Tables 2 and 4 of Ren 2018, compared with the occupancy by rule and the limiting resource by counters."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from simtbed import Counters, Device, devices, launch
from simtbed.kernels import FunctionLauncher
from simtbed.kernels.pairhmm import FAMILY
from simtbed.kernels.pairhmm.host.problem import Problem
from simtbed.machine.occupancy import occupancy
from simtbed.runtime.registry import EngineName
from simtbed.runtime.result import Result

from ..definitions import printed as printed_figures

K40 = replace(devices.find("K40"), clock=745)
"""The GPU of the paper, at its clock."""


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


def by_rule(printed: Printed) -> float:
    """Return the occupancy in percent by the registers and shared memory of the paper."""
    return occupancy(K40, printed.block, printed.registers, printed.shared).percent


def launched(problem: Problem, variant: str, engine: EngineName = "jit") -> list[Result]:
    """Return the counted launches of a problem."""
    results: list[Result] = []

    @FunctionLauncher
    def noted(*args: Any, **how: Any) -> Result:
        results.append(launch(*args, device=K40, engine=engine, **how))
        return results[-1]

    FAMILY.solve(problem, variant, noted)
    return results


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
