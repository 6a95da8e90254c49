"""The project that `simtbed new` writes has no finding, and its test fails if the kernel is wrong."""

from pathlib import Path

from tests.reports.conftest import Simtbed
from tests.reports.test_new_command import run_its_test


def test_its_test_can_fail(simtbed: Simtbed, tmp_path: Path) -> None:
    simtbed("new", str(tmp_path / "smooth"))
    kernel = tmp_path / "smooth/smooth.py"
    assert simtbed("check", str(kernel)).code == 0
    kernel.write_text(kernel.read_text().replace("if i < n - 1:", "if i < n - 2:"))
    failed = run_its_test(tmp_path / "smooth")
    assert failed.returncode == 1 and "from the oracle" in failed.stdout
