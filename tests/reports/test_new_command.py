"""`simtbed new`: the project is whole, and its test passes as it is written."""

import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
import simtbed as st
from simtbed.reports.cli import new

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


@pytest.mark.parametrize(
    ("direct_url", "line"),
    [
        (None, f"simtbed=={st.__version__}"),
        (
            '{"url": "https://a.org/simtbed", "vcs_info": {"vcs": "git", "requested_revision": "main", "commit_id": "1a2b"}}',
            "simtbed @ git+https://a.org/simtbed@1a2b",
        ),
        (
            '{"url": "https://a.org/simtbed.whl", "archive_info": {"hash": "sha256=1"}}',
            "simtbed @ https://a.org/simtbed.whl",
        ),
        ('{"url": "file:///simtbed", "dir_info": {"editable": true}}', "simtbed @ file:///simtbed"),
    ],
)
def test_the_project_installs_simtbed_from_its_own_source(
    direct_url: str | None, line: str, simtbed: Simtbed, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    installed = SimpleNamespace(read_text=lambda name: direct_url if name == "direct_url.json" else "")
    monkeypatch.setattr(new, "distribution", lambda name: installed)
    result = simtbed("new", str(tmp_path / "smooth"))
    assert (tmp_path / "smooth/requirements.txt").read_text().splitlines()[0] == line
    assert ("write its address into" in result.err) == ("file:" in line)


def run_its_test(folder: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True)


@pytest.mark.slow
def test_its_test_passes(simtbed: Simtbed, tmp_path: Path) -> None:
    """tests/validation checks that it can fail."""
    simtbed("new", str(tmp_path / "smooth"))
    assert run_its_test(tmp_path / "smooth").returncode == 0
