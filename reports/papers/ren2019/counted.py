"""Problems of Ren 2019's sets, and what each kernel of a variant counts on them by the rules of the paper's card."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any

from simtbed import Counters, Kernel, Result, devices, launch
from simtbed.kernels import FunctionLauncher
from simtbed.kernels.alignment import FAMILY
from simtbed.kernels.alignment.host.generate import generate
from simtbed.kernels.alignment.host.problem import Problem
from simtbed.model.launches import observe
from simtbed.model.time import estimate
from simtbed.runtime.registry import EngineName

from ...launchers import Runner
from .. import recorded

K40 = replace(devices.find("K40"), clock=745)
"""The paper's card, at the clock it gives."""
LENGTHS = (64, 128, 192, 256, 320, 384, 448, 512, 576)
BATCHES = (25, 100, 1_000)
"""Bases of both sequences and pairs of the synthetic sets."""


def sequences(length: int, pairs: int) -> Problem:
    """A synthetic set: alternates with changes and gaps, as wgsim's reads have them."""
    return generate(length, pairs, (length, length), (length, length))


def equal_sequences(length: int, pairs: int, reference: int = 0) -> Problem:
    """The set of Figures 9 and 11: alternates that begin their references, so that all moves are diagonal."""
    made = generate(length, pairs, (reference or length, reference or length), (length, length))
    return Problem.of((r, r[:length] if len(r) >= length else a) for r, a in made.pairs())


def counters(problem: Problem, variant: str, kernel: str, engine: EngineName) -> Counters:
    """What a kernel counts over the launches of a variant."""
    runner = Runner(engine, K40, counting=True)
    FAMILY.solve(problem, variant, runner)
    found = [counters for program, counters in runner.counted if program.kernel.name == kernel]
    return sum(found[1:], found[0])


@cache
def of_set(length: int, pairs: int, variant: str, kernel: str, engine: EngineName) -> Counters:
    """Of a synthetic set."""
    return counters(sequences(length, pairs), variant, kernel, engine)


@cache
def of_equal(length: int, pairs: int, variant: str, kernel: str, engine: EngineName) -> Counters:
    """Of a set of equal sequences."""
    return counters(equal_sequences(length, pairs), variant, kernel, engine)


@cache
def predicted(length: int, pairs: int, variant: str, engine: EngineName) -> float:
    """GCUPS of the first stage on a K40, as the time model predicts them; registers are those of `registers_of`."""
    launched: list[Result] = []

    @FunctionLauncher
    def noted(kernel: Kernel, **how: Any) -> Result:
        launched.append(launch(kernel, engine=engine, device=K40, counters=False, **how))
        return launched[-1]

    problem = sequences(length, pairs)
    FAMILY.solve(problem, variant, noted)
    first = [one for one in launched if one.request.program.kernel.name != "traceback"]
    time = sum(estimate(observe(one.request, registers_of(variant), engine), K40).time_us for one in first)
    return problem.cells / time / 1e3


def registers_of(variant: str) -> int:
    """Of a thread, as the H200's record has them; as many as a full K40 allows where the variant waits for its run."""
    return recorded.registers(f"alignment {variant}") or 32
