"""Hit rates and bytes of device memory of timed launches, by Nsight Compute and by the model."""

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
"""Metrics of the hit rates and bytes."""
MORE = (
    "gpu__time_duration.sum", "sm__cycles_elapsed.max", "smsp__inst_executed.sum", "l1tex__t_sector_hit_rate.pct",
    "lts__t_sector_hit_rate.pct", "lts__t_sectors.sum", "lts__t_sectors_op_read.sum", "lts__t_sectors_op_write.sum",
    f"{_L2}_op_read.sum", f"{_L2}_op_read_lookup_hit.sum", "lts__t_sectors_srcunit_ltcfabric.sum",
    "sm__warps_active.avg.pct_of_peak_sustained_active", "l1tex__data_bank_conflicts_pipe_lsu.sum",
)  # fmt: skip
"""Further recorded metrics, if the GPU has them."""
NAMES = ("l1_hit", "l2_hit", "dram_bytes")
Figures = dict[str, float]


AT_ONCE = 120
"""Launches of one run of Nsight Compute; results are saved after each run."""


def take(ncu: Path, names: Sequence[str], cases: Sequence[str]) -> Iterator[dict[str, dict[str, Any]]]:
    """Yield metrics of the second launch of each case, by name, in groups of AT_ONCE: hit rates and bytes with warm
    caches, and under "cold" those with empty caches, with all metrics under "metrics". One launch of each kernel is
    first, so that an interrupted run covers all kernels.

    cases: functions of the launches, "MODULE:FUNCTION". Raises UnavailableError and LaunchError.
    """
    first = {name.split(" ")[0]: name for name in reversed(names)}
    ordered = sorted(names, key=lambda name: first[name.split(" ")[0]] != name)
    metrics: tuple[str, ...] = (*METRICS, *MORE)
    for start in range(0, len(ordered), AT_ONCE):
        some = ordered[start : start + AT_ONCE]
        warm = _measured(ncu, some, cases, METRICS, nsight.WARM)
        try:
            cold = _measured(ncu, some, cases, metrics, nsight.COLD)
        except LaunchError:  # ncu stops at an unknown metric
            if metrics == METRICS:
                raise
            metrics = METRICS
            cold = _measured(ncu, some, cases, metrics, nsight.COLD)
        yield {
            name: {**figures(warm[name]), "cold": {**figures(found), "metrics": found}}
            for name, found in cold.items()
            if name in warm
        }


def _measured(
    ncu: Path, names: Sequence[str], cases: Sequence[str], metrics: tuple[str, ...], caches: Sequence[str]
) -> dict[str, dict[str, float]]:
    with tempfile.TemporaryDirectory(prefix="simtbed-") as folder:
        listed, log = Path(folder, "names.json"), Path(folder, "log.txt")
        listed.write_text(json.dumps(names), encoding="utf-8")
        command = [sys.executable, "-m", "simtbed.reports.hardware.timed_process", str(log), str(listed), *cases]
        profiles = nsight.measure(ncu, command, metrics, caches=caches)
        named = log.read_text(encoding="utf-8").splitlines()
    if len(profiles) == 2 * len(named):  # both launches of each case
        profiles = profiles[1::2]
    if len(profiles) != len(named):
        raise SimtbedError(f"Nsight Compute saw {len(profiles)} launches, not {len(named)}")
    return dict(zip(named, profiles, strict=True))


def figures(metrics: Mapping[str, float]) -> Figures:
    """Return hit rates, 0 to 1, and bytes."""
    loads, l1_hits, requests, l2_hits, read, written = (metrics.get(name, 0.0) for name in METRICS)
    return {
        "l1_hit": l1_hits / loads if loads else 0.0,
        "l2_hit": l2_hits / requests if requests else 0.0,
        "dram_bytes": read + written,
    }


def of_model(traffic: Traffic) -> Figures:
    """Return the same values of the model."""
    return {"l1_hit": traffic.l1_hit, "l2_hit": traffic.l2_hit, "dram_bytes": float(traffic.dram_bytes)}


def within(pairs: Iterable[tuple[Figures, Figures]]) -> dict[str, float]:
    """Return, of pairs (model, measured), the fraction within 4 points of L1's hit rate, 5 points of L2's, and 10 % or
    1 MB of the bytes."""
    launches = list(pairs)
    if not launches:
        return {}

    fits = {
        "l1_hit": [abs(m["l1_hit"] - g["l1_hit"]) <= 0.04 for m, g in launches],
        "l2_hit": [abs(m["l2_hit"] - g["l2_hit"]) <= 0.05 for m, g in launches],
        "dram_bytes": [abs(m["dram_bytes"] - g["dram_bytes"]) <= max(0.1 * g["dram_bytes"], 1e6) for m, g in launches],
    }
    return {name: sum(of) / len(of) for name, of in fits.items()}
