"""`simtbed align`: pairs from a table or two FASTA files, CIGARs to a file."""

from __future__ import annotations

import sys
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Literal

import numpy as np
import typer
from simtbed import SimtbedError, map_over_gpus
from simtbed.kernels.alignment import FAMILY
from simtbed.kernels.alignment.host.files import lines, read, read_fasta
from simtbed.kernels.alignment.host.problem import Parameters, Problem
from simtbed.kernels.alignment.host.problem import Strategy as OverhangStrategy
from simtbed.kernels.files import write
from simtbed.runtime.registry import EngineName

from ..launchers import Runner, require_gpus
from ..terminal import progress
from .options import Checking, Counting, Engine, Example, Gpus, Json, Output, RunOn, Variant, new_app
from .output import print_report, report_stream, require_folder, require_report_options

app = new_app()


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


@app.command()
def align(
    source: Annotated[
        Path | None, typer.Argument(metavar="IN", help="Rows of reference, tab, alternate; or FASTA.")
    ] = None,
    alternates: Annotated[Path | None, typer.Argument(metavar="[ALT]", help="FASTA, if IN is.")] = None,
    target: Output = None,
    parameters: Annotated[
        str, typer.Option(metavar="M,X,O,E", help="Match, mismatch, opening, extending a gap.")
    ] = "200,-150,-260,-11",
    strategy: Annotated[Strategy, typer.Option(help="What becomes of the alternate's ends.")] = Strategy.SOFTCLIP,
    variant: Variant = "packed",
    engine: RunOn = Engine.jit,
    form: Annotated[AlignmentFormat, typer.Option("--format", help="How the answer is written.")] = AlignmentFormat.tsv,
    counting: Counting = False,
    check: Checking = False,
    example: Example = False,
    gpus: Gpus = 1,
    json: Json = False,
) -> int:
    """Semi-global alignment with traceback, from file to file.

    The answer is CIGAR, offset and score of every pair. What --check and --counters report goes to stdout if the
    answer goes to a file, and to stderr otherwise.
    """
    if (source is None) != example:
        raise SimtbedError("align takes a file, or --example")
    how = How(variant, engine.value, parameters, strategy.value, form.value, counting, check, json, gpus)
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


def align_file(source: Path | None, alternates: Path | None, target: Path | None, how: How) -> int:
    """Align every pair; 1 where the oracle was asked and disagrees. Raises SimtbedError."""
    if how.variant not in FAMILY.variants:
        raise SimtbedError(f"alignment has no variant {how.variant!r}; it has {', '.join(FAMILY.variants)}")
    require_report_options(how.engine, how.counting, how.check, how.json)
    require_folder(target)
    require_gpus(how.gpus, how.engine)
    problem, name = _problem(source, alternates)
    problem = replace(problem, parameters=_parameters(how.parameters), strategy=OverhangStrategy[how.strategy])
    runner = Runner(how.engine, counting=how.counting)
    with progress(f"{how.variant} on {name}"):
        shares = map_over_gpus(problem.shares(how.gpus), lambda part: FAMILY.solve(part, how.variant, runner), how.gpus)
        answer = np.concatenate([answer for _, answer in shares])
    if not len(problem):
        print(f"simtbed: warning: {name} holds no pairs; the answer is empty", file=sys.stderr)
    text = lines(problem, answer, how.form)
    if target is None:
        sys.stdout.writelines(text)
    else:
        write(target, text)
    agreement = None
    if how.check:
        with progress(f"the oracle on {name}"):
            agreement = FAMILY.compare(answer, FAMILY.oracle(problem))
    if how.check or how.counting:
        print_report(runner, agreement, how.json, report_stream(target))
    return int(agreement is not None and not agreement.agrees)


def _problem(source: Path | None, alternates: Path | None) -> tuple[Problem, str]:
    """The pairs, and what to call them."""
    if source is None:
        return FAMILY.example(), "the example"
    if alternates is not None:
        return read_fasta(source, alternates), f"{source} and {alternates}"
    return read(source), str(source)


def _parameters(text: str) -> Parameters:
    try:
        return Parameters(*map(int, text.split(",")))
    except (TypeError, ValueError):
        raise SimtbedError(f"--parameters takes four whole numbers, M,X,O,E, not {text!r}") from None
