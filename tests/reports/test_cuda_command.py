"""`simtbed cuda`: the source of a variant, and what nvcc makes of it where there is one."""

import json

import pytest
from simtbed import UnavailableError
from simtbed.engines.cuda import nvcc

from tests.compilers import needs_nvcc
from tests.reports.conftest import Simtbed


def test_the_source_is_all_of_stdout(simtbed: Simtbed) -> None:
    plain, wrapped = simtbed("cuda", "tree"), simtbed("cuda", "tree", "--json")
    assert (plain.code, plain.err) == (0, "")
    assert "__global__" in plain.out
    assert json.loads(wrapped.out) == {"variant": "tree", "source": plain.out}


@pytest.mark.parametrize("variant", ["intertask-naive", "wavefront"])
def test_shipped_variants_print(simtbed: Simtbed, variant: str) -> None:
    result = simtbed("cuda", variant)
    assert (result.code, result.out.count("__global__")) == (0, 1)


@needs_nvcc
def test_compiling_reports_registers_and_memory(simtbed: Simtbed) -> None:
    content = json.loads(simtbed("cuda", "tree", "--compile", "--arch", "sm_90", "--json").out)
    assert content["shared_bytes"] == 64 * 4
    assert 8 <= content["registers"] <= 64
    assert content["spill_stores"] == content["spill_loads"] == 0
    assert "registers" in simtbed("cuda", "tree", "--compile").out


@needs_nvcc
def test_an_architecture_nvcc_does_not_know(simtbed: Simtbed) -> None:
    result = simtbed("cuda", "tree", "--compile", "--arch", "sm_1")
    assert (result.code, result.out) == (2, "")
    assert result.err.startswith("simtbed: nvcc does not compile the kernel for sm_1")


def test_without_nvcc_one_line_says_what_to_install(simtbed: Simtbed, monkeypatch: pytest.MonkeyPatch) -> None:
    def missing() -> None:
        raise UnavailableError(nvcc.MISSING)

    monkeypatch.setattr(nvcc, "find_nvcc", missing)
    assert "pip install" in simtbed("cuda", "tree", "--compile").refused(3)
