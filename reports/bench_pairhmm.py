"""What `simtbed bench pairhmm` measures: the pair-HMM's variants by length, beside gpuPairHMM and on Ren 2018's sets.

On a GPU, trillions of cells a second (TCUPS) of the kernels alone. On the emulator, what decides them: instructions,
global and shared memory traffic a cell, barriers a pair.
"""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from simtbed.emulator import Counters, Result, SimtbedError, launch, launch_together, prepare_request
from simtbed.emulator.engines.cuda_run import CudaEngine, describe
from simtbed.emulator.engines.engine import Request
from simtbed.emulator.lang import Kernel
from simtbed.emulator.launch import EngineName
from simtbed.kernels.files import write
from simtbed.kernels.pairhmm import FAMILY, Problem
from simtbed.kernels.pairhmm.files import blocks, records
from simtbed.kernels.pairhmm.generate import equal_lengths, repeated

from . import ren2018, tables
from .commands import pairhmm
from .running import Runner, SideBySide, obstacle, progress

PEER = {
    32: 1.54, 48: 1.98, 64: 2.12, 96: 2.24, 112: 2.36, 128: 2.35, 192: 2.41, 224: 2.55, 256: 2.48, 448: 2.66, 512: 2.57,
    896: 2.78, 1024: 2.59,
}  # fmt: skip
"""TCUPS of gpuPairHMM's own benchmark on an H200 by length of read and haplotype, the best of its configurations."""
LENGTHS = tuple(PEER)
CEILING = {"wavefront": 3.7, "wavefront-rescaled": 5.3}
"""TCUPS of an H200 (132 SMs, 128 lanes, 1.98 GHz) that did nothing but issue a cell's instructions: 8 of floats and a
load; 5, a quarter of a load, and one for what a step shares."""
CELLS = 20_000_000_000
"""Of each problem that is timed by length, but no more than 1.5 million pairs."""
COUNTED = 64
"""Pairs whose counters are taken."""

INTERTASK_SETS = {number: (24 * number, 24 * number) for number in range(1, 7)}
"""Ren 2018, Table 1: length of read and haplotype."""
INTRATASK_SETS = dict(enumerate(((m, n) for m in (32, 64, 96, 128) for n in range(m, 257, 32)), 1))
"""Ren 2018, Table 3."""
REN_PAIRS = 500_000
RESCALED = "wavefront-rescaled"
LARGE = 2_900_000
"""Pairs that gpuPairHMM was measured with."""

Row = dict[str, Any]


def bench(engine: EngineName, repeat: int, pairs: int | None, source: Path | None, json: bool) -> int:
    """Measure or count. pairs: of each of Ren's sets."""
    reason = obstacle(engine)
    if reason:
        raise SimtbedError(f"the {engine} engine cannot run here: {reason}")
    if engine == "cuda":
        content: Row = {**describe(), "lengths": by_length(repeat), "Ren 2018": ren(repeat, pairs or REN_PAIRS)}
    else:
        content = {
            "lengths": counted_by_length(pairs or COUNTED, engine),
            "Ren 2018": counted_ren(pairs or COUNTED, engine),
        }
    content["files"] = by_file(engine, repeat, source, LARGE if engine == "cuda" else 0)
    with progress("Tables 2 and 4"):
        content["Ren 2018, Tables 2 and 4"] = ren2018.rows()
    if json:
        print(tables.as_json(content))
        return 0
    where = f"{content['device']}, kernels only, median of {repeat}" if engine == "cuda" else "counted on the emulator"
    print(f"Equal lengths of read and haplotype; {where}\n\n{_table(content['lengths'])}\n")
    print(f"Ren 2018, Tables 1 and 3; {where}\n\n{_table(content['Ren 2018'])}\n")
    print(f"wavefront-rescaled, {engine}; milliseconds, medians of {repeat}\n\n{_table(content['files'])}\n")
    print(f"Ren 2018, Tables 2 and 4, and ours\n\n{_table(content['Ren 2018, Tables 2 and 4'])}")
    return 0


# ------------------------------------------------------------------ on a GPU
@dataclass
class Timer:
    """A launcher that times each of its launches `repeat` times; milliseconds: the sum of the medians."""

    repeat: int
    milliseconds: float = 0.0
    engine: CudaEngine = field(default_factory=CudaEngine)

    def __call__(self, kernel: Kernel, **how: Any) -> Result:
        result = launch(kernel, engine="cuda", counters=False, **how)
        self.milliseconds += statistics.median(self.engine.time(result.request, self.repeat))
        return result


class Prepared:
    """A launcher that keeps what it is asked to launch side by side, in memory that a GPU can copy by itself."""

    def __init__(self) -> None:
        self.requests: list[Request] = []
        self.known: dict[int, tuple[Any, Any]] = {}

    def __call__(self, kernel: Kernel, **how: Any) -> Result:
        raise AssertionError("a launch on its own")

    def together(self, launches: Sequence[tuple[Kernel, Mapping[str, Any]]]) -> list[Result]:
        from simtbed.emulator.engines.cuda_together import page_locked

        def lasting(array: Any) -> Any:
            if not isinstance(array, np.ndarray):
                return array
            if id(array) not in self.known:
                self.known[id(array)] = array, page_locked(array)
            return self.known[id(array)][1]

        for kernel, how in launches:
            args = {name: lasting(value) for name, value in how["args"].items()}
            self.requests.append(prepare_request(kernel, **{**how, "args": args}))
        return launch_together(launches, engine="cuda")


def by_file(engine: EngineName, repeat: int, source: Path | None, large: int) -> list[Row]:
    """The given file or the example, and a problem of at least `large` pairs, if any: its copies."""
    problem = FAMILY.read(source) if source else FAMILY.example()
    pairs = int(problem.first_pairs[-1])
    works = [(str(source) if source else "the example", 1)]
    if large:
        copies = -(-large // pairs)
        works.append((f"{copies:,} copies of it", copies))
    return [{"file": name, **_file(problem, copies, engine, repeat)} for name, copies in works]


def _file(once: Problem, copies: int, engine: EngineName, repeat: int) -> Row:
    """Milliseconds: of the batch, laid out and in page-locked memory, to its sums, all transfers included; from problem to
    scores; and from file to file, in a process that is already warm."""
    problem = repeated(once, copies)
    row: Row = {"pairs": int(problem.first_pairs[-1]), "GCells": problem.cells / 1e9}
    if engine == "cuda":
        from simtbed.emulator.engines.cuda_together import run_together

        prepared = Prepared()
        FAMILY.solve(problem, RESCALED, prepared)
        row["launches"] = len(prepared.requests)
        row["batch"] = _median(lambda: run_together(prepared.requests), repeat)
        row["batch, TCUPS"] = problem.cells / row["batch"] / 1e9
        del prepared
    runner = SideBySide(engine) if engine == "cuda" else Runner(engine)
    row["solved"] = _median(lambda: FAMILY.solve(problem, RESCALED, runner), repeat)
    with tempfile.TemporaryDirectory() as folder:
        given, answer = Path(folder) / "given", Path(folder) / "answer"
        write(given, list(records(once)) * copies)
        row["MB"] = given.stat().st_size / 1e6
        row["parsed"] = _median(lambda: [None for _ in blocks(given)], repeat)
        row["file to file"] = _median(
            lambda: pairhmm(given, answer, RESCALED, engine, "gpupairhmm", False, False, False), repeat
        )
    return row


def _median(work: Callable[[], object], repeat: int) -> float:
    """Milliseconds, after a turn that is not timed."""
    taken = []
    for _ in range(repeat + 1):
        start = time.perf_counter()
        work()
        taken.append(1e3 * (time.perf_counter() - start))
    return statistics.median(taken[1:])


def _tera(problem: Problem, variant: str, repeat: int) -> float:
    timer = Timer(repeat)
    FAMILY.solve(problem, variant, timer)
    return problem.cells / timer.milliseconds / 1e9


def by_length(repeat: int, cells: int = CELLS) -> list[Row]:
    """TCUPS of both wavefronts for equal lengths."""
    rows = []
    for length in LENGTHS:
        problem = equal_lengths(length, max(1, min(cells // length**2, 1_500_000)), length, length)
        row: Row = {"length": length, "pairs": len(problem.pairs[0]), "gpuPairHMM": PEER.get(length)}
        for variant, ceiling in CEILING.items():
            with progress(f"{variant}, {length} bases"):
                tera = _tera(problem, variant, repeat)
            row[variant] = tera
            if length in PEER:
                row[f"{variant} / gpuPairHMM"] = tera / PEER[length]
            row[f"{variant} / ceiling"] = tera / ceiling
        rows.append(row)
    return rows


def ren(repeat: int, pairs: int) -> list[Row]:
    """GCUPS of every variant of Ren 2018 on the sets of its kind, and of the wavefronts on all of them."""
    rows = []
    for name, number, (m, n) in _ren_sets():
        problem = equal_lengths(number, pairs, m, n)
        row: Row = {"set": f"{name} {number}", "read": m, "haplotype": n, "pairs": len(problem.pairs[0])}
        for variant in _ren_variants(name):
            with progress(f"{variant}, {name} {number}"):
                row[f"{variant}, GCUPS"] = 1000 * _tera(problem, variant, repeat)
        rows.append(row)
    return rows


def _ren_sets() -> Iterable[tuple[str, int, tuple[int, int]]]:
    yield from (("intertask", number, lengths) for number, lengths in INTERTASK_SETS.items())
    yield from (("intratask", number, lengths) for number, lengths in INTRATASK_SETS.items())


def _ren_variants(name: str) -> list[str]:
    return [v for v in FAMILY.variants if v.startswith((name, "wavefront"))]


# ------------------------------------------------------------------ on the emulator
def counted_by_length(pairs: int, engine: EngineName) -> list[Row]:
    """What both wavefronts cost for equal lengths."""
    rows = []
    for length in LENGTHS:
        problem = equal_lengths(length, pairs, length, length)
        for variant in CEILING:
            with progress(f"{variant}, {length} bases"):
                rows.append({"length": length, "variant": variant, **costs(problem, variant, engine)})
    return rows


def counted_ren(pairs: int, engine: EngineName) -> list[Row]:
    """What every variant of Ren 2018 costs on the sets of its kind."""
    rows = []
    for name, number, (m, n) in _ren_sets():
        problem = equal_lengths(number, pairs, m, n)
        for variant in _ren_variants(name):
            with progress(f"{variant}, {name} {number}"):
                row: Row = {"set": f"{name} {number}", "read": m, "haplotype": n, "variant": variant}
                rows.append({**row, **costs(problem, variant, engine)})
    return rows


def costs(problem: Problem, variant: str, engine: EngineName) -> Row:
    """Counters of a variant by what it computes."""
    runner = Runner(engine, counting=True)
    FAMILY.solve(problem, variant, runner)
    counters: Counters = sum((c for _, c in runner.counted[1:]), runner.counted[0][1])
    found, cells = counters.totals(), problem.cells
    return {
        "instructions a cell": 32 * found["warp_instructions"] / cells,
        "global bytes a cell": 32 * (found["global_load_sectors"] + found["global_store_sectors"]) / cells,
        "shared bytes a cell": 128 * (found["shared_load_wavefronts"] + found["shared_store_wavefronts"]) / cells,
        "barriers a pair": found["barriers"] / len(problem.pairs[0]),
        "busy lanes": counters.derived()["warp_execution_efficiency"],
    }


# ------------------------------------------------------------------ what is printed
def _table(rows: list[Row]) -> str:
    names = list(dict.fromkeys(name for row in rows for name in row))
    return tables.table(names, [[_shown(row.get(name)) for name in names] for row in rows])


def _shown(cell: Any) -> Any:
    if cell is None:
        return ""
    return cell if not isinstance(cell, float) else f"{cell:,.2f}" if cell >= 1 else f"{cell:.3g}"
