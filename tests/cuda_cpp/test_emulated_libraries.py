"""PyCUDA and CuPy without a GPU: scripts launch their kernels on an emulator."""

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import simtbed as st
from simtbed.runtime import plans
from simtbed.stand_ins.install import LIBRARIES, install

SCALE = "__global__ void scale(float *x, float a, int n) { int i = threadIdx.x; if (i < n) x[i] *= a; }"
Install = Callable[[str], Any]


@pytest.fixture
def library() -> Iterator[Install]:
    """Return a function that installs a stand-in until the end of the test and returns its modules."""
    before = dict(sys.modules)

    def installed(name: str) -> Any:
        install([name])
        return SimpleNamespace(
            **{key.rpartition(".")[2]: value for key, value in sys.modules.items() if key.partition(".")[0] == name}
        )

    yield installed
    for name in [key for key in sys.modules if key.partition(".")[0] in LIBRARIES]:
        del sys.modules[name]
    sys.modules.update({key: before[key] for key in before if key.partition(".")[0] in LIBRARIES})


@pytest.fixture
def pycuda(library: Install) -> Any:
    return library("pycuda")


@pytest.fixture
def cupy(library: Install) -> Any:
    return library("cupy").cupy


def test_copies_of_arguments(pycuda: Any) -> None:
    drv, module = pycuda.driver, pycuda.compiler.SourceModule(SCALE)
    scale, x = module.get_function("scale"), np.arange(8, dtype=np.float32)
    scale(drv.InOut(x), np.float32(2), np.int32(5), block=(32, 1, 1), grid=(1, 1))
    assert x.tolist() == [0, 2, 4, 6, 8, 5, 6, 7]
    scale(drv.In(x), np.float32(2), np.int32(5), block=(32, 1, 1))
    assert x.tolist() == [0, 2, 4, 6, 8, 5, 6, 7]


def test_a_repeated_launch_is_validated_once(pycuda: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    scale, x = pycuda.compiler.SourceModule(SCALE).get_function("scale"), pycuda.gpuarray.to_gpu(np.ones(8, np.float32))
    scale(x, np.float32(2), np.int32(8), block=(32, 1, 1))
    monkeypatch.setattr(plans, "unlimited_request", None)
    scale(x, np.float32(3), np.int32(8), block=(32, 1, 1))
    assert x.get().tolist() == [6.0] * 8


def test_generated_kernels(pycuda: Any) -> None:
    arrays, rng = pycuda.gpuarray, np.random.default_rng(1)
    x, y = rng.random(1_000).astype(np.float32), rng.random(1_000).astype(np.float32)
    operands = arrays.to_gpu(x), arrays.to_gpu(y), arrays.zeros(1_000, np.float32)
    axpy = pycuda.elementwise.ElementwiseKernel(
        "float a, float *x, float *y, float *z", "z[i] = a * x[i] + y[i]", "axpy"
    )
    axpy(np.float32(3), *operands)
    np.testing.assert_array_equal(operands[2].get(), np.float32(3) * x + y)
    dot = pycuda.reduction.ReductionKernel(
        np.float64, "0", "a + b", "(double)x[i] * y[i]", "const float *x, const float *y"
    )
    np.testing.assert_allclose(dot(*operands[:2]).get(), x.astype(np.float64) @ y, rtol=1e-12)
    with pytest.raises(st.LaunchError, match="axpy takes arrays of one size"):
        axpy(np.float32(3), *operands[:2], arrays.zeros(999, np.float32))
    np.testing.assert_array_equal(pycuda.cumath.sqrt(operands[0]).get(), np.sqrt(x))
    assert pycuda.curandom.rand((3, 4)).get().shape == (3, 4)


def test_vectors_of_pycuda(pycuda: Any) -> None:
    vec = pycuda.gpuarray.vec
    points = pycuda.gpuarray.zeros(2, vec.float3)
    points[1] = vec.make_float3(1, 2, 3)
    length = pycuda.elementwise.ElementwiseKernel("float3 *p, float *d", "d[i] = p[i].x + p[i].y + p[i].z")
    out = pycuda.gpuarray.zeros(2, np.float32)
    length(points, out)
    assert out.get().tolist() == [0, 6]


def test_memory_is_freed_with_its_array(pycuda: Any) -> None:
    array = pycuda.gpuarray.zeros(4, np.float32)
    scale, address = pycuda.compiler.SourceModule(SCALE).get_function("scale"), np.intp(array.ptr)
    del array
    with pytest.raises(st.LaunchError, match="no allocation contains"):
        scale(address, np.float32(2), np.int32(4), block=(4, 1, 1))


def test_integers_of_another_sign_have_the_bits_of_the_parameter(pycuda: Any) -> None:
    x = np.ones(4, np.float32)
    scale = pycuda.compiler.SourceModule(SCALE).get_function("scale")
    scale(pycuda.driver.InOut(x), np.float32(2), np.uint32((1 << 32) - 1), block=(4, 1, 1))
    assert x.tolist() == [1, 1, 1, 1]  # n is -1


def test_headers_of_a_script(pycuda: Any, tmp_path: Path) -> None:
    (tmp_path / "half.h").write_text("__device__ float half_of(float x) { return x / 2; }")
    text = '#include "half.h"\n__global__ void k(float *x) { x[0] = half_of(x[0]); }'
    x = np.ones(1, np.float32)
    pycuda.compiler.SourceModule(text, include_dirs=[str(tmp_path)]).get_function("k")(
        pycuda.driver.InOut(x), block=(1, 1, 1)
    )
    assert x[0] == 0.5


def test_arrays_of_cupy_in_pycuda(library: Install) -> None:
    cupy, pycuda = library("cupy").cupy, library("pycuda")
    x = cupy.arange(4, dtype=np.float32)
    pycuda.compiler.SourceModule(SCALE).get_function("scale")(x, np.float32(2), np.int32(4), block=(4, 1, 1))
    assert x.tolist() == [0, 2, 4, 6]


def test_memory_by_address(pycuda: Any) -> None:
    drv, x = pycuda.driver, np.arange(8, dtype=np.float32)
    memory, scale = drv.mem_alloc(x.nbytes), pycuda.compiler.SourceModule(SCALE).get_function("scale")
    drv.memcpy_htod(memory, x)
    scale(np.intp(int(memory) + 16), np.float32(10), np.int32(2), block=(32, 1, 1))
    drv.memcpy_dtoh(x, memory)
    assert x.tolist() == [0, 1, 2, 3, 40, 50, 6, 7]
    with pytest.raises(st.LaunchError, match=r"a copy of 32 bytes at .*: the allocation has 16 from there"):
        drv.memcpy_htod(int(memory) + 16, x)
    memory.free()
    with pytest.raises(st.LaunchError, match="no allocation contains the address"):
        scale(memory, np.float32(10), np.int32(2), block=(32, 1, 1))


def test_an_access_behind_an_allocation_is_a_finding(pycuda: Any) -> None:
    memory = pycuda.driver.mem_alloc(16)
    scale = pycuda.compiler.SourceModule(SCALE).get_function("scale")
    with pytest.raises(st.FaultError, match="out of bounds"):
        scale(memory, np.float32(1), np.int32(5), block=(32, 1, 1))


def test_gpu_arrays_prepared_calls_and_variables(pycuda: Any) -> None:
    module = pycuda.compiler.SourceModule(
        "__constant__ float table[4]; __global__ void k(float *x) { x[threadIdx.x] += table[threadIdx.x & 3]; }"
    )
    address, size = module.get_global("table")
    pycuda.driver.memcpy_htod(address, np.arange(4, dtype=np.float32))
    x = pycuda.gpuarray.to_gpu(np.ones(8, np.float32))
    module.get_function("k").prepare("P").prepared_call((1, 1), (8, 1, 1), x.gpudata)
    assert size == 16 and (x + x).get().tolist() == [2, 4, 6, 8] * 2
    with pytest.raises(AttributeError, match=r"GPUArray.mean is not emulated"):
        x.mean()


@pytest.mark.parametrize(
    ("number", "reason"),
    [(2.0, "PyCUDA takes NumPy numbers"), (np.float64(2), "a is f32, the launch gives numpy.float64")],
)
def test_numbers_of_another_type_are_refused(pycuda: Any, number: Any, reason: str) -> None:
    scale = pycuda.compiler.SourceModule(SCALE).get_function("scale")
    with pytest.raises(st.LaunchError, match=reason):
        scale(pycuda.driver.mem_alloc(16), number, np.int32(1), block=(1, 1, 1))


def test_raw_kernels(cupy: Any) -> None:
    x = cupy.arange(8, dtype=cupy.float32)
    cupy.RawKernel(f'extern "C" {SCALE}', "scale")((1,), (32,), (x, np.float32(3), 4))
    assert x.get().tolist() == [0, 3, 6, 9, 4, 5, 6, 7] and type(x.get()) is np.ndarray
    with pytest.raises(st.LaunchError, match="a is f32, the launch gives float64"):
        cupy.RawKernel(f'extern "C" {SCALE}', "scale")((1,), (32,), (x, 3.0, 4))
    with pytest.raises(AttributeError, match=r"cupy.vectorize is not emulated"):
        cupy.vectorize("float32 x", "float32 y", "y = x", "copy")


def test_instances_of_raw_modules(cupy: Any) -> None:
    text = "template <typename T> __global__ void twice(T *x) { x[threadIdx.x] *= 2; }"
    module = cupy.RawModule(code=text, options=("-std=c++17",), name_expressions=["twice<float>", "twice<int>"])
    for dtype, name in ((np.float32, "twice<float>"), (np.int32, "twice<int>")):
        x = cupy.asarray(np.arange(4), dtype)
        module.get_function(name)((1,), (4,), (x,))
        assert x.get().tolist() == [0, 2, 4, 6] and x.dtype == dtype


def test_other_libraries_are_not_emulated() -> None:
    with pytest.raises(st.SimtbedError, match="torch is not emulated; pycuda and cupy are"):
        install(["torch"])


def test_arrays_are_copied_to_given_ones(pycuda: Any, cupy: Any) -> None:
    target = np.zeros(4, np.float32)
    array = pycuda.gpuarray.to_gpu(np.arange(4, dtype=np.float32))
    assert array.get(target) is target and target.tolist() == [0, 1, 2, 3]
    with pytest.raises(ValueError, match="4 elements of float32"):
        array.get(np.zeros(4))
    assert cupy.asnumpy(cupy.arange(3), out=(out := np.zeros(3, np.int64))) is out and out.tolist() == [0, 1, 2]


def test_a_driver_copies_the_bytes_of_an_integer(pycuda: Any) -> None:
    text = "__global__ void f(int *x, int n) { x[0] = n; }"
    x = np.zeros(1, np.int32)
    f = pycuda.compiler.SourceModule(text).get_function("f")
    f(pycuda.driver.InOut(x), np.uint32(4294967293), block=(1, 1, 1))
    assert x.tolist() == [-3]


def test_a_copy_to_a_strided_array_is_refused(pycuda: Any) -> None:
    memory = pycuda.driver.to_device(np.zeros(8, np.float32))
    with pytest.raises(st.LaunchError, match="needs a contiguous array"):
        pycuda.driver.memcpy_dtoh(np.zeros(16, np.float32)[::2], memory)


def test_random_numbers_of_cupy_have_the_given_type(cupy: Any) -> None:
    cupy.random.seed(1)
    samples = [
        cupy.random.random((2, 3), dtype=np.float32),
        cupy.random.rand(4, dtype=cupy.float32),
        cupy.random.normal(0, 1, 5, dtype=np.float32),
        cupy.random.randint(0, 9, 6, dtype=np.int32),
        cupy.random.uniform(size=7),
    ]
    assert [(x.shape, x.dtype.str) for x in samples] == [
        ((2, 3), "<f4"), ((4,), "<f4"), ((5,), "<f4"), ((6,), "<i4"), ((7,), "<f8"),
    ]  # fmt: skip
    assert all(isinstance(x, cupy.ndarray) for x in samples)


@pytest.mark.slow
def test_elementwise_kernels_of_cupy(cupy: Any) -> None:
    x, y = cupy.arange(10, dtype="f4").reshape(2, 5), cupy.arange(5, dtype="f4")
    square = cupy.ElementwiseKernel("float32 x, float32 y", "float32 z", "z = (x - y) * (x - y)", "square")
    expected = np.array([[0.0] * 5, [25.0] * 5], np.float32)
    out = cupy.zeros((5, 2), "f4").T
    assert square(x, y, out) is out
    for result in (square(x, y), out, square(x, y.get().tolist()[0]) * 0 + square(x, y)):
        np.testing.assert_array_equal(result.get(), expected)
    any_type = cupy.ElementwiseKernel(
        "T x, raw T y, S s", "T z, S w", "z = x + y[_ind.size() - i - 1]; w = s", preamble="#define S2 2"
    )
    z, w = any_type(cupy.arange(4), cupy.arange(4), np.float32(2.5))
    assert (z.get().tolist(), w.get().tolist(), z.dtype, w.dtype) == (
        [3] * 4,
        [2.5] * 4,
        np.dtype("i8"),
        np.dtype("f4"),
    )
    filled = cupy.ElementwiseKernel("", "int32 z", "z = i + first", loop_prep="int first = 7", return_tuple=True)
    assert filled(size=3)[0].get().tolist() == [7, 8, 9]
    for arguments, error in (
        ((x, cupy.arange(5)), TypeError),
        ((x, np.ones(5)), TypeError),
        ((x,), TypeError),
        ((x, y, y), ValueError),
    ):
        with pytest.raises(error):
            square(*arguments)
    with pytest.raises(st.FaultError, match="read out of bounds"):
        cupy.ElementwiseKernel("raw T x", "T z", "z = x[i + 1]")(y, size=5)


@pytest.mark.slow
def test_reduction_kernels_of_cupy(cupy: Any) -> None:
    norm = cupy.ReductionKernel("T x", "T y", "x * x", "a + b", "y = sqrt(a)", "0", "norm")
    values = np.random.default_rng(1).random((3, 4, 300))
    x = cupy.asarray(values)
    for axis in (None, 0, 1, -1, (0, 2)):
        for keep in (False, True):
            expected = np.sqrt((values * values).sum(axis, keepdims=keep))
            np.testing.assert_allclose(norm(x, axis=axis, keepdims=keep).get(), expected, rtol=1e-12)
    product = cupy.ReductionKernel("T x, T y", "int64 n", "x > y", "a + b", "n = a", "0", reduce_type="int64")
    assert int(product(x, 0.5)) == (values > 0.5).sum()
    out = cupy.zeros(3)
    assert norm(x, out, axis=(1, 2)) is out
    np.testing.assert_allclose(out.get(), np.sqrt((values * values).sum((1, 2))), rtol=1e-12)


def test_modules_of_cupy(cupy: Any) -> None:
    x = cupy.arange(8, dtype=np.float32)
    cupy.testing.assert_allclose(cupy.fft.ifft(cupy.fft.fft(x)).real, x.get(), atol=1e-6)
    with pytest.raises(AssertionError):
        cupy.testing.assert_array_equal(x, x + 1)
    first, second = (cupy.random.RandomState(3).normal(size=4, dtype=np.float32) for _ in range(2))
    assert isinstance(first, cupy.ndarray) and first.dtype == np.float32 and (first == second).all()
    pool = cupy.get_default_memory_pool()
    before = pool.used_bytes()
    more = cupy.zeros(1000)
    assert pool.used_bytes() - before == more.nbytes
    assert cupy.cuda.stream.get_current_stream() is cupy.cuda.Stream.null
    with pytest.raises(AttributeError, match=r"cupy\.fft\.dct is not emulated"):
        cupy.fft.dct(x)
