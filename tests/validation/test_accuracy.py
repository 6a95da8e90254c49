"""Values of accuracy in README.md and docs/, and generated data of the package, are those of the records."""

from tests.validation import accuracy, packaged
from tests.validation.kernels import KERNELS
from tests.validation.recorded import ROOT


def test_pages_are_current() -> None:
    table = accuracy.values()
    for page in accuracy.CLAIMS:
        text = (ROOT / page).read_text(encoding="utf-8")
        assert accuracy.rewritten(page, text, table) == text, "python -m tests.validation.accuracy --write"


def test_each_kernel_is_in_a_batch_or_in_the_sample() -> None:
    groups = [*accuracy.batches().values(), *accuracy.sample()]
    names = [name for group in groups for name in group["kernels"]]
    assert sorted(names) == sorted(kernel.name for kernel in KERNELS)
    assert all(group["why"] for group in accuracy.sample())


def test_recorded_values_are_current() -> None:
    assert packaged.FILE.read_text(encoding="utf-8") == packaged.content(), (
        "python -m tests.validation.packaged --write"
    )
