"""The race checker against all pairs of accesses, on random kernels with and without a deleted barrier."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from simtbed import Diagnostic, devices, launch
from simtbed.runtime.registry import EngineName
from simtbed.testing.source_text import kernel_from_source

from tests.checkers.random_kernels import Program, arguments, draw

SEEDS = 20
ENGINES: tuple[EngineName, ...] = ("numpy", "jit")


def _races(program: Program, folder: Path, device: str) -> list[Diagnostic]:
    """What both engines report."""
    kernel = kernel_from_source(program.source, folder)
    found = [
        launch(
            kernel, grid=program.grid, block=program.block, args=arguments(program), check="races", faults="return",
            engine=engine, device=devices.DEVICES[device],
        ).faults
        for engine in ENGINES
    ]  # fmt: skip
    assert found[0] == found[1]
    return found[0]


@pytest.mark.slow
@pytest.mark.parametrize("device", ["H200", "K40"])
def test_every_race_and_nothing_else(tmp_path: Path, device: str, record_property: pytest.FixtureRequest) -> None:
    """No racy kernel is passed, no other one is accused, and each pair of lines that is named does race."""
    counts: Counter[str] = Counter()
    for seed in range(SEEDS):
        program = draw(seed)
        barriers = [n for n, step in enumerate(program.steps) if step.what == "sync"]
        for one in (program, *(program.without(n) for n in barriers[:1])):
            expected = one.races(lockstep=device == "K40")
            faults = _races(one, tmp_path, device)
            named = {frozenset((f.span.line, (f.related or f.span).line)) for f in faults}
            counts["kernels"] += 1
            counts["racy"] += bool(expected)
            counts["found"] += bool(expected and faults)
            counts["pairs"] += len(expected)
            counts["pairs named"] += len(named & expected)
            counts["false alarms"] += len(named - expected)
            assert bool(faults) == bool(expected), one.source
            assert named <= expected, one.source
    record_property("race checker", dict(counts))  # type: ignore[operator]
    assert counts["racy"] > counts["kernels"] // 4 and counts["racy"] < counts["kernels"]  # both are there
    print(dict(counts))
