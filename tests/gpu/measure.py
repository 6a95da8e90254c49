"""What a GPU record holds, computed on any engine: digests of outputs and of printed sources.

Outputs, and arrays that stay with the engine, are digested after every NaN is made the same NaN: that is the equality
engines owe each other. Rows of the op table with a weaker policy, and outputs of kernels that use such rows, are
compared value by value on the GPU, and the worst distance is kept.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from simtbed import DeviceArray, Kernel, Result, launch
from simtbed.engines.cuda.printer import Source, cuda_source
from simtbed.ir import nodes as ir
from simtbed.ir.ops import TABLE, Policy
from simtbed.ir.walk import expressions, statements
from simtbed.kernels import FAMILIES, Launcher
from simtbed.runtime.engine import Engine
from simtbed.runtime.prepared import prepare
from simtbed.testing.conformance.edge_values import Values, defined
from simtbed.testing.conformance.feature import Feature
from simtbed.testing.conformance.operations import Group, request

Entry = dict[str, Any]


def digest(arrays: Iterable[Values]) -> str:
    """sha256 of arrays, in order."""
    whole = hashlib.sha256()
    for array in arrays:
        values = np.ascontiguousarray(array)
        if values.dtype.kind == "f":
            values = np.where(np.isnan(values), np.array(np.nan, values.dtype), values)
        whole.update(f"{values.dtype}{values.shape}".encode() + values.tobytes())
    return whole.hexdigest()


def source_digest(text: str) -> str:
    """sha256 of a printed kernel."""
    return hashlib.sha256(text.encode()).hexdigest()


def rounds(program: ir.Program) -> bool:
    """Whether a program uses operations that engines may round differently."""
    body = prepare(program).program.kernel.body
    used = {e.name for s in statements(body) for e in expressions(s) if isinstance(e, ir.Op)}
    return any(TABLE[name].policy.name == "ulp" for name in used)


ROUNDING = 1e-12
"""How far outputs of kernels that use such operations may be apart, as a share of 1 or, where it is larger, the value."""


@dataclass
class Recorder(Launcher):
    """A launcher that keeps what its launches did.

    rounded: outputs that engines owe each other only nearly. raced: arrays that stay with the engine and whose contents
    hang on which thread came first, such as the slots of a hash table: what is made of them is compared, not they.
    """

    engine: Any
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

    def rounding(self, other: Recorder) -> float:
        """The largest distance of the rounded outputs from another's: a share of 1 or of the value."""
        worst = 0.0
        for a, b in zip(self.rounded, other.rounded, strict=True):
            with np.errstate(invalid="ignore"):
                apart = np.where(a == b, 0.0, np.abs(a - b) / np.maximum(np.abs(b), 1.0))
            worst = max(worst, float(np.where(np.isnan(apart), np.inf, apart).max(initial=0.0)))
        return worst


def of_feature(feature: Feature, engine: str) -> Recorder:
    """One language feature's kernel, run."""
    recorder = Recorder(engine)
    feature.launch(recorder.launch)
    return recorder


def of_variant(family: str, variant: str, path: Path, engine: str) -> Recorder:
    """A whole data set through one variant; a path that ends in `example` stands for the shipped one."""
    recorder = Recorder(engine)
    FAMILIES[family].solve(_problem(family, path), variant, recorder)
    return recorder


@cache
def _problem(family: str, path: Path) -> Any:
    chosen = FAMILIES[family]
    return chosen.example() if path.name == "example" else chosen.read(path)


def of_ops(group: Group, engine: Engine) -> Entry:
    """Rows of the op table that share their operands; rows held to the bit have a digest, others their distance."""
    launch_request, given = request(group)
    outcome = engine.run(launch_request)
    rows: dict[str, Entry] = {}
    for row in group[1]:
        got, keep = outcome.buffers[f"out_{row.name}"], defined(row, given)
        if row.policy.name == "bits":
            rows[row.name] = {"output": digest([got[keep]])}
            continue
        with np.errstate(all="ignore"):
            expected = row.meaning(*given)
        rows[row.name] = {"policy": row.policy.name, "ulp": distance(row.policy, got[keep], expected[keep])}
    text = cuda_source(launch_request.program, launch_request.block).text
    return {"sources": [source_digest(text)], "rows": rows}


def distance(policy: Policy, a: Values, b: Values) -> int:
    """The smallest number of units in the last place by which two arrays agree, up to 64 (then 65)."""
    if policy.name == "value":
        return 0 if policy.agree(a, b).all() else 65
    return next((n for n in range(65) if Policy("ulp", n).agree(a, b).all()), 65)
