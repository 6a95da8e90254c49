"""printf of CUDA C++: conversions, widths, lines of several calls, as a GPU prints them."""

import numpy as np
import pytest
import simtbed as st

from tests.texts import texts

TEXT = texts("cuda_cpp/texts.cu")["printf"]
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
