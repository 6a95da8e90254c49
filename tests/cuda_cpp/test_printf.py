"""printf of CUDA C++: conversions, widths, lines of several calls, as a GPU prints them."""

from __future__ import annotations

import numpy as np
import pytest
import simtbed as st

TEXT = r"""
__global__ void k(const char *x, const unsigned *u) {
    printf("base %c\n", x[0]);
    printf("0x%08x %llu\n", u[0], 18446744073709551615ull);
    printf("%u %5.2f|%-6d|%03d\n", -1, 3.14159, 7, 7);
    printf("%*d|%.*f\n", 5, 10, 1, 2.25);
    printf("%e %g %s %%\n", 12345.678, 1e-5f, u[0] ? "yes" : "no");
    for (int i = 0; i < 4; i++) printf("%c", x[i]);
    printf("\n");
    printf("end");
}
"""
LINES = [
    "base A",
    "0xdeadbeef 18446744073709551615",
    "4294967295  3.14|7     |007",
    "   10|2.2",
    "1.234568e+04 1e-05 yes %",
    "ACGT",
    "end",
]


@pytest.mark.parametrize("engine", ["jit", "numpy", "python"])
def test_the_conversions_are_those_of_a_gpu(engine: str) -> None:
    args = (np.frombuffer(b"ACGT", np.int8), np.array([0xDEADBEEF], np.uint32))
    result = st.launch(st.cuda_source(TEXT).k, grid=1, block=1, args=args, engine=engine)  # type: ignore[arg-type]
    assert [line.partition(": ")[2] for line in result.printed] == LINES
