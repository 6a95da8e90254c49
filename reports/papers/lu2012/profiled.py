"""Claims of Lu 2012 on its kernels, compared with counters by the rules of a Tesla C2070.

The times need the GPU; multiplications, memory traffic, divergence, occupancy and barriers, their causes, do not.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from simtbed import Counters, devices
from simtbed.kernels.sfs.host import pipeline
from simtbed.kernels.sfs.host.generate import likelihoods
from simtbed.kernels.sfs.host.pipeline import THREADS, Merging
from simtbed.kernels.sfs.host.problem import Floats
from simtbed.kernels.sfs.reduction_shared import shared_bytes
from simtbed.kernels.sfs.wide import WARP
from simtbed.machine.occupancy import occupancy
from simtbed.runtime.registry import EngineName

from ... import tables
from ...launchers import Runner

DEVICE = devices.C2070
INDIVIDUALS, SITES = 128, 32
"""Problem size: a power of two, as in the formulas of the paper, and the sites of a warp."""
IMPOSSIBLE = 1e-6
"""Threshold below which likelihoods are zero, as in deep sequencing."""
DEPTH = 20.0
BLOCKS = (16, 32, 64, 128, 192, 256, 512, 736)
"""Coefficients of b in shared memory; 504 to 12,024 bytes per warp in Fig. 10."""

Row = dict[str, Any]


def vectors(depth: float = 3.0, impossible: float = 0.0) -> Floats:
    """Return the vectors of products; likelihoods up to `impossible` are 0."""
    values = likelihoods(1, SITES, INDIVIDUALS, depth)
    return np.where(values <= impossible, 0.0, values)


def counted(variant: str, problem: Floats, engine: EngineName) -> Counters:
    """Return the counters of a variant's products, without normalisation."""
    return _counters(lambda runner: pipeline.VARIANTS[variant](problem, runner), engine)


def _counters(run: Callable[[Runner], object], engine: EngineName) -> Counters:
    runner = Runner(engine, DEVICE, counting=True)
    run(runner)
    counters = runner.counters
    assert counters is not None  # requested above
    return counters


def traffic(counters: Counters) -> int:
    """Return the transferred bytes of global memory."""
    return counters.sector * (counters.total("global_load_sectors") + counters.total("global_store_sectors"))


# ------------------------------------------------------------------ the tables
def work(engine: EngineName) -> list[Row]:
    """Section 3.3: multiplications per site by the paper's formulas, and those that are counted."""
    n, problem = INDIVIDUALS, vectors()
    iterative = counted("iterative-carried", problem, engine)
    products = sum(
        iterative.at(line).total("warp_instructions.fp64")
        for line in ("st.fma(q0, x, owed)", "st.fma(q1, x, owed_after)")
    )
    merged = counted("reduction", problem, engine).at("target[at] = st.fma(").total("global_store_bytes") // 8
    return [
        {"variant": "iterative-carried", "paper": 3 * n * n - 3, "counted": products * WARP // SITES},
        {"variant": "reduction", "paper": 2 * n * n + 2 * n * int(math.log2(n)) - n - 1, "counted": merged // SITES},
    ]


def memory(engine: EngineName) -> list[Row]:
    """Section 3.4, Figs. 7 and 12: savings of shared memory."""
    rows = []
    for variant in ("iterative-carried", "reduction", "reduction-shared"):
        counters = counted(variant, vectors(), engine)
        rows.append(
            {
                "variant": variant,
                "global bytes per site": traffic(counters) // SITES,
                "global requests per site": (
                    counters.total("global_load_requests") + counters.total("global_store_requests")
                )
                // SITES,
                "shared wavefronts per site": (
                    counters.total("shared_load_wavefronts") + counters.total("shared_store_wavefronts")
                )
                // SITES,
            }
        )
    return rows


def skipping(engine: EngineName) -> list[Row]:
    """Fig. 9: zeros skipped or not; no gain without warp order (section 5.2)."""
    problem = vectors(DEPTH, IMPOSSIBLE)
    rows = []
    for variant in (
        "reduction-shared",
        "reduction-shared-skip",
        "reduction-shared-block",
        "reduction-shared-skip-block",
    ):
        counters = counted(variant, problem, engine)
        rows.append(
            {
                "variant": variant,
                "warp instructions per site": counters.total("warp_instructions") // SITES,
                "divergent branches per site": counters.total("divergent_branches") // SITES,
                "lanes of 32": round(32 * counters.derived()["warp_execution_efficiency"], 1),
            }
        )
    return rows


def buffers(engine: EngineName) -> list[Row]:
    """Fig. 10: shared memory per warp: occupancy and traffic."""
    problem, rows = vectors(), []
    for block in BLOCKS:
        size = shared_bytes(WARP, block)
        resident = occupancy(DEVICE, THREADS, 0, size * THREADS // WARP)
        how = Merging(WARP, block)
        counters = _counters(lambda runner, how=how: pipeline.reduced(problem, runner, how), engine)  # type: ignore[misc]
        rows.append(
            {
                "shared bytes per warp": size,
                "occupancy": f"{resident.percent:.1f} %",
                "limited by": resident.limiter,
                "global bytes per site": traffic(counters) // SITES,
                "warp instructions per site": counters.total("warp_instructions") // SITES,
            }
        )
    return rows


def order(engine: EngineName) -> list[Row]:
    """Fig. 11: merges in warp order and with explicit barriers."""
    problem, rows = vectors(), []
    for variant in ("reduction", "reduction-block", "reduction-shared", "reduction-shared-block"):
        counters = counted(variant, problem, engine)
        rows.append(
            {
                "variant": variant,
                "barriers per site": counters.total("barriers") // SITES,
                "syncwarps per site": counters.total("syncwarps") // SITES,
                "warp instructions per site": counters.total("warp_instructions") // SITES,
                "lanes of 32": round(32 * counters.derived()["warp_execution_efficiency"], 1),
            }
        )
    return rows


@dataclass(frozen=True)
class Table:
    """A table with the claim of the paper."""

    claim: str
    rows: Callable[[EngineName], list[Row]]
    left: int = 1


TABLES = {
    "work": Table("Section 3.3, multiplications: iterative 3 N^2 - 3, reduction 2 N^2 + 2 N log2 N - N - 1", work),
    "memory": Table("Fig. 7: shared memory makes the reduction fast", memory),
    "skipping": Table("Fig. 9: skipping zeros lowers instructions and raises divergent branches", skipping),
    "buffers": Table("Fig. 10: occupancy is the same from 504 to 2,296 bytes per warp, then falls", buffers, 0),
    "order": Table("Fig. 11: warp order is faster than explicit barriers", order),
}


def as_json(engine: EngineName) -> str:
    """Return every table."""
    content = {name: {"claim": table.claim, "rows": table.rows(engine)} for name, table in TABLES.items()}
    return tables.as_json({"device": DEVICE.name, "individuals": INDIVIDUALS, "sites": SITES, **content})


def as_text(engine: EngineName) -> str:
    """Return every table with its claim as text."""
    paragraphs = [f"Lu 2012 on a {DEVICE.name}: {INDIVIDUALS} individuals, {SITES} sites; products only"]
    for table in TABLES.values():
        rows = table.rows(engine)
        paragraphs.append(
            f"{table.claim}\n\n" + tables.table(list(rows[0]), [list(row.values()) for row in rows], table.left)
        )
    return "\n\n".join(paragraphs)
