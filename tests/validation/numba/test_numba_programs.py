"""Programs of Numba-CUDA and of numba_cuda_mlir: results, checkers, planted mistakes, engines, caches, exceptions, pytest."""

import importlib.util
import json
import re
from pathlib import Path

import pytest

from tests.numba import running
from tests.numba.running import LINKED, MISTAKES, PROGRAMS, PYTEST, RAISING, equal_lines, mlir_text, run

KERNELS = re.findall(r'^        "([^"]+)": Case\(', PROGRAMS.read_text(encoding="utf-8"), re.MULTILINE)
WITHOUT = "random numbers"
"""numba_cuda_mlir 0.6.0 has no random numbers in kernels."""
needs_mlir = pytest.mark.skipif(
    importlib.util.find_spec("numba_cuda_mlir") is None, reason="numba-cuda-mlir is not installed"
)
packages = pytest.mark.parametrize("package", ["numba", pytest.param("numba_cuda_mlir", marks=needs_mlir)])


def script_of(source: Path, package: str, folder: Path) -> Path:
    return source if package == "numba" else running.mlir_script(source, folder)


@packages
def test_results_are_those_of_numpy_under_all_checkers(package: str, tmp_path: Path) -> None:
    names = [name for name in KERNELS if package == "numba" or name != WITHOUT]
    excluded = [name for name in KERNELS if name not in names]
    completed = run("-m", "simtbed", "check", "--json", script_of(PROGRAMS, package, tmp_path), *excluded)
    assert equal_lines(completed.stderr) == [f"equal: {name}" for name in names] and len(KERNELS) == 11
    report = json.loads(completed.stdout)
    assert report["silent"] and len(report["kernels"]) == len(names)


@packages
def test_engines_agree_to_the_bit(package: str, tmp_path: Path) -> None:
    source, count = (PROGRAMS, 11) if package == "numba" else (running.FEATURES, 12)
    completed = run("-m", "simtbed", "verify", "--json", script_of(source, package, tmp_path))
    assert len(equal_lines(completed.stderr)) == count


@packages
@pytest.mark.parametrize("kernel", running.expected_findings(MISTAKES))
def test_mistakes_are_found_at_their_columns(kernel: str, package: str, tmp_path: Path) -> None:
    running.require_mistake(script_of(MISTAKES, package, tmp_path), kernel)


@packages
def test_features_of_kernels(package: str, tmp_path: Path) -> None:
    module = ("simtbed.numba",) if package == "numba" else ("simtbed", "numba")
    assert run("-m", *module, script_of(running.FEATURES, package, tmp_path)).stdout.count("equal:") == 12


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
TWO_DIMENSIONS = """
import numpy as np
from numba_cuda_mlir import cuda

@cuda.jit
def beyond(a, out):
    i = cuda.grid(1)
    out[i] = a[i, 4]

beyond[1, 2](cuda.to_device(np.zeros((3, 4))), cuda.to_device(np.zeros(2)))
"""
LAYOUTS = """
import numpy as np
from numba_cuda_mlir import cuda

@cuda.jit
def sums(x, out):
    i = cuda.grid(1)
    out[i] = x[i].sum() + np.max(x[i])

a = np.random.default_rng(2).integers(0, 9, (4, 6)).astype(np.float64)
device = cuda.to_device(a)
for view, host in ((device, a), (device.T, a.T), (device[::2, 1::2], a[::2, 1::2])):
    out = np.zeros(host.shape[0])
    sums[1, host.shape[0]](view, out)
    assert (out == host.sum(1) + host.max(1)).all(), (out, host)
device[::2] = 7.0
a[::2] = 7.0
print((device.copy_to_host() == a).all())
"""
INSPECTED = """
import numpy as np
from numba_cuda_mlir import cuda

@cuda.jit("void(float64[:])")
def kernel(x):
    x[0] = 1

kernel.inspect_asm()
"""
SMALL_FLOATS = """
from numba_cuda_mlir import cuda, types

@cuda.jit(types.void(types.f8E5M2[:], types.bf16[:], types.float32[:]))
def copy(x, y, z):
    i = cuda.grid(1)
    x[i] = x[i + 1]
    z[i] = types.float32(y[i])

print(len(copy.overloads))
"""
BOTH = """
import numpy as np
import numba.cuda
import numba_cuda_mlir.cuda

def double(cuda):
    @cuda.jit
    def kernel(x):
        x[cuda.grid(1)] *= 2
    return kernel

x = np.ones(4)
double(numba_cuda_mlir.cuda)[1, 4](x)
double(numba.cuda)[1, 4](x)
print(x.tolist())
"""
LINKER = ":5:1: linked: link=: sources and objects of CUDA C++ need NVIDIA's linker"


@pytest.mark.parametrize(
    ("text", "output", "message"),
    [
        (ALIASING, "aliasing arrays\n", ""),
        (RAISING + PLACE, "True\n", ""),
        (LINKED, "", LINKER),
        *(
            pytest.param(*row, marks=needs_mlir)
            for row in (
                (mlir_text(RAISING) + "print(text)", "Invalid value in kernel\n", ""),
                (LAYOUTS, "True\n", ""),
                (SMALL_FLOATS, "1\n", ""),
                (BOTH, "[4.0, 4.0, 4.0, 4.0]\n", ""),
                (TWO_DIMENSIONS, "", "script.py:8:14: global read out of bounds: a[0, 4], but a has 4 columns"),
                (INSPECTED, "", "kernel: inspect_asm needs NVIDIA's compiler"),
                (mlir_text(LINKED), "", LINKER),
            )
        ),
    ],
)
def test_host_programs(tmp_path: Path, text: str, output: str, message: str) -> None:
    script = tmp_path / "script.py"
    script.write_text(text)
    completed = run("-m", "simtbed", "numba", script, code=1 if message else 0)
    assert completed.stdout == output and message in completed.stderr


NESTED_LOOPS = """
import numpy as np
from numba_cuda_mlir import cuda

@cuda.jit
def totals(x, out):
    total = 0.0
    for i in range(x.shape[0]):
        for j in range(i, x.shape[1]):
            total += x[i, j]
    out[cuda.grid(1)] = total

x, out = np.ones((5, 6)), np.zeros(32)
totals[1, 32](x, out)
print(out[0])
"""


@needs_mlir
def test_counters_of_loops_have_no_local_memory(tmp_path: Path) -> None:
    """The package has its counters of loops in local memory; LLVM makes registers of them."""
    script = tmp_path / "script.py"
    script.write_text(NESTED_LOOPS)
    completed = run("-m", "simtbed", "profile", "--json", script)
    totals = json.loads(completed.stdout)["totals"]
    assert "20.0" in completed.stderr.splitlines()
    assert (totals["global_load_requests"], totals["local_loads"], totals["local_stores"]) == (20, 0, 0)


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
MLIR_KEYS = """
import numpy as np
import values
from numba_cuda_mlir import cuda, mlir_compiler

@cuda.jit(device=True)
def scaled(x):
    return x * values.FACTOR

@cuda.jit
def kernel(x):
    x[0] = scaled(x[0])

x, compiled = np.ones(1), []
compile_mlir = mlir_compiler.compile_mlir
mlir_compiler.compile_mlir = lambda *args, **options: compiled.append(args) or compile_mlir(*args, **options)
kernel[1, 1](x)
print(x[0], bool(compiled))
assert all("gpu.func" in text and "simtbed" not in text for text in kernel.inspect_mlir().values())
"""


def test_the_key_of_the_cache_contains_values_of_modules(tmp_path: Path) -> None:
    script, values = tmp_path / "script.py", tmp_path / "values.py"
    script.write_text(KEYS)
    environment = {"SIMTBED_CACHE": str(tmp_path / "cache")}
    for factor in (2.0, 3.0, 3.0, 2.0):
        values.write_text(f"FACTOR = {factor}\n")
        assert run("-m", "simtbed.numba", script, environment=environment).stdout.startswith(f"{factor} ")
    assert len(list((tmp_path / "cache").glob("*.numba"))) == 2


@needs_mlir
def test_a_kernel_on_disk_is_not_compiled(tmp_path: Path) -> None:
    script, values = tmp_path / "script.py", tmp_path / "values.py"
    script.write_text(MLIR_KEYS)
    environment = {"SIMTBED_CACHE": str(tmp_path / "cache")}
    for factor, compiled in ((2.0, True), (3.0, True), (3.0, False), (2.0, False)):
        values.write_text(f"FACTOR = {factor}\n")
        assert run("-m", "simtbed.numba", script, environment=environment).stdout == f"{factor} {compiled}\n"


@packages
def test_pytest_and_its_workers_run_under_the_variable(package: str, tmp_path: Path) -> None:
    (tmp_path / "test_fill.py").write_text(PYTEST if package == "numba" else mlir_text(PYTEST))
    arguments = ("-m", "pytest", "-q", "-p", "no:cacheprovider", "--rootdir", tmp_path, tmp_path)
    for workers in ((), ("-n", "2"))[: 2 if package == "numba" else 1]:
        assert "2 passed" in run(*arguments, *workers, environment={"SIMTBED_NUMBA": "1"}).stdout
