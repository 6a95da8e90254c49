"""Whole CUDA C++ programs under `simtbed check`: output, findings, exit codes."""

import json
from pathlib import Path

import pytest
from simtbed import SimtbedError, UnavailableError
from simtbed.host_apis.cuda import build
from simtbed.host_apis.cuda.build import Program
from simtbed.host_apis.cuda.declarations import runtime_functions, shim_text
from simtbed.host_apis.cuda.runtime import Runtime
from simtbed.host_apis.cuda.unit import short_name
from simtbed.reports.targets.target import CudaProgram, find_target, is_built

from tests.table_checks import each_row
from tests.texts import texts

from .programs import ARRAYS_AND_GRAPHS, CHECKED, MANY_FUNCTIONS, POINTERS, VECTOR_ADD, run

TEXTS = texts("host_apis/programs.cu")

pytest.importorskip("ziglang")

RACE = (
    "__global__ void sum(int *x) { x[0] += threadIdx.x; }\nint main() { int *d; cudaMalloc(&d, 4); sum<<<1, 64>>>(d); }"
)
MEMBERS = (
    "struct P { int *x; const int *y; int n; const int *host, *unused; };\n"
    "__global__ void k(P p) { if (p.host && !p.unused) p.x[0] = p.y[1] + p.n; }\n"
    "int main() { int *d, h[3] = {1, 2, 3}; cudaMalloc(&d, 12); cudaMemcpy(d, h, 12, cudaMemcpyHostToDevice);\n"
    "k<<<1, 1>>>(P{d, d + 1, 4, h, nullptr}); if (cudaMemcpy(h, d, 12, cudaMemcpyDeviceToHost)) return 2; cudaFree(d); return h[0]; }"
)
PROGRAMS = {
    "runs": (VECTOR_ADD, ("--", "500"), 0, "before\nkernel 500\nPASS"),
    "own exit code": (VECTOR_ADD, ("--", "500", "7"), 7, "PASS"),
    "out of bounds": (VECTOR_ADD.replace("i < n", "i <= n"), (), 9, "program.cu:6:24: global read out of bounds"),
    "race": (RACE, (), 1, "program.cu:1:31: race"),
    "host error": ("int main() {\n  int x = unknown;\n}", (), 2, "program.cu:2:11: use of undeclared"),
    "device error": ("__global__ void k(int *x) {\n  x[0] = wrong;\n}\nint main() {}", (), 2, "program.cu:2:10: use of undeclared"),
    "no main": ("__global__ void k() {}", (), 2, "program.cu: no function main; for kernels alone, write their launches in program.toml"),
    "unknown word": (VECTOR_ADD, ("--what",), 2, "--what: expected sources"),
    "static kernels and variables": (
        "static __constant__ int c = 1;\nstatic __global__ void k(int *x) { *x += c; }\n"
        "namespace { __device__ int g = 3; __global__ void m(int *x) { *x += g++; } }\n"
        "int main() { int *d, h = 5; cudaMalloc(&d, 4); cudaMemset(d, 0, 4); cudaMemcpyToSymbol(c, &h, 4); k<<<1, 1>>>(d);\n"
        "for (int i = 0; i < 2; i++) m<<<1, 1>>>(d); cudaMemcpy(&h, d, 4, cudaMemcpyDeviceToHost); cudaFree(d); return h; }",
        (), 12, "",
    ),
    "refused kernel": (
        "__device__ int f(int n) { return n < 2 ? n : f(n - 1) + f(n - 2); }\n__global__ void k(int *p) { p[0] = f(p[1]); }\n"
        "int main() { k<<<1, 1>>>(0); return 0; }",
        (), 3, "recursion is not supported",
    ),
    "tensor maps": (TEXTS["tensor maps"], (), 0, "maps 0 0 1, 1 514 1178"),
    "refused tensor map": (
        TEXTS["tensor maps"].replace("INTERLEAVE_NONE", "INTERLEAVE_16B"), (), 3,
        "simtbed: tensor maps with interleaved layouts are not emulated",
    ),
    "tensor beyond its memory": (
        TEXTS["tensor maps"].replace("out + 16, width", "out + 32, width"), (), 3,
        "out is a tensor map of 5,120 bytes: its memory has 5,056",
    ),
    "null pointer in memory": (
        "__global__ void k(int **p) { p[0][0] = 1; }\nint main() { int **d; cudaMalloc(&d, 8); cudaMemset(d, 0, 8);\n"
        "k<<<1, 1>>>(d); return cudaGetLastError() != 700; }",
        (), 1, "program.cu:1:30: access through a null pointer",
    ),
    "pointers in memory": (POINTERS, (), 0, "list 55\nstack 2016\nconstant 5\nvariable 1\nlocal -9 9\nshared 3\nvector 10 4"),
    "a variable beside pointers in memory": (
        "__device__ int v[4];\n__global__ void k(int **p, int *q) { p[0] = q; }\n"
        "int main() { int **d, *s; cudaMalloc(&d, 8); cudaGetSymbolAddress((void **)&s, v); k<<<1, 1>>>(d, s); }",
        (), 3, "k follows pointers in global memory: q is a variable or registered memory",
    ),
    "pointers in a struct": (MEMBERS, (), 7, "k                  1           0          0"),
    "a pointer to the host that a kernel follows": (
        MEMBERS.replace("p.y[1]", "p.host[1]"), (), 2, ": k: p.host is not memory of the device"
    ),
    "numbers of eight bits": (CHECKED + TEXTS["numbers of eight bits"], (), 0, "differences 0 0\nparticle 19 5\n"),
    "unions packs and members of one name": (TEXTS["unions packs and members of one name"], (), 30, ""),
    "a null pointer": (
        "__global__ void k(int *p) { *p = 1; }\nint main() { k<<<1, 1>>>(0); return cudaDeviceSynchronize() != 700; }",
        (), 1, "program.cu:1:30: access through a null pointer",
    ),
    "no runtime function": (
        "int main() {\n  return cudaIpcOpenMemHandle(0, 0, 0);\n}", (), 3, "program.cu:2: cudaIpcOpenMemHandle is not emulated",
    ),
    "driver": (
        "#include <cuda.h>\n__global__ void k(int *x, int n) { x[threadIdx.x] = n; }\n"
        "int main() { cuInit(0); CUdevice d; cuDeviceGet(&d, 0); CUcontext c; cuCtxCreate(&c, 0, d); CUdeviceptr p; cuMemAlloc(&p, 128);\n"
        "int warp; cuDeviceGetAttribute(&warp, CU_DEVICE_ATTRIBUTE_WARP_SIZE, d); CUfunction f; cudaGetFuncBySymbol(&f, k);\n"
        "int n = 7, h[32]; void *a[] = {&p, &n}; if (cuLaunchKernel(f, 1, 1, 1, warp, 1, 1, 0, 0, a, 0) != CUDA_SUCCESS) return 1;\n"
        "if (cuMemcpyDtoH(h, p, 132) != CUDA_ERROR_INVALID_VALUE) return 2; cuMemcpyDtoH(h, p, 128); cuMemFree(p); return h[31]; }",
        (), 7, "program.cu:6:5: a copy: 132 bytes at byte 0",
    ),
    "no library": ("\n#include <cusparse.h>\nint main() {}", (), 3, "program.cu:2: cusparse.h is not emulated"),
    "no kernel": ("int main() { int *d; cudaMalloc(&d, 4); return cudaFree(d); }", (), 0, "host code           0           0          0"),
    "padding": (
        "struct S { char a; double b; short c; };\n__global__ void k(S *s) { s += threadIdx.x; s->a = 1, s->b = 2, s->c = 3; }\n"
        "__global__ void copy(S *s, S *t) { t[threadIdx.x] = s[threadIdx.x]; }\n"
        "int main() { S *d, *e, h[4]; cudaMalloc(&d, 96); cudaMalloc(&e, 96); k<<<1, 4>>>(d); copy<<<1, 4>>>(d, e);\n"
        "cudaMemcpy(h, e, sizeof h, cudaMemcpyDeviceToHost); cudaFree(d); cudaFree(e); return h[3].c; }",
        (), 3, "copy               1           0          0\n",  # and no remark of host code
    ),
    "a heap in a kernel": (
        "__global__ void k(int **p) { *p = (int *)malloc(4); }\nint main() { k<<<1, 1>>>(0); }", (), 3,
        "program.cu:1:42: an allocation of memory in a kernel is not supported",
    ),
    "pointers to functions": (
        "__device__ int f(int x) { return x; }\n__device__ int (*table)(int) = f;\nint main() {}", (), 3,
        "simtbed: program.cu: table: pointers to functions and virtual functions are not supported",
    ),
    "pointers without a type": (
        "struct P { void *to; };\n__global__ void k(P p) { ((double *)p.to)[threadIdx.x] = 0.5 * threadIdx.x; }\n"
        "int main() { double h[4]; P p; cudaMalloc(&p.to, 32); k<<<1, 4>>>(p); cudaMemcpy(h, p.to, 32, cudaMemcpyDeviceToHost);\n"
        "cudaFree(p.to); return 2 * h[3]; }",
        (), 3, "k  ",
    ),
    "no module": ("int main() {\n  CUmodule m; return cuModuleLoadData(&m, 0); }", (), 3, "program.cu:2: cuModuleLoadData is not emulated"),
    "no library function": ('extern "C" int absent();\nint main() { return absent(); }', (), 3, "absent not found"),
    "cublas": (
        TEXTS["cublas"], ("-lcublas",), 13,
        "gemm 23 29 19 25\ndot 22\nnrm2 5.9161\nasum 21\namax 6\naxpy 26 6\ngemv 133 329\ndotc 15 0\nCUBLAS_STATUS_INVALID_VALUE",
    ),
    "beyond a vector of cublas": (TEXTS["cublas"], (), 13, "program.cu:19:12: a library: 28 bytes at byte 0 of an allocation of 24"),
    "curand": (
        CHECKED + TEXTS["curand"], (), 0,
        "xorwow 0.145468 0.820181 0.868979\nphilox 6627e8d5 1\nhost 0.145468 0.820181 0.868979\n",
    ),
    "texture references": (CHECKED + TEXTS["texture references"], (), 0, "textures 6 12\ntextures 8 10\n"),
    "constants": (TEXTS["constants"], (), 18, ""),
    "clusters": (CHECKED + TEXTS["clusters"], (), 0, "wrong 0, errors 912 912, ranks 20 21 20 21\n"),
    "pools attributes and updates": (
        CHECKED + TEXTS["pools attributes and updates"], ("-Xcompiler", "-Wall,-fopenmp", "-fmad=false", "-lnvToolsExt"), 0,
        "32 32 1 1.00781 1\n",
    ),
    "memory and updates of graphs": (CHECKED + TEXTS["memory and updates of graphs"], (), 0, "graph 7 updated 5\n"),
    "a tile of several warps": (
        CHECKED + TEXTS["memory and updates of graphs"], ("--", "1"), 3,
        "the function cooperative_groups::tile_of_several_warps is not supported",
    ),
    "functions that kernels and the host have": (TEXTS["functions of both sides"], (), 15, ""),
    "error codes": (
        CHECKED + "__global__ void k(int *x) { *x = 1; }\nint main() { int *d; CHECK(cudaMalloc(&d, 4)); k<<<1, 2048>>>(d);\n"
        "if (cudaPeekAtLastError() != 9) return 3; if (cudaGetLastError() != 9) return 4; if (cudaGetLastError() != 0) return 5;\n"
        "k<<<1, 1>>>(d); CHECK(cudaMemset(d, 0, 8)); }",
        (), 1, "cudaErrorInvalidValue, invalid argument",
    ),
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "expected"), [("library templates", "1140 10 1953 64"), ("barriers of libcu++", "0 58 5 122")]
)
def test_library_templates(name: str, expected: str, tmp_path: Path) -> None:
    pytest.importorskip("nvidia.cuda_cccl")
    finished = run(tmp_path, TEXTS[name])
    printed = finished.stdout + finished.stderr
    assert finished.returncode == 0 and expected in printed.splitlines(), printed


@pytest.mark.slow
def test_templates_that_are_not_installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(build, "_cccl_folder", lambda: None)
    (tmp_path / "program.cu").write_text("\n#include <cub/cub.cuh>\nint main() {}\n")
    package = r"nvidia-cuda-cccl-cu12, which is not installed: python -m pip install 'simtbed\[cuda-source\]'"
    with pytest.raises(UnavailableError, match=f"program.cu:2: cub/cub.cuh is in {package}"):
        build.built(build.Program((str(tmp_path / "program.cu"),)), print)


def test_a_name_of_a_template_instance_is_shortened() -> None:
    long = "sort<cub::detail::policy<int, 4>::Policy, thrust::plus<int>, " + "unsigned, " * 3 + "true>"
    assert short_name("sort<cub::policy<int>, 4>") == "sort<cub::policy<int>, 4>"
    assert short_name(long) == "sort<Policy, plus<>, unsigned, unsigned, unsigned, true>"
    assert short_name(f"sort<{'unsigned, ' * 20}int>") == "sort<...>"


@pytest.mark.slow
@pytest.mark.integration
@each_row(PROGRAMS)
def test_programs(name: str, tmp_path: Path) -> None:
    text, arguments, code, expected = PROGRAMS[name]
    result = run(tmp_path, text, *arguments)
    assert (result.returncode, expected in result.stdout + result.stderr) == (code, True), result


@pytest.mark.slow
@pytest.mark.integration
def test_many_functions_in_two_sources(tmp_path: Path) -> None:
    (tmp_path / "inc").mkdir()
    (tmp_path / "inc/helper.h").write_text("int helper(int x);")
    (tmp_path / "helper.cpp").write_text(
        '#include "helper.h"\n#include <cmath>\nint helper(int x) { return std::pow(x, 2); }'
    )
    result = run(tmp_path, MANY_FUNCTIONS, "helper.cpp", "-DLIMIT=9", "-Iinc")
    assert result.returncode == 0, result
    for line in (
        "simtbed H200 9.0 132 132", "counter 69 managed 8", "occupancy 32 264 1024", "callback 3", "helper 81", "scale<double, 32>",
    ):  # fmt: skip
        assert line in result.stdout + result.stderr, result


def test_each_declared_function_has_an_implementation() -> None:
    names = [function.name for function in runtime_functions()]
    assert len(names) == len(set(names))
    assert not [name for name in names if not callable(getattr(Runtime, name, None))]
    assert all(f"simtbed_table[{number}]" in shim_text() for number in range(len(names)))


def test_a_program_may_begin_with_a_source_of_the_host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("main.cpp", "main.c", "kernels.cu"):
        Path(name).touch()
        assert is_built(name) and find_target(name, ["kernels.cu", "--", "9"]) == CudaProgram(
            (name, "kernels.cu"), ("9",)
        )


def test_words_of_a_program(tmp_path: Path) -> None:
    source = tmp_path / "a.cu"
    source.touch()
    program = Program.of([str(source), "-I", "inc", "-DN=3", "-std=c++14", "-lm"])
    assert program == Program((str(source),), ("-Iinc", "-DN=3", "-std=c++14"), ("-lm",))
    assert Program.of([str(source), "-O3", "-arch=sm_90", "--expt-relaxed-constexpr", "-rdc=true"]).relocatable
    for word in (
        "-Xcompiler -Wall",
        "-arch sm_80",
        "-gencode arch=compute_80,code=sm_80",
        "--maxrregcount=64",
        "-maxrregcount 64",
        "-Xptxas -v",
    ):
        assert Program.of([str(source), *word.split()]) == Program((str(source),)), word
    (tmp_path / "folder.cpp").mkdir()
    with pytest.raises(SimtbedError, match=r"folder\.cpp: a folder$"):
        Program.of([str(source), str(tmp_path / "folder.cpp")])


MISTAKES = TEXTS["mistakes"]
MESSAGES = {
    (3, "copy"): "a copy: 36 bytes at byte 0 of an allocation of 32 bytes, allocated at program.cu:2",
    (4, "copy"): "a memset: 20 bytes at byte 16 of an allocation of 32 bytes, allocated at program.cu:2",
    (5, "free"): "no allocation begins at this address: 0 bytes at byte 4 of an allocation of 32 bytes, allocated at program.cu:2",
    (7, "copy"): "a copy: use after free: byte 0 of an allocation of 4 bytes, freed at program.cu:6",
    (8, "free"): "no allocation begins at this address: double free: byte 0 of an allocation of 4 bytes, freed at program.cu:6",
    (10, "host memory"): "k: x is not memory of the device: the address is no memory of the device",
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.integration
def test_mistakes_of_host_code(tmp_path: Path) -> None:
    result = run(tmp_path, MISTAKES, "--", options=("--json",))
    content = json.loads(result.stdout)
    (row,) = [row for row in content["kernels"] if row["kernel"] == "host code"]
    assert {(d["line"], d["kind"]): d["message"] for d in row["faults"]} == MESSAGES, result
    limits = "up to (1024, 1024, 64) and 1,024 threads, (2147483647, 65535, 65535) blocks"
    assert [(d["line"], d["message"]) for d in row["remarks"]] == [
        (9, f"k: blocks of (2000, 1, 1) in a grid of (1, 1, 1): {limits}"), (2, "32 bytes are not freed"),
    ]  # fmt: skip
    assert result.returncode == 1

    text = run(tmp_path, MISTAKES, "--")
    assert (text.returncode, "program.cu:3:1: a copy: 36 bytes" in text.stdout) == (1, True), text
    for form in ("sarif", "junit", "github", "gitlab"):
        other = run(tmp_path, MISTAKES, "--", options=("--format", form))
        assert (other.returncode, "freed at program.cu:6" in other.stdout) == (1, True), other


@pytest.mark.slow
@pytest.mark.integration
def test_limits_of_launches(tmp_path: Path) -> None:
    """Codes and numbers are those of an H200; each refused launch is explained."""
    result = run(tmp_path, TEXTS["limits"], "--")
    assert "1 1 0 0 1 1 | 912 0 912 | 0 30 0 8 912 0 0 | 0 2 0 0 720\n" in result.stderr + result.stdout, result
    for message in (
        "error 1 of this launch is not read: call cudaGetLastError(). k: 70,000 bytes of dynamic shared memory, more than 60,000",
        ": k: 60,000 bytes of dynamic shared memory, more than 49,152: "
        "call cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, 60000)",
        ": own: 49,152 bytes of dynamic shared memory, more than 48,128: call cudaFuncSetAttribute(kernel",
        ": sixteen: 16 blocks in a cluster: up to 8, 16 with cudaFuncAttributeNonPortableClusterSizeAllowed",
        ": sixteen: clusters of (16, 1, 1) blocks do not divide a grid of (30, 1, 1)",
        ": k: a cooperative launch of 1,000 blocks, and the H200 holds 264 at once",
        ": k: blocks of (2048, 1, 1) in a grid of (1, 1, 1): up to (1024, 1024, 64) and 1,024 threads, ",
    ):
        assert message in result.stdout, message


@pytest.mark.slow
@pytest.mark.integration
def test_races_between_streams_and_copies_of_unwritten_bytes(tmp_path: Path) -> None:
    content = json.loads(run(tmp_path, TEXTS["streams"], "--", options=("--json",)).stdout)
    kernel, host = content["kernels"]
    order = "on stream {} and by {} on stream {} without an order"
    assert [(d["line"], d["count"], d["message"]) for d in kernel["faults"]] == [
        (1, 16, "a[0] is accessed by add " + order.format(1, "add", 2))
    ]
    assert [(d["line"], d["count"], d["message"]) for d in host["faults"]] == [
        (5, 64, "memory[0] is accessed by a copy " + order.format(2, "a copy", 1)),
        (12, 32, "a[0] is accessed by a copy " + order.format(1, "add", 2)),
    ]
    assert "cudaStreamWaitEvent(b, event)" in str(host["faults"][0])
    assert [(d["line"], d["message"]) for d in host["remarks"]] == [(14, "a copy: 120 of 128 bytes were never written")]


STICKY = TEXTS["sticky"]


@pytest.mark.slow
@pytest.mark.integration
def test_errors_of_launches_are_sticky(tmp_path: Path) -> None:
    for arguments, message in (((), "global read out of bounds"), (("x",), "assertion")):
        result = run(tmp_path, STICKY, "--", *arguments)
        assert (result.returncode, message in result.stdout) == (1, True), result
        assert "not read" not in result.stdout


@pytest.mark.slow
@pytest.mark.integration
def test_arrays_textures_and_graphs(tmp_path: Path) -> None:
    result = run(tmp_path, ARRAYS_AND_GRAPHS, "--")
    assert (result.returncode, "nodes 3 type 2 threads 1024 peer 0" in result.stderr) == (0, True), result


@pytest.mark.slow
@pytest.mark.integration
def test_sources_in_c(tmp_path: Path) -> None:
    (tmp_path / "host.c").write_text(
        '#include <omp.h>\nint twice(int class) { int *new = &class; return strcmp(omp_get_wtime() ? "a" : "", "a") + 2 * *new; }'
    )
    (tmp_path / "runtime.c").write_text(TEXTS["runtime in C"])
    result = run(
        tmp_path,
        'extern "C" int twice(int), copied(int);\n__global__ void k() {}\nint main() { k<<<1, 1>>>(); return copied(twice(3)); }',
        "host.c",
        "runtime.c",
        "--",
    )
    assert result.returncode == 6, result


@pytest.mark.slow
@pytest.mark.integration
def test_a_second_run_compiles_and_translates_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run(tmp_path, VECTOR_ADD)
    monkeypatch.setenv("PYTHONPROFILEIMPORTTIME", "1")
    result = run(tmp_path, VECTOR_ADD)
    imported = {line.rpartition("|")[2].strip() for line in result.stderr.splitlines()}
    assert (result.returncode, "PASS" in result.stderr) == (0, True), result
    assert "simtbed.host_apis.cuda.runtime" in imported
    assert not imported & {"simtbed.cuda_cpp.header", "simtbed.cuda_cpp.lowering", "simtbed.llvmir.translate"}


UNITS, OTHER_UNIT = TEXTS["unit"], TEXTS["other unit"]


@pytest.mark.slow
@pytest.mark.integration
def test_linked_units(tmp_path: Path) -> None:
    (tmp_path / "other.cu").write_text(OTHER_UNIT)
    result = run(tmp_path, UNITS, "other.cu", "-rdc=true", "-O3", "-DN=0")
    assert result.returncode == 10 * 9 + 2 * 7 + 2 + 2 * 8, result
    faulty = run(tmp_path, UNITS, "other.cu", "-rdc", "true", "-DN=1")
    assert "other.cu:5:41: global read out of bounds: x[1]" in faulty.stdout, faulty
    (tmp_path / "other.cu").write_text(OTHER_UNIT + "__device__ int twice(float x) { return 3; }")
    clash = run(tmp_path, UNITS.replace("scale", "x") + "__device__ int counter;", "other.cu", "-rdc=true", "-DN=0")
    assert (clash.returncode, "counter" in clash.stderr) == (2, True), clash


COMMANDS = {
    "profile": (VECTOR_ADD, 0, "global_store_requests"),
    "whatif": (VECTOR_ADD, 0, "as launched"),
    "verify": (VECTOR_ADD, 0, "agrees"),
    "debug": (VECTOR_ADD.replace("i < n", "i <= n"), 1, "thread (232, 0, 0) = warp 7 lane 8"),
}
"""Program, exit code and text of the output by command."""


@pytest.mark.slow
@pytest.mark.integration
@each_row(COMMANDS)
def test_other_commands(command: str, tmp_path: Path) -> None:
    text, code, expected = COMMANDS[command]
    result = run(tmp_path, text, "--", command=command, input="where\nquit\n")
    output = result.stdout + result.stderr
    assert (result.returncode, expected in output) == (code, True), result
