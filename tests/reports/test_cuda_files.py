"""Commands on CUDA C++: `.cu` files with a description of their launches, and scripts that import PyCUDA."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.pages import ROOT
from tests.reports.conftest import Simtbed, command_line

KERNEL = """template <typename T> __global__ void shift(const T *in, T *out, int n)
{
    __shared__ T tile[64];
    int i = threadIdx.x;
    tile[i] = in[i];
    __syncthreads();
    if (i < n) out[i] = tile[(i + 1) % 64];
}
"""
LAUNCH = """[[launch]]
kernel = "shift<float>"
grid = 1
block = 64
[launch.args]
in = {type = "f32", shape = 64, values = "random"}
out = {type = "f32", shape = 64, values = 0}
n = 64
"""


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a CUDA C++ file and its description."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "shift.cu").write_text(KERNEL)
    (tmp_path / "shift.toml").write_text(LAUNCH)
    return tmp_path


@pytest.mark.slow
def test_a_race_is_found_at_its_line(simtbed: Simtbed, project: Path) -> None:
    assert simtbed("check", "shift.cu").code == 0
    (project / "shift.cu").write_text(KERNEL.replace("    __syncthreads();\n", ""))
    result = simtbed("check", "shift.cu")
    assert result.code == 1 and "shift.cu:5:" in result.out and "race on shared memory: tile[" in result.out
    assert "__syncthreads()" in result.out and "st.sync" not in result.out


@pytest.mark.slow
def test_other_commands_take_the_file(simtbed: Simtbed, project: Path) -> None:
    profile = simtbed("profile", "shift.cu")
    assert profile.code == 0 and "shift.cu:7" in profile.out
    assert simtbed("verify", "shift.cu").code in (0, 3)
    assert simtbed("whatif", "--device", "H200,K40", "shift.cu").code == 0


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        ("block = 64", "", "a [[launch]] has no block"),
        ("block = 64", "block = 64\nblocks = 2", "a [[launch]] has an unknown key blocks"),
        ('"random"', '"noise"', 'values are "empty", "random", "range", a number, or a list of 64 numbers'),
        ('"f32"', '"float"', 'an array is {type = "f32", shape = 1000, values = "random"}'),
        ("shift<float>", "scale", "the text has no kernel scale"),
        ("n = 64", "", "n"),
        ("[[launch]]", "[[launch", "shift.toml"),
    ],
)
def test_wrong_descriptions_are_refused(
    capfd: pytest.CaptureFixture[str], project: Path, old: str, new: str, reason: str
) -> None:
    simtbed = command_line(capfd)
    (project / "shift.toml").write_text(LAUNCH.replace(old, new, 1))
    result = simtbed("check", "shift.cu")
    assert result.code == 2 and reason in result.err


def test_missing_files_are_refused(simtbed: Simtbed, project: Path) -> None:
    assert "other.cu: No such file" in simtbed("check", "other.cu").refused()
    (project / "shift.toml").unlink()
    assert "shift.toml: No such file" in simtbed("check", "shift.cu").refused()


@pytest.mark.slow
def test_a_script_is_emulated_on_request(capfd: pytest.CaptureFixture[str]) -> None:
    simtbed = command_line(capfd)
    script = str(ROOT / "examples/cuda/pycuda_histogram.py")
    result = simtbed("check", "--emulate", "pycuda", script)
    assert result.code == 0 and "pycuda emulated" in result.err and "histogram" in result.out
    assert (
        "--emulate opencl: there are pycuda, cupy, numba and none"
        in simtbed("check", "--emulate", "opencl", script).refused()
    )
