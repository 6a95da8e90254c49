"""What is compared: every figure with its name in the emulator, in Nsight Compute, and how near they shall be."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Goal = Literal["equal", "5 %", "2 points", "shown"]


@dataclass(frozen=True)
class Figure:
    """One figure of a kernel. counter: the emulator's, where it has the same meaning. metric: Nsight Compute's, summed
    over launches; or opcodes, whose executions by warps are summed. goal: "shown" is not judged."""

    name: str
    goal: Goal
    counter: str = ""
    metric: str = ""
    opcodes: tuple[str, ...] = ()


_GLOBAL = {"load": "ld", "store": "st", "atomic": "atom", "reduction": "red"}
_SHARED = {"load": "ld", "store": "st", "atomic": "atom"}

FIGURES: tuple[Figure, ...] = (
    *(
        Figure(f"global_{kind}_{what}", "equal", f"global_{kind}_{what}", f"l1tex__t_{what}_pipe_lsu_mem_global_op_{op}.sum")
        for kind, op in _GLOBAL.items()
        for what in ("requests", "sectors")
    ),
    *(
        Figure(f"shared_{kind}_{what}", "equal", f"shared_{kind}_{what}", f"l1tex__data_{metric}_mem_shared_op_{op}.sum")
        for kind, op in _SHARED.items()
        for what, metric in (("wavefronts", "pipe_lsu_wavefronts"), ("conflicts", "bank_conflicts_pipe_lsu"))
    ),
    Figure("barriers", "equal", "barriers", opcodes=("BAR",)),
    Figure("shuffles", "equal", "shuffles", opcodes=("SHFL",)),
    Figure("local_loads", "shown", "local_loads", "l1tex__t_requests_pipe_lsu_mem_local_op_ld.sum"),
    Figure("local_stores", "shown", "local_stores", "l1tex__t_requests_pipe_lsu_mem_local_op_st.sum"),
    Figure("branches", "shown", "branches", "smsp__sass_branch_targets.sum"),
    Figure("warp_instructions", "5 %", metric="smsp__inst_executed.sum"),
    Figure("thread_instructions", "shown", metric="smsp__thread_inst_executed.sum"),
    Figure("warp_execution_efficiency", "2 points"),
    Figure("registers", "equal", metric="launch__registers_per_thread"),
    Figure("occupancy", "equal", metric="sm__maximum_warps_per_active_cycle_pct"),
)  # fmt: skip
PIPE_METRIC = "smsp__inst_executed_pipe_{pipe}.sum"
A_LAUNCH = ("registers", "occupancy")
"""Figures that every launch of a kernel has alike; the others are summed."""
