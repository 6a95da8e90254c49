"""Inputs of the validation kernels have the same bits on every processor, and tests with inputs from NumPy pass on older ones."""

import json
import os
import subprocess
import sys

import pytest
from numpy._core._multiarray_umath import __cpu_dispatch__, __cpu_features__  # type: ignore[import-not-found]

from tests.validation.inputs import ROOT, digests

PROCESSORS = {
    "sse": (None, "Nehalem", "-AVX2,-FMA,-FMA4,-AVX512F"),
    "avx2": ("AVX512F AVX512_SKX AVX512_ICL X86_V4", "Haswell", "-AVX512F"),
    "avx512": ("", "SkylakeX", ""),
}
"""Disabled features of NumPy (None: all), kernels of OpenBLAS, and disabled features of libm."""


def environment_of(processor: str) -> dict[str, str]:
    """Return the environment in which NumPy, OpenBLAS and libm use the instructions of a processor."""
    disabled, blas, libm = PROCESSORS[processor]
    dispatched = [name for name in __cpu_dispatch__ if __cpu_features__.get(name)]
    names = dispatched if disabled is None else [name for name in disabled.split() if name in dispatched]
    return {
        **os.environ,
        "NPY_DISABLE_CPU_FEATURES": " ".join(names),
        "OPENBLAS_CORETYPE": blas,
        "GLIBC_TUNABLES": f"glibc.cpu.hwcaps={libm}",
    }


@pytest.mark.parametrize("processor", PROCESSORS)
def test_inputs_do_not_depend_on_the_processor(processor: str) -> None:
    command = [sys.executable, "-m", "tests.validation.inputs"]
    process = subprocess.run(command, cwd=ROOT, env=environment_of(processor), capture_output=True, text=True)
    assert process.returncode == 0, process.stderr
    actual, expected = json.loads(process.stdout), digests()
    different = [
        (kernel, name) for kernel, args in expected.items() for name in args if actual[kernel][name] != args[name]
    ]
    assert different == []


TESTS = (
    "counters", "kernels/sfs/test_exponentials.py", "kernels/sfs/test_oracle.py",
    "kernels/sfs/test_spectrum.py", "machine", "ops/test_halves.py",
)  # fmt: skip
"""Tests with functions of NumPy (exp, log, matmul, normal) whose last bit depends on the processor."""


@pytest.mark.parametrize("processor", ["sse", "avx2"])
def test_results_do_not_depend_on_the_processor(processor: str) -> None:
    options = ("-q", "-n0", "-p", "no:cacheprovider")
    command = [sys.executable, "-m", "pytest", *options, *(f"tests/{name}" for name in TESTS)]
    process = subprocess.run(command, cwd=ROOT, env=environment_of(processor), capture_output=True, text=True)
    assert process.returncode == 0, process.stdout[-3000:]
