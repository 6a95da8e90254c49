"""Kernels given as text, and kernels whose text Python does not keep."""

import subprocess
import sys

import numpy as np
import pytest
import simtbed as st
from simtbed import Global, LaunchError, i32  # noqa: F401  (the texts use them)

FACTOR = 3
TEXT = """
    @st.device
    def scaled(x: i32) -> i32:
        return x * FACTOR

    @st.kernel
    def scale(x: Global[i32], out: Global[i32]) -> None:
        out[st.lane] = scaled(x[st.lane]) + offset
"""


def test_a_kernel_from_text_knows_the_names_of_its_place() -> None:
    offset = 5  # noqa: F841
    kernel = st.kernel(source=TEXT)
    for engine in ("numpy", "jit"):
        arguments = {"x": np.arange(32, dtype=np.int32), "out": st.empty(32, i32)}
        result = st.launch(kernel, grid=1, block=32, args=arguments, engine=engine)
        assert (result.out == 3 * np.arange(32) + 5).all()
    assert kernel.__name__ == "scale"


def test_a_device_function_from_text() -> None:
    halved = st.device(source="def halved(x: i32) -> i32:\n    return x // 2\n")
    kernel = st.kernel(source="def k(out: Global[i32]) -> None:\n    out[st.lane] = halved(st.lane)\n")
    result = st.launch(kernel, grid=1, block=32, args={"out": st.empty(32, i32)})
    assert (result.out == np.arange(32) // 2).all() and halved.__name__ == "halved"


def test_errors_show_the_text() -> None:
    kernel = st.kernel(source="def k(out: Global[i32]) -> None:\n    out[0] = missing\n")
    with pytest.raises(st.CompileError) as caught:
        st.launch(kernel, grid=1, block=1, args={"out": st.empty(1, i32)})
    first, source, caret = str(caught.value).splitlines()[:3]
    assert first.startswith("<kernel ") and first.endswith(">:2:14: missing is not defined")
    assert source == "    2 |     out[0] = missing" and caret.strip() == "|              ^^^^^^^"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("def k(:\n", r"st\.kernel\(source=\.\.\.\), line 1: invalid syntax"),
        ("x = 1\n", "takes the text of a function"),
    ],
)
def test_a_text_that_is_no_function(text: str, message: str) -> None:
    with pytest.raises(LaunchError, match=message):
        st.kernel(source=text)


def test_numbas_brackets_have_a_hint() -> None:
    kernel = st.kernel(source="def k(out: Global[i32]) -> None:\n    out[0] = 1\n")
    with pytest.raises(st.HostCallError, match=r"write simtbed\.launch\(k, grid=\.\.\., block=\.\.\."):
        kernel[1, 32](np.zeros(1))


@pytest.mark.slow
def test_python_c_has_a_hint() -> None:
    script = """
import simtbed as st
@st.kernel
def k(out: st.Global[st.i32]) -> None:
    out[0] = 1
try:
    st.launch(k, grid=1, block=1, args={"out": st.empty(1, st.i32)})
except st.CompileError as error:
    print(error)
"""
    finished = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert "give its text: k = st.kernel(source=text)" in finished.stdout
