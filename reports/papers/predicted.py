"""Predictions of the time model for kernels on the GPUs of the papers, from one SM with its share of a fully occupied GPU."""

from dataclasses import dataclass, replace

from simtbed import Device
from simtbed.machine.device import SECTOR_BYTES
from simtbed.machine.occupancy import occupancy
from simtbed.model.launches import observe
from simtbed.model.time import Estimate, estimate
from simtbed.model.traffic import Column
from simtbed.profiler.events import WAVEFRONTS
from simtbed.runtime.engine import Request
from simtbed.runtime.registry import EngineName


@dataclass(frozen=True)
class Pace:
    """Throughput of a fully occupied GPU.

    blocks: resident blocks per SM. wavefronts: of shared memory. estimate: for these blocks on one SM.
    """

    blocks: int
    sms: int
    wavefronts: int
    wavefront_bytes: int
    estimate: Estimate

    @property
    def microseconds(self) -> float:
        """Time per block of the whole GPU."""
        return self.estimate.time_us / (self.blocks * self.sms)

    @property
    def interval(self) -> tuple[float, float]:
        """Low and high end of `microseconds`."""
        low, high = self.estimate.low_us, self.estimate.high_us
        return low / (self.blocks * self.sms), high / (self.blocks * self.sms)

    @property
    def dram_bandwidth(self) -> float:
        """Bandwidth of device memory in GB/s."""
        return self.sms * self.estimate.traffic.dram_bytes / self.estimate.time_us / 1e3

    @property
    def shared_bandwidth(self) -> float:
        """Bandwidth of shared memory in GB/s, with all banks counted for each wavefront."""
        return self.sms * self.wavefronts * self.wavefront_bytes / self.estimate.time_us / 1e3

    def _sectors(self, request: Request, array: str) -> tuple[int, int]:
        """Return the sectors of an array that miss L1, and those that also miss L2."""
        rows = [n for n, site in enumerate(request.prepared.sites) if site.array == array]
        traffic = self.estimate.traffic.sites[rows]
        requested = int((traffic[:, Column.SECTORS] - traffic[:, Column.L1_HITS]).sum())
        return requested, int(traffic[:, Column.MISSES].sum())

    def hit_rate(self, request: Request, array: str) -> float:
        """Return the L2 hit rate of the sectors of an array that miss L1."""
        requested, missed = self._sectors(request, array)
        return 1 - missed / max(requested, 1)

    def l2_bandwidth_of(self, request: Request, array: str) -> float:
        """Return the bandwidth between L1 and L2 of the accesses to an array, in GB/s."""
        return self.sms * SECTOR_BYTES * self._sectors(request, array)[0] / self.estimate.time_us / 1e3

    @property
    def l2_bandwidth(self) -> float:
        """Bandwidth between L1 and L2 in GB/s."""
        return self.sms * SECTOR_BYTES * self.estimate.traffic.l2_sectors / self.estimate.time_us / 1e3


SHARED_RATES = ("l2_bandwidth", "atomic_rate", "fetch_rate", "request_rate", "store_rate", "load_rate")
"""Rates of L2, shared by all SMs."""


def share(device: Device, whole_l2: bool = False) -> Device:
    """Return a device with one SM and its share of the common resources, and no launch overhead.

    whole_l2: keep the full L2 capacity, for a table read by all SMs.
    """
    whole = device.timing
    rates = {name: getattr(whole, name) / device.sms for name in SHARED_RATES}
    timing = replace(whole, block_interval=whole.block_interval * device.sms, launch=1, **rates)
    return replace(
        device,
        name=f"an SM's share of {device.name}",
        sms=1,
        bandwidth=device.bandwidth / device.sms,
        l2=device.l2 if whole_l2 else device.l2 // device.sms,
        timing=timing,
    )


def pace(
    request: Request,
    device: Device,
    registers: int,
    engine: EngineName,
    launched: int | None = None,
    whole_l2: bool = False,
) -> Pace:
    """Predict the throughput of a GPU occupied by the first blocks of a launch.

    registers: per thread. launched: number of blocks, if they do not fill the GPU. whole_l2: see `share`.
    """
    threads = request.block[0] * request.block[1] * request.block[2]
    shared = request.prepared.shared + request.dynamic_shared
    resident = max(1, occupancy(device, threads, registers, shared).active_blocks)
    most = resident if launched is None else min(resident, -(-launched // device.sms))
    blocks = min(most, request.grid[0])
    one_sm = share(device, whole_l2)
    first_blocks = replace(request, device=one_sm, grid=(blocks, 1, 1))
    # source_only: the report is the same on machines with and without nvcc
    launch = observe(first_blocks, registers, engine, source_only=True)
    wavefronts = launch.column(WAVEFRONTS, "shared")
    return Pace(blocks, device.sms, wavefronts, device.banks * device.bank_width, estimate(launch, one_sm, cold=True))
