"""The emulator compared with all recorded counters. One test a comparison, so that each is computed once."""

import tomllib

import pytest
from simtbed.reports.hardware import text
from simtbed.reports.hardware.compare import Comparison

from tests.validation import accuracy
from tests.validation.cases import CASES
from tests.validation.recorded import RECORDS

RECORD = "on the GPU: simtbed record " + " ".join(f"--cases {name}" for name in CASES)
COMPARE = "simtbed hardware compare " + " ".join(f"--cases {name}" for name in CASES) + " --markdown > h200.md"
ORDERED = {
    f"validation {name}"
    for name in (
        "slab_photons", "raster_tiles", "neutron_slab", "product_row_sizes", "popular_labels",
    )
}  # fmt: skip
"""Kernels with shared atomics that depend on the order of blocks, on retries, or on conflicts with other traffic."""
WITHOUT_ROWS = {"bulk_reductions", "tensor_reductions"}
"""Features with instructions that the emulator of SASS does not have."""


def assert_accuracy(name: str, comparison: Comparison) -> None:
    """Check that no value is below the stored one."""
    stored = tomllib.loads(accuracy.ACCURACY.read_text(encoding="utf-8"))[name]
    present = accuracy.summary(comparison)
    assert comparison.stale == (), f"record them again {RECORD}"
    assert (present["kernels"], present["memory"]) == (stored["kernels"], stored["memory"])
    assert {key: present[key] for key in stored if present[key] < stored[key]} == {}


def test_shipped_kernels() -> None:
    """Every metric is within its tolerance or has a reason, every reason applies, and the report is current."""
    comparison = accuracy.compared("shipped_h200")
    assert_accuracy("shipped_h200", comparison)
    unexplained = [(c.kernel, c.figure.name, c.emulated, c.measured) for c in comparison.unexplained]
    assert unexplained == []
    assert [(reason.kernels, reason.figures) for reason in comparison.idle] == []
    names = ("barriers", "registers", "occupancy")
    assert [cell.kernel for cell in comparison.cells if cell.figure.name in names and not cell.within_tolerance] == []
    assert comparison.refused.keys() == WITHOUT_ROWS
    assert (RECORDS / "h200.md").read_text(encoding="utf-8") == text.markdown(comparison) + "\n", COMPARE


@pytest.mark.parametrize("device", ["h200", "h100"])
def test_validation_kernels(device: str) -> None:
    """Shared atomics are exact, except those of ORDERED."""
    comparison = accuracy.compared(f"validation_{device}")
    assert comparison.refused == {}
    assert_accuracy(f"validation_{device}", comparison)
    cells = [cell for cell in comparison.cells if cell.kernel not in ORDERED]
    wrong = [cell for cell in cells if cell.figure.name.startswith("shared_atomic") and not cell.within_tolerance]
    assert [(cell.kernel, cell.figure.name, cell.emulated, cell.measured) for cell in wrong] == []
