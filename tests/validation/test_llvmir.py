"""Random kernels through the LLVM IR front end, beyond those of tests/llvmir."""

import pytest

from tests.llvmir.test_random_kernels import difference
from tests.validation.llvmir_kernels import engine_of


def test_random_kernels_agree_with_python() -> None:
    assert not [text for seed in range(3_000_000, 3_000_300) if (text := difference(seed, engine_of(seed)))]


def test_random_kernels_of_numba_agree_with_python() -> None:
    pytest.importorskip("numba_cuda")
    seeds = range(4_000_001, 4_000_011)
    assert not [text for seed in seeds if (text := difference(seed, "numpy", numba=True))]
