"""Random kernels of CUDA C++: the bits of a host compiler, and no finding, since they have no mistake."""

from pathlib import Path

import numpy as np
import pytest
import simtbed as st

from tests.cuda_cpp.host_compiler import COMPILER, HostKernels
from tests.cuda_cpp.random_programs import BLOCK, program

CHECKS = ("barriers", "bounds", "races", "uninitialised")
"""All but that of arithmetic: the kernels overflow on purpose."""


@pytest.mark.slow
@pytest.mark.skipif(COMPILER is None, reason="no host compiler")
@pytest.mark.parametrize("first", [0, 10, 20])
def test_random_kernels_have_the_bits_of_a_host_compiler(first: int, tmp_path: Path) -> None:
    texts = {f"k{seed}": program(seed) for seed in range(first, first + 10)}
    host = HostKernels({name: (text, name) for name, text in texts.items()}, tmp_path)
    source = st.cuda_source("\n".join(texts.values()))
    for name in texts:
        for n in (0, 3):
            x = np.random.default_rng(n).integers(-(2**31), 2**31, BLOCK).astype(np.int32)
            expected = np.zeros(BLOCK, np.int32)
            host.launch(name, 1, BLOCK, (x.copy(), np.int32(n), expected))
            args = {"x": x, "n": n, "out": st.empty(BLOCK, "i32")}
            result = st.launch(source[name], grid=1, block=BLOCK, args=args, check=CHECKS, engine="numpy")
            np.testing.assert_array_equal(result.out, expected, name)
