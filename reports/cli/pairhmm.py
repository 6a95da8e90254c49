"""`simtbed pairhmm`: reads and haplotypes from a file, log-likelihoods to a file, a block of the file at a time."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Literal, NamedTuple

from simtbed import SimtbedError
from simtbed.kernels import Agreement, Launcher
from simtbed.kernels.family import Answer, merge_agreements
from simtbed.kernels.files import STANDARD, Outputs
from simtbed.kernels.pairhmm.host.files import Block, blocks, lines
from simtbed.kernels.pipeline import Flow
from simtbed.runtime.cores import current_cores, on_cores
from simtbed.runtime.registry import EngineName

from ..launchers import launcher_of_workers, new_runner, require_gpus
from ..selection import find_family
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


class Format(StrEnum):
    """How Pair-HMM answers are written."""

    gpupairhmm = "gpupairhmm"
    tsv = "tsv"
    gatk = "gatk"


@command
def pairhmm(
    source: Annotated[
        Path | None, Argument(metavar="IN", help="Reads and haplotypes, or GATK's dump of them; - is stdin.")
    ] = None,
    target: Output = None,
    variant: Variant = "wavefront-rescaled",
    engine: RunOn = Engine.jit,
    form: Annotated[Format, Option(("--format",), help="How the answer is written.")] = Format.gpupairhmm,
    counting: Counting = False,
    check: Checking = False,
    example: Example = False,
    gpus: Gpus = 1,
    threads: Threads = None,
    dask: Dask = None,
    max_memory: MaxMemory = MEMORY,
    json: Json = False,
) -> int:
    """Pair-HMM forward likelihoods, from file to file.

    What --check and --counters report goes to stdout if the answer goes to a file, and to stderr otherwise.

    \b
    simtbed pairhmm --example --check
    simtbed pairhmm pairs.in -o likelihoods.txt
    """
    if (source is None) != example:
        raise SimtbedError("pairhmm takes a file, or --example")
    require_report_options(engine, counting, check, json)
    with on_cores(threads or current_cores()):
        return solve_file(
            source, target, variant, engine.value, form.value, counting, check, json, gpus, max_memory, dask
        )


class Solved(NamedTuple):
    """The answer of a block, and how that agrees with the oracle where it is asked."""

    answer: Answer
    agreement: Agreement | None


@dataclass(frozen=True)
class Solve:
    """What is done with a block, here or by a worker of a cluster."""

    variant: str
    launcher: Launcher
    check: bool

    def __call__(self, block: Block) -> Solved:
        family = find_family("pairhmm")
        answer = family.solve(block.problem, self.variant, self.launcher)
        agreement = family.compare(answer, family.oracle(block.problem)) if self.check else None
        return Solved(answer, agreement)


class Text(NamedTuple):
    """The text of a block of so many pairs; agreement: as of `Solved`. part: of the file that is read."""

    lines: list[bytes]
    pairs: int
    agreement: Agreement | None
    part: float | None


def solve_file(
    source: Path | None,
    target: Path | None,
    variant: str,
    engine: EngineName,
    form: Literal["gpupairhmm", "tsv", "gatk"],
    counting: bool,
    check: bool,
    json: bool,
    gpus: int = 1,
    memory: int = MEMORY,
    dask: str | None = None,
) -> int:
    """From file to file; without a source the shipped example, without a target to stdout. 1 where the oracle disagrees."""
    family = find_family("pairhmm")
    if variant not in family.variants:
        raise SimtbedError(f"pairhmm has no variant {variant!r}; it has {', '.join(family.variants)}")
    require_gpus(gpus, engine)
    require_cluster_options(dask, counting, json, gpus)
    name = str(source) if source else "the example"
    runner = new_runner(engine, counting)
    agreements: list[Agreement] = []
    pairs = 0

    def texts(solved: Iterator[tuple[Block, Solved]]) -> Iterator[Text]:
        records = 0
        for (problem, part), (answer, agreement) in solved:
            yield Text(list(lines(problem, answer, form, records)), len(answer), agreement, part)
            records += len(problem.record_reads) - 1

    def take(text: Text) -> None:
        nonlocal pairs
        outputs["--output"].writelines(text.lines)
        pairs += text.pairs
        if text.agreement is not None:
            agreements.append(text.agreement)
        show("", pairs, text.part)

    problems = blocks(source, memory=memory, shares=gpus) if source else Flow([Block(family.example(), None)])
    with (
        Outputs({"--output": target or STANDARD}, [source]) as outputs,
        progress_of_records(f"{variant} on {name}", "pairs") as show,
    ):
        solve = Solve(variant, launcher_of_workers(engine) if dask else runner, check)
        problems.map_pairs(solve, dask or "", gpus if gpus > 1 else 0).through(texts).into(take)
    if not pairs:
        warn(f"{name} holds no pairs of reads and haplotypes; the answer is empty")
    agreement = merge_agreements(agreements) if check else None
    if text := report(runner, agreement, json):
        tell(outputs, text)
    return int(agreement is not None and not agreement.agrees)
