"""Multi-dimensional arrays and strided views: arguments, results, printed programs, refused arguments."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import pytest
import simtbed as st
from simtbed import CompileError, Const, Global, LaunchError, f32, float4, i32, i64, u8
from simtbed.engines.cuda.printer import cuda_source
from simtbed.runtime.request import prepare_request

from tests.language.refused_arrays import wrong
from tests.table_checks import check_each

EngineName = Literal["jit", "numpy"]
engines = pytest.mark.parametrize("engine", ["jit", "numpy"])
X = np.arange(24, dtype=np.float32).reshape(4, 6)


@st.kernel
def doubled(x: Global[f32], out: Global[f32]) -> None:
    """out = 2 x."""
    for j in range(x.shape[1]):
        if st.lane < len(x):
            out[st.lane, j] = 2 * x[st.lane, j]


@engines
@pytest.mark.parametrize(
    "argument",
    [
        X,
        np.asfortranarray(X),
        X[::2, 1::2],
        X[:, :2],
        X.T,
        X[:1],
        np.zeros((0, 3), np.float32),
        np.zeros((3, 0), np.float32),
    ],
    ids=["rows", "columns", "strided", "gaps", "transposed", "one row", "no rows", "no columns"],
)
def test_results_have_the_layout_of_the_argument(engine: EngineName, argument: Any) -> None:
    blank = np.full_like(np.asarray(argument.base if argument.base is not None else argument), 9)
    out = np.lib.stride_tricks.as_strided(blank, argument.shape, argument.strides)
    before = out.copy()
    result = st.launch(doubled, grid=1, block=32, args={"x": argument, "out": out}, engine=engine, check="all")
    assert np.array_equal(result.out, 2 * argument)
    assert result.out.shape == argument.shape
    assert not argument.size or result.out.strides == argument.strides
    assert np.array_equal(out, before)  # arguments are not modified


def test_views_are_not_copied() -> None:
    whole = np.arange(4096, dtype=np.float32).reshape(64, 64)
    for view in (whole, whole.T, whole[::2, 3:9], whole[1:2]):
        request = prepare_request(doubled, grid=1, block=32, args={"x": view, "out": st.empty(view.shape, f32)})
        assert np.shares_memory(np.asarray(request.arguments["x"]), whole)


def test_new_arrays_have_the_requested_shape() -> None:
    result = st.launch(doubled, grid=1, block=32, args={"x": X, "out": st.empty((4, 6), f32)})
    assert result.out.shape == (4, 6)
    assert np.array_equal(result["out"], 2 * X)


def test_one_program_for_all_extents() -> None:
    """The specialisation key has the number of dimensions and whether the array is contiguous."""

    def program(x: Any) -> Any:
        return prepare_request(doubled, grid=1, block=32, args={"x": x, "out": st.empty((9, 9), f32)}).program

    assert program(X) is program(X.T.copy())
    assert program(X[:, ::2]) is program(X.T)
    assert program(X) is not program(X.T)


# ------------------------------------------------------------------ more than 2 ** 31 elements
@st.kernel
def corner(x: Global[u8], out: Global[i64]) -> None:
    """out[0] = the last element, out[1:] = the extents."""
    i = x.shape[0] - 1
    j = x.shape[1] - 1
    out[0] = i64(x[i, j])
    out[1] = i64(x[i:, j][0])
    out[2] = i64(x.shape[0]) * i64(x.shape[1])


@engines
def test_indices_beyond_32_bits(engine: EngineName) -> None:
    memory = np.zeros((1 << 31) + 8, np.uint8)  # the system allocates pages at their first access
    memory[-1] = 7
    x = np.lib.stride_tricks.as_strided(memory, (2, 8), (1 << 31, 1))
    args = {"x": x, "out": st.empty(3, i64)}
    assert st.launch(corner, grid=1, block=1, args=args, engine=engine).out.tolist() == [7, 7, 16]
    text = st.launch(corner, grid=1, block=1, args=args, engine=engine).source
    assert "x[(long long)i * x_stride0 + (long long)j * x_stride1]" in text


@st.kernel
def sized(x: Global[u8], out: Global[i32]) -> None:
    out[0] = x.size


@st.kernel
def sized_view(x: Global[u8], out: Global[i32]) -> None:
    out[0] = x[:, ::1].size


@st.kernel
def length(x: Global[u8], out: Global[i32]) -> None:
    out[0] = len(x)


@st.kernel
def length_of_slice(x: Global[u8], out: Global[i32]) -> None:
    out[0] = x[1:].shape[0]


@dataclass(frozen=True)
class Pair:
    a: u8
    b: u8


@st.kernel
def sized_structs(x: Global[Pair], out: Global[i32]) -> None:
    out[0] = x.size


def test_a_size_beyond_32_bits_is_refused() -> None:
    """Of memory with gaps, and of elements that strides of 0 repeat."""
    spread = np.lib.stride_tricks.as_strided(np.zeros(8, np.uint8), (2, 1 << 30), (1 << 31, 1), writeable=False)
    repeated = np.broadcast_to(np.uint8(1), (50_000, 65_536))
    pairs = np.broadcast_to(np.zeros((), [("a", "u1"), ("b", "u1")]), (1 << 16, 1 << 15))

    def check(row: tuple[Any, Any]) -> None:
        kernel, x = row
        with pytest.raises(CompileError, match="has more elements than an i32 holds"):
            prepare_request(kernel, grid=1, block=1, args={"x": x, "out": st.empty(1, i32)})

    long = st.zeros(1 << 31, u8)
    rows = [(sized, spread), (sized, repeated), (sized_view, repeated), (sized_structs, pairs), (sized, repeated.T)]
    check_each([*rows, (sized, long), (length, long), (length_of_slice, long)], check)
    with pytest.raises(LaunchError, match="an extent is at most 2147483647"):
        prepare_request(
            sized_structs, grid=1, block=1, args={"x": np.broadcast_to(pairs[0, 0], 1 << 31), "out": st.empty(1, i32)}
        )
    prepare_request(sized, grid=1, block=1, args={"x": repeated[: (1 << 15) - 1], "out": st.empty(1, i32)})


@st.kernel
def last(x: Global[u8], out: Global[i64], n: i64) -> None:
    out[0] = i64(x[n - 1])
    out[1] = i64(x[i64(5) :][n - 6])
    out[2] = i64(x[n])


@engines
def test_indices_of_64_bits_reach_all_elements(engine: EngineName) -> None:
    x = np.zeros((1 << 31) + 5, np.uint8)  # the system allocates pages at their first access
    x[-1] = 7
    args = {"x": x, "out": st.zeros(3, i64), "n": len(x)}
    result = st.launch(last, grid=1, block=1, args=args, engine=engine, faults="return")
    assert (
        result.out.tolist() == [7, 7, 0] and "x[2147483653], but x has 2147483653 elements" in result.faults[0].message
    )


# ------------------------------------------------------------------ text
@st.device
def row_sum(row: Global[f32]) -> f32:
    total = f32(0)
    for j in range(len(row)):
        total += row[j]
    return total


@st.kernel
def smoothed(x: Global[f32], grid: Global[f32], out: Global[f32], SIDE: Const) -> None:
    """Every form of an index."""
    tile = st.shared(f32, SIDE, SIDE)
    i, j = st.thread.y, st.thread.x
    tile[i, j] = x[i, j]
    st.sync()
    row = x[i, :]
    middle = x[1 : -1 + x.shape[0], j]
    pair = (i, j)
    st.atomic_add(out, pair, tile[j, i])
    grid[i, j, 0, 1] = row[j] + middle[0] + row_sum(row) + row_sum(x[:, j]) + x[i, :][j]
    out[j, i] += f32(x.size + x.shape[0] + len(middle))


def test_the_printed_text(golden: Callable[[str, str], None]) -> None:
    deep = np.zeros((4, 4, 2, 2), np.float32)
    for name, x in (("contiguous", np.zeros((4, 4), np.float32)), ("strided", np.zeros((8, 8), np.float32)[::2, ::2])):
        args = {"x": x, "grid": deep, "out": np.zeros((4, 4), np.float32), "SIDE": 4}
        request = prepare_request(smoothed, grid=1, block=(4, 4), args=args)
        golden(f"cuda/arrays_{name}.cu", cuda_source(request.program, request.block).text)


def test_what_is_refused(golden: Callable[[str, str], None]) -> None:
    with pytest.raises(CompileError) as caught:
        st.launch(wrong, grid=1, block=4, args={"x": X, "y": X[0], "out": st.empty(4, f32)})
    golden("refused_arrays_of_dimensions.txt", f"{caught.value}\n")


@st.kernel
def vectors(x: Global[float4], out: Global[float4]) -> None:
    out[0, 0] = x[0, 0]


@pytest.mark.parametrize(
    ("x", "message"),
    [
        (np.zeros((2, 3, 5), np.float32), r"x is Global\[float4\], its array has the shape \(n, 4\), not \(2, 3, 5\)"),
        (
            np.zeros((2, 3, 6), np.float32)[:, :, :4],
            r"strides of \(72, 24, 4\) bytes, not multiples of the 16 bytes of float4",
        ),
        (
            np.zeros((2, 3, 8), np.float32)[:, :, ::2],
            r"strides of \(96, 32, 8\) bytes, not multiples of the 16 bytes of float4",
        ),
        (np.zeros((2, 3, 4), np.float32)[::-1], r"x runs backwards, .*give np.ascontiguousarray\(x\)"),
        (st.zeros((2, 4), f32), r"x is Global\[float4\], not f32; give st.zeros\(shape, st.float4\)"),
        (np.zeros((1, 2, 2, 2, 2, 2, 4), np.float32), "x has 6 dimensions, a kernel takes 1 to 5"),
    ],
)
def test_arrays_that_do_not_fit(x: Any, message: str) -> None:
    with pytest.raises(LaunchError, match=message):
        st.launch(vectors, grid=1, block=1, args={"x": x, "out": st.empty((1, 1), float4)})


# ------------------------------------------------------------------ findings name elements
@st.kernel
def racing(x: Global[f32], out: Global[f32]) -> None:
    tile = st.shared(f32, 2, 32)
    tile[1, st.lane // 2] = x[st.lane % 2, 1]
    out[1, st.lane // 2] = tile[0, 1]


@engines
def test_findings_name_elements_by_all_their_indices(engine: EngineName, golden: Callable[[str, str], None]) -> None:
    args = {"x": X, "out": np.zeros((4, 60), np.float32)[::2, ::3]}
    faults = st.launch(racing, grid=1, block=32, args=args, engine=engine, check="all", faults="return").faults
    golden("check_arrays_of_dimensions.txt", "\n".join(map(str, faults)) + "\n")
