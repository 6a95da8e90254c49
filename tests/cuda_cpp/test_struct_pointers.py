"""Pointers in structs passed by value: arrays of a launch, null, and the memory of other parameters."""

from typing import Any

import numpy as np
import pytest
import simtbed as st
from simtbed.host_apis.cuda import launches
from simtbed.runtime.request import find_device
from simtbed.runtime.written_bytes import WrittenBytes
from simtbed.stand_ins.memory import MEMORY, Variables, launch_by_address

from tests.texts import texts

SOURCE = st.cuda_source(texts("cuda_cpp/texts.cu")["struct pointers"])
X, Y = np.arange(40, dtype=np.float32), np.full(40, -1, np.float32)
EXPECTED = np.where(np.arange(40) % 2, Y, X) * 2


def launch(args: Any, **options: Any) -> Any:
    return st.launch(SOURCE.select, grid=2, block=32, args=(args, 2.0), **options)


@pytest.mark.parametrize("engine", ["jit", "numpy", "python"])
def test_pointers_take_arrays(engine: Any) -> None:
    fields = {"out": st.zeros(40, st.f32), "n": 40, "in": (X, Y), "inner": {"count": np.zeros(1)}}
    result = launch(fields, engine=engine, check="all")
    np.testing.assert_array_equal(result["a.out"], EXPECTED)
    assert result["a.inner.count"] == [40]
    device = st.DeviceArray(st.zeros(40, st.f32))
    launch((device, 40, (X, Y), (None,)), engine=engine)
    np.testing.assert_array_equal(device.numpy(), EXPECTED)


def test_pointers_share_memory() -> None:
    own = X.copy()
    np.testing.assert_array_equal(launch((own, 40, (own, Y), (None,)))["a.out"], EXPECTED)


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (((5, 40, (X, Y), (None,))), r"a\.out is a NumPy array"),
        (((X, 40, (X.astype(np.int32), Y), (None,))), r"a\.in\.0 points to f32"),
        (((X, 40, X, (None,))), "a is f32"),
        (((X[:30].copy(), 40, (X, Y), (None,))), r"out of bounds: a\.out\[30\]"),
        (({"out": X}), r"a is Args: give \(out, n, in, inner\)"),
    ],
)
def test_wrong_arrays_are_errors(args: Any, message: str) -> None:
    with pytest.raises(st.SimtbedError, match=message):
        launch(args, check="bounds")


def test_pointers_of_a_driver_are_addresses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(launches, "_add_variables", lambda kernel, values: None)  # of a whole program
    memory, counts = np.arange(100, dtype=np.float32), np.zeros(4)
    blocks = {own.ctypes.data: own.nbytes for own in (memory, counts)}

    def range_of(address: int) -> tuple[int, int] | None:
        return next(((start, size) for start, size in blocks.items() if start <= address < start + size), None)

    start = memory.ctypes.data
    for count in (counts.ctypes.data + 8, 0):
        values = np.array([(start + 200, 40, start, start, count)], "u8, i4, u8, u8, u8")
        raw = np.zeros(40, np.uint8)
        for name, at in zip(values.dtype.names or (), (0, 8, 16, 24, 32), strict=True):
            raw[at : at + values[name].itemsize] = values[name].view(np.uint8)
        factor = np.array([3], np.float32)
        arguments = np.array([raw.ctypes.data, factor.ctypes.data], np.uint64)
        shape = launches.Shape((2, 1, 1), (32, 1, 1), 0, False, None)
        places = launches.Places(range_of, lambda start, size: blocks[start], {}, WrittenBytes(range_of))
        launches.launch(SOURCE.select, shape, arguments.ctypes.data, places, find_device("H200"))
        np.testing.assert_array_equal(memory[50:90], 3 * memory[:40])
    assert counts.tolist() == [0, 40, 0, 0]


def test_a_struct_of_addresses_is_an_argument_of_pycuda() -> None:
    x, out = (MEMORY.allocate(160) for _ in range(2))
    MEMORY.block(x)[:] = X.view(np.uint8)
    values = np.array(
        [(out, 40, (x, x), (0,))], [("out", "u8"), ("n", "i4"), ("in", "u8", 2), ("inner", [("count", "u8")])]
    )
    launch_by_address(SOURCE.select, (2, 1, 1), (32, 1, 1), (values, np.float32(2)), Variables(SOURCE))
    np.testing.assert_array_equal(MEMORY.block(out).view(np.float32), 2 * X)


@pytest.mark.slow
def test_a_pointer_that_an_unrolled_loop_moves() -> None:
    body = "float sum = 0;\n#pragma unroll\nfor (int i = 0; i < 250; i++, x += step) sum += *x;\n*out = sum;"
    text = f"__global__ void k(const float *x, float *out, int step) {{ {body} }}"
    x = np.arange(500, dtype=np.float32)
    result = st.launch(st.cuda_source(text)["k"], grid=1, block=1, args=(x, st.zeros(1, st.f32), 2))
    assert float(result.out[0]) == x[::2].sum()


def test_the_space_of_one_of_two_arrays() -> None:
    text = "__global__ void k(int *a, int *b, int n) { int *p = n ? a : b; *p = __isGlobal(p) + 2 * __isShared(p); }"
    result = st.launch(st.cuda_source(text)["k"], grid=1, block=1, args=(st.zeros(1, st.i32), st.zeros(1, st.i32), 0))
    assert (int(result.a[0]), int(result.b[0])) == (0, 1)


def test_the_bytes_of_a_number_that_is_a_parameter() -> None:
    text = "__global__ void k(int *out, int own, int n) { for (int i = 0; i < n; i++) *out += ((char *)&own)[i]; }"
    assert st.launch(st.cuda_source(text)["k"], grid=1, block=1, args=(st.zeros(1, st.i32), 0x1020304, 4)).out[0] == 10
