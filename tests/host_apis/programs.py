"""Texts of whole CUDA C++ programs, and their run under a command."""

import subprocess
import sys
from pathlib import Path

CHECKED = r"""
#include <cstdio>
#include <cstdlib>
#define CHECK(call) do { cudaError_t e = call; if (e != cudaSuccess) { \
    printf("%d: %s, %s\n", __LINE__, cudaGetErrorName(e), cudaGetErrorString(e)); return 1; } } while (0)
"""

VECTOR_ADD = r"""#include <iostream>
#include <vector>
#include <cuda_runtime.h>
__global__ void add(const float *a, const float *b, float *c, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) c[i] = a[i] + b[i];
    if (i == 0) printf("kernel %d\n", n);
}
int main(int argc, char **argv) {
    int n = argc > 1 ? atoi(argv[1]) : 1000;
    std::vector<float> a(n, 1.5f), b(n, 2.0f), c(n);
    float *x, *y, *z;
    cudaMalloc(&x, 4 * n); cudaMalloc((void **)&y, 4 * n); cudaMalloc(&z, 4 * n);
    cudaMemcpy(x, a.data(), 4 * n, cudaMemcpyHostToDevice);
    cudaMemcpy(y, b.data(), 4 * n, cudaMemcpyHostToDevice);
    printf("before\n");
    add<<<(n + 255) / 256, 256>>>(x, y, z, n);
    if (cudaGetLastError() != cudaSuccess || cudaDeviceSynchronize() != cudaSuccess) return 9;
    cudaMemcpy(c.data(), z, 4 * n, cudaMemcpyDeviceToHost);
    for (float v : c) if (v != 3.5f) return 8;
    std::cout << "PASS" << std::endl;
    cudaFree(x); cudaFree(y); cudaFree(z);
    return argc > 2 ? atoi(argv[2]) : 0;
}
"""


def run(folder: Path, text: str, *arguments: str, command: str = "check") -> subprocess.CompletedProcess[str]:
    """Run a program under a command of simtbed, in a folder."""
    (folder / "program.cu").write_text(text)
    words = [sys.executable, "-m", "simtbed", command, "program.cu", *arguments]
    return subprocess.run(words, cwd=folder, capture_output=True, text=True, timeout=600, check=False)
