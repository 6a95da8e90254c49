"""Values of accuracy in README.md and docs/ are those of the records."""

from __future__ import annotations

from tests.validation import accuracy
from tests.validation.kernels import KERNELS
from tests.validation.recorded import ROOT


def test_pages_are_current() -> None:
    table = accuracy.values()
    for page in accuracy.CLAIMS:
        text = (ROOT / page).read_text(encoding="utf-8")
        assert accuracy.rewritten(page, text, table) == text, "python -m tests.validation.accuracy --write"


def test_each_kernel_is_in_one_batch() -> None:
    batches = accuracy.batches()
    names = [name for batch in batches.values() for name in batch["kernels"]]
    assert sorted(names) == sorted(kernel.name for kernel in KERNELS)
    assert {number: batch["kind"] for number, batch in batches.items()} == {
        str(number): "development" if number == 1 else "held-out" for number in range(1, 9)
    }
