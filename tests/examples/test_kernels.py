"""Example kernels equal NumPy or SciPy on both emulators and under every check; type checkers accept them."""

from __future__ import annotations

import shutil
import subprocess
import sys
from functools import partial
from importlib import import_module
from pathlib import Path

import pytest
from simtbed import launch

from tests.validation.cases import EXAMPLES

FOLDER = Path(__file__).parents[2] / "examples" / "kernels"
SLOW = {"attention", "conjugate_gradient", "fft", "needleman_wunsch", "radix_sort"}
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


@pytest.fixture
def mine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of the examples in a folder outside the project, with simtbed installed."""
    for folder in ("emulator", "kernels", "oracles", "reports"):
        installed = tmp_path / "site" / "simtbed" / ("" if folder == "emulator" else folder)
        shutil.copytree(FOLDER.parents[1] / folder, installed, ignore=shutil.ignore_patterns("*.json", "__pycache__"))
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "site"))
    copied = shutil.copytree(FOLDER, tmp_path / "mine", ignore=shutil.ignore_patterns("__pycache__"))
    (copied / "mypy.ini").write_text("[mypy]\nstrict = True\n[mypy-scipy.*]\nignore_missing_imports = True\n")
    return copied


@pytest.mark.slow
@pytest.mark.parametrize("checker", ["mypy", "pyright"])
def test_type_checkers_accept_them_as_files_of_a_user(checker: str, mine: Path) -> None:
    pytest.importorskip(checker, reason=f"{checker} is not installed: pip install '.[dev]'")
    process = subprocess.run([sys.executable, "-m", checker, "."], cwd=mine, capture_output=True, text=True)
    assert process.returncode == 0, process.stdout + process.stderr
