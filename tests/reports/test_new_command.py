"""`simtbed new`: the project is whole, and its test passes as it is written."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.reports.conftest import Simtbed


def test_the_files(simtbed: Simtbed, tmp_path: Path) -> None:
    result = simtbed("new", str(tmp_path / "smooth"))
    assert result.code == 0
    names = {str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*") if path.is_file()}
    assert names == {
        "smooth/smooth.py", "smooth/oracle.py", "smooth/test_smooth.py", "smooth/requirements.txt", "smooth/README.md",
        "smooth/.gitignore", "smooth/.github/workflows/test.yml",
    }  # fmt: skip
    assert all("$" not in (tmp_path / name).read_text() for name in names)
    assert "exists already" in simtbed("new", str(tmp_path / "smooth")).refused()


@pytest.mark.parametrize("name", ["two words", "1st", "class", "oracle", "run", "shape", "json", "scipy", "simtbed"])
def test_names_that_no_kernel_has(simtbed: Simtbed, tmp_path: Path, name: str) -> None:
    assert "cannot be the name of a kernel" in simtbed("new", str(tmp_path / name)).refused()


def run_its_test(folder: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True)


@pytest.mark.slow
def test_its_test_passes(simtbed: Simtbed, tmp_path: Path) -> None:
    """tests/validation checks that it can fail."""
    simtbed("new", str(tmp_path / "smooth"))
    assert run_its_test(tmp_path / "smooth").returncode == 0
