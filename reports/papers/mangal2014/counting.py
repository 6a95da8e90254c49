"""What the emulator counts of each step of Mangal and Jain on reads like theirs, by the rules of the card they profiled."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np
from simtbed import Counters, Device, DeviceArray, devices
from simtbed.kernels.correction.host import pipeline
from simtbed.kernels.correction.host.generate import genome, simulate
from simtbed.kernels.correction.host.problem import Corrected, FilterName, Parameters, Reads
from simtbed.runtime.registry import EngineName

from ...launchers import Runner
from ...requests import only_request
from ..predicted import pace
from ..ren2018.profiled import floors
from .profiled import LENGTH, SEED, K

CARD, TIMED = devices.K20m, devices.M2090
"""Which was profiled, and on which times were taken."""
MIN_MULTIPLICITY = 5
"""With K of the authors' own command line."""

ALONE, FEW = "one-lane-per-warp", 128


@dataclass(frozen=True)
class Data:
    """Reads of 36 bases of a random genome."""

    genome: int
    reads: int
    error_rate: float


@cache
def _counted_kmers(data: Data, engine: EngineName) -> tuple[Reads, pipeline.Solid]:
    reads = simulate(SEED, genome(SEED, data.genome), data.reads, (LENGTH, LENGTH), data.error_rate).reads
    counter = pipeline.Counter(K, Runner(engine))
    counter.add(reads.text)
    return reads, counter.solid(MIN_MULTIPLICITY)


@cache
def corrected(variant: str, data: Data, engine: EngineName, split: int | None = None) -> tuple[Corrected, Counters]:
    """What a variant makes of the reads, and its counters. split: of the filter `split-first`, None for the standard one.

    Where one lane a warp works, of the first reads only: it takes 32 times as many warps.
    """
    reads, solid = _counted_kmers(data, engine)
    if variant == ALONE:
        reads = reads.subset(0, min(data.reads, FEW))
    filter_name: FilterName = "split-first" if split else "bloom"
    parameters = Parameters(K, MIN_MULTIPLICITY, filter=filter_name, split=split or 16)
    filter = pipeline.Filter.build(solid, parameters, Runner(engine), words=False)
    runner = Runner(engine, CARD, counting=True)
    found = pipeline.correct(reads, filter, parameters, variant, runner)
    assert runner.counters is not None  # it was asked for
    return found, runner.counters


SOLID = 2_250_000
"""K-mers of both strands of which a filter has the paper's 18 MB."""
REGISTERS = {"thread-per-read": 85, "warp-per-read": 56}
"""The paper's, on a K20m."""


@dataclass(frozen=True)
class Going:
    """How a variant goes on a GPU that is full of reads. nanoseconds: of a read; low, high: from and to. hits: of L2, of what
    the filter is asked."""

    nanoseconds: float
    low: float
    high: float
    bound: str
    dram_bandwidth: float
    hits: float


@cache
def going(variant: str, data: Data, engine: EngineName, device: Device, split: int | None = None) -> Going:
    """By the time model, with the paper's registers as far as the device allows. The filter is filled up to the paper's size with
    k-mers that no read has, for how large it is decides what L2 holds of it."""
    reads, solid = _counted_kmers(data, engine)
    own = solid.keys.numpy()[: solid.total]
    others = np.random.default_rng(SEED).integers(0, 1 << 2 * K, max(SOLID - len(own), 0), dtype=np.uint64)
    filled = pipeline.Solid(DeviceArray(np.concatenate([own, others])), len(own) + len(others), solid.histogram)
    filter_name: FilterName = "split-first" if split else "bloom"
    parameters = Parameters(K, MIN_MULTIPLICITY, filter=filter_name, split=split or 16)
    filter = pipeline.Filter.build(filled, parameters, Runner(engine), words=False)
    request = only_request(lambda launcher: pipeline.correct(reads, filter, parameters, variant, launcher))
    registers = min(REGISTERS.get(variant, device.registers_per_thread), device.registers_per_thread)
    found = pace(request, device, registers, engine, whole_l2=True)
    threads = found.blocks * request.block[0]
    # A warp takes one read after the other where there are more reads than warps.
    done = data.reads if variant == "warp-per-read" else threads // 32 if variant == ALONE else threads
    each = 1e3 * found.blocks / done
    low, high = found.interval
    return Going(
        each * found.microseconds, each * low, each * high, found.estimate.bound, found.dram_bandwidth,
        found.hit_rate(request, "bits"),
    )  # fmt: skip


def counted(variant: str, data: Data, engine: EngineName, split: int | None = None) -> Counters:
    """The counters of `corrected`."""
    return corrected(variant, data, engine, split)[1]


def least(counters: Counters, reads: int) -> tuple[float, str]:
    """(nanoseconds a read that the M2090 takes at least, the resource that takes them)."""
    found = floors(counters, reads, TIMED)
    bound = max(found, key=lambda name: found[name])
    return found[bound], bound
