"""Hit rates and bytes of device memory of the timed launches, as Nsight Compute counts them, and the model's beside them."""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from simtbed import LaunchError, SimtbedError
from simtbed.model.traffic import Traffic

from . import nsight

_LOADS = "l1tex__t_sectors_pipe_lsu_mem_global_op_ld"
_L2 = "lts__t_sectors_srcunit_tex"
METRICS = (
    f"{_LOADS}.sum", f"{_LOADS}_lookup_hit.sum", f"{_L2}.sum", f"{_L2}_lookup_hit.sum",
    "dram__bytes_read.sum", "dram__bytes_write.sum",
)  # fmt: skip
"""What the figures are made of."""
MORE = (
    "gpu__time_duration.sum", "sm__cycles_elapsed.max", "smsp__inst_executed.sum", "l1tex__t_sector_hit_rate.pct",
    "lts__t_sector_hit_rate.pct", "lts__t_sectors.sum", "lts__t_sectors_op_read.sum", "lts__t_sectors_op_write.sum",
    f"{_L2}_op_read.sum", f"{_L2}_op_read_lookup_hit.sum", "lts__t_sectors_srcunit_ltcfabric.sum",
    "sm__warps_active.avg.pct_of_peak_sustained_active", "l1tex__data_bank_conflicts_pipe_lsu.sum",
)  # fmt: skip
"""What else is kept, where the GPU has it."""
NAMES = ("l1_hit", "l2_hit", "dram_bytes")
Figures = dict[str, float]


AT_ONCE = 120
"""Launches of one run of Nsight Compute: what it counted is kept after each."""


def take(ncu: Path, names: Sequence[str], cases: Sequence[str]) -> Iterator[dict[str, dict[str, Any]]]:
    """Of the second launch of each case, by name, some at a time: the figures with warm caches, and under "cold" those with
    emptied ones and, under "metrics", all that was counted then. One launch of each kernel comes first, so that work which is
    ended has something of all.

    cases: functions of the launches, "MODULE:FUNCTION". Raises UnavailableError and LaunchError.
    """
    first = {name.split(" ")[0]: name for name in reversed(names)}
    ordered = sorted(names, key=lambda name: first[name.split(" ")[0]] != name)
    metrics: tuple[str, ...] = (*METRICS, *MORE)
    for start in range(0, len(ordered), AT_ONCE):
        some = ordered[start : start + AT_ONCE]
        warm = _taken(ncu, some, cases, METRICS, nsight.WARM)
        try:
            cold = _taken(ncu, some, cases, metrics, nsight.COLD)
        except LaunchError:  # ncu ends where it does not know a metric
            if metrics == METRICS:
                raise
            metrics = METRICS
            cold = _taken(ncu, some, cases, metrics, nsight.COLD)
        yield {
            name: {**figures(warm[name]), "cold": {**figures(found), "metrics": found}}
            for name, found in cold.items()
            if name in warm
        }


def _taken(
    ncu: Path, names: Sequence[str], cases: Sequence[str], metrics: tuple[str, ...], caches: Sequence[str]
) -> dict[str, dict[str, float]]:
    with tempfile.TemporaryDirectory(prefix="simtbed-") as folder:
        listed, log = Path(folder, "names.json"), Path(folder, "log.txt")
        listed.write_text(json.dumps(names), encoding="utf-8")
        command = [sys.executable, "-m", "simtbed.reports.hardware.timed_process", str(log), str(listed), *cases]
        profiles = nsight.measure(ncu, command, metrics, caches=caches)
        named = log.read_text(encoding="utf-8").splitlines()
    if len(profiles) == 2 * len(named):  # the first launch of each too
        profiles = profiles[1::2]
    if len(profiles) != len(named):
        raise SimtbedError(f"Nsight Compute saw {len(profiles)} launches, not {len(named)}")
    return dict(zip(named, profiles, strict=True))


def figures(metrics: Mapping[str, float]) -> Figures:
    """Hit rates, 0 to 1, and bytes."""
    loads, l1_hits, asked, l2_hits, read, written = (metrics.get(name, 0.0) for name in METRICS)
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
