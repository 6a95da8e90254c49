"""Programs of Numba-CUDA: results, checkers, planted mistakes, engines, caches, aliasing arrays, the hook under pytest."""

import json
import re
from pathlib import Path

import pytest

from tests.numba.running import (
    FEATURES,
    LINKED,
    MISTAKES,
    PROGRAMS,
    PYTEST,
    RAISING,
    equal_lines,
    expected_findings,
    require_mistake,
    run,
)

KERNELS = re.findall(r'^        "([^"]+)": Case\(', PROGRAMS.read_text(encoding="utf-8"), re.MULTILINE)


def test_results_are_those_of_numpy_under_all_checkers() -> None:
    completed = run("-m", "simtbed", "check", "--json", PROGRAMS)
    assert equal_lines(completed.stderr) == [f"equal: {name}" for name in KERNELS] and len(KERNELS) == 11
    report = json.loads(completed.stdout)
    assert report["silent"] and len(report["kernels"]) == 11


def test_engines_agree_to_the_bit() -> None:
    completed = run("-m", "simtbed", "verify", "--json", PROGRAMS)
    assert len(equal_lines(completed.stderr)) == 11


@pytest.mark.parametrize("kernel", expected_findings(MISTAKES))
def test_mistakes_are_found_at_their_columns(kernel: str) -> None:
    require_mistake(MISTAKES, kernel)


def test_features_of_kernels() -> None:
    assert run("-m", "simtbed.numba", FEATURES).stdout.count("equal:") == 12


ALIASING = """
import numpy as np
from numba import cuda

@cuda.jit
def shift(a, b):
    i = cuda.grid(1)
    b[i] = a[i] + 1

@cuda.jit
def swap(a, b, steps):
    i = cuda.grid(1)
    for _ in range(steps):
        b[i] = a[i] * 2
        a, b = b, a

x = cuda.to_device(np.arange(64, dtype=np.int64))
shift[1, 64](x, x)
assert x.copy_to_host().tolist() == list(range(1, 65))
shift[1, 32](x[::2], x[1::2])
assert x.copy_to_host()[:4].tolist() == [1, 2, 3, 4]
y, z = (cuda.to_device(np.ones(32, np.int32)) for _ in range(2))
swap[1, 32](y, z, 3)
assert y.copy_to_host()[0] == 4 and z.copy_to_host()[0] == 8
print("aliasing arrays")
"""

PLACE = 'print("line 8, tid=[0, 0, 1] ctaid=[0, 0, 0]: negative" in text)\n'


@pytest.mark.parametrize(
    ("text", "output", "code"), [(ALIASING, "aliasing arrays\n", 0), (RAISING + PLACE, "True\n", 0), (LINKED, "", 1)]
)
def test_host_programs(tmp_path: Path, text: str, output: str, code: int) -> None:
    script = tmp_path / "script.py"
    script.write_text(text)
    completed = run("-m", "simtbed", "numba", script, code=code)
    assert completed.stdout == output
    if code:
        assert ":5:1: linked: link=: sources and objects of CUDA C++ need NVIDIA's linker" in completed.stderr


KEYS = """
import sys
from numba import cuda
import numpy as np
import values

@cuda.jit(device=True)
def scaled(x):
    return x * values.FACTOR

@cuda.jit
def kernel(x):
    x[0] = scaled(x[0])

x = np.ones(1)
kernel[1, 1](x)
print(x[0], "numba.cuda.core.typed_passes" in sys.modules and kernel.overloads[kernel.signatures[0]].compiled is not None)
"""


def test_the_key_of_the_cache_contains_values_of_modules(tmp_path: Path) -> None:
    script, values = tmp_path / "script.py", tmp_path / "values.py"
    script.write_text(KEYS)
    environment = {"SIMTBED_CACHE": str(tmp_path / "cache")}
    for factor in (2.0, 3.0, 3.0, 2.0):
        values.write_text(f"FACTOR = {factor}\n")
        assert run("-m", "simtbed.numba", script, environment=environment).stdout.startswith(f"{factor} ")
    assert len(list((tmp_path / "cache").glob("*.numba"))) == 2


def test_pytest_and_its_workers_run_under_the_variable(tmp_path: Path) -> None:
    (tmp_path / "test_fill.py").write_text(PYTEST)
    arguments = ("-m", "pytest", "-q", "-p", "no:cacheprovider", "--rootdir", tmp_path, tmp_path)
    assert "2 passed" in run(*arguments, environment={"SIMTBED_NUMBA": "1"}).stdout
    assert "2 passed" in run(*arguments, "-n", "2", environment={"SIMTBED_NUMBA": "1"}).stdout
