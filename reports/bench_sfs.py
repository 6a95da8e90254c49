"""`simtbed bench sfs`: site frequency spectra a second on this machine's GPU or, without one, on the jit engine."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
from numba import njit
from simtbed.emulator import Result, SimtbedError, devices, launch
from simtbed.emulator.engines.engine import Request
from simtbed.emulator.lang import Kernel
from simtbed.emulator.launch import EngineName
from simtbed.kernels.sfs import FAMILY, pipeline
from simtbed.kernels.sfs.generate import generate
from simtbed.kernels.sfs.problem import Floats

from . import tables
from .bench import Figure
from .running import obstacle, progress

SIZES = (64, 256, 1024, 4096)
"""Individuals."""
EVERYWHERE = ("tiled", "reduction-shared")
"""Measured at every size; the other variants at one."""
OTHERS_AT = 256
DIFFERENT = 64
"""Sites that are generated; the problem repeats them."""
BYTES = {"cuda": 1 << 28, "jit": 1 << 20}
"""Of a problem's likelihoods: enough sites to fill a GPU, few enough for an emulator."""


def bench(repeat: int, json: bool) -> int:
    """Measure and print: the kernels of a whole problem, normalisation included, medians of `repeat` launches each."""
    if repeat < 1:
        raise SimtbedError(f"--repeat is a positive number of rounds, not {repeat}")
    engine: EngineName = "jit" if obstacle("cuda") else "cuda"
    rows = []
    for individuals in SIZES:
        chosen = list(FAMILY.variants) if individuals == OTHERS_AT else EVERYWHERE
        for variant in sorted(chosen, key=lambda name: name not in EVERYWHERE):
            with progress(f"{variant}, {individuals} individuals"):
                rows.append(measured(variant, individuals, engine, repeat))
        with progress(f"one core, {individuals} individuals"):
            rows.append(one_core(individuals, repeat))
    notes = [
        f"median (least-most) of {repeat}; sites: {DIFFERENT} generated ones, repeated; transfers and packing left out",
        "fma: 2 N^2 a site, what the top merges need; peak: the H200's 132 SMs x 64 a clock x 1.98 GHz",
        "one core: the same reduction as a plain loop, compiled by Numba",
    ]
    if json:
        print(tables.as_json({"engine": engine, "rows": rows, "notes": notes}))
    else:
        print(_table(rows) + "\n\n" + "\n".join(notes))
    return 0


def measured(variant: str, individuals: int, engine: EngineName, repeat: int) -> dict[str, Any]:
    """Seconds of a variant's launches, each timed by itself, and what follows from them."""
    sites = max(1, BYTES[engine] // (24 * individuals))
    few = generate(1, DIFFERENT, individuals).likelihoods
    problem = generate(1, 1, individuals)
    problem = type(problem)(np.resize(few, (sites, *few.shape[1:])), ["1"] * sites, np.arange(1, sites + 1))
    timers: list[Callable[[], list[float]]] = []

    def timed(kernel: Kernel, **how: Any) -> Result:
        result = launch(kernel, engine=engine, counters=False, **how)
        timers.append(lambda: _seconds(result.request, engine, repeat))
        return result

    pipeline.solve(problem, variant, timed)
    seconds = [sum(each) for each in zip(*(timer() for timer in timers), strict=True)]
    return _row(variant, engine, individuals, sites, seconds)


def _seconds(request: Request, engine: EngineName, repeat: int) -> list[float]:
    """Of each of `repeat` launches after a first one: of the kernel alone on a GPU."""
    if engine == "cuda":
        from simtbed.emulator.engines.cuda_run import CudaEngine

        return [ms / 1e3 for ms in CudaEngine().time(request, repeat)]
    from simtbed.emulator.engines.jit import JitEngine

    one = JitEngine()
    return _rounds(lambda: one.run(request), repeat)


def _rounds(action: Callable[[], object], repeat: int) -> list[float]:
    action()
    taken = []
    for _ in range(repeat):
        begin = time.perf_counter()
        action()
        taken.append(time.perf_counter() - begin)
    return taken


def _row(variant: str, where: str, individuals: int, sites: int, seconds: Iterable[float]) -> dict[str, Any]:
    taken = list(seconds)
    fma = 2 * individuals**2 * sites / statistics.median(taken)
    rates = devices.H200.rates
    peak = devices.H200.sms * rates.fp64 * devices.H200.clock * 1e6
    return {
        "variant": variant,
        "where": where,
        "individuals": individuals,
        "sites": sites,
        "milliseconds": 1e3 * statistics.median(taken),
        "sites_a_second": Figure.of([sites / each for each in taken]).__dict__,
        "fma_a_second": fma,
        "share_of_peak": fma / peak if where == "cuda" else None,
    }


# ------------------------------------------------------------------ one core
def one_core(individuals: int, repeat: int) -> dict[str, Any]:
    """The reduction as a scalar loop, of as many sites as take a moment."""
    sites = max(1, (1 << 25) // individuals**2)
    vectors = np.ascontiguousarray(generate(1, sites, individuals).likelihoods)
    return _row("plain loop", "one core", individuals, sites, _rounds(lambda: _reduce(vectors), repeat))


@njit(cache=True)
def _reduce(vectors: Floats) -> float:
    """The products of all sites by pairwise merges, plain doubles scaled by their largest; their sum of entries."""
    sites, individuals, _ = vectors.shape
    checksum = 0.0
    for site in range(sites):
        source, target = np.zeros(3 * individuals), np.zeros(3 * individuals)
        source[:] = vectors[site].copy().reshape(-1)
        group = 1
        while group < individuals:
            for first in range(0, individuals, 2 * group):
                a, c = first // group * (2 * group + 1), first // (2 * group) * (4 * group + 1)
                b = a + 2 * group + 1
                n = 2 * min(group, individuals - first) + 1
                m = 2 * min(group, max(individuals - first - group, 0)) + 1
                if m == 1:
                    target[c : c + n] = source[a : a + n]
                    continue
                target[c : c + n + m - 1] = 0.0
                for i in range(n):
                    x = source[a + i]
                    for j in range(m):
                        target[c + i + j] += x * source[b + j]
                largest = target[c : c + n + m - 1].max()
                for k in range(n + m - 1):
                    target[c + k] /= largest
            source, target = target, source
            group *= 2
        checksum += source[: 2 * individuals + 1].sum()
    return checksum


def _table(rows: list[dict[str, Any]]) -> str:
    headers = ["variant", "where", "individuals", "sites", "ms", "thousand sites a second", "T fma/s", "of f64 peak"]
    cells = [
        [
            r["variant"], r["where"], r["individuals"], r["sites"], f"{r['milliseconds']:.3f}",
            Figure(**r["sites_a_second"]).shown(2, 1e3), f"{r['fma_a_second'] / 1e12:.4f}",
            "" if r["share_of_peak"] is None else f"{100 * r['share_of_peak']:.1f} %",
        ]
        for r in rows
    ]  # fmt: skip
    return tables.table(headers, cells, left=2)
