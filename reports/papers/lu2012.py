"""What Lu 2012 says of its kernels, beside what the emulator counts of them on the paper's card, a Tesla C2070.

Its seconds cannot be had without the card; what they came from can: multiplications, memory traffic, divergence,
occupancy, barriers.
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

from .. import tables
from ..launchers import Runner

DEVICE = devices.C2070
INDIVIDUALS, SITES = 128, 32
"""Of what is counted: a power of two, as the paper's formulas have it, and the sites of a warp."""
IMPOSSIBLE = 1e-6
"""Likelihoods below it are zeros, as those of deep sequencing become in the paper's data."""
DEPTH = 20.0
BLOCKS = (16, 32, 64, 128, 192, 256, 512, 736)
"""Coefficients of b in shared memory: Fig. 10's 504 bytes a warp to 12,024."""

Row = dict[str, Any]


def vectors(depth: float = 3.0, impossible: float = 0.0) -> Floats:
    """What is multiplied; likelihoods not above `impossible` are 0."""
    found = likelihoods(1, SITES, INDIVIDUALS, depth)
    return np.where(found <= impossible, 0.0, found)


def counted(variant: str, given: Floats, engine: EngineName) -> Counters:
    """The counters of a variant's products, without normalisation."""
    return _counters(lambda runner: pipeline.VARIANTS[variant](given, runner), engine)


def _counters(run: Callable[[Runner], object], engine: EngineName) -> Counters:
    runner = Runner(engine, DEVICE, counting=True)
    run(runner)
    counters = runner.counters
    assert counters is not None  # it was asked for
    return counters


def traffic(counters: Counters) -> int:
    """Bytes of global memory moved."""
    return counters.sector * (counters.total("global_load_sectors") + counters.total("global_store_sectors"))


# ------------------------------------------------------------------ the tables
def work(engine: EngineName) -> list[Row]:
    """Section 3.3: multiplications a site by the paper's formulas, and those that are counted."""
    n, given = INDIVIDUALS, vectors()
    iterative = counted("iterative-carried", given, engine)
    products = sum(
        iterative.at(line).total("warp_instructions.fp64")
        for line in ("st.fma(q0, x, owed)", "st.fma(q1, x, owed_after)")
    )
    merged = counted("reduction", given, engine).at("target[at] = st.fma(").total("global_store_bytes") // 8
    return [
        {"variant": "iterative-carried", "paper": 3 * n * n - 3, "counted": products * WARP // SITES},
        {"variant": "reduction", "paper": 2 * n * n + 2 * n * int(math.log2(n)) - n - 1, "counted": merged // SITES},
    ]


def memory(engine: EngineName) -> list[Row]:
    """Section 3.4, Figs. 7 and 12: what shared memory saves."""
    rows = []
    for variant in ("iterative-carried", "reduction", "reduction-shared"):
        counters = counted(variant, vectors(), engine)
        rows.append(
            {
                "variant": variant,
                "global bytes a site": traffic(counters) // SITES,
                "global requests a site": (
                    counters.total("global_load_requests") + counters.total("global_store_requests")
                )
                // SITES,
                "shared wavefronts a site": (
                    counters.total("shared_load_wavefronts") + counters.total("shared_store_wavefronts")
                )
                // SITES,
            }
        )
    return rows


def skipping(engine: EngineName) -> list[Row]:
    """Fig. 9: zeros skipped or not; without warp order it cannot help (section 5.2)."""
    given = vectors(DEPTH, IMPOSSIBLE)
    rows = []
    for variant in (
        "reduction-shared",
        "reduction-shared-skip",
        "reduction-shared-block",
        "reduction-shared-skip-block",
    ):
        counters = counted(variant, given, engine)
        rows.append(
            {
                "variant": variant,
                "warp instructions a site": counters.total("warp_instructions") // SITES,
                "divergent branches a site": counters.total("divergent_branches") // SITES,
                "lanes of 32": round(32 * counters.derived()["warp_execution_efficiency"], 1),
            }
        )
    return rows


def buffers(engine: EngineName) -> list[Row]:
    """Fig. 10: shared memory a warp, what it costs in occupancy, what it saves in traffic."""
    given, rows = vectors(), []
    for block in BLOCKS:
        size = shared_bytes(WARP, block)
        found = occupancy(DEVICE, THREADS, 0, size * THREADS // WARP)
        how = Merging(WARP, block)
        counters = _counters(lambda runner, how=how: pipeline.reduced(given, runner, how), engine)  # type: ignore[misc]
        rows.append(
            {
                "shared bytes a warp": size,
                "occupancy": f"{found.percent:.1f} %",
                "limited by": found.limiter,
                "global bytes a site": traffic(counters) // SITES,
                "warp instructions a site": counters.total("warp_instructions") // SITES,
            }
        )
    return rows


def order(engine: EngineName) -> list[Row]:
    """Fig. 11: merges in warp order and with explicit barriers; a block's barrier stops every one of its warps."""
    given, rows = vectors(), []
    for variant in ("reduction", "reduction-block", "reduction-shared", "reduction-shared-block"):
        counters = counted(variant, given, engine)
        rows.append(
            {
                "variant": variant,
                "barriers a site": counters.total("barriers") // SITES,
                "syncwarps a site": counters.total("syncwarps") // SITES,
                "warp instructions a site": counters.total("warp_instructions") // SITES,
                "lanes of 32": round(32 * counters.derived()["warp_execution_efficiency"], 1),
            }
        )
    return rows


@dataclass(frozen=True)
class Table:
    """One of them. claim: what the paper says."""

    claim: str
    rows: Callable[[EngineName], list[Row]]
    left: int = 1


TABLES = {
    "work": Table("Section 3.3, multiplications: iterative 3 N^2 - 3, reduction 2 N^2 + 2 N log2 N - N - 1", work),
    "memory": Table("Fig. 7: it is shared memory that makes the reduction fast", memory),
    "skipping": Table("Fig. 9: skipping zeros lowers instructions and raises divergent branches", skipping),
    "buffers": Table("Fig. 10: occupancy is the same from 504 to 2,296 bytes a warp, then falls", buffers, 0),
    "order": Table("Fig. 11: warp order is faster than explicit barriers", order),
}


def as_json(engine: EngineName) -> str:
    """Every table."""
    content = {name: {"claim": table.claim, "rows": table.rows(engine)} for name, table in TABLES.items()}
    return tables.as_json({"device": DEVICE.name, "individuals": INDIVIDUALS, "sites": SITES, **content})


def as_text(engine: EngineName) -> str:
    """Every table, its claim above it."""
    parts = [f"Lu 2012 on a {DEVICE.name}: {INDIVIDUALS} individuals, {SITES} sites; products only"]
    for table in TABLES.values():
        rows = table.rows(engine)
        parts.append(
            f"{table.claim}\n\n" + tables.table(list(rows[0]), [list(row.values()) for row in rows], table.left)
        )
    return "\n\n".join(parts)
