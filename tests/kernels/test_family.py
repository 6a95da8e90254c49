"""Families are light rows, and all family folders have the same structure."""

import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest
import simtbed.kernels
from simtbed import Kernel
from simtbed.kernels import FAMILIES

ROOT = Path(simtbed.kernels.__file__).parent
VARIANTS = [(family, variant) for family in FAMILIES for variant in FAMILIES[family].variants]
HOST = {"compare", "files", "generate", "layout", "pipeline", "problem"}
"""Files of every host folder. The name of a split file starts with the original name: files_vcf."""
OPTIONAL = {
    "alignment": {"answer", "limits", "statistics"},
    "correction": {"pairs"},
    "pairhmm": {"logarithms", "partitioned", "rounding"},
    "sfs": {"exponentials", "frequency", "sites", "spectrum"},
}
"""Files of single families."""


@pytest.mark.parametrize(("family", "variant"), VARIANTS)
def test_the_kernel_of_a_variant_is_where_its_row_says(family: str, variant: str) -> None:
    row = FAMILIES[family].variants[variant]
    assert row.name == variant
    assert isinstance(row.kernel, Kernel)
    assert row.location == f"{row.kernel.__module__}:{row.kernel.__name__}"
    assert row.location.startswith(f"simtbed.kernels.{family}.")


@pytest.mark.parametrize("family", FAMILIES)
def test_host_folders_have_the_same_files(family: str) -> None:
    names = {path.stem for path in (ROOT / family / "host").glob("*.py")} - {"__init__"}
    assert names >= HOST
    assert {name.partition("_")[0] for name in names} == HOST | OPTIONAL[family]


def test_the_registry_imports_no_more_than_its_rows() -> None:
    """The modules of a family are imported when it runs."""
    code = "import sys; from simtbed.kernels import FAMILIES; print(*sorted(sys.modules))"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert {"numpy", "numba", "llvmlite", "dnaio", "cyvcf2"}.isdisjoint(loaded)
    rows = {f"simtbed.kernels.{name}" for name in (*FAMILIES, "family")}
    assert {name for name in loaded if name.startswith("simtbed.kernels.")} == rows
    assert not [name for name in loaded if name.startswith("simtbed.oracles")]


@pytest.mark.parametrize("family", FAMILIES)
def test_the_pipeline_computes_every_variant_of_the_row(family: str) -> None:
    pipeline = import_module(f"simtbed.kernels.{family}.host.pipeline")
    assert set(pipeline.VARIANTS) == set(FAMILIES[family].variants)
