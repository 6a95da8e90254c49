"""mypy and Pyright accept the examples as files of a user."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "examples/kernels"


@pytest.fixture
def copied_examples(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of the examples in a folder outside the project, with simtbed installed."""
    for folder in ("emulator", "kernels", "oracles", "reports"):
        installed = tmp_path / "site" / "simtbed" / ("" if folder == "emulator" else folder)
        shutil.copytree(ROOT / folder, installed, ignore=shutil.ignore_patterns("*.json", "__pycache__"))
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "site"))
    copied = shutil.copytree(FOLDER, tmp_path / "examples", ignore=shutil.ignore_patterns("__pycache__"))
    (copied / "mypy.ini").write_text("[mypy]\nstrict = True\n[mypy-scipy.*]\nignore_missing_imports = True\n")
    return copied


@pytest.mark.parametrize("checker", ["mypy", "pyright"])
def test_type_checkers_accept_the_examples(checker: str, copied_examples: Path) -> None:
    pytest.importorskip(checker, reason=f"{checker} is not installed: pip install '.[dev]'")
    process = subprocess.run([sys.executable, "-m", checker, "."], cwd=copied_examples, capture_output=True, text=True)
    assert process.returncode == 0, process.stdout + process.stderr
