"""Example kernels equal NumPy or SciPy on both emulators and under every check; type checkers accept them."""

from functools import partial
from importlib import import_module
from pathlib import Path

import pytest
from simtbed import launch

from tests.validation.cases import EXAMPLES

FOLDER = Path(__file__).parents[2] / "examples" / "kernels"
SLOW = {
    "attention",
    "attention_tensor_cores",
    "conjugate_gradient",
    "fft",
    "matmul_tensor_maps",
    "needleman_wunsch",
    "radix_sort",
}
every_example = pytest.mark.parametrize(
    "example", [pytest.param(name, marks=[pytest.mark.slow] if name in SLOW else []) for name in EXAMPLES]
)


@every_example
def test_it_holds_under_every_check(example: str) -> None:
    import_module(f"examples.kernels.{example}").check(partial(launch, check="all"))


@every_example
def test_it_holds_on_numpy(example: str) -> None:
    import_module(f"examples.kernels.{example}").check(partial(launch, engine="numpy"))


@pytest.mark.parametrize("example", EXAMPLES)
def test_it_is_short_and_alone(example: str) -> None:
    """An example is one short file that imports public names alone."""
    text = (FOLDER / f"{example}.py").read_text(encoding="utf-8")
    assert 30 <= text.count("\n") <= 100
    assert "import simtbed as st" in text and "from simtbed" not in text and "examples" not in text
