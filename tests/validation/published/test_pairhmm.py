"""Pair-HMM likelihoods of published reads equal GATK's and those of a long double implementation."""

from pathlib import Path

import numpy as np
import pytest
from simtbed.kernels import Launcher
from simtbed.kernels.pairhmm import FAMILY
from simtbed.kernels.pairhmm.host import files
from simtbed.kernels.pairhmm.host.compare import compare

from tests.kernels.pairhmm.test_files_gatk import dumped, run


@pytest.mark.parametrize("name", ["tiny", "10s", "gatk_testdata"])
def test_the_oracle(data: Path, name: str) -> None:
    answer = FAMILY.oracle(FAMILY.read(data / "pairhmm" / f"{name}.in"))
    np.testing.assert_allclose(answer, np.loadtxt(data / "pairhmm" / f"{name}.ref_longdouble.out"), rtol=0, atol=1e-8)


@pytest.mark.parametrize("variant", FAMILY.variants)
@pytest.mark.parametrize("name", ["tiny", "10s", "gatk_testdata"])
def test_variants(data: Path, launcher: Launcher, variant: str, name: str) -> None:
    folder = data / "pairhmm"
    answer = FAMILY.solve(FAMILY.read(folder / f"{name}.in"), variant, launcher)
    published = [folder / f"{name}.gkl_avx512_float_fallback.out"]
    if name == "gatk_testdata":
        published.append(folder / f"{name}.published_GATK.out")
    for path in published:
        comparison = compare(answer, np.loadtxt(path))
        assert comparison.tolerance == 1e-5
        assert comparison.agrees, comparison


@pytest.mark.parametrize("name", ["tiny", "gatk_testdata"])
def test_the_script_for_gatk(
    data: Path, tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Run examples/gatk_region.py on the test data of GATK, with the results of Intel's GKL."""
    folder = data / "pairhmm"
    answers = np.loadtxt(folder / f"{name}.gkl_avx512_float_fallback.out")
    dump = dumped(tmp_path / "dump", files.read(folder / f"{name}.in"), answers)
    first, second = run(monkeypatch, capsys, str(dump), "-o", str(tmp_path / "again"))
    assert first.startswith(f"{len(answers):,} pairs")
    assert float(first.split()[-1]) < 1e-5
    assert second == "0 reads prefer another haplotype than with GATK"
    assert (tmp_path / "again").read_bytes().count(b"\n") == len(answers) + 1
