"""`simtbed align`: pairwise alignment of a table or two FASTA files; CIGARs are written to a file."""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Annotated

from simtbed import SimtbedError
from simtbed.kernels import Agreement
from simtbed.kernels.alignment import FAMILY
from simtbed.kernels.alignment.host import files
from simtbed.kernels.alignment.host.answer import Alignments
from simtbed.kernels.alignment.host.pipeline_files import How, align_file
from simtbed.kernels.alignment.host.problem import Parameters, Problem
from simtbed.kernels.alignment.host.problem import Strategy as OverhangStrategy
from simtbed.kernels.alignment.host.statistics import Statistics, content, rows
from simtbed.kernels.family import merge_agreements
from simtbed.kernels.files import STANDARD, Outputs
from simtbed.runtime.cores import current_cores, on_cores
from simtbed.runtime.registry import EngineName

from .. import tables
from ..gpu_count import gpus_for_file
from ..launchers import Runner, launcher_of_workers, require_gpus
from ..selection import require_variant
from ..terminal import progress_of_records
from .options import Checking, Counting, Engine, Example, Gpus, Json, Output, ResourceOptions, RunOn, Variant
from .output import print_report, report, require_cluster_options, require_report_options, warn
from .parameters import Argument, Option, command


class Strategy(StrEnum):
    """Treatment of the overhanging ends of an alternate, by the names of GATK."""

    SOFTCLIP = "SOFTCLIP"
    INDEL = "INDEL"
    LEADING_INDEL = "LEADING_INDEL"
    IGNORE = "IGNORE"


class AlignmentFormat(StrEnum):
    """File formats of alignments."""

    tsv = "tsv"
    sam = "sam"


@dataclass(frozen=True, kw_only=True)
class AlignOptions:
    """The options of `simtbed align`."""

    parameters: Annotated[
        str, Option(metavar="M,X,O,E", help="Scores of a match, a mismatch, opening a gap and extending it.")
    ] = "200,-150,-260,-11"
    strategy: Annotated[Strategy, Option(help="Treatment of the overhanging ends of the alternate.")] = (
        Strategy.SOFTCLIP
    )
    variant: Variant = "packed"
    engine: RunOn = Engine.jit
    format: Annotated[AlignmentFormat, Option(help="Format of the answer.")] = AlignmentFormat.tsv
    counters: Counting = False
    check: Checking = False
    statistics: Annotated[bool, Option(help="Report lengths, operations and the number of pairs per reference.")] = (
        False
    )
    example: Example = False
    gpus: Gpus = 1
    resources: ResourceOptions
    json: Json = False

    def how(self, source: Path | None) -> How:
        """Return the settings of the pipeline for a file. Raises SimtbedError for options that exclude each other."""
        require_variant(FAMILY, self.variant)
        dask = self.resources.dask or ""
        engine: EngineName = self.engine.value
        require_report_options(engine, self.counters, self.check or self.statistics, self.json)
        require_gpus(self.gpus, engine)
        require_cluster_options(dask, self.counters, self.json, self.gpus)
        parameters, strategy = _parameters(self.parameters), OverhangStrategy[self.strategy]
        form: files.Format = self.format.value
        files.check_form(form, strategy)
        gpus = gpus_for_file(source, self.gpus) if engine == "cuda" else 0
        return How(self.variant, parameters, strategy, form, gpus, self.resources.max_memory, dask)


@command
def align(
    source: Annotated[
        Path | None,
        Argument(metavar="IN", help="Rows of reference, tab, alternate; or FASTA with the references; - is stdin."),
    ] = None,
    alternates: Annotated[
        Path | None, Argument(metavar="ALT", help="FASTA with the alternates, if IN is FASTA.")
    ] = None,
    target: Output = None,
    *,
    options: AlignOptions,
) -> int:
    """Align pairs of sequences semi-globally, from file to file.

    The answer is the CIGAR, offset and score of every pair, from a traceback. The report of --check, --counters and --statistics is
    printed to stdout if the answer is written to a file, and to stderr otherwise.

    \b
    simtbed align --example --check
    simtbed align pairs.tsv -o cigars.tsv
    """
    if (source is None) != options.example:
        raise SimtbedError("align takes a file, or --example")
    with on_cores(options.resources.threads or current_cores()):
        return align_pairs(source, alternates, target, options)


def align_pairs(source: Path | None, alternates: Path | None, target: Path | None, options: AlignOptions) -> int:
    """Align every pair, one batch at a time; return 1 if the oracle disagrees. Raises SimtbedError."""
    how = options.how(source)
    name = f"{source} and {alternates}" if alternates else str(source or "the example")
    runner = Runner(options.engine.value, counting=options.counters)
    launcher = launcher_of_workers(options.engine.value) if how.cluster else runner
    agreements: list[Agreement] = []
    statistics = Statistics()

    def take(problem: Problem, alignments: Alignments) -> None:
        if options.statistics:
            statistics.add(problem, alignments)
        if options.check:
            agreements.append(FAMILY.compare(alignments.answer(), FAMILY.oracle(problem)))

    with (
        Outputs({"--output": target or STANDARD}, [source, alternates]) as outputs,
        progress_of_records(f"{options.variant} on {name}", "pairs") as show,
    ):
        problems = _problems(source, alternates, how)
        pairs = align_file(problems, outputs["--output"], how, launcher, take, show)
    if not pairs:
        warn(f"{name} has no pairs; the answer is empty")
    agreement = merge_agreements(agreements) if options.check else None
    statistics.finish()
    if options.statistics and not options.json:
        print_report(outputs, tables.table(["statistics", ""], rows(statistics)))
    if options.check or options.counters or (options.statistics and options.json):
        more = {"statistics": content(statistics)} if options.statistics else {}
        print_report(outputs, report(runner, agreement, options.json, more))
    return int(agreement is not None and not agreement.agrees)


def _problems(source: Path | None, alternates: Path | None, how: How) -> Iterator[Problem]:
    if source is not None and alternates is not None:
        return files.fasta(source, alternates, how.cells, how.memory)
    return files.table(source or files.EXAMPLE, how.cells, how.memory)


def _parameters(text: str) -> Parameters:
    try:
        return Parameters(*map(int, text.split(",")))
    except (TypeError, ValueError):
        raise SimtbedError(f"--parameters: expected four integers M,X,O,E, got {text!r}") from None
