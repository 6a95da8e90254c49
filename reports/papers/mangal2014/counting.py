"""Counters of each step of Mangal and Jain 2014 on simulated reads, by the rules of the profiled GPU."""

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

GPU, TIMED = devices.K20m, devices.M2090
"""The profiled GPU, and the timed GPU."""
MIN_MULTIPLICITY = 5
"""K of the command line of the authors."""

ALONE, FEW = "one-lane-per-warp", 128


@dataclass(frozen=True)
class Data:
    """Simulated reads of 36 bases of a random genome."""

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
    runner = Runner(engine, GPU, counting=True)
    corrected_reads = pipeline.correct(reads, filter, parameters, variant, runner)
    assert runner.counters is not None  # requested above
    return corrected_reads, runner.counters


SOLID = 2_250_000
"""K-mers of both strands in a filter of 18 MB."""
REGISTERS = {"thread-per-read": 85, "warp-per-read": 56}
"""Registers in the paper, on a K20m."""


@dataclass(frozen=True)
class Throughput:
    """Predicted throughput of a variant on a fully occupied GPU.

    nanoseconds: per read, with interval low to high. hits: L2 hit rate of filter queries.
    """

    nanoseconds: float
    low: float
    high: float
    bound: str
    dram_bandwidth: float
    hits: float


@cache
def throughput(variant: str, data: Data, engine: EngineName, device: Device, split: int | None = None) -> Throughput:
    """Predict with the time model and the registers of the paper, up to the limit of the device. Random k-mers fill the filter to
    the size of the paper: its size determines the L2 hit rate."""
    reads, solid = _counted_kmers(data, engine)
    own = solid.keys.numpy()[: solid.total]
    padding = np.random.default_rng(SEED).integers(0, 1 << 2 * K, max(SOLID - len(own), 0), dtype=np.uint64)
    filled = pipeline.Solid(DeviceArray(np.concatenate([own, padding])), len(own) + len(padding), solid.histogram)
    filter_name: FilterName = "split-first" if split else "bloom"
    parameters = Parameters(K, MIN_MULTIPLICITY, filter=filter_name, split=split or 16)
    filter = pipeline.Filter.build(filled, parameters, Runner(engine), words=False)
    request = only_request(lambda launcher: pipeline.correct(reads, filter, parameters, variant, launcher))
    registers = min(REGISTERS.get(variant, device.registers_per_thread), device.registers_per_thread)
    prediction = pace(request, device, registers, engine, whole_l2=True)
    threads = prediction.blocks * request.block[0]
    # A warp takes one read after the other where there are more reads than warps.
    reads_per_block = data.reads if variant == "warp-per-read" else threads // 32 if variant == ALONE else threads
    scale = 1e3 * prediction.blocks / reads_per_block
    low, high = prediction.interval
    return Throughput(
        scale * prediction.microseconds, scale * low, scale * high, prediction.estimate.bound, prediction.dram_bandwidth,
        prediction.hit_rate(request, "bits"),
    )  # fmt: skip


def counted(variant: str, data: Data, engine: EngineName, split: int | None = None) -> Counters:
    """Return the counters of `corrected`."""
    return corrected(variant, data, engine, split)[1]


def least(counters: Counters, reads: int) -> tuple[float, str]:
    """Return the lower bound of nanoseconds per read on the M2090, and the limiting resource."""
    bounds = floors(counters, reads, TIMED)
    bound = max(bounds, key=lambda name: bounds[name])
    return bounds[bound], bound
