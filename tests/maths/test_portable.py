"""Portable mathematics in printed CUDA: every function of the library as a device function, with the bits of the emulators."""

from __future__ import annotations

import ctypes
import re
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
import simtbed as st
from simtbed.engines.cuda import nvcc
from simtbed.engines.cuda.printer import cuda_source
from simtbed.ir.op import BITS
from simtbed.ir.ops import TABLE, Op
from simtbed.language.types import F32, FLOATS, Scalar
from simtbed.runtime.engine import Request
from simtbed.runtime.request import prepare_request
from simtbed.testing.conformance.edge_values import Values
from simtbed.testing.conformance.operations import request

from tests.compilers import needs_nvcc

HOST = """
#include <algorithm>
#include <cmath>
#include <cstring>
using std::max;
using std::min;
#define __device__
#define __forceinline__ inline
#define __global__
#define __constant__ const
#define __launch_bounds__(threads)
#define __restrict__
struct Index { unsigned x, y, z; };
static Index threadIdx, blockIdx, blockDim;
static double __longlong_as_double(unsigned long long x) { double y; memcpy(&y, &x, 8); return y; }
static long long __double_as_longlong(double x) { long long y; memcpy(&y, &x, 8); return y; }
static float __int_as_float(int x) { float y; memcpy(&y, &x, 4); return y; }
static unsigned long long __umul64hi(unsigned long long a, unsigned long long b) {
    return (unsigned long long)((unsigned __int128)a * b >> 64);
}
"""
ROUNDED = [row for row in TABLE.values() if not isinstance(row.policy, dict) and row.policy.name == "ulp"]
ROUNDED += [row for row in TABLE.values() if isinstance(row.policy, dict)]
GROUPS = [
    (type, count, tuple(row for row in ROUNDED if type in row.types and row.operands == count))
    for type in FLOATS
    for count in (1, 2)
]
every_group = pytest.mark.parametrize(
    ("type", "rows"), [(t, rows) for t, _, rows in GROUPS], ids=["f32-1", "f32-2", "f64-1", "f64-2"]
)


def printed(launch: Request, maths: str = "portable") -> str:
    return cuda_source(launch.program, launch.block, maths).text  # type: ignore[arg-type]


@st.kernel
def logistic(x: st.Global[st.f32], y: st.Global[st.f32]) -> None:
    i = st.thread.x
    y[i] = 1.0 / (1.0 + st.exp(-x[i]))


def test_a_kernel_calls_device_functions() -> None:
    x = np.zeros(32, np.float32)
    launch = prepare_request(logistic, grid=1, block=32, args=(x, x.copy()))
    assert "1.0f / (1.0f + expf(-x[i]))" in printed(launch, "native")
    text = printed(launch)
    assert "1.0f / (1.0f + (float)portable_exp(-x[i]))" in text
    assert "static __device__ __forceinline__ double portable_exp(double x) {" in text


@every_group
def test_no_function_of_cuda_is_called(type: Scalar, rows: tuple[Op, ...]) -> None:
    text = printed(request((type, rows))[0])
    for row in ROUNDED:
        for kind in row.types:
            name = row.spelling(kind).partition("(")[0]
            assert not re.search(rf"\b{name}\(", text), name


@needs_nvcc
@pytest.mark.slow
@every_group
def test_nvcc_compiles_every_function(type: Scalar, rows: tuple[Op, ...]) -> None:
    source = cuda_source(request((type, rows))[0].program, (128, 1, 1), "portable")
    assert nvcc.build(source.with_lines(), source.kernel, "sm_90").resources.local_bytes == 0


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("g++") is None, reason="g++ is not installed")
@every_group
def test_the_text_has_the_bits_of_the_emulators(tmp_path: Path, type: Scalar, rows: tuple[Op, ...]) -> None:
    """A host compiler compiles the same text."""
    launch, operands = request((type, rows))
    results = run_on_host(launch, tmp_path)
    for row in rows:
        with np.errstate(all="ignore"):
            expected = row.meaning(*operands)
        assert BITS.agree(results[f"out_{row.name}"], expected)[row.comparable(*operands)].all(), row.name


def run_on_host(launch: Request, folder: Path) -> dict[str, Values]:
    """Compile the printed kernel as C++; call it for each thread."""
    name = launch.program.kernel.name
    (folder / "kernel.cpp").write_text(f"{HOST}{printed(launch)}{driver(launch, name)}", encoding="utf-8")
    options = ["-O1", "-ffp-contract=off", "-fPIC", "-shared", "-w", "-mfma", "-std=c++17"]
    subprocess.run(["g++", *options, "kernel.cpp", "-o", "kernel.so"], cwd=folder, check=True)
    arrays = {name: np.array(value) for name, value in launch.arguments.items()}
    pointers = (ctypes.c_void_p * len(arrays))(*(array.ctypes.data for array in arrays.values()))
    length = len(arrays["a"])
    ctypes.CDLL(str(folder / "kernel.so")).run(pointers, length)
    return arrays


def driver(launch: Request, kernel: str) -> str:
    """Return the function that calls the kernel for each thread with arrays of `request`."""
    (blocks, _, _), (threads, _, _) = launch.grid, launch.block
    types = ["float" if param.type.element is F32 else "double" for param in launch.program.kernel.params]  # type: ignore[union-attr]
    arguments = ", ".join(f"({type}*)pointers[{n}]" for n, type in enumerate(types))
    return f"""
extern "C" void run(void** pointers, int length) {{
    blockDim.x = {threads};
    for (blockIdx.x = 0; blockIdx.x < {blocks}; ++blockIdx.x)
        for (threadIdx.x = 0; threadIdx.x < {threads}; ++threadIdx.x)
            {kernel}({arguments}, length);
}}
"""
