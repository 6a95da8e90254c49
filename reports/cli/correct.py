"""`simtbed correct`: reads from a file, corrected reads to a file."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import asdict, dataclass
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

from simtbed import SimtbedError
from simtbed.kernels.correction import FAMILY
from simtbed.kernels.correction.host.files import example_file, read_file
from simtbed.kernels.correction.host.pairs import pair_files
from simtbed.kernels.correction.host.pipeline_files import CorrectionOptions, Summary, Writers, correct_file
from simtbed.kernels.correction.host.problem import Parameters
from simtbed.kernels.files import STANDARD, Outputs
from simtbed.runtime.cores import current_cores, on_cores
from simtbed.runtime.registry import EngineName

from .. import tables
from ..launchers import Runner, launcher_of_workers
from ..terminal import progress_of_records
from .options import MEMORY, Dask, Engine, Example, Json, MaxMemory, Output, RunOn, Threads, Variant
from .output import require_cluster_options, tell, warn
from .parameters import Argument, Option, command


class Filter(StrEnum):
    """What tells `simtbed correct` whether a k-mer is solid."""

    exact = "exact"
    bloom = "bloom"
    split_first = "split-first"
    blocked = "blocked"


@dataclass(frozen=True)
class Targets:
    """Where results go: corrected reads (None: standard output), discarded reads as they came, a line a read. mates: for
    second mates. spectrum: for the k-mers counted."""

    output: Path | None = None
    discarded: Path | None = None
    log: Path | None = None
    mates: Path | None = None
    spectrum: Path | None = None


@command
def correct(
    source: Annotated[Path | None, Argument(metavar="IN", help="FASTQ or FASTA; plain or packed; - is stdin.")] = None,
    mates: Annotated[Path | None, Argument(metavar="MATES", help="The second mates, if IN has the first.")] = None,
    output: Output = None,
    paired_output: Annotated[
        Path | None, Option(("--paired-output", "-p"), metavar="OUT", help="For corrected second mates.")
    ] = None,
    k: Annotated[int, Option(("--k",), min=12, max=31, help="Bases of a k-mer, 12 to 31.")] = 20,
    min_multiplicity: Annotated[
        int, Option(min=1, max=255, help="How often a solid k-mer is seen, both strands counted.")
    ] = 6,
    min_votes: Annotated[int, Option(min=0, max=255, help="A change needs more votes than this.")] = 2,
    max_trim: Annotated[int, Option(min=0, max=1 << 24, help="Bases that trimming may take from either end.")] = 20,
    no_trim: Annotated[bool, Option(("--no-trim",), help="Discard what would be trimmed.")] = False,
    variant: Variant = "packed",
    filter: Annotated[Filter, Option(help="What tells whether a k-mer is solid.")] = Filter.exact,
    discarded: Annotated[
        Path | None, Option(("--discarded",), metavar="FILE", help="For discarded reads, as they were.")
    ] = None,
    log: Annotated[Path | None, Option(("--log",), metavar="TSV", help="Flag, sequence, edits of every read.")] = None,
    truth: Annotated[
        Path | None, Option(("--truth",), metavar="FILE", help="The same reads without errors: report accuracy.")
    ] = None,
    spectrum: Annotated[
        Path | None,
        Option(
            ("--spectrum",),
            metavar="DUMP",
            help="K-mers and counts, instead of those of IN: of KMC, Jellyfish, or saved.",
        ),
    ] = None,
    save_spectrum: Annotated[
        Path | None, Option(("--save-spectrum",), metavar="FILE", help="For the k-mers counted and their counts.")
    ] = None,
    engine: RunOn = Engine.jit,
    example: Example = False,
    threads: Threads = None,
    dask: Dask = None,
    max_memory: MaxMemory = MEMORY,
    json: Json = False,
) -> int:
    """Correct sequencing errors in reads, from file to file.

    IN is read twice: what comes through a pipe waits in a temporary file. What was done is reported on stdout if the
    reads go to a file, and on stderr otherwise. Of two files with mates, a pair is kept or discarded: what is written
    stays in step.

    \b
    simtbed correct --example
    simtbed correct reads.fastq.gz -o corrected.fastq
    simtbed correct r1.fastq.gz r2.fastq.gz -o c1.fastq.gz -p c2.fastq.gz
    """
    if (source is None) != example:
        raise SimtbedError("correct takes a file, or --example")
    if example and truth:
        raise SimtbedError("--truth belongs to a file of reads: the example has none")
    if (mates is None) != (paired_output is None):
        raise SimtbedError("pairs need both: a file of MATES, and --paired-output")
    if mates and truth:
        raise SimtbedError("--truth belongs to one file of reads, not to pairs")
    require_cluster_options(dask, counting=False, json=json, gpus=1)
    parameters = Parameters(k, min_multiplicity, min_votes, max_trim, not no_trim, filter.value)
    targets = Targets(output, discarded, log, paired_output, save_spectrum)
    with on_cores(threads or current_cores()):
        return correct_reads(
            source, targets, parameters, variant, engine.value, truth, max_memory, json, mates, spectrum, dask or ""
        )


def correct_reads(
    source: Path | None,
    targets: Targets,
    parameters: Parameters,
    variant: str,
    engine: EngineName,
    truth: Path | None,
    memory: int,
    json: bool,
    mates: Path | None = None,
    spectrum: Path | None = None,
    cluster: str = "",
) -> int:
    """Correct from file to file; the example, without a source."""
    if variant not in FAMILY.variants:
        raise SimtbedError(f"correction has no variant {variant!r}; it has {', '.join(FAMILY.variants)}")
    runner = Runner(engine)
    launcher = launcher_of_workers(engine) if cluster else runner
    named = {"--output": targets.output or STANDARD, "--discarded": targets.discarded, "--log": targets.log}
    named |= {"--paired-output": targets.mates, "--save-spectrum": targets.spectrum}
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
        )  # fmt: skip
        options = CorrectionOptions(parameters, variant, launcher, true_reads, memory, spectrum, cluster)
        summary = correct_file(both, writers, options)
    for warning in summary.warnings:
        warn(warning)
    tell(outputs, tables.as_json(_content(summary, runner)) if json else _report(summary))
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
    if summary.with_mate:
        rows.insert(6, ["... because their mates were", summary.with_mate])
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
