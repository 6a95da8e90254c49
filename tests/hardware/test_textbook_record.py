"""What GPUs answered and counted of the textbook kernels: the emulator is held to both."""

from __future__ import annotations

from collections import Counter

import pytest
from simtbed.reports.hardware import record
from simtbed.reports.hardware.answers import ROUNDING, answers_of
from simtbed.reports.hardware.cases import TEXTBOOK, Case, find
from simtbed.reports.hardware.compare import Comparison, compare
from simtbed.reports.hardware.text import GROUPS

KEPT = {name: record.load(record.FOLDER / "textbook" / f"{name.lower()}.json") for name in ("H200", "H100")}
"""An H100 counted those that were written last."""
MET = {
    "H200": {
        "global loads": 368, "global stores": 371, "global atomics": 367, "global reductions": 366, "shared loads": 370,
        "shared stores": 365, "shared atomics": 372, "barriers": 187, "shuffles": 186, "warp instructions": 185, "efficiency": 185,
        "registers": 187, "occupancy": 187,
    },
    "H100": {
        "global loads": 75, "global stores": 77, "global atomics": 78, "global reductions": 78, "shared loads": 77,
        "shared stores": 80, "shared atomics": 76, "barriers": 40, "shuffles": 40, "warp instructions": 39, "efficiency": 38,
        "registers": 40, "occupancy": 40,
    },
}  # fmt: skip
"""How many figures are as near as they shall be, at least."""


def test_each_kernel_is_in_one_record() -> None:
    recorded = [name for kept in KEPT.values() for name in kept.answers]
    assert sorted(recorded) == sorted(case.name for case in find([TEXTBOOK]))


@pytest.mark.parametrize("case", find([TEXTBOOK]), ids=lambda case: case.name)
def test_the_gpu_answered_the_same(case: Case) -> None:
    kept = next(each for each in KEPT.values() if case.name in each.answers)
    assert answers_of(case, "jit").entry() == kept.answers[case.name]
    assert kept.answers[case.name].get("rounding", 0.0) <= ROUNDING


@pytest.fixture(scope="module", params=KEPT)
def found(request: pytest.FixtureRequest) -> tuple[str, Comparison]:
    return request.param, compare(KEPT[request.param], [TEXTBOOK])


@pytest.mark.slow
def test_every_kernel_is_recorded_as_it_is_printed(found: tuple[str, Comparison]) -> None:
    device, compared = found
    elsewhere = {case.name for case in find([TEXTBOOK])} - KEPT[device].counters.keys()
    assert compared.stale == () and set(compared.unmeasured) == elsewhere


@pytest.mark.slow
def test_figures_do_not_get_worse(found: tuple[str, Comparison]) -> None:
    device, compared = found
    met = Counter(dict.fromkeys(MET[device], 0))
    for name, figures in GROUPS:
        met[name] += sum(cell.meets for cell in compared.cells if cell.figure.name in figures)
    assert {name: (n, MET[device][name]) for name, n in met.items() if n < MET[device][name]} == {}


@pytest.mark.slow
def test_shared_atomics_are_exact(found: tuple[str, Comparison]) -> None:
    """Those that count, and those that return what was there; but where the order of blocks decides which threads make them."""
    of_order = {"textbook expand_frontier", "textbook group_sums", "textbook sand_tiles"}
    cells = [cell for cell in found[1].cells if cell.kernel not in of_order]
    wrong = [cell for cell in cells if cell.figure.name.startswith("shared_atomic") and not cell.meets]
    assert [(cell.kernel, cell.figure.name, cell.emulated, cell.measured) for cell in wrong] == []
