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


def test_extremes_say_whether_they_are_the_first_operand() -> None:
    calls = [f"__vib{name}_{sign}16x2(a[t], b[t], &high, &low)" for name in ("max", "min") for sign in "su"]
    body = "".join(f"out[4 * t + {n}] = {call} ^ high << 31 ^ low << 15;" for n, call in enumerate(calls))
    body = body.replace("= __", "= (value = __").replace("low)", "low), value)")
    declared = "bool high, low; unsigned value; int t = threadIdx.x;"
    text = f"__global__ void k(const unsigned *a, const unsigned *b, unsigned *out) {{ {declared} {body} }}"
    a, b = np.random.default_rng(3).integers(0, 1 << 32, (2, 64), np.uint32)
    b[:8] = a[:8]
    result = st.launch(st.cuda_source(text).k, grid=1, block=64, args=(a, b, st.zeros((64, 4), "u32")))
    for number, (sign, extreme) in enumerate(
        ((np.int16, np.maximum), (np.uint16, np.maximum), (np.int16, np.minimum), (np.uint16, np.minimum))
    ):
        x, y = a.view(sign), b.view(sign)
        expected = extreme(x, y).view(np.uint16) ^ ((extreme(x, y) == x) << 15).astype(np.uint16)
        assert np.array_equal(result.out.reshape(64, 4)[:, number].copy().view(np.uint16), expected), calls[number]
