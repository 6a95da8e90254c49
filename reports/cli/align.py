"""What `simtbed align` does: pairs from a table or two FASTA files, CIGARs to a file."""

from __future__ import annotations

import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

import numpy as np
from simtbed import SimtbedError, map_over_gpus
from simtbed.kernels.alignment import FAMILY
from simtbed.kernels.alignment.host.files import lines, read, read_fasta
from simtbed.kernels.alignment.host.problem import Parameters, Problem, Strategy
from simtbed.kernels.files import write
from simtbed.runtime.registry import EngineName

from ..running import Runner, ask_for_gpus, progress
from .commands import report


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


def align(source: Path | None, alternates: Path | None, target: Path | None, example: bool, how: How) -> int:
    """Align every pair; 1 where the oracle was asked and disagrees. Raises SimtbedError."""
    if (source is None) != example:
        raise SimtbedError("align takes a file, or --example")
    if how.variant not in FAMILY.variants:
        raise SimtbedError(f"alignment has no variant {how.variant!r}; it has {', '.join(FAMILY.variants)}")
    if how.counting and how.engine == "cuda":
        raise SimtbedError("--counters needs an emulator, jit or numpy: the cuda engine does not count")
    if how.json and not (how.check or how.counting):
        raise SimtbedError("--json is about reports: ask for --check or --counters too")
    if target is not None and not target.parent.is_dir():
        raise SimtbedError(f"{target}: there is no folder {target.parent}")  # before the work, not after it
    ask_for_gpus(how.gpus, how.engine)
    problem, name = _problem(source, alternates)
    problem = replace(problem, parameters=_parameters(how.parameters), strategy=Strategy[how.strategy])
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
        report(runner, agreement, how.json, sys.stderr if target is None else sys.stdout)
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
