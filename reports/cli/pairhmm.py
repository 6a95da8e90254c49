"""`simtbed pairhmm`: reads and haplotypes from a file, log-likelihoods to a file, a block of the file at a time."""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections.abc import Iterator
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Literal

import typer
from simtbed import SimtbedError, map_over_gpus
from simtbed.kernels import Agreement, files
from simtbed.kernels.family import joined
from simtbed.kernels.pairhmm.host.files import blocks, lines
from simtbed.runtime.registry import EngineName

from ..launchers import new_runner, require_gpus
from ..overlap import prefetch
from ..selection import find_family
from ..terminal import progress
from .options import Checking, Counting, Engine, Example, Gpus, Json, Output, RunOn, Variant, new_app
from .output import print_report, report_stream, require_folder, require_report_options

app = new_app()


class Format(StrEnum):
    """How Pair-HMM answers are written."""

    gpupairhmm = "gpupairhmm"
    tsv = "tsv"


@app.command()
def pairhmm(
    source: Annotated[Path | None, typer.Argument(metavar="IN", help="Reads and haplotypes; plain or gzip.")] = None,
    target: Output = None,
    variant: Variant = "wavefront-rescaled",
    engine: RunOn = Engine.jit,
    form: Annotated[Format, typer.Option("--format", help="How the answer is written.")] = Format.gpupairhmm,
    counting: Counting = False,
    check: Checking = False,
    example: Example = False,
    gpus: Gpus = 1,
    json: Json = False,
) -> int:
    """Pair-HMM forward likelihoods, from file to file.

    What --check and --counters report goes to stdout if the answer goes to a file, and to stderr otherwise.
    """
    if (source is None) != example:
        raise SimtbedError("pairhmm takes a file, or --example")
    require_report_options(engine, counting, check, json)
    return solve_file(source, target, variant, engine.value, form.value, counting, check, json, gpus)


def solve_file(
    source: Path | None,
    target: Path | None,
    variant: str,
    engine: EngineName,
    form: Literal["gpupairhmm", "tsv"],
    counting: bool,
    check: bool,
    json: bool,
    gpus: int = 1,
) -> int:
    """From file to file; without a source the shipped example, without a target to stdout. 1 where the oracle disagrees."""
    family = find_family("pairhmm")
    if variant not in family.variants:
        raise SimtbedError(f"pairhmm has no variant {variant!r}; it has {', '.join(family.variants)}")
    require_folder(target)
    require_gpus(gpus, engine)
    name = str(source) if source else "the example"
    runner = new_runner(engine, counting)
    agreements: list[Agreement] = []
    pairs = 0

    def answers() -> Iterator[bytes]:
        nonlocal pairs
        records = 0
        with progress(f"{variant} on {name}") as show:
            problems = prefetch(blocks(source)) if source else [family.example()]
            for problem, answer in map_over_gpus(problems, lambda one: family.solve(one, variant, runner), gpus):
                if check:
                    agreements.append(family.compare(answer, family.oracle(problem)))
                yield from lines(problem, answer, form, records)
                pairs, records = pairs + len(answer), records + len(problem.record_reads) - 1
                show(f"{pairs:,} pairs")

    if target is None:
        with tempfile.TemporaryFile() as whole:  # nothing is printed of what ends in an error
            whole.writelines(prefetch(answers()))
            whole.seek(0)
            sys.stdout.flush()
            shutil.copyfileobj(whole, sys.stdout.buffer)
    else:
        files.write(target, prefetch(answers()))
    if not pairs:
        print(f"simtbed: warning: {name} holds no pairs of reads and haplotypes; the answer is empty", file=sys.stderr)
    agreement = joined(agreements) if check else None
    print_report(runner, agreement, json, report_stream(target))
    return int(agreement is not None and not agreement.agrees)
