"""`simtbed bench pairhmm`: pair-HMM variants by length, compared with gpuPairHMM, and on the sets of Ren 2018.

On a GPU, trillions of cells per second (TCUPS) of the kernels. On the emulator, the counters behind them: instructions,
global and shared memory traffic a cell, barriers per pair.
"""

import statistics
import tempfile
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
from simtbed.runtime.result import LaunchDetails

from .. import tables
from ..cli.options import Engine, ResourceOptions
from ..cli.pairhmm import PairHmmOptions, solve_file
from ..launchers import Runner, new_runner, require_engine, wall_times
from ..printing import print_text
from ..terminal import announced

PEER = {
    32: 1.54, 48: 1.98, 64: 2.12, 96: 2.24, 112: 2.36, 128: 2.35, 192: 2.41, 224: 2.55, 256: 2.48, 448: 2.66, 512: 2.57,
    896: 2.78, 1024: 2.59,
}  # fmt: skip
"""TCUPS of the gpuPairHMM benchmark on an H200 by length of read and haplotype, best configuration."""
LENGTHS = tuple(PEER)
CEILING = {"wavefront-loaded": 3.6, "wavefront-rescaled": 5.3}
"""Upper bound of TCUPS on an H200 (132 SMs, 128 lanes, 1.98 GHz) by instruction issue: per cell 8 or 5 float instructions,
a quarter of a load, and one for shared work of a step."""
CELLS = 20_000_000_000
"""Cells of each problem timed by length, limited to 1.5 million pairs."""
COUNTED = 64
"""Counted pairs."""

INTERTASK_SETS = {number: (24 * number, 24 * number) for number in range(1, 7)}
"""Ren 2018, Table 1: length of read and haplotype."""
INTRATASK_SETS = dict(enumerate(((m, n) for m in (32, 64, 96, 128) for n in range(m, 257, 32)), 1))
"""Ren 2018, Table 3."""
REN_PAIRS = 500_000
RESCALED = "wavefront-rescaled"
LARGE = 2_900_000
"""Pairs of the gpuPairHMM measurement."""

Row = dict[str, Any]
Section = Literal["lengths", "files", "ren"]
"""Equal lengths; a file and its copies; the sets of Ren 2018."""


def bench(
    engine: EngineName,
    repeat: int,
    pairs: int | None,
    source: Path | None,
    json: bool,
    sections: Sequence[Section] = (),
) -> int:
    """Measure or count. pairs: size of each set of Ren 2018. sections: by default all."""
    require_engine(engine)
    selected: Sequence[Section] = sections or get_args(Section)
    once = FAMILY.read(source) if source else FAMILY.example()
    content: Row = {}
    if engine == "cuda":
        content |= describe()
        with announced("nvcc"):
            compile_first(selected, once)
    setting = (
        f"{content['device']}, kernels only, median of {repeat}" if engine == "cuda" else "counted on the emulator"
    )
    titles = {}
    if "lengths" in selected:
        titles["lengths"] = f"Equal lengths of read and haplotype; {setting}"
        content["lengths"] = by_length(repeat) if engine == "cuda" else counted_by_length(pairs or COUNTED, engine)
    if "ren" in selected:
        titles["Ren 2018"] = f"Ren 2018, Tables 1 and 3; {setting}"
        content["Ren 2018"] = (
            ren(repeat, pairs or REN_PAIRS) if engine == "cuda" else counted_ren(pairs or COUNTED, engine)
        )
    if "files" in selected:
        titles["files"] = f"wavefront-rescaled, {engine}; milliseconds, medians of {repeat}"
        name = str(source) if source else "the example"
        content["files"] = by_file(engine, repeat, once, name, LARGE if engine == "cuda" else 0)
    print_text(
        tables.as_json(content) if json else "\n\n".join(f"{titles[at]}\n\n{table(content[at])}" for at in titles)
    )
    return 0


# ------------------------------------------------------------------ on a GPU
def _not_faint(request: Request) -> Result:
    """Return a result without pairs to recompute in double, so that only the float kernel is measured. Most pairs of long, random
    sequences would be recomputed."""
    sums = np.ones_like(request.arguments["sums"])
    if array := request.device_arrays.get("sums"):
        array.replace(sums)
    details = LaunchDetails(
        buffers={} if array else {"sums": sums},
        faults=[],
        remarks=[],
        printed=[],
        milliseconds=None,
        resources=None,
        request=request,
    )
    return Result(details)


@dataclass
class Timer(Launcher):
    """A launcher that times each launch `repeat` times. milliseconds: sum of the medians. A launch that accumulates in memory
    is timed once, because a repetition would change its input."""

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
    """A launcher that records requests with arrays in page-locked memory, and executes only the launches that sort reads into
    lists."""

    def __init__(self, lasting: Callable[[Any], Any] = lambda array: array) -> None:
        self.requests: list[Request] = []
        self.lasting = lasting
        self.copies: dict[int, tuple[Any, Any]] = {}

    def launch(self, kernel: Kernel, **arguments: Any) -> Result:
        args = {name: self._page_locked(value) for name, value in arguments["args"].items()}
        self.requests.append(prepare_request(kernel, **{**arguments, "args": args}))
        if "sums" in args:
            return _not_faint(self.requests[-1])
        return launch(kernel, counters=False, **arguments)  # others are planned by what it answers

    def launch_concurrent(self, launches: Iterable[tuple[Kernel, Mapping[str, Any]]]) -> Iterator[Result]:
        return (self.launch(kernel, **arguments) for kernel, arguments in list(launches))

    def _page_locked(self, array: Any) -> Any:
        if not isinstance(array, np.ndarray):
            return array
        if id(array) not in self.copies:
            self.copies[id(array)] = array, self.lasting(array)
        return self.copies[id(array)][1]

    @property
    def nbytes(self) -> tuple[int, int]:
        """Return the bytes copied to the GPU, shared arrays once, and the bytes copied back."""
        arrays = [(name in r.filled, a) for r in self.requests for name, a in r.arguments.items() if np.ndim(a)]
        shared = {id(a): np.asarray(a).nbytes for new, a in arrays if not new}
        return sum(shared.values()), sum(np.asarray(a).nbytes for new, a in arrays if new)


def compile_first(sections: Sequence[Section], once: Problem) -> None:
    """Compile the kernels of the sections concurrently."""
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
    """Measure a problem and, with `large`, copies of it with at least that number of pairs."""
    works = [(name, 1)]
    if large:
        copies = -(-large // int(once.first_pairs[-1]))
        works.append((f"{copies:,} copies of it", copies))
    return [{"file": name, **_file(once, copies, engine, repeat)} for name, copies in works]


def _file(once: Problem, copies: int, engine: EngineName, repeat: int) -> Row:
    """Return milliseconds in a warm process.

    batch: arranged in bins and in page-locked memory, to sums in the host's memory, all transfers included, before
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
        input_file, answer = Path(folder) / "given", Path(folder) / "answer"
        write(input_file, list(records(once)) * copies)
        row["MB in"] = input_file.stat().st_size / 1e6
        row["parsed"] = _median(lambda: [None for _ in blocks(input_file)], repeat)
        row["written"] = _median(lambda: write(answer, lines(problem, scores)), repeat)
        options = PairHmmOptions(variant=RESCALED, engine=Engine(engine), resources=ResourceOptions())
        row["MB out"] = answer.stat().st_size / 1e6
        row["file to file"] = _median(lambda: solve_file(input_file, answer, options), repeat)
    return row


def _median(work: Callable[[], object], repeat: int) -> float:
    """Return the median milliseconds of a run."""
    return statistics.median(wall_times(work, repeat))


def _tera(problem: Problem, variant: str, repeat: int) -> float:
    timer = Timer(repeat)
    FAMILY.solve(problem, variant, timer)
    return problem.cells / timer.milliseconds / 1e9


def by_length(repeat: int) -> list[Row]:
    """Measure the TCUPS of both wavefront kernels for equal lengths."""
    rows = []
    for length in LENGTHS:
        problem = equal_lengths(length, max(1, min(CELLS // length**2, 1_500_000)), length, length)
        row: Row = {"length": length, "pairs": len(problem.pairs[0]), "gpuPairHMM": PEER.get(length)}
        for variant, ceiling in CEILING.items():
            with announced(f"{variant}, {length} bases"):
                tera = _tera(problem, variant, repeat)
            row[variant] = tera
            if length in PEER:
                row[f"{variant} / gpuPairHMM"] = tera / PEER[length]
            row[f"{variant} / ceiling"] = tera / ceiling
        rows.append(row)
    return rows


def ren(repeat: int, pairs: int) -> list[Row]:
    """Measure the GCUPS of each variant of Ren 2018 on its sets, and of the wavefront kernels on all sets."""
    rows = []
    for name, number, (m, n) in _ren_sets():
        problem = equal_lengths(number, pairs, m, n)
        row: Row = {"set": f"{name} {number}", "read": m, "haplotype": n, "pairs": len(problem.pairs[0])}
        for variant in _ren_variants(name):
            with announced(f"{variant}, {name} {number}"):
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
    """Count both wavefront kernels for equal lengths."""
    rows = []
    for length in LENGTHS:
        problem = equal_lengths(length, pairs, length, length)
        for variant in CEILING:
            with announced(f"{variant}, {length} bases"):
                rows.append({"length": length, "variant": variant, **costs(problem, variant, engine)})
    return rows


def counted_ren(pairs: int, engine: EngineName) -> list[Row]:
    """Count each variant of Ren 2018 on its sets."""
    rows = []
    for name, number, (m, n) in _ren_sets():
        problem = equal_lengths(number, pairs, m, n)
        for variant in _ren_variants(name):
            with announced(f"{variant}, {name} {number}"):
                row: Row = {"set": f"{name} {number}", "read": m, "haplotype": n, "variant": variant}
                rows.append({**row, **costs(problem, variant, engine)})
    return rows


def costs(problem: Problem, variant: str, engine: EngineName) -> Row:
    """Return the counters of a variant per cell."""
    runner = Runner(engine, counting=True)
    FAMILY.solve(problem, variant, runner)
    counters: Counters = sum((c for _, c in runner.counted[1:]), runner.counted[0][1])
    totals, cells = counters.totals(), problem.cells
    return {
        "instructions per cell": 32 * totals["warp_instructions"] / cells,
        "global bytes per cell": 32 * (totals["global_load_sectors"] + totals["global_store_sectors"]) / cells,
        "shared bytes per cell": 128 * (totals["shared_load_wavefronts"] + totals["shared_store_wavefronts"]) / cells,
        "barriers per pair": totals["barriers"] / len(problem.pairs[0]),
        "busy lanes": counters.derived()["warp_execution_efficiency"],
    }


# ------------------------------------------------------------------ output
def table(rows: list[Row]) -> str:
    names = list(dict.fromkeys(name for row in rows for name in row))
    return tables.table(names, [[_shown(row.get(name)) for name in names] for row in rows])


def _shown(cell: Any) -> Any:
    if cell is None:
        return ""
    return cell if not isinstance(cell, float) else f"{cell:,.2f}" if cell >= 1 else f"{cell:.3g}"
