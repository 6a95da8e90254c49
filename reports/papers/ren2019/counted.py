"""Problems of Ren 2019 and the counters of each kernel of a variant by the rules of the K40."""

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
from ..claims import Value, predicted_for

K40 = replace(devices.find("K40"), clock=745)
"""The GPU of the paper, at its clock."""
LENGTHS = (64, 128, 192, 256, 320, 384, 448, 512, 576)
BATCHES = (25, 100, 1_000)
"""Lengths of both sequences and numbers of pairs of the synthetic sets."""


def sequences(length: int, pairs: int) -> Problem:
    """Return a synthetic set: alternates with substitutions and gaps, as in reads of wgsim."""
    return generate(length, pairs, (length, length), (length, length))


def equal_sequences(length: int, pairs: int, reference: int = 0) -> Problem:
    """Return the set of Figures 9 and 11: alternates are prefixes of their references, so all moves are diagonal."""
    problem = generate(length, pairs, (reference or length, reference or length), (length, length))
    return Problem.from_pairs((r, r[:length] if len(r) >= length else a) for r, a in problem.pairs())


def counters(problem: Problem, variant: str, kernel: str, engine: EngineName) -> Counters:
    """Return the counters of a kernel over the launches of a variant."""
    runner = Runner(engine, K40, counting=True)
    FAMILY.solve(problem, variant, runner)
    return runner.counters_of(kernel)


@cache
def of_set(length: int, pairs: int, variant: str, kernel: str, engine: EngineName) -> Counters:
    """Of a synthetic set."""
    return counters(sequences(length, pairs), variant, kernel, engine)


@cache
def of_equal(length: int, pairs: int, variant: str, kernel: str, engine: EngineName) -> Counters:
    """Of a set of equal sequences."""
    return counters(equal_sequences(length, pairs), variant, kernel, engine)


@cache
def predicted(length: int, pairs: int, variant: str, engine: EngineName) -> Value:
    """Predict the GCUPS of the first stage on a K40, with the registers of `registers_of`."""
    launched: list[Result] = []

    @FunctionLauncher
    def noted(kernel: Kernel, **how: Any) -> Result:
        launched.append(launch(kernel, engine=engine, device=K40, counters=False, **how))
        return launched[-1]

    problem = sequences(length, pairs)
    FAMILY.solve(problem, variant, noted)
    first = [one for one in launched if one.request.program.kernel.name != "traceback"]
    times = [estimate(observe(one.request, registers_of(variant), engine), K40) for one in first]
    time, low, high = (
        problem.cells / us / 1e3
        for us in map(sum, zip(*((t.time_us, t.high_us, t.low_us) for t in times), strict=True))
    )
    return Value(predicted_for(K40), time, "", (low, high))


def registers_of(variant: str) -> int:
    """Return the registers per thread recorded for sm_90; without a record, the maximum of a fully occupied K40."""
    return recorded.registers(f"alignment {variant}") or 32
