"""`simtbed bench align`: the comparisons of Ren 2019 by counters, and the throughput of every variant on a GPU.

On the emulator, the counters behind Figures 8 and 9 of Ren 2019: barrier steps of a block, warp instructions, accesses of
stage 2, sectors of the two layouts. On a GPU, billions of cells per second by length and number of pairs.
"""

import statistics
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from simtbed import Counters, Kernel, Result, launch
from simtbed.engines.cuda.engine import describe
from simtbed.kernels import Launcher
from simtbed.kernels.alignment import FAMILY
from simtbed.kernels.alignment.host.generate import generate
from simtbed.kernels.alignment.host.problem import Problem
from simtbed.runtime.registry import EngineName

from .. import tables
from ..launchers import Runner, require_engine
from ..printing import print_text
from ..terminal import announced

LENGTHS = (64, 128, 192, 256, 320, 384, 448, 512, 576)
"""Lengths of both sequences, as in the paper."""
MIXED = (300, 520)
"""Shortest and longest sequences of the third situation of the paper."""
COUNTS = (25, 100, 1_000)
"""Numbers of pairs, as in the paper."""
MANY = 100_000
"""Pairs that fill a current GPU; only `packed` is designed for this number."""
COUNTED = 25
"""Counted pairs."""
DIFFERENT = 1_000
"""Generated pairs; larger problems repeat them."""
TIMED = ("wide-diagonal-major-runs", "passes-diagonal-major-runs", "pairalign", "packed")
KERNEL, BARRIERS = "intratask_vectors", 2
"""The kernel of stage 1 of the paper's variants, and its barriers per step."""

Row = dict[str, Any]


def bench(engine: EngineName, repeat: int, json: bool) -> int:
    """Measure medians of `repeat` runs with cuda, else count on the engine."""
    require_engine(engine)
    if engine == "cuda":
        content: Row = {**describe(), "measured": measured(repeat, LENGTHS)}
        print_text(tables.as_json(content) if json else _speed(content, repeat))
        return 0
    first, second = counted(LENGTHS, engine)
    if json:
        print_text(tables.as_json({"stage_1": first, "stage_2": second}))
        return 0
    print_text(f"Stage 1 on the emulator, {COUNTED} pairs of equal lengths\n\n{_table(first)}\n")
    print_text(f"Stage 2 on the emulator, {COUNTED} pairs of equal sequences\n\n{_table(second)}")
    return 0


# ------------------------------------------------------------------ on the emulator
def counted(lengths: Iterable[int], engine: EngineName) -> tuple[list[Row], list[Row]]:
    """Return the rows of stage 1 and stage 2 for the variants of the paper, by length."""
    first, second = [], []
    for length in lengths:
        problem = generate(length, COUNTED, (length, length), (length, length))
        equal = replace(problem, alternates=problem.references, alternate_offsets=problem.reference_offsets)
        for blocks in ("wide", "passes"):
            with announced(f"{blocks}, {length} bases"):
                diagonal = _stage(problem, f"{blocks}-diagonal-major-runs", KERNEL, engine)
                rows = _stage(problem, f"{blocks}-row-major-runs", KERNEL, engine)
            totals, warps = diagonal.totals(), -(-length // 32) if blocks == "wide" else 4
            first.append({
                "variant": blocks,
                "length": length,
                "steps of a block": totals["barriers"] // (BARRIERS * COUNTED * warps),
                "instructions per cell": 32 * totals["warp_instructions"] / problem.cells,
                "idle lanes": 1 - _busy(diagonal),
                "sectors/store, diagonal-major": _sectors(diagonal),
                "sectors/store, row-major": _sectors(rows),
            })  # fmt: skip
        loads = {
            moves: _stage(equal, f"wide-diagonal-major-{moves}", "traceback", engine).at("moves[place.x")
            for moves in ("runs", "steps")
        }
        second.append({
            "length": length,
            **{f"loads per pair, {moves}": _lanes(loads[moves]) / COUNTED for moves in loads},
        })  # fmt: skip
    return first, second


def _stage(problem: Problem, variant: str, kernel: str, engine: EngineName) -> Counters:
    """Return the counters of a kernel, summed over the launches of a variant."""
    runner = Runner(engine, counting=True)
    FAMILY.solve(problem, variant, runner)
    return runner.counters_of(kernel)


def _sectors(counters: Counters) -> float:
    moves = counters.at("moves[place.x").totals()
    return moves["global_store_sectors"] / moves["global_store_requests"]


def _lanes(counters: Counters) -> int:
    return counters.totals()["global_load_bytes"] // 4


def _busy(counters: Counters) -> float:
    """Return the fraction of lanes with a cell over all steps. Every warp executes the barriers of every step."""
    totals = counters.totals()
    cells = counters.at("moves[place.x").totals()["global_store_bytes"] // 4
    return BARRIERS * cells / (32 * totals["barriers"])


# ------------------------------------------------------------------ on a GPU
def measured(repeat: int, lengths: Iterable[int]) -> list[Row]:
    """Measure throughput by length, number of pairs and variant, also for mixed lengths as in the paper."""
    rows = []
    for shortest, longest in (*((length, length) for length in lengths), MIXED):
        different = generate(longest, DIFFERENT, (shortest, longest), (shortest, longest))
        name = f"{shortest}-{longest}" if shortest != longest else str(longest)
        for count, variants in (*((count, TIMED) for count in COUNTS), (MANY, ("packed",))):
            problem = repeated(different, count)
            for variant in variants:
                with announced(f"{variant}, {count:,} pairs of {name} bases"):
                    rows.append(
                        {"variant": variant, "lengths": name, "pairs": count, **timed(problem, variant, repeat)}
                    )
    return rows


def timed(problem: Problem, variant: str, repeat: int) -> Row:
    """Return medians of both stages, kernels only, after a warm-up run."""
    times: list[tuple[float, float]] = []
    for _ in range(repeat + 1):
        stages = Stages()
        FAMILY.solve(problem, variant, stages)
        times.append((stages.milliseconds["stage 1"], stages.milliseconds["stage 2"]))
    first, second = (statistics.median(column) for column in zip(*times[1:], strict=True))
    return {
        "GCUPS, stage 1": problem.cells / first / 1e6,
        "ms, stage 2": second,
        "GCUPS, both": problem.cells / (first + second) / 1e6,
    }


class Stages(Launcher):
    """A launcher for a GPU that sums the time of each stage, in milliseconds."""

    def __init__(self) -> None:
        self.milliseconds = {"stage 1": 0.0, "stage 2": 0.0}

    def launch(self, kernel: Kernel, **arguments: Any) -> Result:
        result = launch(kernel, engine="cuda", counters=False, **arguments)
        stage = "stage 2" if kernel.__name__ == "traceback" else "stage 1"
        self.milliseconds[stage] += result.milliseconds or 0.0
        return result


def repeated(problem: Problem, count: int) -> Problem:
    """Repeat the pairs of a problem cyclically up to `count`."""
    pairs = list(problem.pairs())
    return Problem.from_pairs(pairs[p % len(pairs)] for p in range(count))


# ------------------------------------------------------------------ output
def _table(rows: list[Row]) -> str:
    def shown(name: str, value: Any) -> Any:
        if not isinstance(value, float):
            return value
        return f"{100 * value:.1f} %" if name == "idle lanes" else f"{value:,.2f}"

    return tables.table(list(rows[0]), [[shown(n, v) for n, v in row.items()] for row in rows])


def _speed(content: Row, repeat: int) -> str:
    return (
        f"{content['device']}, kernels only, median of {repeat} runs; pairs beyond {DIFFERENT:,} repeat\n\n"
        f"{_table(content['measured'])}"
    )
