"""Copies to the host of device memory that no launch wrote, in programs of PyCUDA, CuPy and Numba-CUDA under `simtbed check`."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

KERNEL = "__global__ void copy(const float *x, float *out, int n) { int i = blockIdx.x * 128 + threadIdx.x; if (i < n) out[i] = x[i]; }"
PYCUDA = f"""
import numpy as np, pycuda.autoinit, pycuda.driver, pycuda.gpuarray as ga
from pycuda.compiler import SourceModule
copy = SourceModule("{KERNEL}").get_function("copy")
x, out = ga.to_gpu(np.ones(1000, np.float32)), ga.empty(1000, np.float32)
copy(x, out, np.int32(1000), grid=(4, 1, 1), block=(128, 1, 1))
out[:512].get()
out.get()
moved = ga.empty(1000, np.float32)
pycuda.driver.memcpy_dtod(moved.gpudata, out.gpudata, 4000)
pycuda.driver.memcpy_dtoh(np.empty(1000, np.float32), moved.gpudata)
"""
CUPY = f"""
import cupy as cp
copy = cp.RawKernel('extern "C" {KERNEL}', "copy")
x, out = cp.ones(1000, cp.float32), cp.empty(1000, cp.float32)
copy((4,), (128,), (x, out, 1000))
out[:512].get()
out.get()
cp.asnumpy(out)
"""
NUMBA = """
import numpy as np
from numba import cuda

@cuda.jit
def copy(x, out):
    i = cuda.grid(1)
    if i < x.size:
        out[i] = x[i]

x, out = cuda.to_device(np.ones(1000, np.float32)), cuda.device_array(1000, np.float32)
copy[4, 128](x, out)
out[:512].copy_to_host()
out.copy_to_host()
"""
COPIES = {
    "pycuda": (PYCUDA, ["out.get", "pycuda.driver.memcpy_dtoh"]),
    "cupy": (CUPY, ["out.get", "cp.asnumpy"]),
    "numba": (NUMBA, ["out.copy_to_host"]),
}
"""By library: a program, and the functions in it that copy unwritten bytes."""


@pytest.mark.slow
@pytest.mark.integration
@pytest.mark.parametrize("library", COPIES)
def test_a_copy_of_unwritten_bytes_is_a_remark(library: str, tmp_path: Path) -> None:
    pytest.importorskip({"pycuda": "ziglang", "cupy": "ziglang", "numba": "numba_cuda"}[library])
    text, copies = COPIES[library]
    script = tmp_path / "script.py"
    script.write_text(text, encoding="utf-8")
    command = [sys.executable, "-m", "simtbed", "check", "--json", "--emulate", library, str(script)]
    completed = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert completed.returncode == 0, completed.stderr
    kernel, host = json.loads(completed.stdout)["kernels"]
    assert (kernel["faults"], host["faults"]) == ([], [])
    lines = text.splitlines()
    assert [(one["line"], one["column"], one["message"]) for one in host["remarks"]] == [
        (
            next(n for n, line in enumerate(lines, 1) if line.startswith(copy)),
            copy.rindex(".") + 2,
            "a copy: 1,952 of 4,000 bytes were never written",
        )
        for copy in copies
    ]
