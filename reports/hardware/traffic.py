"""Hit rates and bytes of device memory of the timed launches, as Nsight Compute counts them, and the model's beside them."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from pathlib import Path

from simtbed import SimtbedError
from simtbed.model.caches import Traffic

from . import nsight
from .timing import Timed

_LOADS = "l1tex__t_sectors_pipe_lsu_mem_global_op_ld"
_L2 = "lts__t_sectors_srcunit_tex"
METRICS = (
    f"{_LOADS}.sum", f"{_LOADS}_lookup_hit.sum", f"{_L2}.sum", f"{_L2}_lookup_hit.sum",
    "dram__bytes_read.sum", "dram__bytes_write.sum",
)  # fmt: skip
NAMES = ("l1_hit", "l2_hit", "dram_bytes")
Figures = dict[str, float]


def take(ncu: Path, cases: Iterable[Timed], pattern: str) -> dict[str, Figures]:
    """Of the second launch of each case, by name. Raises UnavailableError and LaunchError."""
    named = list(cases)
    profiles = nsight.profile(ncu, [sys.executable, "-m", "simtbed.reports.hardware.timed_process", pattern], METRICS)
    if len(profiles) != 2 * len(named):
        raise SimtbedError(f"Nsight Compute saw {len(profiles)} launches, not {2 * len(named)}")
    return {case.name: figures(one.metrics) for case, one in zip(named, profiles[1::2], strict=True)}


def figures(metrics: Mapping[str, float]) -> Figures:
    """Hit rates, 0 to 1, and bytes."""
    loads, l1_hits, asked, l2_hits, read, written = (metrics[name] for name in METRICS)
    return {
        "l1_hit": l1_hits / loads if loads else 0.0,
        "l2_hit": l2_hits / asked if asked else 0.0,
        "dram_bytes": read + written,
    }


def of_model(traffic: Traffic) -> Figures:
    """The same of the model."""
    return {"l1_hit": traffic.l1_hit, "l2_hit": traffic.l2_hit, "dram_bytes": float(traffic.dram_bytes)}


def within(pairs: Iterable[tuple[Figures, Figures]]) -> dict[str, float]:
    """Of (model, measured), the share of launches within 4 points of L1's hit rate, 5 of L2's, and 10 % of the bytes.
    Less than a megabyte of device memory is as good as none."""
    found = list(pairs)
    if not found:
        return {}

    fits = {
        "l1_hit": [abs(m["l1_hit"] - g["l1_hit"]) <= 0.04 for m, g in found],
        "l2_hit": [abs(m["l2_hit"] - g["l2_hit"]) <= 0.05 for m, g in found],
        "dram_bytes": [abs(m["dram_bytes"] - g["dram_bytes"]) <= max(0.1 * g["dram_bytes"], 1e6) for m, g in found],
    }
    return {name: sum(of) / len(of) for name, of in fits.items()}
