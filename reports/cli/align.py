"""`simtbed align`: pairs from a table or two FASTA files, CIGARs to a file."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Literal

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
from ..launchers import Runner, launcher_of_workers, require_gpus
from ..terminal import progress_of_records
from .options import (
    MEMORY,
    Checking,
    Counting,
    Dask,
    Engine,
    Example,
    Gpus,
    Json,
    MaxMemory,
    Output,
    RunOn,
    Threads,
    Variant,
)
from .output import report, require_cluster_options, require_report_options, tell, warn
from .parameters import Argument, Option, command


class Strategy(StrEnum):
    """What becomes of an alternate's ends, by GATK's names."""

    SOFTCLIP = "SOFTCLIP"
    INDEL = "INDEL"
    LEADING_INDEL = "LEADING_INDEL"
    IGNORE = "IGNORE"


class AlignmentFormat(StrEnum):
    """How alignments are written."""

    tsv = "tsv"
    sam = "sam"


@command
def align(
    source: Annotated[
        Path | None, Argument(metavar="IN", help="Rows of reference, tab, alternate; or FASTA; - is stdin.")
    ] = None,
    alternates: Annotated[Path | None, Argument(metavar="ALT", help="FASTA, if IN is.")] = None,
    target: Output = None,
    parameters: Annotated[
        str, Option(metavar="M,X,O,E", help="Match, mismatch, opening, extending a gap.")
    ] = "200,-150,-260,-11",
    strategy: Annotated[Strategy, Option(help="What becomes of the alternate's ends.")] = Strategy.SOFTCLIP,
    variant: Variant = "packed",
    engine: RunOn = Engine.jit,
    form: Annotated[AlignmentFormat, Option(("--format",), help="How the answer is written.")] = AlignmentFormat.tsv,
    counting: Counting = False,
    check: Checking = False,
    statistics: Annotated[
        bool, Option(("--statistics",), help="Report lengths, operations and pairs of one reference.")
    ] = False,
    example: Example = False,
    gpus: Gpus = 1,
    threads: Threads = None,
    dask: Dask = None,
    max_memory: MaxMemory = MEMORY,
    json: Json = False,
) -> int:
    """Semi-global alignment with traceback, from file to file.

    The answer is CIGAR, offset and score of every pair. What --check, --counters and --statistics report goes to stdout
    if the answer goes to a file, and to stderr otherwise.

    \b
    simtbed align --example --check
    simtbed align pairs.tsv -o cigars.tsv
    """
    if (source is None) != example:
        raise SimtbedError("align takes a file, or --example")
    wanted = Wanted(
        variant,
        engine.value,
        parameters,
        strategy.value,
        form.value,
        counting,
        check,
        json,
        gpus,
        max_memory,
        statistics,
        dask or "",
    )
    with on_cores(threads or current_cores()):
        return align_pairs(source, alternates, target, wanted)


@dataclass(frozen=True)
class Wanted:
    """The options of the command, as they were given."""

    variant: str
    engine: EngineName
    parameters: str
    strategy: str
    form: Literal["tsv", "sam"]
    counting: bool
    check: bool
    json: bool
    gpus: int = 1
    memory: int = MEMORY
    statistics: bool = False
    cluster: str = ""

    def how(self) -> How:
        """Raises SimtbedError where it cannot be, before the work begins."""
        if self.variant not in FAMILY.variants:
            raise SimtbedError(f"alignment has no variant {self.variant!r}; it has {', '.join(FAMILY.variants)}")
        require_report_options(self.engine, self.counting, self.check or self.statistics, self.json)
        require_gpus(self.gpus, self.engine)
        require_cluster_options(self.cluster, self.counting, self.json, self.gpus)
        parameters, strategy = _parameters(self.parameters), OverhangStrategy[self.strategy]
        files.check_form(self.form, strategy)
        gpus = self.gpus if self.engine == "cuda" else 0
        return How(self.variant, parameters, strategy, self.form, gpus, self.memory, self.cluster)


def align_pairs(source: Path | None, alternates: Path | None, target: Path | None, wanted: Wanted) -> int:
    """Align every pair, a batch at a time; 1 where the oracle is to check and disagrees. Raises SimtbedError."""
    how = wanted.how()
    name = f"{source} and {alternates}" if alternates else str(source or "the example")
    runner = Runner(wanted.engine, counting=wanted.counting)
    launcher = launcher_of_workers(wanted.engine) if wanted.cluster else runner
    agreements: list[Agreement] = []

    statistics = Statistics()

    def take(problem: Problem, found: Alignments) -> None:
        if wanted.statistics:
            statistics.add(problem, found)
        if wanted.check:
            agreements.append(FAMILY.compare(found.answer(), FAMILY.oracle(problem)))

    with (
        Outputs({"--output": target or STANDARD}, [source, alternates]) as outputs,
        progress_of_records(f"{wanted.variant} on {name}", "pairs") as show,
    ):
        problems = _problems(source, alternates, how)
        pairs = align_file(problems, outputs["--output"], how, launcher, take, show)
    if not pairs:
        warn(f"{name} holds no pairs; the answer is empty")
    agreement = merge_agreements(agreements) if wanted.check else None
    statistics.finish()
    if wanted.statistics and not wanted.json:
        tell(outputs, tables.table(["statistics", ""], rows(statistics)))
    if wanted.check or wanted.counting or (wanted.statistics and wanted.json):
        beside = {"statistics": content(statistics)} if wanted.statistics else {}
        tell(outputs, report(runner, agreement, wanted.json, beside))
    return int(agreement is not None and not agreement.agrees)


def _problems(source: Path | None, alternates: Path | None, how: How) -> Iterator[Problem]:
    if source is not None and alternates is not None:
        return files.fasta(source, alternates, how.cells, how.memory)
    return files.table(source or files.EXAMPLE, how.cells, how.memory)


def _parameters(text: str) -> Parameters:
    try:
        return Parameters(*map(int, text.split(",")))
    except (TypeError, ValueError):
        raise SimtbedError(f"--parameters takes four whole numbers, M,X,O,E, not {text!r}") from None
