"""`simtbed report`: tables and figures of papers, compared with counted, predicted and measured values."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from enum import StrEnum
from pathlib import Path
from typing import Annotated

from simtbed import SimtbedError
from simtbed.escaping import printable
from simtbed.kernels.files import Outputs, write

from ..papers import definitions, formats, measured
from ..papers.claims import Number
from ..papers.paper import Paper, Report, Setting, Size
from ..papers.paper import report as evaluate
from ..printing import print_message, print_text
from ..terminal import progress
from .options import Emulator
from .output import write_lines
from .parameters import Argument, Option, command


class Format(StrEnum):
    """Formats of a report."""

    html = "html"
    md = "md"
    json = "json"


WRITERS: Mapping[Format, Callable[[Report], str]] = {
    Format.html: formats.html,
    Format.md: formats.markdown,
    Format.json: formats.json,
}
INDEX_WRITERS = {Format.html: formats.html_index, Format.md: formats.markdown_index, Format.json: formats.json_index}


@dataclass(frozen=True, kw_only=True)
class ParameterOptions:
    """Parameters of papers; each paper has some of them and refuses the others."""

    pairs: Annotated[int | None, Option(metavar="N", min=1, max=1 << 31, help="Pairs per set.")] = None
    lanes: Annotated[
        int | None, Option(metavar="P", min=1, max=32, help="Select the kernels with P lanes per pair.")
    ] = None
    rows: Annotated[
        int | None, Option(metavar="K", min=1, max=1024, help="Select the kernels with K rows per lane.")
    ] = None
    individuals: Annotated[int | None, Option(metavar="N", min=1, max=1 << 20, help="Individuals per site.")] = None
    sites: Annotated[int | None, Option(metavar="N", min=1, max=1 << 31, help="Number of sites.")] = None
    reads: Annotated[int | None, Option(metavar="N", min=1, max=1 << 36, help="Number of reads.")] = None
    genome: Annotated[int | None, Option(metavar="N", min=1, max=1 << 36, help="Length of the genome, in bases.")] = (
        None
    )
    error_rate: Annotated[float | None, Option(metavar="X", min=0, max=0.25, help="Substitutions per base.")] = None
    split: Annotated[
        float | None, Option(metavar="X", above=0, below=1, help="Fraction of the filter for the first hash function.")
    ] = None
    records: Annotated[
        int | None, Option(metavar="N", min=1, max=1 << 20, help="Number of records of mixed lengths.")
    ] = None
    regions: Annotated[int | None, Option(metavar="N", min=1, max=1 << 20, help="Number of generated regions.")] = None
    depth: Annotated[float | None, Option(metavar="X", above=0, below=1000, help="Reads a site of an individual.")] = (
        None
    )
    threshold: Annotated[
        float | None, Option(metavar="X", min=0, max=1, help="Likelihood up to which a genotype is set to 0.")
    ] = None
    every: Annotated[int | None, Option(metavar="N", min=1, max=9, help="Use every Nth length of the paper.")] = None
    batch: Annotated[int | None, Option(metavar="N", min=1, max=1 << 31, help="Pairs per launch.")] = None

    def values(self) -> dict[str, Number | None]:
        return {field.name: getattr(self, field.name) for field in fields(self)}


@dataclass(frozen=True, kw_only=True)
class ReportOptions:
    """The options of `simtbed report`."""

    format: Annotated[Format, Option(help="Format of the report; html has plots.")] = Format.md
    size: Annotated[Size, Option(help="Problem size: small takes seconds; the other is that of the paper.")] = (
        Size.small
    )
    engine: Annotated[Emulator, Option(help="Engine that collects the counters.")] = Emulator.jit
    output: Annotated[
        Path | None,
        Option(("--output", "-o"), metavar="OUT", help="Write the report to OUT; to a folder for all papers."),
    ] = None
    parameters: ParameterOptions
    measure: Annotated[
        Path | None, Option(metavar="FILE", help="Measure times of PAPER on this machine into FILE; print no report.")
    ] = None
    item: Annotated[str | None, Option(metavar="NAME", help='Evaluate one item of PAPER, for example "Table 4".')] = (
        None
    )
    data: Annotated[
        Path | None,
        Option(metavar="FOLDER", help="Use the reads, pairs or likelihoods of the file in FOLDER for simulated ones."),
    ] = None
    only: Annotated[
        str | None, Option(metavar="PATTERN", help="Select the times of --measure by name; by default all.")
    ] = None
    repeat: Annotated[
        int, Option(metavar="N", min=1, max=1000, help="Number of runs of --measure; medians are stored.")
    ] = 5


@command
def report(
    paper: Annotated[
        str | None, Argument("PAPER", help=f"{', '.join(definitions.PAPERS)}; by default all papers and an index.")
    ] = None,
    *,
    options: ReportOptions,
) -> int:
    """Compare the tables and figures of a paper with this package.

    The report has the values of the paper, the counters of the emulator for the GPU of the paper, the predictions of
    the time model, measured times, and a verdict.

    \b
    simtbed report ren2018
    simtbed report lu2012 --format html -o lu2012.html --individuals 1024
    simtbed report --format html -o reports
    """
    parameters = options.parameters.values()
    if options.only is not None and options.measure is None:
        raise SimtbedError("--only selects times of --measure FILE; --item NAME selects an item of the report")
    if paper is None:
        if any(value is not None for value in (options.measure, options.item, options.data, *parameters.values())):
            raise SimtbedError("--measure, --item, --data and the parameters of a paper need a PAPER")
        return _all_papers(options)
    chosen = definitions.find(paper)
    if options.measure is not None:
        return _measure(chosen, options, options.measure)
    with Outputs({"--output": options.output}) as outputs:
        text = WRITERS[options.format](_report(chosen, parameters, options))
        if (file := outputs.get("--output")) is not None:
            write_lines(file, text.rstrip("\n"))
        else:
            print_text(text.rstrip("\n"))
    return 0


def _report(paper: Paper, parameters: Mapping[str, Number | None], options: ReportOptions) -> Report:
    with progress(paper.name) as show:
        return evaluate(paper, _setting(paper, parameters, options), show, options.item)


def _setting(paper: Paper, parameters: Mapping[str, Number | None], options: ReportOptions) -> Setting:
    data = None if options.data is None else _sole_file(options.data)
    return paper.setting(options.size, parameters, options.engine.value, measured.shipped(paper.name), data)


def _sole_file(folder: Path) -> Path:
    """Return the file of a folder. Raises SimtbedError unless there is exactly one."""
    found = sorted(folder.iterdir()) if folder.is_dir() else []
    if len(found) != 1:
        raise SimtbedError(f"{printable(folder)}: expected a folder with one file, got {len(found)} files")
    return found[0]


def _all_papers(options: ReportOptions) -> int:
    """Print the index of all papers, or write it and a file per paper to an existing folder."""
    output, form = options.output, options.format
    if output is not None and not output.is_dir():
        raise SimtbedError(f"{output}: a report of all papers needs an existing folder")
    names: dict[str, Path | None] = {
        name: output / f"{name}.{form}" for name in ("index", *definitions.PAPERS) if output
    }
    with Outputs(names) as outputs:
        reports = [_report(definitions.find(name), {}, options) for name in definitions.PAPERS]
        index = INDEX_WRITERS[form](reports).rstrip("\n")
        if output is None:
            print_text(index)
            return 0
        write_lines(outputs["index"], index)
        for result in reports:
            write_lines(outputs[result.paper.name], WRITERS[form](result).rstrip("\n"))
    return 0


def _measure(paper: Paper, options: ReportOptions, into: Path) -> int:
    """Measure times and write the record after each, so that an interruption loses none. Return 1 if some failed."""
    record = measured.load(into) if into.exists() else measured.Record(paper.name, {})
    names = measured.available()
    measured.require_same_machines(record, paper.name, names)
    count = 0

    def save(newer: measured.Record) -> None:
        nonlocal record, count
        record, count = measured.merged(record, newer), count + 1
        write(into, [measured.text(record), "\n"])

    setting = _setting(paper, options.parameters.values(), options)
    with progress(paper.name) as show:
        session = measured.Session(options.only or "*", options.repeat, names, save, show)
        failed = measured.measure(paper.name, paper.benchmarks(setting), session)
    for line in failed:
        print_message(f"not measured: {line}")
    print_text(f"{count} times are in {printable(into)}")
    return 1 if failed else 0
