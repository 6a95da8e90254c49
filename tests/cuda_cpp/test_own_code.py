"""The cuda engine compiles the user's text, and later processes find a kernel on the disk."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import simtbed as st
from simtbed.cuda_cpp import clang
from simtbed.cuda_cpp.kernel import CudaSource
from simtbed.engines.cuda import nvcc, own_code
from simtbed.engines.cuda.binary import binary
from simtbed.llvm import compiler
from simtbed.own_code import CudaText
from simtbed.runtime.request import prepare_request

from tests.compilers import needs_nvcc
from tests.texts import texts

TEXT = """
struct Range { unsigned char kind; double low; int count; };
__constant__ short table[3];
namespace { template <typename T> __device__ T twice(T x) { return x + x; } }
template <typename T, int N> __global__ void
sums(const T *x, bool all, Range range, T *out, const int *mask, long long n)
{
    int i = threadIdx.x;
    if (i < n && i < range.count && all && (mask == nullptr || mask[i])) out[i] = twice(x[i]) + T(table[N] + range.low) + FACTOR;
}
"""
OPTIONS = ("-DFACTOR=3", "-arch=sm_50", "-fmad", "true", "-O1")


def source() -> CudaSource:
    return st.cuda_source(TEXT, OPTIONS, ("sums<float, 1>",))


def request(**changes: Any) -> Any:
    texts = source()
    texts.variables["table"] = np.array([1, 2, 3], np.int16)
    x = np.arange(32, dtype=np.float32)
    args = {"x": x, "all": True, "range": (7, 2.5, 9), "out": st.empty(32, "f32"), "mask": None, "n": 20} | changes
    return prepare_request(texts["sums<float, 1>"], grid=1, block=32, args=args)


def own(prepared: Any) -> CudaText:
    result: CudaText = prepared.specialisation.own_code
    return result


def test_the_arguments_have_the_layout_of_the_text() -> None:
    prepared = request()
    text = own(prepared)
    values = own_code.packed(text.arguments, prepared.arguments, {"x": 4096, "out": 8192})
    struct = np.dtype([("kind", "u1"), ("low", "f8"), ("count", "i4")], align=True)
    layouts = [np.dtype(name) for name in ("u8", "?", struct, "u8", "u8", "i8")]
    assert [value.itemsize for value in values] == [layout.itemsize for layout in layouts]
    contents = [np.frombuffer(value.tobytes(), layout)[0].item() for value, layout in zip(values, layouts, strict=True)]
    assert contents == [4096, True, (7, 2.5, 9), 8192, 0, 20]
    assert text.constants == ((text.constants[0][0], np.array([1, 2, 3], np.int16).tobytes()),)


def test_an_array_given_twice_is_one_address() -> None:
    x = np.ones(32, np.float32)
    prepared = request(x=x, out=x, mask=np.ones(0, np.int32))
    values = own_code.packed(own(prepared).arguments, prepared.arguments, {"x": 4096})
    assert [value.tobytes() for value in values[::3]] == [np.uintp(4096).tobytes()] * 2
    assert values[4].tobytes() == bytes(8)


def test_the_options_are_the_users_without_those_of_the_engine() -> None:
    text = own(request())
    assert own_code.options(text) == ("-DFACTOR=3", "-O1", "-std=c++17", "-fmad=false", "-lineinfo", "--resource-usage")
    line = Path(__file__).read_text(encoding="utf-8").split('TEXT = """')[0].count("\n") + 1
    assert text.text.startswith(f'#line {line} "{__file__}"\n\nstruct Range')


@pytest.mark.slow
@needs_nvcc
def test_nvcc_compiles_the_text_with_the_users_lines() -> None:
    compiled = binary(request(), "sm_90")
    assert compiled.interface.kernel.startswith("_Z4sums") and compiled.built.resources.constant_bytes == 6
    assert b"test_own_code.py" in compiled.built.cubin and b"sums" in compiled.built.cubin
    wrong = st.cuda_source("\n__global__ void f(int *x) { x[0] = 1;\n#ifndef __clang__\n error;\n#endif\n}")["f"]
    with pytest.raises(st.LaunchError, match=r"\(4\): error"):
        binary(prepare_request(wrong, grid=1, block=1, args=(np.zeros(1, np.int32),)), "sm_90")


def test_a_later_process_does_not_compile_the_text(monkeypatch: pytest.MonkeyPatch) -> None:
    def launch(texts: CudaSource, value: float) -> Any:
        texts.variables["table"] = np.array([1, 2, 3], np.int16)
        args = (np.full(32, value, np.float32), True, (0, 0.5, 9), st.empty(32, "f32"), None, 20)
        return st.launch(texts["sums<float, 1>"], grid=1, block=32, args=args).out[:9].tolist()

    assert launch(source(), 1) == [7.5] * 9
    monkeypatch.setattr(clang, "compile_text", lambda *args: pytest.fail("the text is compiled again"))
    assert launch(source(), 2) == [9.5] * 9
    with pytest.raises(pytest.fail.Exception, match="compiled again"):
        launch(st.cuda_source(TEXT.replace("twice(x[i])", "x[i]"), OPTIONS, ("sums<float, 1>",)), 1)
    with pytest.raises(pytest.fail.Exception, match="compiled again"):
        launch(st.cuda_source(TEXT, ("-DFACTOR=4",), ("sums<float, 1>",)), 1)


@pytest.mark.slow
def test_included_files_are_read_and_are_inputs_of_the_cache(tmp_path: Path) -> None:
    (tmp_path / "inner").mkdir()
    (tmp_path / "common").mkdir()
    (tmp_path / "common" / "factor.h").write_text("#define FACTOR 3\n")
    header = tmp_path / "inner" / "twice.cuh"
    header.write_text('#pragma once\n#include <factor.h>\n#include "more.cuh"\n')
    more = tmp_path / "inner" / "more.cuh"
    more.write_text("#include <stdio.h>\n__device__ int twice(int x)\n{\n    return x * FACTOR;\n}\n")
    text = '#include "inner/twice.cuh"\n__global__ void k(int *x) { x[threadIdx.x] = twice(x[threadIdx.x]); }\n'
    path = tmp_path / "k.cu"
    path.write_text(text)
    options = ("-I", str(tmp_path / "common"))

    def run() -> Any:
        return st.launch(st.cuda_file(str(path), options).k, grid=1, block=2, args=(np.array([1, 2], np.int32),))

    assert run().x.tolist() == [3, 6]
    more.write_text(more.read_text().replace("x *", "1 + x *"))
    result = run()
    assert result.x.tolist() == [4, 7]
    options_of_nvcc = result.request.specialisation.own_code.options
    assert options_of_nvcc == (f"-I{tmp_path}", f"-I{tmp_path / 'common'}")
    more.write_text(more.read_text().replace("x * FACTOR", "x->y"))
    with pytest.raises(st.CompileError, match=r"more\.cuh:4:"):
        run()


def test_a_known_text_is_not_linked_again() -> None:
    """LLVM keeps memory of each link."""
    text = "__global__ void add_one(float *x) { x[threadIdx.x] += 1; }"

    def run() -> int:
        kernel = st.cuda_source(text)["add_one"]
        assert (st.launch(kernel, grid=1, block=2, args=(np.ones(2, np.float32),)).x == 2).all()
        return compiler._LINKED

    assert run() == run() == run()


HALVES = texts("cuda_cpp/texts.cu")["halves"]


@needs_nvcc
@pytest.mark.slow
def test_kernels_with_halves_are_found_in_the_cubin() -> None:
    """CUDA's headers have classes; the parser has built-in types."""
    instances = ("first<__half>", "first<__nv_bfloat16>", "first<float>")
    text = st.cuda_source(HALVES, (), instances)
    names = ["add", "pairs", "brain", "value", "plain", *instances, "named"]
    symbols = {name: text[name].declaration.symbol for name in names}
    built = {
        name: nvcc.build(text.translation_unit, symbol, "sm_90", ("-std=c++17", *own_code.OPTIONS))
        for name, symbol in symbols.items()
    }
    entries = {name: nvcc.entry_of(built[name].cubin, symbol) for name, symbol in symbols.items()}
    assert len({*entries.values()}) == len(names)
    assert entries["add"] == "_Z3addPK6__halfS1_PS_" and entries["first<__half>"] == "_Z5firstI6__halfEvPT_PKS1_"
    assert nvcc.entry_of(built["add"].cubin, "_Z4overPKDF16_PDF16_") == "_Z4overPK6__halfPS_"
    assert nvcc.entry_of(built["add"].cubin, "_Z4overPKfPf") == "_Z4overPKfPf"
    assert nvcc.entry_of(built["add"].cubin, "_Z5otherPKf") == "_Z5otherPKf"
