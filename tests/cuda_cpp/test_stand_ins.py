"""Programs that PyCUDA and CuPy accept or refuse: the stand-ins do the same."""

import copy as copying
import functools
import importlib
import struct
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import simtbed as st

from tests.cuda_cpp import test_emulated_libraries
from tests.table_checks import check_each

library, pycuda, cupy = (getattr(test_emulated_libraries, name) for name in ("library", "pycuda", "cupy"))
COPY = 'extern "C" __global__ void copy(const float *a, float *o) { o[threadIdx.x] = a[threadIdx.x]; }'
STORE = 'extern "C" __global__ void store(float *o, %s value) { o[threadIdx.x] = value; }'
F = np.asfortranarray(np.arange(6, dtype=np.float32).reshape(2, 3))
FROZEN = np.zeros(6, np.float32)
FROZEN.flags.writeable = False
Call = Callable[[], object]


def refused(rows: dict[str, tuple[Call, type[BaseException], str]]) -> None:
    def check(name: str) -> None:
        call, kind, message = rows[name]
        with pytest.raises(kind, match=message):
            call()

    check_each(rows, check)


def test_pycuda_copies_the_bytes_of_arrays(pycuda: Any) -> None:
    drv, arrays, out = pycuda.driver, pycuda.gpuarray, np.zeros(6, np.float32)
    copy = pycuda.compiler.SourceModule(COPY).get_function("copy")
    sources = (drv.In(F), arrays.to_gpu(F), drv.to_device(F), arrays.to_gpu(F.T).T, np.intp(arrays.to_gpu(F).ptr))
    for source in sources[:4]:
        copy(source, drv.Out(out), block=(6, 1, 1))
        assert out.tolist() == [0, 3, 1, 4, 2, 5]
    assert arrays.to_gpu(F).get().flags.f_contiguous and (arrays.to_gpu(F).get() == F).all()
    row = arrays.to_gpu(np.ascontiguousarray(F))[1]
    copy(row, drv.Out(out[:3]), block=(3, 1, 1))
    assert out[:3].tolist() == [3, 4, 5]
    copied = np.zeros((2, 3), np.float32, order="F")
    drv.memcpy_dtoh(copied, drv.to_device(F))
    assert (copied == F).all()


def test_operators_of_pycuda(pycuda: Any) -> None:
    arrays = pycuda.gpuarray
    x = arrays.to_gpu(np.array([1, 2, 3], np.float32))
    alias, tail = x, x[1:]
    x += 1
    x *= x
    tail -= 1
    x[0] = 7
    assert alias is x and x.get().tolist() == [7, 8, 15] and tail.get().tolist() == [8, 15]
    assert (x != tail[:1]).get().tolist() == [True, False, True] and (2 / x).dtype == np.float32
    assert (x >= 8).get().tolist() == [False, True, True] and float((-x).get()[0]) == -7
    assert arrays.sum(x).get() == 30 and arrays.dot(x, x).get() == 338 and arrays.max(x).get() == 15
    out = arrays.zeros(3, np.float32)
    assert pycuda.cumath.sqrt(x, out=out) is out and out.get()[2] == np.sqrt(np.float32(15))
    assert arrays.zeros((2, 3), np.float32).reshape(3, 2).T.shape == (2, 3)
    assert arrays.arange(3, dtype=np.float32).get().tolist() == [0, 1, 2]
    integers = arrays.to_gpu(np.array([7, 8]))
    refused(
        {
            "integers": (lambda: integers / 2, NotImplementedError, "GPUArray.__truediv__ of integers"),
            "type in place": (lambda: integers.__iadd__(0.5), TypeError, "cast"),
            "host array": (lambda: x + np.ones(3, np.float32), TypeError, "GPUArray"),
            "truth": (lambda: bool(x), ValueError, "ambiguous"),
            "hash": (lambda: hash(x), TypeError, "unhashable"),
            "mask": (lambda: x[np.array([True, False, True])], TypeError, "GPUArray.__getitem__ takes integers"),
            "smaller": (
                lambda: x.set(np.ones(2, np.float32)),
                ValueError,
                "GPUArray.set takes a NumPy array of 3 elements",
            ),
            "type": (lambda: x.set(np.ones(3)), ValueError, "of float32"),
            "get": (lambda: x.get(np.zeros(2, np.float32)), ValueError, "GPUArray.get takes"),
            "item": (lambda: x.__setitem__(slice(2), np.ones(3, np.float32)), ValueError, "of the shape"),
            "reshape": (lambda: arrays.zeros((4, 4), np.float32)[:, :2].reshape(8), RuntimeError, "GPUArray.reshape"),
        }
    )


POINTERS = """struct Row { int n; float *p; }; texture<float, 2> image; texture<int, 1, cudaReadModeElementType> table;
__global__ void twice(Row *row) { for (int i = threadIdx.x; i < row->n; i += blockDim.x) row->p[i] *= 2; }
__global__ void read(float *o) { o[threadIdx.x] = tex2D(image, threadIdx.x + 0.5f, 1.5f) + tex1Dfetch(table, threadIdx.x); }"""


def test_pointers_in_memory_and_textures_of_pycuda(pycuda: Any) -> None:
    drv, arrays, module = pycuda.driver, pycuda.gpuarray, pycuda.compiler.DynamicSourceModule(POINTERS)
    data, out = arrays.to_gpu(np.ones(3, np.float32)), drv.managed_zeros(4, np.float32)
    row = drv.to_device(struct.pack("ixxxxP", 3, int(data.gpudata)))
    module.get_function("twice").prepare("P").prepared_call((1, 1), (32, 1, 1), int(row))
    drv.matrix_to_texref(np.arange(12, dtype=np.float32).reshape(3, 4), module.get_texref("image"), order="C")
    table = arrays.to_gpu(np.arange(4, dtype=np.int32) * 10)
    table.bind_to_texref_ext(module.get_texref("table"))
    module.get_function("read")(out, block=(4, 1, 1), texrefs=[module.get_texref("image")])
    assert data.get().tolist() == [2, 2, 2] and out.tolist() == [4, 15, 26, 37]
    with pytest.raises(drv.LogicError, match="the text has no texture row"):
        module.get_texref("row")
    table.gpudata.free()
    with pytest.raises(st.LaunchError, match="no allocation contains the address"):
        module.get_function("read")(out, block=(4, 1, 1))


def test_scans_of_pycuda(pycuda: Any) -> None:
    scan, host = importlib.import_module("pycuda.scan"), np.arange(1, 301, dtype=np.float32)
    x = pycuda.gpuarray.to_gpu(host)
    assert (scan.InclusiveScanKernel(np.float32, "a + b")(x, "new").get() == host.cumsum()).all()
    assert (scan.ExclusiveScanKernel(np.float32, "max(a, b)", "0")(x).get() == host - 1).all()


def test_modules_of_cupyx(library: Any) -> None:
    cupy, cupyx = library("cupy").cupy, importlib.import_module("cupyx")
    x = cupy.arange(4.0)
    assert cupyx.scipy.special.expit(x - x).get().tolist() == [0.5] * 4
    assert len(cupyx.profiler.benchmark(cupy.fuse()(lambda a: a + 1), (x,), n_repeat=3, n_warmup=0).cpu_times) == 3
    for name in ("cupyx.jit", "cupyx.scipy.special.unheard", "cupyx.scipy.sparse"):
        with pytest.raises(AttributeError, match=f"{name} is not emulated"):
            functools.reduce(getattr, name.split(".")[1:], cupyx)


def test_a_structured_array_is_a_struct_by_its_bytes(cupy: Any) -> None:
    text = 'struct S { char b; double c[2]; }; extern "C" __global__ void k(S s, double *o) { o[0] = s.b + s.c[1]; }'
    inner = np.dtype([("x", "i1")])
    value = np.zeros(
        1, np.dtype({"names": ["b", "c"], "formats": [inner, ("f8", 2)], "offsets": [0, 8], "itemsize": 24})
    )
    value["b"]["x"], value["c"], out = 3, (1, 4), cupy.zeros(1)
    cupy.RawKernel(text, "k")((1,), (1,), (value, out))
    assert float(out[0]) == 7


def test_what_pycuda_refuses(pycuda: Any) -> None:
    drv, arrays = pycuda.driver, pycuda.gpuarray
    copy = pycuda.compiler.SourceModule(COPY).get_function("copy")
    most = drv.function_attribute.MAX_DYNAMIC_SHARED_SIZE_BYTES
    memory, x, strided = drv.mem_alloc(16), np.zeros(6, np.float32), np.zeros(12, np.float32)[::2]
    kernel = pycuda.elementwise.ElementwiseKernel("float *x", "x[i] = 1")
    refused(
        {
            "strided In": (lambda: drv.In(strided), st.LaunchError, "contiguous"),
            "strided source": (lambda: drv.memcpy_htod(memory, strided), st.LaunchError, "contiguous"),
            "read only": (lambda: drv.Out(FROZEN), st.LaunchError, "not read only"),
            "read only target": (lambda: drv.memcpy_dtoh(FROZEN, drv.mem_alloc(24)), st.LaunchError, "not read only"),
            "negative": (lambda: drv.mem_alloc(-1), st.LaunchError, "an allocation of -1 bytes"),
            "empty": (lambda: drv.mem_alloc(0), st.LaunchError, "an allocation of 0 bytes"),
            "copy": (lambda: drv.memcpy_dtod(memory, memory, -4), st.LaunchError, "a copy of -4 bytes"),
            "bytes": (lambda: drv.memset_d8(memory, 256, 1), drv.Error, "from 0 to 255"),
            "shared": (lambda: copy(memory, memory, block=(4, 1, 1), shared=49153), st.LaunchError, "more than 49,152: call set_attribute"),
            "setting": (lambda: copy.set_attribute(most, 232449), drv.LogicError, "invalid argument"),
            "float": (lambda: drv.memset_d32(memory, 1.5, 1), drv.LogicError, "memset takes a number"),
            "far": (lambda: drv.memset_d32(memory, 0, 5), st.LaunchError, "the allocation has 16 from there"),
            "block": (lambda: copy(memory, memory, block=4), TypeError, "block as a tuple"),
            "grid": (lambda: copy(memory, memory, block=(4, 1, 1), grid=[1]), TypeError, "grid as a tuple"),
            "option": (lambda: copy(memory, memory, block=(4, 1, 1), threads=2), TypeError, "threads"),
            "array": (lambda: copy(x, memory, block=(4, 1, 1)), st.LaunchError, "a is a pointer: expected memory of the device"),
            "copied": (lambda: copying.copy(memory), TypeError, "DeviceAllocation has no copies"),
            "events": (lambda: drv.Event().time_till(drv.Event()), drv.Error, "must be recorded"),
            "device": (lambda: drv.Device(1), drv.Error, "one emulated device"),
            "gaps": (lambda: kernel(arrays.zeros((4, 4), np.float32)[:, :2]), RuntimeError, "contiguous"),
            "extern": (
                lambda: pycuda.compiler.SourceModule(COPY.replace('extern "C"', ""), no_extern_c=True).get_function("copy"),
                drv.LogicError, 'not declared extern "C"',
            ),
        }
    )  # fmt: skip
    copy.set_attribute(most, 60000)
    copy(memory, memory, block=(4, 1, 1), shared=60000)
    assert copy.get_attribute(most) == 60000
    (freed := drv.mem_alloc(16)).free()
    second = drv.mem_alloc(16)  # at the same address
    del freed
    drv.memset_d8(second, 0, 16)
    stream = drv.Stream()
    assert stream.is_done() and drv.Device(0).warp_size == 32 and drv.Event().record(stream).query()


def test_unknown_names(library: Any) -> None:
    """Each names the library's function; none returns None."""
    pycuda, cupy = library("pycuda"), library("cupy").cupy
    drv, module = pycuda.driver, pycuda.compiler.SourceModule(COPY)
    owners: dict[str, Any] = {
        "pycuda.driver": drv, "pycuda.gpuarray": pycuda.gpuarray, "pycuda.compiler": pycuda.compiler, "pycuda.cumath": pycuda.cumath,
        "pycuda": sys.modules["pycuda"], "pycuda.tools": pycuda.tools, "pycuda.curandom": pycuda.curandom,
        "Stream": drv.Stream(), "Event": drv.Event(), "Context": pycuda.autoinit.context, "Device": drv.Device(0),
        "SourceModule": module, "Function": module.get_function("copy"), "GPUArray": pycuda.gpuarray.zeros(1, np.float32),
        "DeviceAllocation": drv.mem_alloc(4), "In": drv.In(FROZEN), "func_cache": drv.func_cache, "Pool": pycuda.tools.DeviceMemoryPool(),
        "cupy": cupy, "cupy.cuda": cupy.cuda, "cupy.random": cupy.random, "cupy.linalg": cupy.linalg, "cupy.ndarray": cupy.zeros(1),
        "cupy.cuda.Stream": cupy.cuda.Stream(), "cupy.cuda.Event": cupy.cuda.Event(), "cupy.cuda.Device": cupy.cuda.Device(),
        "cupy.cuda.runtime": cupy.cuda.runtime, "RawKernel": cupy.RawKernel(COPY, "copy"), "RawModule": cupy.RawModule(code=COPY),
    }  # fmt: skip

    def check(name: str) -> None:
        with pytest.raises(AttributeError, match=f"^{name}.unheard is not emulated$"):
            owners[name].unheard  # noqa: B018

    check_each(owners, check)
    for name in ("frompyfunc", "save", "object_", "datetime64", "str_"):  # NumPy's alone
        assert not hasattr(cupy, name)


def test_arrays_of_cupy(cupy: Any) -> None:
    x = cupy.arange(6, dtype=cupy.float32).reshape(2, 3)
    alias, row = x, x[1]
    x += 1
    row *= 2
    assert alias is x and x.get().tolist() == [[1, 2, 3], [8, 10, 12]] and x.T.T.data.ptr == x.data.ptr
    assert x.sum().shape == () and float(x.sum()) == 36 and x.max(axis=0).get().tolist() == [8, 10, 12]
    assert (cupy.where(x > 2, x, 0) @ cupy.ones(3, "f4")).get().tolist() == [3, 30]
    assert isinstance(np.sqrt(x), cupy.ndarray) and isinstance(np.sum(x), cupy.ndarray)
    assert cupy.asarray(x) is x and cupy.array(x).data.ptr != x.data.ptr and cupy.get_array_module(x) is cupy
    assert [int(value) for value in cupy.array([cupy.array(3), 4])] == [3, 4] and len(cupy.split(x, 2)) == 2
    assert float(cupy.linalg.norm(cupy.array([3.0, 4.0]))) == 5 and cupy.random.rand(2, 2).shape == (2, 2)
    out = cupy.zeros(3, "f4")
    assert cupy.add(row, row, out=out) is out and out.get().tolist() == [16, 20, 24]
    own = copying.deepcopy(x)
    own += 1
    assert (own - x).get().tolist() == [[1] * 3] * 2
    with cupy.cuda.Stream() as stream:
        assert stream.done and cupy.cuda.get_elapsed_time(stream.record(), stream.record()) >= 0
    host = np.ones((2, 3), np.float32)
    refused(
        {
            "operand": (lambda: x + host, TypeError, "takes arrays of CuPy, not numpy.ndarray"),
            "left": (lambda: host + x, TypeError, "not numpy.ndarray"),
            "in place": (lambda: x.__iadd__(host), TypeError, "not numpy.ndarray"),
            "function": (lambda: cupy.sum(host), TypeError, "cupy.sum takes arrays of CuPy"),
            "implicit": (lambda: np.asarray(x), TypeError, r"call get\(\)"),
            "texts": (lambda: cupy.array(["a"]), ValueError, "unsupported dtype"),
            "truth": (lambda: bool(x), ValueError, "ambiguous"),
            "set": (lambda: x.set(host[:1]), ValueError, "cupy.ndarray.set takes"),
            "list": (lambda: x[0].__setitem__(slice(None), [1, 2, 3]), TypeError, "arrays of CuPy and numbers"),
        }
    )


def test_arguments_of_raw_kernels(cupy: Any) -> None:
    out, host = cupy.zeros(4, "f4"), np.zeros(4, np.float32)

    def store(type: str, value: Any) -> list[float]:
        cupy.RawKernel(STORE % type, "store")((1,), (4,), (out, value))
        return out.get().tolist()  # type: ignore[no-any-return]

    assert store("bool", True) == [1] * 4 and store("bool", np.bool_(False)) == [0] * 4
    assert store("int", 5) == [5] * 4 and store("float", np.float32(2)) == [2] * 4
    columns = cupy.asfortranarray(cupy.asarray(F))
    cupy.RawKernel(COPY, "copy")((1,), (3,), (columns[:, 1:], out))  # from the address of the view on
    assert out.get().tolist()[:3] == [1, 4, 2]
    mangled = COPY.replace('extern "C"', "")
    cupy.RawModule(code=mangled, name_expressions=["copy"]).get_function("copy")((1,), (3,), (columns, out))
    kernel = cupy.RawKernel(COPY, "copy")
    refused(
        {
            "NumPy": (lambda: kernel((1,), (4,), (host, out)), TypeError, "a: RawKernel takes arrays of CuPy"),
            "bool for int": (lambda: store("int", True), st.LaunchError, "value is i32, the launch gives bool"),
            "int for bool": (lambda: store("bool", 1), st.LaunchError, "value is bool, the launch gives int64"),
            "grid": (lambda: kernel(1, (4,), (out, out)), TypeError, "grid as a tuple"),
            "number": (lambda: kernel((1,), (4,), (out,)), st.LaunchError, "takes 2 arguments, 1 are given"),
            "mangled": (lambda: cupy.RawKernel(mangled, "copy"), st.LaunchError, 'not declared extern "C"'),
            "bounds": (lambda: kernel((1,), (4,), (out[1:], out)), st.FaultError, "out of bounds"),
            "shared": (
                lambda: kernel((1,), (4,), (out, out), shared_mem=49153),
                st.LaunchError,
                "more than 49,152: set max_dynamic",
            ),
            "setting": (
                lambda: setattr(kernel, "max_dynamic_shared_size_bytes", 232449),
                st.LaunchError,
                "invalid argument",
            ),
        }
    )
    kernel.max_dynamic_shared_size_bytes = 60000
    kernel((1,), (3,), (columns, out), shared_mem=60000)
    assert kernel.max_dynamic_shared_size_bytes == 60000
