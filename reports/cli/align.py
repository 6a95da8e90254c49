"""`simtbed align`: pairs from a table or two FASTA files, CIGARs to a file."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Literal

from simtbed import SimtbedError, map_over_gpus
from simtbed.kernels import Agreement
from simtbed.kernels.alignment import FAMILY
from simtbed.kernels.alignment.host import files, limits
from simtbed.kernels.alignment.host.pipeline import solve
from simtbed.kernels.alignment.host.problem import Parameters, Problem
from simtbed.kernels.alignment.host.problem import Strategy as OverhangStrategy
from simtbed.kernels.family import Answer, joined
from simtbed.kernels.files import STANDARD, Outputs
from simtbed.runtime.registry import EngineName

from ..launchers import Runner, require_gpus
from ..terminal import progress
from .options import MEMORY, Checking, Counting, Engine, Example, Gpus, Json, MaxMemory, Output, RunOn, Variant
from .output import report, require_report_options, tell, warn
from .parameters import Argument, Option, command

BYTES_OF_A_WORD = 8
"""Moves may take half of the memory: a word has four bytes."""
PART_OF_CELLS = 16
"""A batch has as many cells as this part of the memory has bytes, beyond one pair."""


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
    example: Example = False,
    gpus: Gpus = 1,
    max_memory: MaxMemory = MEMORY,
    json: Json = False,
) -> int:
    """Semi-global alignment with traceback, from file to file.

    The answer is CIGAR, offset and score of every pair. What --check and --counters report goes to stdout if the
    answer goes to a file, and to stderr otherwise.

    \b
    simtbed align --example --check
    simtbed align pairs.tsv -o cigars.tsv
    """
    if (source is None) != example:
        raise SimtbedError("align takes a file, or --example")
    how = How(variant, engine.value, parameters, strategy.value, form.value, counting, check, json, gpus, max_memory)
    return align_file(source, alternates, target, how)


@dataclass(frozen=True)
class How:
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


def align_file(source: Path | None, alternates: Path | None, target: Path | None, how: How) -> int:
    """Align every pair, a batch at a time; 1 where the oracle is to check and disagrees. Raises SimtbedError."""
    if how.variant not in FAMILY.variants:
        raise SimtbedError(f"alignment has no variant {how.variant!r}; it has {', '.join(FAMILY.variants)}")
    require_report_options(how.engine, how.counting, how.check, how.json)
    require_gpus(how.gpus, how.engine)
    parameters, strategy = _parameters(how.parameters), OverhangStrategy[how.strategy]
    files.check_form(how.form, strategy)
    name = f"{source} and {alternates}" if alternates else str(source or "the example")
    runner = Runner(how.engine, counting=how.counting)
    agreements: list[Agreement] = []
    words = how.memory // BYTES_OF_A_WORD
    pairs = 0

    def solved(problem: Problem) -> Answer:
        limits.check_memory(problem, how.variant, words)
        return solve(problem, how.variant, runner, words)

    def answers(show: Callable[[str], None]) -> Iterator[tuple[Problem, Answer]]:
        nonlocal pairs
        problems = (
            replace(problem, parameters=parameters, strategy=strategy)
            for problem in files.batches(_pairs(source, alternates, how.memory), how.memory // PART_OF_CELLS)
        )
        for problem, answer in map_over_gpus(problems, solved, how.gpus):
            if how.check:
                agreements.append(FAMILY.compare(answer, FAMILY.oracle(problem)))
            pairs += len(problem)
            show(f"{pairs:,} pairs")
            yield problem, answer

    with (
        Outputs({"--output": target or STANDARD}, [source, alternates]) as outputs,
        progress(f"{how.variant} on {name}") as show,
    ):
        files.write(answers(show), how.form, outputs["--output"], how.memory)
    if not pairs:
        warn(f"{name} holds no pairs; the answer is empty")
    agreement = joined(agreements) if how.check else None
    if how.check or how.counting:
        tell(outputs, report(runner, agreement, how.json))
    return int(agreement is not None and not agreement.agrees)


def _pairs(source: Path | None, alternates: Path | None, memory: int) -> Iterator[files.Pair]:
    if source is None:
        return files.table(files.EXAMPLE)
    return files.fasta(source, alternates, memory) if alternates else files.table(source, memory)


def _parameters(text: str) -> Parameters:
    try:
        return Parameters(*map(int, text.split(",")))
    except (TypeError, ValueError):
        raise SimtbedError(f"--parameters takes four whole numbers, M,X,O,E, not {text!r}") from None
