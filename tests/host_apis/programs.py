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

MANY_FUNCTIONS = r"""#include <cstdio>
#include "helper.h"
#define CHECK(call) do { if (cudaError_t e = call) { printf("%d: %s\n", __LINE__, cudaGetErrorString(e)); return 1; } } while (0)
__constant__ float weights[4] = {1, 2, 3, 4};
__device__ int counter = 5;
__managed__ int managed = 7;
template <class T, int N> __global__ void scale(T *x, T a) {
    __shared__ T tile[N];
    int i = blockIdx.x * N + threadIdx.x;
    tile[threadIdx.x] = x[i] * a; __syncthreads();
    x[i] = tile[threadIdx.x] + weights[i % 4];
    atomicAdd(&counter, 1);
    if (i == 0) managed += 1;
}
__global__ void pitched(float *p, size_t pitch, int w, int h) {
    int x = threadIdx.x, y = blockIdx.x;
    if (x < w) ((float *)((char *)p + y * pitch))[x] = y * 100 + x;
}
static void called(void *data) { printf("callback %d\n", *(int *)data); }
int main(int argc, char **argv) {
    cudaDeviceProp p;
    CHECK(cudaGetDeviceProperties(&p, 0));
    int sms;
    CHECK(cudaDeviceGetAttribute(&sms, cudaDevAttrMultiProcessorCount, 0));
    printf("%s %d.%d %d %d\n", p.name, p.major, p.minor, p.multiProcessorCount, sms);
    float w[4] = {10, 20, 30, 40};
    CHECK(cudaMemcpyToSymbol(weights, w, sizeof w));
    double *d;
    CHECK(cudaMallocManaged(&d, 64 * sizeof(double)));
    for (int i = 0; i < 64; i++) d[i] = i;
    cudaStream_t s;
    cudaEvent_t a, b;
    CHECK(cudaStreamCreate(&s)); CHECK(cudaEventCreate(&a)); CHECK(cudaEventCreate(&b));
    CHECK(cudaEventRecord(a, s));
    scale<double, 32><<<2, 32, 0, s>>>(d, 2.0);
    CHECK(cudaEventRecord(b, s)); CHECK(cudaEventSynchronize(b));
    float ms;
    CHECK(cudaEventElapsedTime(&ms, a, b));
    if (ms <= 0) return 3;
    for (int i = 0; i < 64; i++) if (d[i] != 2 * i + w[i % 4]) return 4;
    int c;
    CHECK(cudaMemcpyFromSymbol(&c, counter, sizeof c));
    printf("counter %d managed %d\n", c, managed);
    float *q;
    size_t pitch;
    CHECK(cudaMallocPitch(&q, &pitch, 10 * sizeof(float), 5));
    pitched<<<5, 32>>>(q, pitch, 10, 5);
    float h[50];
    CHECK(cudaMemcpy2D(h, 40, q, pitch, 40, 5, cudaMemcpyDeviceToHost));
    if (h[49] != 409) return 5;
    int n, g, block;
    CHECK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&n, scale<double, 32>, 32, 0));
    CHECK(cudaOccupancyMaxPotentialBlockSize(&g, &block, pitched));
    printf("occupancy %d %d %d\n", n, g, block);
    int *m, *mapped;
    CHECK(cudaHostAlloc(&m, 4, cudaHostAllocMapped));
    *m = 3;
    CHECK(cudaHostGetDevicePointer(&mapped, m, 0)); CHECK(cudaLaunchHostFunc(s, called, mapped));
    if (cudaStreamDestroy(s) || cudaStreamSynchronize(s) != cudaErrorInvalidResourceHandle) return 6;
    printf("helper %d\n", max(helper(LIMIT), min(3, 4)));
    return 0;
}
"""


def run(folder: Path, text: str, *arguments: str, command: str = "check") -> subprocess.CompletedProcess[str]:
    """Run a program under a command of simtbed, in a folder."""
    (folder / "program.cu").write_text(text)
    words = [sys.executable, "-m", "simtbed", command, "program.cu", *arguments]
    return subprocess.run(words, cwd=folder, capture_output=True, text=True, timeout=600, check=False)
