"""Portable mathematics in printed CUDA: every function of the library as a device function, with the bits of the emulators."""

import re
from pathlib import Path

import numpy as np
import pytest
import simtbed as st
from simtbed.engines.cuda import nvcc
from simtbed.engines.cuda.printer import cuda_source
from simtbed.ir.op import BITS
from simtbed.ir.ops import TABLE, Op
from simtbed.language.types import FLOATS, Scalar
from simtbed.runtime.engine import Request
from simtbed.runtime.request import prepare_request
from simtbed.testing.conformance.operations import request

from tests.compilers import needs_nvcc
from tests.cuda_cpp.host_compiler import COMPILER, HostKernels

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


@pytest.mark.slow
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
@pytest.mark.skipif(COMPILER is None, reason="no g++ and no clang++ is installed")
@every_group
def test_the_text_has_the_bits_of_the_emulators(tmp_path: Path, type: Scalar, rows: tuple[Op, ...]) -> None:
    """A host compiler compiles the same text."""
    launch, operands = request((type, rows))
    source = cuda_source(launch.program, launch.block, "portable")
    arrays = {name: np.array(value) for name, value in launch.arguments.items()}
    length = np.int32(len(arrays["a"]))
    host = HostKernels({"k": (source.text, source.kernel)}, tmp_path)
    assert host.refused == {}
    host.launch("k", launch.grid, launch.block, [*(arrays[name] for name in source.arguments), length])
    for row in rows:
        with np.errstate(all="ignore"):
            expected = row.meaning(*operands)
        assert BITS.agree(arrays[f"out_{row.name}"], expected)[row.comparable(*operands)].all(), row.name
