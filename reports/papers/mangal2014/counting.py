"""Counters and predicted times of the variants of Mangal and Jain 2014 on simulated reads and a filter of the paper's size."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache, lru_cache
from pathlib import Path

import numpy as np
from simtbed import Counters, Device, DeviceArray, devices
from simtbed.kernels.correction import FAMILY
from simtbed.kernels.correction.host import pipeline
from simtbed.kernels.correction.host.generate import genome, simulate
from simtbed.kernels.correction.host.problem import Corrected, FilterName, Parameters, Problem, Reads
from simtbed.language.intrinsics import WARP_SIZE
from simtbed.machine.device import SECTOR_BYTES
from simtbed.runtime.registry import EngineName

from ...launchers import Runner
from ...requests import only_request
from ..claims import Value, predicted_for
from ..predicted import pace
from ..ren2018.profiled import floors
from .profiled import LENGTH, SEED, K

GPU, TIMED = (replace(device, loads_cached=True, load_sector=SECTOR_BYTES) for device in (devices.K20m, devices.M2090))
"""The profiled GPU and the timed GPU, with loads through a read-only cache of 32-byte sectors.

The paper binds the filter to a texture. `const __restrict__` data take the same path on a K20m. The cache has the size of L1.
"""
MIN_MULTIPLICITY = 5
"""Multiplicity of a solid k-mer: chosen, the paper does not state it."""
SOLID = 2_250_000
"""K-mers of both strands in a filter of 18 MB, at 64 bits each."""
REGISTERS = {"thread-per-read": 85, "warp-per-read": 56}
"""Registers in the paper, on a K20m."""
ALONE, FEW = "one-lane-per-warp", 128
ALL_READS = 1.7e6
"""Reads of the paper."""


@dataclass(frozen=True)
class Data:
    """Simulated reads of 36 bases of a random genome, or the first reads of a file."""

    genome: int
    reads: int
    error_rate: float
    file: Path | None = None

    def simulated(self) -> Reads:
        """Return the reads."""
        if self.file:
            reads = FAMILY.read(self.file).reads
            return reads.subset(0, min(self.reads, len(reads)))
        return simulate(SEED, genome(SEED, self.genome), self.reads, (LENGTH, LENGTH), self.error_rate).reads


@dataclass(frozen=True)
class Work:
    """A variant, its data, the engine, the fraction of the split filter, and the optional optimisations.

    split: 1 / split of the bits are the region of the first hash function; None for the standard filter.
    """

    variant: str
    data: Data
    engine: EngineName
    split: int | None = None
    switches: pipeline.Optimisations | None = None

    @property
    def parameters(self) -> Parameters:
        """The parameters of the correction."""
        kind: FilterName = "split-first" if self.split else "bloom"
        return Parameters(K, MIN_MULTIPLICITY, filter=kind, split=self.split or 16)


def small_problem() -> Problem:
    """Return few reads with a Bloom filter, for a profiler."""
    return Problem(Data(2_400, 1_134, 0.015).simulated(), Parameters(K, MIN_MULTIPLICITY, filter="bloom"))


@lru_cache(maxsize=4)
def _reads_and_filter(work: Work) -> tuple[Reads, pipeline.Filter]:
    """Return the reads, and the filter filled to the size of the paper by random k-mers. The variant has no effect."""
    reads = work.data.simulated()
    counter = pipeline.Counter(K, Runner(work.engine))
    counter.add(reads.text)
    solid = counter.solid(MIN_MULTIPLICITY)
    own = solid.keys.numpy()[: solid.total]
    padding = np.random.default_rng(SEED).integers(0, 1 << 2 * K, max(SOLID - len(own), 0), dtype=np.uint64)
    filled = pipeline.Solid(DeviceArray(np.concatenate([own, padding])), len(own) + len(padding), solid.histogram)
    return reads, pipeline.Filter.build(filled, work.parameters, Runner(work.engine), words=False)


def reads_and_filter(work: Work) -> tuple[Reads, pipeline.Filter]:
    """Return the reads and the filter of the work; with one lane per warp only the first reads, for it takes 32 times the warps."""
    reads, filter = _reads_and_filter(replace(work, variant="", switches=None))
    return (reads.subset(0, min(work.data.reads, FEW)) if work.variant == ALONE else reads), filter


@cache
def corrected(work: Work) -> tuple[Corrected, Counters]:
    """Return the corrected reads and the counters by the rules of the K20m."""
    reads, filter = reads_and_filter(work)
    runner = Runner(work.engine, GPU, counting=True)
    corrected_reads = pipeline.correct(reads, filter, work.parameters, work.variant, runner, work.switches)
    assert runner.counters is not None  # requested above
    return corrected_reads, runner.counters


def counted(work: Work) -> Counters:
    """Return the counters of `corrected`."""
    return corrected(work)[1]


@dataclass(frozen=True)
class Throughput:
    """Predicted throughput of a variant on a fully occupied GPU.

    nanoseconds: per read, with interval low to high. dram_bandwidth, l2_bandwidth: GB/s. hits: L2 hit rate of the filter's
    queries. texture: GB/s that L2 returns for them. shared_bytes: of a block.
    """

    nanoseconds: float
    low: float
    high: float
    bound: str
    dram_bandwidth: float
    l2_bandwidth: float
    hits: float
    texture: float
    shared_bytes: int

    device: Device

    @property
    def seconds(self) -> Value:
        """Time for the reads of the paper."""
        low, high = (ALL_READS * end / 1e9 for end in (self.low, self.high))
        return Value(predicted_for(self.device), ALL_READS * self.nanoseconds / 1e9, "", (low, high))

    def rate(self, bandwidth: float, label: str = "") -> Value:
        """Return a bandwidth with the interval of the time."""
        moved = bandwidth * self.nanoseconds
        return Value(predicted_for(self.device), bandwidth, label, (moved / self.high, moved / self.low))


@cache
def throughput(work: Work, device: Device) -> Throughput:
    """Predict with the time model and the registers of the paper, up to the limit of the device."""
    reads, filter = reads_and_filter(work)
    request = only_request(
        lambda launcher: pipeline.correct(reads, filter, work.parameters, work.variant, launcher, work.switches)
    )
    most = device.registers_per_thread
    prediction = pace(request, device, min(REGISTERS.get(work.variant, most), most), work.engine, whole_l2=True)
    threads = prediction.blocks * request.block[0]
    # A warp takes one read after the other where there are more reads than warps.
    by_warps = work.variant == "warp-per-read"
    reads_of_blocks = work.data.reads if by_warps else threads // WARP_SIZE if work.variant == ALONE else threads
    scale = 1e3 * prediction.blocks / reads_of_blocks
    low, high = prediction.interval
    return Throughput(
        scale * prediction.microseconds, scale * low, scale * high, prediction.estimate.bound, prediction.dram_bandwidth,
        prediction.l2_bandwidth, prediction.hit_rate(request, "bits"), prediction.l2_bandwidth_of(request, "bits"),
        request.prepared.shared + request.dynamic_shared, device,
    )  # fmt: skip


def least(counters: Counters, reads: int) -> tuple[float, str]:
    """Return the lower bound of nanoseconds per read on the M2090, and the limiting resource."""
    bounds = floors(counters, reads, TIMED)
    bound = max(bounds, key=lambda name: bounds[name])
    return bounds[bound], bound
