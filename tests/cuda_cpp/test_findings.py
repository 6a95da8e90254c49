"""Findings in CUDA C++ have the line of the text, in the Python file that contains it, and CUDA's words."""

import inspect
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import simtbed as st
from simtbed.testing import verify
from simtbed.testing.figures import figures

from tests.table_checks import each_row
from tests.texts import texts

TEXTS = texts("cuda_cpp/texts.cu")
MISTAKES = """
__device__ float neighbour(const float *x, int i) { return x[i + 1]; }  // bounds
__global__ void bounds(const float *x, float *out) { out[threadIdx.x] = neighbour(x, threadIdx.x); }
__global__ void row(const float *x, float *out) {
    __shared__ float tile[4][8];
    if (threadIdx.x < 32) tile[threadIdx.x / 8][threadIdx.x % 8] = x[threadIdx.x];
    __syncthreads();
    if (threadIdx.x < 3) out[threadIdx.x] = tile[threadIdx.x][8];  // row
}
__global__ void race(const float *x, float *out) {
    __shared__ float tile[64];
    tile[threadIdx.x] = x[threadIdx.x];  // race
    out[threadIdx.x] = tile[63 - threadIdx.x];
}
__global__ void barrier(float *out) {
    if (threadIdx.x < 40) __syncthreads();  // barrier
    out[threadIdx.x] = 1;
}
__global__ void uninitialised(float *out) {
    __shared__ float tile[64];
    if (threadIdx.x < 32) tile[threadIdx.x] = 1;
    __syncthreads();
    out[threadIdx.x] = tile[threadIdx.x];  // uninitialised
}
__global__ void arithmetic(const int *n, int *out) { out[threadIdx.x] = 1 << n[threadIdx.x]; }  // arithmetic
__global__ void allowed(const float *x, float *out) {
    __shared__ float tile[64];
    tile[threadIdx.x] = x[threadIdx.x];  // simtbed: allow race - the other half is discarded
    out[threadIdx.x] = tile[63 - threadIdx.x];
}
"""
KINDS = {"row": "bounds"}


def _launch(name: str, **options: Any) -> st.Result:
    kernel = st.cuda_source(MISTAKES)[name]
    inputs: dict[str, Any] = {"x": np.ones(64, np.float32), "out": st.empty(64, "f32")}
    if name == "arithmetic":
        inputs = {"n": np.arange(64, dtype=np.int32), "out": st.empty(64, "i32")}
    args = {parameter.name: inputs[parameter.name] for parameter in kernel.parameters}
    return st.launch(kernel, grid=1, block=64, args=args, check="all", faults="return", **options)


def test_an_access_to_a_null_pointer_is_a_finding() -> None:
    for engine in ("jit", "numpy", "python"):
        result = st.launch(
            st.cuda_source(TEXTS["null pointers"]).k, grid=1, block=32, check="all", faults="return", engine=engine,
            args={"scalar": None, "vector": None, "out": st.zeros(8, "i32")},
        )  # fmt: skip
        lines = [fault.span.line - result.faults[0].span.line for fault in result.faults]
        assert lines == ([0] if engine == "python" else list(range(6))), engine
        assert {(fault.kind, fault.message) for fault in result.faults} == {("bounds", "access through a null pointer")}


VECTORS = {
    "x": (1, 2, "bounds", "global read out of bounds: x[2], but x has 2 elements"),
    "(x + threadIdx.x)": (3, 8, "alignment", "misaligned access: 16 bytes from byte 4 of x, not a multiple of 16"),
}
"""Addresses of a float4, with threads, elements of x, and the finding."""


@pytest.mark.parametrize("address", VECTORS)
def test_findings_of_vector_accesses(address: str) -> None:
    threads, elements, *expected = VECTORS[address]
    kernel = st.cuda_source(f"__global__ void k(float *x) {{ float4 v = *(float4 *){address}; x[0] = v.x; }}").k
    for engine in ("jit", "numpy", "python"):
        x = st.zeros(elements, "f32")
        fault = st.launch(kernel, grid=1, block=threads, args={"x": x}, engine=engine, faults="return").faults[0]
        assert [fault.kind, fault.message] == expected, engine


@pytest.mark.parametrize("name", ["bounds", "row", "race", "barrier", "uninitialised", "arithmetic"])
def test_a_mistake_is_found_at_its_line_of_this_file(name: str) -> None:
    lines = Path(__file__).read_text().splitlines()
    expected = next(n for n, line in enumerate(lines, 1) if line.endswith(f"// {name}"))
    for engine in ("jit", "numpy"):
        faults = _launch(name, engine=engine).faults
        assert KINDS.get(name, name) in {fault.kind for fault in faults}
        fault = next(fault for fault in faults if fault.kind == KINDS.get(name, name))
        assert (fault.span.file, fault.span.line) == (__file__, expected)
        assert "st." not in str(fault).replace("st.launch", "")


@pytest.mark.parametrize("place", ["", "namespace rows { extern __shared__ float row[]; }"])
def test_dynamic_shared_memory_has_the_name_of_its_array(place: str) -> None:
    """The name of a variable of a namespace is mangled: its memory is called `shared`."""
    own = "using rows::row;" if place else "extern __shared__ float row[];"
    text = f"{place} __global__ void k() {{ {own} row[threadIdx.x + 1] = 0; }}"
    (fault,) = st.launch(st.cuda_source(text).k, grid=1, block=64, shared=256, args={}, faults="return").faults
    name = "shared" if place else "row"
    assert fault.message == f"shared write out of bounds: {name}[64], but {name} has 64 elements"


def test_the_advice_on_a_race_is_a_barrier_of_cuda() -> None:
    (fault,) = _launch("race").faults
    assert "__syncthreads()" in str(fault) and fault.remedy == ()


def test_no_python_statement_is_advised_for_a_kernel_text() -> None:
    race = st.cuda_source("""
    __global__ void race(float *x) {
        __shared__ float tile[64];
        tile[threadIdx.x] = x[threadIdx.x];
        x[threadIdx.x] = tile[63 - threadIdx.x];
    }""").race
    result = st.launch(race, grid=1, block=64, args=(np.ones(64, np.float32),), check="races", faults="return")
    assert "to order them: __syncthreads() between the two" in result.faults[0].notes[-1]


def test_a_comment_allows_a_finding() -> None:
    result = _launch("allowed")
    assert result.faults == [] and [remark.kind for remark in result.remarks] == ["allowed"]


def test_a_finding_in_a_device_function_has_its_call() -> None:
    fault = _launch("bounds").faults[0]
    (call,) = fault.span.calls
    assert call.text.startswith("neighbour(x")


def test_counters_have_the_lines_of_this_file() -> None:
    source, first = inspect.getsourcelines(test_counters_have_the_lines_of_this_file)
    copy = st.cuda_source("""
    __global__ void copy(const float *a, float *b) {
        b[threadIdx.x] = a[threadIdx.x];
    }""").copy
    result = st.launch(copy, grid=1, block=32, args=(np.ones(32, np.float32), st.empty(32, "f32")))
    line = first + next(n for n, text in enumerate(source) if "b[threadIdx.x] =" in text)
    assert result.counters.by_line()[__file__, line]["global_load_requests"] == 1


@pytest.mark.slow
def test_verify_whatif_and_the_source_take_the_text() -> None:
    double = st.cuda_source("__global__ void twice(float *x) { x[blockIdx.x * blockDim.x + threadIdx.x] *= 2; }")
    args = {"x": np.arange(128, dtype=np.float32)}
    verify(double.twice, grid=2, block=64, args=args, oracle=lambda x: x * 2, checked=True)
    assert len(st.whatif(double.twice, grid=2, block=64, args=args, blocks=[32, 64], source_only=True)) == 2
    assert st.launch(double.twice, grid=2, block=64, args=args).source == double.source.text


def test_arguments_are_checked() -> None:
    twice = st.cuda_source("__global__ void twice(float *x, int n) { if (threadIdx.x < n) x[threadIdx.x] *= 2; }").twice
    for args, message in (
        ((np.ones(4), 4), "x points to f32; the array given is float64"),
        ((np.ones((4, 4), np.float32).T, 4), "x is a pointer: give a contiguous array"),
        ((np.ones(4, np.float32), 2.5), "n is i32"),
        ((np.ones(4, np.float32),), "twice takes x, n: args are 1"),
        ((np.ones(4, np.float32), 1 << 40), "n"),
    ):
        with pytest.raises(st.LaunchError, match=message):
            st.launch(twice, grid=1, block=4, args=args)


OTHER_SIZES = st.cuda_source(TEXTS["accesses of other sizes"])


@each_row(
    [
        (name, type, engine, value)
        for name, type in (("swap", st.f64), ("pairs", st.f16), ("parts", st.f32), ("vectors", st.float4))
        for engine in ("jit", "numpy")
        for value in (0, 1.75, None)[: 2 if name == "swap" else 3]
    ]
)
def test_created_arrays_are_accessed_as_other_elements(row: tuple[str, Any, str, float | None]) -> None:
    name, type, engine, value = row
    new = st.empty(8, type) if value is None else st.full(8, value, type)
    options: Any = {"grid": 1, "block": 32, "engine": engine}
    expected = st.launch(OTHER_SIZES[name], args=(st.DeviceArray(new).numpy(),), **options).x
    for _ in range(2):  # the second launch has a plan
        np.testing.assert_array_equal(st.launch(OTHER_SIZES[name], args=(new,), **options).x, expected)
    device = st.DeviceArray(new)
    st.launch(OTHER_SIZES[name], args=(device,), **options)
    np.testing.assert_array_equal(device.numpy(), expected)


def test_unwritten_elements_are_those_of_the_array() -> None:
    for name, type, message in (
        ("pairs", st.f16, "2 of 8 elements of x were never written, first x[6]"),
        ("parts", st.f32, "8 of 8 elements of x were never written, first x[0]"),
    ):
        result = st.launch(OTHER_SIZES[name], grid=1, block=32, args=(st.empty(8, type),), check="uninitialised")
        assert message in str(result.remarks[0]) and "these elements hold nan" in str(result.remarks[0])
        device = st.DeviceArray(st.empty(8, type))
        st.launch(OTHER_SIZES[name], grid=1, block=32, args=(device,), check="uninitialised")
        assert device.written is not None and (~device.written).sum() == int(message[0])


def test_volatile_accesses_in_a_race_are_loads_and_stores() -> None:
    source = st.cuda_source("""
    __global__ void read(int *x) { if (threadIdx.x == 0) x[0] = 1; if (threadIdx.x == 40) x[1] = *(volatile int *)x; }
    __global__ void write(int *x) { if (threadIdx.x == 0) x[1] = x[0]; if (threadIdx.x == 40) *(volatile int *)x = 3; }
    __global__ void add(int *x) { if (threadIdx.x == 0) x[1] = x[0]; if (threadIdx.x == 40) atomicAdd(x, 3); }
    """)
    for name, words in (("read", "read"), ("write", "written"), ("add", "changed by an atomic operation")):
        args = (np.zeros(2, np.int32),)
        (fault,) = st.launch(source[name], grid=1, block=64, args=args, check="races", faults="return").faults
        assert f"x[0] is {words} here" in fault.message


def test_variables_keep_their_contents_between_launches() -> None:
    source = st.cuda_source("""
    __device__ int count;
    __constant__ float factor[2] = {1, 2};
    __global__ void step(float *x) { x[threadIdx.x] *= factor[1]; atomicAdd(&count, 1); }
    """)
    x = np.ones(32, np.float32)
    assert st.launch(source.step, grid=1, block=32, args={"x": x}).x[0] == 2
    source.variables["factor"] = np.array([0, 5], np.float32)
    assert st.launch(source.step, grid=1, block=32, args={"x": x}).x[0] == 5
    assert source.variables["count"].numpy()[0] == 64


def test_options_define_macros() -> None:
    text = "__global__ void fill(int *x) { x[threadIdx.x] = VALUE; }"
    source = st.cuda_source(text, options=("-DVALUE=7", "-O3", "--use_fast_math"))
    assert st.launch(source.fill, grid=1, block=4, args={"x": st.empty(4, "i32")}).x.tolist() == [7] * 4


def test_macros_of_the_user_do_not_change_the_headers() -> None:
    text = """
    #define M 3
    #include <mma.h>
    #include <cooperative_groups.h>
    __global__ void sum(int *x) { *x = T + N + M + value; }
    """
    source = st.cuda_source(text, options=("-DT=9", "-UT", "-D", "T=16", "-DN", "-Dvalue=5"))
    assert st.launch(source.sum, grid=1, block=1, args={"x": st.empty(1, "i32")}).x[0] == 25


def test_errors_of_the_host_do_not_matter() -> None:
    source = st.cuda_source(
        """
    #include <vector>
    #include <cuda_runtime.h>
    __global__ void one(int *x) { x[threadIdx.x] = 1; }
    template <int N = 2, class T = int> __global__ void number(T *x) { x[threadIdx.x] = N; }
    int main() { std::vector<int> v(3); int *d; cudaMalloc(&d, 12); one<<<1, 3>>>(d); number<><<<1, 3>>>(d); return v.size(); }
    """,
        instances=("number<>",),
    )
    for name, expected in (("one", 1), ("number<>", 2)):
        assert st.launch(source[name], grid=1, block=3, args={"x": st.empty(3, "i32")}).x.tolist() == [expected] * 3


def test_unknown_kernels_are_named() -> None:
    with pytest.raises(st.LaunchError, match="the text has no kernel two; it has one"):
        st.cuda_source("__global__ void one(int *x) { }")["two"]


def test_a_text_in_the_middle_of_a_line_has_its_columns() -> None:
    kernel = st.cuda_source("__global__ void last(float *x) { x[threadIdx.x] = 1; }").last  # one line
    with pytest.raises(st.FaultError) as fault:
        st.launch(kernel, grid=1, block=2, args=(np.zeros(1, np.float32),))
    assert fault.value.result.faults[0].span.text == "x[threadIdx.x] = 1"


def test_budgets_take_lines_of_other_languages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The baseline of a `.cu` file has its lines."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "ones.cu").write_text("__global__ void ones(float *x)\n{\n    x[threadIdx.x] = 1;\n}\n")
    kernel = st.cuda_file("ones.cu")["ones"]
    result = st.launch(kernel, grid=1, block=32, args=(st.empty(32, "f32"),))
    lines = figures(result.profile(), [(32, 0)])["lines"]
    assert [(line["line"], line["source"]) for line in lines] == [(2, "x[threadIdx.x] = 1;")]


UPDATES = ("h[x[i]] += 1", "h[x[i]]++", "h[x[i]] = h[x[i]] + 1", "h[x[i]] = 1 + h[x[i]]")


@each_row(UPDATES)
def test_an_update_without_an_atomic_operation_is_one_finding(update: str) -> None:
    text = f"__global__ void count(const int *x, int *h) {{ int i = threadIdx.x + blockIdx.x * 64; {update}; }}"
    args = (np.arange(128, dtype=np.int32) % 7, np.zeros(7, np.int32))
    result = st.launch(st.cuda_source(text).count, grid=2, block=64, args=args, check="races", faults="return")
    (fault,) = result.faults
    assert "use an atomic operation" in str(fault) and "fence" not in str(fault), str(fault)


@st.kernel
def counted(x: st.Global[st.i32], h: st.Global[st.i32], own: st.Const) -> None:
    """Count values, in one statement or two expressions."""
    i = st.thread.x + st.block.x * st.block_dim.x
    if own:
        h[x[i]] += 1
    else:
        h[x[i]] = h[x[i]] + 1


def test_an_update_in_python_is_one_finding() -> None:
    for own, grid in ((True, 2), (False, 2), (True, 1), (False, 1)):
        args = {"x": np.arange(128, dtype=np.int32) % 7, "h": np.zeros(7, np.int32), "own": own}
        result = st.launch(counted, grid=grid, block=128 // grid, args=args, check="races", faults="return")
        (fault,) = result.faults
        assert "use an atomic operation" in str(fault), str(fault)
