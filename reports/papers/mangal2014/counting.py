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
from simtbed.runtime.engine import Request
from simtbed.runtime.registry import EngineName

from ...launchers import Runner
from ...requests import only_request
from ..claims import Value
from ..definitions import printed
from ..predicted import Pace, pace
from ..values import predicted

GPU, TIMED = (replace(device, loads_cached=True, load_sector=SECTOR_BYTES) for device in (devices.K20m, devices.M2090))
"""The profiled GPU and the timed GPU, with loads through a read-only cache of 32-byte sectors.

The paper binds the filter to a texture. `const __restrict__` data take the same path on a K20m. The cache has the size of L1.
"""
LENGTH, K = 36, 21
"""K = 21 is inferred, the paper does not state it: 21 of 32 lanes are 65.6 %, the efficiency of Table 3 is 65.7 %."""
SEED = 1
MIN_MULTIPLICITY = 5
"""Multiplicity of a solid k-mer: chosen, the paper does not state it."""
SOLID = 2_250_000
"""K-mers of both strands in a filter of 18 MB, at 64 bits each."""
PROFILES = printed("mangal2014")["profiles"]
"""Tables 1 and 3 by variant, on a K20m."""
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

    def problem(self) -> Problem:
        """Return the reads with a Bloom filter."""
        return Problem(self.simulated(), Parameters(K, MIN_MULTIPLICITY, filter="bloom"))


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
    return Data(2_400, 1_134, 0.015).problem()


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
    """Predicted throughput of a variant on a fully occupied GPU. reads: in the time of a block of `pace`."""

    device: Device
    request: Request
    pace: Pace
    reads: float

    @property
    def seconds(self) -> Value:
        """Time for the reads of the paper."""
        return predicted(self.device, self.pace, lambda microseconds: ALL_READS / self.reads * microseconds / 1e6)

    @property
    def hits(self) -> float:
        """L2 hit rate of the filter's queries."""
        return self.pace.hit_rate(self.request, "bits")

    @property
    def shared_bytes(self) -> int:
        """Shared memory of a block."""
        return self.request.prepared.shared + self.request.dynamic_shared

    def bandwidth(self, level: str, label: str = "") -> Value:
        """Return a bandwidth in GB/s: of the level "dram", "l2", or "texture", what L2 returns for queries."""
        rates = {
            "dram": self.pace.dram_bandwidth, "l2": self.pace.l2_bandwidth, "texture": self.pace.l2_bandwidth_of(self.request, "bits")
        }  # fmt: skip
        moved = rates[level] * self.pace.microseconds
        return predicted(self.device, self.pace, lambda microseconds: moved / microseconds, label)


@cache
def throughput(work: Work, device: Device) -> Throughput:
    """Predict with the time model and the registers of the paper, up to the limit of the device."""
    reads, filter = reads_and_filter(work)
    request = only_request(
        lambda launcher: pipeline.correct(reads, filter, work.parameters, work.variant, launcher, work.switches)
    )
    most = device.registers_per_thread
    registers = PROFILES[work.variant]["registers"] if work.variant in PROFILES else most
    prediction = pace(request, device, min(registers, most), work.engine, whole_l2=True)
    threads = prediction.blocks * request.block[0]
    # A warp takes one read after the other where there are more reads than warps.
    by_warps = work.variant == "warp-per-read"
    reads_of_blocks = work.data.reads if by_warps else threads // WARP_SIZE if work.variant == ALONE else threads
    return Throughput(device, request, prediction, reads_of_blocks / prediction.blocks)


# ------------------------------------------------------------------ quantities derived from counters
def vote_phase(counters: Counters) -> float:
    """Return the warp execution efficiency of the selection of mutants."""
    return counters.at("other = i32(code(letters[first + p + v])) ^ change").derived()["warp_execution_efficiency"]


@dataclass(frozen=True)
class Probes:
    """Queries of a Bloom filter, with the negative ones and the bits read.

    lines: 128-byte lines that the accesses of warps touch. requests: of warps. A query that reaches the eighth hash function
    counts as positive.
    """

    queries: int
    negative: int
    bits: int
    lines: int
    requests: int

    @property
    def bits_a_negative(self) -> float:
        return (self.bits - 8 * (self.queries - self.negative)) / self.negative

    @staticmethod
    def from_counters(counters: Counters, k: int = K) -> Probes:
        # RS, the first hash function, has one multiplication a letter, DEK is the eighth
        first = counters.at("a *= 378551").total("thread_instructions") // k
        last = counters.at("h = (h << 5) ^ (h >> 27)").total("thread_instructions") // (4 * k)
        words = counters.at("word = bits[bit >> 5]")
        bits, requests = words.total("global_load_bytes") // 4, words.total("global_load_requests")
        return Probes(first, first - last, bits, words.total("global_load_lines"), requests)
