"""Functions of two or four integers in a word: their bits are those of the code that nvcc makes of NVIDIA's own."""

import numpy as np
import pytest
import simtbed as st

from tests.compilers import needs_sass

OF_ONE = "abs", "absss", "neg", "negss"
OF_TWO = (
    "add", "addss", "addus", "sub", "subss", "subus", "avgs", "avgu", "haddu", "absdiffs", "absdiffu", "sads", "sadu", "maxs",
    "maxu", "mins", "minu", "seteq", "setne", "cmpeq", "cmpne",
    *(f"{kind}{test}{sign}" for kind in ("set", "cmp") for test in ("lt", "le", "gt", "ge") for sign in "su"),
)  # fmt: skip
NAMES = [f"__v{name}{parts}" for name in (*OF_ONE, *OF_TWO) for parts in (2, 4)]


@needs_sass
@pytest.mark.slow
def test_functions_of_words_have_the_bits_of_nvcc() -> None:
    calls = [f"{name}(a[t]{'' if name[3:-1] in OF_ONE else ', b[t]'})" for name in NAMES]
    stores = "".join(f"    out[{len(NAMES)} * t + {number}] = {call};\n" for number, call in enumerate(calls))
    text = f"__global__ void k(const unsigned *a, const unsigned *b, unsigned *out) {{\n    int t = threadIdx.x;\n{stores}}}"
    a, b = np.random.default_rng(3).integers(0, 1 << 32, (2, 64), np.uint32)
    ends = (0x80008000, 0x80808080, 0, 0xFFFFFFFF, 0x7FFF7FFF, 0x7F7F7F7F, 0x00010001, 0x80007FFF)
    a[:8], b[:8], b[8:16], b[16:32] = ends, ends[::-1], ends, a[16:32]
    args = {"a": a, "b": b, "out": st.zeros(64 * len(NAMES), "u32")}
    result = st.launch(st.cuda_source(text).k, grid=1, block=64, args=args, compiled=True)
    assert result.compiled().output_differences == {}
