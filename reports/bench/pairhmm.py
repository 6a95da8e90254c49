"""What `simtbed bench pairhmm` measures: the pair-HMM's variants by length, beside gpuPairHMM and on Ren 2018's sets.

On a GPU, trillions of cells a second (TCUPS) of the kernels alone. On the emulator, what decides them: instructions,
global and shared memory traffic a cell, barriers a pair.
"""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np
from simtbed import Counters, Kernel, Result, launch
from simtbed.engines.cuda.engine import CudaEngine, describe
from simtbed.ir.access import AccessKind
from simtbed.kernels import Launcher
from simtbed.kernels.files import write
from simtbed.kernels.pairhmm import FAMILY
from simtbed.kernels.pairhmm.host.files import blocks, lines, records
from simtbed.kernels.pairhmm.host.generate import equal_lengths, repeated
from simtbed.kernels.pairhmm.host.problem import Problem
from simtbed.runtime.engine import Request
from simtbed.runtime.registry import EngineName
from simtbed.runtime.request import prepare_request

from .. import tables
from ..cli.pairhmm import solve_file
from ..launchers import Runner, new_runner, require_engine
from ..papers.ren2018 import profiled
from ..terminal import progress

PEER = {
    32: 1.54, 48: 1.98, 64: 2.12, 96: 2.24, 112: 2.36, 128: 2.35, 192: 2.41, 224: 2.55, 256: 2.48, 448: 2.66, 512: 2.57,
    896: 2.78, 1024: 2.59,
}  # fmt: skip
"""TCUPS of gpuPairHMM's own benchmark on an H200 by length of read and haplotype, the best of its configurations."""
LENGTHS = tuple(PEER)
CEILING = {"wavefront-loaded": 3.6, "wavefront-rescaled": 5.3}
"""TCUPS of an H200 (132 SMs, 128 lanes, 1.98 GHz) that did nothing but issue a cell's instructions: 8 of floats or 5,
a quarter of a load, and one for what a step shares."""
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
Section = Literal["lengths", "files", "ren", "tables"]
"""Equal lengths; a file and its copies; Ren 2018's sets; his Tables 2 and 4."""


def bench(
    engine: EngineName,
    repeat: int,
    pairs: int | None,
    source: Path | None,
    json: bool,
    sections: Sequence[Section] = (),
) -> int:
    """Measure or count. pairs: of each of Ren's sets. sections: all, unless some are named."""
    require_engine(engine)
    wanted: Sequence[Section] = sections or get_args(Section)
    once = FAMILY.read(source) if source else FAMILY.example()
    content: Row = {}
    if engine == "cuda":
        content |= describe()
        with progress("nvcc"):
            compile_first(wanted, once)
    where = f"{content['device']}, kernels only, median of {repeat}" if engine == "cuda" else "counted on the emulator"
    titles = {}
    if "lengths" in wanted:
        titles["lengths"] = f"Equal lengths of read and haplotype; {where}"
        content["lengths"] = by_length(repeat) if engine == "cuda" else counted_by_length(pairs or COUNTED, engine)
    if "ren" in wanted:
        titles["Ren 2018"] = f"Ren 2018, Tables 1 and 3; {where}"
        content["Ren 2018"] = (
            ren(repeat, pairs or REN_PAIRS) if engine == "cuda" else counted_ren(pairs or COUNTED, engine)
        )
    if "files" in wanted:
        titles["files"] = f"wavefront-rescaled, {engine}; milliseconds, medians of {repeat}"
        name = str(source) if source else "the example"
        content["files"] = by_file(engine, repeat, once, name, LARGE if engine == "cuda" else 0)
    if "tables" in wanted:
        titles["Ren 2018, Tables 2 and 4"] = "Ren 2018, Tables 2 and 4, and ours"
        with progress("Tables 2 and 4"):
            content["Ren 2018, Tables 2 and 4"] = profiled.rows()
    print(tables.as_json(content) if json else "\n\n".join(f"{titles[at]}\n\n{table(content[at])}" for at in titles))
    return 0


# ------------------------------------------------------------------ on a GPU
def _not_faint(request: Request) -> Result:
    """What a launch gives whose pairs need not be computed again in double. Pairs of long and unlike sequences would be,
    most of them, and it is the float kernel that is measured."""
    sums = np.ones_like(request.arguments["sums"])
    return Result(
        buffers={"sums": sums}, faults=[], remarks=[], printed=[], milliseconds=None, resources=None, request=request
    )


@dataclass
class Timer(Launcher):
    """A launcher that times each of its launches `repeat` times; milliseconds: the sum of the medians. A launch that counts
    in memory, which must not find what it counted before, is timed once."""

    repeat: int
    milliseconds: float = 0.0
    engine: CudaEngine = field(default_factory=CudaEngine)

    def launch(self, kernel: Kernel, **arguments: Any) -> Result:
        request = prepare_request(kernel, **arguments)
        kinds = [site.action for site in request.prepared.sites]
        once = any(isinstance(kind, AccessKind) and kind.atomic and kind.space == "global" for kind in kinds)
        if not once:
            self.milliseconds += statistics.median(self.engine.time(request, self.repeat))
        if "sums" in request.arguments:
            return _not_faint(request)
        result = launch(kernel, engine="cuda", **arguments)
        self.milliseconds += (result.milliseconds or 0.0) if once else 0.0
        return result


class Prepared(Launcher):
    """A launcher that keeps what it is asked to launch, in memory that a GPU can copy by itself, and launches nothing
    but what puts reads into lists."""

    def __init__(self, lasting: Callable[[Any], Any] = lambda array: array) -> None:
        self.requests: list[Request] = []
        self.lasting = lasting
        self.known: dict[int, tuple[Any, Any]] = {}

    def launch(self, kernel: Kernel, **arguments: Any) -> Result:
        args = {name: self._kept(value) for name, value in arguments["args"].items()}
        self.requests.append(prepare_request(kernel, **{**arguments, "args": args}))
        if "sums" in args:
            return _not_faint(self.requests[-1])
        return launch(kernel, counters=False, **arguments)  # others are planned by what it answers

    def launch_concurrent(self, launches: Iterable[tuple[Kernel, Mapping[str, Any]]]) -> Iterator[Result]:
        return (self.launch(kernel, **arguments) for kernel, arguments in list(launches))

    def _kept(self, array: Any) -> Any:
        if not isinstance(array, np.ndarray):
            return array
        if id(array) not in self.known:
            self.known[id(array)] = array, self.lasting(array)
        return self.known[id(array)][1]

    @property
    def nbytes(self) -> tuple[int, int]:
        """Bytes that go to the GPU, what launches share once; bytes that come back."""
        arrays = [(name in r.filled, a) for r in self.requests for name, a in r.arguments.items() if np.ndim(a)]
        there = {id(a): np.asarray(a).nbytes for new, a in arrays if not new}
        return sum(there.values()), sum(np.asarray(a).nbytes for new, a in arrays if new)


def compile_first(sections: Sequence[Section], once: Problem) -> None:
    """Compile what these sections launch, several kernels at a time."""
    from simtbed.engines.cuda.streams import compile_all

    prepared = Prepared()
    if "lengths" in sections:
        for length, variant in product(LENGTHS, CEILING):
            FAMILY.solve(equal_lengths(length, 1, length, length), variant, prepared)
    if "ren" in sections:
        for name, number, (m, n) in _ren_sets():
            for variant in _ren_variants(name):
                FAMILY.solve(equal_lengths(number, 1, m, n), variant, prepared)
    if "files" in sections:
        for problem in (once, repeated(once, -(-LARGE // int(once.first_pairs[-1])))):
            FAMILY.solve(problem, RESCALED, prepared)
    compile_all(prepared.requests)


def by_file(engine: EngineName, repeat: int, once: Problem, name: str, large: int) -> list[Row]:
    """A problem, and one of at least `large` pairs, if any: its copies."""
    works = [(name, 1)]
    if large:
        copies = -(-large // int(once.first_pairs[-1]))
        works.append((f"{copies:,} copies of it", copies))
    return [{"file": name, **_file(once, copies, engine, repeat)} for name, copies in works]


def _file(once: Problem, copies: int, engine: EngineName, repeat: int) -> Row:
    """Milliseconds, in a process that is already warm.

    batch: laid out, in bins and in page-locked memory, to sums in the host's memory, all transfers included, before
    any pair is computed again in double. solved: from what was parsed to scores, the layout included. parsed, written:
    by themselves; in file to file, each is done while others are.
    """
    problem = repeated(once, copies)
    row: Row = {"pairs": int(problem.first_pairs[-1]), "GCells": problem.cells / 1e9}
    if engine == "cuda":
        from simtbed.engines.cuda.streams import page_locked, run_concurrently

        prepared = Prepared(page_locked)
        FAMILY.solve(problem, RESCALED, prepared)
        row["launches"] = len(prepared.requests)
        row["MB there"], row["MB back"] = (size / 1e6 for size in prepared.nbytes)
        row["batch"] = _median(lambda: list(run_concurrently(prepared.requests)), repeat)
        row["batch, TCUPS"] = problem.cells / row["batch"] / 1e9
        del prepared
    runner = new_runner(engine)
    row["solved"] = _median(lambda: FAMILY.solve(problem, RESCALED, runner), repeat)
    scores = FAMILY.solve(problem, RESCALED, runner)
    with tempfile.TemporaryDirectory() as folder:
        given, answer = Path(folder) / "given", Path(folder) / "answer"
        write(given, list(records(once)) * copies)
        row["MB in"] = given.stat().st_size / 1e6
        row["parsed"] = _median(lambda: [None for _ in blocks(given)], repeat)
        row["written"] = _median(lambda: write(answer, lines(problem, scores)), repeat)
        row["MB out"] = answer.stat().st_size / 1e6
        row["file to file"] = _median(
            lambda: solve_file(given, answer, RESCALED, engine, "gpupairhmm", False, False, False), repeat
        )
    return row


def _median(work: Callable[[], object], repeat: int) -> float:
    """Milliseconds, after a run that is not timed."""
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
def table(rows: list[Row]) -> str:
    names = list(dict.fromkeys(name for row in rows for name in row))
    return tables.table(names, [[_shown(row.get(name)) for name in names] for row in rows])


def _shown(cell: Any) -> Any:
    if cell is None:
        return ""
    return cell if not isinstance(cell, float) else f"{cell:,.2f}" if cell >= 1 else f"{cell:.3g}"
