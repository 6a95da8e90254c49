"""`simtbed report`: every table and figure of a paper, beside what is found here."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from enum import StrEnum
from pathlib import Path
from typing import Annotated

from simtbed import SimtbedError
from simtbed.kernels.files import Outputs, write

from ..papers import formats, library, machines, measured
from ..papers.paper import Number, Paper, Report, Size
from ..papers.paper import report as show
from ..terminal import progress
from .options import Emulator
from .output import write_lines
from .parameters import Argument, Option, command


class Format(StrEnum):
    """How a report is written."""

    html = "html"
    md = "md"
    json = "json"


WRITTEN: Mapping[Format, Callable[[Report], str]] = {
    Format.html: formats.html,
    Format.md: formats.markdown,
    Format.json: formats.json,
}
INDEX = {Format.html: formats.html_index, Format.md: formats.markdown_index, Format.json: formats.json_index}


@command
def report(
    paper: Annotated[
        str | None, Argument("PAPER", help=f"{', '.join(library.PAPERS)}; else all, and an index.")
    ] = None,
    format: Annotated[Format, Option(help="Plots are in html.")] = Format.md,
    size: Annotated[Size, Option(help="Of the parameters: seconds here, or as in the paper.")] = Size.small,
    engine: Annotated[Emulator, Option(help="What counts.")] = Emulator.jit,
    output: Annotated[
        Path | None, Option(("--output", "-o"), metavar="OUT", help="Instead of stdout; a folder for all papers.")
    ] = None,
    pairs: Annotated[int | None, Option(metavar="N", min=1, max=1 << 31, help="Pairs of a set.")] = None,
    lanes: Annotated[int | None, Option(metavar="P", min=1, max=32, help="Only kernels of P lanes a pair.")] = None,
    rows: Annotated[int | None, Option(metavar="K", min=1, max=1024, help="Only kernels of K rows a lane.")] = None,
    individuals: Annotated[int | None, Option(metavar="N", min=1, max=1 << 20, help="Individuals a site.")] = None,
    sites: Annotated[int | None, Option(metavar="N", min=1, max=1 << 31, help="Sites.")] = None,
    reads: Annotated[int | None, Option(metavar="N", min=1, max=1 << 36, help="Reads.")] = None,
    genome: Annotated[int | None, Option(metavar="N", min=1, max=1 << 36, help="Bases of the genome.")] = None,
    error_rate: Annotated[float | None, Option(metavar="X", min=0, max=0.25, help="Substitutions a base.")] = None,
    split: Annotated[
        float | None, Option(metavar="X", above=0, below=1, help="Share of the filter for its first hash function.")
    ] = None,
    records: Annotated[int | None, Option(metavar="N", min=1, max=1 << 20, help="Records of mixed lengths.")] = None,
    regions: Annotated[int | None, Option(metavar="N", min=1, max=1 << 20, help="Regions that are made.")] = None,
    every: Annotated[
        int | None, Option(metavar="N", min=1, max=9, help="Only every Nth of the paper's lengths.")
    ] = None,
    batch: Annotated[int | None, Option(metavar="N", min=1, max=1 << 31, help="Pairs of a launch.")] = None,
    measure: Annotated[
        Path | None, Option(metavar="FILE", help="Take the times of PAPER's work here, into a record, and no report.")
    ] = None,
    only: Annotated[str, Option(metavar="PATTERN", help="With --measure: only times of such names.")] = "*",
    repeat: Annotated[int, Option(metavar="N", min=1, max=1000, help="With --measure: medians of N.")] = 5,
) -> int:
    """Every table and figure of a paper, beside what is found here.

    The paper's figures, what the emulator counts on the paper's GPU, what the time model predicts there, what machines
    have measured, and a verdict. Of the numbers above, each paper has some; the others are refused.

    \b
    simtbed report ren2018
    simtbed report lu2012 --format html -o lu2012.html --individuals 1024
    simtbed report --format html -o reports
    """
    given: dict[str, Number | None] = {
        "pairs": pairs, "lanes": lanes, "rows": rows, "individuals": individuals, "sites": sites, "reads": reads,
        "genome": genome, "error_rate": error_rate, "split": split, "batch": batch,
        "records": records, "regions": regions, "every": every,
    }  # fmt: skip
    if paper is None:
        if measure is not None or any(value is not None for value in given.values()):
            raise SimtbedError("--measure and the numbers of a paper need a PAPER")
        return _all(format, size, engine, output)
    found = library.find(paper)
    if measure is not None:
        return _measure(found, size, given, engine, measure, only, repeat)
    with Outputs({"--output": output}) as outputs:
        text = WRITTEN[format](_report(found, size, given, engine))
        if (file := outputs.get("--output")) is not None:
            write_lines(file, text.rstrip("\n"))
        else:
            print(text.rstrip("\n"))
    return 0


def _report(paper: Paper, size: Size, given: Mapping[str, Number | None], engine: Emulator) -> Report:
    setting = paper.setting(size, given, engine.value, measured.shipped(paper.name))
    with progress(paper.name) as tell:
        return show(paper, setting, tell)


def _all(format: Format, size: Size, engine: Emulator, output: Path | None) -> int:
    """Every paper: the index to stdout, or it and a file a paper to a folder that is there."""
    if output is not None and not output.is_dir():
        raise SimtbedError(f"{output}: a report of all papers needs a folder that is there")
    names: dict[str, Path | None] = {name: output / f"{name}.{format}" for name in ("index", *library.PAPERS) if output}
    with Outputs(names) as outputs:
        reports = [_report(library.find(name), size, {}, engine) for name in library.PAPERS]
        index = INDEX[format](reports).rstrip("\n")
        if output is None:
            print(index)
            return 0
        write_lines(outputs["index"], index)
        for one in reports:
            write_lines(outputs[one.paper.name], WRITTEN[format](one).rstrip("\n"))
    return 0


def _measure(
    paper: Paper,
    size: Size,
    given: Mapping[str, Number | None],
    engine: Emulator,
    into: Path,
    only: str,
    repeat: int,
) -> int:
    """Times go into the file as they are taken, so that what was taken stays, whatever happens. 1 where some failed."""
    record = measured.load(into) if into.exists() else measured.Record(paper.name, "", {})
    here = machines.here()
    measured.require_same_machines(record, paper.name, here)
    taken = 0

    def keep(newer: measured.Record) -> None:
        nonlocal record, taken
        record, taken = measured.merged(record, newer), taken + 1
        write(into, [measured.text(record), "\n"])

    setting = paper.setting(size, given, engine.value, measured.shipped(paper.name))
    with progress(paper.name) as tell:
        failed = measured.take(paper.name, paper.timed(setting), only, repeat, here, keep, tell)
    for line in failed:
        print(f"not measured: {line}", file=sys.stderr)
    print(f"{taken} times are in {into}")
    return 1 if failed else 0
