"""`simtbed pairhmm`: log-likelihoods of the reads and haplotypes of a file, one block of the file at a time."""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Annotated, NamedTuple

from simtbed import SimtbedError
from simtbed.kernels import Agreement, Launcher
from simtbed.kernels.family import Answer, merge_agreements
from simtbed.kernels.files import STANDARD, Outputs
from simtbed.kernels.pairhmm.host.files import Block, blocks, lines
from simtbed.kernels.pipeline import Flow
from simtbed.runtime.cores import current_cores, on_cores
from simtbed.runtime.registry import EngineName

from ..gpu_count import gpus_for_file
from ..launchers import launcher_of_workers, new_runner, require_gpus
from ..selection import find_family, require_variant
from ..terminal import progress_of_records
from .options import Checking, Counting, Engine, Example, Gpus, Json, Output, ResourceOptions, RunOn, Variant
from .output import print_report, report, require_cluster_options, require_report_options, warn
from .parameters import Argument, Option, command


class Format(StrEnum):
    """File formats of Pair-HMM likelihoods."""

    gpupairhmm = "gpupairhmm"
    tsv = "tsv"
    gatk = "gatk"


@dataclass(frozen=True, kw_only=True)
class PairHmmOptions:
    """The options of `simtbed pairhmm`."""

    variant: Variant = "wavefront-rescaled"
    engine: RunOn = Engine.jit
    format: Annotated[Format, Option(help="Format of the answer.")] = Format.gpupairhmm
    counters: Counting = False
    check: Checking = False
    example: Example = False
    gpus: Gpus = 1
    resources: ResourceOptions
    json: Json = False


@command
def pairhmm(
    source: Annotated[
        Path | None, Argument(metavar="IN", help="Reads and haplotypes, or GATK's dump of them; - is stdin.")
    ] = None,
    target: Output = None,
    *,
    options: PairHmmOptions,
) -> int:
    """Compute Pair-HMM forward likelihoods, from file to file.

    The report of --check and --counters is printed to stdout if the answer is written to a file, and to stderr
    otherwise.

    \b
    simtbed pairhmm --example --check
    simtbed pairhmm pairs.in -o likelihoods.txt
    """
    if (source is None) != options.example:
        raise SimtbedError("pairhmm takes a file, or --example")
    require_report_options(options.engine, options.counters, options.check, options.json)
    with on_cores(options.resources.threads or current_cores()):
        return solve_file(source, target, options)


class Solved(NamedTuple):
    """The answer of a block, and its agreement with the oracle under --check."""

    answer: Answer
    agreement: Agreement | None


@dataclass(frozen=True)
class Solve:
    """The function applied to each block, in this process or by a worker of a cluster."""

    variant: str
    launcher: Launcher
    check: bool

    def __call__(self, block: Block) -> Solved:
        family = find_family("pairhmm")
        answer = family.solve(block.problem, self.variant, self.launcher)
        agreement = family.compare(answer, family.oracle(block.problem)) if self.check else None
        return Solved(answer, agreement)


class BlockText(NamedTuple):
    """The text of a block. agreement: as in `Solved`. progress: fraction of the file that is read, if known."""

    lines: list[bytes]
    pairs: int
    agreement: Agreement | None
    progress: float | None


def solve_file(source: Path | None, target: Path | None, options: PairHmmOptions) -> int:
    """Solve the problem of a file, or the shipped example; return 1 if the oracle disagrees. target: None is stdout."""
    family, variant, gpus = find_family("pairhmm"), options.variant, options.gpus
    engine: EngineName = options.engine.value
    dask, memory = options.resources.dask, options.resources.max_memory
    require_variant(family, variant)
    require_gpus(gpus, engine)
    require_cluster_options(dask, options.counters, options.json, gpus)
    gpus = gpus_for_file(source, gpus)
    name = str(source) if source else "the example"
    runner = new_runner(engine, options.counters)
    agreements: list[Agreement] = []
    pairs = 0

    def texts(solved: Iterator[tuple[Block, Solved]]) -> Iterator[BlockText]:
        records = 0
        for (problem, progress), (answer, agreement) in solved:
            text = list(lines(problem, answer, options.format.value, records))
            yield BlockText(text, len(answer), agreement, progress)
            records += len(problem.record_reads) - 1

    def take(text: BlockText) -> None:
        nonlocal pairs
        outputs["--output"].writelines(text.lines)
        pairs += text.pairs
        if text.agreement is not None:
            agreements.append(text.agreement)
        show("", pairs, text.progress)

    problems = blocks(source, memory=memory, shares=gpus) if source else Flow([Block(family.example(), None)])
    with (
        Outputs({"--output": target or STANDARD}, [source]) as outputs,
        progress_of_records(f"{variant} on {name}", "pairs") as show,
    ):
        solve = Solve(variant, launcher_of_workers(engine) if dask else runner, options.check)
        problems.map_pairs(solve, dask or "", gpus if gpus > 1 else 0).through(texts).into(take)
    if not pairs:
        warn(f"{name} has no pairs of reads and haplotypes; the answer is empty")
    agreement = merge_agreements(agreements) if options.check else None
    if text := report(runner, agreement, options.json):
        print_report(outputs, text)
    return int(agreement is not None and not agreement.agrees)
