"""What `simtbed bench align` measures: the paper's comparisons on counters, and every variant's speed on a GPU.

On the emulator, Figures 8 and 9 of Ren 2019 as counts, which is what decides them: the steps a block waits through and
the instructions warps issue, the accesses of stage 2, the sectors of the two layouts. On a GPU, billions of cells a
second by length and number of pairs.
"""

from __future__ import annotations

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
from ..terminal import progress

LENGTHS = (64, 128, 192, 256, 320, 384, 448, 512, 576)
"""Of both sequences: the paper's."""
MIXED = (300, 520)
"""Shortest and longest haplotype and reference of the paper's third situation."""
COUNTS = (25, 100, 1_000)
"""Pairs: the paper's."""
MANY = 100_000
"""Pairs that fill a GPU of today; only `packed` is made for so many."""
COUNTED = 25
"""Pairs whose counters are taken."""
DIFFERENT = 1_000
"""Pairs that are made; larger problems repeat them."""
TIMED = ("wide-diagonal-major-runs", "passes-diagonal-major-runs", "pairalign", "packed")

Row = dict[str, Any]


def bench(engine: EngineName, repeat: int, json: bool) -> int:
    """With cuda, measure: the median of `repeat` runs. Else count on that engine."""
    require_engine(engine)
    if engine == "cuda":
        content: Row = {**describe(), "measured": measured(repeat, LENGTHS)}
        print(tables.as_json(content) if json else _speed(content, repeat))
        return 0
    first, second = counted(LENGTHS, engine)
    if json:
        print(tables.as_json({"stage_1": first, "stage_2": second}))
        return 0
    print(f"Stage 1 on the emulator, {COUNTED} pairs of equal lengths\n\n{_table(first)}\n")
    print(f"Stage 2 on the emulator, {COUNTED} pairs of equal sequences\n\n{_table(second)}")
    return 0


# ------------------------------------------------------------------ on the emulator
def counted(lengths: Iterable[int], engine: EngineName) -> tuple[list[Row], list[Row]]:
    """(stage 1, stage 2) of the paper's variants, by length."""
    first, second = [], []
    for length in lengths:
        problem = generate(length, COUNTED, (length, length), (length, length))
        equal = replace(problem, alternates=problem.references, alternate_offsets=problem.reference_offsets)
        for blocks in ("wide", "passes"):
            with progress(f"{blocks}, {length} bases"):
                diagonal = _stage(problem, f"{blocks}-diagonal-major-runs", "intratask", engine)
                rows = _stage(problem, f"{blocks}-row-major-runs", "intratask", engine)
            found, warps = diagonal.totals(), -(-length // 32) if blocks == "wide" else 4
            first.append({
                "variant": blocks,
                "length": length,
                "steps of a block": found["barriers"] // (COUNTED * warps),
                "instructions a cell": 32 * found["warp_instructions"] / problem.cells,
                "idle lanes": 1 - _busy(diagonal),
                "sectors a store, diagonal-major": _sectors(diagonal),
                "sectors a store, row-major": _sectors(rows),
            })  # fmt: skip
        looks = {
            moves: _stage(equal, f"wide-diagonal-major-{moves}", "traceback", engine).at("moves[place.x")
            for moves in ("runs", "steps")
        }
        second.append({
            "length": length,
            **{f"looks a pair, {moves}": _lanes(looks[moves]) / COUNTED for moves in looks},
        })  # fmt: skip
    return first, second


def _stage(problem: Problem, variant: str, kernel: str, engine: EngineName) -> Counters:
    """What a kernel counted over the launches of a variant."""
    runner = Runner(engine, counting=True)
    FAMILY.solve(problem, variant, runner)
    found = [counters for program, counters in runner.counted if program.kernel.name == kernel]
    return sum(found[1:], found[0])


def _sectors(counters: Counters) -> float:
    moves = counters.at("moves[place.x").totals()
    return moves["global_store_sectors"] / moves["global_store_requests"]


def _lanes(counters: Counters) -> int:
    return counters.totals()["global_load_bytes"] // 4


def _busy(counters: Counters) -> float:
    """Lanes that compute a cell, of those of every warp at every step: all of them meet at the barrier."""
    found = counters.totals()
    cells = counters.at("moves[place.x").totals()["global_store_bytes"] // 4
    return cells / (32 * found["barriers"])


# ------------------------------------------------------------------ on a GPU
def measured(repeat: int, lengths: Iterable[int]) -> list[Row]:
    """Speed by length, pairs and variant, and of lengths as the paper's haplotypes have them."""
    rows = []
    for shortest, longest in (*((length, length) for length in lengths), MIXED):
        different = generate(longest, DIFFERENT, (shortest, longest), (shortest, longest))
        name = f"{shortest}-{longest}" if shortest != longest else str(longest)
        for count, variants in (*((count, TIMED) for count in COUNTS), (MANY, ("packed",))):
            problem = repeated(different, count)
            for variant in variants:
                with progress(f"{variant}, {count:,} pairs of {name} bases"):
                    rows.append(
                        {"variant": variant, "lengths": name, "pairs": count, **timed(problem, variant, repeat)}
                    )
    return rows


def timed(problem: Problem, variant: str, repeat: int) -> Row:
    """Medians of both stages, kernels only; the first run, which loads the kernels, is left out."""
    taken: list[tuple[float, float]] = []
    for _ in range(repeat + 1):
        stages = Stages()
        FAMILY.solve(problem, variant, stages)
        taken.append((stages.milliseconds["stage 1"], stages.milliseconds["stage 2"]))
    first, second = (statistics.median(column) for column in zip(*taken[1:], strict=True))
    return {
        "GCUPS, stage 1": problem.cells / first / 1e6,
        "ms, stage 2": second,
        "GCUPS, both": problem.cells / (first + second) / 1e6,
    }


class Stages(Launcher):
    """A launcher for a GPU that adds up the milliseconds of each stage."""

    def __init__(self) -> None:
        self.milliseconds = {"stage 1": 0.0, "stage 2": 0.0}

    def launch(self, kernel: Kernel, **arguments: Any) -> Result:
        result = launch(kernel, engine="cuda", counters=False, **arguments)
        stage = "stage 2" if kernel.__name__ == "traceback" else "stage 1"
        self.milliseconds[stage] += result.milliseconds or 0.0
        return result


def repeated(problem: Problem, count: int) -> Problem:
    """So many pairs: those of the problem, over and over."""
    pairs = list(problem.pairs())
    return Problem.of(pairs[p % len(pairs)] for p in range(count))


# ------------------------------------------------------------------ what is printed
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
