"""Files that a CUDA C++ text includes: from the folder of its file, and from folders in its options."""

from pathlib import Path

import numpy as np
import pytest
import simtbed as st
from simtbed.cuda_cpp.kernel import CudaSource

KERNEL = """
#include <cuda_runtime.h>
#include "scaling.cuh"
__global__ void scale(float *x) { x[threadIdx.x] = scaled(x[threadIdx.x]); }
"""
HEADER = '#include "factor.h"\n__device__ float scaled(float x) { return x * FACTOR; }\n'


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "common").mkdir()
    (tmp_path / "kernel.cu").write_text(KERNEL)
    (tmp_path / "scaling.cuh").write_text(HEADER)
    (tmp_path / "common/factor.h").write_text("#define FACTOR 3\n")
    return tmp_path


def _scaled(source: CudaSource) -> float:
    return float(st.launch(source["scale"], grid=1, block=1, args=(np.ones(1, np.float32),)).buffers["x"][0])


def test_a_changed_file_changes_the_kernel(folder: Path) -> None:
    options = ("-I", str(folder / "common"))
    assert _scaled(st.cuda_file(str(folder / "kernel.cu"), options)) == 3
    (folder / "common/factor.h").write_text("#define FACTOR 5\n")
    assert _scaled(st.cuda_file(str(folder / "kernel.cu"), options)) == 5
    assert _scaled(st.cuda_source(KERNEL, (f"-I{folder}", f"-I{folder / 'common'}"))) == 5


def test_a_file_that_is_not_found_is_named(folder: Path) -> None:
    (folder / "scaling.cuh").unlink()
    with pytest.raises(
        st.CompileError, match=r"undeclared identifier 'scaled'.*; not found: scaling.cuh: give their folder"
    ):
        st.cuda_file(str(folder / "kernel.cu"))["scale"]


def test_findings_name_the_included_file(folder: Path) -> None:
    (folder / "scaling.cuh").write_text("\n__global__ void beyond(int *x) {\n    x[threadIdx.x + 1] = 0;\n}\n")
    source = st.cuda_file(str(folder / "kernel.cu"))
    result = st.launch(source["beyond"], grid=1, block=2, args=(np.zeros(2, np.int32),), check="all", faults="return")
    span = result.faults[0].span
    assert (Path(span.file).name, span.line) == ("scaling.cuh", 3)


def test_host_code_of_an_included_file_is_left_out(folder: Path) -> None:
    (folder / "common/host.cuh").write_text(
        "inline int failed() { return cudaFree(0) != cudaSuccess; }\n#define FACTOR 2\n"
    )
    (folder / "scaling.cuh").write_text(HEADER.replace("factor.h", "common/../common/host.cuh"))
    assert _scaled(st.cuda_file(str(folder / "kernel.cu"))) == 2


def test_an_include_of_a_macro_is_refused(folder: Path) -> None:
    text = '#define FILE "factor.h"\n#include FILE\n__global__ void k(int *x) { x[0] = FACTOR; }\n'
    with pytest.raises(st.CompileError, match="an #include of a macro is not supported"):
        st.cuda_source(text, (f"-I{folder / 'common'}",))["k"]


def test_the_headers_of_a_toolkit_are_replaced(folder: Path) -> None:
    (folder / "common/cuda_runtime.h").write_text("#error a header of the toolkit\n")
    (folder / "common/factor.h").unlink()
    with pytest.raises(st.CompileError, match="FACTOR"):
        st.cuda_file(str(folder / "kernel.cu"), (f"-I{folder / 'common'}",))["scale"]


def test_a_name_may_climb_out_of_the_folder(tmp_path: Path) -> None:
    """Projects have the folders `src` and `inc`; comments may be in another encoding than UTF-8."""
    for name in ("src", "inc"):
        (tmp_path / name).mkdir()
    (tmp_path / "inc/a.h").write_bytes(b'#include "b.h" // caf\xe9\n')
    (tmp_path / "inc/b.h").write_text("#define FACTOR 42\n")
    path = tmp_path / "src/k.cu"
    path.write_bytes(b'#include "../inc/a.h"\n// \xe9\n__global__ void k(int *x) { x[threadIdx.x] = FACTOR; }\n')
    assert st.launch(st.cuda_file(str(path)).k, grid=1, block=4, args=(st.zeros(4, st.i32),)).x.tolist() == [42] * 4


def test_a_name_climbs_to_few_folders(tmp_path: Path) -> None:
    own = tmp_path / "a/b/c/d"
    own.mkdir(parents=True)
    (tmp_path / "far.h").write_text("#define FACTOR 42\n")
    (own / "k.cu").write_text('#include "../../../../far.h"\n__global__ void k(int *x) { x[0] = FACTOR; }\n')
    with pytest.raises(st.CompileError, match=r"far\.h"):
        st.cuda_file(str(own / "k.cu"))["k"]


@pytest.mark.slow
def test_curand_in_a_kernel() -> None:
    text = """#include <curand_kernel.h>
    __global__ void k(float *x) { curandState s; curand_init(1234, 5 * threadIdx.x, 0, &s); x[threadIdx.x] = curand_uniform(&s); }"""
    out = st.launch(st.cuda_source(text)["k"], grid=1, block=2, args=(st.zeros(2, st.f32),)).x
    assert out.round(6).tolist() == np.array([0.145468, 0.868979], np.float32).tolist()
