"""`simtbed bench sfs`: site frequency spectra per second on a GPU."""

import statistics
from collections.abc import Iterable
from dataclasses import asdict
from typing import Any

import numpy as np
from simtbed import devices
from simtbed.kernels.sfs import FAMILY
from simtbed.kernels.sfs.host import pipeline
from simtbed.kernels.sfs.host.generate import generate
from simtbed.kernels.sfs.host.problem import Problem
from simtbed.oracles.sfs_loop import reduced
from simtbed.runtime.registry import EngineName

from .. import tables
from ..launchers import Runner, kernel_times, require_gpu, wall_times
from ..printing import print_text
from ..terminal import announced
from .emulation import Statistics

Row = dict[str, Any]

SIZES = (64, 256, 1024, 4096)
"""Individuals."""
EVERYWHERE = ("tiled", "reduction-shared-scaled")
"""Variants measured at every size; the others at one size."""
OTHERS_AT = 256
DIFFERENT = 64
"""Generated sites; the problem repeats them."""
BYTES = 1 << 27
"""Bytes of the likelihoods of a problem, enough to fill a GPU."""
LOOP_PRODUCTS = 1 << 25
"""Products of the scalar loop: sites x individuals squared."""


def bench(engine: EngineName, repeat: int, json: bool) -> int:
    """Measure the kernels of complete problems, including normalisation. Raises UnavailableError on an emulator."""
    require_gpu(engine, "sfs", "lu2012")
    rows = []
    for individuals in SIZES:
        chosen = list(FAMILY.variants) if individuals == OTHERS_AT else EVERYWHERE
        for variant in sorted(chosen, key=lambda name: name not in EVERYWHERE):
            with announced(f"{variant}, {individuals} individuals"):
                rows.append(measured(variant, individuals, repeat))
        with announced(f"one core, {individuals} individuals"):
            rows.append(one_core(individuals, repeat))
    notes = [
        f"median (min-max) of {repeat}; sites: {DIFFERENT} generated, repeated; without transfers and packing",
        "fma: 2 N^2 per site, the leading term of the reduction; peak of an H200: 132 SMs x 64 per clock x 1.98 GHz",
        "one core: the same reduction as a loop compiled by Numba",
    ]
    if json:
        print_text(tables.as_json({"rows": rows, "notes": notes}))
    else:
        print_text(_table(rows) + "\n\n" + "\n".join(notes))
    return 0


def measured(variant: str, individuals: int, repeat: int) -> Row:
    """Time a variant on a problem that fills the GPU: summed kernel milliseconds of `repeat` rounds after a warm-up round."""
    sites = max(1, BYTES // (24 * individuals))
    few = generate(1, DIFFERENT, individuals).likelihoods
    problem = Problem(np.resize(few, (sites, *few.shape[1:])), ["1"] * sites, np.arange(1, sites + 1))
    vectors, scale = problem.vectors()

    def solve(runner: Runner) -> None:
        pipeline.normalised(problem, pipeline.VARIANTS[variant](vectors, runner), scale, runner)

    return _row(variant, "GPU", individuals, sites, kernel_times(solve, repeat))


def _row(variant: str, machine: str, individuals: int, sites: int, milliseconds: Iterable[float]) -> Row:
    samples = [each / 1e3 for each in milliseconds]
    fma = 2 * individuals**2 * sites / statistics.median(samples)
    rates = devices.H200.rates
    peak = devices.H200.sms * rates.fp64 * devices.H200.clock * 1e6
    return {
        "variant": variant,
        "where": machine,
        "individuals": individuals,
        "sites": sites,
        "milliseconds": 1e3 * statistics.median(samples),
        "sites_a_second": asdict(Statistics.from_samples([sites / each for each in samples])),
        "fma_a_second": fma,
        "share_of_peak": fma / peak if machine == "GPU" else None,
    }


# ------------------------------------------------------------------ one core
def one_core(individuals: int, repeat: int) -> Row:
    """Time the scalar loop."""
    sites = max(1, LOOP_PRODUCTS // individuals**2)
    vectors = np.ascontiguousarray(generate(1, sites, individuals).likelihoods)
    times = wall_times(lambda: reduced(vectors, skip=False, scaled=True), repeat)
    return _row("plain loop", "one core", individuals, sites, times)


def _table(rows: list[Row]) -> str:
    headers = [
        "variant", "where", "individuals", "sites", "ms", "thousand sites/s", "T fma/s", "fraction of H200 peak",
    ]  # fmt: skip
    cells = [
        [
            r["variant"], r["where"], r["individuals"], r["sites"], f"{r['milliseconds']:.3f}",
            Statistics(**r["sites_a_second"]).shown(2, 1e3), f"{r['fma_a_second'] / 1e12:.4f}",
            "" if r["share_of_peak"] is None else f"{100 * r['share_of_peak']:.1f} %",
        ]
        for r in rows
    ]  # fmt: skip
    return tables.table(headers, cells, left=2)
