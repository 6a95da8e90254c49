"""What lanes access together in compiled kernels, beside what Nsight Compute counted of them on an H200."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from simtbed import devices
from simtbed.compiled.kernel import counted
from simtbed.compiled.memory import Memory
from simtbed.profiler.events import GLOBAL, SHARED
from simtbed.reports.hardware import record
from simtbed.reports.hardware.cases import TEXTBOOK, find
from simtbed.reports.hardware.profiled import Profiled
from simtbed.reports.hardware.recording import RecordingLauncher

KEPT = record.load(record.FOLDER / "textbook" / "h200.json")
CASES = {
    "newton_roots": "lanes leave a loop at different turns, and store together behind it",
    "n_queens": "the same, of lanes that leave an unrolled loop and those behind it",
    "suppress_boxes": "lanes of an unrolled loop, some of which leave it",
    "matrix_vector": "predicated loads behind the last turn",
    "complex_products": "two sites at a place, of one of which two accesses are merged",
    "scan_blelloch": "predicated turns of an unrolled loop, in one of which accesses of two lines are merged",
    "bitonic_block": "the same with stores",
    "matmul_async": "reads that no lane makes",
    "spmv_rows": "a loop of predicated turns",
    "lennard_jones_cells": "loads under a condition",
    "reduce_strided": "a load and the store behind it under a condition",
    "warp_distances": "a store that is executed no more often than in the source",
}


def compiled(name: str, accesses: bool = True) -> Iterator[tuple[Profiled, Memory]]:
    """accesses: whether what was recorded of them is there."""
    (case,) = (case for case in find([TEXTBOOK]) if case.name == f"textbook {name}")
    launcher = RecordingLauncher("jit", devices.H200)
    case.run(launcher)
    for launched in launcher.kernels:
        (profiled,) = (one for one in KEPT.counters[case.name] if one.source == launched.digest)
        assert launched.decisions is not None and launched.decisions.accesses
        if not accesses:
            launched.decisions.accesses = []
        yield profiled, counted(launched, [ran.placed for ran in profiled.sass])[1]


@pytest.mark.parametrize("name", CASES)
def test_what_lanes_access_together_is_counted(name: str) -> None:
    for profiled, memory in compiled(name):
        figures = [figure for figure in memory.figures if figure.startswith((*GLOBAL, *SHARED))]
        assert {figure: memory.figures[figure] for figure in figures} == {
            figure: round(profiled.figures[figure]) for figure in figures
        }


def test_without_recorded_accesses_they_cost_what_the_source_says_on_average() -> None:
    ((profiled, memory),) = compiled("newton_roots", accesses=False)
    assert memory.figures["global_store_requests"] == profiled.figures["global_store_requests"]
    assert memory.figures["global_store_sectors"] > 2 * profiled.figures["global_store_sectors"]


def test_the_differences_are_told_by_line() -> None:
    ((_, memory),) = compiled("newton_roots")
    stores = [one for one in memory.differences if one.kind == "global_store"]
    assert len(stores) == 2
    assert all("lanes together that come apart in the source" in one.what for one in stores)
