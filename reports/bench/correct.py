"""`simtbed bench correct`: throughput of read correction on a GPU."""

import math
import statistics
from collections.abc import Callable
from typing import Any

from simtbed.engines.cuda.engine import describe
from simtbed.kernels.correction import FAMILY
from simtbed.kernels.correction.host import pipeline
from simtbed.kernels.correction.host.generate import genome, simulate
from simtbed.kernels.correction.host.problem import FilterName, Parameters, Reads
from simtbed.runtime.registry import EngineName

from .. import tables
from ..launchers import Runner, require_gpu
from ..printing import print_text
from ..terminal import announced

GENOME, READS = 1_125_000, 2_000_000
"""The solid k-mers fill a filter of 18 MB, as in the paper, at 64 bits each."""
LENGTH, ERROR_RATE, SEED = 36, 0.01, 1
FILTERS: tuple[FilterName, ...] = ("exact", "bloom", "blocked")


def bench(engine: EngineName, repeat: int, json: bool) -> int:
    """Measure millions of reads per second. Raises UnavailableError on an emulator."""
    require_gpu(engine, "correct", "mangal2014")
    measured = measure(simulate(SEED, genome(SEED, GENOME), READS, (LENGTH, LENGTH), ERROR_RATE).reads, repeat, Runner)
    if json:
        print_text(tables.as_json({"device": describe()["device"], **measured}))
        return 0
    print_text(
        f"{describe()['device']}: {READS:,} reads of {LENGTH} bases, {100 * ERROR_RATE:g} % errors, genome of {GENOME:,}\n"
    )
    print_text(text(measured))
    return 0


def measure(reads: Reads, repeat: int, runner: Callable[[EngineName], Runner]) -> dict[str, Any]:
    """Time the kernels: the spectrum once, then every variant with every filter, medians of `repeat` rounds."""
    counting = runner("cuda")
    with announced("the spectrum"):
        counter = pipeline.Counter(Parameters().k, counting)
        counter.add(reads.text)
        solid = counter.solid(Parameters().min_multiplicity)
    rows = []
    for name in FILTERS:
        parameters = Parameters(filter=name)
        filter = pipeline.Filter.build(solid, parameters, runner("cuda"), words=True)
        for variant in FAMILY.variants:
            with announced(f"{variant}, {name}"):
                rows.append(_measured(reads, filter, parameters, variant, repeat, runner))
    counted = {"solid": solid.total, "milliseconds": counting.milliseconds}
    return {"reads": len(reads), "spectrum": counted, "correction": rows}


def _measured(
    reads: Reads, filter: pipeline.Filter, parameters: Parameters, variant: str, repeat: int,
    runner: Callable[[EngineName], Runner],
) -> dict[str, Any]:  # fmt: skip
    times = []
    for _ in range(repeat + 1):  # the first run compiles
        launcher = runner("cuda")
        corrected = pipeline.correct(reads, filter, parameters, variant, launcher)
        times.append(launcher.milliseconds or math.nan)
    times = times[1:]
    return {
        "variant": variant,
        "filter": parameters.filter,
        "milliseconds": statistics.median(times),
        "least": min(times),
        "most": max(times),
        "reads_a_second": 1000 * len(reads) / statistics.median(times),
        "kept": int((corrected.flags == ord("F")).sum()),
    }


def text(measured: dict[str, Any]) -> str:
    """Return the measurement as a table."""
    rows, spectrum = measured["correction"], measured["spectrum"]
    base = {row["filter"]: row["milliseconds"] for row in rows if row["variant"] == "warp-per-read"}
    cells = [
        [
            row["variant"], row["filter"], f"{row['reads_a_second'] / 1e6:,.1f}",
            f"{row['milliseconds']:,.2f} ({row['least']:,.2f}-{row['most']:,.2f})",
            f"{base[row['filter']] / row['milliseconds']:.2f}", row["kept"],
        ]
        for row in rows
    ]  # fmt: skip
    headers = ["kernels only", "filter", "million reads/s", "ms (least-most)", "to warp-per-read", "reads kept"]
    rate = measured["reads"] / spectrum["milliseconds"] / 1000
    note = f"spectrum: {rate:,.1f} million reads/s counted; {spectrum['solid']:,} solid k-mers of both strands"
    return f"{tables.table(headers, cells, left=2)}\n\n{note}"
