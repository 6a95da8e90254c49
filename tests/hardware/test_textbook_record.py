"""What an H200 answered and counted of the textbook kernels: the emulator is held to both."""

from __future__ import annotations

from collections import Counter

import pytest
from simtbed.reports.hardware import record
from simtbed.reports.hardware.answers import ROUNDING, answers_of
from simtbed.reports.hardware.cases import TEXTBOOK, Case, find
from simtbed.reports.hardware.compare import Comparison, compare
from simtbed.reports.hardware.text import GROUPS

KEPT = record.load(record.FOLDER / "textbook" / "h200.json")
MET = {
    "global loads": 368, "global stores": 371, "global atomics": 367, "global reductions": 366, "shared loads": 370,
    "shared stores": 365, "shared atomics": 372, "barriers": 187, "shuffles": 186, "warp instructions": 185, "efficiency": 185,
    "registers": 187, "occupancy": 187,
}  # fmt: skip
"""How many figures are as near as they shall be, at least."""


@pytest.mark.parametrize("case", find([TEXTBOOK]), ids=lambda case: case.name)
def test_the_gpu_answered_the_same(case: Case) -> None:
    assert answers_of(case, "jit").entry() == KEPT.answers[case.name]
    assert KEPT.answers[case.name].get("rounding", 0.0) <= ROUNDING


@pytest.fixture(scope="module")
def found() -> Comparison:
    return compare(KEPT, [TEXTBOOK])


@pytest.mark.slow
def test_every_kernel_is_recorded_as_it_is_printed(found: Comparison) -> None:
    assert found.stale == found.unmeasured == ()


@pytest.mark.slow
def test_figures_do_not_get_worse(found: Comparison) -> None:
    met = Counter(dict.fromkeys(MET, 0))
    for name, figures in GROUPS:
        met[name] += sum(cell.meets for cell in found.cells if cell.figure.name in figures)
    assert {name: (n, MET[name]) for name, n in met.items() if n < MET[name]} == {}


@pytest.mark.slow
def test_shared_atomics_are_exact(found: Comparison) -> None:
    """Those that count, and those that return what was there; but where the order of blocks decides which threads make them."""
    cells = [cell for cell in found.cells if cell.kernel != "textbook expand_frontier"]
    wrong = [cell for cell in cells if cell.figure.name.startswith("shared_atomic") and not cell.meets]
    assert [(cell.kernel, cell.figure.name, cell.emulated, cell.measured) for cell in wrong] == []
