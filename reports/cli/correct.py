"""`simtbed correct`: correction of sequencing errors in a file of reads."""

from contextlib import nullcontext
from dataclasses import asdict, dataclass
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import numpy as np
from simtbed import SimtbedError
from simtbed.escaping import printable
from simtbed.kernels import Agreement
from simtbed.kernels.correction import FAMILY
from simtbed.kernels.correction.host.files import example_file, read_file
from simtbed.kernels.correction.host.pairs import pair_files
from simtbed.kernels.correction.host.pipeline_files import CorrectionOptions, Summary, Writers, correct_file
from simtbed.kernels.correction.host.problem import Parameters, Problem, Reads
from simtbed.kernels.family import Answer
from simtbed.kernels.files import STANDARD, Outputs
from simtbed.kernels.files.paths import STDIN, identities
from simtbed.runtime.cores import current_cores, on_cores

from .. import tables
from ..launchers import Runner, launcher_of_workers
from ..selection import require_variant
from ..terminal import progress_of_records
from .options import Counting, Engine, Example, Json, Output, ResourceOptions, RunOn, Variant
from .output import print_report, report, require_cluster_options, require_counting_engine, warn
from .parameters import Argument, Option, command


class Filter(StrEnum):
    """Data structures for the set of solid k-mers."""

    exact = "exact"
    bloom = "bloom"
    split_first = "split-first"
    blocked = "blocked"


@dataclass(frozen=True, kw_only=True)
class CorrectOptions:
    """The options of `simtbed correct`."""

    output: Output = None
    paired_output: Annotated[
        Path | None, Option(("--paired-output", "-p"), metavar="OUT", help="Write the corrected second mates to OUT.")
    ] = None
    k: Annotated[int, Option(min=12, max=31, help="Length of a k-mer, in bases.")] = 20
    min_multiplicity: Annotated[
        int, Option(min=1, max=255, help="Smallest count of a solid k-mer, over both strands.")
    ] = 6
    min_votes: Annotated[int, Option(min=0, max=255, help="Change a base only if it has more votes than this.")] = 2
    max_trim: Annotated[int, Option(min=0, max=1 << 24, help="Trim at most this number of bases from each end.")] = 20
    no_trim: Annotated[bool, Option(help="Discard reads instead of trimming them.")] = False
    variant: Variant = "packed"
    filter: Annotated[Filter, Option(help="Data structure for the set of solid k-mers.")] = Filter.exact
    discarded: Annotated[Path | None, Option(metavar="FILE", help="Write the discarded reads, unchanged, to FILE.")] = (
        None
    )
    log: Annotated[
        Path | None, Option(metavar="TSV", help="Write the flag, sequence and edits of every read to TSV.")
    ] = None
    truth: Annotated[
        Path | None, Option(metavar="FILE", help="Read the same reads without errors; report the accuracy.")
    ] = None
    spectrum: Annotated[
        Path | None,
        Option(metavar="DUMP", help="Read k-mers and counts from a dump of KMC, Jellyfish or --save-spectrum."),
    ] = None
    save_spectrum: Annotated[Path | None, Option(metavar="FILE", help="Write the k-mers and their counts to FILE.")] = (
        None
    )
    engine: RunOn = Engine.jit
    counters: Counting = False
    check: Annotated[
        bool,
        Option(help="Compare the answer with the oracle, which counts the k-mers itself; all reads are in memory."),
    ] = False
    example: Example = False
    resources: ResourceOptions
    json: Json = False


@command
def correct(
    source: Annotated[
        Path | None, Argument(metavar="IN", help="FASTQ or FASTA, compressed or not; - is stdin.")
    ] = None,
    mates: Annotated[Path | None, Argument(metavar="MATES", help="The second mates, if IN has the first.")] = None,
    *,
    options: CorrectOptions,
) -> int:
    """Correct sequencing errors in reads, from file to file.

    IN is read twice; input from a pipe is copied to a temporary file. The report is printed to stdout if the reads are
    written to a file, and to stderr otherwise. Of paired reads, both mates are written or both are discarded, so the
    two files remain in step.

    \b
    simtbed correct --example
    simtbed correct reads.fastq.gz -o corrected.fastq
    simtbed correct r1.fastq.gz r2.fastq.gz -o c1.fastq.gz -p c2.fastq.gz
    """
    if (source is None) != options.example:
        raise SimtbedError("correct takes a file, or --example")
    if options.example and options.truth:
        raise SimtbedError("--truth needs a file of reads; the example has no truth")
    if (mates is None) != (options.paired_output is None):
        raise SimtbedError("pairs need both: a file of MATES, and --paired-output")
    if mates and options.truth:
        raise SimtbedError("--truth needs a single file of reads, not pairs")
    if source and mates and identities(source, STDIN) & identities(mates, STDIN):
        raise SimtbedError(f"{printable(mates)}: IN and MATES are the same file")
    if options.check and options.spectrum:
        raise SimtbedError("--check counts the k-mers of the reads: it excludes --spectrum")
    require_counting_engine(options.engine, options.counters)
    require_cluster_options(options.resources.dask, options.counters, options.json, gpus=1)
    with on_cores(options.resources.threads or current_cores()):
        return correct_reads(source, mates, options)


def correct_reads(source: Path | None, mates: Path | None, options: CorrectOptions) -> int:
    """Correct the reads of a file, or of the example if there is no source."""
    variant, memory, cluster = options.variant, options.resources.max_memory, options.resources.dask or ""
    require_variant(FAMILY, variant)
    parameters = Parameters(
        options.k, options.min_multiplicity, options.min_votes, options.max_trim, not options.no_trim, options.filter.value
    )  # fmt: skip
    runner = Runner(options.engine.value, counting=options.counters)
    checked: list[tuple[Reads, Answer]] = []
    launcher = launcher_of_workers(options.engine.value) if cluster else runner
    named = {"--output": options.output or STANDARD, "--discarded": options.discarded, "--log": options.log}
    named |= {"--paired-output": options.paired_output, "--save-spectrum": options.save_spectrum}
    truth, spectrum = options.truth, options.spectrum
    with (
        Outputs(named, [source, mates, truth, spectrum]) as outputs,
        progress_of_records(f"{variant} on {source or 'the example'}", "reads") as show,
        read_file(source, memory) if source else nullcontext(example_file()) as reads,
        read_file(mates, memory) if mates else nullcontext() as second,
        read_file(truth, memory) if truth else nullcontext() as true_reads,
    ):
        both = pair_files(reads, second) if second else reads
        writers = Writers(
            outputs["--output"], outputs.get("--discarded"), outputs.get("--log"), outputs.get("--paired-output"), show,
            outputs.get("--save-spectrum"),
            (lambda reads, answer: checked.append((reads, answer))) if options.check else None,
        )  # fmt: skip
        settings = CorrectionOptions(parameters, variant, launcher, true_reads, memory, spectrum, cluster)
        summary = correct_file(both, writers, settings)
    for warning in summary.warnings:
        warn(warning)
    agreement = _compare(checked, parameters) if checked else None
    if options.json:
        print_report(outputs, report(runner, agreement, True, _content(summary, runner)))
    else:
        print_report(outputs, "\n\n".join([_report(summary), *filter(None, [report(runner, agreement, False)])]))
    return int(agreement is not None and not agreement.agrees)


def _compare(checked: list[tuple[Reads, Answer]], parameters: Parameters) -> Agreement:
    """Compare the answers of all blocks with the oracle's of all reads."""
    reads, answers = zip(*checked, strict=True)
    return FAMILY.compare(np.concatenate(answers), FAMILY.oracle(Problem(Reads.concatenate(reads), parameters)))


def _content(summary: Summary, runner: Runner) -> dict[str, object]:
    content = asdict(summary)
    if summary.accuracy:
        content["accuracy"]["gain"] = summary.accuracy.gain
    return {**content, "kernel_milliseconds": runner.milliseconds}


def _report(summary: Summary) -> str:
    rows: list[list[Any]] = [
        ["reads", summary.reads], ["written unchanged", summary.unchanged], ["written, corrected", summary.changed],
        ["written, trimmed", summary.trimmed], ["written, shorter than k", summary.short],
        ["discarded", summary.discarded], ["bases changed", summary.edits],
        ["solid k-mers, both strands", summary.solid],
        ["solid fraction of the counted k-mers", f"{100 * summary.solid_share:.1f} %"],
    ]  # fmt: skip
    if summary.with_mate:
        rows.insert(6, ["discarded with their mates", summary.with_mate])
    text = tables.table(["correction", ""], rows)
    if summary.accuracy is None:
        return text
    a = summary.accuracy
    rows = [
        ["errors corrected", a.corrected], ["errors introduced", a.introduced], ["errors left", a.left],
        ["gain", f"{100 * a.gain:.2f} %"], ["error-free reads of the input", f"{a.right_before:,} of {a.reads:,}"],
        ["error-free reads of the output", f"{a.kept_right:,} of {a.kept:,}"],
        ["error-free reads discarded", a.discarded_right],
    ]  # fmt: skip
    return f"{text}\n\n{tables.table(['accuracy', ''], rows)}"
