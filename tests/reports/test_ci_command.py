"""`simtbed ci`: the workflows are YAML of the right shape, and their steps do here what they say."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.pages import ROOT
from tests.reports.conftest import Simtbed

FILES = {"github": ".github/workflows/kernels.yml", "gitlab": ".gitlab-ci.yml"}


def _steps(service: str, path: Path) -> dict[str, list[str]]:
    """The shell steps of each job."""
    content: dict[str, Any] = yaml.safe_load(path.read_text(encoding="utf-8"))
    jobs = content["jobs"] if service == "github" else content
    steps = {
        name: job["steps"] if service == "github" else [{"run": one} for one in job["script"]]
        for name, job in jobs.items()
    }
    return {name: [step["run"] for step in found if "run" in step] for name, found in steps.items()}


def _shell(step: str, folder: Path, path: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PATH": path, "CI": "true"}
    return subprocess.run(["bash", "-e", "-c", step], cwd=folder, env=environment, capture_output=True, text=True)


@pytest.mark.parametrize("service", FILES)
def test_the_workflow_has_both_jobs(
    service: str, simtbed: Simtbed, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert simtbed("ci", service).out == f"{FILES[service]}\n"
    assert list(_steps(service, tmp_path / FILES[service])) == ["cpu", "gpu"]
    assert "is there already" in simtbed("ci", service).refused()


def test_services_that_are_not_known(simtbed: Simtbed) -> None:
    assert "github" in simtbed("ci", "act").refused()


@pytest.mark.slow
@pytest.mark.parametrize("service", FILES)
def test_the_steps_run(service: str, simtbed: Simtbed, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    simtbed("ci", service)
    steps = _steps(service, tmp_path / FILES[service])
    text = (ROOT / "tests/testing/test_transpose.py").read_text().replace('    budget("one tile").expect(result)\n', "")
    (tmp_path / "test_transpose.py").write_text(text)
    (tmp_path / "bin").mkdir()
    python = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    assert _shell(steps["cpu"][-1], tmp_path, python).returncode == 0
    assert (tmp_path / "launches.txt").read_text() == "1\n"
    visible, _, tests = steps["gpu"]
    no_gpu = f"{tmp_path / 'bin'}:/usr/bin:/bin"
    (tmp_path / "bin" / "nvidia-smi").write_text("#!/bin/sh\nexit 0\n")
    (tmp_path / "bin" / "nvidia-smi").chmod(0o755)
    assert _shell(visible, tmp_path, no_gpu).returncode != 0
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    ran = _shell(tests.replace(".venv/bin/python", "python"), tmp_path, python)
    assert ran.returncode == 1 and "1 failed" in ran.stdout


def test_our_own_job_fails_without_a_gpu() -> None:
    job = yaml.safe_load((ROOT / ".github/workflows/ci.yml").read_text(encoding="utf-8"))["jobs"]["gpu"]
    runs = [step["run"] for step in job["steps"] if "run" in step]
    assert runs[0].startswith("nvidia-smi --list-gpus | grep GPU")
