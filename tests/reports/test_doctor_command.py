"""`simtbed doctor`: available components, missing components and their remedies."""

import json
import re

import pytest
from simtbed import UnavailableError
from simtbed.engines.cuda import nvcc
from simtbed.reports import trial_kernels

from tests.reports.conftest import Simtbed


@pytest.mark.slow
def test_what_works_and_what_is_missing(simtbed: Simtbed, monkeypatch: pytest.MonkeyPatch) -> None:
    def missing() -> None:
        raise UnavailableError(nvcc.MISSING)

    monkeypatch.setattr(nvcc, "find_nvcc", missing)
    result = simtbed("doctor", "--json")
    components = {part["name"]: part for part in json.loads(result.out)["parts"]}
    assert result.code == 0 and components["numba.cuda"]["found"].endswith(": a kernel runs")
    assert all(components[name]["works"] for name in ("Python", "numpy", "llvmlite", "jit", "CUDA C++", "cache"))
    assert " files, " in components["cache"]["found"]
    assert not components["nvcc"]["works"] and components["nvcc"]["remedy"] == 'python -m pip install "simtbed[nvcc]"'
    text = simtbed("doctor").out
    assert f"nvcc: {nvcc.MISSING}\n      python -m pip install" in text


@pytest.mark.slow
def test_a_folder_that_cannot_be_written(simtbed: Simtbed, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SIMTBED_CACHE", "/proc/simtbed")
    components = {part["name"]: part for part in json.loads(simtbed("doctor", "--json").out)["parts"]}
    assert not components["cache"]["works"] and "SIMTBED_CACHE=FOLDER" in components["cache"]["remedy"]


def test_a_door_that_fails(simtbed: Simtbed, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken() -> str:
        raise AttributeError("module 'numpy' has no attribute 'row_stack'\nmore")

    def missing() -> str:
        raise UnavailableError("it is not installed")

    monkeypatch.setattr(trial_kernels, "cuda_source", broken)
    monkeypatch.setattr(trial_kernels, "numba_cuda", missing)
    monkeypatch.setattr(trial_kernels, "numba_mlir", missing)
    result = simtbed("doctor")
    assert result.code == 1 and "CUDA C++: module 'numpy' has no attribute 'row_stack'\n" in result.out
    assert re.search(r"^CUDA C\+\+ +fails ", result.out, re.MULTILINE)
    assert re.search(r"^numba\.cuda +missing ", result.out, re.MULTILINE)
