"""Whole CUDA C++ programs under `simtbed check`: output, findings, exit codes."""

from pathlib import Path

import pytest
from simtbed.host_apis.cuda.build import Program
from simtbed.host_apis.cuda.declarations import runtime_functions, shim_text
from simtbed.host_apis.cuda.runtime import Runtime

from tests.table_checks import check_each

from .programs import CHECKED, MANY_FUNCTIONS, VECTOR_ADD, run

pytest.importorskip("ziglang")

RACE = (
    "__global__ void sum(int *x) { x[0] += threadIdx.x; }\nint main() { int *d; cudaMalloc(&d, 4); sum<<<1, 64>>>(d); }"
)
PROGRAMS = {
    "runs": (VECTOR_ADD, ("--", "500"), 0, "before\nkernel 500\nPASS"),
    "own exit code": (VECTOR_ADD, ("--", "500", "7"), 7, "PASS"),
    "out of bounds": (VECTOR_ADD.replace("i < n", "i <= n"), (), 1, "program.cu:6:24: global read out of bounds"),
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
        "__global__ void k(int **p) { p[0][0] = 1; }\nint main() { k<<<1, 1>>>(0); return 0; }",
        (), 3, "a pointer in global memory is not supported",
    ),
    "pointers in a struct": (
        "struct P { int *x; const int *y; int n, *unused; };\n__global__ void k(P p) { if (!p.unused) p.x[0] = p.y[1] + p.n; }\n"
        "int main() { int *d, h[3] = {1, 2, 3}; cudaMalloc(&d, 12); cudaMemcpy(d, h, 12, cudaMemcpyHostToDevice);\n"
        "k<<<1, 1>>>(P{d, d + 1, 4, nullptr}); cudaMemcpy(h, d, 12, cudaMemcpyDeviceToHost); cudaFree(d); return h[0]; }",
        (), 7, "",
    ),
    "no runtime function": (
        "int main() {\n  return cudaIpcOpenMemHandle(0, 0, 0);\n}", (), 3, "program.cu:2: cudaIpcOpenMemHandle is not emulated",
    ),
    "no library function": ('extern "C" int absent();\nint main() { return absent(); }', (), 3, "absent not found"),
    "error codes": (
        CHECKED + "__global__ void k(int *x) { *x = 1; }\nint main() { int *d; CHECK(cudaMalloc(&d, 4)); k<<<1, 2048>>>(d);\n"
        "if (cudaPeekAtLastError() != 9) return 3; if (cudaGetLastError() != 9) return 4; if (cudaGetLastError() != 0) return 5;\n"
        "k<<<1, 1>>>(d); CHECK(cudaMemset(d, 0, 8)); }",
        (), 1, "cudaErrorInvalidValue, invalid argument",
    ),
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.integration
def test_programs(tmp_path: Path) -> None:
    def check(name: str) -> None:
        text, arguments, code, expected = PROGRAMS[name]
        result = run(tmp_path, text, *arguments)
        assert (result.returncode, expected in result.stdout + result.stderr) == (code, True), result

    check_each(PROGRAMS, check)


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


def test_words_of_a_program(tmp_path: Path) -> None:
    source = tmp_path / "a.cu"
    source.touch()
    program = Program.of([str(source), "-I", "inc", "-DN=3", "-std=c++14", "-lm"])
    assert program == Program((str(source),), ("-Iinc", "-DN=3", "-std=c++14"), ("-lm",))


MISTAKES = {
    "copy beyond an allocation": (
        "int main() { int h[9], *d; cudaMalloc(&d, 32);\n cudaMemcpy(d, h, 36, cudaMemcpyHostToDevice); cudaFree(d); }",
        "program.cu:2: a copy: 36 bytes at byte 0 of an allocation of 32 bytes, allocated at program.cu:1",
    ),
    "memset beyond an allocation": (
        "int main() { int *d; cudaMalloc(&d, 32);\n cudaMemset(d + 4, 0, 20); cudaFree(d); }",
        "program.cu:2: a memset: 20 bytes at byte 16 of an allocation of 32 bytes",
    ),
    "use after free": (
        "int main() { int h, *d; cudaMalloc(&d, 4); cudaFree(d);\n cudaMemcpy(&h, d, 4, cudaMemcpyDeviceToHost); }",
        "program.cu:2: a copy: use after free: byte 0 of an allocation of 4 bytes, freed at program.cu:1",
    ),
    "double free": (
        "int main() { int *d; cudaMalloc(&d, 4); cudaFree(d);\n cudaFree(d); }",
        "program.cu:2: no allocation begins at this address: double free",
    ),
    "free inside": (
        "int main() { int *d; cudaMalloc(&d, 8);\n cudaFree(d + 1); cudaFree(d); }",
        "program.cu:2: no allocation begins at this address: 0 bytes at byte 4 of an allocation of 8 bytes",
    ),
    "unread error": (
        "__global__ void k() {}\nint main() {\n k<<<1, 2000>>>(); }",
        "program.cu:3: error 9 of this launch is not read: call cudaGetLastError()",
    ),
    "host memory": (
        "__global__ void k(int *x) { *x = 1; }\nint main() { int h; k<<<1, 1>>>(&h);\n return cudaDeviceSynchronize() != 700; }",
        "program.cu:2: k: x is not memory of the device: 0x",
    ),
}


@pytest.mark.slow
@pytest.mark.integration
def test_mistakes_of_host_code(tmp_path: Path) -> None:
    def check(name: str) -> None:
        text, expected = MISTAKES[name]
        result = run(tmp_path, text)
        assert (result.returncode, expected in result.stderr) == (1, True), result

    check_each(MISTAKES, check)
    result = run(
        tmp_path, "__global__ void k(int *x) { *x = 1; }\nint main() { int *d;\n cudaMalloc(&d, 4); k<<<1, 1>>>(d); }"
    )
    assert result.returncode == 0 and "simtbed: remark: program.cu:3: 4 bytes are not freed" in result.stderr, result
