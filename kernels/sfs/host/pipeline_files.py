"""Pipeline from file to file: batches of sites are read, prepared, multiplied and written in threaded stages."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass
from typing import BinaryIO, NamedTuple

from ...family import Launcher
from ...pipeline import Flow, Show, workers_for
from . import files_npz, files_vcf_out
from .files import Format, check_answer
from .files_tsv import header, rows
from .pipeline import solve
from .problem import Floats, Problem

SOLVERS, FORMATTERS = 3, 6
"""Maximum numbers of solving and formatting threads. Launches of one GPU are sequential; layout and checks of other
batches overlap with them."""


@dataclass(frozen=True)
class Solve:
    """Stage that solves a batch of sites, locally or on a worker of a cluster."""

    variant: str
    launcher: Launcher

    def __call__(self, problem: Problem) -> Floats:
        answer = solve(problem, self.variant, self.launcher)
        check_answer(problem, answer)
        return answer


class Solved(NamedTuple):
    """A batch of sites, its answer, and its rows of text if the output is a table."""

    problem: Problem
    answer: Floats
    text: memoryview | None = None


def solve_file(
    problems: Iterable[Problem],
    form: Format,
    to: BinaryIO,
    variant: str,
    launcher: Launcher,
    take: Callable[[Problem, Floats], object] = lambda problem, answer: None,
    show: Show = lambda step, records, fraction: None,
    cluster: str = "",
    gpus: int = 0,
) -> None:
    """Solve all problems and write their answers in order. take: called with each batch and its answer. cluster: address
    of a Dask cluster that shares the batches; the launcher must be picklable. gpus: number of GPUs that share them; 0 for
    the launcher's own. Raise InputError for a site without an answer."""

    def format_rows(batch: tuple[Problem, Floats]) -> Solved:
        return Solved(*batch, text=rows(*batch) if form == "tsv" else None)

    solved = Flow(problems).map_pairs(Solve(variant, launcher), cluster, gpus, workers_for(SOLVERS))
    flow = solved.map(format_rows, workers=workers_for(FORMATTERS) if form == "tsv" else 1)
    results = _report_progress(flow, take, show)
    if form == "npz":
        files_npz.write(((batch.problem, batch.answer) for batch in results), to)
    elif form == "vcf":
        files_vcf_out.write(((batch.problem, batch.answer) for batch in results), to)
    else:
        for number, batch in enumerate(results):
            if not number:
                to.write(header(batch.problem))
            assert batch.text is not None
            to.write(batch.text)


def _report_progress(flow: Flow[Solved], take: Callable[[Problem, Floats], object], show: Show) -> Iterator[Solved]:
    """Yield the results; pass each batch and its answer to `take` and report the progress."""
    sites = 0
    with closing(iter(flow)) as items:
        for batch in items:
            take(batch.problem, batch.answer)
            sites += batch.problem.sites
            show("", sites, None)
            yield batch
