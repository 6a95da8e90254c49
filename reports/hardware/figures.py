"""Compared metrics: names in the emulator and in Nsight Compute, and tolerances."""

from dataclasses import dataclass
from typing import Literal

from simtbed.profiler.events import GLOBAL, METRIC, SHARED

Goal = Literal["equal", "5 %", "2 points", "shown"]


@dataclass(frozen=True)
class Figure:
    """A metric of a kernel. counter: the emulator's, if it has the same meaning. metric: Nsight Compute's, summed over
    launches; or opcodes: warp executions are summed. goal: the tolerance; "shown" has none."""

    name: str
    goal: Goal
    counter: str = ""
    metric: str = ""
    opcodes: tuple[str, ...] = ()


FIGURES: tuple[Figure, ...] = (
    *(
        Figure(f"{kind}_{what}", "equal", f"{kind}_{what}", METRIC[f"{kind}_{what}"])
        for kind in GLOBAL
        for what in ("requests", "sectors")
    ),
    *(
        Figure(f"{kind}_{what}", "equal", f"{kind}_{what}", METRIC[f"{kind}_{what}"])
        for kind in SHARED
        for what in ("wavefronts", "conflicts")
    ),
    Figure("barriers", "equal", "barriers", opcodes=("BAR",)),
    Figure("shuffles", "equal", "shuffles", opcodes=("SHFL",)),
    Figure("local_loads", "shown", "local_loads", METRIC["local_loads"]),
    Figure("local_stores", "shown", "local_stores", METRIC["local_stores"]),
    Figure("branches", "shown", "branches", METRIC["branches"]),
    Figure("warp_instructions", "5 %", metric=METRIC["warp_instructions"]),
    Figure("thread_instructions", "shown", metric=METRIC["thread_instructions"]),
    Figure("warp_execution_efficiency", "2 points"),
    Figure("registers", "equal", metric="launch__registers_per_thread"),
    Figure("occupancy", "equal", metric="sm__maximum_warps_per_active_cycle_pct"),
)  # fmt: skip
PIPE_METRIC = "smsp__inst_executed_pipe_{pipe}.sum"
A_LAUNCH = ("registers", "occupancy")
"""Metrics with one value for all launches of a kernel; the others are summed."""
