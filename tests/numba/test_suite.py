"""numba-cuda's own tests on the emulator: the list of skipped tests, and a sample of the suite."""

import re
from importlib.metadata import distribution, version
from pathlib import Path

import pytest

from tests.numba.running import run
from tests.numba.suite.__main__ import Runner, SuiteResult, stale
from tests.numba.suite.listing import Reason, modules, reasons

pytestmark = pytest.mark.skipif(version("numba-cuda") != "0.30.4", reason="the list is that of numba-cuda 0.30.4")
SUBSET = (
    "core",
    "nocuda.test_import",
    "doc_examples.test_matmul",
    "doc_examples.test_reduction",
    "cudadrv.test_cuda_ndarray",
    "cudadrv.test_streams",
    "cudapy.test_array_methods",
    "cudapy.test_const_string",
    "cudapy.test_iterators",
    "cudapy.test_warp_ops",
)
"""Modules with tests that run, that the suite skips, and that are listed."""


def suite_files() -> dict[str, str]:
    """Return the texts of the installed test modules by name."""
    root = Path(str(distribution("numba-cuda").locate_file("numba_cuda/numba/cuda/tests")))
    return {module: (root / f"{module.replace('.', '/')}.py").read_text(encoding="utf-8") for module in modules()}


def test_each_listed_test_exists_once() -> None:
    texts = suite_files()
    methods = set(re.findall(r"^    def (test_\w+)\(", "\n".join(texts.values()), re.MULTILINE))
    names = [name for reason in reasons() for name in reason.tests]
    assert len(names) == len(set(names))
    for name in names:
        package, module, class_, *test = name.split(".")
        assert re.search(rf"^class {class_}\b", texts[f"{package}.{module}"], re.MULTILINE), name
        assert len(test) < 2 and set(test) <= methods, name


def test_each_reason_is_a_sentence() -> None:
    for reason in reasons():
        assert reason.tests
        assert re.fullmatch(r"[A-Z].*\.", reason.text), reason.text


def test_a_listed_test_that_passes_is_stale() -> None:
    listed = [
        Reason("It fails.", ("cudapy.test_x.Class",)),
        Reason("It runs.", ("cudapy.test_y.C.test_a",), ("numpy",)),
    ]
    outcomes = {
        "cudapy.test_x.Class.test_a": "passed",
        "cudapy.test_x.Class.test_b": "failed",
        "cudapy.test_y.C.test_a": "passed",
    }
    results = [SuiteResult(test, outcome, "") for test, outcome in outcomes.items()]
    assert stale(results, listed) == ["cudapy.test_x.Class.test_a"]


@pytest.mark.integration
def test_a_module_without_an_end_is_a_failed_test(tmp_path: Path) -> None:
    (result,) = Runner(tmp_path, 0.01, everything=False).run("core.test_serialize")
    assert result.test == "core.test_serialize"
    assert result.outcome == "failed"
    assert "no end after" in result.details


@pytest.mark.integration
@pytest.mark.slow
def test_a_sample_of_the_suite() -> None:
    completed = run("-m", "tests.numba.suite", *SUBSET)
    row = next(line for line in completed.stdout.splitlines() if line.startswith("| all"))
    passed, _, skipped, listed, failed = (int(cell) for cell in row.strip("| ").split("|")[1:])
    assert passed >= 120
    assert skipped
    assert listed
    assert not failed
