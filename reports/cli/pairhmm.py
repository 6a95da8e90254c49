"""`simtbed pairhmm`: reads and haplotypes from a file, log-likelihoods to a file, a block of the file at a time."""

from __future__ import annotations

from collections.abc import Iterator
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Literal

from simtbed import SimtbedError, map_over_gpus
from simtbed.kernels import Agreement
from simtbed.kernels.family import joined
from simtbed.kernels.files import STANDARD, Outputs
from simtbed.kernels.pairhmm.host.files import blocks, lines
from simtbed.runtime.registry import EngineName

from ..launchers import new_runner, require_gpus
from ..overlap import prefetch
from ..selection import find_family
from ..terminal import progress
from .options import MEMORY, Checking, Counting, Engine, Example, Gpus, Json, MaxMemory, Output, RunOn, Variant
from .output import report, require_report_options, tell, warn
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
    return solve_file(source, target, variant, engine.value, form.value, counting, check, json, gpus, max_memory)


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
) -> int:
    """From file to file; without a source the shipped example, without a target to stdout. 1 where the oracle disagrees."""
    family = find_family("pairhmm")
    if variant not in family.variants:
        raise SimtbedError(f"pairhmm has no variant {variant!r}; it has {', '.join(family.variants)}")
    require_gpus(gpus, engine)
    name = str(source) if source else "the example"
    runner = new_runner(engine, counting)
    agreements: list[Agreement] = []
    pairs = 0

    def answers() -> Iterator[bytes]:
        nonlocal pairs
        records = 0
        with progress(f"{variant} on {name}") as show:
            problems = prefetch(blocks(source, memory=memory)) if source else [family.example()]
            for problem, answer in map_over_gpus(problems, lambda one: family.solve(one, variant, runner), gpus):
                if check:
                    agreements.append(family.compare(answer, family.oracle(problem)))
                yield from lines(problem, answer, form, records)
                pairs, records = pairs + len(answer), records + len(problem.record_reads) - 1
                show(f"{pairs:,} pairs")

    with Outputs({"--output": target or STANDARD}, [source]) as outputs:
        outputs["--output"].writelines(prefetch(answers()))
    if not pairs:
        warn(f"{name} holds no pairs of reads and haplotypes; the answer is empty")
    agreement = joined(agreements) if check else None
    if text := report(runner, agreement, json):
        tell(outputs, text)
    return int(agreement is not None and not agreement.agrees)
