"""Recorded answers of GPUs: digests of outputs and of printed kernels.

Digests are of outputs, and of arrays on the device, with one bit pattern for every NaN: the equality between
engines. Rows of the op table with a weaker policy, and outputs of kernels with such rows, are compared value by
value on the GPU; the record has the largest distance.
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
from simtbed.runtime.arrays import NewArray
from simtbed.runtime.engine import Engine
from simtbed.runtime.prepared import prepare
from simtbed.runtime.registry import EngineName, engine_named
from simtbed.runtime.result import details_of
from simtbed.testing.answers import digest, rounds

from .cases import Case, OperationCase, Values

GPU: EngineName = "cuda"
Entry = dict[str, Any]
REPEATS = 3
ROUNDING = 1e-12
"""Largest difference of rounded outputs, relative to the larger of 1 and the value, for f64. For f32 it is the same
number of units in the last place."""


def source_digest(text: str) -> str:
    """Return the SHA-256 of a printed kernel."""
    return hashlib.sha256(text.encode()).hexdigest()


@dataclass
class AnswerLauncher(Launcher):
    """A launcher that collects outputs.

    rounded: outputs of kernels with tolerances. raced: arrays on the device with contents in the order of threads,
    such as the slots of a hash table; only results computed from them are compared.

    Other arrays on the device are compared whole. Words without a store are zero.
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
        arguments["args"] = {name: _zeroed(value) for name, value in arguments["args"].items()}
        result = launch(kernel, engine=self.engine, counters=False, maths="native", **arguments)
        details = details_of(result)
        request = details.request
        source = cuda_source(request.program, request.block, cluster=request.cluster)
        self.sources[source_digest(source.text)] = source
        (self.rounded if rounds(request.program) else self.outputs).extend(details.buffers.values())
        prepared = prepare(request.program)
        if prepared.ordered:
            self.raced += [array for name, array in request.device_arrays.items() if name in prepared.changed]
        settled = (array for array in request.device_arrays.values() if not any(array is one for one in self.raced))
        self.outputs += [array.numpy() for array in settled]
        self.registers = max(self.registers, details.resources.registers if details.resources else 0)
        self.milliseconds += details.milliseconds or 0.0
        self.launches += 1
        return result

    def entry(self) -> Entry:
        return {"sources": sorted(self.sources), "output": digest(self.outputs), "launches": self.launches}

    def rounding(self, other: AnswerLauncher) -> float:
        """Return the largest distance between the rounded outputs of two launchers, in units of ROUNDING."""
        worst = 0.0
        for a, b in zip(self.rounded, other.rounded, strict=True):
            with np.errstate(invalid="ignore"):
                difference = np.where(a == b, 0.0, np.abs(a - b) / np.maximum(np.abs(b), 1.0))
            if a.dtype == np.float32:
                difference *= np.finfo(np.float64).eps / np.finfo(np.float32).eps
            worst = max(worst, float(np.where(np.isnan(difference), np.inf, difference).max(initial=0.0)))
        return worst


def _zeroed(value: Any) -> Any:
    """Return an argument with zeros in place of the poison of `empty`, also in a device array before its first launch."""
    if isinstance(value, NewArray):
        return replace(value, readable=True)
    if isinstance(value, DeviceArray) and value.written is not None and value.fill is not None:
        value.fill = np.zeros_like(value.fill)
    return value


def answers_of(case: Case, engine: EngineName) -> AnswerLauncher:
    """Run a case on an engine and return its launcher."""
    launcher = AnswerLauncher(engine)
    case.run(launcher)
    return launcher


def operation_answers(case: OperationCase, engine: Engine) -> Entry:
    """Return the rows of a case: digests of the rows with the policy BITS, distances from the meaning of the others."""
    request, operands = case.prepare()
    outcome = engine.run(replace(request, maths="native"))
    rows: dict[str, Entry] = {}
    for row in case.rows:
        got, keep = outcome.buffers[f"out_{row.name}"], case.comparable(row, operands)
        policy = row.policy_for(case.type)
        if policy.name == "bits":
            rows[row.name] = {"output": digest([got[keep]])}
            continue
        with np.errstate(all="ignore"):
            expected = row.meaning(*operands)
        rows[row.name] = {"policy": policy.name, "ulp": distance(policy, got[keep], expected[keep])}
    text = cuda_source(request.program, request.block, cluster=request.cluster).text
    return {"sources": [source_digest(text)], "rows": rows}


def distance(policy: Policy, a: Values, b: Values) -> int:
    """Return the smallest distance in units in the last place within which two arrays agree: 0 to 64, or 65."""
    if policy.name == "value":
        return 0 if policy.agree(a, b).all() else 65
    return next((n for n in range(65) if replace(policy, ulp=n).agree(a, b).all()), 65)


# ------------------------------------------------------------------ on a GPU
def take_answers(
    cases: Mapping[str, Case], emulated: Mapping[str, AnswerLauncher], timed: frozenset[str]
) -> tuple[dict[str, Entry], list[str]]:
    """Return the GPU's answers by case, and the differences from the emulator's. timed: names of the cases with recorded times."""
    entries: dict[str, Entry] = {}
    differences: list[str] = []
    for name, case in cases.items():
        answered = answers_of(case, GPU)
        entries[name] = answered.entry()
        difference = answered.rounding(emulated[name])
        if name in timed:
            entries[name] |= {**_timed(answered, case), "rounding": difference}
        if difference > ROUNDING:
            differences.append(f"{name}: rounded outputs are {difference} apart")
        expected = emulated[name].entry()
        differences += [
            f"{name}: {key} differs" for key in ("sources", "output") if entries[name][key] != expected[key]
        ]
    return entries, differences


def _timed(first: AnswerLauncher, case: Case) -> Entry:
    """Return registers and milliseconds: the median of further whole runs, because kernels may change their arguments."""
    milliseconds = statistics.median(answers_of(case, GPU).milliseconds for _ in range(REPEATS))
    return {"registers": first.registers, "milliseconds": round(milliseconds, 4)}


def take_operations(cases: Iterable[OperationCase]) -> tuple[dict[str, Entry], list[str]]:
    """Return the op table on the GPU, and the rows beyond their policy."""
    record: dict[str, Entry] = {}
    differences: list[str] = []
    for case in cases:
        record[case.name] = operation_answers(case, engine_named(GPU))
        measured, emulated = record[case.name]["rows"], operation_answers(case, engine_named("numpy"))["rows"]
        for row in case.rows:
            policy = row.policy_for(case.type)
            exact = policy.name == "bits"
            if measured[row.name] != emulated[row.name] if exact else measured[row.name]["ulp"] > policy.ulp:
                differences.append(f"{row.name} of {case.name}: {measured[row.name]}")
    return record, differences
