"""Arguments that are arrays of other libraries, subclasses of `np.ndarray`, or numbers in arrays without dimensions."""

import array
import ctypes
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest
import simtbed as st
from simtbed import Const, DeviceArray, Global, LaunchError, f32, i32
from simtbed.runtime.foreign_arrays import as_array
from simtbed.testing import verify

from tests.table_checks import check_each

BASE = np.arange(32, dtype=np.float32)


@st.kernel
def scaled(x: Global[f32], out: Global[f32], n: i32, FACTOR: Const) -> None:
    """out = x * FACTOR below n."""
    if st.lane < n:
        out[st.lane] = x[st.lane] * FACTOR


@st.kernel
def rows(x: Global[f32], out: Global[f32]) -> None:
    out[st.lane] = x[0, st.lane]


class Interface:
    """An array of a library with `__array_interface__`."""

    def __init__(self, values: Any) -> None:
        self.values = values

    @property
    def __array_interface__(self) -> Any:
        return self.values.__array_interface__


class Column:
    """A column of a table: `__array__` returns its memory."""

    def __init__(self, values: Any) -> None:
        self.values = values

    def __array__(self, dtype: Any = None) -> Any:
        return self.values


class Converted(Column):
    """A column whose `__array__` returns a copy."""

    def __array__(self, dtype: Any = None) -> Any:
        return self.values.copy()


class Tensor:
    """A tensor with DLPack; on the host, or in the memory of a GPU."""

    def __init__(self, values: Any, device: int = 1) -> None:
        self.values, self.device = values, device

    def __dlpack__(self, **options: Any) -> Any:
        return self.values.__dlpack__()

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.device, 0


class NeedsGradient(Tensor):
    def __dlpack__(self, **options: Any) -> Any:
        raise BufferError("Can't export tensors that require gradient, use tensor.detach()")


class OnGpu:
    """An array of CuPy."""

    __cuda_array_interface__ = None


class Number:
    """A tensor without dimensions."""

    shape = ()

    def __init__(self, value: Any) -> None:
        self.value = value

    def item(self) -> Any:
        return self.value


class Annotated(np.ndarray[Any, Any]):
    """A subclass with an attribute of its own."""

    def __array_finalize__(self, source: Any) -> None:
        self.unit = getattr(source, "unit", None)


def run(x: Any, kernel: Any = scaled, **more: Any) -> Any:
    args = {"x": x, "out": st.empty(32, f32), **more}
    if kernel is scaled:
        args = {"n": 32, "FACTOR": 2, **args}
    return st.launch(kernel, grid=1, block=32, args=args, engine="numpy", counters=False).out


def test_arrays_of_other_libraries_are_viewed() -> None:
    double = np.repeat(BASE, 2)
    in_same_memory = {
        "interface": Interface(BASE),
        "strided interface": Interface(double[::2]),
        "column": Column(BASE),
        "tensor": Tensor(BASE),
        "page-locked tensor": Tensor(BASE, 3),
        "capsule": BASE.__dlpack__(),
        "memoryview": memoryview(cast(Any, BASE)),
        "subclass": BASE.view(Annotated),
    }

    def check(name: str) -> None:
        value = as_array("x", in_same_memory[name])
        assert type(value) is np.ndarray and (np.shares_memory(value, BASE) or np.shares_memory(value, double))
        assert run(value).tolist() == (2 * BASE).tolist()

    check_each(in_same_memory, check)
    floats = array.array("f", BASE)
    assert run(floats).tolist() == (2 * BASE).tolist() and np.shares_memory(
        as_array("x", floats), as_array("x", floats)
    )
    assert run((ctypes.c_float * 32)(*BASE))[31] == 62


def test_an_argument_keeps_its_contents() -> None:
    """As for NumPy arrays: the result has the written array."""
    out = Tensor(np.zeros(32, np.float32))
    assert run(BASE, out=out)[31] == 62 and not out.values.any()
    assert DeviceArray(Tensor(BASE)).numpy().tolist() == BASE.tolist()  # type: ignore[arg-type]


def test_an_empty_array_of_another_library() -> None:
    assert as_array("x", Column(np.zeros(0, np.float32))).size == 0


@pytest.mark.filterwarnings("ignore:the matrix subclass")
def test_subclasses_behave_as_their_base(tmp_path: Path) -> None:
    mapped = np.memmap(tmp_path / "x", np.float32, "w+", shape=32)
    mapped[:] = BASE
    values = {"matrix": np.matrix(BASE), "memmap": mapped.reshape(1, 32), "own": BASE.view(Annotated).reshape(1, 32)}

    def check(name: str) -> None:
        result = run(values[name], kernel=rows)
        assert type(result) is np.ndarray and result.tolist() == BASE.tolist()

    check_each(values, check)
    written = run(BASE, out=np.zeros(32, np.float32).view(Annotated))
    assert type(written) is np.ndarray and written[1] == 2


@pytest.mark.filterwarnings("ignore:the matrix subclass")
@pytest.mark.parametrize("check", ["", "all"])
def test_a_matrix_on_both_emulators(check: str) -> None:
    for engine in ("numpy", "jit"):
        args = {"x": np.matrix(BASE), "out": st.empty(32, f32)}
        result = st.launch(rows, grid=1, block=32, args=args, engine=engine, check=check, counters=False)
        assert result.out.tolist() == BASE.tolist() and not result.faults


def test_refused_arrays() -> None:
    masked = np.ma.masked_array(BASE)
    used = BASE.__dlpack__()
    np.asarray(as_array("x", used))
    rows_of_table = [
        (masked, r"^x is a masked array, and a kernel has no mask: give x\.filled\(value\), or x\.data$"),
        (Converted(BASE), r"Converted, which NumPy cannot view without a copy: give np\.asarray\(x\)$"),
        (Tensor(BASE, 2), r"Tensor in the memory of a GPU: give np\.asarray of a copy on the host"),
        (OnGpu(), "OnGpu in the memory of a GPU"),
        (NeedsGradient(BASE), r"cannot view: Can't export .* use tensor\.detach\(\); give np\.asarray\(x\)"),
        (used, "a capsule that is not of DLPack, or that was used before"),
        ([1.0] * 32, r"x is a NumPy array, np\.array\(x, np\.float32\) makes one"),
        ("text", "not 'text'"),
        (bytes(32), r"x is Global\[f32\], the array given is uint8"),
        (memoryview(cast(Any, BASE))[::-1], "x runs backwards"),
        (np.array(["a"], np.dtypes.StringDType()), r"^x is an array of numbers, the array given is StringDType\(\)$"),
        (np.array(["2020"], "M8[D]"), r"the array given is datetime64\[D\]$"),
        (np.zeros(2, np.longdouble), "the array given is (float128|float64)"),
        (np.zeros(2, ">f4"), "byte-swapped f32"),
        (np.broadcast_to(np.float32(0), 3 << 30), r"an extent is at most 2147483647; launch on sections, such as x\["),
    ]

    def check(row: tuple[Any, str]) -> None:
        with pytest.raises(LaunchError, match=row[1]) as caught:
            run(row[0])
        assert "\n" not in str(caught.value)

    check_each(rows_of_table, check, lambda row: row[1])


def test_numbers_in_arrays_without_dimensions() -> None:
    for number in (np.array(5), Number(5), np.int64(5)):
        assert run(BASE, n=number, out=st.zeros(32, f32)).tolist()[4:6] == [8, 0]
        assert run(BASE, FACTOR=number)[1] == 5
        assert as_array("n", number) is number or isinstance(number, np.ndarray)
    result = st.launch(
        rows,
        grid=np.array(1),  # type: ignore[arg-type]
        block=Number(32),  # type: ignore[arg-type]
        args=[BASE.reshape(1, 32), st.empty(np.array(32), f32)],  # type: ignore[arg-type]
        engine="numpy",
        counters=False,
    )
    assert result.out[31] == 31
    with pytest.raises(LaunchError, match=r"n is i32: a whole number is expected, not 5\.5"):
        run(BASE, n=Number(5.5))
    with pytest.raises(LaunchError, match="n is i32: a whole number is expected, not array"):
        run(BASE, n=np.array([5]))


def test_verify_reads_a_capsule_once() -> None:
    args = {"x": BASE.__dlpack__(), "out": st.empty(32, f32), "n": 32, "FACTOR": 2}
    oracle = lambda x, FACTOR: x * FACTOR  # noqa: E731
    verify(scaled, grid=1, block=32, args=args, engines=("numpy", "jit"), oracle=oracle, counters=False)


def test_a_record_array() -> None:
    from tests.runtime.test_unwritten import Point, first_points

    points = np.zeros(4, np.dtype([("x", "f4"), ("n", "i4")], align=True)).view(np.recarray)
    args = [points, 2]
    result = st.launch(first_points, grid=1, block=32, args=args, engine="numpy", counters=False)
    assert Point is not None and result.out["x"].tolist() == [1.5, 1.5, 0, 0] and type(result.out) is np.ndarray
