"""What GPUs answered and counted of the textbook kernels: the emulator is held to both."""

from __future__ import annotations

from collections import Counter

import pytest
from simtbed.reports.hardware.answers import ROUNDING, answers_of
from simtbed.reports.hardware.cases import Case, find
from simtbed.reports.hardware.compare import Comparison, compare
from simtbed.reports.hardware.text import GROUPS

from tests.validation.recorded import KERNEL_CASES, load_record

KEPT = {name: load_record(f"kernels/{name.lower()}") for name in ("H200", "H100")}
"""An H100 counted those that were written last."""
MET = {
    "H200": {
        "global loads": 631, "global stores": 644, "global atomics": 643, "global reductions": 642, "shared loads": 636,
        "shared stores": 640, "shared atomics": 638, "barriers": 327, "shuffles": 325, "warp instructions": 324, "efficiency": 323,
        "registers": 326, "occupancy": 327,
    },
    "H100": {
        "global loads": 263, "global stores": 273, "global atomics": 276, "global reductions": 276, "shared loads": 266,
        "shared stores": 275, "shared atomics": 266, "barriers": 140, "shuffles": 139, "warp instructions": 139, "efficiency": 138,
        "registers": 139, "occupancy": 140,
    },
}  # fmt: skip
"""How many figures are as near as they shall be, at least."""


def test_each_kernel_is_in_the_record_of_an_h200() -> None:
    every = {case.name for case in find([KERNEL_CASES])}
    assert KEPT["H200"].answers.keys() == every > KEPT["H100"].answers.keys()


def test_both_gpus_count_the_same_where_threads_do_not_race() -> None:
    """Of a few kernels one figure or two are others: which lanes of a warp come first."""
    one, other = (KEPT[name].counters for name in ("H100", "H200"))
    pairs = [(name, a, b) for name in one for a, b in zip(one[name], other[name], strict=True)]
    unlike = Counter(name for name, a, b in pairs for figure, n in a.figures.items() if n != b.figures[figure])
    assert len(pairs) == 140 and sum(unlike.values()) <= 49 and unlike.most_common(1)[0][0] == "validation group_sums"


@pytest.mark.parametrize("case", find([KERNEL_CASES]), ids=lambda case: case.name)
def test_the_gpu_answered_the_same(case: Case) -> None:
    kept = next(each for each in KEPT.values() if case.name in each.answers)
    assert answers_of(case, "jit").entry() == kept.answers[case.name]
    assert kept.answers[case.name].get("rounding", 0.0) <= ROUNDING


@pytest.fixture(scope="module", params=KEPT)
def found(request: pytest.FixtureRequest) -> tuple[str, Comparison]:
    return request.param, compare(KEPT[request.param], [KERNEL_CASES])


@pytest.mark.slow
def test_every_kernel_is_recorded_as_it_is_printed(found: tuple[str, Comparison]) -> None:
    device, compared = found
    elsewhere = {case.name for case in find([KERNEL_CASES])} - KEPT[device].counters.keys()
    assert compared.stale == () and set(compared.unmeasured) == elsewhere


@pytest.mark.slow
def test_figures_do_not_get_worse(found: tuple[str, Comparison]) -> None:
    device, compared = found
    met = Counter(dict.fromkeys(MET[device], 0))
    for name, figures in GROUPS:
        met[name] += sum(cell.within_tolerance for cell in compared.cells if cell.figure.name in figures)
    assert {name: (n, MET[device][name]) for name, n in met.items() if n < MET[device][name]} == {}


@pytest.mark.slow
def test_shared_atomics_are_exact(found: tuple[str, Comparison]) -> None:
    """Those that count, and those that return what was there; but where the order of blocks decides which threads make them, where threads
    try again, and where conflicts come of other traffic."""
    of_order = {
        f"validation {name}"
        for name in (
            "expand_frontier",
            "group_sums",
            "sand_tiles",
            "slab_photons",
            "raster_tiles",
            "neutron_slab",
            "product_row_sizes",
            "popular_labels",
        )
    }
    cells = [cell for cell in found[1].cells if cell.kernel not in of_order]
    wrong = [cell for cell in cells if cell.figure.name.startswith("shared_atomic") and not cell.within_tolerance]
    assert [(cell.kernel, cell.figure.name, cell.emulated, cell.measured) for cell in wrong] == []
