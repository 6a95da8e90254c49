"""Columns of the counter table, and the named counters computed from them.

Counts are int64[site, column], summed over all blocks. A site is one statement of the final program. The
definitions are the hardware's.
"""

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

Counts = npt.NDArray[np.int64]

WARPS, LANES, REQUESTS, SECTORS, LINES, WAVEFRONTS, CONFLICTS, DIVERGENT = range(8)
"""Columns. WARPS: executions by a warp with an active lane. LANES: active lanes, summed over them.
REQUESTS, SECTORS, LINES: of global memory, 32-byte sectors and 128-byte lines where the device has them.
WAVEFRONTS, CONFLICTS: of shared memory. DIVERGENT: executions of a branch whose active lanes diverge."""
COLUMNS = 8
RULES = 5
"""Version of the counting rules. Raise it with every change of counts, whether here, in the passes or in the machine's
rules; a test compares the counts of every feature. It is not the version of the package, which may change without the counts."""

GLOBAL = ("global_load", "global_store", "global_atomic", "global_reduction")
SHARED = ("shared_load", "shared_store", "shared_atomic")
PLAIN = (
    "local_load", "local_store", "constant_load", "texture_load", "shuffle", "vote", "barrier", "syncwarp", "fence",
)  # fmt: skip
MATRIX = ("mma_f16", "mma_bf16", "mma_tf32", "mma_f64", "mma_s8", "mma_u8", "mma_e4m3", "mma_e5m2")
CLASSES = (
    "alu", "imul", "idiv", "fp32", "fp64", "fdiv", "sfu", "convert", "memory", "atomic", "shuffle", "vote", "barrier", "control", "tensor",
)  # fmt: skip

MEANING: dict[str, str] = {
    "warp_instructions": "instructions executed by warps, from the IR",
    "thread_instructions": "instructions executed by threads: warp instructions times active lanes",
    **{f"warp_instructions.{c}": f"instructions of issue class {c}, executed by warps" for c in CLASSES},
    "branches": "executions of if, while and for tests by warps",
    "divergent_branches": "executions whose active lanes diverged",
    **{f"{kind}_requests": "memory instructions of warps" for kind in GLOBAL},
    **{f"{kind}_sectors": "32-byte sectors accessed" for kind in GLOBAL},
    **{f"{kind}_lines": "128-byte lines accessed" for kind in GLOBAL},
    **{f"{kind}_bytes": "bytes requested by active lanes" for kind in GLOBAL},
    **{f"{kind}_requests": "memory instructions of warps" for kind in SHARED},
    **{f"{kind}_wavefronts": "wavefronts" for kind in SHARED},
    **{f"{kind}_conflicts": "wavefronts added by bank conflicts" for kind in SHARED},
    **{f"{kind}s": "executions by warps" for kind in PLAIN},
    **{kind: f"matrix multiply-accumulates of {kind[4:]} operands (A), executed by warps" for kind in MATRIX},
    "shuffles": "executions by warps, one for each 4 bytes of the value",
}

_SHORT = {"load": "ld", "store": "st", "atomic": "atom", "reduction": "red"}
_OPERATION = {kind: _SHORT[kind.split("_")[1]] for kind in (*GLOBAL, *SHARED)}
METRIC: dict[str, str] = {
    "warp_instructions": "smsp__inst_executed.sum",
    "thread_instructions": "smsp__thread_inst_executed.sum",
    "branches": "smsp__sass_branch_targets.sum",
    "divergent_branches": "smsp__sass_branch_targets_threads_divergent.sum",
    **{
        f"{kind}_{what}": f"l1tex__t_{what}_pipe_lsu_mem_global_op_{_OPERATION[kind]}.sum"
        for what in ("requests", "sectors")
        for kind in GLOBAL
    },
    **{
        f"{kind}_{what}": f"l1tex__data_{metric}_mem_shared_op_{_OPERATION[kind]}.sum"
        for what, metric in (("wavefronts", "pipe_lsu_wavefronts"), ("conflicts", "bank_conflicts_pipe_lsu"))
        for kind in SHARED
    },
    "local_loads": "l1tex__t_requests_pipe_lsu_mem_local_op_ld.sum",
    "texture_loads": "smsp__inst_executed_pipe_tex.sum",
    "local_stores": "l1tex__t_requests_pipe_lsu_mem_local_op_st.sum",
    "warp_execution_efficiency": "smsp__thread_inst_executed_per_inst_executed.pct",
    "branch_efficiency": "smsp__sass_average_branch_targets_threads_uniform.pct",
    "global_load_efficiency": "smsp__sass_average_data_bytes_per_sector_mem_global_op_ld.pct",
    "global_store_efficiency": "smsp__sass_average_data_bytes_per_sector_mem_global_op_st.pct",
    **{
        f"{kind}_sectors_per_request": f"l1tex__average_t_sectors_per_request_pipe_lsu_mem_global_op_{_OPERATION[kind]}.ratio"
        for kind in GLOBAL
    },
}
"""The name of a counter or a derived metric in Nsight Compute, if it has one."""

DERIVED: dict[str, str] = {
    "warp_execution_efficiency": "active lanes per warp instruction, of 32",
    "branch_efficiency": "fraction of branches without divergence",
    "global_load_efficiency": "requested bytes per byte of the sectors moved",
    "global_store_efficiency": "requested bytes per byte of the sectors moved",
    **{f"{kind}_sectors_per_request": "sectors per request" for kind in GLOBAL},
    "shared_efficiency": "conflict-free wavefronts per wavefront executed",
    "arithmetic_intensity": "floating-point operations per byte of global sectors; an fma counts once",
}
"""Metrics of `Counters.derived`."""


def by_site(kind: str, size: int, costs: dict[str, int], row: Counts) -> Iterator[tuple[str, int]]:
    """Yield the named counters of one site."""
    warps, lanes = int(row[WARPS]), int(row[LANES])
    instructions = sum(costs.values())
    yield "warp_instructions", warps * instructions
    yield "thread_instructions", lanes * instructions
    for name, count in costs.items():
        yield f"warp_instructions.{name}", warps * count
    if kind == "branch" and not instructions:  # of the loops in place of one instruction, such as a bulk copy
        return
    if kind == "branch":
        yield "branches", warps
        yield "divergent_branches", int(row[DIVERGENT])
    elif kind in GLOBAL:
        yield f"{kind}_requests", int(row[REQUESTS])
        yield f"{kind}_sectors", int(row[SECTORS])
        yield f"{kind}_lines", int(row[LINES])
        yield f"{kind}_bytes", lanes * size
    elif kind in SHARED:
        yield f"{kind}_requests", int(row[REQUESTS])
        yield f"{kind}_wavefronts", int(row[WAVEFRONTS])
        yield f"{kind}_conflicts", int(row[CONFLICTS])
    elif kind == "shuffle":
        yield "shuffles", warps * max(size // 4, 1)
    elif kind in MATRIX:
        yield kind, warps
    elif kind in PLAIN:
        yield f"{kind}s", warps
