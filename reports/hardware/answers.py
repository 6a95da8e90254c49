"""What a GPU answers, as a record keeps it: digests of outputs and of printed kernels, and how they are taken.

Outputs, and arrays that stay with the engine, are digested after every NaN is made the same NaN: that is the equality
engines owe each other. Rows of the op table with a weaker policy, and outputs of kernels that use such rows, are
compared value by value on the GPU, and the worst distance is kept.
"""

from __future__ import annotations

import hashlib
import statistics
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from simtbed import DeviceArray, Kernel, Result, launch
from simtbed.engines.cuda.printer import Source, cuda_source
from simtbed.ir.ops import Policy
from simtbed.kernels import Launcher
from simtbed.runtime.engine import Engine
from simtbed.runtime.prepared import prepare
from simtbed.runtime.registry import EngineName, engine_named
from simtbed.testing.answers import digest, rounds

from .cases import Case, OperationCase, Values

GPU: EngineName = "cuda"
Entry = dict[str, Any]
REPEATS = 3
ROUNDING = 1e-12
"""How far outputs of kernels whose operations engines may round differently may be apart: a share of 1 or of the value. Of
an f32 it is as many units in the last place as of an f64, 4.5e3."""


def source_digest(text: str) -> str:
    """sha256 of a printed kernel."""
    return hashlib.sha256(text.encode()).hexdigest()


@dataclass
class AnswerLauncher(Launcher):
    """A launcher that keeps what its launches answered.

    rounded: outputs that engines owe each other only nearly. raced: arrays that stay with the engine and whose contents
    hang on which thread came first, such as the slots of a hash table: what is made of them is compared, not they.

    Arrays that stay are digested whole. What no kernel wrote in one is zero, as it was made: a host that used one array for
    several batches would leave words of the batch before there, and another digest, though every answer were the same.
    """

    engine: EngineName
    sources: dict[str, Source] = field(default_factory=dict)
    launches: int = 0
    outputs: list[Values] = field(default_factory=list)
    rounded: list[Values] = field(default_factory=list)
    raced: list[DeviceArray] = field(default_factory=list)
    registers: int = 0
    milliseconds: float = 0.0

    def launch(self, kernel: Kernel, **arguments: Any) -> Result:
        result = launch(kernel, engine=self.engine, counters=False, **arguments)
        request = result.request
        source = cuda_source(request.program, request.block)
        self.sources[source_digest(source.text)] = source
        (self.rounded if rounds(request.program) else self.outputs).extend(result.buffers.values())
        prepared = prepare(request.program)
        if prepared.ordered:
            self.raced += [array for name, array in request.device_arrays.items() if name in prepared.changed]
        settled = (array for array in request.device_arrays.values() if not any(array is one for one in self.raced))
        self.outputs += [array.numpy() for array in settled]
        self.registers = max(self.registers, result.resources.registers if result.resources else 0)
        self.milliseconds += result.milliseconds or 0.0
        self.launches += 1
        return result

    def entry(self) -> Entry:
        return {"sources": sorted(self.sources), "output": digest(self.outputs), "launches": self.launches}

    def rounding(self, other: AnswerLauncher) -> float:
        """The largest distance of the rounded outputs from another's, as ROUNDING is."""
        worst = 0.0
        for a, b in zip(self.rounded, other.rounded, strict=True):
            with np.errstate(invalid="ignore"):
                apart = np.where(a == b, 0.0, np.abs(a - b) / np.maximum(np.abs(b), 1.0))
            if a.dtype == np.float32:
                apart *= np.finfo(np.float64).eps / np.finfo(np.float32).eps
            worst = max(worst, float(np.where(np.isnan(apart), np.inf, apart).max(initial=0.0)))
        return worst


def answers_of(case: Case, engine: EngineName) -> AnswerLauncher:
    """A case, run."""
    launcher = AnswerLauncher(engine)
    case.run(launcher)
    return launcher


def operation_answers(case: OperationCase, engine: Engine) -> Entry:
    """The rows of a case: those held to the bit have a digest, others their distance from the meaning."""
    request, given = case.prepare()
    outcome = engine.run(request)
    rows: dict[str, Entry] = {}
    for row in case.rows:
        got, keep = outcome.buffers[f"out_{row.name}"], case.comparable(row, given)
        policy = row.policy_for(case.type)
        if policy.name == "bits":
            rows[row.name] = {"output": digest([got[keep]])}
            continue
        with np.errstate(all="ignore"):
            expected = row.meaning(*given)
        rows[row.name] = {"policy": policy.name, "ulp": distance(policy, got[keep], expected[keep])}
    text = cuda_source(request.program, request.block).text
    return {"sources": [source_digest(text)], "rows": rows}


def distance(policy: Policy, a: Values, b: Values) -> int:
    """The smallest number of units in the last place by which two arrays agree, up to 64 (then 65)."""
    if policy.name == "value":
        return 0 if policy.agree(a, b).all() else 65
    return next((n for n in range(65) if replace(policy, ulp=n).agree(a, b).all()), 65)


# ------------------------------------------------------------------ taking them
def take_answers(
    cases: Mapping[str, Case], emulated: Mapping[str, AnswerLauncher], timed: frozenset[str]
) -> tuple[dict[str, Entry], list[str]]:
    """What the GPU answers by case, and where that is not what the emulator answered. timed: cases whose kernels are
    timed too."""
    found: dict[str, Entry] = {}
    differences: list[str] = []
    for name, case in cases.items():
        answered = answers_of(case, GPU)
        found[name] = answered.entry()
        apart = answered.rounding(emulated[name])
        if name in timed:
            found[name] |= {**_timed(answered, case), "rounding": apart}
        if apart > ROUNDING:
            differences.append(f"{name}: rounded outputs are {apart} apart")
        expected = emulated[name].entry()
        differences += [f"{name}: {key} differs" for key in ("sources", "output") if found[name][key] != expected[key]]
    return found, differences


def _timed(first: AnswerLauncher, case: Case) -> Entry:
    """Registers, and milliseconds of the kernels: the median over further whole runs, as kernels may change what they
    are given."""
    milliseconds = statistics.median(answers_of(case, GPU).milliseconds for _ in range(REPEATS))
    return {"registers": first.registers, "milliseconds": round(milliseconds, 4)}


def take_operations(cases: Iterable[OperationCase]) -> tuple[dict[str, Entry], list[str]]:
    """The op table on the GPU, and the rows that are not the emulator's or beyond their policy."""
    record: dict[str, Entry] = {}
    differences: list[str] = []
    for case in cases:
        record[case.name] = operation_answers(case, engine_named(GPU))
        found, emulated = record[case.name]["rows"], operation_answers(case, engine_named("numpy"))["rows"]
        for row in case.rows:
            policy = row.policy_for(case.type)
            exact = policy.name == "bits"
            if found[row.name] != emulated[row.name] if exact else found[row.name]["ulp"] > policy.ulp:
                differences.append(f"{row.name} of {case.name}: {found[row.name]}")
    return record, differences
