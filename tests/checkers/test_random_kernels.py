"""The race checker against all pairs of accesses, on random kernels with and without a deleted barrier."""

from collections import Counter
from pathlib import Path

import pytest
from simtbed import Diagnostic, devices, launch
from simtbed.runtime.registry import EngineName
from simtbed.sanitizer import repairs
from simtbed.testing.source_text import kernel_from_source

from tests.checkers.random_kernels import Program, arguments, draw

SEEDS = 20
ENGINES: tuple[EngineName, ...] = ("numpy", "jit")


def _races(program: Program, folder: Path, device: str) -> list[Diagnostic]:
    """Return the report of both engines."""
    kernel = kernel_from_source(program.source, folder)
    reports = [
        launch(
            kernel, grid=program.grid, block=program.block, args=arguments(program), check="races", faults="return",
            engine=engine, device=devices.DEVICES[device],
        ).faults
        for engine in ENGINES
    ]  # fmt: skip
    assert reports[0] == reports[1]
    return reports[0]


@pytest.mark.slow
@pytest.mark.parametrize("device", ["H200", "K40"])
def test_every_race_and_nothing_else(
    tmp_path: Path, device: str, record_property: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every racy kernel is reported, no other one is, and each reported pair of lines has a race."""
    monkeypatch.setattr(repairs, "MAX_TRIALS", 0)  # detection alone, not advice
    counts: Counter[str] = Counter()
    for seed in range(SEEDS):
        program = draw(seed)
        barriers = [n for n, step in enumerate(program.steps) if step.what == "sync"]
        for variant in (program, *(program.without(n) for n in barriers[:1])):
            expected = variant.races(lockstep=device == "K40")
            faults = _races(variant, tmp_path, device)
            named = {frozenset((f.span.line, (f.related or f.span).line)) for f in faults}
            counts["kernels"] += 1
            counts["racy"] += bool(expected)
            counts["found"] += bool(expected and faults)
            counts["pairs"] += len(expected)
            counts["pairs named"] += len(named & expected)
            counts["false alarms"] += len(named - expected)
            assert bool(faults) == bool(expected), variant.source
            assert named <= expected, variant.source
    record_property("race checker", dict(counts))  # type: ignore[operator]
    assert counts["racy"] > counts["kernels"] // 4 and counts["racy"] < counts["kernels"]  # both kinds are present
    print(dict(counts))
