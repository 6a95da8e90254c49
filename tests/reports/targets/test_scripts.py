"""Ordinary scripts run under profile, check and verify without a change; tests/validation runs all of them."""

import json
from pathlib import Path

import pytest
from simtbed.reports.cli.app import run

from tests.pages import ROOT
from tests.reports.conftest import Simtbed

SCRIPTS = sorted((ROOT / "examples/scripts").glob("*.py"))
LAUNCHES = {
    "histogram": 2, "mandelbrot": 1, "matmul": 2, "monte_carlo_pi": 4, "nearest_neighbours": 2, "prefix_sum": 5,
    "reduction": 3, "saxpy": 1, "stencil": 4, "transpose": 3,
}  # fmt: skip


def test_there_are_ten() -> None:
    assert [script.stem for script in SCRIPTS] == sorted(LAUNCHES)


@pytest.mark.slow
@pytest.mark.parametrize(("command", "name"), [("profile", "transpose"), ("check", "reduction"), ("verify", "saxpy")])
def test_a_script(command: str, name: str, simtbed: Simtbed, tmp_path: Path) -> None:
    assert_launches(command, ROOT / f"examples/scripts/{name}.py", simtbed, tmp_path)


@pytest.mark.slow
def test_an_array_that_no_launch_has_is_refused(simtbed: Simtbed) -> None:
    result = simtbed("verify", "--any-order", "slots", str(ROOT / "examples/scripts/saxpy.py"))
    assert "--any-order slots: no launch has this array; there are " in result.refused()


def assert_launches(command: str, script: Path, simtbed: Simtbed, folder: Path) -> None:
    """The command succeeds and reports all launches of the script."""
    report = folder / "report.json"
    result = simtbed(command, "--json", "-o", str(report), str(script))
    assert (result.code, result.err) == (0, "")
    content = json.loads(report.read_text(encoding="utf-8"))
    assert sum(row["launches"] for row in content["kernels"]) == LAUNCHES[script.stem]


@pytest.mark.slow
@pytest.mark.integration
def test_a_missing_component_is_one_line_with_its_command(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "ziglang").mkdir()
    (tmp_path / "ziglang/__init__.py").touch()
    (tmp_path / "ziglang-0.16.0.dist-info").mkdir()
    (tmp_path / "ziglang-0.16.0.dist-info/METADATA").write_text("Name: ziglang\nVersion: 0.16.0\n")
    script = tmp_path / "rotate.py"
    script.write_text((ROOT / "examples/cuda/cupy_rotate.py").read_text())
    for command in ("check", "profile", "verify", "cuda"):
        code = run([command, str(script)])
        lines = capfd.readouterr().err.splitlines()
        assert (code, lines[1:]) == (
            3,
            [
                f"simtbed: {script}:8: ziglang 0.17.* is required, this is 0.16.0: "
                "python -m pip install 'simtbed[cuda-source]'"
            ],
        )
    (tmp_path / "f.cu").write_text("__global__ void f(int *x) { x[threadIdx.x] = 1; }")
    (tmp_path / "f.toml").write_text('[[launch]]\nkernel = "f"\ngrid = [1]\nblock = [32]\n')
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    assert run(["check", str(tmp_path / "f.cu")]) == 3
    assert "python -m pip install 'simtbed[cuda-source]'" in capfd.readouterr().err
