"""`simtbed correct`: reads from a file, corrected reads to a file."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer
from simtbed import SimtbedError
from simtbed.kernels.correction import FAMILY
from simtbed.kernels.correction.host.pipeline_files import Summary, Targets, correct_file
from simtbed.kernels.correction.host.problem import Parameters
from simtbed.runtime.registry import EngineName

from .. import tables
from ..launchers import Runner
from ..terminal import progress
from .options import Engine, Example, Json, Output, RunOn, Variant, new_app
from .output import report_stream, require_folder

app = new_app()


class Filter(StrEnum):
    """What tells `simtbed correct` whether a k-mer is solid."""

    exact = "exact"
    bloom = "bloom"
    split_first = "split-first"


@app.command()
def correct(
    source: Annotated[Path | None, typer.Argument(metavar="IN", help="FASTQ or FASTA; plain or gzip.")] = None,
    output: Output = None,
    k: Annotated[int, typer.Option("--k", help="Bases of a k-mer, 12 to 31.")] = 20,
    min_multiplicity: Annotated[int, typer.Option(help="How often a solid k-mer is seen, both strands counted.")] = 6,
    min_votes: Annotated[int, typer.Option(help="A change needs more votes than this.")] = 2,
    max_trim: Annotated[int, typer.Option(help="Bases that trimming may take from either end.")] = 20,
    no_trim: Annotated[bool, typer.Option("--no-trim", help="Discard what would be trimmed.")] = False,
    variant: Variant = "packed",
    filter: Annotated[Filter, typer.Option(help="What tells whether a k-mer is solid.")] = Filter.exact,
    discarded: Annotated[
        Path | None, typer.Option("--discarded", metavar="FILE", help="For discarded reads, as they were.")
    ] = None,
    log: Annotated[
        Path | None, typer.Option("--log", metavar="TSV", help="Flag, sequence, edits of every read.")
    ] = None,
    truth: Annotated[
        Path | None, typer.Option("--truth", metavar="FILE", help="The same reads without errors: report accuracy.")
    ] = None,
    engine: RunOn = Engine.jit,
    example: Example = False,
    json: Json = False,
) -> int:
    """Correct sequencing errors in reads, from file to file.

    IN is read twice. What was done is reported on stdout if the reads go to a file, and on stderr otherwise.
    """
    if (source is None) != example:
        raise SimtbedError("correct takes a file, or --example")
    if example and truth:
        raise SimtbedError("--truth belongs to a file of reads: the example has none")
    parameters = Parameters(k, min_multiplicity, min_votes, max_trim, not no_trim, filter.value)
    targets = Targets(output, discarded, log)
    if source is not None:
        return correct_reads(source, str(source), targets, parameters, variant, engine.value, truth, json)
    with _example_file() as made:
        return correct_reads(made, "the example", targets, parameters, variant, engine.value, truth, json)


@contextmanager
def _example_file() -> Iterator[Path]:
    """The shipped example as a FASTA file, for as long as it is used."""
    with tempfile.TemporaryDirectory(prefix="simtbed-") as folder:
        path = Path(folder, "example.fa")
        sequences = FAMILY.example().reads.strings()
        path.write_text("".join(f">read{r}\n{sequence}\n" for r, sequence in enumerate(sequences, 1)))
        yield path


def correct_reads(
    source: Path,
    name: str,
    targets: Targets,
    parameters: Parameters,
    variant: str,
    engine: EngineName,
    truth: Path | None,
    json: bool,
) -> int:
    """Correct from file to file; name: what the reads are called."""
    if variant not in FAMILY.variants:
        raise SimtbedError(f"correction has no variant {variant!r}; it has {', '.join(FAMILY.variants)}")
    given = [path for path in (targets.output, targets.discarded, targets.log) if path]
    if len({path.resolve() for path in given}) < len(given):
        raise SimtbedError("--output, --discarded and --log are different files")
    for path in given:
        require_folder(path)
    runner = Runner(engine)
    with progress(f"{variant} on {name}"):
        summary = correct_file(source, targets, parameters, variant, runner, truth)
    for warning in summary.warnings:
        print(f"simtbed: warning: {warning}", file=sys.stderr)
    print(tables.as_json(_content(summary, runner)) if json else _report(summary), file=report_stream(targets.output))
    return 0


def _content(summary: Summary, runner: Runner) -> dict[str, object]:
    content = asdict(summary)
    if summary.accuracy:
        content["accuracy"]["gain"] = summary.accuracy.gain
    return {**content, "launches": runner.launches, "kernel_milliseconds": runner.milliseconds}


def _report(summary: Summary) -> str:
    rows: list[list[Any]] = [
        ["reads", summary.reads], ["kept as they were", summary.unchanged], ["kept, changed", summary.changed],
        ["kept, trimmed", summary.trimmed], ["kept, shorter than k", summary.short], ["discarded", summary.discarded],
        ["bases changed", summary.edits], ["solid k-mers, both strands", summary.solid],
        ["their part of all k-mers counted", f"{100 * summary.solid_share:.1f} %"],
    ]  # fmt: skip
    text = tables.table(["correction", ""], rows)
    if summary.accuracy is None:
        return text
    a = summary.accuracy
    rows = [
        ["errors corrected", a.corrected], ["errors introduced", a.introduced], ["errors left", a.left],
        ["gain", f"{100 * a.gain:.2f} %"], ["reads without error before", f"{a.right_before:,} of {a.reads:,}"],
        ["reads without error among those kept", f"{a.kept_right:,} of {a.kept:,}"],
        ["reads without error that were discarded", a.discarded_right],
    ]  # fmt: skip
    return f"{text}\n\n{tables.table(['against the truth', ''], rows)}"
