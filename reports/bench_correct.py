"""How fast reads are corrected on this machine: kernels alone on a GPU, or as the jit engine emulates them."""

from __future__ import annotations

import statistics
import time
from dataclasses import dataclass
from typing import Any

from simtbed.emulator.engines.cuda_run import describe
from simtbed.emulator.launch import EngineName
from simtbed.kernels.correction import FAMILY, Parameters, pipeline
from simtbed.kernels.correction.generate import genome, simulate
from simtbed.kernels.correction.problem import Reads

from . import tables
from .running import Runner, obstacle, progress


@dataclass(frozen=True)
class Size:
    """A reference and its reads, all of 36 bases."""

    genome: int
    reads: int


ON_GPU = Size(1_125_000, 2_000_000)
"""As many solid k-mers as the paper's filter of 18 MB has room for, at 64 bits each."""
EMULATED = Size(12_000, 20_000)
LENGTH, ERROR_RATE, SEED = 36, 0.01, 1
FILTERS = ("exact", "bloom")


def bench(repeat: int, json: bool, size: Size | None = None) -> int:
    """Measure and print: medians of `repeat` rounds, in each of which every variant corrects all reads once."""
    engine: EngineName = "jit" if obstacle("cuda") else "cuda"
    size = size or (ON_GPU if engine == "cuda" else EMULATED)
    with progress(f"{size.reads:,} reads"):
        reads = simulate(SEED, genome(SEED, size.genome), size.reads, (LENGTH, LENGTH), ERROR_RATE).reads
    counting = Runner(engine)
    with progress("the spectrum"):
        start = time.perf_counter()
        counter = pipeline.Counter(Parameters().k, counting)
        counter.add(reads)
        solid = counter.solid(Parameters().min_multiplicity)
        seconds = time.perf_counter() - start if engine == "jit" else (counting.milliseconds or 0) / 1000
    spectrum = {"reads": len(reads), "solid": solid.total, "seconds": seconds, "reads_a_second": len(reads) / seconds}
    rows = []
    for name in FILTERS:
        parameters = Parameters(filter=name)  # type: ignore[arg-type]
        filter = pipeline.Filter.of(solid, parameters, Runner(engine), words=True)
        for variant in FAMILY.variants:
            with progress(f"{variant}, {name}"):
                rows.append(_measured(reads, filter, parameters, variant, engine, repeat))
    where = describe()["device"] if engine == "cuda" else "emulated, counting nothing"
    if json:
        print(tables.as_json({"where": where, "spectrum": spectrum, "correction": rows}))
        return 0
    note = "kernels only" if engine == "cuda" else "host work included"
    print(
        f"{where}: {len(reads):,} reads of {LENGTH} bases, {100 * ERROR_RATE:g} % errors, genome of {size.genome:,}, {note}\n"
    )
    print(_table(rows, solid.total) + "\n")
    print(
        f"spectrum: {spectrum['reads_a_second'] / 1e6:,.2f} million reads a second counted; {solid.total:,} solid k-mers"
    )
    return 0


def _measured(
    reads: Reads, filter: pipeline.Filter, parameters: Parameters, variant: str, engine: EngineName, repeat: int
) -> dict[str, Any]:
    taken = []
    corrected = None
    for _ in range(repeat + 1):  # the first one compiles
        runner, start = Runner(engine), time.perf_counter()
        corrected = pipeline.correct(reads, filter, parameters, variant, runner)
        taken.append(time.perf_counter() - start if runner.milliseconds is None else runner.milliseconds / 1000)
    assert corrected is not None
    return {
        "variant": variant,
        "filter": parameters.filter,
        "seconds": statistics.median(taken[1:]),
        "least": min(taken[1:]),
        "most": max(taken[1:]),
        "kept": int((corrected.flags == ord("F")).sum()),
        "reads_a_second": len(reads) / statistics.median(taken[1:]),
    }


def _table(rows: list[dict[str, Any]], solid: int) -> str:
    base = {row["filter"]: row["reads_a_second"] for row in rows if row["variant"] == "warp-per-read"}
    cells = [
        [
            row["variant"], row["filter"], f"{row['reads_a_second'] / 1e6:,.3f}",
            f"{1e3 * row['seconds']:,.2f} ({1e3 * row['least']:,.2f}-{1e3 * row['most']:,.2f})",
            f"{row['reads_a_second'] / base[row['filter']]:.2f}", row["kept"],
        ]
        for row in rows
    ]  # fmt: skip
    headers = ["variant", "filter", "million reads/s", "ms (least-most)", "to warp-per-read", "reads kept"]
    return tables.table(headers, cells, left=2)
