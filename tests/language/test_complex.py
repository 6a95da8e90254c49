"""Complex numbers: what is printed, what is refused, what a launch takes, the bits of a division."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import simtbed as st
from simtbed import CompileError, Const, Global, LaunchError, c64, c128, f32, f64
from simtbed.engines.cuda.printer import cuda_source
from simtbed.ir.op import BITS
from simtbed.runtime.request import prepare_request

from tests.language.refused_complex import complex_numbers

ENGINES = ["jit", "numpy"]
ARGUMENTS = np.array([complex(n, 0.5 - n) for n in range(64)], np.complex64)


@st.kernel
def printed(x: Global[c64], out: Global[c64], lengths: Global[f32], ROTATION: Const) -> None:
    """A sum of quotients, a variable that begins with a literal, a condition."""
    total = 0j
    for i in range(4):
        z = x[i]
        total += z / x[i + 4] if abs(z) > 2.0 else ROTATION * st.conj(z)
    out[st.lane] = total if total != 1j else -total
    lengths[st.lane] = abs(total)


def test_the_printed_text(golden: Callable[[str, str], None]) -> None:
    args = {"x": ARGUMENTS, "out": st.empty(32, c64), "lengths": st.empty(32, f32), "ROTATION": 1 - 2j}
    request = prepare_request(printed, grid=1, block=32, args=args)
    golden("cuda/complex.cu", cuda_source(request.program, request.block).text)


def test_what_is_refused(golden: Callable[[str, str], None]) -> None:
    args = {"z": st.empty(3, c64), "w": st.empty(3, c128), "x": st.empty(3, f32), "n": 3}
    with pytest.raises(CompileError) as caught:
        st.launch(complex_numbers, grid=1, block=1, args=args)
    golden("refused_complex.txt", f"{caught.value}\n")


@st.kernel
def doubled(x: Global[c64]) -> None:
    x[st.lane] *= 2


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("arguments", [ARGUMENTS[:32], ARGUMENTS[::2], ARGUMENTS[32:]])
def test_an_element_is_one_access(arguments: Any, engine: Any) -> None:
    before = arguments.copy()
    result = st.launch(doubled, grid=1, block=32, args={"x": arguments}, engine=engine, check="all")
    assert (result.x.dtype, result.x.strides) == (arguments.dtype, arguments.strides)
    assert np.array_equal(result.x, 2 * before) and np.array_equal(arguments, before)
    assert result.counters is not None
    assert result.counters.total("global_load_requests") == result.counters.total("global_store_requests") == 1


@pytest.mark.parametrize("engine", ENGINES)
def test_a_device_array_remains_complex(engine: Any) -> None:
    array = st.DeviceArray(ARGUMENTS[:32])
    for _ in range(2):
        st.launch(doubled, grid=1, block=32, args={"x": array}, engine=engine)
    assert array.numpy().dtype == np.complex64 and np.array_equal(array.numpy(), 4 * ARGUMENTS[:32])


@st.kernel
def quotients(a: Global[c128], b: Global[c128], out: Global[c128]) -> None:
    i = st.block.x * 64 + st.thread.x
    out[i] = a[i] / b[i]


def smith(a: Any, b: Any) -> Any:
    """The documented formula, by NumPy's real operations."""
    actual = np.empty_like(a)
    with np.errstate(all="ignore"):
        wide = np.abs(b.real) >= np.abs(b.imag)
        large, small = np.where(wide, b.real, b.imag), np.where(wide, b.imag, b.real)
        r = small / large
        d = large + small * r
        actual.real = np.where(wide, a.real + a.imag * r, a.imag + a.real * r) / d
        actual.imag = np.where(wide, a.imag - a.real * r, a.imag * r - a.real) / d
    return actual


EDGES = [0.0, -0.0, 1.0, -3.1, 1e-320, 1e308, -1.7e308, np.inf, -np.inf, np.nan]


@pytest.mark.parametrize("engine", ENGINES)
def test_division_is_the_documented_formula_to_the_bit(engine: Any) -> None:
    components = np.array(np.meshgrid(EDGES, EDGES)).reshape(2, -1)
    edges = np.empty(components.shape[1], np.complex128)
    edges.real, edges.imag = components
    a, b = (grid.ravel().copy() for grid in np.meshgrid(edges, edges))
    a, b = (np.pad(side, (0, -len(side) % 64), constant_values=1) for side in (a, b))
    actual = st.launch(
        quotients, grid=len(a) // 64, block=64, args={"a": a, "b": b, "out": st.empty(len(a), c128)}, engine=engine
    )
    assert BITS.agree(actual.out, smith(a, b)).all()


def test_the_formula_divides() -> None:
    a, b = np.random.default_rng(1).uniform(-9, 9, (2, 64, 2)).view(np.complex128)[..., 0]
    assert np.allclose(smith(a, b), a / b, rtol=1e-14)


@st.kernel
def one_number(z: c64, out: Global[f64]) -> None:
    out[0] = f64(z.real)


@pytest.mark.parametrize(
    ("kernel", "args", "message"),
    [
        (doubled, {"x": np.ones(32, np.float32)}, r"x is Global\[c64\], the array given is float32; .*np.complex64"),
        (doubled, {"x": np.ones(32, np.complex128)}, r"x is Global\[c64\], the array given is complex128"),
        (doubled, {"x": st.zeros(32, "float2")}, r"x is Global\[c64\], not float2"),
        (doubled, {"x": ARGUMENTS.astype(">c8")}, r"byte-swapped c64; convert it: .astype\(np.complex64\)"),
        (doubled, {"x": ARGUMENTS[::-1]}, r"x runs backwards"),
        (one_number, {"z": 1j, "out": st.empty(1, f64)}, r"z is c64; .* in arrays: give Global\[c64\]"),
    ],
)
def test_arguments_are_checked(kernel: Any, args: dict[str, Any], message: str) -> None:
    with pytest.raises(LaunchError, match=message):
        st.launch(kernel, grid=1, block=32, args=args)
