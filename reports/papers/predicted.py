"""What the time model says of kernels on the papers' GPUs: of one SM's share, which stands for a GPU that is full of blocks."""

from __future__ import annotations

from dataclasses import dataclass, replace

from simtbed import Device
from simtbed.machine.occupancy import occupancy
from simtbed.model.launches import observe
from simtbed.model.time import Estimate, estimate
from simtbed.model.traffic import L1_HITS, MISSES, SECTORS
from simtbed.profiler.events import WAVEFRONTS
from simtbed.runtime.engine import Request
from simtbed.runtime.registry import EngineName

from .paper import Claim

CAVEAT = (
    "The time model: blocks that fill one SM, with its share of L2 and of device memory; the interval is the model's own, for it is not "
    "validated on this GPU."
)


@dataclass(frozen=True)
class Pace:
    """Work that a full GPU does. blocks: resident on an SM. wavefronts: of shared memory, and the bytes of one. estimate: of
    these blocks on one SM's share of the GPU."""

    blocks: int
    sms: int
    wavefronts: int
    wavefront_bytes: int
    estimate: Estimate

    @property
    def microseconds(self) -> float:
        """Of the whole GPU for a block, less where many run at once."""
        return self.estimate.time_us / (self.blocks * self.sms)

    @property
    def interval(self) -> tuple[float, float]:
        """The microseconds from and to."""
        low, high = self.estimate.low_us, self.estimate.high_us
        return low / (self.blocks * self.sms), high / (self.blocks * self.sms)

    @property
    def dram_bandwidth(self) -> float:
        """GB/s of device memory."""
        return self.sms * self.estimate.traffic.dram_bytes / self.estimate.time_us / 1e3

    @property
    def shared_bandwidth(self) -> float:
        """GB/s of shared memory: every bank of it, whenever it answers."""
        return self.sms * self.wavefronts * self.wavefront_bytes / self.estimate.time_us / 1e3

    def hit_rate(self, request: Request, array: str) -> float:
        """Of the sectors of an array that L1 does not answer, those that L2 does."""
        rows = [n for n, site in enumerate(request.prepared.sites) if site.array == array]
        found = self.estimate.traffic.sites[rows]
        asked = int((found[:, SECTORS] - found[:, L1_HITS]).sum())
        return 1 - int(found[:, MISSES].sum()) / max(asked, 1)

    @property
    def l2_bandwidth(self) -> float:
        """GB/s between L1 and L2."""
        return self.sms * 32 * self.estimate.traffic.l2_sectors / self.estimate.time_us / 1e3


OF_ALL_SMS = ("l2_bandwidth", "atomic_rate", "fetch_rate", "request_rate", "store_rate", "load_rate")
"""Rates of L2, which all SMs share."""


def share(device: Device, whole_l2: bool = False) -> Device:
    """One SM with its share of what all SMs use together, and no time to launch. whole_l2: where all SMs read one table, of
    which L2 holds as much whoever asks."""
    whole = device.timing
    rates = {name: getattr(whole, name) / device.sms for name in OF_ALL_SMS}
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
    """How fast a GPU goes that is full of a launch's first blocks, which stand for all of them. registers: a thread's. launched:
    blocks of the launch where they do not fill it. whole_l2: as of `share`."""
    threads = request.block[0] * request.block[1] * request.block[2]
    shared = request.prepared.shared + request.dynamic_shared
    resident = max(1, occupancy(device, threads, registers, shared).active_blocks)
    most = resident if launched is None else min(resident, -(-launched // device.sms))
    blocks = min(most, request.grid[0])
    part = share(device, whole_l2)
    some = replace(request, device=part, grid=(blocks, 1, 1))
    seen = observe(
        some, registers, engine, source_only=True
    )  # a page is the same on every machine, with nvcc or without
    wavefronts = seen.column(WAVEFRONTS, "shared")
    return Pace(blocks, device.sms, wavefronts, device.banks * device.bank_width, estimate(seen, part, cold=True))


def settled(text: str, predicted: tuple[bool | None, str], measured: tuple[bool | None, str]) -> Claim:
    """A claim on speed: by the time model of the paper's GPU and by times of another one, where both do not differ."""
    told = {holds for holds, _ in (predicted, measured) if holds is not None}
    found = "; ".join(f"{by}: {one}" for by, (_, one) in (("time model", predicted), ("GPU", measured)) if one)
    return Claim(text, told.pop() if len(told) == 1 else None, found or "needs times of a GPU")
